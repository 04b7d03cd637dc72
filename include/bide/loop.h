/*
 * A loop with input and output: the scheduler of one thread, which sleeps in the kernel until
 * an event arrives. Floor: io.
 *
 *     bide_loop *loop;
 *     bide_loop_create(&loop, NULL);
 *     status = bide_loop_wait(loop, serve(&server));          // runs all coroutines until it has ended
 *     bide_loop_destroy(loop);
 *
 * It is a run loop (run_loop.h) whose coroutines may also wait for descriptors: sockets (socket.h),
 * files (file.h), any other (descriptor.h). A process may have several, one for each thread.
 *
 * There are three back ends, with the same behaviour: io_uring, if the kernel permits it; otherwise
 * epoll; and poll, where the system has neither. If the options do not choose, the environment variable
 * BIDE_IO does, "uring", "epoll" or "poll"; any other value is an error. If the selected one is not there,
 * the next in this order is used, and bide_loop_backend says so.
 *
 * Over poll() some things cost more (bide_loop_limit, which bide_loop_backend reports):
 *
 *     - Each poll costs time linear in the descriptors that operations wait for.
 *     - A system without ppoll() has sleeps in milliseconds: a deadline is met up to one late, never early.
 *     - If a descriptor is ready for what no operation takes, such as an entry of its error queue, the
 *       loop polls it every 4 ms. Over epoll and io_uring it sleeps.
 *     - While RLIMIT_NOFILE is lower than the number of those descriptors, the loop looks every
 *       millisecond.
 *
 * A loop belongs to the thread that runs it first, and to the process that created it. In a child of
 * fork that continues without exec it does not run, and never touches state that it shares with its
 * parent; there it may be destroyed, and its descriptors closed, but not by a coroutine that runs on it. If
 * one of its coroutines has forked, the loop runs on in the child until it looks at its events, or would
 * sleep: that is misuse, and reported. The coroutine calls exec or _exit before.
 *
 * Why it is correct: src/io/loop.c.
 */
#ifndef BIDE_LOOP_H
#define BIDE_LOOP_H

#include "bide/extend/io.h"
#include "bide/run_loop.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_loop bide_loop;

typedef enum bide_loop_kind {
    BIDE_LOOP_ANY, /* what BIDE_IO says; otherwise the first of the others that the system has */
    BIDE_LOOP_URING,
    BIDE_LOOP_EPOLL,
    BIDE_LOOP_POLL,
} bide_loop_kind;

/* The costs that a back end has and the others have not: bits of bide_loop_back_end.limits. */
typedef enum bide_loop_limit {
    BIDE_LOOP_LINEAR = 1 << 0, /* a poll costs time linear in the descriptors that are waited for */
    BIDE_LOOP_MILLISECONDS = 1 << 1, /* a sleep ends up to a millisecond after its deadline: the
                                        system has no call in nanoseconds, or refuses it */
} bide_loop_limit;

/* Options of a loop. All zero is a good start. */
typedef struct bide_loop_options {
    bide_loop_kind kind;

    /*
     * Makes calls that block, where the back end does not: those of files on epoll and poll. The caller's. NULL:
     * the loop creates a pool of its own when it first needs one, of four threads at most, and 252 spare
     * ones (blocking.h): calls that wait for ever, such as opens of FIFOs, hold up no others. That pool
     * interrupts calls by SIGURG, which gets a handler that does nothing, for good. If the program has
     * a handler for SIGURG, its calls are not interrupted: then use a pool with another signal.
     */
    bide_blocking *files;

    unsigned entries; /* of the io_uring's queue; 0: 1024 */

    /* Find out how long the longest turn was: it costs two looks at the clock a turn. */
    bool times_runs;
} bide_loop_options;

/*
 * Makes a loop and puts it in *loop. `options` is copied; NULL: all zero.
 * Threads: any. Errors: -ENOMEM, -EMFILE, -ENFILE; -EINVAL (BIDE_IO has another value); of
 * BIDE_LOOP_URING, those of io_uring_setup(2)
 * where it is refused, and -ENOSYS where the library was built without. Progress: blocks.
 */
int bide_loop_create(bide_loop **loop, const bide_loop_options *options);

/*
 * Frees it; NULL is left as it is. It does not run, and nothing waits in it; if BIDE_DEBUG is 1 it
 * reports misuse otherwise. If it runs on the calling thread, as when one of its coroutines destroys it, that is
 * reported always, in a child of fork too. Descriptors that are open stay open, and belong to no loop.
 * Threads: the loop's; any if it never ran. Progress: blocks.
 */
void bide_loop_destroy(bide_loop *loop);

/*
 * The same, called in `function`, for reports of misuse.
 * Threads: as bide_loop_destroy.
 */
void bide_loop_destroy_in_(bide_loop *loop, const char *function, const char *file, unsigned line);
#if BIDE_DEBUG && !BIDE_CHECK /* (scenarios may define it themselves) */
#define bide_loop_destroy(loop) bide_loop_destroy_in_((loop), __func__, __FILE__, __LINE__)
#endif

/*
 * The context of coroutines that run on it: for bide_spawn and the like. The user may add a stop
 * source and a name before anything runs in it, or copy it.
 * Threads: any. Progress: wait-free.
 */
bide_context *bide_loop_context(bide_loop *loop);

/*
 * Runs `awaiter` on the loop, and everything else that belongs to it, on this thread, until `awaiter`
 * has ended; returns its status. As bide_run_loop_wait.
 * Threads: the loop's. Errors: those of `awaiter`; -ENOTSUP (in a child of fork, nothing is awaited). Progress: blocks.
 */
int bide_loop_wait(bide_loop *loop, bide_awaiter *awaiter);

/*
 * Runs it until bide_loop_stop. As bide_run_loop_run.
 * Threads: the loop's. Progress: blocks.
 */
void bide_loop_run(bide_loop *loop);

/*
 * Asks it to return from run. Once for each run.
 * Threads: any. Progress: lock-free.
 */
void bide_loop_stop(bide_loop *loop);

/*
 * Runs it on this thread until all its tasks have ended, nothing is ready and no timer is set, but no longer than until
 * `deadline`. As bide_run_loop_shutdown. An operation that waits for a descriptor belongs to a task, which is counted:
 * its end by other means, such as a stop request, is the program's part.
 * Threads: the loop's. Errors: -ETIMEDOUT; -ENOTSUP (in a child of fork, nothing runs, and *remaining is as it was).
 * Progress: blocks, until the deadline.
 */
int bide_loop_shutdown(bide_loop *loop, uint64_t deadline, bide_run_loop_remaining *remaining);

/* Which back end runs, and why. */
typedef struct bide_loop_back_end {
    const char *name; /* "uring", "epoll" or "poll"; of a pool (io_pool.h) also "mixed" */
    const char *why;  /* a sentence without its stop */
    int error;        /* of the first back end that was refused: a negative errno; or 0 */
    unsigned limits;  /* bits of bide_loop_limit; of a pool, of any of its loops */
} bide_loop_back_end;

/*
 * Which back end runs, and why.
 * Threads: any. Progress: wait-free.
 */
bide_loop_back_end bide_loop_backend(const bide_loop *loop);

/* Counters of a loop. `completions` beside `polls` says how many come at a time. */
typedef struct bide_loop_stats {
    uint64_t runs;        /* how often a coroutine was resumed */
    uint64_t longest_run; /* nanoseconds until one suspended; 0 if nobody asked for it */
    uint64_t polls;       /* times that it asked the kernel for what has come, or slept for it */
    uint64_t started;     /* operations, ever */
    uint64_t in_flight;   /* of those, that have not ended */
    uint64_t sleeps;      /* times that it went to sleep in the kernel */
    uint64_t wakes;       /* of those, that another thread ended */
    uint64_t completions; /* that came from the kernel */
} bide_loop_stats;

/*
 * Copies the loop's counters to `counts`.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_loop_get_stats(const bide_loop *loop, bide_loop_stats *counts);

BIDE_EXTERN_C_END

#endif
