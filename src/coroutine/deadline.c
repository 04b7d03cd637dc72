/*
 * Deadlines. The coroutine that set a deadline owns it, except from the moment when its timer is
 * posted until its frame has requested the stop.
 *
 *     state   SET       the timer is set, or its frame is to run, or runs
 *             pointer   the same, and a waiter for its end
 *             ENDED     the timer was cleared, or the frame has run
 *
 *     the frame, last:  SET -> ENDED       pointer -> ENDED, and wake
 *     end:              clear the timer; if it was posted, SET -> pointer, or find ENDED
 *
 * 1. Both modify one word, so either the frame finds the waiter, or the waiter finds ENDED. The
 *    frame does not touch the deadline after that.
 * 2. The frame releases its work (the request) with that, and ending the deadline acquires it,
 *    before the memory is freed. The waiter releases itself, and the frame acquires that.
 * 3. A timer that was cleared leaves nothing: the scheduler's lock has ordered that.
 */
#include "bide/deadline.h"

#include "internal.h"

#include "bide/errors.h"
#include "bide/sleep.h"
#include "bide/extend/choice.h"

#undef bide_deadline_init
#undef bide_with_timeout

#define DEADLINE_SET   BIDE_DEADLINE_SET
#define DEADLINE_ENDED BIDE_DEADLINE_ENDED

/* ---- The deadline ---- */

static bide_next due_step(bide_frame *frame, unsigned depth)
{
    bide_deadline *deadline = bide_container_of(frame, bide_deadline, frame);
    (void)depth;
    bide_stop_request_with(&deadline->source, -ETIMEDOUT);
    frame->awaiter.ops = &bide_point_finished.ops; /* bide_deadline_passed */
    /* release, acquire: 2. Partners are try_end's load and end_suspend's exchange. */
    uintptr_t waiter = bide_atomic_exchange(&deadline->state, DEADLINE_ENDED, acq_rel);
    if (waiter != DEADLINE_SET) {
        bide_awaiter *awaiter = (bide_awaiter *)waiter;
        bide_wake_one(awaiter);
    }
    return bide_next_none();
}

static const bide_coroutine_type *const due_type = &bide_asks_to_stop_;
static const bide_coroutine_code due_code = {due_step, "bide_deadline", __FILE__, &due_type, NULL};
static const bide_point due_point = BIDE_POINT_START(&due_code);
static const bide_awaiter_ops timer_ops = {
    .name = "bide_deadline",
};

static int set_deadline(bide_deadline *deadline, const bide_context *context, uint64_t time)
{
    bide_scheduler *scheduler = context->scheduler;
    if (scheduler->set_timer == NULL)
        return -ENOTSUP;
    deadline->context = *context;
    deadline->context.stop = &deadline->source;
    bide_atomic_init(&deadline->state, DEADLINE_SET);
    deadline->frame.awaiter.ops = &due_point.ops;
    deadline->frame.awaiter.frame = NULL; /* nobody awaits it: for traces */
    deadline->frame.context = &deadline->context;
    bide_timer_init(&deadline->timer, time);
    deadline->timer.awaiter.ops = &timer_ops;
    deadline->timer.awaiter.frame = &deadline->frame;
    bide_stop_source_init(&deadline->source);
    if (context->stop != NULL)
        bide_stop_source_attach(&deadline->source, context->stop);
    int error = scheduler->set_timer(scheduler, &deadline->timer);
    if (error != 0)
        bide_stop_source_detach(&deadline->source);
    return error;
}

int bide_deadline_init_checked_(bide_deadline *deadline, const bide_context *context, uint64_t time,
                                const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(bide_is_duration_(context->scheduler, time)))
        bide_misuse_(BIDE_IS_DURATION_, function, file, line);
    return set_deadline(deadline, context, time);
}

int bide_deadline_init(bide_deadline *deadline, const bide_context *context, uint64_t time)
{
    if (BIDE_DEBUG)
        return bide_deadline_init_checked_(deadline, context, time, "bide_deadline_init", __FILE__,
                                           __LINE__);
    return set_deadline(deadline, context, time);
}

bool bide_deadline_try_stop(bide_deadline *deadline)
{
    bide_scheduler *scheduler = deadline->context.scheduler;
    if (scheduler == NULL) /* zeros */
        return true;
    if (scheduler->clear_timer(scheduler, &deadline->timer))
        bide_atomic_store(&deadline->state, DEADLINE_ENDED,
                          relaxed); /* relaxed: 3; the deadline is the caller's */
    /* acquire: 2, partner is due_step's exchange. */
    if (bide_atomic_load(&deadline->state, acquire) != DEADLINE_ENDED)
        return false;
    bide_stop_source_detach(&deadline->source);
    return true;
}

/* ---- Ending a deadline ---- */

static bide_deadline_waiter *deadline_waiter_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_deadline_waiter, awaiter);
}

static bool end_ready(bide_awaiter *awaiter)
{
    return bide_deadline_try_stop(deadline_waiter_of(awaiter)->deadline);
}

static bide_frame *end_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    uintptr_t state = DEADLINE_SET;
    /* release: 2, partner is due_step's exchange. acquire if it fails: 2, the same. */
    bool waits = bide_atomic_compare_exchange(&deadline_waiter_of(awaiter)->deadline->state, &state,
                                              (uintptr_t)awaiter, release, acquire);
    return waits ? NULL : frame;
}

static int end_resume(bide_awaiter *awaiter)
{
    bide_stop_source_detach(&deadline_waiter_of(awaiter)->deadline->source);
    return 0;
}

/*
 * Ends a deadline on a thread of its scheduler: a posted timer is in the queue, or, in a pool, runs on
 * another thread.
 */
static bool end_here(bide_deadline *deadline)
{
    if (bide_deadline_try_stop(deadline))
        return true;
    if (!bide_take_back_(&deadline->timer.awaiter))
        return false;
    bide_atomic_store(&deadline->state, DEADLINE_ENDED,
                      relaxed); /* relaxed: as for a cleared timer */
    bide_stop_source_detach(&deadline->source);
    return true;
}

static bool end_withdraw(bide_awaiter *awaiter)
{
    uintptr_t state = (uintptr_t)awaiter;
    bide_deadline *deadline = deadline_waiter_of(awaiter)->deadline;
    /* relaxed: if it fails, the deadline has ended, and the waiter was posted; otherwise it goes
     * back to the coroutine that set it. */
    if (bide_atomic_compare_exchange(&deadline->state, &state, DEADLINE_SET, relaxed, relaxed))
        return end_here(deadline);
    bide_stop_source_detach(&deadline->source);
    return false;
}

bide_awaiter *bide_deadline_stop(bide_deadline_waiter *waiter, bide_deadline *deadline)
{
    static const bide_awaiter_ops ops = {
        .ready = end_ready,
        .suspend = end_suspend,
        .resume = end_resume,
        .withdraw = end_withdraw,
        .name = "bide_deadline_stop",
    };
    waiter->awaiter.ops = &ops;
    waiter->deadline = deadline;
    return &waiter->awaiter;
}

/* ---- An operation under a deadline ---- */

static bide_next limited_step(bide_frame *frame, unsigned depth);

static const bide_coroutine_code limited_code = {limited_step, "bide_with_deadline", __FILE__,
                                                 &bide_by_hand, NULL};
static const bide_point limited_inner = BIDE_POINT(&limited_code, NULL, 0, BIDE_AT_AWAIT);
static const bide_point limited_end = BIDE_POINT(&limited_code, NULL, 1, BIDE_AT_AWAIT);

static bide_with_deadline_operation *limited_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_with_deadline_operation, awaiter);
}

static bide_awaiter **limited_awaited(bide_with_deadline_operation *operation)
{
    return bide_wrapper_awaited_(&operation->inner, &operation->wait);
}

static void destroy_limited(bide_with_deadline_operation *operation)
{
    bide_frame *frame = &operation->frame;
    if (frame->awaiter.ops == &limited_end.ops)
        bide_wrapper_release(limited_awaited(operation)); /* the deadline has ended */
    else if (!end_here(&operation->deadline))
        bide_misused_by_("a coroutine was destroyed while its deadline asks it to stop", frame,
                         NULL);
    bide_frame_destroyed(frame);
    bide_wrapper_discard(limited_awaited(operation));
}

/*
 * At the first step `inner` has ended, at the second the deadline. Only then the result is taken:
 * until then the operation can still undo it.
 */
static bide_next limited_step(bide_frame *frame, unsigned depth)
{
    bide_with_deadline_operation *operation =
        bide_container_of(frame, bide_with_deadline_operation, frame);
    bide_awaiter *end = &operation->end.awaiter;
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        destroy_limited(operation);
        return bide_next_none();
    }
    if (frame->awaiter.ops == &limited_inner.ops) {
        end = bide_deadline_stop(&operation->end, &operation->deadline);
        frame->awaiter.ops = &limited_end.ops;
        bide_frame *next = bide_frame_await(frame, end);
        if (next != frame)
            return bide_next_frame(next);
    }
    bide_awaiter_resume(end, end->ops);
    operation->passed = bide_deadline_passed(&operation->deadline);
    operation->wait.status = bide_wrapper_take(limited_awaited(operation));
    if (operation->wait.is_used)
        operation->is_late = bide_now(frame->context) >= operation->time;
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(frame->awaiter.frame);
}

/* A ready operation needs no deadline. */
static bool limited_ready(bide_awaiter *awaiter)
{
    bide_with_deadline_operation *operation = limited_of(awaiter);
    if (!bide_awaiter_had(operation->inner))
        return false;
    operation->wait.status = bide_wrapper_take(&operation->inner);
    return true;
}

static bide_frame *limited_begin(bide_with_deadline_operation *operation, bide_frame *frame)
{
    bide_frame *limited = &operation->frame;
    if (operation->is_duration) {
        uint64_t now = bide_now(frame->context);
        operation->time =
            operation->time < BIDE_FOREVER - now ? now + operation->time : BIDE_FOREVER;
        operation->is_duration = false;
    }
#if BIDE_DEBUG
    bide_check_time_(frame, operation->time);
#endif
    operation->wait.status = set_deadline(&operation->deadline, frame->context, operation->time);
    if (operation->wait.status != 0) {
        operation->failed = true;
        bide_wrapper_abandon(limited_awaited(operation));
        limited->awaiter.ops = &bide_point_finished.ops;
        return frame;
    }
    bide_awaiter *inner = *limited_awaited(operation);
    limited->awaiter.ops = &limited_inner.ops;
    limited->awaiter.frame = frame;
    limited->context = &operation->deadline.context;
    limited->awaiter.link = inner;
    bide_flight_begins_(inner, limited);
    inner->frame = limited;
    return bide_awaiter_suspend(inner, inner->ops, limited);
}

static bide_frame *limited_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return limited_begin(limited_of(awaiter), frame);
}

static int limited_resume(bide_awaiter *awaiter)
{
    return limited_of(awaiter)->wait.status;
}

static bide_frame *limited_coroutine(bide_awaiter *awaiter)
{
    return &limited_of(awaiter)->frame;
}

static void limited_release(bide_awaiter *awaiter)
{
    bide_wrapper_release(&limited_of(awaiter)->inner);
}

static bide_awaiter *limited_inner_of(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? limited_of(awaiter)->inner : NULL;
}

/* ---- The same as a case of a select ---- */

static bide_with_deadline_operation *limited_of_wait(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_with_deadline_operation, wait.awaiter);
}

static bide_frame *limited_wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return limited_begin(limited_of_wait(awaiter), frame);
}

static int limited_wait_resume(bide_awaiter *awaiter)
{
    return limited_of_wait(awaiter)->wait.status;
}

static bide_frame *limited_wait_coroutine(bide_awaiter *awaiter)
{
    return &limited_of_wait(awaiter)->frame;
}

static void limited_wait_release(bide_awaiter *awaiter)
{
    bide_wrapper_release(&limited_of_wait(awaiter)->wait.inner);
}

static bide_awaiter *limited_wait_inner(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? limited_of_wait(awaiter)->wait.inner : NULL;
}

/* After a wait, when `inner` cannot be had: what the deadline makes of that. */
static int limited_wait_result(const bide_with_deadline_operation *operation)
{
    if (operation->is_late)
        return -ETIMEDOUT;
    return operation->failed ? operation->wait.status : -EAGAIN;
}

/* Its wait is that of `inner`, under the deadline. The select cancels it too. */
static int limited_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_wrapper_ops ops = {
        .ops =
            BIDE_WRAPPER_OPS(NULL, limited_wait_suspend, limited_wait_resume, "bide_with_deadline"),
        .coroutine = limited_wait_coroutine,
        .release = limited_wait_release,
        .inner = limited_wait_inner,
        .inner_at = offsetof(bide_wrapper_wait_, inner),
    };
    bide_with_deadline_operation *operation = limited_of(awaiter);
    int status = bide_wrapper_attempt_by_(awaiter, operation->inner, choice, &operation->wait);
    if (status == -EAGAIN && choice->again) {
        status = limited_wait_result(operation);
        operation->passed |= operation->is_late;
    }
    return status != -EAGAIN ? status
                             : bide_wrapper_wait_begin_(&operation->wait, &ops.ops, choice);
}

static bide_awaiter *limited_init(bide_with_deadline_operation *operation,
                                  const bide_wrapper_ops *ops, uint64_t time, bool is_duration,
                                  bide_awaiter *inner)
{
    operation->awaiter.ops = &ops->ops;
    operation->inner = inner;
    operation->time = time;
    operation->is_duration = is_duration;
    operation->passed = false;
    operation->wait.is_used = false;
    operation->is_late = false;
    operation->failed = false;
    return &operation->awaiter;
}

/* The two differ in their names only, which dumps show. */
#define LIMITED_OPS(name)                                                                         \
    {                                                                                             \
        .ops = BIDE_WRAPPER_OPS_IN_CHOICE(limited_ready, limited_suspend, limited_resume, (name), \
                                          limited_attempt),                                       \
        .coroutine = limited_coroutine, .release = limited_release, .inner = limited_inner_of,    \
        .inner_at = offsetof(bide_with_deadline_operation, inner), .is_ready_as_inner = true,     \
    }

bide_awaiter *bide_with_deadline(bide_with_deadline_operation *operation, uint64_t time,
                                 bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = LIMITED_OPS("bide_with_deadline");
    return limited_init(operation, &ops, time, false, inner);
}

bide_awaiter *bide_with_timeout(bide_with_deadline_operation *operation, uint64_t duration,
                                bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = LIMITED_OPS("bide_with_timeout");
    return limited_init(operation, &ops, duration, true, inner);
}
