/*
 * A strand: a scheduler on top of another one that runs one of its coroutines at a time, in order. So
 * data that only they use needs no lock, even on a pool. Floor: schedule.
 *
 *     bide_strand strand;
 *     bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
 *     bide_spawn(&spawned, &strand.context, serve(&server));    // any number of these
 *     ...
 *     bide_strand_destroy(&strand);                             // once they have ended
 *
 * Any thread may wake coroutines that belong to the strand. They run on the underlying scheduler's
 * threads, none of which waits for another: a strand on a pool uses one thread at a time, and none
 * while it has nothing to run. If one wake happened before another, in the sense of C11, its coroutine
 * runs first. After some tens of resumptions in a row a strand goes to the end of the underlying
 * scheduler's queue, so that others run. As on a run loop, one of its coroutines may run while another
 * waits.
 *
 * Posting to a busy strand costs one locked instruction, and none from inside it; the
 * first post to an idle one also posts to the underlying scheduler. No allocation: the memory is
 * the caller's.
 *
 * The underlying scheduler may be any, also a strand. Under bide_inline_scheduler a strand runs on
 * the thread that wakes it while it is idle. Its coroutines can wait for times if those of the
 * underlying scheduler can.
 *
 * In a child of fork a strand is as its underlying scheduler. One on a thread pool is left alone: to post
 * to it there, to set or clear a timer of it, or to destroy it is misuse, and reported.
 *
 * Why it is correct: src/schedule/strand.c.
 */
#ifndef BIDE_STRAND_H
#define BIDE_STRAND_H

#include "bide/extend/timer.h"

#include "bide/detail/system_types.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_strand {
    bide_scheduler scheduler;
    /* {&scheduler, NULL, NULL}. The user may add a stop source and a name before anything runs in
     * it, or copy it. */
    bide_context context;
    bide_scheduler *under; /* constant */
    bide_scheduler *base;  /* constant: below all strands */
    bide_context there;    /* constant: of the two frames below, {under, NULL, NULL} */
    uint32_t generation;   /* constant: of the process that has the base's threads */

    /* of the runner, which is one at a time */
    bide_awaiter_chain ready;  /* what it has taken and is to resume, the oldest first */
    bide_awaiter *passed;      /* before `ready`, the nearest first: a queued one was destroyed */
    struct bide_strand *outer; /* the strand that this thread runs besides */
    bide_frame runner;         /* what is posted to `under` */

    /* of the holder of the lock */
    bide_system_lock_ timers_lock;
    bide_system_condition_ rang;
    bide_timers timers;
    uint32_t alarm_state;
    bide_timer alarm; /* in `under`: for the earliest of `timers`, or earlier */
    bide_frame alarm_frame;

    /* of all threads: IDLE, BUSY, AWAITED, or what was posted, newest first */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(uintptr_t) posted;
} bide_strand;

/*
 * Makes a strand on `under`, which outlives it, with nothing to run. A strand is aligned to
 * BIDE_CACHE_LINE, and so is what contains one.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_strand_init(bide_strand *strand, bide_scheduler *under);

#define bide_strand_init(strand, under) \
    bide_strand_init(strand, bide_strand_under_((under), BIDE_MISUSE_("a strand on NULL", #strand)))

BIDE_INLINE bide_scheduler *bide_strand_under_(bide_scheduler *under, const char *what,
                                               const char *function, const char *file,
                                               unsigned line)
{
#if BIDE_DEBUG
    if (BIDE_UNLIKELY(under == NULL))
        bide_misuse_(what, function, file, line);
#else
    (void)what, (void)function, (void)file, (void)line;
#endif
    return under;
}

/*
 * Ends a strand. Nothing that belongs to it may wait any more, or be about to be woken: a timer
 * that is still set, or something that was begun on it and has not ended, is reported as misuse,
 * with the coroutine's name. So is a call from inside one of its coroutines. On a pool it waits
 * until the thread that has run its last coroutine has left it. After it the memory may go.
 * A strand of zeros is left as it is.
 * Threads: any, if the underlying scheduler is a pool; otherwise the thread of that scheduler,
 * or any while none does. Progress: blocks.
 */
void bide_strand_destroy(bide_strand *strand);

/*
 * The same, called in `function`, for reports of misuse.
 * Threads: as bide_strand_destroy.
 */
void bide_strand_destroy_in_(bide_strand *strand, const char *function, const char *file,
                             unsigned line);
#if BIDE_DEBUG && !BIDE_CHECK /* (scenarios may define it themselves) */
#define bide_strand_destroy(strand) bide_strand_destroy_in_((strand), __func__, __FILE__, __LINE__)
#endif

BIDE_EXTERN_C_END

#endif
