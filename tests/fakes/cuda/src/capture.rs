//! What a capture forbids. Nothing is ever captured here: a control says that a stream is capturing, in the mode that binds all
//! threads, and then calls fail as they would, and end the capture as they would.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::{
    Answer, Code, Handle, INVALID_VALUE, Out, STREAM_CAPTURE_IMPLICIT, STREAM_CAPTURE_UNSUPPORTED,
};
use crate::entry::driver;
use crate::queue::Stream;
use crate::world::{World, world};

/// `CUstreamCaptureStatus`: none, active, and ended by a call that was not allowed.
pub(crate) const NONE: c_int = 0;
const ACTIVE: c_int = 1;
const INVALIDATED: c_int = 2;

/// `CUstreamCaptureMode`: this thread minds captures of all threads, its own (1), or none. Those here are always of others.
const GLOBAL: c_int = 0;
const RELAXED: c_int = 2;

thread_local! {
    static MODE: Cell<c_int> = const { Cell::new(GLOBAL) };
}

/// Whether a stream was ever said to be capturing, so that calls look no further while none was.
static EVER: AtomicBool = AtomicBool::new(false);

driver! { ENTRIES:
    ready fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        let new = mode.get()?;
        if !(GLOBAL..=RELAXED).contains(&new) {
            return Err(INVALID_VALUE);
        }
        mode.set(MODE.replace(new))
    }
}

/// Calls that may get in the way of a capture by any thread.
const UNSAFE: [&str; 17] = [
    "cuCtxSynchronize",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuMemAllocHost_v2",
    "cuMemAllocManaged",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemcpy",
    "cuMemcpyDtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD_v2",
    "cuStreamQuery",
    "cuStreamSynchronize",
];

/// Refuses a call of a thread that minds captures, while there is one.
pub(crate) fn check(call: &str) -> Answer {
    if !EVER.load(Ordering::Acquire) || MODE.get() != GLOBAL || !UNSAFE.contains(&call) {
        return Ok(());
    }
    end(&mut world(), call, |_| true, STREAM_CAPTURE_UNSUPPORTED)
}

/// Refuses work and questions of the default stream while a stream that waits for it is capturing.
pub(crate) fn check_default(world: &mut World, handle: Handle) -> Answer {
    let Some(context) = of_default(world, handle) else {
        return Ok(());
    };
    let call = "a call on the default stream";
    let waiting = |stream: &Stream| stream.blocking && stream.context == context;
    end(world, call, waiting, STREAM_CAPTURE_IMPLICIT)
}

/// Refuses to wait for a context in which any stream is capturing, whatever the mode of the thread.
pub(crate) fn check_context(world: &mut World, context: Handle) -> Answer {
    let of_it = |stream: &Stream| stream.context == context;
    end(world, "cuCtxSynchronize", of_it, STREAM_CAPTURE_UNSUPPORTED)
}

/// What `stream` says about itself; the default stream can say nothing while one that waits for it is capturing.
pub(crate) fn status(world: &mut World, handle: Handle) -> Answer<c_int> {
    let capturing = |context| {
        let mut streams = world.streams.values();
        streams.any(|it| it.context == context && it.blocking && it.capturing == ACTIVE)
    };
    if of_default(world, handle).is_some_and(capturing) {
        return Err(STREAM_CAPTURE_IMPLICIT);
    }
    Ok(world.stream(handle)?.capturing)
}

/// Has a stream say that it is capturing, or not.
pub(crate) fn pretend(world: &mut World, handle: Handle, status: c_int) -> Answer {
    EVER.store(true, Ordering::Release);
    world.stream(handle)?.capturing = status;
    Ok(())
}

/// The context whose default stream this is, if it is one.
fn of_default(world: &World, handle: Handle) -> Option<Handle> {
    let context = world.streams.get(&handle)?.context;
    let default_stream = world.contexts.get(&context)?.default_stream;
    (handle == default_stream).then_some(context)
}

/// Ends the captures of the streams that are concerned; an error where there was one.
fn end(world: &mut World, call: &str, concerned: impl Fn(&Stream) -> bool, code: Code) -> Answer {
    let mut ended = false;
    for stream in world.streams.values_mut() {
        if concerned(stream) && stream.capturing == ACTIVE {
            stream.capturing = INVALIDATED;
            ended = true;
        }
    }
    if !ended {
        return Ok(());
    }
    world.fault(format!("{call} ended the capture of a stream"));
    Err(code)
}
