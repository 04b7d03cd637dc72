/*
 * Operations on files in the ring: which of them it takes, and what it does not do as the calls.
 *
 * 1. The ring fills in a struct statx of 256 bytes. A stat has a struct stat, which is smaller, and no room
 *    for the other. So a loop has memory for a number of them, from the first stat on. An operation has one
 *    of them from its start until nothing of it is in the ring (uring.c, 1), however it ends. Only then is
 *    the caller's struct written, and only if the operation has its result. So the kernel never writes to
 *    memory of a coroutine that was destroyed. If all of them are in use, the file pool makes the call.
 * 2. The arguments of openat2(2) are read when the entry is submitted. They are in the operation's own
 *    memory, where a call on a thread would be.
 * 3. An open is one call, unless the kernel refuses: names change while it looks at ".." (EAGAIN), or the
 *    file system has no files without a name. Then the file pool does what more there is to do
 *    (path_open.c).
 */
#define _GNU_SOURCE
#include "loop.h"

#if BIDE_HAS_LIBURING

#include "calls.h"
#include "statx.h"
#include "uring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

enum { STATS = 64 }; /* (a bit each) */

static bide_file_operation *uring_file_of(bide_io_operation *operation)
{
    bide_assert(operation->is_file);
    return bide_container_of(operation, bide_file_operation, operation);
}

/* ---- Stats: 1 ---- */

/* Gives the operation memory for the kernel's result. False: it is made by a thread. */
static bool uring_take_stat(struct loop_uring *uring, bide_io_operation *operation)
{
    enum { KNOWN_FLAGS = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW };
    if (operation->arguments.path.about == NULL || (operation->flags & ~KNOWN_FLAGS) != 0)
        return false; /* the call reports it */
    if (uring->stats == NULL) {
        uring->stats = calloc(STATS, sizeof *uring->stats);
        uring->free_stats = uring->stats != NULL ? UINT64_MAX : 0;
    }
    if (uring->free_stats == 0)
        return false;
    unsigned number = (unsigned)__builtin_ctzll(uring->free_stats);
    uring->free_stats &= uring->free_stats - 1;
    uring_file_of(operation)->about = &uring->stats[number];
    return true;
}

static void uring_give_stat_back(struct loop_uring *uring, bide_io_operation *operation)
{
    size_t number = (size_t)(uring_file_of(operation)->about - uring->stats);
    bide_assert(number < STATS && (uring->free_stats >> number & 1) == 0);
    uring->free_stats |= UINT64_C(1) << number;
}

static bool uring_fill_time(struct timespec *time, const struct statx_timestamp *from)
{
    time->tv_sec = (time_t)from->tv_sec;
    time->tv_nsec = (long)from->tv_nsec;
    return time->tv_sec == from->tv_sec;
}

/* 0, or -EOVERFLOW: its members are too small, on a processor of 32 bits. */
static int uring_fill_stat(struct stat *about, const struct statx *from)
{
    struct stat filled;
    memset(&filled, 0, sizeof filled);
    filled.st_dev = makedev(from->stx_dev_major, from->stx_dev_minor);
    filled.st_rdev = makedev(from->stx_rdev_major, from->stx_rdev_minor);
    filled.st_ino = (ino_t)from->stx_ino;
    filled.st_mode = from->stx_mode;
    filled.st_nlink = from->stx_nlink;
    filled.st_uid = from->stx_uid;
    filled.st_gid = from->stx_gid;
    filled.st_size = (off_t)from->stx_size;
    filled.st_blksize = (blksize_t)from->stx_blksize;
    filled.st_blocks = (blkcnt_t)from->stx_blocks;
    bool has_times = uring_fill_time(&filled.st_atim, &from->stx_atime) &&
                     uring_fill_time(&filled.st_mtim, &from->stx_mtime) &&
                     uring_fill_time(&filled.st_ctim, &from->stx_ctime);
    if (!has_times || filled.st_ino != from->stx_ino ||
        (uint64_t)filled.st_size != from->stx_size ||
        (uint64_t)filled.st_blocks != from->stx_blocks)
        return -EOVERFLOW;
    *about = filled;
    return 0;
}

/* ---- Opens: 2 ---- */

/* Whether an open may wait: it is no open of a directory, and was not asked not to wait. */
static bool uring_waits_in_open(const bide_io_operation *operation)
{
    return (operation->arguments.open.flags & (O_NONBLOCK | O_DIRECTORY | O_PATH)) == 0;
}

/* Whether it is an open that is counted: uring.c, 9. */
static bool uring_is_open_on_thread(const bide_io_operation *operation)
{
    return operation->code == BIDE_IO_OPEN && (operation->state & IO_ON_THREAD) != 0;
}

static bool uring_is_restricted(const bide_io_operation *operation)
{
    return bide_path_is_restricted_(operation->arguments.open.root);
}

static bool uring_take_open(struct loop_uring *uring, bide_io_operation *operation)
{
    const bide_io_arguments *arguments = &operation->arguments;
    bool is_named = operation->code == BIDE_IO_OPEN;
    int flags = arguments->open.flags | (is_named ? 0 : O_TMPFILE);
    if (uring_is_restricted(operation)) {
        if (!bide_uring_has_opcode_(uring, IORING_OP_OPENAT2) ||
            bide_path_how_(uring_file_of(operation)->how, arguments->open.root, flags,
                           arguments->open.mode) != 0)
            return false;
    }
    if (is_named && uring_waits_in_open(operation)) {
        if (uring->opens >= uring->max_opens)
            return false;
        uring->opens++;
        operation->state |= IO_ON_THREAD;
    }
    return true;
}

/* ---- All of them ---- */

/* Whether the path is empty, and the root's directory is what the operation is on. */
static bool uring_is_on_directory(const bide_io_operation *operation)
{
    return operation->arguments.path.path[0] == '\0' &&
           bide_path_fd_(operation->arguments.path.root) >= 0;
}

bool bide_uring_take_file_(struct loop_uring *uring, bide_io_operation *operation)
{
    if (!bide_uring_has_opcode_(uring, bide_uring_rows_[operation->code].opcode))
        return false;
    switch ((bide_io_code)operation->code) {
    case BIDE_IO_STAT:
        return uring_take_stat(uring, operation);
    case BIDE_IO_STATX:
        return uring_is_on_directory(operation) || bide_path_is_plain_(operation);
    case BIDE_IO_OPEN:
    case BIDE_IO_OPEN_TEMPORARY:
        return uring_take_open(uring, operation);
    default:
        return bide_path_is_plain_(operation);
    }
}

void bide_uring_give_file_back_(struct loop_uring *uring, bide_io_operation *operation)
{
    if (operation->code == BIDE_IO_STAT)
        uring_give_stat_back(uring, operation);
    if (uring_is_open_on_thread(operation)) {
        uring->opens--;
        operation->state &= (uint16_t)~IO_ON_THREAD;
    }
}

int bide_uring_end_stat_(bide_io_operation *operation)
{
    return uring_fill_stat(operation->arguments.path.about, uring_file_of(operation)->about);
}

bool bide_uring_needs_thread_(const bide_io_operation *operation, ptrdiff_t result)
{
    bool is_open = operation->code == BIDE_IO_OPEN || operation->code == BIDE_IO_OPEN_TEMPORARY;
    if (result == -EAGAIN)
        return is_open && uring_is_restricted(operation);
    return operation->code == BIDE_IO_OPEN_TEMPORARY &&
           (result == -EOPNOTSUPP || result == -EISDIR);
}

/* ---- Entries ---- */

static void prepare_openat(struct io_uring_sqe *entry, const bide_io_operation *operation,
                           int flags)
{
    int fd = bide_path_fd_(operation->arguments.open.root);
    const char *path = operation->arguments.open.path;
    const bide_file_operation *file =
        bide_container_of(operation, const bide_file_operation, operation);
    if (uring_is_restricted(operation))
        io_uring_prep_rw(IORING_OP_OPENAT2, entry, fd, path, sizeof file->how,
                         (uintptr_t)file->how);
    else
        io_uring_prep_openat(entry, fd, path, flags | O_CLOEXEC,
                             (mode_t)operation->arguments.open.mode);
}

void bide_uring_prepare_open_(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    prepare_openat(entry, operation, operation->arguments.open.flags);
}

void bide_uring_prepare_open_temporary_(struct io_uring_sqe *entry,
                                        const bide_io_operation *operation)
{
    prepare_openat(entry, operation, operation->arguments.open.flags | O_TMPFILE);
}

void bide_uring_prepare_statx_(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    const char *path = operation->arguments.path.path;
    int on_directory = uring_is_on_directory(operation) ? AT_EMPTY_PATH : 0;
    io_uring_prep_statx(entry, bide_path_fd_(operation->arguments.path.root), path,
                        operation->flags | on_directory, operation->arguments.path.mode,
                        operation->arguments.path.about);
}

/* (fstatat(2) mounts nothing) */
void bide_uring_prepare_stat_(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    const char *path = operation->arguments.path.path;
    const bide_file_operation *file =
        bide_container_of(operation, const bide_file_operation, operation);
    if (path == NULL)
        io_uring_prep_statx(entry, io_fd(operation), "", AT_EMPTY_PATH, STATX_BASIC_STATS,
                            file->about);
    else
        io_uring_prep_statx(entry, AT_FDCWD, path, operation->flags | AT_NO_AUTOMOUNT,
                            STATX_BASIC_STATS, file->about);
}

#endif
