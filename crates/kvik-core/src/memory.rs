//! The memory behind a target or source, as the corridor hands it about: [`Memory`].
//!
//! # Disjoint pieces
//! One buffer is filled by several threads at once. What makes this sound is stated here and relied on by all `unsafe`
//! of this module:
//!
//! 1. A [`Memory`] is made from a borrow or an owned buffer that stays valid, and untouched by anybody else, until the
//!    transfer has *settled*: a blocking call returns only then, and a [`Pending`](crate::Pending) keeps its buffer
//!    inside the transfer.
//! 2. A window is the piece of the memory that belongs to one task. The tasks of a layout do not overlap, and each is
//!    handed out once: see `Transfer::take`, the only caller of [`Layout::task`](crate::layout::Layout::task), which makes
//!    all windows but for those of `Layout::mend`, which runs when no other window is left.
//! 3. A settled transfer hands out nothing. A job that is late in the pool's queue finds no task and touches no memory.
//! 4. Nothing uninitialised is ever written through a window: it is filled by system calls and by copies of `&[u8]`, so
//!    that an initialised buffer stays one.
//!
//! Memory of a device is an address that the processor does not touch: it has windows that only the staged engine fills,
//! and the same four points hold for them, with the device's copies in place of ours.

use std::mem::MaybeUninit;
use std::num::NonZero;
use std::ptr::NonNull;
use std::slice;

use kvik_stats::Direction;

use crate::window::{DeviceWindow, FillWindow, Window};

/// A piece of memory without a lifetime; the module's text says who keeps it valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    // Of a device, an address without provenance: nothing here goes through it.
    start: NonNull<MaybeUninit<u8>>,
    len: usize,
    // Of a device, the address behind the last byte of the allocation that it is part of.
    end: Option<NonZero<u64>>,
}

// SAFETY: a `Memory` is an address and a length; all access goes through `fill` and `drain`, whose callers promise that
// no two threads hold overlapping windows (points 1 and 2 of the module's text).
unsafe impl Send for Memory {}
// SAFETY: as for `Send`; a shared `Memory` gives no access by itself.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn of_mut(bytes: &mut [u8]) -> Memory {
        let len = bytes.len();
        Memory::at(NonNull::from(bytes).cast(), len)
    }

    pub(crate) fn of(bytes: &[u8]) -> Memory {
        Memory::at(NonNull::from(bytes).cast(), bytes.len())
    }

    /// `len` bytes of the host.
    pub(crate) fn at(start: NonNull<u8>, len: usize) -> Memory {
        Memory {
            start: start.cast(),
            len,
            end: None,
        }
    }

    /// `len` bytes of a device, part of an allocation that ends at `end`.
    pub(crate) fn on_device(address: u64, len: usize, end: u64) -> Memory {
        let address = NonZero::new(address as usize);
        Memory {
            start: address.map_or(NonNull::dangling(), NonNull::without_provenance),
            len,
            end: NonZero::new(end.max(1)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn start(&self) -> *mut MaybeUninit<u8> {
        self.start.as_ptr()
    }

    /// The `len` bytes of it from `at` on.
    pub(crate) fn part(self, at: usize, len: usize) -> Memory {
        debug_assert!(at + len <= self.len);
        Memory {
            // All callers stay within the memory, so that this neither wraps nor leaves its allocation.
            start: self.start.map_addr(|address| address.saturating_add(at)),
            len,
            ..self
        }
    }

    pub(crate) fn within_offsets(mut self, offset: u64) -> Memory {
        let readable = (i64::MAX as u64).saturating_sub(offset);
        self.len = usize::try_from(readable).map_or(self.len, |readable| self.len.min(readable));
        self
    }

    /// Whether `window` is that of the `len` bytes from `at`.
    pub(crate) fn is_window(&self, at: u64, len: u64, window: &Window<'_>) -> bool {
        let (start, window_len) = window.memory();
        let expected = (self.start.as_ptr() as usize).checked_add(at as usize);
        expected == Some(start as usize) && window_len as u64 == len
    }

    /// The window of `len` bytes from `at`.
    ///
    /// # Safety
    /// The memory is valid for `'w` and `at + len` lies within it. To be read into, it is writable, and no other window
    /// overlaps this one during `'w`; to be written from, it is initialised, and nobody writes to it.
    pub(crate) unsafe fn window<'w>(
        self,
        at: usize,
        len: usize,
        direction: Direction,
    ) -> Window<'w> {
        if let Some(end) = self.end {
            let start = self.part(at, len).start.addr().get() as u64;
            return Window::Device(DeviceWindow::new(start, len, end.get(), direction));
        }
        match direction {
            // SAFETY: by the caller's promise.
            Direction::Read => Window::Fill(unsafe { self.fill(at, len) }),
            // SAFETY: by the caller's promise.
            Direction::Write => Window::Drain(unsafe { self.drain(at, len) }),
        }
    }

    /// The window of `len` bytes from `at` of the host's memory, for filling.
    ///
    /// # Safety
    /// The memory is valid and writable for `'w`, `at + len` lies within it, and no other window overlaps this one
    /// during `'w`.
    pub(crate) unsafe fn fill<'w>(self, at: usize, len: usize) -> FillWindow<'w> {
        debug_assert!(at + len <= self.len && self.end.is_none());
        // SAFETY: by the caller's first two promises the result stays inside one allocation.
        let start = unsafe { self.start.add(at) };
        // SAFETY: valid, writable and unshared by the caller's promises; `MaybeUninit<u8>` has no invalid value.
        let bytes = unsafe { slice::from_raw_parts_mut(start.as_ptr(), len) };
        FillWindow::of(bytes)
    }

    /// The `len` bytes from `at` of the host's memory, for writing them out.
    ///
    /// # Safety
    /// The memory is valid and initialised for `'w`, nobody writes to it, and `at + len` lies within it.
    pub(crate) unsafe fn drain<'w>(self, at: usize, len: usize) -> &'w [u8] {
        debug_assert!(at + len <= self.len && self.end.is_none());
        // SAFETY: by the caller's promise the result stays inside one allocation.
        let start = unsafe { self.start.add(at) };
        // SAFETY: valid, initialised and not written to, by the caller's promises.
        unsafe { slice::from_raw_parts(start.as_ptr().cast(), len) }
    }
}
