//! One worker's lane past the page cache: by the thread's ring while several tasks are at hand, by blocking calls
//! otherwise.
//!
//! A task of one request that comes alone is a blocking call, which costs less than a ring's two queues. So such a task is
//! held until another one comes or the lane is polled. What the ring is refused is done again, as [`DirectEngine::redo`]
//! says.

use super::DirectEngine;
use crate::corridor::{Completion, Lane, Task, Window};
use crate::engine::uring::{PIECE, UringLane};
use crate::error::Error;

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
