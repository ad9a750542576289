//! From two readings of the kernel's counters to a rate; pure.

use std::time::Duration;

/// The counters of an interface at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) at: Duration,
    /// The kernel's number of the interface. One that went and came back under its name has another.
    pub(crate) index: u64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

/// How fast bytes came and went, in MiB a second. The layout is that of a sample, see nvtx.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Rates {
    pub(crate) received: f64,
    pub(crate) sent: f64,
}

impl Reading {
    /// The rates since `before`; none where the counters do not go on from there. A counter that is smaller than it was has
    /// started again or has gone round; which of them, and so how many bytes it was, cannot be told.
    pub(crate) fn since(&self, before: &Reading) -> Option<Rates> {
        let elapsed = self.at.checked_sub(before.at)?;
        if self.index != before.index || elapsed.is_zero() {
            return None;
        }
        let rate = |now: u64, before: u64| {
            let bytes = now.checked_sub(before)?;
            #[expect(
                clippy::cast_precision_loss,
                reason = "a difference past 2^53 bytes is exact to a part in 10^15, which no graph shows"
            )]
            let bytes = bytes as f64;
            Some(bytes / MIB / elapsed.as_secs_f64())
        };
        Some(Rates {
            received: rate(self.received, before.received)?,
            sent: rate(self.sent, before.sent)?,
        })
    }
}

impl Rates {
    pub(crate) fn plus(self, other: Rates) -> Rates {
        Rates {
            received: self.received + other.received,
            sent: self.sent + other.sent,
        }
    }
}

const MIB: f64 = 1024.0 * 1024.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(millis: u64, index: u64, received: u64, sent: u64) -> Reading {
        Reading {
            at: Duration::from_millis(millis),
            index,
            received,
            sent,
        }
    }

    #[track_caller]
    fn check(before: Reading, now: Reading, rates: Option<(f64, f64)>) {
        let found = now.since(&before);
        assert_eq!(found.map(|rates| (rates.received, rates.sent)), rates);
    }

    #[test]
    fn a_rate_is_what_was_added_by_the_time_that_it_took() {
        let before = reading(1000, 2, 5 << 20, 7);
        check(
            before,
            reading(1500, 2, 6 << 20, 7 + (1 << 19)),
            Some((2.0, 1.0)),
        );
        check(before, reading(2000, 2, 5 << 20, 7), Some((0.0, 0.0)));
    }

    #[test]
    fn a_counter_that_goes_back_gives_no_rate() {
        let before = reading(0, 2, 1 << 40, 1 << 40);
        check(before, reading(20, 2, 10, (1 << 40) + 1), None);
        check(before, reading(20, 2, (1 << 40) + 1, 10), None);
    }

    #[test]
    fn an_interface_that_came_back_under_its_name_gives_no_rate_though_its_counters_are_higher() {
        check(reading(0, 2, 0, 0), reading(20, 3, 1 << 50, 1 << 50), None);
    }

    #[test]
    fn no_time_gives_no_rate() {
        check(reading(20, 2, 0, 0), reading(20, 2, 5, 5), None);
        check(reading(20, 2, 0, 0), reading(10, 2, 5, 5), None);
    }
}
