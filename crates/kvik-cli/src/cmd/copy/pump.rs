//! The pump: a bounded number of buffers, each filled, emptied and filled again, until all pieces are done.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use kvik::config::Config;
use kvik::{FileHandle, Pending};

use crate::failure::Result;
use crate::progress::Progress;
use crate::stop::{Stop, stopped};

use super::medium::Medium;
use super::pieces::{Piece, Pieces};
use super::snapshot;

/// How much is in flight at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// Bytes of a buffer.
    pub(super) piece: usize,
    /// Number of buffers.
    pub(super) depth: usize,
}

impl Load {
    /// A task a buffer and two buffers a thread, so that a thread that is done finds the next one waiting.
    pub(super) fn from(config: &Config) -> Result<Self> {
        let threads = config.num_threads()?;
        let task = config.task_size()?.bytes();
        let piece = task.clamp(SMALLEST, LARGEST).next_multiple_of(4096) as usize;
        let depth = threads.saturating_mul(2).min(BUDGET / piece).max(2);
        Ok(Load { piece, depth })
    }

    /// The same for pieces that come over a network, of which more have to be under way, within the same budget.
    pub(super) fn of_requests(config: &Config) -> Result<Self> {
        let Load { piece, depth } = Load::from(config)?;
        let depth = depth.max(REQUESTS).min(BUDGET / piece).max(2);
        Ok(Load { piece, depth })
    }
}

/// Work that goes through stages, each of which waits for a transfer.
pub(super) trait Work {
    /// A piece on its way.
    type Stage: Stage;
    /// Starts the next piece, if there is one.
    fn begin(&mut self) -> Result<Option<Self::Stage>>;
    /// Takes a stage that is ready to the next one; `None` when its piece is done.
    fn advance(&mut self, stage: Self::Stage) -> Result<Option<Self::Stage>>;
    /// What there is to do while all stages wait.
    fn pause(&mut self) -> Result<()> {
        Ok(())
    }
    /// Takes leave of a stage, after an error or when somebody asks to stop: it is cancelled or waited for (dropping a
    /// `Pending` does that).
    fn abandon(&mut self, stage: Self::Stage) {
        drop(stage);
    }
}

/// Something to wait for.
pub(super) trait Stage {
    /// Whether it can be advanced; if not, `context` is woken when asking again makes sense.
    fn ready(&mut self, context: &mut Context<'_>) -> bool;
}

/// Runs `work` with at most `depth` stages at once. On an error, or when somebody asks to stop, what is in flight is
/// abandoned, so nobody writes to a file any more once this returns.
pub(super) fn drive<W: Work>(mut work: W, depth: usize, stop: &Stop) -> Result<W> {
    let mut stages: Vec<W::Stage> = Vec::with_capacity(depth);
    match run(&mut work, &mut stages, depth, stop) {
        Ok(()) => Ok(work),
        Err(failure) => {
            for stage in stages {
                work.abandon(stage);
            }
            Err(failure)
        }
    }
}

fn run<W: Work>(work: &mut W, stages: &mut Vec<W::Stage>, depth: usize, stop: &Stop) -> Result<()> {
    let waker = Waker::from(Arc::new(Bell(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut more = true;
    loop {
        interrupted(stop)?;
        while more && stages.len() < depth {
            match work.begin()? {
                Some(stage) => stages.push(stage),
                None => more = false,
            }
        }
        if stages.is_empty() {
            return Ok(());
        }
        let mut idle = true;
        let mut index = 0;
        while index < stages.len() {
            if stages[index].ready(&mut context) {
                idle = false;
                let stage = stages.swap_remove(index);
                stages.extend(work.advance(stage)?);
            } else {
                index += 1;
            }
        }
        if idle {
            work.pause()?;
            thread::park_timeout(PATIENCE);
        }
    }
}

/// Fails once somebody asked to stop.
pub(super) fn interrupted(stop: &Stop) -> Result<()> {
    match stop.requested() {
        None => Ok(()),
        Some(exit) => Err(stopped("copy", exit)),
    }
}

/// Wakes the one thread that waits.
struct Bell(Thread);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Whether a transfer is over.
pub(super) fn over<B>(pending: &mut Pending<B>, context: &mut Context<'_>) -> bool
where
    Pending<B>: Future + Unpin,
{
    Pin::new(pending).poll(context).is_ready()
}

/// Copies all pieces through this memory and returns how many bytes that were.
pub(super) fn copy(
    (source, target): (&FileHandle, &FileHandle),
    medium: impl Medium,
    pieces: Pieces,
    depth: usize,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<u64> {
    let work = Copying {
        source,
        target,
        pieces,
        medium,
        progress,
        moved: 0,
    };
    Ok(drive(work, depth, stop)?.moved)
}

struct Copying<'a, M> {
    source: &'a FileHandle,
    target: &'a FileHandle,
    pieces: Pieces,
    medium: M,
    progress: &'a mut Progress,
    moved: u64,
}

enum Moving<B> {
    Reading(Piece, Pending<B>),
    Writing(Piece, Pending<B>),
}

impl<B: Unpin + Send + 'static> Stage for Moving<B> {
    fn ready(&mut self, context: &mut Context<'_>) -> bool {
        let (Moving::Reading(_, pending) | Moving::Writing(_, pending)) = self;
        over(pending, context)
    }
}

impl<M: Medium> Work for Copying<'_, M> {
    type Stage = Moving<M::Buffer>;

    fn begin(&mut self) -> Result<Option<Self::Stage>> {
        let Some(piece) = self.pieces.next() else {
            return Ok(None);
        };
        let buffer = self.medium.take(piece.len())?;
        let pending = self.source.submit_read(buffer, piece.range.start);
        Ok(Some(Moving::Reading(piece, pending)))
    }

    fn advance(&mut self, stage: Self::Stage) -> Result<Option<Self::Stage>> {
        match stage {
            Moving::Reading(piece, pending) => {
                let (read, buffer) = pending.finish();
                if read? < piece.len() {
                    return Err(snapshot::changed(
                        self.source.path(),
                        "it became shorter while it was copied",
                    ));
                }
                let pending = self.target.submit_write(buffer, piece.range.start);
                Ok(Some(Moving::Writing(piece, pending)))
            }
            Moving::Writing(piece, pending) => {
                let (written, buffer) = pending.finish();
                written?;
                self.medium.give_back(buffer);
                self.moved += piece.len() as u64;
                self.progress.advance(piece.len() as u64 + piece.hole);
                Ok(None)
            }
        }
    }
}

// How late a Ctrl-C may be noticed; transfers ring the bell themselves.
const PATIENCE: Duration = Duration::from_millis(50);
// Smaller buffers cost more in bookkeeping than they gain; tasks inside a buffer are as small as the setting says.
const SMALLEST: u64 = 1 << 20;
pub(super) const LARGEST: u64 = 64 << 20;
// Bytes of all buffers together.
pub(super) const BUDGET: usize = 256 << 20;
// As many as a read of one piece after another would have under way.
const REQUESTS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use kvik::config::{ByteSize, Layer};

    #[track_caller]
    fn check(threads: usize, task: u64, piece: usize, depth: usize) {
        let layer = Layer::new()
            .num_threads(threads)
            .task_size(ByteSize::new(task));
        let config = Config::resolve([layer]).unwrap();
        assert_eq!(Load::from(&config).unwrap(), Load { piece, depth });
    }

    #[test]
    fn the_load_follows_the_settings_within_a_budget() {
        check(4, 4 << 20, 4 << 20, 8);
        check(1, 4096, 1 << 20, 2);
        check(2, 5_000_001, 5_001_216, 4);
        check(256, 4 << 20, 4 << 20, 64);
        check(8, 1 << 40, 64 << 20, 4);
    }

    #[test]
    fn more_pieces_of_a_network_are_under_way_and_all_of_them_stay_within_the_budget() {
        for (threads, task, depth) in [(1, 4 << 20, 16), (32, 4 << 20, 64), (8, 64 << 20, 4)] {
            let layer = Layer::new()
                .num_threads(threads)
                .task_size(ByteSize::new(task));
            let load = Load::of_requests(&Config::resolve([layer]).unwrap()).unwrap();
            assert_eq!(load.depth, depth, "{threads} threads, {task} bytes");
        }
    }
}
