//! The ring of one thread: its queues in memory shared with the kernel, and who may still write to what.
//!
//! A thread makes its ring at the first lane and keeps it for the next ones: a ring costs some tens of microseconds, one
//! descriptor and a few pages. A lane takes the ring from the thread and gives it back with nothing in flight.

use std::cell::Cell;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::time::Duration;

use io_uring::squeue::Flags;
use io_uring::{IoUring, Probe, opcode, types};
use kvik_stats::{Direction, names};
use nix::errno::Errno;

use crate::error::{Error, Op, Result};
use crate::fork;
use crate::os::{self, Resource};

/// A ring that this thread alone uses.
pub(super) struct Ring {
    ring: IoUring,
    generation: u64,
    // Requests in the queue that the kernel has not taken yet, and those that it has and has not answered.
    queued: usize,
    in_flight: usize,
    // The kernel accepts requests from one thread only.
    _not_send: PhantomData<*const ()>,
}

/// A read or write of `len` bytes between `offset` of a file and `memory`.
pub(super) struct Request<'a> {
    pub(super) file: BorrowedFd<'a>,
    pub(super) direction: Direction,
    pub(super) memory: NonNull<u8>,
    pub(super) len: u32,
    pub(super) offset: u64,
    /// Done by a thread of the kernel that may block: for requests that were answered with `EAGAIN`.
    pub(super) blocking: bool,
}

thread_local! {
    static IDLE: Cell<Option<Ring>> = const { Cell::new(None) };
}

impl Ring {
    /// The ring of this thread, made if there is none.
    ///
    /// # Errors
    /// The kernel gives none: `ENOSYS` or `EPERM` where it has no rings or forbids them, `ENOMEM` or `EMFILE` at limits (the
    /// second one as soon as few descriptors are left),
    /// `EOPNOTSUPP` where reads, writes or cancellation are missing.
    pub(super) fn of_this_thread() -> Result<Ring, Errno> {
        // While the thread ends there is no place for an idle ring any more, and a new one does.
        let idle = IDLE.try_with(Cell::take).ok().flatten();
        // A forked child has the parent's ring mapped, and must not use it. Dropping it unmaps the child's view and
        // closes the child's descriptor; the parent notices neither.
        match idle.filter(|ring| ring.generation == fork::generation()) {
            Some(ring) => Ok(ring),
            None => Ring::new(),
        }
    }

    /// Makes it the idle ring of this thread. One with requests that nobody here will see answered is left to itself:
    /// its memory stays, and its descriptor may be somebody else's by now.
    pub(super) fn give_back(self) {
        match self.unanswered() {
            0 => drop(IDLE.try_with(|idle| idle.set(Some(self)))),
            _ => std::mem::forget(self),
        }
    }

    fn new() -> Result<Ring, Errno> {
        let ring = build()?;
        if is_among_the_last(ring.as_raw_fd()) {
            return Err(Errno::EMFILE);
        }
        let mut probe = Probe::new();
        // IORING_REGISTER_PROBE is as old as the reads and writes themselves (Linux 5.6).
        ring.submitter()
            .register_probe(&mut probe)
            .map_err(|cause| errno_of(&cause))?;
        let needed = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::AsyncCancel::CODE,
        ];
        if needed.iter().any(|code| !probe.is_supported(*code)) {
            return Err(Errno::EOPNOTSUPP);
        }
        Ok(Ring {
            ring,
            generation: fork::generation(),
            queued: 0,
            in_flight: 0,
            _not_send: PhantomData,
        })
    }

    /// Its descriptor, which tells rings apart.
    #[cfg(test)]
    pub(super) fn number(&self) -> RawFd {
        self.ring.as_raw_fd()
    }

    /// How many requests are not answered.
    pub(super) fn unanswered(&self) -> usize {
        self.queued + self.in_flight
    }

    /// Queues a request, to be answered under the name `token`. At most [`DEPTH`] are unanswered at a time.
    ///
    /// # Safety
    /// 1. `memory` is valid for `len` bytes until the request is answered by [`next_answer`](Ring::next_answer): for
    ///    reads writable and used by nobody else, for writes initialised and written by nobody.
    /// 2. `file` is open until then.
    pub(super) unsafe fn push(&mut self, request: &Request<'_>, token: u32) {
        let fd = types::Fd(request.file.as_raw_fd());
        let Request {
            memory,
            len,
            offset,
            ..
        } = *request;
        let entry = match request.direction {
            Direction::Read => opcode::Read::new(fd, memory.as_ptr(), len)
                .offset(offset)
                .build(),
            Direction::Write => opcode::Write::new(fd, memory.as_ptr(), len)
                .offset(offset)
                .build(),
        };
        let flags = match request.blocking {
            true => Flags::ASYNC,
            false => Flags::empty(),
        };
        let entry = entry.flags(flags).user_data(u64::from(token));
        // SAFETY: the caller's promises are those that `push` asks for.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // The queue has room for `DEPTH`, and the caller asks for no more.
        debug_assert!(pushed.is_ok());
        self.queued += usize::from(pushed.is_ok());
    }

    /// Hands the queued requests to the kernel and waits until `answers` are there.
    ///
    /// # Errors
    /// The descriptor is no longer that of the ring. Nothing is in flight, and the queued requests never will be.
    pub(super) fn enter(&mut self, answers: usize) -> Result<(), Errno> {
        loop {
            match self.ring.submit_and_wait(answers) {
                Ok(taken) => {
                    self.queued -= taken.min(self.queued);
                    self.in_flight += taken;
                    if self.queued == 0 {
                        return Ok(());
                    }
                }
                Err(cause) => match errno_of(&cause) {
                    Errno::EINTR => names::IO_INTERRUPTED.increment(),
                    // The kernel has no memory for requests just now, or wants answers to be taken first.
                    Errno::EAGAIN | Errno::EBUSY => {
                        names::IO_AGAIN.increment();
                        if self.in_flight > 0 && !self.ring.completion().is_empty() {
                            return Ok(());
                        }
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    errno if self.in_flight == 0 => return Err(errno),
                    errno => give_up(errno),
                },
            }
        }
    }

    /// The next answer that is there: its token and the result of the request.
    pub(super) fn next_answer(&mut self) -> Option<(u32, i32)> {
        loop {
            let answer = self.ring.completion().next()?;
            self.in_flight -= 1;
            if let Ok(token) = u32::try_from(answer.user_data()) {
                return Some((token, answer.result()));
            }
        }
    }

    /// Waits until every request is answered, after asking the kernel to cancel those under `tokens`. In a forked child,
    /// whose requests are the parent's, it does nothing.
    pub(super) fn drain(&mut self, tokens: impl Iterator<Item = u32>) {
        if self.generation != fork::generation() {
            return;
        }
        for token in tokens {
            self.cancel(token);
        }
        while self.unanswered() > 0 && self.enter(1).is_ok() {
            while self.next_answer().is_some() {}
        }
    }

    fn cancel(&mut self, token: u32) {
        let entry = opcode::AsyncCancel::new(u64::from(token))
            .build()
            .user_data(CANCELLED);
        // SAFETY: a cancellation refers to no memory.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // One that finds no room is let be: the request is waited for anyway.
        self.queued += usize::from(pushed.is_ok());
    }
}

/// The flags that a kernel may lack, the best set first: answers are worked out when this thread asks for them, not by
/// interrupting it (Linux 6.1), or at its next system call (5.19).
fn build() -> Result<IoUring, Errno> {
    let entries = DEPTH as u32;
    let deferred = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries);
    let made = match deferred {
        Err(cause) if errno_of(&cause) == Errno::EINVAL => {
            let cooperative = IoUring::builder().setup_coop_taskrun().build(entries);
            match cooperative {
                Err(cause) if errno_of(&cause) == Errno::EINVAL => {
                    IoUring::builder().build(entries)
                }
                made => made,
            }
        }
        made => made,
    };
    made.map_err(|cause| errno_of(&cause))
}

/// Whether a descriptor lies in the last quarter of those that the process may have. Rings are kept, one for each thread, and
/// many threads must not leave the program without files. Descriptors are given out from the lowest on.
fn is_among_the_last(fd: RawFd) -> bool {
    let most = os::limit(Resource::OpenFiles)
        .ok()
        .and_then(|(soft, _)| soft);
    most.is_some_and(|most| fd as u64 >= most - most / 4)
}

fn errno_of(cause: &std::io::Error) -> Errno {
    cause.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// The end of the process: the kernel takes no calls for a ring that has requests, because something in this process
/// closed its descriptor. It may write to memory at any time from now on, and there is no way left to learn when.
fn give_up(errno: Errno) -> ! {
    let error = Error::os(Op::Read, errno);
    tracing::error!(%error, "the descriptor of an io_uring was closed by somebody else; its requests cannot be waited for");
    std::process::abort()
}

/// How many requests a lane has unanswered at most. 4 KiB random direct reads a second, against fio at its depth of 32, turn
/// by turn on a busy machine with two cores: 0.88 (0.65 to 0.97) at a depth of 32, 1.01 (0.61 to 1.33) at 64.
pub(super) const DEPTH: usize = 64;
// Beyond every token.
const CANCELLED: u64 = u64::MAX;

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
