//! Relaxed counters, a word per shard, since every operation touches some of them.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::names::Metric;

/// A count of events or bytes that is always on, from the start of the process.
///
/// The counters themselves are statics in [`names`](crate::names). Small reads count their bytes too, in less than a
/// hundredth of what they take otherwise: each thread adds to a word that it seldom shares.
pub struct Counter {
    metric: Metric,
    value: Sharded<AtomicU64>,
}

impl Counter {
    pub(crate) const fn new(metric: Metric) -> Counter {
        Counter {
            metric,
            value: Sharded {
                shards: [const { Line(AtomicU64::new(0)) }; SHARDS],
            },
        }
    }

    /// Counts one event.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts `events` events or bytes, wrapping after 2^64.
    pub fn add(&self, events: u64) {
        self.value.mine().fetch_add(events, Ordering::Relaxed);
    }

    /// Events or bytes since the process started.
    pub fn get(&self) -> u64 {
        let shards = self.value.iter();
        shards.fold(0, |sum, shard| {
            sum.wrapping_add(shard.load(Ordering::Relaxed))
        })
    }

    /// Name, unit, stability and meaning.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.metric.name, self.get())
    }
}

/// As many copies of `T` as there are [`SHARDS`], each on cache lines of its own; a thread always writes to the same copy.
#[derive(Debug)]
pub(crate) struct Sharded<T> {
    shards: [Line<T>; SHARDS],
}

// Two lines of 64 bytes, because the prefetchers of current x86-64 CPUs fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

impl<T: Default> Default for Sharded<T> {
    fn default() -> Self {
        Sharded {
            shards: std::array::from_fn(|_| Line::default()),
        }
    }
}

impl<T> Sharded<T> {
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

// The pool has at most 16 threads by default; more than that share, which is slower but not wrong.
const SHARDS: usize = 16;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::{Counter, SHARDS, Sharded};
    use crate::names::{Metric, Stability, Unit};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test of several threads")]
    fn a_counter_sums_what_all_threads_add() {
        let counter = Counter::new(Metric {
            name: "probe",
            unit: Unit::Events,
            stability: Stability::Unstable,
            sentence: "Only in this test.",
        });
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counter.increment();
                    }
                    counter.add(5);
                });
            }
        });
        assert_eq!(counter.get(), 4 * 1005);
        assert_eq!(format!("{counter:?}"), "probe = 4020");
    }

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
