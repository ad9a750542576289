//! Host memory of the user's own that devices copy from and to by themselves: [`PinnedBuffer`].

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::context::Context;
use super::pinned::Pinned;
use crate::buffer::{IoBuf, IoBufMut};
use crate::error::Result;
use crate::target::{Source, Target};

/// Bytes of the host that are pinned: a device copies from them and to them by itself, at the speed of the bus. They start
/// at a page, so that direct I/O can land in them.
///
/// # Example: read on the host, and copied to a device later
/// ```no_run
/// # fn main() -> kvik_core::Result<()> {
/// let file = kvik_core::FileHandle::open("weights.bin")?;
/// let mut bytes = kvik_core::PinnedBuffer::new(1 << 20)?;
/// file.read_exact_at(&mut bytes, 0)?;
/// let mut on_device = kvik_core::DeviceBuffer::new(0, bytes.len())?;
/// on_device.copy_from_host(&bytes)?;
/// # Ok(())
/// # }
/// ```
pub struct PinnedBuffer {
    // None for a buffer of no bytes.
    block: Option<Pinned>,
}

impl PinnedBuffer {
    /// `len` bytes, all 0, pinned for all devices; in the current context, or if there is none in the primary one of the
    /// first device.
    ///
    /// # Errors
    /// `Unsupported` if there is no driver; `OutOfMemory` if so much cannot be pinned; `Device` if the driver fails; `Forked`
    /// in a child of the process that used a device.
    pub fn new(len: usize) -> Result<PinnedBuffer> {
        let context = match Context::current()? {
            Some(context) => context,
            None => Context::primary(0)?,
        };
        let _entered = context.enter()?;
        let block = match len {
            0 => None,
            _ => Some(Pinned::new(len, context)?),
        };
        Ok(PinnedBuffer { block })
    }
}

impl Deref for PinnedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], Pinned::bytes)
    }
}

impl DerefMut for PinnedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.block.as_mut().map_or(&mut [], Pinned::bytes_mut)
    }
}

// SAFETY: the bytes are a mapping of the buffer's own, which moving the buffer does not move and only dropping it unmaps.
unsafe impl IoBuf for PinnedBuffer {
    fn source(&self) -> Source<'_> {
        Source::from(&self[..])
    }
}

// SAFETY: as for `IoBuf`; no other buffer has the mapping.
unsafe impl IoBufMut for PinnedBuffer {
    fn target(&mut self) -> Target<'_> {
        Target::from(&mut self[..])
    }
}

impl<'a> From<&'a mut PinnedBuffer> for Target<'a> {
    fn from(buffer: &'a mut PinnedBuffer) -> Target<'a> {
        Target::from(&mut buffer[..])
    }
}

impl<'a> From<&'a PinnedBuffer> for Source<'a> {
    fn from(buffer: &'a PinnedBuffer) -> Source<'a> {
        Source::from(&buffer[..])
    }
}

impl fmt::Debug for PinnedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer({} bytes)", self.len())
    }
}
