//! The engine for memory of a device by cuFile: one call moves a task between the file and the device.
//!
//! cuFile's calls are not ordered with any stream. A lane waits, on the host, for what was queued on the default stream and on
//! streams that the caller names when the call began; what is queued after the call comes after it anyway.
//!
//! Where the file may be moved by another way, too, the first call that fails ends cuFile's part: the rest of that task, and all
//! tasks behind it, are staged.

mod batch;
mod rest;

pub(crate) use batch::GdsBatch;

use std::os::fd::AsFd;
use std::sync::Arc;

use kvik_stats::{Backend, Direction, names};
use kvik_sys::{CuFileFailure, DevicePtr};
use nix::errno::Errno;
use nix::poll::PollFlags;

use super::staged::Staged;
use super::{Completion, Engine, Lane, posix};
use crate::corridor::{CuFileWay, DeviceWindow, Task, Window};
use crate::device::{self, Context, Entered, Mark, Spot};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::gds::RegisteredFile;
use crate::gds::edges::has_edges;
use crate::open;
use crate::sync::{MutexGuard, lock};

/// Reads and writes of one file for memory in one context.
pub(crate) struct Gds {
    file: Arc<RegisteredFile>,
    context: Context,
    before: Vec<Mark>,
    // How tasks end that cuFile does not carry out.
    otherwise: Option<Otherwise>,
}

/// Another way for what cuFile does not move.
struct Otherwise {
    way: CuFileWay,
    staged: Staged,
}

/// Whether a task, which begins at `offset`, must not run beside others of its kind.
fn is_apart(window: &DeviceWindow<'_>, offset: u64) -> bool {
    let range = offset..offset.saturating_add(window.len() as u64);
    window.direction() == Direction::Write && has_edges(&range)
}

/// What stopped a task.
enum Stop {
    /// A call of cuFile's failed: another way may be open.
    Refused(Error),
    /// No way leads on.
    Failed(Error),
}

impl Gds {
    /// All `spots`, of which there is one at least, are in one context.
    ///
    /// # Errors
    /// As for [`device::queued_before`].
    pub(crate) fn new(file: Arc<RegisteredFile>, spots: &[Spot]) -> Result<Gds> {
        let (context, before) = device::queued_before(spots)?;
        Ok(Gds {
            file,
            context,
            before,
            otherwise: None,
        })
    }

    /// The same, where `host` and slabs take over what cuFile does not carry out, and the handle of `way` is told of it.
    pub(crate) fn or_staged(
        self,
        way: CuFileWay,
        host: Arc<dyn Engine>,
        bounce_buffer_size: u64,
    ) -> Gds {
        // A lane of ours has waited for all that comes before.
        let staged = Staged::at_once(host, self.context, bounce_buffer_size);
        let otherwise = Some(Otherwise { way, staged });
        Gds { otherwise, ..self }
    }

    /// Moves the bytes of a window from or to `offset`, but for the first `moved`; returns how many are moved then, and what
    /// stopped it. A read that is short without an error met the end of the file.
    fn transfer(
        &self,
        window: &DeviceWindow<'_>,
        offset: u64,
        mut moved: usize,
    ) -> (usize, Option<Stop>) {
        let op = Op::from(window.direction());
        let base = match device::allocation_start(window.address()) {
            Ok(base) => base,
            Err(error) => return (moved, Some(Stop::Failed(error))),
        };
        let _apart = self.apart(window, offset);
        while moved < window.len() {
            let left = match self.left(window, offset, moved) {
                Ok(0) => break,
                Ok(left) => left,
                Err(error) => return (moved, Some(Stop::Failed(error))),
            };
            match self.call(window, base, offset, moved, left) {
                Ok(0) => match self.after_nothing(window, offset, moved) {
                    Ok(()) => break,
                    Err(stop) => return (moved, Some(stop)),
                },
                Ok(count) if count > left => {
                    let why = format!("cuFile moved {count} bytes where {left} were asked for");
                    return (
                        moved,
                        Some(Stop::Failed(Error::new(ErrorKind::Internal, op, why))),
                    );
                }
                Ok(count) => {
                    moved += count;
                    names::BYTES_BY_CUFILE.add(count as u64);
                    if count < left {
                        names::IO_SHORT.increment();
                    }
                }
                Err(failure) => {
                    if let Err(error) = self.retry(op, failure) {
                        return (moved, Some(Stop::Refused(error)));
                    }
                }
            }
        }
        (moved, None)
    }

    /// What it means that cuFile has moved nothing behind the first `moved` bytes, and did not fail: a read that ends here is one
    /// that met the end of the file.
    fn after_nothing(
        &self,
        window: &DeviceWindow<'_>,
        offset: u64,
        moved: usize,
    ) -> Result<(), Stop> {
        let (op, why) = match window.direction() {
            Direction::Write => (
                Op::Write,
                "the file takes no more bytes, without saying why".to_owned(),
            ),
            // The file may have become shorter since its size was asked for.
            Direction::Read => match self.left(window, offset, moved) {
                Ok(0) => return Ok(()),
                Ok(left) => (
                    Op::Read,
                    format!("cuFile moved none of {left} bytes, without saying why"),
                ),
                Err(error) => return Err(Stop::Failed(error)),
            },
        };
        Err(Stop::Refused(Error::new(ErrorKind::Io, op, why)))
    }

    /// What a write holds while it runs, if it leaves a part of a page as it is: that page is read, changed and written back by
    /// cuFile, in which nobody may come in between, whoever else moves the bytes.
    fn apart(&self, window: &DeviceWindow<'_>, offset: u64) -> Option<MutexGuard<'_, ()>> {
        is_apart(window, offset).then(|| lock(self.file.edges()))
    }

    /// Whether what cuFile does not carry out may be staged, and whether all is by now.
    fn gives_way(&self) -> bool {
        self.otherwise.is_some()
    }

    fn is_given_up(&self) -> bool {
        let otherwise = self.otherwise.as_ref();
        otherwise.is_some_and(|otherwise| otherwise.way.is_given_up())
    }

    /// How many bytes behind the first `moved` are to be asked for: of a read, none beyond the end of the file or device, since
    /// cuFile fills what it is asked for with zeros there (seen with 1.15 in its compatible mode).
    fn left(&self, window: &DeviceWindow<'_>, offset: u64, moved: usize) -> Result<usize> {
        let left = window.len() - moved;
        if window.direction() == Direction::Write {
            return Ok(left);
        }
        let there = open::size(self.file.file())?.saturating_sub(offset + moved as u64);
        Ok(usize::try_from(there).map_or(left, |there| left.min(there)))
    }

    /// One call for the next `left` bytes behind the first `moved`.
    fn call(
        &self,
        window: &DeviceWindow<'_>,
        base: u64,
        offset: u64,
        moved: usize,
        left: usize,
    ) -> Result<usize, CuFileFailure> {
        let too_large = |_| CuFileFailure::System(Some(libc::EOVERFLOW));
        let at = i64::try_from(offset + moved as u64).map_err(too_large)?;
        let behind = i64::try_from(window.address() - base + moved as u64).map_err(too_large)?;
        let (cufile, handle) = (self.file.cufile(), self.file.handle());
        let base = DevicePtr::new(base);
        match window.direction() {
            Direction::Read => {
                // SAFETY: the file stays registered while we have it. The window is memory of the device, lent to this lane
                // exclusively, of which `left` bytes are behind the first `moved`.
                unsafe { cufile.read(handle, base, left, at, behind) }
            }
            Direction::Write => {
                // SAFETY: as above; nobody writes to the window meanwhile.
                unsafe { cufile.write(handle, base, left, at, behind) }
            }
        }
    }

    /// Whether a call that failed is to be made again; the error if not.
    fn retry(&self, op: Op, failure: CuFileFailure) -> Result<()> {
        let (ready, call) = match op {
            Op::Read => (PollFlags::POLLIN, "cuFileRead"),
            _ => (PollFlags::POLLOUT, "cuFileWrite"),
        };
        match failure {
            CuFileFailure::System(Some(code)) => {
                posix::retry(self.file.as_fd(), Errno::from_raw(code), ready)
                    .map_err(|errno| Error::os(op, errno))
            }
            CuFileFailure::System(None) => {
                Err(Error::new(ErrorKind::Io, op, format!("{call}: {failure}")).because(failure))
            }
            CuFileFailure::Status(_) => {
                let why = format!("{call}: {failure}");
                Err(Error::new(ErrorKind::Device, op, why).because(failure))
            }
        }
    }
}

impl Engine for Gds {
    fn backend(&self) -> Backend {
        Backend::Gds
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        Ok(Box::new(GdsLane::new(self)?))
    }
}

/// A lane with room for one task, which is finished when `start` returns.
struct GdsLane<'w> {
    engine: &'w Gds,
    finished: Option<Completion<'w>>,
    // From when it is first needed on. Before the context is left.
    staged: Option<Box<dyn Lane<'w> + 'w>>,
    _entered: Entered,
}

impl<'w> GdsLane<'w> {
    fn new(engine: &'w Gds) -> Result<GdsLane<'w>> {
        let entered = engine.context.enter()?;
        engine.before.iter().try_for_each(Mark::wait)?;
        Ok(GdsLane {
            engine,
            finished: None,
            staged: None,
            _entered: entered,
        })
    }

    /// Moves what lies behind the first `moved` bytes of a window by cuFile, and what that does not carry out by the other way, if
    /// there is one; returns how many bytes of the window are moved then.
    fn move_rest(
        &mut self,
        window: &DeviceWindow<'_>,
        offset: u64,
        moved: usize,
    ) -> (usize, Option<Error>) {
        let engine = self.engine;
        let Some(otherwise) = &engine.otherwise else {
            let (moved, stop) = engine.transfer(window, offset, moved);
            return (moved, stop.map(Stop::into_error));
        };
        let moved = match otherwise.way.is_given_up() {
            true => moved,
            false => match engine.transfer(window, offset, moved) {
                (moved, Some(Stop::Refused(error))) => {
                    otherwise.way.give_up(&error);
                    moved
                }
                (moved, stop) => return (moved, stop.map(Stop::into_error)),
            },
        };
        let (more, error) = self.stage_rest(&otherwise.staged, window, offset, moved);
        (moved + more, error)
    }
}

impl Stop {
    fn into_error(self) -> Error {
        let (Stop::Refused(error) | Stop::Failed(error)) = self;
        error
    }
}

impl<'w> Lane<'w> for GdsLane<'w> {
    fn engine(&self) -> &'static str {
        "cufile"
    }

    fn room(&self) -> usize {
        1 - self.in_flight()
    }

    fn in_flight(&self) -> usize {
        usize::from(self.finished.is_some())
    }

    fn finished(&self) -> usize {
        self.in_flight()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        let (window, moved, error) = match window {
            Window::Device(mut window) => {
                let (moved, error) = self.move_rest(&window, task.range.start, 0);
                if window.direction() == Direction::Read {
                    window.fill_to(moved);
                }
                (Window::Device(window), moved, error)
            }
            window => {
                self.finished = Some(Completion::not_on_device(task, window));
                return;
            }
        };
        self.finished = Some(Completion {
            task,
            window,
            moved,
            error,
        });
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        done.extend(self.finished.take());
    }
}
