//! An engine over a `Vec<u8>` that does to each task what a test says, for tests and models of the corridor.
#![allow(dead_code, reason = "each test crate uses its part")]

use std::sync::Arc;

use kvik_core::corridor::{Call, Completion, Engine, Lane, Task, Window};
use kvik_core::{Error, ErrorKind, Op, Place, Result, ThreadPool};
use kvik_stats::Backend;

/// What becomes of a task.
pub(crate) enum Step {
    /// All bytes that the data has for it are moved.
    Move,
    /// So many bytes are moved, then it fails.
    FailAfter(usize),
    /// The data ends after so many bytes of it.
    EndAfter(usize),
    /// The engine panics.
    Panic,
}

type Script = dyn Fn(&Task) -> Step + Send + Sync;

/// Moves bytes from `data`, task by task as `script` says, with up to `depth` tasks in flight that complete in reverse. One
/// that `swaps` gives the last two of them each other's window back.
pub(crate) struct Scripted {
    pub(crate) data: Vec<u8>,
    pub(crate) depth: usize,
    pub(crate) scatters: bool,
    pub(crate) swaps: bool,
    pub(crate) script: Box<Script>,
}

impl Scripted {
    pub(crate) fn new(
        len: usize,
        script: impl Fn(&Task) -> Step + Send + Sync + 'static,
    ) -> Scripted {
        Scripted {
            data: pattern(len),
            depth: 1,
            scatters: false,
            swaps: false,
            script: Box::new(script),
        }
    }
}

impl Engine for Scripted {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        Ok(Box::new(ScriptedLane {
            engine: self,
            started: Vec::new(),
        }))
    }

    fn scatters(&self) -> bool {
        self.scatters
    }
}

struct ScriptedLane<'w> {
    engine: &'w Scripted,
    started: Vec<(Task, Window<'w>)>,
}

impl<'w> Lane<'w> for ScriptedLane<'w> {
    fn room(&self) -> usize {
        self.engine.depth - self.started.len()
    }

    fn in_flight(&self) -> usize {
        self.started.len()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        self.started.push((task, window));
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        if let [.., (first, _), (second, _)] = &mut self.started[..]
            && self.engine.swaps
        {
            std::mem::swap(first, second);
        }
        let Some((task, mut window)) = self.started.pop() else {
            return;
        };
        let from = (task.range.start as usize).min(self.engine.data.len());
        let to = (task.range.end as usize).min(self.engine.data.len());
        let (limit, error) = match (self.engine.script)(&task) {
            Step::Move => (usize::MAX, None),
            Step::FailAfter(count) => (
                count,
                Some(Error::new(ErrorKind::Io, Op::Read, "the device gave up")),
            ),
            Step::EndAfter(count) => (count, None),
            Step::Panic => panic!("task {} was told to", task.index),
        };
        let moved = (to - from).min(limit);
        if let Window::Fill(window) = &mut window {
            window.put(&self.engine.data[from..from + moved]);
        }
        done.push(Completion {
            task,
            window,
            moved,
            error,
        });
    }
}

/// Bytes that differ from their neighbours and from those 256 further on.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i ^ (i >> 8).wrapping_mul(31)) as u8)
        .collect()
}

/// A call on `engine` with a pool of its own.
pub(crate) fn call(engine: Scripted, threads: usize, task_size: u64) -> Call {
    let engine: Arc<dyn Engine> = Arc::new(engine);
    Call {
        for_device: Arc::clone(&engine),
        cufile: None,
        bounce_buffer_size: 16 << 20,
        engine,
        pool: ThreadPool::new("test"),
        threads,
        task_size,
        deadline: None,
        place: Place::File(std::path::Path::new("scripted").into()),
        name: "scripted".into(),
    }
}
