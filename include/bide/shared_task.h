/*
 * A shared task: one computation whose result any number of coroutines wait for, on any threads. It
 * starts when the first one awaits it, and its result stays. Floor: sync.
 *
 *     struct fetch {
 *         bide_shared_task shared;        // header first
 *         ...                             // parameters, results
 *     };
 *     bide_shared_coroutine(fetch_body) { bide_begin(fetch_body, struct fetch *self); ... }
 *
 *     bide_shared_task_init(&fetch->shared, &fetch_body, &context);
 *     bide_try(bide_shared_task_wait(&self->wait, &fetch->shared));    // then read fetch's results
 *
 * Any thread may wait. The task runs in the context given to init, not in that of the first waiter,
 * its starter. So it has its own scheduler, and its own stop source: cancelling one waiter does not
 * end the task for the others.
 */
#ifndef BIDE_SHARED_TASK_H
#define BIDE_SHARED_TASK_H

#include "bide/coroutine.h"
#include "bide/extend/waiter_list.h"

BIDE_EXTERN_C_BEGIN

/* The first member of a shared task's frame. */
typedef struct bide_shared_task {
    bide_frame frame; /* of its starter, then of its context's scheduler */
    bide_waiter_list waiters;
    bide_atomic(uint32_t) started;
} bide_shared_task;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_shared_task_waiter {
    bide_listed listed; /* the head */
    bide_shared_task *shared;
} bide_shared_task_waiter;

/* final_suspend: wakes the waiters. */
bide_frame *bide_shared_task_final_(bide_frame *frame, const bide_context *context);

static const bide_coroutine_type bide_shared_task_type = {
    "shared_task",           NULL, NULL, NULL, NULL, NULL, NULL,
    bide_shared_task_final_, NULL, NULL, NULL, NULL, NULL, NULL};

/*
 * Opens the definition of a shared task's body; see bide_coroutine_of.
 * Threads: any.
 */
#define bide_shared_coroutine(name) bide_coroutine_of(bide_shared_task_type, name)

/*
 * Makes `shared` a shared task at its start, to be run by `body` (the constant of a
 * bide_shared_coroutine) in `context` once it is awaited. The frame and the context are the
 * caller's. The frame may go when nobody awaits it and it has not been started or has ended; in
 * particular right after a wait that was not cancelled. It may be initialised again then.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_shared_task_init(bide_shared_task *shared, const bide_point *body,
                                       const bide_context *context)
{
    bide_await_later(bide_frame_init(&shared->frame, body));
    shared->frame.context = context;
    bide_waiter_list_init(&shared->waiters, false);
    bide_atomic_init(&shared->started, 0);
}

#define bide_shared_task_init(shared, body, context) \
    bide_shared_task_init(shared, BIDE_BODY_FOR_(body, shared), context)

/*
 * Has it ended? Then its results may be read.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_shared_task_ended(bide_shared_task *shared)
{
    /* acquire: partner is the shutting's release; see 3. */
    return bide_waiter_list_word_is_shut(bide_atomic_load(&shared->waiters.word, acquire));
}

/*
 * The status of its end: 0 or a negative errno. Only after its end, which the caller has seen.
 * Threads: any. Errors: those of the body. Progress: wait-free.
 */
BIDE_INLINE int bide_shared_task_error(const bide_shared_task *shared)
{
    return shared->frame.error;
}

BIDE_INLINE bool bide_shared_task_ready_(bide_awaiter *awaiter)
{
    return bide_shared_task_ended(((bide_shared_task_waiter *)(void *)awaiter)->shared);
}

/* Enlists the first waiter, and starts the task. Returns the frame that runs next. */
bide_frame *bide_shared_task_start_(bide_shared_task_waiter *waiter, bide_frame *frame);

BIDE_INLINE bide_frame *bide_shared_task_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_shared_task_waiter *waiter = (bide_shared_task_waiter *)(void *)awaiter;
    bide_shared_task *shared = waiter->shared;
    bool pushed;
    /* relaxed: see 1. */
    if (bide_atomic_load(&shared->started, relaxed) == 0 &&
        bide_atomic_exchange(&shared->started, 1, relaxed) == 0)
        return bide_shared_task_start_(waiter, frame);
    /* release: see 4. Once pushed, neither awaiter, frame nor task is touched. */
    bide_waiter_list_push(&shared->waiters, &waiter->listed, release, pushed);
    return pushed ? NULL : frame;
}

BIDE_INLINE int bide_shared_task_resume_(bide_awaiter *awaiter)
{
    return bide_shared_task_error(((bide_shared_task_waiter *)(void *)awaiter)->shared);
}

BIDE_INLINE void bide_shared_task_cancel_(bide_awaiter *awaiter)
{
    bide_shared_task_waiter *waiter = (bide_shared_task_waiter *)(void *)awaiter;
    bide_waiter_list_cancel(&waiter->shared->waiters, &waiter->listed);
}

BIDE_INLINE bool bide_shared_task_withdraw_(bide_awaiter *awaiter)
{
    bide_shared_task_waiter *waiter = (bide_shared_task_waiter *)(void *)awaiter;
    return bide_waiter_list_withdraw(&waiter->shared->waiters, &waiter->listed);
}

/*
 * Waits until `shared` has ended, and starts it if nobody has: at once, on this thread, if it has
 * the scheduler of the caller's context, and otherwise by posting it to its own. Ends with the
 * task's error, which is everybody's. If the wait is cancelled the task continues all the same.
 * `waiter` must stay until the wait has ended.
 * Threads: any. Errors: those of the body; -ECANCELED, -ETIMEDOUT. Suspends: if it has not ended.
 * Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_shared_task_wait(bide_shared_task_waiter *waiter,
                                                bide_shared_task *shared)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_shared_task_ready_,
        .suspend = bide_shared_task_suspend_,
        .resume = bide_shared_task_resume_,
        .cancel = bide_shared_task_cancel_,
        .withdraw = bide_shared_task_withdraw_,
        .name = "bide_shared_task_wait",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->listed.awaiter.ops = &ops;
    waiter->shared = shared;
    return &waiter->listed.awaiter;
}

/*
 * Why it is correct:
 *
 *     started   0 --first wait--> 1
 *     waiters   a list; SHUT: it has ended
 *
 * 1. The waiter that changes `started` from 0 starts the task. Nothing is published by it: the
 *    frame was written before it was shared, and the task runs after its starter by program order,
 *    or by its scheduler's posting. A waiter that finds 1 learns only that another starts it. So it
 *    is relaxed.
 * 2. The starter enlists before it starts the task, so the list is not shut then; the others may
 *    find it shut. An enlisted waiter may be resumed at once, and the task's memory may go. So
 *    nothing of it is touched after a push, except by the starter, without which the task cannot
 *    end.
 * 3. The end shuts the list with release: the error and the results come before it. Finding it shut
 *    acquires; partner: the load in ready, and in a refused push. A woken waiter is ordered by its
 *    scheduler.
 * 4. A push releases the waiter, and the shutting acquires it (waiter_list.md, 3 and 4).
 *
 * Source: shared_task of cppcoro.
 */

BIDE_EXTERN_C_END

#endif
