/*
 * A thread pool: a scheduler of n threads, the workers, that steal work from each other.
 * Floor: schedule.
 *
 *     bide_thread_pool *pool;
 *     if (bide_thread_pool_create(&pool, 0) == 0) {                // a thread for each processor
 *         bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
 *         status = bide_sync_wait_in(&context, main_run(&frame));
 *         bide_thread_pool_destroy(pool);
 *     }
 *
 * A coroutine that belongs to the pool resumes on any of its threads, one at a time; coroutines
 * that are ready at once run side by side.
 *
 * A coroutine that another of the pool wakes stays on the waker's worker. It runs next there, when
 * the waker suspends, up to three times in a row; an idle worker takes it if the waker continues to
 * run. So two coroutines that hand work to each other stay on one processor. Other woken coroutines,
 * and coroutines that yield (bide_schedule, or a spent budget), go behind the waiting ones, and
 * idle workers take half of the queue at once. Posting from a worker costs some nanoseconds and no
 * lock; from outside the pool it costs a lock. A ready coroutine always gets to run, whatever
 * others do, as long as one worker is not held by a coroutine that never suspends. The order of
 * ready coroutines is not specified.
 *
 * A worker that has work looks at the timers, at what was posted from outside, and at events once in 200 us
 * and a turn, or 128 turns (`event_interval`). Each look runs at once the coroutine whose timer was due first,
 * and the oldest that was posted from outside. The next ones go behind the coroutines that wait to
 * run, and so do later ones while these are there. The exceptions to the time are those of a run loop (run_loop.h),
 * but for the last two of them, and these:
 *
 *     long turns       There are two turns between two looks, however long they are, and a third if a look runs two
 *                      coroutines.
 *     longer turns     If turns suddenly take longer than those before, one look comes after up to 128 of them.
 *
 * Any thread may post. Idle workers poll for a while, and then sleep. While all sleep, the pool takes
 * no processor time.
 *
 * A pool belongs to the process that created it. A child of fork has none of its threads: nothing runs on it
 * there. A child that continues without exec leaves it alone, and creates pools of its own. To destroy it
 * there, or to shut it down, is misuse, and reported; so is a coroutine that is started on it or woken, one that was
 * woken and is destroyed, and a timer of it that is set or cleared. If a coroutine of the pool has forked, it
 * continues in the child until it suspends or ends, which is misuse too: it calls exec or _exit before.
 * So does a function that bide_join or fork.h runs: its return in the child is not always reported.
 *
 * Why it is correct: src/schedule/pool/worker.c, and run_queue.h beside it.
 */
#ifndef BIDE_THREAD_POOL_H
#define BIDE_THREAD_POOL_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_thread_pool bide_thread_pool;

/*
 * Functions that the threads call, each on itself, with the worker's number from 0 on; or NULL.
 * They may not use coroutines of the pool.
 */
typedef struct bide_thread_pool_hooks {
    void (*start)(void *argument, unsigned worker); /* before all else */
    void (*end)(void *argument, unsigned worker);   /* after all else */
    void (*before_sleep)(void *argument, unsigned worker);
    void (*after_wake)(void *argument, unsigned worker);
    void *argument;
} bide_thread_pool_hooks;

/* How a pool is made. All zero is a good beginning. */
typedef struct bide_thread_pool_options {
    unsigned threads; /* 0: one for each processor */
    const char *name; /* of the threads, with a number behind it, as far as the system has
                             room (15 characters); NULL: the program's */
    bide_thread_pool_hooks hooks;

    /* Thread i stays on processors[i]; as many as there are threads. NULL: they go where the system
     * puts them. */
    const unsigned *processors;

    /* Find out how long the longest turn was: it costs a look at the clock or two each turn. */
    bool times_runs;

    /* A worker that has work looks at the timers, at what was posted from outside, and at events at least
     * once in so many turns: 2 to 65536. Fewer turns make looks prompt and turns dear. 0: 128. */
    unsigned event_interval;

    /* Bytes of each thread's stack, at least; 0: BIDE_THREAD_STACK, 8 MiB. Coroutines need little, but
     * bide_join (join.h) recurses on it, and continues with a new one when three quarters are used.
     * */
    size_t stack_size;

    /* More threads, each of which replaces one that blocks in bide_blocking_here; they sleep
     * otherwise. They have the numbers from `threads` on, and no processors of their own. 0: none.
     * */
    unsigned spare_threads;
} bide_thread_pool_options;

/* Counters of the workers since the pool began. Each number may be a moment old. */
typedef struct bide_thread_pool_stats {
    uint64_t runs;        /* how often a coroutine was resumed */
    uint64_t steals;      /* how often a worker took from another */
    uint64_t sleeps;      /* how often one fell asleep */
    uint64_t longest_run; /* nanoseconds until a coroutine suspended; 0 if nobody asked for it */
    uint64_t
        stand_ins; /* how often a spare thread replaced a blocked one (bide_blocking_here) */
    unsigned spares; /* spare threads that do now, or did a moment ago */
} bide_thread_pool_stats;

/* The same of one worker. */
typedef struct bide_thread_pool_worker_stats {
    uint64_t runs;
    uint64_t steals;
    uint64_t sleeps;
    uint64_t longest_run;
    uint64_t deep_joins; /* how often a join has gone on with a new stack (join.h) */
    size_t ready;        /* coroutines in its own queue; others may take them */
} bide_thread_pool_worker_stats;

/*
 * Starts a pool of `threads` threads, or of one for each processor if `threads` is 0, and puts it
 * in *pool. If it fails no thread is left. The threads block all signals except faults of their
 * own code: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP and SIGSYS.
 * Threads: any. Errors: -EINVAL (more than 65536), -ENOMEM, -EAGAIN (the system has no more threads
 * to give). Progress: blocks.
 */
int bide_thread_pool_create(bide_thread_pool **pool, unsigned threads);

/*
 * The same with more to say. Memory that `options` points to is not used after it has returned,
 * except for the functions and their argument.
 * Threads: any. Errors: as bide_thread_pool_create, and -EINVAL (a processor that the process may
 * not use, an interval or a stack that cannot be, too many spare threads, or any for a pool of loops). Progress: blocks.
 */
int bide_thread_pool_create_with(bide_thread_pool **pool, const bide_thread_pool_options *options);

/*
 * Ends the threads, once what is queued has run, and frees the pool; NULL is left as it is. Nothing
 * that belongs to the pool may be waiting any more: a timer that is still set, or something that
 * was begun on the pool and has not ended, is reported as misuse, with the coroutine's name. A call
 * on one of the pool's own threads is reported as misuse too, and so is one in a child of fork. A
 * coroutine that never suspends, or is always ready again, keeps it waiting forever:
 * bide_thread_pool_shutdown has a deadline.
 * Threads: any, except the pool's own. Progress: blocks.
 */
void bide_thread_pool_destroy(bide_thread_pool *pool);

/*
 * The same, called in `function`, for reports of misuse.
 * Threads: as bide_thread_pool_destroy.
 */
void bide_thread_pool_destroy_in_(bide_thread_pool *pool, const char *function, const char *file,
                                  unsigned line);
#if BIDE_DEBUG && !BIDE_CHECK /* (scenarios may define it themselves) */
#define bide_thread_pool_destroy(pool) \
    bide_thread_pool_destroy_in_((pool), __func__, __FILE__, __LINE__)
#endif

/* The rest that a shutdown has left. */
typedef struct bide_thread_pool_remaining {
    /* Tasks that were begun on the pool and have not ended: spawned ones, tasks that a thread
     * waits for, and the coroutines of scopes. Always 0 if the library was built with BIDE_ROOTS as
     * 0. */
    size_t tasks;

    unsigned threads; /* that have not ended: each runs a coroutine that does not suspend */
    size_t ready;     /* coroutines that are ready and do not run */
    bool has_timers;  /* whether timers are set, which do not come */
} bide_thread_pool_remaining;

/*
 * Waits until all tasks of the pool have ended and nothing else of it runs, and ends its threads; but waits no longer
 * than until `deadline` (bide_now), and up to 100 ms more for turns that run then. Returns 0 if nothing is left: then
 * bide_thread_pool_destroy just frees the pool. Until then coroutines of the pool may do what they like, also start
 * others on it. No other thread may start anything on the pool once this was called, but may end what its
 * coroutines wait for.
 *
 * If something is left, puts its numbers in *remaining, unless that is NULL, and returns -ETIMEDOUT. The pool is halted
 * then: a coroutine that is suspended stays so, and one that runs gets to its next suspension, if it has one. Worker
 * threads end after that, each within its next turns. To see the tasks that are left, bide_dump_scheduler (dump.h)
 * names them and what they wait for.
 *
 * A halted pool keeps wakes and posts, and runs nothing. A further call waits until `deadline` for its threads, and
 * counts again. Once no thread is left, this thread may destroy the coroutines that remain (bide_destroy in handle.h;
 * of a spawned one its root). When a call has returned 0, the pool may be destroyed. If a coroutine never suspends, that
 * is never so: leave the pool, and end the process. To destroy the pool would wait for its threads, and then report
 * what remains as misuse.
 *
 * It looks whether tasks have ended once in 50 us at first, and later once in 10 ms: that is how late it may be.
 * On one of the pool's own threads it is misuse, and in a child of fork.
 * Threads: any, except the pool's own; one at a time. Errors: -ETIMEDOUT. Progress: blocks, until the deadline.
 */
int bide_thread_pool_shutdown(bide_thread_pool *pool, uint64_t deadline,
                              bide_thread_pool_remaining *remaining);

/*
 * The pool as a scheduler, for a context.
 * Threads: any. Progress: wait-free.
 */
bide_scheduler *bide_thread_pool_scheduler(bide_thread_pool *pool);

/*
 * How many threads the pool has, without the spare ones.
 * Threads: any. Progress: wait-free.
 */
unsigned bide_thread_pool_threads(const bide_thread_pool *pool);

/*
 * Puts into *counts what the workers have done since the pool began. The counts are a size_t a
 * worker, and go round.
 * Threads: any. Progress: wait-free.
 */
void bide_thread_pool_get_stats(bide_thread_pool *pool, bide_thread_pool_stats *counts);

/*
 * The same for one worker, from 0 on, also while it runs; the spare ones come after the others. A worker whose `runs` stay as they are while its
 * `ready` is not 0 is held by a coroutine that does not suspend.
 * Threads: any. Errors: -EINVAL (there is no such worker). Progress: wait-free.
 */
int bide_thread_pool_get_worker_stats(bide_thread_pool *pool, unsigned worker,
                                      bide_thread_pool_worker_stats *counts);

/* ---- Coroutines that block ---- */

/* A part of a coroutine's turn in which its thread may block. A local variable. */
typedef struct bide_blocking_region {
    void *worker; /* NULL: none of a pool that has a spare thread for it */
} bide_blocking_region;

/*
 * Calls function(argument), which may block this thread for long: a coroutine of a pool calls it for a system call, a
 * lock, or a bide_sync_wait. On a thread of a pool with spare threads (`spare_threads`) one of
 * these replaces it meanwhile: it runs what is ready on this thread, what is posted, and timers,
 * like the pool's other threads. So the pool has as many threads as before that do not block, and
 * `function` may wait for anything that its coroutines do. When `function` has returned, this
 * thread runs on with the coroutine at once, and the spare one stops after its next turns.
 *
 * If there is none, calls `function` all the same, and this thread blocks as it would without the region: -ENOTSUP if this
 * is no thread of a pool with spare threads, as on a run loop or a loop, or on a thread that only waits; -EAGAIN if all
 * spare threads replace others. So as many regions run at once as there are spare threads.
 *
 * In the region what this thread wakes or posts goes to the pool's other threads. Joins (join.h) and other regions are
 * allowed there; an inner region needs no other spare thread. On a strand the strand's other coroutines wait, since only
 * one of them runs at a time. It costs two locks and the waking of a thread, some microseconds: for short calls it does not pay. A call
 * that takes no part in the coroutine's turn, such as reading a file, is better left to bide_blocking_run (blocking.h).
 * `function` returns: it must not leave by longjmp, a C++ exception or the thread's end. NULL for it is misuse, which
 * is detected if BIDE_DEBUG is 1.
 * Threads: any. Errors: -ENOTSUP, -EAGAIN (`function` was called nevertheless). Progress: blocks, as long as `function`.
 * Source: ForkJoinPool.managedBlock, and tokio's block_in_place.
 */
int bide_blocking_here(void (*function)(void *argument), void *argument);

/*
 * The same as a pair, for code that is no function of its own: between the two this thread may block. The coroutine may not
 * suspend or end in between: in debug builds that is detected as misuse. An end must follow each begin, on the same
 * thread, also after an error, when it does nothing.
 * Threads: any; both calls on one. Errors: as bide_blocking_here. Progress: blocks for a moment, for the pool's lock.
 */
int bide_blocking_here_begin(bide_blocking_region *region);

/*
 * Ends the region.
 * Threads: the begin's. Progress: blocks for a moment, for the pool's lock.
 */
void bide_blocking_here_end(bide_blocking_region *region);

BIDE_INLINE int bide_blocking_here_checked_(void (*function)(void *argument), void *argument,
                                            const char *what, const char *where, const char *file,
                                            unsigned line)
{
    if (BIDE_UNLIKELY(function == NULL))
        bide_misuse_(what, where, file, line);
    return bide_blocking_here(function, argument);
}

#if BIDE_DEBUG && !BIDE_CHECK
#define bide_blocking_here(function, argument) \
    bide_blocking_here_checked_((function), (argument), BIDE_NULL_FUNCTION_("bide_blocking_here"))
#endif

BIDE_EXTERN_C_END

#endif
