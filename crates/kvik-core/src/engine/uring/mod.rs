//! The engine with a queue in the kernel: io_uring, through the page cache or past it.
//!
//! One worker keeps up to [`DEPTH`](ring::DEPTH) requests in flight: many small tasks, or one large task in pieces of
//! [`PIECE`](cut::PIECE). Each thread has one ring, kept from lane to lane.
//!
//! Past the page cache, memory and ranges that are aligned are read and written in place. Others pass through scratch
//! slots of the ring; the edges of a write that are no whole blocks are written through the page cache, after the rest.
//! Where the kernel refuses direct I/O the error says so ([`Error::is_refusal`]); what then is decided elsewhere
//! (`or_else.rs`).
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
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::Arc;

use kvik_stats::{Backend, Direction};
use nix::errno::Errno;

use super::{Engine, Lane};
use crate::error::{Error, Op, Result};
use crate::os;
pub(crate) use cut::Alignment;
use cut::{Rule, SMALL_SLOT, down};
use lane::UringLane;
use ring::Ring;

/// Reads and writes of one file by io_uring.
#[derive(Debug)]
pub(crate) struct Uring {
    buffered: Arc<File>,
    direct: Option<(Arc<File>, Alignment)>,
}

impl Uring {
    /// Through the page cache.
    pub(crate) fn buffered(file: Arc<File>) -> Uring {
        Uring {
            buffered: file,
            direct: None,
        }
    }

    /// Past the page cache by `direct`, which is the same file opened with `O_DIRECT`.
    ///
    /// `None` where the file asks for an alignment that the scratch slots do not have.
    #[allow(dead_code, reason = "the direct engine hands out the descriptor")]
    pub(crate) fn direct(
        buffered: Arc<File>,
        direct: Arc<File>,
        alignment: Alignment,
    ) -> Option<Uring> {
        let Alignment {
            memory,
            read,
            write,
        } = alignment;
        let fits = |unit: u64, most: u64| unit.is_power_of_two() && unit <= most;
        let all = fits(memory, slots::ALIGNMENT as u64)
            && fits(read, SMALL_SLOT)
            && fits(write, SMALL_SLOT);
        all.then(|| Uring {
            buffered,
            direct: Some((
                direct,
                Alignment {
                    write: write.max(os::page_size()),
                    ..alignment
                },
            )),
        })
    }

    /// The descriptor for pieces under this rule.
    fn file_for(&self, rule: Rule) -> &File {
        match (rule, &self.direct) {
            (Rule::Direct { .. }, Some((direct, _))) => direct,
            _ => &self.buffered,
        }
    }

    /// What holds for tasks in this direction; `whole` is up to where reads may go in place.
    fn rule(&self, direction: Direction, whole: u64) -> Rule {
        let Some((_, alignment)) = &self.direct else {
            return Rule::Buffered;
        };
        match direction {
            Direction::Read => Rule::Direct {
                memory: alignment.memory,
                block: alignment.read,
                whole,
            },
            Direction::Write => Rule::Direct {
                memory: alignment.memory,
                block: alignment.write,
                whole: u64::MAX,
            },
        }
    }

    /// Where the last whole block of the data ends.
    fn whole(&self) -> Result<u64, Errno> {
        let Some((direct, alignment)) = &self.direct else {
            return Ok(u64::MAX);
        };
        let metadata = direct
            .metadata()
            .map_err(|cause| cause.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
        // A block device is made of whole blocks, and its metadata says 0.
        match metadata.file_type().is_block_device() {
            true => Ok(u64::MAX),
            false => Ok(down(metadata.size(), alignment.read)),
        }
    }
}

impl Engine for Uring {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let lane = Ring::of_this_thread()
            .and_then(|ring| Ok(UringLane::new(self, ring, self.whole()?)))
            .map_err(|errno| Error::os(Op::Start, errno))?;
        Ok(Box::new(lane))
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
