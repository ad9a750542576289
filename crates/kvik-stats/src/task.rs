//! Physical operations: the pieces of an operation that engines move, for those who ask for them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::listener::{List, Wanted};
use crate::operation::{Operation, Outcome};
use crate::span::tell;
use crate::trace;

/// A piece of an operation that one engine moves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Task {
    /// The operation that it is a part of.
    pub operation: Arc<Operation>,
    /// Which engine moves it: `posix`, `uring`, `cufile` and the like. Where one engine gave way to another in between, the start
    /// names the first and the end the last.
    pub engine: &'static str,
    /// Its first byte, from the start of the file or object.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
    /// When a worker started it.
    pub start: Instant,
}

impl Task {
    /// How long it waited for a worker, or for those of the same operation before it.
    pub fn waited(&self) -> Duration {
        self.start.saturating_duration_since(self.operation.start)
    }
}

/// What tells of the tasks of one operation. It may be used on many threads, until the operation's own end is told.
#[derive(Clone)]
pub struct Tasks {
    operation: Arc<Operation>,
    list: Option<Arc<List>>,
    trace: tracing::Span,
}

impl Tasks {
    pub(crate) fn new(
        operation: &Operation,
        list: &Option<Arc<List>>,
        trace: &tracing::Span,
    ) -> Tasks {
        Tasks {
            operation: Arc::new(operation.clone()),
            list: list.clone(),
            trace: trace.clone(),
        }
    }

    /// Reports that `engine` starts with the `size` bytes at `offset`. The returned span reports the end.
    pub fn begin(&self, engine: &'static str, offset: u64, size: u64) -> TaskSpan {
        let task = Task {
            operation: Arc::clone(&self.operation),
            engine,
            offset,
            size,
            start: Instant::now(),
        };
        let span = TaskSpan {
            trace: trace::task(&self.trace, &task),
            task: Some(task),
            list: self.list.clone(),
        };
        if let Some(task) = &span.task {
            tell(&span.list, Wanted::Tasks, |listener| {
                listener.task_started(task)
            });
        }
        span
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tasks").field(&self.operation).finish()
    }
}

/// A task in flight. [`finish`](TaskSpan::finish) reports its end; one that is dropped reports a failure.
#[must_use = "a span that is dropped at once reports a failed task"]
pub struct TaskSpan {
    task: Option<Task>,
    list: Option<Arc<List>>,
    trace: tracing::Span,
}

impl TaskSpan {
    /// Reports the end: `engine` moved `bytes`, with success or without. Unlike an operation's, bytes that came before an error
    /// count.
    pub fn finish(mut self, engine: &'static str, bytes: u64, ok: bool) {
        if let Some(task) = &mut self.task {
            task.engine = engine;
        }
        self.close(bytes, ok);
    }

    fn close(&mut self, bytes: u64, ok: bool) {
        let Some(task) = self.task.take() else {
            return;
        };
        let outcome = Outcome {
            bytes,
            ok,
            end: Instant::now(),
        };
        trace::end(&self.trace, &outcome);
        tell(&self.list, Wanted::Tasks, |listener| {
            listener.task_finished(&task, &outcome)
        });
    }
}

impl Drop for TaskSpan {
    fn drop(&mut self) {
        self.close(0, false);
    }
}

impl fmt::Debug for TaskSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskSpan").field(&self.task).finish()
    }
}
