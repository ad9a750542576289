//! The engine: one for each call, since each call has its own deadline and end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use kvik_core::Result;
use kvik_core::corridor::{Engine, Lane};
use kvik_stats::Backend;

use super::lane::{Event, FetchLane};
use crate::object::Object;
use crate::transport::runtime;

/// Moves the bytes of one call.
pub(crate) struct Fetch {
    pub(super) object: Arc<Object>,
    // How many requests a lane has under way at a time.
    pub(super) room: usize,
    pub(super) deadline: Option<Instant>,
    stopped: AtomicBool,
    lanes: Mutex<Vec<Sender<Event>>>,
}

impl Fetch {
    pub(crate) fn new(object: Arc<Object>, room: usize, deadline: Option<Instant>) -> Fetch {
        Fetch {
            object,
            room: room.max(1),
            deadline,
            stopped: AtomicBool::new(false),
            lanes: Mutex::new(Vec::new()),
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
        Backend::RemoteHttp
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
