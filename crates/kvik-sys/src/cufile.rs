//! cuFile: loading it, its driver, and the settings that are made before the driver is opened.

mod batch;
mod file;
mod on_stream;
mod properties;
mod table;

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::path::PathBuf;
use std::sync::Arc;

pub use self::batch::{BatchEvent, BatchRequest, BatchState, CuFileBatch};
pub use self::file::CuFileHandle;
pub use self::on_stream::{AsyncArguments, StreamHints};
pub use self::properties::DriverProperties;

use self::table::Table;
use crate::library::{Candidates, Library, LoadError, Unsupported, file_of};
use crate::raw::cufile::{
    CUFileBoolConfigParameter_t as RawBool, CUFileSizeTConfigParameter_t as RawSize,
    CUFileStringConfigParameter_t as RawString,
};
use crate::status::{CallError, CuFileStatus};

/// cuFile's functions, in a library that stays loaded. Clones are cheap and share the table.
///
/// Functions carry cuFile's names, without `cuFile` and in our spelling: `driver_open` is `cuFileDriverOpen`. A call is
/// `unsafe` where wrong arguments could break more than the call; [the rules](crate#rules-of-the-caller) are told once.
#[derive(Clone)]
pub struct CuFile {
    loaded: Arc<Loaded>,
}

struct Loaded {
    table: Table,
    library: Library,
}

/// A setting of cuFile's that is yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoolParameter(RawBool);

impl BoolParameter {
    /// cuFile reads and writes by the file system where no direct path leads.
    pub const ALLOW_COMPAT_MODE: Self = Self(RawBool::CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE);
    /// cuFile reads and writes by the file system even where a direct path leads.
    pub const FORCE_COMPAT_MODE: Self = Self(RawBool::CUFILE_PARAM_FORCE_COMPAT_MODE);
    /// The kernel's own way between devices on the bus is used.
    pub const USE_PCIP2PDMA: Self = Self(RawBool::CUFILE_PARAM_USE_PCIP2PDMA);
    /// Large requests are cut and spread over cuFile's threads.
    pub const EXECUTION_PARALLEL_IO: Self = Self(RawBool::CUFILE_PARAM_EXECUTION_PARALLEL_IO);
}

/// A setting of cuFile's that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SizeParameter(RawSize);

impl SizeParameter {
    /// Largest request to the direct path, in KiB.
    pub const MAX_DIRECT_IO_SIZE_KB: Self =
        Self(RawSize::CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB);
    /// Device memory for buffers that are not registered, in KiB.
    pub const MAX_DEVICE_CACHE_SIZE_KB: Self =
        Self(RawSize::CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB);
    /// Device memory that may be registered, in KiB.
    pub const MAX_DEVICE_PINNED_MEM_SIZE_KB: Self =
        Self(RawSize::CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB);
    /// Threads for each device.
    pub const EXECUTION_MAX_IO_THREADS: Self = Self(RawSize::CUFILE_PARAM_EXECUTION_MAX_IO_THREADS);
}

/// A setting of cuFile's that is a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StringParameter(RawString);

impl StringParameter {
    /// How much cuFile writes into its log: `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
    pub const LOGGING_LEVEL: Self = Self(RawString::CUFILE_PARAM_LOGGING_LEVEL);
    /// The folder of its log, which is the working directory otherwise.
    pub const LOG_DIR: Self = Self(RawString::CUFILE_PARAM_LOG_DIR);
}

impl CuFile {
    /// Loads the first candidate that has every function we need.
    ///
    /// The library may write `cufile.log` into the working directory as soon as it is loaded.
    ///
    /// # Errors
    ///
    /// Lists every candidate, with the dynamic linker's reason or the functions that it lacks.
    ///
    /// # Safety
    ///
    /// 1. Each candidate that is there is the vendor's cuFile or keeps to its interface, and its initialisers may run in this
    ///    process.
    pub unsafe fn load(candidates: &Candidates) -> Result<Self, LoadError> {
        // SAFETY: point 1.
        let (library, table) = unsafe { Library::first(candidates, Table::fill) }?;
        Ok(Self {
            loaded: Arc::new(Loaded { table, library }),
        })
    }

    /// The candidate that was taken.
    pub fn name(&self) -> &OsStr {
        self.loaded.library.name()
    }

    /// The file from which the library was loaded, as the dynamic linker tells it.
    pub fn path(&self) -> Option<PathBuf> {
        file_of(self.table().cuFileDriverOpen as *const c_void)
    }

    /// The functions that this library lacks, of those that it may lack.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        self.table().unsupported()
    }

    /// cuFile's version, as `1000 * major + 10 * minor`. It can be asked for without a driver.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`].
    pub fn get_version(&self) -> Result<i32, CallError<CuFileStatus>> {
        let function = self.table().cuFileGetVersion?;
        let mut version: c_int = 0;
        // SAFETY: `version` is writable for the call.
        CuFileStatus::check(unsafe { function(&raw mut version) })?;
        Ok(version)
    }

    /// Opens the driver: reads cuFile's settings, and talks to nvidia-fs where there is one.
    ///
    /// **Only after [`Cuda::init`](crate::Cuda::init) has succeeded in this process.** Where libcuda cannot be loaded, the
    /// call spins for ever (seen with libcufile 1.20).
    ///
    /// # Errors
    ///
    /// cuFile's status.
    pub fn driver_open(&self) -> Result<(), CuFileStatus> {
        // SAFETY: takes nothing.
        CuFileStatus::check(unsafe { (self.table().cuFileDriverOpen)() })
    }

    /// Closes the driver.
    ///
    /// # Errors
    ///
    /// cuFile's status.
    ///
    /// # Safety
    ///
    /// 1. No read, write or batch is in flight, and no handle or buffer is registered that is used again (rules 1 and 3).
    pub unsafe fn driver_close(&self) -> Result<(), CuFileStatus> {
        let table = self.table();
        let function = table
            .cuFileDriverClose_v2
            .unwrap_or(table.cuFileDriverClose);
        // SAFETY: point 1. Programs that are linked to cuFile call the second form, where there is one, under the name of the
        // first.
        CuFileStatus::check(unsafe { function() })
    }

    /// How often the driver is open in this process.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] where the library does not tell.
    pub fn use_count(&self) -> Result<i64, Unsupported> {
        let function = self.table().cuFileUseCount?;
        // SAFETY: takes nothing.
        Ok(unsafe { function() })
    }

    /// Lets small reads and writes wait for the device by looking again and again, up to a size in KiB.
    ///
    /// # Errors
    ///
    /// cuFile's status.
    pub fn driver_set_poll_mode(
        &self,
        poll: bool,
        threshold_kib: usize,
    ) -> Result<(), CuFileStatus> {
        // SAFETY: takes numbers, and answers wrong ones with a status.
        CuFileStatus::check(unsafe { (self.table().cuFileDriverSetPollMode)(poll, threshold_kib) })
    }

    /// Sets the device memory for buffers that are not registered, in KiB.
    ///
    /// # Errors
    ///
    /// cuFile's status.
    pub fn driver_set_max_cache_size(&self, kib: usize) -> Result<(), CuFileStatus> {
        // SAFETY: takes a number, and answers a wrong one with a status.
        CuFileStatus::check(unsafe { (self.table().cuFileDriverSetMaxCacheSize)(kib) })
    }

    /// Sets the device memory that may be registered, in KiB.
    ///
    /// # Errors
    ///
    /// cuFile's status.
    pub fn driver_set_max_pinned_mem_size(&self, kib: usize) -> Result<(), CuFileStatus> {
        // SAFETY: takes a number, and answers a wrong one with a status.
        CuFileStatus::check(unsafe { (self.table().cuFileDriverSetMaxPinnedMemSize)(kib) })
    }

    /// Makes a setting. Settings count for the next time the driver is opened.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`] before cuFile 1.14.
    pub fn set_parameter_bool(
        &self,
        parameter: BoolParameter,
        value: bool,
    ) -> Result<(), CallError<CuFileStatus>> {
        let function = self.table().cuFileSetParameterBool?;
        // SAFETY: takes two values, and answers wrong ones with a status.
        CuFileStatus::check(unsafe { function(parameter.0, value) })?;
        Ok(())
    }

    /// Makes a setting. Settings count for the next time the driver is opened.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`] before cuFile 1.14.
    pub fn set_parameter_size_t(
        &self,
        parameter: SizeParameter,
        value: usize,
    ) -> Result<(), CallError<CuFileStatus>> {
        let function = self.table().cuFileSetParameterSizeT?;
        // SAFETY: takes two values, and answers wrong ones with a status.
        CuFileStatus::check(unsafe { function(parameter.0, value) })?;
        Ok(())
    }

    /// Makes a setting. Settings count for the next time the driver is opened.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`] before cuFile 1.14.
    pub fn set_parameter_string(
        &self,
        parameter: StringParameter,
        value: &CStr,
    ) -> Result<(), CallError<CuFileStatus>> {
        let function = self.table().cuFileSetParameterString?;
        // SAFETY: the text ends with a NUL, and the library keeps a copy of it (seen with libcufile 1.20: `value` was
        // overwritten after the call, and the setting stayed); a wrong one is answered with a status.
        CuFileStatus::check(unsafe { function(parameter.0, value.as_ptr()) })?;
        Ok(())
    }

    fn table(&self) -> &Table {
        &self.loaded.table
    }
}

impl std::fmt::Debug for CuFile {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("CuFile")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
