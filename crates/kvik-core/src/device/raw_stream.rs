//! Streams of the program's own, which kvik is told to go behind.

use std::ffi::c_void;

use kvik_sys::{Cuda, CudaStatus, Stream};

use super::context::Context;
use super::driver::{driver, failed};
use super::mark::Mark;
use crate::error::{Error, ErrorKind, Op, Result};

/// A stream of the program's own, by the driver's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawStream {
    stream: Stream,
    // Whose default stream it is, where that was said.
    of: Option<kvik_sys::Context>,
}

impl RawStream {
    /// The legacy default stream of the context that is current where it is used.
    pub const DEFAULT: RawStream = RawStream::of_nobody(Stream::DEFAULT);

    /// The default stream of the thread that uses it, in the context that is current there.
    pub const PER_THREAD: RawStream = RawStream::of_nobody(Stream::PER_THREAD);

    /// From a `CUstream` or `cudaStream_t`.
    ///
    /// # Safety
    /// It is a stream of the driver, or one of the numbers 0, 1 and 2 which the driver's header defines, and it is not
    /// destroyed before this value, its copies and everything made with them are gone.
    #[must_use]
    pub unsafe fn from_raw(stream: *mut c_void) -> RawStream {
        RawStream::of_nobody(Stream::from_raw(stream))
    }

    /// The same stream, which if it is a default one is that of `context`, a `CUcontext`, wherever it is used.
    ///
    /// # Safety
    /// It is a context of the driver, or null, which says nothing, and it is not destroyed before this value, its copies and
    /// everything made with them are gone.
    #[must_use]
    pub unsafe fn in_context(mut self, context: *mut c_void) -> RawStream {
        if self.is_default() {
            self.of = kvik_sys::Context::from_raw(context);
        }
        self
    }

    const fn of_nobody(stream: Stream) -> RawStream {
        RawStream { stream, of: None }
    }

    /// The handle.
    #[must_use]
    pub fn as_raw(self) -> *mut c_void {
        self.stream.as_raw()
    }

    pub(super) fn stream(self) -> Stream {
        self.stream
    }

    /// Whether it is another one for each thread.
    pub(super) fn is_per_thread(self) -> bool {
        self.stream == Stream::PER_THREAD
    }

    /// Whether it names a stream only by who asks.
    pub(super) fn is_default(self) -> bool {
        [Stream::DEFAULT, Stream::LEGACY, Stream::PER_THREAD].contains(&self.stream)
    }

    /// Without what says whose default stream it is, and with one name for the one that threads share: where its context is
    /// known and entered, that is the same stream.
    pub(super) fn within_its_context(self) -> RawStream {
        match self.stream {
            Stream::LEGACY => RawStream::DEFAULT,
            stream => RawStream::of_nobody(stream),
        }
    }

    /// The context of it.
    pub(super) fn context(self, cuda: &Cuda, op: Op) -> Result<Context> {
        if let Some(handle) = self.of {
            return Context::find(handle);
        }
        if self.is_default() {
            return Context::current_or_misuse(op);
        }
        // SAFETY: `from_raw` was promised that the stream is there.
        let handle = unsafe { cuda.stream_get_ctx(self.stream) }
            .map_err(|status| failed(op, "cuStreamGetCtx", status))?;
        Context::find(handle)
    }

    /// Marks what has been queued on it so far, unless that is done; a default stream of nobody's is that of `context`, which
    /// the caller has entered.
    ///
    /// # Errors
    /// `Misuse` if it records a graph, which goes on undisturbed.
    pub(crate) fn queue(self, context: Context) -> Result<Option<Mark>> {
        let cuda = driver()?.cuda();
        // A default stream is that of the context in which the driver is asked about it.
        let elsewhere = match self.of {
            Some(_) => Some(self.context(cuda, Op::Copy)?).filter(|own| *own != context),
            None => None,
        };
        let _there = elsewhere.map(Context::enter).transpose()?;
        self.refuse_capture(cuda, Op::Copy)?;
        // SAFETY: `from_raw` was promised that the stream is there.
        let is_done = unsafe { cuda.stream_query(self.stream) };
        // The usual case, and cheaper than an event.
        if is_done.map_err(|status| failed(Op::Copy, "cuStreamQuery", status))? {
            return Ok(None);
        }
        let own = match self.is_default() {
            true => elsewhere.unwrap_or(context),
            false => self.context(cuda, Op::Copy)?,
        };
        let _entered = match own == context {
            true => None,
            false => Some(own.enter()?),
        };
        Mark::set(own, self.stream).map(Some)
    }

    /// Refuses a stream that records a graph, without disturbing the recording.
    pub(super) fn refuse_capture(self, cuda: &Cuda, op: Op) -> Result<()> {
        // SAFETY: `from_raw` was promised that the stream is there.
        let why = match unsafe { cuda.stream_is_capturing(self.stream) } {
            Ok(false) => return Ok(()),
            Ok(true) => {
                "the stream is recording a graph, and what is only recorded cannot be waited for; end the recording first"
            }
            Err(CAPTURE_BESIDE) => {
                "a stream that is ordered with the default stream is recording a graph, and meanwhile the default stream cannot \
                 be waited for; record on a non-blocking stream or end the recording first"
            }
            Err(status) => return Err(failed(op, "cuStreamIsCapturing", status)),
        };
        Err(Error::new(ErrorKind::Misuse, op, why))
    }
}

// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT.
const CAPTURE_BESIDE: CudaStatus = CudaStatus::new(906);
