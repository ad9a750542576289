// A driver library that answers by a plan: no device, host memory only. Built by the tests, with what -D asks for:
// VERSION (what it says it supports), MINIMAL (cuInit alone), FIRST_BATCH, SECOND_BATCH, MODERN (the other functions that a
// driver may lack).
#include <stddef.h>
#include <string.h>

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }

#ifndef MINIMAL

int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }

int cuGetErrorName(int status, const char **text) {
    if (status != 100) { *text = NULL; return 1; }
    *text = "CUDA_ERROR_NO_DEVICE";
    return 0;
}

int cuGetErrorString(int status, const char **text) {
    if (status != 100) { *text = NULL; return 1; }
    *text = "no CUDA-capable device is detected";
    return 0;
}

// A number that no header has.
int cuDeviceGetCount(int *count) { *count = 0; return 123456; }

int cuDeviceGetName(char *name, int length, int device) {
    // Fills all it may, and so ends without a NUL, on device 1.
    memset(name, 'x', length);
    if (device == 0) strcpy(name, "Stub");
    return 0;
}

int cuDeviceGetUuid(char uuid[16], int device) { (void)device; memset(uuid, 1, 16); return 0; }

int cuCtxGetCurrent(void **context) { *context = NULL; return 0; }

static unsigned long long answer(int attribute) {
    switch (attribute) {
    case 2: return 2;             // memory type
    case 9: return 0xFFFFFFFE;    // device ordinal -2, in four bytes
    case 11: return 0x7000000000; // start
    default: return 0;
    }
}

int cuPointerGetAttribute(void *to, int attribute, unsigned long long address) {
    if (address == 0) return 1;
    unsigned long long value = answer(attribute);
    memcpy(to, &value, attribute == 11 ? 8 : 4);
    return 0;
}

int cuPointerGetAttributes(unsigned count, int *attributes, void **to, unsigned long long address) {
    for (unsigned i = 0; i < count; i++)
        if (cuPointerGetAttribute(to[i], attributes[i], address) != 0) return 1;
    return 0;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) {
    memcpy((void *)to, from, bytes);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) {
    memcpy(to, (void *)from, bytes);
    return 0;
}

int cuStreamQuery(void *stream) { return stream == NULL ? 600 : stream == (void *)1 ? 0 : 700; }
int cuEventQuery(void *event) { return event == (void *)16 ? 600 : 0; }
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    *milliseconds = 1.5f;
    return start == end ? 0 : 600;
}
int cuStreamIsCapturing(void *stream, int *status) { *status = stream == NULL ? 0 : 2; return 0; }
int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
    (void)stream;
    function(data);
    return 0;
}

// Not called by a test.
#define UNUSED(name) int name(void) { return 801; }
UNUSED(cuDeviceGet) UNUSED(cuDeviceGetPCIBusId) UNUSED(cuDeviceGetAttribute) UNUSED(cuDeviceTotalMem_v2)
UNUSED(cuDevicePrimaryCtxRetain) UNUSED(cuDevicePrimaryCtxRelease_v2) UNUSED(cuDevicePrimaryCtxGetState)
UNUSED(cuCtxSetCurrent) UNUSED(cuCtxPushCurrent_v2) UNUSED(cuCtxPopCurrent_v2) UNUSED(cuCtxGetDevice)
UNUSED(cuCtxSynchronize) UNUSED(cuCtxDestroy_v2)
UNUSED(cuMemGetAddressRange_v2) UNUSED(cuMemGetInfo_v2) UNUSED(cuMemAlloc_v2) UNUSED(cuMemAllocManaged)
UNUSED(cuMemFree_v2) UNUSED(cuMemHostAlloc) UNUSED(cuMemFreeHost) UNUSED(cuMemHostRegister_v2)
UNUSED(cuMemHostUnregister) UNUSED(cuMemHostGetDevicePointer_v2)
UNUSED(cuMemcpyHtoDAsync_v2) UNUSED(cuMemcpyDtoHAsync_v2) UNUSED(cuMemcpyAsync) UNUSED(cuMemsetD8_v2)
UNUSED(cuMemsetD8Async)
UNUSED(cuStreamCreate) UNUSED(cuStreamDestroy_v2) UNUSED(cuStreamSynchronize) UNUSED(cuStreamWaitEvent)
UNUSED(cuStreamGetCtx)
UNUSED(cuEventCreate) UNUSED(cuEventDestroy_v2) UNUSED(cuEventRecord) UNUSED(cuEventSynchronize)

#ifdef MODERN
int cuDeviceGetUuid_v2(char uuid[16], int device) { (void)device; memset(uuid, 0xA2, 16); return 0; }
int cuMemAllocAsync(unsigned long long *address, size_t bytes, void *stream) {
    (void)stream;
    *address = bytes;
    return 0;
}
int cuGetProcAddress_v2(const char *symbol, void **address, int version, unsigned long long flags, int *found) {
    (void)version;
    (void)flags;
    *address = strcmp(symbol, "cuInit") == 0 ? (void *)cuInit : NULL;
    *found = *address == NULL ? 1 : 0;
    return strcmp(symbol, "cuNever") == 0 ? 500 : 0;
}
#endif

struct location { int type, id; };
struct attributes { int order; struct location from, to; unsigned flags; };

// Copies, and tells by the status which form was called: 1001 or 1002.
static int batch(int form, unsigned long long *to, unsigned long long *from, size_t *sizes, size_t count,
                 struct attributes *attributes, size_t *first, size_t sets) {
    if (sets != 1 || first[0] != 0 || attributes[0].order != 1 || attributes[0].from.type != 0 || attributes[0].flags != 0)
        return 1;
    for (size_t i = 0; i < count; i++) memcpy((void *)to[i], (void *)from[i], sizes[i]);
    return 1000 + form;
}

#ifdef FIRST_BATCH
int cuMemcpyBatchAsync(unsigned long long *to, unsigned long long *from, size_t *sizes, size_t count,
                       struct attributes *attributes, size_t *first, size_t sets, size_t *failed, void *stream) {
    *failed = 7;
    return stream == (void *)32 ? batch(1, to, from, sizes, count, attributes, first, sets) : 400;
}
#endif

#ifdef SECOND_BATCH
int cuMemcpyBatchAsync_v2(unsigned long long *to, unsigned long long *from, size_t *sizes, size_t count,
                          struct attributes *attributes, size_t *first, size_t sets, void *stream) {
    return stream == (void *)32 ? batch(2, to, from, sizes, count, attributes, first, sets) : 400;
}
#endif

#endif
