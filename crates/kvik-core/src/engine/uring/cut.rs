//! How a task is cut into requests for a ring. Pure: ranges, addresses and rules in, pieces out.

use std::ops::Range;

use crate::engine::direct::split::{self, Limits, Piece, Rules};

/// What holds for the pieces of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Through the page cache: any offset, length and address.
    Buffered,
    /// Past the page cache.
    Direct {
        /// How it is cut.
        rules: Rules,
        /// Where writes are split into body and edges.
        boundary: u64,
    },
}

/// The first piece of `rest`, which is not empty and whose first byte stands at `address`.
///
/// The ranges of direct writes are bodies: see [`split::write_parts`].
pub(super) fn first_piece(rest: &Range<u64>, address: usize, rule: Rule) -> Piece {
    match rule {
        Rule::Direct { rules, .. } => split::first_piece(rest, address, &rules),
        Rule::Buffered => {
            // Up to a multiple, so that only the first piece begins within a page.
            let end = rest.start - rest.start % PIECE + PIECE;
            Piece::Buffered(rest.start..rest.end.min(end))
        }
    }
}

/// How many pieces `range` will come to, about.
pub(super) fn pieces(range: &Range<u64>) -> usize {
    (range.end - range.start).div_ceil(PIECE) as usize
}

/// The largest request: a task of 4 MiB gives the device eight of them. From 128 KiB to 4 MiB no size was measurably
/// better.
pub(crate) const PIECE: u64 = 512 << 10;
/// Slots for short ranges: 4 KiB and its neighbours.
pub(super) const SMALL_SLOT: u64 = 16 << 10;
/// Slots for long ones.
pub(super) const LARGE_SLOT: u64 = 256 << 10;
/// What direct pieces are held to.
pub(super) const LIMITS: Limits = Limits {
    room: LARGE_SLOT,
    longest: PIECE,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rest: Range<u64>, expected: Range<u64>) {
        assert_eq!(
            first_piece(&rest, 13, Rule::Buffered),
            Piece::Buffered(expected)
        );
    }

    #[test]
    fn buffered_pieces_are_taken_as_they_come_and_end_at_multiples_of_their_size() {
        check(3..7, 3..7);
        check(3..2 * PIECE, 3..PIECE);
        check(PIECE..2 * PIECE + 9, PIECE..2 * PIECE);
    }
}
