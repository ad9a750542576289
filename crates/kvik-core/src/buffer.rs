//! Owned buffers for transfers that outlive the call: [`IoBuf`] to write from, [`IoBufMut`] to read into.

use std::sync::Arc;

use crate::target::{Source, Target};

/// An owned buffer, on the host or on a device, whose bytes can be written to a file by a
/// [`Pending`](crate::Pending) transfer.
///
/// # Safety
/// The memory that [`source`](IoBuf::source) names stays where it is, valid and unchanged, while the value is moved about
/// and not otherwise used, until it is dropped.
pub unsafe trait IoBuf: Send + 'static {
    /// The bytes to write.
    fn source(&self) -> Source<'_>;
}

/// An owned buffer, on the host or on a device, that a [`Pending`](crate::Pending) transfer can fill.
///
/// # Safety
/// As for [`IoBuf`]: the memory that [`target`](IoBufMut::target) names stays where it is, valid and owned by the value
/// alone, while the value is moved about and not otherwise used, until it is dropped.
pub unsafe trait IoBufMut: Send + 'static {
    /// The bytes to fill; the buffer's length is what a read asks for.
    fn target(&mut self) -> Target<'_>;
}

// SAFETY: a vector's bytes live in its heap block, which moving the vector does not move.
unsafe impl IoBuf for Vec<u8> {
    fn source(&self) -> Source<'_> {
        Source::from(&self[..])
    }
}

// SAFETY: as for `IoBuf`; a vector owns its block alone.
unsafe impl IoBufMut for Vec<u8> {
    fn target(&mut self) -> Target<'_> {
        Target::from(&mut self[..])
    }
}

// SAFETY: a boxed slice lives in its heap block, which moving the box does not move. The transfer keeps the box behind
// a second one, so that moves of the transfer do not touch it.
unsafe impl IoBuf for Box<[u8]> {
    fn source(&self) -> Source<'_> {
        Source::from(&self[..])
    }
}

// SAFETY: as for `IoBuf`; a box owns its block alone.
unsafe impl IoBufMut for Box<[u8]> {
    fn target(&mut self) -> Target<'_> {
        Target::from(&mut self[..])
    }
}

// SAFETY: the bytes are shared and immutable, and this reference to them keeps their block alive.
unsafe impl IoBuf for Arc<[u8]> {
    fn source(&self) -> Source<'_> {
        Source::from(&self[..])
    }
}

// SAFETY: static bytes are there, unchanged, for ever.
unsafe impl IoBuf for &'static [u8] {
    fn source(&self) -> Source<'_> {
        Source::from(&self[..])
    }
}
