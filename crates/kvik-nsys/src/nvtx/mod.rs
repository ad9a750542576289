//! The tool that listens: its library is loaded, is offered the calls of NVTX, and takes those that it wants.
//!
//! All that is unsafe in this crate is here. Three things are relied on: the path names a library that is a tool for NVTX
//! (whoever sets the variable answers for it, as with every program that has NVTX in it); the tool keeps to NVTX's headers; and
//! what it puts into a slot stays callable, which holds since the library is never unloaded.

mod abi;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use abi::Slot;

use crate::rate::Rates;

/// Why no tool can be told anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Deaf {
    /// The library cannot be loaded.
    #[error("cannot be loaded: {0}")]
    Load(String),
    /// It has been offered something and has said no.
    #[error(
        "refuses {0}, as a tool does that is older than the counters of NVTX or does not record them"
    )]
    Refuses(&'static str),
    /// It does not want to hear what the plugin has to say.
    #[error("has no {0}, as a tool that is older than the counters of NVTX")]
    Lacks(&'static str),
    /// Tools are attached for good.
    #[error("cannot be attached: this process has a tool already")]
    Second,
}

/// A tool that takes counters.
#[derive(Debug)]
pub(crate) struct Tool {
    domain: *mut c_void,
    schema: u64,
    register: abi::CounterRegister,
    sample: abi::CounterSample,
    no_value: Option<abi::CounterSampleNoValue>,
    destroy: Option<abi::DomainDestroy>,
    /// Tools need not copy what they are told.
    names: Vec<CString>,
}

/// A group of counters that the tool knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group(u64);

impl Tool {
    /// Attaches the tool whose library is at `path`.
    pub(crate) fn attach(path: &Path) -> Result<Tool, Deaf> {
        if ATTACHED.swap(true, Ordering::SeqCst) {
            return Err(Deaf::Second);
        }
        let library = Library::open(path)?;
        // SAFETY: NVTX has it that a function of this name is of this type.
        let initialize = unsafe { library.find::<abi::Initialize>(c"InitializeInjectionNvtx2") };
        let initialize = initialize.ok_or(Deaf::Lacks("InitializeInjectionNvtx2"))?;
        // SAFETY: it gets what it asks for by number from `export_table`.
        if unsafe { initialize(export_table) } == 0 {
            return Err(Deaf::Refuses("NVTX"));
        }
        let domains = &SLOTS[abi::DOMAINS];
        // SAFETY: these are the types of the calls with these numbers.
        let create = unsafe { taken::<abi::DomainCreate>(&domains[abi::DOMAIN_CREATE]) };
        let create = create.ok_or(Deaf::Lacks("nvtxDomainCreateA"))?;
        // SAFETY: as above.
        let destroy = unsafe { taken::<abi::DomainDestroy>(&domains[abi::DOMAIN_DESTROY]) };

        // SAFETY: the name is a C string that stays.
        let domain = unsafe { create(c"KvikIO NIC".as_ptr()) };

        let name = c"InitializeInjectionNvtxExtension";
        // SAFETY: NVTX has it that a function of this name is of this type.
        let extend = unsafe { library.find::<abi::InitializeExtension>(name) };
        let extend = extend.ok_or(Deaf::Lacks("InitializeInjectionNvtxExtension"))?;
        let types = ptr::from_ref(&abi::TYPES).cast::<c_void>();
        if !offer(extend, abi::PAYLOAD, &PAYLOAD, types) {
            return Err(Deaf::Refuses("payloads"));
        }
        // SAFETY: this is the type of the call with this number.
        let schema = unsafe { taken::<abi::SchemaRegister>(&PAYLOAD[abi::SCHEMA_REGISTER]) };
        let schema = layout(
            domain,
            schema.ok_or(Deaf::Lacks("nvtxPayloadSchemaRegister"))?,
        );

        if !offer(extend, abi::COUNTERS, &COUNTERS, ptr::null()) {
            return Err(Deaf::Refuses("counters"));
        }
        // SAFETY: as above.
        let register = unsafe { taken::<abi::CounterRegister>(&COUNTERS[abi::COUNTER_REGISTER]) };
        // SAFETY: as above.
        let sample = unsafe { taken::<abi::CounterSample>(&COUNTERS[abi::COUNTER_SAMPLE]) };
        let no_value = &COUNTERS[abi::COUNTER_SAMPLE_NO_VALUE];
        // SAFETY: as above.
        let no_value = unsafe { taken::<abi::CounterSampleNoValue>(no_value) };

        Ok(Tool {
            domain,
            schema,
            register: register.ok_or(Deaf::Lacks("nvtxCounterRegister"))?,
            sample: sample.ok_or(Deaf::Lacks("nvtxCounterSample"))?,
            no_value,
            destroy,
            names: Vec::new(),
        })
    }

    /// A group of counters for the rates of `name`.
    pub(crate) fn group(&mut self, name: &str) -> Group {
        let name = CString::new(name).expect("no name of a file has a zero byte in it");
        let semantics = abi::Semantics {
            struct_size: size_of::<abi::Semantics>() as u32,
            kind: 5,
            version: 2,
            next: ptr::null(),
            flags: 0,
            unit: c"MiB/s".as_ptr(),
            numerator: 1,
            denominator: 1,
            limit_type: 0,
            limits: [0; 2],
        };
        let counter = abi::Counter {
            struct_size: size_of::<abi::Counter>(),
            schema: self.schema,
            name: name.as_ptr(),
            description: ptr::null(),
            scope: abi::SCOPE_VM,
            semantics: &raw const semantics,
            counter: 0,
        };
        self.names.push(name);
        // SAFETY: the domain is the tool's own, the description is whole, and its texts stay.
        Group(unsafe { (self.register)(self.domain, &raw const counter) })
    }

    /// Tells the rates of a group, or that there are none to be had.
    pub(crate) fn tell(&self, group: Group, rates: Option<Rates>) {
        match (rates, self.no_value) {
            (Some(rates), _) => {
                let values = ptr::from_ref(&rates).cast::<c_void>();
                // SAFETY: the values are laid out as the schema of the group has it.
                unsafe { (self.sample)(self.domain, group.0, values, size_of::<Rates>()) };
            }
            // SAFETY: domain and group are the tool's own.
            (None, Some(no_value)) => unsafe { no_value(self.domain, group.0, abi::UNAVAILABLE) },
            // A graph without a point is what is left to say.
            (None, None) => {}
        }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the domain is the tool's own, and nobody names it after this.
            unsafe { destroy(self.domain) };
        }
    }
}

/// Tells the layout of `Rates`.
fn layout(domain: *mut c_void, register: abi::SchemaRegister) -> u64 {
    let entry = |name: &'static CStr, description: &'static CStr, offset: usize| abi::Entry {
        flags: 0,
        kind: abi::DOUBLE,
        name: name.as_ptr(),
        description: description.as_ptr(),
        detail: 0,
        offset: offset as u64,
        semantics: ptr::null(),
        reserved: ptr::null(),
    };
    let entries = [
        entry(
            c"rx",
            c"Receive rate",
            std::mem::offset_of!(Rates, received),
        ),
        entry(c"tx", c"Transmit rate", std::mem::offset_of!(Rates, sent)),
    ];
    let schema = abi::Schema {
        fields: abi::SCHEMA_FIELDS,
        name: c"NIC bandwidth".as_ptr(),
        kind: abi::SCHEMA_STATIC,
        flags: abi::SCHEMA_COUNTER_GROUP,
        entries: entries.as_ptr(),
        entry_count: entries.len(),
        size: size_of::<Rates>(),
        pack_align: 0,
        schema: 0,
        extension: ptr::null(),
    };
    // SAFETY: the domain is the tool's own, the description is whole, and its texts stay.
    unsafe { register(domain, &raw const schema) }
}

/// Offers the calls of an extension; whether the tool takes any.
fn offer(
    extend: abi::InitializeExtension,
    (module, compatible): (u16, u16),
    slots: &'static [Slot],
    info: *const c_void,
) -> bool {
    let mut segment = abi::Segment {
        id: 0,
        slot_count: slots.len(),
        slots: slots.as_ptr(),
    };
    let mut extension = abi::Extension {
        nvtx: abi::VERSION,
        struct_size: size_of::<abi::Extension>() as u16,
        module,
        compatible,
        segment_count: 1,
        segments: &raw mut segment,
        export: ptr::null(),
        info,
    };
    // SAFETY: the description is whole, and the slots are as many as it says and stay.
    unsafe { extend(&raw mut extension) != 0 }
}

/// The call that the tool has put into a slot.
///
/// # Safety
///
/// `F` is the type of a function, the one that NVTX has for this slot.
unsafe fn taken<F>(slot: &Slot) -> Option<F> {
    let address = slot.load(Ordering::Acquire);
    let is_call = address.addr() > abi::DISABLED;
    // SAFETY: the caller says which function it is.
    is_call.then(|| unsafe { as_function(address) })
}

/// # Safety
///
/// `F` is the type of a function, the one at this address.
unsafe fn as_function<F>(address: *mut c_void) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the caller answers for the type; functions are addresses of this size.
    unsafe { std::mem::transmute_copy(&address) }
}

/// What a tool asks for when it is offered NVTX.
unsafe extern "C" fn export_table(number: u32) -> *const c_void {
    match number {
        abi::CALLBACKS => ptr::from_ref(&CALLBACKS_TABLE).cast(),
        abi::VERSION_INFO => ptr::from_ref(&VERSION_TABLE).cast(),
        _ => ptr::null(),
    }
}

unsafe extern "C" fn module_function_table(
    module: c_int,
    table: *mut *const AtomicPtr<Slot>,
    size: *mut c_uint,
) -> c_int {
    let known = usize::try_from(module)
        .ok()
        .filter(|module| (1..abi::MODULES.len()).contains(module));
    let Some(module) = known else {
        return 0;
    };
    let count = abi::MODULES[module];
    for number in 1..count {
        let slot = ptr::from_ref(&SLOTS[module][number]).cast_mut();
        TABLES[module][number].store(slot, Ordering::Release);
    }
    // SAFETY: null, or a place of the tool's.
    if let Some(table) = unsafe { table.as_mut() } {
        *table = TABLES[module].as_ptr();
    }
    // SAFETY: as above.
    if let Some(size) = unsafe { size.as_mut() } {
        *size = count as c_uint;
    }
    1
}

/// NVTX keeps the version of the tool in case that one of them makes trouble some day.
extern "C" fn set_injection_version(_: u32) {}

static ATTACHED: AtomicBool = AtomicBool::new(false);

static CALLBACKS_TABLE: abi::Callbacks = abi::Callbacks {
    struct_size: size_of::<abi::Callbacks>(),
    module_function_table,
};

static VERSION_TABLE: abi::VersionInfo = abi::VersionInfo {
    struct_size: size_of::<abi::VersionInfo>(),
    version: abi::VERSION as u32,
    reserved: 0,
    set_injection_version,
};

/// The calls of each module. Tools fill those of modules that the plugin does not call as well, and refuse where they cannot.
static SLOTS: [[Slot; 17]; 7] = [const { [const { AtomicPtr::new(ptr::null_mut()) }; 17] }; 7];
/// For each module the addresses of its slots; NVTX has one more that is null.
static TABLES: [[AtomicPtr<Slot>; 17]; 7] =
    [const { [const { AtomicPtr::new(ptr::null_mut()) }; 17] }; 7];

static PAYLOAD: [Slot; abi::SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; abi::SLOTS];
static COUNTERS: [Slot; abi::SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; abi::SLOTS];

/// A library that stays loaded.
struct Library(*mut c_void);

impl Library {
    fn open(path: &Path) -> Result<Library, Deaf> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Deaf::Load("its path has a zero byte".to_owned()))?;
        // SAFETY: the path is a C string; what the library does as it is loaded is up to whoever named it.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
        if handle.is_null() {
            return Err(Deaf::Load(last_error()));
        }
        Ok(Library(handle))
    }

    /// # Safety
    ///
    /// `F` is the type of a function, the one that has this name.
    unsafe fn find<F>(&self, name: &CStr) -> Option<F> {
        // SAFETY: the library is loaded, and stays so.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: the caller says which function it is.
        (!address.is_null()).then(|| unsafe { as_function(address) })
    }
}

fn last_error() -> String {
    // SAFETY: it has no conditions.
    let text: *const c_char = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader does not say why".to_owned();
    }
    // SAFETY: a C string that stands until the next call of the loader in this thread.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}
