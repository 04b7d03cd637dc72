/*
 * Starting and destroying coroutines. The caller's thread alone uses a coroutine that is being
 * destroyed, its frame, and the operations that it waits for. Destroying goes from the innermost
 * awaited coroutine outwards: each withdraws its operation, and then runs its `finally` part.
 */
#include "bide/handle.h"

#include "flights.h"
#include "internal.h"

#include "bide/coroutine.h"
#include "bide/stop.h"
#include "bide/extend/wrapper.h"

void *(bide_start)(bide_frame *frame, const bide_point *body, const bide_context *context)
{
    const bide_coroutine_type *type = *body->code->type;
    if (frame == NULL)
        return type->get_return_object_on_allocation_failure != NULL
                   ? type->get_return_object_on_allocation_failure()
                   : NULL;
    bide_frame_init_in(frame, body, context);
    void *object = type->get_return_object != NULL ? type->get_return_object(frame) : frame;
    if (type->initial_suspend != NULL) {
        bide_frame *next = type->initial_suspend(frame);
        if (next != NULL)
            bide_resume(next);
    }
    return object;
}

bool bide_take_back_from_(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    return scheduler->take_back != NULL && scheduler->take_back(scheduler, awaiter);
}

bool bide_take_back_(bide_awaiter *awaiter)
{
    return bide_take_back_from_(awaiter->frame->context->scheduler, awaiter);
}

/* ---- Destroying ---- */

const bide_point bide_point_finished = BIDE_POINT(NULL, NULL, 0, BIDE_AT_END);
const bide_point bide_point_sized_ = BIDE_POINT(NULL, NULL, 0, BIDE_AT_END);

static bool nothing_is_withdrawn(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static const bide_awaiter_ops nothing_ops = {
    .withdraw = nothing_is_withdrawn,
    .name = "(nothing)",
};

/* It is never awaited, and never written to. */
static const bide_awaiter nothing = {&nothing_ops, NULL, NULL};

/*
 * The operation that a suspended frame waits for, behind placeholders; NULL if there is none.
 */
static bide_awaiter *awaited_by(const bide_frame *frame)
{
    const bide_wrapper_ops *wrapper;
    bide_awaiter *awaiter = frame->awaiter.link;
    if (bide_frame_point(frame)->state != BIDE_AT_AWAIT)
        return NULL;
    if (bide_budget_yielded_(frame, awaiter)) /* it was ready, and is posted */
        return awaiter;
    while ((wrapper = bide_wrapper_of(awaiter)) != NULL && wrapper->coroutine == NULL)
        awaiter = wrapper->inner(awaiter, 0);
    return awaiter;
}

/* The coroutine behind an awaiter, running or ended; NULL if there is none. */
static bide_frame *coroutine_of(bide_awaiter *awaiter)
{
    const bide_wrapper_ops *wrapper = bide_wrapper_of(awaiter);
    if (wrapper != NULL)
        return wrapper->coroutine(awaiter);
    return bide_awaiter_is_frame(awaiter) ? (bide_frame *)(void *)awaiter : NULL;
}

/*
 * Whether `child` runs for the coroutine that awaits `awaiter`. An asynchronous generator that has
 * yielded does not: its `next` has ended. A recursive generator does, placed or owned: to be awaited is
 * to be yielded from.
 */
static bool coroutine_runs(const bide_awaiter *awaiter, const bide_frame *child)
{
    const bide_wrapper_ops *wrapper = bide_wrapper_of(awaiter);
    bide_state state = bide_frame_point(child)->state;
    return state != BIDE_AT_END && (state != BIDE_AT_YIELD || wrapper == NULL || wrapper->is_owner);
}

bide_frame *bide_awaited_coroutine_(const bide_frame *frame)
{
    bide_awaiter *awaiter = awaited_by(frame);
    if (awaiter == NULL || bide_budget_yielded_(frame, awaiter))
        return NULL;
    bide_frame *child = coroutine_of(awaiter);
    return child != NULL && coroutine_runs(awaiter, child) ? child : NULL;
}

/* Of a coroutine whose result will not be taken. */
static void release_result(bide_frame *frame)
{
    const bide_coroutine_code *code = bide_frame_point(frame)->code;
    if (code != NULL && code->type != NULL && (*code->type)->release != NULL && frame->error == 0)
        (*code->type)->release(frame);
}

const bide_coroutine_type bide_moves_back_;
const bide_coroutine_type bide_asks_to_stop_;

/*
 * Returns the operation by which the continuation of `ended`, a finished coroutine, was posted; NULL if
 * it was not.
 */
static bide_awaiter *posted_back(const bide_frame *ended)
{
    bide_frame *next = ended->awaiter.frame;
    const bide_point *point = next != NULL ? bide_frame_point(next) : NULL;
    return point != NULL && point->number == BIDE_POSTED_BACK_ && point->code != NULL &&
                   point->code->type != NULL && *point->code->type == &bide_moves_back_
               ? &next->awaiter
               : NULL;
}

/*
 * The coroutines behind `awaiter`, `ended` or several, have ended. If that has posted the frame, takes
 * it back: by the move that it went through, or, for wrappers that do not hand over to it directly, by
 * `awaiter`. Releases the results.
 */
static bool withdraw_ended(bide_awaiter *awaiter, const bide_frame *ended)
{
    const bide_wrapper_ops *wrapper = bide_wrapper_of(awaiter);
    bide_awaiter *posted = ended != NULL ? posted_back(ended) : NULL;
    if (posted == NULL && wrapper != NULL && !wrapper->is_owner)
        posted = awaiter;
    bool is_gone = posted == NULL || bide_take_back_(posted);
    if (wrapper != NULL)
        wrapper->release(awaiter);
    else
        release_result((bide_frame *)(void *)awaiter);
    return is_gone;
}

/* The frame yielded when `awaiter` was ready: takes it back, and releases the result. */
static bool withdraw_ready(const bide_frame *frame, bide_awaiter *awaiter)
{
    bide_awaiter *inner = awaiter;
    bool is_gone = bide_take_back_from_(frame->context->scheduler, awaiter);
    awaiter->frame = NULL;
    bide_wrapper_release(&inner);
    return is_gone;
}

/* Withdraws `awaiter`, which the frame waits for. No coroutine runs behind it. */
static void frame_withdraw_awaited(bide_frame *frame, bide_awaiter *awaiter)
{
    bool is_gone;
    if (awaiter == &bide_running_) {
        bide_misused_("a running coroutine was destroyed", bide_frame_point(frame));
        return;
    }
    if (awaiter->ops->withdraw == NULL) {
        bide_misused_by_("a coroutine was destroyed while it waits for what cannot be withdrawn",
                         frame, NULL);
        return;
    }
    bide_stop_discard_(frame);
    if (bide_budget_yielded_(frame, awaiter))
        is_gone = withdraw_ready(frame, awaiter);
    else if (bide_wrapper_of(awaiter) != NULL || bide_awaiter_is_frame(awaiter))
        is_gone = withdraw_ended(awaiter, coroutine_of(awaiter));
    else
        is_gone = awaiter->ops->withdraw(awaiter) || bide_take_back_(awaiter);
    if (!is_gone)
        bide_misused_by_("a coroutine was destroyed that is about to be resumed", frame, NULL);
}

/* Ends a frame that waits for nothing. */
static void frame_end_destroyed(bide_frame *frame)
{
    const bide_point *point = bide_frame_point(frame);
    const bide_coroutine_code *code = point->code;
    bool has_begun = point->state != BIDE_AT_START;
    if (code->type != NULL && (has_begun || *code->type == bide_by_hand)) {
        if ((*code->type)->destroyed != NULL && has_begun)
            (*code->type)->destroyed(frame);
        code->step(frame, BIDE_DESTROY_); /* returns NULL: no continuation runs */
        return;
    }
    frame->awaiter.ops = code->finished != NULL ? &code->finished->ops : &bide_point_finished.ops;
    frame->error = -ECANCELED;
}

/*
 * Destroys from the innermost coroutine outwards. In a loop, because coroutines may await each other
 * to any depth. On the way in, each child's continuation is set to its parent, whatever was between,
 * so that the loop finds its way back.
 */
static void frame_destroy(bide_frame *top)
{
    bide_frame *at = top;
    bool had_child = false; /* whether a coroutine was destroyed that `at` waited for */
    for (;;) {
        bide_frame *child = bide_awaited_coroutine_(at);
        if (child != NULL) {
            child->awaiter.frame = at;
            at = child;
            had_child = false;
            continue;
        }
        bide_awaiter *awaiter = awaited_by(at);
#if BIDE_FLIGHTS_
        if (awaiter != NULL)
            bide_flights_destroyed_(at);
#endif
        if (awaiter != NULL && !had_child)
            frame_withdraw_awaited(at, awaiter);
        else if (awaiter != NULL && bide_wrapper_of(awaiter) != NULL)
            bide_wrapper_of(awaiter)->release(awaiter);
        bide_frame *parent = at->awaiter.frame;
        bool is_top = at == top;
        frame_end_destroyed(at);
        if (is_top)
            return;
        at = parent;
        had_child = true;
    }
}

void bide_destroy(bide_frame *frame)
{
    if (!bide_done(frame))
        bide_run_after_(frame_destroy, frame);
}

bool bide_frame_withdraw_(bide_awaiter *awaiter)
{
    bide_frame *frame = (bide_frame *)(void *)awaiter;
    if (bide_done(frame))
        return withdraw_ended(awaiter, frame);
    bide_destroy(frame);
    return true;
}

bool bide_wrapper_withdraw_(bide_awaiter *awaiter)
{
    const bide_wrapper_ops *wrapper = bide_wrapper_of(awaiter);
    bool had_child = false;
    if (wrapper->coroutine == NULL) {
        bide_awaiter *inner = wrapper->inner(awaiter, 0);
        return inner->ops->withdraw != NULL &&
               (inner->ops->withdraw(inner) || bide_take_back_(inner));
    }
    for (bide_frame *child;
         (child = wrapper->coroutine(awaiter)) != NULL && coroutine_runs(awaiter, child);
         had_child = true)
        bide_destroy(child);
    if (!had_child)
        return withdraw_ended(awaiter, wrapper->coroutine(awaiter));
    wrapper->release(awaiter);
    return true;
}

/* ---- Wrappers ---- */

static const bide_coroutine_type by_hand;
const bide_coroutine_type *const bide_by_hand = &by_hand;

void bide_wrapper_discard(bide_awaiter **inner)
{
    bide_flight_ends_(*inner);
    *inner = (bide_awaiter *)(uintptr_t)&nothing;
}

void bide_wrapper_release(bide_awaiter **inner)
{
    bide_awaiter *awaiter = *inner;
    const bide_wrapper_ops *wrapper = bide_wrapper_of(awaiter);
    bide_wrapper_discard(inner);
    if (wrapper != NULL)
        wrapper->release(awaiter);
    else if (bide_awaiter_is_frame(awaiter))
        release_result((bide_frame *)(void *)awaiter);
    else if (awaiter->ops->withdraw != NULL)
        awaiter->ops->withdraw(awaiter);
}

/* In a loop, except for operations side by side. */
static void wrapper_abandon(bide_awaiter *awaiter) /* NOLINT(misc-no-recursion) */
{
    const bide_wrapper_ops *wrapper;
    while (awaiter != NULL && (wrapper = bide_wrapper_of(awaiter)) != NULL) {
        if (wrapper->is_owner) {
            wrapper->release(awaiter);
            return;
        }
        bide_awaiter *last = wrapper->inner != NULL ? wrapper->inner(awaiter, 0) : NULL;
        bide_awaiter *next;
        for (size_t i = 1; last != NULL && (next = wrapper->inner(awaiter, i)) != NULL; i++) {
            wrapper_abandon(last);
            last = next;
        }
        awaiter = last;
    }
}

void bide_wrapper_abandon(bide_awaiter **inner)
{
    bide_flight_ends_(*inner); /* before it is freed */
    wrapper_abandon(*inner);
    bide_wrapper_discard(inner);
}
