//! Memory of devices that cuFile knows: each allocation once, for as long as anybody has it registered.
//!
//! What is registered is the whole allocation around an address, since the engine names that to cuFile. Where cuFile is not used,
//! or refuses, nothing is registered and everything works without.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use kvik_config::{CompatMode, Config};
use kvik_stats::names;
use kvik_sys::DevicePtr;

use super::driver::{self, Mode, Use, Wanted};
use super::refusal::Refusal;
use super::sign::sign;
use crate::device::{self, Allocation, Context, NoAllocation};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::pool::shared_value;
use crate::sync::{Mutex, lock};

/// What has become of a wish to register memory with cuFile.
///
/// Memory that is not registered is read and written all the same.
#[derive(Clone, Debug)]
pub struct Registration(Option<Arc<str>>);

impl Registration {
    /// Whether cuFile knows the memory.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.0.is_none()
    }

    /// Why it does not, in a clause without a stop.
    #[must_use]
    pub fn why_not(&self) -> Option<&str> {
        self.0.as_deref()
    }

    pub(crate) fn without(why: &str) -> Registration {
        Registration(Some(why.into()))
    }
}

/// Registers the whole CUDA allocation around `address` with cuFile, so that transfers by cuFile find it prepared. Registrations are
/// counted: the last [`deregister_memory`] ends it.
///
/// Nothing is registered, and the answer says so, where the compat mode of the process leaves cuFile alone and no file uses it yet,
/// where cuFile refuses, and for memory of the host and managed memory. Deregistering is the same for all of it.
///
/// # Errors
/// `Config` for a bad setting; `Device` if the driver fails; `Forked` in a child of the process that uses devices.
///
/// # Safety
/// If `address` is memory of a device, its allocation is not freed before it is deregistered.
pub unsafe fn register_memory(address: *const u8) -> Result<Registration> {
    // SAFETY: the caller's promise.
    unsafe { register(address.addr() as u64) }
}

/// Ends one registration by [`register_memory`] of the same address, or of another one in the same allocation; where cuFile was left
/// alone or the memory is none of its kind, of the same address.
///
/// # Errors
/// `Misuse` if it is not registered; `Device` if cuFile fails, which then knows the memory no longer; `Forked` in a child of the
/// process that uses devices.
///
/// # Safety
/// If `address` is memory of a device, no transfer of its allocation is under way.
pub unsafe fn deregister_memory(address: *const u8) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { deregister(address.addr() as u64) }
}

/// # Errors
/// As for [`register_memory`].
///
/// # Safety
/// As for [`register_memory`].
pub(crate) unsafe fn register(address: u64) -> Result<Registration> {
    device::check_process()?;
    let found = match wanted()? {
        Ok(wanted) => match device::allocation_around(address) {
            Ok(allocation) => Ok((allocation, wanted)),
            Err(NoAllocation::Because(why)) => Err(why.to_owned()),
            Err(NoAllocation::Failed(error)) => return Err(error),
        },
        Err(why) => Err(why),
    };
    let (allocation, wanted) = match found {
        Ok(found) => found,
        Err(why) => {
            *lock(table()).elsewhere.entry(address).or_default() += 1;
            return Ok(Registration(Some(why.into())));
        }
    };
    // Before the lock: opening it takes its time.
    let driver = driver::acquire(wanted);
    // SAFETY: the caller's promise.
    let (why_not, tried) = unsafe { enter(&allocation, driver) };
    if let (true, Some(why)) = (tried, &why_not) {
        names::REGISTRATIONS_REFUSED.increment();
        tracing::debug!(%why, "a buffer is used unregistered");
    }
    Ok(Registration(why_not))
}

/// Counts a registration, and registers what is not registered yet; returns why it is not, and whether it was tried now.
///
/// # Safety
/// The allocation is there until it is deregistered.
unsafe fn enter(allocation: &Allocation, driver: Result<Use, Refusal>) -> (Option<Arc<str>>, bool) {
    let mut table = lock(table());
    let known = table.known.entry(allocation.start).or_insert(Known {
        len: allocation.len,
        count: 0,
        by: Err(Arc::default()),
    });
    known.count += 1;
    let tries = known.by.is_err();
    if tries {
        // SAFETY: the caller's promise; nothing of it is registered.
        known.by = unsafe { prepare(allocation, driver) }.map_err(Arc::from);
    }
    (known.by.as_ref().err().cloned(), tries)
}

/// # Errors
/// As for [`deregister_memory`].
///
/// # Safety
/// As for [`deregister_memory`].
pub(crate) unsafe fn deregister(address: u64) -> Result<()> {
    device::check_process()?;
    let mut table = lock(table());
    // First, so that what cuFile does not know takes nobody's registration away.
    if let Some(count) = table.elsewhere.get_mut(&address) {
        *count -= 1;
        if *count == 0 {
            table.elsewhere.remove(&address);
        }
        return Ok(());
    }
    let around = table.known.range_mut(..=address).next_back();
    if let Some((start, known)) = around.filter(|(start, known)| address - **start < known.len) {
        let start = *start;
        known.count -= 1;
        if known.count > 0 {
            return Ok(());
        }
        let known = table.known.remove(&start);
        return match known.map(|known| known.by) {
            // SAFETY: the caller's promise; the last registration is just being taken away.
            Some(Ok(prepared)) => unsafe { prepared.release(start) },
            _ => Ok(()),
        };
    }
    let why = format!("the memory at {address:#x} is not registered, or not any more");
    Err(Error::new(ErrorKind::Misuse, Op::Inspect, why))
}

/// How the driver is to be open for what belongs to no file, or why cuFile is left alone: as the settings of the process say, unless
/// a file uses it anyway.
pub(super) fn wanted() -> Result<Result<Wanted, String>> {
    let why_not = match Config::current().compat_mode()? {
        CompatMode::On => "the compat mode ON leaves cuFile alone".to_owned(),
        CompatMode::Off => return Ok(Ok(Wanted::Only(Mode::Compatible))),
        CompatMode::Auto => match sign().why_absent() {
            // The mode stays for as long as anything is registered, and files would be staged in the other one.
            None => return Ok(Ok(Wanted::Rather(Mode::Direct))),
            Some(why) => format!("there is no direct path: {why}"),
        },
    };
    Ok(match driver::is_open() {
        true => Ok(Wanted::Any),
        false => Err(why_not),
    })
}

/// What is registered, or was to be.
#[derive(Default)]
struct Table {
    /// Allocations, by where they start.
    known: BTreeMap<u64, Known>,
    /// How often each address was named that has nothing to do with cuFile.
    elsewhere: BTreeMap<u64, usize>,
}

struct Known {
    len: u64,
    count: usize,
    by: Result<Prepared, Arc<str>>,
}

/// An allocation that cuFile knows.
struct Prepared {
    context: Context,
    driver: Use,
}

/// # Safety
/// The allocation is there until it is released.
unsafe fn prepare(
    allocation: &Allocation,
    driver: Result<Use, Refusal>,
) -> Result<Prepared, String> {
    let driver = driver.map_err(|refusal| format!("cuFile is {}", refusal.why()))?;
    let context = allocation.context;
    let _entered = context.enter().map_err(|error| error.to_string())?;
    let (base, len) = (DevicePtr::new(allocation.start), allocation.len as usize);
    // SAFETY: the caller's promise.
    unsafe { driver.cufile().buf_register(base, len) }
        .map_err(|status| format!("cuFileBufRegister: {status}"))?;
    Ok(Prepared { context, driver })
}

impl Prepared {
    /// # Errors
    /// `Device` if cuFile fails.
    ///
    /// # Safety
    /// It was registered at `start`, and no transfer of it is under way.
    unsafe fn release(self, start: u64) -> Result<()> {
        // Of a context that is gone, the memory is too, and cuFile has only to forget it.
        let _entered = self.context.enter().ok();
        // SAFETY: the caller's promise.
        let released = unsafe { self.driver.cufile().buf_deregister(DevicePtr::new(start)) };
        released.map_err(|status| {
            let why = format!("cuFileBufDeregister: {status}");
            Error::new(ErrorKind::Device, Op::Inspect, why).because(status)
        })
    }
}

fn table() -> &'static Mutex<Table> {
    shared_value(&TABLE, Mutex::default)
}

/// Called in a forked child, before anything else runs there: only stores to atomics are allowed. A thread that the child lacks may
/// have the lock, and what is registered is its parent's.
pub(crate) fn forget_shared() {
    TABLE.store(ptr::null_mut(), Ordering::Release);
}

static TABLE: AtomicPtr<Mutex<Table>> = AtomicPtr::new(ptr::null_mut());
