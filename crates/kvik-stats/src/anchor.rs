//! The clock of a monitor, and what makes times of the world out of it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// One moment on both clocks: the steady one, by which durations are measured, and that of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) steady: i64,
    /// Nanoseconds since 1970.
    pub(crate) wall: i64,
}

impl Anchor {
    /// When in the world it was `steady`.
    pub(crate) fn unix(&self, steady: i64) -> i64 {
        self.wall.saturating_add(steady.saturating_sub(self.steady))
    }
}

/// A steady clock that began with its monitor. Spans that follow each other are told by the same anchor, so that none begins, in the
/// world's time, before the one before it ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    pub(crate) anchor: Anchor,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let signed = |ns: u128| i64::try_from(ns).unwrap_or(i64::MAX);
        let wall = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => signed(since.as_nanos()),
            Err(before) => -signed(before.duration().as_nanos()),
        };
        Clock {
            origin: Instant::now(),
            anchor: Anchor { steady: 0, wall },
        }
    }

    /// Nanoseconds from the monitor's start to `instant`.
    pub(crate) fn at(&self, instant: Instant) -> i64 {
        let since = instant.saturating_duration_since(self.origin);
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    }
}
