//! Streams, as callers see them.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{
    Answer, Handle, INVALID_HANDLE, INVALID_VALUE, NOT_READY, Out, STREAM_CAPTURE_IMPLICIT,
    STREAM_CAPTURE_UNSUPPORTED,
};
use crate::context;
use crate::entry::driver;
use crate::place::{Expected, Place};
use crate::queue::{self, Stream, Work};
use crate::world::{World, changed, world};

driver! { ENTRIES:
    ready fn cuStreamCreate(stream: Out<Handle>, flags: c_uint) {
        create(stream, flags)
    }

    ready fn cuStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, _priority: c_int) {
        create(stream, flags)
    }

    ready fn cuStreamDestroy_v2(stream: Handle) {
        let mut world = world();
        // Neither default stream can be destroyed.
        if stream <= 2 {
            return Err(INVALID_HANDLE);
        }
        let place = world.stream(stream)?;
        place.destroyed = true;
        if place.is_over() {
            world.streams.remove(&stream);
        }
        changed();
        Ok(())
    }

    ready fn cuStreamSynchronize(stream: Handle) {
        let mut world = world();
        let stream = queue::meant(&mut world, stream)?;
        let seq = checked(&mut world, stream)?.submitted();
        let world = queue::wait_until(world, stream, seq)?;
        let context = queue::context_of(&world, stream)?;
        world.context(context).map(drop)
    }

    ready fn cuStreamQuery(stream: Handle) {
        let mut world = world();
        let stream = queue::meant(&mut world, stream)?;
        touch_default(&mut world, stream, Touch::Question)?;
        unsafe_while_capturing(&mut world)?;
        if checked(&mut world, stream)?.is_idle() { Ok(()) } else { Err(NOT_READY) }
    }

    ready fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) {
        let mut world = world();
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let stream = queue::meant(&mut world, stream)?;
        let recorded = world.event(event)?.recorded;
        // One that was never recorded is waited for by nobody.
        let Some((other, seq)) = recorded else { return Ok(()) };
        queue::submit(&mut world, stream, Work::Wait(other, seq)).map(drop)
    }

    ready fn cuStreamGetCtx(stream: Handle, context: Out<Handle>) {
        let mut world = world();
        let stream = queue::meant(&mut world, stream)?;
        context.set(queue::context_of(&world, stream)?)
    }

    ready fn cuStreamGetFlags(stream: Handle, flags: Out<c_uint>) {
        let mut world = world();
        let stream = queue::meant(&mut world, stream)?;
        flags.set(c_uint::from(!world.stream(stream)?.blocking))
    }

    ready fn cuStreamIsCapturing(stream: Handle, status: Out<c_int>) {
        let mut world = world();
        let stream = queue::meant(&mut world, stream)?;
        touch_default(&mut world, stream, Touch::Look)?;
        status.set(world.stream(stream)?.capturing)
    }

    ready fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        let before = MODE.get();
        MODE.set(mode.exchange(before)?);
        Ok(())
    }

    ready fn cuStreamWaitValue32(stream: Handle, word: usize, value: u32, flags: c_uint) {
        wait_for_word(stream, word, value, flags)
    }

    ready fn cuStreamWaitValue32_v2(stream: Handle, word: usize, value: u32, flags: c_uint) {
        wait_for_word(stream, word, value, flags)
    }

    ready fn cuStreamWriteValue32(stream: Handle, word: usize, value: u32, flags: c_uint) {
        write_word(stream, word, value, flags)
    }

    ready fn cuStreamWriteValue32_v2(stream: Handle, word: usize, value: u32, flags: c_uint) {
        write_word(stream, word, value, flags)
    }

    ready fn cuLaunchHostFunc(stream: Handle, call: Option<extern "C" fn(*mut c_void)>, data: usize) {
        let mut world = world();
        let stream = queue::meant(&mut world, stream)?;
        let call = call.ok_or(INVALID_VALUE)?;
        queue::submit(&mut world, stream, Work::Call(call, data)).map(drop)
    }
}

/// Default, or not waiting for the default stream.
const NON_BLOCKING: c_uint = 1;

fn create(stream: Out<Handle>, flags: c_uint) -> Answer {
    if flags > NON_BLOCKING {
        return Err(INVALID_VALUE);
    }
    let mut world = world();
    let current = context::current(&world)?;
    let handle = world.handle();
    let made = Stream::new(current, flags != NON_BLOCKING);
    world.streams.insert(handle, made);
    stream.set(handle)
}

thread_local! {
    /// What this thread may do while a stream captures; 0 is the strictest, and threads begin with it.
    static MODE: Cell<c_int> = const { Cell::new(0) };
}

/// For calls that may do harm while a stream captures: a thread that has not asked for leave ends all captures with them.
pub(crate) fn unsafe_while_capturing(world: &mut World) -> Answer {
    if MODE.get() != 0 {
        return Ok(());
    }
    match end_captures(world, |stream| stream.capturing == 1) {
        0 => Ok(()),
        _ => Err(STREAM_CAPTURE_UNSUPPORTED),
    }
}

/// How a call concerns itself with a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    Look,
    Question,
}

/// While a blocking stream captures, nobody may ask anything about the default stream of its context; only a look, whether it
/// captures itself, does no harm.
fn touch_default(world: &mut World, stream: Handle, how: Touch) -> Answer {
    let context = queue::context_of(world, stream)?;
    if world.context(context)?.default_stream != stream {
        return Ok(());
    }
    let concerned =
        |other: &Stream| other.context == context && other.blocking && other.capturing == 1;
    let found = match how {
        Touch::Look => world
            .streams
            .values()
            .filter(|other| concerned(other))
            .count(),
        Touch::Question => end_captures(world, concerned),
    };
    if found == 0 {
        Ok(())
    } else {
        Err(STREAM_CAPTURE_IMPLICIT)
    }
}

/// Invalidates captures; returns how many.
fn end_captures(world: &mut World, which: impl Fn(&Stream) -> bool) -> usize {
    let concerned = world.streams.values_mut().filter(|stream| which(stream));
    concerned.map(|stream| stream.capturing = 2).count()
}

/// A stream about which a question is allowed: not while it is capturing.
fn checked(world: &mut World, stream: Handle) -> Answer<&mut Stream> {
    let stream = world.stream(stream)?;
    if stream.capturing == 0 {
        Ok(stream)
    } else {
        Err(STREAM_CAPTURE_UNSUPPORTED)
    }
}

fn wait_for_word(stream: Handle, word: usize, value: u32, flags: c_uint) -> Answer {
    let holds: fn(u32, u32) -> bool = match flags & !FLUSH {
        // As the driver documents it: the difference, taken as a signed number, so that counters may wrap.
        0 => |word, value| word.wrapping_sub(value) as i32 >= 0,
        1 => |word, value| word == value,
        2 => |word, value| word & value != 0,
        3 => |word, value| !(word | value) != 0,
        _ => return Err(INVALID_VALUE),
    };
    let mut world = world();
    let stream = queue::meant(&mut world, stream)?;
    let word = found(&mut world, word)?;
    let work = Work::WaitForWord(word, holds, value);
    queue::submit(&mut world, stream, work).map(drop)
}

const FLUSH: c_uint = 1 << 30;

fn write_word(stream: Handle, word: usize, value: u32, flags: c_uint) -> Answer {
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    let mut world = world();
    let stream = queue::meant(&mut world, stream)?;
    let word = found(&mut world, word)?;
    queue::submit(&mut world, stream, Work::WriteWord(word, value)).map(drop)
}

/// Four bytes that the device can reach, at a multiple of four.
fn found(world: &mut World, word: usize) -> Answer<Place> {
    if !word.is_multiple_of(4) {
        return Err(INVALID_VALUE);
    }
    Place::find(world, word, 4, Expected::Device)
}
