//! Room in cuFile for many requests at once, of one file.

use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use kvik_sys::{BatchEvent, BatchRequest, CallError, CuFileBatch, CuFileStatus};

use super::RegisteredFile;
use crate::device;

/// A batch of cuFile's, destroyed on drop unless requests are in flight: then it stays for ever, and so does what they use.
///
/// It is submitted, answered in full and submitted again. That cuFile takes more while some are in flight, nobody promises.
pub(crate) struct RequestQueue {
    batch: CuFileBatch,
    // cuFile may look at them until it has answered.
    requests: Vec<BatchRequest>,
    events: Vec<BatchEvent>,
    // How many have no answer.
    flying: usize,
    file: Arc<RegisteredFile>,
}

impl RequestQueue {
    /// Room for `most` requests of `file`.
    ///
    /// # Errors
    /// cuFile has no batches, or none to spare.
    pub(crate) fn set_up(
        file: &Arc<RegisteredFile>,
        most: u32,
    ) -> Result<RequestQueue, CallError<CuFileStatus>> {
        Ok(RequestQueue {
            batch: file.cufile().batch_io_set_up(most)?,
            requests: Vec::with_capacity(most as usize),
            events: vec![BatchEvent::EMPTY; most as usize],
            flying: 0,
            file: Arc::clone(file),
        })
    }

    /// How many requests it takes at once.
    pub(crate) fn room(&self) -> usize {
        self.events.len()
    }

    /// Submits requests of its file, no more than it has room for. Where it fails, some of them may be in flight.
    ///
    /// # Errors
    /// cuFile's answer.
    ///
    /// # Safety
    /// None is in flight. The memory that they name is of one device's allocation, valid and lent to them, for reads
    /// exclusively, until their events came; of requests without an event, for ever.
    pub(crate) unsafe fn submit(
        &mut self,
        requests: impl Iterator<Item = BatchRequest>,
    ) -> Result<(), CallError<CuFileStatus>> {
        self.requests.clear();
        self.requests.extend(requests.take(self.events.len()));
        self.flying = self.requests.len();
        let requests = NonNull::from(self.requests.as_mut_slice());
        // SAFETY: the batch is alive, since only `drop` destroys it, with room for as many. The requests stay in this vector, which
        // nobody touches before all have been answered. Their handle is that of the file that is kept, and their memory is
        // there by the caller's promise.
        unsafe { self.file.cufile().batch_io_submit(self.batch, requests) }
    }

    /// Takes back what was refused as a whole, by an answer that says so.
    pub(crate) fn refused(&mut self) {
        self.flying = 0;
    }

    /// The events that there are; waits for one, for `limit` at most. Those that say that a request goes on are none.
    ///
    /// # Errors
    /// cuFile's answer.
    pub(crate) fn collect(
        &mut self,
        limit: Duration,
    ) -> Result<&[BatchEvent], CallError<CuFileStatus>> {
        // SAFETY: the batch is alive, since only `drop` destroys it.
        let collected = unsafe {
            self.file
                .cufile()
                .batch_io_get_status(self.batch, 1, &mut self.events, Some(limit))
        };
        let count = collected?.min(self.events.len());
        Ok(&self.events[..count])
    }

    /// Counts one request as answered.
    pub(crate) fn answered(&mut self) {
        self.flying = self.flying.saturating_sub(1);
    }

    /// Asks cuFile to let be what has not begun. What it has answered by then is to be collected; what it has not may go on.
    pub(crate) fn cancel(&self) {
        // SAFETY: the batch is alive, since only `drop` destroys it.
        let cancelled = unsafe { self.file.cufile().batch_io_cancel(self.batch) };
        if let Err(error) = cancelled {
            tracing::warn!(%error, "cuFile does not cancel a batch");
        }
    }
}

impl Drop for RequestQueue {
    fn drop(&mut self) {
        // What a child inherited is its parent's.
        if self.flying > 0 || !device::is_started() {
            mem::forget(mem::take(&mut self.requests));
            mem::forget(Arc::clone(&self.file));
            return;
        }
        // SAFETY: `set_up` is the only maker of the batch and this is its only release; no request is in flight. A library with
        // the other calls has this one.
        let _ = unsafe { self.file.cufile().batch_io_destroy(self.batch) };
    }
}
