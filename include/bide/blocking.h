/*
 * Calls that block, such as reading a file, made on threads of their own so that no loop stalls.
 * The coroutine that awaits one resumes on its own scheduler. Floor: schedule.
 *
 *     bide_blocking *files, *names;
 *     bide_blocking_create_with(&files, &(bide_blocking_options){.name = "files", .max_threads = 8});
 *     bide_blocking_create_with(&names, &(bide_blocking_options){.name = "names", .max_threads = 2});
 *
 *     bide_try(bide_blocking_read(&self->read, files, fd, self->buffer, sizeof self->buffer));
 *     bide_try(bide_blocking_run(&self->call, names, resolve, &self->name));
 *
 * Calls of one pool wait for each other, calls of different pools do not: slow name look-ups delay no
 * file if they have a pool of their own. The program creates the pools, and chooses one for each
 * call; there is no default pool. A pool has a maximum number of threads. They are started when a
 * call finds none idle, and end after a long idle time. A call that finds all threads busy waits, in
 * order, in its caller's memory; if the pool has spare threads, one is started in place of each call
 * that takes long. So the queue needs no bound, and a caller that must not wait for
 * long sets a deadline.
 *
 * Any thread may make a call. It costs a lock, the waking of a thread, and a post back. For a
 * coroutine on a test loop (sim_loop.h) the loop itself makes the call, after a delay.
 *
 * A pool belongs to the process that created it. A child of fork has none of its threads. A child that
 * continues without exec leaves it alone, and creates pools of its own. To make a call there, or to
 * destroy it, is misuse, and reported; so is a call that has forked, and returns in the child.
 *
 * A call can be cancelled until a thread has begun it. After that it can be interrupted, if its
 * caller allows that (bide_blocking_run_interruptible) and the pool has a signal for it.
 *
 * Why it is correct: src/schedule/blocking.c.
 */
#ifndef BIDE_BLOCKING_H
#define BIDE_BLOCKING_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_blocking bide_blocking;

/* For how long a thread stays without a call, if the options do not say: 10 s. */
#define BIDE_BLOCKING_IDLE UINT64_C(10000000000)

/* Options of a pool. All zero, except for `max_threads`, is a good start. */
typedef struct bide_blocking_options {
    const char *name;     /* of its threads, for the system's tools: up to 15 characters; or NULL */
    unsigned max_threads; /* at most: 1 to 65536 */
    unsigned min_threads; /* of these, from the beginning to the end; the others come and go */

    /*
     * At most so many more, in place of threads whose calls take longer than 10 ms while others are
     * queued: up to 65536 with the above. So calls that wait for long, or for ever, do not hold up
     * others, until there are `max_threads` and these of them. 0: none.
     */
    unsigned spare_threads;
    uint64_t
        idle_timeout; /* nanoseconds: how long those stay without a call. 0: BIDE_BLOCKING_IDLE */

    /*
     * The signal that interrupts calls, such as SIGURG, or 0: none does. It gets a handler that
     * does nothing, for the whole process, and for good. Several pools may have the same.
     */
    int interrupt_signal;

    /* Bytes of the stack of each thread that makes calls, at least; 0: BIDE_THREAD_STACK, 8 MiB. */
    size_t stack_size;

    /*
     * The pool is never destroyed: a library may keep one until the process ends. A thread that
     * ends leaves nothing to be joined, so ThreadSanitizer does not report it. Destroying the pool is
     * misuse.
     */
    bool is_for_good;
} bide_blocking_options;

/*
 * Makes a pool of threads for blocking calls, and puts it in *blocking. It needs one descriptor,
 * the lowest that is free from 3 on, and, from its first thread on, one thread more if it has an
 * interrupt_signal or spare threads. Signals are blocked on the threads as on a thread pool's; the interrupt_signal
 * reaches calls that may be interrupted.
 * `options` is copied.
 * Threads: any. Errors: -EINVAL (the number of threads, no such signal, or a stack that cannot be),
 * -EBUSY (the signal has a handler), -ENOMEM, -EAGAIN (no more threads), -EMFILE or -ENFILE (no more descriptors).
 * Progress: blocks.
 */
int bide_blocking_create_with(bide_blocking **blocking, const bide_blocking_options *options);

/*
 * The same with so many threads, 1 to 65536, from the beginning to the end, and nothing else.
 * Threads: any. Errors: -EINVAL, -ENOMEM, -EAGAIN (no more threads), -EMFILE or -ENFILE (no more
 * descriptors). Progress: blocks.
 */
int bide_blocking_create(bide_blocking **blocking, unsigned threads);

/* How a pool does. */
typedef struct bide_blocking_stats {
    unsigned threads; /* that there are */
    unsigned idle;    /* of those */
    size_t queued;    /* calls that no thread has begun */
} bide_blocking_stats;

/*
 * Counts, as they are at some time during this call.
 * Threads: any. Progress: blocks for a moment, for the lock of the queue.
 */
void bide_blocking_get_stats(bide_blocking *blocking, bide_blocking_stats *counts);

/*
 * Ends the threads, once what is queued has been done, and frees the set; NULL is left as it is. No
 * call may be under way that a coroutine waits for. A call on one of its own threads is
 * misuse, and is reported; a coroutine of the inline scheduler continues there after a call. A call
 * in a child of fork is misuse too, and so is that of a pool that `is_for_good`.
 * Threads: any, except the set's own. Progress: blocks.
 */
void bide_blocking_destroy(bide_blocking *blocking);

/*
 * The same, called in `function`, for reports of misuse.
 * Threads: as bide_blocking_destroy.
 */
void bide_blocking_destroy_in_(bide_blocking *blocking, const char *function, const char *file,
                               unsigned line);
#if BIDE_DEBUG && !BIDE_CHECK /* (scenarios may define it themselves) */
#define bide_blocking_destroy(blocking) \
    bide_blocking_destroy_in_((blocking), __func__, __FILE__, __LINE__)
#endif

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
    int (*interruptible)(void *argument); /* one of these two; the other is NULL */
    void *argument;
    bide_scheduler *in_place; /* makes it in place of the threads (bide_environment); or NULL */
    int status;

    /* of the holder of the pool's lock */
    union {
        struct bide_blocking_call *before;    /* while it is queued; NULL: it is the oldest */
        struct bide_blocking_thread_ *thread; /* that has begun it, if it may be interrupted */
    } at;
    bool is_queued;
    bool interrupted;
} bide_blocking_call;

/*
 * Calls function(argument) on one of the threads, and ends with 0 when it has returned; results
 * travel in what `argument` points at. Calls begin in the order in which they were awaited. A call
 * that is cancelled (stop.h) before a thread has begun it is not made; after that it is not
 * interrupted. A coroutine that waits for a call that has begun cannot be destroyed. A call is no case
 * of a select, which refuses it, because what `function` has done cannot be undone; nor are those
 * below. Await it in a coroutine of its own, and select on that one's end. Cancelling a queued call
 * costs the same no matter how many are queued. If no thread is idle and none can be started, it
 * waits for the existing threads; if there are none, it ends with the error. NULL for `function` is
 * misuse, which is detected if BIDE_DEBUG is 1.
 * Threads: any. Errors: -EAGAIN (there are no threads, and the system has none to give),
 * -ECANCELED, -ETIMEDOUT. Suspends: unless no thread is available. Cancel-safe: yes, the call is
 * not made. Progress: blocks for a moment, for the lock of the queue, and while a thread is
 * started.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_blocking_run(bide_blocking_call *call, bide_blocking *blocking,
                                void (*function)(void *argument), void *argument);

/*
 * The same for a call that may be interrupted after it has begun. `function` returns 0 or a
 * negative errno, with which the wait ends. If the coroutine is asked to stop meanwhile, the thread
 * of the call gets the pool's signal, at once and then again at least every 16 ms, until the call
 * has returned. So a system call that waits returns EINTR, also one that begins just after the
 * signal; a computation continues, and may ask bide_blocking_is_interrupted now and then. A call
 * that returns -EINTR then ends with the reason, -ECANCELED or -ETIMEDOUT: so `function` returns
 * that only if nothing was done. With anything else it has come to its end in spite of the request,
 * and the wait ends with that. The signal reaches no other call. In a pool without a signal the
 * call runs to its end.
 * Threads: any. Errors: those of `function`; -EAGAIN (as bide_blocking_run), -ECANCELED,
 * -ETIMEDOUT. Suspends: unless no thread is available. Cancel-safe: yes, if `function` keeps to the
 * above. Progress: as bide_blocking_run.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_blocking_run_interruptible(bide_blocking_call *call, bide_blocking *blocking,
                                              int (*function)(void *argument), void *argument);

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_blocking_run_checked_(bide_blocking_call *call, bide_blocking *blocking,
                           void (*function)(void *argument), void *argument, const char *what,
                           const char *where, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(function == NULL))
        bide_misuse_(what, where, file, line);
    return bide_blocking_run(call, blocking, function, argument);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_blocking_run_interruptible_checked_(
    bide_blocking_call *call, bide_blocking *blocking, int (*function)(void *argument),
    void *argument, const char *what, const char *where, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(function == NULL))
        bide_misuse_(what, where, file, line);
    return bide_blocking_run_interruptible(call, blocking, function, argument);
}

#if BIDE_DEBUG
#define bide_blocking_run(call, blocking, function, argument) \
    BIDE_BLOCKING_RUN_(call, blocking, function, argument)
#define BIDE_BLOCKING_RUN_(call, blocking, function, argument)             \
    bide_blocking_run_checked_((call), (blocking), (function), (argument), \
                               BIDE_NULL_FUNCTION_("bide_blocking_run"))
#define bide_blocking_run_interruptible(call, blocking, function, argument) \
    BIDE_BLOCKING_RUN_INTERRUPTIBLE_(call, blocking, function, argument)
#define BIDE_BLOCKING_RUN_INTERRUPTIBLE_(call, blocking, function, argument) \
    bide_blocking_run_interruptible_checked_(                                \
        (call), (blocking), (function), (argument),                          \
        BIDE_NULL_FUNCTION_("bide_blocking_run_interruptible"))
#endif

/*
 * Inside a call that may be interrupted: was its coroutine asked to stop? Elsewhere: no.
 * Threads: any. Progress: blocks for a moment, for the lock of the queue.
 */
bool bide_blocking_is_interrupted(void);

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
 * is cancelled as bide_blocking_run is, with -ECANCELED in `result`. A read that waits for data is
 * ended by bide_blocking_interrupt; in a pool with a signal it may also be interrupted, as by
 * bide_blocking_run_interruptible. One reader at a time on a descriptor: between the wait for
 * data and the read, another might take the data away, and then nothing interrupts the read.
 * Threads: any. Errors: those of read(2), also in `result`; -EAGAIN (as bide_blocking_run),
 * -ECANCELED (also after bide_blocking_interrupt), -ETIMEDOUT. Suspends: unless no thread can be
 * had. Cancel-safe: yes, nothing was read.
 * Progress: as bide_blocking_run.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_blocking_read(bide_blocking_reader *reader, bide_blocking *blocking, int fd,
                                 void *buffer, size_t size);

BIDE_EXTERN_C_END

#endif
