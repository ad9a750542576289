//! An engine that does to each task what a test says, for promises that no real file can be brought to break.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use kvik::corridor::{Call, Completion, Engine, Lane, Task, Window};
use kvik::stats::Backend;
use kvik::{Error, ErrorKind, Op, Place, Result, ThreadPool};

use crate::pattern::byte_at;

/// What becomes of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All its bytes are moved.
    Move,
    /// It fails, with nothing moved.
    Fail,
    /// The engine panics.
    Panic,
}

type Script = Box<dyn Fn(&Task) -> Step + Send + Sync>;

/// Fills windows with the pattern 0 by their offsets, as far as the script lets it.
pub struct Scripted(Script);

impl Scripted {
    /// An engine that asks `script` before each task.
    pub fn new(script: impl Fn(&Task) -> Step + Send + Sync + 'static) -> Scripted {
        Scripted(Box::new(script))
    }

    /// An engine whose tasks come to `gate`, and move all their bytes when it opens.
    #[must_use]
    pub fn behind(gate: &Arc<Gate>) -> Scripted {
        let gate = Arc::clone(gate);
        Scripted::new(move |_| {
            gate.pass();
            Step::Move
        })
    }

    /// A call on it, with a pool of its own.
    #[must_use]
    pub fn call(self, threads: usize, task_size: u64) -> Call {
        let engine: Arc<dyn Engine> = Arc::new(self);
        Call {
            for_device: Arc::clone(&engine),
            cufile: None,
            bounce_buffer_size: 16 << 20,
            engine,
            pool: ThreadPool::new("scripted"),
            threads,
            task_size,
            deadline: None,
            place: Place::File(std::path::Path::new("scripted").into()),
            name: "scripted".into(),
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
            started: None,
        }))
    }
}

struct ScriptedLane<'w> {
    engine: &'w Scripted,
    started: Option<(Task, Window<'w>)>,
}

impl<'w> Lane<'w> for ScriptedLane<'w> {
    fn room(&self) -> usize {
        1 - self.in_flight()
    }

    fn in_flight(&self) -> usize {
        usize::from(self.started.is_some())
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        self.started = Some((task, window));
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        let Some((task, mut window)) = self.started.take() else {
            return;
        };
        let (moved, error) = match (self.engine.0)(&task) {
            Step::Move => (task.len() as usize, None),
            Step::Fail => (
                0,
                Some(Error::new(
                    ErrorKind::Io,
                    Op::Read,
                    format!("task {} was told to fail", task.index),
                )),
            ),
            Step::Panic => panic!("task {} was told to panic", task.index),
        };
        if let Window::Fill(window) = &mut window {
            (0..moved as u64).for_each(|at| {
                window.put(&[byte_at(0, task.range.start + at)]);
            });
        }
        done.push(Completion {
            task,
            window,
            moved,
            error,
        });
    }
}

/// A door that tasks wait at until the test opens it, and that knows how many came.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Arc<Gate> {
        Arc::default()
    }

    /// Comes to the gate and waits until it is open.
    pub fn pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(open, _)| !*open));
    }

    /// Opens it for all who wait and all who come.
    pub fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = true;
        self.changed.notify_all();
    }

    /// How many have come so far.
    pub fn came(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Waits until `count` have come; fails after a minute.
    #[track_caller]
    pub fn wait_for(&self, count: usize) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = Duration::from_secs(60);
        let (state, late) = self
            .changed
            .wait_timeout_while(state, limit, |(_, came)| *came < count)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(
            !late.timed_out(),
            "{} of {count} came to the gate within a minute",
            state.1
        );
    }
}
