//! The layout of a plain read or write: one range of a file, one piece of memory, the tasks of a [`Plan`].

use std::ops::Range;

use kvik_stats::Direction;

use crate::corridor::{Engine, Plan, Task, Window};
use crate::error::{Error, Result};
use crate::layout::{Ended, Layout, read_on};
use crate::memory::Memory;
use crate::sync::{AtomicU64, Ordering};

/// A range of a file and the memory it moves to or from.
pub(crate) struct Stretch {
    plan: Plan,
    memory: Memory,
    direction: Direction,
    // The file offset up to which everything was moved, once all tasks have finished: the lowest at which one stopped.
    reached: AtomicU64,
    // The highest file offset that a task has filled up to.
    furthest: AtomicU64,
}

impl Stretch {
    /// The memory is as long as the plan. It stays valid, and nobody else uses it, until the transfer has settled.
    pub(crate) fn new(plan: Plan, memory: Memory, direction: Direction) -> Stretch {
        debug_assert_eq!(memory.len() as u64, plan.range().end - plan.range().start);
        Stretch {
            reached: AtomicU64::new(plan.range().end),
            furthest: AtomicU64::new(plan.range().start),
            plan,
            memory,
            direction,
        }
    }

    fn stop_at(&self, end: u64) {
        self.reached.fetch_min(end, Ordering::AcqRel);
    }
}

impl Layout for Stretch {
    fn batches(&self) -> usize {
        self.plan.len()
    }

    fn batch(&self, number: usize) -> Range<usize> {
        number..number + 1
    }

    unsafe fn task(&self, index: usize) -> Option<(Task, Window<'_>)> {
        let start = self.plan.range().start;
        // `index` lies in a batch, and so in the plan; the fallback is a task of nothing.
        let task = self.plan.task(index).unwrap_or(Task {
            index,
            range: start..start,
        });
        let at = (task.range.start - start) as usize;
        let len = task.len() as usize;
        // SAFETY: the memory is valid by the promise of `task`'s caller and `new`'s, writable for a read and initialised for
        // a write; the task lies in the plan, which is as long as the memory; and the tasks of a plan, each asked for once,
        // do not overlap.
        let window = unsafe { self.memory.window(at, len, self.direction) };
        Some((task, window))
    }

    fn owns(&self, task: &Task, window: &Window<'_>) -> bool {
        let at = task.range.start.checked_sub(self.plan.range().start);
        at.is_some_and(|at| self.memory.is_window(at, task.len(), window))
    }

    fn ended(&self, task: &Task, moved: usize, error: Option<Error>) -> Ended {
        let end = task.range.start + moved as u64;
        if moved > 0 {
            self.furthest.fetch_max(end, Ordering::AcqRel);
        }
        if error.is_some() || end < task.range.end {
            self.stop_at(end);
        }
        match error {
            Some(error) => Ended::Failed(error),
            // The data ended here: tasks further on would find nothing.
            None if end < task.range.end => Ended::Stop,
            None => Ended::GoOn,
        }
    }

    fn given_up(&self, number: usize) {
        if let Some(task) = self.plan.task(number) {
            self.stop_at(task.range.start);
        }
    }

    fn lost(&self) {
        self.stop_at(self.plan.range().start);
    }

    /// Reads on from the first gap if a later task found bytes: the file grew while it was being read.
    unsafe fn mend(&self, engine: &dyn Engine) -> Result<()> {
        let mut at = self.reached.load(Ordering::Acquire);
        if self.direction == Direction::Write || self.furthest.load(Ordering::Acquire) <= at {
            return Ok(());
        }
        // SAFETY: by the caller's promise; plan and memory are equally long.
        let outcome = unsafe { read_on(engine, self.plan.range(), self.memory, &mut at) };
        self.reached.store(at, Ordering::Release);
        outcome
    }

    fn moved(&self) -> u64 {
        self.reached.load(Ordering::Acquire) - self.plan.range().start
    }

    fn hull(&self) -> Range<u64> {
        self.plan.range()
    }

    fn explain(&self, error: Error) -> Error {
        error.within(self.hull(), self.moved())
    }
}
