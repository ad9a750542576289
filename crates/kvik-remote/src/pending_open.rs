//! An object that is being opened in the background: [`PendingOpen`].

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use kvik_core::{Error, ErrorKind, Op, Result};
use tokio::task::AbortHandle;

use crate::handle::RemoteHandle;
use crate::transport::runtime;

/// An object that is being opened, by [`submit_open`](crate::RemoteOptions::submit_open).
///
/// It can be waited for by a thread or awaited by any executor; its outcome, the handle, can be asked for again and again.
/// Dropping it gives the opening up: no more requests are made for it.
///
/// # Example: two objects opened at the same time
/// ```no_run
/// use kvik_remote::RemoteHandle;
///
/// # async fn open() -> kvik_core::Result<()> {
/// let weights = RemoteHandle::submit_open("https://example.org/weights.bin");
/// let index = RemoteHandle::submit_open("s3://bucket/index.bin");
/// let (weights, index) = (weights.await?, index.await?);
/// println!("{} and {} bytes", weights.len(), index.len());
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a pending opening gives it up"]
pub struct PendingOpen {
    shared: Arc<Shared>,
    // None where it ended before it began.
    work: Option<AbortHandle>,
    process: u32,
}

/// What the one who opens and those who wait have in common.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    outcome: Option<Result<RemoteHandle>>,
    waker: Option<Waker>,
}

impl PendingOpen {
    /// Starts `work` on the threads that talk to the network.
    pub(crate) fn start(
        work: impl Future<Output = Result<RemoteHandle>> + Send + 'static,
    ) -> PendingOpen {
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => return PendingOpen::ended(Err(error)),
        };
        let shared = Arc::new(Shared::default());
        let teller = Teller(Arc::clone(&shared));
        let work = runtime.spawn(async move { teller.0.tell(work.await) });
        let work = work.abort_handle();
        PendingOpen {
            shared,
            work: Some(work),
            process: std::process::id(),
        }
    }

    /// One whose outcome is known.
    pub(crate) fn ended(outcome: Result<RemoteHandle>) -> PendingOpen {
        let shared = Arc::new(Shared::default());
        shared.tell(outcome);
        PendingOpen {
            shared,
            work: None,
            process: std::process::id(),
        }
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// Those of [`RemoteOptions::open`](crate::RemoteOptions::open); `Cancelled` after [`cancel`](PendingOpen::cancel),
    /// `Forked` in a child of the process that started it.
    pub fn wait(&self) -> Result<RemoteHandle> {
        self.check_process()?;
        let mut state = self.shared.state();
        loop {
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            let waited = self.shared.done.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the outcome for `limit` at most; `None` if it is not there by then, and the opening goes on.
    pub fn wait_timeout(&self, limit: Duration) -> Option<Result<RemoteHandle>> {
        if let Err(error) = self.check_process() {
            return Some(Err(error));
        }
        let end = Instant::now().checked_add(limit);
        let mut state = self.shared.state();
        while state.outcome.is_none() {
            let left = end.map_or(limit, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return None;
            }
            let waited = self.shared.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.outcome.clone()
    }

    /// Whether the outcome is there, so that [`wait`](PendingOpen::wait) returns at once.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.check_process().is_err() || self.shared.state().outcome.is_some()
    }

    /// Gives the opening up, unless its outcome is there: that is a `Cancelled` error from now on.
    pub fn cancel(&self) {
        // In a child nobody works on it, and the locks of those who did may be held for ever.
        if let (Some(work), Ok(())) = (&self.work, self.check_process()) {
            let why = "the opening was cancelled";
            self.shared
                .tell(Err(Error::new(ErrorKind::Cancelled, Op::Open, why)));
            work.abort();
        }
    }

    fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let why = "the opening belongs to the parent process";
        Err(Error::new(ErrorKind::Forked, Op::Open, why))
    }
}

/// The outcome, as [`PendingOpen::wait`] gives it; polling again gives the same outcome again.
impl Future for PendingOpen {
    type Output = Result<RemoteHandle>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<RemoteHandle>> {
        if let Err(error) = self.check_process() {
            return Poll::Ready(Err(error));
        }
        // Wakers are the caller's code: none of it runs under the lock.
        let waker = context.waker().clone();
        let mut state = self.shared.state();
        let outcome = state.outcome.clone();
        let unused = match outcome {
            Some(_) => Some(waker),
            None => state.waker.replace(waker),
        };
        drop(state);
        drop(unused);
        outcome.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for PendingOpen {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for PendingOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.check_process() {
            Ok(()) => self.shared.state().outcome.clone(),
            Err(error) => Some(Err(error)),
        };
        match outcome {
            Some(Ok(handle)) => write!(f, "PendingOpen({handle:?})"),
            Some(Err(error)) => write!(f, "PendingOpen({error:?})"),
            None => write!(f, "PendingOpen"),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first outcome counts.
    fn tell(&self, outcome: Result<RemoteHandle>) {
        let mut state = self.state();
        if state.outcome.is_some() {
            return;
        }
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        self.done.notify_all();
        // The waker is the caller's code: what it panics with is not the end of this thread.
        let _ = catch_unwind(AssertUnwindSafe(|| waker.map(Waker::wake)));
    }
}

/// Whoever opens the object: gone without a word, it has panicked.
struct Teller(Arc<Shared>);

impl Drop for Teller {
    fn drop(&mut self) {
        let why = "what talks to the network has panicked";
        self.0
            .tell(Err(Error::new(ErrorKind::Internal, Op::Open, why)));
    }
}
