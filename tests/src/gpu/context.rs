//! Contexts of the test's own, and which one is current.
#![expect(unsafe_code, reason = "each call has its argument beside it")]

use kvik::RawStream;
use kvik_sys::{Context, ContextFlags, Device};

use super::{Gpu, cuda};

/// A context that the test has made; destroyed on drop. It is current on no thread unless asked for.
#[derive(Debug)]
pub struct OwnContext(Context);

impl OwnContext {
    /// Makes one.
    #[track_caller]
    #[must_use]
    pub fn new(_: &Gpu, device: i32) -> OwnContext {
        let made = cuda().ctx_create(ContextFlags::AUTO, Device::from_raw(device));
        let context = made.unwrap();
        cuda().ctx_pop_current().unwrap();
        OwnContext(context)
    }

    /// Works in it.
    #[track_caller]
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        within(self.0, work)
    }

    /// Its default stream by all the names that this has where it is current.
    #[must_use]
    pub fn names_of_default(&self) -> [RawStream; 3] {
        // SAFETY: a number that the driver's header defines.
        let legacy = unsafe { RawStream::from_raw(kvik_sys::Stream::LEGACY.as_raw()) };
        // SAFETY: the context is alive; what a test has made with it is gone when it is dropped.
        let named = unsafe { RawStream::DEFAULT.in_context(self.0.as_raw()) };
        [RawStream::DEFAULT, legacy, named]
    }

    /// Its address, to be compared with that of [`current`].
    #[must_use]
    pub fn address(&self) -> usize {
        self.0.as_raw() as usize
    }
}

impl Drop for OwnContext {
    fn drop(&mut self) {
        // SAFETY: `new` made it, and it is destroyed here alone. What a test still has in it, it uses no more.
        let _ = unsafe { cuda().ctx_destroy(self.0) };
    }
}

/// The address of the calling thread's current context.
#[track_caller]
#[must_use]
pub fn current() -> Option<usize> {
    let context = cuda().ctx_get_current().unwrap();
    context.map(|context| context.as_raw() as usize)
}

/// Works in `context`, and takes the thread back to where it was.
#[track_caller]
pub(super) fn within<T>(context: Context, work: impl FnOnce() -> T) -> T {
    // SAFETY: contexts that this module hands out are alive: the primary ones are held, the others not yet dropped.
    unsafe { cuda().ctx_push_current(context) }.unwrap();
    let done = work();
    cuda().ctx_pop_current().unwrap();
    done
}

/// The primary context of a device. It is held for the life of the process.
#[track_caller]
pub(super) fn primary(device: i32) -> Context {
    let device = Device::from_raw(device);
    cuda().device_primary_ctx_retain(device).unwrap()
}
