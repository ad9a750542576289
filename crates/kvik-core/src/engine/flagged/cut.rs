//! How a transfer in the order of a stream is cut into pieces. Pure: sizes go in, sizes come out.

use std::ops::Range;

use crate::os;

/// A range of a file in pieces, each of which has a slab for as long as its bytes are on their way.
///
/// All pieces but the first begin at a page of the file, and lie in their slab as in that page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    offset: u64,
    len: u64,
    // Bytes of the first piece's page that come before it.
    before: u64,
    piece: u64,
}

impl Cut {
    /// `len` bytes from `offset` on, in pieces for slabs of at most `bounce_buffer_size`: as many as keep several threads busy,
    /// and no smaller than it takes to read and copy them well. `offset + len` is an offset of a file.
    pub(super) fn new(offset: u64, len: u64, bounce_buffer_size: u64) -> Cut {
        Cut::into(offset, len, bounce_buffer_size, SLABS as u64)
    }

    /// The same in the smallest pieces of which a stream takes all without being waited for.
    pub(super) fn least(&self) -> Cut {
        Cut::into(self.offset, self.len, self.piece, QUEUED)
    }

    /// The same in pieces for slabs of at most this size, a page at least.
    pub(super) fn within(&self, slab: usize) -> Cut {
        Cut::into(self.offset, self.len, slab as u64, SLABS as u64)
    }

    fn into(offset: u64, len: u64, most: u64, pieces: u64) -> Cut {
        let page = os::page_size();
        let before = offset % page;
        let whole = before + len;
        let most = (most - most % page).clamp(page, LARGEST);
        let wish = whole.div_ceil(pieces).max(SMALLEST.min(whole));
        let piece = wish.next_power_of_two().max(TINY).min(most);
        Cut {
            offset,
            len,
            before,
            piece: piece.next_multiple_of(page).min(most),
        }
    }

    /// The size of a slab in bytes.
    pub(super) fn slab(&self) -> usize {
        self.piece as usize
    }

    /// How many slabs so many threads have use for: one is filled and another copied. With more, they would leave the
    /// processor's cache before they are used again.
    pub(super) fn slabs(&self, threads: usize) -> usize {
        let useful = threads.saturating_mul(2).clamp(FEWEST, SLABS);
        self.pieces().min(useful)
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The range of the file.
    pub(super) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.len
    }

    pub(super) fn pieces(&self) -> usize {
        match self.len {
            0 => 0,
            len => (self.before + len).div_ceil(self.piece) as usize,
        }
    }

    /// The bytes of a piece, counted from the start of the range; none behind the last one.
    pub(super) fn piece(&self, index: usize) -> Range<u64> {
        let at = index as u64 * self.piece;
        let start = at.saturating_sub(self.before).min(self.len);
        start..(at + self.piece - self.before).min(self.len)
    }

    /// Where in its slab a piece begins.
    pub(super) fn place(&self, index: usize) -> usize {
        match index {
            0 => self.before as usize,
            _ => 0,
        }
    }
}

/// How many slabs a transfer has at most: with sixteen of 4 MiB, eight threads reach what the bus takes.
const SLABS: usize = 16;
const FEWEST: usize = 3;
// As slabs of other transfers, see `staged/sizes.rs`.
const LARGEST: u64 = 4 << 20;
// Below this the calls that a piece takes cost more than another thread saves.
const SMALLEST: u64 = 256 << 10;
const TINY: u64 = 16 << 10;
// A stream takes 1024 entries before it lets its caller wait (H200, driver 580), and a piece is three.
const QUEUED: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(offset: u64, len: u64, bounce: u64, piece: u64, pieces: usize) {
        let cut = Cut::new(offset, len, bounce);
        assert_eq!((cut.piece, cut.pieces()), (piece, pieces), "{cut:?}");
        for cut in [cut, cut.least()] {
            let mut end = 0;
            for index in 0..cut.pieces() {
                let bytes = cut.piece(index);
                assert_eq!(bytes.start, end);
                assert!(bytes.end > bytes.start);
                let (at, page) = (cut.offset + bytes.start, os::page_size());
                assert_eq!(cut.place(index) as u64 % page, at % page);
                assert!(cut.place(index) as u64 + bytes.end - bytes.start <= cut.piece);
                end = bytes.end;
            }
            assert_eq!(end, len);
        }
    }

    #[test]
    fn pieces_cover_the_range_and_begin_at_pages() {
        const MIB: u64 = 1 << 20;
        check(0, 0, 16 * MIB, 16 << 10, 0);
        check(0, 1, 16 * MIB, 16 << 10, 1);
        check(4095, 4097, 16 * MIB, 16 << 10, 1);
        check(0, 256 << 10, 16 * MIB, 256 << 10, 1);
        check(1, 256 << 10, 16 * MIB, 256 << 10, 2);
        check(0, 4 * MIB, 16 * MIB, 256 << 10, 16);
        check(7, 4 * MIB - 7, 16 * MIB, 256 << 10, 16);
        check(0, 64 * MIB, 16 * MIB, 4 * MIB, 16);
        check(5, 70 * MIB, 16 * MIB, 4 * MIB, 18);
        check(0, 1 << 30, u64::MAX, 4 * MIB, 256);
        check(100, 100_000, 5000, 4096, 25);
        check(100, 20_000, 3 * 4096 + 1, 3 * 4096, 2);
        check(0, 10_000, 0, 4096, 3);
    }

    #[test]
    fn the_least_pieces_of_a_large_transfer_are_few_and_those_of_a_small_one_small() {
        assert_eq!(Cut::new(0, 4 << 20, 16 << 20).least().slab(), 256 << 10);
        assert_eq!(Cut::new(0, 1 << 30, 16 << 20).least().slab(), 4 << 20);
        let cut = Cut::new(0, 128 << 20, 16 << 20).least();
        assert_eq!((cut.slab(), cut.pieces()), (512 << 10, 256));
    }
}
