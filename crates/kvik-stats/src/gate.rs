//! A gate that is closed once: afterwards nobody comes in, and one can wait until all who were in have left.
//!
//! Each shard is one word: whether the gate is closed, and how many are inside by that shard. One step of the processor counts
//! a visitor and learns whether the gate was still open, so that a visitor and the closer cannot miss each other. The lock is
//! taken by those alone who leave a closed gate.

use crate::sharded::Sharded;
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait};

#[derive(Debug, Default)]
pub(crate) struct Gate {
    words: Sharded<AtomicU64>,
    lock: Mutex<()>,
    left: Condvar,
}

/// A visit; it ends with the drop, also when a panic unwinds.
pub(crate) struct Visit<'a> {
    gate: &'a Gate,
    word: &'a AtomicU64,
}

impl Gate {
    /// A visit, unless the gate is closed.
    pub(crate) fn enter(&self) -> Option<Visit<'_>> {
        let word = self.words.mine();
        let before = word.fetch_add(1, Ordering::AcqRel);
        let visit = Visit { gate: self, word };
        (before & CLOSED == 0).then_some(visit)
    }

    /// Lets nobody in from now on.
    pub(crate) fn close(&self) {
        for word in self.words.iter() {
            word.fetch_or(CLOSED, Ordering::AcqRel);
        }
    }

    /// Waits until all who were let in have left. The gate is closed.
    pub(crate) fn wait_until_empty(&self) {
        let mut guard = lock(&self.lock);
        while self.is_visited() {
            guard = wait(&self.left, guard);
        }
    }

    fn is_visited(&self) -> bool {
        let inside = |word: &AtomicU64| word.load(Ordering::Acquire) & !CLOSED > 0;
        self.words.iter().any(inside)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let before = self.word.fetch_sub(1, Ordering::AcqRel);
        if before & CLOSED != 0 {
            // Under the lock, so that it does not fall between another's look at the words and its wait.
            let _guard = lock(&self.gate.lock);
            self.gate.left.notify_all();
        }
    }
}

const CLOSED: u64 = 1 << 63;
