//! The driver: loading it, and what it says of itself. Its calls stand by subject in the files of this folder.

mod batch;
mod context;
mod copy;
mod device;
mod event;
mod memory;
mod module;
mod pointer;
mod stream;
mod table;

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock};

pub use self::context::{ContextFlags, PrimaryState};
pub use self::device::DeviceAttribute;
pub use self::event::EventFlags;
pub use self::memory::HostFlags;
pub use self::pointer::{MemoryType, PointerAttribute};
pub use self::stream::{CaptureMode, HostFn, StreamFlags, WaitCondition};

use self::table::Table;
use crate::library::{Candidates, Library, LoadError, Unsupported, file_of};
use crate::raw::cuda::CUdriverProcAddressQueryResult;
use crate::status::{CallError, CudaStatus};

/// The driver's functions, in a library that stays loaded. Clones are cheap and share the table.
///
/// Functions carry the driver's names, without `cu` and in our spelling: `memcpy_htod_async` is `cuMemcpyHtoDAsync_v2`. A
/// call is `unsafe` where wrong arguments could break more than the call; [the rules](crate#rules-of-the-caller) are told once.
#[derive(Clone)]
pub struct Cuda {
    loaded: Arc<Loaded>,
}

struct Loaded {
    table: Table,
    library: Library,
    /// Asked for once, by calls that have to know it.
    version: OnceLock<c_int>,
}

impl Cuda {
    /// Loads the first candidate that has every function we need.
    ///
    /// Nothing of the driver runs yet but its initialisers; [`init`](Self::init) comes next.
    ///
    /// # Errors
    ///
    /// Lists every candidate, with the dynamic linker's reason or the functions that it lacks.
    ///
    /// # Safety
    ///
    /// 1. Each candidate that is there is the vendor's driver library or keeps to its interface, and its initialisers may
    ///    run in this process.
    pub unsafe fn load(candidates: &Candidates) -> Result<Self, LoadError> {
        // SAFETY: point 1.
        let (library, table) = unsafe { Library::first(candidates, Table::fill) }?;
        Ok(Self {
            loaded: Arc::new(Loaded {
                table,
                library,
                version: OnceLock::new(),
            }),
        })
    }

    /// The candidate that was taken.
    pub fn name(&self) -> &OsStr {
        self.loaded.library.name()
    }

    /// The file from which the library was loaded, as the dynamic linker tells it.
    pub fn path(&self) -> Option<PathBuf> {
        file_of(self.table().cuInit as *const c_void)
    }

    /// The functions that this library lacks, of those that it may lack.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        self.table().unsupported()
    }

    /// Starts the driver in this process (`cuInit`).
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn init(&self) -> Result<(), CudaStatus> {
        // SAFETY: takes a number, of which only 0 is defined.
        CudaStatus::check(unsafe { (self.table().cuInit)(0) })
    }

    /// The version of CUDA that the driver supports, as `1000 * major + 10 * minor`.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn driver_get_version(&self) -> Result<i32, CudaStatus> {
        let mut version = 0;
        // SAFETY: `version` is writable for the call.
        CudaStatus::check(unsafe { (self.table().cuDriverGetVersion)(&raw mut version) })?;
        Ok(version)
    }

    /// The driver's name of a status, `CUDA_ERROR_INVALID_VALUE`; nothing where the driver does not know it.
    pub fn name_of(&self, status: CudaStatus) -> Option<&'static CStr> {
        let mut text: *const c_char = ptr::null();
        // SAFETY: `text` is writable for the call; the driver answers any number.
        let result = unsafe { (self.table().cuGetErrorName)(status.raw(), &raw mut text) };
        // SAFETY: the driver's texts are constants of the library, which is never closed.
        CudaStatus::check(result)
            .ok()
            .and_then(|()| unsafe { constant(text) })
    }

    /// The driver's sentence about a status; nothing where the driver does not know it.
    pub fn sentence_of(&self, status: CudaStatus) -> Option<&'static CStr> {
        let mut text: *const c_char = ptr::null();
        // SAFETY: `text` is writable for the call; the driver answers any number.
        let result = unsafe { (self.table().cuGetErrorString)(status.raw(), &raw mut text) };
        // SAFETY: the driver's texts are constants of the library, which is never closed.
        CudaStatus::check(result)
            .ok()
            .and_then(|()| unsafe { constant(text) })
    }

    /// All that the driver says of a status, for people: `CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected`.
    pub fn text(&self, status: CudaStatus) -> String {
        let Some(name) = self.name_of(status) else {
            return format!("{status}, which this driver has no text for");
        };
        let name = name.to_string_lossy();
        let code = status.code();
        match self.sentence_of(status) {
            Some(sentence) => format!("{name} ({code}): {}", sentence.to_string_lossy()),
            None => format!("{name} ({code})"),
        }
    }

    /// The address of a driver function as of a version of CUDA; nothing where the driver has no such function.
    ///
    /// # Errors
    ///
    /// The driver's status, or [`CallError::Unsupported`] before CUDA 12.0.
    pub fn get_proc_address(
        &self,
        symbol: &CStr,
        version: i32,
    ) -> Result<Option<NonNull<c_void>>, CallError<CudaStatus>> {
        let function = self.table().cuGetProcAddress_v2?;
        let mut address: *mut c_void = ptr::null_mut();
        let mut found = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
        // SAFETY: the name ends with a NUL; both results are writable for the call.
        let result = unsafe {
            function(
                symbol.as_ptr(),
                &raw mut address,
                version,
                0,
                &raw mut found,
            )
        };
        match CudaStatus::check(result) {
            Err(CudaStatus::NOT_FOUND) => Ok(None),
            Err(status) => Err(status.into()),
            Ok(()) if found == CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS => {
                Ok(NonNull::new(address))
            }
            Ok(()) => Ok(None),
        }
    }

    fn table(&self) -> &Table {
        &self.loaded.table
    }

    /// [`driver_get_version`](Self::driver_get_version), asked for once.
    fn version(&self) -> Result<c_int, CudaStatus> {
        if let Some(version) = self.loaded.version.get() {
            return Ok(*version);
        }
        let version = self.driver_get_version()?;
        Ok(*self.loaded.version.get_or_init(|| version))
    }
}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Cuda")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// # Safety
///
/// 1. The text is null, or a C string that is never freed.
unsafe fn constant(text: *const c_char) -> Option<&'static CStr> {
    if text.is_null() {
        return None;
    }
    // SAFETY: point 1.
    Some(unsafe { CStr::from_ptr(text) })
}
