//! The engine for memory of a device where no engine moves its bytes directly: through page-locked slabs of the host.
//!
//! ```text
//! file -> engine for the host's memory -> slab -> asynchronous copy -> device      (a read; a write is the mirror image)
//! ```
//! A lane has two slabs, so that one is filled while the other is copied, and a stream of its own for the copies. Small
//! tasks share a slab, and their copies are submitted in one call.
//!
//! Copies are ordered behind what was queued on the legacy default stream of the memory's context, and on streams that the
//! caller names, when the call began.

mod lane;
mod once;
mod places;
mod sizes;
mod stage;

use std::sync::Arc;

use kvik_stats::Backend;

use super::{Engine, Lane};
use crate::device::{self, Context, Mark, Spot};
use crate::error::Result;
use lane::StagedLane;
pub(crate) use once::Once;
use sizes::Sizes;

/// Reads and writes of one object for memory in one context.
pub(crate) struct Staged {
    host: Arc<dyn Engine>,
    context: Context,
    sizes: Sizes,
    longest: u64,
    // What comes before the copies: what was queued when the call began, as far as it was not done by then.
    before: Vec<Mark>,
}

impl Staged {
    /// `host` moves the bytes between the object and the slabs, which are no longer than `bounce_buffer_size` bytes. No
    /// task will be longer than `longest`. All `spots`, of which there is one at least, are in one context.
    ///
    /// # Errors
    /// As for [`device::queued_before`].
    pub(crate) fn new(
        host: Arc<dyn Engine>,
        spots: &[Spot],
        bounce_buffer_size: u64,
        longest: u64,
    ) -> Result<Staged> {
        let (context, before) = device::queued_before(spots)?;
        let sizes = Sizes::of(bounce_buffer_size);
        Ok(Staged {
            host,
            context,
            longest: longest.clamp(1, sizes.room),
            sizes,
            before,
        })
    }

    /// The same for work in `context`, before which nothing comes that was not waited for already. Tasks are no longer than a slab.
    pub(crate) fn at_once(
        host: Arc<dyn Engine>,
        context: Context,
        bounce_buffer_size: u64,
    ) -> Staged {
        let sizes = Sizes::of(bounce_buffer_size);
        Staged {
            host,
            context,
            longest: sizes.room,
            sizes,
            before: Vec::new(),
        }
    }
}

impl Engine for Staged {
    fn backend(&self) -> Backend {
        self.host.backend()
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        Ok(Box::new(StagedLane::new(self)?))
    }

    fn writers(&self) -> usize {
        self.host.writers()
    }

    fn largest(&self) -> u64 {
        self.longest
    }

    fn is_remote(&self) -> bool {
        self.host.is_remote()
    }

    fn stop(&self) {
        self.host.stop();
    }
}
