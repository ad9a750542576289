//! The span of an operation: what tells the listeners of its start and of its end.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::listener::{
    Inside, List, Listener, Wanted, in_listener, is_anybody_listening, listeners,
};
use crate::names;
use crate::operation::{Operation, Outcome, Start};
use crate::task::Tasks;
use crate::trace;

/// Reports that an operation starts. The returned span reports its end.
///
/// Call it once per call of the user, after the arguments were found good. While nobody listens or traces it costs two relaxed
/// loads, and the span is empty.
#[inline]
pub fn begin(start: Start<'_>) -> Span {
    if !is_anybody_listening() && !trace::is_on() {
        return Span { active: None };
    }
    begin_heard(start)
}

#[inline(never)]
fn begin_heard(start: Start<'_>) -> Span {
    if in_listener() {
        return Span { active: None };
    }
    let list = listeners();
    let operation = Operation {
        id: next_id(),
        backend: start.backend,
        direction: start.direction,
        memory: start.memory,
        source: Arc::clone(start.source),
        offset: start.offset,
        size: start.size,
        // After the list was read: so no listener hears of an operation older than itself.
        start: Instant::now(),
    };
    let trace = trace::operation(&operation);
    if list.is_none() && trace.is_disabled() {
        return Span { active: None };
    }
    // The span exists before the first listener is told, so nothing on the way can lose the finish.
    let span = Span {
        active: Some(Active {
            operation,
            list,
            trace,
        }),
    };
    if let Some(active) = &span.active {
        tell(&active.list, Wanted::Operations, |listener| {
            listener.started(&active.operation)
        });
    }
    span
}

/// An operation in flight. [`finish`](Span::finish) reports its end; a span that is dropped, also by a panic, reports a failure.
#[must_use = "a span that is dropped at once reports a failed operation"]
pub struct Span {
    pub(crate) active: Option<Active>,
}

pub(crate) struct Active {
    operation: Operation,
    /// Those who heard of the start; they and nobody else hear of the finish.
    list: Option<Arc<List>>,
    /// Its span for `tracing`, if anybody wants that.
    trace: tracing::Span,
}

impl Span {
    /// Reports the end: `bytes` were moved and the call returns success (`ok`) or an error. Failures are reported with 0 bytes.
    #[inline]
    pub fn finish(mut self, bytes: u64, ok: bool) {
        self.close(bytes, ok);
    }

    /// What tells of the tasks of this operation; `None`, and nothing to be done, where nobody wants to hear of them.
    #[inline]
    pub fn tasks(&self) -> Option<Tasks> {
        self.active.as_ref().and_then(Active::tasks)
    }

    #[inline]
    fn close(&mut self, bytes: u64, ok: bool) {
        if let Some(active) = self.active.take() {
            active.finished(bytes, ok);
        }
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        self.close(0, false);
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Span")
            .field(&self.active.as_ref().map(|active| &active.operation))
            .finish()
    }
}

impl Active {
    #[inline(never)]
    fn finished(self, bytes: u64, ok: bool) {
        let outcome = Outcome::now(bytes, ok);
        trace::end(&self.trace, &outcome);
        tell(&self.list, Wanted::Operations, |listener| {
            listener.finished(&self.operation, &outcome)
        });
    }

    #[cold]
    fn tasks(&self) -> Option<Tasks> {
        let wanted = |list: &Arc<List>| list.iter().any(|entry| entry.wanted == Wanted::Tasks);
        let wanted = self.list.as_ref().is_some_and(wanted) || trace::is_on_for_tasks();
        wanted.then(|| Tasks::new(&self.operation, &self.list, &self.trace))
    }
}

/// Tells those of `list` who want to hear of this, and are registered still.
pub(crate) fn tell(list: &Option<Arc<List>>, what: Wanted, how: impl Fn(&dyn Listener)) {
    let Some(list) = list else {
        return;
    };
    let _inside = Inside::mark();
    for entry in list.iter() {
        if what == Wanted::Tasks && entry.wanted != Wanted::Tasks {
            continue;
        }
        let Some(_visit) = entry.gate.enter() else {
            continue;
        };
        // Unwind safety is the listener's own affair: nothing of ours is half done while it runs.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| how(&*entry.listener))) {
            names::LISTENER_PANICS.increment();
            // Leaked on purpose: a payload's own destructor may panic again, and this may run in a worker or in a drop.
            std::mem::forget(payload);
        }
    }
}

/// A number that no other operation of the process has. Threads take them by the block, so that they seldom share a line of the
/// cache for it.
fn next_id() -> u64 {
    thread_local! { static NEXT: Cell<u64> = const { Cell::new(0) } }
    NEXT.with(|next| {
        let id = match next.get() {
            id if id % BLOCK == 0 => BLOCKS.fetch_add(1, Ordering::Relaxed) * BLOCK + 1,
            id => id,
        };
        // The last of a block leaves a multiple behind, and so does no other.
        next.set(if id % BLOCK == BLOCK - 1 { 0 } else { id + 1 });
        id
    })
}

/// Numbers in a block, of which the multiple itself is not used: 0 is nobody's number.
const BLOCK: u64 = 1 << 8;
static BLOCKS: AtomicU64 = AtomicU64::new(0);
