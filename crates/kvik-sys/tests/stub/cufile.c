// A cuFile that answers by a plan, over host memory. Built by the tests; MODERN adds the functions that a library may lack.
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

typedef struct { int op, cuda; } status;
static status ok(void) { return (status){0, 0}; }

status cuFileDriverOpen(void) { return (status){5011, 100}; }
status cuFileDriverClose(void) { return (status){5901, 0}; }

struct properties {
    struct { unsigned major, minor; size_t poll, direct; unsigned status, control; } nvfs;
    unsigned features, cache, buffer, pinned, batch, timeout;
};
status cuFileDriverGetProperties(struct properties *p) {
    *p = (struct properties){{2, 17, 4, 16384, 1 << 4, 1 << 1}, 1 << 4 | 1 << 1, 131072, 1024, 33554432, 128, 500};
    return ok();
}
status cuFileDriverSetPollMode(bool poll, size_t size) { return poll && size == 4 ? ok() : (status){5003, 0}; }
status cuFileDriverSetMaxCacheSize(size_t size) { return (status){(int)size, 0}; }
status cuFileDriverSetMaxPinnedMemSize(size_t size) { return (status){(int)size, 0}; }

struct description { int type; union { int fd; void *handle; } handle; const void *operations; };
status cuFileHandleRegister(void **handle, struct description *d) {
    if (d->type != 1 || d->operations != NULL || d->handle.fd < 0) return (status){5027, 0};
    *handle = (void *)(long)(1000 + d->handle.fd);
    return ok();
}
void cuFileHandleDeregister(void *handle) { (void)handle; }
status cuFileBufRegister(const void *base, size_t length, int flags) {
    return base != NULL && length == 4096 && flags == 0 ? ok() : (status){5022, 0};
}
status cuFileBufDeregister(const void *base) { (void)base; return (status){5024, 0}; }

// The handle says what becomes of the call.
ssize_t cuFileRead(void *handle, void *base, size_t size, off_t file, off_t behind) {
    switch ((long)handle) {
    case 1001: errno = EIO; return -1;
    case 1002: errno = EIO; return -5008;
    default:
        memset((char *)base + behind, (int)file, size);
        return (ssize_t)size;
    }
}
ssize_t cuFileWrite(void *handle, const void *base, size_t size, off_t file, off_t behind) {
    (void)handle;
    // How many of the bytes are the one that a file of this length is to have.
    ssize_t same = 0;
    for (size_t i = 0; i < size; i++) same += ((const char *)base)[behind + i] == (char)file;
    return same;
}

#ifdef MODERN
status cuFileDriverClose_v2(void) { return (status){5902, 0}; }
long cuFileUseCount(void) { return 3; }
status cuFileGetVersion(int *version) { *version = 1150; return ok(); }
status cuFileSetParameterBool(int parameter, bool value) {
    return parameter == 1 && !value ? ok() : (status){5022, 0};
}
status cuFileSetParameterSizeT(int parameter, size_t value) {
    return parameter == 5 && value == 1024 ? ok() : (status){5022, 0};
}
status cuFileSetParameterString(int parameter, const char *value) {
    return parameter == 2 && strcmp(value, "logs") == 0 ? ok() : (status){5022, 0};
}
status cuFileStreamRegister(void *stream, unsigned flags) {
    return stream == (void *)32 && flags == 15 ? ok() : (status){5022, 0};
}
status cuFileStreamDeregister(void *stream) { return stream == (void *)32 ? ok() : (status){5022, 0}; }
status cuFileReadAsync(void *handle, void *base, size_t *size, off_t *file, off_t *behind, ssize_t *count, void *stream) {
    if (stream != (void *)32) return (status){5038, 0};
    *count = cuFileRead(handle, base, *size, *file, *behind);
    return ok();
}
status cuFileWriteAsync(void *handle, void *base, size_t *size, off_t *file, off_t *behind, ssize_t *count, void *stream) {
    if (stream != (void *)32) return (status){5038, 0};
    *count = cuFileWrite(handle, base, *size, *file, *behind);
    return ok();
}

struct request {
    int mode;
    struct { void *base; off_t file, behind; size_t size; } batch;
    void *handle;
    int opcode;
    void *cookie;
};
struct event { void *cookie; int status; size_t count; };
static struct event done[16];
static unsigned there;

status cuFileBatchIOSetUp(void **batch, unsigned count) {
    if (count > 16) return (status){5037, 0};
    *batch = done;
    return ok();
}
status cuFileBatchIOSubmit(void *batch, unsigned count, struct request *requests, unsigned flags) {
    if (batch != done || flags != 0) return (status){5022, 0};
    for (unsigned i = 0; i < count; i++) {
        struct request *r = &requests[i];
        if (r->mode != 1) return (status){5022, 0};
        ssize_t moved = r->opcode == 0 ? cuFileRead(r->handle, r->batch.base, r->batch.size, r->batch.file, r->batch.behind)
                                       : cuFileWrite(r->handle, r->batch.base, r->batch.size, r->batch.file, r->batch.behind);
        done[there++] = (struct event){r->cookie, moved < 0 ? 0x40 : 0x10, (size_t)moved};
    }
    return ok();
}
status cuFileBatchIOGetStatus(void *batch, unsigned least, unsigned *count, struct event *events, struct timespec *timeout) {
    if (batch != done || least > there || timeout == NULL || timeout->tv_sec != 2 || timeout->tv_nsec != 500) return (status){5022, 0};
    if (*count > there) *count = there;
    memcpy(events, done, *count * sizeof(struct event));
    there = 0;
    return ok();
}
status cuFileBatchIOCancel(void *batch) { return batch == done ? ok() : (status){5022, 0}; }
void cuFileBatchIODestroy(void *batch) { (void)batch; }
#endif
