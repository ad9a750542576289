//! The engine that goes past the page cache (`O_DIRECT`), cut to what the file asks for.
//!
//! Where memory and file are aligned alike, the device fills the target itself; else the bytes go through an aligned
//! scratch that stays in the processor's cache. Nothing outside the window is touched: what is read too much is dropped
//! in the scratch, and what a write has too little for a page goes through the page cache.
//!
//! Many requests are in flight by the ring of the thread ([`Uring`]), where it may have one; else, and for a short task that
//! comes alone, a task is a row of blocking calls. Both are cut by split.rs.
//!
//! A refusal (`EINVAL`) ends direct I/O for the handle and all its clones, and the page cache serves; for a direction in
//! which the caller insists it is an error.

mod file;
mod lane;
mod scratch;
pub(crate) mod split;
mod wish;

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kvik_config::{ByteSize, Config};
use kvik_stats::{Backend, names};
use nix::errno::Errno;
use nix::poll::PollFlags;

use super::posix::{self, retry};
use super::uring::Uring;
use super::{Completion, Engine, Lane, blocking};
use crate::copy;
use crate::corridor::{FillWindow, Task, Window};
use crate::error::{Error, Op, Result};
use crate::once::Once;
use crate::os::{self, Resource};
use file::Direct;
use lane::DirectLane;
use scratch::with_scratch;
use split::{Limits, Piece, WriteParts, first_piece, write_parts};

pub(crate) use file::{DirectFile, end};
pub(crate) use split::Edges;
pub(crate) use wish::Wish;

/// Direct reads and writes of one file, as far as the wish for each direction goes.
#[derive(Debug)]
pub(crate) struct DirectEngine {
    file: Arc<DirectFile>,
    read: Wish,
    write: Wish,
    edges: Edges,
    // The setting `bounce_buffer_size`.
    bounce_buffer_size: ByteSize,
    // The same file by rings; `None` where it asks for what rings do not have. Made when a lane has use for it.
    uring: Once<Option<Uring>>,
    // Set once, and then for good: who is refused a ring is not asked again and again.
    ringless: AtomicBool,
}

/// The engine for a caller who takes no other.
///
/// # Errors
/// The file has no direct I/O; the text names the flag and the file system.
pub(super) fn only(file: Arc<File>, config: &Config) -> Result<Arc<dyn Engine>> {
    let file = Arc::new(DirectFile::new(file));
    file.insist()?;
    let engine = DirectEngine::new(file, Wish::Must, Wish::Must);
    let bounce_buffer_size = config.bounce_buffer_size()?;
    Ok(Arc::new(
        engine.limited(Edges::default(), bounce_buffer_size),
    ))
}

impl DirectEngine {
    pub(crate) fn new(file: Arc<DirectFile>, read: Wish, write: Wish) -> DirectEngine {
        DirectEngine {
            file,
            read,
            write,
            edges: Edges::default(),
            bounce_buffer_size: ByteSize::mib(16),
            uring: Once::new(),
            ringless: AtomicBool::new(false),
        }
    }

    /// With what may be done at the edges of a read, and with scratch memory in blocks of no more than `bounce_buffer_size`.
    /// What needs a block and gets none, because it is to be larger or all are lent, goes through the page cache.
    #[must_use]
    pub(crate) fn limited(self, edges: Edges, bounce_buffer_size: ByteSize) -> DirectEngine {
        DirectEngine {
            edges,
            bounce_buffer_size,
            ..self
        }
    }

    /// The way past the page cache, if it is wished for and there.
    fn direct(&self, wish: Wish) -> Result<Option<&Direct>> {
        match wish {
            Wish::Never => Ok(None),
            Wish::May | Wish::Prefer => Ok(self.file.direct()),
            Wish::Must => self.file.insist().map(Some),
        }
    }

    /// A direct call was refused: an error for who insists, else the end of direct calls.
    fn refused(&self, wish: Wish, op: Op, errno: Errno) -> Result<()> {
        if wish == Wish::Must {
            return Err(self.file.refused(op, errno));
        }
        self.file.demote(op, errno);
        Ok(())
    }

    /// For blocking calls: any length in place, and as much of the scratch as the setting allows, in whole blocks.
    fn limits(&self, block: u64) -> Limits {
        let scratch = self.bounce_buffer_size.bytes().min(scratch::SIZE as u64);
        Limits {
            room: (scratch - scratch % block).max(block),
            longest: u64::MAX,
        }
    }

    /// Writes whole pages past the page cache.
    fn drain_body(&self, direct: &Direct, bytes: &[u8], offset: u64) -> (usize, Option<Error>) {
        let block = direct.alignment.write;
        let rules = direct.alignment.writes(self.limits(block));
        let end = offset + bytes.len() as u64;
        let mut moved = 0;
        // The rest of the body by the page cache: its pages are this write's alone, so nobody writes to them otherwise.
        let give_way = |moved: usize| {
            let rest = &bytes[moved..];
            let (more, error) = posix::drain(self.file.buffered(), rest, offset + moved as u64);
            (moved + more, error)
        };
        while moved < bytes.len() {
            let at = offset + moved as u64;
            let rest = &bytes[moved..];
            let piece = first_piece(&(at..end), rest.as_ptr().addr(), &rules);
            let asked = length(piece.wanted());
            let rest = &rest[..asked];
            let wrote = match piece {
                Piece::InPlace(_) => direct.file.write_at(rest, at),
                Piece::Through { .. } => {
                    let lent = with_scratch(self.bounce_buffer_size, asked, |scratch| {
                        scratch.copy_from_slice(rest);
                        direct.file.write_at(scratch, at)
                    });
                    match lent {
                        Some(wrote) => wrote,
                        None => return give_way(moved),
                    }
                }
                Piece::Buffered(_) => return give_way(moved),
            };
            let errno = match wrote {
                Ok(count) => {
                    moved += count;
                    names::BYTES_BY_DIRECT.add(count as u64);
                    if count < asked {
                        names::IO_SHORT.increment();
                    }
                    // Nothing at all, or part of a block: no place to go on from past the page cache.
                    if count == 0 || !(count as u64).is_multiple_of(block) {
                        return give_way(moved);
                    }
                    continue;
                }
                Err(cause) => cause.raw_os_error().map_or(Errno::EIO, Errno::from_raw),
            };
            if is_refusal(errno) {
                // Of what goes beyond the limit the kernel takes a part, which need not be whole blocks.
                if is_beyond_limit(at + asked as u64) {
                    return give_way(moved);
                }
                return match self.refused(self.write, Op::Write, errno) {
                    Ok(()) => give_way(moved),
                    Err(error) => (moved, Some(error)),
                };
            }
            if let Err(errno) = retry(direct.file.as_fd(), errno, PollFlags::POLLOUT) {
                return (moved, Some(Error::os(Op::Write, errno)));
            }
        }
        (moved, None)
    }
}

impl Engine for DirectEngine {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        Ok(Box::new(DirectLane::new(self)))
    }
}

impl DirectEngine {
    /// Does a task, from where its window is filled to.
    fn block<'w>(&self, task: Task, window: Window<'w>) -> Completion<'w> {
        let fill = |window: &mut FillWindow<'_>, offset| self.fill(window, offset);
        blocking::complete(task, window, fill, |bytes, offset| {
            self.drain(bytes, offset)
        })
    }

    /// Whether direct reads from `offset` on land at `address` without a stop in the scratch, but for their edges; `None`
    /// where there is no direct I/O.
    pub(crate) fn fills_in_place(&self, address: usize, offset: u64) -> Option<bool> {
        let memory = self.file.direct()?.alignment.memory;
        Some((address as u64).wrapping_sub(offset).is_multiple_of(memory))
    }

    /// Fills the window from `offset` on; it stays short only where the data ends.
    pub(crate) fn fill(&self, window: &mut FillWindow<'_>, offset: u64) -> Result<()> {
        let buffered = self.file.buffered();
        let Some(direct) = self.direct(self.read)? else {
            return posix::fill(buffered, window, offset);
        };
        let end = offset + window.len() as u64;
        let block = direct.alignment.read;
        let limits = self.limits(block);
        let file_end = self.file.end()?;
        let rules = direct.alignment.reads(self.edges, limits, file_end);
        while window.remaining() > 0 {
            let rest = offset + window.filled() as u64..end;
            let address = window.room().as_ptr() as usize;
            let before = window.filled();
            let (asked, got) = match first_piece(&rest, address, &rules) {
                Piece::Buffered(piece) => {
                    let asked = length(&piece);
                    if posix::fill_some(buffered, window, offset, asked)? < asked {
                        break;
                    }
                    continue;
                }
                Piece::InPlace(piece) => {
                    let asked = length(&piece);
                    let fd = direct.file.as_fd();
                    (asked, window.pread_some(fd, piece.start, asked))
                }
                Piece::Through { block, wanted } => {
                    let lent = with_scratch(self.bounce_buffer_size, length(&block), |scratch| {
                        through(&direct.file, window, scratch, &block, &wanted)
                    });
                    match lent {
                        Some(got) => (length(&block), got),
                        None => return posix::fill(buffered, window, offset),
                    }
                }
            };
            names::BYTES_BY_DIRECT.add((window.filled() - before) as u64);
            match got {
                Ok(0) => break,
                Ok(count) if count == asked || window.remaining() == 0 => {}
                Ok(count) => {
                    names::IO_SHORT.increment();
                    // Part of a block: the end of the file, most likely. The page cache knows, and takes any offset.
                    if !(count as u64).is_multiple_of(block) {
                        return posix::fill(buffered, window, offset);
                    }
                }
                Err(errno) if is_refusal(errno) => {
                    self.refused(self.read, Op::Read, errno)?;
                    return posix::fill(buffered, window, offset);
                }
                Err(errno) => retry(direct.file.as_fd(), errno, PollFlags::POLLIN)
                    .map_err(|errno| Error::os(Op::Read, errno))?,
            }
        }
        Ok(())
    }

    fn drain(&self, bytes: &[u8], offset: u64) -> (usize, Option<Error>) {
        let buffered = self.file.buffered();
        let direct = match self.direct(self.write) {
            Ok(Some(direct)) => direct,
            Ok(None) => return posix::drain(buffered, bytes, offset),
            Err(error) => return (0, Some(error)),
        };
        let range = offset..offset + bytes.len() as u64;
        let WriteParts { head, body, tail } = write_parts(&range, direct.alignment.boundary);
        let of = |part: &Range<u64>| &bytes[(part.start - offset) as usize..][..length(part)];
        // The body first, while the pages beside it are not dirty by our doing. A tail alone makes the file longer than
        // whole pages, so its length is exact.
        let (body_moved, body_error) = self.drain_body(direct, of(&body), body.start);
        let (head_moved, head_error) = posix::drain(buffered, of(&head), head.start);
        if head_error.is_some() {
            return (head_moved, head_error);
        }
        if body_error.is_some() {
            return (head_moved + body_moved, body_error);
        }
        let (tail_moved, tail_error) = posix::drain(buffered, of(&tail), tail.start);
        (head_moved + body_moved + tail_moved, tail_error)
    }
}

/// Reads `block` past the page cache into as much scratch, and puts what lies in `wanted` into the window; returns the count
/// of the read.
fn through(
    file: &File,
    window: &mut FillWindow<'_>,
    scratch: &mut [u8],
    block: &Range<u64>,
    wanted: &Range<u64>,
) -> Result<usize, Errno> {
    let count = file
        .read_at(scratch, block.start)
        .map_err(|cause| cause.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
    let skip = (wanted.start - block.start) as usize;
    let end = count.min((wanted.end - block.start) as usize);
    let bytes = scratch.get(skip..end).unwrap_or_default();
    if bytes.len() < copy::LARGE {
        window.put(bytes);
    } else {
        window.put_streaming(bytes);
    }
    Ok(count)
}

/// What a file system answers to a direct call that it has no way for.
fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::EINVAL | Errno::EOPNOTSUPP)
}

/// Whether a file that is written up to `end` would be longer than this process may make one (`ulimit -f`).
fn is_beyond_limit(end: u64) -> bool {
    os::limit(Resource::FileSize).is_ok_and(|(limit, _)| limit.is_some_and(|limit| end > limit))
}

fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

#[cfg(test)]
#[path = "direct/tests.rs"]
mod tests;
