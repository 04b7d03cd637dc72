/*
 * An operation under another stop source: a small coroutine with a context of its own. One thread at a
 * time runs it. Its source is attached below the given one, `token`, until it ends.
 */
#include "bide/with_stop.h"

#include "bide/extend/wrapper.h"

static bide_with_stop_operation *with_stop_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_with_stop_operation, awaiter);
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
        bide_wrapper_discard(&operation->inner);
        with_stop_detach(operation);
        return bide_next_none();
    }
    operation->status = bide_wrapper_take(&operation->inner);
    with_stop_detach(operation);
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(frame->awaiter.frame);
}

static const bide_coroutine_code with_stop_code = {with_stop_step, "bide_with_stop", __FILE__,
                                                   &bide_by_hand, NULL};
static const bide_point with_stop_await = BIDE_POINT(&with_stop_code, NULL, 0, BIDE_AT_AWAIT);

static bide_frame *with_stop_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_with_stop_operation *operation = with_stop_of(awaiter);
    operation->context = *frame->context;
    operation->context.stop = NULL;
    if (operation->token != NULL) {
        operation->context.stop = &operation->source;
        bide_stop_source_init(&operation->source);
        bide_stop_source_attach(&operation->source, operation->token);
    }
    operation->frame.awaiter.ops = &with_stop_await.ops;
    operation->frame.awaiter.frame = frame;
    operation->frame.context = &operation->context;
    return bide_frame_await(&operation->frame, operation->inner);
}

static int with_stop_resume(bide_awaiter *awaiter)
{
    return with_stop_of(awaiter)->status;
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

bide_awaiter *bide_with_stop(bide_with_stop_operation *operation, bide_stop_source *token,
                             bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = {
        .ops = BIDE_WRAPPER_OPS(NULL, with_stop_suspend, with_stop_resume, "bide_with_stop"),
        .coroutine = with_stop_coroutine,
        .release = with_stop_release,
        .inner = with_stop_inner,
        .inner_at = offsetof(bide_with_stop_operation, inner),
    };
    operation->awaiter.ops = &ops.ops;
    operation->inner = inner;
    operation->token = token;
    return &operation->awaiter;
}
