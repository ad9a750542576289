//! The mapping itself, and all that is unsafe about it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};

use kvik_core::corridor::FileMapping;
use memmap2::{Advice, MmapOptions, MmapRaw};

/// A mapped piece of a file. Unmapped on drop.
#[derive(Debug)]
pub(crate) struct Map {
    // None of an empty file: nothing cannot be mapped.
    map: Option<MmapRaw>,
    offset: u64,
    // Whether the system brings pages in when it is told to.
    populates: AtomicBool,
}

impl Map {
    /// Maps `len` bytes of `file`, at least one, from `offset` on, for reading.
    ///
    /// # Errors
    /// The system does not map it.
    pub(crate) fn new(file: &File, offset: u64, len: usize, populate: bool) -> io::Result<Map> {
        let mut options = MmapOptions::new();
        options.offset(offset).len(len);
        if populate {
            options.populate();
        }
        Ok(Map::of(Some(options.map_raw_read_only(file)?), offset))
    }

    /// What an empty file is mapped to.
    pub(crate) fn nothing() -> Map {
        Map::of(None, 0)
    }

    /// Tells the system how it will be read.
    ///
    /// # Errors
    /// The system does not know of that.
    pub(crate) fn advise(&self, advice: Advice) -> io::Result<()> {
        self.map.as_ref().map_or(Ok(()), |map| map.advise(advice))
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.map.as_ref().map_or(0, MmapRaw::len)
    }

    /// Behind which byte of the file it ends.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.len() as u64
    }

    fn of(map: Option<MmapRaw>, offset: u64) -> Map {
        Map {
            map,
            offset,
            populates: AtomicBool::new(true),
        }
    }
}

// SAFETY: `map` holds the mapping as `new` has made it, of these bytes of the file, and unmaps it on drop alone; nothing moves,
// resizes or replaces it before, and `offset` is never set again.
unsafe impl FileMapping for Map {
    fn bytes(&self) -> *const [u8] {
        let nothing = NonNull::<u8>::dangling().as_ptr().cast_const();
        let start = self.map.as_ref().map_or(nothing, |map| map.as_ptr());
        ptr::slice_from_raw_parts(start, self.len())
    }

    fn offset(&self) -> u64 {
        self.offset
    }

    /// Has the pages of a long range brought in together: one by one, each is a fault.
    fn touch(&self, range: Range<u64>) {
        let len = (range.end - range.start) as usize;
        let Some(map) = &self.map else {
            return;
        };
        if len < LONG || !self.populates.load(Ordering::Relaxed) {
            return;
        }
        let from = (range.start - self.offset) as usize;
        let told = map.advise_range(Advice::PopulateRead, from, len);
        if told.is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput) {
            // Before Linux 5.14. Other errors are those of pages that are not there: the copy meets them, too.
            self.populates.store(false, Ordering::Relaxed);
        }
    }
}

// The system maps so much around a fault by itself.
const LONG: usize = 64 << 10;
