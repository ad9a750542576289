//! Memory of a device that cuFile knows: [`RegisteredBuffer`].

use std::fmt;
use std::ops::Deref;

use super::buffer::DeviceBuffer;
use crate::buffer::{IoBuf, IoBufMut};
use crate::error::Result;
use crate::gds::buffers::{self, Registration};
use crate::target::{Source, Target};

/// A [`DeviceBuffer`] that is registered with cuFile, where cuFile is used and takes it; deregistered on drop.
///
/// Transfers of it by cuFile go straight into it, where cuFile would otherwise take the way over memory of its own. Those by any other
/// way are the same as without.
///
/// # Example: read into one buffer again and again
/// ```no_run
/// # fn main() -> kvik_core::Result<()> {
/// use kvik_core::{DeviceBuffer, FileHandle};
///
/// let file = FileHandle::open("samples.bin")?;
/// let mut buffer = DeviceBuffer::new(0, 64 << 20)?.register();
/// if let Some(why) = buffer.registration().why_not() {
///     println!("unregistered: {why}"); // "there is no direct path: ...", for instance
/// }
/// for part in 0..10 {
///     file.read_exact_at(&mut buffer, part * (64 << 20))?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct RegisteredBuffer {
    // Dropped first: the memory is there as long as it is registered.
    registered: Registered,
    buffer: DeviceBuffer,
}

/// A registration; ended once, on drop.
struct Registered {
    // None where there is nothing to end.
    address: Option<u64>,
    registration: Registration,
}

impl DeviceBuffer {
    /// Registers its memory with cuFile, for as long as the answer lives. Whether that was possible, and why not,
    /// [`registration`](RegisteredBuffer::registration) tells; transfers work either way.
    ///
    /// cuFile is used for it as the compat mode of the process says, or a file that is in use.
    #[must_use]
    pub fn register(self) -> RegisteredBuffer {
        let registered = match self.address() {
            0 => Registered::without("it has no bytes"),
            address => {
                // SAFETY: the buffer is dropped after `Registered` has ended it, and nothing else frees its memory.
                match unsafe { buffers::register(address) } {
                    Ok(registration) => Registered {
                        address: Some(address),
                        registration,
                    },
                    Err(error) => Registered::without(&error.to_string()),
                }
            }
        };
        RegisteredBuffer {
            registered,
            buffer: self,
        }
    }
}

impl RegisteredBuffer {
    /// Whether cuFile knows it, and why not.
    #[must_use]
    pub fn registration(&self) -> &Registration {
        &self.registered.registration
    }

    /// Ends the registration, and gives the buffer back.
    #[must_use]
    pub fn into_buffer(self) -> DeviceBuffer {
        let RegisteredBuffer { registered, buffer } = self;
        drop(registered);
        buffer
    }

    /// As [`DeviceBuffer::copy_from_host`].
    ///
    /// # Errors
    /// The same.
    pub fn copy_from_host(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.copy_from_host(bytes)
    }

    /// As [`DeviceBuffer::fill`].
    ///
    /// # Errors
    /// The same.
    pub fn fill(&mut self, byte: u8) -> Result<()> {
        self.buffer.fill(byte)
    }
}

/// To look at it alone: a buffer that is taken out and dropped would free what is registered.
impl Deref for RegisteredBuffer {
    type Target = DeviceBuffer;

    fn deref(&self) -> &DeviceBuffer {
        &self.buffer
    }
}

// SAFETY: as for `DeviceBuffer`, which it has for as long as it lives.
unsafe impl IoBuf for RegisteredBuffer {
    fn source(&self) -> Source<'_> {
        self.into()
    }
}

// SAFETY: as above.
unsafe impl IoBufMut for RegisteredBuffer {
    fn target(&mut self) -> Target<'_> {
        self.into()
    }
}

impl<'a> From<&'a mut RegisteredBuffer> for Target<'a> {
    fn from(buffer: &'a mut RegisteredBuffer) -> Target<'a> {
        (&mut buffer.buffer).into()
    }
}

impl<'a> From<&'a RegisteredBuffer> for Source<'a> {
    fn from(buffer: &'a RegisteredBuffer) -> Source<'a> {
        (&buffer.buffer).into()
    }
}

impl fmt::Debug for RegisteredBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match self.registration().is_registered() {
            true => "registered",
            false => "not registered",
        };
        write!(f, "{:?}, {known}", self.buffer)
    }
}

impl Registered {
    fn without(why: &str) -> Registered {
        Registered {
            address: None,
            registration: Registration::without(why),
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            // SAFETY: transfers borrow or own the buffer that this is a part of until they are done. A child is refused, and nobody
            // is there to be told of a failure.
            let _ = unsafe { buffers::deregister(address) };
        }
    }
}
