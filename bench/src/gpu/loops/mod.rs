//! The plain loops between files and the device: the limit of the cases, as the loops of the host are of theirs.
//!
//! Threads take the next chunk from a common counter, each with a stream and slabs of its own. All of that is there before
//! the clock runs; starting the threads is part of the time.

mod flagged;
mod list;
mod read;
mod write;

pub(super) use flagged::FlaggedLoop;
pub(super) use list::{ListLoop, ListWay};
pub(super) use read::{ReadLoop, ReadWay};
pub(super) use write::{WriteLoop, WriteWay};

use std::sync::atomic::{AtomicU64, Ordering};

/// The chunks of a turn: each thread takes the next one that nobody has.
struct Chunks {
    next: AtomicU64,
    end: u64,
}

impl Chunks {
    fn of(end: u64) -> Self {
        Self {
            next: AtomicU64::new(0),
            end,
        }
    }

    /// Where the next chunk begins, and its length.
    fn take(&self, chunk: usize) -> Option<(u64, usize)> {
        let at = self.next.fetch_add(chunk as u64, Ordering::Relaxed);
        (at < self.end).then(|| (at, (self.end - at).min(chunk as u64) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_everything_once() {
        let chunks = Chunks::of(10);
        let all: Vec<_> = std::iter::from_fn(|| chunks.take(4)).collect();
        assert_eq!(all, [(0, 4), (4, 4), (8, 2)]);
        assert_eq!(Chunks::of(0).take(4), None);
    }
}
