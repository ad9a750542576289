//! Memory that direct I/O takes wherever the caller's own lies: a block of the process's scratch memory for each piece.
//!
//! A block is lent for one piece and not for longer: what a lock costs is nothing beside what a device takes, and so as many
//! threads as have something in flight share what there is.

use kvik_config::ByteSize;

use crate::budget::Scratch;

/// Lends `len` bytes to `work`; they start at a multiple of 64 KiB, or at a page if the setting `bounce_buffer_size` leaves
/// no room for that. `None`, and no work, where the setting forbids a block of that length, the process has lent all that
/// it may, or the system has no more.
pub(crate) fn with_scratch<T>(
    bounce_buffer_size: ByteSize,
    len: usize,
    work: impl FnOnce(&mut [u8]) -> T,
) -> Option<T> {
    // Of few lengths, so that what comes back serves the next piece.
    let wanted = len.max(SMALLEST).next_power_of_two();
    let mut block = Scratch::take(wanted, bounce_buffer_size)?;
    block.get_mut(..len).map(work)
}

/// How much of it a read or write takes at a time, unless it is told to take less.
///
/// While a piece is copied the device waits, so larger pieces are faster until they hold a whole task. Measured on two
/// cores and a virtual disk, against reading in place: 256 KiB 0.4-0.6, 512 KiB 0.7-0.8, 1 MiB 0.8-0.9, 2 MiB 0.9-1.1,
/// 4 MiB 1.0.
pub(crate) const SIZE: usize = 2 << 20;

// The largest page of the machines that kvik runs on; no file asks for more than that as the alignment of memory.
const SMALLEST: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scratch_is_aligned_and_as_long_as_asked_for_at_every_size() {
        for len in [1, 4096, SIZE, 512, 2 * SIZE] {
            let lent = with_scratch(ByteSize::mib(16), len, |scratch| {
                (scratch.len(), scratch.as_ptr().addr() % SMALLEST)
            });
            assert_eq!(lent, Some((len, 0)));
        }
    }

    #[test]
    fn a_block_is_no_larger_than_the_setting_and_the_next_piece_gets_it_again() {
        let place = |len| {
            let place = |scratch: &mut [u8]| scratch.as_ptr().addr();
            with_scratch(ByteSize::kib(96), len, place)
        };
        assert!(place(96 << 10).is_some());
        assert_eq!(place(96 << 10), place((96 << 10) - 1));
        assert_eq!(place((96 << 10) + 1), None, "more than the setting allows");
    }
}
