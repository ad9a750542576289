/* Loaded before libc: open, pread (preadv too) and pwrite fail, fall short or come late, as the variable KVIK_FAULT says.
 * Reads and writes by io_uring count and fare as if they were preads and pwrites; that needs Linux 6.10.
 *
 * Rules stand in a row with commas between them, each as CALL:WHAT:WHEN. The first that applies decides, except that
 * `delay` lets those behind it have their say.
 *
 *   CALL  pread (and preadv), pwrite: all of them; direct-pread, direct-pwrite: those on a descriptor with O_DIRECT, counted apart;
 *         direct-open: open with O_DIRECT, which can only fail; ring: io_uring_setup, likewise
 *   WHAT  an errno by name; short = half of what was asked for (direct: in whole blocks); one = one byte; zero = nothing; delay = 20 ms later
 *   WHEN  N = the Nth call, counted from 1; N+ = from the Nth call on; *N = each Nth; @N = calls that touch file offset N
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ, WRITE, DIRECT_READ, DIRECT_WRITE, DIRECT_OPEN, RING, CALLS };
enum { SHORT = -1, ONE = -2, NOTHING = -3, DELAY = -4 };

struct rule {
    int call, what;
    char when; /* '=' the Nth, '+' from the Nth, '*' each Nth, '@' offset N */
    long long number;
};

static const char *const call_names[CALLS] = {"pread", "pwrite", "direct-pread", "direct-pwrite", "direct-open", "ring"};
static struct rule rules[32];
static int rule_count;
static atomic_llong calls[CALLS];

static int what_of(const char *text)
{
    static const struct { const char *name; int what; } words[] = {
        {"short", SHORT}, {"one", ONE}, {"zero", NOTHING}, {"delay", DELAY}, {"EINTR", EINTR}, {"EAGAIN", EAGAIN},
        {"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EFBIG", EFBIG}, {"EINVAL", EINVAL}, {"ENOMEM", ENOMEM},
        {"ESTALE", ESTALE}, {"ETIMEDOUT", ETIMEDOUT}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EMFILE", EMFILE}, {"ENOSYS", ENOSYS},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(text, words[i].name))
            return words[i].what;
    fprintf(stderr, "KVIK_FAULT: no such fault: %s\n", text);
    exit(2);
}

static int call_of(const char *text)
{
    for (int i = 0; i < CALLS; i++)
        if (!strcmp(text, call_names[i]))
            return i;
    fprintf(stderr, "KVIK_FAULT: no such call: %s\n", text);
    exit(2);
}

__attribute__((constructor)) static void read_rules(void)
{
    const char *text = getenv("KVIK_FAULT");
    if (!text)
        return;
    char *copy = strdup(text), *rest = copy;
    for (char *one; (one = strsep(&rest, ",")) && rule_count < 32;) {
        char *call = strsep(&one, ":"), *what = strsep(&one, ":");
        if (!what || !one) {
            fprintf(stderr, "KVIK_FAULT: not a rule: %s\n", text);
            exit(2);
        }
        struct rule *rule = &rules[rule_count++];
        rule->call = call_of(call);
        rule->what = what_of(what);
        rule->when = *one == '*' || *one == '@' ? *one++ : '=';
        char *end;
        rule->number = strtoll(one, &end, 10);
        if (*end == '+')
            rule->when = '+';
    }
    free(copy);
}

static int applies(const struct rule *rule, long long nth, size_t count, off_t offset)
{
    switch (rule->when) {
    case '*': return nth % rule->number == 0;
    case '+': return nth >= rule->number;
    case '@': return offset <= rule->number && rule->number < offset + (off_t)count;
    default: return nth == rule->number;
    }
}

static int is_direct(int fd) { return fcntl(fd, F_GETFL) & O_DIRECT ? 1 : 0; }

/* What to do instead of a call: how many bytes to move, or -1 with errno set. */
static ssize_t ask(int call, int fd, size_t count, off_t offset)
{
    int direct = is_direct(fd) ? call + DIRECT_READ : CALLS;
    long long nth = atomic_fetch_add(&calls[call], 1) + 1, nth_direct = 0;
    if (direct < CALLS)
        nth_direct = atomic_fetch_add(&calls[direct], 1) + 1;
    for (int i = 0; i < rule_count; i++) {
        const struct rule *rule = &rules[i];
        if (rule->call != call && rule->call != direct)
            continue;
        if (!applies(rule, rule->call == call ? nth : nth_direct, count, offset))
            continue;
        if (rule->what == DELAY) {
            usleep(20000);
            continue;
        }
        if (rule->what > 0) {
            errno = rule->what;
            return -1;
        }
        if (rule->what == NOTHING)
            return 0;
        size_t less = rule->what == ONE && count > 1 ? 1 : (count + 1) / 2;
        if (direct < CALLS && rule->what == SHORT && less >= 512)
            less -= less % 512;
        return less;
    }
    return count;
}

static ssize_t answer(int call, int fd, void *buffer, size_t count, off_t offset)
{
    ssize_t asked = ask(call, fd, count, offset);
    if (asked < 0 || (asked == 0 && count > 0))
        return asked;
    /* With O_DIRECT the kernel takes whole blocks only: all are moved, and it looks as if part of them had been. */
    size_t moved = is_direct(fd) ? count : (size_t)asked;
    ssize_t done = syscall(call == READ ? SYS_pread64 : SYS_pwrite64, fd, buffer, moved, offset);
    return done > asked ? asked : done;
}

ssize_t preadv64(int fd, const struct iovec *slices, int slice_count, off_t offset)
{
    struct iovec shorter[1024];
    size_t count = 0;
    for (int i = 0; i < slice_count; i++)
        count += slices[i].iov_len;
    ssize_t asked = ask(READ, fd, count, offset), left = asked;
    if (asked < 0 || (asked == 0 && count > 0))
        return asked;
    int used = 0;
    for (; used < slice_count && left > 0; used++) {
        shorter[used] = slices[used];
        if ((ssize_t)shorter[used].iov_len > left)
            shorter[used].iov_len = left;
        left -= shorter[used].iov_len;
    }
    return syscall(SYS_preadv, fd, shorter, used, offset, 0);
}
ssize_t preadv(int fd, const struct iovec *slices, int slice_count, off_t offset)
{
    return preadv64(fd, slices, slice_count, offset);
}

ssize_t pread(int fd, void *buffer, size_t count, off_t offset) { return answer(READ, fd, buffer, count, offset); }
ssize_t pread64(int fd, void *buffer, size_t count, off_t offset) { return answer(READ, fd, buffer, count, offset); }
ssize_t pwrite(int fd, const void *buffer, size_t count, off_t offset)
{
    return answer(WRITE, fd, (void *)buffer, count, offset);
}
ssize_t pwrite64(int fd, const void *buffer, size_t count, off_t offset)
{
    return answer(WRITE, fd, (void *)buffer, count, offset);
}

/* For calls that can only fail: whether this one does, with errno set. */
static int fails(int call)
{
    long long nth = atomic_fetch_add(&calls[call], 1) + 1;
    for (int i = 0; i < rule_count; i++)
        if (rules[i].call == call && applies(&rules[i], nth, 0, 0)) {
            errno = rules[i].what;
            return 1;
        }
    return 0;
}

static int open_or_not(const char *path, int flags, mode_t mode)
{
    if (flags & O_DIRECT && fails(DIRECT_OPEN))
        return -1;
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* The mode is there only where a file can be created; elsewhere what is read is nothing, and the kernel ignores it. */
#define OPEN(name)                                       \
    int name(const char *path, int flags, ...)           \
    {                                                    \
        va_list rest;                                    \
        va_start(rest, flags);                           \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                    \
        return open_or_not(path, flags, mode);           \
    }
OPEN(open)
OPEN(open64)

/* The queues of a ring, mapped a second time, by its descriptor. */
static struct ring {
    unsigned *head, *tail, *mask, *array;
    struct io_uring_sqe *requests;
} rings[1024];

static void remember(int fd, const struct io_uring_params *made)
{
    size_t queue = made->sq_off.array + made->sq_entries * sizeof(unsigned);
    size_t requests = made->sq_entries * sizeof(struct io_uring_sqe);
    char *start = mmap(NULL, queue, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    void *first = mmap(NULL, requests, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
    if (fd >= 1024 || start == MAP_FAILED || first == MAP_FAILED) {
        fprintf(stderr, "KVIK_FAULT: a ring that cannot be looked into\n");
        exit(2);
    }
    rings[fd] = (struct ring){
        (unsigned *)(start + made->sq_off.head), (unsigned *)(start + made->sq_off.tail),
        (unsigned *)(start + made->sq_off.ring_mask), (unsigned *)(start + made->sq_off.array), first,
    };
}

/* Does now what a request asks for, and leaves one that does nothing and is answered with the count. */
static void replace(struct io_uring_sqe *request)
{
    if (request->opcode != IORING_OP_READ && request->opcode != IORING_OP_WRITE)
        return;
    int call = request->opcode == IORING_OP_READ ? READ : WRITE;
    ssize_t done = answer(call, request->fd, (void *)request->addr, request->len, request->off);
    request->len = done < 0 ? -errno : done;
    request->opcode = IORING_OP_NOP;
    request->rw_flags = 1; /* IORING_NOP_INJECT_RESULT, which headers of older kernels do not name */
    request->addr = request->off = 0;
}

long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long arguments[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(rest, long);
    va_end(rest);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (rule_count && number == SYS_io_uring_setup && fails(RING))
        return -1;
    if (rule_count && number == SYS_io_uring_enter && arguments[0] < 1024 && rings[arguments[0]].head) {
        struct ring *ring = &rings[arguments[0]];
        unsigned tail = __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE);
        for (unsigned at = __atomic_load_n(ring->head, __ATOMIC_ACQUIRE); at != tail; at++)
            replace(&ring->requests[ring->array[at & *ring->mask]]);
    }
    long result = next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    if (rule_count && number == SYS_io_uring_setup && result >= 0)
        remember(result, (void *)arguments[1]);
    return result;
}
