/*
 * An operation under another stop source: a small coroutine with a context of its own. One thread at a
 * time runs it. Its source is attached below the given one, `token`, until it ends.
 */
#include "bide/with_stop.h"

#include "internal.h"

#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/extend/choice.h"
#include "bide/extend/wrapper.h"

static bide_with_stop_operation *with_stop_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_with_stop_operation, awaiter);
}

static bide_awaiter **with_stop_awaited(bide_with_stop_operation *operation)
{
    return bide_wrapper_awaited_(&operation->inner, &operation->wait);
}

static void with_stop_detach(bide_with_stop_operation *operation)
{
    if (operation->token != NULL)
        bide_stop_source_detach(&operation->source);
}

static bide_next with_stop_step(bide_frame *frame, unsigned depth)
{
    bide_with_stop_operation *operation = bide_container_of(frame, bide_with_stop_operation, frame);
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        bide_frame_destroyed(frame);
        bide_wrapper_discard(with_stop_awaited(operation));
        with_stop_detach(operation);
        return bide_next_none();
    }
    operation->wait.status = bide_wrapper_take(with_stop_awaited(operation));
    with_stop_detach(operation);
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(frame->awaiter.frame);
}

static const bide_coroutine_code with_stop_code = {with_stop_step, "bide_with_stop", __FILE__,
                                                   &bide_by_hand, NULL};
static const bide_point with_stop_await = BIDE_POINT(&with_stop_code, NULL, 0, BIDE_AT_AWAIT);

/* In a wait the source is there without a token, too: the select's request reaches it. */
static bide_frame *with_stop_begin(bide_with_stop_operation *operation, bide_frame *frame)
{
    operation->context = *frame->context;
    operation->context.stop = NULL;
    if (operation->token != NULL || operation->wait.is_used) {
        operation->context.stop = &operation->source;
        bide_stop_source_init(&operation->source);
        if (operation->token != NULL)
            bide_stop_source_attach(&operation->source, operation->token);
    }
    operation->frame.awaiter.ops = &with_stop_await.ops;
    operation->frame.awaiter.frame = frame;
    operation->frame.context = &operation->context;
    return bide_frame_await_by_(&operation->frame, *with_stop_awaited(operation),
                                &operation->frame);
}

static bide_frame *with_stop_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return with_stop_begin(with_stop_of(awaiter), frame);
}

static int with_stop_resume(bide_awaiter *awaiter)
{
    return with_stop_of(awaiter)->wait.status;
}

static bide_frame *with_stop_coroutine(bide_awaiter *awaiter)
{
    return &with_stop_of(awaiter)->frame;
}

static void with_stop_release(bide_awaiter *awaiter)
{
    bide_wrapper_release(&with_stop_of(awaiter)->inner);
}

static bide_awaiter *with_stop_inner(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? with_stop_of(awaiter)->inner : NULL;
}

/*
 * As a case of a select. Its wait is under the token, and the select cancels it too, so it is an
 * operation with a `cancel`, and no wrapper: a source has one parent. A request on the source, by the
 * select's thread or another, comes before the operation's end is passed on (stop.md).
 */

static bide_with_stop_operation *with_stop_of_wait(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_with_stop_operation, wait.awaiter);
}

static bide_frame *with_stop_wait_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return with_stop_begin(with_stop_of_wait(awaiter), frame);
}

static int with_stop_wait_resume(bide_awaiter *awaiter)
{
    return with_stop_of_wait(awaiter)->wait.status;
}

static void with_stop_wait_cancel(bide_awaiter *awaiter)
{
    bide_stop_request(&with_stop_of_wait(awaiter)->source);
}

static bool with_stop_wait_withdraw(bide_awaiter *awaiter)
{
    bide_with_stop_operation *operation = with_stop_of_wait(awaiter);
    if (!bide_done(&operation->frame)) {
        bide_destroy(&operation->frame);
        return true;
    }
    bide_wrapper_release(&operation->wait.inner);
    return false;
}

static int with_stop_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_awaiter_ops ops = {
        .suspend = with_stop_wait_suspend,
        .resume = with_stop_wait_resume,
        .cancel = with_stop_wait_cancel,
        .withdraw = with_stop_wait_withdraw,
        .name = "bide_with_stop",
    };
    bide_with_stop_operation *operation = with_stop_of(awaiter);
    int status = bide_wrapper_attempt_by_(awaiter, operation->inner, choice, &operation->wait);
    if (status == -EAGAIN) {
        int reason = bide_stop_reason(operation->token);
        status = reason != 0 ? reason : -EAGAIN;
    }
    return status != -EAGAIN ? status : bide_wrapper_wait_begin_(&operation->wait, &ops, choice);
}

bide_awaiter *bide_with_stop(bide_with_stop_operation *operation, bide_stop_source *token,
                             bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = {
        .ops = BIDE_WRAPPER_OPS_IN_CHOICE(NULL, with_stop_suspend, with_stop_resume,
                                          "bide_with_stop", with_stop_attempt),
        .coroutine = with_stop_coroutine,
        .release = with_stop_release,
        .inner = with_stop_inner,
        .inner_at = offsetof(bide_with_stop_operation, inner),
    };
    operation->awaiter.ops = &ops.ops;
    operation->inner = inner;
    operation->token = token;
    operation->wait.is_used = false;
    return &operation->awaiter;
}
