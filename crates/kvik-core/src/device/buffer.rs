//! Memory of a device with an owner: [`DeviceBuffer`].

use std::fmt;
use std::mem;
use std::ptr::NonNull;

use kvik_sys::{Cuda, DevicePtr};

use super::Spot;
use super::context::Context;
use super::driver::{driver, failed, refused, started};
use super::raw_stream::RawStream;
use super::stream::CopyStream;
use crate::buffer::{IoBuf, IoBufMut};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::target::{Source, Target};

/// Bytes in the memory of a device, freed on drop.
///
/// What is done to it and with it waits, on the device, for what was queued on the default stream of its context before. The
/// caller's current context and device stay as they are.
///
/// # Example: bytes to a device and back
/// ```no_run
/// # fn main() -> kvik_core::Result<()> {
/// let mut buffer = kvik_core::DeviceBuffer::new(0, 4096)?;
/// buffer.fill(7)?;
/// buffer.copy_from_host(b"seven")?;
/// let mut bytes = vec![0; buffer.len()];
/// buffer.copy_to_host(&mut bytes)?;
/// assert_eq!((&bytes[..5], bytes[5]), (&b"seven"[..], 7));
/// # Ok(())
/// # }
/// ```
pub struct DeviceBuffer {
    // 0 for a buffer of no bytes.
    address: u64,
    len: usize,
    context: Context,
    // Where it was allocated and is freed, in the order of a stream.
    stream: Option<RawStream>,
}

impl DeviceBuffer {
    /// `len` bytes of the device with this number, in its primary context. They hold anything.
    ///
    /// # Errors
    /// `OutOfMemory` if the device has no more; `Unsupported` if there is no driver; `Device` if it fails, or has no such
    /// device; `Forked` in a child of the process that used a device.
    pub fn new(device: i32, len: usize) -> Result<DeviceBuffer> {
        let context = Context::primary(device).map_err(|error| error.during(Op::Allocate))?;
        DeviceBuffer::allocate(context, len)
    }

    /// `len` bytes in the context that is current on the calling thread.
    ///
    /// # Errors
    /// `Misuse` if none is; else as for [`new`](DeviceBuffer::new).
    pub fn on_current(len: usize) -> Result<DeviceBuffer> {
        DeviceBuffer::allocate(Context::current_or_misuse(Op::Allocate)?, len)
    }

    /// `len` bytes from the memory pool of the stream's device, allocated and freed in the order of the stream.
    ///
    /// Reads, writes and copies of kvik wait for the stream, and dropping the buffer waits for nothing. A buffer that is dropped
    /// while its stream records a graph is not freed.
    ///
    /// # Errors
    /// `Misuse` if the stream records a graph, or is [`RawStream::PER_THREAD`], which would be another one where the buffer
    /// is dropped by another thread; `Unsupported` if driver or device have no such pools; else as for
    /// [`new`](DeviceBuffer::new).
    pub fn new_async(len: usize, stream: RawStream) -> Result<DeviceBuffer> {
        let cuda = driver()?.cuda();
        if stream.is_per_thread() {
            let why = "the stream of each thread is no one stream; name another";
            return Err(Error::new(ErrorKind::Misuse, Op::Allocate, why));
        }
        let context = stream.context(cuda, Op::Allocate)?;
        let _entered = context.enter()?;
        stream.refuse_capture(cuda, Op::Allocate)?;
        let address = match len {
            0 => 0,
            // SAFETY: `RawStream::from_raw` was promised that the stream is there.
            _ => unsafe { cuda.mem_alloc_async(len, stream.stream()) }
                .map_err(|why| refused(Op::Allocate, "cuMemAllocAsync", why))?
                .address(),
        };
        Ok(DeviceBuffer {
            address,
            len,
            context,
            stream: Some(stream),
        })
    }

    fn allocate(context: Context, len: usize) -> Result<DeviceBuffer> {
        let cuda = driver()?.cuda();
        let _entered = context
            .enter()
            .map_err(|error| error.during(Op::Allocate))?;
        let address = match len {
            0 => 0,
            _ => cuda
                .mem_alloc(len)
                .map_err(|status| failed(Op::Allocate, "cuMemAlloc", status))?
                .address(),
        };
        Ok(DeviceBuffer {
            address,
            len,
            context,
            stream: None,
        })
    }

    /// The address of its first byte, as the device knows it; 0 if it has none.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of its device.
    #[must_use]
    pub fn device(&self) -> i32 {
        self.context.device()
    }

    /// Copies `bytes` to its start, and waits for it.
    ///
    /// # Errors
    /// `Misuse` if they are more than it has, or while a stream that is ordered with the default stream records a graph;
    /// `Device` if the driver fails; `Forked` in a child of the process that used a device.
    pub fn copy_from_host(&mut self, bytes: &[u8]) -> Result<()> {
        self.check(bytes.len())?;
        self.at_once(bytes.len(), |stream| {
            let from = NonNull::from(bytes).cast();
            // SAFETY: `bytes` are borrowed, and the buffer exclusively so, until `at_once` has waited; `check` has compared
            // their lengths.
            unsafe { stream.to_device(self.address, from, bytes.len()) }
        })
    }

    /// Copies from its start as many bytes as `bytes` has room for, and waits for it.
    ///
    /// # Errors
    /// As for [`copy_from_host`](DeviceBuffer::copy_from_host).
    pub fn copy_to_host(&self, bytes: &mut [u8]) -> Result<()> {
        self.check(bytes.len())?;
        let (to, len) = (NonNull::from(&mut *bytes).cast(), bytes.len());
        self.at_once(len, |stream| {
            // SAFETY: `bytes` are borrowed exclusively until `at_once` has waited; nobody of this library writes to a buffer
            // that is borrowed; `check` has compared the lengths.
            unsafe { stream.to_host(to, self.address, len) }
        })
    }

    /// Sets all of it to `byte`, and waits for it.
    ///
    /// # Errors
    /// As for [`copy_from_host`](DeviceBuffer::copy_from_host).
    pub fn fill(&mut self, byte: u8) -> Result<()> {
        self.at_once(self.len, |stream| {
            // SAFETY: the memory is the buffer's, which is borrowed exclusively until `at_once` has waited.
            unsafe { stream.fill(self.address, byte, self.len) }
        })
    }

    fn check(&self, len: usize) -> Result<()> {
        if len <= self.len {
            return Ok(());
        }
        let why = format!("{len} bytes are more than the {} of the buffer", self.len);
        Err(Error::new(ErrorKind::Misuse, Op::Copy, why))
    }

    /// Queues something of `len` bytes behind all that it has to wait for, and waits until it is done.
    fn at_once(&self, len: usize, queue: impl FnOnce(&CopyStream) -> Result<()>) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let _entered = self
            .context
            .enter()
            .map_err(|error| error.during(Op::Copy))?;
        let stream = CopyStream::lend(self.context)?;
        stream.follow_default()?;
        if let Some(own) = self.stream {
            stream.follow(own)?;
        }
        let outcome = queue(&stream).and_then(|()| stream.synchronize());
        // The caller's memory is borrowed for this call only.
        if outcome.is_err() && !stream.is_quiet() {
            // The context is spoilt: nothing runs in it any more, and nobody can use its streams.
            mem::forget(stream);
        }
        outcome
    }

    /// Frees it, and does not care how that goes: there is nobody to tell.
    fn free(&self, cuda: &Cuda) {
        let address = DevicePtr::new(self.address);
        match self.stream {
            // SAFETY: `new_async` allocated it, and only here is it freed. Reads, writes and copies of it are done: they borrow
            // it until they are. `RawStream::from_raw` was promised that the stream is there.
            Some(stream) => drop(unsafe { cuda.mem_free_async(address, stream.stream()) }),
            // SAFETY: `allocate` allocated it; else as above.
            None => drop(unsafe { cuda.mem_free(address) }),
        }
    }
}

// SAFETY: the memory is the device's, at an address that moving the buffer does not change and only dropping it frees; its
// bytes are whatever the device holds there.
unsafe impl IoBuf for DeviceBuffer {
    fn source(&self) -> Source<'_> {
        self.into()
    }
}

// SAFETY: as for `IoBuf`; no other buffer has the memory.
unsafe impl IoBufMut for DeviceBuffer {
    fn target(&mut self) -> Target<'_> {
        self.into()
    }
}

impl<'a> From<&'a mut DeviceBuffer> for Target<'a> {
    fn from(buffer: &'a mut DeviceBuffer) -> Target<'a> {
        let spot = Spot::new(buffer.context, buffer.stream);
        Target::on_device(spot, buffer.address, buffer.len)
    }
}

impl<'a> From<&'a DeviceBuffer> for Source<'a> {
    fn from(buffer: &'a DeviceBuffer) -> Source<'a> {
        let spot = Spot::new(buffer.context, buffer.stream);
        Source::on_device(spot, buffer.address, buffer.len)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        // A child has nothing to free, nor has a context that was destroyed.
        if self.address != 0
            && let Some(driver) = started()
            && let Ok(_entered) = self.context.enter()
        {
            self.free(driver.cuda());
        }
    }
}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceBuffer { address, len, .. } = self;
        write!(
            f,
            "DeviceBuffer({len} bytes at {address:#x} on device {})",
            self.device()
        )
    }
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
