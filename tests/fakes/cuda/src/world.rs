//! The state of the fake, behind one lock: devices, contexts, allocations, streams, events and faults.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use kvik_fake_common::number;

use crate::abi::{
    Answer, CONTEXT_IS_DESTROYED, Code, Handle, INVALID_CONTEXT, INVALID_DEVICE, INVALID_HANDLE,
};
use crate::event::Event;
use crate::module::{Function, Module};
use crate::queue::Stream;
use crate::space::Piece;

pub(crate) struct World {
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: BTreeMap<Handle, Context>,
    /// By their first address. They do not overlap.
    pub(crate) allocations: BTreeMap<usize, Arc<Allocation>>,
    pub(crate) streams: BTreeMap<Handle, Stream>,
    pub(crate) events: BTreeMap<Handle, Event>,
    pub(crate) modules: BTreeMap<Handle, Module>,
    pub(crate) functions: BTreeMap<Handle, Function>,
    /// The thread that loads a kernel, for which all others wait.
    pub(crate) loader: Option<ThreadId>,
    pub(crate) settings: Settings,
    pub(crate) faults: Vec<String>,
    /// Copies on a stream of another device than that of the memory.
    pub(crate) strays: u64,
    handles: usize,
}

/// What tests can change while the process runs.
pub(crate) struct Settings {
    pub(crate) version: i32,
    pub(crate) init: Code,
    pub(crate) memory: usize,
    pub(crate) delay: Duration,
    /// Nothing that was queued starts.
    pub(crate) held: bool,
}

pub(crate) struct Device {
    /// The primary context, made at its first use. It keeps its handle when it comes back.
    pub(crate) primary: Handle,
    pub(crate) retained: u32,
    pub(crate) used: usize,
}

pub(crate) struct Context {
    pub(crate) device: i32,
    /// What `cuCtxGetId` says: another one each time a primary context comes back.
    pub(crate) id: u64,
    pub(crate) alive: bool,
    /// An error that spoils the context: every later call in it returns it.
    pub(crate) broken: Option<Code>,
    /// The default stream that all threads share.
    pub(crate) default_stream: Handle,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Pool,
    Managed,
    Pinned,
    Registered,
}

/// Memory that the fake knows. Copies on their way hold it, so its bytes stay where they are until the last one is done.
pub(crate) struct Allocation {
    pub(crate) start: usize,
    pub(crate) size: usize,
    pub(crate) kind: Kind,
    pub(crate) device: i32,
    /// Null for memory of a pool, which belongs to the device.
    pub(crate) context: Handle,
    pub(crate) id: u64,
    /// Where the CPU finds the bytes.
    pub(crate) alias: usize,
    /// Cleared when it is freed: copies that are still on their way then run into nothing.
    pub(crate) alive: AtomicBool,
    /// Addresses and bytes; none where they are the caller's.
    pub(crate) _pieces: Vec<Piece>,
}

impl Allocation {
    pub(crate) fn end(&self) -> usize {
        self.start + self.size
    }

    pub(crate) fn is_device(&self) -> bool {
        matches!(self.kind, Kind::Device | Kind::Pool | Kind::Managed)
    }
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| Mutex::new(World::new()));

/// Told whenever anything ends that somebody may be waiting for.
static CHANGED: Condvar = Condvar::new();

/// The process that called `cuInit`: a forked child must not use what its parent made.
static INITIALISED_BY: AtomicU32 = AtomicU32::new(0);

/// Takes the lock.
pub(crate) fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the lock go until something has changed.
pub(crate) fn wait(world: MutexGuard<'static, World>) -> MutexGuard<'static, World> {
    CHANGED.wait(world).unwrap_or_else(PoisonError::into_inner)
}

/// Wakes whoever waits.
pub(crate) fn changed() {
    CHANGED.notify_all();
}

pub(crate) fn is_initialised() -> bool {
    INITIALISED_BY.load(Ordering::Acquire) == std::process::id()
}

pub(crate) fn initialise() {
    INITIALISED_BY.store(std::process::id(), Ordering::Release);
}

/// Notes what a correct program does not do.
pub(crate) fn fault(text: String) {
    world().fault(text);
}

impl World {
    fn new() -> World {
        let mut world = World {
            devices: Vec::new(),
            contexts: BTreeMap::new(),
            allocations: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            loader: None,
            settings: Settings {
                version: number("FAKE_CUDA_VERSION", 13000),
                init: number("FAKE_CUDA_INIT", 0),
                memory: number("FAKE_CUDA_MEMORY", 16 << 30),
                delay: Duration::from_micros(number("FAKE_CUDA_DELAY_US", 0)),
                held: false,
            },
            faults: Vec::new(),
            strays: 0,
            handles: 0,
        };
        world.set_devices(number("FAKE_CUDA_DEVICES", 2));
        world
    }

    pub(crate) fn set_devices(&mut self, count: usize) {
        let new = || Device {
            primary: 0,
            retained: 0,
            used: 0,
        };
        self.devices.resize_with(count, new);
    }

    /// A handle that no other object has or had, and that nobody can take for an address.
    pub(crate) fn handle(&mut self) -> Handle {
        self.handles += 1;
        0x0FA4_E000_0000_0000 + self.handles * 16
    }

    /// A number for the same purpose.
    pub(crate) fn id(&mut self) -> u64 {
        self.handles += 1;
        self.handles as u64
    }

    pub(crate) fn fault(&mut self, text: String) {
        self.faults.push(text);
    }

    pub(crate) fn device(&mut self, ordinal: i32) -> Answer<&mut Device> {
        let place = usize::try_from(ordinal).map_err(|_| INVALID_DEVICE)?;
        self.devices.get_mut(place).ok_or(INVALID_DEVICE)
    }

    /// A context that is there and not spoilt.
    pub(crate) fn context(&self, handle: Handle) -> Answer<&Context> {
        let context = self.contexts.get(&handle).ok_or(INVALID_CONTEXT)?;
        if !context.alive {
            return Err(CONTEXT_IS_DESTROYED);
        }
        context.broken.map_or(Ok(context), Err)
    }

    /// Spoils a context for good.
    pub(crate) fn break_context(&mut self, handle: Handle, code: Code) {
        if let Some(context) = self.contexts.get_mut(&handle) {
            context.broken.get_or_insert(code);
        }
        changed();
    }

    /// A new context with its default stream.
    pub(crate) fn add_context(&mut self, device: i32) -> Handle {
        let context = self.handle();
        let default_stream = self.handle();
        let id = self.id();
        let blocking = true;
        let stream = Stream::new(context, blocking);
        self.streams.insert(default_stream, stream);
        self.contexts.insert(
            context,
            Context {
                device,
                id,
                alive: true,
                broken: None,
                default_stream,
            },
        );
        context
    }

    /// Ends a context, and with it everything that was made in it.
    pub(crate) fn end_context(&mut self, handle: Handle) {
        let theirs: Vec<usize> = self
            .allocations
            .values()
            .filter(|allocation| allocation.context == handle)
            .map(|allocation| allocation.start)
            .collect();
        for start in theirs {
            self.forget(start);
        }
        self.events.retain(|_, event| event.context != handle);
        self.modules.retain(|_, module| module.context != handle);
        let default_stream = self.contexts[&handle].default_stream;
        for (name, stream) in &mut self.streams {
            stream.destroyed |= stream.context == handle && *name != default_stream;
        }
        if let Some(context) = self.contexts.get_mut(&handle) {
            context.alive = false;
            context.broken = None;
        }
        changed();
    }

    /// The allocation that holds an address.
    pub(crate) fn holding(&self, at: usize) -> Option<&Arc<Allocation>> {
        let (_, allocation) = self.allocations.range(..=at).next_back()?;
        (at < allocation.end()).then_some(allocation)
    }

    /// Takes an allocation out of the registry.
    pub(crate) fn forget(&mut self, start: usize) {
        let Some(allocation) = self.allocations.remove(&start) else {
            return;
        };
        allocation.alive.store(false, Ordering::Release);
        if matches!(allocation.kind, Kind::Device | Kind::Pool | Kind::Managed)
            && let Ok(device) = self.device(allocation.device)
        {
            device.used -= allocation.size;
        }
        changed();
    }

    /// A stream by its handle, in a context that works.
    pub(crate) fn stream(&mut self, handle: Handle) -> Answer<&mut Stream> {
        let context = self
            .streams
            .get(&handle)
            .filter(|stream| !stream.destroyed)
            .map(|stream| stream.context);
        let Some(context) = context else {
            self.fault(format!("{handle:#x} is no stream"));
            return Err(INVALID_HANDLE);
        };
        self.context(context)?;
        self.streams.get_mut(&handle).ok_or(INVALID_HANDLE)
    }
}
