//! One worker's lane through slabs.
//!
//! ```text
//! read:  open -> reading -> copying -> free, its tasks finished
//! write: open -> copying -> writing -> free, its tasks finished
//! ```
//! A slab is open while it takes tasks. It is closed when it is full, when it holds a task of some size, or when there is
//! nothing else to do; then its copies are submitted at once.

use std::collections::VecDeque;
use std::mem::{self, ManuallyDrop};
use std::panic::{self, AssertUnwindSafe};
use std::ptr::NonNull;
use std::slice;
use std::thread;

use kvik_stats::Direction;

use super::Staged;
use super::stage::{Stage, Staging};
use crate::corridor::{Completion, FillWindow, Lane, Task, Window};
use crate::device::{Copy, CopyStream, Entered, Mark, Slab};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Op, Result};

pub(super) struct StagedLane<'w> {
    // Dropped first, by hand: it waits for what the host's engine has in flight on the slabs.
    host: ManuallyDrop<Box<dyn Lane<'w> + 'w>>,
    stages: Vec<Stage>,
    // The stage that takes tasks, and those whose copies are submitted, the first one first.
    open: Option<usize>,
    copying: VecDeque<usize>,
    tasks: Vec<Option<Staging<'w>>>,
    // The places in `tasks` that are empty.
    free: Vec<usize>,
    finished: Vec<Completion<'w>>,
    answers: Vec<Completion<'w>>,
    // The longest task there will be.
    longest: usize,
    stream: ManuallyDrop<CopyStream>,
    // Whether the stream was told to wait for others.
    waits: bool,
    // Whether the host's engine waits for a network.
    remote: bool,
    // Whether the host's lane has lost a task, or answered for another one.
    breach: bool,
    // Dropped last, so that all above happens in the context.
    _entered: Entered,
}

impl<'w> StagedLane<'w> {
    pub(super) fn new(engine: &'w Staged) -> Result<StagedLane<'w>> {
        let entered = engine.context.enter()?;
        let stream = CopyStream::lend(engine.context)?;
        for before in &engine.before {
            stream.wait_for(before)?;
        }
        let host = engine.host.lane()?;
        let mut lane = StagedLane {
            host: ManuallyDrop::new(host),
            stages: Vec::with_capacity(STAGES),
            open: None,
            copying: VecDeque::with_capacity(STAGES),
            tasks: Vec::new(),
            free: Vec::new(),
            finished: Vec::new(),
            answers: Vec::new(),
            longest: engine.largest() as usize,
            stream: ManuallyDrop::new(stream),
            waits: !engine.before.is_empty(),
            remote: engine.is_remote(),
            breach: false,
            _entered: entered,
        };
        // Who has one slab gets along, and gives it back: so that waiting for the first one ends.
        let (context, sizes) = (engine.context, engine.sizes);
        lane.add(Slab::take(context, sizes.slab, sizes.limit)?);
        while lane.stages.len() < lane.most() {
            match Slab::try_take(context, sizes.slab, sizes.limit) {
                Ok(Some(slab)) => lane.add(slab),
                // The limit is reached, or no more memory can be pinned.
                Ok(None) | Err(_) => break,
            }
        }
        Ok(lane)
    }

    /// How many slabs it can make use of.
    fn most(&self) -> usize {
        if self.remote { STAGES_REMOTE } else { STAGES }
    }

    fn add(&mut self, slab: Slab) {
        self.stages.push(Stage::new(slab));
    }

    fn idle(&self) -> Option<usize> {
        self.stages.iter().position(|stage| !stage.busy)
    }

    /// A place for a task, in the open stage or in a new one.
    fn place(&mut self, task: &Task) -> Option<(usize, NonNull<u8>)> {
        let (offset, len) = (task.range.start, task.len() as usize);
        loop {
            let index = match self.open {
                Some(open) => open,
                None => {
                    let idle = self.idle()?;
                    self.stages[idle].busy = true;
                    *self.open.insert(idle)
                }
            };
            let stage = &mut self.stages[index];
            if let Some(place) = stage.places.take(offset, len) {
                // SAFETY: a place lies in its slab.
                return Some((index, unsafe { stage.slab.start().add(place.start) }));
            }
            if stage.tasks.is_empty() {
                return None;
            }
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.submit_if_ready(open);
        }
    }

    /// Submits the copies of a stage that is closed and complete.
    fn submit_if_ready(&mut self, index: usize) {
        let stage = &mut self.stages[index];
        if self.open == Some(index)
            || stage.moving > 0
            || stage.mark.is_some()
            || stage.tasks.is_empty()
        {
            return;
        }
        let direction = stage
            .tasks
            .first()
            .and_then(|first| self.tasks[*first].as_ref());
        let Some(direction) = direction.map(|first| first.window.direction()) else {
            return;
        };
        let outcome = match stage.copies.is_empty() {
            true => Ok(None),
            false => submit(&self.stream, direction, &stage.copies).map(Some),
        };
        stage.copies.clear();
        match outcome {
            Ok(Some(mark)) => {
                stage.mark = Some(mark);
                self.copying.push_back(index);
            }
            Ok(None) => self.release(index),
            Err(error) => self.fail(index, &error),
        }
    }

    /// All tasks of the stage end with this error.
    fn fail(&mut self, index: usize, error: &Error) {
        for task in &self.stages[index].tasks {
            if let Some(staging) = &mut self.tasks[*task] {
                staging.moved = 0;
                staging.error = Some(error.clone());
            }
        }
        let quiet = self.stream.is_quiet();
        self.release(index);
        // What the device still does with the slab is not known: it takes no more tasks.
        self.stages[index].busy = !quiet;
    }

    /// Finishes the tasks of a stage, and frees it.
    fn release(&mut self, index: usize) {
        let tasks = mem::take(&mut self.stages[index].tasks);
        for task in &tasks {
            if let Some(staging) = self.tasks[*task].take() {
                self.finished.push(staging.complete());
            }
        }
        self.free.extend(tasks);
        let stage = &mut self.stages[index];
        stage.places.clear();
        stage.busy = false;
    }

    /// Has the host's engine move the bytes of a task between its place and the object.
    fn move_on_host(&mut self, slot: usize) {
        let Some(staging) = &mut self.tasks[slot] else {
            return;
        };
        staging.moving = true;
        let (start, len) = (staging.place, staging.task.len() as usize);
        let task = Task {
            index: slot,
            range: staging.task.range.clone(),
        };
        let window = match staging.window.direction() {
            Direction::Read => {
                // SAFETY: the place is part of a slab, which this lane keeps until its host's lane has handed the window
                // back, and which no other task shares.
                let bytes = unsafe { slice::from_raw_parts_mut(start.cast().as_ptr(), len) };
                Window::Fill(FillWindow::of(bytes))
            }
            Direction::Write => {
                // SAFETY: as above; the device has written all of it, and slabs are zeroed at first.
                let bytes = unsafe { slice::from_raw_parts(start.as_ptr(), len) };
                Window::Drain(bytes)
            }
        };
        self.stages[staging.stage].moving += 1;
        self.host.start(task, window);
        if self.host.finished() > 0 {
            self.hear();
        }
    }

    /// Takes what the host's engine has finished; waits for at least one task if it has any.
    fn hear(&mut self) {
        let mut answers = mem::take(&mut self.answers);
        self.host.poll(&mut answers);
        self.breach |= answers.is_empty();
        for answer in answers.drain(..) {
            self.moved_on_host(answer);
        }
        self.answers = answers;
    }

    fn moved_on_host(&mut self, answer: Completion<'w>) {
        let staging = self.tasks.get_mut(answer.task.index);
        let staging = staging.and_then(Option::as_mut);
        // Anybody may write an engine, and by what this one says memory is copied.
        let Some(staging) = staging.filter(|staging| staging.is_answered_by(&answer)) else {
            self.breach = true;
            return;
        };
        let index = staging.stage;
        let stage = &mut self.stages[index];
        stage.moving -= 1;
        staging.moving = false;
        staging.error = answer.error;
        staging.moved = match answer.window {
            Window::Fill(window) => window.filled(),
            _ => answer.moved,
        };
        match staging.window.direction() {
            Direction::Read => {
                if staging.moved > 0 {
                    stage.copy(staging.place, &staging.window, staging.moved);
                }
                let long = staging.moved >= LONG || stage.tasks.len() >= BATCH;
                if long && self.open == Some(index) {
                    self.open = None;
                }
                self.submit_if_ready(index);
            }
            Direction::Write if stage.moving == 0 => self.release(index),
            Direction::Write => {}
        }
    }

    /// Goes on with the stage whose copies are done.
    fn copied(&mut self, index: usize) {
        self.stages[index].mark = None;
        let tasks = self.stages[index].tasks.clone();
        let writes = tasks.first().and_then(|first| self.tasks[*first].as_ref());
        if !writes.is_some_and(|first| first.window.direction() == Direction::Write) {
            return self.release(index);
        }
        // One more than there are, so that none of them is the last while others are still to be started.
        self.stages[index].moving += 1;
        for slot in tasks {
            while self.host.room() == 0 {
                self.hear();
                if self.breach {
                    return;
                }
            }
            self.move_on_host(slot);
        }
        self.stages[index].moving -= 1;
        if self.stages[index].moving == 0 {
            self.release(index);
        }
    }
}

impl<'w> Lane<'w> for StagedLane<'w> {
    fn engine(&self) -> &'static str {
        self.host.engine()
    }

    fn room(&self) -> usize {
        let fits = |open: usize| self.stages[open].places.has_room_for(self.longest);
        let room = self.host.room() > 0 && (self.idle().is_some() || self.open.is_some_and(fits));
        usize::from(room)
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
        let Some((stage, place)) = self.place(&task) else {
            let why = "a lane was given more than it has room for";
            let error = Some(Error::new(ErrorKind::Internal, Op::Start, why));
            return self.finished.push(Completion {
                task,
                window: Window::Device(window),
                moved: 0,
                error,
            });
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.tasks.push(None);
            self.tasks.len() - 1
        });
        let (direction, len) = (window.direction(), window.len());
        let (index, stage) = (stage, &mut self.stages[stage]);
        stage.tasks.push(slot);
        if direction == Direction::Write {
            stage.copy(place, &window, len);
        }
        let is_due = len >= LONG || stage.tasks.len() >= BATCH;
        self.tasks[slot] = Some(Staging {
            task,
            window,
            stage: index,
            place,
            moving: false,
            moved: 0,
            error: None,
        });
        match direction {
            Direction::Read => self.move_on_host(slot),
            Direction::Write if is_due => self.close(),
            Direction::Write => {}
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        loop {
            while let Some(first) = self.copying.front().copied() {
                // Nothing but copies is left to wait for once nothing else moves. What a network brings takes longer than
                // they do, and the slab that is free when they are done can be filled meanwhile.
                let rest = self.remote || self.host.in_flight() == 0;
                let alone = self.finished.is_empty() && rest && self.open.is_none();
                let is_done = match (&self.stages[first].mark, alone) {
                    (Some(mark), true) => mark.wait().map(|()| true),
                    (Some(mark), false) => mark.is_done(),
                    (None, _) => Ok(true),
                };
                match is_done {
                    Ok(false) => break,
                    Ok(true) => {
                        self.copying.pop_front();
                        self.copied(first);
                    }
                    Err(error) => {
                        self.copying.pop_front();
                        self.stages[first].mark = None;
                        self.fail(first, &error);
                    }
                }
            }
            if self.breach {
                return; // The transfer is told of no task, and says what that means.
            }
            if !self.finished.is_empty() || self.in_flight() == 0 {
                return done.append(&mut self.finished);
            }
            if self.host.in_flight() > 0 {
                self.hear();
            } else if self.open.is_some() {
                self.close();
            } else {
                self.breach = true; // There are tasks, and nobody has them.
            }
        }
    }
}

impl Drop for StagedLane<'_> {
    fn drop(&mut self) {
        // Anybody's code: where it ends by a panic, the slabs are in use all the same.
        let left = panic::catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the lane is being dropped, and nothing uses its host's lane after this.
            unsafe { ManuallyDrop::drop(&mut self.host) }
        }));
        // A stage that is not busy has seen its copies done. What the stream waits for without a copy behind it must not be
        // left to whoever gets the stream next.
        let at_rest = !self.waits && self.stages.iter().all(|stage| !stage.busy);
        let quiet = at_rest || self.stream.is_quiet();
        for stage in self.stages.drain(..) {
            match quiet && left.is_ok() {
                true => drop(stage.slab),
                false => stage.slab.abandon(),
            }
        }
        if quiet {
            // SAFETY: the lane is being dropped, and nothing uses its stream after this.
            unsafe { ManuallyDrop::drop(&mut self.stream) };
        }
        if let Err(why) = left
            && !thread::panicking()
        {
            panic::resume_unwind(why);
        }
    }
}

fn submit(stream: &CopyStream, direction: Direction, copies: &[Copy]) -> Result<Mark> {
    match direction {
        // SAFETY: the device's memory is a window lent to this lane and its host's part of a slab, both kept until the mark
        // is reached or the stream is quiet; neither overlaps another copy.
        Direction::Read => unsafe { stream.batch_to_device(copies) }?,
        // SAFETY: as above.
        Direction::Write => unsafe { stream.batch_to_host(copies) }?,
    }
    stream.mark()
}

// One is filled while the other is copied. With one alone eight threads brought 43 GB/s over a bus of 55, with two 52
// (plain loops on an H200; `kvik bench gpu` measures both).
const STAGES: usize = 2;
// More requests under way bring more over a network; all slabs of the process are shared by 16 threads then.
const STAGES_REMOTE: usize = 4;
// From here on a task is worth a submission of its own.
const LONG: usize = 256 << 10;
// So many copies in one submission cost little each, and the first of them do not wait long for the last.
const BATCH: usize = 256;
