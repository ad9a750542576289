//! Contexts: which one the calling thread works in, and each device's primary one.

use std::ffi::{c_int, c_uint};
use std::ptr;

use super::Cuda;
use crate::handle::{Context, Device};
use crate::raw::cuda::{CUcontext, CUctx_flags};
use crate::status::{CallError, CudaStatus};

/// How a thread waits for the device, in contexts made with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContextFlags(c_uint);

impl ContextFlags {
    /// As the driver sees fit.
    pub const AUTO: Self = Self(CUctx_flags::CU_CTX_SCHED_AUTO.0);
    /// It sleeps.
    pub const BLOCKING_SYNC: Self = Self(CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC.0);
}

/// What can be told of a device's primary context without making it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrimaryState {
    /// The flags it has, or would be made with.
    pub flags: u32,
    /// Somebody holds it.
    pub active: bool,
}

impl Cuda {
    /// Holds the device's primary context, and makes it where nobody does yet.
    ///
    /// It is released as often as it was held, by
    /// [`device_primary_ctx_release`](Self::device_primary_ctx_release).
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn device_primary_ctx_retain(&self, device: Device) -> Result<Context, CudaStatus> {
        let mut context: CUcontext = ptr::null_mut();
        // SAFETY: `context` is writable for the call; a wrong device is answered with a status.
        CudaStatus::check(unsafe {
            (self.table().cuDevicePrimaryCtxRetain)(&raw mut context, device.as_raw())
        })?;
        Context::take(context).ok_or(CudaStatus::INVALID_CONTEXT)
    }

    /// Gives back one hold of the device's primary context. The last one destroys it, with all that was made in it.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. The hold is the caller's own.
    /// 2. Where it is the last: nothing of the context is used any more (rules 1 and 3).
    pub unsafe fn device_primary_ctx_release(&self, device: Device) -> Result<(), CudaStatus> {
        // SAFETY: points 1 and 2; a wrong device is answered with a status.
        CudaStatus::check(unsafe { (self.table().cuDevicePrimaryCtxRelease_v2)(device.as_raw()) })
    }

    /// Whether somebody holds the device's primary context. Asking does not make it.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn device_primary_ctx_get_state(&self, device: Device) -> Result<PrimaryState, CudaStatus> {
        let mut flags = 0;
        let mut active: c_int = 0;
        // SAFETY: both results are writable for the call; a wrong device is answered with a status.
        CudaStatus::check(unsafe {
            (self.table().cuDevicePrimaryCtxGetState)(
                device.as_raw(),
                &raw mut flags,
                &raw mut active,
            )
        })?;
        Ok(PrimaryState {
            flags,
            active: active != 0,
        })
    }

    /// The context in which the calling thread works.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn ctx_get_current(&self) -> Result<Option<Context>, CudaStatus> {
        let mut context: CUcontext = ptr::null_mut();
        // SAFETY: `context` is writable for the call.
        CudaStatus::check(unsafe { (self.table().cuCtxGetCurrent)(&raw mut context) })?;
        Ok(Context::take(context))
    }

    /// Replaces the context on top of the calling thread's stack; nothing takes the top away.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. The context is alive (rule 1).
    pub unsafe fn ctx_set_current(&self, context: Option<Context>) -> Result<(), CudaStatus> {
        let context = context.map_or(ptr::null_mut(), Context::give);
        // SAFETY: point 1, or null, which the reference allows.
        CudaStatus::check(unsafe { (self.table().cuCtxSetCurrent)(context) })
    }

    /// Puts a context on top of the calling thread's stack.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. The context is alive (rule 1).
    pub unsafe fn ctx_push_current(&self, context: Context) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe { (self.table().cuCtxPushCurrent_v2)(context.give()) })
    }

    /// Takes the top of the calling thread's stack away, and tells what it was.
    ///
    /// # Errors
    ///
    /// The driver's status; `INVALID_CONTEXT` where the stack is empty.
    pub fn ctx_pop_current(&self) -> Result<Option<Context>, CudaStatus> {
        let mut context: CUcontext = ptr::null_mut();
        // SAFETY: `context` is writable for the call.
        CudaStatus::check(unsafe { (self.table().cuCtxPopCurrent_v2)(&raw mut context) })?;
        Ok(Context::take(context))
    }

    /// The device of the current context.
    ///
    /// # Errors
    ///
    /// The driver's status; `INVALID_CONTEXT` where none is current.
    pub fn ctx_get_device(&self) -> Result<Device, CudaStatus> {
        let mut device = 0;
        // SAFETY: `device` is writable for the call.
        CudaStatus::check(unsafe { (self.table().cuCtxGetDevice)(&raw mut device) })?;
        Ok(Device::from_raw(device))
    }

    /// The number that a context shares with no other one of this process, before or after.
    ///
    /// # Errors
    ///
    /// The driver's status, `CONTEXT_IS_DESTROYED` for a context that is; or [`CallError::Unsupported`] before CUDA 12.0.
    ///
    /// # Safety
    ///
    /// 1. The driver gave out the context. It may have been destroyed.
    pub unsafe fn ctx_get_id(&self, context: Context) -> Result<u64, CallError<CudaStatus>> {
        let function = self.table().cuCtxGetId?;
        let mut id = 0;
        // SAFETY: point 1; `id` is writable for the call.
        CudaStatus::check(unsafe { function(context.give(), &raw mut id) })?;
        Ok(id)
    }

    /// Waits until all work of the current context is done.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    pub fn ctx_synchronize(&self) -> Result<(), CudaStatus> {
        // SAFETY: takes nothing.
        CudaStatus::check(unsafe { (self.table().cuCtxSynchronize)() })
    }

    /// Makes a context beside the primary one, and puts it on top of the calling thread's stack.
    ///
    /// # Errors
    ///
    /// The driver's status, or [`CallError::Unsupported`].
    pub fn ctx_create(
        &self,
        flags: ContextFlags,
        device: Device,
    ) -> Result<Context, CallError<CudaStatus>> {
        let function = self.table().cuCtxCreate_v2?;
        let mut context: CUcontext = ptr::null_mut();
        // SAFETY: `context` is writable for the call; wrong flags and devices are answered with a status.
        CudaStatus::check(unsafe { function(&raw mut context, flags.0, device.as_raw()) })?;
        Context::take(context).ok_or(CudaStatus::INVALID_CONTEXT.into())
    }

    /// Destroys a context made by [`ctx_create`](Self::ctx_create), with all that was made in it.
    ///
    /// # Errors
    ///
    /// The driver's status.
    ///
    /// # Safety
    ///
    /// 1. The context is alive (rule 1) and no primary one.
    /// 2. Nothing of it is used any more (rules 1 and 3).
    pub unsafe fn ctx_destroy(&self, context: Context) -> Result<(), CudaStatus> {
        // SAFETY: points 1 and 2.
        CudaStatus::check(unsafe { (self.table().cuCtxDestroy_v2)(context.give()) })
    }
}
