//! Streams, as callers see them.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::{
    Answer, Handle, INVALID_HANDLE, INVALID_VALUE, NOT_READY, Out, STREAM_CAPTURE_UNSUPPORTED,
};
use crate::entry::driver;
use crate::place::{Expected, Place};
use crate::queue::{self, Stream, Work};
use crate::world::{World, changed, world};
use crate::{capture, context};

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
        status.set(capture::status(&mut world, stream)?)
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

/// A stream about which a question is allowed: not while it is capturing.
fn checked(world: &mut World, stream: Handle) -> Answer<&mut Stream> {
    capture::check_default(world, stream)?;
    let stream = world.stream(stream)?;
    if stream.capturing == capture::NONE {
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
