//! A file that cuFile knows: registered at the first use, by a descriptor of its own.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kvik_stats::names;
use kvik_sys::{CuFile, CuFileHandle, CuFileStatus};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::driver::{self, Mode, Use, Wanted};
use super::edges;
use super::opening::lacks;
use super::refusal::Refusal;
use super::sign;
use crate::compat;
use crate::device::{self, Spot};
use crate::error::{Error, Op, Result};
use crate::once::Once;
use crate::probe::FileProbe;
use crate::sync::{Mutex, lock};

/// A file that is to be read and written by cuFile, and registered when that is first done.
pub(crate) struct CuFileFile {
    file: Arc<File>,
    // Whether nothing else may move its bytes; if not, cuFile does where a direct path was proven.
    required: bool,
    registered: Mutex<Option<Arc<RegisteredFile>>>,
    // Why it is left to the staged way, for good.
    given_up: Once<String>,
}

/// What is known of cuFile and a file.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    /// Nobody has tried it yet.
    Untried,
    /// It has registered the file, with this proof of a direct path if it had to be proven.
    Registered(&'static str),
    /// It was given up, for this reason.
    GivenUp(String),
}

/// The way of one call through cuFile.
#[derive(Clone)]
pub struct CuFileWay {
    file: Arc<CuFileFile>,
    threshold: Result<u64>,
}

/// A file registered with cuFile; deregistered exactly once, on drop.
pub(crate) struct RegisteredFile {
    handle: CuFileHandle,
    proof: &'static str,
    // Whether a direct path was proven, and cuFile has calls for streams.
    serves_streams: bool,
    // Whether cuFile has refused to move its bytes many at a time.
    no_batches: AtomicBool,
    // For writes to parts of pages.
    edges: Arc<Mutex<()>>,
    // cuFile uses the descriptor until `drop` has run, so nobody else's is taken: that one may be closed before.
    file: File,
    // The driver stays open until the file is not registered any more.
    driver: Use,
}

impl CuFileFile {
    /// A file that only cuFile may move if `required`, else where a direct path was proven.
    pub(crate) fn new(file: Arc<File>, required: bool) -> CuFileFile {
        CuFileFile {
            file,
            required,
            registered: Mutex::new(None),
            given_up: Once::new(),
        }
    }

    /// The way for transfers of at least `threshold` bytes, if cuFile is to be asked at all. Who moves bytes of the host's memory has
    /// no use for it, and does not hear of a setting that cannot be used.
    pub(crate) fn way(self: &Arc<CuFileFile>, threshold: Result<u64>) -> Option<CuFileWay> {
        self.is_open().then(|| CuFileWay {
            file: Arc::clone(self),
            threshold,
        })
    }

    /// Whether cuFile is to be asked at all: neither was it given up nor is it known that there is no direct path.
    pub(crate) fn is_open(&self) -> bool {
        self.required || self.given_up.get().is_none() && !sign::is_known_to_miss()
    }

    /// What has become of it. Not for a child, which lacks the thread that may have the lock.
    pub(crate) fn standing(&self) -> Standing {
        if let Some(why) = self.given_up.get() {
            return Standing::GivenUp(why.clone());
        }
        match &*lock(&self.registered) {
            Some(registered) => Standing::Registered(registered.proof),
            None => Standing::Untried,
        }
    }

    fn register(&self) -> Result<Arc<RegisteredFile>, Refusal> {
        let wanted = match self.required {
            true => Mode::Compatible,
            false => Mode::Direct,
        };
        // Before the lock, which a thread that a child lacks may hold for ever.
        device::check_process().map_err(|error| Refusal::of(error).passing())?;
        let mut registered = lock(&self.registered);
        if let Some(registered) = &*registered {
            return Ok(Arc::clone(registered));
        }
        // Whoever gave it up since we were sent here has taken it out, for good.
        if let Some(why) = self.given_up.get() {
            return Err(Refusal::new(why.clone()));
        }
        let driver = driver::acquire(Wanted::Only(wanted))?;
        let made = Arc::new(RegisteredFile::new(&self.file, driver, wanted)?);
        Ok(Arc::clone(registered.insert(made)))
    }

    /// From now on everything is staged.
    fn give_up(&self, why: &str) {
        // Of several that fail at once, one tells.
        if self.given_up.set(why.to_owned()).1 {
            names::FALLBACKS.increment();
            names::FALLBACKS_OF_CUFILE.increment();
            let fd = self.file.as_raw_fd();
            tracing::warn!(
                fd,
                why,
                "cuFile does not move this file any more; its bytes are staged"
            );
            // Whoever still moves bytes by it has it, too.
            let registered = lock(&self.registered).take();
            drop(registered);
        }
    }
}

impl CuFileWay {
    /// Whether a transfer of `len` bytes of a device goes this way. Memory that is managed does not: cuFile takes none.
    ///
    /// # Errors
    /// The threshold is a setting that cannot be used.
    pub(crate) fn takes(&self, len: u64, spots: &[Spot]) -> Result<bool> {
        let fits = len >= self.threshold.clone()? && !spots.iter().any(|spot| spot.managed);
        // The sign is looked for last: that takes its time.
        let file = &self.file;
        Ok(fits && (file.required || file.is_open() && sign::sign().known().is_some()))
    }

    /// The file as cuFile knows it; the first call registers it. Nothing where it is to be staged instead.
    ///
    /// # Errors
    /// Of a file that only cuFile may move, `GdsUnavailable` if cuFile cannot be used or does not take the file: the next call
    /// tries again. `Forked` in a child of the process that uses devices.
    pub(crate) fn registered(&self) -> Result<Option<Arc<RegisteredFile>>> {
        match self.file.register() {
            Ok(registered) => Ok(Some(registered)),
            Err(refusal) if self.file.required => Err(refusal.required()),
            Err(refusal) => {
                match refusal.passes() {
                    true => tracing::debug!(why = refusal.why(), "a transfer is staged"),
                    false => self.file.give_up(refusal.why()),
                }
                Ok(None)
            }
        }
    }

    /// Whether what fails may be staged.
    pub(crate) fn gives_way(&self) -> bool {
        !self.file.required
    }

    /// Whether cuFile was given up, by anybody.
    pub(crate) fn is_given_up(&self) -> bool {
        self.file.given_up.get().is_some()
    }

    /// A call of cuFile's failed, and another way is open.
    pub(crate) fn give_up(&self, error: &Error) {
        self.file.give_up(&format!("a call of it failed: {error}"));
    }
}

impl fmt::Debug for CuFileWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuFileWay")
            .field("threshold", &self.threshold)
            .finish_non_exhaustive()
    }
}

impl RegisteredFile {
    fn new(buffered: &File, driver: Use, wanted: Mode) -> Result<RegisteredFile, Refusal> {
        let proof = match (wanted, driver.mode()) {
            (Mode::Compatible, _) => "the compat mode OFF requires it",
            (Mode::Direct, Mode::Direct) => "cuFile has registered it with its compatible mode off",
            (Mode::Direct, Mode::Compatible) => proof_by_properties(buffered, &driver)?,
        };
        let file = match without_page_cache(buffered) {
            Ok(file) => file,
            // cuFile then copies by the page cache.
            Err(_) => buffered
                .try_clone()
                .map_err(|cause| Refusal::of(Error::io(Op::Open, cause)))?,
        };
        let edges =
            edges::edges(&file).map_err(|cause| Refusal::of(Error::io(Op::Inspect, cause)))?;
        // SAFETY: the descriptor is ours, and closed only after `drop` has deregistered it.
        let handle = unsafe { driver.cufile().handle_register(file.as_raw_fd()) }
            .map_err(|status| not_registered(buffered, (wanted, driver.mode()), status))?;
        let is_direct = wanted == Mode::Direct || driver.mode() == Mode::Direct;
        let lacks =
            ["cuFileReadAsync", "cuFileWriteAsync"].map(|call| lacks(driver.cufile(), call));
        let serves_streams = is_direct && lacks == [false; 2];
        Ok(RegisteredFile {
            handle,
            proof,
            serves_streams,
            no_batches: AtomicBool::new(false),
            edges,
            file,
            driver,
        })
    }

    pub(crate) fn handle(&self) -> CuFileHandle {
        self.handle
    }

    /// Whether cuFile moves its bytes in the order of streams: by a direct path, and with calls for that.
    pub(crate) fn serves_streams(&self) -> bool {
        self.serves_streams
    }

    /// What writes to [parts of pages](edges::has_edges) hold while they run.
    pub(crate) fn edges(&self) -> &Mutex<()> {
        &self.edges
    }

    /// Whether cuFile is to be given requests many at a time.
    pub(crate) fn takes_batches(&self) -> bool {
        !self.no_batches.load(Ordering::Relaxed)
    }

    /// It has refused them for this file, as it will again.
    pub(crate) fn refuses_batches(&self) {
        self.no_batches.store(true, Ordering::Relaxed);
    }

    pub(crate) fn cufile(&self) -> &CuFile {
        self.driver.cufile()
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl AsFd for RegisteredFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for RegisteredFile {
    fn drop(&mut self) {
        // What a child inherited is its parent's.
        if !device::is_started() {
            return;
        }
        // SAFETY: `new` is the only maker of `handle` and this is its only release. No read or write is in flight: blocking
        // ones borrow the engine that holds an `Arc` of us; `RequestQueue` keeps one for ever if requests have no answer; and
        // the `Numbers` of a transfer on a stream keep one until the stream is past it.
        unsafe { self.cufile().handle_deregister(self.handle) }
    }
}

/// What stands in for a proof where cuFile is older than the parameter for its compatible mode, and registers any file.
fn proof_by_properties(file: &File, driver: &Use) -> Result<&'static str, Refusal> {
    let properties = driver.cufile().driver_get_properties();
    let properties =
        properties.map_err(|status| Refusal::of_call("cuFileDriverGetProperties", status))?;
    let by_nvidia_fs = properties.nvfs_version != (0, 0) && properties.supports_nvme();
    let probe = FileProbe::of(file.as_fd()).map_err(Refusal::of)?;
    compat::is_served_by_nvidia_fs(by_nvidia_fs, &probe).map_err(|why| {
        Refusal::new(format!(
            "older than 1.14, before which it does not tell for which files it has a direct path: {why}"
        ))
    })
}

/// Why a file is not registered, with what may help.
fn not_registered(file: &File, (wanted, mode): (Mode, Mode), status: CuFileStatus) -> Refusal {
    let call = format!("cuFileHandleRegister: {status}");
    let probe = FileProbe::of(file.as_fd()).ok();
    let missing = probe.as_ref().and_then(compat::unrecorded);
    let why = match (wanted, mode, missing) {
        (Mode::Compatible, Mode::Direct, _) => format!(
            "not usable on this file: {call}; its driver is open without its compatible mode, for what is registered with it: \
             when that is closed, the next transfer opens it anew"
        ),
        (_, _, Some(missing)) => format!("{missing} ({call})"),
        (Mode::Direct, ..) => {
            format!("not usable on this file without its compatible mode: {call}")
        }
        (Mode::Compatible, ..) => format!("not usable on this file: {call}"),
    };
    Refusal::new(why).because(status)
}

/// The same file past the page cache, by a descriptor of its own.
fn without_page_cache(buffered: &File) -> io::Result<File> {
    let kind = buffered.metadata()?.file_type();
    // Opening anything else once more can wait or have effects.
    if !kind.is_file() && !kind.is_block_device() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let flags = OFlag::from_bits_retain(fcntl(buffered, FcntlArg::F_GETFL)?);
    let access = flags & OFlag::O_ACCMODE;
    File::options()
        .read(access != OFlag::O_WRONLY)
        .write(access != OFlag::O_RDONLY)
        .custom_flags(libc::O_DIRECT | libc::O_NOCTTY)
        .open(format!("/proc/self/fd/{}", buffered.as_raw_fd()))
}
