//! What all doors have in common: [`ReadAt`], one verb wide, and what follows from it.

use crate::error::{Error, ErrorKind, Op, Result};
use crate::file::FileHandle;
use crate::piece::ReadPiece;
use crate::target::Target;

/// Something whose bytes can be read at any offset, from any thread.
pub trait ReadAt: Send + Sync {
    /// Reads into `target` from `offset` on; returns the count of bytes, which is short only at the end of the data and
    /// 0 at or past it. Bytes of the target beyond the count are left alone.
    ///
    /// # Errors
    /// What stopped the read. When it returns, with success or without, nobody writes to the target any more.
    fn read_at(&self, target: Target<'_>, offset: u64) -> Result<usize>;

    /// The size in bytes, asked for anew each time.
    ///
    /// # Errors
    /// The size cannot be known.
    fn len(&self) -> Result<u64>;

    /// Reads all `pieces`; returns the count of bytes of each, in their order: each is short only at the end of the data.
    ///
    /// Reads one after the other unless the door knows better; it stands here, and not in [`ReadAtExt`], so that a door
    /// that does is asked through `dyn ReadAt` too.
    ///
    /// # Errors
    /// What stopped the first piece that failed. Of the other pieces nothing is known then.
    fn read_ranges(&self, pieces: &mut [ReadPiece<'_>]) -> Result<Vec<usize>> {
        let read = |piece: &mut ReadPiece<'_>| {
            let offset = piece.offset();
            self.read_at(piece.target(), offset)
        };
        pieces.iter_mut().map(read).collect()
    }

    /// Whether there are no bytes, as far as the size tells.
    ///
    /// # Errors
    /// As for [`len`](ReadAt::len).
    fn is_empty(&self) -> Result<bool> {
        self.len().map(|len| len == 0)
    }
}

/// What every [`ReadAt`] can do besides.
pub trait ReadAtExt: ReadAt {
    /// Fills all of `target` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the data ends before, else as for [`read_at`](ReadAt::read_at).
    fn read_exact_at<'a>(&self, target: impl Into<Target<'a>>, offset: u64) -> Result<()> {
        let target = target.into();
        let wanted = target.len();
        complete(self.read_at(target, offset)?, wanted, offset)
    }

    /// Reads all bytes from `offset` on. Works where the size is not known, as for files in `/proc`, and where it grows.
    ///
    /// # Errors
    /// As for [`read_at`](ReadAt::read_at); `OutOfMemory` if there is no room for the bytes.
    fn read_to_end(&self, offset: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One byte beyond what is said to be there, so that a size that is right is confirmed without a second buffer.
        let mut step = self
            .len()?
            .saturating_sub(offset)
            .saturating_add(1)
            .max(FIRST_STEP);
        loop {
            let filled = bytes.len();
            let more = usize::try_from(step).unwrap_or(usize::MAX);
            bytes.try_reserve_exact(more).map_err(|cause| {
                let why = format!("no memory for {step} bytes more");
                Error::new(ErrorKind::OutOfMemory, Op::Read, why).because(cause)
            })?;
            bytes.resize(filled + more, 0);
            let count = self.read_at(
                Target::from(&mut bytes[filled..]),
                offset.saturating_add(filled as u64),
            )?;
            bytes.truncate(filled + count);
            if count < more {
                return Ok(bytes);
            }
            step = (bytes.len() as u64).max(FIRST_STEP);
        }
    }
}

impl<T: ReadAt + ?Sized> ReadAtExt for T {}

impl ReadAt for FileHandle {
    fn read_at(&self, target: Target<'_>, offset: u64) -> Result<usize> {
        FileHandle::read_at(self, target, offset)
    }

    fn len(&self) -> Result<u64> {
        FileHandle::len(self)
    }

    fn read_ranges(&self, pieces: &mut [ReadPiece<'_>]) -> Result<Vec<usize>> {
        FileHandle::read_ranges(self, pieces)
    }
}

/// An `UnexpectedEof` error unless all bytes came.
pub(crate) fn complete(count: usize, wanted: usize, offset: u64) -> Result<()> {
    if count == wanted {
        return Ok(());
    }
    if count > wanted {
        let why = format!("a read of {wanted} bytes says that it moved {count}");
        return Err(Error::new(ErrorKind::Internal, Op::Read, why));
    }
    let why = format!("the data ends after {count} of {wanted} bytes");
    let range = offset..offset.saturating_add(wanted as u64);
    Err(Error::new(ErrorKind::UnexpectedEof, Op::Read, why).within(range, count as u64))
}

// Files of unknown size are small as a rule; 64 KiB is the pipe size and more than any file of /proc/self.
const FIRST_STEP: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes whose size is not known, as in /proc.
    struct Sizeless(Vec<u8>);

    impl ReadAt for Sizeless {
        fn read_at(&self, mut target: Target<'_>, offset: u64) -> Result<usize> {
            let from = (offset as usize).min(self.0.len());
            Ok(target.window().unwrap().put(&self.0[from..]))
        }

        fn len(&self) -> Result<u64> {
            Ok(0)
        }
    }

    #[test]
    fn read_to_end_does_not_believe_the_size() {
        let bytes: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
        let object = Sizeless(bytes.clone());
        assert_eq!(object.read_to_end(0).unwrap(), bytes);
        assert_eq!(object.read_to_end(299_999).unwrap(), bytes[299_999..]);
        assert_eq!(object.read_to_end(400_000).unwrap(), b"");
    }

    #[test]
    fn a_door_that_knows_no_better_reads_ranges_one_by_one() {
        let bytes: Vec<u8> = (0..100).collect();
        let object: &dyn ReadAt = &Sizeless(bytes.clone());
        let (mut one, mut two, mut three) = ([0xEE; 10], [0xEE; 10], [0xEE; 10]);
        let mut pieces = [
            ReadPiece::new(95, &mut one),
            ReadPiece::new(5, &mut two),
            ReadPiece::new(u64::MAX, &mut three),
        ];
        assert_eq!(object.read_ranges(&mut pieces).unwrap(), [5, 10, 0]);
        assert_eq!(one[..], [&bytes[95..], &[0xEE; 5]].concat());
        assert_eq!(two[..], bytes[5..15]);
        assert_eq!(three, [0xEE; 10]);
    }

    #[test]
    fn read_exact_at_turns_a_short_count_into_unexpected_eof() {
        let object = Sizeless(vec![7; 10]);
        let error = object.read_exact_at(&mut [0u8; 8], 5).unwrap_err();
        assert_eq!((error.kind(), error.done()), (ErrorKind::UnexpectedEof, 5));
        assert_eq!(
            error.to_string(),
            "read 5..13 stopped after 5 bytes: the data ends after 5 of 8 bytes"
        );
    }
}
