//! A transfer in flight, with everything it still touches.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::pool::ThreadPool;
use crate::stretch::Stretch;
use crate::transfer::Transfer;

/// A transfer in flight: it owns its buffer, and through it the file and the pool stay as long as they are needed.
///
/// It can be waited for by a thread or awaited by any executor; its outcome, the count of bytes moved, can be asked for
/// again and again. Dropping it cancels what has not started and waits for what has; leaking it leaks the buffer, and
/// nothing worse. An outcome that is an error says how many bytes were moved before it.
///
/// # Example: read while doing something else, then take the buffer back
/// ```
/// # fn main() -> kvik_core::Result<()> {
/// # let path = std::env::temp_dir().join(format!("kvik-pending-{}", std::process::id()));
/// # std::fs::write(&path, b"bytes").unwrap();
/// let file = kvik_core::FileHandle::open(&path)?;
/// let pending = file.submit_read(vec![0; 4], 1);
/// // ... something else ...
/// assert_eq!(pending.wait()?, 4);
/// assert_eq!(pending.into_buf(), b"ytes");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a pending transfer cancels it"]
pub struct Pending<B> {
    inner: Inner<B>,
}

enum Inner<B> {
    Running {
        transfer: Arc<Transfer<Stretch>>,
        pool: ThreadPool,
        buffer: PhantomData<fn() -> B>,
    },
    /// It was refused before it began.
    Refused { error: Error, buffer: B },
    /// `finish` took everything out; nobody can see this but `drop`.
    Finished,
}

impl<B: Send + 'static> Pending<B> {
    pub(crate) fn new(transfer: Arc<Transfer<Stretch>>, pool: ThreadPool) -> Pending<B> {
        Pending {
            inner: Inner::Running {
                transfer,
                pool,
                buffer: PhantomData,
            },
        }
    }

    pub(crate) fn refused(error: Error, buffer: B) -> Pending<B> {
        Pending {
            inner: Inner::Refused { error, buffer },
        }
    }

    /// Waits for the outcome: the count of bytes, short only at the end of the data.
    ///
    /// The calling thread takes the place of a worker that has not come yet, so that waiting on a worker of the same
    /// pool cannot deadlock.
    ///
    /// # Errors
    /// What stopped the transfer; `Cancelled` after [`cancel`](Pending::cancel), `TimedOut` after the deadline, `Forked`
    /// in a child of the process that started it.
    pub fn wait(&self) -> Result<usize> {
        match &self.inner {
            Inner::Running { transfer, pool, .. } => transfer.join(pool),
            Inner::Refused { error, .. } => Err(error.clone()),
            Inner::Finished => Ok(0),
        }
    }

    /// Waits for the outcome for `limit` at most; `None` if it is not there by then, and the transfer goes on.
    pub fn wait_timeout(&self, limit: Duration) -> Option<Result<usize>> {
        match &self.inner {
            Inner::Running { transfer, .. } => transfer.wait_timeout(limit),
            _ => Some(self.wait()),
        }
    }

    /// Whether the outcome is there, so that [`wait`](Pending::wait) returns at once.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.inner {
            Inner::Running { transfer, .. } => transfer.is_settled(),
            _ => true,
        }
    }

    /// Starts no more tasks. Those in flight finish; if any was left undone, the outcome is a `Cancelled` error.
    pub fn cancel(&self) {
        if let Inner::Running { transfer, .. } = &self.inner {
            transfer.cancel();
        }
    }

    /// Waits, then gives the buffer back, whatever the outcome was. Ask [`wait`](Pending::wait) first for the count.
    #[must_use]
    pub fn into_buf(self) -> B {
        self.finish().1
    }

    /// Waits, then gives outcome and buffer.
    ///
    /// In a child of the process that started the transfer the outcome is `Forked`, and the buffer is the child's copy
    /// of it, with what had arrived by the time of the fork.
    pub fn finish(mut self) -> (Result<usize>, B) {
        let outcome = self.wait();
        let buffer = match std::mem::replace(&mut self.inner, Inner::Finished) {
            Inner::Running { transfer, .. } => transfer
                .take_buffer()
                .and_then(|buffer| buffer.downcast::<B>().ok()),
            Inner::Refused { buffer, .. } => return (outcome, buffer),
            Inner::Finished => None,
        };
        // `Call::submit` put a `B` into the transfer, and only this function, which consumes the value, takes it out.
        (
            outcome,
            *buffer.expect("a pending transfer holds its buffer"),
        )
    }
}

/// The outcome, as [`Pending::wait`] gives it. Awaiting `&mut pending` leaves the value for
/// [`into_buf`](Pending::into_buf); polling again gives the same outcome again.
impl<B: Send + 'static> Future for Pending<B> {
    type Output = Result<usize>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<usize>> {
        match &self.inner {
            Inner::Running { transfer, .. } => transfer
                .poll(context.waker())
                .map_or(Poll::Pending, Poll::Ready),
            _ => Poll::Ready(self.wait()),
        }
    }
}

impl<B> Drop for Pending<B> {
    fn drop(&mut self) {
        if let Inner::Running { transfer, .. } = &self.inner {
            transfer.cancel();
            // The outcome is nobody's concern any more; in a forked child this returns at once.
            let _ = transfer.wait();
        }
    }
}

impl<B> fmt::Debug for Pending<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Inner::Running { transfer, .. } => write!(f, "Pending({transfer:?})"),
            Inner::Refused { error, .. } => write!(f, "Pending({error:?})"),
            Inner::Finished => write!(f, "Pending"),
        }
    }
}
