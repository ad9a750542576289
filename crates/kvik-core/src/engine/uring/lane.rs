//! One worker's lane on a ring: many tasks in flight, each in pieces.
//!
//! ```text
//! start -> job, and its range to the queue -> cut -> request -> answer -> judge -> the rest back to the queue,
//!                                                                                   or the job is complete
//! ```

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr;

use kvik_stats::{Direction, names};
use nix::errno::Errno;

use super::Uring;
use super::cut::{Piece, first_piece, pieces};
use super::job::Job;
use super::outcome::{Step, judge};
use super::ring::{DEPTH, Request, Ring};
use super::slots::{NoSlot, Slot};
use crate::corridor::{Completion, Lane, Task, Window};
use crate::error::{Error, Op};

pub(super) struct UringLane<'w> {
    engine: &'w Uring,
    // Up to where reads past the page cache may go in place.
    whole: u64,
    ring: ManuallyDrop<Ring>,
    jobs: Vec<Option<Job<'w>>>,
    free: Vec<usize>,
    queue: VecDeque<Part>,
    // How many requests the queue will come to.
    queued: usize,
    requests: [Option<Sent>; DEPTH],
    idle: Idle,
    finished: Vec<Completion<'w>>,
    // Why the ring takes no requests any more.
    lost: Option<Errno>,
}

/// A part of a job that is still to be cut.
#[derive(Debug)]
struct Part {
    job: usize,
    range: Range<u64>,
    blocking: bool,
}

/// A request that was not answered yet.
#[derive(Debug)]
struct Sent {
    job: usize,
    piece: Piece,
    slot: Option<Slot>,
}

/// The tokens that name no request, one bit for each.
#[derive(Debug)]
struct Idle(u64);

impl<'w> UringLane<'w> {
    pub(super) fn new(engine: &'w Uring, ring: Ring, whole: u64) -> UringLane<'w> {
        UringLane {
            engine,
            whole,
            ring: ManuallyDrop::new(ring),
            jobs: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            queued: 0,
            requests: [const { None }; DEPTH],
            idle: Idle(u64::MAX),
            finished: Vec::new(),
            lost: None,
        }
    }

    fn enqueue(&mut self, part: Part, first: bool) {
        self.queued += pieces(&part.range);
        match first {
            true => self.queue.push_front(part),
            false => self.queue.push_back(part),
        }
    }

    /// Cuts what is queued into requests, as many as may be unanswered.
    fn fill(&mut self) {
        while self.idle.any() {
            let Some(part) = self.queue.front_mut() else {
                return;
            };
            let Some(job) = &mut self.jobs[part.job] else {
                debug_assert!(false, "a part of a job that is gone");
                return;
            };
            let at = part.range.start;
            let piece = first_piece(&part.range, job.memory_at(at).addr().get(), job.rule);
            let slot = match piece
                .through_slot
                .then(|| self.ring.slots().take(piece.len()))
            {
                None => None,
                Some(Ok(slot)) => Some(slot),
                Some(Err(NoSlot::InUse)) => return,
                Some(Err(NoSlot::OutOfMemory)) => {
                    let index = part.job;
                    job.stop_at(at, Step::Failed(Errno::ENOMEM));
                    self.forget_behind(index, at);
                    self.settle(index);
                    continue;
                }
            };
            let (index, blocking) = (part.job, part.blocking);
            self.queued -= pieces(&part.range);
            part.range.start = piece.wanted.end;
            match part.range.is_empty() {
                // The request takes the place of the part.
                true => drop(self.queue.pop_front()),
                false => {
                    self.queued += pieces(&part.range);
                    job.parts += 1;
                }
            }
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
        let wanted = &sent.piece.wanted;
        let len = (wanted.end - wanted.start) as usize;
        let memory = match &sent.slot {
            Some(slot) if direction == Direction::Write => {
                // SAFETY: the source is borrowed for longer than the lane lives and has `len` bytes from there; a slot
                // has as many (a piece fits its slot), and until it is sent nobody else knows of it.
                unsafe {
                    ptr::copy_nonoverlapping(
                        job.memory_at(wanted.start).as_ptr(),
                        slot.start().as_ptr(),
                        len,
                    )
                };
                slot.start()
            }
            Some(slot) => slot.start(),
            None => job.memory_at(wanted.start),
        };
        let request = Request {
            file: self.engine.file_for(job.rule).as_fd(),
            direction,
            memory,
            // No piece is longer than `PIECE`.
            len: sent.piece.len() as u32,
            offset: sent.piece.block.start,
            blocking,
        };
        let token = self.idle.take();
        // SAFETY: 1: in place, the piece lies in the window, which the job keeps, untouched, until all its requests are
        // answered, and which no other piece overlaps; a slot stays taken until then. A lane that is dropped waits, and
        // cannot be leaked: only `Transfer` holds lanes, on its stack. 2: the engine keeps its files open for `'w`.
        unsafe { self.ring.push(&request, token) };
        self.requests[token as usize] = Some(sent);
    }

    /// Works out one answer.
    fn answered(&mut self, token: u32, result: i32) {
        let sent = self.requests.get_mut(token as usize).and_then(Option::take);
        let Some(Sent {
            job: index,
            piece,
            slot,
        }) = sent
        else {
            debug_assert!(false, "an answer to nothing");
            return;
        };
        self.idle.give_back(token);
        let Some(job) = &mut self.jobs[index] else {
            return;
        };
        let direction = job.direction();
        let (moved, step) = judge(direction, &piece, job.rule, result);
        let start = piece.wanted.start;
        if let Some(slot) = slot {
            if direction == Direction::Read && moved > 0 {
                let skipped = (start - piece.block.start) as usize;
                // SAFETY: no more than the piece's length, which fits the slot, lies in front of the wanted bytes.
                let from = unsafe { slot.start().add(skipped) };
                let to = job.memory_at(start);
                // SAFETY: the answer says that the kernel has written these bytes and is done with them; the piece lies in
                // the window, of which nobody else uses this part. Window and slot are different memory.
                unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), moved as usize) };
            }
            self.ring.slots().give_back(slot);
        }
        if moved > 0 {
            job.moved_to(start + moved);
        }
        job.parts -= 1;
        let rest = start + moved..piece.wanted.end;
        let blocking = matches!(step, Step::Again(_));
        match step {
            Step::Done => {}
            Step::More | Step::Again(_) => {
                match step {
                    Step::Again(Errno::EINTR) => names::IO_INTERRUPTED.increment(),
                    Step::Again(_) => names::IO_AGAIN.increment(),
                    _ => names::IO_SHORT.increment(),
                }
                // Unless the job has stopped in front of it.
                if job.stopped_at().is_none_or(|at| rest.start < at) {
                    job.parts += 1;
                    let part = Part {
                        job: index,
                        range: rest,
                        blocking,
                    };
                    self.enqueue(part, true);
                }
            }
            why => {
                job.stop_at(rest.start, why);
                self.forget_behind(index, rest.start);
            }
        }
        self.settle(index);
    }

    /// Takes what a job has queued from `at` on out of the queue.
    fn forget_behind(&mut self, index: usize, at: u64) {
        let (mut parts, mut requests) = (0, 0);
        self.queue.retain(|part| {
            let goes = part.job == index && part.range.start >= at;
            parts += usize::from(goes);
            requests += if goes { pieces(&part.range) } else { 0 };
            !goes
        });
        self.queued -= requests;
        if let Some(job) = &mut self.jobs[index] {
            job.parts -= parts;
        }
    }

    /// Completes a job that has nothing left to do.
    fn settle(&mut self, index: usize) {
        let Some(job) = self.jobs[index].as_mut().filter(|job| job.parts == 0) else {
            return;
        };
        if let Some(range) = job.gap() {
            job.parts = 1;
            let part = Part {
                job: index,
                range,
                blocking: false,
            };
            return self.enqueue(part, true);
        }
        if let Some(job) = self.jobs[index].take() {
            self.free.push(index);
            self.finished.push(job.complete(&self.engine.buffered));
        }
    }

    /// Gives up all jobs: the ring is lost, with nothing in flight.
    fn give_up(&mut self, why: Errno) {
        self.lost = Some(why);
        let queued = self
            .queue
            .drain(..)
            .map(|part| (part.job, part.range.start));
        let mut undone: Vec<_> = queued.collect();
        self.queued = 0;
        for token in 0..DEPTH as u32 {
            if let Some(sent) = self.requests[token as usize].take() {
                self.idle.give_back(token);
                undone.push((sent.job, sent.piece.wanted.start));
                sent.slot
                    .into_iter()
                    .for_each(|slot| self.ring.slots().give_back(slot));
            }
        }
        for (index, at) in undone {
            if let Some(job) = &mut self.jobs[index] {
                job.parts -= 1;
                job.stop_at(at, Step::Refused(why));
            }
            self.settle(index);
        }
    }
}

impl<'w> Lane<'w> for UringLane<'w> {
    fn room(&self) -> usize {
        DEPTH.saturating_sub(self.queued + self.idle.taken())
    }

    fn in_flight(&self) -> usize {
        self.jobs.len() - self.free.len() + self.finished.len()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        let op = match window {
            Window::Fill(_) => Op::Read,
            Window::Drain(_) => Op::Write,
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
            self.engine.rule(direction, self.whole)
        });
        let range = job.range.clone();
        job.parts = usize::from(!range.is_empty());
        let index = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        let is_empty = range.is_empty();
        self.jobs[index] = Some(job);
        if is_empty {
            return self.settle(index);
        }
        let part = Part {
            job: index,
            range,
            blocking: false,
        };
        self.enqueue(part, false);
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        while self.in_flight() > 0 {
            self.fill();
            if self.idle.taken() > 0 {
                let answers = usize::from(self.finished.is_empty());
                if let Err(errno) = self.ring.enter(answers) {
                    self.give_up(errno);
                }
                while let Some((token, result)) = self.ring.next_answer() {
                    self.answered(token, result);
                }
            }
            if !self.finished.is_empty() {
                done.append(&mut self.finished);
                return;
            }
        }
    }
}

impl Drop for UringLane<'_> {
    fn drop(&mut self) {
        let requests = self.requests.iter().enumerate();
        self.ring.drain(
            requests
                .filter(|(_, sent)| sent.is_some())
                .map(|(token, _)| token as u32),
        );
        // SAFETY: the lane is being dropped, and nothing uses its ring after this.
        let mut ring = unsafe { ManuallyDrop::take(&mut self.ring) };
        for sent in self.requests.iter_mut().filter_map(Option::take) {
            sent.slot
                .into_iter()
                .for_each(|slot| ring.slots().give_back(slot));
        }
        ring.give_back();
    }
}

impl Idle {
    fn any(&self) -> bool {
        self.0 != 0
    }

    fn taken(&self) -> usize {
        self.0.count_zeros() as usize
    }

    /// A token; there is one.
    fn take(&mut self) -> u32 {
        let token = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        token
    }

    fn give_back(&mut self, token: u32) {
        self.0 |= 1 << token;
    }
}
