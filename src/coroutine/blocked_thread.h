/*
 * In debug builds, a blocking wait that leaves a scheduler without a thread is reported. Not for programs.
 * Floor: coroutine.
 *
 * A thread waits in bide_sync_wait and its kin, under every *_blocking function. Before it sleeps, it asks
 * here:
 *
 *     it runs a loop              what belongs to the loop stands still. Reported at once. A wait that ends
 *                                 without sleep is none.
 *     it is a worker of a pool    the other workers go on, so the pool counts its workers that wait. If all
 *                                 of them wait, no wait ends for BIDE_BLOCKED_PERIOD_, and a coroutine of
 *                                 the pool is ready meanwhile, or a timer due, nobody can run it. Reported
 *                                 by the first worker that sees it. So pools are found whose workers wait
 *                                 for each other, in one pool or in several.
 *
 * The loops are counted, and the pool is set, by the thread itself; nothing here is shared but what a pool
 * does in its functions. Under the model checker there are no reports.
 */
#ifndef BIDE_COROUTINE_BLOCKED_THREAD_H
#define BIDE_COROUTINE_BLOCKED_THREAD_H

#include "bide/frame.h"

#define BIDE_REPORTS_BLOCKED_ (BIDE_DEBUG && !BIDE_CHECK)

/* Nanoseconds. */
#define BIDE_BLOCKED_PERIOD_ UINT64_C(1000000000)

typedef struct bide_blocked_pool_ bide_blocked_pool_;

/* The functions of a pool; each is called by the worker that waits. */
struct bide_blocked_pool_ {
    /* One more worker waits; it does not any more. */
    void (*begins)(bide_blocked_pool_ *pool);
    void (*ends)(bide_blocked_pool_ *pool);

    /* How many of its workers have begun or ended a wait. */
    uint32_t (*changes)(bide_blocked_pool_ *pool);

    /* Whether all wait although there is something to run. */
    bool (*is_stuck)(bide_blocked_pool_ *pool);
};

typedef struct bide_runs_here_ {
    unsigned loops;   /* that run on this thread */
    unsigned excused; /* calls that are meant to keep a loop's thread busy */
    bide_blocked_pool_ *pool;
} bide_runs_here_;

#if BIDE_REPORTS_BLOCKED_
extern BIDE_THREAD_LOCAL bide_runs_here_ bide_runs_on_this_thread_;
#endif

/* A loop begins to run on this thread, or has ended: 1 or -1. */
BIDE_INLINE void bide_loops_here_change_(int by)
{
#if BIDE_REPORTS_BLOCKED_
    bide_runs_on_this_thread_.loops += (unsigned)by;
#else
    (void)by;
#endif
}

BIDE_INLINE void bide_excused_here_change_(int by)
{
#if BIDE_REPORTS_BLOCKED_
    bide_runs_on_this_thread_.excused += (unsigned)by;
#else
    (void)by;
#endif
}

/* This thread is a worker of `pool` from now on; NULL: it is none. */
BIDE_INLINE void bide_pool_here_set_(bide_blocked_pool_ *pool)
{
#if BIDE_REPORTS_BLOCKED_
    bide_runs_on_this_thread_.pool = pool;
#else
    (void)pool;
#endif
}

/* The point of the coroutine that runs on this thread; NULL: none does. */
const bide_point *bide_running_point_(void);

/* The same of the innermost coroutine that a user has written, from that one outwards, if there is one. */
const bide_point *bide_running_body_(void);

#endif
