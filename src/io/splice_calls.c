/*
 * Moving bytes from one descriptor to another in the kernel. Each function is called on the thread
 * that makes the call of an operation: the loop's, or one of the file pool.
 *
 * The loop itself sends the part of a file that is in the page cache. Then sendfile(2) waits for
 * nothing, since the socket is in non-blocking mode. A read of one byte with RWF_NOWAIT detects
 * whether that byte is cached. One byte in STRIDE is read, because the kernel reads ahead and
 * evicts in runs of at least that size; a read of each page would take half as long as the sending.
 * So the loop waits for a disk only if a run has a hole, and then for no longer than one turn of an
 * operation (bide_send_file).
 *
 * Some file systems do not support RWF_NOWAIT (EOPNOTSUPP). A file system in memory has no disk to
 * wait for. About the others nothing is known.
 */
#define _GNU_SOURCE
#include "splice_calls.h"
#include "nowait.h"

#include "../system/portable.h"

#include <fcntl.h>
#include <pthread.h>
#ifdef __linux__
#include <sys/sendfile.h>
#include <sys/vfs.h>
#endif
#include <sys/uio.h>

enum {
    STRIDE = 65536,
    BYTES_PER_BUDGET_UNIT = 32, /* the time to send them is one unit of BIDE_BUDGET */
    MAGIC_OF_TMPFS = 0x01021994,
};

/* ---- Peers that are gone ---- */

static sigset_t set_of_sigpipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

void bide_io_hold_sigpipe_(io_sigpipe *held)
{
    sigset_t set = set_of_sigpipe(), pending;
    pthread_sigmask(SIG_BLOCK, &set, &held->before);
    held->was_pending = false;
    if (sigismember(&held->before, SIGPIPE)) { /* (otherwise it would have been delivered) */
        sigpending(&pending);
        held->was_pending = sigismember(&pending, SIGPIPE) != 0;
    }
}

void bide_io_release_sigpipe_(const io_sigpipe *held, bool may_have_come)
{
    sigset_t set = set_of_sigpipe();
    int error = errno;
    if (may_have_come && !held->was_pending)
        (void)portable_take_pending(&set);
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = error;
}

#ifndef __linux__

/* ---- Other systems: bide_send_file copies, and makes none of these calls ---- */

ptrdiff_t bide_call_splice_to_socket_(bide_io_operation *operation)
{
    (void)operation;
    return -ENOSYS;
}

ptrdiff_t bide_call_splice_from_file_(bide_io_operation *operation)
{
    (void)operation;
    return -ENOSYS;
}

ptrdiff_t bide_call_send_file_(bide_io_operation *operation)
{
    (void)operation;
    return -ENOSYS;
}

#else

/* ---- Through a pipe ---- */

ptrdiff_t bide_call_splice_to_socket_(bide_io_operation *operation)
{
    size_t size = operation->arguments.splice.size - operation->count;
    io_sigpipe held;
    bide_io_hold_sigpipe_(&held);
    ptrdiff_t result = splice(operation->arguments.splice.pipe, NULL, io_fd(operation), NULL, size,
                              SPLICE_F_NONBLOCK);
    bide_io_release_sigpipe_(&held, result >= 0 ? (size_t)result < size : errno == EPIPE);
    return result >= 0 ? result : io_error();
}

ptrdiff_t bide_call_splice_from_file_(bide_io_operation *operation)
{
    off_t offset = operation->arguments.splice.offset;
    ptrdiff_t result = splice(io_fd(operation), &offset, operation->arguments.splice.pipe, NULL,
                              operation->arguments.splice.size, 0);
    return result >= 0 ? result : io_error();
}

/* ---- From the page cache ---- */

static bool file_is_in_memory(int file)
{
    struct statfs about;
    return fstatfs(file, &about) == 0 && about.f_type == MAGIC_OF_TMPFS;
}

/* Whether the byte at `offset` is in memory: BIDE_IO_FOUND_ALL. */
static bide_io_found probe_file_at(int file, int64_t offset)
{
    char byte;
    struct iovec one = {&byte, 1};
    ptrdiff_t result;
    do {
        result = preadv2(file, &one, 1, offset, RWF_NOWAIT);
    } while (result < 0 && errno == EINTR);
    if (result >= 0)
        return result != 0 ? BIDE_IO_FOUND_ALL : BIDE_IO_FOUND_END;
    if (errno == EAGAIN)
        return BIDE_IO_FOUND_SOME;
    return errno == EOPNOTSUPP && file_is_in_memory(file) ? BIDE_IO_FOUND_ALL
                                                          : BIDE_IO_FOUND_NOTHING;
}

/* The part of `size` bytes at `offset` that can be sent without waiting for a disk. */
static size_t sendable_size(int file, int64_t offset, size_t size, bide_io_found *found)
{
    size_t count = 0;
    *found = BIDE_IO_FOUND_ALL;
    while (count < size) {
        *found = probe_file_at(file, offset + (int64_t)count);
        if (*found == BIDE_IO_FOUND_END && count != 0)
            return size; /* (sendfile finds the end) */
        if (*found != BIDE_IO_FOUND_ALL)
            return count;
        count += STRIDE;
    }
    return size;
}

ptrdiff_t bide_call_send_file_(bide_io_operation *operation)
{
    bide_io_found *found = &operation->arguments.send_file.found;
    const bide_descriptor *file = operation->arguments.send_file.file;
    int64_t start = operation->arguments.send_file.offset;
    if (!bide_descriptor_is_open(file)) /* it was closed while this waited for the socket */
        return -EPIPE;
    size_t before = operation->count;
    size_t left = sendable_size(bide_descriptor_fd(file), start + (int64_t)before,
                                operation->arguments.send_file.size - before, found);
    if (left == 0)
        return 0;

    ptrdiff_t result;
    io_sigpipe held;
    bide_io_hold_sigpipe_(&held);
    do {
        off_t offset = start + (int64_t)operation->count;
        result = sendfile(io_fd(operation), bide_descriptor_fd(file), &offset, left);
        if (result > 0) {
            operation->count += (size_t)result;
            left -= (size_t)result;
        } else if (result < 0) {
            result = io_error();
        }
    } while (left != 0 && (result > 0 || result == -EINTR));
    bide_io_release_sigpipe_(&held, left != 0 && result != -EAGAIN);

#if BIDE_BUDGET > 0
    bide_budget_ -= (int32_t)((operation->count - before) / BYTES_PER_BUDGET_UNIT);
#endif
    if (result == 0)
        *found = BIDE_IO_FOUND_END;
    if (result == -EINVAL || result == -ENOSYS) { /* not a file for this call */
        *found = BIDE_IO_FOUND_NOTHING;
        return 0;
    }
    bide_assert(operation->count - before <= operation->arguments.send_file.size - before);
    return result < 0 ? result : 0;
}

#endif
