//! cuFile's library and driver: loaded and opened once, behind CUDA's.

use std::env;
use std::ffi::CString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::ptr;
use std::sync::atomic::AtomicPtr;

use kvik_config::Config;
use kvik_sys::{Candidates, CuFile, StringParameter};

use super::unavailable;
use crate::device;
use crate::error::{ErrorKind, Result};
use crate::pool::shared_value;
use crate::sync::{Mutex, lock};

/// cuFile with its driver open, which the first call loads and opens.
///
/// # Errors
/// `GdsUnavailable` if CUDA's driver does not start, the library cannot be loaded or its driver does not open: the next call
/// tries again. `Forked` in a child of the process that uses devices.
pub(super) fn driver() -> Result<CuFile> {
    // Before anything of cuFile's: without CUDA's driver, opening its own never returns.
    device::start().map_err(|error| match error.kind() {
        ErrorKind::Forked => error,
        _ => unavailable(&format!("not usable: {error}")).because(error),
    })?;
    // A child never comes here, so that nobody waits for a thread that it does not have.
    let mut opened = lock(shared_value(&OPENED, Mutex::default));
    if let Some(cufile) = &*opened {
        return Ok(cufile.clone());
    }
    let cufile = load()?;
    keep_log_out_of_working_directory(&cufile);
    cufile.driver_open().map_err(|status| {
        unavailable(&format!("not usable: cuFileDriverOpen: {status}")).because(status)
    })?;
    Ok(opened.insert(cufile).clone())
}

fn load() -> Result<CuFile> {
    let candidates = match Config::current().cufile_library()? {
        Some(path) => Candidates::only(path),
        None => Candidates::cufile(),
    };
    // SAFETY: the names are those of the vendor's library. A path is said by the program, the environment or the user's own
    // settings file, all of which decide what code runs in this process anyway.
    unsafe { CuFile::load(&candidates) }
        .map_err(|error| unavailable(&format!("not installed: {error}")).because(error))
}

/// cuFile writes its log into the working directory unless told otherwise. Whoever has settings for cuFile has said where.
fn keep_log_out_of_working_directory(cufile: &CuFile) {
    if is_configured() {
        return;
    }
    if let Ok(folder) = log_folder() {
        // An older cuFile cannot be told: its log lies where it always did.
        let _ = cufile.set_parameter_string(StringParameter::LOG_DIR, &folder);
    }
}

/// Whether cuFile finds settings of its own.
#[expect(
    clippy::disallowed_methods,
    reason = "no setting of kvik's, but the variable by which cuFile finds its own"
)]
fn is_configured() -> bool {
    env::var_os("CUFILE_ENV_PATH_JSON").is_some() || Path::new("/etc/cufile.json").exists()
}

/// A folder for temporary files that is this user's alone: in one that others may write to, they could lay a link in the
/// place of the log.
#[expect(
    clippy::disallowed_methods,
    reason = "no setting of kvik's, but where the system keeps temporary files"
)]
fn log_folder() -> io::Result<CString> {
    let user = nix::unistd::geteuid().as_raw();
    let folder = env::temp_dir().join(format!("kvik-cufile-{user}"));
    // It may be there already.
    let _ = DirBuilder::new().mode(0o700).create(&folder);
    let there = fs::symlink_metadata(&folder)?;
    if !there.is_dir() || there.uid() != user || there.mode() & 0o022 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(CString::new(folder.as_os_str().as_bytes())?)
}

static OPENED: AtomicPtr<Mutex<Option<CuFile>>> = AtomicPtr::new(ptr::null_mut());
