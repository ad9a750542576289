//! The engine: one for each call, since each call has its own deadline and end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
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
        Backend::RemoteHttp
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        Ok(Box::new(FetchLane::new(self, Driver::lend()?)))
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
