/*
 * Calls that block, made on threads of their own so that no loop stalls: reading a file, for one. The
 * coroutine that awaits one resumes on its own scheduler. Floor: schedule.
 */
#ifndef BIDE_BLOCKING_H
#define BIDE_BLOCKING_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_blocking bide_blocking;

/*
 * Starts `threads` (1 to 65536) threads for blocking calls. Returns 0 and the set in *blocking, or
 * -EINVAL, -ENOMEM, -EAGAIN (no more threads), -EMFILE or -ENFILE (no more descriptors; it needs one, the
 * lowest that is free). Signals are blocked on them as on a thread pool's.
 */
int bide_blocking_create(bide_blocking **blocking, unsigned threads);

/* Ends the threads, once what is queued has been done, and frees the set. No call may be under way that
 * anybody waits for. Blocks. On one of its threads it is misuse, and told: that is also where a coroutine of the inline
 * scheduler goes on after a call. */
void bide_blocking_destroy(bide_blocking *blocking);

/*
 * Makes every bide_blocking_read on it, under way or begun later, end with -ECANCELED instead of waiting
 * for data. Other calls are not interrupted. Any thread, and from a signal handler; for good.
 */
void bide_blocking_interrupt(bide_blocking *blocking);

/* One call. The caller's until it has ended. */
typedef struct bide_blocking_call {
    bide_awaiter awaiter;
    bide_blocking *blocking;
    void (*function)(void *argument);
    void *argument;
} bide_blocking_call;

/*
 * Calls function(argument) on one of the threads, and ends with 0 when it has returned; results travel in
 * what `argument` points at. Calls begin in the order in which they were awaited. Cut short (stop.h) before a
 * thread has begun it, it is not made and ends with -ECANCELED or -ETIMEDOUT; after that it is not interrupted. A
 * coroutine that waits for a call that has begun cannot be destroyed. Any thread; suspends. To cut it short is linear
 * in the calls that are queued.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_blocking_run(bide_blocking_call *call, bide_blocking *blocking,
                                void (*function)(void *argument), void *argument);

/* One read. The caller's until it has ended; then `result` is the number of bytes, or a negative errno. */
typedef struct bide_blocking_reader {
    bide_blocking_call call;
    int fd;
    void *buffer;
    size_t size;
    ptrdiff_t result;
} bide_blocking_reader;

/*
 * Reads up to `size` bytes from `fd`, where its offset is, into `buffer`, which is the operation's until it
 * has ended. Waits for at least one byte; result 0 is the end of the file (`size` is 1 or more). An
 * interrupted system call is begun again, and a descriptor in non-blocking mode is waited for. Ends with 0, or the
 * negative errno that is in `result` too (-ECANCELED after bide_blocking_interrupt: nothing was read then). Cut short
 * as bide_blocking_run, with -ECANCELED in `result`; a read that waits for data is ended by bide_blocking_interrupt
 * only. Any thread; suspends. One reader at a time on a descriptor: between the wait for data and the read, another
 * might take the data away, and then nothing interrupts the read.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_blocking_read(bide_blocking_reader *reader, bide_blocking *blocking, int fd,
                                 void *buffer, size_t size);

BIDE_EXTERN_C_END

#endif
