//! `cuGetProcAddress`: calls by name and version, among those that the fake has.

use std::ffi::{c_int, c_void};

use crate::abi::{NOT_FOUND, Out, Text};
use crate::entry::driver;
use crate::{capture, context, copy, device, event, memory, module, names, pointer, stream};

driver! { ENTRIES:
    any fn cuGetProcAddress_v2(
        name: Text,
        address: Out<*const c_void>,
        version: c_int,
        _flags: u64,
        status: Out<c_int>,
    ) {
        let found = find(&name.read()?, version);
        address.set(found.unwrap_or(std::ptr::null()))?;
        status.set_if_wanted(c_int::from(found.is_none()));
        found.map(drop).ok_or(NOT_FOUND)
    }

    any fn cuGetProcAddress(
        name: Text,
        address: Out<*const c_void>,
        version: c_int,
        _flags: u64,
    ) {
        let found = find(&name.read()?, version);
        address.set(found.unwrap_or(std::ptr::null()))?;
        found.map(drop).ok_or(NOT_FOUND)
    }
}

/// Names come without a suffix, and the version says which form is meant: the newest that it knows.
fn find(name: &str, version: i32) -> Option<*const c_void> {
    ["_v4", "_v3", "_v2", ""].into_iter().find_map(|suffix| {
        let full = format!("{name}{suffix}");
        let (_, address) = tables()
            .flatten()
            .find(|(known, _)| *known == full && since(known) <= version)?;
        Some(address())
    })
}

type Table = &'static [(&'static str, fn() -> *const c_void)];

fn tables() -> impl Iterator<Item = Table> {
    let tables: [Table; 11] = [
        capture::ENTRIES,
        context::ENTRIES,
        copy::ENTRIES,
        device::ENTRIES,
        event::ENTRIES,
        memory::ENTRIES,
        module::ENTRIES,
        names::ENTRIES,
        pointer::ENTRIES,
        stream::ENTRIES,
        ENTRIES,
    ];
    tables.into_iter()
}

/// The first version with a form that is younger than the oldest driver we know.
fn since(name: &str) -> i32 {
    match name {
        "cuMemcpyBatchAsync_v2" => 13000,
        "cuMemcpyBatchAsync" | "cuEventElapsedTime_v2" => 12080,
        "cuCtxCreate_v4" => 12050,
        "cuStreamWaitValue32_v2" | "cuStreamWriteValue32_v2" => 11070,
        "cuDeviceGetUuid_v2" | "cuCtxCreate_v3" => 11040,
        _ => 0,
    }
}
