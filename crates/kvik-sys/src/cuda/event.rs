//! Events: marks in streams that can be asked, waited for and timed.

use std::ffi::c_uint;
use std::ops::BitOr;
use std::ptr;

use super::Cuda;
use crate::handle::{Event, Stream};
use crate::raw::cuda::{CUevent, CUevent_flags};
use crate::status::CudaStatus;

/// What kind of event is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventFlags(c_uint);

impl EventFlags {
    /// With times, and waiting by looking again and again.
    pub const DEFAULT: Self = Self(CUevent_flags::CU_EVENT_DEFAULT.0);
    /// Threads that wait for it sleep.
    pub const BLOCKING_SYNC: Self = Self(CUevent_flags::CU_EVENT_BLOCKING_SYNC.0);
    /// Without times, which makes it cheaper.
    pub const DISABLE_TIMING: Self = Self(CUevent_flags::CU_EVENT_DISABLE_TIMING.0);
}

impl BitOr for EventFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Cuda {
    /// Makes an event in the current context.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn event_create(&self, flags: EventFlags) -> Result<Event, CudaStatus> {
        let mut event: CUevent = ptr::null_mut();
        // SAFETY: `event` is writable for the call.
        CudaStatus::check(unsafe { (self.table().cuEventCreate)(&raw mut event, flags.0) })?;
        Event::take(event).ok_or(CudaStatus::INVALID_HANDLE)
    }

    /// Destroys an event. A stream may still be on its way to it.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. The event is alive, and is used no more (rule 1).
    pub unsafe fn event_destroy(&self, event: Event) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe { (self.table().cuEventDestroy_v2)(event.give()) })
    }

    /// Puts the event behind the work that is in the stream now. Stream and event belong to one context.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. Event and stream are alive (rule 1).
    pub unsafe fn event_record(&self, event: Event, stream: Stream) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe { (self.table().cuEventRecord)(event.give(), stream.give()) })
    }

    /// Whether the stream is past the event; also where it was never recorded.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The event is alive (rule 1).
    pub unsafe fn event_query(&self, event: Event) -> Result<bool, CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::is_done(unsafe { (self.table().cuEventQuery)(event.give()) })
    }

    /// Waits until the stream is past the event.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The event is alive (rule 1).
    pub unsafe fn event_synchronize(&self, event: Event) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe { (self.table().cuEventSynchronize)(event.give()) })
    }

    /// Milliseconds between two events that streams are past; nothing while one is still ahead.
    ///
    /// # Errors
    ///
    /// The driver's status; `INVALID_HANDLE` where an event has no times or was not recorded.
    ///
    /// # Safety
    ///
    /// 1. Both events are alive (rule 1).
    pub unsafe fn event_elapsed_time(
        &self,
        start: Event,
        end: Event,
    ) -> Result<Option<f32>, CudaStatus> {
        let mut milliseconds = 0.0;
        // SAFETY: point 1; `milliseconds` is writable for the call.
        let done = CudaStatus::is_done(unsafe {
            (self.table().cuEventElapsedTime)(&raw mut milliseconds, start.give(), end.give())
        })?;
        Ok(done.then_some(milliseconds))
    }
}
