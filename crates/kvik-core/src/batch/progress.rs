//! What has become of the entries of a batch so far, and who waits to hear of it.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::pending::Completed;
use crate::error::Result;
use crate::sync::{Condvar, Mutex, lock};

/// The outcomes of all entries, as they come.
pub(crate) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    outcomes: Vec<Option<Result<usize>>>,
    // The entries with an outcome that nobody has asked for yet.
    untold: Vec<usize>,
    // Those whose memory somebody outside may still touch, though the entry has ended.
    kept: Vec<usize>,
    // Entries without an outcome, and transfers that are not over.
    open: usize,
    running: usize,
    // Threads that wait.
    waiting: usize,
    waker: Option<Waker>,
}

impl Progress {
    pub(super) fn new(entries: usize) -> Progress {
        let state = State {
            outcomes: vec![None; entries],
            untold: Vec::with_capacity(entries),
            kept: Vec::new(),
            open: entries,
            running: 0,
            waiting: 0,
            waker: None,
        };
        Progress {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// These entries have ended so. Each ends once.
    pub(super) fn tell(&self, ended: impl Iterator<Item = (usize, Result<usize>)>) {
        let mut state = lock(&self.state);
        for (entry, outcome) in ended {
            state.outcomes[entry] = Some(outcome);
            state.untold.push(entry);
            state.open -= 1;
        }
        self.changed(state);
    }

    /// The memory of `entry` must be there for ever.
    pub(super) fn keep(&self, entry: usize) {
        lock(&self.state).kept.push(entry);
    }

    /// One transfer more of which entries are part.
    pub(super) fn begin(&self) {
        lock(&self.state).running += 1;
    }

    /// One of these is over, and touches no memory any more.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.running -= 1;
        self.changed(state);
    }

    /// Takes those of which nobody was told; waits until they are `least`, or all, for `limit` at most.
    pub(super) fn wait_some(&self, least: usize, limit: Duration) -> Vec<Completed> {
        let end = Instant::now().checked_add(limit);
        let mut state = lock(&self.state);
        state.waiting += 1;
        while state.untold.len() < least && state.open > 0 {
            let left = end.map_or(limit, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.waiting -= 1;
        let untold = mem::take(&mut state.untold);
        let completed = |index: usize| {
            let outcome = state.outcomes[index].clone();
            outcome.map(|outcome| Completed { index, outcome })
        };
        untold.into_iter().filter_map(completed).collect()
    }

    /// Whether all transfers are over and all entries have an outcome.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).is_over()
    }

    /// The outcomes, if all is over; else `waker` is told when it is.
    pub(super) fn poll(&self, waker: &Waker) -> Option<Vec<Result<usize>>> {
        // Wakers are the caller's code: none of it runs under the lock.
        let waker = waker.clone();
        let mut state = lock(&self.state);
        let is_over = state.is_over();
        let unused = match is_over {
            true => Some(waker),
            false => state.waker.replace(waker),
        };
        drop(state);
        drop(unused);
        is_over.then(|| self.outcomes())
    }

    /// The outcomes that there are, in the order of the entries: all of them once all is over.
    pub(super) fn outcomes(&self) -> Vec<Result<usize>> {
        lock(&self.state)
            .outcomes
            .iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// The entries whose memory must be there for ever.
    pub(super) fn kept(&self) -> Vec<usize> {
        lock(&self.state).kept.clone()
    }

    fn changed(&self, mut state: crate::sync::MutexGuard<'_, State>) {
        let waker = match state.is_over() {
            true => state.waker.take(),
            false => None,
        };
        let is_waited_for = state.waiting > 0;
        drop(state);
        if is_waited_for {
            self.changed.notify_all();
        }
        // The waker is the caller's code: what it panics with is not this worker's end.
        let _ = catch_unwind(AssertUnwindSafe(|| waker.map(Waker::wake)));
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.open == 0 && self.running == 0
    }
}
