//! Single copies on the default stream of the context that is entered: behind what was queued there, and done when they
//! return.

use std::ptr::NonNull;

use kvik_sys::{DevicePtr, Stream};

use super::driver::{driver, failed};
use super::raw_stream::RawStream;
use crate::error::{Op, Result};

/// Refuses copies while they would end a recording.
///
/// # Errors
/// `Misuse` while a stream that is ordered with the default stream records a graph; `Device` if the driver fails.
pub(crate) fn refuse_capture() -> Result<()> {
    RawStream::DEFAULT.refuse_capture(driver()?.cuda(), Op::Copy)
}

/// Copies `len` bytes to the device. Whether it may, [`refuse_capture`] was asked.
///
/// # Errors
/// `Device` if the driver fails.
///
/// # Safety
/// The memory at `from` is valid, initialised and pinned, and nobody writes to it; that at `to` is memory of the context's
/// device or managed, valid, and nobody else touches it. After an error both hold until [`is_quiet`].
pub(crate) unsafe fn to_device(to: u64, from: NonNull<u8>, len: usize) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    let cuda = driver()?.cuda();
    // SAFETY: the caller's promise.
    unsafe { cuda.memcpy_htod(DevicePtr::new(to), from.as_ptr(), len) }
        .map_err(|status| failed(Op::Copy, "cuMemcpyHtoD", status))
}

/// Copies `len` bytes from the device.
///
/// # Errors
/// As for [`to_device`].
///
/// # Safety
/// As for [`to_device`], with the roles of the two changed.
pub(crate) unsafe fn to_host(to: NonNull<u8>, from: u64, len: usize) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    let cuda = driver()?.cuda();
    // SAFETY: the caller's promise.
    unsafe { cuda.memcpy_dtoh(to.as_ptr(), DevicePtr::new(from), len) }
        .map_err(|status| failed(Op::Copy, "cuMemcpyDtoH", status))
}

/// Waits until none of these copies is under way; `false` if that cannot be known.
pub(crate) fn is_quiet() -> bool {
    let Ok(driver) = driver() else { return false };
    // Not for the context, which would end the recording of any stream in it. The driver may answer with what went wrong
    // before, once, and without having waited.
    (0..2).any(|_| {
        // SAFETY: the default stream is there as long as the context.
        unsafe { driver.cuda().stream_synchronize(Stream::DEFAULT) }.is_ok()
    })
}
