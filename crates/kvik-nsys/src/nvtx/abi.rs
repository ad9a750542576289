//! What NVTX 3 and a tool tell each other, and where it stands in memory.
//!
//! NVIDIA's headers (nvToolsExt.h, nvToolsExtPayload.h, nvToolsExtCounters.h of NVTX 3.3) define it; what is declared here is
//! the part that the plugin uses. A build of the headers themselves would need a C compiler and some thirty files of theirs.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::AtomicPtr;

/// Where a tool puts the address of a call of its own.
pub(super) type Slot = AtomicPtr<c_void>;

pub(super) const VERSION: u16 = 3;

pub(super) type ExportTable = unsafe extern "C" fn(u32) -> *const c_void;
/// `InitializeInjectionNvtx2`: 0 is a refusal.
pub(super) type Initialize = unsafe extern "C" fn(ExportTable) -> c_int;

/// Export table 1: the tool asks for the table of a module, and gets the addresses of its slots.
#[repr(C)]
pub(super) struct Callbacks {
    pub(super) struct_size: usize,
    pub(super) module_function_table:
        unsafe extern "C" fn(c_int, *mut *const AtomicPtr<Slot>, *mut c_uint) -> c_int,
}

pub(super) const CALLBACKS: u32 = 1;

/// Export table 3.
#[repr(C)]
pub(super) struct VersionInfo {
    pub(super) struct_size: usize,
    pub(super) version: u32,
    pub(super) reserved: u32,
    pub(super) set_injection_version: extern "C" fn(u32),
}

pub(super) const VERSION_INFO: u32 = 3;

/// How many calls each module has, with the one that has the number 0 and is none: nothing, core, CUDA, OpenCL, the CUDA
/// runtime, domains, synchronisation.
pub(super) const MODULES: [usize; 7] = [0, 16, 9, 15, 7, 16, 7];

/// The module of domains, and two of its calls.
pub(super) const DOMAINS: usize = 5;
pub(super) const DOMAIN_CREATE: usize = 12;
pub(super) const DOMAIN_DESTROY: usize = 14;

pub(super) type DomainCreate = unsafe extern "C" fn(*const c_char) -> *mut c_void;
pub(super) type DomainDestroy = unsafe extern "C" fn(*mut c_void);

/// `InitializeInjectionNvtxExtension`: 0 is a refusal.
pub(super) type InitializeExtension = unsafe extern "C" fn(*mut Extension) -> c_int;

/// An extension and where its slots are.
#[repr(C)]
pub(super) struct Extension {
    pub(super) nvtx: u16,
    pub(super) struct_size: u16,
    pub(super) module: u16,
    pub(super) compatible: u16,
    pub(super) segment_count: usize,
    pub(super) segments: *mut Segment,
    pub(super) export: *const c_void,
    pub(super) info: *const c_void,
}

#[repr(C)]
pub(super) struct Segment {
    pub(super) id: usize,
    pub(super) slot_count: usize,
    pub(super) slots: *const Slot,
}

/// How many slots an extension has; few of them have a call.
pub(super) const SLOTS: usize = 63;
/// In a slot of an extension: there is no such call.
pub(super) const DISABLED: usize = 1;

/// The extension of payloads, and one of its calls.
pub(super) const PAYLOAD: (u16, u16) = (2, 0x0104);
pub(super) const SCHEMA_REGISTER: usize = 0;

pub(super) type SchemaRegister = unsafe extern "C" fn(*mut c_void, *const Schema) -> u64;

/// The extension of counters, and three of its calls.
pub(super) const COUNTERS: (u16, u16) = (4, 0x0102);
pub(super) const COUNTER_REGISTER: usize = 0;
pub(super) const COUNTER_SAMPLE: usize = 3;
pub(super) const COUNTER_SAMPLE_NO_VALUE: usize = 4;

pub(super) type CounterRegister = unsafe extern "C" fn(*mut c_void, *const Counter) -> u64;
pub(super) type CounterSample = unsafe extern "C" fn(*mut c_void, u64, *const c_void, usize);
pub(super) type CounterSampleNoValue = unsafe extern "C" fn(*mut c_void, u64, u8);

/// Why there is no value: it could not be had.
pub(super) const UNAVAILABLE: u8 = 2;

/// The layout of a group of counters.
#[repr(C)]
pub(super) struct Schema {
    pub(super) fields: u64,
    pub(super) name: *const c_char,
    pub(super) kind: u64,
    pub(super) flags: u64,
    pub(super) entries: *const Entry,
    pub(super) entry_count: usize,
    pub(super) size: usize,
    pub(super) pack_align: usize,
    pub(super) schema: u64,
    pub(super) extension: *const c_void,
}

/// Which fields of a `Schema` hold: name, kind, flags, entries, their number, size.
pub(super) const SCHEMA_FIELDS: u64 = 0x7e;
pub(super) const SCHEMA_STATIC: u64 = 1;
pub(super) const SCHEMA_COUNTER_GROUP: u64 = 1 << 3;

/// One counter of a group.
#[repr(C)]
pub(super) struct Entry {
    pub(super) flags: u64,
    pub(super) kind: u64,
    pub(super) name: *const c_char,
    pub(super) description: *const c_char,
    pub(super) detail: u64,
    pub(super) offset: u64,
    pub(super) semantics: *const c_void,
    pub(super) reserved: *const c_void,
}

pub(super) const DOUBLE: u64 = 20;

/// What is to be sampled, with a layout.
#[repr(C)]
pub(super) struct Counter {
    pub(super) struct_size: usize,
    pub(super) schema: u64,
    pub(super) name: *const c_char,
    pub(super) description: *const c_char,
    pub(super) scope: u64,
    pub(super) semantics: *const Semantics,
    pub(super) counter: u64,
}

/// The scope of what the virtual machine does, or the machine where there is none.
pub(super) const SCOPE_VM: u64 = 17;

/// What the numbers of a counter mean, kind 5 in version 2.
#[repr(C)]
pub(super) struct Semantics {
    pub(super) struct_size: u32,
    pub(super) kind: u16,
    pub(super) version: u16,
    pub(super) next: *const c_void,
    pub(super) flags: u64,
    pub(super) unit: *const c_char,
    pub(super) numerator: u64,
    pub(super) denominator: u64,
    pub(super) limit_type: i64,
    pub(super) limits: [u64; 2],
}

/// Sizes and alignments of C's types on 64-bit Linux, in the order of their numbers. The first row says how many rows there are,
/// and how long each is.
pub(super) static TYPES: [[u16; 2]; 28] = [
    [28, 4],
    // char, short, int, long and long long, each with its unsigned one.
    [1, 1],
    [1, 1],
    [2, 2],
    [2, 2],
    [4, 4],
    [4, 4],
    [8, 8],
    [8, 8],
    [8, 8],
    [8, 8],
    // Integers of 8, 16, 32 and 64 bits, as well.
    [1, 1],
    [1, 1],
    [2, 2],
    [2, 2],
    [4, 4],
    [4, 4],
    [8, 8],
    [8, 8],
    // float, double, long double.
    [4, 4],
    [8, 8],
    [16, 16],
    // size_t, pointers.
    [8, 8],
    [8, 8],
    // wchar_t, char8_t, char16_t, char32_t.
    [4, 4],
    [1, 1],
    [2, 2],
    [4, 4],
];
