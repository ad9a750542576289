//! The engine with a queue in the kernel: io_uring, through the page cache or past it.
//!
//! One worker keeps up to [`DEPTH`](ring::DEPTH) requests in flight: many small tasks, or one large task in pieces of
//! [`PIECE`](cut::PIECE). Each thread has one ring, kept from lane to lane.
//!
//! Past the page cache, memory and ranges that are aligned are read and written in place. Others pass through scratch
//! slots of the lane; the edges of a write that are no whole pages are written through the page cache, after the rest.
//! Where the kernel refuses direct I/O, or a slot is not to be had, the error says so ([`Error::is_refusal`]); what then is
//! decided elsewhere (`or_else.rs`, `direct/lane.rs`).
//!
//! Buffers and files are not registered with the ring: it brought nothing that could be measured (docs/src/design.md).

mod cut;
mod job;
mod lane;
mod outcome;
mod queue;
mod ring;
mod slots;

use std::fs::File;
use std::sync::Arc;

use kvik_config::ByteSize;
use kvik_stats::{Backend, Direction};
use nix::errno::Errno;

use super::direct::Edges;
use super::direct::end;
use super::direct::split::{Alignment, Piece};
use super::{Engine, Lane};
use crate::error::{Error, Op, Result};
use cut::{LARGE_SLOT, LIMITS, Rule, SMALL_SLOT};
use ring::Ring;

pub(crate) use cut::PIECE;
pub(crate) use lane::UringLane;

/// Reads and writes of one file by io_uring.
#[derive(Debug)]
pub(crate) struct Uring {
    buffered: Arc<File>,
    direct: Option<Unbuffered>,
}

/// The way past the page cache.
#[derive(Debug)]
struct Unbuffered {
    file: Arc<File>,
    alignment: Alignment,
    edges: Edges,
    // For all slots of one size.
    bounce_buffer_size: ByteSize,
}

impl Uring {
    /// Through the page cache.
    pub(crate) fn buffered(file: Arc<File>) -> Uring {
        Uring {
            buffered: file,
            direct: None,
        }
    }

    /// Past the page cache by `direct`, which is the same file opened with `O_DIRECT`, with scratch slots that keep to the
    /// setting `bounce_buffer_size`.
    ///
    /// `None` where the file asks for an alignment that slots do not have, or where the setting leaves no room for one.
    pub(crate) fn direct(
        buffered: Arc<File>,
        (direct, alignment): (Arc<File>, Alignment),
        edges: Edges,
        bounce_buffer_size: ByteSize,
    ) -> Option<Uring> {
        let fits = |unit: u64, most: u64| unit.is_power_of_two() && unit <= most;
        let all = fits(alignment.memory, slots::ALIGNMENT as u64)
            && fits(alignment.read, SMALL_SLOT)
            && fits(alignment.write, SMALL_SLOT)
            && bounce_buffer_size.bytes() >= LARGE_SLOT;
        all.then(|| Uring {
            buffered,
            direct: Some(Unbuffered {
                file: direct,
                alignment,
                edges,
                bounce_buffer_size,
            }),
        })
    }

    /// Opens a lane on this thread's ring.
    ///
    /// # Errors
    /// The thread can have no ring (see [`Ring::of_this_thread`]), or the file does not tell where it ends.
    pub(crate) fn open_lane(&self) -> Result<UringLane<'_>> {
        let file_end = match &self.direct {
            Some(direct) => end(&direct.file)?,
            None => u64::MAX,
        };
        let ring = Ring::of_this_thread().map_err(|errno| Error::os(Op::Start, errno))?;
        Ok(UringLane::new(self, ring, file_end))
    }

    /// The descriptor for a piece.
    fn file_for(&self, piece: &Piece) -> &File {
        match (piece, &self.direct) {
            (Piece::InPlace(_) | Piece::Through { .. }, Some(direct)) => &direct.file,
            _ => &self.buffered,
        }
    }

    /// What holds for tasks in this direction, in a file that ends at `file_end`.
    fn rule(&self, direction: Direction, file_end: u64) -> Rule {
        let Some(Unbuffered {
            alignment, edges, ..
        }) = &self.direct
        else {
            return Rule::Buffered;
        };
        Rule::Direct {
            rules: match direction {
                Direction::Read => alignment.reads(*edges, LIMITS, file_end),
                Direction::Write => alignment.writes(LIMITS),
            },
            boundary: alignment.boundary,
        }
    }

    fn bounce_buffer_size(&self) -> ByteSize {
        // Through the page cache no slot is ever asked for.
        let direct = self.direct.as_ref();
        direct.map_or(ByteSize::new(0), |direct| direct.bounce_buffer_size)
    }
}

impl Engine for Uring {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        Ok(Box::new(self.open_lane()?))
    }
}

/// Whether this thread can have a ring. The one that is made stays with the thread.
///
/// # Errors
/// Why not: see [`Ring::of_this_thread`].
pub(crate) fn probe() -> Result<(), Errno> {
    Ring::of_this_thread().map(Ring::give_back)
}

#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod tests;
