//! Streams: queues of work, each run in order by a thread of its own, so that what was queued is really late.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::MutexGuard;
use std::thread;
use std::time::{Duration, Instant};

use crate::abi::{
    Answer, Code, Handle, ILLEGAL_ADDRESS, INVALID_CONTEXT, OUT_OF_MEMORY,
    STREAM_CAPTURE_UNSUPPORTED,
};
use crate::module::Kernel;
use crate::place::Place;
use crate::world::{World, changed, wait, world};
use crate::{capture, context, entry};

pub(crate) struct Stream {
    pub(crate) context: Handle,
    /// Whether it and the default stream of its context wait for each other.
    pub(crate) blocking: bool,
    pub(crate) held: bool,
    /// What it says when asked whether it is capturing: a `CUstreamCaptureStatus`.
    pub(crate) capturing: i32,
    /// No longer known to the caller; what was queued still runs.
    pub(crate) destroyed: bool,
    submitted: u64,
    completed: u64,
    queue: VecDeque<Op>,
    threaded: bool,
}

struct Op {
    work: Work,
    /// Streams, and how far each must have come.
    waits: Vec<(Handle, u64)>,
    delay: Duration,
    late: Option<Code>,
}

/// What a stream does.
pub(crate) enum Work {
    /// Nothing; an event takes the time.
    Mark(Handle),
    /// Nothing, but not before that stream has come so far.
    Wait(Handle, u64),
    Copy(Vec<(Place, Place)>),
    Fill(Place, u8),
    Call(extern "C" fn(*mut c_void), usize),
    WaitForWord(Place, fn(u32, u32) -> bool, u32),
    WriteWord(Place, u32),
    Run(Kernel),
    /// Gives memory back to its pool.
    Free(usize),
}

impl Stream {
    pub(crate) fn new(context: Handle, blocking: bool) -> Stream {
        Stream {
            context,
            blocking,
            held: false,
            capturing: 0,
            destroyed: false,
            submitted: 0,
            completed: 0,
            queue: VecDeque::new(),
            threaded: false,
        }
    }

    /// How far it will have come when all that is queued is done.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.completed == self.submitted
    }

    /// Whether no thread will ever look at it again.
    pub(crate) fn is_over(&self) -> bool {
        self.destroyed && (!self.threaded || self.is_idle())
    }
}

/// The stream that an argument means, in a context that works: 0 and 1 are the default stream of the current context, 2 is
/// that of this thread in it. A stream that is named brings its context along, so no current one is needed.
pub(crate) fn meant(world: &mut World, argument: Handle) -> Answer<Handle> {
    if argument > 2 {
        return world.stream(argument).map(|_| argument);
    }
    let current = context::current(world)?;
    if argument == 2 {
        return Ok(of_this_thread(world, current));
    }
    Ok(world.context(current)?.default_stream)
}

/// Queues work; the answer is how far the stream has come when it is done.
pub(crate) fn submit(world: &mut World, handle: Handle, work: Work) -> Answer<u64> {
    let late = entry::take_late();
    let delay = match &work {
        Work::Copy(_) => world.settings.delay,
        _ => Duration::ZERO,
    };
    let mut waits = waits_of(world, handle);
    if let Work::Wait(stream, seq) = work {
        waits.push((stream, seq));
    }
    capture::check_default(world, handle)?;
    let stream = world.stream(handle)?;
    if stream.capturing != capture::NONE {
        world.fault("work was queued on a stream that is capturing".to_owned());
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    if !stream.threaded {
        start(handle)?;
    }
    stream.threaded = true;
    stream.submitted += 1;
    stream.queue.push_back(Op {
        work,
        waits,
        delay,
        late,
    });
    let seq = stream.submitted;
    changed();
    Ok(seq)
}

/// Whether a stream has come so far. One that is gone has done everything.
pub(crate) fn is_done(world: &World, handle: Handle, seq: u64) -> bool {
    let stream = world.streams.get(&handle);
    stream.is_none_or(|stream| stream.completed >= seq)
}

/// Waits until a stream has come so far, or its context is spoilt.
pub(crate) fn wait_until(
    mut world: MutexGuard<'static, World>,
    handle: Handle,
    seq: u64,
) -> Answer<MutexGuard<'static, World>> {
    while !is_done(&world, handle, seq) {
        let context = world.streams[&handle].context;
        world.context(context)?;
        world = wait(world);
    }
    Ok(world)
}

/// Waits for all work of a context, and tells if it is or becomes spoilt.
pub(crate) fn drain(
    mut world: MutexGuard<'static, World>,
    context: Handle,
) -> Answer<MutexGuard<'static, World>> {
    let theirs: Vec<(Handle, u64)> = world
        .streams
        .iter()
        .filter(|(_, stream)| stream.context == context)
        .map(|(handle, stream)| (*handle, stream.submitted))
        .collect();
    for (handle, seq) in theirs {
        world = wait_until(world, handle, seq)?;
    }
    world.context(context)?;
    Ok(world)
}

/// Waits until nothing of a context is on its way, also where it is spoilt: its streams then pass over what is left.
pub(crate) fn settle(
    mut world: MutexGuard<'static, World>,
    context: Handle,
) -> MutexGuard<'static, World> {
    let busy = |stream: &Stream| stream.context == context && !stream.is_idle();
    while world.streams.values().any(busy) {
        world = wait(world);
    }
    world
}

/// The rule of the default stream: it waits for what the blocking streams of its context were given before, and they for it.
fn waits_of(world: &World, handle: Handle) -> Vec<(Handle, u64)> {
    let Some(stream) = world.streams.get(&handle) else {
        return Vec::new();
    };
    let Some(context) = world.contexts.get(&stream.context) else {
        return Vec::new();
    };
    let default_stream = context.default_stream;
    let other = |(name, other): (&Handle, &Stream)| {
        let one_is_default = handle == default_stream || *name == default_stream;
        let ordered = *name != handle
            && one_is_default
            && other.context == stream.context
            && other.blocking
            && stream.blocking;
        ordered.then_some((*name, other.submitted))
    };
    world.streams.iter().filter_map(other).collect()
}

thread_local! {
    /// The default streams of this thread, by context.
    static MINE: RefCell<HashMap<Handle, Handle>> = RefCell::default();
}

fn of_this_thread(world: &mut World, context: Handle) -> Handle {
    let known = MINE.with_borrow(|mine| mine.get(&context).copied());
    let alive = known.filter(|known| world.streams.get(known).is_some_and(|it| !it.destroyed));
    alive.unwrap_or_else(|| {
        let handle = world.handle();
        let blocking = true;
        world.streams.insert(handle, Stream::new(context, blocking));
        MINE.with_borrow_mut(|mine| mine.insert(context, handle));
        handle
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the thread stands for the device, which runs beside those of the program"
)]
fn start(handle: Handle) -> Answer {
    let thread = thread::Builder::new().name("fake-stream".to_owned());
    let started = thread.spawn(move || run(handle));
    started.map(drop).map_err(|_| OUT_OF_MEMORY)
}

/// The life of a stream's thread.
fn run(handle: Handle) {
    let mut world = world();
    loop {
        let Some(stream) = world.streams.get(&handle) else {
            return;
        };
        let context = stream.context;
        if stream.is_over() {
            world.streams.remove(&handle);
            changed();
            return;
        }
        if !may_start(&world, handle) {
            world = wait(world);
            continue;
        }
        let op = world
            .streams
            .get_mut(&handle)
            .and_then(|stream| stream.queue.pop_front());
        let Some(op) = op else { continue };
        let spoilt = world.context(context).is_err();
        // A stream goes on without the lock, so that others can look, free and queue while it copies.
        drop(world);
        let done = if spoilt { Ok(()) } else { op.perform(context) };
        world = crate::world::world();
        if let Err(code) = done {
            world.break_context(context, code);
        }
        let mut reached = 0;
        if let Some(stream) = world.streams.get_mut(&handle) {
            stream.completed += 1;
            reached = stream.completed;
        }
        if let Work::Mark(event) = op.work
            && let Some(event) = world.events.get_mut(&event)
            && event.recorded == Some((handle, reached))
        {
            event.passed = Some(Instant::now());
        }
        changed();
    }
}

/// Whether the first operation of a stream may start. In a spoilt context all may: they do nothing.
fn may_start(world: &World, handle: Handle) -> bool {
    let stream = &world.streams[&handle];
    let Some(op) = stream.queue.front() else {
        return false;
    };
    if world.context(stream.context).is_err() {
        return true;
    }
    let held = stream.held || world.settings.held;
    let clear = |(stream, seq): &(Handle, u64)| is_done(world, *stream, *seq);
    !held && op.waits.iter().all(clear)
}

impl Op {
    fn perform(&self, context: Handle) -> Answer {
        thread::sleep(self.delay);
        if let Some(code) = self.late {
            return Err(code);
        }
        let done = self.work.perform(context);
        if done == Err(ILLEGAL_ADDRESS) {
            crate::world::fault("a stream touched memory that was freed before".to_owned());
        }
        done
    }
}

impl Work {
    fn perform(&self, context: Handle) -> Answer {
        match self {
            Work::Mark(_) | Work::Wait(..) => Ok(()),
            Work::Copy(pieces) => pieces.iter().try_for_each(|(to, from)| from.copy_to(to)),
            Work::Fill(to, byte) => to.fill(*byte),
            Work::Call(call, data) => {
                entry::as_host_function(|| call(*data as *mut c_void));
                Ok(())
            }
            Work::WaitForWord(word, holds, value) => {
                while !holds(word.load()?, *value) {
                    // Another error of the context ends the wait, as it ends everything else.
                    world().context(context)?;
                    thread::sleep(Duration::from_micros(20));
                }
                Ok(())
            }
            Work::WriteWord(word, value) => word.store(*value),
            Work::Run(kernel) => kernel.perform(),
            Work::Free(start) => {
                world().forget(*start);
                Ok(())
            }
        }
    }
}

/// The context of a stream.
pub(crate) fn context_of(world: &World, handle: Handle) -> Answer<Handle> {
    let stream = world.streams.get(&handle).ok_or(INVALID_CONTEXT)?;
    Ok(stream.context)
}
