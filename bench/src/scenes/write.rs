//! One large write over an existing file, into the page cache or down to the disk.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::data::{STEP, first_unequal};
use crate::loops::WriteLoop;
use crate::ours::{self, Ours};
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::scenes::OURS;
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct WriteScene<'a> {
    name: String,
    path: PathBuf,
    file: File,
    source: &'a mut [u8],
    /// Whether a turn ends when the bytes are on the disk.
    sync: bool,
    ours: Ours,
    loops: Vec<WriteLoop>,
}

impl<'a> WriteScene<'a> {
    /// `path` is overwritten, and so is `source`, by patterns.
    pub(crate) fn new(
        name: &str,
        path: &Path,
        source: &'a mut [u8],
        sync: bool,
        ours: Ours,
        loops: Vec<WriteLoop>,
    ) -> Outcome<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .doing("open", path)?;
        pattern::fill(source, 0, 0);
        // The first turn that reaches a place of the file would have to find room for it on the disk, and nobody after it.
        file.write_all_at(source, 0)
            .and_then(|()| file.sync_all())
            .doing("write", path)?;
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            file,
            source,
            sync,
            ours,
            loops,
        })
    }

    fn write(&self, who: usize, amount: u64) -> Outcome<()> {
        let source = &self.source[..amount as usize];
        match who.checked_sub(1).and_then(|at| self.loops.get(at)) {
            None => {
                self.ours.write(source)?;
                if self.sync {
                    self.ours.sync_data()?;
                }
            }
            Some(each) => {
                each.run(&self.file, source).doing("write", &self.path)?;
                if self.sync {
                    self.file.sync_data().doing("sync", &self.path)?;
                }
            }
        }
        Ok(())
    }
}

impl Scene for WriteScene<'_> {
    fn contenders(&self) -> Vec<String> {
        let tail = if self.sync { " + fdatasync" } else { "" };
        let loops = self.loops.iter().map(|each| each.name() + tail);
        std::iter::once(OURS.to_owned()).chain(loops).collect()
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: LEAST_TURN,
            most: self.source.len() as u64,
            step: STEP,
        }
    }

    fn prepare(&mut self, _: u64, _: u64) -> Outcome<()> {
        // Every turn finds a clean file: without this, one turn's dirty pages are written back during the next one, and
        // at some point the kernel makes writers wait.
        self.file.sync_data().doing("sync", &self.path)
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        self.write(who, amount)?;
        Ok(Moved {
            bytes: amount,
            operations: 1,
        })
    }

    fn check(&mut self, _: usize, _: u64, _: u64) -> Outcome<()> {
        Ok(())
    }

    /// Everybody writes a content of its own, which is read back and compared byte by byte; where the case is about the
    /// disk, the page cache is dropped in between.
    fn prove(&mut self, amount: u64) -> Outcome<()> {
        let mut back = vec![0; STEP as usize];
        for (who, contender) in self.contenders().into_iter().enumerate() {
            pattern::fill(self.source, 1 + who as u64, 0);
            self.write(who, amount)?;
            if self.sync {
                ours::drop_from_cache(&self.path, amount)?;
            }
            let written = &self.source[..amount as usize];
            for (piece, offset) in written.chunks(back.len()).zip((0..).step_by(STEP as usize)) {
                let back = &mut back[..piece.len()];
                self.file
                    .read_exact_at(back, offset)
                    .doing("read back", &self.path)?;
                if let Some(at) = first_unequal(piece, back) {
                    let position = offset + at as u64;
                    return Err(Trouble::Mismatch {
                        case: self.name.clone(),
                        contender,
                        position,
                    });
                }
            }
        }
        Ok(())
    }
}

const LEAST_TURN: u64 = 32 << 20;
