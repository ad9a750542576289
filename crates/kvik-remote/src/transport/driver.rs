//! Threads that talk to the network themselves: each by a runtime of its own, with connections of its own, lent for as long as
//! it has requests under way.
//!
//! What waits for an answer is the thread that wants it, so no bytes go from one thread to another, and none is woken on
//! another's behalf. Who was lent last is lent first, since its connections are the freshest.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kvik_core::corridor::PerProcess;
use kvik_core::{Error, ErrorKind, Op, Result};
use tokio::runtime::{Builder, Handle, Runtime};

use super::runtime::not_started;

/// A runtime that is driven by whoever has it, until it is dropped.
pub(crate) struct Driver(Option<Idle>);

/// One that waits for the next to have it.
struct Idle {
    // Taken by `drop` alone.
    runtime: Option<Runtime>,
    connections: Arc<Connections>,
    since: Instant,
}

/// The clients whose connections belong to one runtime, by the number of the options that they were made with.
#[derive(Default)]
pub(super) struct Connections(Mutex<HashMap<ClientNumber, reqwest::Client>>);

/// A number for each set of options and each kind of trust.
pub(super) type ClientNumber = (usize, bool);

thread_local! { static HERE: RefCell<Option<Arc<Connections>>> = const { RefCell::new(None) } }

/// Whether the calling thread may wait for a runtime: one that serves another runtime may not.
pub(crate) fn may_drive() -> bool {
    Handle::try_current().is_err()
}

impl Driver {
    /// One for the calling thread.
    ///
    /// # Errors
    /// `Misuse` on a thread that serves a runtime; `TooManyOpenFiles` or `OutOfMemory` if the system gives none.
    pub(crate) fn lend() -> Result<Driver> {
        if !may_drive() {
            let why = "a thread of an asynchronous runtime cannot wait for the network";
            return Err(Error::new(ErrorKind::Misuse, Op::Start, why));
        }
        let kept = idle().pop();
        let Some(kept) = kept else {
            return Idle::new().map(|new| Driver(Some(new)));
        };
        let is_stale = kept.since.elapsed() > FRESH;
        let driver = Driver(Some(kept));
        if is_stale {
            // Servers may have closed some of its connections.
            driver.settle();
        }
        Ok(driver)
    }

    /// Drives the runtime until `work` is done.
    pub(crate) fn wait_for<T>(&self, work: impl Future<Output = T>) -> T {
        let idle = self.0.as_ref().expect("only `drop` takes it");
        let runtime = idle.runtime.as_ref().expect("only `drop` takes it");
        let _here = Here::enter(&idle.connections);
        runtime.block_on(work)
    }

    /// Lets its connections see what has become of their requests: those whose answers have ended are good for the next one,
    /// those whose answers nobody wants are closed.
    pub(crate) fn settle(&self) {
        self.wait_for(async {
            for _ in 0..SETTLED {
                tokio::task::yield_now().await;
            }
        });
    }
}

/// Drives `work` on the calling thread, or on another one where that may not wait.
///
/// # Errors
/// `Internal` if the work panicked.
pub(crate) fn drive<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    if !may_drive() {
        return super::runtime()?.wait_for(work);
    }
    let driver = Driver::lend()?;
    let outcome = catch_unwind(AssertUnwindSafe(|| driver.wait_for(work)));
    driver.settle();
    outcome.map_err(|_| {
        let why = "what talks to the network has panicked";
        Error::new(ErrorKind::Internal, Op::Open, why)
    })
}

impl Connections {
    /// Those of the runtime that the calling thread drives.
    pub(super) fn here() -> Option<Arc<Connections>> {
        HERE.with_borrow(Clone::clone)
    }

    /// The client with this number; `make` makes it at its first use.
    pub(super) fn client<E>(
        &self,
        number: ClientNumber,
        make: impl FnOnce() -> std::result::Result<reqwest::Client, E>,
    ) -> std::result::Result<reqwest::Client, E> {
        // One thread at a time drives the runtime, so nobody waits for this lock.
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&number) {
            return Ok(client.clone());
        }
        let client = make()?;
        clients.insert(number, client.clone());
        Ok(client)
    }
}

/// As long as it lives, the thread has these connections.
struct Here(Option<Arc<Connections>>);

impl Here {
    fn enter(connections: &Arc<Connections>) -> Here {
        Here(HERE.replace(Some(Arc::clone(connections))))
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.set(self.0.take());
    }
}

impl Idle {
    fn new() -> Result<Idle> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(not_started)?;
        Ok(Idle {
            runtime: Some(runtime),
            connections: Arc::default(),
            since: Instant::now(),
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let Some(mut returned) = self.0.take() else {
            return;
        };
        returned.since = Instant::now();
        let mut kept = idle();
        kept.push(returned);
        // Dropped after the lock is given back: closing connections is work.
        let old = kept.iter().position(|kept| kept.since.elapsed() < KEPT);
        let mut old = kept.drain(..old.unwrap_or_default()).collect::<Vec<_>>();
        let many = kept.len().saturating_sub(MOST_IDLE);
        old.extend(kept.drain(..many));
        drop(kept);
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Those that nobody has, the latest at the end.
fn idle() -> MutexGuard<'static, Vec<Idle>> {
    // In a child the parent's lock may be held by a thread that is not there.
    static IDLE: PerProcess<Mutex<Vec<Idle>>> = PerProcess::new();
    IDLE.get_or(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

// Servers keep connections that long at least.
const FRESH: Duration = Duration::from_secs(1);
// Longer than most servers keep a connection that nobody uses.
const KEPT: Duration = Duration::from_secs(90);
// As many as are likely to be wanted at a time; each has its connections and three descriptors.
const MOST_IDLE: usize = 64;
// A body that has ended wakes its connection, and that whoever waits to put it among the idle ones.
const SETTLED: usize = 2;
