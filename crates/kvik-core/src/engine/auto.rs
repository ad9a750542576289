//! The engine that chooses: each piece of a read goes by the way that was the fastest so far for pieces like it.
//!
//! Which way that is depends on the CPU, and on how the target lies in its page (see [`scratch`](super::scratch)); it is
//! learnt from the reads themselves (see [`Choice`]), for the whole process. Pieces that are not in the page cache go past
//! it where that is faster (see [`cold`](super::cold)). Small pieces, those that are cached in part, and writes go as by
//! [`posix`].

use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use kvik_config::ByteSize;
use kvik_stats::Backend;
use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,
    XFS_SUPER_MAGIC, fstatfs,
};

use super::cold::Cold;
#[cfg(target_arch = "x86_64")]
use super::mapped;
use super::posix;
use super::scratch::Borrowed;
use super::{Engine, Lane};
use crate::choice::Choice;
use crate::corridor::FillWindow;
use crate::error::Result;
use crate::rereads::{Found, GRAIN};
use crate::residency::{CachedPages, Residency};

/// Chooses a way for each piece.
#[derive(Debug)]
pub(crate) struct Auto {
    file: Arc<File>,
    cached: Arc<CachedPages>,
    bounce_buffer_size: ByteSize,
    local: bool,
    // Where reads may go past the page cache.
    cold: Option<Cold>,
    // Whether it fills slabs on the way to a device, which are small and used again and again.
    for_slabs: bool,
    #[cfg(target_arch = "x86_64")]
    mapped: mapped::Mapped,
}

impl Auto {
    /// For a file on `storage`, with blocks of scratch memory no larger than `bounce_buffer_size`; pieces that are not in the
    /// page cache go by `cold`, if there is one.
    pub(crate) fn new(
        file: Arc<File>,
        cached: Arc<CachedPages>,
        storage: Storage,
        cold: Option<Cold>,
        bounce_buffer_size: ByteSize,
    ) -> Auto {
        Auto {
            cached,
            bounce_buffer_size,
            local: storage != Storage::Other,
            cold,
            for_slabs: false,
            #[cfg(target_arch = "x86_64")]
            mapped: mapped::Mapped::new(Arc::clone(&file)),
            file,
        }
    }

    /// For targets that stay in the processor's cache, where nothing beats the kernel's copy.
    #[must_use]
    pub(crate) fn for_slabs(self) -> Auto {
        Auto {
            for_slabs: true,
            ..self
        }
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
        Ok(posix::lane("auto", &self.file, move |window, offset| {
            reader.fill(&self.file, window, offset)
        }))
    }

    fn scatters(&self) -> bool {
        true
    }

    fn writers(&self) -> usize {
        match self.local {
            true => WRITERS,
            false => usize::MAX,
        }
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
        // Into a slab the kernel's copy is the best there is, so that nothing is to be chosen for what cannot be cold.
        let no_choice = self.engine.for_slabs && self.engine.cold.is_none();
        if asked < SMALL || window.is_scattered() || !self.engine.local || no_choice {
            return posix::fill(file, window, offset);
        }
        let start = offset + window.filled() as u64;
        let piece = start..start + asked as u64;
        let cached = &self.engine.cached;
        let Some(share) = cached.look(piece.clone()) else {
            return posix::fill(file, window, offset);
        };
        if let Some(cold) = &self.engine.cold {
            if share.is_nearly_cold() {
                return cold.fill(file, window, offset, Found::Missing);
            }
            if cold.is_read_ahead(start, cached) {
                return cold.fill(file, window, offset, Found::ReadAhead);
            }
            cold.found_cached(file, &piece);
        }
        if self.engine.for_slabs || share.residency() != Residency::Hot {
            return posix::fill(file, window, offset);
        }
        let choice = choice_for(window, offset);
        let way = choice.pick();
        let start = Instant::now();
        match way {
            PREAD => posix::fill(file, window, offset)?,
            SCRATCH => self.scratch().fill(file, window, offset)?,
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

    fn scratch(&mut self) -> &mut Borrowed {
        let size = self.engine.bounce_buffer_size;
        self.scratch.get_or_insert_with(|| Borrowed::take(size))
    }
}

/// Where a file lies, as far as it matters to the choice of ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// On a disk of this machine, under a file system that reads past its cache what it says is not in it.
    Disk,
    /// On this machine: a map shows what a read would bring.
    Local,
    /// Over a network or in user space, where a map may show what was cached, or somewhere unknown.
    Other,
}

impl Storage {
    pub(crate) fn of(file: &File) -> Storage {
        match fstatfs(file).map(|stats| stats.filesystem_type()) {
            Ok(kind) if DISKS.contains(&kind) => Storage::Disk,
            Ok(kind) if LOCAL.contains(&kind) => Storage::Local,
            _ => Storage::Other,
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

const DISKS: [FsType; 3] = [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC];
// A tmpfs has no storage to read from; of a file on an overlay the kernel does not tell what is cached.
const LOCAL: [FsType; 2] = [TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC];
// The file systems of this machine let one thread at a time write to a file through its pages, and the others spin: with
// sixteen instead of two, no byte more was written in a second, and each cost about seven times the CPU time (docs/src/design.md).
// The second one prepares what the first is not done with.
const WRITERS: usize = 2;
const PREAD: usize = 0;
const SCRATCH: usize = 1;
const WAYS: usize = if cfg!(target_arch = "x86_64") { 3 } else { 2 };
const PAGE: u64 = 4096;
// Below this the ways differ by less than what they cost to begin.
pub(super) const SMALL: usize = GRAIN as usize;

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
        let engine = Auto::new(file, cached, Storage::Local, None, ByteSize::mib(16));
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
