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

use super::{Completion, Engine, Lane};
use crate::corridor::{FillWindow, Task, Window};
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
        Ok(Box::new(PosixLane {
            file: &self.file,
            finished: None,
        }))
    }

    fn scatters(&self) -> bool {
        true
    }
}

/// A lane on which each task is finished when `start` returns.
struct PosixLane<'w> {
    file: &'w File,
    finished: Option<Completion<'w>>,
}

impl<'w> Lane<'w> for PosixLane<'w> {
    fn room(&self) -> usize {
        1 - self.in_flight()
    }

    fn in_flight(&self) -> usize {
        usize::from(self.finished.is_some())
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        let offset = task.range.start;
        let completion = match window {
            Window::Fill(mut window) => {
                let error = fill(self.file, &mut window, offset).err();
                Completion {
                    task,
                    moved: window.filled(),
                    window: Window::Fill(window),
                    error,
                }
            }
            Window::Drain(bytes) => {
                let (moved, error) = drain(self.file, bytes, offset);
                Completion {
                    task,
                    moved,
                    window: Window::Drain(bytes),
                    error,
                }
            }
        };
        self.finished = Some(completion);
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        done.extend(self.finished.take());
    }
}

/// Fills the window from `offset` on; it stays short only where the data ends.
pub(crate) fn fill(file: &File, window: &mut FillWindow<'_>, offset: u64) -> Result<()> {
    while window.remaining() > 0 {
        match window.pread(file.as_fd(), offset + window.filled() as u64) {
            Ok(0) => break,
            Ok(_) if window.remaining() > 0 => names::IO_SHORT.increment(),
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
fn retry(fd: BorrowedFd<'_>, errno: Errno, ready: PollFlags) -> Result<(), Errno> {
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
