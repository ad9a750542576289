//! What NVTX 3 and its extensions hand to a tool, as their headers lay it out; written without a look at `kvik-nsys`.

use std::ffi::{c_char, c_int, c_uint, c_void};

pub(crate) type ExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// Export table 1.
#[repr(C)]
pub(crate) struct Callbacks {
    pub(crate) struct_size: usize,
    pub(crate) module_function_table:
        unsafe extern "C" fn(c_int, *mut *mut *mut *const c_void, *mut c_uint) -> c_int,
}

pub(crate) const CALLBACKS: u32 = 1;
/// Export table 3.
#[repr(C)]
pub(crate) struct VersionInfo {
    pub(crate) struct_size: usize,
    pub(crate) version: u32,
    pub(crate) reserved: u32,
    pub(crate) set_injection_version: unsafe extern "C" fn(u32),
}

pub(crate) const VERSION_INFO: u32 = 3;
/// The modules of NVTX 3, with the size of the table of each.
pub(crate) const MODULES: [(c_int, c_uint); 6] =
    [(1, 16), (2, 9), (3, 15), (4, 7), (5, 16), (6, 7)];
/// The module of the calls that name a domain, and two of them.
pub(crate) const CORE2: c_int = 5;
pub(crate) const DOMAIN_CREATE_A: usize = 12;
pub(crate) const DOMAIN_DESTROY: usize = 14;

#[repr(C)]
pub(crate) struct Segment {
    pub(crate) id: usize,
    pub(crate) slot_count: usize,
    pub(crate) slots: *mut *const c_void,
}

#[repr(C)]
pub(crate) struct Module {
    pub(crate) nvtx: u16,
    pub(crate) struct_size: u16,
    pub(crate) module: u16,
    pub(crate) compatible: u16,
    pub(crate) segment_count: usize,
    pub(crate) segments: *mut Segment,
    pub(crate) export: *const c_void,
    pub(crate) info: *const c_void,
}

pub(crate) const PAYLOAD: u16 = 2;
pub(crate) const SCHEMA_REGISTER: usize = 0;
pub(crate) const COUNTERS: u16 = 4;
pub(crate) const COUNTER_REGISTER: usize = 0;
pub(crate) const COUNTER_SAMPLE: usize = 3;
pub(crate) const COUNTER_SAMPLE_NO_VALUE: usize = 4;

#[repr(C)]
pub(crate) struct Schema {
    pub(crate) field_mask: u64,
    pub(crate) name: *const c_char,
    pub(crate) kind: u64,
    pub(crate) flags: u64,
    pub(crate) entries: *const Entry,
    pub(crate) entry_count: usize,
    pub(crate) static_size: usize,
    pub(crate) pack_align: usize,
    pub(crate) schema: u64,
    pub(crate) extension: *const c_void,
}

#[repr(C)]
pub(crate) struct Entry {
    pub(crate) flags: u64,
    pub(crate) kind: u64,
    pub(crate) name: *const c_char,
    pub(crate) description: *const c_char,
    pub(crate) detail: u64,
    pub(crate) offset: u64,
    pub(crate) semantics: *const Semantics,
    pub(crate) reserved: *const c_void,
}

#[repr(C)]
pub(crate) struct Semantics {
    pub(crate) struct_size: u32,
    pub(crate) id: u16,
    pub(crate) version: u16,
    pub(crate) next: *const Semantics,
}

pub(crate) const COUNTER_SEMANTICS: u16 = 5;

#[repr(C)]
pub(crate) struct CounterSemantics {
    pub(crate) header: Semantics,
    pub(crate) flags: u64,
    pub(crate) unit: *const c_char,
    pub(crate) numerator: u64,
    pub(crate) denominator: u64,
    pub(crate) limit_type: i64,
    pub(crate) limits: [u64; 2],
}

#[repr(C)]
pub(crate) struct Counter {
    pub(crate) struct_size: usize,
    pub(crate) schema: u64,
    pub(crate) name: *const c_char,
    pub(crate) description: *const c_char,
    pub(crate) scope: u64,
    pub(crate) semantics: *const Semantics,
    pub(crate) counter: u64,
}
