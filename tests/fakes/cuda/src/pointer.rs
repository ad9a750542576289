//! What is known about a pointer.

use std::ffi::{c_int, c_uint};

use crate::abi::{Answer, INVALID_VALUE, In, NOT_SUPPORTED, Out};
use crate::context;
use crate::entry::driver;
use crate::memory::pool_of;
use crate::world::{Allocation, Kind, world};

driver! { ENTRIES:
    ready fn cuPointerGetAttribute(data: Out<u8>, attribute: c_int, address: usize) {
        let width = width_of(attribute)?;
        let value = value_of(attribute, address)?;
        width.of(value).store(data)
    }

    ready fn cuPointerGetAttributes(
        count: c_uint,
        attributes: In<c_int>,
        data: In<Out<u8>>,
        address: usize,
    ) {
        let count = usize::try_from(count).map_err(|_| INVALID_VALUE)?;
        let attributes = attributes.read(count)?;
        let places = data.read(count)?;
        for (attribute, place) in attributes.into_iter().zip(places) {
            let width = width_of(attribute)?;
            // Here what is unknown is no error: it is zero, or the ordinal of no device.
            let unknown = if attribute == DEVICE_ORDINAL { NO_ORDINAL } else { 0 };
            let value = value_of(attribute, address).unwrap_or(unknown);
            width.of(value).store(place)?;
        }
        Ok(())
    }
}

/// A value with the width in which its caller expects it.
#[derive(Clone, Copy)]
enum Value {
    Int(u32),
    Long(u64),
    Flag(bool),
}

impl Value {
    fn store(self, to: Out<u8>) -> Answer {
        match self {
            Value::Int(value) => to.cast().set(value),
            Value::Long(value) => to.cast().set(value),
            Value::Flag(value) => to.cast().set(value),
        }
    }
}

#[derive(Clone, Copy)]
enum Width {
    Int,
    Long,
    Flag,
}

impl Width {
    fn of(self, value: u64) -> Value {
        match self {
            // Attributes of that width are ordinals, kinds and flags.
            Width::Int => Value::Int(value as u32),
            Width::Long => Value::Long(value),
            Width::Flag => Value::Flag(value != 0),
        }
    }
}

fn width_of(attribute: c_int) -> Answer<Width> {
    Ok(match attribute {
        MEMORY_TYPE | DEVICE_ORDINAL | ACCESS_FLAGS => Width::Int,
        // The header speaks of booleans and of unsigned integers; the driver stores four bytes for these.
        SYNC_MEMOPS => Width::Int,
        IS_MANAGED | IS_LEGACY_IPC | MAPPED | IS_RDMA_CAPABLE => Width::Flag,
        CONTEXT..=MEMORY_BLOCK_ID => Width::Long,
        _ => return Err(INVALID_VALUE),
    })
}

fn value_of(attribute: c_int, address: usize) -> Answer<u64> {
    let world = world();
    let known = world.holding(address).ok_or(INVALID_VALUE)?;
    let yes = |holds: bool| u64::from(holds);
    Ok(match attribute {
        CONTEXT => known.context as u64,
        MEMORY_TYPE if known.is_device() => 2,
        MEMORY_TYPE => 1,
        DEVICE_POINTER => {
            let current = context::current(&world)?;
            let reached = !known.is_device()
                || known.kind == Kind::Managed
                || world.context(current)?.device == known.device;
            // No peer of a device reaches its memory here.
            if reached {
                address as u64
            } else {
                return Err(INVALID_VALUE);
            }
        }
        HOST_POINTER if is_for_host(known) => address as u64,
        // No CPU reaches it.
        HOST_POINTER => return Err(INVALID_VALUE),
        P2P_TOKENS => return Err(NOT_SUPPORTED),
        BUFFER_ID | MEMORY_BLOCK_ID => known.id,
        IS_MANAGED => yes(known.kind == Kind::Managed),
        DEVICE_ORDINAL => u64::try_from(known.device).map_err(|_| INVALID_VALUE)?,
        IS_LEGACY_IPC | IS_RDMA_CAPABLE => yes(known.kind == Kind::Device),
        RANGE_START_ADDR | MAPPING_BASE_ADDR => known.start as u64,
        RANGE_SIZE | MAPPING_SIZE => known.size as u64,
        MAPPED => 1,
        ACCESS_FLAGS => 3,
        MEMPOOL_HANDLE if known.kind == Kind::Pool => pool_of(known.device) as u64,
        _ => 0,
    })
}

fn is_for_host(known: &Allocation) -> bool {
    !known.is_device() || known.kind == Kind::Managed
}

/// -2 in 32 bits.
const NO_ORDINAL: u64 = 0xFFFF_FFFE;

const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const DEVICE_POINTER: c_int = 3;
const HOST_POINTER: c_int = 4;
const P2P_TOKENS: c_int = 5;
const SYNC_MEMOPS: c_int = 6;
const BUFFER_ID: c_int = 7;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
const IS_LEGACY_IPC: c_int = 10;
const RANGE_START_ADDR: c_int = 11;
const RANGE_SIZE: c_int = 12;
const MAPPED: c_int = 13;
const IS_RDMA_CAPABLE: c_int = 15;
const ACCESS_FLAGS: c_int = 16;
const MEMPOOL_HANDLE: c_int = 17;
const MAPPING_SIZE: c_int = 18;
const MAPPING_BASE_ADDR: c_int = 19;
const MEMORY_BLOCK_ID: c_int = 20;
