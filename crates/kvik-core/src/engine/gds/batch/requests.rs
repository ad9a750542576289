//! What the lane asks of cuFile, so that tests can answer in its place.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kvik_stats::{Direction, names};
use kvik_sys::{
    BatchEvent, BatchRequest, BatchState, CallError, CuFileFailure, CuFileStatus, DevicePtr,
};

use crate::corridor::DeviceWindow;
use crate::device;
use crate::engine::gds::{Gds, GdsLane};
use crate::error::{Error, Op, Result};
use crate::gds::RequestQueue;

/// A part of a window, to be moved in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) direction: Direction,
    /// Where the allocation starts, and where in it the bytes are.
    pub(super) base: u64,
    pub(super) behind: u64,
    pub(super) len: usize,
    /// Where the bytes are in the file.
    pub(super) offset: u64,
    /// Comes back with the answer.
    pub(super) cookie: usize,
}

/// The answer to one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) cookie: usize,
    pub(super) outcome: Result<usize, CuFileFailure>,
}

/// What has become of a submission.
pub(super) enum Submitted {
    /// All of it is in flight.
    All,
    /// Nothing, and there is no room for batches any more.
    None,
    /// Nobody knows, nor ever will; for this reason.
    Perhaps(String),
}

/// cuFile, for one lane.
pub(super) trait Requests {
    /// How many requests are taken at once; 0 if none are, ever again.
    fn room(&self) -> usize;

    /// Where the allocation of a window starts.
    fn base(&self, window: &DeviceWindow<'_>) -> Result<u64>;

    /// How many bytes of a window that begins at `offset` are to be asked for behind the first `moved`.
    fn left(&self, window: &DeviceWindow<'_>, offset: u64, moved: usize) -> Result<usize>;

    /// Submits requests, no more than there is room for, while none is in flight.
    fn submit(&mut self, requests: &[Request]) -> Submitted;

    /// Adds answers to `events`; waits for one, for `limit` at most. An error is why there will be no more.
    fn collect(&mut self, limit: Duration, events: &mut Vec<Event>) -> Result<(), String>;

    /// Counts one request that was in flight as answered.
    fn answered(&mut self);

    /// Asks for what is in flight to be left undone; adds the answers that come at once to `events`.
    fn cancel(&mut self, events: &mut Vec<Event>);

    /// Lets what is in flight be, for ever. There is no room any more.
    fn give_up(&mut self);

    /// Whether what failed is to be asked anew; the error if not.
    fn retry(&self, op: Op, failure: CuFileFailure) -> Result<()>;

    /// Whether another way is open for what cuFile fails at, which [`move_alone`](Requests::move_alone) takes then.
    fn has_another_way(&self) -> bool;

    /// Notes that requests go alone which should go together, and why.
    fn give_way(&self, why: &dyn fmt::Display);

    /// Moves the rest of a window behind the first `moved` bytes by calls of its own; returns how many bytes of the window are
    /// moved then.
    fn move_alone(
        &mut self,
        window: &DeviceWindow<'_>,
        offset: u64,
        moved: usize,
    ) -> (usize, Option<Error>);
}

/// The real one.
pub(super) struct CuFileRequests<'w> {
    gds: &'w Gds,
    queue: Option<RequestQueue>,
    alone: GdsLane<'w>,
    gave_way: &'w AtomicBool,
}

impl<'w> CuFileRequests<'w> {
    /// Room for `most` requests, or for none if cuFile has no batch to spare: single calls then do.
    ///
    /// # Errors
    /// As for a lane of single calls.
    pub(super) fn new(
        gds: &'w Gds,
        most: u32,
        gave_way: &'w AtomicBool,
    ) -> Result<CuFileRequests<'w>> {
        let mut requests = CuFileRequests {
            gds,
            queue: None,
            alone: GdsLane::new(gds)?,
            gave_way,
        };
        match RequestQueue::set_up(&gds.file, most) {
            Ok(queue) => requests.queue = Some(queue),
            Err(why) => requests.give_way(&why),
        }
        Ok(requests)
    }
}

impl Requests for CuFileRequests<'_> {
    fn room(&self) -> usize {
        self.queue.as_ref().map_or(0, RequestQueue::room)
    }

    fn base(&self, window: &DeviceWindow<'_>) -> Result<u64> {
        device::allocation_start(window.address())
    }

    fn left(&self, window: &DeviceWindow<'_>, offset: u64, moved: usize) -> Result<usize> {
        self.gds.left(window, offset, moved)
    }

    fn submit(&mut self, requests: &[Request]) -> Submitted {
        if self.gds.is_given_up() {
            // None is in flight.
            self.queue = None;
        }
        let Some(queue) = &mut self.queue else {
            return Submitted::None;
        };
        let handle = self.gds.file.handle();
        let requests = requests.iter().map(|request| {
            // Neither an offset in a file that was planned nor one in memory that is there exceeds these.
            let (at, behind) = (request.offset.cast_signed(), request.behind.cast_signed());
            let base = DevicePtr::new(request.base);
            let make = match request.direction {
                Direction::Read => BatchRequest::read,
                Direction::Write => BatchRequest::write,
            };
            make(handle, base, request.len, at, behind, request.cookie)
        });
        // SAFETY: the lane submits when nothing is in flight. Requests are parts of its windows, which it has exclusively and
        // hands back when the event has come, or as memory that must stay for ever.
        match unsafe { queue.submit(requests) } {
            Ok(()) => Submitted::All,
            Err(why) if is_refusal(&why) => {
                queue.refused();
                if lasts(&why) {
                    self.gds.file.refuses_batches();
                }
                self.queue = None;
                self.give_way(&why);
                Submitted::None
            }
            Err(why) => {
                // It has requests in flight, for all that anybody knows, and stays.
                self.queue = None;
                Submitted::Perhaps(format!("cuFileBatchIOSubmit: {why}"))
            }
        }
    }

    fn collect(&mut self, limit: Duration, events: &mut Vec<Event>) -> Result<(), String> {
        let Some(queue) = &mut self.queue else {
            return Err("there is no batch".to_owned());
        };
        let collected = queue.collect(limit);
        let collected = collected.map_err(|why| format!("cuFileBatchIOGetStatus: {why}"))?;
        events.extend(collected.iter().filter_map(event));
        Ok(())
    }

    fn answered(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.answered();
        }
    }

    fn cancel(&mut self, events: &mut Vec<Event>) {
        if let Some(queue) = &self.queue {
            queue.cancel();
            // Whatever comes of it, this was the last attempt.
            let _ = self.collect(LAST_MOMENT, events);
        }
    }

    fn give_up(&mut self) {
        self.queue = None;
    }

    fn retry(&self, op: Op, failure: CuFileFailure) -> Result<()> {
        self.gds.retry(op, failure)
    }

    fn has_another_way(&self) -> bool {
        self.gds.gives_way()
    }

    fn give_way(&self, why: &dyn fmt::Display) {
        if !self.gave_way.swap(true, Ordering::Relaxed) {
            names::FALLBACKS.increment();
            names::FALLBACKS_OF_CUFILE_BATCH.increment();
            tracing::debug!(%why, "cuFile does not take a batch; requests go to it alone");
        }
    }

    fn move_alone(
        &mut self,
        window: &DeviceWindow<'_>,
        offset: u64,
        moved: usize,
    ) -> (usize, Option<Error>) {
        self.alone.move_rest(window, offset, moved)
    }
}

/// What an event says of its request, if that has ended.
fn event(event: &BatchEvent) -> Option<Event> {
    let ended = |outcome| {
        Some(Event {
            cookie: event.cookie(),
            outcome,
        })
    };
    match event.state() {
        BatchState::WAITING | BatchState::PENDING => None,
        BatchState::COMPLETE => ended(event.count()),
        BatchState::CANCELED => ended(Err(CuFileFailure::System(Some(libc::ECANCELED)))),
        BatchState::TIMEOUT => ended(Err(CuFileFailure::System(Some(libc::ETIMEDOUT)))),
        // Of one that failed, a count is no count.
        _ => ended(Err(event
            .count()
            .err()
            .unwrap_or(CuFileFailure::System(None)))),
    }
}

/// Whether a submission that failed so was not begun: for want of room, or for the sake of the file, which is that of the first
/// request as of all others. Of anything else it is not known which request it was that failed.
fn is_refusal(why: &CallError<CuFileStatus>) -> bool {
    match why {
        CallError::Unsupported(_) => true,
        CallError::Status(status) => REFUSALS.contains(&status.op),
    }
}

/// Whether such a refusal comes again with every batch of the file. A batch that is full will not stay so.
fn lasts(why: &CallError<CuFileStatus>) -> bool {
    !matches!(why, CallError::Status(status) if status.op == BATCH_FULL)
}

// CU_FILE_BATCH_FULL, and CU_FILE_BATCH_NOCOMPAT_ERROR: there are no batches without a direct path.
const REFUSALS: [i32; 3] = [CuFileStatus::IO_NOT_SUPPORTED, BATCH_FULL, 5049];
const BATCH_FULL: i32 = 5037;
const LAST_MOMENT: Duration = Duration::from_secs(1);
