/*
 * A file, or a part of one, into another file, without its bytes coming to the program. Floor: io.
 *
 *     bide_try(bide_copy_file(&self->copy, &self->from, 0, &self->to, 0, UINT64_MAX));
 *     printf("%llu bytes\n", (unsigned long long)self->copy.count);
 *
 * The kernel copies (copy_file_range(2)), on a thread for blocking calls, 16 MB at a time. File
 * systems that can share the bytes of two files (Btrfs, XFS and others) do so, and copy nothing, if
 * both offsets are multiples of their block size; 0 is. A server of files copies on its side. If the kernel cannot copy between the two, the thread reads and
 * writes. For streams: bide_copy (stream.h). To a socket: bide_send_file.
 *
 * Why it is correct: src/io/file_copy.c.
 */
#ifndef BIDE_FILE_COPY_H
#define BIDE_FILE_COPY_H

#include "bide/extend/io.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* One such. The caller's memory until it has ended. */
typedef struct bide_copy_file_operation {
    bide_task task;
    bide_descriptor *from;
    bide_descriptor *to;
    int64_t from_offset;
    int64_t to_offset;
    uint64_t max;
    uint64_t count; /* of bytes that were copied, whatever it ended with; grows meanwhile */
    int status;
    bool is_copying;
    bide_file_operation part;
} bide_copy_file_operation;

/*
 * Copies the bytes of `from` from `from_offset` on, up to `max` (UINT64_MAX: to its end), to `to`,
 * from `to_offset` on. It ends with 0 at the end of `from` too; the rest of `to` stays. The files'
 * own offsets are not used. Both are regular files. Two parts of one file may not overlap. `from` stays
 * open until it has ended.
 * Threads: the loop's. Errors: those of copy_file_range(2), pread(2) and pwrite(2); -EBADF (one is
 * closed, or `to` appends), -EINVAL (they overlap; a pipe or a socket), -EPIPE (closed meanwhile),
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always, unless `max` is 0. Cancel-safe: yes,
 * by `count`; a part that has begun is finished. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_copy_file(bide_copy_file_operation *operation, bide_descriptor *from,
                             int64_t from_offset, bide_descriptor *to, int64_t to_offset,
                             uint64_t max);

BIDE_EXTERN_C_END

#endif
