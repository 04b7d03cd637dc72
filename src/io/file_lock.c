/*
 * Locks of files. A wait is a loop of attempts and sleeps.
 *
 * 1. A thread that blocks in F_OFD_SETLKW would be one of the few that files have, and the holder may
 *    need it before it unlocks. So nothing blocks.
 * 2. A lock is acquired by an attempt, and then the body ends without a wait in between. So a wait that
 *    is cancelled, or destroyed, has not locked.
 */
#define _GNU_SOURCE
#include "bide/file_lock.h"

#include "bide/coroutine.h"

#include "operation.h"

#include <errno.h>
#include <fcntl.h>

/* (Other systems' locks belong to the process, not to the open file: two descriptors of one process do not exclude
 * each other, and closing any of them unlocks the file. So there are none.) */
#ifdef __linux__
enum { HAS_FILE_LOCKS = 1 };
#else
#define F_OFD_SETLK F_SETLK
enum { HAS_FILE_LOCKS = 0 };
#endif

enum { FIRST_LOOK = 1000000, MAX_LOOK = 64000000 }; /* nanoseconds */

static int lock_call(const bide_descriptor *file, short type, int64_t offset, int64_t size)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)size};
    if (!bide_descriptor_is_open(file))
        return -EBADF;
    if (io_calls(io_of(file)) != NULL)
        return -EOPNOTSUPP;
    if (!HAS_FILE_LOCKS)
        return -ENOSYS;
    while (fcntl(bide_descriptor_fd(file), F_OFD_SETLK, &lock) != 0) {
        if (errno != EINTR)
            return errno == EACCES ? -EAGAIN : -errno;
    }
    return 0;
}

int bide_try_lock_file(const bide_descriptor *file, bide_file_lock_kind kind, int64_t offset,
                       int64_t size)
{
    return lock_call(file, kind == BIDE_FILE_SHARED ? F_RDLCK : F_WRLCK, offset, size);
}

int bide_unlock_file(const bide_descriptor *file, int64_t offset, int64_t size)
{
    return lock_call(file, F_UNLCK, offset, size);
}

bide_coroutine(lock_file_body)
{
    bide_begin(lock_file_body, bide_lock_file_operation * self);
    for (;;) {
        self->status = bide_try_lock_file(self->file, self->kind, self->offset, self->size);
        if (self->status != -EAGAIN)
            bide_return(self->status);
        bide_await_status(self->status, bide_sleep_for(&self->sleep, self->delay));
        if (self->status < 0)
            bide_return(self->status);
        self->delay = self->delay * 2 < MAX_LOOK ? self->delay * 2 : MAX_LOOK;
    }
    bide_end();
}

bide_awaiter *bide_lock_file(bide_lock_file_operation *operation, const bide_descriptor *file,
                             bide_file_lock_kind kind, int64_t offset, int64_t size)
{
    operation->file = file;
    operation->kind = kind;
    operation->offset = offset;
    operation->size = size;
    operation->delay = FIRST_LOOK;
    return bide_task_init(&operation->task, &lock_file_body);
}
