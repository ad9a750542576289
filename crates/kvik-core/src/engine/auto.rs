//! The engine that chooses: each piece of a read goes by the way that was the fastest so far for pieces like it.
//!
//! Which way that is depends on the CPU, and on how the target lies in its page (see [`scratch`](super::scratch)); it is
//! learnt from the reads themselves (see [`Choice`]), for the whole process. Small pieces, pieces that are not in the page
//! cache, and writes go as by [`posix`]: there the kernel's readahead or the storage decides, not the copy.

use std::fs::File;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use kvik_stats::Backend;
use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,
    XFS_SUPER_MAGIC, fstatfs,
};

#[cfg(target_arch = "x86_64")]
use super::mapped;
use super::posix;
use super::scratch::Borrowed;
use super::{Engine, Lane};
use crate::choice::Choice;
use crate::corridor::FillWindow;
use crate::error::Result;
use crate::residency::{CachedPages, Residency};

/// Chooses a way for each piece.
#[derive(Debug)]
pub(crate) struct Auto {
    file: Arc<File>,
    cached: Arc<CachedPages>,
    // Whether it lies on a file system of this machine, asked at the first large read.
    local: OnceLock<bool>,
    #[cfg(target_arch = "x86_64")]
    mapped: mapped::Mapped,
}

impl Auto {
    pub(crate) fn new(file: Arc<File>, cached: Arc<CachedPages>) -> Auto {
        Auto {
            cached,
            #[cfg(target_arch = "x86_64")]
            mapped: mapped::Mapped::new(Arc::clone(&file)),
            file,
            local: OnceLock::new(),
        }
    }

    /// Only there does a map show what a read would bring: over a network, or in user space, it may show what was cached.
    fn is_local(&self) -> bool {
        *self.local.get_or_init(|| {
            fstatfs(&*self.file).is_ok_and(|stats| LOCAL.contains(&stats.filesystem_type()))
        })
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            engine: self,
            scratch: None,
            #[cfg(target_arch = "x86_64")]
            mapped: self.mapped.reader(),
        }
    }
}

impl Engine for Auto {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let mut reader = self.reader();
        Ok(posix::lane(&self.file, move |window, offset| {
            reader.fill(&self.file, window, offset)
        }))
    }

    fn scatters(&self) -> bool {
        true
    }
}

/// One lane's reads, and what the ways need for them.
pub(crate) struct Reader<'e> {
    engine: &'e Auto,
    scratch: Option<Borrowed>,
    #[cfg(target_arch = "x86_64")]
    mapped: mapped::Reader<'e>,
}

impl Reader<'_> {
    /// Fills the window from `offset` on; it stays short only where the data ends.
    pub(crate) fn fill(
        &mut self,
        file: &File,
        window: &mut FillWindow<'_>,
        offset: u64,
    ) -> Result<()> {
        let asked = window.remaining();
        if asked < SMALL || window.is_scattered() || !self.engine.is_local() {
            return posix::fill(file, window, offset);
        }
        let start = offset + window.filled() as u64;
        if self.engine.cached.residency(start..start + asked as u64) != Residency::Hot {
            return posix::fill(file, window, offset);
        }
        let choice = choice_for(window, offset);
        let way = choice.pick();
        let start = Instant::now();
        match way {
            PREAD => posix::fill(file, window, offset)?,
            SCRATCH => self.scratch()?.fill(file, window, offset)?,
            #[cfg(target_arch = "x86_64")]
            _ => self.mapped.fill(file, window, offset)?,
            #[cfg(not(target_arch = "x86_64"))]
            _ => posix::fill(file, window, offset)?,
        }
        // A piece that met the end is no sample of the whole.
        if window.remaining() == 0 {
            choice.report(way, asked, start.elapsed());
        }
        Ok(())
    }

    fn scratch(&mut self) -> Result<&mut Borrowed> {
        match &mut self.scratch {
            Some(scratch) => Ok(scratch),
            none => Ok(none.insert(Borrowed::take()?)),
        }
    }
}

/// What was learnt about pieces that lie like this one.
fn choice_for(window: &mut FillWindow<'_>, offset: u64) -> &'static Choice<WAYS> {
    let target = window.room().as_ptr().addr() as u64;
    match target.wrapping_sub(offset) % PAGE {
        1..32 => &ALIASED,
        _ => &PLAIN,
    }
}

static PLAIN: Choice<WAYS> = Choice::new();
// Where the kernel's copy is slow on some CPUs: the target lies 1 to 31 bytes behind its source, modulo the page.
static ALIASED: Choice<WAYS> = Choice::new();

const LOCAL: [FsType; 5] = [
    EXT4_SUPER_MAGIC,
    XFS_SUPER_MAGIC,
    BTRFS_SUPER_MAGIC,
    TMPFS_MAGIC,
    OVERLAYFS_SUPER_MAGIC,
];
const PREAD: usize = 0;
const SCRATCH: usize = 1;
const WAYS: usize = if cfg!(target_arch = "x86_64") { 3 } else { 2 };
const PAGE: u64 = 4096;
// Below this the ways differ by less than what they cost to begin.
const SMALL: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::filling;
    use std::os::unix::fs::FileExt;

    #[test]
    fn every_way_it_tries_brings_the_same_bytes() {
        let content: Vec<u8> = (0..3 * SMALL + 77)
            .map(|at| (at * 31 % 251) as u8)
            .collect();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&content, 0).unwrap();
        let file = Arc::new(file);
        let cached = Arc::new(CachedPages::new(Arc::clone(&file)));
        let engine = Auto::new(file, cached);
        let mut reader = engine.reader();
        let mut bytes = vec![0; content.len() + 1100];
        // More rounds than it takes to try all ways for both kinds of target, and some beyond.
        for round in 0..20 {
            let offset = [0, 1, 4097][round % 3];
            let shift = [0, 16, 1000][round / 3 % 3];
            bytes.fill(0xee);
            let mut window = filling(&mut bytes[shift..]);
            reader
                .fill(&engine.file, &mut window, offset as u64)
                .unwrap();
            let filled = window.filled();
            assert_eq!(filled, content.len() - offset);
            assert!(
                bytes[shift..][..filled] == content[offset..],
                "round {round}"
            );
            assert!(
                bytes[shift + filled..].iter().all(|byte| *byte == 0xee),
                "round {round}"
            );
        }
    }
}
