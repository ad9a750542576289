//! What a caller may say when opening a file ([`OpenOptions`]) and for a single call ([`ReadOptions`]).

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use kvik_config::{ByteSize, CompatMode, Config};

use crate::compat::EnginePreference;
use crate::corridor::outside_listeners;
use crate::error::{Op, Result};
use crate::file::FileHandle;
use crate::pool::ThreadPool;

/// How a file is opened. The default asks for nothing: say at least `read`, `write` or `append`.
///
/// # Example: write a new file, refusing to touch one that is there
/// ```no_run
/// # fn main() -> kvik_core::Result<()> {
/// let file = kvik_core::OpenOptions::new().write(true).create_new(true).mode(0o600).open("out.bin")?;
/// file.write_all_at(b"bytes", 0)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is opened before `open` is called"]
pub struct OpenOptions {
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) append: bool,
    pub(crate) truncate: bool,
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    pub(crate) mode: Option<u32>,
    pub(crate) compat: Option<CompatMode>,
    pub(crate) engine: EnginePreference,
    pub(crate) config: Option<Config>,
    pub(crate) pool: Option<ThreadPool>,
}

impl OpenOptions {
    /// Options that ask for nothing yet.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Allows reading.
    pub fn read(mut self, yes: bool) -> OpenOptions {
        self.read = yes;
        self
    }

    /// Allows writing. The file must exist unless it may be created.
    pub fn write(mut self, yes: bool) -> OpenOptions {
        self.write = yes;
        self
    }

    /// Allows writing behind the present end: the file is created if it is missing, and offset 0 of every write is where
    /// the file ended when it was opened.
    ///
    /// This is kvik's own: KvikIO advertises the flag `a` and refuses it. Reads count from the start of the file as ever.
    pub fn append(mut self, yes: bool) -> OpenOptions {
        self.append = yes;
        self
    }

    /// Empties the file when it is opened; needs `write`.
    pub fn truncate(mut self, yes: bool) -> OpenOptions {
        self.truncate = yes;
        self
    }

    /// Creates the file if it is missing; needs `write`.
    pub fn create(mut self, yes: bool) -> OpenOptions {
        self.create = yes;
        self
    }

    /// Creates the file and fails if it is there; needs `write`.
    pub fn create_new(mut self, yes: bool) -> OpenOptions {
        self.create_new = yes;
        self
    }

    /// The permission bits of a file that is created, before the umask. The default is 0o644, as in KvikIO.
    pub fn mode(mut self, mode: u32) -> OpenOptions {
        self.mode = Some(mode);
        self
    }

    /// Whether cuFile may, must or must not be used for device memory, instead of the setting `compat_mode`.
    pub fn compat(mut self, mode: CompatMode) -> OpenOptions {
        self.compat = Some(mode);
        self
    }

    /// Which engine may move the bytes; the default lets kvik choose.
    pub fn engine(mut self, engine: EnginePreference) -> OpenOptions {
        self.engine = engine;
        self
    }

    /// Settings for this handle. Without it, the handle follows [`Config::current`] at each call.
    pub fn config(mut self, config: &Config) -> OpenOptions {
        self.config = Some(config.clone());
        self
    }

    /// The pool whose threads move the bytes, instead of the shared one.
    pub fn thread_pool(mut self, pool: &ThreadPool) -> OpenOptions {
        self.pool = Some(pool.clone());
        self
    }

    /// Opens the file. It does not wait: opening a FIFO without a writer is an error like opening one with.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists`, `PermissionDenied`, `TooManyOpenFiles` by the operating system; `IsADirectory`;
    /// `NotSeekable` for FIFOs, sockets and terminals; `Misuse` for options that contradict each other or a path with a
    /// NUL byte; `Config` if a setting needed at opening is bad; `GdsUnavailable` if cuFile is required.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<FileHandle> {
        let path = path.as_ref();
        outside_listeners(Op::Open).map_err(|error| error.at(&path.into()))?;
        crate::open::open(path, self).map(FileHandle::new)
    }

    /// Makes a handle of a file that is open already, which it takes: it is closed with the last clone of the handle.
    ///
    /// The handle may do what the descriptor was opened for, or as much of it as [`read`](OpenOptions::read) and
    /// [`write`](OpenOptions::write) ask for if one of them was called. Its [path](FileHandle::path) is what the kernel
    /// says now. The descriptor's flags and cursor are not touched.
    ///
    /// # Errors
    /// As for [`open`](OpenOptions::open); `Misuse` for options that make, empty or append to a file, and for a descriptor
    /// opened with `O_APPEND`, `O_DIRECT` or `O_PATH`; `PermissionDenied` for access that the descriptor does not have.
    ///
    /// # Example: a file that never had a name
    /// ```
    /// # fn main() -> kvik_core::Result<()> {
    /// let file = kvik_core::OpenOptions::new().adopt(tempfile::tempfile().unwrap())?;
    /// file.write_all_at(b"bytes", 0)?;
    /// assert_eq!(file.len()?, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn adopt(&self, file: impl Into<OwnedFd>) -> Result<FileHandle> {
        outside_listeners(Op::Open)?;
        crate::adopt::adopt(file.into(), self).map(FileHandle::new)
    }

    /// Opens the file with these settings: short for [`config`](OpenOptions::config) and [`open`](OpenOptions::open).
    ///
    /// # Errors
    /// As for [`open`](OpenOptions::open).
    pub fn open_with(&self, path: impl AsRef<Path>, config: &Config) -> Result<FileHandle> {
        self.clone().config(config).open(path)
    }
}

/// What a single call wants otherwise than its handle: the strongest word on a setting.
///
/// # Example: at most two threads and ten seconds
/// ```
/// use std::time::Duration;
///
/// let options = kvik_core::ReadOptions::new().num_threads(2).timeout(Duration::from_secs(10));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing before they are given to a call"]
pub struct ReadOptions {
    pub(crate) num_threads: Option<usize>,
    pub(crate) task_size: Option<ByteSize>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) gap: Option<ByteSize>,
}

/// What a call wants, as a door sees it; see the setters of [`ReadOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wishes {
    /// The largest number of threads, or of requests under way.
    pub num_threads: Option<usize>,
    /// The largest piece that is moved at a time.
    pub task_size: Option<ByteSize>,
    /// When to stop.
    pub deadline: Option<Instant>,
    /// How many bytes may lie between two ranges that are read in one go.
    pub gap: Option<ByteSize>,
}

impl From<&ReadOptions> for Wishes {
    fn from(options: &ReadOptions) -> Wishes {
        Wishes {
            num_threads: options.num_threads,
            task_size: options.task_size,
            deadline: options.deadline,
            gap: options.gap,
        }
    }
}

/// The same for writes, which have no wish of their own.
pub type WriteOptions = ReadOptions;

impl ReadOptions {
    /// Options that want nothing special.
    pub fn new() -> ReadOptions {
        ReadOptions::default()
    }

    /// The largest number of threads that work on the call, the calling one included. 0, and more than
    /// [`ThreadPool::MAX_THREADS`], are refused by the call.
    pub fn num_threads(mut self, count: usize) -> ReadOptions {
        self.num_threads = Some(count);
        self
    }

    /// The largest piece that one thread moves at a time. 0 is refused by the call.
    pub fn task_size(mut self, size: ByteSize) -> ReadOptions {
        self.task_size = Some(size);
        self
    }

    /// How many bytes may lie between two ranges that
    /// [`read_ranges`](crate::FileHandle::read_ranges) reads in one go: 2 KiB unless said otherwise, 0 for neighbours only.
    /// More pays on storage with a long way to it, less where memory is copied slowly. Other calls, writes among them,
    /// have no gaps and do not look at it.
    pub fn gap(mut self, size: ByteSize) -> ReadOptions {
        self.gap = Some(size);
        self
    }

    /// When to stop starting tasks. Those in flight finish; what is undone then is a `TimedOut` error.
    pub fn deadline(mut self, deadline: Instant) -> ReadOptions {
        self.deadline = Some(deadline);
        self
    }

    /// The deadline, counted from now.
    pub fn timeout(self, limit: Duration) -> ReadOptions {
        match Instant::now().checked_add(limit) {
            Some(deadline) => self.deadline(deadline),
            None => self, // Beyond what the clock can say: no deadline.
        }
    }
}
