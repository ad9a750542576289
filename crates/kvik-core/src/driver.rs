//! cuFile's driver, for programs that want it open before its first use, or want to see and set what it works with.
//!
//! Nobody has to: the first transfer that goes by cuFile opens the driver, and it stays open. What a program opens here is
//! counted apart from that: the last [`close`] closes the driver, unless a file or a buffer is registered, and then as soon as
//! none is. CUDA's driver is started before it is opened. Opening is given up after half a minute; where it does not come back,
//! the process goes on without cuFile.
//!
//! # Example: what cuFile can do here
//! ```no_run
//! use kvik_core::driver;
//!
//! # fn main() -> kvik_core::Result<()> {
//! let _open = driver::initialize()?;
//! let properties = driver::properties()?;
//! println!("cuFile {:?}, nvidia-fs {:?}", driver::version()?, properties.nvidia_fs_version);
//! driver::set_max_device_cache_size_kib(64 << 10)?;
//! # Ok(())
//! # }
//! ```

use kvik_sys::{CuFile, CuFileStatus};

use crate::error::{Error, ErrorKind, Op, Result};
use crate::gds::{driver, library};

/// cuFile's driver, open until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it closes the driver"]
pub struct OpenDriver(());

/// What cuFile's driver says of itself and of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Properties {
    /// Major and minor version of the kernel module nvidia-fs; zeros where there is none. There are direct paths without it.
    pub nvidia_fs_version: (u32, u32),
    /// Whether cuFile may copy through memory of the host where no direct path leads.
    pub allow_compat_mode: bool,
    /// Whether the kernel's own way between devices on the bus (PCI P2PDMA) can be used.
    pub p2pdma: bool,
    /// Whether small reads and writes wait for the device by looking again and again.
    pub poll_mode: bool,
    /// Up to which size they do, in KiB.
    pub poll_thresh_size_kib: u64,
    /// The largest request to the direct path, in KiB.
    pub max_direct_io_size_kib: u64,
    /// Device memory for buffers that are not registered, in KiB.
    pub max_device_cache_size_kib: u64,
    /// The part of it that one buffer takes, in KiB.
    pub per_buffer_cache_size_kib: u64,
    /// Device memory that may be registered, in KiB.
    pub max_pinned_memory_size_kib: u64,
    /// How many requests one batch takes.
    pub max_batch_io_size: u32,
}

/// Opens the driver, or counts one more opening.
///
/// # Errors
/// `GdsUnavailable` if CUDA's driver does not start, the library cannot be loaded, or its driver does not open, or not within half
/// a minute: from then on at once. `Forked` in a child of the process that uses devices.
pub fn open() -> Result<()> {
    driver::open().map_err(|refusal| refusal.of_driver(Op::Open))
}

/// Ends one opening by [`open`]; the last one closes the driver, or lets it be closed when nothing is registered any more.
///
/// # Errors
/// `Misuse` if there is no opening to end; `GdsUnavailable` if cuFile refuses to close it, or does not come back; `Forked` in a
/// child of the process that uses devices.
pub fn close() -> Result<()> {
    driver::close()
}

/// Opens the driver for as long as the answer lives.
///
/// # Errors
/// As for [`open`].
pub fn initialize() -> Result<OpenDriver> {
    open().map(|()| OpenDriver(()))
}

/// Major and minor version of cuFile's library, which is loaded for it; no driver is opened.
///
/// # Errors
/// `GdsUnavailable` if the library cannot be loaded; `Unsupported` if it is older than 1.8, and does not tell.
pub fn version() -> Result<(u32, u32)> {
    let cufile = library::load().map_err(|refusal| refusal.of_driver(Op::Inspect))?;
    match cufile.get_version() {
        Ok(number) => {
            let number = number.unsigned_abs();
            Ok((number / 1000, number % 1000 / 10))
        }
        Err(kvik_sys::CallError::Unsupported(lack)) => {
            Err(Error::new(ErrorKind::Unsupported, Op::Inspect, lack.to_string()).because(lack))
        }
        Err(kvik_sys::CallError::Status(status)) => {
            Err(failed(Op::Inspect, "cuFileGetVersion", status))
        }
    }
}

/// What the driver says of itself, which opens it where it is not open.
///
/// # Errors
/// As for [`open`]; `Device` if cuFile does not tell.
pub fn properties() -> Result<Properties> {
    let wanted = driver::Wanted::Any;
    let open = driver::acquire(wanted).map_err(|refusal| refusal.of_driver(Op::Inspect))?;
    properties_of(open.cufile())
}

/// Has small reads and writes wait for the device by looking again and again, or not; up to which size stays as it is.
///
/// This and the other settings open the driver where it is not open, and hold for as long as the process: a driver that is closed
/// and opened again is told again.
///
/// # Errors
/// As for [`open`]; `Misuse` if cuFile does not take the value.
pub fn set_poll_mode(poll: bool) -> Result<()> {
    set_poll(|known| (poll, known.poll_thresh_size_kib))
}

/// Sets up to which size, in KiB, reads and writes wait by looking again and again, where they do.
///
/// # Errors
/// As for [`set_poll_mode`].
pub fn set_poll_thresh_size_kib(kib: u64) -> Result<()> {
    set_poll(|known| (known.poll_mode, kib))
}

/// Sets how much device memory buffers that are not registered may take, in KiB. Without nvidia-fs, cuFile (1.15) takes the value and
/// goes on telling the old one.
///
/// # Errors
/// As for [`set_poll_mode`].
pub fn set_max_device_cache_size_kib(kib: u64) -> Result<()> {
    let kib = kib as usize;
    driver::set(|cufile, settings| {
        let set = cufile.driver_set_max_cache_size(kib);
        set.map_err(|status| failed(Op::Configure, "cuFileDriverSetMaxCacheSize", status))?;
        settings.max_device_cache = Some(kib);
        Ok(())
    })
}

/// Sets how much device memory may be registered, in KiB.
///
/// # Errors
/// As for [`set_poll_mode`].
pub fn set_max_pinned_memory_size_kib(kib: u64) -> Result<()> {
    let kib = kib as usize;
    driver::set(|cufile, settings| {
        let set = cufile.driver_set_max_pinned_mem_size(kib);
        set.map_err(|status| failed(Op::Configure, "cuFileDriverSetMaxPinnedMemSize", status))?;
        settings.max_pinned_memory = Some(kib);
        Ok(())
    })
}

/// cuFile takes both at once.
fn set_poll(choose: impl FnOnce(&Properties) -> (bool, u64)) -> Result<()> {
    driver::set(|cufile, settings| {
        let (poll, kib) = choose(&properties_of(cufile)?);
        let kib = kib as usize;
        let set = cufile.driver_set_poll_mode(poll, kib);
        set.map_err(|status| failed(Op::Configure, "cuFileDriverSetPollMode", status))?;
        settings.poll = Some((poll, kib));
        Ok(())
    })
}

fn properties_of(cufile: &CuFile) -> Result<Properties> {
    let told = cufile
        .driver_get_properties()
        .map_err(|status| failed(Op::Inspect, "cuFileDriverGetProperties", status))?;
    Ok(Properties {
        nvidia_fs_version: told.nvfs_version,
        allow_compat_mode: told.allows_compat_mode(),
        p2pdma: told.supports_p2p(),
        poll_mode: told.polls(),
        poll_thresh_size_kib: told.poll_threshold_kib as u64,
        max_direct_io_size_kib: told.max_direct_io_kib as u64,
        max_device_cache_size_kib: told.max_device_cache_kib.into(),
        per_buffer_cache_size_kib: told.per_buffer_cache_kib.into(),
        max_pinned_memory_size_kib: told.max_device_pinned_kib.into(),
        max_batch_io_size: told.max_batch_io,
    })
}

fn failed(op: Op, call: &str, status: CuFileStatus) -> Error {
    let kind = match status.op {
        CuFileStatus::INVALID_VALUE | CuFileStatus::DRIVER_UNSUPPORTED_LIMIT => ErrorKind::Misuse,
        _ => ErrorKind::Device,
    };
    Error::new(kind, op, format!("{call}: {status}")).because(status)
}

impl Drop for OpenDriver {
    fn drop(&mut self) {
        if let Err(error) = close() {
            tracing::debug!(%error, "cuFile's driver was not closed");
        }
    }
}

/// What the project's own tests need and nobody else: the signs of a machine that is not there, and a shorter wait.
#[doc(hidden)]
pub mod for_tests {
    use std::time::Duration;

    use crate::gds::{driver, sign};

    /// As if the machine had shown a direct path by this sign, or none for this reason, from now on.
    pub fn show_direct_path(sign: Result<&str, &str>) {
        sign::show(sign);
    }

    /// Has the driver given up sooner.
    pub fn wait_for_driver(limit: Duration) {
        driver::wait_for(limit);
    }
}
