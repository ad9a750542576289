//! Scratch memory of a lane: slots at page boundaries, for pieces whose own memory direct I/O does not take.
//!
//! The two blocks of memory are lent by the process's budget when first needed, and go back with the lane.

use std::ptr::NonNull;

use kvik_config::ByteSize;

use super::cut::{LARGE_SLOT, SMALL_SLOT};
use crate::budget::Scratch;

/// The slots of one lane.
#[derive(Debug)]
pub(super) struct Slots {
    small: Block<{ SMALL_SLOT as usize }, SMALL_COUNT>,
    large: Block<{ LARGE_SLOT as usize }, LARGE_COUNT>,
    // The most memory in one piece.
    bounce_buffer_size: ByteSize,
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
    /// There is no memory for them, or none that the budget lends.
    OutOfMemory,
}

impl Slots {
    /// Slots in as much memory as the setting `bounce_buffer_size` allows.
    pub(super) fn new(bounce_buffer_size: ByteSize) -> Slots {
        Slots {
            small: Block::default(),
            large: Block::default(),
            bounce_buffer_size,
        }
    }

    /// A slot for at least `len` bytes, which is no more than [`LARGE_SLOT`].
    pub(super) fn take(&mut self, len: u64) -> Result<Slot, NoSlot> {
        debug_assert!(len <= LARGE_SLOT);
        let is_large = len > SMALL_SLOT;
        let (start, index) = match is_large {
            true => self.large.take(self.bounce_buffer_size)?,
            false => self.small.take(self.bounce_buffer_size)?,
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

/// Up to `COUNT` slots of `SIZE` bytes in one piece of memory.
#[derive(Debug, Default)]
struct Block<const SIZE: usize, const COUNT: usize> {
    memory: Option<Memory>,
    // A bit for each slot in use.
    busy: u64,
}

/// The piece, and how many slots it has.
#[derive(Debug)]
struct Memory {
    // Asked for once: the kernel writes to slots, and nobody may say meanwhile that all bytes are his.
    start: NonNull<u8>,
    count: usize,
    _scratch: Scratch,
}

impl<const SIZE: usize, const COUNT: usize> Block<SIZE, COUNT> {
    fn take(&mut self, bounce_buffer_size: ByteSize) -> Result<(NonNull<u8>, usize), NoSlot> {
        let memory = match &self.memory {
            Some(memory) => memory,
            None => self.memory.insert(Self::borrow(bounce_buffer_size)?),
        };
        let index = self.busy.trailing_ones() as usize;
        if index >= memory.count {
            return Err(NoSlot::InUse);
        }
        self.busy |= 1 << index;
        // SAFETY: `index` is less than the number of slots that the memory has.
        Ok((unsafe { memory.start.add(index * SIZE) }, index))
    }

    fn borrow(bounce_buffer_size: ByteSize) -> Result<Memory, NoSlot> {
        const { assert!(SIZE.is_multiple_of(ALIGNMENT) && COUNT > 0 && COUNT <= 64) };
        let lent = Scratch::take(SIZE * COUNT, bounce_buffer_size);
        let mut scratch = lent.ok_or(NoSlot::OutOfMemory)?;
        let memory = &mut scratch[..];
        match (memory.len() / SIZE).min(COUNT) {
            0 => Err(NoSlot::OutOfMemory),
            count => Ok(Memory {
                start: NonNull::from(memory).cast(),
                count,
                _scratch: scratch,
            }),
        }
    }
}

/// Where slots begin, which is at a page: more than the alignment of memory that any file system is known to ask for.
pub(super) const ALIGNMENT: usize = 4096;
// One for each request of a lane.
const SMALL_COUNT: usize = 64;
// 2 MiB in flight keep a disk busy.
const LARGE_COUNT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_to_the_setting_that_caps_one_piece_of_memory() {
        let mut slots = Slots::new(ByteSize::new(2 * LARGE_SLOT + 5));
        let _two = [
            slots.take(LARGE_SLOT).unwrap(),
            slots.take(LARGE_SLOT).unwrap(),
        ];
        assert_eq!(slots.take(LARGE_SLOT).unwrap_err(), NoSlot::InUse);
        let small = (0..).map_while(|_| slots.take(1).ok()).count();
        assert_eq!(small as u64, 2 * LARGE_SLOT / SMALL_SLOT);
        let mut none = Slots::new(ByteSize::new(SMALL_SLOT - 1));
        assert_eq!(none.take(1).unwrap_err(), NoSlot::OutOfMemory);
    }

    #[test]
    fn slots_are_aligned_apart_from_each_other_and_come_back() {
        let mut slots = Slots::new(ByteSize::mib(16));
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
