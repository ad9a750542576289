//! Marks in the queue of a stream: what has been queued before one is done when the device has passed it.

use std::hint;
use std::ptr;
use std::sync::atomic::AtomicPtr;

use kvik_sys::{Event, EventFlags, Stream};

use super::context::Context;
use super::driver::{driver, failed, started};
use super::store::Store;
use crate::error::{Op, Result};
use crate::pool::shared_value;

/// A place in the queue of a stream.
pub(crate) struct Mark {
    event: Event,
    context: Context,
}

impl Mark {
    /// Marks the place that the queue of `stream`, which is one of `context`, has come to.
    pub(super) fn set(context: Context, stream: Stream) -> Result<Mark> {
        let cuda = driver()?.cuda();
        let event = match events().take(context) {
            Some(event) => event,
            None => cuda
                .event_create(EventFlags::DISABLE_TIMING | EventFlags::BLOCKING_SYNC)
                .map_err(|status| failed(Op::Copy, "cuEventCreate", status))?,
        };
        // From here on the event is put back, whatever happens.
        let mark = Mark { event, context };
        // SAFETY: the event is ours and of the stream's context, which is entered. The stream is ours, or there by the
        // promise made to `RawStream::from_raw`.
        unsafe { cuda.event_record(event, stream) }
            .map_err(|status| failed(Op::Copy, "cuEventRecord", status))?;
        Ok(mark)
    }

    pub(super) fn event(&self) -> Event {
        self.event
    }

    /// Whether the device has passed it.
    ///
    /// # Errors
    /// What went wrong with the work before it. Nothing of it is under way any more.
    pub(crate) fn is_done(&self) -> Result<bool> {
        let cuda = driver()?.cuda();
        // SAFETY: the event is ours.
        unsafe { cuda.event_query(self.event) }
            .map_err(|status| failed(Op::Copy, "cuEventQuery", status))
    }

    /// Waits until the device has passed it.
    ///
    /// # Errors
    /// As for [`is_done`](Mark::is_done).
    pub(crate) fn wait(&self) -> Result<()> {
        for _ in 0..LOOKS {
            if self.is_done()? {
                return Ok(());
            }
            hint::spin_loop();
        }
        let cuda = driver()?.cuda();
        // SAFETY: the event is ours.
        unsafe { cuda.event_synchronize(self.event) }
            .map_err(|status| failed(Op::Copy, "cuEventSynchronize", status))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // It may be set anew before the device has passed it: nobody asks for the old place any more.
        if started().is_some() {
            events().put(self.context, self.event);
        }
    }
}

// How often a thread looks whether the device has passed a mark before it sleeps: long enough for a small copy. On an H200 a
// look takes some 0.2 us, and a copy of 4 KiB some 7 us.
const LOOKS: u32 = 64;

static EVENTS: AtomicPtr<Store<Event>> = AtomicPtr::new(ptr::null_mut());

fn events() -> &'static Store<Event> {
    shared_value(&EVENTS, Store::new)
}
