//! The engine that works everywhere: `pread(2)` and `pwrite(2)` through the page cache.
//!
//! Short counts are continued, `EINTR` is tried again, and after `EAGAIN` the descriptor is waited for.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use kvik_stats::{Backend, names};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Engine, Lane, blocking};
use crate::corridor::FillWindow;
use crate::error::{Error, ErrorKind, Op, Result};

/// `pread` and `pwrite` on one descriptor.
#[derive(Debug)]
pub(crate) struct Posix {
    file: Arc<File>,
}

impl Posix {
    pub(crate) fn new(file: Arc<File>) -> Posix {
        Posix { file }
    }
}

impl Engine for Posix {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        Ok(lane("posix", &self.file, |window, offset| {
            fill(&self.file, window, offset)
        }))
    }

    fn scatters(&self) -> bool {
        true
    }
}

/// A lane whose reads go by `fill`, and whose writes by `pwrite`.
pub(crate) fn lane<'w>(
    engine: &'static str,
    file: &'w File,
    fill: impl FnMut(&mut FillWindow<'_>, u64) -> Result<()> + 'w,
) -> Box<dyn Lane<'w> + 'w> {
    blocking::lane(engine, fill, |bytes, offset| drain(file, bytes, offset))
}

/// Fills what is left of a window that begins at `offset`; it stays short only where the data ends.
pub(crate) fn fill(file: &File, window: &mut FillWindow<'_>, offset: u64) -> Result<()> {
    let before = window.filled();
    let outcome = fill_uncounted(file, window, offset);
    names::BYTES_BY_PREAD.add((window.filled() - before) as u64);
    outcome
}

/// The same for bytes that have further to go: those are counted by the way they take.
pub(super) fn fill_uncounted(file: &File, window: &mut FillWindow<'_>, offset: u64) -> Result<()> {
    let goal = window.len();
    fill_to(file, window, goal, |window, at| {
        window.pread(file.as_fd(), offset + at)
    })
}

/// The same with the next `most` bytes alone, of a window that is one stretch of memory; returns how many there were.
pub(crate) fn fill_some(
    file: &File,
    window: &mut FillWindow<'_>,
    offset: u64,
    most: usize,
) -> Result<usize> {
    let start = window.filled();
    let goal = start + most.min(window.remaining());
    let outcome = fill_to(file, window, goal, |window, at| {
        window.pread_some(file.as_fd(), offset + at, goal - at as usize)
    });
    let count = window.filled() - start;
    names::BYTES_BY_PREAD.add(count as u64);
    outcome.map(|()| count)
}

/// Reads on until the window is filled up to `goal`, or the data ends.
fn fill_to(
    file: &File,
    window: &mut FillWindow<'_>,
    goal: usize,
    read: impl Fn(&mut FillWindow<'_>, u64) -> Result<usize, Errno>,
) -> Result<()> {
    while window.filled() < goal {
        let at = window.filled() as u64;
        match read(window, at) {
            Ok(0) => break,
            Ok(_) if window.filled() < goal => names::IO_SHORT.increment(),
            Ok(_) => {}
            Err(errno) => {
                retry(file.as_fd(), errno, PollFlags::POLLIN).map_err(|e| Error::os(Op::Read, e))?
            }
        }
    }
    Ok(())
}

/// Writes all of `bytes` at `offset`; returns how many were written and what stopped it.
pub(crate) fn drain(file: &File, bytes: &[u8], offset: u64) -> (usize, Option<Error>) {
    let (moved, error) = drain_uncounted(file, bytes, offset);
    names::BYTES_BY_PWRITE.add(moved as u64);
    (moved, error)
}

fn drain_uncounted(file: &File, bytes: &[u8], offset: u64) -> (usize, Option<Error>) {
    let mut moved = 0;
    while moved < bytes.len() {
        match file.write_at(&bytes[moved..], offset + moved as u64) {
            Ok(0) => {
                let why = "the file takes no more bytes, without saying why";
                return (moved, Some(Error::new(ErrorKind::Io, Op::Write, why)));
            }
            Ok(count) => {
                moved += count;
                if moved < bytes.len() {
                    names::IO_SHORT.increment();
                }
            }
            Err(error) => {
                let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
                if let Err(errno) = retry(file.as_fd(), errno, PollFlags::POLLOUT) {
                    return (moved, Some(Error::os(Op::Write, errno)));
                }
            }
        }
    }
    (moved, None)
}

/// Whether a call that failed with `errno` is to be made again; if so, returns when that makes sense.
pub(crate) fn retry(fd: BorrowedFd<'_>, errno: Errno, ready: PollFlags) -> Result<(), Errno> {
    match errno {
        Errno::EINTR => {
            names::IO_INTERRUPTED.increment();
            Ok(())
        }
        Errno::EAGAIN => {
            names::IO_AGAIN.increment();
            // A bounded wait: whatever poll says, the next call tells the truth.
            match poll(&mut [PollFd::new(fd, ready)], PollTimeout::from(100u8)) {
                Ok(_) | Err(Errno::EINTR) => Ok(()),
                Err(errno) => Err(errno),
            }
        }
        errno => Err(errno),
    }
}
