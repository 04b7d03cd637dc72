/*
 * Moving to another scheduler. A coroutine runs where its context's scheduler runs it; these
 * operations change that, for the coroutine itself or for the operation that it awaits.
 * Floor: coroutine.
 *
 *     bide_await(bide_schedule(&self->move, pool));           // from here on it runs in the pool
 *     bide_try(bide_schedule_on(&self->there, pool, child));  // `child` runs there, this one stays
 *
 *     bide_schedule      the coroutine continues there, from here to its end
 *     bide_resume_on     waits for an operation, then moves
 *     bide_schedule_on   runs another operation there; the coroutine resumes where it was
 *
 * The continuation of a coroutine that has moved resumes on its own scheduler. That costs a frame
 * in the operation, between the two, which hands over by posting.
 *
 * The coroutine that awaits the operation moves. Some wrappers run their inner operation in a
 * coroutine of their own: bide_with_stop, bide_with_deadline, bide_when_all, a scope, bide_once_run
 * and bide_schedule_on. A move inside one of these moves that coroutine, and the awaiting one
 * stays. bide_then has none, so the awaiting coroutine moves.
 *
 * Why it is correct: src/coroutine/schedule.c.
 *
 * Source: schedule(), resume_on and schedule_on of cppcoro, and `via` of Lewis Baker's articles,
 * which is bide_schedule_on or bide_resume_on.
 */
#ifndef BIDE_SCHEDULE_H
#define BIDE_SCHEDULE_H

#include "bide/frame.h"
#include "bide/extend/choice.h"

BIDE_EXTERN_C_BEGIN

/*
 * Changing one's own scheduler. Its memory must stay until the coroutine has ended: in the
 * coroutine's frame, not inside a child's. It may be used again meanwhile, and take turns with
 * others.
 */
typedef struct bide_schedule_operation {
    bide_awaiter awaiter;
    bide_scheduler *scheduler;
    bide_context context; /* the coroutine's, afterwards */
    bide_frame back;      /* between the coroutine and what awaits it */
} bide_schedule_operation;

/*
 * The coroutine continues on `scheduler`: the code that runs in it now does so too, until
 * its end or the next of these. With its own scheduler it lets others run first. The coroutine
 * moves whatever the status is: an error says that it was asked to stop, before or in the meantime.
 * `operation` must stay until the coroutine has ended.
 * Threads: any. Errors: -ECANCELED, -ETIMEDOUT (it was asked to stop; it has moved). Suspends:
 * always.
 * Cancel-safe: yes, it cannot be cancelled. Progress: that of posting to `scheduler`.
 */
BIDE_COROUTINE_SCOPED
BIDE_MUST_AWAIT
bide_awaiter *bide_schedule(bide_schedule_operation *operation, bide_scheduler *scheduler);

/* The same after waiting for something. */
typedef struct bide_resume_on_operation {
    bide_schedule_operation schedule;
    bide_awaiter *inner;
    bide_frame after; /* it awaits `inner` */
    int status;
} bide_resume_on_operation;

/*
 * Waits for `inner`, then continues as by bide_schedule. Ends with the status of `inner`, which is
 * not begun if the coroutine was asked to stop and it can be cancelled. `operation` must stay until
 * the coroutine has ended. As a case of a select it does not move the coroutine.
 * Threads: any. Errors: those of `inner`. Suspends: always. Cancel-safe: as its inner operation is.
 * Progress: that of `inner`.
 */
BIDE_COROUTINE_SCOPED BIDE_PASSES_RESULT BIDE_MUST_AWAIT
bide_awaiter *bide_resume_on(bide_resume_on_operation *operation, bide_scheduler *scheduler,
                             bide_awaiter *inner);

/* Awaiting elsewhere. */
typedef struct bide_schedule_on_operation {
    bide_awaiter awaiter;
    bide_awaiter *inner;
    bide_scheduler *scheduler;
    bide_context context; /* of what runs there */
    bide_frame there;     /* it awaits `inner` */
    bide_wrapper_wait_ wait; /* as a case of a select */
} bide_schedule_on_operation;

/*
 * Starts `inner` on `scheduler` (in the caller's context otherwise), and continues where
 * the coroutine is now when `inner` has ended; ends with its status. It is not begun if the
 * coroutine was asked to stop and it can be cancelled. `operation` must stay until the wait has
 * ended. As a case of a select it waits there, but what it takes it takes on the select's own
 * thread.
 * Threads: any. Errors: those of `inner`. Suspends: always. Cancel-safe: as its inner operation is.
 * Progress: that of `inner`.
 */
BIDE_PASSES_RESULT
BIDE_MUST_AWAIT
bide_awaiter *bide_schedule_on(bide_schedule_on_operation *operation, bide_scheduler *scheduler,
                               bide_awaiter *inner);

BIDE_EXTERN_C_END

#endif
