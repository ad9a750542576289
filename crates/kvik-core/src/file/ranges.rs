//! Many ranges of one file in one call.

use super::FileHandle;
use crate::corridor::Call;
use crate::error::Result;
use crate::options::{ReadOptions, WriteOptions};
use crate::piece::{ReadPiece, WritePiece};
use crate::ranges::TASK_WEIGHT;

impl FileHandle {
    /// Reads all `pieces` in one call, in parallel; returns the count of bytes of each, in the order of the pieces: short
    /// only where the file ends, and 0 at or past the end.
    ///
    /// The pieces may come in any order and overlap in the file. Those that lie close together are read in one go: up to
    /// 64 of them and 256 KiB (the task size, if that is less), with gaps of up to 2 KiB
    /// ([`ReadOptions::gap`]) whose bytes are read and dropped. Each piece is a read of its own in all else: in a file
    /// that is changing, one piece may see what another one does not.
    ///
    /// # Errors
    /// What the first failing piece met, after all others have stopped: the kinds of [`read_at`](FileHandle::read_at).
    /// [`Error::range`](crate::Error::range) is the range of that piece, or of the part of it that failed if it is longer
    /// than the task size, and [`Error::done`](crate::Error::done) counts the bytes of that. An error that is no piece's in
    /// particular has the range from the first one to the last. Of the other pieces nothing is known then.
    ///
    /// # Example: three records, by their offsets
    /// ```
    /// # fn main() -> kvik_core::Result<()> {
    /// # let path = std::env::temp_dir().join(format!("kvik-ranges-{}", std::process::id()));
    /// # std::fs::write(&path, b"one two three").unwrap();
    /// use kvik_core::{FileHandle, ReadPiece};
    ///
    /// let file = FileHandle::open(&path)?;
    /// let mut bytes = [0; 11];
    /// let offsets = [(8, 5), (0, 3), (4, 3)];
    ///
    /// let mut rest = &mut bytes[..];
    /// let mut pieces = Vec::new();
    /// for (offset, len) in offsets {
    ///     let (piece, behind) = rest.split_at_mut(len);
    ///     pieces.push(ReadPiece::new(offset, piece));
    ///     rest = behind;
    /// }
    /// assert_eq!(file.read_ranges(&mut pieces)?, [5, 3, 3]);
    /// assert_eq!(&bytes, b"threeonetwo");
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_ranges(&self, pieces: &mut [ReadPiece<'_>]) -> Result<Vec<usize>> {
        self.read_ranges_with(pieces, &ReadOptions::default())
    }

    /// [`read_ranges`](FileHandle::read_ranges) with wishes of its own.
    ///
    /// # Errors
    /// As for `read_ranges`; `TimedOut` if the deadline passed before all pieces had started.
    pub fn read_ranges_with(
        &self,
        pieces: &mut [ReadPiece<'_>],
        options: &ReadOptions,
    ) -> Result<Vec<usize>> {
        self.may_read()?;
        let gap = gap(options);
        let lengths = pieces.iter().map(ReadPiece::len);
        self.call_for_ranges(lengths, options)?
            .read_ranges(pieces, gap)
    }

    /// Writes all `pieces` in one call, in parallel, and returns the sum of their lengths. They may come in any order. What
    /// lies between them stays as it is.
    ///
    /// # Errors
    /// `Misuse` if two pieces overlap, or for a range beyond 2^63 - 1: nothing is written then. Else what the first failing
    /// piece met, after all others have stopped: the kinds of [`write_at`](FileHandle::write_at).
    /// [`Error::range`](crate::Error::range) and [`Error::done`](crate::Error::done) are as for
    /// [`read_ranges`](FileHandle::read_ranges); of the other pieces any part may be written.
    pub fn write_ranges(&self, pieces: &[WritePiece<'_>]) -> Result<usize> {
        self.write_ranges_with(pieces, &WriteOptions::default())
    }

    /// [`write_ranges`](FileHandle::write_ranges) with wishes of its own.
    ///
    /// # Errors
    /// As for `write_ranges`; `TimedOut` if the deadline passed before all pieces had started.
    pub fn write_ranges_with(
        &self,
        pieces: &[WritePiece<'_>],
        options: &WriteOptions,
    ) -> Result<usize> {
        self.may_write()?;
        let lengths = pieces.iter().map(|piece| piece.source().len());
        let call = self.call_for_ranges(lengths, options)?;
        if self.0.write_base == 0 {
            return call.write_ranges(pieces);
        }
        let mut moved = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let offset = self.write_offset(piece.offset())?;
            moved.push(WritePiece::new(offset, piece.source()));
        }
        call.write_ranges(&moved)
    }

    /// A call that stays on the calling thread where handing it to a pool would cost more than doing it.
    fn call_for_ranges(
        &self,
        lengths: impl Iterator<Item = usize>,
        options: &ReadOptions,
    ) -> Result<Call> {
        // Lengths are those of memory that exists, so that their sum is far from the largest number there is.
        let weight = lengths.map(|len| len as u64 + TASK_WEIGHT).sum();
        let mut call = self.call(weight, options)?;
        if call.threads > 1 && self.is_inline(weight, options)? {
            call.threads = 1;
        }
        Ok(call)
    }
}

/// Up to how many bytes between two pieces are read and dropped.
pub(super) fn gap(options: &ReadOptions) -> u64 {
    options.gap.map_or(GAP, |gap| gap.bytes())
}

// Measured on cached files: reading 4 KiB more and dropping them costs what a call of its own costs, about half a
// microsecond. Half of that always wins there, and on storage even more.
const GAP: u64 = 2048;
