//! Scratch memory of a ring: slots at page boundaries, for pieces whose own memory direct I/O does not take.
//!
//! The two blocks of memory are made when first needed and live as long as their ring.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use super::cut::{LARGE_SLOT, SMALL_SLOT};

/// The slots of one ring.
#[derive(Debug, Default)]
pub(super) struct Slots {
    small: Block<{ SMALL_SLOT as usize }, SMALL_COUNT>,
    large: Block<{ LARGE_SLOT as usize }, LARGE_COUNT>,
}

/// A slot that is in use. It must go back by [`Slots::give_back`].
#[derive(Debug)]
pub(super) struct Slot {
    start: NonNull<u8>,
    index: usize,
    is_large: bool,
}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSlot {
    /// All are in use; one comes back when a request completes.
    InUse,
    /// There is no memory for them.
    OutOfMemory,
}

impl Slots {
    /// A slot for at least `len` bytes, which is no more than [`LARGE_SLOT`].
    pub(super) fn take(&mut self, len: u64) -> Result<Slot, NoSlot> {
        debug_assert!(len <= LARGE_SLOT);
        let is_large = len > SMALL_SLOT;
        let (start, index) = match is_large {
            true => self.large.take()?,
            false => self.small.take()?,
        };
        Ok(Slot {
            start,
            index,
            is_large,
        })
    }

    /// Takes back a slot that nobody writes to any more.
    pub(super) fn give_back(&mut self, slot: Slot) {
        let busy = match slot.is_large {
            true => &mut self.large.busy,
            false => &mut self.small.busy,
        };
        debug_assert!(*busy & 1 << slot.index != 0);
        *busy &= !(1 << slot.index);
    }
}

impl Slot {
    /// Its first byte: initialised, at a multiple of [`ALIGNMENT`].
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

/// `COUNT` slots of `SIZE` bytes in one piece of memory.
#[derive(Debug, Default)]
struct Block<const SIZE: usize, const COUNT: usize> {
    memory: Option<NonNull<u8>>,
    // A bit for each slot in use.
    busy: u64,
}

impl<const SIZE: usize, const COUNT: usize> Block<SIZE, COUNT> {
    const LAYOUT: Layout = {
        assert!(SIZE.is_multiple_of(ALIGNMENT) && COUNT > 0 && COUNT <= 64);
        match Layout::from_size_align(SIZE * COUNT, ALIGNMENT) {
            Ok(layout) => layout,
            Err(_) => panic!("the constants make a layout"),
        }
    };

    fn take(&mut self) -> Result<(NonNull<u8>, usize), NoSlot> {
        let memory = match self.memory {
            Some(memory) => memory,
            None => *self.memory.insert(Self::allocate()?),
        };
        let index = self.busy.trailing_ones() as usize;
        if index >= COUNT {
            return Err(NoSlot::InUse);
        }
        self.busy |= 1 << index;
        // SAFETY: `index` is less than `COUNT`, so the slot lies within the memory of `LAYOUT`.
        Ok((unsafe { memory.add(index * SIZE) }, index))
    }

    fn allocate() -> Result<NonNull<u8>, NoSlot> {
        // SAFETY: the layout's size is not 0.
        let memory = unsafe { alloc_zeroed(Self::LAYOUT) };
        NonNull::new(memory).ok_or(NoSlot::OutOfMemory)
    }
}

impl<const SIZE: usize, const COUNT: usize> Drop for Block<SIZE, COUNT> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory {
            // SAFETY: `allocate` made it with this layout, and this is its only release. No slot is in use: a lane gives
            // its ring away only when nothing is in flight.
            unsafe { dealloc(memory.as_ptr(), Self::LAYOUT) };
        }
    }
}

/// Where slots begin: more than the alignment of memory that any file system is known to ask for.
pub(super) const ALIGNMENT: usize = 4096;
// One for each request of a lane.
const SMALL_COUNT: usize = 64;
// 2 MiB in flight keep a disk busy.
const LARGE_COUNT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_apart_from_each_other_and_come_back() {
        let mut slots = Slots::default();
        let large: Vec<_> = (0..LARGE_COUNT)
            .map(|_| slots.take(LARGE_SLOT).unwrap())
            .collect();
        let small = slots.take(SMALL_SLOT).unwrap();
        let mut starts: Vec<_> = large.iter().map(|slot| slot.start().addr().get()).collect();
        starts.sort_unstable();
        assert!(
            starts
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= LARGE_SLOT as usize)
        );
        starts.push(small.start().addr().get());
        assert!(starts.iter().all(|start| start.is_multiple_of(ALIGNMENT)));
        assert_eq!(slots.take(SMALL_SLOT + 1).unwrap_err(), NoSlot::InUse);
        let first = large.into_iter().next().unwrap();
        let start = first.start();
        slots.give_back(first);
        assert_eq!(slots.take(LARGE_SLOT).unwrap().start(), start);
    }
}
