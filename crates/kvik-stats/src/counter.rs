//! Relaxed counters, a word per shard, since every operation touches some of them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::names::Metric;
use crate::sharded::{Line, SHARDS, Sharded};

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
            value: Sharded::new([const { Line::new(AtomicU64::new(0)) }; SHARDS]),
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::Counter;
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
}
