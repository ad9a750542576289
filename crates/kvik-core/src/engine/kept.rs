//! The engine of a map that stays: bytes are copied out of it, and a file that was cut short under it is an error.
//!
//! What lies in the map is copied as [`Mapped`](super::mapped) does; where that cannot be, and on processors for which there
//! is no guarded copy, the bytes come by `pread` from the file that was mapped.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use kvik_stats::{Backend, Direction};

#[cfg(target_arch = "x86_64")]
use super::mapped::Mapped;
use super::{Engine, Lane, blocking, posix};
use crate::corridor::FillWindow;
use crate::error::{Error, ErrorKind, Op, Result};

/// A map of a piece of a file that stays.
///
/// # Safety
/// For as long as the value lives, `len` bytes from `start` on are mapped for reading, and are those of the file from `offset`
/// on. It is all the same if reading them faults with `SIGBUS`, or if others change them.
pub unsafe trait FileMapping: Send + Sync + 'static {
    /// Where the mapping starts.
    fn start(&self) -> *const u8;

    /// How many bytes it has.
    fn len(&self) -> usize;

    /// Whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which byte of the file is its first.
    fn offset(&self) -> u64;

    /// Behind which byte of the file it ends.
    fn end(&self) -> u64 {
        self.offset() + self.len() as u64
    }

    /// Told that these bytes of the file, which lie in the map, are about to be copied.
    fn touch(&self, range: Range<u64>);
}

/// Copies out of a map. Every task begins in it or behind it, and is short where the map ends.
pub struct MapEngine {
    map: Arc<dyn FileMapping>,
    file: Arc<File>,
    #[cfg(target_arch = "x86_64")]
    mapped: Mapped,
}

impl MapEngine {
    /// For `map`, which is one of `file`.
    #[must_use]
    pub fn new(map: Arc<dyn FileMapping>, file: File) -> MapEngine {
        let file = Arc::new(file);
        MapEngine {
            map,
            #[cfg(target_arch = "x86_64")]
            mapped: Mapped::new(Arc::clone(&file)),
            file,
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn copy(&self, window: &mut FillWindow<'_>, offset: u64) -> Result<()> {
        let mut reader = self.mapped.reader_of(&*self.map);
        reader.fill(&self.file, window, offset)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn copy(&self, window: &mut FillWindow<'_>, offset: u64) -> Result<()> {
        fill_by_read(&*self.map, &self.file, window, offset)
    }

    /// Fills the window, which begins in the map, as far as the map reaches.
    fn fill(&self, window: &mut FillWindow<'_>, offset: u64) -> Result<()> {
        self.copy(window, offset)?;
        let (at, end) = (offset + window.filled() as u64, self.map.end());
        if window.remaining() == 0 || at >= end {
            return Ok(());
        }
        let why = format!(
            "the file was cut short under its map: it has no byte {at} any more, and the map reaches to byte {end}"
        );
        Err(Error::new(ErrorKind::Changed, Op::Read, why))
    }
}

/// Reads what is left of the window and lies in the map from the file instead.
pub(super) fn fill_by_read(
    map: &dyn FileMapping,
    file: &File,
    window: &mut FillWindow<'_>,
    offset: u64,
) -> Result<()> {
    let at = offset + window.filled() as u64;
    let most = map.end().saturating_sub(at).min(window.remaining() as u64);
    posix::fill_some(file, window, offset, most as usize).map(drop)
}

impl Engine for MapEngine {
    fn backend(&self) -> Backend {
        Backend::Mmap
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let drain = |_: &[u8], _| {
            let why = "a map is only read";
            (
                0,
                Some(Error::new(
                    ErrorKind::Unsupported,
                    Op::from(Direction::Write),
                    why,
                )),
            )
        };
        Ok(blocking::lane(
            |window, offset| self.fill(window, offset),
            drain,
        ))
    }
}
