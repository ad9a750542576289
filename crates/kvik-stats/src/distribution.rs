//! How values are distributed: log-linear buckets in fixed memory, and quantiles of them.
//!
//! Up to 8 each value has a bucket of its own; from there on each power of two is cut into eight equal ones, so that a bucket is
//! at most an eighth as wide as the values in it are large, and a quantile, the middle of a bucket, is off by a sixteenth at most.
//! Bounds are powers of two, the upper one belonging to its bucket: 4096 bytes are at most 4 KiB.

use std::sync::atomic::{AtomicU64, Ordering};

/// A distribution that many threads add to.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Vec<AtomicU64>,
    sum: AtomicU64,
    largest: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            largest: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    pub(crate) fn record(&self, value: u64) {
        self.buckets[bucket_of(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        self.largest.fetch_max(value, Ordering::Relaxed);
    }

    pub(crate) fn add_to(&self, distribution: &mut Distribution) {
        distribution.buckets.resize(BUCKETS, 0);
        for (sum, bucket) in distribution.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
        distribution.sum = distribution
            .sum
            .wrapping_add(self.sum.load(Ordering::Relaxed));
        let largest = self.largest.load(Ordering::Relaxed);
        distribution.largest = distribution.largest.max(largest);
    }
}

/// How the values of many operations or tasks are distributed: their durations in nanoseconds, or their sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Empty, or one per bucket.
    pub(crate) buckets: Vec<u64>,
    pub(crate) sum: u64,
    pub(crate) largest: u64,
}

impl Distribution {
    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest; of an interval between two readings, what it can be at most.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The value that the part `share` (from 0 to 1) of all values does not exceed, off by a sixteenth of it at most (from 2^44 on,
    /// hours or terabytes, by anything); `None` if there are none.
    ///
    /// # Example: half of all reads, and all but one in a hundred
    /// ```
    /// use kvik_stats::{Backend, Direction, MonitorOptions};
    ///
    /// let monitor = MonitorOptions::new().distributions(true).start();
    /// // ... reads ...
    /// let summary = monitor.get();
    /// let latency = summary.durations(Backend::Posix, Direction::Read);
    /// if let Some((median, slow)) = latency.and_then(|l| Some((l.quantile(0.5)?, l.quantile(0.99)?))) {
    ///     println!("{median} ns, {slow} ns");
    /// }
    /// ```
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        // At least one value lies at or below any quantile.
        let wanted = (share.clamp(0.0, 1.0) * count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let place = self.buckets.iter().position(|bucket| {
            seen += bucket;
            seen >= wanted
        });
        let place = place.unwrap_or(BUCKETS - 1);
        let middle = match upper(place) {
            Some(upper) => (lower(place) + 1).midpoint(upper),
            None => self.largest,
        };
        Some(middle.min(self.largest))
    }

    /// The buckets that hold any: the largest value that belongs to each (`None` for the last, which has no bound) and how many
    /// do.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let held = self.buckets.iter().enumerate();
        held.filter(|(_, count)| **count > 0)
            .map(|(place, count)| (upper(place), *count))
    }

    /// How many values are at most `bound`, a power of two.
    pub(crate) fn up_to(&self, bound: u64) -> u64 {
        let below = self.buckets.iter().enumerate();
        below
            .filter(|(place, _)| upper(*place).is_some_and(|upper| upper <= bound))
            .map(|(_, count)| count)
            .sum()
    }

    /// What was added since `before`; `None` if that is later.
    pub(crate) fn less(&self, before: &Distribution) -> Option<Distribution> {
        let had = |place| before.buckets.get(place).copied().unwrap_or(0);
        let buckets = self.buckets.iter().enumerate();
        let buckets: Vec<u64> = buckets
            .map(|(place, count)| count.checked_sub(had(place)))
            .collect::<Option<_>>()?;
        let most = buckets.iter().rposition(|count| *count > 0);
        let most = most.map_or(0, |place| upper(place).unwrap_or(u64::MAX));
        Some(Distribution {
            sum: self.sum.wrapping_sub(before.sum),
            largest: self.largest.min(most),
            buckets,
        })
    }
}

fn bucket_of(value: u64) -> usize {
    let below = value.saturating_sub(1);
    if below < PARTS {
        return below as usize;
    }
    let power = below.ilog2();
    let part = (below >> (power - PARTS.ilog2())) - PARTS;
    let place = u64::from(power - PARTS.ilog2()) * PARTS + PARTS + part;
    (place as usize).min(BUCKETS - 1)
}

/// The largest value below the bucket.
fn lower(place: usize) -> u64 {
    let place = place as u64;
    match place.checked_sub(PARTS) {
        None => place,
        Some(beyond) => (PARTS + beyond % PARTS) << (beyond / PARTS),
    }
}

/// The largest value in the bucket; the last has none.
fn upper(place: usize) -> Option<u64> {
    (place < BUCKETS - 1).then(|| lower(place + 1))
}

/// Into how many a power of two is cut.
const PARTS: u64 = 8;
/// From 2^44 on, more than four hours or 16 TiB, values share one bucket.
pub(crate) const BUCKETS: usize = 8 + (44 - 3) * 8 + 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BUCKETS, Distribution, Histogram, bucket_of, lower, upper};

    fn of(values: &[u64]) -> Distribution {
        let histogram = Histogram::default();
        values.iter().for_each(|value| histogram.record(*value));
        let mut distribution = Distribution::default();
        histogram.add_to(&mut distribution);
        distribution
    }

    #[test]
    fn buckets_follow_each_other_without_gap_and_end_at_powers_of_two() {
        for place in 0..BUCKETS - 1 {
            let upper = upper(place).unwrap();
            assert!(lower(place) < upper);
            assert_eq!(bucket_of(upper), place);
            assert_eq!(bucket_of(upper + 1), place + 1);
        }
        assert_eq!(lower(BUCKETS - 1), 1 << 44);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        for power in 3..44 {
            assert_eq!(upper(bucket_of(1 << power)), Some(1 << power));
        }
    }

    #[test]
    fn quantiles_of_nothing_are_none_and_of_one_value_that_value() {
        assert_eq!(of(&[]).quantile(0.5), None);
        assert_eq!(Distribution::default().quantile(0.5), None);
        for share in [0.0, 0.5, 1.0, f64::NAN] {
            assert_eq!(of(&[7]).quantile(share), Some(7));
        }
        assert_eq!(of(&[u64::MAX, 1]).quantile(1.0), Some(u64::MAX));
    }

    #[test]
    fn an_interval_has_what_came_between() {
        let before = of(&[5, 4096]);
        let after = of(&[5, 4096, 4096, 100]);
        let interval = after.less(&before).unwrap();
        assert_eq!((interval.count(), interval.sum()), (2, 4196));
        assert_eq!(interval.largest(), 4096);
        assert_eq!(interval.up_to(4096) - interval.up_to(2048), 1);
        assert_eq!(before.less(&after), None);
        assert_eq!(after.less(&Distribution::default()).unwrap(), after);
    }

    proptest! {
        #[test]
        fn quantiles_are_off_by_a_sixteenth_at_most(
            mut values in prop::collection::vec(0u64..1 << 44, 1..100),
            share in 0.0f64..=1.0,
        ) {
            let distribution = of(&values);
            values.sort_unstable();
            let place = ((share * values.len() as f64).ceil() as usize).max(1) - 1;
            let (truth, found) = (values[place], distribution.quantile(share).unwrap());
            prop_assert!(found.abs_diff(truth) <= truth.div_ceil(16).max(1), "{found} for {truth}");
            prop_assert_eq!(distribution.count(), values.len() as u64);
            prop_assert_eq!(distribution.largest(), values[values.len() - 1]);
        }
    }
}
