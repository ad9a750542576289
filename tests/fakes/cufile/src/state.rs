//! What is open, registered and on its way, behind one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kvik_fake_common::number;

use crate::batch::Batch;

pub(crate) struct State {
    /// How often the driver was opened and not closed.
    pub(crate) opened: i64,
    pub(crate) files: BTreeMap<usize, Arc<Registered>>,
    /// Lengths, by first address.
    pub(crate) buffers: BTreeMap<usize, usize>,
    /// Flags, by stream.
    pub(crate) streams: BTreeMap<usize, u32>,
    /// Those for which a call is being made.
    pub(crate) called: BTreeSet<usize>,
    pub(crate) batches: BTreeMap<usize, Arc<Batch>>,
    /// What was set before the driver was opened, as `kind:number=value`.
    pub(crate) parameters: Vec<String>,
    pub(crate) allows_compat: bool,
    pub(crate) version: i32,
    pub(crate) nvfs: u32,
    /// The most entries in a batch; 0 where there are no batches.
    pub(crate) max_batch: usize,
    /// Whether the kernel's own way between devices is there.
    pub(crate) p2p: bool,
    /// Whether a direct path leads to the files that are registered from now on; by default, where nvidia-fs is.
    pub(crate) direct: Option<bool>,
    /// What programs may change while the driver is open.
    pub(crate) limits: Limits,
    /// Whoever opens the driver waits.
    pub(crate) opening_held: bool,
    /// Whoever closes it waits.
    pub(crate) closing_held: bool,
    /// How often a transfer named a buffer that is registered, by the address where that starts.
    pub(crate) hits: usize,
    pub(crate) delay: Duration,
    /// No transfer goes on.
    pub(crate) held: bool,
    pub(crate) moving: usize,
    pub(crate) most_moving: usize,
    pub(crate) faults: Vec<String>,
    handles: usize,
}

/// What a driver that is opened begins with, in KiB but for the first.
pub(crate) struct Limits {
    pub(crate) polls: bool,
    pub(crate) poll_threshold: usize,
    pub(crate) cache: usize,
    pub(crate) pinned: usize,
}

impl Limits {
    pub(crate) const FIRST: Limits = Limits {
        polls: false,
        poll_threshold: 4,
        cache: 131_072,
        pinned: 33_554_432,
    };
}

/// A registered file.
pub(crate) struct Registered {
    pub(crate) fd: i32,
    /// The same file without direct I/O, so that no alignment is asked for.
    pub(crate) file: File,
    /// What the descriptor names: device and inode.
    pub(crate) identity: (u64, u64),
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| {
    Mutex::new(State {
        opened: 0,
        files: BTreeMap::new(),
        buffers: BTreeMap::new(),
        streams: BTreeMap::new(),
        called: BTreeSet::new(),
        batches: BTreeMap::new(),
        parameters: Vec::new(),
        allows_compat: true,
        version: number("FAKE_CUFILE_VERSION", 1150),
        nvfs: number("FAKE_CUFILE_NVFS", 0),
        // As the real library has it without a setting.
        max_batch: 128,
        p2p: false,
        direct: None,
        limits: Limits::FIRST,
        opening_held: false,
        closing_held: false,
        hits: 0,
        delay: Duration::from_micros(number("FAKE_CUFILE_DELAY_US", 0)),
        held: false,
        moving: 0,
        most_moving: 0,
        faults: Vec::new(),
        handles: 0,
    })
});

static CHANGED: Condvar = Condvar::new();

/// Takes the lock.
pub(crate) fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the lock go until something has changed.
pub(crate) fn wait(state: MutexGuard<'static, State>) -> MutexGuard<'static, State> {
    CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner)
}

/// Wakes whoever waits.
pub(crate) fn changed() {
    CHANGED.notify_all();
}

impl State {
    /// A handle that no other object has or had.
    pub(crate) fn handle(&mut self) -> usize {
        self.handles += 1;
        0x0FA4_EF00_0000_0000 + self.handles * 16
    }

    pub(crate) fn fault(&mut self, text: String) {
        self.faults.push(text);
    }
}
