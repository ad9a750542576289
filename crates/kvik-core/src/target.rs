//! Where bytes land and where they come from: [`Target`], [`Source`], and the memory behind both.
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

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice;

use crate::window::{FillWindow, Window};

/// Memory that a read fills. Made from a mutable slice, initialised or not.
///
/// # Example: what can be a target
/// ```
/// use kvik_core::Target;
///
/// let mut array = [0u8; 16];
/// assert_eq!(Target::from(&mut array).len(), 16);
/// let mut vec = vec![0u8; 100];
/// assert_eq!(Target::from(&mut vec[10..]).len(), 90);
/// let mut spare: Vec<u8> = Vec::with_capacity(64);
/// assert_eq!(Target::from(&mut spare.spare_capacity_mut()[..64]).len(), 64);
/// ```
#[derive(Debug)]
pub struct Target<'a> {
    memory: Memory,
    _borrow: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

/// Memory that a write takes its bytes from. Made from a slice.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    bytes: &'a [u8],
}

impl Target<'_> {
    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len
    }

    /// Whether it has no room at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole target as one window.
    pub fn window(&mut self) -> FillWindow<'_> {
        // SAFETY: the target borrows the memory exclusively for longer than the window, which borrows the target.
        unsafe { self.memory.fill(0, self.memory.len) }
    }

    /// The same memory for a shorter time.
    pub(crate) fn reborrow(&mut self) -> Target<'_> {
        Target {
            memory: self.memory,
            _borrow: PhantomData,
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }

    /// The part of it that a file can have bytes for, read from `offset` on: none lie beyond the largest offset.
    pub(crate) fn within_offsets(mut self, offset: u64) -> Self {
        self.memory = self.memory.within_offsets(offset);
        self
    }
}

impl<'a> Source<'a> {
    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn memory(&self) -> Memory {
        Memory::of(self.bytes)
    }
}

impl<'a> From<&'a mut [MaybeUninit<u8>]> for Target<'a> {
    fn from(memory: &'a mut [MaybeUninit<u8>]) -> Target<'a> {
        let len = memory.len();
        let start = NonNull::from(memory).cast();
        Target {
            memory: Memory { start, len },
            _borrow: PhantomData,
        }
    }
}

impl<'a> From<&'a mut [u8]> for Target<'a> {
    fn from(bytes: &'a mut [u8]) -> Target<'a> {
        Target {
            memory: Memory::of_mut(bytes),
            _borrow: PhantomData,
        }
    }
}

impl<'a> From<&'a mut Vec<u8>> for Target<'a> {
    fn from(bytes: &'a mut Vec<u8>) -> Target<'a> {
        bytes.as_mut_slice().into()
    }
}

impl<'a, const N: usize> From<&'a mut [u8; N]> for Target<'a> {
    fn from(bytes: &'a mut [u8; N]) -> Target<'a> {
        bytes.as_mut_slice().into()
    }
}

impl<'a> From<&'a [u8]> for Source<'a> {
    fn from(bytes: &'a [u8]) -> Source<'a> {
        Source { bytes }
    }
}

impl<'a> From<&'a Vec<u8>> for Source<'a> {
    fn from(bytes: &'a Vec<u8>) -> Source<'a> {
        Source { bytes }
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Source<'a> {
    fn from(bytes: &'a [u8; N]) -> Source<'a> {
        Source { bytes }
    }
}

/// A window over bytes of a test's own.
#[cfg(test)]
pub(crate) fn filling(bytes: &mut [u8]) -> FillWindow<'_> {
    let memory = Memory::of_mut(bytes);
    // SAFETY: the window borrows the bytes, all of them, exclusively.
    unsafe { memory.fill(0, memory.len()) }
}

/// A piece of memory without a lifetime; the module's text says who keeps it valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    start: NonNull<MaybeUninit<u8>>,
    len: usize,
}

// SAFETY: a `Memory` is an address and a length; all access goes through `fill` and `drain`, whose callers promise that
// no two threads hold overlapping windows (points 1 and 2 of the module's text).
unsafe impl Send for Memory {}
// SAFETY: as for `Send`; a shared `Memory` gives no access by itself.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn of_mut(bytes: &mut [u8]) -> Memory {
        let len = bytes.len();
        Memory {
            start: NonNull::from(bytes).cast(),
            len,
        }
    }

    pub(crate) fn of(bytes: &[u8]) -> Memory {
        Memory {
            start: NonNull::from(bytes).cast(),
            len: bytes.len(),
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
        // SAFETY: all callers stay within the memory, and so inside one allocation.
        let start = unsafe { self.start.add(at) };
        Memory { start, len }
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

    /// The window of `len` bytes from `at`, for filling.
    ///
    /// # Safety
    /// The memory is valid and writable for `'w`, `at + len` lies within it, and no other window overlaps this one
    /// during `'w`.
    pub(crate) unsafe fn fill<'w>(self, at: usize, len: usize) -> FillWindow<'w> {
        debug_assert!(at + len <= self.len);
        // SAFETY: by the caller's first two promises the result stays inside one allocation.
        let start = unsafe { self.start.add(at) };
        // SAFETY: valid, writable and unshared by the caller's promises; `MaybeUninit<u8>` has no invalid value.
        let bytes = unsafe { slice::from_raw_parts_mut(start.as_ptr(), len) };
        FillWindow::of(bytes)
    }

    /// The `len` bytes from `at`, for writing them out.
    ///
    /// # Safety
    /// The memory is valid and initialised for `'w`, nobody writes to it, and `at + len` lies within it.
    pub(crate) unsafe fn drain<'w>(self, at: usize, len: usize) -> &'w [u8] {
        debug_assert!(at + len <= self.len);
        // SAFETY: by the caller's promise the result stays inside one allocation.
        let start = unsafe { self.start.add(at) };
        // SAFETY: valid, initialised and not written to, by the caller's promises.
        unsafe { slice::from_raw_parts(start.as_ptr().cast(), len) }
    }
}
