//! The layout of a read or write of many ranges: each of its tasks moves one range of the file, for one or several pieces.

use std::mem;
use std::ops::Range;

use kvik_stats::Direction;

use crate::corridor::{Engine, FillWindow, Task, Window};
use crate::error::{Error, Result};
use crate::layout::{Ended, Layout, read_on};
use crate::ranges::{Part, Ranges};
use crate::sync::{Mutex, lock};

/// Pieces of a file and the memory that each of them moves to or from.
pub(crate) struct Scatter {
    ranges: Ranges,
    direction: Direction,
    // How many bytes of each piece are moved, from its start without a break, once all tasks have ended well. They begin
    // as the lengths: only the few pieces that meet the end of the data are written to.
    counts: Mutex<Vec<usize>>,
}

impl Scatter {
    /// Pieces of the given lengths, as they were planned.
    ///
    /// Their memory stays valid, and nobody else uses it, until the transfer has settled; that of no two pieces overlaps
    /// if they are to be read.
    pub(crate) fn new(ranges: Ranges, lengths: Vec<usize>, direction: Direction) -> Scatter {
        Scatter {
            ranges,
            direction,
            counts: Mutex::new(lengths),
        }
    }

    /// Takes the counts out of a transfer that has settled.
    pub(crate) fn take_counts(&self) -> Vec<usize> {
        mem::take(&mut lock(&self.counts))
    }
}

impl Layout for Scatter {
    fn batches(&self) -> usize {
        self.ranges.batches()
    }

    fn batch(&self, number: usize) -> Range<usize> {
        self.ranges.batch(number)
    }

    unsafe fn task(&self, index: usize) -> Option<(Task, Window<'_>)> {
        // SAFETY: by the promise of the caller and of `new`'s.
        Some(unsafe { task_of(&self.ranges, index, self.direction) })
    }

    fn owns(&self, task: &Task, window: &Window<'_>) -> bool {
        owns(&self.ranges, task, window)
    }

    fn ended(&self, task: &Task, moved: usize, error: Option<Error>) -> Ended {
        let end = task.range.start + moved as u64;
        if end == task.range.end && error.is_none() {
            return Ended::GoOn;
        }
        let parts = self.ranges.task(task.index);
        let moved = |part: &Part| end.clamp(part.offset, part.end()) - part.offset;
        let unfinished = parts.iter().filter(|part| end < part.end());
        if let Some(error) = error {
            // An engine that moved all has no reason for an error; if it has one, the last part bears it.
            let part = unfinished
                .min_by_key(|part| part.offset)
                .unwrap_or(&parts[parts.len() - 1]);
            return Ended::Failed(error.within(part.offset..part.end(), moved(part)));
        }
        // The data ends here for these parts. Others lie before the end, or behind it in a file that grows.
        let mut counts = lock(&self.counts);
        for part in unfinished {
            let count = &mut counts[part.piece];
            *count = (*count).min(part.at + moved(part) as usize);
        }
        Ended::GoOn
    }

    fn given_up(&self, _: usize) {}

    fn lost(&self) {}

    /// Reads on where a part of a long piece came back short: in a file that grew the part behind it may have bytes.
    unsafe fn mend(&self, engine: &dyn Engine) -> Result<()> {
        if self.direction == Direction::Write || !self.ranges.is_cut() {
            return Ok(());
        }
        let mut counts = lock(&self.counts);
        // In the order of the file, so that a part that is full now leads on to the next of its piece.
        for part in self.ranges.parts() {
            let count = &mut counts[part.piece];
            let Some(moved) = count
                .checked_sub(part.at)
                .filter(|moved| *moved < part.memory.len())
            else {
                continue;
            };
            let mut at = part.offset + moved as u64;
            // SAFETY: by the caller's promise, and the part is as long as its memory.
            let outcome = unsafe { read_on(engine, part.offset..part.end(), part.memory, &mut at) };
            *count = part.at + (at - part.offset) as usize;
            outcome.map_err(|error| error.within(part.offset..part.end(), at - part.offset))?;
        }
        Ok(())
    }

    fn moved(&self) -> u64 {
        lock(&self.counts).iter().map(|count| *count as u64).sum()
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

/// Task `index` of `ranges` with its window.
///
/// # Safety
/// It is asked for once for as long as the borrow lasts, and the memory of its parts is valid for that long: writable, and of no
/// other window, to be read into; initialised, and written to by nobody, to be written from. Only of reads into memory of the
/// host are there tasks of several parts.
pub(crate) unsafe fn task_of(
    ranges: &Ranges,
    index: usize,
    direction: Direction,
) -> (Task, Window<'_>) {
    let parts = ranges.task(index);
    let range = hull(parts);
    let window = match parts {
        [part] => {
            let memory = part.memory;
            // SAFETY: by the caller's promise; every part belongs to one task, and each of these is asked for once.
            unsafe { memory.window(0, memory.len(), direction) }
        }
        // SAFETY: as above.
        parts => Window::Fill(unsafe { FillWindow::of_parts(parts) }),
    };
    (Task { index, range }, window)
}

/// Whether `window` is the one that [`task_of`] made for `task`.
pub(crate) fn owns(ranges: &Ranges, task: &Task, window: &Window<'_>) -> bool {
    let Some(parts) = ranges.get(task.index) else {
        return false;
    };
    match parts {
        _ if task.range != hull(parts) => false,
        [part] => part.memory.is_window(0, task.len(), window),
        parts => window.is_of_parts(parts),
    }
}

/// From the first byte of a task's parts to the last.
fn hull(parts: &[Part]) -> Range<u64> {
    parts[0].offset..parts[parts.len() - 1].end()
}
