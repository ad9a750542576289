//! Fetching: the pieces of a remote object that are missing, each asked for, written and noted.

use std::collections::VecDeque;
use std::ops::Range;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use kvik::config::{ByteSize, Config};
use kvik::stats::names::{BYTES_BY_HTTP, BYTES_BY_S3, BYTES_BY_WEBHDFS};
use kvik::{FileHandle, Pending, ReadOptions, RemoteHandle};

use crate::Exit;
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::stop::Stop;

use super::journal::{Journal, Written};
use super::medium::{HostMedium, Medium};
use super::pump::{Load, Stage, Work, drive, over};

/// Brings the bytes of `missing` from the object to the same places of the file.
pub(super) fn fetch(
    (object, target): (&RemoteHandle, &FileHandle),
    missing: Vec<Range<u64>>,
    load: Load,
    record: &mut Record<'_>,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    // One request a piece, unless the settings want smaller ones.
    let request = Config::current()
        .task_size()?
        .bytes()
        .min(load.piece as u64);
    let work = Fetching {
        object,
        target,
        missing: missing.into(),
        load,
        options: ReadOptions::new().task_size(ByteSize::new(request)),
        medium: HostMedium::new(load.piece),
        came: came(),
        begun: progress.done(),
        moved: 0,
        record,
        progress,
    };
    drive(work, load.depth, stop).map(drop)
}

/// Which pieces are written, and the journal that is told so every now and then.
pub(super) struct Record<'a> {
    target: &'a FileHandle,
    journal: Option<&'a mut Journal>,
    pub(super) written: Vec<Written>,
    /// How many of them the journal has.
    noted: usize,
    last: Instant,
    sync: bool,
}

impl<'a> Record<'a> {
    /// One of a copy that has `written`. With `sync` the bytes of pieces are on the storage before the journal names them,
    /// but for those that it is told at the end; so that a power cut costs little. What it leaves is true or is found out:
    /// bytes are compared with the journal's checksums before another copy goes on with them.
    pub(super) fn new(
        target: &'a FileHandle,
        journal: Option<&'a mut Journal>,
        written: Vec<Written>,
        sync: bool,
    ) -> Self {
        Record {
            target,
            journal,
            noted: written.len(),
            written,
            last: Instant::now(),
            sync,
        }
    }

    /// Notes what is written since the last time, if that is some time ago.
    fn note_if_due(&mut self) -> Result<()> {
        if self.last.elapsed() < PAUSE || self.noted == self.written.len() {
            return Ok(());
        }
        if self.sync && self.journal.is_some() {
            self.target.sync_data()?;
        }
        self.note();
        Ok(())
    }

    /// Notes what is written since the last time. A process that ends after this loses none of it.
    pub(super) fn note(&mut self) {
        let new = &self.written[self.noted..];
        // What a journal cannot be told any more is copied again if need be; what it has stays true.
        if let Some(journal) = self.journal.take()
            && journal.note(new).is_ok()
        {
            self.journal = Some(journal);
        }
        self.noted = self.written.len();
        self.last = Instant::now();
    }
}

struct Fetching<'a, 'r> {
    object: &'a RemoteHandle,
    target: &'a FileHandle,
    /// In order; what is under way is no part of it any more.
    missing: VecDeque<Range<u64>>,
    load: Load,
    options: ReadOptions,
    medium: HostMedium,
    /// The bytes that had come over the network, and those that were there, when it began.
    came: u64,
    begun: u64,
    /// The bytes that it has written.
    moved: u64,
    record: &'a mut Record<'r>,
    progress: &'a mut Progress,
}

enum Piece {
    Coming(Range<u64>, Pending<Vec<u8>>),
    Writing(Written, Pending<Vec<u8>>),
}

impl Stage for Piece {
    fn ready(&mut self, context: &mut Context<'_>) -> bool {
        let (Piece::Coming(_, pending) | Piece::Writing(_, pending)) = self;
        over(pending, context)
    }
}

impl Fetching<'_, '_> {
    /// Takes what has come, and begins to write it.
    fn write(&self, range: Range<u64>, pending: Pending<Vec<u8>>) -> Result<Piece> {
        let (read, buffer) = pending.finish();
        if read? < buffer.len() {
            let url = self.object.url();
            let message = format!("copy {url}: it ended before byte {}", range.end);
            return Err(Failure::new(Exit::Integrity, "Changed", message));
        }
        let checksum = crc32fast::hash(&buffer);
        let pending = self.target.submit_write(buffer, range.start);
        Ok(Piece::Writing(Written { range, checksum }, pending))
    }
}

impl Work for Fetching<'_, '_> {
    type Stage = Piece;

    fn begin(&mut self) -> Result<Option<Piece>> {
        let Some(range) = next(&mut self.missing, self.load.piece as u64) else {
            return Ok(None);
        };
        // No longer than a piece, which is a `usize`.
        let buffer = self.medium.take((range.end - range.start) as usize)?;
        let pending = self
            .object
            .submit_read_with(buffer, range.start, &self.options);
        Ok(Some(Piece::Coming(range, pending)))
    }

    /// What has come is worth keeping: another copy goes on with it.
    fn abandon(&mut self, mut piece: Piece) {
        if let Piece::Coming(range, mut pending) = piece {
            let came = over(&mut pending, &mut Context::from_waker(Waker::noop()));
            match came.then(|| self.write(range, pending)) {
                Some(Ok(writing)) => piece = writing,
                _ => return,
            }
        }
        if let Piece::Writing(written, pending) = piece
            && pending.finish().0.is_ok()
        {
            self.record.written.push(written);
        }
    }

    fn advance(&mut self, piece: Piece) -> Result<Option<Piece>> {
        match piece {
            Piece::Coming(range, pending) => self.write(range, pending).map(Some),
            Piece::Writing(written, pending) => {
                let (done, buffer) = pending.finish();
                done?;
                self.medium.give_back(buffer);
                self.moved += written.len() as u64;
                self.record.written.push(written);
                self.pause()?;
                Ok(None)
            }
        }
    }

    fn pause(&mut self) -> Result<()> {
        // Pieces take a while where the network is slow; what has come of them is told before they are there.
        let came = came().saturating_sub(self.came);
        self.progress.reach(self.begun + came.max(self.moved));
        self.record.note_if_due()
    }
}

/// Bytes that came over networks, of whatever kind of object.
fn came() -> u64 {
    [&BYTES_BY_HTTP, &BYTES_BY_S3, &BYTES_BY_WEBHDFS]
        .map(|counter| counter.get())
        .iter()
        .sum()
}

/// Takes the next piece off the front.
fn next(missing: &mut VecDeque<Range<u64>>, piece: u64) -> Option<Range<u64>> {
    let first = missing.front_mut()?;
    // At multiples of the piece, as in a copy that was never interrupted.
    let cut = (first.start / piece + 1).saturating_mul(piece);
    let range = first.start..first.end.min(cut);
    first.start = range.end;
    if first.is_empty() {
        missing.pop_front();
    }
    Some(range)
}

// What an end without a warning may cost.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_cut_at_multiples_of_the_piece() {
        let mut missing = VecDeque::from([3..10, 12..13]);
        let pieces: Vec<_> = std::iter::from_fn(|| next(&mut missing, 4)).collect();
        assert_eq!(pieces, [3..4, 4..8, 8..10, 12..13]);
    }
}
