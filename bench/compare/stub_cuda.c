/* A libcuda.so.1 for machines without a GPU, so that KvikIO's host paths can be measured there.
 *
 * KvikIO loads libcuda.so.1 at its first buffer, also for memory of the host, and fails without it. This one loads, says a
 * version, and answers every other call with CUDA_ERROR_NOT_INITIALIZED, which KvikIO takes to mean that a pointer is memory
 * of the host. No call of it reaches a device.
 *
 *   cc -shared -fPIC -O1 -o FOLDER/libcuda.so.1 stub_cuda.c -Wl,-soname,libcuda.so.1
 */
#include <stdlib.h>

enum { SUCCESS = 0, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100 };

int cuInit(unsigned flags) {
    (void)flags;
    return NO_DEVICE;
}

int cuDriverGetVersion(int *version) {
    *version = 12000;
    return SUCCESS;
}

int cuGetErrorName(int error, const char **text) {
    (void)error;
    *text = "CUDA_ERROR_NOT_INITIALIZED";
    return SUCCESS;
}

int cuGetErrorString(int error, const char **text) {
    (void)error;
    *text = "a stand-in for libcuda: there is no device";
    return SUCCESS;
}

/* Pinned memory, of which KvikIO makes its bounce buffers for direct I/O: memory that begins at a page. */
int cuMemHostAlloc(void **memory, size_t size, unsigned flags) {
    (void)flags;
    return posix_memalign(memory, 4096, size) ? OUT_OF_MEMORY : SUCCESS;
}

int cuMemFreeHost(void *memory) {
    free(memory);
    return SUCCESS;
}

int cuMemHostRegister_v2(void *memory, size_t size, unsigned flags) {
    (void)memory;
    (void)size;
    (void)flags;
    return SUCCESS;
}

int cuMemHostUnregister(void *memory) {
    (void)memory;
    return SUCCESS;
}

#define REFUSED(name) \
    int name(void) { return NOT_INITIALIZED; }

REFUSED(cuMemcpyAsync)
REFUSED(cuMemcpyBatchAsync)
REFUSED(cuMemcpyBatchAsync_v2)
REFUSED(cuMemcpyDtoHAsync_v2)
REFUSED(cuMemcpyHtoDAsync_v2)
REFUSED(cuMemGetAddressRange_v2)
REFUSED(cuPointerGetAttribute)
REFUSED(cuPointerGetAttributes)
REFUSED(cuCtxCreate)
REFUSED(cuCtxCreate_v2)
REFUSED(cuCtxCreate_v4)
REFUSED(cuCtxDestroy_v2)
REFUSED(cuCtxGetCurrent)
REFUSED(cuCtxGetDevice)
REFUSED(cuCtxPopCurrent_v2)
REFUSED(cuCtxPushCurrent_v2)
REFUSED(cuDeviceGet)
REFUSED(cuDeviceGetAttribute)
REFUSED(cuDeviceGetCount)
REFUSED(cuDevicePrimaryCtxRelease)
REFUSED(cuDevicePrimaryCtxRelease_v2)
REFUSED(cuDevicePrimaryCtxRetain)
REFUSED(cuEventCreate)
REFUSED(cuEventDestroy_v2)
REFUSED(cuEventQuery)
REFUSED(cuEventRecord)
REFUSED(cuEventSynchronize)
REFUSED(cuLaunchHostFunc)
REFUSED(cuStreamCreate)
REFUSED(cuStreamDestroy_v2)
REFUSED(cuStreamSynchronize)
