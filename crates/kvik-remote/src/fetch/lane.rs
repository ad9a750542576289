//! One worker's requests: it hears what they bring, and puts the bytes into their windows.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Instant;

use bytes::Bytes;
use kvik_core::corridor::{Completion, FillWindow, Lane, Task, Window};
use kvik_core::{Error, ErrorKind, Op};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use super::engine::Fetch;
use super::requests::{Sink, bring};
use crate::transport::Runtime;

/// What a lane is told.
pub(super) enum Event {
    /// The next bytes of a task, and the room that they take until they are where they belong.
    Bytes(u64, Bytes, OwnedSemaphorePermit),
    /// No more of a task comes.
    End(u64, Result<(), Error>),
    /// The transfer ends: nothing more is wanted.
    Stop,
}

pub(super) struct FetchLane<'w> {
    engine: &'w Fetch,
    runtime: &'static Runtime,
    // By a number that is used once, so that what comes late belongs to nobody.
    under_way: HashMap<u64, Arriving<'w>>,
    next: u64,
    finished: Vec<Completion<'w>>,
    sender: Sender<Event>,
    events: Receiver<Event>,
    // How many bytes may lie between the network and this lane.
    room: Arc<Semaphore>,
}

/// A task of which bytes are to come.
struct Arriving<'w> {
    task: Task,
    window: FillWindow<'w>,
    requests: AbortHandle,
}

impl<'w> FetchLane<'w> {
    pub(super) fn new(engine: &'w Fetch, runtime: &'static Runtime) -> FetchLane<'w> {
        let (sender, events) = mpsc::channel();
        FetchLane {
            engine,
            runtime,
            under_way: HashMap::new(),
            next: 0,
            finished: Vec::new(),
            sender,
            events,
            room: Arc::new(Semaphore::new(AHEAD)),
        }
    }

    pub(super) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// Waits for the next event; an error if the deadline comes first.
    fn next_event(&self) -> Result<Event, Error> {
        // The lane has a sender itself, so that there is one as long as it listens.
        let Some(deadline) = self.engine.deadline else {
            return Ok(self.events.recv().unwrap_or(Event::Stop));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(left) {
            Ok(event) => Ok(event),
            Err(RecvTimeoutError::Disconnected) => Ok(Event::Stop),
            Err(RecvTimeoutError::Timeout) => {
                let why = "the deadline of the call passed";
                Err(Error::new(ErrorKind::TimedOut, Op::Read, why))
            }
        }
    }

    fn heed(&mut self, event: Event) {
        match event {
            Event::Bytes(number, bytes, room) => {
                if let Some(arriving) = self.under_way.get_mut(&number) {
                    let count = arriving.window.put(&bytes);
                    self.engine.object.origin.bytes().add(count as u64);
                    if count < bytes.len() {
                        let why = "more came than was asked for";
                        self.end(number, Some(Error::new(ErrorKind::Internal, Op::Read, why)));
                    }
                }
                drop(room);
            }
            Event::End(number, outcome) => self.end(number, outcome.err()),
            Event::Stop => self.end_all(&cancelled()),
        }
    }

    fn end(&mut self, number: u64, error: Option<Error>) {
        if let Some(arriving) = self.under_way.remove(&number) {
            arriving.requests.abort();
            if error.is_none() {
                self.engine.brought(arriving.window.filled() as u64);
            }
            self.finished
                .push(completion(arriving.task, arriving.window, error));
        }
    }

    fn end_all(&mut self, error: &Error) {
        let numbers: Vec<u64> = self.under_way.keys().copied().collect();
        for number in numbers {
            self.end(number, Some(error.clone()));
        }
    }
}

impl<'w> Lane<'w> for FetchLane<'w> {
    fn engine(&self) -> &'static str {
        self.engine.object.origin.engine()
    }

    fn room(&self) -> usize {
        self.engine.room().saturating_sub(self.in_flight())
    }

    fn in_flight(&self) -> usize {
        self.under_way.len() + self.finished.len()
    }

    fn finished(&self) -> usize {
        self.finished.len()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        let mut window = match window {
            Window::Fill(window) => window,
            window => {
                let why = "a remote object was to be written to, or read by a device";
                let error = Some(Error::new(ErrorKind::Internal, Op::Read, why));
                return self.finished.push(Completion {
                    task,
                    window,
                    moved: 0,
                    error,
                });
            }
        };
        if self.engine.is_stopped() {
            return self
                .finished
                .push(completion(task, window, Some(cancelled())));
        }
        let object = &self.engine.object;
        let end = task.range.end.min(object.len);
        let mut at = task.range.start;
        if at < object.head.len() as u64 {
            let kept = &object.head[at as usize..];
            let kept = &kept[..kept.len().min((end - at) as usize)];
            at += window.put(kept) as u64;
            object.origin.bytes().add(kept.len() as u64);
        }
        if at >= end {
            return self.finished.push(completion(task, window, None));
        }
        let number = self.next;
        self.next += 1;
        let mut outbox = Outbox {
            number,
            sender: self.sender.clone(),
            room: Arc::clone(&self.room),
            told: false,
        };
        let object = Arc::clone(object);
        let requests = self.runtime.spawn(async move {
            let outcome = bring(&object, at..end, &mut outbox).await;
            outbox.tell(outcome);
        });
        let arriving = Arriving {
            task,
            window,
            requests,
        };
        self.under_way.insert(number, arriving);
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        while self.finished.is_empty() && !self.under_way.is_empty() {
            match self.next_event() {
                Ok(event) => self.heed(event),
                Err(error) => self.end_all(&error),
            }
        }
        // What else has come by now.
        while let Ok(event) = self.events.try_recv() {
            self.heed(event);
        }
        done.append(&mut self.finished);
    }
}

impl Drop for FetchLane<'_> {
    fn drop(&mut self) {
        // Nobody else has a window; this only saves the network from what nobody wants.
        for arriving in self.under_way.values() {
            arriving.requests.abort();
        }
    }
}

/// Where the requests of a task put what they bring.
struct Outbox {
    number: u64,
    sender: Sender<Event>,
    room: Arc<Semaphore>,
    told: bool,
}

impl Outbox {
    fn tell(&mut self, outcome: Result<(), Error>) {
        self.told = true;
        // A lane that is gone has no window left.
        let _ = self.sender.send(Event::End(self.number, outcome));
    }
}

impl Sink for Outbox {
    async fn take(&mut self, bytes: Bytes) -> bool {
        let size = bytes.len().clamp(1, AHEAD) as u32;
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(size).await else {
            return false;
        };
        self.sender
            .send(Event::Bytes(self.number, bytes, room))
            .is_ok()
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        if !self.told {
            let why = "what talks to the network has panicked";
            self.tell(Err(Error::new(ErrorKind::Internal, Op::Read, why)));
        }
    }
}

fn completion<'w>(task: Task, window: FillWindow<'w>, error: Option<Error>) -> Completion<'w> {
    Completion {
        moved: window.filled(),
        task,
        window: Window::Fill(window),
        error,
    }
}

fn cancelled() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        Op::Read,
        "the transfer ended before it",
    )
}

// Some answers' worth: the network goes on while this lane copies, and no more memory than this waits for it.
const AHEAD: usize = 8 << 20;
