//! What moves the bytes of one task: a completion-shaped trait, so that one worker can keep many tasks in flight.
//!
//! A worker opens a [`Lane`] on the [`Engine`], starts as many tasks as the lane has room for, and polls for completions.
//! An engine for which a task is one blocking call completes it in `start`; one with a queue in the kernel or on a
//! device completes it later.

pub(crate) mod auto;
mod blocking;
pub(crate) mod cold;
pub(crate) mod direct;
pub(crate) mod flagged;
pub(crate) mod gds;
pub(crate) mod kept;
#[cfg(target_arch = "x86_64")]
mod mapped;
mod or_else;
pub(crate) mod posix;
mod scratch;
pub(crate) mod staged;
pub(crate) mod uring;

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use kvik_config::Config;
use kvik_stats::Backend;

use crate::corridor::{DeviceWindow, Task, Window};
use crate::error::{Error, ErrorKind, Op, Result};
use or_else::OrElse;
use uring::Uring;

/// A way to move bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum EngineKind {
    /// `pread(2)` and `pwrite(2)` through the page cache.
    Posix,
    /// `pread(2)` into a small aligned scratch, and on past the cache: where the kernel's copy into the target is slow.
    Scratch,
    /// A copy out of mapped windows of the file, past the cache. Only on x86-64.
    Mapped,
    /// Past the page cache (`O_DIRECT`), with the edges that no block fits cut off: by io_uring where there are several
    /// requests and a thread may have a queue, by blocking calls elsewhere.
    Direct,
    /// io_uring: a queue in the kernel for each worker, with many requests in flight. Where a thread cannot have one,
    /// `Posix` stands in.
    Uring,
}

impl EngineKind {
    /// All engines of this build, in the order in which `kvik bench` tries them.
    pub const ALL: &[EngineKind] = &[
        EngineKind::Posix,
        EngineKind::Scratch,
        #[cfg(target_arch = "x86_64")]
        EngineKind::Mapped,
        EngineKind::Direct,
        EngineKind::Uring,
    ];
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineKind::Posix => "posix",
            EngineKind::Scratch => "scratch",
            EngineKind::Mapped => "mapped",
            EngineKind::Direct => "direct",
            EngineKind::Uring => "uring",
        })
    }
}

/// The engine of this kind for a caller who takes no other; `None` for a kind that this build does not have.
///
/// # Errors
/// It cannot be used on this file: the text says why.
pub(crate) fn for_kind(
    kind: EngineKind,
    file: &Arc<File>,
    config: &Config,
) -> Option<Result<Arc<dyn Engine>>> {
    let file = Arc::clone(file);
    Some(match kind {
        EngineKind::Posix => Ok(Arc::new(posix::Posix::new(file))),
        EngineKind::Scratch => config
            .bounce_buffer_size()
            .map_err(Error::from)
            .map(|size| Arc::new(scratch::Scratch::new(file, size)) as Arc<dyn Engine>),
        #[cfg(target_arch = "x86_64")]
        EngineKind::Mapped => Ok(Arc::new(mapped::Mapped::new(file))),
        #[cfg(not(target_arch = "x86_64"))]
        EngineKind::Mapped => return None,
        EngineKind::Direct => direct::only(file, config),
        EngineKind::Uring => {
            let posix = Arc::new(posix::Posix::new(Arc::clone(&file)));
            Ok(Arc::new(OrElse::new(
                Arc::new(Uring::buffered(file)),
                posix,
            )))
        }
    })
}

/// Moves the bytes of tasks between one object and memory.
pub trait Engine: Send + Sync + 'static {
    /// Under which name its bytes are counted.
    fn backend(&self) -> Backend;

    /// Opens a lane for one worker.
    ///
    /// # Errors
    /// What the engine needs for a lane is not to be had: memory, a ring, a connection.
    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>>;

    /// How many threads a read has use for.
    fn readers(&self) -> usize {
        usize::MAX
    }

    /// How many threads a write has use for; more would only wait for each other.
    fn writers(&self) -> usize {
        usize::MAX
    }

    /// The longest task in bytes that its lanes take.
    fn largest(&self) -> u64 {
        u64::MAX
    }

    /// Whether its lanes fill windows of several stretches of memory
    /// ([`FillWindow::is_scattered`](crate::corridor::FillWindow::is_scattered)), by nothing but
    /// [`put`](crate::corridor::FillWindow::put) and `pread`. Others are never given one.
    fn scatters(&self) -> bool {
        false
    }

    /// Whether its tasks wait for a network. Then a lane for a device has more slabs under way, and looks after its copies
    /// before it waits for more bytes.
    fn is_remote(&self) -> bool {
        false
    }

    /// Whether the calling thread may have a lane. Where it may not, the workers of the pool do all of the work.
    fn works_here(&self) -> bool {
        true
    }

    /// Told when the transfer that it was made for has failed or was cancelled: tasks in flight may end at once, with an
    /// error. An engine of several transfers leaves it alone.
    fn stop(&self) {}
}

/// One worker's queue of tasks on an [`Engine`].
///
/// Dropping a lane waits for what is in flight: afterwards nobody touches a window that was given to it.
pub trait Lane<'w> {
    /// What the engine is called where tasks are told of one by one: which one it is now, where one gives way to another.
    fn engine(&self) -> &'static str {
        "other"
    }

    /// How many more tasks may be started now. At least 1 when nothing is in flight.
    fn room(&self) -> usize;

    /// How many tasks were started and not yet handed back by `poll`.
    fn in_flight(&self) -> usize;

    /// How many tasks, at least, the next `poll` hands back without waiting. An engine for which a task is one blocking
    /// call says 1 after `start`: so that the bytes can go on to a device while the next task is read.
    fn finished(&self) -> usize {
        0
    }

    /// Starts `task` on its window. There is room, and the window is as long as the task.
    fn start(&mut self, task: Task, window: Window<'w>);

    /// Moves finished tasks to `done`; waits for at least one when any is in flight.
    fn poll(&mut self, done: &mut Vec<Completion<'w>>);
}

/// A finished task.
#[derive(Debug)]
pub struct Completion<'w> {
    /// The task.
    pub task: Task,
    /// Its window, with the bytes in it.
    pub window: Window<'w>,
    /// How many bytes were moved, and why it stopped if not all of them were. A read that is short without an error met
    /// the end of the data.
    pub moved: usize,
    /// What stopped the task; the transfer adds operation, place and range.
    pub error: Option<crate::Error>,
}

impl<'w> Completion<'w> {
    /// The answer of an engine for memory of a device to a window of the host. Doors do not hand it one.
    pub(crate) fn not_on_device(task: Task, window: Window<'w>) -> Completion<'w> {
        let why = "the engine for memory of a device was given memory of the host";
        Completion {
            task,
            window,
            moved: 0,
            error: Some(Error::new(ErrorKind::Internal, Op::Start, why)),
        }
    }

    /// The answer of an engine that moves bytes of the host's memory alone to a window of a device. Doors do not hand it
    /// one.
    pub(crate) fn not_on_host(task: Task, window: DeviceWindow<'w>) -> Completion<'w> {
        let op = Op::from(window.direction());
        let why = "an engine for host memory was given memory of a device";
        Completion {
            task,
            window: Window::Device(window),
            moved: 0,
            error: Some(Error::new(ErrorKind::Internal, op, why)),
        }
    }
}
