//! How a range is cut for direct I/O, by blocking calls and by a ring alike. Pure: alignments and addresses in, ranges out.
//!
//! Reads may use the alignment that `statx(2)` reports, 512 bytes on most disks. Writes keep to whole pages: the page
//! cache is written page by page, so a buffered edge and a direct body that shared a page could undo each other.

use std::ops::Range;

/// What direct I/O asks for on one file, in bytes. All are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// Of the address in memory.
    pub(crate) memory: u64,
    /// Of offset and length of a read.
    pub(crate) read: u64,
    /// Of offset and length of a write.
    pub(crate) write: u64,
    /// Where a write is split into body and edges: the larger of page and `write`.
    pub(crate) boundary: u64,
}

/// What may be done where a read does not begin or end at a multiple of the alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Edges {
    /// Read the whole block around it past the page cache, and drop the surplus.
    #[default]
    Overread,
    /// Read it through the page cache.
    Buffered,
}

/// How the pieces of a range may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The size of the scratch: a multiple of the alignment.
    pub(crate) room: u64,
    /// The longest piece that does not pass through the scratch: a multiple of the alignment.
    pub(crate) longest: u64,
}

/// What decides how a range is cut, besides the range and the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// What addresses are multiples of.
    pub(crate) memory: u64,
    /// What offsets and lengths are multiples of.
    pub(crate) block: u64,
    pub(crate) edges: Edges,
    pub(crate) limits: Limits,
    /// Where the file ends. From a block that it ends in, the device fills memory behind the count too, so that block is
    /// never read in place.
    pub(crate) file_end: u64,
}

impl Alignment {
    /// The rules for reads in a file that ends at `file_end`.
    pub(crate) fn reads(&self, edges: Edges, limits: Limits, file_end: u64) -> Rules {
        Rules {
            memory: self.memory,
            block: self.read,
            edges,
            limits,
            file_end,
        }
    }

    /// The rules for the bodies of writes, which have no edges (see [`write_parts`]).
    pub(crate) fn writes(&self, limits: Limits) -> Rules {
        Rules {
            memory: self.memory,
            block: self.write,
            edges: Edges::Overread,
            limits,
            file_end: u64::MAX,
        }
    }
}

/// One call, or one request to a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Between the file and the caller's memory.
    InPlace(Range<u64>),
    /// All of `block` by way of the scratch, of which `wanted` is the caller's. Of a write they are the same.
    Through {
        block: Range<u64>,
        wanted: Range<u64>,
    },
    /// Through the page cache.
    Buffered(Range<u64>),
}

impl Piece {
    /// The bytes that it is made for.
    pub(crate) fn wanted(&self) -> &Range<u64> {
        match self {
            Piece::InPlace(range) | Piece::Buffered(range) => range,
            Piece::Through { wanted, .. } => wanted,
        }
    }

    /// The bytes that the kernel is asked for.
    pub(crate) fn block(&self) -> &Range<u64> {
        match self {
            Piece::InPlace(range) | Piece::Buffered(range) => range,
            Piece::Through { block, .. } => block,
        }
    }
}

/// The first piece of `rest`, which is not empty and whose first byte stands at `address`.
pub(crate) fn first_piece(rest: &Range<u64>, address: usize, rules: &Rules) -> Piece {
    let Range { start, end } = *rest;
    let block = rules.block;
    let Limits { room, longest } = rules.limits;
    let some = |end: u64| start..end.min(start.saturating_add(longest));
    // No file has bytes past the largest offset, and the kernel refuses a range that goes beyond it.
    let Some(outer_end) = up(end, block).filter(|end| i64::try_from(*end).is_ok()) else {
        return Piece::Buffered(some(end));
    };
    let outer_start = down(start, block);
    // The whole blocks in the middle, if there are any.
    let inner_start = outer_start + if start == outer_start { 0 } else { block };
    let inner_end = down(end.min(rules.file_end), block);
    let middle = inner_end.saturating_sub(inner_start);
    let fits = (address as u64)
        .wrapping_add(inner_start - start)
        .is_multiple_of(rules.memory);
    let in_place = fits && middle > 0 && (middle == end - start || middle >= LONG);
    let through = |block_end: u64| Piece::Through {
        block: outer_start..block_end,
        wanted: start..block_end.min(end),
    };
    match rules.edges {
        Edges::Buffered if start < inner_start => Piece::Buffered(some(inner_start.min(end))),
        Edges::Buffered if middle == 0 => Piece::Buffered(some(end)),
        Edges::Buffered if fits => Piece::InPlace(some(inner_end)),
        Edges::Buffered => through(inner_end.min(outer_start + room)),
        Edges::Overread if in_place && start == inner_start => Piece::InPlace(some(inner_end)),
        // The head alone, so that what follows lands in place.
        Edges::Overread if in_place => through(inner_start),
        Edges::Overread => through(outer_end.min(outer_start + room)),
    }
}

/// A write in three parts, each of which may be empty: the head and the tail go through the page cache, the body past it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteParts {
    pub(crate) head: Range<u64>,
    pub(crate) body: Range<u64>,
    pub(crate) tail: Range<u64>,
}

/// Splits a write at multiples of `boundary`. Without a whole one inside, all of it is head.
pub(crate) fn write_parts(range: &Range<u64>, boundary: u64) -> WriteParts {
    let end = down(range.end, boundary);
    match up(range.start, boundary) {
        Some(start) if start < end => WriteParts {
            head: range.start..start,
            body: start..end,
            tail: end..range.end,
        },
        _ => WriteParts {
            head: range.clone(),
            body: range.end..range.end,
            tail: range.end..range.end,
        },
    }
}

fn down(offset: u64, block: u64) -> u64 {
    offset - offset % block
}

fn up(offset: u64, block: u64) -> Option<u64> {
    offset.checked_next_multiple_of(block)
}

// From where on a middle is read by a call of its own: less is copied through the scratch with the edges, which costs less
// than one more trip to the device (some 30 us for 256 KiB, where a small direct read takes 40 and more).
const LONG: u64 = 256 << 10;

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
