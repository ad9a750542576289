//! A tool for NVTX 3: a library that a program loads because `NVTX_INJECTION64_PATH` names it, as Nsight Systems has one.
//!
//! It takes the calls for domains, schemas and counters, and appends a line for each to the file that `FAKE_NVTX_LOG` names:
//!
//! ```text
//! domain 1 "KvikIO NIC"
//! extension 2 compatible=0x104 types=1/1 ...
//! schema 11 "NIC bandwidth" type=1 flags=0x8 size=16 ...
//! field 11 "rx" type=20 offset=0 "Receive rate" flags=0x0
//! counter 21 domain=1 schema=11 "eth0" "" scope=17 id=0 version=2 semantics=0x0 unit="MiB/s"*1/1 ...
//! sample 21 1.5 0.25
//! none 21 2
//! ```
//! `FAKE_NVTX_REFUSE` has it refuse what it is offered, as a tool that does not fit does: `core` is everything, `extension` any
//! extension, `counters` that one, and with `calls` it takes extensions and no call of them.
#![allow(
    non_snake_case,
    reason = "the two entry points have the names that NVTX gives them"
)]

mod abi;
mod record;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::{Callbacks, Counter, ExportTable, Module, Schema, VersionInfo};

static DOMAINS: AtomicU64 = AtomicU64::new(1);
static SCHEMAS: AtomicU64 = AtomicU64::new(11);
static COUNTERS: AtomicU64 = AtomicU64::new(21);

/// The program offers its calls.
///
/// # Safety
///
/// `export` is the function that NVTX 3 documents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(export: Option<ExportTable>) -> c_int {
    let Some(export) = export.filter(|_| !record::refuses("core")) else {
        return 0;
    };
    // SAFETY: the caller answers for it.
    let callbacks = unsafe { export(abi::CALLBACKS) }.cast::<Callbacks>();
    // SAFETY: null, or the table that this number stands for.
    let Some(callbacks) = (unsafe { callbacks.as_ref() }) else {
        return 0;
    };
    assert!(callbacks.struct_size >= size_of::<Callbacks>());
    // SAFETY: the caller answers for it.
    let version = unsafe { export(abi::VERSION_INFO) }.cast::<VersionInfo>();
    // SAFETY: null, or the table that this number stands for.
    let Some(version) = (unsafe { version.as_ref() }) else {
        return 0;
    };
    assert!(version.struct_size >= size_of::<VersionInfo>() && version.version == 3);
    // SAFETY: any number will do.
    unsafe { (version.set_injection_version)(3) };
    // As a tool does that takes all calls there are.
    for (module, size) in abi::MODULES {
        // SAFETY: the table is one of the program's.
        let table = unsafe { table(callbacks, module) };
        assert_eq!(table.len(), size as usize, "the table of module {module}");
        assert!(table[1..].iter().all(|slot| !slot.is_null()));
    }
    let ours = [
        (abi::DOMAIN_CREATE_A, domain_create as *const c_void),
        (abi::DOMAIN_DESTROY, domain_destroy as *const c_void),
    ];
    // SAFETY: as above.
    let table = unsafe { table(callbacks, abi::CORE2) };
    for (place, function) in ours {
        // SAFETY: each entry points to where the program keeps the address of the call.
        unsafe { *table[place] = function };
    }
    1
}

/// The program offers the calls of one extension.
///
/// # Safety
///
/// `module` is what NVTX 3 documents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *mut c_void) -> c_int {
    // SAFETY: the caller answers for it.
    let module = unsafe { &*module.cast::<Module>() };
    assert!(usize::from(module.struct_size) == size_of::<Module>() && module.nvtx == 3);
    // SAFETY: NVTX has it that this extension brings the table, and no other one brings any.
    let types = unsafe { record::types(module.info.cast()) };
    record::line(&format!(
        "extension {} compatible={:#x}{types}",
        module.module, module.compatible
    ));
    let counters = module.module == abi::COUNTERS;
    if record::refuses("extension") || record::refuses("counters") && counters {
        return 0;
    }
    if record::refuses("calls") {
        return 1;
    }
    assert_eq!(module.segment_count, 1);
    // SAFETY: there is one.
    let segment = unsafe { &*module.segments };
    let ours: &[(usize, *const c_void)] = match module.module {
        abi::PAYLOAD => &[(abi::SCHEMA_REGISTER, schema_register as *const c_void)],
        abi::COUNTERS => &[
            (abi::COUNTER_REGISTER, counter_register as *const c_void),
            (abi::COUNTER_SAMPLE, counter_sample as *const c_void),
            (abi::COUNTER_SAMPLE_NO_VALUE, counter_none as *const c_void),
        ],
        _ => &[],
    };
    // SAFETY: the segment has that many, and the program looks at none of them before this returns.
    let slots = unsafe { std::slice::from_raw_parts_mut(segment.slots, segment.slot_count) };
    for (place, function) in ours {
        slots[*place] = *function;
    }
    1
}

/// Where the program keeps the addresses of the calls of a module.
///
/// # Safety
///
/// `callbacks` is the table that NVTX 3 documents.
unsafe fn table(callbacks: &Callbacks, module: c_int) -> &'static [*mut *const c_void] {
    let mut table = ptr::null_mut();
    let mut size = 0;
    // SAFETY: both places are ours.
    let found = unsafe { (callbacks.module_function_table)(module, &raw mut table, &raw mut size) };
    assert_eq!(found, 1, "module {module}");
    // SAFETY: the caller answers for it; tables stay as long as the program.
    unsafe { std::slice::from_raw_parts(table, size as usize) }
}

unsafe extern "C" fn domain_create(name: *const c_char) -> *mut c_void {
    let domain = DOMAINS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: NVTX has it that the name is a C string.
    let name = unsafe { text(name) };
    record::line(&format!("domain {domain} {name:?}"));
    ptr::without_provenance_mut(domain as usize)
}

unsafe extern "C" fn domain_destroy(domain: *mut c_void) {
    record::line(&format!("end of domain {}", domain.addr()));
}

unsafe extern "C" fn schema_register(_: *mut c_void, schema: *const Schema) -> u64 {
    // SAFETY: NVTX has it that the description is whole.
    let schema = unsafe { &*schema };
    let id = SCHEMAS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: as the description.
    unsafe { record::schema(id, schema) };
    id
}

unsafe extern "C" fn counter_register(domain: *mut c_void, counter: *const Counter) -> u64 {
    // SAFETY: NVTX has it that the description is whole.
    let counter = unsafe { &*counter };
    let id = COUNTERS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: as the description.
    unsafe { record::counter(id, domain.addr(), counter) };
    id
}

unsafe extern "C" fn counter_sample(
    _: *mut c_void,
    counter: u64,
    values: *const c_void,
    size: usize,
) {
    let count = size / size_of::<f64>();
    // SAFETY: so many bytes are there.
    let values = unsafe { std::slice::from_raw_parts(values.cast::<[u8; 8]>(), count) };
    let values: Vec<String> = values
        .iter()
        .map(|value| f64::from_ne_bytes(*value).to_string())
        .collect();
    record::line(&format!("sample {counter} {}", values.join(" ")));
}

unsafe extern "C" fn counter_none(_: *mut c_void, counter: u64, reason: u8) {
    record::line(&format!("none {counter} {reason}"));
}

/// # Safety
///
/// Null, or a C string.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller answers for it.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}
