//! Events: how far a stream had come when they were recorded.

use std::ffi::c_uint;
use std::time::Instant;

use crate::abi::{Answer, Handle, INVALID_HANDLE, INVALID_VALUE, NOT_READY, Out};
use crate::context;
use crate::entry::driver;
use crate::queue::{self, Work};
use crate::world::{World, world};

pub(crate) struct Event {
    pub(crate) context: Handle,
    /// The stream, and how far it must come.
    pub(crate) recorded: Option<(Handle, u64)>,
    pub(crate) passed: Option<Instant>,
    timed: bool,
}

impl World {
    pub(crate) fn event(&mut self, handle: Handle) -> Answer<&mut Event> {
        if !self.events.contains_key(&handle) {
            self.fault(format!("{handle:#x} is no event"));
        }
        self.events.get_mut(&handle).ok_or(INVALID_HANDLE)
    }
}

driver! { ENTRIES:
    ready fn cuEventCreate(event: Out<Handle>, flags: c_uint) {
        if flags & !(BLOCKING_SYNC | DISABLE_TIMING) != 0 {
            return Err(INVALID_VALUE);
        }
        let mut world = world();
        let context = context::current(&world)?;
        let handle = world.handle();
        let timed = flags & DISABLE_TIMING == 0;
        let made = Event { context, recorded: None, passed: None, timed };
        world.events.insert(handle, made);
        event.set(handle)
    }

    ready fn cuEventRecord(event: Handle, stream: Handle) {
        let mut world = world();
        let stream = queue::meant(&mut world, stream)?;
        let of = queue::context_of(&world, stream)?;
        if world.event(event)?.context != of {
            return Err(INVALID_HANDLE);
        }
        let seq = queue::submit(&mut world, stream, Work::Mark(event))?;
        let place = world.event(event)?;
        place.recorded = Some((stream, seq));
        place.passed = None;
        Ok(())
    }

    ready fn cuEventQuery(event: Handle) {
        let mut world = world();
        let of = world.event(event)?;
        let (context, recorded) = (of.context, of.recorded);
        world.context(context)?;
        let done = recorded.is_none_or(|(stream, seq)| queue::is_done(&world, stream, seq));
        if done { Ok(()) } else { Err(NOT_READY) }
    }

    ready fn cuEventSynchronize(event: Handle) {
        let mut world = world();
        let of = world.event(event)?;
        let (context, recorded) = (of.context, of.recorded);
        if let Some((stream, seq)) = recorded {
            world = queue::wait_until(world, stream, seq)?;
        }
        world.context(context).map(drop)
    }

    ready fn cuEventDestroy_v2(event: Handle) {
        let mut world = world();
        world.event(event)?;
        world.events.remove(&event);
        Ok(())
    }

    ready fn cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }

    ready fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }
}

const BLOCKING_SYNC: c_uint = 1;
const DISABLE_TIMING: c_uint = 2;

fn elapsed(milliseconds: Out<f32>, start: Handle, end: Handle) -> Answer {
    let mut world = world();
    let mut passed = [None; 2];
    for (place, event) in passed.iter_mut().zip([start, end]) {
        let event = world.event(event)?;
        if !event.timed || event.recorded.is_none() {
            return Err(INVALID_HANDLE);
        }
        *place = event.passed;
    }
    let [Some(start), Some(end)] = passed else {
        return Err(NOT_READY);
    };
    let forth = end.saturating_duration_since(start).as_secs_f32();
    let back = start.saturating_duration_since(end).as_secs_f32();
    milliseconds.set((forth - back) * 1000.0)
}
