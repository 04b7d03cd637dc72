/*
 * Moving a coroutine to another scheduler, and running an operation on another one. Frames pass from
 * one scheduler to the other by posts: a post releases, and its taker acquires. So one thread at a
 * time owns each frame here, as with the coroutine's own.
 */
#include "bide/schedule.h"

#include "internal.h"

#include "bide/errors.h"
#include "bide/extend/choice.h"
#include "bide/stop.h"

static bool schedule_never_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

/* A posted operation is taken back from its queue: see bide_destroy. */
static bool schedule_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

/* ---- Moving the awaiting coroutine: bide_schedule ---- */

static bide_next back_step(bide_frame *back, unsigned depth);

static const bide_coroutine_type *const back_type = &bide_moves_back_;
static const bide_coroutine_code back_code = {back_step, "bide_schedule", __FILE__, &back_type,
                                              NULL};
static const bide_point back_point = BIDE_POINT(&back_code, NULL, 0, BIDE_AT_AWAIT);
static const bide_point back_posted =
    BIDE_POINT(&back_code, NULL, BIDE_POSTED_BACK_, BIDE_AT_AWAIT);

/* The coroutine has ended: its continuation is posted, because it may belong elsewhere. */
static bide_next back_step(bide_frame *back, unsigned depth)
{
    (void)depth;
    back->awaiter.ops = &back_posted.ops;
    bide_wake_one(&back->awaiter);
    return bide_next_none();
}

/*
 * Moves `frame` to the scheduler. A context that it shares with others stays as it is: the operation
 * contains one that is the coroutine's own. No other thread reads that context while the coroutine is
 * suspended here, since roots and branches take a copy.
 */
static void schedule_move(bide_schedule_operation *operation, bide_frame *frame)
{
    bide_scheduler *scheduler = operation->scheduler;
    if (frame->context == &operation->context) {
        operation->context.scheduler = scheduler;
        return;
    }
    if (frame->context->scheduler == scheduler)
        return;
    /* One frame is in between, however often it moves: that of the first operation. A frame without a
     * continuation was begun by posting, and its own end handles the return. */
    bide_frame *next = bide_continuation_(frame);
    if (next != NULL && next->awaiter.ops != &back_point.ops) {
        operation->back.awaiter.ops = &back_point.ops;
        operation->back.awaiter.link = &frame->awaiter;
        operation->back.awaiter.frame = next;
        operation->back.context = frame->context;
        frame->awaiter.frame = &operation->back;
    }
    operation->context = *frame->context;
    operation->context.scheduler = scheduler;
    frame->context = &operation->context;
}

static bide_frame *schedule_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_schedule_operation *operation =
        bide_container_of(awaiter, bide_schedule_operation, awaiter);
    bide_scheduler *scheduler = operation->scheduler;
    schedule_move(operation, frame);
    if (scheduler == &bide_inline_scheduler)
        bide_yield_inline_();
    bide_post_last_(scheduler, awaiter);
    return NULL;
}

/* The coroutine has moved in any case; the status says whether it was asked to stop. */
static int schedule_resume(bide_awaiter *awaiter)
{
    return bide_stop_reason(awaiter->frame->context->stop);
}

bide_awaiter *bide_schedule(bide_schedule_operation *operation, bide_scheduler *scheduler)
{
    static const bide_awaiter_ops ops = {
        .ready = schedule_never_ready,
        .suspend = schedule_suspend,
        .resume = schedule_resume,
        .withdraw = schedule_withdraw,
        .name = "bide_schedule",
    };
    operation->awaiter.ops = &ops;
    operation->scheduler = scheduler;
    return &operation->awaiter;
}

/* ---- Moving after an operation: bide_resume_on ---- */

static bide_next after_step(bide_frame *after, unsigned depth);

static const bide_coroutine_code after_code = {after_step, "bide_resume_on", __FILE__,
                                               &bide_by_hand, NULL};
static const bide_point after_point = BIDE_POINT(&after_code, NULL, 0, BIDE_AT_AWAIT);

static bide_resume_on_operation *resume_on_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_resume_on_operation, schedule.awaiter);
}

/* `inner` has ended. */
static bide_next after_step(bide_frame *after, unsigned depth)
{
    bide_resume_on_operation *operation = bide_container_of(after, bide_resume_on_operation, after);
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        bide_frame_destroyed(after);
        bide_wrapper_discard(&operation->inner);
        return bide_next_none();
    }
    operation->status = bide_wrapper_take(&operation->inner);
    after->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(
        schedule_suspend(&operation->schedule.awaiter, operation->schedule.awaiter.frame));
}

static bide_frame *resume_on_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_resume_on_operation *operation = resume_on_of(awaiter);
    operation->after.awaiter.ops = &after_point.ops;
    operation->after.awaiter.frame = frame;
    operation->after.context = frame->context;
    return bide_frame_await_in_turn_(&operation->after, operation->inner, &operation->after);
}

static int resume_on_resume(bide_awaiter *awaiter)
{
    return resume_on_of(awaiter)->status;
}

static bide_frame *resume_on_coroutine(bide_awaiter *awaiter)
{
    return &resume_on_of(awaiter)->after;
}

static void resume_on_release(bide_awaiter *awaiter)
{
    bide_wrapper_release(&resume_on_of(awaiter)->inner);
}

/* As a case of a select: the branches of a select do not move it. */
static int resume_on_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    return bide_wrapper_attempt(awaiter, resume_on_of(awaiter)->inner, choice);
}

static bide_awaiter *resume_on_inner(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? resume_on_of(awaiter)->inner : NULL;
}

bide_awaiter *bide_resume_on(bide_resume_on_operation *operation, bide_scheduler *scheduler,
                             bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = {
        .ops = BIDE_WRAPPER_OPS_IN_CHOICE(schedule_never_ready, resume_on_suspend, resume_on_resume,
                                          "bide_resume_on", resume_on_attempt),
        .coroutine = resume_on_coroutine,
        .release = resume_on_release,
        .inner = resume_on_inner,
    };
    operation->schedule.awaiter.ops = &ops.ops;
    operation->schedule.scheduler = scheduler;
    operation->inner = inner;
    return &operation->schedule.awaiter;
}

/* ---- Running an operation elsewhere: bide_schedule_on ---- */

static bide_next there_step(bide_frame *there, unsigned depth);

static const bide_coroutine_code there_code = {there_step, "bide_schedule_on", __FILE__,
                                               &bide_by_hand, NULL};
static const bide_point there_start = BIDE_POINT_START(&there_code);
static const bide_point there_await = BIDE_POINT(&there_code, NULL, 1, BIDE_AT_AWAIT);

static bide_schedule_on_operation *schedule_on_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_schedule_on_operation, awaiter);
}

static bide_awaiter **awaited_there(bide_schedule_on_operation *operation)
{
    return bide_wrapper_awaited_(&operation->inner, &operation->wait);
}

/* Before it begins it is in the other scheduler's queue. */
static void destroy_there(bide_schedule_on_operation *operation)
{
    bide_frame *there = &operation->there;
    if (there->awaiter.ops != &there_start.ops) {
        bide_wrapper_discard(awaited_there(operation));
    } else {
        if (!bide_take_back_from_(operation->scheduler, &there->awaiter))
            bide_misused_("a coroutine was destroyed that is about to begin", &there_start);
        bide_wrapper_abandon(awaited_there(operation));
    }
    bide_frame_destroyed(there);
}

/* On the other scheduler: starts `inner`; at its end returns. */
static bide_next there_step(bide_frame *there, unsigned depth)
{
    bide_schedule_on_operation *operation =
        bide_container_of(there, bide_schedule_on_operation, there);
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        destroy_there(operation);
        return bide_next_none();
    }
    if (there->awaiter.ops == &there_start.ops) {
        there->awaiter.ops = &there_await.ops;
        const bide_awaiter *by =
            operation->wait.is_used ? &operation->wait.awaiter : &operation->awaiter;
        return bide_next_frame(
            bide_frame_await_in_turn_(there, *awaited_there(operation), by->frame));
    }
    operation->wait.status = bide_wrapper_take(awaited_there(operation));
    there->awaiter.ops = &bide_point_finished.ops;
    bide_wake_one(operation->wait.is_used ? &operation->wait.awaiter : &operation->awaiter);
    return bide_next_none();
}

static void begin_there(bide_schedule_on_operation *operation, const bide_frame *frame)
{
    operation->context = *frame->context;
    operation->context.scheduler = operation->scheduler;
    operation->there.awaiter.ops = &there_start.ops;
    operation->there.awaiter.frame = &operation->there; /* while it is posted: see root.c */
    operation->there.context = &operation->context;
    operation->there.awaiter.link = NULL;
    operation->scheduler->post(operation->scheduler, &operation->there.awaiter,
                               &operation->there.awaiter);
}

static bide_frame *schedule_on_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    begin_there(schedule_on_of(awaiter), frame);
    return NULL;
}

static int schedule_on_resume(bide_awaiter *awaiter)
{
    return schedule_on_of(awaiter)->wait.status;
}

static bide_frame *schedule_on_coroutine(bide_awaiter *awaiter)
{
    return &schedule_on_of(awaiter)->there;
}

static void schedule_on_release(bide_awaiter *awaiter)
{
    bide_wrapper_release(&schedule_on_of(awaiter)->inner);
}

static bide_awaiter *schedule_on_inner(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? schedule_on_of(awaiter)->inner : NULL;
}

/* As a case of a select: attempted here, and waited for there. */

static bide_schedule_on_operation *schedule_on_of_wait(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_schedule_on_operation, wait.awaiter);
}

static bide_frame *schedule_on_wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    begin_there(schedule_on_of_wait(awaiter), frame);
    return NULL;
}

static int schedule_on_wait_resume(bide_awaiter *awaiter)
{
    return schedule_on_of_wait(awaiter)->wait.status;
}

static bide_frame *schedule_on_wait_coroutine(bide_awaiter *awaiter)
{
    return &schedule_on_of_wait(awaiter)->there;
}

static void schedule_on_wait_release(bide_awaiter *awaiter)
{
    bide_wrapper_release(&schedule_on_of_wait(awaiter)->wait.inner);
}

static bide_awaiter *schedule_on_wait_inner(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? schedule_on_of_wait(awaiter)->wait.inner : NULL;
}

static int schedule_on_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_wrapper_ops ops = {
        .ops = BIDE_WRAPPER_OPS(schedule_never_ready, schedule_on_wait_suspend,
                                schedule_on_wait_resume, "bide_schedule_on"),
        .coroutine = schedule_on_wait_coroutine,
        .release = schedule_on_wait_release,
        .inner = schedule_on_wait_inner,
    };
    bide_schedule_on_operation *operation = schedule_on_of(awaiter);
    bide_scheduler *here = choice->scheduler;
    choice->scheduler = operation->scheduler;
    int status = bide_wrapper_attempt_by_(awaiter, operation->inner, choice, &operation->wait);
    choice->scheduler = here;
    return status != -EAGAIN ? status
                             : bide_wrapper_wait_begin_(&operation->wait, &ops.ops, choice);
}

bide_awaiter *bide_schedule_on(bide_schedule_on_operation *operation, bide_scheduler *scheduler,
                               bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = {
        .ops =
            BIDE_WRAPPER_OPS_IN_CHOICE(schedule_never_ready, schedule_on_suspend,
                                       schedule_on_resume, "bide_schedule_on", schedule_on_attempt),
        .coroutine = schedule_on_coroutine,
        .release = schedule_on_release,
        .inner = schedule_on_inner,
    };
    operation->awaiter.ops = &ops.ops;
    operation->inner = inner;
    operation->wait.is_used = false;
    operation->scheduler = scheduler;
    return &operation->awaiter;
}
