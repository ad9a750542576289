//! The memory through which the pieces of a copy go: of the host, or of a device.

use std::str::FromStr;

use kvik::{DeviceBuffer, FileHandle, IoBuf, IoBufMut};

use crate::Exit;
use crate::failure::{Failure, Result};

/// Where buffers for pieces come from, and where they go back to.
pub(super) trait Medium {
    type Buffer: IoBuf + IoBufMut + Unpin;

    /// A buffer of `len` bytes, at most [`Load::piece`](super::pump::Load).
    fn take(&mut self, len: usize) -> Result<Self::Buffer>;

    fn give_back(&mut self, buffer: Self::Buffer);

    /// Writes the bytes at `offset`, by way of this memory.
    fn pass_on(&mut self, bytes: &[u8], target: &FileHandle, offset: u64) -> Result<()>;
}

/// Memory of the host, in buffers of so many bytes.
pub(super) struct HostMedium {
    size: usize,
    spare: Vec<Vec<u8>>,
}

impl HostMedium {
    pub(super) fn new(size: usize) -> Self {
        let spare = Vec::new();
        Self { size, spare }
    }
}

impl Medium for HostMedium {
    type Buffer = Vec<u8>;

    fn take(&mut self, len: usize) -> Result<Vec<u8>> {
        let size = self.size;
        let mut buffer = self.spare.pop().unwrap_or_else(|| vec![0; size]);
        // Shrinking keeps the memory, and growing again clears no more than the tail that a short piece left out.
        buffer.resize(len, 0);
        Ok(buffer)
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    fn pass_on(&mut self, bytes: &[u8], target: &FileHandle, offset: u64) -> Result<()> {
        Ok(target.write_all_at(bytes, offset)?)
    }
}

/// Memory of a device.
pub(super) struct DeviceMedium {
    device: Device,
    /// All of one length: that of the last piece, which most pieces have.
    spare: Vec<DeviceBuffer>,
}

impl DeviceMedium {
    pub(super) fn new(device: Device) -> Self {
        let spare = Vec::new();
        Self { device, spare }
    }
}

impl Medium for DeviceMedium {
    type Buffer = DeviceBuffer;

    fn take(&mut self, len: usize) -> Result<DeviceBuffer> {
        match self.spare.pop() {
            Some(buffer) if buffer.len() == len => Ok(buffer),
            // A piece of another length, as at the end of a file.
            _ => Ok(DeviceBuffer::new(self.device.0, len)?),
        }
    }

    fn give_back(&mut self, buffer: DeviceBuffer) {
        self.spare.push(buffer);
    }

    fn pass_on(&mut self, bytes: &[u8], target: &FileHandle, offset: u64) -> Result<()> {
        let mut buffer = self.take(bytes.len())?;
        buffer.copy_from_host(bytes)?;
        let written = target.write_at(&buffer, offset)?;
        debug_assert_eq!(written, bytes.len());
        self.give_back(buffer);
        Ok(())
    }
}

/// The ordinal of a device, among those that the driver shows to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device(pub(crate) i32);

impl Device {
    /// Fails where the driver shows no such device, before anything is made for a copy through it.
    pub(super) fn present(self) -> Result<()> {
        let tried = DeviceBuffer::new(self.0, 1);
        tried.map(drop).map_err(|error| {
            let message = format!("copy through GPU {}: {error}", self.0);
            Failure::new(Exit::Unsupported, "Unsupported", message)
                .hint("`kvik doctor` says what is here; without --via-gpu no GPU is needed")
        })
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(ordinal @ 0..) => Ok(Self(ordinal)),
            _ => Err("write the number of a device, such as 0".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_a_number_that_is_not_negative() {
        assert_eq!("3".parse(), Ok(Device(3)));
        for text in ["", "-1", "gpu0", "1.5"] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
    }

    #[test]
    fn buffers_of_the_host_come_back_with_the_length_that_is_asked_for() {
        let mut medium = HostMedium::new(100);
        let long = medium.take(100).unwrap();
        medium.give_back(long);
        let short = medium.take(7).unwrap();
        assert_eq!((short.len(), short.capacity()), (7, 100));
    }
}
