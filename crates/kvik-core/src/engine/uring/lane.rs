//! One worker's lane on a ring: many tasks in flight, each in pieces.
//!
//! ```text
//! start -> job, its range to the queue -> cut -> request -> answer -> judge -> the rest to the queue, or the job is done
//! ```

use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::AsFd;
use std::{mem, ptr, slice};

use kvik_stats::{Direction, names};
use nix::errno::Errno;

use super::Uring;
use super::cut::{Rule, first_piece};
use super::job::Job;
use super::outcome::{Step, judge};
use super::queue::{Part, Queue, Sent, Unanswered};
use super::ring::{DEPTH, Request, Ring};
use super::slots::{NoSlot, Slots};
use crate::copy;
use crate::corridor::{Completion, Lane, Task, Window};
use crate::engine::direct::split::Piece;
use crate::error::{Error, Op};

pub(crate) struct UringLane<'w> {
    engine: &'w Uring,
    // Where the file ended when the lane was opened: what decides which block is not read in place. A file that grows is
    // read through a slot there, and of one that is cut meanwhile nobody can say what is behind the count.
    file_end: u64,
    ring: ManuallyDrop<Ring>,
    slots: ManuallyDrop<Slots>,
    jobs: Vec<Option<Job<'w>>>,
    // The places in `jobs` that are empty.
    free: Vec<usize>,
    queue: Queue,
    unanswered: Unanswered,
    finished: Vec<Completion<'w>>,
    // Why the ring takes no requests any more.
    lost: Option<Errno>,
}

impl<'w> UringLane<'w> {
    pub(super) fn new(engine: &'w Uring, ring: Ring, file_end: u64) -> UringLane<'w> {
        UringLane {
            engine,
            file_end,
            ring: ManuallyDrop::new(ring),
            slots: ManuallyDrop::new(Slots::new(engine.bounce_buffer_size())),
            jobs: Vec::new(),
            free: Vec::new(),
            queue: Queue::default(),
            unanswered: Unanswered::default(),
            finished: Vec::new(),
            lost: None,
        }
    }

    /// Cuts what is queued into requests, as many as may be unanswered.
    fn fill(&mut self) {
        while self.unanswered.has_room() {
            let Some(part) = self.queue.front() else {
                return;
            };
            let (index, at) = (part.job, part.range.start);
            let (blocking, cached) = (part.blocking, part.cached);
            // A job stays as long as it has parts.
            let Some(job) = &mut self.jobs[index] else {
                return;
            };
            let address = job.memory_at(at).addr().get();
            let rule = if cached { Rule::Buffered } else { job.rule };
            let piece = first_piece(&part.range, address, rule);
            let slot = match &piece {
                Piece::Through { block, .. } => self.slots.take(block.end - block.start).map(Some),
                Piece::InPlace(_) | Piece::Buffered(_) => Ok(None),
            };
            let slot = match slot {
                Ok(slot) => slot,
                Err(NoSlot::InUse) => return,
                Err(NoSlot::OutOfMemory) => {
                    // Who needs no slots can do it.
                    job.stop_at(at, Step::Refused(Errno::ENOMEM));
                    job.parts -= self.queue.forget_behind(index, at);
                    self.settle(index);
                    continue;
                }
            };
            // The request takes the place of the part, unless something of that is left.
            job.parts += usize::from(self.queue.cut_front(piece.wanted().end));
            let sent = Sent {
                job: index,
                piece,
                slot,
            };
            self.send(sent, blocking);
        }
    }

    fn send(&mut self, sent: Sent, blocking: bool) {
        let Some(job) = &self.jobs[sent.job] else {
            return;
        };
        let direction = job.direction();
        let wanted = sent.piece.wanted();
        let at = wanted.start;
        let memory = match &sent.slot {
            Some(slot) => slot.start(),
            None => job.memory_at(at),
        };
        if sent.slot.is_some() && direction == Direction::Write {
            let len = (wanted.end - at) as usize;
            let source = job.memory_at(at).as_ptr();
            // SAFETY: the source is borrowed for longer than the lane lives and has `len` bytes from there; a slot has as
            // many, since the piece fits it, and is not sent yet, so that nobody else uses it.
            unsafe { ptr::copy_nonoverlapping(source, memory.as_ptr(), len) };
        }
        let asked = sent.piece.block();
        let request = Request {
            file: self.engine.file_for(&sent.piece).as_fd(),
            direction,
            memory,
            // No piece is longer than `PIECE`.
            len: (asked.end - asked.start) as u32,
            offset: asked.start,
            blocking,
        };
        let token = self.unanswered.insert(sent);
        // SAFETY: 1: in place, the piece lies in the window, which the job keeps, untouched, until all its requests are
        // answered, and which no other piece overlaps; a slot stays taken until then. A lane that is dropped waits, and
        // it cannot be leaked: only `Transfer` holds lanes, on its stack, or lanes that own this one. 2: the engine keeps its files open for `'w`.
        unsafe { self.ring.push(&request, token) };
    }

    /// Works out one answer.
    fn answered(&mut self, token: u32, result: i32) {
        let Some(sent) = self.unanswered.remove(token) else {
            return;
        };
        let Sent {
            job: index,
            piece,
            slot,
        } = sent;
        // A job stays as long as it has parts.
        let Some(job) = &mut self.jobs[index] else {
            return;
        };
        let start = piece.wanted().start;
        let (moved, step) = judge(job.direction(), &piece, job.rule, result);
        if let Some(slot) = slot {
            if job.direction() == Direction::Read {
                let skipped = (start - piece.block().start) as usize;
                // SAFETY: the bytes in front of the wanted ones are fewer than the piece has, which fits the slot.
                let from = unsafe { slot.start().add(skipped) };
                // SAFETY: slots are initialised; `moved` bytes behind the skipped ones lie in this one, and the answer says
                // that the kernel is done with it.
                let from = unsafe { slice::from_raw_parts(from.as_ptr(), moved as usize) };
                let to: *mut MaybeUninit<u8> = job.memory_at(start).cast().as_ptr();
                // SAFETY: the piece lies in the window, of which nobody else uses this part.
                let to = unsafe { slice::from_raw_parts_mut(to, moved as usize) };
                copy::land(to, from);
            }
            self.slots.give_back(slot);
        }
        names::BYTES_BY_RING.add(moved);
        job.moved(start..start + moved);
        job.parts -= 1;
        let rest = Part {
            job: index,
            range: start + moved..piece.wanted().end,
            blocking: matches!(step, Step::Again(_)),
            cached: matches!(step, Step::Cached) || matches!(piece, Piece::Buffered(_)),
        };
        match step {
            Step::Done => {}
            Step::More | Step::Cached | Step::Again(_) => {
                match step {
                    Step::Again(Errno::EINTR) => names::IO_INTERRUPTED.increment(),
                    Step::Again(_) => names::IO_AGAIN.increment(),
                    _ => names::IO_SHORT.increment(),
                }
                // Unless the job has stopped in front of it.
                if job.stopped_at().is_none_or(|stop| rest.range.start < stop) {
                    job.parts += 1;
                    self.queue.push_front(rest);
                }
            }
            why => {
                job.stop_at(rest.range.start, why);
                job.parts -= self.queue.forget_behind(index, rest.range.start);
            }
        }
        self.settle(index);
    }

    /// Completes a job that has nothing left to do.
    fn settle(&mut self, index: usize) {
        let Some(job) = self.jobs[index].as_mut().filter(|job| job.parts == 0) else {
            return;
        };
        if let Some(range) = job.gap() {
            job.parts = 1;
            self.queue.push_front(Part::new(index, range));
        } else if let Some(job) = self.jobs[index].take() {
            self.free.push(index);
            self.finished.push(job.complete(&self.engine.buffered));
        }
    }

    /// Gives up all jobs: the ring is lost, with nothing in flight.
    fn give_up(&mut self, why: Errno) {
        self.lost = Some(why);
        let mut undone = Vec::new();
        while let Some(part) = self.queue.pop() {
            undone.push((part.job, part.range.start));
        }
        for token in self.unanswered.tokens() {
            if let Some(sent) = self.unanswered.remove(token) {
                undone.push((sent.job, sent.piece.wanted().start));
                // Its slot stays taken: the kernel was never asked, but nobody needs it any more.
            }
        }
        for (index, at) in undone {
            if let Some(job) = &mut self.jobs[index] {
                job.stop_at(at, Step::Refused(why));
                job.parts -= 1;
            }
            self.settle(index);
        }
    }
}

impl<'w> Lane<'w> for UringLane<'w> {
    fn engine(&self) -> &'static str {
        "uring"
    }

    fn room(&self) -> usize {
        DEPTH.saturating_sub(self.queue.requests() + self.unanswered.len())
    }

    fn in_flight(&self) -> usize {
        self.jobs.len() - self.free.len() + self.finished.len()
    }

    fn finished(&self) -> usize {
        self.finished.len()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        if let Window::Device(window) = window {
            return self.finished.push(Completion::not_on_host(task, window));
        }
        let op = match window {
            Window::Fill(_) => Op::Read,
            _ => Op::Write,
        };
        let error = match (self.lost, i64::try_from(task.range.end)) {
            (Some(why), _) => Some(Error::refused(op, why)),
            (None, Err(_)) => Some(Error::os(op, Errno::EOVERFLOW)),
            (None, Ok(_)) => None,
        };
        if error.is_some() {
            return self.finished.push(Completion {
                task,
                window,
                moved: 0,
                error,
            });
        }
        let mut job = Job::new(task, window, |direction| {
            self.engine.rule(direction, self.file_end)
        });
        let index = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        let range = job.range.clone();
        job.parts = usize::from(!range.is_empty());
        self.jobs[index] = Some(job);
        match range.is_empty() {
            true => self.settle(index),
            false => self.queue.push_back(Part::new(index, range)),
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        loop {
            self.fill();
            if self.unanswered.len() > 0 {
                let answers = usize::from(self.finished.is_empty());
                if let Err(errno) = self.ring.enter(answers) {
                    self.give_up(errno);
                }
                while let Some((token, result)) = self.ring.next_answer() {
                    self.answered(token, result);
                }
            }
            if !self.finished.is_empty() || self.in_flight() == 0 {
                return done.append(&mut self.finished);
            }
        }
    }
}

impl Drop for UringLane<'_> {
    fn drop(&mut self) {
        self.ring.drain(self.unanswered.tokens());
        // SAFETY: the lane is being dropped, and nothing uses its ring after this.
        let ring = unsafe { ManuallyDrop::take(&mut self.ring) };
        // SAFETY: the same, for its slots.
        let slots = unsafe { ManuallyDrop::take(&mut self.slots) };
        // The kernel may still write to them, in a forked child on behalf of the parent.
        if ring.unanswered() > 0 {
            mem::forget(slots);
        }
        ring.give_back();
    }
}
