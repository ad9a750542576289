//! When a request that failed is made again. Pure, but for the budget that all requests of a handle share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::failure::{Again, Failure};
use crate::opening::HEAD;

/// How often and how soon requests are made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// How many requests in a row may fail without having brought anything.
    pub(crate) attempts: u32,
    /// The longest first wait; each one after it may be twice as long.
    pub(crate) first_wait: Duration,
    pub(crate) longest_wait: Duration,
    /// The status codes after which a request is made again, where somebody has said which.
    pub(crate) statuses: Option<Vec<u16>>,
}

impl Policy {
    /// Whether a request that was answered with this status is made again.
    pub(crate) fn repeats(&self, status: u16) -> bool {
        match &self.statuses {
            Some(statuses) => statuses.contains(&status),
            // What is not implemented is not implemented a second later either.
            None => matches!(status, 408 | 429 | 500 | 502..=504 | 506..=599),
        }
    }

    /// How long to wait after the failure that makes `failures` in a row; `None` if that was the last one. `dice` is any
    /// number, by which many clients that failed at once come back at different times.
    pub(crate) fn wait(&self, again: Again, failures: u32, dice: u64) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let doubled = self
            .first_wait
            .saturating_mul(1 << failures.saturating_sub(1).min(16));
        let longest = doubled.min(self.longest_wait);
        let part = longest.mul_f64(dice as f64 / u64::MAX as f64);
        match again {
            Again::Never => None,
            Again::Soon => Some(part),
            // Who is told a time and comes earlier is sent away again, and one who asks for more than that means `no`.
            Again::After(time) if time > LONGEST_NAMED => None,
            Again::After(time) => Some(time + part.min(time / 4)),
        }
    }
}

/// How many requests in a row have failed.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub(crate) in_a_row: u32,
}

impl Failures {
    /// Counts one whose request had brought `moved` bytes by then. One that brought enough starts a new row: a connection
    /// that breaks once in a while must not end a long read.
    pub(crate) fn note(&mut self, moved: u64) {
        if moved >= PROGRESS {
            self.in_a_row = 0;
        }
        self.in_a_row += 1;
    }
}

/// What requests that are made again may cost all in all: where everything fails, repeating everything helps nobody.
#[derive(Debug)]
pub(crate) struct Budget(AtomicU32);

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget(AtomicU32::new(FULL))
    }

    /// Takes the price of one repetition; `false` if there is not so much left.
    pub(crate) fn take(&self) -> bool {
        let less = |left: u32| left.checked_sub(PRICE);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }

    /// A request succeeded.
    pub(crate) fn earn(&self) {
        if self.0.load(Ordering::Relaxed) < FULL {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The failure of a caller for whom no budget is left.
pub(crate) fn exhausted(mut failure: Failure) -> Failure {
    failure
        .why
        .push_str("; too much else failed as well for trying again");
    failure
}

// What one answer brings at the least as a rule: the first one of an object brings no more.
const PROGRESS: u64 = HEAD;
// A server that names a longer time will not be waited for.
const LONGEST_NAMED: Duration = Duration::from_secs(120);
// A hundred repetitions at once, and one for each five requests that succeed.
const FULL: u32 = 500;
const PRICE: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use kvik_core::ErrorKind;

    const SECOND: Duration = Duration::from_secs(1);

    fn policy() -> Policy {
        Policy {
            attempts: 4,
            first_wait: SECOND,
            longest_wait: 3 * SECOND,
            statuses: None,
        }
    }

    #[test]
    fn waits_grow_up_to_a_limit_and_lie_anywhere_below_it() {
        let policy = policy();
        for (failures, longest) in [(1, Some(1)), (2, Some(2)), (3, Some(3)), (4, None)] {
            let wait = |dice| policy.wait(Again::Soon, failures, dice);
            assert_eq!(wait(u64::MAX), longest.map(|seconds| seconds * SECOND));
            assert_eq!(wait(0), longest.map(|_| Duration::ZERO));
        }
        let many = Policy {
            attempts: u32::MAX,
            ..policy
        };
        assert_eq!(
            many.wait(Again::Soon, u32::MAX - 1, u64::MAX),
            Some(3 * SECOND)
        );
    }

    #[test]
    fn the_time_that_a_server_names_is_waited_for_unless_it_is_too_long() {
        let wait = |again| policy().wait(again, 1, u64::MAX);
        let named = wait(Again::After(2 * SECOND)).unwrap();
        assert!(named >= 2 * SECOND && named <= 3 * SECOND, "{named:?}");
        assert_eq!(wait(Again::After(Duration::ZERO)), Some(Duration::ZERO));
        assert_eq!(wait(Again::After(121 * SECOND)), None);
        assert_eq!(wait(Again::Never), None);
    }

    #[test]
    fn statuses_that_may_pass_are_repeated_and_others_are_not() {
        for (status, again) in [(408, true), (429, true), (500, true), (503, true)]
            .into_iter()
            .chain([(501, false), (505, false), (400, false), (404, false)])
        {
            assert_eq!(policy().repeats(status), again, "{status}");
        }
        let mut told = policy();
        told.statuses = Some(vec![404]);
        assert!(told.repeats(404) && !told.repeats(503));
    }

    #[test]
    fn a_request_that_brought_something_starts_a_new_row() {
        let mut failures = Failures::default();
        for (moved, expected) in [(0, 1), (PROGRESS - 1, 2), (PROGRESS, 1), (0, 2)] {
            failures.note(moved);
            assert_eq!(failures.in_a_row, expected);
        }
    }

    #[test]
    fn a_budget_is_used_up_and_earned_again() {
        let budget = Budget::new();
        assert_eq!((0..1000).filter(|_| budget.take()).count(), 100);
        for _ in 0..5 {
            budget.earn();
        }
        assert!(budget.take() && !budget.take());
        let failure = exhausted(Failure::passing(ErrorKind::Unreachable, "no answer"));
        assert!(failure.why.starts_with("no answer; too much else failed"));
    }
}
