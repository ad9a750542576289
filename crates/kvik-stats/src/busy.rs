//! Busy time: how long at least one operation was in flight, counted without a lock.
//!
//! The line of time since the recorder's start is cut into busy and idle stretches. Only idle time is summed, by whoever opens a
//! busy stretch; busy time is what is left, so it can never exceed the wall time.
//!
//! ```text
//! 0 ....... s1======e1 ..... s2====now        idle = (s1 - 0) + (s2 - e1)      busy = now - idle
//! ```
//!
//! An opener must know the latest end *before* its own opening. It reads that end first and then opens with a compare-and-swap
//! that fails if anybody else opened a stretch in between. The opener's own operation keeps its stretch open until it has added
//! the idle time, so at most one addition is ever outstanding, and readers can tell (`accounted`).

use crate::sync::{AtomicU64, Ordering, thread};

/// All times are nanoseconds since the recorder's start.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    /// High half: number of the current stretch, modulo 2^32. Low half: operations in flight.
    state: AtomicU64,
    /// The latest end seen, raised by a closer before it lowers the number in flight.
    latest: AtomicU64,
    /// Sum of the idle stretches.
    idle: AtomicU64,
    /// The stretch whose idle time before it has been added.
    accounted: AtomicU64,
    /// The highest reading given out.
    floor: AtomicU64,
}

impl Busy {
    /// An operation that started at `start` is in flight.
    pub(crate) fn open(&self, start: u64) {
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            let latest = self.latest.load(Ordering::Acquire);
            let opens = in_flight(state) == 0;
            let next = if opens {
                (stretch(state).wrapping_add(1) << 32) | 1
            } else {
                state + 1
            };
            match self
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    if opens {
                        // A start before the latest end (its clock was read, then others ended) opens at that end.
                        self.idle
                            .fetch_add(start.saturating_sub(latest), Ordering::Relaxed);
                        self.accounted.store(stretch(next), Ordering::Release);
                    }
                    return;
                }
                Err(seen) => state = seen,
            }
        }
    }

    /// An operation that was in flight ended at `end`.
    pub(crate) fn close(&self, end: u64) {
        self.latest.fetch_max(end, Ordering::AcqRel);
        self.state.fetch_sub(1, Ordering::AcqRel);
    }

    /// Busy time so far. `now` is asked for after the state was read, and never goes back. Readings never decrease.
    pub(crate) fn reading(&self, now: impl Fn() -> u64) -> u64 {
        let busy = (0..ATTEMPTS).find_map(|_| self.attempt(&now)).unwrap_or(0);
        // An operation whose end was taken but not yet told may have been read as still running, a moment ago.
        self.floor.fetch_max(busy, Ordering::AcqRel).max(busy)
    }

    fn attempt(&self, now: &impl Fn() -> u64) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        let until = if in_flight(state) == 0 {
            self.latest.load(Ordering::Acquire)
        } else if self.accounted.load(Ordering::Acquire) == stretch(state) {
            now()
        } else {
            thread::yield_now();
            return None;
        };
        let idle = self.idle.load(Ordering::Acquire);
        let after = self.state.load(Ordering::Acquire);
        let same =
            stretch(after) == stretch(state) && (in_flight(after) == 0) == (in_flight(state) == 0);
        same.then(|| until.saturating_sub(idle))
    }
}

fn in_flight(state: u64) -> u64 {
    state & u64::from(u32::MAX)
}

fn stretch(state: u64) -> u64 {
    state >> 32
}

// A reader that meets an opener between its two writes this many times answers with its last reading instead of waiting: in a
// child of fork that opener does not exist.
const ATTEMPTS: usize = if cfg!(loom) { 2 } else { 64 };

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Busy;

    /// Length of the union of `spans`, the slow and certain way.
    fn union(spans: &[(u64, u64)]) -> u64 {
        let mut covered = std::collections::BTreeSet::new();
        for &(start, end) in spans {
            covered.extend(start..end);
        }
        covered.len() as u64
    }

    #[test]
    fn overlapping_and_nested_spans_count_once_and_gaps_do_not_count() {
        let busy = Busy::default();
        busy.open(10);
        assert_eq!(busy.reading(|| 15), 5, "the open stretch counts");
        busy.open(12);
        busy.close(20);
        busy.close(30);
        assert_eq!(busy.reading(|| 100), 20);
        busy.open(50);
        busy.close(60);
        assert_eq!(busy.reading(|| 100), 30);
    }

    #[test]
    fn a_stretch_closes_at_the_latest_end_even_if_that_was_told_first() {
        let busy = Busy::default();
        busy.open(0);
        busy.open(1);
        busy.close(9);
        busy.close(7);
        assert_eq!(busy.reading(|| 20), 9);
    }

    #[test]
    fn a_stretch_never_opens_before_the_previous_close() {
        let busy = Busy::default();
        busy.open(0);
        busy.close(10);
        busy.open(6);
        busy.close(12);
        assert_eq!(busy.reading(|| 20), 12);
    }

    #[test]
    fn readings_never_decrease_when_an_end_is_told_late() {
        let busy = Busy::default();
        busy.open(0);
        assert_eq!(busy.reading(|| 8), 8);
        busy.close(5);
        assert_eq!(busy.reading(|| 9), 8);
    }

    #[test]
    fn zero_stretches_numbers_may_wrap() {
        let busy = Busy::default();
        busy.state.store(
            u64::from(u32::MAX) << 32,
            std::sync::atomic::Ordering::Relaxed,
        );
        busy.open(3);
        busy.close(5);
        assert_eq!(busy.reading(|| 9), 2);
    }

    proptest! {
        #[test]
        fn any_set_of_spans_sums_to_its_union(spans in prop::collection::vec((0u64..200, 0u64..40), 0..20)) {
            let spans: Vec<(u64, u64)> = spans.into_iter().map(|(start, length)| (start, start + length)).collect();
            // Starts before ends at equal times: a touching span is in flight when its neighbour ends.
            let mut events: Vec<(u64, bool)> = spans.iter().flat_map(|&(start, end)| [(start, false), (end, true)]).collect();
            events.sort();
            let busy = Busy::default();
            let mut last = 0;
            for (time, ends) in events {
                if ends { busy.close(time) } else { busy.open(time) }
                let reading = busy.reading(|| time);
                prop_assert!(reading >= last && reading <= time, "{last} then {reading} at {time}");
                last = reading;
            }
            prop_assert_eq!(busy.reading(|| 1000), union(&spans));
        }

        // Clocks are read before the events are told, so what is told may be out of order by a little.
        #[test]
        fn told_late_it_stays_between_the_union_and_the_wall(
            spans in prop::collection::vec((0u64..200, 0u64..40, 0u64..5, 0u64..5), 0..20),
        ) {
            let mut events = Vec::new();
            for (index, &(start, length, late_start, late_end)) in spans.iter().enumerate() {
                let end = start + length;
                let told = start + late_start;
                events.push((told, 0, index, start));
                events.push((told.max(end + late_end), 1, index, end));
            }
            events.sort();
            let busy = Busy::default();
            let mut last = 0;
            for &(now, ends, _, stamp) in &events {
                if ends == 1 { busy.close(stamp) } else { busy.open(stamp) }
                let reading = busy.reading(|| now);
                prop_assert!(reading >= last && reading <= now, "{last} then {reading} at {now}");
                last = reading;
            }
            let truth = union(&spans.iter().map(|&(start, length, ..)| (start, start + length)).collect::<Vec<_>>());
            // At most what was late on each side can be missed or counted twice.
            let slack = 10 * spans.len() as u64;
            let total = busy.reading(|| 1000);
            prop_assert!(total.abs_diff(truth) <= slack, "{total} against {truth}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test of several threads")]
    fn many_threads_agree_with_the_wall() {
        let busy = Busy::default();
        let begun = std::time::Instant::now();
        let now = || begun.elapsed().as_nanos() as u64;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        busy.open(now());
                        busy.close(now());
                    }
                });
            }
            let mut last = 0;
            for _ in 0..2_000 {
                let reading = busy.reading(now);
                assert!(reading >= last && reading <= now());
                last = reading;
            }
        });
        assert_eq!(
            super::in_flight(busy.state.load(std::sync::atomic::Ordering::Relaxed)),
            0
        );
        assert!(busy.reading(now) > 0);
    }
}
