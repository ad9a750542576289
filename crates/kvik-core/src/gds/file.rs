//! A file that cuFile knows: registered at the first use, by a descriptor of its own.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::Arc;

use kvik_sys::{CuFile, CuFileHandle};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::driver::driver;
use super::unavailable;
use crate::compat;
use crate::device;
use crate::error::{Error, Op, Result};
use crate::probe::FileProbe;
use crate::sync::{Mutex, lock};

/// A file that is to be read and written by cuFile, and registered when that is first done.
pub(crate) struct CuFileFile {
    file: Arc<File>,
    registered: Mutex<Option<Arc<RegisteredFile>>>,
}

/// The way of one call through cuFile.
#[derive(Clone)]
pub struct CuFileWay {
    file: Arc<CuFileFile>,
    threshold: u64,
}

/// A file registered with cuFile; deregistered exactly once, on drop.
pub(crate) struct RegisteredFile {
    handle: CuFileHandle,
    cufile: CuFile,
    // cuFile uses the descriptor until `drop` has run, so nobody else's is taken: that one may be closed before.
    file: File,
}

impl CuFileFile {
    pub(crate) fn new(file: Arc<File>) -> CuFileFile {
        CuFileFile {
            file,
            registered: Mutex::new(None),
        }
    }

    /// The way for transfers of at least `threshold` bytes.
    pub(crate) fn way(self: &Arc<CuFileFile>, threshold: u64) -> CuFileWay {
        CuFileWay {
            file: Arc::clone(self),
            threshold,
        }
    }
}

impl CuFileWay {
    /// Whether a transfer of `len` bytes goes this way.
    pub(crate) fn takes(&self, len: u64) -> bool {
        len >= self.threshold
    }

    /// The file as cuFile knows it; the first call registers it.
    ///
    /// # Errors
    /// `GdsUnavailable` if cuFile cannot be used or does not take the file: the next call tries again. `Forked` in a child of
    /// the process that uses devices.
    pub(crate) fn registered(&self) -> Result<Arc<RegisteredFile>> {
        // Before the lock, which a thread that a child lacks may hold for ever.
        let cufile = driver()?;
        let mut registered = lock(&self.file.registered);
        if let Some(registered) = &*registered {
            return Ok(Arc::clone(registered));
        }
        let made = Arc::new(RegisteredFile::new(&self.file.file, cufile)?);
        Ok(Arc::clone(registered.insert(made)))
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
    fn new(buffered: &File, cufile: CuFile) -> Result<RegisteredFile> {
        let file = match without_page_cache(buffered) {
            Ok(file) => file,
            // cuFile then copies by the page cache.
            Err(_) => buffered
                .try_clone()
                .map_err(|cause| Error::io(Op::Open, cause))?,
        };
        // SAFETY: the descriptor is ours, and closed only after `drop` has deregistered it.
        let handle = unsafe { cufile.handle_register(file.as_raw_fd()) }.map_err(|status| {
            let mut why = format!("not usable on this file: cuFileHandleRegister: {status}");
            let probe = FileProbe::of(buffered.as_fd()).ok();
            if let Some(missing) = probe.as_ref().and_then(compat::unrecorded) {
                why = format!("{missing} (cuFileHandleRegister: {status})");
            }
            unavailable(&why).because(status)
        })?;
        Ok(RegisteredFile {
            handle,
            cufile,
            file,
        })
    }

    pub(crate) fn handle(&self) -> CuFileHandle {
        self.handle
    }

    pub(crate) fn cufile(&self) -> &CuFile {
        &self.cufile
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
        // SAFETY: `new` is the only maker of `handle` and this is its only release. No read or write is in flight: they
        // borrow the engine that holds an `Arc` of us.
        unsafe { self.cufile.handle_deregister(self.handle) }
    }
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
