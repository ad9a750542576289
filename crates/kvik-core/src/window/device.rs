//! The memory of one task on a device: addresses that the processor does not touch.

use std::marker::PhantomData;

use kvik_stats::Direction;

/// Memory of a device, to be filled from its start or to be copied from. Only the engine that stages device memory is
/// given such windows.
#[derive(Debug)]
pub struct DeviceWindow<'w> {
    address: u64,
    len: usize,
    // Where the allocation ends that it is part of.
    end: u64,
    direction: Direction,
    filled: usize,
    // Lent like the host's windows: exclusively, until the engine hands it back.
    _memory: PhantomData<&'w mut [u8]>,
}

impl DeviceWindow<'_> {
    pub(crate) fn new(
        address: u64,
        len: usize,
        end: u64,
        direction: Direction,
    ) -> DeviceWindow<'static> {
        DeviceWindow {
            address,
            len,
            end,
            direction,
            filled: 0,
            _memory: PhantomData,
        }
    }

    /// The address of its first byte, as the device knows it.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a read fills it or a write takes its bytes.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// How many bytes of it a read has filled.
    #[must_use]
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// The address behind the last byte of the allocation that it is part of.
    pub(crate) fn allocation_end(&self) -> u64 {
        self.end
    }

    /// Counts the first `count` bytes as filled.
    pub(crate) fn fill_to(&mut self, count: usize) {
        debug_assert!(count <= self.len);
        self.filled = count;
    }
}
