//! One transfer in the order of a stream: what is to be done next, by whom, and what came of it.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kvik_stats::{Direction, Span};

use super::cut::Cut;
use super::slabs::Slabs;
use crate::corridor::{Completion, FillWindow, Task, Window};
use crate::device::{CallerStream, StayPinned, Words};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::fork;
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::transfer::message;

/// What a flight is to do.
pub(super) struct Order {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) direction: Direction,
    pub(super) place: Place,
    /// How many threads may work on it at a time.
    pub(super) threads: usize,
    pub(super) stream: CallerStream,
    pub(super) span: Span,
}

/// A transfer that a stream has been told of.
///
/// The stream counts what it has done in one word, the threads what they have done in the other:
/// ```text
///         stream                          threads
/// read:   count 1                         wait for 1, then read pieces into slabs that are free
///         piece i: wait for i+1, copy,    count the pieces that are in their slabs, from the first one on
///                  count i+2
/// write:  piece i: wait until its slab    wait for i+1, then write piece i to the file
///                  is free, copy,         count the pieces that are in the file, from the first one on
///                  count i+1
///         wait for all pieces, count
/// ```
pub(super) struct Flight {
    cut: Cut,
    engine: Arc<dyn Engine>,
    direction: Direction,
    place: Place,
    threads: usize,
    stream: CallerStream,
    generation: u64,
    // The count of slabs.
    slabs: usize,
    progress: Mutex<Progress>,
    changed: Condvar,
}

struct Progress {
    stage: Stage,
    // None once it is over.
    slabs: Option<Arc<Slabs>>,
    // Whether a slab holds nothing but zeros.
    clean: Vec<bool>,
    // None once it is over.
    words: Option<Words>,
    // What the stream counts last; none while the driver has refused to queue that.
    last: Option<u32>,
    // How many pieces it moves until then: all, unless the driver has refused to queue some.
    queued: usize,
    // The next piece that somebody is to take, and how many pieces are being worked on.
    next: usize,
    working: usize,
    // How many pieces from the first one on are done with, and which of those behind.
    done: usize,
    ahead: VecDeque<bool>,
    stop: Option<Stop>,
    span: Option<Span>,
    // No slab is unpinned as long as the stream waits.
    stay: Option<StayPinned>,
}

enum Stage {
    Flying,
    // Somebody is about to tell its outcome.
    Landing,
    Over(Result<usize>),
}

/// Where a transfer stopped: in which piece, after how many of its bytes, and why unless that is the end of the data.
struct Stop {
    index: usize,
    moved: u64,
    error: Option<Error>,
}

/// What a flight has to do now.
pub(super) enum Next {
    Work(Work),
    /// The stream is past it.
    Over,
    Nothing,
}

/// A piece, taken by one thread.
pub(super) struct Work {
    index: usize,
    slot: usize,
    start: NonNull<u8>,
    len: usize,
    offset: u64,
    // Whether its bytes are moved. Behind where the transfer has stopped, a slab is only made to hold nobody's bytes.
    moves: bool,
    clean: bool,
}

impl Flight {
    pub(super) fn new(order: Order, cut: Cut, slabs: Arc<Slabs>, words: Words) -> Flight {
        let last = cut.pieces() as u32 + 1;
        Flight {
            cut,
            engine: order.engine,
            direction: order.direction,
            place: order.place,
            threads: order.threads,
            stream: order.stream,
            generation: fork::generation(),
            slabs: slabs.count(),
            changed: Condvar::new(),
            progress: Mutex::new(Progress {
                stage: Stage::Flying,
                clean: vec![false; slabs.count()],
                slabs: Some(slabs),
                words: Some(words),
                last: Some(last),
                queued: cut.pieces(),
                next: 0,
                working: 0,
                done: 0,
                ahead: VecDeque::new(),
                stop: None,
                span: Some(order.span),
                stay: Some(StayPinned::new()),
            }),
        }
    }

    pub(super) fn op(&self) -> Op {
        self.direction.into()
    }

    /// How many threads have use for it.
    pub(super) fn threads(&self) -> usize {
        self.threads.min(self.slabs).min(self.cut.pieces())
    }

    /// What there is to do, which the caller does then.
    pub(super) fn next(&self) -> Next {
        let mut progress = lock(&self.progress);
        let progress = &mut *progress;
        let (Some(words), Some(slabs)) = (&progress.words, &progress.slabs) else {
            return Next::Nothing;
        };
        let reached = words.reached();
        let all_done = progress.done >= progress.queued && progress.working == 0;
        if progress.last == Some(reached) && all_done {
            return Next::Over;
        }
        let index = progress.next;
        let room = progress.working < self.threads && index < progress.queued;
        if !room || reached < self.needed(index) {
            return Next::Nothing;
        }
        let (bytes, slot) = (self.cut.piece(index), index % self.slabs);
        progress.next += 1;
        progress.working += 1;
        let moves = progress.stop.as_ref().is_none_or(|stop| index < stop.index);
        let place = self.cut.place(index);
        // SAFETY: a piece lies in its slab.
        let start = unsafe { slabs.start(slot).add(place) };
        Next::Work(Work {
            index,
            slot,
            start,
            len: (bytes.end - bytes.start) as usize,
            offset: self.cut.range().start + bytes.start,
            moves,
            clean: progress.clean[slot],
        })
    }

    /// How far the stream must have come before a piece is taken.
    fn needed(&self, index: usize) -> u32 {
        let needed = match self.direction {
            // It has begun, and the piece that was in the slab before is on the device.
            Direction::Read if index < self.slabs => 1,
            Direction::Read => return self.counted(index - self.slabs),
            Direction::Write => index + 1,
        };
        needed as u32
    }

    /// How far the processor must have come before the stream moves a piece.
    pub(super) fn allowed(&self, index: usize) -> u32 {
        let needed = match self.direction {
            Direction::Read => index + 1,
            Direction::Write => (index + 1).saturating_sub(self.slabs),
        };
        needed as u32
    }

    /// What the stream counts up to once it has moved a piece.
    pub(super) fn counted(&self, index: usize) -> u32 {
        let before = usize::from(self.direction == Direction::Read);
        (index + 1 + before) as u32
    }
}

impl Flight {
    /// Moves the bytes of a piece.
    pub(super) fn run(&self, work: Work) {
        let (moved, error) = match work.moves {
            true => self.transfer(&work),
            false => (0, None),
        };
        let rest = work.len - moved;
        if self.direction == Direction::Read && rest > 0 && !work.clean {
            // The stream copies whole pieces: it must not find there what the slab held before.
            // SAFETY: the rest lies in the piece's place in its slab.
            let start = unsafe { work.start.add(moved) };
            // SAFETY: the slab is the flight's and the place this thread's, and the stream does not read it yet.
            unsafe { start.write_bytes(0, rest) };
        }
        self.finish(&work, moved, error);
    }

    fn transfer(&self, work: &Work) -> (usize, Option<Error>) {
        let moved = catch_unwind(AssertUnwindSafe(|| self.by_engine(work)));
        let moved = moved.unwrap_or_else(|panic| {
            let why = format!("a worker panicked: {}", message(&*panic));
            Err(Error::new(ErrorKind::Internal, self.op(), why))
        });
        match moved {
            Ok((moved, error)) => (moved, error),
            Err(error) => (0, Some(error)),
        }
    }

    fn by_engine(&self, work: &Work) -> Result<(usize, Option<Error>)> {
        let (start, len) = (work.start, work.len);
        let mut lane = self.engine.lane()?;
        let window = match self.direction {
            Direction::Read => {
                // SAFETY: the place is this thread's until the piece is done, which is after the lane has handed back the
                // window; and the flight keeps its slabs until then.
                let bytes = unsafe { slice::from_raw_parts_mut(start.cast().as_ptr(), len) };
                Window::Fill(FillWindow::of(bytes))
            }
            Direction::Write => {
                // SAFETY: as above; the stream has filled the place, and does nothing with it before the piece is done.
                Window::Drain(unsafe { slice::from_raw_parts(start.as_ptr(), len) })
            }
        };
        let task = Task {
            index: work.index,
            range: work.offset..work.offset + len as u64,
        };
        lane.start(task, window);
        let mut done = Vec::with_capacity(1);
        while done.is_empty() && lane.in_flight() > 0 {
            lane.poll(&mut done);
        }
        let breach = |what| Error::new(ErrorKind::Internal, self.op(), what);
        let Some(Completion {
            window,
            moved,
            error,
            ..
        }) = done.pop()
        else {
            return Err(breach("the engine lost a task"));
        };
        match self.direction {
            Direction::Read => Ok((window.filled().min(len), error)),
            Direction::Write if error.is_none() && moved != len => Err(breach(
                "the engine ended a write early or late without an error",
            )),
            Direction::Write => Ok((moved.min(len), error)),
        }
    }

    fn finish(&self, work: &Work, moved: usize, error: Option<Error>) {
        let mut progress = lock(&self.progress);
        progress.working -= 1;
        if work.moves && (moved < work.len || error.is_some()) {
            progress.stop_at(work.index, moved as u64, error);
        }
        progress.clean[work.slot] = self.direction == Direction::Read && !work.moves;
        let behind = work.index - progress.done;
        if progress.ahead.len() <= behind {
            progress.ahead.resize(behind + 1, false);
        }
        progress.ahead[behind] = true;
        while progress.ahead.front() == Some(&true) {
            progress.ahead.pop_front();
            progress.done += 1;
        }
        if let Some(words) = &progress.words {
            words.allow(progress.done as u32);
        }
        if !matches!(progress.stage, Stage::Flying) {
            self.changed.notify_all();
        }
    }

    /// Its slabs, if it is under way on this very stream: the default one of a thread is another one on another thread, and no
    /// stream is destroyed before what was made with it is gone.
    pub(super) fn slabs_for(&self, stream: &CallerStream) -> Option<Arc<Slabs>> {
        if self.stream != *stream || stream.is_per_thread() {
            return None;
        }
        let progress = lock(&self.progress);
        progress.slabs.clone()
    }

    /// Notes that the driver refused to queue all of it: from piece `index` on, nothing is moved. `last` is what the stream
    /// counts last, if that is queued.
    pub(super) fn cut_short(&self, index: usize, error: Error, last: Option<u32>) {
        let mut progress = lock(&self.progress);
        progress.stop_at(index, 0, Some(error));
        // A read may wait for that piece already, whether or not it is to copy it.
        let waits = usize::from(self.direction == Direction::Read);
        progress.queued = (index + waits).min(self.cut.pieces());
        progress.last = last;
    }

    /// Notes what the stream counts last, after it was cut short.
    pub(super) fn ends_with(&self, last: u32) {
        lock(&self.progress).last = Some(last);
    }

    /// Whether only the driver can tell when the stream is past it.
    pub(super) fn is_loose(&self) -> bool {
        let progress = lock(&self.progress);
        progress.last.is_none() && matches!(progress.stage, Stage::Flying)
    }

    /// The driver has told that the stream is past it.
    pub(super) fn passed(&self) {
        let mut progress = lock(&self.progress);
        progress.last = progress.words.as_ref().map(Words::reached);
    }

    /// Tells the outcome, unless somebody does: the stream is past it, or nothing that is queued there is done any more, for this
    /// reason. Returns when no thread works on it any more.
    pub(super) fn land(&self, failure: Option<Error>) {
        let mut progress = lock(&self.progress);
        if !matches!(progress.stage, Stage::Flying) {
            return;
        }
        progress.stage = Stage::Landing;
        // From here on nobody takes a piece.
        let words = progress.words.take();
        if let (Some(words), Some(_)) = (&words, &failure) {
            // Whatever became of the stream, it is not held up by us.
            words.allow(self.cut.pieces() as u32);
        }
        while progress.working > 0 {
            progress = wait(&self.changed, progress);
        }
        let (slabs, span) = (progress.slabs.take(), progress.span.take());
        let stay = progress.stay.take();
        let stop = progress.stop.take();
        drop(progress);

        let moved = match (&failure, &stop) {
            (Some(_), _) => 0,
            (None, Some(stop)) => self.cut.piece(stop.index).start + stop.moved,
            (None, None) => self.cut.len(),
        };
        match &failure {
            None => {
                drop(slabs);
                if let Some(words) = words {
                    words.put_back();
                }
            }
            // What the device may still be at is nobody's any more, and neither are the words.
            Some(_) => {
                if let Some(slabs) = slabs {
                    slabs.lose();
                }
            }
        }
        drop(stay);
        let error = failure.or(stop.and_then(|stop| stop.error));
        // Listeners hear of the end before the owner does, and without a lock held.
        if let Some(span) = span {
            span.finish(moved, error.is_none());
        }
        let outcome = match error {
            Some(error) => Err(self.explain(error, moved)),
            None => Ok(moved as usize),
        };
        lock(&self.progress).stage = Stage::Over(outcome);
        self.changed.notify_all();
    }

    fn explain(&self, error: Error, moved: u64) -> Error {
        let error = error.during(self.op()).at(&self.place);
        error.within(self.cut.range(), moved)
    }

    /// Its outcome, when it is over, and after `limit` at the latest.
    pub(super) fn outcome_within(&self, limit: Duration) -> Option<Result<usize>> {
        let end = Instant::now() + limit;
        let mut progress = lock(&self.progress);
        loop {
            if let Stage::Over(outcome) = &progress.stage {
                return Some(outcome.clone());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            progress = match self.changed.wait_timeout(progress, left) {
                Ok((progress, _)) => progress,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// An error in a forked child: the threads that work on it, and perhaps the owner of its lock, are not there.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.generation == fork::generation() {
            return Ok(());
        }
        let why = "the transfer belongs to the parent process";
        Err(Error::new(ErrorKind::Forked, self.op(), why).at(&self.place))
    }
}

impl Progress {
    /// The first piece that did not move all its bytes counts.
    fn stop_at(&mut self, index: usize, moved: u64, error: Option<Error>) {
        let is_first = self.stop.as_ref().is_none_or(|stop| index < stop.index);
        if is_first {
            self.stop = Some(Stop {
                index,
                moved,
                error,
            });
        }
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = self.cut.range();
        let (op, place) = (self.op(), &self.place);
        write!(f, "{op} {place} {}..{}", range.start, range.end)
    }
}
