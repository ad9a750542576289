//! Spans for `tracing`: one per operation, below the caller's, and one per task below that.
//!
//! Operations are of the level `DEBUG` and the target `kvik::operation`, tasks of `TRACE` and `kvik::task`. Both end with `bytes` and
//! `ok`. What names the object is what errors and listeners are told, without secrets.

use tracing::level_filters::LevelFilter;
use tracing::{Span, field};

use crate::operation::{Operation, Outcome};
use crate::task::Task;

/// Whether anybody may want spans of operations.
#[inline]
pub(crate) fn is_on() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG
}

/// Whether anybody may want spans of tasks.
pub(crate) fn is_on_for_tasks() -> bool {
    LevelFilter::current() >= LevelFilter::TRACE
}

pub(crate) fn operation(operation: &Operation) -> Span {
    if !is_on() {
        return Span::none();
    }
    tracing::debug_span!(
        target: "kvik::operation",
        "operation",
        id = operation.id,
        backend = operation.backend.name(),
        direction = operation.direction.name(),
        memory = operation.memory.name(),
        source = &*operation.source,
        offset = operation.offset,
        size = operation.size,
        bytes = field::Empty,
        ok = field::Empty,
    )
}

pub(crate) fn task(operation: &Span, task: &Task) -> Span {
    tracing::trace_span!(
        target: "kvik::task",
        parent: operation,
        "task",
        operation = task.operation.id,
        engine = task.engine,
        offset = task.offset,
        size = task.size,
        bytes = field::Empty,
        ok = field::Empty,
    )
}

/// Notes what became of it; the span closes when the last clone of it goes.
pub(crate) fn end(span: &Span, outcome: &Outcome) {
    // Of a span that nobody wants, fields would be looked up by name all the same.
    if span.is_disabled() {
        return;
    }
    span.record("bytes", outcome.bytes);
    span.record("ok", outcome.ok);
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
