//! The engine: one for each call, since each call has its own deadline and end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use kvik_core::Result;
use kvik_core::corridor::{Engine, Lane};
use kvik_stats::Backend;

use super::lane::{Event, FetchLane};
use super::stretch::Stretch;
use crate::object::Object;
use crate::transport::runtime;

/// Moves the bytes of one call.
pub(crate) struct Fetch {
    pub(super) object: Arc<Object>,
    room: Room,
    pub(super) deadline: Option<Instant>,
    stopped: AtomicBool,
    lanes: Mutex<Vec<Sender<Event>>>,
}

/// How many requests a lane has under way at a time.
#[derive(Debug)]
pub(crate) enum Room {
    /// As many as somebody said.
    Fixed(usize),
    /// Its share of what was learnt, and is learnt from what it brings.
    Learnt { lanes: usize, stretch: Stretch },
}

impl Fetch {
    pub(crate) fn new(object: Arc<Object>, room: Room, deadline: Option<Instant>) -> Fetch {
        Fetch {
            object,
            room,
            deadline,
            stopped: AtomicBool::new(false),
            lanes: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn room(&self) -> usize {
        match &self.room {
            Room::Fixed(room) => *room,
            Room::Learnt { lanes, .. } => self.object.origin.requests() / lanes,
        }
        .max(1)
    }

    /// A task is over that brought so many bytes.
    pub(super) fn brought(&self, bytes: u64) {
        let Room::Learnt { stretch, .. } = &self.room else {
            return;
        };
        if let Some((requests, bytes, time)) = stretch.add(bytes, Instant::now()) {
            stretch.begin(self.object.origin.learn(requests, bytes, time));
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn lanes(&self) -> std::sync::MutexGuard<'_, Vec<Sender<Event>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Fetch {
    fn backend(&self) -> Backend {
        self.object.origin.backend()
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let lane = FetchLane::new(self, runtime()?);
        self.lanes().push(lane.sender());
        Ok(Box::new(lane))
    }

    fn scatters(&self) -> bool {
        true
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        for lane in self.lanes().iter() {
            // One that is not there any more has nothing under way.
            let _ = lane.send(Event::Stop);
        }
    }
}
