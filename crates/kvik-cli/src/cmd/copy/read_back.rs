//! Reading back what was written, and comparing its checksums with those of the bytes as they came.

use std::task::Context;

use kvik::{FileHandle, Pending};

use crate::failure::Result;
use crate::progress::Progress;
use crate::stop::Stop;

use super::journal::Written;
use super::medium::{HostMedium, Medium};
use super::pump::{BUDGET, Load, Stage, Work, drive, over};

/// Reads `written` and returns the first piece found that has other bytes, or whose bytes are not all there.
pub(super) fn difference(
    target: &FileHandle,
    written: &[Written],
    load: Load,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Option<Written>> {
    let work = Reading {
        target,
        written: written.iter(),
        medium: HostMedium::new(load.piece),
        progress,
        found: None,
    };
    // Pieces of an earlier copy may be longer than those of this one.
    let longest = written.iter().map(Written::len).max().unwrap_or_default();
    let depth = load.depth.min(BUDGET / longest.max(1)).max(2);
    Ok(drive(work, depth, stop)?.found)
}

struct Reading<'a> {
    target: &'a FileHandle,
    written: std::slice::Iter<'a, Written>,
    medium: HostMedium,
    progress: &'a mut Progress,
    found: Option<Written>,
}

struct Piece<'a> {
    written: &'a Written,
    pending: Pending<Vec<u8>>,
}

impl Stage for Piece<'_> {
    fn ready(&mut self, context: &mut Context<'_>) -> bool {
        over(&mut self.pending, context)
    }
}

impl<'a> Work for Reading<'a> {
    type Stage = Piece<'a>;

    fn begin(&mut self) -> Result<Option<Piece<'a>>> {
        let Some(written) = self.written.next().filter(|_| self.found.is_none()) else {
            return Ok(None);
        };
        let buffer = self.medium.take(written.len())?;
        let pending = self.target.submit_read(buffer, written.range.start);
        Ok(Some(Piece { written, pending }))
    }

    fn advance(&mut self, piece: Piece<'a>) -> Result<Option<Piece<'a>>> {
        let (read, buffer) = piece.pending.finish();
        let read = read?;
        let same = read == buffer.len() && crc32fast::hash(&buffer) == piece.written.checksum;
        if !same {
            self.found.get_or_insert_with(|| piece.written.clone());
        }
        self.progress.advance(read as u64);
        self.medium.give_back(buffer);
        Ok(None)
    }
}
