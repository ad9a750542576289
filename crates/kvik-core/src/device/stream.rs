//! Streams to copy on, kept for the next ones who need any.

use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicPtr;

use kvik_sys::{CallError, CudaStatus, DevicePtr, Stream, StreamFlags};

use super::context::{Context, State};
use super::driver::{driver, failed, refused, started};
use super::mark::Mark;
use super::raw_stream::RawStream;
use super::store::Store;
use crate::error::{Op, Result};
use crate::pool::shared_value;

/// A stream that waits for no other unless told to, lent to one thread. Its caller has entered its context.
pub(crate) struct CopyStream {
    stream: Stream,
    context: Context,
    lists: RefCell<Lists>,
    // Whether it may still wait for others.
    waits: Cell<bool>,
}

/// A piece of memory on the device and one of the host, between which bytes are copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) device: u64,
    pub(crate) host: NonNull<u8>,
    pub(crate) len: usize,
}

/// What a batch is made of, kept for the memory it has.
#[derive(Default)]
struct Lists {
    to: Vec<DevicePtr>,
    from: Vec<DevicePtr>,
    sizes: Vec<usize>,
}

impl CopyStream {
    /// A stream of `context`, which the caller has entered.
    pub(crate) fn lend(context: Context) -> Result<CopyStream> {
        let cuda = driver()?.cuda();
        let (stream, lists) = match streams().take(context) {
            Some(kept) => kept,
            None => {
                let made = cuda.stream_create(StreamFlags::NON_BLOCKING);
                let made = made.map_err(|status| failed(Op::Copy, "cuStreamCreate", status))?;
                (made, Lists::default())
            }
        };
        Ok(CopyStream {
            stream,
            context,
            lists: RefCell::new(lists),
            waits: Cell::new(false),
        })
    }

    /// What is queued here from now on waits for what has been queued on the default stream of the context so far. The device
    /// waits, not the caller.
    ///
    /// # Errors
    /// `Misuse` while a stream that is ordered with the default stream records a graph, which goes on undisturbed: the driver
    /// would end the recording rather than let anybody wait for the default stream.
    pub(crate) fn follow_default(&self) -> Result<()> {
        self.follow(RawStream::DEFAULT)
    }

    /// The same for any stream, of whatever context.
    ///
    /// # Errors
    /// `Misuse` if it records a graph, which goes on undisturbed.
    pub(crate) fn follow(&self, stream: RawStream) -> Result<()> {
        match stream.queue(self.context)? {
            Some(mark) => self.wait_for(&mark),
            None => Ok(()),
        }
    }

    /// What is queued here from now on waits, on the device, until a mark is passed.
    pub(crate) fn wait_for(&self, mark: &Mark) -> Result<()> {
        let cuda = driver()?.cuda();
        self.waits.set(true);
        // SAFETY: stream and event are ours; they may be of two contexts. The driver notes the event's state during the call,
        // so that it may be set anew afterwards.
        unsafe { cuda.stream_wait_event(self.stream, mark.event()) }
            .map_err(|status| failed(Op::Copy, "cuStreamWaitEvent", status))
    }

    /// Queues a copy of `len` bytes to the device.
    ///
    /// # Safety
    /// Until the stream is past the copy, the memory at `from` is valid, initialised, and nobody writes to it; that at `to` is
    /// memory of the stream's device or managed, valid, and nobody else touches it.
    pub(crate) unsafe fn to_device(&self, to: u64, from: NonNull<u8>, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let cuda = driver()?.cuda();
        // SAFETY: the stream is ours and its context is entered; the rest is the caller's promise.
        unsafe { cuda.memcpy_htod_async(DevicePtr::new(to), from.as_ptr(), len, self.stream) }
            .map_err(|status| failed(Op::Copy, "cuMemcpyHtoDAsync", status))
    }

    /// Queues a copy of `len` bytes from the device.
    ///
    /// # Safety
    /// As for [`to_device`](CopyStream::to_device), with the roles of the two changed.
    pub(crate) unsafe fn to_host(&self, to: NonNull<u8>, from: u64, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let cuda = driver()?.cuda();
        // SAFETY: as in `to_device`.
        unsafe { cuda.memcpy_dtoh_async(to.as_ptr(), DevicePtr::new(from), len, self.stream) }
            .map_err(|status| failed(Op::Copy, "cuMemcpyDtoHAsync", status))
    }

    /// Queues many copies to the device in one call of the driver where it
    /// can do that. They run in no order among each other. After an error some of them may be under way.
    ///
    /// # Safety
    /// As for [`to_device`](CopyStream::to_device), for each; the memory of the host is pinned, and no two copies overlap.
    pub(crate) unsafe fn batch_to_device(&self, copies: &[Copy]) -> Result<()> {
        let pairs = copies.iter().map(|copy| {
            (
                DevicePtr::new(copy.device),
                DevicePtr::of_host(copy.host.as_ptr()),
                copy.len,
            )
        });
        // SAFETY: the caller's promise.
        if unsafe { self.batch(pairs) }? {
            return Ok(());
        }
        copies.iter().try_for_each(|copy| {
            // SAFETY: the caller's promise.
            unsafe { self.to_device(copy.device, copy.host, copy.len) }
        })
    }

    /// Queues many copies from the device, as [`batch_to_device`](CopyStream::batch_to_device).
    ///
    /// # Safety
    /// As for [`to_host`](CopyStream::to_host), for each; the memory of the host is pinned, and no two copies overlap.
    pub(crate) unsafe fn batch_to_host(&self, copies: &[Copy]) -> Result<()> {
        let pairs = copies.iter().map(|copy| {
            (
                DevicePtr::of_host(copy.host.as_ptr()),
                DevicePtr::new(copy.device),
                copy.len,
            )
        });
        // SAFETY: the caller's promise.
        if unsafe { self.batch(pairs) }? {
            return Ok(());
        }
        copies.iter().try_for_each(|copy| {
            // SAFETY: the caller's promise.
            unsafe { self.to_host(copy.host, copy.device, copy.len) }
        })
    }

    /// Queues all copies in one call; `false` if they have to be queued one by one.
    ///
    /// # Safety
    /// As for [`batch_to_device`](CopyStream::batch_to_device) or [`batch_to_host`](CopyStream::batch_to_host).
    unsafe fn batch(
        &self,
        copies: impl ExactSizeIterator<Item = (DevicePtr, DevicePtr, usize)>,
    ) -> Result<bool> {
        let cuda = driver()?.cuda();
        if copies.len() < 2 {
            return Ok(false);
        }
        let mut lists = self.lists.borrow_mut();
        lists.clear();
        // The driver refuses copies of nothing.
        for (to, from, len) in copies.filter(|copy| copy.2 > 0) {
            lists.to.push(to);
            lists.from.push(from);
            lists.sizes.push(len);
        }
        if lists.sizes.len() < 2 {
            return Ok(false);
        }
        // SAFETY: the stream is ours and no default stream; the rest is the caller's promise.
        let queued =
            unsafe { cuda.memcpy_batch_async(&lists.to, &lists.from, &lists.sizes, self.stream) };
        match queued {
            Ok(()) => Ok(true),
            Err(CallError::Unsupported(_) | CallError::Status(CudaStatus::NOT_SUPPORTED)) => {
                Ok(false)
            }
            Err(why) => Err(refused(Op::Copy, "cuMemcpyBatchAsync", why)),
        }
    }

    /// Queues setting `len` bytes of the device to `byte`.
    ///
    /// # Safety
    /// Until the stream is past it, the memory at `to` is memory of the stream's device or managed, valid, and nobody else
    /// touches it.
    pub(super) unsafe fn fill(&self, to: u64, byte: u8, len: usize) -> Result<()> {
        let cuda = driver()?.cuda();
        // SAFETY: the stream is ours and its context is entered; the rest is the caller's promise.
        unsafe { cuda.memset_d8_async(DevicePtr::new(to), byte, len, self.stream) }
            .map_err(|status| failed(Op::Copy, "cuMemsetD8Async", status))
    }

    /// Marks the place that the queue has come to.
    pub(crate) fn mark(&self) -> Result<Mark> {
        Mark::set(self.context, self.stream)
    }

    /// Waits until all that is queued is done.
    ///
    /// # Errors
    /// What went wrong with it, or with anything before in the context: whether it has waited then, only
    /// [`is_quiet`](CopyStream::is_quiet) tells.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let cuda = driver()?.cuda();
        // SAFETY: the stream is ours.
        unsafe { cuda.stream_synchronize(self.stream) }
            .map_err(|status| failed(Op::Copy, "cuStreamSynchronize", status))?;
        self.waits.set(false);
        Ok(())
    }

    /// Waits until nothing of it is under way; `false` if that cannot be known.
    pub(crate) fn is_quiet(&self) -> bool {
        // The driver may answer with what went wrong before, once, and without having waited.
        (0..2).any(|_| self.synchronize().is_ok())
    }
}

impl Drop for CopyStream {
    fn drop(&mut self) {
        // In a child it is not ours any more.
        let Some(driver) = started() else { return };
        if !self.waits.get() {
            return streams().put(self.context, (self.stream, self.lists.take()));
        }
        // Whoever got it next would wait for streams that were not named.
        if self.context.state(driver.cuda()) == State::Alive {
            // SAFETY: `lend` made it, it did not die with its context, and nobody uses it after this. What is queued on it
            // still runs.
            let _ = unsafe { driver.cuda().stream_destroy(self.stream) };
        }
    }
}

impl Lists {
    fn clear(&mut self) {
        self.to.clear();
        self.from.clear();
        self.sizes.clear();
    }
}

static STREAMS: AtomicPtr<Store<(Stream, Lists)>> = AtomicPtr::new(ptr::null_mut());

fn streams() -> &'static Store<(Stream, Lists)> {
    shared_value(&STREAMS, Store::new)
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
