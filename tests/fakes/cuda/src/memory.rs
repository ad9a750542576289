//! Memory: of a device, of a pool, managed, pinned, and the caller's own, registered.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::abi::{
    Answer, HOST_MEMORY_ALREADY_REGISTERED, HOST_MEMORY_NOT_REGISTERED, Handle, INVALID_VALUE,
    NOT_FOUND, NOT_SUPPORTED, OUT_OF_MEMORY, Out,
};
use crate::context;
use crate::entry::driver;
use crate::queue::{self, Work};
use crate::space::Piece;
use crate::world::{Allocation, Kind, World, world};

driver! { ENTRIES:
    ready fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let mut world = world();
        let current = context::current(&world)?;
        let device = world.context(current)?.device;
        let used = world.device(device)?.used;
        let memory = world.settings.memory;
        free.set(memory.saturating_sub(used))?;
        total.set(memory)
    }

    ready fn cuMemAlloc_v2(address: Out<usize>, size: usize) {
        let mut world = world();
        let current = context::current(&world)?;
        address.set(allocate(&mut world, Kind::Device, size, current)?)
    }

    ready fn cuMemAllocManaged(address: Out<usize>, size: usize, flags: c_uint) {
        // Attached to all streams, or to the host.
        if flags != 1 && flags != 2 {
            return Err(INVALID_VALUE);
        }
        let mut world = world();
        let current = context::current(&world)?;
        address.set(allocate(&mut world, Kind::Managed, size, current)?)
    }

    ready fn cuMemAllocAsync(address: Out<usize>, size: usize, stream: Handle) {
        let mut world = world();
        if world.settings.version < 11020 {
            return Err(NOT_SUPPORTED);
        }
        let stream = queue::meant(&mut world, stream)?;
        let of = queue::context_of(&world, stream)?;
        let start = allocate(&mut world, Kind::Pool, size, of)?;
        address.set(start)
    }

    ready fn cuMemFreeAsync(address: usize, stream: Handle) {
        let mut world = world();
        let stream = queue::meant(&mut world, stream)?;
        let known = world.allocations.get(&address);
        if !known.is_some_and(|it| it.kind == Kind::Pool) {
            world.fault(format!("cuMemFreeAsync of {address:#x}, no memory of a pool"));
            return Err(INVALID_VALUE);
        }
        queue::submit(&mut world, stream, Work::Free(address)).map(drop)
    }

    ready fn cuMemFree_v2(address: usize) {
        free("cuMemFree", address, &[Kind::Device, Kind::Managed, Kind::Pool])
    }

    ready fn cuMemHostAlloc(address: Out<usize>, size: usize, _flags: c_uint) {
        let mut world = world();
        let current = context::current(&world)?;
        address.set(allocate(&mut world, Kind::Pinned, size, current)?)
    }

    ready fn cuMemAllocHost_v2(address: Out<usize>, size: usize) {
        let mut world = world();
        let current = context::current(&world)?;
        address.set(allocate(&mut world, Kind::Pinned, size, current)?)
    }

    ready fn cuMemFreeHost(address: usize) {
        free("cuMemFreeHost", address, &[Kind::Pinned])
    }

    ready fn cuMemHostRegister_v2(address: usize, size: usize, _flags: c_uint) {
        let mut world = world();
        let current = context::current(&world)?;
        let end = address.checked_add(size).ok_or(INVALID_VALUE)?;
        if address == 0 || size == 0 {
            return Err(INVALID_VALUE);
        }
        let before = world.allocations.range(..end).next_back();
        if before.is_some_and(|(_, it)| it.end() > address) {
            return Err(HOST_MEMORY_ALREADY_REGISTERED);
        }
        let device = world.context(current)?.device;
        let id = world.id();
        let known = Allocation {
            start: address,
            size,
            kind: Kind::Registered,
            device,
            context: current,
            id,
            alias: address,
            alive: AtomicBool::new(true),
            _pieces: Vec::new(),
        };
        world.allocations.insert(address, Arc::new(known));
        Ok(())
    }

    ready fn cuMemHostUnregister(address: usize) {
        let known = world().allocations.get(&address).map(|it| it.kind);
        if known != Some(Kind::Registered) {
            return Err(HOST_MEMORY_NOT_REGISTERED);
        }
        free("cuMemHostUnregister", address, &[Kind::Registered])
    }

    ready fn cuMemHostGetDevicePointer_v2(device: Out<usize>, address: usize, flags: c_uint) {
        let world = world();
        context::current(&world)?;
        let host = world.holding(address).is_some_and(|it| !it.is_device());
        if flags != 0 || !host {
            return Err(INVALID_VALUE);
        }
        device.set(address)
    }

    ready fn cuMemHostGetFlags(flags: Out<c_uint>, address: usize) {
        let world = world();
        let host = world.holding(address).is_some_and(|it| !it.is_device());
        if !host {
            return Err(INVALID_VALUE);
        }
        flags.set(0)
    }

    ready fn cuMemGetAddressRange_v2(base: Out<usize>, size: Out<usize>, address: usize) {
        let world = world();
        context::current(&world)?;
        let known = world.holding(address).filter(|it| it.is_device());
        let known = known.ok_or(NOT_FOUND)?;
        base.set_if_wanted(known.start);
        size.set_if_wanted(known.size);
        Ok(())
    }

    ready fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, device: c_int) {
        world().device(device)?;
        pool.set(pool_of(device))
    }
}

/// The handle of a device's pool.
pub(crate) fn pool_of(device: c_int) -> Handle {
    0x0FA4_E100_0000_0000 + usize::try_from(device).unwrap_or(0) * 16
}

/// Makes memory for the device of a context.
fn allocate(world: &mut World, kind: Kind, size: usize, context: Handle) -> Answer<usize> {
    if size == 0 {
        return Err(INVALID_VALUE);
    }
    let ordinal = world.context(context)?.device;
    let memory = world.settings.memory;
    let of_device = kind != Kind::Pinned;
    if of_device {
        let device = world.device(ordinal)?;
        let used = device.used.checked_add(size);
        device.used = used.filter(|used| *used <= memory).ok_or(OUT_OF_MEMORY)?;
    }
    let pieces = match kind {
        // The address, which nobody can touch, and the bytes.
        Kind::Device | Kind::Pool => {
            let bytes = Piece::open(size)?;
            bytes.soil();
            vec![Piece::closed(size)?, bytes]
        }
        Kind::Managed | Kind::Pinned | Kind::Registered => vec![Piece::open(size)?],
    };
    let start = pieces[0].at();
    let id = world.id();
    let known = Allocation {
        start,
        size,
        kind,
        device: ordinal,
        context: if kind == Kind::Pool { 0 } else { context },
        id,
        alias: pieces.last().map_or(start, Piece::at),
        alive: AtomicBool::new(true),
        _pieces: pieces,
    };
    world.allocations.insert(start, Arc::new(known));
    Ok(start)
}

/// Frees memory of the given kinds, with or without a current context, after all work of its context: as in the real driver, this blocks behind a stream that waits.
fn free(call: &str, address: usize, kinds: &[Kind]) -> Answer {
    let mut world = world();
    let known = world.allocations.get(&address);
    let Some(known) = known.filter(|it| kinds.contains(&it.kind)) else {
        world.fault(format!("{call} of {address:#x}, which is none of its kind"));
        return Err(INVALID_VALUE);
    };
    // Memory of a pool has no context: then the one of the caller is waited for, if there is one.
    let context = match known.context {
        0 => context::current(&world).ok(),
        of => Some(of),
    };
    if let Some(context) = context {
        world = queue::drain(world, context)?;
    }
    world.forget(address);
    Ok(())
}
