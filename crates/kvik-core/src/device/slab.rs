//! Pinned memory between files and devices: [`Slab`], lent from one budget of the process.
//!
//! Slabs that come back are kept, since pinning takes longer than reading them full. They are given back in two ways: on
//! request, [`free_pinned_memory`]; and whenever the last slab that is lent comes back, those that nobody has taken for
//! [`IDLE`]. Unpinning waits for all that the program has queued in the context, which may be waiting for the very thread
//! that reads or writes; so nobody unpins on the way but a worker of the pool.
//!
//! Slabs of transfers that wait in the program's own streams ([`Slab::take_for_stream`]) are counted apart: they come back when
//! the program lets them, so nobody waits for those. While there are any, nothing is unpinned on the way, not even by a worker:
//! whoever queues work meanwhile would wait for it, and with it for all streams (seen with driver 580). They were pinned in the
//! context of the stream: with another one they would die while the stream waits, and a copy from memory that is not pinned is
//! made when it is queued, of what is there then.

use std::fmt;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kvik_stats::names;

use super::context::Context;
use super::driver::{driver, started};
use super::pinned::Pinned;
use crate::budget::footprint;
use crate::error::{Error, ErrorKind, Op, Result};
use crate::pool::{Job, ThreadPool, shared_value};
use crate::sync::{Condvar, Mutex, lock, wait};

/// Pinned memory, starting at a page, which holds whatever its last user left. It goes back to the budget on drop; whoever
/// has queued a copy from it or to it keeps it until the copy is done.
pub(crate) struct Slab {
    // None while it is being dropped.
    block: Option<Pinned>,
    len: usize,
    // Where it is used, which says whose first one it is.
    context: Context,
    lent: Lent,
}

/// To whom a slab is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lent {
    /// A thread that is at work, and gives it back by itself.
    ToThread,
    /// A transfer that a stream of the program's gets to, some time.
    ToStream,
}

impl Slab {
    /// `len` bytes for work in `context`, which the caller has entered, when not more than `limit` are lent with them; at
    /// once if none are lent there.
    ///
    /// # Errors
    /// `OutOfMemory` or `Device` if no more memory can be pinned.
    pub(crate) fn take(context: Context, len: usize, limit: u64) -> Result<Slab> {
        driver()?;
        let loan = budget().wait(context, len, limit);
        Slab::lend(context, len, Lent::ToThread, loan)
    }

    /// The same, or `None` instead of waiting.
    pub(crate) fn try_take(context: Context, len: usize, limit: u64) -> Result<Option<Slab>> {
        driver()?;
        let loan = budget().take(context, len, limit);
        loan.map(|loan| Slab::lend(context, len, Lent::ToThread, loan))
            .transpose()
    }

    /// Up to `wanted` slabs of `len` bytes for a transfer in the order of a stream, whose context the caller has entered: fewer,
    /// or none, when more than `limit` bytes would be lent to such transfers, of which each one leaves half of what is left to
    /// others. It waits for nobody.
    ///
    /// # Errors
    /// `OutOfMemory` or `Device` if not even one can be pinned.
    pub(crate) fn take_for_stream(
        context: Context,
        len: usize,
        wanted: usize,
        limit: u64,
    ) -> Result<Vec<Slab>> {
        driver()?;
        let share = budget().share_for_stream(len, limit);
        let mut slabs = Vec::new();
        while slabs.len() < wanted.min(share) {
            let Some(loan) = budget().take_for_stream(context, len, limit) else {
                break;
            };
            match Slab::lend(context, len, Lent::ToStream, loan) {
                Ok(slab) => slabs.push(slab),
                Err(error) if slabs.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(slabs)
    }

    /// One slab for such a transfer, however many are lent.
    ///
    /// # Errors
    /// As for [`take_for_stream`](Slab::take_for_stream).
    pub(crate) fn take_beyond(context: Context, len: usize) -> Result<Slab> {
        driver()?;
        let loan = budget().take_for_stream(context, len, u64::MAX);
        let loan = loan.ok_or_else(|| {
            let why = "more pinned memory would be lent than can be counted";
            Error::new(ErrorKind::OutOfMemory, Op::Allocate, why)
        })?;
        Slab::lend(context, len, Lent::ToStream, loan)
    }

    /// Gives it up, so that it is nobody's memory any more and does not count as lent: what a device that failed may still
    /// be at.
    pub(crate) fn abandon(mut self) {
        if let Some(block) = self.block.take()
            && started().is_some()
        {
            budget().forgo(self.context, block.len(), self.lent);
            mem::forget(block);
        }
    }

    /// Its first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.block
            .as_ref()
            .map_or(NonNull::dangling(), Pinned::start)
    }

    /// Its size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn lend(context: Context, len: usize, lent: Lent, loan: Loan) -> Result<Slab> {
        let kept = match loan {
            Loan::Kept(block) if block.is_pinned() => Ok(block),
            // It died with the context that it was pinned in, and makes room for one of the same size.
            Loan::Kept(block) => Err(block.len()),
            Loan::New(displaced) => {
                let_go(displaced);
                Err(len.max(1))
            }
        };
        let block = match kept {
            Ok(block) => block,
            Err(len) => {
                Pinned::new(len, context).inspect_err(|_| budget().forgo(context, len, lent))?
            }
        };
        Ok(Slab {
            block: Some(block),
            len,
            context,
            lent,
        })
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // The budget is the parent's; a child has nothing to give back.
        if let Some(block) = self.block.take()
            && started().is_some()
        {
            let_go(budget().put(self.context, block, self.lent, Instant::now()));
        }
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slab({} bytes)", self.len)
    }
}

/// The pinned memory between files and devices that the process has, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinnedMemory {
    /// In use by transfers.
    pub lent: u64,
    /// Kept for the next ones.
    pub kept: u64,
}

/// How much pinned memory the process has for transfers. It does not load the driver.
#[must_use]
pub fn pinned_memory() -> PinnedMemory {
    match started() {
        Some(_) => budget().bytes(),
        None => PinnedMemory::default(),
    }
}

/// Gives pinned memory that is not in use by transfers to the system; returns how many bytes that were.
///
/// The driver lets the caller wait until the device has done what is queued.
pub fn free_pinned_memory() -> u64 {
    match started() {
        Some(_) => budget().free(),
        None => 0,
    }
}

/// Has a worker of the pool unpin these blocks, some time.
fn let_go(blocks: Vec<Pinned>) {
    if blocks.is_empty() {
        return;
    }
    lock(&budget().state).leaving.extend(blocks);
    if WAITING.load(Ordering::Acquire) == 0 && !have_unpinned() {
        budget().unpin(|| true);
    }
}

/// Asks a worker of the pool to unpin what is to be unpinned; `false` if there is none.
fn have_unpinned() -> bool {
    let job: Arc<dyn Job> = Arc::new(Unpinning);
    ThreadPool::global().offer(&job, 1, 1) > 0
}

/// As long as one of these is there, nothing is unpinned on the way: a transfer waits in a stream.
pub(crate) struct StayPinned(());

impl StayPinned {
    pub(crate) fn new() -> StayPinned {
        WAITING.fetch_add(1, Ordering::AcqRel);
        StayPinned(())
    }
}

impl Drop for StayPinned {
    fn drop(&mut self) {
        let was_last = WAITING.fetch_sub(1, Ordering::AcqRel) == 1;
        if was_last && started().is_some() && !lock(&budget().state).leaving.is_empty() {
            // Without a worker they stay until somebody else gives some back.
            have_unpinned();
        }
    }
}

static WAITING: AtomicUsize = AtomicUsize::new(0);

struct Unpinning;

impl Job for Unpinning {
    fn turn(&self, _: &dyn Fn() -> bool) -> bool {
        // What began to wait in a stream meanwhile has it go on later.
        budget().unpin(|| WAITING.load(Ordering::Acquire) == 0);
        false
    }
}

/// Keeps track of blocks, lent and kept. Pinning and unpinning are left to the caller, outside the lock.
#[derive(Default)]
struct Budget {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    // Blocks that came back, the longest ago first, and when they did.
    kept: Vec<(Pinned, Instant)>,
    kept_bytes: u64,
    // Blocks that are to be unpinned, and how many threads do that.
    leaving: Vec<Pinned>,
    unpinning: usize,
    lent_bytes: u64,
    // To transfers that wait in streams.
    in_streams: u64,
    // How many blocks are lent to threads for work in each context, where any are.
    lent_in: Vec<(Context, usize)>,
}

/// What a wish comes to.
enum Loan {
    /// A block that was lent before; at least as long as wished for, and at most twice.
    Kept(Pinned),
    /// A new one may be pinned, and counts as lent. These are to be unpinned, to make room.
    New(Vec<Pinned>),
}

impl Budget {
    fn take(&self, context: Context, len: usize, limit: u64) -> Option<Loan> {
        lock(&self.state).take(context, len, limit)
    }

    fn take_for_stream(&self, context: Context, len: usize, limit: u64) -> Option<Loan> {
        lock(&self.state).take_for_stream(context, len, limit)
    }

    /// How many slabs of this size a transfer may take, so that something is left for others.
    fn share_for_stream(&self, len: usize, limit: u64) -> usize {
        let left = limit.saturating_sub(lock(&self.state).in_streams);
        usize::try_from(left / 2 / footprint(len.max(1)))
            .unwrap_or(usize::MAX)
            .max(1)
    }

    fn wait(&self, context: Context, len: usize, limit: u64) -> Loan {
        let mut state = lock(&self.state);
        loop {
            match state.take(context, len, limit) {
                Some(loan) => return loan,
                None => state = wait(&self.returned, state),
            }
        }
    }

    /// Takes a block back and keeps it; returns those that are to be unpinned.
    #[must_use]
    fn put(&self, context: Context, block: Pinned, lent: Lent, now: Instant) -> Vec<Pinned> {
        let mut state = lock(&self.state);
        let len = footprint(block.len());
        state.came_back(context, len, lent);
        state.kept_bytes += len;
        state.kept.push((block, now));
        let idle = match state.lent_bytes + state.in_streams {
            0 => state.idle(now),
            _ => Vec::new(),
        };
        drop(state);
        self.returned.notify_all();
        idle
    }

    /// Counts `len` bytes as not lent after all.
    fn forgo(&self, context: Context, len: usize, lent: Lent) {
        lock(&self.state).came_back(context, footprint(len.max(1)), lent);
        self.returned.notify_all();
    }

    fn free(&self) -> u64 {
        let mut state = lock(&self.state);
        let kept = mem::take(&mut state.kept);
        let freed = mem::take(&mut state.kept_bytes);
        drop(state);
        drop(kept);
        self.unpin(|| true);
        // A worker may just be at the last one.
        let mut state = lock(&self.state);
        while state.unpinning > 0 {
            state = wait(&self.returned, state);
        }
        freed
    }

    /// Unpins what is to be unpinned and nobody is at, for as long as it `goes_on`.
    fn unpin(&self, goes_on: impl Fn() -> bool) {
        while goes_on() {
            let mut state = lock(&self.state);
            let Some(block) = state.leaving.pop() else {
                return;
            };
            state.unpinning += 1;
            drop(state);
            drop(block);
            lock(&self.state).unpinning -= 1;
            self.returned.notify_all();
        }
    }

    fn bytes(&self) -> PinnedMemory {
        let state = lock(&self.state);
        PinnedMemory {
            lent: state.lent_bytes + state.in_streams,
            kept: state.kept_bytes,
        }
    }
}

impl State {
    fn take(&mut self, context: Context, len: usize, limit: u64) -> Option<Loan> {
        let lent = self.lent_bytes;
        // The first one in a context is lent in any case: those of the others come back when their devices let them, which
        // may be held up for as long as the program likes.
        let is_first = !self.lent_in.iter().any(|held| held.0 == context);
        let may_lend = |bytes: u64| {
            let after = lent.checked_add(bytes)?;
            (after <= limit || is_first).then_some(after)
        };
        let fits = |block: &Pinned| suits(block, len) && may_lend(footprint(block.len())).is_some();
        let found = self.kept.iter().rposition(|(block, _)| fits(block));
        let wanted = footprint(found.map_or(len.max(1), |at| self.kept[at].0.len()));
        let after = may_lend(wanted)?;
        self.lent_bytes = after;
        names::PINNED_IN_USE.add(wanted);
        match self.lent_in.iter_mut().find(|held| held.0 == context) {
            Some(held) => held.1 += 1,
            None => self.lent_in.push((context, 1)),
        }
        if let Some(at) = found {
            self.kept_bytes -= wanted;
            return Some(Loan::Kept(self.kept.remove(at).0));
        }
        // Blocks of other sizes make room, the longest unused first.
        let mut displaced = Vec::new();
        while after.saturating_add(self.kept_bytes) > limit && !self.kept.is_empty() {
            displaced.push(self.drop_oldest());
        }
        Some(Loan::New(displaced))
    }

    /// Blocks of other sizes and contexts are left where they are.
    fn take_for_stream(&mut self, context: Context, len: usize, limit: u64) -> Option<Loan> {
        let in_streams = self.in_streams;
        let may_lend = |bytes: u64| {
            let after = in_streams.checked_add(bytes)?;
            (after <= limit).then_some(after)
        };
        let fits = |block: &Pinned| {
            block.context() == context
                && suits(block, len)
                && may_lend(footprint(block.len())).is_some()
        };
        let found = self.kept.iter().rposition(|(block, _)| fits(block));
        let wanted = footprint(found.map_or(len.max(1), |at| self.kept[at].0.len()));
        self.in_streams = may_lend(wanted)?;
        names::PINNED_IN_USE.add(wanted);
        Some(match found {
            Some(at) => {
                self.kept_bytes -= wanted;
                Loan::Kept(self.kept.remove(at).0)
            }
            None => Loan::New(Vec::new()),
        })
    }

    /// Counts a block of `len` bytes as not lent any more.
    fn came_back(&mut self, context: Context, len: u64, lent: Lent) {
        names::PINNED_IN_USE.subtract(len);
        if lent == Lent::ToStream {
            self.in_streams -= len;
            return;
        }
        self.lent_bytes -= len;
        self.lent_in.retain_mut(|held| {
            held.1 -= usize::from(held.0 == context);
            held.1 > 0
        });
    }

    /// Those that nobody has taken for long.
    fn idle(&mut self, now: Instant) -> Vec<Pinned> {
        let is_idle = |since: Instant| now.saturating_duration_since(since) >= IDLE;
        let count = self
            .kept
            .iter()
            .take_while(|(_, since)| is_idle(*since))
            .count();
        (0..count).map(|_| self.drop_oldest()).collect()
    }

    fn drop_oldest(&mut self) -> Pinned {
        let (block, _) = self.kept.remove(0);
        self.kept_bytes -= footprint(block.len());
        block
    }
}

/// Whether a block serves whoever asks for `len` bytes.
fn suits(block: &Pinned, len: usize) -> bool {
    block.len() >= len && block.len() / 2 <= len
}

// Pinning 4 MiB takes about 0.4 ms, so that a program which comes back within this time pays nothing, and one which pins it
// anew each time pays nothing that it could notice.
const IDLE: Duration = Duration::from_secs(30);

static PROCESS: AtomicPtr<Budget> = AtomicPtr::new(ptr::null_mut());

fn budget() -> &'static Budget {
    shared_value(&PROCESS, Budget::default)
}

#[cfg(test)]
#[path = "slab_tests.rs"]
mod tests;
