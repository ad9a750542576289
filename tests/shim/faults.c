/* Loaded before libc: pread (preadv too) and pwrite fail, fall short or come late, as the variable KVIK_FAULT says.
 *
 * Rules stand in a row with commas between them, each as CALL:WHAT:WHEN. The first that applies decides, except that
 * `delay` lets those behind it have their say.
 *
 *   CALL  pread (and preadv), pwrite
 *   WHAT  an errno by name; short = half of what was asked for; one = one byte; zero = nothing; delay = 20 ms later
 *   WHEN  N = the Nth call, counted from 1; N+ = from the Nth call on; *N = each Nth; @N = calls that touch file offset N
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ, WRITE, CALLS };
enum { SHORT = -1, ONE = -2, NOTHING = -3, DELAY = -4 };

struct rule {
    int call, what;
    char when; /* '=' the Nth, '+' from the Nth, '*' each Nth, '@' offset N */
    long long number;
};

static struct rule rules[32];
static int rule_count;
static atomic_llong calls[CALLS];

static int what_of(const char *text)
{
    static const struct { const char *name; int what; } words[] = {
        {"short", SHORT}, {"one", ONE}, {"zero", NOTHING}, {"delay", DELAY}, {"EINTR", EINTR}, {"EAGAIN", EAGAIN},
        {"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EFBIG", EFBIG}, {"EINVAL", EINVAL}, {"ENOMEM", ENOMEM},
        {"ESTALE", ESTALE}, {"ETIMEDOUT", ETIMEDOUT},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(text, words[i].name))
            return words[i].what;
    fprintf(stderr, "KVIK_FAULT: no such fault: %s\n", text);
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
        if (!what || !one || (strcmp(call, "pread") && strcmp(call, "pwrite"))) {
            fprintf(stderr, "KVIK_FAULT: not a rule: %s\n", text);
            exit(2);
        }
        struct rule *rule = &rules[rule_count++];
        rule->call = strcmp(call, "pread") ? WRITE : READ;
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

/* What to do instead of a call: how many bytes to ask for, or -1 with errno set. */
static ssize_t ask(int call, size_t count, off_t offset)
{
    long long nth = atomic_fetch_add(&calls[call], 1) + 1;
    for (int i = 0; i < rule_count; i++) {
        const struct rule *rule = &rules[i];
        if (rule->call != call || !applies(rule, nth, count, offset))
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
        return rule->what == ONE && count > 1 ? 1 : (count + 1) / 2;
    }
    return count;
}

static ssize_t answer(int call, int fd, void *buffer, size_t count, off_t offset)
{
    ssize_t asked = ask(call, count, offset);
    if (asked < 0 || (asked == 0 && count > 0))
        return asked;
    return syscall(call == READ ? SYS_pread64 : SYS_pwrite64, fd, buffer, asked, offset);
}

ssize_t preadv64(int fd, const struct iovec *slices, int slice_count, off_t offset)
{
    struct iovec shorter[1024];
    size_t count = 0;
    for (int i = 0; i < slice_count; i++)
        count += slices[i].iov_len;
    ssize_t asked = ask(READ, count, offset), left = asked;
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
