//! Door one: [`FileHandle`], a local file read and written in parallel at any offset.

mod batch;
mod device;
mod device_route;
mod on_stream;
mod ranges;
mod storage;
mod submit;
mod unsplit;

use std::fmt;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use kvik_config::Config;
use kvik_stats::{Direction, Memory, Start};

use crate::compat::Route;
use crate::corridor::{Call, Plan, outside_listeners};
use crate::engine::{EngineKind, posix};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::open::Opened;
use crate::options::{OpenOptions, ReadOptions, WriteOptions};
use crate::pool::ThreadPool;
use crate::probe::FileProbe;
use crate::read_at::complete;
use crate::residency::Residency;
use crate::target::{Source, Target};

/// An open file. Cloning it gives another handle to the same open file; all methods take `&self` and may be called from
/// any thread at once.
///
/// Reads and writes name their offset and know no cursor. Ranges longer than the setting `inline_size` are cut into
/// tasks for the calling thread and workers of the pool; shorter ones run on the calling thread, without allocation.
///
/// # Example: the second half of a file, in parallel
/// ```no_run
/// # fn main() -> kvik_core::Result<()> {
/// let file = kvik_core::FileHandle::open("weights.bin")?;
/// let half = file.len()? / 2;
/// let mut bytes = vec![0; half as usize];
/// file.read_exact_at(&mut bytes, file.len()? - half)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FileHandle(Arc<Opened>);

impl FileHandle {
    /// Opens an existing file for reading.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<FileHandle> {
        OpenOptions::new().read(true).open(path)
    }

    /// Creates a file for writing, or empties the one that is there.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn create(path: impl AsRef<Path>) -> Result<FileHandle> {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
    }

    /// Options for everything else: short for [`OpenOptions::new`].
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Reads into `target` from `offset` on; returns the count of bytes, short only at the end of the file and 0 at or
    /// past it.
    ///
    /// # Errors
    /// What the first failing task met, after all others have stopped: `Io`, `PermissionDenied` if the handle is not open
    /// for reading, `Config` for a bad setting. The bytes that [`Error::done`] counts are in the target.
    pub fn read_at<'a>(&self, target: impl Into<Target<'a>>, offset: u64) -> Result<usize> {
        self.read(target.into(), offset, &ReadOptions::default())
    }

    /// [`read_at`](FileHandle::read_at) with wishes of its own.
    ///
    /// # Errors
    /// As for `read_at`; `TimedOut` if the deadline passed before all tasks had started.
    pub fn read_at_with<'a>(
        &self,
        target: impl Into<Target<'a>>,
        offset: u64,
        options: &ReadOptions,
    ) -> Result<usize> {
        self.read(target.into(), offset, options)
    }

    /// Fills all of `target` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before, else as for [`read_at`](FileHandle::read_at).
    pub fn read_exact_at<'a>(&self, target: impl Into<Target<'a>>, offset: u64) -> Result<()> {
        let target = target.into();
        let wanted = target.len();
        let count = self.read(target, offset, &ReadOptions::default())?;
        complete(count, wanted, offset).map_err(|error| error.at(&self.0.place))
    }

    /// Writes all of `source` at `offset` and returns its length. What lies around the range stays as it is.
    ///
    /// # Errors
    /// What the first failing task met, after all others have stopped: `StorageFull`, `Io`, `PermissionDenied` if the
    /// handle is not open for writing, `Misuse` for a range beyond 2^63 - 1, `Config` for a bad setting. The bytes that
    /// [`Error::done`] counts are written; of those behind them some may be.
    pub fn write_at<'a>(&self, source: impl Into<Source<'a>>, offset: u64) -> Result<usize> {
        self.write(source.into(), offset, &WriteOptions::default())
    }

    /// [`write_at`](FileHandle::write_at) with wishes of its own.
    ///
    /// # Errors
    /// As for `write_at`; `TimedOut` if the deadline passed before all tasks had started.
    pub fn write_at_with<'a>(
        &self,
        source: impl Into<Source<'a>>,
        offset: u64,
        options: &WriteOptions,
    ) -> Result<usize> {
        self.write(source.into(), offset, options)
    }

    /// Writes all of `source` at `offset`: [`write_at`](FileHandle::write_at) without the count, which is always all.
    ///
    /// # Errors
    /// As for `write_at`.
    pub fn write_all_at<'a>(&self, source: impl Into<Source<'a>>, offset: u64) -> Result<()> {
        self.write_at(source, offset).map(drop)
    }

    /// Whether the file can be read past the page cache (`O_DIRECT`), as far as opening it so tells.
    ///
    /// It is opened once more for a moment. As with every descriptor of a file that a process closes, that ends the locks by
    /// record (`fcntl(2)`, `F_SETLK`) that the process holds on the file; those of open file descriptions stay.
    #[must_use]
    pub fn is_direct_io_supported(&self) -> bool {
        FileProbe::of(self.as_fd()).is_ok_and(|probe| probe.direct_opens.is_yes())
    }

    /// How much of `range` is in the page cache now, in a few microseconds. Files of others, about which the kernel says
    /// nothing, are sampled.
    #[must_use]
    pub fn residency(&self, range: Range<u64>) -> Residency {
        self.0.cached.residency(range)
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Which engines may move its bytes, and why: as decided when it was opened, less what was given up since, by any clone.
    #[must_use]
    pub fn route(&self) -> Route {
        let mut route = self.0.route.clone();
        let given_up = self.0.direct.as_ref().and_then(|direct| direct.given_up());
        if let Some(why) = given_up {
            route.rule_out(EngineKind::Direct, why);
        }
        route
    }

    fn read(&self, target: Target<'_>, offset: u64, options: &ReadOptions) -> Result<usize> {
        self.may_read()?;
        let mut target = target.within_offsets(offset);
        let len = target.len() as u64;
        if !self.is_inline(len, options)? {
            return self.call(len, options)?.read(&mut target, offset);
        }
        let range = self.check(offset, len, options, Op::Read)?;
        let Some(mut window) = target.window() else {
            return self.read_to_device(target, offset, options);
        };
        let span = self.begin(Direction::Read, Memory::Host, offset, len);
        let outcome = posix::fill(&self.0.file, &mut window, offset);
        let moved = window.filled();
        span.finish(moved as u64, outcome.is_ok());
        outcome.map_err(|error| error.at(&self.0.place).within(range, moved as u64))?;
        Ok(moved)
    }

    fn write(&self, source: Source<'_>, offset: u64, options: &WriteOptions) -> Result<usize> {
        self.may_write()?;
        let offset = self.write_offset(offset)?;
        let len = source.len() as u64;
        if !self.is_inline(len, options)? {
            return self.call(len, options)?.write(source, offset);
        }
        let range = self.check(offset, len, options, Op::Write)?;
        let Some(bytes) = source.bytes() else {
            return self.write_from_device(source, offset, options);
        };
        let span = self.begin(Direction::Write, Memory::Host, offset, len);
        let (moved, error) = posix::drain(&self.0.file, bytes, offset);
        span.finish(moved as u64, error.is_none());
        match error {
            Some(error) => Err(error.at(&self.0.place).within(range, moved as u64)),
            None => Ok(moved),
        }
    }

    /// Whether a transfer is so small that handing it to a pool would cost more than doing it.
    fn is_inline(&self, len: u64, options: &ReadOptions) -> Result<bool> {
        let limit = match &self.0.config {
            Some(config) => config.inline_size(),
            None => Config::current().inline_size(),
        };
        // A call that says how it is to be done goes the long way, where its wishes are checked and heeded, unless this way
        // heeds them, too; so does one on a handle that was told its engine.
        let threads = options.num_threads.unwrap_or(1);
        let plain = self.0.inline
            && options.task_size.is_none()
            && (1..=ThreadPool::MAX_THREADS).contains(&threads);
        Ok(plain && len <= limit?.bytes())
    }

    /// The checks that the corridor makes for larger transfers.
    fn check(&self, offset: u64, len: u64, options: &ReadOptions, op: Op) -> Result<Range<u64>> {
        let plan =
            Plan::new(offset, len, u64::MAX).map_err(|error| error.during(op).at(&self.0.place))?;
        // Of no bytes, none is late.
        let late = |deadline| len > 0 && Instant::now() >= deadline;
        if options.deadline.is_some_and(late) {
            let error = Error::new(ErrorKind::TimedOut, op, "the deadline of the call passed");
            return Err(error.at(&self.0.place).within(plan.range(), 0));
        }
        Ok(plan.range())
    }

    fn begin(
        &self,
        direction: Direction,
        memory: Memory,
        offset: u64,
        len: u64,
    ) -> kvik_stats::Span {
        kvik_stats::begin(Start {
            backend: self.0.engine.backend(),
            direction,
            memory,
            source: &self.0.name,
            offset,
            size: len,
        })
    }

    fn call(&self, len: u64, options: &ReadOptions) -> Result<Call> {
        let config = self.0.config.clone().unwrap_or_else(Config::current);
        let threads = match options.num_threads {
            Some(threads) => threads,
            None => config.num_threads()?,
        };
        let task_size = match options.task_size {
            Some(size) => size.bytes(),
            // So that a transfer of a few tasks' length keeps all threads busy, too.
            None => config.task_size()?.bytes().min(Plan::share(len, threads)),
        };
        Ok(Call {
            engine: Arc::clone(&self.0.engine),
            for_device: Arc::clone(&self.0.for_device),
            cufile: self.cufile(&config),
            bounce_buffer_size: config.bounce_buffer_size()?.bytes(),
            pool: self.0.pool.clone().unwrap_or_else(ThreadPool::global),
            threads,
            task_size,
            deadline: options.deadline,
            place: self.0.place.clone(),
            name: Arc::clone(&self.0.name),
        })
    }

    fn may_read(&self) -> Result<()> {
        outside_listeners(Op::Read).map_err(|error| error.at(&self.0.place))?;
        if self.0.access.read {
            return Ok(());
        }
        let why = "the handle was opened for writing only";
        Err(Error::new(ErrorKind::PermissionDenied, Op::Read, why).at(&self.0.place))
    }

    fn may_write(&self) -> Result<()> {
        outside_listeners(Op::Write).map_err(|error| error.at(&self.0.place))?;
        if self.0.access.write {
            return Ok(());
        }
        let why = "the handle was opened for reading only";
        Err(Error::new(ErrorKind::PermissionDenied, Op::Write, why).at(&self.0.place))
    }

    fn write_offset(&self, offset: u64) -> Result<u64> {
        self.0.write_base.checked_add(offset).ok_or_else(|| {
            let why = format!(
                "offset {offset} behind the end at opening, {}, is no offset",
                self.0.write_base
            );
            Error::new(ErrorKind::Misuse, Op::Write, why).at(&self.0.place)
        })
    }

    pub(crate) fn new(opened: Opened) -> FileHandle {
        FileHandle(Arc::new(opened))
    }
}

impl AsFd for FileHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "FileHandle({}, descriptor {})",
            self.0.place,
            self.0.file.as_raw_fd()
        )
    }
}
