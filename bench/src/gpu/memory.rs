//! Memory of the device, and pinned memory of the host.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use kvik::{Source, Target};
use kvik_sys::{DevicePtr, HostFlags};

use super::Gpu;
use crate::memory::Pages;
use crate::trouble::Outcome;

/// Memory of the device, allocated as most programs do it (`cuMemAlloc`).
pub(crate) struct DeviceMemory {
    gpu: Arc<Gpu>,
    start: DevicePtr,
    len: usize,
}

impl DeviceMemory {
    pub(crate) fn new(gpu: &Arc<Gpu>, len: usize) -> io::Result<Self> {
        gpu.enter()?;
        let start = gpu.cuda.mem_alloc(len);
        Ok(Self {
            gpu: Arc::clone(gpu),
            start: start.map_err(|status| gpu.failed("cuMemAlloc", status))?,
            len,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address of its first byte.
    pub(crate) fn address(&self) -> u64 {
        self.start.address()
    }

    /// The address of the `len` bytes from `at` on.
    ///
    /// # Panics
    /// If they are not within the memory.
    pub(super) fn part(&self, at: usize, len: usize) -> DevicePtr {
        let within = at.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(within, "a part lies within its memory");
        DevicePtr::new(self.start.address() + at as u64)
    }

    /// The same part as kvik takes it, to read into: by its address, as programs hand it over that have no type of kvik's.
    pub(crate) fn target(&mut self, at: usize, len: usize) -> Outcome<Target<'_>> {
        // SAFETY: for the borrow nobody else has the memory.
        unsafe { self.shared_target(at, len) }
    }

    /// The same where several parts are lent at a time.
    ///
    /// # Safety
    /// While the target is used, nobody else uses this part of the memory.
    pub(crate) unsafe fn shared_target(&self, at: usize, len: usize) -> Outcome<Target<'_>> {
        let start = self.part(at, len).as_mut_ptr().cast();
        // SAFETY: memory of the device for `len` bytes, as `part` has asserted, which lives as long as the borrow; the rest
        // is the caller's promise.
        Ok(unsafe { Target::from_raw(start, len) }?)
    }

    /// The same part to write from.
    pub(crate) fn source(&self, at: usize, len: usize) -> Outcome<Source<'_>> {
        let start = self.part(at, len).as_mut_ptr().cast_const().cast();
        // SAFETY: memory of the device for `len` bytes, as `part` has asserted, which lives as long as the borrow; a turn
        // changes nothing there.
        Ok(unsafe { Source::from_raw(start, len) }?)
    }

    /// Sets its first `len` bytes, and waits for that.
    pub(crate) fn fill(&self, byte: u8, len: usize) -> io::Result<()> {
        self.gpu.enter()?;
        let part = self.part(0, len);
        // SAFETY: the part is memory of the device, whose bytes may have any value.
        let filled = unsafe { self.gpu.cuda.memset_d8(part, byte, len) };
        filled.map_err(|status| self.gpu.failed("cuMemsetD8", status))?;
        let done = self.gpu.cuda.ctx_synchronize();
        done.map_err(|status| self.gpu.failed("cuCtxSynchronize", status))
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: `new` made it and this is the only release. The driver waits for copies that are under way.
            let _ = unsafe { self.gpu.cuda.mem_free(self.start) };
        }
    }
}

/// Host memory that the device copies from and to by itself.
pub(super) struct Pinned {
    gpu: Arc<Gpu>,
    start: NonNull<u8>,
    len: usize,
    how: How,
}

enum How {
    /// By the driver, which may have mapped it in a way that keeps direct I/O out.
    Allocated,
    /// Ordinary pages, registered with the driver.
    Registered(#[expect(dead_code, reason = "owns the memory")] Pages),
}

// SAFETY: `Pinned` is the only owner of its memory and lends its bytes like a `Box<[u8]>`; the driver is called from any
// thread.
unsafe impl Send for Pinned {}
// SAFETY: a shared one tells no more than where its memory is.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// As programs get it that do nothing but copy.
    pub(super) fn allocated(gpu: &Arc<Gpu>, len: usize) -> io::Result<Self> {
        gpu.enter()?;
        let start = gpu.cuda.mem_host_alloc(len, HostFlags::PORTABLE);
        let start = start.map_err(|status| gpu.failed("cuMemHostAlloc", status))?;
        // SAFETY: `len` bytes that were just allocated; a page that was never touched would be touched by the first turn.
        unsafe { start.write_bytes(1, len) };
        Ok(Self {
            gpu: Arc::clone(gpu),
            start,
            len,
            how: How::Allocated,
        })
    }

    /// Memory that a stream reads and writes words in, with its address for that.
    pub(super) fn mapped(gpu: &Arc<Gpu>, len: usize) -> io::Result<(Self, DevicePtr)> {
        gpu.enter()?;
        let flags = HostFlags::PORTABLE | HostFlags::DEVICEMAP;
        let start = gpu.cuda.mem_host_alloc(len, flags);
        let start = start.map_err(|status| gpu.failed("cuMemHostAlloc", status))?;
        // SAFETY: `len` bytes that were just allocated.
        unsafe { start.write_bytes(0, len) };
        let memory = Self {
            gpu: Arc::clone(gpu),
            start,
            len,
            how: How::Allocated,
        };
        let on_device = gpu.cuda.mem_host_get_device_pointer(start.as_ptr());
        let on_device =
            on_device.map_err(|status| gpu.failed("cuMemHostGetDevicePointer", status))?;
        Ok((memory, on_device))
    }

    /// Memory that a disk can write to as well.
    pub(super) fn registered(gpu: &Arc<Gpu>, len: usize) -> io::Result<Self> {
        gpu.enter()?;
        let mut pages = Pages::new(len)?;
        let start = NonNull::from(pages.view_mut(0, len)).cast();
        // SAFETY: the pages are mapped until `drop` has unregistered them.
        let done = unsafe { (gpu.cuda).mem_host_register(start, len, HostFlags::PORTABLE) };
        done.map_err(|status| gpu.failed("cuMemHostRegister", status))?;
        Ok(Self {
            gpu: Arc::clone(gpu),
            start,
            len,
            how: How::Registered(pages),
        })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Where the context is gone, the pinning went with it.
        if self.gpu.enter().is_err() {
            return;
        }
        let _ = match self.how {
            // SAFETY: `allocated` made it, this is the only release, and `Lane` has waited for all copies.
            How::Allocated => unsafe { self.gpu.cuda.mem_free_host(self.start) },
            // SAFETY: `registered` made it so, this is the only release, and `Lane` has waited for all copies.
            How::Registered(_) => unsafe { self.gpu.cuda.mem_host_unregister(self.start) },
        };
    }
}
