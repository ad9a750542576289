//! The engine: one for each call, since each call has its own deadline and end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::future::{self, Either};
use kvik_core::corridor::{Engine, Lane};
use kvik_core::{Error, ErrorKind, Op, Result};
use kvik_stats::Backend;
use tokio::sync::watch;

use super::lane::FetchLane;
use super::stretch::Stretch;
use crate::object::Object;
use crate::transport::{Driver, may_drive};

/// Moves the bytes of one call.
pub(crate) struct Fetch {
    pub(super) object: Arc<Object>,
    room: Room,
    deadline: Option<Instant>,
    stopped: watch::Sender<bool>,
    // Lanes that were opened.
    lanes: AtomicUsize,
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
            stopped: watch::Sender::new(false),
            lanes: AtomicUsize::new(0),
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

    /// The outcome of `work`, unless the transfer ends before, or its deadline comes.
    pub(super) async fn until_stopped(&self, work: impl Future<Output = Result<()>>) -> Result<()> {
        let mut stopped = self.stopped.subscribe();
        let stop = async {
            // It fails where there is no engine any more, and this is one.
            let _ = stopped.wait_for(|stopped| *stopped).await;
            ended(ErrorKind::Cancelled, "the transfer ended before it")
        };
        let late = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => future::pending().await,
            }
            ended(ErrorKind::TimedOut, "the deadline of the call passed")
        };
        let (work, stop, late) = (pin!(work), pin!(stop), pin!(late));
        match future::select(work, future::select(stop, late)).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right((end, _)) => Err(end.factor_first().0),
        }
    }
}

fn ended(kind: ErrorKind, why: &'static str) -> Error {
    Error::new(kind, Op::Read, why)
}

impl Engine for Fetch {
    fn backend(&self) -> Backend {
        self.object.origin.backend()
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let driver = Driver::lend()?;
        let number = self.lanes.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(FetchLane::new(self, number, driver)))
    }

    fn scatters(&self) -> bool {
        true
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn works_here(&self) -> bool {
        may_drive()
    }

    fn stop(&self) {
        self.stopped.send_replace(true);
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
