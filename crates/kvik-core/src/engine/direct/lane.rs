//! One worker's lane past the page cache: by the thread's ring while several tasks are at hand, by blocking calls
//! otherwise.
//!
//! A task of one request that comes alone is a blocking call, which costs less than a ring's two queues. So such a task is
//! held until another one comes or the lane is polled. What the ring is refused is done again, as [`DirectEngine::redo`]
//! says.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kvik_stats::{Direction, names};
use nix::errno::Errno;

use super::{DirectEngine, is_beyond_limit, is_refusal};
use crate::corridor::{Completion, Lane, Task, Window};
use crate::engine::uring::{PIECE, Uring, UringLane};
use crate::error::{Error, Op};

pub(super) struct DirectLane<'w> {
    engine: &'w DirectEngine,
    held: Option<(Task, Window<'w>)>,
    // Opened when two tasks are there for it.
    ring: Option<UringLane<'w>>,
    finished: Vec<Completion<'w>>,
}

impl<'w> DirectLane<'w> {
    pub(super) fn new(engine: &'w DirectEngine) -> DirectLane<'w> {
        DirectLane {
            engine,
            held: None,
            ring: None,
            finished: Vec::new(),
        }
    }

    fn start_by_ring(&mut self, task: Task, window: Window<'w>) {
        if self.ring.is_none() {
            self.ring = self.engine.open_ring();
        }
        match &mut self.ring {
            Some(ring) => ring.start(task, window),
            None => self.finished.push(self.engine.block(task, window)),
        }
    }
}

impl<'w> Lane<'w> for DirectLane<'w> {
    fn engine(&self) -> &'static str {
        "direct"
    }

    fn room(&self) -> usize {
        match &self.ring {
            _ if !self.finished.is_empty() => 0,
            Some(ring) => ring.room().saturating_sub(usize::from(self.held.is_some())),
            // For the first, or for the second that shows that there are several.
            None => 1,
        }
    }

    fn in_flight(&self) -> usize {
        let ring = self.ring.as_ref().map_or(0, |ring| ring.in_flight());
        ring + usize::from(self.held.is_some()) + self.finished.len()
    }

    fn finished(&self) -> usize {
        self.finished.len()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        if !self.engine.suits_a_ring(&window) {
            return self.finished.push(self.engine.block(task, window));
        }
        if self.in_flight() == 0 && task.len() <= PIECE {
            self.held = Some((task, window));
            return;
        }
        if let Some((held, its_window)) = self.held.take() {
            self.start_by_ring(held, its_window);
        }
        self.start_by_ring(task, window);
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        let before = done.len();
        if let Some((task, window)) = self.held.take() {
            done.push(self.engine.block(task, window));
        }
        done.append(&mut self.finished);
        // What the ring has can wait until somebody has to.
        let waits = done.len() == before;
        let Some(ring) = self.ring.as_mut().filter(|_| waits) else {
            return;
        };
        ring.poll(done);
        let is_refused = |completion: &mut Completion<'w>| {
            let error = completion.error.as_ref();
            error.is_some_and(Error::is_refusal)
        };
        let refused: Vec<_> = done.extract_if(before.., is_refused).collect();
        let redone = refused.into_iter().map(|task| self.engine.redo(task));
        done.extend(redone);
    }
}

/// What the engine has to say about rings.
impl DirectEngine {
    /// Whether a task that goes to this window or comes from it may go by a ring.
    pub(super) fn suits_a_ring(&self, window: &Window<'_>) -> bool {
        if self.ringless.load(Ordering::Relaxed) {
            return false;
        }
        let wish = match window.direction() {
            Direction::Read => self.read,
            Direction::Write => self.write,
        };
        // An error is for the blocking way to tell.
        self.direct(wish).is_ok_and(|direct| direct.is_some())
    }

    /// A lane on this thread's ring, unless there is none: for this file or, as was seen before or is seen now, here.
    fn open_ring(&self) -> Option<UringLane<'_>> {
        let direct = self.file.insist().ok()?;
        let uring = self.uring.get_or_make(|| {
            let second = (Arc::clone(&direct.file), direct.alignment);
            let buffered = Arc::clone(self.file.buffered());
            Uring::direct(buffered, second, self.edges, self.bounce_buffer_size)
        });
        let why = match uring.as_ref().map(Uring::open_lane) {
            Some(Ok(lane)) => return Some(lane),
            Some(Err(why)) => why.to_string(),
            None => "alignment or bounce_buffer_size leave no room for its slots".to_owned(),
        };
        if !self.ringless.swap(true, Ordering::Relaxed) {
            names::FALLBACKS.increment();
            names::FALLBACKS_OF_RING.increment();
            tracing::debug!(%why, "no io_uring for direct I/O on this file; blocking calls serve");
        }
        None
    }

    /// Does again what a ring was refused. If that was direct I/O, it is refused for all.
    fn redo<'w>(&self, refused: Completion<'w>) -> Completion<'w> {
        let (wish, op) = match refused.window.direction() {
            Direction::Read => (self.read, Op::Read),
            Direction::Write => (self.write, Op::Write),
        };
        let errno = refused.error.as_ref().and_then(Error::os_error);
        let errno = errno.map_or(Errno::UnknownErrno, Errno::from_raw);
        let is_write = op == Op::Write;
        // What goes beyond the limit the blocking way writes as far as it may.
        let is_refusal =
            is_refusal(errno) && !(is_write && is_beyond_limit(refused.task.range.end));
        match is_refusal.then(|| self.refused(wish, op, errno)) {
            Some(Err(error)) => Completion {
                error: Some(error),
                ..refused
            },
            // No slot, no ring any more, or a limit: nothing that speaks against direct I/O.
            Some(Ok(())) | None => self.block(refused.task, refused.window),
        }
    }
}
