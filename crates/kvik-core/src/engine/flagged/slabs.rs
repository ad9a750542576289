//! The slabs of transfers in the order of a stream: [`Slabs`].

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::device::Slab;

/// Slabs of one length, for one transfer or for several that follow each other on a stream. The stream is past the one before it
/// comes to the next, and a transfer touches no slab before the stream has come to it, so that each slab is one's alone. They go
/// back when the last of these is over.
///
/// That holds if all of a transfer is queued before anything of the next is: whoever queues has a claim to them until then.
pub(super) struct Slabs {
    all: Vec<Slab>,
    claimed: AtomicBool,
    lost: AtomicBool,
}

impl Slabs {
    /// `all`, at least one of them, are as long as each other. The caller has a claim to them.
    pub(super) fn new(all: Vec<Slab>) -> Arc<Slabs> {
        Arc::new(Slabs {
            all,
            claimed: AtomicBool::new(true),
            lost: AtomicBool::new(false),
        })
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// The size of each in bytes.
    pub(super) fn size(&self) -> usize {
        self.all.first().map_or(0, Slab::len)
    }

    /// The first byte of one.
    pub(super) fn start(&self, slot: usize) -> NonNull<u8> {
        self.all[slot].start()
    }

    /// Claims them for another transfer on the same stream; `false` if somebody else has, who may never give that up.
    pub(super) fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::AcqRel)
    }

    /// Gives up the claim: whatever is queued through them is queued in whole.
    pub(super) fn disclaim(&self) {
        self.claimed.store(false, Ordering::Release);
    }

    /// Notes that the device may still be at one of them, and nobody can tell when it is not.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }
}

impl Drop for Slabs {
    fn drop(&mut self) {
        if self.lost.load(Ordering::Acquire) {
            self.all.drain(..).for_each(Slab::abandon);
        }
    }
}
