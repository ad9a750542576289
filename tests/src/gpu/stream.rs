//! Streams of the test's own, work on them, and what holds them up.
#![expect(unsafe_code, reason = "each call has its argument beside it")]

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use kvik::{FileHandle, RawStream, StreamPending};
use kvik_sys::{Context, DevicePtr, EventFlags, StreamFlags};

use super::context::{primary, within};
use super::{Gpu, Memory, cuda};
use crate::engine::Gate;

/// A stream, of which work is queued; it is left to the process.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    context: Context,
    stream: kvik_sys::Stream,
}

impl Stream {
    /// The default one of a device, in its primary context.
    #[track_caller]
    #[must_use]
    pub fn default_of(_: &Gpu, device: i32) -> Stream {
        Stream {
            context: primary(device),
            stream: kvik_sys::Stream::DEFAULT,
        }
    }

    /// A new one in the primary context of a device, which waits for no other.
    #[track_caller]
    #[must_use]
    pub fn new(_: &Gpu, device: i32) -> Stream {
        Stream::made(device, StreamFlags::NON_BLOCKING)
    }

    /// A new one that waits for the default stream, and the default stream for it.
    #[track_caller]
    #[must_use]
    pub fn blocking(_: &Gpu, device: i32) -> Stream {
        Stream::made(device, StreamFlags::DEFAULT)
    }

    #[track_caller]
    fn made(device: i32, flags: StreamFlags) -> Stream {
        let context = primary(device);
        let made = within(context, || cuda().stream_create(flags));
        Stream {
            context,
            stream: made.unwrap(),
        }
    }

    /// For kvik. The default stream is named by [`RawStream::DEFAULT`].
    #[must_use]
    pub fn raw(&self) -> RawStream {
        // SAFETY: the stream is a number of the driver's or was made by `new`, and is not destroyed.
        unsafe { RawStream::from_raw(self.stream.as_raw()) }
    }

    /// For the driver.
    pub(super) fn handle(self) -> kvik_sys::Stream {
        self.stream
    }

    /// What is queued on it from now on does not begin before the answer is dropped.
    #[track_caller]
    pub fn hold(&self) -> Held {
        let gate = Gate::new();
        let data = Arc::into_raw(Arc::clone(&gate)).cast_mut().cast();
        within(self.context, || {
            // SAFETY: the stream is there, the function makes no call of the driver, and the gate behind the pointer is
            // owned by it.
            unsafe { cuda().launch_host_func(self.stream, pass, data) }
        })
        .unwrap();
        gate.wait_for(1);
        Held(gate)
    }

    /// Holds it, with setting all of `memory` to `byte` queued behind. Until then its bytes are others.
    #[track_caller]
    pub fn hold_before(&self, memory: &Memory, byte: u8) -> Held {
        // A real driver loads what sets memory at the first use, and lets everybody wait for that until no stream is held.
        self.set(memory, !byte);
        self.wait();
        let held = self.hold();
        self.set(memory, byte);
        held
    }

    /// Queues setting all of `memory` to `byte`. It is to be waited for before the memory goes.
    #[track_caller]
    pub fn set(&self, memory: &Memory, byte: u8) {
        let to = DevicePtr::new(memory.address());
        within(self.context, || {
            // SAFETY: the memory is as long, and its owner waits before it is freed.
            unsafe { cuda().memset_d8_async(to, byte, memory.len(), self.stream) }
        })
        .unwrap();
    }

    /// Queues a read into a part of `memory`. It is to be waited for before the memory goes.
    ///
    /// # Errors
    /// Those of the call.
    pub fn read(
        &self,
        handle: &FileHandle,
        memory: &mut Memory,
        range: Range<usize>,
        offset: u64,
    ) -> kvik::Result<StreamPending<()>> {
        let target = memory.claim(range.start, range.len())?;
        // SAFETY: the memory's owner waits before it goes, and uses it in the order of the stream.
        unsafe { handle.read_on_stream_raw(target, offset, self.raw()) }
    }

    /// Queues a write of a part of `memory`, in the same way.
    ///
    /// # Errors
    /// Those of the call.
    pub fn write(
        &self,
        handle: &FileHandle,
        memory: &Memory,
        range: Range<usize>,
        offset: u64,
    ) -> kvik::Result<StreamPending<()>> {
        let source = memory.lend(range.start, range.len())?;
        // SAFETY: as for `read`.
        unsafe { handle.write_on_stream_raw(source, offset, self.raw()) }
    }

    /// What is queued on it from now on waits for what is queued on `other` now.
    #[track_caller]
    pub fn follow(&self, other: &Stream) {
        within(self.context, || {
            let event = cuda().event_create(EventFlags::DISABLE_TIMING).unwrap();
            // SAFETY: both are there, and of contexts that are.
            unsafe { cuda().event_record(event, other.stream) }.unwrap();
            // SAFETY: as above.
            unsafe { cuda().stream_wait_event(self.stream, event) }.unwrap();
            // SAFETY: what was queued keeps what it needs of it.
            unsafe { cuda().event_destroy(event) }
        })
        .unwrap();
    }

    /// Waits until all that was queued is done.
    #[track_caller]
    pub fn wait(&self) {
        within(self.context, || {
            // SAFETY: the stream is there.
            unsafe { cuda().stream_synchronize(self.stream) }
        })
        .unwrap();
    }
}

/// A stream that goes on when this is dropped.
#[derive(Debug)]
#[must_use = "dropping it lets the stream go on"]
pub struct Held(Arc<Gate>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.open();
    }
}

extern "C" fn pass(gate: *mut c_void) {
    // SAFETY: `hold` gave it an owned reference, and the driver calls once.
    let gate = unsafe { Arc::from_raw(gate.cast::<Gate>().cast_const()) };
    gate.pass();
}
