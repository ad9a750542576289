//! Blocks of memory that are lent, come back and are lent again, within a limit: [`Budget`]; and the one budget of the
//! process for scratch memory: [`Scratch`].

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::AtomicPtr;

use kvik_config::ByteSize;
use kvik_stats::names;

use crate::fork;
use crate::os;
use crate::pages::Pages;
use crate::pool::shared_value;
use crate::sync::{Condvar, Mutex, lock, wait};

/// Keeps track of blocks, lent and kept. The limit is the asker's affair: it is told with each wish.
#[derive(Default)]
pub(crate) struct Budget {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    // Blocks that came back, the longest ago first.
    kept: Vec<Pages>,
    kept_bytes: u64,
    lent_bytes: u64,
}

/// What a wish for memory comes to.
pub(crate) enum Loan {
    /// A block that was lent before; at least as long as wished for, and at most twice.
    Kept(Pages),
    /// So many bytes may be taken from the system, and count as lent.
    New(usize),
}

impl Budget {
    /// Lends `len` bytes if not more than `limit` are out then; blocks that are kept make room for them.
    pub(crate) fn take(&self, len: usize, limit: u64) -> Option<Loan> {
        lock(&self.state).take(len, limit)
    }

    /// The same, when enough has come back.
    pub(crate) fn wait(&self, len: usize, limit: u64) -> Loan {
        let mut state = lock(&self.state);
        loop {
            match state.take(len, limit) {
                Some(loan) => return loan,
                None => state = wait(&self.returned, state),
            }
        }
    }

    /// Takes a block back and keeps it.
    pub(crate) fn put(&self, pages: Pages) {
        let mut state = lock(&self.state);
        let len = footprint(pages.len());
        state.lent_bytes -= len;
        state.kept_bytes += len;
        state.kept.push(pages);
        drop(state);
        self.returned.notify_all();
    }

    /// Counts `len` bytes as not lent after all.
    pub(crate) fn forgo(&self, len: usize) {
        lock(&self.state).lent_bytes -= footprint(len);
        self.returned.notify_all();
    }

    /// Gives the blocks that are kept to the system; returns how many bytes that were.
    pub(crate) fn free(&self) -> u64 {
        let mut state = lock(&self.state);
        let freed = state.kept_bytes;
        state.kept_bytes = 0;
        let kept = std::mem::take(&mut state.kept);
        // Unmapping takes its time, and others may go on meanwhile.
        drop(state);
        drop(kept);
        freed
    }

    /// Bytes lent and bytes kept.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.lent_bytes, state.kept_bytes)
    }
}

impl State {
    fn take(&mut self, len: usize, limit: u64) -> Option<Loan> {
        // The one that came back last is the likeliest to be in a cache.
        let fits = |pages: &Pages| pages.len() >= len && pages.len() / 2 <= len;
        if let Some(at) = self.kept.iter().rposition(fits) {
            let pages = self.kept.remove(at);
            self.kept_bytes -= footprint(pages.len());
            self.lent_bytes += footprint(pages.len());
            return Some(Loan::Kept(pages));
        }
        let wanted = footprint(len);
        let after = self.lent_bytes.checked_add(wanted)?;
        if after > limit {
            return None;
        }
        let too_many = |state: &State| after + state.kept_bytes > limit;
        while too_many(self) && !self.kept.is_empty() {
            self.kept_bytes -= footprint(self.kept.remove(0).len());
        }
        self.lent_bytes = after;
        Some(Loan::New(len))
    }
}

/// What `len` bytes take: whole pages. More than any limit, if that cannot be counted.
pub(crate) fn footprint(len: usize) -> u64 {
    (len as u64)
        .checked_next_multiple_of(os::page_size())
        .unwrap_or(u64::MAX)
}

/// Memory between a file and its target, for an engine that needs a stop on the way: starts at a page, holds whatever its
/// last user left, and goes back to the process's budget on drop.
pub struct Scratch {
    pages: Option<Pages>,
    len: usize,
    generation: u64,
}

impl Scratch {
    /// `len` bytes, or as many as `bounce_buffer_size`, the setting, allows for one block if that is less.
    ///
    /// All blocks of the process together are at most 16 times that setting; `None` if that much is in use, or if the system
    /// has no more. Then the bytes take the way without a stop: nobody waits for scratch memory, so nobody can wait for
    /// ever, and nothing fails for want of it.
    #[must_use]
    pub fn take(len: usize, bounce_buffer_size: ByteSize) -> Option<Scratch> {
        let largest = usize::try_from(bounce_buffer_size.bytes()).unwrap_or(usize::MAX);
        let limit = bounce_buffer_size.bytes().saturating_mul(BLOCKS);
        let len = len.min(largest).max(1);
        let pages = match budget().take(len, limit.max(footprint(len))) {
            None => None,
            Some(Loan::Kept(pages)) => Some(pages),
            Some(Loan::New(len)) => Pages::new(len).inspect_err(|_| budget().forgo(len)).ok(),
        };
        if pages.is_none() {
            names::SCRATCH_USED_UP.increment();
        }
        Some(Scratch {
            pages: Some(pages?),
            len,
            generation: fork::generation(),
        })
    }
}

impl Deref for Scratch {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.pages
            .as_deref()
            .map_or(&[], |pages| &pages[..self.len])
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.pages
            .as_deref_mut()
            .map_or(&mut [], |pages| &mut pages[..self.len])
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The budget of a forked child has never heard of the blocks of its parent.
        if let Some(pages) = self.pages.take()
            && self.generation == fork::generation()
        {
            budget().put(pages);
        }
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scratch({} bytes)", self.len())
    }
}

/// The scratch memory of the process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScratchMemory {
    /// In use by transfers.
    pub lent: u64,
    /// Kept for the next ones.
    pub kept: u64,
}

/// How much scratch memory the process has: blocks between files and targets that cannot be filled in place, or not as fast.
/// All of it together is at most 16 times the largest `bounce_buffer_size` in use.
#[must_use]
pub fn scratch_memory() -> ScratchMemory {
    let (lent, kept) = budget().bytes();
    ScratchMemory { lent, kept }
}

/// Gives scratch memory that is not in use to the system; returns how many bytes that were. The next transfer that needs some
/// takes it from the system again.
///
/// # Example: after a phase of much reading
/// ```
/// let before = kvik_core::scratch_memory();
/// assert!(kvik_core::free_scratch_memory() >= before.kept);
/// assert_eq!(kvik_core::scratch_memory().kept, 0);
/// ```
pub fn free_scratch_memory() -> u64 {
    budget().free()
}

static PROCESS: AtomicPtr<Budget> = AtomicPtr::new(ptr::null_mut());

fn budget() -> &'static Budget {
    shared_value(&PROCESS, Budget::default)
}

/// Called in a forked child, before anything else runs there: only stores to atomics are allowed. Somebody may have held
/// the budget's lock at the fork, so the child begins with a budget of its own.
pub(crate) fn forget_shared() {
    PROCESS.store(ptr::null_mut(), std::sync::atomic::Ordering::Release);
}

// One for each worker of the largest transfer that settings make by themselves: num_threads is at most 16 unless somebody
// says more.
const BLOCKS: u64 = 16;

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
