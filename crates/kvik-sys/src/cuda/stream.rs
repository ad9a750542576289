//! Streams, and the words in memory by which they wait for the host and the host for them.

use std::ffi::{c_uint, c_void};
use std::ptr;

use super::Cuda;
use crate::handle::{Context, DevicePtr, Event, Stream};
use crate::raw::cuda::{
    CUcontext, CUstream, CUstream_flags, CUstreamCaptureMode, CUstreamCaptureStatus,
    CUstreamWaitValue_flags, CUstreamWriteValue_flags,
};
use crate::status::{CallError, CudaStatus};

/// What kind of stream is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamFlags(c_uint);

impl StreamFlags {
    /// It waits for the default stream, and the default stream for it.
    pub const DEFAULT: Self = Self(CUstream_flags::CU_STREAM_DEFAULT.0);
    /// It and the default stream do not know each other.
    pub const NON_BLOCKING: Self = Self(CUstream_flags::CU_STREAM_NON_BLOCKING.0);
}

/// What a thread may do while streams record their work for graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CaptureMode(CUstreamCaptureMode);

impl CaptureMode {
    /// What may go wrong while any thread records is refused, and ends that recording. Threads begin with it.
    pub const GLOBAL: Self = Self(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL);
    /// Anything but what touches the recording streams themselves.
    pub const RELAXED: Self = Self(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
}

/// What a stream waits for in a word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitCondition(c_uint);

impl WaitCondition {
    /// The word, less the value, is not negative as a signed number: counters may wrap around.
    pub const AT_LEAST: Self = Self(CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ.0);
    /// The word is the value.
    pub const EQUAL: Self = Self(CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ.0);
}

/// A function that the driver calls from one of its threads when a stream arrives at it.
pub type HostFn = unsafe extern "C" fn(*mut c_void);

impl Cuda {
    /// Makes a stream in the current context.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn stream_create(&self, flags: StreamFlags) -> Result<Stream, CudaStatus> {
        let mut stream: CUstream = ptr::null_mut();
        // SAFETY: `stream` is writable for the call.
        CudaStatus::check(unsafe { (self.table().cuStreamCreate)(&raw mut stream, flags.0) })?;
        Ok(Stream::from_raw(stream.cast()))
    }

    /// Destroys a stream. Work that is in it still runs, and the call does not wait for it.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The stream came from [`stream_create`](Self::stream_create), is alive, and is used no more (rule 1).
    pub unsafe fn stream_destroy(&self, stream: Stream) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe { (self.table().cuStreamDestroy_v2)(stream.give()) })
    }

    /// Waits until all work of the stream is done.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    pub unsafe fn stream_synchronize(&self, stream: Stream) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe { (self.table().cuStreamSynchronize)(stream.give()) })
    }

    /// Whether all work of the stream is done.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    pub unsafe fn stream_query(&self, stream: Stream) -> Result<bool, CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::is_done(unsafe { (self.table().cuStreamQuery)(stream.give()) })
    }

    /// Lets work that is queued from now on wait for an event as it was last recorded.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. Stream and event are alive (rule 1).
    pub unsafe fn stream_wait_event(&self, stream: Stream, event: Event) -> Result<(), CudaStatus> {
        // SAFETY: point 1; no flags.
        CudaStatus::check(unsafe {
            (self.table().cuStreamWaitEvent)(stream.give(), event.give(), 0)
        })
    }

    /// The context of a stream.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    pub unsafe fn stream_get_ctx(&self, stream: Stream) -> Result<Context, CudaStatus> {
        let mut context: CUcontext = ptr::null_mut();
        // SAFETY: point 1; `context` is writable for the call.
        CudaStatus::check(unsafe {
            (self.table().cuStreamGetCtx)(stream.give(), &raw mut context)
        })?;
        Context::take(context).ok_or(CudaStatus::INVALID_CONTEXT)
    }

    /// Gives the calling thread another mode, and tells which one it had.
    ///
    /// # Errors
    ///
    /// The driver's status, or [`CallError::Unsupported`] before CUDA 10.1.
    pub fn thread_exchange_stream_capture_mode(
        &self,
        mode: CaptureMode,
    ) -> Result<CaptureMode, CallError<CudaStatus>> {
        let function = self.table().cuThreadExchangeStreamCaptureMode?;
        let mut mode = mode.0;
        // SAFETY: `mode` is readable and writable for the call; an unknown one is answered with a status.
        CudaStatus::check(unsafe { function(&raw mut mode) })?;
        Ok(CaptureMode(mode))
    }

    /// Whether the stream records its work for a graph, or has begun to and failed.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    pub unsafe fn stream_is_capturing(&self, stream: Stream) -> Result<bool, CudaStatus> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: point 1; `status` is writable for the call.
        CudaStatus::check(unsafe {
            (self.table().cuStreamIsCapturing)(stream.give(), &raw mut status)
        })?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Lets the stream wait until a word of memory fulfils a condition.
    ///
    /// # Errors
    ///
    /// The driver's status, or [`CallError::Unsupported`] before CUDA 11.7.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    /// 2. The word is four bytes of memory, at a multiple of four, that the device can read (rule 2), and stays so until the
    ///    stream is past the wait (rule 3).
    pub unsafe fn stream_wait_value32(
        &self,
        stream: Stream,
        word: DevicePtr,
        value: u32,
        condition: WaitCondition,
    ) -> Result<(), CallError<CudaStatus>> {
        let function = self.table().cuStreamWaitValue32_v2?;
        // SAFETY: points 1 and 2.
        CudaStatus::check(unsafe { function(stream.give(), word.address(), value, condition.0) })?;
        Ok(())
    }

    /// Lets the stream write a word of memory, with all that it wrote before visible to whoever reads the word.
    ///
    /// # Errors
    ///
    /// The driver's status, or [`CallError::Unsupported`] before CUDA 11.7.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    /// 2. The word is four bytes of memory, at a multiple of four, that the device can write (rule 2), and stays so until the
    ///    stream is past the write (rule 3).
    pub unsafe fn stream_write_value32(
        &self,
        stream: Stream,
        word: DevicePtr,
        value: u32,
    ) -> Result<(), CallError<CudaStatus>> {
        let function = self.table().cuStreamWriteValue32_v2?;
        let flags = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT.0;
        // SAFETY: points 1 and 2.
        CudaStatus::check(unsafe { function(stream.give(), word.address(), value, flags) })?;
        Ok(())
    }

    /// Lets the driver call a function of the host when the stream arrives here. Work behind it waits until it returns.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    /// 2. The function may be called with `data` from another thread, once, at any time from now on.
    /// 3. It makes no call of the driver, waits for no work that is not done, and does not unwind.
    pub unsafe fn launch_host_func(
        &self,
        stream: Stream,
        function: HostFn,
        data: *mut c_void,
    ) -> Result<(), CudaStatus> {
        // SAFETY: points 1 to 3.
        CudaStatus::check(unsafe {
            (self.table().cuLaunchHostFunc)(stream.give(), Some(function), data)
        })
    }
}
