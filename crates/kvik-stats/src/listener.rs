//! Who hears of operations, and the span that tells them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use arc_swap::ArcSwapOption;

use crate::names;
use crate::operation::{Operation, Outcome, Start};

/// Somebody who wants to hear of every logical operation of the process.
///
/// Calls come inline, on the thread that starts or completes the operation, from many threads at once: be quick. A panic is
/// caught and counted in [`names::LISTENER_PANICS`]. Operations that a listener itself starts are not reported to anybody (see
/// [`in_listener`]), else they would report themselves without end.
pub trait Listener: Send + Sync {
    /// An operation has started.
    fn started(&self, operation: &Operation);

    /// An operation that was reported as started is over; told exactly once, unless the listener was stopped in between.
    fn finished(&self, operation: &Operation, outcome: &Outcome);
}

/// Registers `listener` for the operations that start from now on, until the returned guard is dropped.
///
/// Operations in flight now are not reported to it, neither start nor finish.
pub fn listen(listener: Arc<dyn Listener>) -> Listening {
    let entry = Arc::new(Entry {
        listener,
        live: AtomicBool::new(true),
    });
    update(|list| list.push(Arc::clone(&entry)));
    LISTENING.fetch_add(1, Ordering::Release);
    Listening { entry }
}

/// A listener that is registered; dropping it ends that.
///
/// No call of the listener begins after the drop, except one that another thread has already decided on; operations in flight at
/// the drop are not reported to it as finished.
#[must_use = "dropping this stops the listener at once"]
pub struct Listening {
    entry: Arc<Entry>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.entry.live.store(false, Ordering::Release);
        LISTENING.fetch_sub(1, Ordering::Release);
        update(|list| list.retain(|entry| !Arc::ptr_eq(entry, &self.entry)));
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").finish_non_exhaustive()
    }
}

/// Reports that an operation starts. The returned span reports its end.
///
/// Call it once per call of the user, after the arguments were found good. While nobody listens it costs one relaxed load, and the
/// span is empty.
#[inline]
pub fn begin(start: Start<'_>) -> Span {
    // Relaxed is enough: whoever registered a listener before this call, in an order the caller can know of, is seen; and one
    // registered at the same time may miss this operation anyway.
    if LISTENING.load(Ordering::Relaxed) == 0 {
        return Span { active: None };
    }
    begin_heard(start)
}

#[cold]
fn begin_heard(start: Start<'_>) -> Span {
    if in_listener() {
        return Span { active: None };
    }
    let Some(list) = LIST.load_full() else {
        return Span { active: None };
    };
    let operation = Operation {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        backend: start.backend,
        direction: start.direction,
        memory: start.memory,
        source: Arc::clone(start.source),
        offset: start.offset,
        size: start.size,
        // After the list was read: so no listener hears of an operation older than itself.
        start: Instant::now(),
    };
    // The span exists before the first listener is told, so nothing on the way can lose the finish.
    let span = Span {
        active: Some(Active { operation, list }),
    };
    if let Some(active) = &span.active {
        active.tell(|listener, operation| listener.started(operation));
    }
    span
}

/// Whether the calling thread is inside a call of a [`Listener`].
///
/// A door may refuse to work there; operations begun there are not reported.
pub fn in_listener() -> bool {
    IN_LISTENER.get()
}

/// An operation in flight. [`finish`](Span::finish) reports its end; a span that is dropped, also by a panic, reports a failure.
#[must_use = "a span that is dropped at once reports a failed operation"]
pub struct Span {
    active: Option<Active>,
}

struct Active {
    operation: Operation,
    /// Those who heard of the start; they and nobody else hear of the finish.
    list: Arc<List>,
}

impl Span {
    /// Reports the end: `bytes` were moved and the call returns success (`ok`) or an error. Failures are reported with 0 bytes.
    #[inline]
    pub fn finish(mut self, bytes: u64, ok: bool) {
        self.close(bytes, ok);
    }

    #[inline]
    fn close(&mut self, bytes: u64, ok: bool) {
        if let Some(active) = self.active.take() {
            active.finished(if ok { bytes } else { 0 }, ok);
        }
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        self.close(0, false);
    }
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Span")
            .field(&self.active.as_ref().map(|active| &active.operation))
            .finish()
    }
}

impl Active {
    #[cold]
    fn finished(self, bytes: u64, ok: bool) {
        let outcome = Outcome {
            bytes,
            ok,
            end: Instant::now(),
        };
        self.tell(|listener, operation| listener.finished(operation, &outcome));
    }

    fn tell(&self, what: impl Fn(&dyn Listener, &Operation)) {
        // Restored rather than cleared: a span may end inside a listener, when the listener owns what held it.
        let before = IN_LISTENER.replace(true);
        for entry in self.list.iter() {
            if !entry.live.load(Ordering::Acquire) {
                continue;
            }
            // Unwind safety is the listener's own affair: nothing of ours is half done while it runs.
            let told = catch_unwind(AssertUnwindSafe(|| what(&*entry.listener, &self.operation)));
            if let Err(payload) = told {
                names::LISTENER_PANICS.increment();
                // Leaked on purpose: a payload's own destructor may panic again, and this may run in a worker or in a drop.
                std::mem::forget(payload);
            }
        }
        IN_LISTENER.set(before);
    }
}

struct Entry {
    listener: Arc<dyn Listener>,
    live: AtomicBool,
}

type List = Vec<Arc<Entry>>;

fn update(change: impl Fn(&mut List)) {
    LIST.rcu(|old| {
        let mut list = old.as_deref().cloned().unwrap_or_default();
        change(&mut list);
        if list.is_empty() {
            None
        } else {
            Some(Arc::new(list))
        }
    });
}

thread_local! { static IN_LISTENER: Cell<bool> = const { Cell::new(false) } }

/// Replaced as a whole and read without a lock.
static LIST: ArcSwapOption<List> = ArcSwapOption::const_empty();
/// How many are registered; a word of its own, so that the silent path reads nothing else.
static LISTENING: AtomicUsize = AtomicUsize::new(0);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

#[cfg(test)]
#[path = "listener_tests.rs"]
pub(crate) mod tests;
