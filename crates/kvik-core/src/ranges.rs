//! Plans a read or write of many ranges: what is cut, what is read in one go, what a worker takes at a time.
//!
//! Pure: offsets, lengths and addresses go in and come out; no file is asked and no memory touched.

use std::ops::Range;

use crate::corridor::Plan;
use crate::error::{Error, ErrorKind, Op, Result};
use crate::memory::Memory;

/// A stretch of the file that belongs to one stretch of memory: a whole piece of the call, or a part of a long one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Where it starts in the file.
    pub(crate) offset: u64,
    /// Its memory, which is as long as it is.
    pub(crate) memory: Memory,
    /// The number of its piece in the call.
    pub(crate) piece: usize,
    /// Where it starts in its piece.
    pub(crate) at: usize,
}

impl Part {
    /// Where it ends in the file.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.memory.len() as u64
    }
}

/// How parts become reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The longest part; longer pieces are cut.
    pub(crate) task_size: u64,
    /// Up to so many bytes that nobody asked for are read along where that makes one read of two.
    pub(crate) gap: u64,
    /// The longest read of several parts.
    pub(crate) merged: u64,
    /// The most parts in a read.
    pub(crate) parts: usize,
}

/// Parts in the order of the file, those that are moved in one go side by side.
#[derive(Debug)]
pub(crate) struct Ranges {
    parts: Vec<Part>,
    // Where each task starts among the parts, and where the last one ends.
    tasks: Vec<usize>,
    // Where each batch starts among the tasks, and where the last one ends.
    batches: Vec<usize>,
    is_cut: bool,
}

impl Ranges {
    /// Plans to move `pieces`, each an offset in the file and its memory.
    ///
    /// Pieces that overlap are read one by one.
    ///
    /// # Errors
    /// `Misuse` if the task size is 0, or if a piece has bytes beyond 2^63 - 1, where no file has any.
    pub(crate) fn new(
        pieces: impl ExactSizeIterator<Item = (u64, Memory)>,
        limits: &Limits,
    ) -> Result<Ranges> {
        let mut parts = Vec::with_capacity(pieces.len());
        let mut is_cut = false;
        for (piece, (offset, memory)) in pieces.enumerate() {
            let len = memory.len() as u64;
            if len == 0 && limits.task_size > 0 {
                continue;
            }
            if len <= limits.task_size && offset <= LAST - len {
                parts.push(Part {
                    offset,
                    memory,
                    piece,
                    at: 0,
                });
                continue;
            }
            is_cut = true;
            let plan = Plan::new(offset, len, limits.task_size)?;
            parts.extend(plan.tasks().map(|task| {
                let at = (task.range.start - offset) as usize;
                Part {
                    offset: task.range.start,
                    memory: memory.part(at, task.len() as usize),
                    piece,
                    at,
                }
            }));
        }
        // Ranges that come from an index are sorted as a rule, and this sees it in one pass.
        parts.sort_unstable_by_key(|part| part.offset);
        let tasks = coalesce(&parts, limits);
        let batches = batches(&parts, &tasks, limits.task_size.min(BATCH));
        Ok(Ranges {
            parts,
            tasks,
            batches,
            is_cut,
        })
    }

    /// All parts, in the order of the file.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts of task `index`: at least one, in the order of the file, without overlap.
    pub(crate) fn task(&self, index: usize) -> &[Part] {
        &self.parts[self.parts_of(index)]
    }

    /// The same, for a number that may be no task's.
    pub(crate) fn get(&self, index: usize) -> Option<&[Part]> {
        match self.tasks.get(index..)? {
            [start, end, ..] => self.parts.get(*start..*end),
            _ => None,
        }
    }

    /// The numbers of the parts of task `index`.
    pub(crate) fn parts_of(&self, index: usize) -> Range<usize> {
        self.tasks[index]..self.tasks[index + 1]
    }

    /// Whether a piece was longer than a task.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// How many batches there are.
    pub(crate) fn batches(&self) -> usize {
        self.batches.len() - 1
    }

    /// The tasks of batch `number`.
    pub(crate) fn batch(&self, number: usize) -> Range<usize> {
        self.batches[number]..self.batches[number + 1]
    }

    /// From the first byte to the last.
    pub(crate) fn hull(&self) -> Range<u64> {
        let start = self.parts.first().map_or(0, |part| part.offset);
        let end = self.parts.iter().map(Part::end).max().unwrap_or(start);
        start..end
    }

    /// An error if two parts have a byte in common, of which a write could not say whose it becomes.
    pub(crate) fn check_apart(&self) -> Result<()> {
        match self
            .parts
            .windows(2)
            .find(|two| two[1].offset < two[0].end())
        {
            None => Ok(()),
            Some(two) => {
                let why = format!(
                    "piece {}, {}..{}, and piece {}, {}..{}, overlap: which bytes win is not defined",
                    two[0].piece,
                    two[0].offset,
                    two[0].end(),
                    two[1].piece,
                    two[1].offset,
                    two[1].end()
                );
                Err(Error::new(ErrorKind::Misuse, Op::Write, why))
            }
        }
    }
}

/// Where tasks start among the parts, and the end: neighbours are one task as far as the limits let them.
fn coalesce(parts: &[Part], limits: &Limits) -> Vec<usize> {
    let mut tasks = Vec::with_capacity(parts.len() + 1);
    tasks.push(0);
    let mut first = 0;
    for (next, two) in (1..).zip(parts.windows(2)) {
        let (end, part) = (two[0].end(), &two[1]);
        let joins = part.offset >= end
            && part.offset - end <= limits.gap
            && part.end() - parts[first].offset <= limits.merged
            && next - first < limits.parts;
        if !joins {
            tasks.push(next);
            first = next;
        }
    }
    if !parts.is_empty() {
        tasks.push(parts.len());
    }
    tasks
}

/// Where batches start among the tasks, and the end: as many small tasks to a batch as make up `size` bytes.
fn batches(parts: &[Part], tasks: &[usize], size: u64) -> Vec<usize> {
    let mut batches = vec![0];
    let mut weight = 0;
    for (index, bounds) in tasks.windows(2).enumerate() {
        let adds = parts[bounds[1] - 1].end() - parts[bounds[0]].offset + TASK_WEIGHT;
        if weight > 0 && weight + adds > size {
            batches.push(index);
            weight = 0;
        }
        weight += adds;
    }
    if weight > 0 {
        batches.push(tasks.len() - 1);
    }
    batches
}

/// What a system call costs, in bytes copied from the page cache: about half a microsecond.
pub(crate) const TASK_WEIGHT: u64 = 4096;

// The largest offset; no memory is longer.
const LAST: u64 = i64::MAX as u64;

// A batch is some tens of microseconds of work: a hundred times what taking it costs when several cores do so at once,
// and little enough that all are done at about the same time.
const BATCH: u64 = 256 << 10;

#[cfg(test)]
#[path = "ranges_tests.rs"]
mod tests;
