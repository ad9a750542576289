//! `fake_cuda_*`: how tests tell the fake what to do, and look at what was done. tests/src/fake.rs wraps them.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::abi::{Answer, Code, Handle, Out, SUCCESS, Text, hand_out};
use crate::entry::RULES;
use crate::place::{Expected, Place};
use crate::queue::{self, Work};
use crate::space::DENSE;
use crate::world::{self, Kind, World, changed, world};
use crate::{capture, context};

/// Exports controls. Numbers and texts go in, a number comes out.
macro_rules! controls {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $answer:ty $body:block)*) => {
        $($(#[$doc])* #[unsafe(no_mangle)] extern "C" fn $name($($arg: $type),*) -> $answer $body)*
    };
}

controls! {
    /// How many devices there are. Only before `cuInit`.
    fn fake_cuda_set_devices(count: usize) -> Code {
        world().set_devices(count);
        SUCCESS
    }

    /// What `cuDriverGetVersion` says; calls that are younger answer that they are not supported.
    fn fake_cuda_set_version(version: c_int) -> Code {
        world().settings.version = version;
        SUCCESS
    }

    /// What `cuInit` answers.
    fn fake_cuda_set_init(code: Code) -> Code {
        world().settings.init = code;
        SUCCESS
    }

    /// Bytes of each device.
    fn fake_cuda_set_memory(bytes: usize) -> Code {
        world().settings.memory = bytes;
        SUCCESS
    }

    /// What each copy that is queued from now on takes longer.
    fn fake_cuda_set_delay(microseconds: u64) -> Code {
        world().settings.delay = Duration::from_micros(microseconds);
        SUCCESS
    }

    /// Whether small allocations of a device follow each other without room in between (1), or not (0).
    fn fake_cuda_set_dense(dense: c_int) -> Code {
        DENSE.store(dense != 0, Ordering::Relaxed);
        SUCCESS
    }

    /// Nothing that is queued on `stream` starts until it is released; 1 holds, 0 releases.
    fn fake_cuda_hold(stream: Handle, held: c_int) -> Code {
        with_stream(stream, |world, stream| {
            world.stream(stream)?.held = held != 0;
            Ok(())
        })
    }

    /// The same for all streams, also for those that are made later.
    fn fake_cuda_hold_all(held: c_int) -> Code {
        world().settings.held = held != 0;
        changed();
        SUCCESS
    }

    /// What `stream` says when asked whether it is capturing.
    fn fake_cuda_set_capturing(stream: Handle, status: c_int) -> Code {
        with_stream(stream, |world, stream| {
            capture::pretend(world, stream, status)
        })
    }

    /// Spoils the current context: from now on every call in it returns `code`, and its streams do nothing more.
    fn fake_cuda_break_context(code: Code) -> Code {
        let mut world = world();
        status(context::current(&world).map(|current| world.break_context(current, code)))
    }

    /// Adds rules for failures (kvik-fake-common). Returns 1 where `rules` cannot be read.
    fn fake_cuda_fail(rules: Text) -> Code {
        c_int::from(!rules.read().is_ok_and(|rules| RULES.add(&rules)))
    }

    /// Forgets all rules.
    fn fake_cuda_fail_clear() -> Code {
        RULES.clear();
        SUCCESS
    }

    /// How often `name` was called; `*` for all calls together.
    fn fake_cuda_calls(name: Text) -> u64 {
        name.read().map_or(0, |name| RULES.calls(&name))
    }

    /// Starts the log, or empties it.
    fn fake_cuda_log_start() -> Code {
        RULES.start_log();
        SUCCESS
    }

    /// Writes the log to `to`, cut to `len` bytes with the zero that ends it; returns how long it is.
    fn fake_cuda_log(to: Out<u8>, len: usize) -> usize {
        hand_out(&RULES.log(), to, len)
    }

    /// How many faults there were.
    fn fake_cuda_faults() -> usize {
        world().faults.len()
    }

    /// Writes the faults, a line for each, as `fake_cuda_log` writes the log.
    fn fake_cuda_fault_text(to: Out<u8>, len: usize) -> usize {
        hand_out(&world().faults.join("\n"), to, len)
    }

    /// Copies on a stream of another device than that of the memory.
    fn fake_cuda_strays() -> u64 {
        world().strays
    }

    /// Whether `cuInit` was called and succeeded, in this process.
    fn fake_cuda_is_initialised() -> c_int {
        c_int::from(world::is_initialised())
    }

    /// `cuLaunchHostFunc` for other fakes, which is not counted.
    fn fake_cuda_launch(stream: Handle, call: extern "C" fn(*mut c_void), data: usize) -> Code {
        with_stream(stream, |world, stream| {
            queue::submit(world, stream, Work::Call(call, data)).map(drop)
        })
    }

    /// Where the CPU finds `len` bytes at `at`, an address of the device or any other.
    fn fake_cuda_translate(at: usize, len: usize, alias: Out<usize>) -> Code {
        let mut world = world();
        let found = Place::find(&mut world, at, len, Expected::Anything);
        status(found.and_then(|place| alias.set(place.alias())))
    }

    /// Whether the memory at `at` is managed.
    fn fake_cuda_is_managed(at: usize) -> Code {
        let world = world();
        Code::from(world.holding(at).is_some_and(|known| known.kind == Kind::Managed))
    }

    /// Copies `len` bytes out of memory of the device, at once.
    fn fake_cuda_peek(at: usize, to: usize, len: usize) -> Code {
        status(move_now(to, at, len))
    }

    /// Copies `len` bytes into memory of the device, at once.
    fn fake_cuda_poke(at: usize, from: usize, len: usize) -> Code {
        status(move_now(at, from, len))
    }

    /// Bytes that `cuMemHostAlloc` and its like gave out and that were not freed.
    fn fake_cuda_live_pinned_bytes() -> usize {
        bytes(|kind| kind == Kind::Pinned)
    }

    /// Bytes that are registered.
    fn fake_cuda_live_registered_bytes() -> usize {
        bytes(|kind| kind == Kind::Registered)
    }

    /// Bytes of all devices that are in use, managed ones too.
    fn fake_cuda_live_device_bytes() -> usize {
        world().devices.iter().map(|device| device.used).sum()
    }

    /// Allocations and registrations of all kinds.
    fn fake_cuda_live_allocations() -> usize {
        world().allocations.len()
    }

    /// Contexts of `cuCtxCreate` that were not destroyed, and primary ones that are retained.
    fn fake_cuda_live_contexts() -> usize {
        world().contexts.values().filter(|context| context.alive).count()
    }

    /// How often the primary context of `device` is retained.
    fn fake_cuda_retained(device: c_int) -> u32 {
        world().device(device).map_or(0, |device| device.retained)
    }

    /// Streams that were made and not destroyed, without the default ones.
    fn fake_cuda_live_streams() -> usize {
        let world = world();
        let is_default = |handle: &Handle| world.contexts.values().any(|it| it.default_stream == *handle);
        let live = world.streams.iter().filter(|(_, stream)| !stream.destroyed);
        live.filter(|(handle, _)| !is_default(handle)).count()
    }

    /// Whether a thread loads a kernel: 1, or 0.
    fn fake_cuda_loading() -> c_int {
        c_int::from(world().loader.is_some())
    }

    /// Events that were made and not destroyed.
    fn fake_cuda_live_events() -> usize {
        world().events.len()
    }
}

fn status(answer: Answer) -> Code {
    answer.err().unwrap_or(SUCCESS)
}

fn with_stream(stream: Handle, change: impl FnOnce(&mut World, Handle) -> Answer) -> Code {
    let mut world = world();
    let done = queue::meant(&mut world, stream).and_then(|stream| change(&mut world, stream));
    changed();
    status(done)
}

fn move_now(to: usize, from: usize, len: usize) -> Answer {
    let mut world = world();
    let to = Place::find(&mut world, to, len, Expected::Anything)?;
    let from = Place::find(&mut world, from, len, Expected::Anything)?;
    from.copy_to(&to)
}

fn bytes(of: impl Fn(Kind) -> bool) -> usize {
    let world = world();
    let theirs = world.allocations.values().filter(|it| of(it.kind));
    theirs.map(|it| it.size).sum()
}
