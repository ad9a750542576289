//! Learns which of a few ways to do the same work is the fastest here, from the work itself.
//!
//! No machine is asked what it is, and no time is spent on measuring alone: each way is tried a few times on work that has
//! to be done anyway, then the cheapest is taken, and once in a while another one, since machines and their load change.

// Not those of sync.rs: what was learnt lies in statics, which loom's cannot.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What was learnt about `N` ways. Shared by all threads; a race between two of them costs a sample, nothing else.
#[derive(Debug)]
pub(crate) struct Choice<const N: usize> {
    picks: AtomicU64,
    ways: [Way; N],
    habit: Habit,
}

/// How it learns.
#[derive(Debug)]
struct Habit {
    // By how many percent the other ways must be dearer for the first one to be taken.
    handicap: u64,
    // Every so many picks another way is tried.
    explore: u64,
    estimate: Estimate,
}

/// What a way is taken to cost, after some samples.
#[derive(Debug)]
enum Estimate {
    /// The lowest of them, drifting upwards when it is not reached any more: where others disturb and nobody helps, that is
    /// nearest to the truth.
    Lowest,
    /// Their average, where being slow now and then is part of the way.
    Average,
}

#[derive(Debug)]
struct Way {
    tried: AtomicU64,
    // Nanoseconds per MiB, as estimated.
    cost: AtomicU64,
}

impl<const N: usize> Choice<N> {
    /// Among ways that take the processor's time.
    pub(crate) const fn new() -> Choice<N> {
        Choice::with(Habit {
            handicap: 0,
            // A way that costs twice as much then costs half a percent in all, and one that was left in error is found
            // again within a gigabyte.
            explore: 64,
            estimate: Estimate::Lowest,
        })
    }

    /// Among ways that wait for storage, the first of which has a drawback that no time shows: it is taken only where each
    /// other way costs `handicap` percent more.
    pub(crate) const fn of_storage(handicap: u64) -> Choice<N> {
        Choice::with(Habit {
            handicap,
            explore: 64,
            estimate: Estimate::Average,
        })
    }

    const fn with(habit: Habit) -> Choice<N> {
        Choice {
            habit,
            picks: AtomicU64::new(0),
            ways: [const {
                Way {
                    tried: AtomicU64::new(0),
                    cost: AtomicU64::new(u64::MAX),
                }
            }; N],
        }
    }

    /// The way to go now.
    pub(crate) fn pick(&self) -> usize {
        let pick = self.picks.fetch_add(1, Ordering::Relaxed);
        let untried = |way: &Way| way.tried.load(Ordering::Relaxed) < TRIES;
        if let Some(way) = self.ways.iter().position(untried) {
            self.ways[way].tried.fetch_add(1, Ordering::Relaxed);
            return way;
        }
        match pick % self.habit.explore {
            0 => (pick / self.habit.explore) as usize % N,
            _ => self.best(),
        }
    }

    /// The cheapest way so far.
    pub(crate) fn best(&self) -> usize {
        let costs = self.ways.iter().map(|way| way.cost.load(Ordering::Relaxed));
        let costs = costs.enumerate().map(|(way, cost)| match way {
            0 => (way, cost.saturating_add(cost / 100 * self.habit.handicap)),
            _ => (way, cost),
        });
        costs
            .min_by_key(|(_, cost)| *cost)
            .map_or(0, |(way, _)| way)
    }

    /// Tells what moving `bytes` by this way took.
    pub(crate) fn report(&self, way: usize, bytes: usize, took: Duration) {
        if bytes < SAMPLE {
            return; // What is fixed about a call would count for the way.
        }
        let cost = (took.as_nanos() as u64).saturating_mul(1 << 20) / bytes as u64;
        let known = &self.ways[way].cost;
        let old = known.load(Ordering::Relaxed);
        let new = match self.habit.estimate {
            _ if old == u64::MAX => cost,
            Estimate::Lowest if cost <= old => cost,
            // Slowly: a neighbour who takes the processor for some milliseconds disturbs a dozen samples in a row.
            Estimate::Lowest => old + (cost - old) / 64,
            Estimate::Average if cost <= old => old - (old - cost) / 8,
            Estimate::Average => old + (cost - old) / 8,
        };
        known.store(new, Ordering::Relaxed);
    }
}

// Three, so that one disturbed sample decides nothing.
const TRIES: u64 = 3;
const SAMPLE: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn run(choice: &Choice<3>, costs: [u64; 3], picks: usize) -> [usize; 3] {
        let mut counts = [0; 3];
        for _ in 0..picks {
            let way = choice.pick();
            counts[way] += 1;
            choice.report(way, MIB, Duration::from_nanos(costs[way]));
        }
        counts
    }

    #[test]
    fn each_way_is_tried_then_the_cheapest_is_taken() {
        let choice = Choice::new();
        assert_eq!(run(&choice, [300, 100, 200], 9), [3, 3, 3]);
        let counts = run(&choice, [300, 100, 200], 1000);
        assert!(counts[1] > 980, "{counts:?}");
    }

    #[test]
    fn a_way_that_becomes_dear_is_left_for_the_next_best() {
        let choice = Choice::new();
        run(&choice, [300, 100, 200], 100);
        let counts = run(&choice, [300, 900, 200], 10_000);
        assert!(counts[2] > 9_000, "{counts:?}");
    }

    #[test]
    fn a_way_that_becomes_cheap_is_found_again() {
        let choice = Choice::new();
        run(&choice, [300, 100, 200], 100);
        let counts = run(&choice, [50, 100, 200], 10_000);
        assert!(counts[0] > 8_000, "{counts:?}");
    }

    #[test]
    fn a_way_with_a_handicap_must_be_clearly_cheaper() {
        for (costs, best) in [
            ([1000, 1050, 3000], 1),
            ([1000, 1099, 1090], 2),
            ([1000, 1110, 1200], 0),
            ([1000, 900, 1200], 1),
        ] {
            let choice = Choice::of_storage(10);
            run(&choice, costs, 100);
            assert_eq!(choice.best(), best, "{costs:?}");
        }
    }

    #[test]
    fn a_way_that_is_fast_now_and_then_is_judged_by_its_average() {
        let (choice, lowest) = (Choice::<2>::of_storage(0), Choice::<2>::new());
        for round in 0..100 {
            let costs = [400, if round % 4 == 0 { 100 } else { 1000 }];
            for (way, cost) in costs.into_iter().enumerate() {
                choice.report(way, MIB, Duration::from_nanos(cost));
                lowest.report(way, MIB, Duration::from_nanos(cost));
            }
        }
        assert_eq!((choice.best(), lowest.best()), (0, 1));
    }

    #[test]
    fn small_samples_teach_nothing() {
        let choice = Choice::<2>::new();
        choice.report(1, SAMPLE - 1, Duration::from_nanos(1));
        assert_eq!(choice.best(), 0);
    }
}
