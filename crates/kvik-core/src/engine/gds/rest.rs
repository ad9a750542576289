//! What cuFile did not carry out of a task, by slabs.

use kvik_stats::Direction;

use super::GdsLane;
use crate::corridor::{Completion, DeviceWindow, Lane, Task, Window};
use crate::engine::Engine;
use crate::engine::staged::Staged;
use crate::error::{Error, ErrorKind, Op, Result};

impl<'w> GdsLane<'w> {
    /// Moves what lies behind the first `from` bytes of a window; returns how many bytes that were, in one piece, and what stopped
    /// it.
    pub(super) fn stage_rest(
        &mut self,
        staged: &'w Staged,
        window: &DeviceWindow<'_>,
        offset: u64,
        from: usize,
    ) -> (usize, Option<Error>) {
        let engine = self.engine;
        let lane = match &mut self.staged {
            Some(lane) => lane,
            none => match staged.lane() {
                Ok(lane) => none.insert(lane),
                Err(error) => return (0, Some(error)),
            },
        };
        // Behind the wait for a slab: who waits for this has one.
        let _apart = engine.apart(window, offset);
        let mut rest = Rest {
            window,
            offset,
            at: from,
            longest: usize::try_from(staged.largest()).unwrap_or(usize::MAX),
            pieces: Vec::new(),
            ends: false,
        };
        match rest.run(&mut **lane) {
            Ok(()) => rest.outcome(),
            Err(error) => {
                // It waits for what it has in flight, and is not used again.
                self.staged = None;
                (0, Some(error))
            }
        }
    }
}

/// The pieces of a window on their way through slabs.
struct Rest<'a, 'm> {
    window: &'a DeviceWindow<'m>,
    offset: u64,
    /// How far pieces were started.
    at: usize,
    longest: usize,
    pieces: Vec<Piece>,
    /// Whether a piece failed or met the end: none is started behind it.
    ends: bool,
}

struct Piece {
    len: usize,
    moved: usize,
    error: Option<Error>,
}

impl Rest<'_, '_> {
    /// # Errors
    /// The lane has lost a piece, so that nothing is known of any.
    fn run<'w>(&mut self, lane: &mut (dyn Lane<'w> + 'w)) -> Result<()> {
        let mut done = Vec::new();
        loop {
            while !self.ends && self.at < self.window.len() && lane.room() > 0 {
                let (task, piece) = self.next();
                lane.start(task, Window::Device(piece));
            }
            if lane.in_flight() == 0 {
                return Ok(());
            }
            lane.poll(&mut done);
            if done.is_empty() {
                let why = "the engine that stages lost a piece";
                return Err(Error::new(ErrorKind::Internal, Op::Copy, why));
            }
            done.drain(..).for_each(|completion| self.take(completion));
        }
    }

    fn next(&mut self) -> (Task, DeviceWindow<'static>) {
        let (window, at) = (self.window, self.at);
        let len = (window.len() - at).min(self.longest);
        let (address, end) = (window.address() + at as u64, window.allocation_end());
        let start = self.offset + at as u64;
        let task = Task {
            index: self.pieces.len(),
            range: start..start + len as u64,
        };
        self.at += len;
        self.pieces.push(Piece {
            len,
            moved: 0,
            error: None,
        });
        (
            task,
            DeviceWindow::new(address, len, end, window.direction()),
        )
    }

    fn take(&mut self, completion: Completion<'_>) {
        let Some(piece) = self.pieces.get_mut(completion.task.index) else {
            return;
        };
        piece.moved = match self.window.direction() {
            Direction::Read => completion.window.filled(),
            Direction::Write => completion.moved,
        };
        piece.error = completion.error;
        self.ends |= piece.error.is_some() || piece.moved < piece.len;
    }

    /// How far the pieces reach without a gap, and what stopped them there.
    fn outcome(self) -> (usize, Option<Error>) {
        let mut moved = 0;
        for piece in self.pieces {
            moved += piece.moved;
            if piece.error.is_some() || piece.moved < piece.len {
                return (moved, piece.error);
            }
        }
        (moved, None)
    }
}
