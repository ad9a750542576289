//! Devices: the driver, contexts, addresses, streams, pinned memory and buffers. Each thing of the driver's has one owner
//! here, which releases it once.
//!
//! - **The driver** is loaded and started at the first use of a device, once in a process; reads and writes of host memory
//!   never do it. Whatever came of it stays, failures too.
//! - **Contexts.** A thread enters the context of the memory that it works on and leaves it again: [`Entered`]. The caller's
//!   current context is the same before and after, on every path. No context is made where somebody's memory is in one
//!   already; where there is none (memory of a pool), the device's primary one is held, for the life of the process.
//! - **Captures.** While a thread of the program records a graph, calls of other threads that the driver thinks unsafe then
//!   would end the recording. Whoever has entered a context has told the driver that it takes no part in any.
//! - **What dies with its context** (a program may destroy its own, or reset a device) is never touched again: streams and
//!   events are kept under the identity of their context, which the driver does not give to two, and which is asked for
//!   anew each time a context is entered.
//! - **Order.** Copies run on streams of ours that wait for no other. [`CopyStream::follow_default`] makes such a stream
//!   wait, on the device, for what was queued on the default stream before.
//! - **Threads.** A stream is one thread's at a time: taken out of a store, used without a lock, put back. Marks and pinned
//!   blocks come from stores too, whose locks nobody holds during a call of the driver.
//! - **Fork.** A device stays with the process that used it first. A child gets errors ([`ErrorKind::Forked`]); what it
//!   inherited and drops is left alone.
//! - **Exit.** Stores are never freed, and what is dropped while the driver shuts down ignores its answers.
//!
//! [`ErrorKind::Forked`]: crate::ErrorKind::Forked

mod buffer;
mod caller_stream;
mod context;
pub(crate) mod default_stream;
mod driver;
#[cfg(test)]
mod fake;
mod mark;
mod pinned;
mod pinned_buffer;
mod pointer;
mod raw_stream;
mod slab;
mod store;
mod stream;
mod words;

pub use buffer::DeviceBuffer;
pub(crate) use caller_stream::CallerStream;
pub(crate) use context::{Context, Entered};
pub(crate) use driver::{is_started, start};
pub(crate) use mark::Mark;
pub use pinned_buffer::PinnedBuffer;
pub(crate) use pointer::{Space, allocation_start, locate};
pub use raw_stream::RawStream;
pub use slab::{PinnedMemory, free_pinned_memory, pinned_memory};
pub(crate) use slab::{Slab, StayPinned};
pub(crate) use stream::{Copy, CopyStream};
pub(crate) use words::{Addresses, Words};

use crate::error::{Error, ErrorKind, Op, Result};

/// Where memory of a device is, and what must be done before it may be touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The context of its allocation.
    pub(crate) context: Context,
    /// The streams, besides the default one, whose work so far comes first.
    pub(crate) streams: [Option<RawStream>; 2],
    // Whether there was no room for one of them.
    too_many: bool,
}

/// The context that all `spots`, of which there is one at least, are in, and what transfers there come behind: what is queued
/// now on the default stream and on the streams that the spots name, as far as it is not done.
///
/// # Errors
/// `Misuse` if one of the streams records a graph, or there are too many; `Device` if the driver fails.
pub(crate) fn queued_before(spots: &[Spot]) -> Result<(Context, Vec<Mark>)> {
    let context = spots[0].context;
    spots.iter().try_for_each(Spot::check)?;
    let _entered = context.enter()?;
    let named = spots.iter().flat_map(|spot| spot.streams).flatten();
    let mut before = Vec::new();
    for stream in named.chain([RawStream::DEFAULT]) {
        before.extend(stream.queue(context)?);
    }
    Ok((context, before))
}

impl Spot {
    /// In `context`, behind the stream of the memory itself, if it has one.
    pub(crate) fn new(context: Context, own: Option<RawStream>) -> Spot {
        Spot {
            context,
            streams: [own, None],
            too_many: false,
        }
    }

    /// Behind `stream` as well.
    pub(crate) fn follow(&mut self, stream: RawStream) {
        match self.streams {
            known if known.contains(&Some(stream)) => {}
            [None, _] => self.streams[0] = Some(stream),
            [_, None] => self.streams[1] = Some(stream),
            _ => self.too_many = true,
        }
    }

    /// Refuses what cannot wait for all that it was told to: its bytes could be touched too early.
    ///
    /// # Errors
    /// `Misuse` if there are more than two streams.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.too_many {
            return Ok(());
        }
        let why = "a transfer goes behind two streams at most, that of the buffer included; let one of them wait for the others";
        Err(Error::new(ErrorKind::Misuse, Op::Inspect, why))
    }
}
