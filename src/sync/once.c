/*
 * Work that is done once: the slow half, and operations that run once. One coroutine or thread at a
 * time is the runner; any others wait. The argument: once.h, and docs/internals/waiter_queue.md.
 */
#include "bide/once.h"

#include "bide/extend/wrapper.h"

#define RUNS ((uintptr_t)BIDE_ONCE_RUNS_)
#define DONE ((uintptr_t)BIDE_ONCE_DONE_)

static bool once_admit(const bide_queue_waiter *waiter, uintptr_t *value)
{
    (void)waiter;
    bide_assert(*value == 0 || *value == RUNS || *value == DONE);
    if (*value == 0)
        *value = RUNS;
    else if (*value != DONE)
        return false;
    return true;
}

static const bide_waiter_queue_ops once_rules = {.admit = once_admit};

bool bide_once_try_run_(bide_once *once)
{
    uintptr_t state = 0;
    /* acquire: partner is the release of a runner that failed. */
    return bide_atomic_compare_exchange(&once->queue.state, &state, RUNS, acquire, relaxed);
}

static bool was_done(bide_waiter_queue *queue)
{
    /* relaxed: an admitted waiter has acquired it; and only the runner sets it. */
    return (bide_atomic_load(&queue->state, relaxed) & DONE) != 0;
}

bide_frame *bide_once_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    static const bide_awaiter_ops waiting = {
        .ready = bide_once_ready_,
        .suspend = bide_once_suspend_,
        .resume = bide_once_waited_,
        .cancel = bide_once_cancel_,
        .withdraw = bide_once_withdraw_,
        .name = "bide_once_start",
    };
    awaiter->ops = &waiting;
    return bide_waiter_queue_suspend((bide_queue_waiter *)(void *)awaiter, &once_rules, frame);
}

int bide_once_waited_(bide_awaiter *awaiter)
{
    bide_once_waiter *waiter = (bide_once_waiter *)(void *)awaiter;
    waiter->runs = !was_done(waiter->waiter.queue);
    return 0;
}

void bide_once_cancel_(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel((bide_queue_waiter *)(void *)awaiter, &once_rules);
}

bool bide_once_withdraw_(bide_awaiter *awaiter)
{
    bide_once_waiter *waiter = (bide_once_waiter *)(void *)awaiter;
    if (bide_waiter_queue_withdraw(awaiter, &once_rules))
        return true;
    if (!was_done(waiter->waiter.queue))
        bide_once_finish_(waiter, false);
    return false;
}

void bide_once_finish_(bide_once_waiter *waiter, bool done)
{
    bide_waiter_queue *queue = waiter->waiter.queue;
    /* relaxed: put validates it. */
    uintptr_t state = bide_atomic_load(&queue->state, relaxed);
    waiter->runs = false;
    for (;;) {
        if (BIDE_UNLIKELY((state & RUNS) == 0)) {
            bide_platform.misuse("a once is ended that nobody runs", __func__, __FILE__, __LINE__);
            return;
        }
        if (bide_waiter_queue_put(queue, &once_rules, &state, done ? DONE : (uintptr_t)0))
            return;
        bide_atomic_retry();
    }
}

void bide_once_close(bide_once *once)
{
    bide_waiter_queue_close(&once->queue, &once_rules);
}

/* ---- An operation that is run once ---- */

static bide_next run_step(bide_frame *frame, unsigned depth);

static const bide_coroutine_code run_code = {run_step, "bide_once_run", __FILE__, &bide_by_hand,
                                             NULL};
static const bide_point run_begins = BIDE_POINT(&run_code, NULL, 0, BIDE_AT_AWAIT);
static const bide_point run_runs = BIDE_POINT(&run_code, NULL, 1, BIDE_AT_AWAIT);

static bide_once_operation *once_operation_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_once_operation, awaiter);
}

static void destroy_run(bide_once_operation *operation)
{
    if (operation->frame.awaiter.ops == &run_runs.ops) {
        bide_wrapper_discard(&operation->inner);
        bide_once_finish_(&operation->begin, false);
    } else {
        bide_wrapper_abandon(&operation->inner);
    }
    bide_frame_destroyed(&operation->frame);
}

/* At the first step it is the runner, or the work is done; at the second `inner` has ended. */
static bide_next run_step(bide_frame *frame, unsigned depth)
{
    bide_once_operation *operation = bide_container_of(frame, bide_once_operation, frame);
    bide_awaiter *begin = &operation->begin.waiter.awaiter;
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        destroy_run(operation);
        return bide_next_none();
    }
    if (frame->awaiter.ops == &run_begins.ops) {
        operation->status = bide_awaiter_resume(begin, begin->ops);
        if (operation->status == 0 && operation->begin.runs) {
            frame->awaiter.ops = &run_runs.ops;
            bide_frame *next = bide_frame_await_by_(frame, operation->inner, frame);
            if (next != frame)
                return bide_next_frame(next);
        } else {
            bide_wrapper_abandon(&operation->inner);
        }
    }
    if (frame->awaiter.ops == &run_runs.ops) {
        operation->status = bide_wrapper_take(&operation->inner);
        bide_once_finish_(&operation->begin, operation->status >= 0);
    }
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(frame->awaiter.frame);
}

static bool run_ready(bide_awaiter *awaiter)
{
    bide_once_operation *operation = once_operation_of(awaiter);
    if (!bide_once_is_done(bide_container_of(operation->begin.waiter.queue, bide_once, queue)))
        return false;
    operation->status = 0;
    bide_wrapper_abandon(&operation->inner);
    return true;
}

static bide_frame *run_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_once_operation *operation = once_operation_of(awaiter);
    operation->frame.awaiter.ops = &run_begins.ops;
    operation->frame.awaiter.frame = frame;
    operation->frame.context = frame->context;
    bide_frame *next = bide_frame_await(&operation->frame, &operation->begin.waiter.awaiter);
    return next == &operation->frame ? run_step(next, 0).frame : next;
}

static int run_resume(bide_awaiter *awaiter)
{
    return once_operation_of(awaiter)->status;
}

static bide_frame *run_coroutine(bide_awaiter *awaiter)
{
    return &once_operation_of(awaiter)->frame;
}

static void run_release(bide_awaiter *awaiter)
{
    bide_wrapper_release(&once_operation_of(awaiter)->inner);
}

static bide_awaiter *run_inner(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? once_operation_of(awaiter)->inner : NULL;
}

bide_awaiter *bide_once_run(bide_once_operation *operation, bide_once *once, bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = {
        .ops = BIDE_WRAPPER_OPS(run_ready, run_suspend, run_resume, "bide_once_run"),
        .coroutine = run_coroutine,
        .release = run_release,
        .inner = run_inner,
    };
    operation->awaiter.ops = &ops.ops;
    operation->inner = inner;
    bide_await_later(bide_once_start(&operation->begin, once));
    return &operation->awaiter;
}
