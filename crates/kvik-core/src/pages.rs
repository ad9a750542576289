//! Memory of its own, straight from the kernel: [`Pages`], aligned, on huge pages where there are any.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

use nix::errno::Errno;

use crate::error::{Error, Op, Place, Result};
use crate::os;

/// Anonymous memory, zeroed and unmapped on drop. It starts at a page, and at a multiple of its length rounded up to a power
/// of two, or of 2 MiB if it is longer.
pub(crate) struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone, like the block of a `Box<[u8]>`.
unsafe impl Send for Pages {}
// SAFETY: as for `Send`; a shared `Pages` gives out shared bytes only.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` bytes, more than 0, none of which takes memory before it is touched.
    ///
    /// # Errors
    /// `OutOfMemory` where the system gives no more address space or, if it is strict about that, memory.
    pub(crate) fn new(len: usize) -> Result<Pages> {
        let page = os::page_size() as usize;
        // No larger alignment than a file may ask for of direct I/O into so many bytes, and huge pages where they fit.
        let align = len.min(HUGE).next_power_of_two().max(page);
        let slack = align - page;
        let refused = |errno| Error::os(Op::Allocate, errno).at(&Place::Memory);
        let wanted = len
            .checked_next_multiple_of(page)
            .and_then(|len| len.checked_add(slack).map(|mapped| (len, mapped)));
        let (whole, mapped) = wanted.ok_or_else(|| refused(Errno::ENOMEM))?;
        let start = map(mapped).map_err(refused)?;
        let before = start.as_ptr().align_offset(align);
        // What was mapped only to find an aligned start goes back at once.
        unmap(start, before);
        // SAFETY: `before` is less than `align`, so at most the slack, and the mapping is that much longer than `whole`.
        let start = unsafe { start.add(before) };
        // SAFETY: the mapping goes on for `whole` bytes from here.
        let end = unsafe { start.add(whole) };
        unmap(end, slack - before);
        let mut pages = Pages { start, len };
        if len >= HUGE {
            // Without transparent huge pages it says EINVAL, and ordinary ones serve.
            let _ = advise(pages.room(), libc::MADV_HUGEPAGE);
        }
        Ok(pages)
    }

    fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: as for `deref_mut`; whoever gets these bytes writes none that are not initialised (this file does not).
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len) }
    }
}

/// Gives memory its pages now instead of when each of them is first written to. The bytes stay as they are.
///
/// # Errors
/// `ENOMEM` where there are no more.
pub(crate) fn populate(memory: &mut [MaybeUninit<u8>]) -> Result<(), Errno> {
    loop {
        match advise(memory, libc::MADV_POPULATE_WRITE) {
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            // Before Linux 5.14, or for memory that does not start at a page.
            Err(Errno::EINVAL) => {
                touch(memory);
                return Ok(());
            }
            outcome => return outcome,
        }
    }
}

fn touch(memory: &mut [MaybeUninit<u8>]) {
    let page = os::page_size() as usize;
    let last = memory.len().saturating_sub(1);
    for at in (0..last).step_by(page).chain([last]) {
        let Some(byte) = memory.get_mut(at).map(ptr::from_mut) else {
            return; // There is none at all.
        };
        // SAFETY: a reference of ours, just made into a pointer; volatile, so that the write of what is there is not
        // left out.
        let value = unsafe { byte.read_volatile() };
        // SAFETY: as above.
        unsafe { byte.write_volatile(value) };
    }
}

fn advise(memory: &mut [MaybeUninit<u8>], advice: libc::c_int) -> Result<(), Errno> {
    // SAFETY: the range is borrowed exclusively, and neither advice that is given in this file changes a byte; the rest of
    // the last page, which it reaches too, keeps its bytes as well.
    let code = unsafe { libc::madvise(memory.as_mut_ptr().cast(), memory.len(), advice) };
    Errno::result(code).map(drop)
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is `len` bytes long, valid until drop, and zeroed by the kernel, so initialised.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`; `&mut self` is the only access.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        unmap(self.start, self.len);
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pages({} bytes)", self.len)
    }
}

fn map(len: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: without an address hint and MAP_FIXED the kernel picks unused addresses, so no existing mapping is replaced.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    match NonNull::new(start.cast()) {
        Some(found) if start != libc::MAP_FAILED => Ok(found),
        _ => Err(Errno::last()),
    }
}

/// Unmaps pages of a mapping of ours to which no reference exists.
fn unmap(start: NonNull<u8>, len: usize) {
    if len > 0 {
        // SAFETY: all callers are in this file: they own the range, which starts at a page, and forget it.
        unsafe { libc::munmap(start.as_ptr().cast(), len) };
    }
}

// The huge page of x86-64, and of aarch64 with pages of 4 KiB.
const HUGE: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn memory_is_zeroed_writable_and_aligned_to_its_size() {
        for (len, align) in [
            (1, 4096),
            (4097, 8192),
            (HUGE - 1, HUGE),
            (HUGE, HUGE),
            (3 * HUGE + 5, HUGE),
        ] {
            let mut pages = Pages::new(len).unwrap();
            assert_eq!(pages.len(), len);
            assert_eq!(pages.as_ptr().addr() % align, 0);
            assert!(pages.iter().all(|byte| *byte == 0));
            pages.fill(7);
            assert!(pages.iter().all(|byte| *byte == 7));
        }
    }

    #[test]
    fn populating_and_touching_change_nothing() {
        let mut pages = Pages::new(HUGE + 4097).unwrap();
        pages.fill(9);
        populate(&mut pages.room()[4096..]).unwrap();
        populate(&mut pages.room()[5..20]).unwrap();
        touch(pages.room());
        touch(&mut []);
        assert!(pages.iter().all(|byte| *byte == 9));
    }

    #[test]
    fn more_than_there_are_addresses_is_out_of_memory_and_not_a_wrap() {
        for len in [usize::MAX, usize::MAX - HUGE, 1 << 60] {
            let error = Pages::new(len).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        }
        assert_eq!(
            Pages::new(1 << 60).unwrap_err().to_string(),
            "allocate memory: Out of memory (ENOMEM); free memory or raise the limit, then run it again"
        );
    }
}
