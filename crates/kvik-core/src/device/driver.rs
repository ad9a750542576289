//! The CUDA driver of the process: loaded and started once, and what is said when it refuses.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use kvik_config::Config;
use kvik_sys::{CallError, Candidates, Cuda, CudaStatus};

use crate::error::{Error, ErrorKind, Op, Result};
use crate::fork;
use crate::pool::shared_value;

/// The driver, started.
pub(crate) struct Driver {
    cuda: Cuda,
    version: i32,
}

impl Driver {
    /// Its functions.
    pub(crate) fn cuda(&self) -> &Cuda {
        &self.cuda
    }

    /// The version of CUDA that it supports, as `1000 * major + 10 * minor`.
    #[allow(dead_code, reason = "for the probe, which is to tell it")]
    pub(crate) fn version(&self) -> i32 {
        self.version
    }
}

/// The driver, which the first call loads and starts.
///
/// # Errors
/// `Unsupported` if no library can be loaded, with the names that were tried; `Device` if it does not start, for lack of a
/// device for instance. Both stay as they are for the life of the process. `Forked` in a child of the process that
/// started it.
pub(crate) fn driver() -> Result<&'static Driver> {
    if !is_ours() {
        // A child may go on without devices where its parent had to; what the parent was just loading is lost to both.
        return match OUTCOME.load(Ordering::Acquire).is_null() {
            true => Err(forked()),
            false => shared_value(&OUTCOME, load)
                .as_ref()
                .map_err(Error::clone)
                .and(Err(forked())),
        };
    }
    shared_value(&OUTCOME, load).as_ref().map_err(Error::clone)
}

/// The driver, if this process has started it. Nothing is loaded.
pub(crate) fn started() -> Option<&'static Driver> {
    // Without an owner there is no outcome either, and this process must not become the owner by asking.
    let nobody = OWNER.load(Ordering::Acquire) == 0 || OUTCOME.load(Ordering::Acquire).is_null();
    (!nobody).then(|| driver().ok()).flatten()
}

/// Loads and starts the driver where nobody has, for those who need no function of it.
///
/// # Errors
/// As for [`driver`].
pub(crate) fn start() -> Result<()> {
    driver().map(drop)
}

/// An error in a child of the process that has started the driver. Nothing is loaded.
///
/// # Errors
/// `Forked`.
pub(crate) fn check_process() -> Result<()> {
    match OWNER.load(Ordering::Acquire) {
        0 => Ok(()),
        _ if is_ours() => Ok(()),
        _ => Err(forked()),
    }
}

/// Whether this process has started the driver. Nothing is loaded.
pub(crate) fn is_started() -> bool {
    started().is_some()
}

/// Whether this process is the one that the driver belongs to; it is if nobody was before.
fn is_ours() -> bool {
    let this = fork::generation() + 1;
    let owner = match OWNER.load(Ordering::Acquire) {
        0 => match OWNER.compare_exchange(0, this, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => this,
            Err(owner) => owner,
        },
        owner => owner,
    };
    owner == this
}

fn forked() -> Error {
    let why = "a device cannot be used in a child of the process that used it first";
    Error::new(ErrorKind::Forked, Op::Inspect, why)
}

fn load() -> Result<Driver> {
    let candidates = match Config::current().cuda_library()? {
        Some(path) => Candidates::only(path),
        None => Candidates::cuda(),
    };
    // SAFETY: the names are those of the vendor's library. A path is said by the program, the environment or the user's own
    // settings file, all of which decide what code runs in this process anyway.
    let cuda = unsafe { Cuda::load(&candidates) }.map_err(|error| {
        let why = format!("there is no CUDA driver here: {error}");
        Error::new(ErrorKind::Unsupported, Op::Inspect, why).because(error)
    })?;
    cuda.init()
        .map_err(|status| told(&cuda, Op::Inspect, "cuInit", status))?;
    let version = cuda
        .driver_get_version()
        .map_err(|status| told(&cuda, Op::Inspect, "cuDriverGetVersion", status))?;
    Ok(Driver { cuda, version })
}

/// The error for what the driver answered to `call`, in the driver's own words.
pub(crate) fn failed(op: Op, call: &'static str, status: CudaStatus) -> Error {
    match started() {
        Some(driver) => told(&driver.cuda, op, call, status),
        None => Error::new(kind_of(status), op, format!("{call}: {status}")).because(status),
    }
}

/// The same for a function that the driver may lack.
pub(crate) fn refused(op: Op, call: &'static str, why: CallError<CudaStatus>) -> Error {
    match why {
        CallError::Status(status) => failed(op, call, status),
        CallError::Unsupported(lack) => {
            Error::new(ErrorKind::Unsupported, op, lack.to_string()).because(lack)
        }
    }
}

fn told(cuda: &Cuda, op: Op, call: &str, status: CudaStatus) -> Error {
    let why = format!("{call}: {}", cuda.text(status));
    Error::new(kind_of(status), op, why).because(status)
}

fn kind_of(status: CudaStatus) -> ErrorKind {
    match status {
        CudaStatus::OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        CudaStatus::NOT_SUPPORTED => ErrorKind::Unsupported,
        _ => ErrorKind::Device,
    }
}

static OUTCOME: AtomicPtr<Result<Driver>> = AtomicPtr::new(ptr::null_mut());
/// One more than the generation of the process that was the first to ask; 0 until then.
static OWNER: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
