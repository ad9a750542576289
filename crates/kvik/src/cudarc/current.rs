//! The current context of the calling thread while cudarc is used, and what is said when cudarc fails.

use std::ptr;

use kvik_core::{Error, ErrorKind, Op, Result};

use super::driver::{CudaContext, DriverError, result, sys};

/// A context is current on this thread until this is dropped, and then the one that was before.
///
/// cudarc leaves behind the context that it worked in, which for the caller may be another library's.
#[must_use]
pub(super) struct Current {
    // What to put back, if it is another one; null for none. A raw pointer also keeps the guard on its thread.
    before: Option<sys::CUcontext>,
}

impl Current {
    /// Makes `context` current.
    ///
    /// # Errors
    /// What the driver says, or what cudarc has kept to be said.
    pub(super) fn enter(context: &CudaContext) -> Result<Current> {
        context.check_err().map_err(failed)?;
        Current::set(context).map_err(failed)
    }

    /// The same, which leaves to others what cudarc has kept.
    pub(super) fn set(context: &CudaContext) -> std::result::Result<Current, DriverError> {
        let before = result::ctx::get_current()?;
        if before == Some(context.cu_ctx()) {
            return Ok(Current { before: None });
        }
        // SAFETY: cudarc's context holds the driver's for as long as it is borrowed, and the guard gives up its place on the
        // thread.
        unsafe { result::ctx::set_current(context.cu_ctx()) }?;
        Ok(Current {
            before: Some(before.unwrap_or(ptr::null_mut())),
        })
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was current when the guard was made, or none was, which is what null means. Of one that was destroyed
            // meanwhile the driver takes the handle and answers later calls with a status. It fails only while the driver
            // shuts down, when there is nobody to tell.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}

/// The error for what the driver told cudarc.
pub(super) fn failed(error: DriverError) -> Error {
    let kind = match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => ErrorKind::Misuse,
        // Who has memory of cudarc's has initialised the driver: in another process, then.
        sys::CUresult::CUDA_ERROR_NOT_INITIALIZED => ErrorKind::Forked,
        _ => ErrorKind::Device,
    };
    Error::new(kind, Op::Inspect, format!("cudarc says {error}")).because(error)
}
