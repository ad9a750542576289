//! The engine for many transfers at once by cuFile: requests are submitted together and answered one by one.
//!
//! ```text
//! started -> waiting -> submitted, up to as many as cuFile takes -> answered: done, or waiting again for the rest
//! ```
//! One submission is in flight at a time. cuFile is never asked to cancel for the sake of a caller who does: afterwards nobody can
//! tell what it still writes to, and so many requests end soon. A batch that has not answered for long is given up, and the memory
//! of its requests is kept for ever ([`Error::abandoned`]).

mod requests;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use kvik_stats::{Backend, Direction, names};
use kvik_sys::CuFileFailure;

use self::requests::{CuFileRequests, Event, Request, Requests, Submitted};
use super::{Gds, is_apart};
use crate::corridor::{DeviceWindow, Task, Window};
use crate::engine::{Completion, Engine, Lane};
use crate::error::{Error, ErrorKind, Op, Result};

/// Reads and writes of one file for memory in one context, many at once.
pub(crate) struct GdsBatch {
    gds: Gds,
    // How many requests cuFile takes at once.
    most: u32,
    // Whether it was counted that requests go alone which should not.
    gave_way: AtomicBool,
}

impl GdsBatch {
    /// By `gds`, or that itself if cuFile takes no batches.
    pub(crate) fn over(gds: Gds) -> Arc<dyn Engine> {
        if !gds.file.takes_batches() {
            return Arc::new(gds);
        }
        let properties = gds.file.cufile().driver_get_properties().ok();
        let batches = properties.filter(|known| known.supports_batches() && known.max_batch_io > 1);
        match batches {
            Some(known) => Arc::new(GdsBatch {
                gds,
                most: known.max_batch_io.min(MOST),
                gave_way: AtomicBool::new(false),
            }),
            None => Arc::new(gds),
        }
    }
}

impl Engine for GdsBatch {
    fn backend(&self) -> Backend {
        Backend::Gds
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let requests = CuFileRequests::new(&self.gds, self.most, &self.gave_way)?;
        Ok(Box::new(BatchLane::new(requests, PATIENCE)))
    }

    fn readers(&self) -> usize {
        LANES
    }

    fn writers(&self) -> usize {
        LANES
    }
}

/// A lane with room for as many tasks as are submitted at once.
struct BatchLane<'w, R: Requests> {
    requests: R,
    tasks: Vec<Option<Moving<'w>>>,
    // The places in `tasks` that are empty, those that wait for a submission, and how many are submitted.
    free: Vec<usize>,
    waiting: VecDeque<usize>,
    submitted: usize,
    finished: Vec<Completion<'w>>,
    patience: Duration,
    // When cuFile was last heard of.
    heard: Instant,
}

/// A task on its way.
struct Moving<'w> {
    task: Task,
    window: DeviceWindow<'w>,
    base: u64,
    moved: usize,
    // How many bytes the present request is for, and whether that is in flight.
    asked: usize,
    flying: bool,
}

impl<'w, R: Requests> BatchLane<'w, R> {
    fn new(requests: R, patience: Duration) -> BatchLane<'w, R> {
        BatchLane {
            requests,
            tasks: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            submitted: 0,
            finished: Vec::new(),
            patience,
            heard: Instant::now(),
        }
    }

    /// Has the rest of a task wait for the next submission, if there is a rest.
    fn go_on(&mut self, slot: usize) {
        let Some(moving) = &mut self.tasks[slot] else {
            return;
        };
        match self
            .requests
            .left(&moving.window, moving.task.range.start, moving.moved)
        {
            Ok(0) => self.finish(slot, None),
            Ok(left) => {
                moving.asked = left;
                self.waiting.push_back(slot);
            }
            Err(error) => self.finish(slot, Some(error)),
        }
    }

    fn finish(&mut self, slot: usize, error: Option<Error>) {
        let Some(mut moving) = self.tasks[slot].take() else {
            return;
        };
        self.free.push(slot);
        if moving.window.direction() == Direction::Read {
            moving.window.fill_to(moving.moved);
        }
        self.finished.push(Completion {
            task: moving.task,
            moved: moving.moved,
            window: Window::Device(moving.window),
            error,
        });
    }

    fn submit(&mut self) {
        let slots: Vec<usize> = self.waiting.drain(..).collect();
        let asked = slots.iter().filter_map(|slot| {
            let moving = self.tasks[*slot].as_ref()?;
            Some(Request {
                direction: moving.window.direction(),
                base: moving.base,
                behind: moving.window.address() - moving.base + moving.moved as u64,
                len: moving.asked,
                offset: moving.task.range.start + moving.moved as u64,
                cookie: *slot,
            })
        });
        let asked: Vec<_> = asked.collect();
        self.heard = Instant::now();
        match self.requests.submit(&asked) {
            Submitted::All => {
                self.submitted = asked.len();
                for slot in slots {
                    self.tasks[slot]
                        .iter_mut()
                        .for_each(|moving| moving.flying = true);
                }
            }
            // From here on there is no room for batches.
            Submitted::None => slots.into_iter().for_each(|slot| self.move_alone(slot)),
            Submitted::Perhaps(why) => self.abandon(slots, &why),
        }
    }

    /// Moves the rest of a task by calls of its own.
    fn move_alone(&mut self, slot: usize) {
        let Some(moving) = &mut self.tasks[slot] else {
            return;
        };
        let (offset, before) = (moving.task.range.start, moving.moved);
        let (moved, error) = self.requests.move_alone(&moving.window, offset, before);
        moving.moved = moved;
        self.finish(slot, error);
    }

    /// Ends tasks whose memory cuFile may still use.
    fn abandon(&mut self, slots: Vec<usize>, why: &str) {
        self.submitted = 0;
        for slot in slots {
            let Some(moving) = &self.tasks[slot] else {
                continue;
            };
            let op = Op::from(moving.window.direction());
            let why = format!("{why}; its memory is kept, since cuFile may still use it");
            let error = Error::new(ErrorKind::Device, op, why);
            self.finish(slot, Some(error.abandoned()));
        }
    }

    /// Waits a while for cuFile's answers.
    fn hear(&mut self) {
        let mut events = Vec::new();
        let asked = Instant::now();
        let answer = self.requests.collect(TICK, &mut events);
        if !events.is_empty() {
            self.heard = Instant::now();
        }
        let waits_itself = events.is_empty() && asked.elapsed() < SHORTEST;
        self.take(&mut events);
        let why = match answer {
            Ok(()) if self.heard.elapsed() < self.patience => {
                if waits_itself {
                    thread::sleep(SHORTEST);
                }
                return;
            }
            Ok(()) => format!("cuFile has not answered for {:?}", self.patience),
            Err(why) => why,
        };
        self.requests.cancel(&mut events);
        self.take(&mut events);
        if self.submitted == 0 {
            return;
        }
        self.requests.give_up();
        let flying = |slot: &usize| {
            let moving = self.tasks[*slot].as_ref();
            moving.is_some_and(|moving| moving.flying)
        };
        let unanswered: Vec<usize> = (0..self.tasks.len()).filter(flying).collect();
        self.abandon(unanswered, &why);
    }

    fn take(&mut self, events: &mut Vec<Event>) {
        for event in events.drain(..) {
            self.answered(event);
        }
    }

    fn answered(&mut self, event: Event) {
        let Some(Some(moving)) = self.tasks.get_mut(event.cookie) else {
            return;
        };
        if !mem::take(&mut moving.flying) {
            return; // It was answered before.
        }
        self.submitted = self.submitted.saturating_sub(1);
        self.requests.answered();
        let asked = moving.asked;
        let op = Op::from(moving.window.direction());
        match event.outcome {
            Ok(0) if op == Op::Read => self.read_nothing(event.cookie),
            Ok(0) if self.requests.has_another_way() => self.move_alone(event.cookie),
            Ok(0) => {
                let why = "the file takes no more bytes, without saying why";
                self.finish(event.cookie, Some(Error::new(ErrorKind::Io, op, why)));
            }
            Ok(count) if count > asked => {
                let why = format!("cuFile moved {count} bytes where {asked} were asked for");
                self.finish(event.cookie, Some(Error::new(ErrorKind::Internal, op, why)));
            }
            Ok(count) => {
                moving.moved += count;
                names::BYTES_BY_CUFILE.add(count as u64);
                if count < asked {
                    names::IO_SHORT.increment();
                }
                match moving.moved == moving.window.len() {
                    true => self.finish(event.cookie, None),
                    false => self.go_on(event.cookie),
                }
            }
            // What cuFile does not do in a batch, it may do alone; if not, that call says why.
            Err(CuFileFailure::Status(why)) => {
                self.requests.give_way(&why);
                self.move_alone(event.cookie);
            }
            Err(failure) => match self.requests.retry(op, failure) {
                Ok(()) => self.go_on(event.cookie),
                Err(_) if self.requests.has_another_way() => self.move_alone(event.cookie),
                Err(error) => self.finish(event.cookie, Some(error)),
            },
        }
    }
}

impl<R: Requests> BatchLane<'_, R> {
    /// cuFile has read nothing, and did not fail.
    fn read_nothing(&mut self, slot: usize) {
        let Some(moving) = &self.tasks[slot] else {
            return;
        };
        let (offset, moved) = (moving.task.range.start, moving.moved);
        match self.requests.left(&moving.window, offset, moved) {
            // The file ends earlier than it did when this was asked for.
            Ok(0) => self.finish(slot, None),
            // A call of its own says why, or moves it.
            Ok(_) => self.move_alone(slot),
            Err(error) => self.finish(slot, Some(error)),
        }
    }
}

impl<'w, R: Requests> Lane<'w> for BatchLane<'w, R> {
    fn engine(&self) -> &'static str {
        "cufile"
    }

    fn room(&self) -> usize {
        match self.submitted {
            // What is done is handed back before there is more; a task that cannot wait for a submission is done when it starts.
            0 => self
                .requests
                .room()
                .max(1)
                .saturating_sub(self.waiting.len() + self.finished.len()),
            _ => 0,
        }
    }

    fn in_flight(&self) -> usize {
        self.tasks.len() - self.free.len() + self.finished.len()
    }

    fn finished(&self) -> usize {
        self.finished.len()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        let window = match window {
            Window::Device(window) => window,
            window => return self.finished.push(Completion::not_on_device(task, window)),
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.tasks.push(None);
            self.tasks.len() - 1
        });
        // Those wait for each other.
        let apart = is_apart(&window, task.range.start);
        let base = self.requests.base(&window);
        self.tasks[slot] = Some(Moving {
            task,
            window,
            base: *base.as_ref().unwrap_or(&0),
            moved: 0,
            asked: 0,
            flying: false,
        });
        match base {
            Err(error) => self.finish(slot, Some(error)),
            Ok(_) if apart || self.requests.room() == 0 => self.move_alone(slot),
            Ok(_) => self.go_on(slot),
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        while self.finished.is_empty() && self.in_flight() > 0 {
            match self.submitted {
                0 => self.submit(),
                _ => self.hear(),
            }
        }
        done.append(&mut self.finished);
    }
}

impl<R: Requests> Drop for BatchLane<'_, R> {
    /// Only after a panic is anything in flight here. It is waited for without a limit: nobody is left who could keep the memory.
    fn drop(&mut self) {
        let mut events = Vec::new();
        while self.submitted > 0 {
            if self.requests.collect(TICK, &mut events).is_err() || events.is_empty() {
                thread::sleep(SHORTEST);
            }
            self.take(&mut events);
        }
    }
}

// So that one submission is prepared while another is in flight; more would only be more at once.
const LANES: usize = 2;
// Enough for any device, whatever cuFile was told.
const MOST: u32 = 1024;
// How often a lane looks whether cuFile has been silent for too long.
const TICK: Duration = Duration::from_millis(200);
// Where cuFile does not wait, the lane does.
const SHORTEST: Duration = Duration::from_micros(50);
// A request is at most a few megabytes, and some hundred are in flight: on the slowest of disks that is seconds.
const PATIENCE: Duration = Duration::from_secs(300);

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
