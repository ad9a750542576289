//! Pieces: the data of a file, without its holes, cut at multiples of the piece size.

use std::ops::Range;
use std::vec;

use kvik::FileHandle;

/// A part of a file that holds data in at least one of the files looked at, and how many bytes of hole lie before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) range: Range<u64>,
    pub(super) hole: u64,
}

impl Piece {
    pub(super) fn len(&self) -> usize {
        // A piece is never longer than the piece size, which is a `usize`.
        (self.range.end - self.range.start) as usize
    }
}

/// Walks `0..size` of one file, or of several at once.
pub(super) struct Pieces {
    files: Vec<FileHandle>,
    size: u64,
    piece: u64,
    /// Up to where the extents are known.
    known: u64,
    extents: vec::IntoIter<Range<u64>>,
    /// What is left of the extent being cut.
    rest: Range<u64>,
    /// The end of the last piece.
    end: u64,
}

impl Pieces {
    /// `piece` bytes at most; it is not 0.
    pub(super) fn new(files: Vec<FileHandle>, size: u64, piece: usize) -> Self {
        let piece = piece.max(1) as u64;
        Pieces {
            files,
            size,
            piece,
            known: 0,
            extents: Vec::new().into_iter(),
            rest: 0..0,
            end: 0,
        }
    }

    pub(super) fn next(&mut self) -> Option<Piece> {
        while self.rest.is_empty() {
            if let Some(extent) = self.extents.next() {
                self.rest = extent;
            } else if self.known >= self.size {
                return None;
            } else {
                self.look();
            }
        }
        let range = cut(&self.rest, self.piece);
        let hole = range.start - self.end;
        self.rest.start = range.end;
        self.end = range.end;
        Some(Piece { range, hole })
    }

    /// Asks for the extents of the next window only: a badly fragmented file has millions of them.
    fn look(&mut self) {
        let window = self.known..self.size.min(self.known + WINDOW);
        let mut extents = Vec::new();
        for file in &self.files {
            // A file system that cannot tell has no holes that it could tell of; real trouble shows when the data is read.
            extents.extend(
                file.data_extents(window.clone())
                    .unwrap_or_else(|_| vec![window.clone()]),
            );
        }
        self.known = window.end;
        self.extents = union(extents).into_iter();
    }
}

/// The first piece of a range: up to the next multiple of `piece`.
fn cut(range: &Range<u64>, piece: u64) -> Range<u64> {
    let next = (range.start / piece)
        .saturating_add(1)
        .saturating_mul(piece);
    range.start..range.end.min(next)
}

/// Sorted and without overlaps or gaps of length 0.
fn union(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

// Two megabytes of extents at worst (one in every second block of 4 KiB).
const WINDOW: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_at_multiples_of_the_piece_size() {
        assert_eq!(cut(&(0..100), 40), 0..40);
        assert_eq!(cut(&(40..100), 40), 40..80);
        assert_eq!(cut(&(50..100), 40), 50..80);
        assert_eq!(cut(&(80..100), 40), 80..100);
        assert_eq!(
            cut(&(u64::MAX - 1..u64::MAX), 1 << 63),
            u64::MAX - 1..u64::MAX
        );
    }

    #[test]
    fn extents_of_two_files_are_merged() {
        assert_eq!(
            union(vec![10..20, 0..5, 15..30, 30..31, 7..7]),
            [0..5, 10..31]
        );
        assert_eq!(union(Vec::new()), []);
    }

    #[test]
    fn a_file_full_of_data_is_covered_without_gaps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, vec![7; 100_001]).unwrap();
        let handle = FileHandle::open(&path).unwrap();
        let mut pieces = Pieces::new(vec![handle], 100_001, 4096);
        let mut end = 0;
        while let Some(piece) = pieces.next() {
            assert_eq!((piece.range.start, piece.hole), (end, 0));
            assert!(piece.len() <= 4096);
            end = piece.range.end;
        }
        assert_eq!(end, 100_001);
    }
}
