/*
 * What is done once, by whoever comes first; the others wait until it is done. Floor: sync.
 *
 *     bide_try(bide_once_begin(&self->begin, &once));
 *     if (self->begin.runs) {
 *         ...                                          // may await
 *         bide_once_end(&self->begin, true);
 *     }
 *
 *     bide_try(bide_once_run(&self->run, &once, load_table(&self->load, &table)));    // the same for an operation
 *
 *     to be done --begin--> runs --end(done)--> done, for good
 *         ^-------end(not done)---'
 *
 * Who runs it and does not get it done (it has failed, or was cancelled or destroyed) ends it all the same, and then
 * the next in line runs it, or who comes next. So a failure is the affair of the one who ran it; nobody else is told.
 * For an operation whose failure is everybody's result there is shared_task.h.
 *
 * The value of its waiter queue is RUNS, DONE, or neither. Where it is done, begin is one load.
 *
 * Memory orders. The queue's (waiter_queue.h), and: end releases what was done, and begin, where it does not wait,
 * acquires it, as it does what a runner before has left half done.
 *
 * Source: pthread_once of POSIX; OnceCell of Tokio, whose initialiser may fail.
 */
#ifndef BIDE_ONCE_H
#define BIDE_ONCE_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

enum { BIDE_ONCE_RUNS_ = BIDE_QUEUE_ONE, BIDE_ONCE_DONE_ = 2 * BIDE_QUEUE_ONE };

typedef struct bide_once {
    bide_waiter_queue queue;
} bide_once;

/* One wait. The caller's, for the time of the wait, and, if he runs it, until bide_once_end. */
typedef struct bide_once_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter */
    bool runs;                /* after a begin that ended with 0: is it the caller who runs it? */
} bide_once_waiter;

/* Makes a once that is to be done. Before it is shared. The memory may go when nobody runs it or waits. */
BIDE_INLINE void bide_once_init(bide_once *once)
{
    bide_waiter_queue_init(&once->queue, 0);
}

/* Is it done? What was written by who ran it is then visible. Any thread; wait-free. */
BIDE_INLINE bool bide_once_is_done(bide_once *once)
{
    /* acquire: partner is the release of bide_once_end, or, where that serves, of its leaving; until then nobody says
     * that it is done. */
    uintptr_t state = bide_atomic_load(&once->queue.state, acquire);
    return BIDE_LIKELY((state & ((uintptr_t)BIDE_ONCE_DONE_ | BIDE_QUEUE_SERVING_)) ==
                       BIDE_ONCE_DONE_);
}

/* The rest of begin's ready: it is not done. Does the caller run it? */
bool bide_once_try_run_(bide_once *once);

BIDE_INLINE bool bide_once_ready_(bide_awaiter *awaiter)
{
    bide_once_waiter *waiter = (bide_once_waiter *)(void *)awaiter;
    bide_once *once = bide_container_of(waiter->waiter.queue, bide_once, queue);
    waiter->runs = false;
    if (bide_once_is_done(once))
        return true;
    waiter->runs = bide_once_try_run_(once);
    return waiter->runs;
}

bide_frame *bide_once_suspend_(bide_awaiter *awaiter, bide_frame *frame);

BIDE_INLINE int bide_once_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

/* After a wait in line. */
int bide_once_waited_(bide_awaiter *awaiter);
void bide_once_cancel_(bide_awaiter *awaiter);

/* If it had been its turn to run it, that goes to the next. */
bool bide_once_withdraw_(bide_awaiter *awaiter);

/*
 * Waits until it is done, or the caller is to do it: waiter->runs says which. Then he ends it with bide_once_end,
 * whatever happens meanwhile; `waiter` is his until then. Ends with 0; or with -EPIPE if it was closed before it was
 * done, or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h), and somebody else runs it. Any thread; suspends if
 * somebody else is running it; lock-free, and wait-free where it is done.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_once_begin(bide_once_waiter *waiter, bide_once *once)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_once_ready_,
        .suspend = bide_once_suspend_,
        .resume = bide_once_resume_,
        .cancel = bide_once_cancel_,
        .withdraw = bide_once_withdraw_,
        .name = "bide_once_begin",
    };
    waiter->waiter.awaiter.ops = &ops;
    waiter->waiter.queue = &once->queue;
    return &waiter->waiter.awaiter;
}

/*
 * The same for a plain thread, until `deadline` (nanoseconds of bide_platform.now(), or BIDE_FOREVER): returns what the
 * wait ends with, -ETIMEDOUT when the deadline has come. See bide_sync_wait_until. Blocks.
 */
BIDE_INLINE int bide_once_begin_blocking(bide_once_waiter *waiter, bide_once *once,
                                         uint64_t deadline)
{
    return bide_sync_wait_until(bide_once_begin(waiter, once), deadline);
}

void bide_once_end_(bide_once_waiter *waiter, bool done);

BIDE_INLINE void bide_once_end_checked_(bide_once_waiter *waiter, bool done, const char *what,
                                        const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(!waiter->runs))
        bide_misuse_(what, function, file, line);
    else
        bide_once_end_(waiter, done);
}

/*
 * Ends the running that `waiter` has begun. `done`: all who wait go on, and nobody will run it again. Otherwise the
 * next in line runs it. Any thread; does not suspend, and does not run them on the caller's stack while a coroutine is
 * running on it. Lock-free. The once is not touched when they can go on. To end what this waiter does not run is
 * misuse, which is caught where BIDE_DEBUG is 1.
 */
#if BIDE_DEBUG
#define bide_once_end(waiter, done) \
    bide_once_end_checked_(         \
        (waiter), (done),           \
        BIDE_MISUSE_("a once is ended by a waiter that does not run it", #waiter))
#else
#define bide_once_end(waiter, done) bide_once_end_((waiter), (done))
#endif

/*
 * Closes it: who waits, and who comes later, ends with -EPIPE; but if it is done it stays so. Who runs it ends it as
 * ever. Any thread, more than once; does not suspend; lock-free.
 */
void bide_once_close(bide_once *once);

BIDE_INLINE void bide_once_destroy_checked_(bide_once *once, const char *what, const char *function,
                                            const char *file, unsigned line)
{
    if ((bide_atomic_load(&once->queue.state, relaxed) & BIDE_ONCE_RUNS_) != 0 ||
        !bide_waiter_queue_is_idle(&once->queue))
        bide_misuse_(what, function, file, line);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if it is run or waited for. */
#if BIDE_DEBUG
#define bide_once_destroy(once) \
    bide_once_destroy_checked_((once), BIDE_MISUSE_("a once is destroyed that is in use", #once))
#else
#define bide_once_destroy(once) ((void)(once))
#endif

/* ---- An operation that is run once ---- */

/* The caller's, for the time of the wait. */
typedef struct bide_once_operation {
    bide_awaiter awaiter;
    bide_awaiter *inner;
    int status;
    bide_frame frame; /* awaits the beginning, and then `inner` */
    bide_once_waiter begin;
} bide_once_operation;

/*
 * Runs `inner` (a task, or any operation) if nobody has: begin, `inner`, and end, done if it has ended with 0. Ends
 * with 0 when it is done, by whomever; with what `inner` ended with if the caller ran it in vain; otherwise as
 * bide_once_begin. `inner` is not begun if it is not needed. If the caller is destroyed while `inner` runs, so is that,
 * and the next in line runs its own. `operation` is the caller's until the wait has ended. Suspends if `inner` does, or
 * somebody else's runs.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_once_run(bide_once_operation *operation, bide_once *once, bide_awaiter *inner);

BIDE_EXTERN_C_END

#endif
