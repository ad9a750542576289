//! Host memory that devices copy from and to by themselves, and that direct I/O can land in: [`Pinned`].

use std::mem;
use std::ptr::NonNull;

use kvik_sys::{CudaStatus, HostFlags};

use super::context::{Context, State};
use super::driver::{driver, failed, started};
use crate::error::{Op, Result};
use crate::pages::Pages;

/// Pages of our own that the driver knows as pinned, in all contexts. It forgets them before they are unmapped.
pub(super) struct Pinned {
    // None while it is being dropped.
    pages: Option<Pages>,
    // Where it was pinned: if that is destroyed, the memory is not pinned any more, and works all the same, but slowly.
    context: Context,
}

impl Pinned {
    /// `len` bytes, more than 0, all 0. The caller has entered `context`.
    pub(super) fn new(len: usize, context: Context) -> Result<Pinned> {
        let cuda = driver()?.cuda();
        let pages = Pages::new(len)?;
        // SAFETY: the pages are ours, and stay until `drop` has unregistered them.
        unsafe { cuda.mem_host_register(start_of(&pages), len, HostFlags::PORTABLE) }
            .map_err(|status| failed(Op::Allocate, "cuMemHostRegister", status))?;
        Ok(Pinned {
            pages: Some(pages),
            context,
        })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.pages.as_ref().map_or(NonNull::dangling(), start_of)
    }

    pub(super) fn len(&self) -> usize {
        self.pages.as_ref().map_or(0, |pages| pages.len())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.pages.as_deref().unwrap_or_default()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.pages.as_deref_mut().unwrap_or_default()
    }

    /// Where it was pinned.
    pub(super) fn context(&self) -> Context {
        self.context
    }

    /// Whether it is still pinned.
    pub(super) fn is_pinned(&self) -> bool {
        started().is_some_and(|driver| self.context.state(driver.cuda()) != State::Destroyed)
    }

    /// Whether the driver of this process knows the pages no longer, or never did.
    fn unpin(&self) -> bool {
        // A child has pages of its own under the same addresses, which no driver has heard of.
        let Some(driver) = started() else { return true };
        let cuda = driver.cuda();
        if self.context.state(cuda) == State::Destroyed {
            return true;
        }
        let Ok(_entered) = self.context.enter() else {
            return false;
        };
        // SAFETY: `new` registered these pages, and only here are they unregistered. No copy is under way: whoever queues one
        // keeps the memory until it is done.
        let outcome = unsafe { cuda.mem_host_unregister(self.start()) };
        matches!(
            outcome,
            Ok(()) | Err(CudaStatus::HOST_MEMORY_NOT_REGISTERED)
        )
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.unpin() {
            // What the driver still takes for pinned must not become somebody else's memory.
            mem::forget(self.pages.take());
        }
    }
}

fn start_of(pages: &Pages) -> NonNull<u8> {
    NonNull::from(&pages[..]).cast()
}
