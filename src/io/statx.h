/*
 * statx(2) and the flags of renameat2(2), where the C library does not have them (musl). Other
 * systems than Linux have no statx: it fails with ENOSYS.
 */
#ifndef BIDE_IO_STATX_H
#define BIDE_IO_STATX_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

#ifdef STATX_BASIC_STATS

#define io_statx(directory, path, flags, mask, about) statx(directory, path, flags, mask, about)

#else

#define STATX_BASIC_STATS 0x7ffU

struct statx_timestamp {
    int64_t tv_sec;
    uint32_t tv_nsec;
    int32_t pad;
};

/* (of the kernel) */
struct statx {
    uint32_t stx_mask, stx_blksize;
    uint64_t stx_attributes;
    uint32_t stx_nlink, stx_uid, stx_gid;
    uint16_t stx_mode, pad;
    uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
    struct statx_timestamp stx_atime, stx_btime, stx_ctime, stx_mtime;
    uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
    uint64_t spare[14];
};

#ifdef __linux__
#define io_statx(directory, path, flags, mask, about) \
    (int)syscall(SYS_statx, directory, path, flags, mask, about)
#else
#define io_statx(directory, path, flags, mask, about)                                             \
    ((void)(directory), (void)(path), (void)(flags), (void)(mask), (void)(about), errno = ENOSYS, \
     -1)
#endif

#endif

#endif
