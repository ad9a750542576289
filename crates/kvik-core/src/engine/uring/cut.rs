//! How a task is cut into pieces for a ring. Pure: ranges, addresses and alignments in, pieces out.

use std::ops::Range;

/// What a descriptor with `O_DIRECT` asks for, in bytes. All are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// Of addresses in memory.
    pub(crate) memory: u64,
    /// Of offset and length of a read.
    pub(crate) read: u64,
    /// Of offset and length of a write; at least the page, so that no page is written both past and through the cache.
    pub(crate) write: u64,
}

/// What holds for the pieces of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Through the page cache: any offset, length and address.
    Buffered,
    /// Past the page cache.
    Direct {
        /// What addresses are multiples of.
        memory: u64,
        /// What offsets and lengths are multiples of.
        block: u64,
        /// No byte from here on is moved in place: a read of the block in which the data ends would write to memory
        /// behind the last byte that it counts.
        whole: u64,
    },
}

/// One request to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The bytes that it is made for.
    pub(super) wanted: Range<u64>,
    /// The bytes that the kernel is asked for: the same, or through a slot all blocks that hold them.
    pub(super) block: Range<u64>,
    /// Whether they pass through a scratch slot, because the memory or the range is not aligned.
    pub(super) through_slot: bool,
}

impl Piece {
    /// Bytes that the kernel is asked for.
    pub(super) fn len(&self) -> u64 {
        self.block.end - self.block.start
    }

    fn in_place(range: Range<u64>) -> Piece {
        Piece {
            wanted: range.clone(),
            block: range,
            through_slot: false,
        }
    }
}

/// The first piece of `rest`, which is not empty and whose first byte stands at `address`.
///
/// The ranges of direct writes begin and end at multiples of the block: see [`body`].
pub(super) fn first_piece(rest: &Range<u64>, address: usize, rule: Rule) -> Piece {
    let Range { start, end } = *rest;
    let piece_end = end.min(up(start + 1, PIECE));
    let Rule::Direct {
        memory,
        block,
        whole,
    } = rule
    else {
        return Piece::in_place(start..piece_end);
    };
    let outer = down(start, block)..up(end, block);
    let inner = up(start, block)..down(end.min(whole), block);
    let fits = (address as u64).wrapping_add(inner.start - start) % memory == 0;
    let in_place = fits && inner.start < inner.end;
    // One request for a short range and its edges costs less than one for each part.
    let short = outer.end - outer.start <= SMALL_SLOT && *rest != inner;
    if in_place && !short {
        if start == inner.start {
            return Piece::in_place(start..inner.end.min(piece_end));
        }
        return through_slot(rest, down(start, block)..inner.start);
    }
    // Pieces through slots end at multiples of the slot's size, so that only the first over-reads at its start.
    let slot_end = match short {
        true => outer.end,
        false => outer.end.min(up(start + 1, LARGE_SLOT)),
    };
    through_slot(rest, outer.start..slot_end)
}

/// The part of a write that is made of whole blocks. The edges before and behind it are written through the page cache,
/// after it.
pub(super) fn body(range: &Range<u64>, block: u64) -> Range<u64> {
    let start = up(range.start, block);
    start..down(range.end, block).max(start)
}

/// How many pieces `range` will come to, about.
pub(super) fn pieces(range: &Range<u64>) -> usize {
    (range.end - range.start).div_ceil(PIECE) as usize
}

/// Down to a multiple of `unit`, a power of two.
pub(super) fn down(at: u64, unit: u64) -> u64 {
    at & !(unit - 1)
}

fn up(at: u64, unit: u64) -> u64 {
    down(at + (unit - 1), unit)
}

fn through_slot(rest: &Range<u64>, block: Range<u64>) -> Piece {
    Piece {
        wanted: rest.start..block.end.min(rest.end),
        block,
        through_slot: true,
    }
}

/// The largest request: a task of 4 MiB gives the device eight of them. From 128 KiB to 4 MiB no size was measurably
/// better.
pub(super) const PIECE: u64 = 512 << 10;
/// Slots for short ranges: 4 KiB and its neighbours.
pub(super) const SMALL_SLOT: u64 = 16 << 10;
/// Slots for long ones.
pub(super) const LARGE_SLOT: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIRECT: Rule = Rule::Direct {
        memory: 512,
        block: 512,
        whole: 1 << 40,
    };
    const MIB: u64 = 1 << 20;

    #[track_caller]
    fn check(rest: Range<u64>, address: usize, rule: Rule, expected: Piece) {
        assert_eq!(first_piece(&rest, address, rule), expected);
    }

    fn slot(block: Range<u64>, wanted: Range<u64>) -> Piece {
        Piece {
            wanted,
            block,
            through_slot: true,
        }
    }

    #[test]
    fn buffered_pieces_are_taken_as_they_come_and_end_at_multiples_of_their_size() {
        check(3..7, 13, Rule::Buffered, Piece::in_place(3..7));
        check(3..MIB, 13, Rule::Buffered, Piece::in_place(3..PIECE));
        check(
            PIECE..MIB + 9,
            1,
            Rule::Buffered,
            Piece::in_place(PIECE..MIB),
        );
    }

    #[test]
    fn direct_pieces_are_in_place_where_memory_and_range_are_aligned() {
        check(4096..8192, 512, DIRECT, Piece::in_place(4096..8192));
        check(512..MIB, 1024, DIRECT, Piece::in_place(512..PIECE));
        // The tail of a long range is a piece of its own; that of a short one comes along.
        check(
            MIB - 512..MIB + 7,
            0,
            DIRECT,
            slot(MIB - 512..MIB + 512, MIB - 512..MIB + 7),
        );
        check(MIB..MIB + 7, 0, DIRECT, slot(MIB..MIB + 512, MIB..MIB + 7));
        // So is its head, where what follows is then in place.
        check(7..MIB, 4103, DIRECT, slot(0..512, 7..512));
    }

    #[test]
    fn direct_pieces_go_through_slots_where_memory_or_range_are_not_aligned() {
        check(0..4096, 16, DIRECT, slot(0..4096, 0..4096));
        check(100..4196, 0, DIRECT, slot(0..4608, 100..4196));
        check(7..MIB, 16, DIRECT, slot(0..LARGE_SLOT, 7..LARGE_SLOT));
    }

    #[test]
    fn the_block_in_which_the_data_ends_is_not_read_in_place() {
        let rule = Rule::Direct {
            memory: 512,
            block: 512,
            whole: 1000,
        };
        check(0..4096, 0, rule, slot(0..4096, 0..4096));
        check(0..MIB, 0, rule, Piece::in_place(0..512));
        check(512..MIB, 512, rule, slot(512..LARGE_SLOT, 512..LARGE_SLOT));
    }

    #[test]
    fn the_body_of_a_write_is_its_whole_blocks() {
        assert_eq!(body(&(0..8192), 4096), 0..8192);
        assert_eq!(body(&(1..8191), 4096), 4096..4096);
        assert_eq!(body(&(1..100), 4096), 4096..4096);
        assert_eq!(body(&(4095..12_289), 4096), 4096..12_288);
    }

    proptest! {
        #[test]
        fn pieces_cover_the_range_and_the_kernel_is_asked_for_what_it_allows(
            start in 0..3 * MIB, len in 1..3 * MIB, skew in 0usize..1024, whole in 0..6 * MIB,
            memory in prop::sample::select(vec![4u64, 512, 4096]), block in prop::sample::select(vec![512u64, 4096]),
        ) {
            let rule = Rule::Direct { memory, block, whole };
            let mut rest = start..start + len;
            while !rest.is_empty() {
                let address = (1 << 20) + skew + (rest.start - start) as usize;
                let piece = first_piece(&rest, address, rule);
                prop_assert_eq!(piece.wanted.start, rest.start);
                prop_assert!(piece.wanted.end > rest.start && piece.wanted.end <= rest.end);
                prop_assert!(piece.block.start <= piece.wanted.start && piece.wanted.end <= piece.block.end);
                prop_assert!(piece.block.start.is_multiple_of(block));
                prop_assert!(piece.block.end.is_multiple_of(block));
                if piece.through_slot {
                    prop_assert!(piece.len() <= LARGE_SLOT);
                } else {
                    prop_assert_eq!(&piece.wanted, &piece.block);
                    prop_assert!((address as u64).is_multiple_of(memory));
                    prop_assert!(piece.len() <= PIECE && piece.block.end <= whole);
                }
                rest.start = piece.wanted.end;
            }
        }
    }
}
