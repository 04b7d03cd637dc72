/*
 * Calls that block, such as reading a file, made on threads of their own so that no loop stalls.
 * The coroutine that awaits one resumes on its own scheduler. Floor: schedule.
 *
 *     bide_blocking *blocking;
 *     if (bide_blocking_create(&blocking, 4) == 0) ...
 *
 *     bide_try(bide_blocking_read(&self->read, blocking, fd, self->buffer, sizeof self->buffer));
 *     bide_try(bide_blocking_run(&self->call, blocking, compress, &self->job));
 *
 * A call costs a lock, the waking of a thread, and a post back.
 *
 * Why it is right: src/schedule/blocking.c.
 */
#ifndef BIDE_BLOCKING_H
#define BIDE_BLOCKING_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_blocking bide_blocking;

/*
 * Starts `threads` (1 to 65536) threads for blocking calls, and puts the set in *blocking. It needs
 * one descriptor, the lowest that is free. Signals are blocked on the threads as on a thread
 * pool's.
 * Threads: any. Errors: -EINVAL, -ENOMEM, -EAGAIN (no more threads), -EMFILE or -ENFILE (no more
 * descriptors). Progress: blocks.
 */
int bide_blocking_create(bide_blocking **blocking, unsigned threads);

/*
 * Ends the threads, once what is queued has been done, and frees the set. No call may be under way
 * that a coroutine waits for. On one of its own threads it is misuse, and told; that is also where
 * a coroutine of the inline scheduler goes on after a call.
 * Threads: any, except the set's own. Progress: blocks.
 */
void bide_blocking_destroy(bide_blocking *blocking);

/*
 * Makes every bide_blocking_read on it, under way or begun later, end with -ECANCELED instead of
 * waiting for data. Other calls are not interrupted. For good.
 * Threads: any, also in a signal handler. Progress: wait-free, a system call.
 */
void bide_blocking_interrupt(bide_blocking *blocking);

/* One call. The caller's memory until it has ended. */
typedef struct bide_blocking_call {
    bide_awaiter awaiter;
    bide_blocking *blocking;
    void (*function)(void *argument);
    void *argument;
} bide_blocking_call;

/*
 * Calls function(argument) on one of the threads, and ends with 0 when it has returned; results
 * travel in what `argument` points at. Calls begin in the order in which they were awaited. A call
 * that is cut short (stop.h) before a thread has begun it is not made; after that it is not
 * interrupted. A coroutine that waits for a call that has begun cannot be destroyed. To cut a call
 * short is linear in the calls that are queued.
 * Threads: any. Errors: -ECANCELED, -ETIMEDOUT. Suspends: always. Cancel-safe: yes, the call is not
 * made. Progress: blocks for a moment, for the lock of the queue.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_blocking_run(bide_blocking_call *call, bide_blocking *blocking,
                                void (*function)(void *argument), void *argument);

/*
 * One read. The caller's memory until it has ended; then `result` is the number of bytes, or a
 * negative errno.
 */
typedef struct bide_blocking_reader {
    bide_blocking_call call;
    int fd;
    void *buffer;
    size_t size;
    ptrdiff_t result;
} bide_blocking_reader;

/*
 * Reads up to `size` bytes, 1 or more, from `fd`, where its offset is, into `buffer`, which must
 * stay until it has ended. Waits for at least one byte; result 0 is the end of the file. An
 * interrupted system call is begun again, and a descriptor in non-blocking mode is waited for. It
 * is cut short as bide_blocking_run is, with -ECANCELED in `result`; a read that waits for data is
 * ended by bide_blocking_interrupt only. One reader at a time on a descriptor: between the wait for
 * data and the read, another might take the data away, and then nothing interrupts the read.
 * Threads: any. Errors: those of read(2), also in `result`; -ECANCELED (also after
 * bide_blocking_interrupt), -ETIMEDOUT. Suspends: always. Cancel-safe: yes, nothing was read.
 * Progress: as bide_blocking_run.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_blocking_read(bide_blocking_reader *reader, bide_blocking *blocking, int fd,
                                 void *buffer, size_t size);

BIDE_EXTERN_C_END

#endif
