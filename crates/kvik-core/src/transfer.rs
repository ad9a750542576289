//! One transfer: the tasks of a plan, run on an engine by the caller and by workers of a pool.
//!
//! ```text
//! take a task and its window -> lane.start -> lane.poll -> complete -> ... -> settle: one outcome, told once
//! ```
//! Each task is handed out once, in rising order. The first error, a cancellation or a deadline stops the handing out;
//! tasks that were handed out finish. When the last worker has left, the transfer settles: from then on nobody touches
//! its memory, and its outcome can be asked for again and again.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use kvik_stats::{Direction, Span};

use crate::corridor::{Completion, Engine, Plan, Task, Window};
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::fork;
use crate::pool::{Job, ThreadPool};
use crate::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, lock, wait};
use crate::target::Memory;

/// What a transfer is to do.
pub(crate) struct Order {
    pub(crate) plan: Plan,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) direction: Direction,
    pub(crate) place: Place,
    pub(crate) deadline: Option<Instant>,
    pub(crate) span: Span,
}

/// A transfer in progress or settled.
pub(crate) struct Transfer {
    plan: Plan,
    engine: Arc<dyn Engine>,
    direction: Direction,
    place: Place,
    deadline: Option<Instant>,
    memory: Memory,
    generation: u64,
    // The number of the next task to hand out; beyond the plan when there is nothing left to start.
    next: AtomicUsize,
    // The file offset up to which everything was moved, once all tasks have finished: the lowest at which one stopped.
    reached: AtomicU64,
    // The highest file offset that a task has filled up to.
    furthest: AtomicU64,
    state: Mutex<State>,
    settled: Condvar,
    // The owned buffer of a pending transfer: it lives here, behind a box, so that no move disturbs its memory. Only the
    // owner takes this lock, so that it can be taken in a forked child, too.
    buffer: Mutex<Option<Box<dyn Any + Send>>>,
}

struct State {
    working: usize,
    settling: bool,
    error: Option<Error>,
    outcome: Option<Result<usize>>,
    waker: Option<Waker>,
    span: Option<Span>,
}

impl Transfer {
    /// A transfer between the file and `memory`, which is as long as the plan. An owned buffer is handed along and kept.
    ///
    /// The caller keeps `memory` valid, and lets nobody else use it, until the transfer has settled.
    pub(crate) fn new(
        order: Order,
        memory: Memory,
        buffer: Option<Box<dyn Any + Send>>,
    ) -> Arc<Transfer> {
        debug_assert_eq!(
            memory.len() as u64,
            order.plan.range().end - order.plan.range().start
        );
        let state = State {
            working: 0,
            settling: false,
            error: None,
            outcome: None,
            waker: None,
            span: Some(order.span),
        };
        Arc::new(Transfer {
            next: AtomicUsize::new(0),
            reached: AtomicU64::new(order.plan.range().end),
            furthest: AtomicU64::new(order.plan.range().start),
            plan: order.plan,
            engine: order.engine,
            direction: order.direction,
            place: order.place,
            deadline: order.deadline,
            memory,
            generation: fork::generation(),
            state: Mutex::new(state),
            settled: Condvar::new(),
            buffer: Mutex::new(buffer),
        })
    }

    /// Runs the transfer on the calling thread and up to `threads - 1` workers, and returns when it has settled.
    pub(crate) fn run(self: &Arc<Self>, pool: &ThreadPool, threads: usize) -> Result<usize> {
        let job = Arc::clone(self) as Arc<dyn Job>;
        let helpers = threads.min(self.plan.len()).saturating_sub(1);
        let helpers = pool.offer(&job, helpers, threads - 1);
        self.turn(&|| false);
        pool.revoke(&job, helpers);
        self.wait()
    }

    /// Lets up to `threads` workers run the transfer, and returns at once.
    pub(crate) fn submit(self: &Arc<Self>, pool: &ThreadPool, threads: usize) {
        let job = Arc::clone(self) as Arc<dyn Job>;
        let workers = threads.min(self.plan.len()).max(1);
        if pool.offer(&job, workers, threads) == 0 {
            self.turn(&|| false);
        }
    }

    /// Stops handing out tasks and, if that leaves any undone, ends the transfer with `Cancelled`.
    pub(crate) fn cancel(&self) {
        if self.generation != fork::generation() {
            return; // Nobody is left who could be told.
        }
        self.cut(|op| Error::new(ErrorKind::Cancelled, op, "the transfer was cancelled"));
        self.enter();
        self.leave();
    }

    /// Waits until the transfer has settled.
    pub(crate) fn wait(&self) -> Result<usize> {
        self.check_process()?;
        let mut state = lock(&self.state);
        loop {
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            state = wait(&self.settled, state);
        }
    }

    /// Waits until the transfer has settled, for `limit` at most.
    pub(crate) fn wait_timeout(&self, limit: Duration) -> Option<Result<usize>> {
        if let Err(error) = self.check_process() {
            return Some(Err(error));
        }
        let end = Instant::now().checked_add(limit);
        let mut state = lock(&self.state);
        while state.outcome.is_none() {
            let left = end.map_or(limit, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return None;
            }
            state = match self.settled.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.outcome.clone()
    }

    /// The outcome, if it has settled; else `waker` is told when it has.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Result<usize>> {
        if let Err(error) = self.check_process() {
            return Some(Err(error));
        }
        // Wakers are the caller's code: none of it runs under the lock.
        let waker = waker.clone();
        let mut state = lock(&self.state);
        let outcome = state.outcome.clone();
        let unused = match outcome {
            Some(_) => Some(waker),
            None => state.waker.replace(waker),
        };
        drop(state);
        drop(unused);
        outcome
    }

    /// Whether it has settled.
    pub(crate) fn is_settled(&self) -> bool {
        self.check_process().is_err() || lock(&self.state).outcome.is_some()
    }

    /// Takes the owned buffer out of a settled transfer.
    pub(crate) fn take_buffer(&self) -> Option<Box<dyn Any + Send>> {
        lock(&self.buffer).take()
    }

    /// An error in a forked child: the workers of this transfer, and perhaps the owner of its lock, are not there.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.generation == fork::generation() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Forked,
            self.op(),
            "the transfer belongs to the parent process",
        )
        .at(&self.place))
    }

    fn op(&self) -> Op {
        match self.direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
        }
    }

    /// Hands out the next task with its window: each once, none after a stop.
    fn take(&self) -> Option<(Task, Window<'_>)> {
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            self.cut(|op| Error::new(ErrorKind::TimedOut, op, "the deadline of the call passed"));
        }
        let task = self.plan.task(self.next.fetch_add(1, Ordering::AcqRel))?;
        let window = self.window(&task);
        Some((task, window))
    }

    fn window(&self, task: &Task) -> Window<'_> {
        let at = (task.range.start - self.plan.range().start) as usize;
        let len = task.len() as usize;
        match self.direction {
            // SAFETY: the memory is valid until the transfer has settled (see `new`), which it does not while this
            // worker counts as working; the task lies in the plan, which is as long as the memory; and the tasks of a
            // plan, of which `take` hands out each once, do not overlap.
            Direction::Read => Window::Fill(unsafe { self.memory.fill(at, len) }),
            // SAFETY: as above; the source of a write is initialised, and nobody writes to it (see `new`).
            Direction::Write => Window::Drain(unsafe { self.memory.drain(at, len) }),
        }
    }

    /// Counts this thread as working, unless the transfer is past that.
    fn enter(&self) -> bool {
        let mut state = lock(&self.state);
        let enters = !state.settling;
        state.working += usize::from(enters);
        enters
    }

    /// The end of work for a thread that entered; the last one settles the transfer if no task is left.
    fn leave(&self) {
        let mut state = lock(&self.state);
        if state.settling {
            return;
        }
        state.working -= 1;
        if state.working > 0 || self.next.load(Ordering::Acquire) < self.plan.len() {
            return;
        }
        state.settling = true;
        let error = state.error.take();
        let span = state.span.take();
        drop(state);

        let error = error.or_else(|| self.guarded(|| self.mend()).err());
        let range = self.plan.range();
        let moved = self.reached.load(Ordering::Acquire) - range.start;
        // Listeners hear of the end before the owner does, and without a lock held.
        if let Some(span) = span {
            span.finish(moved, error.is_none());
        }
        let outcome = match error {
            Some(error) => Err(error.at(&self.place).within(range, moved)),
            None => Ok(moved as usize),
        };
        let mut state = lock(&self.state);
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        self.settled.notify_all();
        // The waker is the caller's code: what it panics with is not this worker's end.
        let _ = catch_unwind(AssertUnwindSafe(|| waker.map(Waker::wake)));
    }

    /// Works on tasks until none is left (`false`) or, after at least one, until `crowded` (`true`).
    fn drive(&self, crowded: &dyn Fn() -> bool) -> Result<bool> {
        let mut lane = self.engine.lane()?;
        let mut done = Vec::new();
        let mut flying = 0;
        let mut starting = true;
        let mut again = false;
        loop {
            while starting && lane.room() > 0 {
                let Some((task, window)) = self.take() else {
                    starting = false;
                    break;
                };
                lane.start(task, window);
                flying += 1;
            }
            if flying == 0 && !starting {
                return Ok(again);
            }
            lane.poll(&mut done);
            if done.is_empty() || done.len() > flying {
                return Err(self.breach("lost a task or made one up"));
            }
            flying -= done.len();
            for completion in done.drain(..) {
                self.complete(completion)?;
            }
            if starting && crowded() {
                (starting, again) = (false, true);
            }
        }
    }

    fn complete(&self, completion: Completion<'_>) -> Result<()> {
        let Completion {
            task,
            window,
            moved,
            error,
        } = completion;
        let at = task.range.start.checked_sub(self.plan.range().start);
        if !at.is_some_and(|at| self.memory.is_window(at, task.len(), &window)) {
            return Err(self.breach("gave back another window than the task's"));
        }
        // A window that is filled knows best how far; an engine's word counts for writes only.
        let moved = match window {
            Window::Fill(window) => window.filled(),
            Window::Drain(_) => moved,
        };
        let end = task.range.start + moved as u64;
        if moved > 0 {
            self.furthest.fetch_max(end, Ordering::AcqRel);
        }
        match error {
            Some(error) => self.fail(error, end),
            None if end == task.range.end => {}
            None if self.direction == Direction::Write => {
                return Err(self.breach("ended a write early or late without an error"));
            }
            // The data ended here: tasks further on would find nothing.
            None => self.stop_at(end),
        }
        Ok(())
    }

    fn breach(&self, what: &str) -> Error {
        Error::new(ErrorKind::Internal, self.op(), format!("the engine {what}"))
    }

    /// Reads on from the first gap if a later task found bytes: the file grew while it was being read.
    ///
    /// Runs when nobody else works on the transfer and nothing is left to hand out.
    fn mend(&self) -> Result<()> {
        let grew = || self.furthest.load(Ordering::Acquire) > self.reached.load(Ordering::Acquire);
        if self.direction == Direction::Write || !grew() {
            return Ok(());
        }
        let range = self.plan.range();
        let mut at = self.reached.load(Ordering::Acquire);
        let mut lane = self.engine.lane()?;
        let mut done = Vec::with_capacity(1);
        while at < range.end {
            let task = Task {
                index: 0,
                range: at..range.end.min(at + MEND_SIZE),
            };
            let window = self.window(&task);
            let asked = task.len();
            lane.start(task, window);
            lane.poll(&mut done);
            let Some(completion) = done.pop() else {
                return Err(self.breach("lost a task"));
            };
            let Window::Fill(window) = completion.window else {
                break;
            };
            at += window.filled() as u64;
            self.reached.store(at, Ordering::Release);
            match completion.error {
                Some(error) => return Err(error),
                None if (window.filled() as u64) < asked => break,
                None => {}
            }
        }
        Ok(())
    }

    /// Runs a part of the work; a panic becomes an error. An engine that unwinds drops its lane, so nothing is in flight.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let why = format!("a worker panicked: {}", message(&*panic));
            Err(Error::new(ErrorKind::Internal, self.op(), why))
        })
    }

    /// The first error wins; whatever has not started does not start.
    fn fail(&self, error: Error, end: u64) {
        self.stop_at(end);
        lock(&self.state).error.get_or_insert(error);
    }

    /// Ends the handing out; everything up to `end` is moved or being moved.
    fn stop_at(&self, end: u64) {
        self.cut_next();
        self.reached.fetch_min(end, Ordering::AcqRel);
    }

    /// Ends the handing out; if that leaves tasks undone, that is the error `why`.
    fn cut(&self, why: impl FnOnce(Op) -> Error) {
        // Under the lock, so that no worker settles between the cut and its reason.
        let mut state = lock(&self.state);
        if self.cut_next() {
            state.error.get_or_insert_with(|| why(self.op()));
        }
    }

    /// Returns whether tasks were left.
    fn cut_next(&self) -> bool {
        match self
            .plan
            .task(self.next.swap(self.plan.len(), Ordering::AcqRel))
        {
            Some(untaken) => {
                self.reached
                    .fetch_min(untaken.range.start, Ordering::AcqRel);
                true
            }
            None => false,
        }
    }
}

impl Job for Transfer {
    fn turn(&self, crowded: &dyn Fn() -> bool) -> bool {
        if !self.enter() {
            return false;
        }
        let again = self
            .guarded(|| self.drive(crowded))
            .unwrap_or_else(|error| {
                // Which tasks it takes along is not known: nothing counts as moved.
                self.fail(error, self.plan.range().start);
                false
            });
        self.leave();
        again
    }
}

impl fmt::Debug for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = self.plan.range();
        write!(
            f,
            "Transfer({} {} {}..{})",
            self.op(),
            self.place,
            range.start,
            range.end
        )
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "without a message",
    }
}

// Gaps are rare and small: one piece at a time keeps the arithmetic of `mend` simple.
const MEND_SIZE: u64 = 4 << 20;
