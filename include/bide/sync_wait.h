/*
 * Waiting for a coroutine from a plain thread. Floor: coroutine.
 *
 *     status = bide_sync_wait(main_run(&frame));                  // blocks this thread
 *     status = bide_sync_wait_until(bide_event_wait(&wait, &event), deadline);
 *
 * Any thread may wait. It polls for the end for a while, then sleeps on the platform's futex. The time
 * adapts, for the whole process, to whether polling pays: waking a sleeping thread on another core
 * costs tens of microseconds.
 *
 * In the meantime the thread keeps time for coroutines of the inline scheduler that sleep on it
 * (sleep.h), and runs them when they are due. If some still sleep when the wait has ended, a thread of
 * the library takes over. If none can be started, the wait ends only when one can be, or when no
 * coroutine sleeps any more.
 *
 * A coroutine should await instead: while its thread blocks, it runs nothing else. If BIDE_DEBUG is 1,
 * a wait that leaves a scheduler without a thread is reported as misuse, with the place of the call and
 * the name of the coroutine. That holds for the functions below, and for each *_blocking function, which
 * are made of them:
 *
 *     on the thread of a loop   a run loop, a loop, a worker of an io pool, or a test loop: any wait that
 *                               has to sleep, with or without a deadline. A wait that has ended already,
 *                               or that a coroutine ends that is queued inline on this thread, is none,
 *                               nor is one that another thread ends within the moment of polling.
 *     on a worker of a pool     if all its workers wait in that way, none of these waits ends within a
 *                               second, and one of the pool's coroutines is ready, or a timer of it due.
 *                               So are pools that wait for themselves, or for each other.
 *
 * Calls of functions that block belong on threads for that: bide_blocking_run (blocking.h).
 *
 * Why it is correct: src/coroutine/sync_wait.c, and src/coroutine/blocked_thread.h for the reports.
 */
#ifndef BIDE_SYNC_WAIT_H
#define BIDE_SYNC_WAIT_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

/*
 * Runs `awaiter` (a task, or any operation) in `context` and blocks the calling thread until it has
 * ended; returns its status, 0 or a negative errno. With the inline scheduler it starts on this
 * thread. Not from inside a coroutine that the awaited one needs: it would wait for itself. On the
 * thread that runs the loop of `context`, or the only one of its pool, it is misuse, and told, in
 * release builds too.
 *
 * Inside a coroutine, what has been woken inline on this thread runs before the thread waits, as if
 * the coroutine had suspended: what it waits for may depend on that. So hold no lock across it that
 * those coroutines block for.
 * Threads: any but that of a loop. Errors: those of `awaiter`. Progress: blocks.
 */
int bide_sync_wait_in(const bide_context *context, bide_awaiter *awaiter);

/*
 * The same in bide_default_context.
 * Threads: any but that of a loop. Errors: those of `awaiter`. Progress: blocks.
 */
int bide_sync_wait(bide_awaiter *awaiter);

/*
 * The same with a deadline in nanoseconds of bide_platform.now(): from then on `awaiter`, and all
 * that runs on its behalf, is asked to stop with -ETIMEDOUT (stop.h). BIDE_FOREVER: there is none.
 * A deadline that has passed: what is ready is had, what would have to wait ends with -ETIMEDOUT.
 *
 * Returns when `awaiter` has ended, with its own status: so not before an operation that cannot be
 * cancelled ends by itself, and 0 if it ended first or a task made something of the request. What
 * the operation had to give is not lost: either it was had, or it stays where it is. The scheduler
 * needs no timers. If the context has a stop source, requests on that reach `awaiter` as well.
 * Threads: any but that of a loop. Errors: those of `awaiter`; -ETIMEDOUT (the deadline has come).
 * Progress: blocks.
 */
int bide_sync_wait_until_in(const bide_context *context, bide_awaiter *awaiter, uint64_t deadline);

/*
 * The same in bide_default_context.
 * Threads: any but that of a loop. Errors: those of `awaiter`; -ETIMEDOUT (the deadline has come).
 * Progress: blocks.
 */
int bide_sync_wait_until(bide_awaiter *awaiter, uint64_t deadline);

/*
 * BIDE_BLOCKS_: `call`, which blocks, and returns a status. In debug builds reports of misuse by it have
 * the place where this stands. In a call within a call, the outer place counts.
 */
void bide_blocks_here_(const char *function, const char *file, unsigned line);
int bide_blocked_(int status);

#if BIDE_DEBUG && !BIDE_CHECK
#define BIDE_BLOCKS_(call) (bide_blocks_here_(__func__, __FILE__, __LINE__), bide_blocked_(call))
#else
#define BIDE_BLOCKS_(call) (call)
#endif

#define bide_sync_wait(...)          BIDE_BLOCKS_(bide_sync_wait(__VA_ARGS__))
#define bide_sync_wait_in(...)       BIDE_BLOCKS_(bide_sync_wait_in(__VA_ARGS__))
#define bide_sync_wait_until(...)    BIDE_BLOCKS_(bide_sync_wait_until(__VA_ARGS__))
#define bide_sync_wait_until_in(...) BIDE_BLOCKS_(bide_sync_wait_until_in(__VA_ARGS__))

BIDE_EXTERN_C_END

#endif
