//! A batch in flight, with the buffers of its entries.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Entries;
use super::progress::Progress;
use crate::error::{Error, ErrorKind, Op, Result};
use crate::fork;
use crate::pool::ThreadPool;
use crate::sync::{Mutex, lock};
use crate::transfer::Transfer;

/// A [`Batch`](crate::Batch) in flight: it owns the buffers, and keeps files and pools as long as they are needed.
///
/// It can be waited for by a thread or awaited by any executor. Outcomes can be asked for again and again;
/// [`newly_done`](PendingBatch::newly_done) and [`wait_some`](PendingBatch::wait_some) tell each entry once. Dropping it cancels
/// what has not started and waits for what has; leaking it leaks the buffers, and nothing worse.
///
/// # Example: entries as they come
/// ```
/// # fn main() -> kvik_core::Result<()> {
/// # let path = std::env::temp_dir().join(format!("kvik-batch-as-they-come-{}", std::process::id()));
/// # std::fs::write(&path, [7; 100]).unwrap();
/// use std::time::Duration;
///
/// let file = kvik_core::FileHandle::open(&path)?;
/// let mut batch = kvik_core::Batch::new();
/// for number in 0..10 {
///     batch.read(&file, number * 10, vec![0; 10]);
/// }
/// let pending = batch.submit();
/// while !pending.is_done() {
///     for done in pending.wait_some(1, Duration::from_secs(1)) {
///         println!("{}: {} bytes", done.index, done.outcome?);
///     }
/// }
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a pending batch cancels it"]
pub struct PendingBatch<B> {
    groups: Vec<(Arc<Transfer<Entries>>, ThreadPool)>,
    progress: Arc<Progress>,
    generation: u64,
    // Only the owner takes this lock, so that it can be taken in a forked child, too; nobody looks at the buffers before all
    // transfers are over.
    buffers: Mutex<Vec<B>>,
}

/// One entry that has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Completed {
    /// Its number, as adding it to the batch gave it.
    pub index: usize,
    /// The count of bytes, short only at the end of the file; or what stopped it.
    pub outcome: Result<usize>,
}

/// What an entry has come to, with its buffer.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished<B> {
    /// The count of bytes, short only at the end of the file; or what stopped it.
    pub outcome: Result<usize>,
    /// The buffer; `None` where cuFile has not said that it is done with it, and then it stays where it is for ever. That is an
    /// error in the outcome, too.
    pub buffer: Option<B>,
}

impl<B: Send + 'static> PendingBatch<B> {
    pub(super) fn new(buffers: Vec<B>) -> PendingBatch<B> {
        PendingBatch {
            groups: Vec::new(),
            progress: Arc::new(Progress::new(buffers.len())),
            generation: fork::generation(),
            buffers: Mutex::new(buffers),
        }
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Starts a transfer of some of its entries by up to `threads` workers.
    pub(super) fn start(
        &mut self,
        transfer: Arc<Transfer<Entries>>,
        pool: &ThreadPool,
        threads: usize,
    ) {
        self.progress.begin();
        // Before it starts: whatever happens then, dropping the batch waits for it.
        self.groups.push((Arc::clone(&transfer), pool.clone()));
        transfer.submit(pool, threads);
    }

    /// Waits for all entries; returns their outcomes, in the order in which they were added.
    ///
    /// The calling thread takes the place of workers that have not come yet, so that waiting on a worker of the same pool cannot
    /// deadlock. An outcome is the count of bytes, short only at the end of the file; or an error with the place and range of the
    /// entry: what stopped it, `Cancelled` after [`cancel`](PendingBatch::cancel), `TimedOut` after the deadline, `Forked` in a
    /// child of the process that submitted the batch.
    pub fn wait(&self) -> Vec<Result<usize>> {
        if let Err(error) = self.check_process() {
            return vec![Err(error); lock(&self.buffers).len()];
        }
        self.settle();
        self.progress.outcomes()
    }

    /// The entries that have ended since this, or [`wait_some`](PendingBatch::wait_some), was last called.
    pub fn newly_done(&self) -> Vec<Completed> {
        self.wait_some(0, Duration::ZERO)
    }

    /// The same, when they are at least `least`, or all that are left; or when `limit` is over, and then they are fewer, or none.
    ///
    /// In a child of the process that submitted the batch there are none.
    pub fn wait_some(&self, least: usize, limit: Duration) -> Vec<Completed> {
        match self.check_process() {
            Ok(()) => self.progress.wait_some(least, limit),
            Err(_) => Vec::new(),
        }
    }

    /// Whether all entries have ended, so that [`wait`](PendingBatch::wait) returns at once.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.check_process().is_err() || self.progress.is_over()
    }

    /// Starts nothing more. What is in flight finishes; entries of which that leaves anything undone end with `Cancelled`.
    pub fn cancel(&self) {
        for (transfer, _) in &self.groups {
            transfer.cancel();
        }
    }

    /// Waits for all entries, then gives outcomes and buffers, in the order in which they were added.
    ///
    /// In a child of the process that submitted the batch the outcomes are `Forked`, and the buffers are the child's copies, with
    /// what had arrived by the time of the fork.
    #[must_use]
    pub fn finish(self) -> Vec<Finished<B>> {
        let outcomes = self.wait();
        let finished = |(outcome, buffer)| Finished { outcome, buffer };
        outcomes
            .into_iter()
            .zip(self.take_buffers())
            .map(finished)
            .collect()
    }
}

impl<B> PendingBatch<B> {
    /// Waits until nobody touches the buffers any more.
    fn settle(&self) {
        for (transfer, pool) in &self.groups {
            // Each entry has its outcome from elsewhere.
            let _ = transfer.join(pool);
        }
    }

    /// The buffers of a batch that is over, but for those that must stay.
    fn take_buffers(&self) -> Vec<Option<B>> {
        let buffers = mem::take(&mut *lock(&self.buffers));
        let mut buffers: Vec<_> = buffers.into_iter().map(Some).collect();
        if self.check_process().is_err() {
            return buffers;
        }
        for entry in self.progress.kept() {
            // None is left after `finish`.
            mem::forget(buffers.get_mut(entry).and_then(Option::take));
        }
        buffers
    }

    fn check_process(&self) -> Result<()> {
        if self.generation == fork::generation() {
            return Ok(());
        }
        let why = "the batch belongs to the parent process";
        Err(Error::new(ErrorKind::Forked, Op::Start, why))
    }
}

impl<B> Finished<B> {
    /// The buffer of an entry that went well.
    ///
    /// # Errors
    /// What stopped the entry.
    pub fn into_buffer(self) -> Result<B> {
        self.outcome?;
        self.buffer.ok_or_else(|| {
            let why = "an entry went well, and its buffer is gone";
            Error::new(ErrorKind::Internal, Op::Start, why)
        })
    }
}

/// The outcomes, as [`PendingBatch::wait`] gives them. Awaiting `&mut pending` leaves the value for
/// [`finish`](PendingBatch::finish); polling again gives the same outcomes again.
impl<B: Send + 'static> Future for PendingBatch<B> {
    type Output = Vec<Result<usize>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<Result<usize>>> {
        if self.check_process().is_err() {
            return Poll::Ready(self.wait());
        }
        let outcomes = self.progress.poll(context.waker());
        outcomes.map_or(Poll::Pending, Poll::Ready)
    }
}

// Buffers are behind addresses of their own: no promise is lost by moving them.
impl<B> Unpin for PendingBatch<B> {}

impl<B> Drop for PendingBatch<B> {
    fn drop(&mut self) {
        for (transfer, _) in &self.groups {
            transfer.cancel();
        }
        self.settle();
        // Dropped here, but for those that must stay.
        drop(self.take_buffers());
    }
}

impl<B> fmt::Debug for PendingBatch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transfers: Vec<_> = self.groups.iter().map(|(transfer, _)| transfer).collect();
        write!(f, "PendingBatch({transfers:?})")
    }
}
