/*
 * Moving bytes from one descriptor to another in the kernel.
 *
 * A file is sent by the loop itself as far as the system has its bytes in memory, for then
 * sendfile(2) waits for nothing: the socket is in non-blocking mode. Whether it has them a read of
 * one byte tells, which shall not wait (RWF_NOWAIT). One is asked of each STRIDE bytes, since what
 * is read ahead comes, and what is not used any more goes, in runs of at least that size; to ask of
 * each page would take half as long as the sending. So the loop waits for a disk only where a run
 * has a hole, and then for no more than one turn of an operation (bide_send_file).
 *
 * Some file systems cannot say (EOPNOTSUPP). Those that are memory have no disk to wait for. Of
 * others nothing is known.
 */
#define _GNU_SOURCE
#include "splice_calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>

enum {
    STRIDE = 65536,
    BYTES_OF_ONE = 32, /* so many take as long to send as one of BIDE_BUDGET */
    OF_TMPFS = 0x01021994,
};

/* ---- Ends that are gone ---- */

static sigset_t pipe_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

void bide_io_hold_sigpipe_(io_sigpipe *held)
{
    sigset_t set = pipe_signal(), pending;
    pthread_sigmask(SIG_BLOCK, &set, &held->before);
    held->was_pending = false;
    if (sigismember(&held->before, SIGPIPE)) { /* (otherwise it would have come) */
        sigpending(&pending);
        held->was_pending = sigismember(&pending, SIGPIPE) != 0;
    }
}

void bide_io_release_sigpipe_(const io_sigpipe *held, bool may_have_come)
{
    static const struct timespec none;
    sigset_t set = pipe_signal();
    int error = errno;
    if (may_have_come && !held->was_pending)
        sigtimedwait(&set, NULL, &none);
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = error;
}

/* ---- By way of a pipe ---- */

ptrdiff_t bide_io_splice_to_socket_(const bide_io_operation *operation)
{
    size_t size = operation->arguments.splice.size - operation->count;
    io_sigpipe held;
    bide_io_hold_sigpipe_(&held);
    ptrdiff_t result = splice(operation->arguments.splice.pipe, NULL, operation->descriptor->fd,
                              NULL, size, SPLICE_F_NONBLOCK);
    bide_io_release_sigpipe_(&held, result >= 0 ? (size_t)result < size : errno == EPIPE);
    return result;
}

ptrdiff_t bide_io_splice_from_file_(const bide_io_operation *operation)
{
    off_t offset = operation->arguments.splice.offset;
    return splice(operation->descriptor->fd, &offset, operation->arguments.splice.pipe, NULL,
                  operation->arguments.splice.size, 0);
}

/* ---- At once ---- */

static bool is_memory(int file)
{
    struct statfs about;
    return fstatfs(file, &about) == 0 && about.f_type == OF_TMPFS;
}

/* Is the byte at `offset` in memory? BIDE_IO_FOUND_ALL: yes. */
static bide_io_found look_at(int file, int64_t offset)
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
    return errno == EOPNOTSUPP && is_memory(file) ? BIDE_IO_FOUND_ALL : BIDE_IO_FOUND_NOTHING;
}

/* How many of `size` bytes at `offset` can be sent without waiting for a disk. */
static size_t sendable(int file, int64_t offset, size_t size, bide_io_found *found)
{
    size_t count = 0;
    *found = BIDE_IO_FOUND_ALL;
    while (count < size) {
        *found = look_at(file, offset + (int64_t)count);
        if (*found == BIDE_IO_FOUND_END && count != 0)
            return size; /* (the call finds out where) */
        if (*found != BIDE_IO_FOUND_ALL)
            return count;
        count += STRIDE;
    }
    return size;
}

int bide_io_send_file_(bide_io_operation *operation)
{
    bide_io_found *found = &operation->arguments.send_file.found;
    const bide_descriptor *file = operation->arguments.send_file.file;
    int64_t begin = operation->arguments.send_file.offset;
    if (!bide_descriptor_is_open(file)) /* while it waited for the socket */
        return -EPIPE;
    size_t before = operation->count;
    size_t left = sendable(file->fd, begin + (int64_t)before,
                           operation->arguments.send_file.size - before, found);
    if (left == 0)
        return 0;

    ptrdiff_t result;
    io_sigpipe held;
    bide_io_hold_sigpipe_(&held);
    do {
        off_t offset = begin + (int64_t)operation->count;
        result = sendfile(operation->descriptor->fd, file->fd, &offset, left);
        if (result > 0) {
            operation->count += (size_t)result;
            left -= (size_t)result;
        } else if (result < 0) {
            result = io_error();
        }
    } while (left != 0 && (result > 0 || result == -EINTR));
    bide_io_release_sigpipe_(&held, left != 0 && result != -EAGAIN);

#if BIDE_BUDGET > 0
    bide_budget_ -= (int32_t)((operation->count - before) / BYTES_OF_ONE);
#endif
    if (result == 0)
        *found = BIDE_IO_FOUND_END;
    if (result == -EINVAL || result == -ENOSYS) { /* not a file for this call */
        *found = BIDE_IO_FOUND_NOTHING;
        return 0;
    }
    return result < 0 ? (int)result : 0;
}
