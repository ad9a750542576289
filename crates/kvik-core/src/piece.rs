//! What a call with many ranges is given: a [`ReadPiece`] or [`WritePiece`] for each.

use crate::target::{Source, Target};

/// One of the ranges of [`FileHandle::read_ranges`](crate::FileHandle::read_ranges): where it starts, and the memory that
/// it fills.
///
/// # Example: the head and the tail of a file, in one call
/// ```no_run
/// use kvik_core::{FileHandle, ReadPiece};
///
/// # fn main() -> kvik_core::Result<()> {
/// let file = FileHandle::open("table.parquet")?;
/// let (mut head, mut tail) = ([0; 4], [0; 8]);
/// let mut pieces = [ReadPiece::new(0, &mut head), ReadPiece::new(file.len()? - 8, &mut tail)];
/// assert_eq!(file.read_ranges(&mut pieces)?, [4, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ReadPiece<'a> {
    offset: u64,
    target: Target<'a>,
}

/// One of the ranges of [`FileHandle::write_ranges`](crate::FileHandle::write_ranges): where it starts, and the bytes that
/// go there.
#[derive(Clone, Copy, Debug)]
pub struct WritePiece<'a> {
    offset: u64,
    source: Source<'a>,
}

impl<'a> ReadPiece<'a> {
    /// The range that starts at `offset` and is as long as `target`.
    pub fn new(offset: u64, target: impl Into<Target<'a>>) -> ReadPiece<'a> {
        ReadPiece {
            offset,
            target: target.into(),
        }
    }

    /// Where it starts, in bytes from the start of the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The memory, for a door that reads the piece itself.
    pub fn target(&mut self) -> Target<'_> {
        self.target.reborrow()
    }

    /// How many bytes it asks for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.target.len()
    }

    /// Whether it asks for none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.target.is_empty()
    }

    pub(crate) fn wanted(&self) -> &Target<'a> {
        &self.target
    }
}

impl<'a> WritePiece<'a> {
    /// The range that starts at `offset` and is as long as `source`.
    pub fn new(offset: u64, source: impl Into<Source<'a>>) -> WritePiece<'a> {
        WritePiece {
            offset,
            source: source.into(),
        }
    }

    /// Where it starts, in bytes from the start of the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes.
    #[must_use]
    pub fn source(&self) -> Source<'a> {
        self.source
    }
}
