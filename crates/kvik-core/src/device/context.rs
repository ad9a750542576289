//! Contexts: which one a thread works in, and that it is the caller's again afterwards.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::AtomicPtr;

use kvik_sys::{CallError, CaptureMode, Cuda, CudaStatus, Device};

use super::driver::{driver, failed, started};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::pool::shared_value;
use crate::sync::{Mutex, lock};

/// A context of the driver: the address space, streams and allocations of one device.
///
/// Two are equal only if they are the same one: the driver may give the address of a destroyed context to another, but not
/// its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    handle: kvik_sys::Context,
    // 0 before CUDA 12.0, which does not tell.
    id: u64,
    device: i32,
}

impl Context {
    /// The context in which the calling thread works, if it does in any.
    pub(crate) fn current() -> Result<Option<Context>> {
        let cuda = driver()?.cuda();
        let current = cuda.ctx_get_current();
        match current.map_err(|status| failed(Op::Inspect, "cuCtxGetCurrent", status))? {
            Some(handle) => Context::entered(cuda, handle).map(Some),
            None => Ok(None),
        }
    }

    /// As [`current`](Context::current), where one is needed.
    pub(crate) fn current_or_misuse(op: Op) -> Result<Context> {
        Context::current()?.ok_or_else(|| {
            let why = "no CUDA context is current on this thread";
            Error::new(ErrorKind::Misuse, op, why)
        })
    }

    /// The primary context of a device. The first call holds it, and nobody gives it back.
    pub(crate) fn primary(device: i32) -> Result<Context> {
        let cuda = driver()?.cuda();
        let held = shared_value(&PRIMARIES, Mutex::default);
        let known = lock(held)
            .iter()
            .copied()
            .find(|context| context.device == device);
        if let Some(context) = known
            && context.state(cuda) == State::Alive
        {
            return Ok(context);
        }
        // Two threads may come here at once: the driver counts both holds on the one context, and neither is given back.
        let handle = cuda
            .device_primary_ctx_retain(Device::from_raw(device))
            .map_err(|status| failed(Op::Inspect, "cuDevicePrimaryCtxRetain", status))?;
        let context = Context::of(cuda, handle, device)?;
        let mut held = lock(held);
        // A device that was reset has a new one.
        held.retain(|other| other.device != device);
        held.push(context);
        Ok(context)
    }

    /// The context `handle`, which is alive, of `device`.
    pub(super) fn of(cuda: &Cuda, handle: kvik_sys::Context, device: i32) -> Result<Context> {
        let id =
            identity(cuda, handle).map_err(|status| failed(Op::Inspect, "cuCtxGetId", status))?;
        Ok(Context { handle, id, device })
    }

    /// The context `handle`, which is alive, wherever it is.
    pub(super) fn find(handle: kvik_sys::Context) -> Result<Context> {
        let cuda = driver()?.cuda();
        let unknown = Context {
            handle,
            id: identity(cuda, handle)
                .map_err(|status| failed(Op::Inspect, "cuCtxGetId", status))?,
            device: 0,
        };
        let _entered = unknown.enter()?;
        Context::entered(cuda, handle)
    }

    /// The context `handle`, which is current.
    fn entered(cuda: &Cuda, handle: kvik_sys::Context) -> Result<Context> {
        let device = cuda
            .ctx_get_device()
            .map_err(|status| failed(Op::Inspect, "cuCtxGetDevice", status))?;
        Context::of(cuda, handle, device.as_raw())
    }

    /// Makes it the calling thread's current one until the guard is dropped.
    ///
    /// # Errors
    /// `Device` if it was destroyed, or the driver fails.
    pub(crate) fn enter(self) -> Result<Entered> {
        let cuda = driver()?.cuda();
        let refused = |status| Err(failed(Op::Inspect, "cuCtxGetId", status));
        match self.state(cuda) {
            State::Alive => {}
            State::Destroyed => return refused(CudaStatus::CONTEXT_IS_DESTROYED),
            State::Broken(status) => return refused(status),
        }
        // SAFETY: it was alive a moment ago. Of one that the program destroys at the same time, the driver still takes the
        // handle, and answers calls in it with a status.
        unsafe { cuda.ctx_push_current(self.handle) }
            .map_err(|status| failed(Op::Inspect, "cuCtxPushCurrent", status))?;
        Ok(Entered {
            mode: cuda
                .thread_exchange_stream_capture_mode(CaptureMode::RELAXED)
                .ok(),
            _thread: PhantomData,
        })
    }

    /// The number of its device.
    pub(crate) fn device(self) -> i32 {
        self.device
    }

    #[cfg(test)]
    pub(super) fn handle(self) -> kvik_sys::Context {
        self.handle
    }

    /// What became of it since it was found. Before CUDA 12.0 nobody can tell, and it is taken to be alive.
    pub(super) fn state(self, cuda: &Cuda) -> State {
        match identity(cuda, self.handle) {
            Ok(id) if id == self.id => State::Alive,
            Ok(_) | Err(CudaStatus::CONTEXT_IS_DESTROYED | CudaStatus::INVALID_CONTEXT) => {
                State::Destroyed
            }
            Err(status) => State::Broken(status),
        }
    }
}

/// What became of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Alive,
    /// It is gone, with all that was made in it.
    Destroyed,
    /// It is there, and the driver does nothing in it any more but say why.
    Broken(CudaStatus),
}

/// The number that a context shares with no other of the process; 0 where the driver does not tell.
fn identity(cuda: &Cuda, handle: kvik_sys::Context) -> Result<u64, CudaStatus> {
    // SAFETY: the driver gave out the handle. It answers for one that is destroyed, with a status of its own.
    match unsafe { cuda.ctx_get_id(handle) } {
        Ok(id) => Ok(id),
        Err(CallError::Unsupported(_)) => Ok(0),
        Err(CallError::Status(status)) => Err(status),
    }
}

/// The calling thread works in a context until this is dropped, and then in the one before.
///
/// Guards are dropped in the reverse order, as they are by scopes.
#[must_use]
pub(crate) struct Entered {
    // What the thread was before it said that captures of others are none of its business; none where the driver
    // does not know of captures.
    mode: Option<CaptureMode>,
    // The stack of contexts belongs to the thread.
    _thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // In a child that was forked meanwhile, the stack is a copy that nobody uses.
        let Some(driver) = started() else { return };
        if let Some(mode) = self.mode {
            let _ = driver.cuda().thread_exchange_stream_capture_mode(mode);
        }
        // It fails only while the driver shuts down.
        let _ = driver.cuda().ctx_pop_current();
    }
}

static PRIMARIES: AtomicPtr<Mutex<Vec<Context>>> = AtomicPtr::new(ptr::null_mut());

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
