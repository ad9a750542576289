//! What kind of memory lies at an address, whose it is, and how far it goes.

use kvik_sys::{DevicePtr, MemoryType, PointerAttribute};

use super::context::Context;
use super::driver::{driver, failed};
use crate::error::{Error, ErrorKind, Op, Result};

/// Who can touch the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// The processor; the device only if it is pinned.
    Host,
    /// The device.
    Device,
    /// Either: the driver moves the pages.
    Managed,
}

/// What the driver knows of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) space: Space,
    /// The context to work in; none for the host's memory.
    pub(crate) context: Option<Context>,
    /// The number of the device; -1 for the host's memory.
    pub(crate) device: i32,
    pub(crate) address: u64,
    /// Bytes from the address to the end of its allocation; none where nobody knows, as for the host's memory: a
    /// program may have pinned a part of it only.
    pub(crate) left: Option<u64>,
}

/// What lies at `address`. No context has to be current for it, and none is made where the memory has one.
///
/// Memory that was freed is taken for the host's: the driver has forgotten it.
///
/// # Errors
/// `Misuse` if memory of a device ends before `len` bytes; `Device` if the driver fails; `Forked` in a child of the process
/// that uses devices. Where there is no driver, all memory is the host's, which is no error.
pub(crate) fn locate(address: u64, len: usize) -> Result<Located> {
    let driver = match driver() {
        Ok(driver) => driver,
        Err(error) if error.kind() == ErrorKind::Forked => return Err(error),
        // A process that cannot use a device has no memory on any.
        Err(_) => return Ok(on_host(address)),
    };
    let cuda = driver.cuda();
    let [kind, managed, owner, ordinal, start, size] = cuda
        .pointer_get_attributes(ASKED, DevicePtr::new(address))
        .map_err(|status| failed(Op::Inspect, "cuPointerGetAttributes", status))?;
    if [MemoryType::UNKNOWN, MemoryType::HOST].contains(&MemoryType::new(kind)) {
        return Ok(on_host(address));
    }
    // The answer is an `i32` in the low half.
    let device = ordinal as u32 as i32;
    let left = end_of(start, size).map(|end| end.saturating_sub(address));
    if let Some(left) = left
        && left < len as u64
    {
        let why = format!(
            "{len} bytes from address {address:#x} on were named, of which {left} belong to its allocation on device {device}"
        );
        return Err(Error::new(ErrorKind::Misuse, Op::Inspect, why));
    }
    Ok(Located {
        space: match managed {
            0 => Space::Device,
            _ => Space::Managed,
        },
        context: Some(
            match kvik_sys::Context::from_raw(owner as usize as *mut _) {
                Some(handle) => Context::of(cuda, handle, device)?,
                None => of_pool(device)?,
            },
        ),
        device,
        address,
        left,
    })
}

/// Where the allocation around an address of a device starts; where the driver does not tell, it is the address.
///
/// # Errors
/// `Device` if the driver fails.
pub(crate) fn allocation_start(address: u64) -> Result<u64> {
    let asked = [PointerAttribute::RANGE_START_ADDR];
    let cuda = driver()?.cuda();
    let [start] = cuda
        .pointer_get_attributes(asked, DevicePtr::new(address))
        .map_err(|status| failed(Op::Inspect, "cuPointerGetAttributes", status))?;
    Ok(match start {
        0 => address,
        start => start.min(address),
    })
}

/// An allocation as the driver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) context: Context,
}

/// The allocation of a device around an address, all of it.
///
/// # Errors
/// There is none that could be registered; and as for [`locate`].
pub(crate) fn allocation_around(address: u64) -> Result<Allocation, NoAllocation> {
    let found = locate(address, 1)?;
    let context = match (found.space, found.context) {
        (Space::Device, Some(context)) => context,
        (Space::Managed, _) => return Err(NoAllocation::Because("it is managed memory")),
        _ => return Err(NoAllocation::Because("it is memory of the host")),
    };
    let start = allocation_start(address)?;
    let Some(left) = found.left else {
        let why = "the driver does not tell how far its allocation goes";
        return Err(NoAllocation::Because(why));
    };
    let len = address - start + left;
    Ok(Allocation {
        start,
        len,
        context,
    })
}

/// Why there is no allocation to be registered.
#[derive(Debug)]
pub(crate) enum NoAllocation {
    /// What the memory is, or what is not known of it: a clause.
    Because(&'static str),
    /// The driver failed.
    Failed(Error),
}

impl From<Error> for NoAllocation {
    fn from(error: Error) -> NoAllocation {
        NoAllocation::Failed(error)
    }
}

fn on_host(address: u64) -> Located {
    Located {
        space: Space::Host,
        context: None,
        device: -1,
        address,
        left: None,
    }
}

/// The context for memory that belongs to none, but to a device.
fn of_pool(device: i32) -> Result<Context> {
    match Context::current()? {
        Some(context) if context.device() == device => Ok(context),
        _ => Context::primary(device),
    }
}

/// Where an allocation ends; none if the driver does not tell.
fn end_of(start: u64, size: u64) -> Option<u64> {
    (size > 0).then(|| start.saturating_add(size))
}

const ASKED: [PointerAttribute; 6] = [
    PointerAttribute::MEMORY_TYPE,
    PointerAttribute::IS_MANAGED,
    PointerAttribute::CONTEXT,
    PointerAttribute::DEVICE_ORDINAL,
    PointerAttribute::RANGE_START_ADDR,
    PointerAttribute::RANGE_SIZE,
];

#[cfg(test)]
#[path = "pointer_tests.rs"]
mod tests;
