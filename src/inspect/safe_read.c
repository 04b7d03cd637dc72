/*
 * Safe reads: the kernel reads for us. It checks the memory as part of the copy, so nothing can be
 * unmapped between the check and the copy, and no thread faults. In the sense of C this is no access
 * of the program. Bytes that another thread writes meanwhile may be torn or stale, but there is no data
 * race, and ThreadSanitizer sees none. So a reader trusts nothing that it has read this way.
 *
 * process_vm_readv on the own process does it. Where that is forbidden (seccomp), or is not there (other systems than Linux), a pipe does: the
 * kernel copies what is written to it. (By syscall(), because sanitizers check the bytes that `write`
 * reads.)
 */
#define _GNU_SOURCE
#include "safe_read.h"

#include "../system/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int peek_pipe[2] = {-1, -1}; /* -1: process_vm_readv is used */

static bool peek_directly(const void *address, void *to, size_t size)
{
    const struct iovec local = {to, size};
    const struct iovec remote = {(void *)(uintptr_t)address, size};
#ifdef __linux__
    return syscall(SYS_process_vm_readv, getpid(), &local, 1ul, &remote, 1ul, 0ul) == (long)size;
#else
    (void)local, (void)remote;
    return false;
#endif
}

static bool peek_through_pipe(const void *address, void *to, size_t size)
{
#ifdef __linux__
    long written = syscall(SYS_write, peek_pipe[1], address, size);
    long count = written > 0 ? syscall(SYS_read, peek_pipe[0], to, (size_t)written) : 0;
#else
    long written = write(peek_pipe[1], address, size);
    long count = written > 0 ? read(peek_pipe[0], to, (size_t)written) : 0;
#endif
    return count == (long)size;
}

int bide_peek_begin_(void)
{
    static const char here = 1;
    char copy = 0;
    if (peek_directly(&here, &copy, 1))
        return 0;
    if (portable_pipe(peek_pipe, true) != 0)
        return -errno;
    if (peek_through_pipe(&here, &copy, 1))
        return 0;
    bide_peek_end_();
    return -ENOSYS;
}

void bide_peek_end_(void)
{
    for (int i = 0; i < 2; i++) {
        if (peek_pipe[i] >= 0)
            close(peek_pipe[i]);
        peek_pipe[i] = -1;
    }
}

bool bide_peek_(const void *address, void *to, size_t size)
{
    memset(to, 0, size); /* for tools that do not see the kernel's writes */
    return peek_pipe[0] < 0 ? peek_directly(address, to, size)
                            : peek_through_pipe(address, to, size);
}
