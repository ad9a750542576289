//! Work of ours on a stream of the program's own: [`CallerStream`].
//!
//! All of it is queued during the call that asks for it. Afterwards nobody of ours calls the driver for it to go on.

use std::ffi::c_void;
use std::ptr::NonNull;

use kvik_sys::{CudaStatus, DevicePtr, HostFn, Stream, WaitCondition};

use super::context::{Context, Entered};
use super::driver::{driver, failed, refused};
use super::mark::Mark;
use super::raw_stream::RawStream;
use super::words::Addresses;
use crate::error::{Error, ErrorKind, Op, Result};

/// A stream of the program's, and the context that it is of. Two are equal whichever way the program names the stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallerStream {
    // As it is named where the context is entered.
    stream: RawStream,
    context: Context,
}

impl CallerStream {
    /// `stream`, for memory in the context `memory`; a default stream of nobody's is that of this context.
    ///
    /// # Errors
    /// `Misuse` if the stream is another device's, or records a graph, which goes on undisturbed; `Device` if the driver fails.
    pub(crate) fn find(stream: RawStream, memory: Context) -> Result<CallerStream> {
        let cuda = driver()?.cuda();
        let context = {
            let _entered = memory.enter()?;
            stream.context(cuda, Op::Copy)?
        };
        if context.device() != memory.device() {
            let why = format!(
                "the stream is one of device {}, and the memory lies on device {}; name a stream of the memory's device",
                context.device(),
                memory.device()
            );
            return Err(Error::new(ErrorKind::Misuse, Op::Copy, why));
        }
        let _entered = context.enter()?;
        stream.refuse_capture(cuda, Op::Copy)?;
        Ok(CallerStream {
            stream: stream.within_its_context(),
            context,
        })
    }

    /// Whether it is the default stream of the thread that uses it.
    pub(crate) fn is_per_thread(&self) -> bool {
        self.stream.is_per_thread()
    }

    /// `stream`, whatever it is for.
    ///
    /// # Errors
    /// `Misuse` if it records a graph, or is a default stream and no context is current; `Device` if the driver fails.
    pub(crate) fn of(stream: RawStream) -> Result<CallerStream> {
        let context = stream.context(driver()?.cuda(), Op::Inspect)?;
        CallerStream::find(stream, context)
    }

    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// The driver's handle. A default stream is meant only where its context is entered.
    pub(crate) fn stream(&self) -> Stream {
        self.stream.stream()
    }

    pub(crate) fn enter(&self) -> Result<Entered> {
        self.context.enter()
    }

    /// What is queued from now on waits, on the device, for what has been queued on `other` so far. The caller has entered the
    /// context.
    ///
    /// # Errors
    /// `Misuse` if the other one records a graph; `Device` if the driver fails.
    pub(crate) fn go_behind(&self, other: RawStream) -> Result<()> {
        if other == self.stream {
            return Ok(());
        }
        let Some(mark) = other.queue(self.context)? else {
            return Ok(());
        };
        let cuda = driver()?.cuda();
        // SAFETY: `RawStream::from_raw` was promised that the stream is there, and the event is ours. The driver notes the
        // event's state during the call, so that it may be set anew afterwards.
        unsafe { cuda.stream_wait_event(self.stream(), mark.event()) }
            .map_err(|status| failed(Op::Copy, "cuStreamWaitEvent", status))
    }

    /// Queues counting up to `count` in the stream's word.
    pub(crate) fn count(&self, words: Addresses, count: u32) -> Result<()> {
        let cuda = driver()?.cuda();
        let word = words.stream;
        // SAFETY: the stream is there by the promise made to `RawStream::from_raw`, and words stay for ever.
        unsafe { cuda.stream_write_value32(self.stream(), word, count) }
            .map_err(|why| refused(Op::Copy, "cuStreamWriteValue32", why))
    }

    /// Queues waiting until the processor has counted up to `count`.
    pub(crate) fn wait_for(&self, words: Addresses, count: u32) -> Result<()> {
        let cuda = driver()?.cuda();
        let (word, at_least) = (words.host, WaitCondition::AT_LEAST);
        // SAFETY: as for `count`.
        unsafe { cuda.stream_wait_value32(self.stream(), word, count, at_least) }
            .map_err(|why| refused(Op::Copy, "cuStreamWaitValue32", why))
    }

    /// Queues a copy of `len` bytes, more than 0, to the device.
    ///
    /// # Safety
    /// When the stream comes there, and until it is past it, the memory at `from` is pinned and initialised, and nobody writes to
    /// it; that at `to` is memory of the stream's device or managed, valid, and nobody else touches it.
    pub(crate) unsafe fn to_device(&self, to: u64, from: NonNull<u8>, len: usize) -> Result<()> {
        let cuda = driver()?.cuda();
        let (to, stream) = (DevicePtr::new(to), self.stream());
        // SAFETY: the caller's promise.
        unsafe { cuda.memcpy_htod_async(to, from.as_ptr(), len, stream) }
            .map_err(|status| failed(Op::Copy, "cuMemcpyHtoDAsync", status))
    }

    /// Queues a copy of `len` bytes, more than 0, from the device.
    ///
    /// # Safety
    /// As for [`to_device`](CallerStream::to_device), with the roles of the two changed.
    pub(crate) unsafe fn to_host(&self, to: NonNull<u8>, from: u64, len: usize) -> Result<()> {
        let cuda = driver()?.cuda();
        let (from, stream) = (DevicePtr::new(from), self.stream());
        // SAFETY: the caller's promise.
        unsafe { cuda.memcpy_dtoh_async(to.as_ptr(), from, len, stream) }
            .map_err(|status| failed(Op::Copy, "cuMemcpyDtoHAsync", status))
    }

    /// Whether all that was queued is known to be done: not of a default stream of a thread, which another thread may mean, nor of
    /// one that records a graph.
    ///
    /// # Errors
    /// What went wrong in its context: nothing that was queued there is done any more.
    pub(crate) fn look(&self) -> Result<bool> {
        let cuda = driver()?.cuda();
        let _entered = self.context.enter()?;
        match self.stream.refuse_capture(cuda, Op::Copy) {
            // Whoever asks about a stream that records a graph would end the recording.
            Err(error) if error.kind() == ErrorKind::Misuse => return Ok(false),
            looked => looked?,
        }
        // SAFETY: `RawStream::from_raw` was promised that the stream is there.
        match unsafe { cuda.stream_query(self.stream()) } {
            // It may just have begun to record one.
            Err(CudaStatus::STREAM_CAPTURE_UNSUPPORTED) => Ok(false),
            Ok(is_done) => Ok(is_done && !self.is_per_thread()),
            Err(status) => Err(failed(Op::Copy, "cuStreamQuery", status)),
        }
    }

    /// Marks the place that the queue has come to. The caller has entered the context.
    pub(crate) fn mark(&self) -> Result<Mark> {
        Mark::set(self.context, self.stream())
    }

    /// Queues a call of `function` with `data`, behind which the stream goes on.
    ///
    /// # Safety
    /// The function may be called so from another thread, once, when the stream is there; it makes no call of the driver, waits
    /// for no work that is not done, and does not unwind.
    pub(crate) unsafe fn call(&self, function: HostFn, data: *mut c_void) -> Result<()> {
        let cuda = driver()?.cuda();
        // SAFETY: the caller's promise; the stream is there by the promise made to `RawStream::from_raw`.
        unsafe { cuda.launch_host_func(self.stream(), function, data) }
            .map_err(|status| failed(Op::Copy, "cuLaunchHostFunc", status))
    }

    /// Waits until all that was queued is done.
    ///
    /// # Errors
    /// What went wrong with it, or in its context.
    pub(crate) fn finish(&self) -> Result<()> {
        let cuda = driver()?.cuda();
        let _entered = self.context.enter()?;
        if self.stream.is_per_thread() {
            // Another thread's is meant: it is among all those of the context.
            return cuda
                .ctx_synchronize()
                .map_err(|status| failed(Op::Copy, "cuCtxSynchronize", status));
        }
        // SAFETY: the stream is there by the promise made to `RawStream::from_raw`.
        unsafe { cuda.stream_synchronize(self.stream()) }
            .map_err(|status| failed(Op::Copy, "cuStreamSynchronize", status))
    }
}
