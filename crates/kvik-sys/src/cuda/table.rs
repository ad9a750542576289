//! Which functions of libcuda are bound. `cargo xtask codegen bindings` reads this list.
//!
//! Of functions that take a stream, the variants without `_ptsz` are bound: for them stream 0 is the legacy default stream,
//! which is what kvik orders its copies against.

use crate::library::table;

table! {
    /// The driver's functions, as the library exports them.
    Table of cuda {
        cuInit,
        cuDriverGetVersion,
        cuGetErrorName,
        cuGetErrorString,

        cuDeviceGetCount,
        cuDeviceGet,
        cuDeviceGetName,
        cuDeviceGetUuid,
        cuDeviceGetPCIBusId,
        cuDeviceGetAttribute,
        cuDeviceTotalMem_v2,
        cuDevicePrimaryCtxRetain,
        cuDevicePrimaryCtxRelease_v2,
        cuDevicePrimaryCtxGetState,

        cuCtxGetCurrent,
        cuCtxSetCurrent,
        cuCtxPushCurrent_v2,
        cuCtxPopCurrent_v2,
        cuCtxGetDevice,
        cuCtxSynchronize,
        cuCtxDestroy_v2,

        cuPointerGetAttribute,
        cuPointerGetAttributes,
        cuMemGetAddressRange_v2,
        cuMemGetInfo_v2,
        cuMemAlloc_v2,
        cuMemAllocManaged,
        cuMemFree_v2,
        cuMemHostAlloc,
        cuMemFreeHost,
        cuMemHostRegister_v2,
        cuMemHostUnregister,
        cuMemHostGetDevicePointer_v2,

        cuMemcpyHtoD_v2,
        cuMemcpyDtoH_v2,
        cuMemcpyHtoDAsync_v2,
        cuMemcpyDtoHAsync_v2,
        cuMemcpyAsync,
        cuMemsetD8_v2,
        cuMemsetD8Async,

        cuStreamCreate,
        cuStreamDestroy_v2,
        cuStreamSynchronize,
        cuStreamQuery,
        cuStreamWaitEvent,
        cuStreamGetCtx,
        cuStreamIsCapturing,
        cuLaunchHostFunc,

        cuEventCreate,
        cuEventDestroy_v2,
        cuEventRecord,
        cuEventQuery,
        cuEventSynchronize,
        cuEventElapsedTime,
    }
    and perhaps {
        cuThreadExchangeStreamCaptureMode since "10.1",
        // Later headers declare later forms; this one is the shortest, and only tests make contexts of their own.
        cuCtxCreate_v2 since "3.2",
        // Kernels are launched by tests and benches alone.
        cuModuleLoadData since "2.0",
        cuModuleUnload since "2.0",
        cuModuleGetFunction since "2.0",
        cuLaunchKernel since "4.0",
        cuMemAllocAsync since "11.2",
        cuMemFreeAsync since "11.2",
        cuDeviceGetUuid_v2 since "11.4",
        // The first form of the two worked only with an option of the kernel module, so it is not bound.
        cuStreamWaitValue32_v2 since "11.7",
        cuStreamWriteValue32_v2 since "11.7",
        cuGetProcAddress_v2 since "12.0",
        cuCtxGetId since "12.0",
        cuMemcpyBatchAsync since "12.8",
        cuMemcpyBatchAsync_v2 since "13.0",
    }
}
