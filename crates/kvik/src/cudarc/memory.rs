//! Which memory of cudarc can be read into and written from, and how each kind tells where it is.

use std::sync::Arc;

use kvik_core::{Error, ErrorKind, Op, RawStream, Result, Source, Target};

use super::bits::AnyBits;
use super::current::{Current, failed};
use super::driver::{
    CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceRepr,
    PinnedHostSlice, sys,
};

/// Memory of cudarc that a read can fill: `CudaSlice`, `CudaViewMut` and `PinnedHostSlice` of [`AnyBits`].
///
/// Nobody else can implement it: cudarc's own traits, which anybody can, promise nothing about the addresses they give.
pub trait AsTarget: sealed::Writable {}

/// Memory of cudarc that a write can take its bytes from: `CudaSlice`, `CudaView` and `CudaViewMut` of whatever cudarc takes
/// to a device, and `PinnedHostSlice` of [`AnyBits`].
///
/// Nobody else can implement it, as for [`AsTarget`].
pub trait AsSource: sealed::Readable {}

impl<T: AnyBits> AsTarget for CudaSlice<T> {}
impl<T: AnyBits> AsTarget for CudaViewMut<'_, T> {}
impl<T: AnyBits> AsTarget for PinnedHostSlice<T> {}

impl<T: DeviceRepr> AsSource for CudaSlice<T> {}
impl<T: DeviceRepr> AsSource for CudaView<'_, T> {}
impl<T: DeviceRepr> AsSource for CudaViewMut<'_, T> {}
impl<T: AnyBits> AsSource for PinnedHostSlice<T> {}

/// Where a piece of memory is, as long as it is looked up in its context.
pub struct Place {
    address: *mut u8,
    len: usize,
    // In whose order it is used; none for memory of the host, of which all uses are over.
    stream: Option<RawStream>,
    _current: Current,
}

impl Place {
    /// # Safety
    /// As for [`Target::from_raw`], where what is queued on the place's stream is waited for too; the memory holds the stream
    /// for `'a`.
    pub(super) unsafe fn target<'a>(&self) -> Result<Target<'a>> {
        // SAFETY: the caller's promise.
        let target = unsafe { Target::from_raw(self.address, self.len) }?;
        match self.stream {
            Some(stream) => {
                self.check(target.is_on_device())?;
                Ok(target.behind(stream))
            }
            None => Ok(target),
        }
    }

    /// # Safety
    /// As for [`Source::from_raw`], and else as for [`target`](Place::target).
    pub(super) unsafe fn source<'a>(&self) -> Result<Source<'a>> {
        // SAFETY: the caller's promise.
        let source = unsafe { Source::from_raw(self.address, self.len) }?;
        match self.stream {
            Some(stream) => {
                self.check(source.is_on_device())?;
                Ok(source.behind(stream))
            }
            None => Ok(source),
        }
    }

    /// The driver that kvik uses has to know memory of a device for what it is, before it is given a handle of cudarc's.
    fn check(&self, on_device: bool) -> Result<()> {
        if on_device || self.len == 0 {
            return Ok(());
        }
        let why = "the driver that kvik uses does not know cudarc's memory: it was not loaded, or is another library than \
                   cudarc's (see the setting cuda_library)";
        Err(Error::new(ErrorKind::Device, Op::Inspect, why))
    }
}

mod sealed {
    use super::{Place, Result};

    pub trait Writable {
        /// Where it is, once the stream of the place waits for all uses of the memory so far.
        fn writable(&mut self) -> Result<Place>;
    }

    pub trait Readable {
        /// Where it is, once the stream of the place waits for all writes to the memory so far.
        fn readable(&self) -> Result<Place>;
    }
}

/// The place of memory of a device that is to be written.
fn to_write<T, M: DevicePtrMut<T>>(memory: &mut M) -> Result<Place> {
    let (stream, len) = (Arc::clone(memory.stream()), memory.num_bytes());
    let current = begin(&stream)?;
    // The stream now waits for uses on other ones. What the guard records when it is dropped are those, and not the transfer:
    // whoever uses the memory next does so after the transfer, by the borrow, and has nothing more to wait for.
    let (address, uses) = memory.device_ptr_mut(&stream);
    drop(uses);
    on_device(address, len, &stream, current)
}

/// The place of memory of a device that is to be read.
fn to_read<T, M: DevicePtr<T>>(memory: &M) -> Result<Place> {
    let (stream, len) = (Arc::clone(memory.stream()), memory.num_bytes());
    let current = begin(&stream)?;
    // As in `to_write`.
    let (address, uses) = memory.device_ptr(&stream);
    drop(uses);
    on_device(address, len, &stream, current)
}

/// Enters the stream's context, unless the stream records a graph: to wait for an event of the slice would end the recording.
fn begin(stream: &CudaStream) -> Result<Current> {
    let current = Current::enter(stream.context())?;
    match stream.capture_status().map_err(failed)? {
        sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE => Ok(current),
        _ => {
            let why = "the slice's stream is recording a graph, and what is only recorded cannot be waited for; end the \
                       recording first";
            Err(Error::new(ErrorKind::Misuse, Op::Inspect, why))
        }
    }
}

fn on_device(
    address: sys::CUdeviceptr,
    len: usize,
    stream: &CudaStream,
    current: Current,
) -> Result<Place> {
    // Whether the stream could be told to wait is only kept by cudarc.
    stream.context().check_err().map_err(failed)?;
    Ok(Place {
        address: std::ptr::without_provenance_mut(address as usize),
        len,
        stream: Some(super::raw(stream)),
        _current: current,
    })
}

impl<T: AnyBits> sealed::Writable for CudaSlice<T> {
    fn writable(&mut self) -> Result<Place> {
        to_write(self)
    }
}

impl<T: AnyBits> sealed::Writable for CudaViewMut<'_, T> {
    fn writable(&mut self) -> Result<Place> {
        to_write(self)
    }
}

impl<T: DeviceRepr> sealed::Readable for CudaSlice<T> {
    fn readable(&self) -> Result<Place> {
        to_read(self)
    }
}

impl<T: DeviceRepr> sealed::Readable for CudaView<'_, T> {
    fn readable(&self) -> Result<Place> {
        to_read(self)
    }
}

impl<T: DeviceRepr> sealed::Readable for CudaViewMut<'_, T> {
    fn readable(&self) -> Result<Place> {
        to_read(self)
    }
}

impl<T: AnyBits> sealed::Writable for PinnedHostSlice<T> {
    fn writable(&mut self) -> Result<Place> {
        let current = Current::enter(self.context())?;
        // This waits until copies that cudarc has queued are done.
        let address = self.as_mut_ptr().map_err(failed)?;
        Ok(on_host(address, self.num_bytes(), current))
    }
}

impl<T: AnyBits> sealed::Readable for PinnedHostSlice<T> {
    fn readable(&self) -> Result<Place> {
        let current = Current::enter(self.context())?;
        // As above.
        let address = self.as_ptr().map_err(failed)?;
        Ok(on_host(address.cast_mut(), self.num_bytes(), current))
    }
}

fn on_host<T>(address: *mut T, len: usize, current: Current) -> Place {
    Place {
        address: address.cast(),
        len,
        stream: None,
        _current: current,
    }
}
