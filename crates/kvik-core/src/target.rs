//! Where bytes land and where they come from: [`Target`] and [`Source`], the caller's memory on the host or on a device.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::device::{self, RawStream, Space, Spot};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::memory::Memory;
use crate::window::FillWindow;

/// Memory that a read fills: of the host, made from a mutable slice, initialised or not; or of a device, made from a
/// [`DeviceBuffer`](crate::DeviceBuffer) or an address ([`from_raw`](Target::from_raw)).
///
/// # Example: what can be a target
/// ```
/// use kvik_core::Target;
///
/// let mut array = [0u8; 16];
/// assert_eq!(Target::from(&mut array).len(), 16);
/// let mut vec = vec![0u8; 100];
/// assert_eq!(Target::from(&mut vec[10..]).len(), 90);
/// let mut spare: Vec<u8> = Vec::with_capacity(64);
/// assert_eq!(Target::from(&mut spare.spare_capacity_mut()[..64]).len(), 64);
/// ```
#[derive(Debug)]
pub struct Target<'a> {
    memory: Memory,
    spot: Option<Spot>,
    _borrow: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

/// Memory that a write takes its bytes from: of the host, made from a slice; or of a device, made from a
/// [`DeviceBuffer`](crate::DeviceBuffer) or an address ([`from_raw`](Source::from_raw)).
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    memory: Memory,
    spot: Option<Spot>,
    _borrow: PhantomData<&'a [u8]>,
}

impl<'a> Target<'a> {
    /// `len` bytes from `address` on, of whatever memory that is: the CUDA driver is asked once whether it is the host's,
    /// a device's or managed. On a machine without the driver it is the host's.
    ///
    /// # Errors
    /// `Misuse` if the allocation around `address` ends before `len` bytes, or for a null address; `Device` if the driver
    /// fails; `Forked` in a child of the process that used a device.
    ///
    /// # Safety
    /// For `'a` the memory is valid for writes of `len` bytes, and nobody else reads or writes it, on the host or on a
    /// device. If it is a device's or managed ([`is_on_device`](Target::is_on_device)), what was queued on the device's
    /// legacy default stream before a read begins may still do so: the read is ordered behind it. Of pinned memory of the
    /// host nobody orders anything: what devices do with it is over.
    pub unsafe fn from_raw(address: *mut u8, len: usize) -> Result<Target<'a>> {
        let (memory, spot) = locate(address, len)?;
        Ok(Target {
            memory,
            spot,
            _borrow: PhantomData,
        })
    }

    /// The same, for a read that also waits, on the device, for what was queued on `stream` before it. Of memory of the host
    /// it says nothing.
    ///
    /// There is room for two streams, that of the buffer included if it has one. With a third one the transfer is `Misuse`.
    #[must_use]
    pub fn behind(mut self, stream: RawStream) -> Target<'a> {
        if let Some(spot) = &mut self.spot {
            spot.follow(stream);
        }
        self
    }

    /// An allocation of a device, which stays valid and is lent to this target alone for `'a`.
    pub(crate) fn on_device(spot: Spot, address: u64, len: usize) -> Target<'a> {
        Target {
            memory: Memory::on_device(address, len, address + len as u64),
            spot: Some(spot),
            _borrow: PhantomData,
        }
    }

    /// Whether it is memory of a device.
    #[must_use]
    pub fn is_on_device(&self) -> bool {
        self.spot.is_some()
    }

    /// Where its memory is, if that is on a device.
    pub(crate) fn spot(&self) -> Option<Spot> {
        self.spot
    }

    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it has no room at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole target as one window; `None` if it is memory of a device, which the processor cannot fill.
    pub fn window(&mut self) -> Option<FillWindow<'_>> {
        let on_host = self.spot.is_none();
        // SAFETY: the target borrows the memory exclusively for longer than the window, which borrows the target.
        on_host.then(|| unsafe { self.memory.fill(0, self.memory.len()) })
    }

    /// The same memory for a shorter time.
    pub fn reborrow(&mut self) -> Target<'_> {
        Target {
            memory: self.memory,
            spot: self.spot,
            _borrow: PhantomData,
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }

    /// The part of it that a file can have bytes for, read from `offset` on: none lie beyond the largest offset.
    pub(crate) fn within_offsets(mut self, offset: u64) -> Self {
        self.memory = self.memory.within_offsets(offset);
        self
    }
}

impl<'a> Source<'a> {
    /// `len` bytes from `address` on, of whatever memory that is: see [`Target::from_raw`].
    ///
    /// # Errors
    /// As for `Target::from_raw`.
    ///
    /// # Safety
    /// For `'a` the memory is valid for reads of `len` bytes, initialised, and nobody writes to it, on the host or on a
    /// device. If it is a device's or managed ([`is_on_device`](Source::is_on_device)), what was queued on the device's
    /// legacy default stream before a write begins may still do so: the write is ordered behind it. Of pinned memory of the
    /// host nobody orders anything: what devices do with it is over.
    pub unsafe fn from_raw(address: *const u8, len: usize) -> Result<Source<'a>> {
        let (memory, spot) = locate(address.cast_mut(), len)?;
        Ok(Source {
            memory,
            spot,
            _borrow: PhantomData,
        })
    }

    /// The same, for a write that also waits, on the device, for what was queued on `stream` before it. Of memory of the host
    /// it says nothing.
    ///
    /// There is room for two streams, that of the buffer included if it has one. With a third one the transfer is `Misuse`.
    #[must_use]
    pub fn behind(mut self, stream: RawStream) -> Source<'a> {
        if let Some(spot) = &mut self.spot {
            spot.follow(stream);
        }
        self
    }

    /// An allocation of a device, which stays valid and unchanged for `'a`.
    pub(crate) fn on_device(spot: Spot, address: u64, len: usize) -> Source<'a> {
        Source {
            memory: Memory::on_device(address, len, address + len as u64),
            spot: Some(spot),
            _borrow: PhantomData,
        }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is memory of a device.
    #[must_use]
    pub fn is_on_device(&self) -> bool {
        self.spot.is_some()
    }

    /// Where its memory is, if that is on a device.
    pub(crate) fn spot(&self) -> Option<Spot> {
        self.spot
    }

    /// The bytes; `None` if they are in memory of a device, which the processor cannot read.
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        let on_host = self.spot.is_none();
        // SAFETY: the source borrows the memory, initialised and unchanged, for `'a`.
        on_host.then(|| unsafe { self.memory.drain(0, self.memory.len()) })
    }

    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }
}

/// What kind of memory lies at an address.
fn locate(address: *mut u8, len: usize) -> Result<(Memory, Option<Spot>)> {
    if len == 0 {
        return Ok((Memory::of(&[]), None));
    }
    let Some(start) = NonNull::new(address) else {
        let why = format!("the address of the {len} bytes is null");
        return Err(Error::new(ErrorKind::Misuse, Op::Inspect, why));
    };
    let found = device::locate(address.addr() as u64, len)?;
    Ok(match (found.space, found.context) {
        (Space::Device | Space::Managed, Some(context)) => {
            let spot = Spot::new(context, None).managed(found.space == Space::Managed);
            // Where the driver does not tell how far the allocation goes, it goes as far as was asked.
            let end = found.address + found.left.unwrap_or(len as u64);
            (Memory::on_device(found.address, len, end), Some(spot))
        }
        _ => (Memory::at(start, len), None),
    })
}

impl<'a> From<&'a mut [MaybeUninit<u8>]> for Target<'a> {
    fn from(memory: &'a mut [MaybeUninit<u8>]) -> Target<'a> {
        let len = memory.len();
        Target {
            memory: Memory::at(NonNull::from(memory).cast(), len),
            spot: None,
            _borrow: PhantomData,
        }
    }
}

impl<'a> From<&'a mut [u8]> for Target<'a> {
    fn from(bytes: &'a mut [u8]) -> Target<'a> {
        Target {
            memory: Memory::of_mut(bytes),
            spot: None,
            _borrow: PhantomData,
        }
    }
}

impl<'a> From<&'a mut Vec<u8>> for Target<'a> {
    fn from(bytes: &'a mut Vec<u8>) -> Target<'a> {
        bytes.as_mut_slice().into()
    }
}

impl<'a, const N: usize> From<&'a mut [u8; N]> for Target<'a> {
    fn from(bytes: &'a mut [u8; N]) -> Target<'a> {
        bytes.as_mut_slice().into()
    }
}

impl<'a> From<&'a [u8]> for Source<'a> {
    fn from(bytes: &'a [u8]) -> Source<'a> {
        Source {
            memory: Memory::of(bytes),
            spot: None,
            _borrow: PhantomData,
        }
    }
}

impl<'a> From<&'a Vec<u8>> for Source<'a> {
    fn from(bytes: &'a Vec<u8>) -> Source<'a> {
        Source::from(bytes.as_slice())
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Source<'a> {
    fn from(bytes: &'a [u8; N]) -> Source<'a> {
        Source::from(bytes.as_slice())
    }
}

/// A window over bytes at hand.
pub(crate) fn filling(bytes: &mut [u8]) -> FillWindow<'_> {
    let memory = Memory::of_mut(bytes);
    // SAFETY: the window borrows the bytes, all of them, exclusively.
    unsafe { memory.fill(0, memory.len()) }
}
