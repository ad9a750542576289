//! What makes times of the world out of those of a steady clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// One moment on both clocks: the steady one, by which durations are measured, and that of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) steady: i64,
    /// Nanoseconds since 1970.
    pub(crate) wall: i64,
}

impl Anchor {
    /// This moment, which is `steady` on the steady clock.
    pub(crate) fn now(steady: i64) -> Anchor {
        let signed = |ns: u128| i64::try_from(ns).unwrap_or(i64::MAX);
        let wall = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => signed(since.as_nanos()),
            Err(before) => -signed(before.duration().as_nanos()),
        };
        Anchor { steady, wall }
    }

    /// When in the world it was `steady`.
    pub(crate) fn unix(&self, steady: i64) -> i64 {
        self.wall.saturating_add(steady.saturating_sub(self.steady))
    }
}
