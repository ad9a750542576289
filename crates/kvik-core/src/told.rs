//! One worker's tasks, told to those who ask for them.

use kvik_stats::{Direction, TaskSpan, Tasks};

use crate::corridor::{Completion, Task};

/// The tasks that a worker has in flight, if anybody wants to hear of them.
pub(crate) struct Told<'t> {
    tasks: Option<&'t Tasks>,
    direction: Direction,
    flying: Vec<(usize, TaskSpan)>,
}

impl<'t> Told<'t> {
    pub(crate) fn new(tasks: Option<&'t Tasks>, direction: Direction) -> Told<'t> {
        Told {
            tasks,
            direction,
            flying: Vec::new(),
        }
    }

    /// Tells that `engine` starts with `task`.
    pub(crate) fn start(&mut self, engine: &'static str, task: &Task) {
        if let Some(tasks) = self.tasks {
            let span = tasks.begin(engine, task.range.start, task.len());
            self.flying.push((task.index, span));
        }
    }

    /// Tells what became of it. Those that nobody hears of again end as failures when the worker leaves.
    pub(crate) fn end(&mut self, engine: &'static str, completion: &Completion<'_>) {
        if self.tasks.is_none() {
            return;
        }
        let is_it = |(index, _): &(usize, TaskSpan)| *index == completion.task.index;
        if let Some(position) = self.flying.iter().position(is_it) {
            let (_, span) = self.flying.swap_remove(position);
            // A window that is filled knows best how far.
            let moved = match self.direction {
                Direction::Read => completion.window.filled(),
                Direction::Write => completion.moved,
            };
            span.finish(engine, moved as u64, completion.error.is_none());
        }
    }
}
