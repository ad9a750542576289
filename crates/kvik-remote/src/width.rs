//! How many requests a read has under way at a time: learnt from what more of them bring. Pure.

use std::time::Duration;

/// How many requests each read of a handle has under way, where nobody has said it.
///
/// Twice as many are tried once in a while, and the former number again after that, so that what got faster meanwhile is not
/// taken for their merit. Only where twice as many brought clearly more do they stay. What the host makes of it is not
/// decided here: it may let in fewer (see `Pace`).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Width {
    // Those that stay for now.
    requests: usize,
    phase: Phase,
    // The fastest stretch of this phase, and how many there were.
    fastest: f64,
    stretches: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Before,
    Twice { before: f64 },
    Again { before: f64, twice: f64 },
    Rest { phases: u32 },
}

impl Width {
    pub(crate) fn new() -> Width {
        Width {
            requests: FIRST,
            phase: Phase::Before,
            fastest: 0.0,
            stretches: 0,
        }
    }

    /// As many as are to be under way now.
    pub(crate) fn requests(&self) -> usize {
        match self.phase {
            Phase::Twice { .. } => 2 * self.requests,
            _ => self.requests,
        }
    }

    /// A stretch of a read, with so many requests under way, brought `bytes` in `time`.
    pub(crate) fn note(&mut self, requests: usize, bytes: u64, time: Duration) {
        // One that began before the number changed, or took no time, tells nothing.
        if requests != self.requests() || time.is_zero() {
            return;
        }
        self.stretches += 1;
        // The first is still that of the former number, in part.
        if self.stretches > 1 {
            self.fastest = self.fastest.max(bytes as f64 / time.as_secs_f64());
        }
        if self.stretches == STRETCHES {
            self.phase = self.next();
            (self.fastest, self.stretches) = (0.0, 0);
        }
    }

    fn next(&mut self) -> Phase {
        let fastest = self.fastest;
        match self.phase {
            Phase::Rest { phases } if phases > 1 => Phase::Rest { phases: phases - 1 },
            Phase::Rest { .. } => Phase::Before,
            _ if 2 * self.requests > MOST => Phase::Rest { phases: REST },
            Phase::Before => Phase::Twice { before: fastest },
            Phase::Twice { before } => Phase::Again {
                before,
                twice: fastest,
            },
            Phase::Again { before, twice } if twice > WORTH * before.max(fastest) => {
                self.requests *= 2;
                Phase::Before
            }
            Phase::Again { .. } => Phase::Rest { phases: REST },
        }
    }
}

// Enough to fill a network of 10 Gbit/s at some milliseconds' distance.
const FIRST: usize = 16;
// Beyond this a read by one handle is limited by what we do with the bytes.
const MOST: usize = 128;
// One stretch may be slow by chance; the fastest of some is what the way allows.
const STRETCHES: u32 = 4;
// Twice the connections cost the server and others on the way something, too.
const WORTH: f64 = 1.25;
// Between two trials, so that they are no more than a small part of a long read.
const REST: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Reads where so many requests bring so many bytes in a second, until `stretches` are over.
    fn learn(width: &mut Width, stretches: u32, brings: impl Fn(usize) -> u64) {
        for _ in 0..stretches {
            let requests = width.requests();
            width.note(requests, brings(requests), SECOND);
        }
    }

    #[test]
    fn where_each_request_brings_as_much_as_before_there_are_more_up_to_a_limit() {
        let mut width = Width::new();
        let mut seen = vec![width.requests()];
        for _ in 0..200 {
            learn(&mut width, 1, |requests| 50_000_000 * requests as u64);
            if seen.last() != Some(&width.requests()) {
                seen.push(width.requests());
            }
        }
        assert_eq!(seen, [16, 32, 16, 32, 64, 32, 64, 128, 64, 128]);
    }

    #[test]
    fn where_more_bring_no_more_they_are_tried_once_in_a_while_and_given_up() {
        for brings in [1000, 10_000_000_000] {
            let mut width = Width::new();
            let mut tried = 0;
            for _ in 0..1000 {
                learn(&mut width, 1, |_| brings);
                assert!(width.requests() <= 32);
                tried += u32::from(width.requests() == 32);
            }
            // Each trial has four stretches of some ninety.
            assert!((40..60).contains(&tried), "{tried}");
        }
    }

    #[test]
    fn what_gets_faster_by_itself_is_not_taken_for_their_merit() {
        let mut width = Width::new();
        // Connections that are new are slow, however many there are.
        learn(&mut width, 4, |_| 1_000);
        assert_eq!(width.requests(), 32);
        learn(&mut width, 8, |_| 1_000_000);
        assert_eq!(width.requests(), 16);
        learn(&mut width, 4, |_| 1_000_000);
        assert_eq!(width.requests(), 16);
    }

    #[test]
    fn stretches_of_another_number_and_of_no_time_tell_nothing() {
        let mut width = Width::new();
        for _ in 0..100 {
            width.note(32, 1_000, SECOND);
            width.note(16, 1_000, Duration::ZERO);
        }
        assert_eq!(width, Width::new());
    }
}
