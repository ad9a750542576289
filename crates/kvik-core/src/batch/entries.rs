//! The layout of those entries of a batch that are moved together: many ranges, as in a scatter, each with its own outcome.

use std::collections::HashMap;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use kvik_stats::Direction;

use super::progress::Progress;
use crate::corridor::{Engine, Task, Window};
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::layout::{Ended, Layout, read_on};
use crate::ranges::{Part, Ranges};
use crate::scatter;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// Entries for one file, direction and kind of memory.
pub(crate) struct Entries {
    ranges: Ranges,
    direction: Direction,
    place: Place,
    pieces: Vec<Piece>,
    // For each part of `ranges`, 1 once it was moved, all of it.
    whole: Vec<AtomicUsize>,
    moved: AtomicU64,
    // 1 once a piece waits for `mend`.
    to_mend: AtomicUsize,
    trouble: Mutex<Trouble>,
    progress: Arc<Progress>,
}

/// One entry, as far as it is moved.
struct Piece {
    // Its number in the batch.
    entry: usize,
    range: Range<u64>,
    // Parts that have not ended.
    left: AtomicUsize,
    // How far it was moved from its start without a break, once all parts have ended; and how far any part has come.
    reached: AtomicU64,
    furthest: AtomicU64,
    // `OPEN` and further on; never back.
    state: AtomicUsize,
}

#[derive(Default)]
struct Trouble {
    // Of each piece that failed the first error.
    errors: HashMap<usize, Error>,
    // The first of all.
    first: Option<Error>,
    // What became of some tasks is not known.
    lost: bool,
}

impl Piece {
    fn new(entry: usize, range: Range<u64>) -> Piece {
        Piece {
            entry,
            left: AtomicUsize::new(0),
            reached: AtomicU64::new(range.end),
            furthest: AtomicU64::new(range.start),
            state: AtomicUsize::new(OPEN),
            range,
        }
    }

    fn reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    fn state(&self) -> usize {
        self.state.load(Ordering::Acquire)
    }

    /// Whether nothing is to be looked for in `part`, which has not started.
    fn ends_before(&self, part: &Part) -> bool {
        self.reached() < part.offset && self.state() != TO_MEND
    }

    /// Enters `state` unless it is past it; returns the one before.
    fn advance(&self, state: usize) -> usize {
        self.state.fetch_max(state, Ordering::AcqRel)
    }
}

impl Entries {
    /// The pieces of `ranges`, of which each is named by its entry and range in the file. None is empty.
    ///
    /// Their memory stays valid, and nobody else uses it, until the transfer has settled; that of no two pieces overlaps
    /// if they are to be read.
    pub(crate) fn new(
        ranges: Ranges,
        pieces: impl Iterator<Item = (usize, Range<u64>)>,
        direction: Direction,
        place: Place,
        progress: Arc<Progress>,
    ) -> Entries {
        let pieces: Vec<_> = pieces
            .map(|(entry, range)| Piece::new(entry, range))
            .collect();
        let parts = ranges.parts();
        for part in parts {
            pieces[part.piece].left.fetch_add(1, Ordering::Relaxed);
        }
        Entries {
            whole: parts.iter().map(|_| AtomicUsize::new(0)).collect(),
            moved: AtomicU64::new(0),
            to_mend: AtomicUsize::new(0),
            trouble: Mutex::default(),
            ranges,
            direction,
            place,
            pieces,
            progress,
        }
    }

    /// One part has ended, of `moved` bytes.
    fn part_ended(&self, index: usize, part: &Part, moved: usize) {
        let piece = &self.pieces[part.piece];
        let end = part.offset + moved as u64;
        if moved == part.memory.len() {
            self.whole[index].store(1, Ordering::Release);
        } else {
            piece.reached.fetch_min(end, Ordering::AcqRel);
        }
        if moved > 0 {
            piece.furthest.fetch_max(end, Ordering::AcqRel);
            self.moved.fetch_add(moved as u64, Ordering::Relaxed);
        }
    }

    /// Counts a part as ended; of the last one of its piece, says what the piece has come to if that is known.
    fn conclude(&self, number: usize) -> Option<(usize, Result<usize>)> {
        let piece = &self.pieces[number];
        if piece.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let is_read = self.direction == Direction::Read;
        // A later part found bytes behind an end that an earlier one met: the file grew while it was read.
        if is_read && piece.furthest.load(Ordering::Acquire) > piece.reached() {
            piece.advance(TO_MEND);
        }
        if piece.state() == TO_MEND {
            self.to_mend.store(1, Ordering::Release);
            return None;
        }
        Some(self.close(number))
    }

    /// What a piece has come to, all of whose parts have ended.
    fn close(&self, number: usize) -> (usize, Result<usize>) {
        let piece = &self.pieces[number];
        let moved = piece.reached() - piece.range.start;
        let outcome = match self.error_of(number) {
            Some(error) => Err(self.explained(error, piece, moved)),
            None => Ok(moved as usize),
        };
        piece.advance(CLOSED);
        (piece.entry, outcome)
    }

    /// Notes why a piece cannot be moved; its first reason stands.
    fn failed(&self, number: usize, error: Error) {
        let piece = &self.pieces[number];
        if error.is_abandoned() {
            self.progress.keep(piece.entry);
        }
        let mut trouble = lock(&self.trouble);
        trouble.first.get_or_insert_with(|| error.clone());
        if piece.advance(FAILED) < FAILED {
            trouble.errors.insert(number, error);
        }
    }

    fn error_of(&self, number: usize) -> Option<Error> {
        if self.pieces[number].state() != FAILED {
            return None;
        }
        lock(&self.trouble).errors.get(&number).cloned()
    }

    fn explained(&self, error: Error, piece: &Piece, moved: u64) -> Error {
        let error = error.during(self.op()).at(&self.place);
        error.within(piece.range.clone(), moved)
    }

    fn is_open(&self, number: usize) -> bool {
        self.pieces[number].state() != CLOSED
    }

    fn op(&self) -> Op {
        self.direction.into()
    }

    /// Goes on where parts of pieces came back short, in the order of the file, so that a part that is full now leads on to the
    /// next of its piece.
    ///
    /// # Safety
    /// As for [`Layout::mend`].
    unsafe fn read_on_all(&self, engine: &dyn Engine) {
        for (index, part) in self.ranges.parts().iter().enumerate() {
            let piece = &self.pieces[part.piece];
            let reached = piece.reached();
            if piece.state() != TO_MEND || !(part.offset..part.end()).contains(&reached) {
                continue;
            }
            let mut at = reached;
            if self.whole[index].load(Ordering::Acquire) == 1 {
                at = part.end();
            } else {
                // SAFETY: by the caller's promise, and the part is as long as its memory.
                let outcome =
                    unsafe { read_on(engine, part.offset..part.end(), part.memory, &mut at) };
                self.moved.fetch_add(at - reached, Ordering::Relaxed);
                if let Err(error) = outcome {
                    self.failed(part.piece, error);
                }
            }
            piece.reached.store(at, Ordering::Release);
        }
    }

    /// How far a piece was moved of which parts were never started.
    fn unbroken(&self) -> Vec<u64> {
        let mut ends: Vec<u64> = self.pieces.iter().map(|piece| piece.range.start).collect();
        for (part, whole) in self.ranges.parts().iter().zip(&self.whole) {
            if ends[part.piece] == part.offset && whole.load(Ordering::Acquire) == 1 {
                ends[part.piece] = part.end();
            }
        }
        ends
    }
}

impl Layout for Entries {
    fn batches(&self) -> usize {
        self.ranges.batches()
    }

    fn batch(&self, number: usize) -> Range<usize> {
        self.ranges.batch(number)
    }

    unsafe fn task(&self, index: usize) -> Option<(Task, Window<'_>)> {
        if let [part] = self.ranges.task(index)
            && self.pieces[part.piece].ends_before(part)
        {
            // What comes before it in its piece has failed, or met the end of the data.
            if let Some(concluded) = self.conclude(part.piece) {
                self.progress.tell(iter::once(concluded));
            }
            return None;
        }
        // SAFETY: by the promise of the caller and of `new`'s.
        Some(unsafe { scatter::task_of(&self.ranges, index, self.direction) })
    }

    fn owns(&self, task: &Task, window: &Window<'_>) -> bool {
        scatter::owns(&self.ranges, task, window)
    }

    fn ended(&self, task: &Task, moved: usize, error: Option<Error>) -> Ended {
        let end = task.range.start + moved as u64;
        let indices = self.ranges.parts_of(task.index);
        let parts = self.ranges.task(task.index);
        let is_merged = parts.len() > 1;
        for (index, part) in indices.zip(parts) {
            let moved = (end.clamp(part.offset, part.end()) - part.offset) as usize;
            self.part_ended(index, part, moved);
            match &error {
                // Which of several pieces is to blame is not known: each is read on its own at the end.
                Some(_) if is_merged && end < part.end() => {
                    self.pieces[part.piece].advance(TO_MEND);
                }
                Some(error) if !is_merged => self.failed(part.piece, error.clone()),
                _ => {}
            }
        }
        let concluded = parts.iter().filter_map(|part| self.conclude(part.piece));
        let mut concluded = concluded.peekable();
        // Most tasks of a long entry end none.
        if concluded.peek().is_some() {
            self.progress.tell(concluded);
        }
        Ended::GoOn
    }

    fn given_up(&self, _: usize) {}

    fn lost(&self) {
        lock(&self.trouble).lost = true;
    }

    unsafe fn mend(&self, engine: &dyn Engine) -> Result<()> {
        if self.to_mend.load(Ordering::Acquire) == 1 {
            // SAFETY: by the caller's promise.
            unsafe { self.read_on_all(engine) };
            let open = (0..self.pieces.len()).filter(|number| self.is_open(*number));
            self.progress.tell(open.map(|number| self.close(number)));
        }
        match lock(&self.trouble).first.clone() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn settled(&self, error: Option<&Error>) {
        let open = || (0..self.pieces.len()).filter(|number| self.is_open(*number));
        if open().next().is_some() {
            let why = || Error::new(ErrorKind::Internal, self.op(), "an entry was forgotten");
            let error = error.cloned().unwrap_or_else(why);
            let (ends, is_lost) = (self.unbroken(), lock(&self.trouble).lost);
            let undone = open().map(|number| {
                let piece = &self.pieces[number];
                let moved = if is_lost {
                    0
                } else {
                    ends[number] - piece.range.start
                };
                let error = self.error_of(number).unwrap_or_else(|| error.clone());
                piece.advance(CLOSED);
                (piece.entry, Err(self.explained(error, piece, moved)))
            });
            self.progress.tell(undone);
        }
        self.progress.end();
    }

    fn moved(&self) -> u64 {
        self.moved.load(Ordering::Acquire)
    }

    fn hull(&self) -> Range<u64> {
        self.ranges.hull()
    }

    fn explain(&self, error: Error) -> Error {
        match error.range() {
            Some(_) => error,
            None => error.within(self.hull(), 0),
        }
    }
}

// Nothing has happened to it but progress.
const OPEN: usize = 0;
// Some of it is to be read at the end.
const TO_MEND: usize = 1;
// It has an error.
const FAILED: usize = 2;
// What it has come to was told.
const CLOSED: usize = 3;

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
