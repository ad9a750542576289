//! The memory of one task, as an engine sees it: a [`Window`], filled by a read or drained by a write.
//!
//! A window to be filled is one stretch of memory as a rule. That of a read for several pieces is many, with gaps between
//! them that belong to nobody: bytes that fall into a gap are dropped.

mod device;

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;

use crate::copy;
use crate::ranges::Part;
pub use device::DeviceWindow;

/// The memory of one task.
#[derive(Debug)]
#[non_exhaustive]
pub enum Window<'w> {
    /// A read fills it.
    Fill(FillWindow<'w>),
    /// A write takes its bytes.
    Drain(&'w [u8]),
    /// The same on a device, for a read or a write.
    Device(DeviceWindow<'w>),
}

/// Memory to be filled from its start: a cursor that knows how far it is filled.
#[derive(Debug)]
pub struct FillWindow<'w> {
    // The stretch that is being filled, and how far. Behind its end and before the next one `at` counts bytes of the gap.
    bytes: &'w mut [MaybeUninit<u8>],
    at: usize,
    // Where the stretch starts in the window.
    before: usize,
    // All stretches, if there are several, and the number of the one behind this.
    parts: &'w [Part],
    next: usize,
    len: usize,
}

impl Window<'_> {
    /// How many bytes of it a read has filled. 0 for a write's.
    pub(crate) fn filled(&self) -> usize {
        match self {
            Window::Fill(window) => window.filled(),
            Window::Device(window) => window.filled(),
            Window::Drain(_) => 0,
        }
    }

    /// Where its memory starts and how long it is; of several stretches, that of the one in hand.
    pub(crate) fn memory(&self) -> (*const u8, usize) {
        match self {
            Window::Fill(window) => (window.bytes.as_ptr().cast(), window.bytes.len()),
            Window::Drain(bytes) => (bytes.as_ptr(), bytes.len()),
            Window::Device(window) => (
                std::ptr::without_provenance(window.address() as usize),
                window.len(),
            ),
        }
    }

    /// Whether it was made of these very parts.
    pub(crate) fn is_of_parts(&self, parts: &[Part]) -> bool {
        matches!(self, Window::Fill(window) if std::ptr::eq(window.parts, parts))
    }
}

impl<'w> FillWindow<'w> {
    /// One stretch.
    pub(crate) fn of(bytes: &'w mut [MaybeUninit<u8>]) -> FillWindow<'w> {
        FillWindow {
            at: 0,
            before: 0,
            parts: &[],
            next: 0,
            len: bytes.len(),
            bytes,
        }
    }

    /// A window of several stretches: at least one part, in the order of the file and without overlap there.
    ///
    /// # Safety
    /// The memory of all parts is valid and writable for `'w`, no two of them overlap, and no other window overlaps one.
    pub(crate) unsafe fn of_parts(parts: &'w [Part]) -> FillWindow<'w> {
        let first = &parts[0];
        // SAFETY: by the caller's promise.
        let mut window = unsafe { first.memory.fill(0, first.memory.len()) };
        (window.parts, window.next) = (parts, 1);
        window.len = (parts[parts.len() - 1].end() - first.offset) as usize;
        window
    }

    /// How many bytes it takes in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it takes none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes are filled.
    #[must_use]
    pub fn filled(&self) -> usize {
        self.before + self.at
    }

    /// How many bytes are still to be filled.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.len - self.filled()
    }

    /// Whether its memory is more than one stretch. Only engines that [scatter](crate::corridor::Engine::scatters) see such
    /// windows.
    #[must_use]
    pub fn is_scattered(&self) -> bool {
        self.len != self.bytes.len()
    }

    /// Copies as much of `bytes` as there is room for, and returns how much that was. What falls into gaps is dropped.
    pub fn put(&mut self, bytes: &[u8]) -> usize {
        let mut left = bytes;
        while !left.is_empty() && self.remaining() > 0 {
            let room = self.room();
            let count = match room.len() {
                0 => left.len().min(self.gap()),
                len => {
                    let count = left.len().min(len);
                    room[..count].write_copy_of_slice(&left[..count]);
                    count
                }
            };
            // SAFETY: just written, or not there to be written.
            unsafe { self.advance(count) };
            left = &left[count..];
        }
        bytes.len() - left.len()
    }

    /// [`put`](FillWindow::put) past the cache: for large pieces that nobody reads back at once. Not for scattered windows.
    pub(crate) fn put_streaming(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room().len());
        copy::stream(self.room(), &bytes[..count]);
        // SAFETY: just written.
        unsafe { self.advance(count) };
        count
    }

    /// One `pread(2)` of `fd` at `offset` into the rest of the window; returns its count, 0 at the end of the data.
    ///
    /// # Errors
    /// The `errno` of the call, `EINTR` and `EAGAIN` included.
    pub(crate) fn pread(&mut self, fd: BorrowedFd<'_>, offset: u64) -> Result<usize, Errno> {
        if self.next >= self.parts.len() {
            return self.pread_some(fd, offset, self.remaining());
        }
        let offset = i64::try_from(offset).map_err(|_| Errno::EOVERFLOW)?;
        let count = usize::try_from(self.preadv(fd, offset)).map_err(|_| Errno::last())?;
        // SAFETY: preadv(2): so many bytes, no more than asked for, were written, or dropped in gaps.
        unsafe { self.advance(count) };
        Ok(count)
    }

    /// The same into the next `most` bytes, or fewer where the stretch in hand ends before.
    ///
    /// # Errors
    /// As for `pread`.
    pub(crate) fn pread_some(
        &mut self,
        fd: BorrowedFd<'_>,
        offset: u64,
        most: usize,
    ) -> Result<usize, Errno> {
        let offset = i64::try_from(offset).map_err(|_| Errno::EOVERFLOW)?;
        let room = self.room();
        let len = room.len().min(most);
        // SAFETY: `room` is writable memory, `len` bytes of it at least, borrowed by this window alone; pread writes to
        // nothing else.
        let count = unsafe { libc::pread(fd.as_raw_fd(), room.as_mut_ptr().cast(), len, offset) };
        let count = usize::try_from(count).map_err(|_| Errno::last())?;
        // SAFETY: pread(2): so many bytes, no more than asked for, were written.
        unsafe { self.advance(count) };
        Ok(count)
    }

    // Not inlined: the frame of `pread` stays small for windows of one stretch.
    #[inline(never)]
    fn preadv(&mut self, fd: BorrowedFd<'_>, offset: i64) -> isize {
        // Nobody looks at what falls into the gaps, so all of them share one place.
        let mut sink = [MaybeUninit::<u8>::uninit(); SINK];
        let mut slices = [libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; SLICES];
        let mut count = 0;
        let mut add = |start: *mut MaybeUninit<u8>, len: usize| {
            // A window of more slices than there is room for is continued by the next call, like any short read.
            if len > 0 && count < SLICES {
                slices[count] = libc::iovec {
                    iov_base: start.cast(),
                    iov_len: len,
                };
                count += 1;
            }
        };
        let mut end = self.parts[0].offset + self.filled() as u64;
        let room = self.room();
        add(room.as_mut_ptr(), room.len());
        end += room.len() as u64;
        for part in &self.parts[self.next..] {
            let mut gap = (part.offset - end) as usize;
            while gap > 0 {
                let piece = gap.min(SINK);
                add(sink.as_mut_ptr(), piece);
                gap -= piece;
            }
            add(part.memory.start(), part.memory.len());
            end = part.end();
        }
        // SAFETY: the slices are parts of this window, writable and borrowed by it alone, and pieces of the sink, which
        // outlives the call; preadv writes to nothing else, and there are `count` of them, fewer than IOV_MAX.
        unsafe {
            libc::preadv(
                fd.as_raw_fd(),
                slices.as_ptr(),
                count as libc::c_int,
                offset,
            )
        }
    }

    /// The memory that is to be filled next: up to the end of the window, or of a stretch of it if it is scattered; empty
    /// in a gap. Only initialised bytes may be written to it (point 4 of the text of memory.rs).
    pub(crate) fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        let from = self.at.min(self.bytes.len());
        &mut self.bytes[from..]
    }

    /// How many bytes of a gap are to be dropped before there is room again.
    fn gap(&self) -> usize {
        match self.parts.get(self.next) {
            Some(next) => (next.offset - self.parts[0].offset) as usize - self.filled(),
            None => 0,
        }
    }

    /// Counts `count` bytes as filled or, in gaps, as dropped.
    ///
    /// # Safety
    /// There are so many, and those that fall into the window's memory were written.
    pub(crate) unsafe fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.remaining());
        self.at += count;
        while let Some(next) = self.parts.get(self.next) {
            let start = (next.offset - self.parts[0].offset) as usize;
            let Some(at) = self.filled().checked_sub(start) else {
                return;
            };
            // SAFETY: `of_parts`, whose caller promised this for all parts, is the only source of `parts`, and each of them
            // is taken once.
            let stretch = unsafe { next.memory.fill(0, next.memory.len()) };
            self.bytes = stretch.bytes;
            (self.before, self.at) = (start, at);
            self.next += 1;
        }
    }
}

// Gaps are shorter as a rule; a longer one takes several slices.
const SINK: usize = 16 << 10;
// For a task of `scatter::PARTS` parts with gaps between them, and for some long gaps.
const SLICES: usize = 160;

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
