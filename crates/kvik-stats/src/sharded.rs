//! A copy per shard of what many threads write to, so that they seldom write to the same line of the cache.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As many copies of `T` as there are [`SHARDS`], each on cache lines of its own; a thread always writes to the same copy.
#[derive(Debug)]
pub(crate) struct Sharded<T> {
    shards: [Line<T>; SHARDS],
}

// Two lines of 64 bytes, because the prefetchers of current x86-64 CPUs fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Line<T>(T);

impl<T> Line<T> {
    pub(crate) const fn new(value: T) -> Line<T> {
        Line(value)
    }
}

impl<T: Default> Default for Sharded<T> {
    fn default() -> Self {
        Sharded {
            shards: std::array::from_fn(|_| Line::default()),
        }
    }
}

impl<T> Sharded<T> {
    pub(crate) const fn new(shards: [Line<T>; SHARDS]) -> Sharded<T> {
        Sharded { shards }
    }

    /// The calling thread's copy.
    pub(crate) fn mine(&self) -> &T {
        &self.shards[shard_of_this_thread()].0
    }

    /// All copies, to be summed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.shards.iter().map(|line| &line.0)
    }
}

fn shard_of_this_thread() -> usize {
    // Constant initialiser, no destructor: usable while a thread ends, and free of the lazy initialisation's branch.
    thread_local! { static SHARD: Cell<usize> = const { Cell::new(UNASSIGNED) } }
    SHARD.with(|shard| {
        if shard.get() == UNASSIGNED {
            shard.set(NEXT_SHARD.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        shard.get()
    })
}

static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);
const UNASSIGNED: usize = usize::MAX;

// The pool has at most 16 threads by default; more than that share, which is slower but not wrong. In a model all threads are
// one of the system's, and share.
pub(crate) const SHARDS: usize = if cfg!(loom) { 1 } else { 16 };

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::{SHARDS, Sharded};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test of several threads")]
    fn more_threads_than_shards_lose_nothing() {
        let sharded = Sharded::<AtomicU64>::default();
        thread::scope(|scope| {
            for _ in 0..2 * SHARDS + 1 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        sharded.mine().fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let sum: u64 = sharded
            .iter()
            .map(|value| value.load(Ordering::Relaxed))
            .sum();
        assert_eq!(sum, (2 * SHARDS as u64 + 1) * 100);
    }
}
