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
}

/// Work that goes through stages, each of which waits for a transfer.
pub(super) trait Work {
    /// A piece on its way.
    type Stage: Stage;
    /// Starts the next piece, if there is one.
    fn begin(&mut self) -> Result<Option<Self::Stage>>;
    /// Takes a stage that is ready to the next one; `None` when its piece is done.
    fn advance(&mut self, stage: Self::Stage) -> Result<Option<Self::Stage>>;
}

/// Something to wait for.
pub(super) trait Stage {
    /// Whether it can be advanced; if not, `context` is woken when asking again makes sense.
    fn ready(&mut self, context: &mut Context<'_>) -> bool;
}

/// Runs `work` with at most `depth` stages at once. On an error, or when somebody asks to stop, what is in flight is
/// cancelled or waited for (dropping a `Pending` does that), so nobody writes to a file any more once this returns.
pub(super) fn drive<W: Work>(mut work: W, depth: usize, stop: &Stop) -> Result<W> {
    let waker = Waker::from(Arc::new(Bell(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut stages: Vec<W::Stage> = Vec::with_capacity(depth);
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
            return Ok(work);
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
pub(super) fn over(pending: &mut Pending<Vec<u8>>, context: &mut Context<'_>) -> bool {
    Pin::new(pending).poll(context).is_ready()
}

/// Copies all pieces and returns how many bytes that were.
pub(super) fn copy(
    source: &FileHandle,
    target: &FileHandle,
    pieces: Pieces,
    load: Load,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<u64> {
    let work = Copying {
        source,
        target,
        pieces,
        spare: Vec::new(),
        size: load.piece,
        progress,
        moved: 0,
    };
    Ok(drive(work, load.depth, stop)?.moved)
}

struct Copying<'a> {
    source: &'a FileHandle,
    target: &'a FileHandle,
    pieces: Pieces,
    spare: Vec<Vec<u8>>,
    size: usize,
    progress: &'a mut Progress,
    moved: u64,
}

enum Moving {
    Reading(Piece, Pending<Vec<u8>>),
    Writing(Piece, Pending<Vec<u8>>),
}

impl Stage for Moving {
    fn ready(&mut self, context: &mut Context<'_>) -> bool {
        let (Moving::Reading(_, pending) | Moving::Writing(_, pending)) = self;
        over(pending, context)
    }
}

impl Work for Copying<'_> {
    type Stage = Moving;

    fn begin(&mut self) -> Result<Option<Moving>> {
        let Some(piece) = self.pieces.next() else {
            return Ok(None);
        };
        let buffer = buffer(&mut self.spare, self.size, piece.len());
        let pending = self.source.submit_read(buffer, piece.range.start);
        Ok(Some(Moving::Reading(piece, pending)))
    }

    fn advance(&mut self, stage: Moving) -> Result<Option<Moving>> {
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
                self.spare.push(buffer);
                self.moved += piece.len() as u64;
                self.progress.advance(piece.len() as u64 + piece.hole);
                Ok(None)
            }
        }
    }
}

/// A buffer of `len` bytes, at most `size`, from the spare ones if there is one.
pub(super) fn buffer(spare: &mut Vec<Vec<u8>>, size: usize, len: usize) -> Vec<u8> {
    let mut buffer = spare.pop().unwrap_or_else(|| vec![0; size]);
    // Shrinking keeps the memory, and growing again clears no more than the tail that a short piece left out.
    buffer.resize(len, 0);
    buffer
}

// How late a Ctrl-C may be noticed; transfers ring the bell themselves.
const PATIENCE: Duration = Duration::from_millis(50);
// Smaller buffers cost more in bookkeeping than they gain; tasks inside a buffer are as small as the setting says.
const SMALLEST: u64 = 1 << 20;
const LARGEST: u64 = 64 << 20;
// Bytes of all buffers together.
const BUDGET: usize = 256 << 20;

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
}
