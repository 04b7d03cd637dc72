/*
 * Work that is done once: the first coroutine or thread is the runner, the others wait for it.
 * Floor: sync.
 *
 *     bide_try(bide_once_start(&self->begin, &once));
 *     if (self->begin.runs) {
 *         ...                                          // may await
 *         bide_once_finish(&self->begin, true);
 *     }
 *
 *     bide_try(bide_once_run(&self->run, &once, load(&self->load, &table)));    // or all in one
 *
 *     to be done --begin--> runs --end(done)--> done, for good
 *         ^-------end(not done)---'
 *
 * Any thread may begin. Once the work is done, begin is one load.
 *
 * A runner that has failed, or was cancelled or destroyed, ends it as not done. Then the next in line
 * becomes the runner, or the next that arrives. So only the runner sees its failure. If all waiters
 * are to get the failure, use shared_task.h.
 *
 * Why it is correct: it is a waiter queue whose value is RUNS, DONE, or neither; waiter_queue.h has
 * the argument. Besides, end releases the work. A begin that does not wait acquires that, and so
 * the unfinished work of an earlier runner.
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

/*
 * One wait. The caller's memory until the wait has ended, and, if the caller runs it, until
 * bide_once_finish.
 */
typedef struct bide_once_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter */
    bool runs;                /* after a begin that ended with 0: is the caller the runner? */
} bide_once_waiter;

/*
 * Makes a once that is to be done. The memory may be freed when nobody runs it or waits.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_once_init(bide_once *once)
{
    bide_waiter_queue_init(&once->queue, 0);
}

/*
 * Is it done? What the runner wrote is then visible.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_once_is_done(bide_once *once)
{
    /* acquire: partner is the release of bide_once_finish, or, where that serves, of its leaving;
     * until then nobody says that it is done. */
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
 * Waits until it is done, or the caller is to do it: waiter->runs says which. A runner ends it with
 * bide_once_finish, whatever happens meanwhile; `waiter` must stay until then. After an error another
 * runs it.
 * Threads: any. Errors: -EPIPE (closed before it was done), -ECANCELED, -ETIMEDOUT. Suspends: if
 * another is running it. Cancel-safe: yes. Progress: lock-free, and wait-free where it is done.
 */
BIDE_KEY_SCOPED(bide_once_finish);
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_once_start(bide_once_waiter *waiter, bide_once *once)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_once_ready_,
        .suspend = bide_once_suspend_,
        .resume = bide_once_resume_,
        .cancel = bide_once_cancel_,
        .withdraw = bide_once_withdraw_,
        .name = "bide_once_start",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->waiter.awaiter.ops = &ops;
    waiter->waiter.queue = &once->queue;
    return &waiter->waiter.awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_once_start; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_once_start_blocking(bide_once_waiter *waiter, bide_once *once,
                                         uint64_t deadline)
{
    return bide_sync_wait_until(bide_once_start(waiter, once), deadline);
}

#define bide_once_start_blocking(...) BIDE_BLOCKS_(bide_once_start_blocking(__VA_ARGS__))

void bide_once_finish_(bide_once_waiter *waiter, bool done);

BIDE_INLINE void bide_once_finish_checked_(bide_once_waiter *waiter, bool done, const char *what,
                                           const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(!waiter->runs))
        bide_misuse_(what, function, file, line);
    else
        bide_once_finish_(waiter, done);
}

/*
 * Ends the running that `waiter` has begun. `done`: all waiters go on, and nobody will run it
 * again. Otherwise the next in line runs it. Woken coroutines do not run on the caller's stack
 * while a coroutine is running on it. The once is not touched when they can go on. To end what this
 * waiter does not run is misuse, which is detected if BIDE_DEBUG is 1.
 * Threads: any, on behalf of the runner. Suspends: never. Progress: lock-free, linear in the
 * waiters.
 */
#if BIDE_DEBUG
#define bide_once_finish(waiter, done) \
    bide_once_finish_checked_(         \
        (waiter), (done),              \
        BIDE_MISUSE_("a once is ended by a waiter that does not run it", #waiter))
#else
#define bide_once_finish(waiter, done) bide_once_finish_((waiter), (done))
#endif

/*
 * Closes it: waits end with -EPIPE, now and later; but if it is done it stays so. A runner ends it
 * as ever. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_once_close(bide_once *once);

BIDE_INLINE void bide_once_destroy_checked_(bide_once *once, const char *what, const char *function,
                                            const char *file, unsigned line)
{
    if ((bide_atomic_load(&once->queue.state, relaxed) & BIDE_ONCE_RUNS_) != 0 ||
        !bide_waiter_queue_is_idle(&once->queue))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if it is run or
 * waited for.
 * Threads: any. Progress: wait-free.
 */
#define bide_once_destroy(once)                           \
    BIDE_END_OF_LIFE_(bide_once_destroy_checked_, (once), \
                      "a once is destroyed while it is in use", #once)

/* ---- An operation that is run once ---- */

/* The caller's memory until the wait has ended. */
typedef struct bide_once_operation {
    bide_awaiter awaiter;
    bide_awaiter *inner;
    int status;
    bide_frame frame; /* awaits the beginning, and then `inner` */
    bide_once_waiter begin;
} bide_once_operation;

/*
 * Runs `inner` (a task, or any operation) if nobody has: begin, `inner`, and end, done if `inner`
 * has ended with 0. Ends with 0 when it is done, by whomever; with what `inner` ended with if the
 * caller ran it in vain. `inner` is not begun if it is not needed. If the caller is destroyed while
 * `inner` runs, so is `inner`, and the next in line runs its own. `operation` must stay until the
 * wait has ended. Once done it stays done, with what `inner` has, also if the caller does not come to know
 * it because it is destroyed before it resumes.
 *
 * It cannot be a case of a select, which refuses it: if another case won, `inner` would be stopped in the
 * middle of the work. Select on bide_once_start, and do the work after it, if it is the caller's to do.
 * Threads: any. Errors: those of `inner`; those of bide_once_start. Suspends: if `inner` does, or
 * another's runs. Cancel-safe: as its inner operation is. Progress: that of `inner`.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_once_run(bide_once_operation *operation, bide_once *once, bide_awaiter *inner);

BIDE_EXTERN_C_END

#endif
