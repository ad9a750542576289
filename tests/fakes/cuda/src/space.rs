//! The address space of the fake: one reserved stretch from which all its memory is cut, and which is never given back.
//!
//! Nothing in it can be touched until it is opened. What lies at an address of the device is never opened: its bytes stand
//! at a second place, the alias, which only copies know. A freed piece is closed again and its addresses are not used
//! twice, so whoever goes on using it is caught, by a fault of the CPU or by the registry.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::abi::{Answer, OUT_OF_MEMORY};

/// A piece of the reserved stretch. Opened memory is closed when the last owner is gone.
pub(crate) struct Piece {
    at: usize,
    size: usize,
    open: bool,
}

impl Piece {
    /// Addresses that fault, as those of a device do.
    pub(crate) fn closed(size: usize) -> Answer<Piece> {
        let at = match DENSE.load(Ordering::Relaxed) {
            true => carve_beside(size)?,
            false => carve(size)?,
        };
        Ok(Piece {
            at,
            size,
            open: false,
        })
    }

    /// Memory of zeros.
    pub(crate) fn open(size: usize) -> Answer<Piece> {
        let at = carve(size)?;
        if !protect(at, size, libc::PROT_READ | libc::PROT_WRITE) {
            return Err(OUT_OF_MEMORY);
        }
        Ok(Piece {
            at,
            size,
            open: true,
        })
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Fills it with a pattern: fresh memory of a device holds what was left there.
    pub(crate) fn soil(&self) {
        // SAFETY: this piece is open, ours alone so far, and `size` bytes long.
        unsafe { std::ptr::write_bytes(self.at as *mut u8, 0xDB, self.size) };
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.open {
            let (at, size) = whole_pages(self.at, self.size);
            // SAFETY: pieces share no page, so these pages are of this piece, and who holds its bytes holds the piece.
            // A new mapping over them drops their contents and closes them.
            unsafe { map(at, size, libc::MAP_FIXED) };
        }
    }
}

/// Whether an address is one of ours, in use or not.
pub(crate) fn contains(at: usize) -> bool {
    let start = *RESERVED;
    start != 0 && (start..start + SIZE).contains(&at)
}

/// 1 TiB of addresses, which costs nothing until it is opened. Tests use far less, so none is used twice.
const SIZE: usize = 1 << 40;

const PAGE: usize = 4096;

/// Where it starts; 0 where the kernel refuses it.
static RESERVED: LazyLock<usize> = LazyLock::new(|| {
    // SAFETY: the kernel chooses where, so no memory of anybody's is touched.
    let at = unsafe { map(0, SIZE, 0) };
    if at == libc::MAP_FAILED {
        0
    } else {
        at as usize
    }
});

static USED: Mutex<usize> = Mutex::new(PAGE);

/// Cuts off the next piece.
fn carve(size: usize) -> Answer<usize> {
    let start = *RESERVED;
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    // As with the real driver: large blocks start at 2 MiB, small ones at 512 bytes somewhere, so that nobody relies on pages.
    // A page is left free behind each piece, for whoever runs past its end.
    let from = if size >= LARGE {
        used.next_multiple_of(LARGE)
    } else {
        used.next_multiple_of(PAGE) + OFF_THE_PAGE
    };
    let next = size
        .checked_add(from)
        .and_then(|end| end.checked_add(2 * PAGE))
        .filter(|next| start != 0 && *next <= SIZE);
    *used = next.ok_or(OUT_OF_MEMORY)?.next_multiple_of(PAGE);
    Ok(start + from)
}

/// Whether small addresses of a device follow each other without room in between, as the real driver gives them out.
pub(crate) static DENSE: AtomicBool = AtomicBool::new(false);

/// Cuts a small piece off the same block as the one before, right behind it.
fn carve_beside(size: usize) -> Answer<usize> {
    static BLOCK: Mutex<(usize, usize)> = Mutex::new((0, 0));
    let mut block = BLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let room = size.checked_next_multiple_of(UNIT).ok_or(OUT_OF_MEMORY)?;
    if room > LARGE {
        return carve(size);
    }
    if room > block.1 - block.0 {
        let start = carve(LARGE)?;
        *block = (start, start + LARGE);
    }
    block.0 += room;
    Ok(block.0 - room)
}

const LARGE: usize = 2 << 20;
const OFF_THE_PAGE: usize = 512;
const UNIT: usize = 512;

/// # Safety
///
/// With `MAP_FIXED`, nobody may use the pages any more.
unsafe fn map(at: usize, size: usize, flags: libc::c_int) -> *mut libc::c_void {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: handed on to the caller.
    unsafe { libc::mmap(at as *mut _, size, libc::PROT_NONE, flags, -1, 0) }
}

fn protect(at: usize, size: usize, protection: libc::c_int) -> bool {
    let (at, size) = whole_pages(at, size);
    // SAFETY: the pages were just carved, so nobody uses them yet, and they can only become more usable.
    unsafe { libc::mprotect(at as *mut _, size, protection) == 0 }
}

fn whole_pages(at: usize, size: usize) -> (usize, usize) {
    let start = at - at % PAGE;
    (start, (at + size).next_multiple_of(PAGE) - start)
}
