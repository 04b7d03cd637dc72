/*
 * Locks of files that programs agree on: advisory locks, of a whole file or of a part. Floor: io.
 *
 *     bide_try(bide_lock_file(&self->lock, &self->file, BIDE_FILE_EXCLUSIVE, 0, 0));
 *     ...
 *     bide_unlock_file(&self->file, 0, 0);
 *
 * A lock belongs to the open file (open file description locks, fcntl(2)): to the descriptor, its
 * duplicates, and the copies that a fork has inherited. It ends when the last of them is closed. Two
 * opens of one file, in one process or in two, exclude each other. Coroutines that share one descriptor
 * do not: they use bide_mutex.
 *
 * The kernel reports no lock that becomes free, except to a thread that blocks. So a coroutine that
 * waits looks again, 1 ms later at first, then less often, up to every 64 ms. Several waiters are served
 * in no order. No thread is held meanwhile, and a stop request or a deadline ends the wait at once.
 *
 * Why it is correct: src/io/file_lock.c.
 */
#ifndef BIDE_FILE_LOCK_H
#define BIDE_FILE_LOCK_H

#include "bide/descriptor.h"
#include "bide/sleep.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

typedef enum bide_file_lock_kind {
    BIDE_FILE_SHARED,    /* beside other shared ones; the file is open for reading */
    BIDE_FILE_EXCLUSIVE, /* alone; the file is open for writing */
} bide_file_lock_kind;

/* One wait. The caller's memory until it has ended. */
typedef struct bide_lock_file_operation {
    bide_task task;
    const bide_descriptor *file;
    int64_t offset;
    int64_t size;
    uint64_t delay;
    bide_file_lock_kind kind;
    int status;
    bide_sleep sleep;
} bide_lock_file_operation;

/*
 * Locks `size` bytes of a file from `offset` on; a size of 0 is to the end, wherever that will be. A
 * part that the same open file has locked before gets the new kind.
 * Threads: the loop's. Errors: those of fcntl(2), -EBADF (it is closed, or not open in the right way),
 * -ENOLCK, -EOPNOTSUPP (in memory), -ECANCELED, -ETIMEDOUT, -ENOTSUP (a scheduler without timers).
 * Suspends: if another open file has a lock. Cancel-safe: yes, it is not locked. Progress: blocks;
 * a waiter may be overtaken.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_lock_file(bide_lock_file_operation *operation, const bide_descriptor *file,
                             bide_file_lock_kind kind, int64_t offset, int64_t size);

/*
 * The same without waiting.
 * Threads: the loop's. Errors: -EAGAIN (another open file has a lock), and those of bide_lock_file.
 * Progress: that of the system call, which asks the server if the file is on one.
 */
int bide_try_lock_file(const bide_descriptor *file, bide_file_lock_kind kind, int64_t offset,
                       int64_t size);

/*
 * Unlocks a part of a file, locked or not.
 * Threads: the loop's. Errors: those of fcntl(2), -EBADF, -EOPNOTSUPP (in memory). Progress: that of
 * the system call.
 */
int bide_unlock_file(const bide_descriptor *file, int64_t offset, int64_t size);

BIDE_EXTERN_C_END

#endif
