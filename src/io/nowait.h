/* preadv2, pwritev2 and RWF_NOWAIT, with a C library that lacks them (musl before 1.2.5) too. Other systems than
 * Linux have none of them: then each call fails with EOPNOTSUPP, as on a file system that does not know the flag. */
#ifndef BIDE_SRC_NOWAIT_H
#define BIDE_SRC_NOWAIT_H

#include <sys/uio.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>

/* The kernel takes an offset as two words; on 64 bits it ignores the second. */
static inline ssize_t preadv2(int fd, const struct iovec *vectors, int count, off_t offset,
                              int flags)
{
    return syscall(SYS_preadv2, fd, vectors, count, (long)offset, (long)((int64_t)offset >> 32),
                   flags);
}

static inline ssize_t pwritev2(int fd, const struct iovec *vectors, int count, off_t offset,
                               int flags)
{
    return syscall(SYS_pwritev2, fd, vectors, count, (long)offset, (long)((int64_t)offset >> 32),
                   flags);
}
#else
static inline ssize_t preadv2(int fd, const struct iovec *vectors, int count, off_t offset,
                              int flags)
{
    (void)fd, (void)vectors, (void)count, (void)offset, (void)flags;
    errno = EOPNOTSUPP;
    return -1;
}

static inline ssize_t pwritev2(int fd, const struct iovec *vectors, int count, off_t offset,
                               int flags)
{
    return preadv2(fd, vectors, count, offset, flags);
}
#endif
#endif

#endif
