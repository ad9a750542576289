//! What a forked child must know: that the threads of its parent are not there.
//!
//! `fork(2)` copies the memory of all threads and the life of one. A handler that runs in the child counts generations
//! and forgets the shared pools; whoever holds something that needs a thread compares its generation with the current
//! one before it waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static GENERATION: AtomicU64 = AtomicU64::new(0);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// The number of forks between this process and the first one that used kvik.
pub(crate) fn generation() -> u64 {
    // Looked at first: many threads ask, and a load leaves the line with all of them.
    if !WATCHED.load(Ordering::Acquire) && !WATCHED.swap(true, Ordering::AcqRel) {
        // SAFETY: `in_child` only stores to atomics, which is allowed between fork and exec; it does not unwind. The
        // only failure is lack of memory for the registration, and then a child finds no pool worker and no
        // generation change: it is no worse off than without the handler.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
    GENERATION.load(Ordering::Acquire)
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::AcqRel);
    crate::pool::forget_shared();
    crate::budget::forget_shared();
}
