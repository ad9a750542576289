//! Single copies on the default stream of the context that is entered: behind what was queued there, and done when they
//! return.

use std::ptr::NonNull;

use kvik_sys::DevicePtr;

use super::driver::{driver, failed};
use super::raw_stream::RawStream;
use crate::error::{Op, Result};

/// Copies `len` bytes to the device.
///
/// # Errors
/// `Misuse` while a stream that is ordered with the default stream records a graph; `Device` if the driver fails.
///
/// # Safety
/// The memory at `from` is valid, initialised and pinned, and nobody writes to it; that at `to` is memory of the context's
/// device or managed, valid, and nobody else touches it. After an error both hold until [`is_quiet`].
pub(crate) unsafe fn to_device(to: u64, from: NonNull<u8>, len: usize) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    let cuda = driver()?.cuda();
    RawStream::DEFAULT.refuse_capture(cuda, Op::Copy)?;
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
    RawStream::DEFAULT.refuse_capture(cuda, Op::Copy)?;
    // SAFETY: the caller's promise.
    unsafe { cuda.memcpy_dtoh(to.as_ptr(), DevicePtr::new(from), len) }
        .map_err(|status| failed(Op::Copy, "cuMemcpyDtoH", status))
}

/// Waits until nothing in the context is under way; `false` if that cannot be known.
pub(crate) fn is_quiet() -> bool {
    // The driver may answer with what went wrong before, once, and without having waited.
    driver().is_ok_and(|driver| (0..2).any(|_| driver.cuda().ctx_synchronize().is_ok()))
}
