//! Written by `cargo xtask codegen bindings`: of the vendor's header, what the names that this crate uses lead to.

use core::{ffi::*, mem::*};

use libc::timespec;

use super::cuda::{CUresult, CUstream};

#[derive(PartialEq, Eq, Copy, Clone, Debug, Hash)]
#[repr(C, align(8))]
pub struct __BindgenOpaqueArray8<T>(pub T);

impl<T: Copy + Default, const N: usize> Default for __BindgenOpaqueArray8<[T; N]> {
    fn default() -> Self {
        Self([<T as Default>::default(); N])
    }
}

pub const CU_FILE_STREAM_FIXED_BUF_OFFSET: u32 = 1;

pub const CU_FILE_STREAM_FIXED_FILE_OFFSET: u32 = 2;

pub const CU_FILE_STREAM_FIXED_FILE_SIZE: u32 = 4;

pub const CU_FILE_STREAM_PAGE_ALIGNED_INPUTS: u32 = 8;

pub type __off_t = c_long;
pub type off_t = __off_t;
pub const CODES: &[(u32, &str)] = &[
    (0, "CU_FILE_SUCCESS"),
    (5001, "CU_FILE_DRIVER_NOT_INITIALIZED"),
    (5002, "CU_FILE_DRIVER_INVALID_PROPS"),
    (5003, "CU_FILE_DRIVER_UNSUPPORTED_LIMIT"),
    (5004, "CU_FILE_DRIVER_VERSION_MISMATCH"),
    (5005, "CU_FILE_DRIVER_VERSION_READ_ERROR"),
    (5006, "CU_FILE_DRIVER_CLOSING"),
    (5007, "CU_FILE_PLATFORM_NOT_SUPPORTED"),
    (5008, "CU_FILE_IO_NOT_SUPPORTED"),
    (5009, "CU_FILE_DEVICE_NOT_SUPPORTED"),
    (5010, "CU_FILE_NVFS_DRIVER_ERROR"),
    (5011, "CU_FILE_CUDA_DRIVER_ERROR"),
    (5012, "CU_FILE_CUDA_POINTER_INVALID"),
    (5013, "CU_FILE_CUDA_MEMORY_TYPE_INVALID"),
    (5014, "CU_FILE_CUDA_POINTER_RANGE_ERROR"),
    (5015, "CU_FILE_CUDA_CONTEXT_MISMATCH"),
    (5016, "CU_FILE_INVALID_MAPPING_SIZE"),
    (5017, "CU_FILE_INVALID_MAPPING_RANGE"),
    (5018, "CU_FILE_INVALID_FILE_TYPE"),
    (5019, "CU_FILE_INVALID_FILE_OPEN_FLAG"),
    (5020, "CU_FILE_DIO_NOT_SET"),
    (5022, "CU_FILE_INVALID_VALUE"),
    (5023, "CU_FILE_MEMORY_ALREADY_REGISTERED"),
    (5024, "CU_FILE_MEMORY_NOT_REGISTERED"),
    (5025, "CU_FILE_PERMISSION_DENIED"),
    (5026, "CU_FILE_DRIVER_ALREADY_OPEN"),
    (5027, "CU_FILE_HANDLE_NOT_REGISTERED"),
    (5028, "CU_FILE_HANDLE_ALREADY_REGISTERED"),
    (5029, "CU_FILE_DEVICE_NOT_FOUND"),
    (5030, "CU_FILE_INTERNAL_ERROR"),
    (5031, "CU_FILE_GETNEWFD_FAILED"),
    (5033, "CU_FILE_NVFS_SETUP_ERROR"),
    (5034, "CU_FILE_IO_DISABLED"),
    (5035, "CU_FILE_BATCH_SUBMIT_FAILED"),
    (5036, "CU_FILE_GPU_MEMORY_PINNING_FAILED"),
    (5037, "CU_FILE_BATCH_FULL"),
    (5038, "CU_FILE_ASYNC_NOT_SUPPORTED"),
    (5039, "CU_FILE_INTERNAL_BATCH_SETUP_ERROR"),
    (5040, "CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR"),
    (5041, "CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR"),
    (5042, "CU_FILE_INTERNAL_BATCH_CANCEL_ERROR"),
    (5043, "CU_FILE_NOMEM_ERROR"),
    (5044, "CU_FILE_IO_ERROR"),
    (5045, "CU_FILE_INTERNAL_BUF_REGISTER_ERROR"),
    (5046, "CU_FILE_HASH_OPR_ERROR"),
    (5047, "CU_FILE_INVALID_CONTEXT_ERROR"),
    (5048, "CU_FILE_NVFS_INTERNAL_DRIVER_ERROR"),
    (5049, "CU_FILE_BATCH_NOCOMPAT_ERROR"),
    (5050, "CU_FILE_IO_MAX_ERROR"),
];
impl CUfileOpError {
    pub const CU_FILE_SUCCESS: Self = Self(0);
    pub const CU_FILE_DRIVER_NOT_INITIALIZED: Self = Self(5001);
    pub const CU_FILE_DRIVER_UNSUPPORTED_LIMIT: Self = Self(5003);
    pub const CU_FILE_IO_NOT_SUPPORTED: Self = Self(5008);
    pub const CU_FILE_INVALID_VALUE: Self = Self(5022);
    pub const CU_FILE_DRIVER_ALREADY_OPEN: Self = Self(5026);
    pub const CU_FILE_HANDLE_NOT_REGISTERED: Self = Self(5027);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUfileOpError(pub c_uint);

#[repr(C)]
pub struct CUfileError {
    pub err: CUfileOpError,
    pub cu_err: CUresult,
}

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileError"][size_of::<CUfileError>() - 8usize];
    ["Alignment of CUfileError"][align_of::<CUfileError>() - 4usize];
    ["Offset of field: CUfileError::err"][offset_of!(CUfileError, err) - 0usize];
    ["Offset of field: CUfileError::cu_err"][offset_of!(CUfileError, cu_err) - 4usize];
};

pub type CUfileError_t = CUfileError;
impl CUfileDriverStatusFlags {
    pub const CU_FILE_NVME_SUPPORTED: Self = Self(4);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUfileDriverStatusFlags(pub c_uint);

impl CUfileDriverControlFlags {
    pub const CU_FILE_USE_POLL_MODE: Self = Self(0);
    pub const CU_FILE_ALLOW_COMPAT_MODE: Self = Self(1);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUfileDriverControlFlags(pub c_uint);

impl CUfileFeatureFlags {
    pub const CU_FILE_BATCH_IO_SUPPORTED: Self = Self(1);
    pub const CU_FILE_STREAMS_SUPPORTED: Self = Self(2);
    pub const CU_FILE_P2P_SUPPORTED: Self = Self(4);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUfileFeatureFlags(pub c_uint);

impl CUfileOpcode {
    pub const CUFILE_READ: Self = Self(0);
    pub const CUFILE_WRITE: Self = Self(1);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUfileOpcode(pub c_uint);

pub use self::CUfileOpcode as CUfileOpcode_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUfileDrvProps {
    pub nvfs: CUfileDrvProps__bindgen_ty_1,
    pub fflags: c_uint,
    pub max_device_cache_size: c_uint,
    pub per_buffer_cache_size: c_uint,
    pub max_device_pinned_mem_size: c_uint,
    pub max_batch_io_size: c_uint,
    pub max_batch_io_timeout_msecs: c_uint,
}

#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUfileDrvProps__bindgen_ty_1 {
    pub major_version: c_uint,
    pub minor_version: c_uint,
    pub poll_thresh_size: usize,
    pub max_direct_io_size: usize,
    pub dstatusflags: c_uint,
    pub dcontrolflags: c_uint,
}

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileDrvProps__bindgen_ty_1"][size_of::<CUfileDrvProps__bindgen_ty_1>() - 32usize];
    ["Alignment of CUfileDrvProps__bindgen_ty_1"]
        [align_of::<CUfileDrvProps__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUfileDrvProps__bindgen_ty_1::major_version"]
        [offset_of!(CUfileDrvProps__bindgen_ty_1, major_version) - 0usize];
    ["Offset of field: CUfileDrvProps__bindgen_ty_1::minor_version"]
        [offset_of!(CUfileDrvProps__bindgen_ty_1, minor_version) - 4usize];
    ["Offset of field: CUfileDrvProps__bindgen_ty_1::poll_thresh_size"]
        [offset_of!(CUfileDrvProps__bindgen_ty_1, poll_thresh_size) - 8usize];
    ["Offset of field: CUfileDrvProps__bindgen_ty_1::max_direct_io_size"]
        [offset_of!(CUfileDrvProps__bindgen_ty_1, max_direct_io_size) - 16usize];
    ["Offset of field: CUfileDrvProps__bindgen_ty_1::dstatusflags"]
        [offset_of!(CUfileDrvProps__bindgen_ty_1, dstatusflags) - 24usize];
    ["Offset of field: CUfileDrvProps__bindgen_ty_1::dcontrolflags"]
        [offset_of!(CUfileDrvProps__bindgen_ty_1, dcontrolflags) - 28usize];
};

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileDrvProps"][size_of::<CUfileDrvProps>() - 56usize];
    ["Alignment of CUfileDrvProps"][align_of::<CUfileDrvProps>() - 8usize];
    ["Offset of field: CUfileDrvProps::nvfs"][offset_of!(CUfileDrvProps, nvfs) - 0usize];
    ["Offset of field: CUfileDrvProps::fflags"][offset_of!(CUfileDrvProps, fflags) - 32usize];
    ["Offset of field: CUfileDrvProps::max_device_cache_size"]
        [offset_of!(CUfileDrvProps, max_device_cache_size) - 36usize];
    ["Offset of field: CUfileDrvProps::per_buffer_cache_size"]
        [offset_of!(CUfileDrvProps, per_buffer_cache_size) - 40usize];
    ["Offset of field: CUfileDrvProps::max_device_pinned_mem_size"]
        [offset_of!(CUfileDrvProps, max_device_pinned_mem_size) - 44usize];
    ["Offset of field: CUfileDrvProps::max_batch_io_size"]
        [offset_of!(CUfileDrvProps, max_batch_io_size) - 48usize];
    ["Offset of field: CUfileDrvProps::max_batch_io_timeout_msecs"]
        [offset_of!(CUfileDrvProps, max_batch_io_timeout_msecs) - 52usize];
};

pub type CUfileDrvProps_t = CUfileDrvProps;
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct CUfileFSOps {
    pub _bindgen_opaque_blob: __BindgenOpaqueArray8<[u8; 40usize]>,
}

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileFSOps"][size_of::<CUfileFSOps>() - 40usize];
    ["Alignment of CUfileFSOps"][align_of::<CUfileFSOps>() - 8usize];
};

pub type CUfileFSOps_t = CUfileFSOps;
impl CUfileFileHandleType {
    pub const CU_FILE_HANDLE_TYPE_OPAQUE_FD: Self = Self(1);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUfileFileHandleType(pub c_uint);

#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUfileDescr_t {
    pub type_: CUfileFileHandleType,
    pub handle: CUfileDescr_t__bindgen_ty_1,
    pub fs_ops: *const CUfileFSOps_t,
}

#[repr(C)]
#[derive(Copy, Clone)]
pub union CUfileDescr_t__bindgen_ty_1 {
    pub fd: c_int,
    pub handle: *mut c_void,
}

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileDescr_t__bindgen_ty_1"][size_of::<CUfileDescr_t__bindgen_ty_1>() - 8usize];
    ["Alignment of CUfileDescr_t__bindgen_ty_1"]
        [align_of::<CUfileDescr_t__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUfileDescr_t__bindgen_ty_1::fd"]
        [offset_of!(CUfileDescr_t__bindgen_ty_1, fd) - 0usize];
    ["Offset of field: CUfileDescr_t__bindgen_ty_1::handle"]
        [offset_of!(CUfileDescr_t__bindgen_ty_1, handle) - 0usize];
};

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileDescr_t"][size_of::<CUfileDescr_t>() - 24usize];
    ["Alignment of CUfileDescr_t"][align_of::<CUfileDescr_t>() - 8usize];
    ["Offset of field: CUfileDescr_t::type_"][offset_of!(CUfileDescr_t, type_) - 0usize];
    ["Offset of field: CUfileDescr_t::handle"][offset_of!(CUfileDescr_t, handle) - 8usize];
    ["Offset of field: CUfileDescr_t::fs_ops"][offset_of!(CUfileDescr_t, fs_ops) - 16usize];
};

pub type CUfileHandle_t = *mut c_void;
pub type cuFileHandleRegister =
    unsafe extern "C" fn(fh: *mut CUfileHandle_t, descr: *mut CUfileDescr_t) -> CUfileError_t;

pub type cuFileHandleDeregister = unsafe extern "C" fn(fh: CUfileHandle_t);

pub type cuFileBufRegister =
    unsafe extern "C" fn(bufPtr_base: *const c_void, length: usize, flags: c_int) -> CUfileError_t;

pub type cuFileBufDeregister = unsafe extern "C" fn(bufPtr_base: *const c_void) -> CUfileError_t;

pub type cuFileRead = unsafe extern "C" fn(
    fh: CUfileHandle_t,
    bufPtr_base: *mut c_void,
    size: usize,
    file_offset: off_t,
    bufPtr_offset: off_t,
) -> isize;

pub type cuFileWrite = unsafe extern "C" fn(
    fh: CUfileHandle_t,
    bufPtr_base: *const c_void,
    size: usize,
    file_offset: off_t,
    bufPtr_offset: off_t,
) -> isize;

pub type cuFileDriverOpen = unsafe extern "C" fn() -> CUfileError_t;

pub type cuFileDriverClose = unsafe extern "C" fn() -> CUfileError_t;

pub type cuFileDriverClose_v2 = unsafe extern "C" fn() -> CUfileError_t;

pub type cuFileUseCount = unsafe extern "C" fn() -> c_long;

pub type cuFileDriverGetProperties =
    unsafe extern "C" fn(props: *mut CUfileDrvProps_t) -> CUfileError_t;

pub type cuFileDriverSetPollMode =
    unsafe extern "C" fn(poll: bool, poll_threshold_size: usize) -> CUfileError_t;

pub type cuFileDriverSetMaxCacheSize = unsafe extern "C" fn(max_cache_size: usize) -> CUfileError_t;

pub type cuFileDriverSetMaxPinnedMemSize =
    unsafe extern "C" fn(max_pinned_size: usize) -> CUfileError_t;

impl CUFILEStatus_enum {
    pub const CUFILE_WAITING: Self = Self(1);
    pub const CUFILE_PENDING: Self = Self(2);
    pub const CUFILE_INVALID: Self = Self(4);
    pub const CUFILE_CANCELED: Self = Self(8);
    pub const CUFILE_COMPLETE: Self = Self(16);
    pub const CUFILE_TIMEOUT: Self = Self(32);
    pub const CUFILE_FAILED: Self = Self(64);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUFILEStatus_enum(pub c_uint);

pub use self::CUFILEStatus_enum as CUfileStatus_t;
impl cufileBatchMode {
    pub const CUFILE_BATCH: Self = Self(1);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cufileBatchMode(pub c_uint);

pub use self::cufileBatchMode as CUfileBatchMode_t;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUfileIOParams {
    pub mode: CUfileBatchMode_t,
    pub u: CUfileIOParams__bindgen_ty_1,
    pub fh: CUfileHandle_t,
    pub opcode: CUfileOpcode_t,
    pub cookie: *mut c_void,
}

#[repr(C)]
#[derive(Copy, Clone)]
pub union CUfileIOParams__bindgen_ty_1 {
    pub batch: CUfileIOParams__bindgen_ty_1__bindgen_ty_1,
}

#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUfileIOParams__bindgen_ty_1__bindgen_ty_1 {
    pub devPtr_base: *mut c_void,
    pub file_offset: off_t,
    pub devPtr_offset: off_t,
    pub size: usize,
}

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileIOParams__bindgen_ty_1__bindgen_ty_1"]
        [size_of::<CUfileIOParams__bindgen_ty_1__bindgen_ty_1>() - 32usize];
    ["Alignment of CUfileIOParams__bindgen_ty_1__bindgen_ty_1"]
        [align_of::<CUfileIOParams__bindgen_ty_1__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUfileIOParams__bindgen_ty_1__bindgen_ty_1::devPtr_base"]
        [offset_of!(CUfileIOParams__bindgen_ty_1__bindgen_ty_1, devPtr_base) - 0usize];
    ["Offset of field: CUfileIOParams__bindgen_ty_1__bindgen_ty_1::file_offset"]
        [offset_of!(CUfileIOParams__bindgen_ty_1__bindgen_ty_1, file_offset) - 8usize];
    ["Offset of field: CUfileIOParams__bindgen_ty_1__bindgen_ty_1::devPtr_offset"]
        [offset_of!(CUfileIOParams__bindgen_ty_1__bindgen_ty_1, devPtr_offset) - 16usize];
    ["Offset of field: CUfileIOParams__bindgen_ty_1__bindgen_ty_1::size"]
        [offset_of!(CUfileIOParams__bindgen_ty_1__bindgen_ty_1, size) - 24usize];
};

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileIOParams__bindgen_ty_1"][size_of::<CUfileIOParams__bindgen_ty_1>() - 32usize];
    ["Alignment of CUfileIOParams__bindgen_ty_1"]
        [align_of::<CUfileIOParams__bindgen_ty_1>() - 8usize];
    ["Offset of field: CUfileIOParams__bindgen_ty_1::batch"]
        [offset_of!(CUfileIOParams__bindgen_ty_1, batch) - 0usize];
};

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileIOParams"][size_of::<CUfileIOParams>() - 64usize];
    ["Alignment of CUfileIOParams"][align_of::<CUfileIOParams>() - 8usize];
    ["Offset of field: CUfileIOParams::mode"][offset_of!(CUfileIOParams, mode) - 0usize];
    ["Offset of field: CUfileIOParams::u"][offset_of!(CUfileIOParams, u) - 8usize];
    ["Offset of field: CUfileIOParams::fh"][offset_of!(CUfileIOParams, fh) - 40usize];
    ["Offset of field: CUfileIOParams::opcode"][offset_of!(CUfileIOParams, opcode) - 48usize];
    ["Offset of field: CUfileIOParams::cookie"][offset_of!(CUfileIOParams, cookie) - 56usize];
};

pub type CUfileIOParams_t = CUfileIOParams;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUfileIOEvents {
    pub cookie: *mut c_void,
    pub status: CUfileStatus_t,
    pub ret: usize,
}

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUfileIOEvents"][size_of::<CUfileIOEvents>() - 24usize];
    ["Alignment of CUfileIOEvents"][align_of::<CUfileIOEvents>() - 8usize];
    ["Offset of field: CUfileIOEvents::cookie"][offset_of!(CUfileIOEvents, cookie) - 0usize];
    ["Offset of field: CUfileIOEvents::status"][offset_of!(CUfileIOEvents, status) - 8usize];
    ["Offset of field: CUfileIOEvents::ret"][offset_of!(CUfileIOEvents, ret) - 16usize];
};

pub type CUfileIOEvents_t = CUfileIOEvents;
pub type CUfileBatchHandle_t = *mut c_void;
pub type cuFileBatchIOSetUp =
    unsafe extern "C" fn(batch_idp: *mut CUfileBatchHandle_t, nr: c_uint) -> CUfileError_t;

pub type cuFileBatchIOSubmit = unsafe extern "C" fn(
    batch_idp: CUfileBatchHandle_t,
    nr: c_uint,
    iocbp: *mut CUfileIOParams_t,
    flags: c_uint,
) -> CUfileError_t;

pub type cuFileBatchIOGetStatus = unsafe extern "C" fn(
    batch_idp: CUfileBatchHandle_t,
    min_nr: c_uint,
    nr: *mut c_uint,
    iocbp: *mut CUfileIOEvents_t,
    timeout: *mut timespec,
) -> CUfileError_t;

pub type cuFileBatchIOCancel =
    unsafe extern "C" fn(batch_idp: CUfileBatchHandle_t) -> CUfileError_t;

pub type cuFileBatchIODestroy = unsafe extern "C" fn(batch_idp: CUfileBatchHandle_t);

pub type cuFileReadAsync = unsafe extern "C" fn(
    fh: CUfileHandle_t,
    bufPtr_base: *mut c_void,
    size_p: *mut usize,
    file_offset_p: *mut off_t,
    bufPtr_offset_p: *mut off_t,
    bytes_read_p: *mut isize,
    stream: CUstream,
) -> CUfileError_t;

pub type cuFileWriteAsync = unsafe extern "C" fn(
    fh: CUfileHandle_t,
    bufPtr_base: *mut c_void,
    size_p: *mut usize,
    file_offset_p: *mut off_t,
    bufPtr_offset_p: *mut off_t,
    bytes_written_p: *mut isize,
    stream: CUstream,
) -> CUfileError_t;

pub type cuFileStreamRegister =
    unsafe extern "C" fn(stream: CUstream, flags: c_uint) -> CUfileError_t;

pub type cuFileStreamDeregister = unsafe extern "C" fn(stream: CUstream) -> CUfileError_t;

pub type cuFileGetVersion = unsafe extern "C" fn(version: *mut c_int) -> CUfileError_t;

impl CUFileSizeTConfigParameter_t {
    pub const CUFILE_PARAM_EXECUTION_MAX_IO_THREADS: Self = Self(2);
    pub const CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB: Self = Self(5);
    pub const CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB: Self = Self(6);
    pub const CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB: Self = Self(8);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUFileSizeTConfigParameter_t(pub c_uint);

impl CUFileBoolConfigParameter_t {
    pub const CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE: Self = Self(1);
    pub const CUFILE_PARAM_FORCE_COMPAT_MODE: Self = Self(2);
    pub const CUFILE_PARAM_EXECUTION_PARALLEL_IO: Self = Self(4);
    pub const CUFILE_PARAM_USE_PCIP2PDMA: Self = Self(7);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUFileBoolConfigParameter_t(pub c_uint);

impl CUFileStringConfigParameter_t {
    pub const CUFILE_PARAM_LOGGING_LEVEL: Self = Self(0);
    pub const CUFILE_PARAM_LOG_DIR: Self = Self(2);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUFileStringConfigParameter_t(pub c_uint);

pub type cuFileSetParameterSizeT =
    unsafe extern "C" fn(param: CUFileSizeTConfigParameter_t, value: usize) -> CUfileError_t;

pub type cuFileSetParameterBool =
    unsafe extern "C" fn(param: CUFileBoolConfigParameter_t, value: bool) -> CUfileError_t;

pub type cuFileSetParameterString = unsafe extern "C" fn(
    param: CUFileStringConfigParameter_t,
    desc_str: *const c_char,
) -> CUfileError_t;
