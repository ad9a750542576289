//! A mapping that bytes are copied out of, and nothing else: so that it may lose its pages at any time.

use std::fmt;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use nix::errno::Errno;

use super::{Lanes, Unguarded};
use crate::corridor::FileMapping;

/// A mapping of a piece of a file, with the file's pages in it. Nothing ever refers to its bytes. Unmapped on drop.
pub(crate) struct FileMap {
    start: NonNull<u8>,
    len: usize,
}

/// Why a piece of a file cannot be copied out of a map.
#[derive(Debug)]
pub(crate) enum Unmapped {
    /// Its length cannot be had.
    Length(io::Error),
    /// The system does not map it.
    Refused(Errno),
    /// Faults cannot be met.
    Unguarded(Unguarded),
}

impl FileMap {
    /// Maps `len` bytes from `offset`, a multiple of the page, with all their pages: read from the disk if need be.
    pub(crate) fn populated(file: &File, offset: u64, len: usize) -> Result<FileMap, Unmapped> {
        let offset = i64::try_from(offset).map_err(|_| Unmapped::Refused(Errno::EOVERFLOW))?;
        // SAFETY: without an address hint and MAP_FIXED the kernel picks unused addresses, so no existing mapping is
        // replaced; the descriptor is open while `file` is borrowed.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                offset,
            )
        };
        match NonNull::new(start) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED => Ok(FileMap {
                start: start.cast(),
                len,
            }),
            _ => Err(Unmapped::Refused(Errno::last())),
        }
    }

    /// Copies the bytes from `skip` on, as many as `to` takes, past the cache; returns how many it got before a page was
    /// missing. Those are written, in order; behind them, up to a line may be.
    ///
    /// # Panics
    /// If the copy does not lie within the map.
    pub(crate) fn copy(&self, skip: usize, to: &mut [MaybeUninit<u8>]) -> Result<usize, Unmapped> {
        // SAFETY: `populated` has mapped so many bytes there, and they stay until `self` is dropped.
        unsafe { copy_within(self.start.as_ptr(), self.len, skip, to) }
    }
}

/// Copies the bytes that `map` holds from `skip` on into all of `to`, as [`FileMap::copy`] does.
///
/// # Panics
/// If the copy does not lie within the map.
pub(crate) fn copy_kept(
    map: &dyn FileMapping,
    skip: usize,
    to: &mut [MaybeUninit<u8>],
) -> Result<usize, Unmapped> {
    let bytes = map.bytes();
    // SAFETY: they are mapped while `map` is borrowed, by the promise of the trait.
    unsafe { copy_within(bytes.cast(), bytes.len(), skip, to) }
}

/// # Safety
/// `len` bytes from `start` on are one mapping that stays for the call.
unsafe fn copy_within(
    start: *const u8,
    len: usize,
    skip: usize,
    to: &mut [MaybeUninit<u8>],
) -> Result<usize, Unmapped> {
    assert!(
        skip <= len && to.len() <= len - skip,
        "a copy lies within its map"
    );
    // SAFETY: within the mapping, by the assertion.
    let from = unsafe { start.add(skip) };
    // SAFETY: 1. the mapping reaches that far, by the assertion, and stays, by our caller's promise; 2. `best` has asked the
    // processor.
    unsafe { super::copy(to, from, Lanes::best()) }.map_err(Unmapped::Unguarded)
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: `populated` is the only maker of `start`, this is the only release, and nothing refers into the mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmapped::Length(error) => write!(f, "its length is not known: {error}"),
            Unmapped::Refused(errno) => write!(f, "it cannot be mapped: {}", errno.desc()),
            Unmapped::Unguarded(why) => write!(f, "{why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_a_file_cut_short_gives_what_is_left() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 20).unwrap();
        let map = FileMap::populated(&file, 0, 8 << 20).unwrap();
        file.set_len(4096).unwrap();
        let mut bytes = vec![MaybeUninit::new(0); 6 << 20];
        assert_eq!(map.copy(6 << 20, &mut bytes[..2 << 20]).unwrap(), 0);
        let count = map.copy(0, &mut bytes).unwrap();
        // A line of the target that lies on both sides of the end is not copied.
        assert!((4096 - 63..=4096).contains(&count), "{count}");
    }

    #[test]
    #[should_panic(expected = "within its map")]
    fn a_copy_beyond_the_map_panics() {
        let file = tempfile::tempfile().unwrap();
        let map = FileMap::populated(&file, 0, 4096).unwrap();
        let _ = map.copy(4095, &mut [MaybeUninit::uninit(); 2]);
    }
}
