/*
 * Wrappers: operations that run other operations, inside coroutines of their own or in place of
 * themselves. The common part of bide_with_deadline, bide_when_all, bide_then and the like; for authors
 * of more of them. Floor: coroutine. A sketch of the simpler kind is at bide_forward below.
 *
 *     awaiting coroutine ---link---> wrapper  . . .  its coroutine ---link---> inner operation
 *             ^                                            |
 *             +----------------continuation----------------+
 *
 * A wrapper describes its inner operation by a table that begins with an ordinary table. Rules
 * for a wrapper:
 * 1. The end of its coroutine returns that frame's own continuation (frame->awaiter.frame), never
 *    one that was remembered, because bide_schedule puts a frame between the two when `inner` moves
 *    the coroutine.
 * 2. It takes the result of an inner operation by bide_wrapper_take, and keeps the status for its
 *    own `resume`.
 * 3. Its `release` gives back the results of its inner operations if the awaiting coroutine is
 *    destroyed before it resumes.
 * 4. Its coroutine's step is called with BIDE_DESTROY_ when that coroutine is destroyed: see
 *    bide_by_hand.
 * 5. A wrapper of one operation that is to be a case of a select has an `attempt`, which calls
 *    bide_wrapper_attempt, and passes on its wait or wraps it. A select refuses the others.
 *
 * Why it is correct: bide_destroy walks through wrappers by that table, in a loop, so a chain of any
 * depth is destroyed on a small stack. So does inspection (inspect.h).
 */
#ifndef BIDE_EXTEND_WRAPPER_H
#define BIDE_EXTEND_WRAPPER_H

#include "bide/extend/coroutine_type.h"
#include "bide/errors.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_wrapper_ops {
    bide_awaiter_ops ops; /* by BIDE_WRAPPER_OPS */

    /*
     * One of its coroutines that has not ended; if all have, one that has, or NULL. Called when the
     * wrapper was suspended. NULL: it has none, and inner(awaiter, 0) is waited for in its place.
     */
    bide_frame *(*coroutine)(bide_awaiter *awaiter);

    /*
     * The awaiting coroutine is destroyed, and none of the wrapper's own is left. Gives back what
     * inner operations that ended have had (bide_wrapper_release), and lets go of whatever else
     * the wrapper holds. It may have ended without having been suspended, and its result may have
     * been taken.
     */
    void (*release)(bide_awaiter *awaiter);

    /*
     * The operation of this index that it runs; NULL: there are no more. Called when nothing has
     * begun. NULL: none.
     */
    bide_awaiter *(*inner)(bide_awaiter *awaiter, size_t index);

    /*
     * Of bide_owned alone: it is awaited as the frame is that it owns, whose end hands over to the
     * awaiting coroutine; and `resume` and `release` free both.
     */
    bool is_owner;

    /* Where in the wrapper it keeps a pointer to its one inner operation, for dumps to show that; 0:
     * it has none, or several. */
    size_t inner_at;

    /*
     * Its `ready` is that of inner(awaiter, 0) (bide_awaiter_had), which it awaits under the awaiting
     * coroutine's stop source, or under one below that. So a request ends the inner operation in its stead.
     */
    bool is_ready_as_inner;
} bide_wrapper_ops;

/* The first member of a wrapper's table. */
#define BIDE_WRAPPER_OPS(ready, suspend, resume, name)                                           \
    {                                                                                            \
        (ready), (suspend), (resume), NULL, bide_wrapper_withdraw_, (name), NULL, BIDE_UNDO_NONE \
    }

/* The same for a wrapper that can be a case of a select: with an `attempt`. */
#define BIDE_WRAPPER_OPS_IN_CHOICE(ready, suspend, resume, name, attempt)              \
    {                                                                                  \
        (ready), (suspend), (resume), NULL, bide_wrapper_withdraw_, (name), (attempt), \
            BIDE_UNDO_INNER                                                            \
    }

/* The withdraw of all wrappers. It is also what tells them among awaiters. */
bool bide_wrapper_withdraw_(bide_awaiter *awaiter);

/*
 * The table of a wrapper; NULL if the awaiter is none.
 * Threads: the waiter's. Progress: wait-free.
 */
BIDE_INLINE const bide_wrapper_ops *bide_wrapper_of(const bide_awaiter *awaiter)
{
    return awaiter->ops->withdraw == bide_wrapper_withdraw_
               ? (const bide_wrapper_ops *)(const void *)awaiter->ops
               : NULL;
}

/*
 * Makes *inner an operation of which there is nothing to give back.
 * Threads: the waiter's. Progress: wait-free.
 */
void bide_wrapper_discard(bide_awaiter **inner);

/*
 * Takes the result of *inner, which has ended; returns its status.
 * Threads: the waiter's. Errors: those of the operation. Progress: that of its `resume`.
 */
BIDE_INLINE int bide_wrapper_take(bide_awaiter **inner)
{
    bide_awaiter *awaiter = *inner;
    const bide_wrapper_ops *wrapper = bide_wrapper_of(awaiter);
    if (wrapper != NULL && wrapper->is_owner) /* its resume frees it */
        bide_wrapper_discard(inner);
    bide_flight_ends_(awaiter);
    return bide_awaiter_resume(awaiter, awaiter->ops);
}

/*
 * *inner has ended, taken or not, and what it had will have no user: gives that back, once.
 * Threads: the waiter's. Progress: that of its `withdraw`.
 */
void bide_wrapper_release(bide_awaiter **inner);

/*
 * For the `attempt` of a wrapper: attempts `inner`, its operation inner(wrapper, 0); one that has no
 * `attempt` is taken if it is ready, or if it has ended in its wait, by choice->ended. Returns the
 * result, or -EAGAIN, and then choice->wait is to be awaited: by the select itself, or by a wait of
 * the wrapper's own, which then stores choice->ended before the next call, and discards what it
 * awaited if that call has set choice->kept. wrapper->link keeps the table of `inner` until the
 * select has ended; so the wrapper's own wait is another awaiter than `wrapper`.
 * Threads: the select's. Errors: -EAGAIN, those of `inner`. Suspends: never. Progress: that of its
 * `attempt`.
 */
int bide_wrapper_attempt(bide_awaiter *wrapper, bide_awaiter *inner, bide_choice *choice);

/*
 * *inner will not be begun: frees what it owns.
 * Threads: the waiter's. Progress: that of the allocator.
 */
void bide_wrapper_abandon(bide_awaiter **inner);

/* ---- Forwarding: one inner operation, in place of the wrapper itself ---- */

/*
 * The first member of an operation that passes on to one other, and adds something to what that
 * ends with. Nothing runs in between: the inner operation wakes the awaiting coroutine itself, and
 * `resume` is called there. It is destroyed, asked to stop and looked into as the inner one is.
 *
 *     struct timed {
 *         bide_forward forward;                          // first
 *         uint64_t begun, took;
 *     };
 *     static int timed_resume(bide_awaiter *awaiter)     // the inner operation has ended
 *     {
 *         struct timed *self = (struct timed *)(void *)awaiter;
 *         int status = bide_forward_take(&self->forward);
 *         self->took = bide_platform.now() - self->begun;
 *         return status;
 *     }
 *     static bide_awaiter *timed(struct timed *self, bide_awaiter *inner)
 *     {
 *         static const bide_wrapper_ops ops = BIDE_FORWARD_OPS(timed_resume, "timed");
 *         self->begun = bide_platform.now();
 *         return bide_forward_init(&self->forward, &ops, inner);
 *     }
 */
typedef struct bide_forward {
    bide_awaiter awaiter;
    bide_awaiter *inner;
} bide_forward;

BIDE_INLINE bool bide_forward_ready_(bide_awaiter *awaiter)
{
    return bide_awaiter_had(((bide_forward *)(void *)awaiter)->inner);
}

BIDE_INLINE bide_frame *bide_forward_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_awaiter *inner = ((bide_forward *)(void *)awaiter)->inner;
    bide_flight_begins_(inner, frame);
    inner->frame = frame;
    return bide_awaiter_suspend(inner, inner->ops, frame);
}

BIDE_INLINE void bide_forward_release_(bide_awaiter *awaiter)
{
    bide_wrapper_release(&((bide_forward *)(void *)awaiter)->inner);
}

BIDE_INLINE bide_awaiter *bide_forward_inner_(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? ((bide_forward *)(void *)awaiter)->inner : NULL;
}

/* As a case of a select: `resume` is called once, with the result of the attempt that succeeded. */
int bide_forward_attempt_(bide_awaiter *awaiter, bide_choice *choice);

/*
 * Its table, a bide_wrapper_ops. `resume` calls bide_forward_take, once, and returns the status, not
 * -EAGAIN if a select is to attempt it; `name` is the operation's.
 * Threads: any may use the table.
 */
#define BIDE_FORWARD_OPS(resume, name)                                                             \
    {                                                                                              \
        BIDE_WRAPPER_OPS_IN_CHOICE(bide_forward_ready_, bide_forward_suspend_, (resume), (name),   \
                                   bide_forward_attempt_),                                         \
            NULL, bide_forward_release_, bide_forward_inner_, false,                               \
            offsetof(bide_forward, inner), true                                                    \
    }

/*
 * Makes it pass on to `inner`, by a table of BIDE_FORWARD_OPS. `forward` is the caller's until the
 * wait has ended. Cannot fail.
 * Threads: any. Errors: those of `resume`. Suspends: if `inner` does. Cancel-safe: as its inner
 * operation is. Progress: that of `inner`.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_forward_init(bide_forward *forward, const bide_wrapper_ops *ops,
                                            bide_awaiter *inner)
{
    forward->awaiter.ops = &ops->ops;
    forward->inner = inner;
    return &forward->awaiter;
}

/*
 * For `resume`: what the inner operation has ended with, 0 or a negative errno. Once.
 * Threads: the waiter's. Errors: those of `inner`. Progress: that of its `resume`.
 */
BIDE_INLINE int bide_forward_take(bide_forward *forward)
{
    return bide_wrapper_take(&forward->inner);
}

/* ---- Coroutines by hand ---- */

/*
 * For the `type` of a bide_coroutine_code: a coroutine whose step function is written by hand and
 * does something when it is destroyed. It is then called with a depth of BIDE_DESTROY_, wherever it
 * stands, once nothing that it awaits is left. It calls bide_frame_destroyed, releases what it
 * holds, which may be the frame itself, and returns NULL.
 */
extern const bide_coroutine_type *const bide_by_hand;

/*
 * Marks a frame as ended by having been destroyed.
 * Threads: the coroutine's. Progress: wait-free.
 */
BIDE_INLINE void bide_frame_destroyed(bide_frame *frame)
{
    frame->awaiter.ops = &bide_point_finished.ops;
    frame->error = -ECANCELED;
}

BIDE_EXTERN_C_END

#endif
