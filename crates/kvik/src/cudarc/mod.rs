//! Memory and streams of [cudarc](https://docs.rs/cudarc): reads into its slices and writes from them, in the order of their
//! streams. With feature `cudarc`.
//!
//! ```text
//! CudaSlice, CudaViewMut, PinnedHostSlice    target    Target    read_at, read_ranges, ...
//! CudaSlice, CudaView,    PinnedHostSlice    source    Source    write_at, write_ranges, ...
//! CudaSlice, PinnedHostSlice                 Owned               submit_read, submit_write
//! CudaStream                                 behind              one more stream that comes first
//! CudaContext                                device_buffer       DeviceBuffer
//! ```
//!
//! # Example: a file into a slice of floats, in the order of its stream
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kvik::FileHandle;
//! use kvik::cudarc::{self, driver::CudaContext};
//!
//! let stream = CudaContext::new(0)?.new_stream()?;
//! let mut weights = stream.alloc_zeros::<f32>(1 << 20)?;
//! let file = FileHandle::open("weights.bin")?;
//! file.read_exact_at(cudarc::target(&mut weights)?, 0)?;
//! // Kernels that are launched from here on see the bytes, on whatever stream.
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//! cudarc has two ways to keep uses of one slice apart: the order of the slice's stream, and events of the slice, recorded by
//! uses on other streams. Both hold for kvik. [`target`] and [`source`] tell the slice's stream to wait for the events, as any
//! use on that stream would; the transfer then begins on the device behind all that is queued there, and behind the legacy
//! default stream of the context. When the call returns the transfer is over, so that nothing queued later has to wait.
//! A slice made while cudarc's event tracking was off has its stream alone: [`behind`] names another one.
//!
//! # What stays as it is
//! The calling thread's current context, though the calls of cudarc itself change it.
//!
//! # Versions
//! cudarc is built for one version of CUDA. This feature leaves the choice to whoever makes it: a `cuda-*` feature of cudarc
//! anywhere in the build, else the variable `CUDARC_CUDA_VERSION`, else the `nvcc` on the path, else the newest that it knows.
//!
//! cudarc's own version, 0.19, is below 1.0, and these types are its: a newer one comes with a newer kvik.
//!
//! # Not here
//! `UnifiedSlice` and memory imported from elsewhere: use [`Target::from_raw`]. Slices of `bool`, of floats of 16 bits and of
//! types of your own: see [`AnyBits`].

mod bits;
mod current;
mod memory;
mod owned;

use kvik_core::{DeviceBuffer, RawStream, Result, Source, Target};

pub use ::cudarc::driver;
pub use bits::AnyBits;
pub use memory::{AsSource, AsTarget};
pub use owned::{Own, Owned};

use current::Current;
use driver::{CudaContext, CudaStream};

/// The memory as what a read fills.
///
/// # Errors
/// `Misuse` if its stream records a graph; `Device` if the driver fails, if it is not the driver that kvik uses, or if cudarc
/// has kept an error for the next call that can return one; `Forked` in a child of the process that used a device.
pub fn target<M: AsTarget + ?Sized>(memory: &mut M) -> Result<Target<'_>> {
    let place = memory.writable()?;
    // SAFETY: the place was made from the memory just now. The target borrows the memory exclusively, and through it the
    // stream, so that both stay and nobody else comes near them; what was queued before is waited for (see `AsTarget`).
    unsafe { place.target() }
}

/// The memory as what a write takes its bytes from.
///
/// # Errors
/// As for [`target`].
pub fn source<M: AsSource + ?Sized>(memory: &M) -> Result<Source<'_>> {
    let place = memory.readable()?;
    // SAFETY: as in `target`, but that others may read the memory too: who writes to it needs it exclusively. On a device
    // bytes are whatever it holds there; pinned memory was vouched for by whoever had cudarc hand it out.
    unsafe { place.source() }
}

/// A target or source for a transfer that also waits, on the device, for what was queued on `stream` before the transfer
/// begins.
///
/// # Example: behind a stream of which the slice knows nothing
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use kvik::{FileHandle, cudarc::{self, driver::CudaContext}};
/// # let context = CudaContext::new(0)?;
/// # let (stream, other) = (context.new_stream()?, context.new_stream()?);
/// # let mut slice = stream.alloc_zeros::<u8>(4096)?;
/// let target = cudarc::behind(cudarc::target(&mut slice)?, &other);
/// FileHandle::open("weights.bin")?.read_at(target, 0)?;
/// # Ok(())
/// # }
/// ```
/// There is room for one such stream beside the slice's own; with another one the transfer is `Misuse`.
///
/// The stream has to be there until the transfer is over:
/// ```compile_fail,E0597
/// # use kvik::{FileHandle, Target, cudarc::{self, driver::CudaContext}};
/// # fn f(file: &FileHandle, context: &std::sync::Arc<CudaContext>, mut target: Target<'_>) {
/// {
///     let other = context.new_stream().unwrap();
///     target = cudarc::behind(target, &other);
/// }
/// file.read_at(target, 0).unwrap();
/// # }
/// ```
pub fn behind<'a, W: Waits<'a>>(what: W, stream: &'a CudaStream) -> W {
    what.wait_for(raw(stream))
}

/// `len` bytes of kvik's own in this context. They hold anything, and are gone with the context.
///
/// # Errors
/// `OutOfMemory` if the device has no more; else as for [`target`].
pub fn device_buffer(context: &CudaContext, len: usize) -> Result<DeviceBuffer> {
    let _current = Current::enter(context)?;
    DeviceBuffer::on_current(len)
}

/// What can wait for a stream: a [`Target`] or a [`Source`].
pub trait Waits<'a>: sealed::Waits {}

impl<'a> Waits<'a> for Target<'a> {}
impl<'a> Waits<'a> for Source<'a> {}

/// Only here: a raw stream outlives nobody in the hands of this module.
mod sealed {
    use super::{RawStream, Source, Target};

    pub trait Waits {
        fn wait_for(self, stream: RawStream) -> Self;
    }

    impl Waits for Target<'_> {
        fn wait_for(self, stream: RawStream) -> Self {
            self.behind(stream)
        }
    }

    impl Waits for Source<'_> {
        fn wait_for(self, stream: RawStream) -> Self {
            self.behind(stream)
        }
    }
}

/// The stream by the driver's handle. A default one stays that of its context.
///
/// It is only to be put into what borrows `stream`, or owns it.
fn raw(stream: &CudaStream) -> RawStream {
    // SAFETY: it is a stream of the driver, or the number of a default one: cudarc makes no others, and who wraps one of
    // another library has promised it to cudarc. The callers keep it as long as the result. The driver is kvik's, too: there
    // is one in a process, unless the setting `cuda_library` names another, and who sets that answers for what it loads.
    let handle = unsafe { RawStream::from_raw(stream.cu_stream().cast()) };
    // SAFETY: the stream holds its context.
    unsafe { handle.in_context(stream.context().cu_ctx().cast()) }
}
