//! What a forked child must know: that the threads of its parent are not there.
//!
//! `fork(2)` copies the memory of all threads and the life of one. A handler that runs in the child counts generations
//! and forgets the shared pools; whoever holds something that needs a thread compares its generation with the current
//! one before it waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

static GENERATION: AtomicU64 = AtomicU64::new(0);
// How many threads are in `fork(2)` just now.
static UNDER_WAY: AtomicU64 = AtomicU64::new(0);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// The number of forks between this process and the first one that used kvik.
pub(crate) fn generation() -> u64 {
    // Looked at first: many threads ask, and a load leaves the line with all of them.
    if !WATCHED.load(Ordering::Acquire) && !WATCHED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handlers only store to atomics, which is allowed between fork and exec; they do not unwind. The
        // only failure is lack of memory for the registration, and then a child finds no pool worker and no
        // generation change: it is no worse off than without the handlers.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
    GENERATION.load(Ordering::Acquire)
}

/// Returns at a moment when no fork is under way.
///
/// The child gets its descriptors before its memory. What is opened in between is no file there, but its number is, unless
/// it is kept from everybody until here.
pub(crate) fn wait_for_forks() {
    generation();
    // A wait with an end: handlers of the program's own that run at a fork may read files.
    for _ in 0..PATIENCE {
        if UNDER_WAY.load(Ordering::Acquire) == 0 {
            return;
        }
        thread::sleep(Duration::from_micros(100));
    }
}

extern "C" fn before() {
    UNDER_WAY.fetch_add(1, Ordering::AcqRel);
}

extern "C" fn in_parent() {
    UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
}

extern "C" fn in_child() {
    UNDER_WAY.store(0, Ordering::Release);
    GENERATION.fetch_add(1, Ordering::AcqRel);
    crate::pool::forget_shared();
    crate::budget::forget_shared();
    crate::gds::buffers::forget_shared();
}

// A second and more: a process of many gigabytes takes a few hundredths.
const PATIENCE: u32 = 10_000;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::once::Once;

    /// What a child of this fork would find in its memory are descriptors that it does not have.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a thread beside the fork")]
    fn what_is_made_while_a_fork_is_under_way_is_not_to_be_seen_before_it_is_over() {
        let once = Once::new();
        before();
        thread::scope(|scope| {
            let (made, wait) = mpsc::channel();
            let once = &once;
            scope.spawn(move || {
                once.get_or_make(|| made.send(()).map_or(0, |()| 1));
            });
            wait.recv().unwrap();
            assert_eq!(once.get(), None);
            in_parent();
        });
        assert_eq!(once.get(), Some(&1));
    }
}
