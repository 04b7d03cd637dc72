/*
 * A file to a file, in parts. A part is one operation on `to`, made on a thread that may block.
 *
 * Threads: the coroutine is the loop's; the call is another thread's.
 *
 * 1. A part is bounded, so a coroutine that is asked to stop ends after at most one.
 * 2. `count` is the number of bytes of the parts that have ended. Closing `to` waits for the part that
 *    has begun, as for any call on a thread, so no byte is written to a number that was given away.
 * 3. copy_file_range returns 0 at the end, and also for files whose size is 0 because it is not known,
 *    such as those of /proc. So a 0 is confirmed by a read.
 */
#define _GNU_SOURCE
#include "bide/file_copy.h"

#include "bide/coroutine.h"

#include "calls.h"
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PART = 16 << 20, COPY_CHUNK = 16384 };

/* ---- The call ---- */

static bool copy_overlaps(int from, int to, const bide_io_operation *operation)
{
    struct stat one, other;
    int64_t distance = operation->arguments.copy.from - operation->arguments.copy.to;
    if (fstat(from, &one) != 0 || fstat(to, &other) != 0 || one.st_dev != other.st_dev ||
        one.st_ino != other.st_ino)
        return false;
    return (uint64_t)(distance < 0 ? -distance : distance) < operation->arguments.copy.size;
}

static ptrdiff_t copy_by_reading(int from, int to, const bide_io_operation *operation)
{
    char chunk[COPY_CHUNK];
    size_t size = operation->arguments.copy.size, done = 0;
    while (done < size) {
        size_t wanted = size - done < sizeof chunk ? size - done : sizeof chunk;
        ptrdiff_t count =
            pread(from, chunk, wanted, (off_t)(operation->arguments.copy.from + (int64_t)done));
        if (count > 0) {
            io_written(chunk, (size_t)count);
            count = pwrite(to, chunk, (size_t)count,
                           (off_t)(operation->arguments.copy.to + (int64_t)done));
        }
        if (count < 0 && done == 0)
            return io_error();
        if (count <= 0)
            break; /* (an error is the next part's) */
        done += (size_t)count;
    }
    return (ptrdiff_t)done;
}

ptrdiff_t bide_call_copy_range_(bide_io_operation *operation)
{
    int from = bide_descriptor_fd(operation->arguments.copy.file);
    int to = io_fd(operation);
#ifdef __linux__
    loff_t from_offset = operation->arguments.copy.from, to_offset = operation->arguments.copy.to;
    ptrdiff_t count =
        copy_file_range(from, &from_offset, to, &to_offset, operation->arguments.copy.size, 0);
#else
    ptrdiff_t count = -1;
    errno = ENOSYS;
#endif
    if (count > 0)
        return count;
    if (count < 0 && errno != EXDEV && errno != ENOSYS && errno != EOPNOTSUPP)
        return io_error();
    if (count < 0 && copy_overlaps(from, to, operation))
        return -EINVAL;
    if (count < 0 && (fcntl(to, F_GETFL) & O_APPEND) != 0) /* pwrite would ignore the offset */
        return -EBADF;
    count = copy_by_reading(from, to, operation); /* 3 */
    return count != -ESPIPE ? count : -EINVAL;
}

/* ---- The parts ---- */

static bide_awaiter *copy_part(bide_copy_file_operation *copy)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_copy_file");
    bide_io_operation *operation = io_file_init(&copy->part, &ops, BIDE_IO_COPY_RANGE, copy->to);
    uint64_t left = copy->max - copy->count;
    operation->arguments.copy.file = copy->from;
    operation->arguments.copy.from = copy->from_offset + (int64_t)copy->count;
    operation->arguments.copy.to = copy->to_offset + (int64_t)copy->count;
    operation->arguments.copy.size = left < MAX_PART ? (size_t)left : MAX_PART;
    copy->is_copying = true;
    return &operation->awaiter;
}

static void copy_count_part(bide_copy_file_operation *copy)
{
    copy->is_copying = false;
    copy->count += copy->part.operation.count;
}

static bool copy_files_are_open(const bide_copy_file_operation *copy)
{
    return bide_descriptor_is_open(copy->from) && bide_descriptor_is_open(copy->to);
}

bide_coroutine(copy_file_body)
{
    bide_begin(copy_file_body, bide_copy_file_operation * self);
    if (!copy_files_are_open(self))
        bide_return(-EBADF);
    while (self->count < self->max) {
        if (!copy_files_are_open(self)) /* closed between two parts: as in one */
            bide_return(-EPIPE);
        bide_await_status(self->status, copy_part(self));
        copy_count_part(self);
        if (self->status < 0)
            bide_return(self->status);
        if (self->part.operation.count == 0) /* the end of the file */
            bide_return(0);
    }
    bide_finally();
    if (self->is_copying)
        copy_count_part(self);
    bide_end();
}

bide_awaiter *bide_copy_file(bide_copy_file_operation *operation, bide_descriptor *from,
                             int64_t from_offset, bide_descriptor *to, int64_t to_offset,
                             uint64_t max)
{
    operation->from = from;
    operation->to = to;
    operation->from_offset = from_offset;
    operation->to_offset = to_offset;
    operation->max = max;
    operation->count = 0;
    operation->is_copying = false;
    return bide_task_init(&operation->task, &copy_file_body);
}
