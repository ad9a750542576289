//! One large write over an existing file: into the page cache, down to the disk, or past the page cache.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::contender::{Contender, Role};
use crate::data::{STEP, first_unequal};
use crate::loops::{WriteLoop, direct};
use crate::ours::{self, Ours};
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::scenes::LEAST_TURN;
use crate::trouble::{Doing, Outcome, Trouble};

/// When a write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteWay {
    /// In the page cache.
    Cached,
    /// On the disk, by `fdatasync`.
    Synced,
    /// Handed to the disk, past the page cache.
    Direct,
}

pub(crate) struct WriteScene<'a> {
    name: String,
    path: PathBuf,
    file: File,
    direct: Option<File>,
    source: &'a mut [u8],
    way: WriteWay,
    /// The first is the one that the case is about.
    ours: Vec<(Contender, Ours)>,
    loops: Vec<WriteLoop>,
}

impl<'a> WriteScene<'a> {
    /// `path` is overwritten, and so is `source`, by patterns.
    pub(crate) fn new(
        name: &str,
        path: &Path,
        source: &'a mut [u8],
        way: WriteWay,
        ours: Vec<(Contender, Ours)>,
        threads: &[usize],
    ) -> Outcome<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .doing("open", path)?;
        let past_the_cache = way == WriteWay::Direct;
        let open = past_the_cache.then(|| direct::open(path, true));
        let direct = open.transpose().doing("open past the page cache", path)?;
        pattern::fill(source, 0, 0);
        // The first turn that reaches a place of the file would have to find room for it on the disk, and nobody after it.
        file.write_all_at(source, 0)
            .and_then(|()| file.sync_all())
            .doing("write", path)?;
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            file,
            direct,
            source,
            way,
            ours,
            loops: WriteLoop::all(threads, past_the_cache),
        })
    }

    fn write(&self, who: usize, amount: u64) -> Outcome<()> {
        let source = &self.source[..amount as usize];
        let sync = self.way == WriteWay::Synced;
        match who.checked_sub(self.ours.len()) {
            None => {
                let ours = &self.ours[who].1;
                ours.write(source)?;
                if sync {
                    ours.sync_data()?;
                }
            }
            Some(at) => {
                let file = self.direct.as_ref().unwrap_or(&self.file);
                self.loops[at]
                    .run(file, source)
                    .doing("write", &self.path)?;
                if sync {
                    self.file.sync_data().doing("sync", &self.path)?;
                }
            }
        }
        Ok(())
    }
}

impl Scene for WriteScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let tail = match self.way {
            WriteWay::Synced => " + fdatasync",
            WriteWay::Cached | WriteWay::Direct => "",
        };
        let ours = self.ours.iter().map(|(contender, _)| contender.clone());
        let loops = self.loops.iter();
        ours.chain(loops.map(|each| Contender::new(Role::Loop, each.name() + tail)))
            .collect()
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: LEAST_TURN,
            most: self.source.len() as u64,
            step: STEP,
        }
    }

    fn prepare(&mut self, _: usize, amount: u64, _: u64) -> Outcome<()> {
        // Every turn finds a clean file: without this, one turn's dirty pages are written back during the next one, and
        // at some point the kernel makes writers wait.
        self.file.sync_data().doing("sync", &self.path)?;
        // And one that is in the page cache: a turn that went past it has left none of its pages there, and would leave
        // finding new ones to whoever comes next.
        let mut scratch = vec![0; STEP as usize];
        for offset in (0..amount).step_by(STEP as usize) {
            let piece = &mut scratch[..(amount - offset).min(STEP) as usize];
            self.file
                .read_exact_at(piece, offset)
                .doing("read", &self.path)?;
        }
        Ok(())
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        self.write(who, amount)?;
        Ok(Moved::here(amount, 1))
    }

    fn check(&mut self, _: usize, _: u64, _: u64) -> Outcome<()> {
        Ok(())
    }

    /// Everybody writes a content of its own, which is read back and compared byte by byte.
    fn prove(&mut self, amount: u64) -> Outcome<()> {
        for (who, contender) in self.contenders().into_iter().enumerate() {
            pattern::fill(self.source, 1 + who as u64, 0);
            self.write(who, amount)?;
            let written = &self.source[..amount as usize];
            if let Some(position) = difference(&self.path, &self.file, self.way, written)? {
                return Err(Trouble::Mismatch {
                    case: self.name.clone(),
                    contender: contender.name,
                    position,
                });
            }
        }
        Ok(())
    }
}

/// The position of the first byte of `file` that is not what was `written` from its start; where the case is about the
/// disk, the page cache is dropped before.
pub(crate) fn difference(
    path: &Path,
    file: &File,
    way: WriteWay,
    written: &[u8],
) -> Outcome<Option<u64>> {
    if way != WriteWay::Cached {
        ours::drop_from_cache(path, written.len() as u64)?;
    }
    let mut back = vec![0; STEP as usize];
    for (piece, offset) in written.chunks(back.len()).zip((0..).step_by(STEP as usize)) {
        let back = &mut back[..piece.len()];
        file.read_exact_at(back, offset).doing("read back", path)?;
        if let Some(at) = first_unequal(piece, back) {
            return Ok(Some(offset + at as u64));
        }
    }
    Ok(None)
}
