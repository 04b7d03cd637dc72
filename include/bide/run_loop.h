/*
 * A run loop: the scheduler of one thread. Floor: schedule.
 *
 *     bide_run_loop loop;
 *     bide_run_loop_init(&loop);
 *     status = bide_run_loop_wait(&loop, main_run(&frame));    // runs everything until it has ended
 *
 * Any thread may wake coroutines that belong to the loop; they run on the thread that runs it, in the order in which
 * they were woken, whoever woke them: if one wake happened before another, as C11 has it, it runs first.
 */
#ifndef BIDE_RUN_LOOP_H
#define BIDE_RUN_LOOP_H

#include "bide/extend/timer.h"

#include <pthread.h>

BIDE_EXTERN_C_BEGIN

typedef struct bide_run_loop {
    bide_scheduler scheduler;
    /* {&scheduler, NULL, NULL}; the user may add a stop source and a name before anything runs in it,
     * or copy it. */
    bide_context context;

    /* of the thread that runs the loop: what it has taken and is to resume, oldest first */
    bide_awaiter_chain ready;
    uint32_t spins; /* how long to look before it sleeps next time */
    bool may_look;  /* is it free to look for a while before a coroutine suspends? */
    bool stopping;
    struct bide_run_loop *outer; /* what its thread ran before, and goes on with after it */
    bide_frame stop_frame;
    bide_atomic(uint32_t) stop_posted;
    uint64_t deadline; /* when to look for timers that are due */
    uint32_t turns; /* resumptions until it looks at the clock, while there is something to run */

    /* of whoever has the lock */
    pthread_mutex_t timers_lock;
    bide_timers timers;
    bool hint_posted;
    bide_frame hint; /* posted by another thread: there is an earlier timer */

    /* of all threads: EMPTY, PARKED, or what was posted, newest first */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(uintptr_t) posted;
} bide_run_loop;

/* Makes a loop with nothing to run. A loop is aligned to BIDE_CACHE_LINE, and so is what contains one (for
 * allocated memory: aligned_alloc). Nothing needs to be freed; the memory may go when nothing that
 * belongs to the loop is left (bide_run_loop_destroy tells if something is). */
void bide_run_loop_init(bide_run_loop *loop);

/*
 * Runs the loop on this thread until bide_run_loop_stop; what was posted before the stop runs first. When
 * there is nothing to run it looks for a while and then sleeps. One thread at a time; not from inside
 * one of its coroutines.
 */
void bide_run_loop_run(bide_run_loop *loop);

/* Asks the loop to return from run. Any thread; once for each run; does not block. */
void bide_run_loop_stop(bide_run_loop *loop);

/*
 * Runs `awaiter` in loop->context, and everything else that belongs to the loop meanwhile, on this thread,
 * until it has ended; returns its status, 0 or a negative errno. As bide_run_loop_run otherwise.
 */
int bide_run_loop_wait(bide_run_loop *loop, bide_awaiter *awaiter);

/*
 * Resumes what is ready, what waits for a time that has come by now, and what becomes ready by that, without
 * ever sleeping; returns how many resumptions it did. For driving the loop from another. As
 * bide_run_loop_run otherwise.
 */
size_t bide_run_loop_run_ready(bide_run_loop *loop);

/*
 * When bide_run_loop_run_ready is to be called again although nothing was posted: the time of the earliest
 * timer, in nanoseconds of bide_platform.now(), or BIDE_FOREVER. Any thread; blocks for a moment at most.
 */
uint64_t bide_run_loop_next_deadline(bide_run_loop *loop);

void bide_run_loop_destroy_checked_(bide_run_loop *loop, const char *what, const char *function,
                                    const char *file, unsigned line);

/*
 * Its memory is about to go; nobody runs it, and no thread is about to wake anything of it. Does nothing but tell, where
 * BIDE_DEBUG is 1, if something is left: it runs, something is queued, a timer is set, or something that was begun on it
 * has not ended; of the last two with the coroutine's name.
 */
#if BIDE_DEBUG
#define bide_run_loop_destroy(loop)        \
    bide_run_loop_destroy_checked_((loop), \
                                   BIDE_MISUSE_("a run loop is destroyed that is in use", #loop))
#else
#define bide_run_loop_destroy(loop) ((void)(loop))
#endif

BIDE_EXTERN_C_END

#endif
