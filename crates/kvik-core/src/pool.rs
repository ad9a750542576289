//! The one place where threads start: named workers that take turns at the transfers in a queue.
//!
//! A transfer is in the queue once for each worker that may help it. A worker runs a job until the job has no more tasks
//! or somebody else is waiting; in the second case the job goes back to the end of the queue. So one huge transfer and
//! many small ones share the workers task by task, and nothing is paid for that while nobody waits.
//!
//! A pool only grows. After a fork the child builds new shared pools (see `fork.rs`).

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use nix::sys::signal::{SigSet, Signal};

use crate::error::{Error, ErrorKind, Op, Result};
use crate::fork;
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, lock, thread, wait};

/// Something that several workers can work on at once.
pub(crate) trait Job: Send + Sync {
    /// Works until nothing is left to start (`false`) or, after at least one task, until `crowded` (`true`: come again).
    fn turn(&self, crowded: &dyn Fn() -> bool) -> bool;
}

/// A growing set of named threads that move the bytes of transfers. Cloning it gives another handle to the same pool.
///
/// When the last handle goes, the queue is worked off and the threads end.
#[derive(Clone)]
pub struct ThreadPool {
    owner: Arc<Owner>,
}

struct Owner {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    generation: u64,
    queue: Mutex<Queue>,
    work: Condvar,
    // The length of `queue.jobs`, to be read without the lock after each task.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<dyn Job>>,
    threads: Vec<thread::JoinHandle<()>>,
    // Threads that wait for a job.
    idle: usize,
    closed: bool,
}

impl ThreadPool {
    /// The most threads that a pool starts. More would only wait for each other, and at some ten thousand a process runs
    /// into the kernel's limit of mappings, which ends it.
    pub const MAX_THREADS: usize = 1024;

    /// A pool of its own, without threads until a transfer needs them; they are called `name-0`, `name-1` and so on
    /// (the kernel keeps 15 bytes of it; a NUL byte in it becomes `_`).
    #[must_use]
    pub fn new(name: &str) -> ThreadPool {
        let shared = Shared {
            name: name.replace('\0', "_"),
            generation: fork::generation(),
            queue: Mutex::new(Queue::default()),
            work: Condvar::new(),
            waiting: AtomicUsize::new(0),
        };
        ThreadPool {
            owner: Arc::new(Owner {
                shared: Arc::new(shared),
            }),
        }
    }

    /// The pool that all handles of this process share unless they were given another; its threads are `kvik-N`.
    #[must_use]
    pub fn global() -> ThreadPool {
        shared_value(&GLOBAL, || ThreadPool::new("kvik")).clone()
    }

    /// The pool for the block device with this number (`st_dev`), made at first use; its threads are `kvik-blk-N`.
    #[must_use]
    pub fn for_block_device(device: u64) -> ThreadPool {
        let pools = shared_value(&BY_DEVICE, Default::default);
        let mut pools = pools
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        pools
            .entry(device)
            .or_insert_with(|| ThreadPool::new("kvik-blk"))
            .clone()
    }

    /// The pool of those who serve streams of the program's; its threads are `kvik-stream-N`. None of them ever calls the driver,
    /// so that none can be held up by it.
    pub(crate) fn for_streams() -> ThreadPool {
        shared_value(&FOR_STREAMS, || ThreadPool::new("kvik-stream")).clone()
    }

    /// How many threads it has; none in a child of the process that made it.
    #[must_use]
    pub fn threads(&self) -> usize {
        if self.check_process().is_err() {
            return 0;
        }
        lock(&self.shared().queue).threads.len()
    }

    /// Grows it to at least `count` threads. It never shrinks. Transfers let it grow as they need it; this is for those
    /// who want the threads to be there before.
    ///
    /// # Errors
    /// `Misuse` for more than [`MAX_THREADS`](ThreadPool::MAX_THREADS); `OutOfMemory` if the system starts no more threads
    /// (those started stay); `Forked` in a child of the process that made the pool.
    pub fn grow(&self, count: usize) -> Result<()> {
        self.check_process()?;
        if count > ThreadPool::MAX_THREADS {
            let why = format!(
                "{count} threads are more than the {} that a pool starts",
                ThreadPool::MAX_THREADS
            );
            return Err(Error::new(ErrorKind::Misuse, Op::Start, why));
        }
        let shared = self.shared();
        shared.start_up_to(&mut lock(&shared.queue), count)
    }

    /// Puts `job` into the queue for up to `times` workers, and starts those that the queue needs, as long as the pool
    /// has fewer than `most`. Returns how often it was put there: 0 where there is no worker to be had.
    pub(crate) fn offer(&self, job: &Arc<dyn Job>, times: usize, most: usize) -> usize {
        if times == 0 || self.check_process().is_err() {
            return 0;
        }
        let shared = self.shared();
        let mut queue = lock(&shared.queue);
        let busy = queue.threads.len() - queue.idle;
        let needed = (busy + queue.jobs.len() + times).min(most);
        if let Err(error) = shared.start_up_to(&mut queue, needed) {
            tracing::warn!(%error, "transfers go on with fewer workers");
            if queue.threads.is_empty() {
                return 0;
            }
        }
        queue.jobs.extend(std::iter::repeat_n(job, times).cloned());
        shared.note_length(&queue);
        drop(queue);
        match times {
            1 => shared.work.notify_one(),
            _ => shared.work.notify_all(),
        }
        times
    }

    /// Takes `job` out of the queue up to `times` times; returns how often it was still in there.
    pub(crate) fn revoke(&self, job: &Arc<dyn Job>, times: usize) -> usize {
        if times == 0 {
            return 0;
        }
        let shared = self.shared();
        let mut revoked = 0;
        let mut queue = lock(&shared.queue);
        queue.jobs.retain(|queued| {
            let take = revoked < times && ptr::addr_eq(Arc::as_ptr(queued), Arc::as_ptr(job));
            revoked += usize::from(take);
            !take
        });
        shared.note_length(&queue);
        revoked
    }

    /// An error if this process is not the one that made the pool: its threads, and perhaps its locks, are lost.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.shared().generation == fork::generation() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Forked,
            Op::Start,
            "the thread pool belongs to the parent process",
        ))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("name", &self.shared().name)
            .finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let shared = &self.shared;
        if shared.generation != fork::generation() {
            return; // The threads live in another process, and one of them may have held the lock at the fork.
        }
        let mut queue = lock(&shared.queue);
        queue.closed = true;
        let threads = std::mem::take(&mut queue.threads);
        drop(queue);
        shared.work.notify_all();
        let this = thread::current().id();
        for thread in threads {
            // The last handle may be dropped by a worker; it ends by itself. A worker that panicked has said so.
            if thread.thread().id() != this {
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn note_length(&self, queue: &Queue) {
        self.waiting.store(queue.jobs.len(), Ordering::Relaxed);
    }

    fn next_job(&self) -> Option<Arc<dyn Job>> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                self.note_length(&queue);
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue.idle += 1;
            queue = wait(&self.work, queue);
            queue.idle -= 1;
        }
    }

    fn start_up_to(self: &Arc<Self>, queue: &mut Queue, count: usize) -> Result<()> {
        while queue.threads.len() < count {
            let thread = start(self, queue.threads.len()).map_err(|cause| {
                let why = format!(
                    "thread {} of {count} could not be started: {cause}",
                    queue.threads.len() + 1
                );
                Error::new(ErrorKind::OutOfMemory, Op::Start, why).because(cause)
            })?;
            queue.threads.push(thread);
        }
        Ok(())
    }

    fn work(&self) {
        let crowded = || self.waiting.load(Ordering::Relaxed) > 0;
        while let Some(job) = self.next_job() {
            if job.turn(&crowded) {
                let mut queue = lock(&self.queue);
                queue.jobs.push_back(job);
                self.note_length(&queue);
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where threads of kvik start"
)]
fn start(shared: &Arc<Shared>, number: usize) -> io::Result<thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new()
        .name(format!("{}-{number}", shared.name))
        .spawn(move || {
            receive_faults();
            shared.work();
        })
}

/// Starts a thread for one call that may never return. Nobody joins it: whoever waits for it does so with an end.
///
/// # Errors
/// The system starts no more threads.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where threads of kvik start"
)]
pub(crate) fn start_aside(name: &str, call: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(call)
        .map(drop)
}

/// A thread begins with the signals blocked that the one which started it had blocked. A worker that blocks `SIGBUS` can
/// read nothing out of maps; and of a fault while it is blocked the process dies, whatever handler there is.
fn receive_faults() {
    // It fails for wrong arguments only.
    let _ = SigSet::from(Signal::SIGBUS).thread_unblock();
}

type ByDevice = std::sync::Mutex<HashMap<u64, ThreadPool>>;

static GLOBAL: AtomicPtr<ThreadPool> = AtomicPtr::new(ptr::null_mut());
static BY_DEVICE: AtomicPtr<ByDevice> = AtomicPtr::new(ptr::null_mut());
static FOR_STREAMS: AtomicPtr<ThreadPool> = AtomicPtr::new(ptr::null_mut());

/// Called in a forked child, before anything else runs there: only stores to atomics are allowed.
pub(crate) fn forget_shared() {
    GLOBAL.store(ptr::null_mut(), Ordering::Release);
    BY_DEVICE.store(ptr::null_mut(), Ordering::Release);
    FOR_STREAMS.store(ptr::null_mut(), Ordering::Release);
}

/// The value behind `place`, made at first use and never freed: it outlives every thread, at exit too.
///
/// A lock-free `OnceLock`: one that another thread was just filling when the process forked would block the child.
pub(crate) fn shared_value<T: Sync>(place: &AtomicPtr<T>, make: impl FnOnce() -> T) -> &'static T {
    fork::generation();
    let mut value = place.load(Ordering::Acquire);
    if value.is_null() {
        let made = Box::into_raw(Box::new(make()));
        value = match place.compare_exchange(
            ptr::null_mut(),
            made,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => made,
            Err(winner) => {
                // SAFETY: `made` came from `into_raw` above and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                winner
            }
        };
    }
    // SAFETY: whoever stores a value here, this function or `sign::show`, takes it from a box that is never freed.
    unsafe { &*value }
}
