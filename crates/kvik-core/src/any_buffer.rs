//! A buffer of any kind, for lists in which kinds are mixed: [`AnyBuffer`].

use crate::buffer::{IoBuf, IoBufMut};
use crate::device::{DeviceBuffer, PinnedBuffer};
use crate::host_buffer::HostBuffer;
use crate::target::{Source, Target};

/// One of the owned buffers of this crate, so that a [`Batch`](crate::Batch) can have several kinds.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyBuffer {
    /// Bytes on the heap.
    Vec(Vec<u8>),
    /// Memory made for reading into.
    Host(HostBuffer),
    /// Memory of the host that devices copy from and to.
    Pinned(PinnedBuffer),
    /// Memory of a device.
    Device(DeviceBuffer),
}

// SAFETY: each kind keeps the promise for itself, and moving the enum moves the kind.
unsafe impl IoBuf for AnyBuffer {
    fn source(&self) -> Source<'_> {
        match self {
            AnyBuffer::Vec(buffer) => buffer.source(),
            AnyBuffer::Host(buffer) => buffer.source(),
            AnyBuffer::Pinned(buffer) => buffer.source(),
            AnyBuffer::Device(buffer) => buffer.source(),
        }
    }
}

// SAFETY: as for `IoBuf`.
unsafe impl IoBufMut for AnyBuffer {
    fn target(&mut self) -> Target<'_> {
        match self {
            AnyBuffer::Vec(buffer) => buffer.target(),
            AnyBuffer::Host(buffer) => buffer.target(),
            AnyBuffer::Pinned(buffer) => buffer.target(),
            AnyBuffer::Device(buffer) => buffer.target(),
        }
    }
}

impl From<Vec<u8>> for AnyBuffer {
    fn from(buffer: Vec<u8>) -> AnyBuffer {
        AnyBuffer::Vec(buffer)
    }
}

impl From<HostBuffer> for AnyBuffer {
    fn from(buffer: HostBuffer) -> AnyBuffer {
        AnyBuffer::Host(buffer)
    }
}

impl From<PinnedBuffer> for AnyBuffer {
    fn from(buffer: PinnedBuffer) -> AnyBuffer {
        AnyBuffer::Pinned(buffer)
    }
}

impl From<DeviceBuffer> for AnyBuffer {
    fn from(buffer: DeviceBuffer) -> AnyBuffer {
        AnyBuffer::Device(buffer)
    }
}
