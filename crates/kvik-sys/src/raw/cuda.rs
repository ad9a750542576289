//! Written by `cargo xtask codegen bindings`: of the vendor's header, what the names that this crate uses lead to.

use core::{ffi::*, mem::*};

pub const CU_MEMHOSTALLOC_PORTABLE: u32 = 1;

pub const CU_MEMHOSTALLOC_DEVICEMAP: u32 = 2;

pub const CU_MEMHOSTREGISTER_PORTABLE: u32 = 1;

pub const CU_MEMHOSTREGISTER_DEVICEMAP: u32 = 2;

pub type cuuint32_t = u32;
pub type cuuint64_t = u64;
pub type CUdeviceptr_v2 = c_ulonglong;
pub type CUdeviceptr = CUdeviceptr_v2;
pub type CUdevice_v1 = c_int;
pub type CUdevice = CUdevice_v1;
#[repr(C)]
#[derive(Debug)]
pub struct CUctx_st {
    _unused: [u8; 0],
}

pub type CUcontext = *mut CUctx_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUmod_st {
    _unused: [u8; 0],
}

pub type CUmodule = *mut CUmod_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUfunc_st {
    _unused: [u8; 0],
}

pub type CUfunction = *mut CUfunc_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUevent_st {
    _unused: [u8; 0],
}

pub type CUevent = *mut CUevent_st;
#[repr(C)]
#[derive(Debug)]
pub struct CUstream_st {
    _unused: [u8; 0],
}

pub type CUstream = *mut CUstream_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUuuid_st {
    pub bytes: [c_char; 16usize],
}

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUuuid_st"][size_of::<CUuuid_st>() - 16usize];
    ["Alignment of CUuuid_st"][align_of::<CUuuid_st>() - 1usize];
    ["Offset of field: CUuuid_st::bytes"][offset_of!(CUuuid_st, bytes) - 0usize];
};

pub type CUuuid = CUuuid_st;
impl CUmemAttach_flags_enum {
    pub const CU_MEM_ATTACH_GLOBAL: Self = Self(1);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemAttach_flags_enum(pub c_uint);

pub use self::CUmemAttach_flags_enum as CUmemAttach_flags;
impl CUctx_flags_enum {
    pub const CU_CTX_SCHED_AUTO: Self = Self(0);
    pub const CU_CTX_SCHED_BLOCKING_SYNC: Self = Self(4);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUctx_flags_enum(pub c_uint);

pub use self::CUctx_flags_enum as CUctx_flags;
impl CUstream_flags_enum {
    pub const CU_STREAM_DEFAULT: Self = Self(0);
    pub const CU_STREAM_NON_BLOCKING: Self = Self(1);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstream_flags_enum(pub c_uint);

pub use self::CUstream_flags_enum as CUstream_flags;
impl CUevent_flags_enum {
    pub const CU_EVENT_DEFAULT: Self = Self(0);
    pub const CU_EVENT_BLOCKING_SYNC: Self = Self(1);
    pub const CU_EVENT_DISABLE_TIMING: Self = Self(2);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUevent_flags_enum(pub c_uint);

pub use self::CUevent_flags_enum as CUevent_flags;
impl CUstreamWaitValue_flags_enum {
    pub const CU_STREAM_WAIT_VALUE_GEQ: Self = Self(0);
    pub const CU_STREAM_WAIT_VALUE_EQ: Self = Self(1);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamWaitValue_flags_enum(pub c_uint);

pub use self::CUstreamWaitValue_flags_enum as CUstreamWaitValue_flags;
impl CUstreamWriteValue_flags_enum {
    pub const CU_STREAM_WRITE_VALUE_DEFAULT: Self = Self(0);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamWriteValue_flags_enum(pub c_uint);

pub use self::CUstreamWriteValue_flags_enum as CUstreamWriteValue_flags;
impl CUdevice_attribute_enum {
    pub const CU_DEVICE_ATTRIBUTE_INTEGRATED: Self = Self(18);
    pub const CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY: Self = Self(19);
    pub const CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: Self = Self(40);
    pub const CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: Self = Self(41);
    pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: Self = Self(75);
    pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: Self = Self(76);
    pub const CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: Self = Self(83);
    pub const CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: Self = Self(88);
    pub const CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: Self = Self(89);
    pub const CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED: Self = Self(99);
    pub const CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: Self = Self(115);
    pub const CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED: Self = Self(116);
    pub const CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: Self = Self(134);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUdevice_attribute_enum(pub c_uint);

pub use self::CUdevice_attribute_enum as CUdevice_attribute;
impl CUpointer_attribute_enum {
    pub const CU_POINTER_ATTRIBUTE_CONTEXT: Self = Self(1);
    pub const CU_POINTER_ATTRIBUTE_MEMORY_TYPE: Self = Self(2);
    pub const CU_POINTER_ATTRIBUTE_DEVICE_POINTER: Self = Self(3);
    pub const CU_POINTER_ATTRIBUTE_HOST_POINTER: Self = Self(4);
    pub const CU_POINTER_ATTRIBUTE_BUFFER_ID: Self = Self(7);
    pub const CU_POINTER_ATTRIBUTE_IS_MANAGED: Self = Self(8);
    pub const CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: Self = Self(9);
    pub const CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: Self = Self(11);
    pub const CU_POINTER_ATTRIBUTE_RANGE_SIZE: Self = Self(12);
    pub const CU_POINTER_ATTRIBUTE_MAPPED: Self = Self(13);
    pub const CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: Self = Self(15);
    pub const CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: Self = Self(17);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUpointer_attribute_enum(pub c_uint);

pub use self::CUpointer_attribute_enum as CUpointer_attribute;
impl CUmemorytype_enum {
    pub const CU_MEMORYTYPE_HOST: Self = Self(1);
    pub const CU_MEMORYTYPE_DEVICE: Self = Self(2);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemorytype_enum(pub c_uint);

pub use self::CUmemorytype_enum as CUmemorytype;
pub type CUhostFn = ::core::option::Option<unsafe extern "C" fn(userData: *mut c_void)>;
impl CUstreamCaptureStatus_enum {
    pub const CU_STREAM_CAPTURE_STATUS_NONE: Self = Self(0);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamCaptureStatus_enum(pub c_uint);

pub use self::CUstreamCaptureStatus_enum as CUstreamCaptureStatus;
impl CUstreamCaptureMode_enum {
    pub const CU_STREAM_CAPTURE_MODE_GLOBAL: Self = Self(0);
    pub const CU_STREAM_CAPTURE_MODE_RELAXED: Self = Self(2);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUstreamCaptureMode_enum(pub c_uint);

pub use self::CUstreamCaptureMode_enum as CUstreamCaptureMode;
impl CUdriverProcAddressQueryResult_enum {
    pub const CU_GET_PROC_ADDRESS_SUCCESS: Self = Self(0);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUdriverProcAddressQueryResult_enum(pub c_uint);

pub use self::CUdriverProcAddressQueryResult_enum as CUdriverProcAddressQueryResult;
impl cudaError_enum {
    pub const CUDA_SUCCESS: Self = Self(0);
    pub const CUDA_ERROR_INVALID_VALUE: Self = Self(1);
    pub const CUDA_ERROR_OUT_OF_MEMORY: Self = Self(2);
    pub const CUDA_ERROR_NOT_INITIALIZED: Self = Self(3);
    pub const CUDA_ERROR_DEINITIALIZED: Self = Self(4);
    pub const CUDA_ERROR_STUB_LIBRARY: Self = Self(34);
    pub const CUDA_ERROR_NO_DEVICE: Self = Self(100);
    pub const CUDA_ERROR_INVALID_DEVICE: Self = Self(101);
    pub const CUDA_ERROR_INVALID_CONTEXT: Self = Self(201);
    pub const CUDA_ERROR_INVALID_HANDLE: Self = Self(400);
    pub const CUDA_ERROR_NOT_FOUND: Self = Self(500);
    pub const CUDA_ERROR_NOT_READY: Self = Self(600);
    pub const CUDA_ERROR_ILLEGAL_ADDRESS: Self = Self(700);
    pub const CUDA_ERROR_CONTEXT_IS_DESTROYED: Self = Self(709);
    pub const CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: Self = Self(712);
    pub const CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED: Self = Self(713);
    pub const CUDA_ERROR_NOT_SUPPORTED: Self = Self(801);
    pub const CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: Self = Self(900);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct cudaError_enum(pub c_uint);

pub use self::cudaError_enum as CUresult;
impl CUmemLocationType_enum {
    pub const CU_MEM_LOCATION_TYPE_INVALID: Self = Self(0);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemLocationType_enum(pub c_uint);

pub use self::CUmemLocationType_enum as CUmemLocationType;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUmemLocation_st {
    pub type_: CUmemLocationType,
    pub __bindgen_anon_1: CUmemLocation_st__bindgen_ty_1,
}

#[repr(C)]
#[derive(Copy, Clone)]
pub union CUmemLocation_st__bindgen_ty_1 {
    pub id: c_int,
    pub localized: CUmemLocation_st__bindgen_ty_1__bindgen_ty_1,
}

#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUmemLocation_st__bindgen_ty_1__bindgen_ty_1 {
    pub deviceId: c_uchar,
    pub localityDomainId: c_uchar,
}

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemLocation_st__bindgen_ty_1__bindgen_ty_1"]
        [size_of::<CUmemLocation_st__bindgen_ty_1__bindgen_ty_1>() - 2usize];
    ["Alignment of CUmemLocation_st__bindgen_ty_1__bindgen_ty_1"]
        [align_of::<CUmemLocation_st__bindgen_ty_1__bindgen_ty_1>() - 1usize];
    ["Offset of field: CUmemLocation_st__bindgen_ty_1__bindgen_ty_1::deviceId"]
        [offset_of!(CUmemLocation_st__bindgen_ty_1__bindgen_ty_1, deviceId) - 0usize];
    ["Offset of field: CUmemLocation_st__bindgen_ty_1__bindgen_ty_1::localityDomainId"][offset_of!(
        CUmemLocation_st__bindgen_ty_1__bindgen_ty_1,
        localityDomainId
    ) - 1usize];
};

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemLocation_st__bindgen_ty_1"]
        [size_of::<CUmemLocation_st__bindgen_ty_1>() - 4usize];
    ["Alignment of CUmemLocation_st__bindgen_ty_1"]
        [align_of::<CUmemLocation_st__bindgen_ty_1>() - 4usize];
    ["Offset of field: CUmemLocation_st__bindgen_ty_1::id"]
        [offset_of!(CUmemLocation_st__bindgen_ty_1, id) - 0usize];
    ["Offset of field: CUmemLocation_st__bindgen_ty_1::localized"]
        [offset_of!(CUmemLocation_st__bindgen_ty_1, localized) - 0usize];
};

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemLocation_st"][size_of::<CUmemLocation_st>() - 8usize];
    ["Alignment of CUmemLocation_st"][align_of::<CUmemLocation_st>() - 4usize];
    ["Offset of field: CUmemLocation_st::type_"][offset_of!(CUmemLocation_st, type_) - 0usize];
};

pub type CUmemLocation_v1 = CUmemLocation_st;
pub type CUmemLocation = CUmemLocation_v1;
impl CUmemcpySrcAccessOrder_enum {
    pub const CU_MEMCPY_SRC_ACCESS_ORDER_STREAM: Self = Self(1);
}

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct CUmemcpySrcAccessOrder_enum(pub c_uint);

pub use self::CUmemcpySrcAccessOrder_enum as CUmemcpySrcAccessOrder;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct CUmemcpyAttributes_st {
    pub srcAccessOrder: CUmemcpySrcAccessOrder,
    pub srcLocHint: CUmemLocation,
    pub dstLocHint: CUmemLocation,
    pub flags: c_uint,
}

#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of CUmemcpyAttributes_st"][size_of::<CUmemcpyAttributes_st>() - 24usize];
    ["Alignment of CUmemcpyAttributes_st"][align_of::<CUmemcpyAttributes_st>() - 4usize];
    ["Offset of field: CUmemcpyAttributes_st::srcAccessOrder"]
        [offset_of!(CUmemcpyAttributes_st, srcAccessOrder) - 0usize];
    ["Offset of field: CUmemcpyAttributes_st::srcLocHint"]
        [offset_of!(CUmemcpyAttributes_st, srcLocHint) - 4usize];
    ["Offset of field: CUmemcpyAttributes_st::dstLocHint"]
        [offset_of!(CUmemcpyAttributes_st, dstLocHint) - 12usize];
    ["Offset of field: CUmemcpyAttributes_st::flags"]
        [offset_of!(CUmemcpyAttributes_st, flags) - 20usize];
};

pub type CUmemcpyAttributes_v1 = CUmemcpyAttributes_st;
pub type CUmemcpyAttributes = CUmemcpyAttributes_v1;
pub type cuGetErrorString =
    unsafe extern "C" fn(error: CUresult, pStr: *mut *const c_char) -> CUresult;

pub type cuGetErrorName =
    unsafe extern "C" fn(error: CUresult, pStr: *mut *const c_char) -> CUresult;

pub type cuInit = unsafe extern "C" fn(Flags: c_uint) -> CUresult;

pub type cuDriverGetVersion = unsafe extern "C" fn(driverVersion: *mut c_int) -> CUresult;

pub type cuDeviceGet = unsafe extern "C" fn(device: *mut CUdevice, ordinal: c_int) -> CUresult;

pub type cuDeviceGetCount = unsafe extern "C" fn(count: *mut c_int) -> CUresult;

pub type cuDeviceGetName =
    unsafe extern "C" fn(name: *mut c_char, len: c_int, dev: CUdevice) -> CUresult;

pub type cuDeviceGetUuid_v2 = unsafe extern "C" fn(uuid: *mut CUuuid, dev: CUdevice) -> CUresult;

pub type cuDeviceTotalMem_v2 = unsafe extern "C" fn(bytes: *mut usize, dev: CUdevice) -> CUresult;

pub type cuDeviceGetAttribute =
    unsafe extern "C" fn(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice) -> CUresult;

pub type cuDevicePrimaryCtxRetain =
    unsafe extern "C" fn(pctx: *mut CUcontext, dev: CUdevice) -> CUresult;

pub type cuDevicePrimaryCtxRelease_v2 = unsafe extern "C" fn(dev: CUdevice) -> CUresult;

pub type cuDevicePrimaryCtxGetState =
    unsafe extern "C" fn(dev: CUdevice, flags: *mut c_uint, active: *mut c_int) -> CUresult;

pub type cuCtxDestroy_v2 = unsafe extern "C" fn(ctx: CUcontext) -> CUresult;

pub type cuCtxPushCurrent_v2 = unsafe extern "C" fn(ctx: CUcontext) -> CUresult;

pub type cuCtxPopCurrent_v2 = unsafe extern "C" fn(pctx: *mut CUcontext) -> CUresult;

pub type cuCtxSetCurrent = unsafe extern "C" fn(ctx: CUcontext) -> CUresult;

pub type cuCtxGetCurrent = unsafe extern "C" fn(pctx: *mut CUcontext) -> CUresult;

pub type cuCtxGetDevice = unsafe extern "C" fn(device: *mut CUdevice) -> CUresult;

pub type cuCtxGetId = unsafe extern "C" fn(ctx: CUcontext, ctxId: *mut c_ulonglong) -> CUresult;

pub type cuCtxSynchronize = unsafe extern "C" fn() -> CUresult;

pub type cuModuleLoadData =
    unsafe extern "C" fn(module: *mut CUmodule, image: *const c_void) -> CUresult;

pub type cuModuleUnload = unsafe extern "C" fn(hmod: CUmodule) -> CUresult;

pub type cuModuleGetFunction =
    unsafe extern "C" fn(hfunc: *mut CUfunction, hmod: CUmodule, name: *const c_char) -> CUresult;

pub type cuMemGetInfo_v2 = unsafe extern "C" fn(free: *mut usize, total: *mut usize) -> CUresult;

pub type cuMemAlloc_v2 = unsafe extern "C" fn(dptr: *mut CUdeviceptr, bytesize: usize) -> CUresult;

pub type cuMemFree_v2 = unsafe extern "C" fn(dptr: CUdeviceptr) -> CUresult;

pub type cuMemGetAddressRange_v2 =
    unsafe extern "C" fn(pbase: *mut CUdeviceptr, psize: *mut usize, dptr: CUdeviceptr) -> CUresult;

pub type cuMemFreeHost = unsafe extern "C" fn(p: *mut c_void) -> CUresult;

pub type cuMemHostAlloc =
    unsafe extern "C" fn(pp: *mut *mut c_void, bytesize: usize, Flags: c_uint) -> CUresult;

pub type cuMemHostGetDevicePointer_v2 =
    unsafe extern "C" fn(pdptr: *mut CUdeviceptr, p: *mut c_void, Flags: c_uint) -> CUresult;

pub type cuMemAllocManaged =
    unsafe extern "C" fn(dptr: *mut CUdeviceptr, bytesize: usize, flags: c_uint) -> CUresult;

pub type cuDeviceGetPCIBusId =
    unsafe extern "C" fn(pciBusId: *mut c_char, len: c_int, dev: CUdevice) -> CUresult;

pub type cuMemHostRegister_v2 =
    unsafe extern "C" fn(p: *mut c_void, bytesize: usize, Flags: c_uint) -> CUresult;

pub type cuMemHostUnregister = unsafe extern "C" fn(p: *mut c_void) -> CUresult;

pub type cuPointerGetAttribute = unsafe extern "C" fn(
    data: *mut c_void,
    attribute: CUpointer_attribute,
    ptr: CUdeviceptr,
) -> CUresult;

pub type cuPointerGetAttributes = unsafe extern "C" fn(
    numAttributes: c_uint,
    attributes: *mut CUpointer_attribute,
    data: *mut *mut c_void,
    ptr: CUdeviceptr,
) -> CUresult;

pub type cuStreamCreate = unsafe extern "C" fn(phStream: *mut CUstream, Flags: c_uint) -> CUresult;

pub type cuThreadExchangeStreamCaptureMode =
    unsafe extern "C" fn(mode: *mut CUstreamCaptureMode) -> CUresult;

pub type cuStreamDestroy_v2 = unsafe extern "C" fn(hStream: CUstream) -> CUresult;

pub type cuEventCreate = unsafe extern "C" fn(phEvent: *mut CUevent, Flags: c_uint) -> CUresult;

pub type cuEventQuery = unsafe extern "C" fn(hEvent: CUevent) -> CUresult;

pub type cuEventSynchronize = unsafe extern "C" fn(hEvent: CUevent) -> CUresult;

pub type cuEventDestroy_v2 = unsafe extern "C" fn(hEvent: CUevent) -> CUresult;

pub type cuGetProcAddress_v2 = unsafe extern "C" fn(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    cudaVersion: c_int,
    flags: cuuint64_t,
    symbolStatus: *mut CUdriverProcAddressQueryResult,
) -> CUresult;

pub type cuCtxCreate_v2 =
    unsafe extern "C" fn(pctx: *mut CUcontext, flags: c_uint, dev: CUdevice) -> CUresult;

pub type cuEventElapsedTime =
    unsafe extern "C" fn(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent) -> CUresult;

pub type cuDeviceGetUuid = unsafe extern "C" fn(uuid: *mut CUuuid, dev: CUdevice) -> CUresult;

pub type cuMemcpyHtoD_v2 = unsafe extern "C" fn(
    dstDevice: CUdeviceptr,
    srcHost: *const c_void,
    ByteCount: usize,
) -> CUresult;

pub type cuMemcpyDtoH_v2 = unsafe extern "C" fn(
    dstHost: *mut c_void,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
) -> CUresult;

pub type cuMemcpyHtoDAsync_v2 = unsafe extern "C" fn(
    dstDevice: CUdeviceptr,
    srcHost: *const c_void,
    ByteCount: usize,
    hStream: CUstream,
) -> CUresult;

pub type cuMemcpyDtoHAsync_v2 = unsafe extern "C" fn(
    dstHost: *mut c_void,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
    hStream: CUstream,
) -> CUresult;

pub type cuMemsetD8_v2 =
    unsafe extern "C" fn(dstDevice: CUdeviceptr, uc: c_uchar, N: usize) -> CUresult;

pub type cuMemcpyAsync = unsafe extern "C" fn(
    dst: CUdeviceptr,
    src: CUdeviceptr,
    ByteCount: usize,
    hStream: CUstream,
) -> CUresult;

pub type cuMemcpyBatchAsync = unsafe extern "C" fn(
    dsts: *mut CUdeviceptr,
    srcs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    attrs: *mut CUmemcpyAttributes,
    attrsIdxs: *mut usize,
    numAttrs: usize,
    failIdx: *mut usize,
    hStream: CUstream,
) -> CUresult;

pub type cuMemcpyBatchAsync_v2 = unsafe extern "C" fn(
    dsts: *mut CUdeviceptr,
    srcs: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    attrs: *mut CUmemcpyAttributes,
    attrsIdxs: *mut usize,
    numAttrs: usize,
    hStream: CUstream,
) -> CUresult;

pub type cuMemsetD8Async = unsafe extern "C" fn(
    dstDevice: CUdeviceptr,
    uc: c_uchar,
    N: usize,
    hStream: CUstream,
) -> CUresult;

pub type cuStreamGetCtx = unsafe extern "C" fn(hStream: CUstream, pctx: *mut CUcontext) -> CUresult;

pub type cuStreamWaitEvent =
    unsafe extern "C" fn(hStream: CUstream, hEvent: CUevent, Flags: c_uint) -> CUresult;

pub type cuStreamQuery = unsafe extern "C" fn(hStream: CUstream) -> CUresult;

pub type cuStreamSynchronize = unsafe extern "C" fn(hStream: CUstream) -> CUresult;

pub type cuEventRecord = unsafe extern "C" fn(hEvent: CUevent, hStream: CUstream) -> CUresult;

pub type cuLaunchKernel = unsafe extern "C" fn(
    f: CUfunction,
    gridDimX: c_uint,
    gridDimY: c_uint,
    gridDimZ: c_uint,
    blockDimX: c_uint,
    blockDimY: c_uint,
    blockDimZ: c_uint,
    sharedMemBytes: c_uint,
    hStream: CUstream,
    kernelParams: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult;

pub type cuLaunchHostFunc =
    unsafe extern "C" fn(hStream: CUstream, fn_: CUhostFn, userData: *mut c_void) -> CUresult;

pub type cuStreamWriteValue32_v2 = unsafe extern "C" fn(
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> CUresult;

pub type cuStreamWaitValue32_v2 = unsafe extern "C" fn(
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> CUresult;

pub type cuStreamIsCapturing =
    unsafe extern "C" fn(hStream: CUstream, captureStatus: *mut CUstreamCaptureStatus) -> CUresult;

pub type cuMemFreeAsync = unsafe extern "C" fn(dptr: CUdeviceptr, hStream: CUstream) -> CUresult;

pub type cuMemAllocAsync =
    unsafe extern "C" fn(dptr: *mut CUdeviceptr, bytesize: usize, hStream: CUstream) -> CUresult;
