//! Who hears of operations: the trait, the registration and the list of those who are registered.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arc_swap::ArcSwapOption;

use crate::gate::Gate;
use crate::operation::{Operation, Outcome};
use crate::task::Task;

/// Somebody who wants to hear of every logical operation of the process.
///
/// Calls come inline, on the thread that starts or completes the operation, from many threads at once: be quick. A panic is
/// caught and counted in [`names::LISTENER_PANICS`](crate::names::LISTENER_PANICS).
///
/// A listener must not call back into kvik: it would report itself without end, or wait for what waits for it. Every door that
/// is asked from inside a call refuses with an error, see [`InListener`].
pub trait Listener: Send + Sync {
    /// An operation has started.
    fn started(&self, operation: &Operation);

    /// An operation that was reported as started is over; told exactly once, unless the listener was stopped in between. Whoever
    /// waits for the operation is told afterwards.
    fn finished(&self, operation: &Operation, outcome: &Outcome);

    /// A worker starts a task of an operation. Only for those who asked for [`Wanted::Tasks`].
    fn task_started(&self, task: &Task) {
        let _ = task;
    }

    /// A task is over: its engine has moved its bytes, or not. Only for those who asked for [`Wanted::Tasks`].
    fn task_finished(&self, task: &Task, outcome: &Outcome) {
        let _ = (task, outcome);
    }
}

/// What a [`Listener`] is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wanted {
    /// The logical operations: one per call of the user.
    #[default]
    Operations,
    /// These, and the tasks into which they were cut: one per piece that an engine moved. What is so small that the calling
    /// thread does it alone is no task. While nobody asks, nothing is done for it.
    Tasks,
}

/// Registers `listener` for the operations that start from now on, until the returned guard is dropped.
///
/// Operations in flight now are not reported to it, neither start nor finish.
///
/// # Panics
/// Inside a call of a listener; [`try_listen`] is the twin that does not.
pub fn listen(listener: Arc<dyn Listener>) -> Listening {
    match try_listen(listener, Wanted::Operations) {
        Ok(listening) => listening,
        Err(error) => panic!("{error}"),
    }
}

/// [`listen`], for what is wanted.
///
/// # Errors
/// Inside a call of a listener.
pub fn try_listen(listener: Arc<dyn Listener>, wanted: Wanted) -> Result<Listening, InListener> {
    InListener::check()?;
    let entry = Arc::new(Entry {
        listener,
        wanted,
        gate: Gate::default(),
    });
    update(|list| list.push(Arc::clone(&entry)));
    LISTENING.fetch_add(1, Ordering::Release);
    Ok(Listening {
        entry,
        ended: AtomicBool::new(false),
        process: std::process::id(),
    })
}

/// A listener that is registered; dropping it ends that.
///
/// The drop waits until no call of the listener runs on any thread: afterwards none begins, and what the calls use may go.
/// Operations in flight at the drop are not reported to it as finished.
///
/// Dropped inside a call of a listener, its own or another's, it does not wait: it would wait for itself, or for somebody who
/// waits for it. Nor does it in a child of `fork`, where those it would wait for do not exist. Do not drop it while you hold what
/// the calls wait for.
#[must_use = "dropping this stops the listener at once"]
pub struct Listening {
    entry: Arc<Entry>,
    ended: AtomicBool,
    /// Where it was registered: only there are those who are inside the gate.
    process: u32,
}

impl Listening {
    /// What the drop does.
    pub(crate) fn end(&self) {
        self.entry.gate.close();
        if !self.ended.swap(true, Ordering::AcqRel) {
            LISTENING.fetch_sub(1, Ordering::Release);
            update(|list| list.retain(|entry| !Arc::ptr_eq(entry, &self.entry)));
        }
        if !in_listener() && std::process::id() == self.process {
            self.entry.gate.wait_until_empty();
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").finish_non_exhaustive()
    }
}

/// Why something is refused inside a call of a [`Listener`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InListener;

impl InListener {
    /// Whether the calling thread is outside every call of a listener.
    ///
    /// # Errors
    /// It is inside one.
    #[inline]
    pub fn check() -> Result<(), InListener> {
        match in_listener() {
            true => Err(InListener),
            false => Ok(()),
        }
    }
}

impl fmt::Display for InListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("a listener of statistics must not call back into kvik")
    }
}

impl std::error::Error for InListener {}

/// Whether the calling thread is inside a call of a [`Listener`].
///
/// Doors refuse to work there; operations begun there are not reported.
#[inline]
pub fn in_listener() -> bool {
    INSIDE.get()
}

/// The mark of a thread that is inside a call, until the drop.
pub(crate) struct Inside {
    // Restored rather than cleared: a span may end inside a listener, when the listener owns what held it.
    before: bool,
}

impl Inside {
    pub(crate) fn mark() -> Inside {
        Inside {
            before: INSIDE.replace(true),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

pub(crate) struct Entry {
    pub(crate) listener: Arc<dyn Listener>,
    pub(crate) wanted: Wanted,
    /// Closed when the listener has left; whoever calls it is inside.
    pub(crate) gate: Gate,
}

pub(crate) type List = Vec<Arc<Entry>>;

/// Those who are registered now, if anybody is.
pub(crate) fn listeners() -> Option<Arc<List>> {
    LIST.load_full()
}

/// Whether anybody is registered. Relaxed is enough: whoever registered before this, in an order the caller can know of, is seen;
/// and one registered at the same time may miss what starts now anyway.
#[inline]
pub(crate) fn is_anybody_listening() -> bool {
    LISTENING.load(Ordering::Relaxed) > 0
}

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

thread_local! { static INSIDE: Cell<bool> = const { Cell::new(false) } }

/// Replaced as a whole and read without a lock.
static LIST: ArcSwapOption<List> = ArcSwapOption::const_empty();
/// How many are registered; a word of its own, so that the silent path reads nothing else.
static LISTENING: AtomicUsize = AtomicUsize::new(0);

#[cfg(test)]
#[path = "listener_tests.rs"]
pub(crate) mod tests;
