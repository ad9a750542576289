//! Stretches of a read: how many bytes came in which time, while how many requests were under way.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The current stretch of a call. It is over when each request has been through about once.
#[derive(Debug)]
pub(crate) struct Stretch {
    part: u64,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    requests: usize,
    bytes: u64,
    begun: Instant,
}

impl Stretch {
    /// The first one of a call, which reads in parts of so many bytes.
    pub(crate) fn new(requests: usize, part: u64) -> Stretch {
        let begun = Instant::now();
        Stretch {
            part,
            now: Mutex::new(Now {
                requests,
                bytes: 0,
                begun,
            }),
        }
    }

    /// Adds bytes that have come; returns requests, bytes and time of the stretch that is over with them. The next one begins.
    pub(super) fn add(&self, bytes: u64, at: Instant) -> Option<(usize, u64, Duration)> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.bytes += bytes;
        if now.bytes < self.part.saturating_mul(now.requests as u64) {
            return None;
        }
        let time = at.saturating_duration_since(now.begun);
        let over = (now.requests, now.bytes, time);
        (now.bytes, now.begun) = (0, at);
        Some(over)
    }

    /// From now on so many requests are under way.
    pub(super) fn begin(&self, requests: usize) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.requests = requests;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_over_when_each_request_has_been_through_once() {
        let stretch = Stretch::new(2, 100);
        let begun = stretch.now.lock().unwrap().begun;
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(stretch.add(100, at(1)), None);
        let over = stretch.add(150, at(3));
        assert_eq!(over, Some((2, 250, Duration::from_secs(3))));
        stretch.begin(3);
        assert_eq!(stretch.add(250, at(4)), None);
        let over = stretch.add(50, at(5));
        assert_eq!(over, Some((3, 300, Duration::from_secs(2))));
    }
}
