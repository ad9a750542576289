//! One transfer: the tasks of a layout, run on an engine by the caller and by workers of a pool.
//!
//! ```text
//! take a task and its window -> lane.start -> lane.poll -> complete -> ... -> settle: one outcome, told once
//! ```
//! Each task is handed out once, in rising order, in batches of one or more. The first error, a cancellation or a
//! deadline stops the handing out; tasks that were handed out finish. When the last worker has left, the transfer
//! settles: from then on nobody touches its memory, and its outcome can be asked for again and again.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use kvik_stats::{Direction, Span, Tasks};

use crate::corridor::{Completion, Engine, Lane, Task, Window};
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::fork;
use crate::layout::{Ended, Layout};
use crate::pool::{Job, ThreadPool};
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, lock, wait};
use crate::told::Told;

/// What a transfer is to do.
pub(crate) struct Order {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) direction: Direction,
    pub(crate) place: Place,
    pub(crate) deadline: Option<Instant>,
    /// Who hears of its end; `None` where nobody is told that it began.
    pub(crate) span: Option<Span>,
}

/// A transfer in progress or settled.
pub(crate) struct Transfer<L> {
    layout: L,
    engine: Arc<dyn Engine>,
    direction: Direction,
    place: Place,
    deadline: Option<Instant>,
    // What tells of the tasks, if anybody wants to hear of them.
    tasks: Option<Tasks>,
    generation: u64,
    // The number of the next batch to hand out; beyond the last one when there is nothing left to start, and from `HALTED`
    // on when tasks that were handed out must not start either.
    next: AtomicUsize,
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

impl<L: Layout> Transfer<L> {
    /// A transfer between the file and the memory of `layout`. An owned buffer is handed along and kept.
    ///
    /// The caller keeps the memory valid, and lets nobody else use it, until the transfer has settled.
    pub(crate) fn new(
        order: Order,
        layout: L,
        buffer: Option<Box<dyn Any + Send>>,
    ) -> Arc<Transfer<L>> {
        let tasks = order.span.as_ref().and_then(Span::tasks);
        let state = State {
            working: 0,
            settling: false,
            error: None,
            outcome: None,
            waker: None,
            span: order.span,
        };
        Arc::new(Transfer {
            next: AtomicUsize::new(0),
            layout,
            engine: order.engine,
            direction: order.direction,
            place: order.place,
            deadline: order.deadline,
            tasks,
            generation: fork::generation(),
            state: Mutex::new(state),
            settled: Condvar::new(),
            buffer: Mutex::new(buffer),
        })
    }

    /// What it moves.
    pub(crate) fn layout(&self) -> &L {
        &self.layout
    }

    /// Runs the transfer on the calling thread, if the engine works there, and up to `threads - 1` workers, and returns when
    /// it has settled.
    pub(crate) fn run(self: &Arc<Self>, pool: &ThreadPool, threads: usize) -> Result<usize> {
        if !self.engine.works_here() {
            self.submit(pool, threads);
            return self.wait();
        }
        let job = Arc::clone(self) as Arc<dyn Job>;
        let helpers = threads.min(self.layout.batches()).saturating_sub(1);
        let helpers = pool.offer(&job, helpers, threads - 1);
        self.turn(&|| false);
        // While tasks are left, somebody may still have to come for them: this thread may have found no lane.
        if self.is_handed_out() {
            pool.revoke(&job, helpers);
        }
        self.wait()
    }

    /// Lets up to `threads` workers run the transfer, and returns at once.
    pub(crate) fn submit(self: &Arc<Self>, pool: &ThreadPool, threads: usize) {
        let job = Arc::clone(self) as Arc<dyn Job>;
        let workers = threads.min(self.layout.batches()).max(1);
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
        self.engine.stop();
        self.enter();
        self.leave();
    }

    /// Waits until the transfer has settled, in the place of a worker that has not come yet: so that a worker of the same pool
    /// can wait, too.
    pub(crate) fn join(self: &Arc<Self>, pool: &ThreadPool) -> Result<usize> {
        self.check_process()?;
        if !self.is_settled() && self.engine.works_here() && pool.check_process().is_ok() {
            let job = Arc::clone(self) as Arc<dyn Job>;
            if pool.revoke(&job, 1) == 1 {
                job.turn(&|| false);
            }
        }
        self.wait()
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
        self.direction.into()
    }

    /// Hands out the next task with its window: each once, none after a stop. `hand` are the tasks of a batch that this
    /// worker has taken and not started.
    fn take(&self, hand: &mut Range<usize>) -> Option<(Task, Window<'_>)> {
        loop {
            let index = match hand.next() {
                Some(_) if self.next.load(Ordering::Relaxed) >= HALTED => return None,
                Some(index) => index,
                None => {
                    *hand = self.take_batch()?;
                    hand.next()?
                }
            };
            // SAFETY: batches do not overlap, each is handed out once, and only the worker that has it takes tasks out of it;
            // the transfer does not settle while this worker counts as working.
            if let Some(task) = unsafe { self.layout.task(index) } {
                return Some(task);
            }
        }
    }

    fn take_batch(&self) -> Option<Range<usize>> {
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            self.cut(|op| Error::new(ErrorKind::TimedOut, op, "the deadline of the call passed"));
        }
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        (number < self.layout.batches()).then(|| self.layout.batch(number))
    }

    /// Counts this thread as working, unless the transfer is past that.
    fn enter(&self) -> bool {
        let mut state = lock(&self.state);
        let enters = !state.settling;
        state.working += usize::from(enters);
        enters
    }

    /// Whether nothing is left to start.
    fn is_handed_out(&self) -> bool {
        self.next.load(Ordering::Acquire) >= self.layout.batches()
    }

    /// The end of work for a thread that entered and could not begin, for this reason. It has taken nothing along, so that
    /// others can do all of it; what they run into as well, the last one of them tells.
    fn withdraw(&self, error: Error) {
        tracing::debug!(%error, "a worker cannot take part in a transfer");
        let mut state = lock(&self.state);
        if state.working > 1 {
            state.working -= 1;
            return;
        }
        drop(state);
        if !self.is_handed_out() {
            self.fail(error);
        }
        self.leave();
    }

    /// The end of work for a thread that entered; the last one settles the transfer if no task is left.
    fn leave(&self) {
        let mut state = lock(&self.state);
        if state.settling {
            return;
        }
        state.working -= 1;
        if state.working > 0 || !self.is_handed_out() {
            return;
        }
        state.settling = true;
        let error = state.error.take();
        let span = state.span.take();
        drop(state);

        // SAFETY: nobody works on the transfer, nothing is left to hand out, and it has not settled.
        let mend = || unsafe { self.layout.mend(&*self.engine) };
        let error = error.or_else(|| self.guarded(mend).err());
        let moved = self.layout.moved();
        // Listeners hear of the end before the owner does, and without a lock held.
        if let Some(span) = span {
            span.finish(moved, error.is_none());
        }
        self.layout.settled(error.as_ref());
        let outcome = match error {
            Some(error) => Err(self.layout.explain(error.at(&self.place))),
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
    fn drive<'w>(
        &'w self,
        mut lane: Box<dyn Lane<'w> + 'w>,
        crowded: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let mut told = Told::new(self.tasks.as_ref(), self.direction);
        let mut done = Vec::new();
        let mut hand = 0..0;
        let mut flying = 0;
        let mut starting = true;
        let mut again = false;
        loop {
            while starting && lane.room() > 0 {
                let Some((task, window)) = self.take(&mut hand) else {
                    starting = false;
                    break;
                };
                told.start(lane.engine(), &task);
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
                told.end(lane.engine(), &completion);
                self.complete(completion)?;
            }
            if starting && hand.is_empty() && crowded() {
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
        if !self.layout.owns(&task, &window) {
            return Err(self.breach("gave back another window than the task's"));
        }
        // A window that is filled knows best how far; an engine's word counts for writes only.
        let moved = match self.direction {
            Direction::Read => window.filled(),
            Direction::Write if error.is_none() && moved as u64 != task.len() => {
                return Err(self.breach("ended a write early or late without an error"));
            }
            Direction::Write => moved.min(task.len() as usize),
        };
        match self.layout.ended(&task, moved, error) {
            Ended::GoOn => {}
            Ended::Stop => self.halt(),
            Ended::Failed(error) => self.fail(error),
        }
        Ok(())
    }

    fn breach(&self, what: &str) -> Error {
        Error::new(ErrorKind::Internal, self.op(), format!("the engine {what}"))
    }

    /// Runs a part of the work; a panic becomes an error. An engine that unwinds drops its lane, so nothing is in flight.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let why = format!("a worker panicked: {}", message(&*panic));
            Err(Error::new(ErrorKind::Internal, self.op(), why))
        })
    }

    /// The first error wins; whatever has not started does not start.
    fn fail(&self, error: Error) {
        self.halt();
        // Whatever it was that failed, a copy to a device or memory for a lane, it is this transfer that stops.
        let error = error.during(self.op());
        lock(&self.state).error.get_or_insert(error);
        // Only now: what ends by this must not be the first error.
        self.engine.stop();
    }

    /// Nothing more starts.
    fn halt(&self) {
        let next = self.next.swap(HALTED, Ordering::AcqRel);
        if next < self.layout.batches() {
            self.layout.given_up(next);
        }
    }

    /// Ends the handing out; if that leaves batches undone, that is the error `why`.
    fn cut(&self, why: impl FnOnce(Op) -> Error) {
        // Under the lock, so that no worker settles between the cut and its reason.
        let mut state = lock(&self.state);
        // Batches that were handed out are in flight, and finish: if none is left, there is nothing to cut.
        let left = |next| (next < self.layout.batches()).then_some(HALTED);
        if let Ok(next) = self
            .next
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, left)
        {
            self.layout.given_up(next);
            state.error.get_or_insert_with(|| why(self.op()));
        }
    }
}

impl<L: Layout> Job for Transfer<L> {
    fn turn(&self, crowded: &dyn Fn() -> bool) -> bool {
        if !self.enter() {
            return false;
        }
        let lane = match self.guarded(|| self.engine.lane()) {
            Ok(lane) => lane,
            Err(error) => {
                self.withdraw(error);
                return false;
            }
        };
        let again = self
            .guarded(|| self.drive(lane, crowded))
            .unwrap_or_else(|error| {
                // Which tasks it takes along is not known: nothing counts as moved.
                self.layout.lost();
                self.fail(error);
                false
            });
        self.leave();
        again
    }
}

impl<L: Layout> fmt::Debug for Transfer<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = self.layout.hull();
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

/// What a thread panicked with.
pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "without a message",
    }
}

// Far above any number of batches, and far below where adding one for each worker would wrap.
const HALTED: usize = usize::MAX / 2;
