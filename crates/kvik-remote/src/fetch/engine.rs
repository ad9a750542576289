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

    /// How many requests the lane of this number has under way at a time.
    pub(super) fn room(&self, lane: usize) -> usize {
        match &self.room {
            Room::Fixed(room) => *room,
            Room::Learnt { lanes, .. } => share(self.object.origin.requests(), *lanes, lane),
        }
    }

    /// A task is over that brought so many bytes.
    pub(super) fn brought(&self, bytes: u64) {
        let Room::Learnt { lanes, stretch } = &self.room else {
            return;
        };
        if let Some((requests, bytes, time)) = stretch.add(bytes, Instant::now()) {
            let requests = self.object.origin.learn(requests, bytes, time);
            // Each lane has one at least, and what they bring is not that of fewer.
            stretch.begin(requests.max(*lanes));
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
        let runtime = runtime()?;
        let mut lanes = self.lanes();
        let lane = FetchLane::new(self, lanes.len(), runtime);
        lanes.push(lane.sender());
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

/// How many of `requests` are those of a lane, the `lane`th of `lanes`, so that together they are all; each has one at least.
fn share(requests: usize, lanes: usize, lane: usize) -> usize {
    let has_more = lane % lanes < requests % lanes;
    (requests / lanes + usize::from(has_more)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_together_have_as_many_requests_under_way_as_are_learnt_from() {
        for lanes in 1..40 {
            for requests in 1..200 {
                let shares: Vec<_> = (0..lanes)
                    .map(|lane| share(requests, lanes, lane))
                    .collect();
                let all: usize = shares.iter().sum();
                assert_eq!(all, requests.max(lanes), "{requests} of {lanes} lanes");
                let (least, most) = (shares.iter().min(), shares.iter().max());
                assert!(most.unwrap() - least.unwrap() <= 1, "{shares:?}");
            }
        }
    }
}
