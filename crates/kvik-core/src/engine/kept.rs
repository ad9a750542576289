//! The engine of a map that stays: bytes are copied out of it, and a file that was cut short under it is an error.
//!
//! What is large and lies in the map is copied as [`Mapped`](super::mapped) does. All else comes by `pread` from the file that
//! was mapped: what is small, for which that is the cheaper call; what goes into a slab, for which the kernel's copy is the
//! best there is; files over a network or in user space, of which a map may show what was cached; and all on processors for
//! which there is no guarded copy.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use kvik_stats::Backend;

use super::auto::{self, Storage};
#[cfg(target_arch = "x86_64")]
use super::mapped::Mapped;
use super::{Engine, Lane, blocking, posix};
use crate::corridor::FillWindow;
use crate::error::{Error, ErrorKind, Op, Result};

/// A map of a piece of a file that stays.
///
/// # Safety
/// For as long as the value lives, `bytes` and `offset` always answer the same; the bytes are mapped for reading, and are those
/// of one file from `offset` on. It is all the same if reading them faults with `SIGBUS`, or if others change them.
pub unsafe trait FileMapping: Send + Sync + 'static {
    /// Where the mapping is.
    fn bytes(&self) -> *const [u8];

    /// Which byte of the file is its first.
    fn offset(&self) -> u64;

    /// Told that these bytes of the file, which lie in the map, are about to be copied.
    fn touch(&self, range: Range<u64>);
}

/// Copies out of a map. Every task begins in it or behind it, and is short where the map ends.
pub struct MapEngine {
    map: Arc<dyn FileMapping>,
    file: Arc<File>,
    // From which length on windows are filled out of the map.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "there is no guarded copy")
    )]
    by_map: usize,
    #[cfg(target_arch = "x86_64")]
    mapped: Mapped,
}

impl MapEngine {
    /// For windows of the host, out of `map`, which is one of `file`.
    #[must_use]
    pub fn new(map: Arc<dyn FileMapping>, file: Arc<File>) -> MapEngine {
        let by_map = match Storage::of(&file) {
            Storage::Disk | Storage::Local => auto::SMALL,
            Storage::Other => usize::MAX,
        };
        MapEngine {
            map,
            by_map,
            #[cfg(target_arch = "x86_64")]
            mapped: Mapped::new(Arc::clone(&file)),
            file,
        }
    }

    /// The same for the slabs through which bytes go to a device.
    #[must_use]
    pub fn for_slabs(map: Arc<dyn FileMapping>, file: Arc<File>) -> MapEngine {
        MapEngine {
            by_map: usize::MAX,
            ..MapEngine::new(map, file)
        }
    }

    /// Fills the window, which begins in the map, as far as the map reaches.
    fn fill(&self, window: &mut FillWindow<'_>, offset: u64) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        if window.remaining() >= self.by_map {
            let mut reader = self.mapped.reader_of(&*self.map);
            reader.fill(&self.file, window, offset)?;
        }
        fill_by_read(&*self.map, &self.file, window, offset)?;
        let (at, end) = (offset + window.filled() as u64, end(&*self.map));
        if window.remaining() == 0 || at >= end {
            return Ok(());
        }
        let why = format!(
            "the file was cut short under its map: it has no byte {at} any more, and the map reaches to byte {end}"
        );
        Err(Error::new(ErrorKind::Changed, Op::Read, why))
    }
}

/// Behind which byte of the file the map ends.
pub(super) fn end(map: &dyn FileMapping) -> u64 {
    map.offset() + map.bytes().len() as u64
}

/// Reads what is left of the window and lies in the map from the file instead.
fn fill_by_read(
    map: &dyn FileMapping,
    file: &File,
    window: &mut FillWindow<'_>,
    offset: u64,
) -> Result<()> {
    let at = offset + window.filled() as u64;
    let most = end(map).saturating_sub(at).min(window.remaining() as u64);
    posix::fill_some(file, window, offset, most as usize).map(drop)
}

impl Engine for MapEngine {
    fn backend(&self) -> Backend {
        Backend::Mmap
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let drain = |_: &[u8], _| {
            let why = "a map is only read";
            let error = Error::new(ErrorKind::Unsupported, Op::Write, why);
            (0, Some(error))
        };
        Ok(blocking::lane(
            "map",
            |window, offset| self.fill(window, offset),
            drain,
        ))
    }
}
