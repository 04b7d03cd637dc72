/*
 * An operation under another stop source: a small coroutine with a context of its own. One thread
 * at a time has it.
 */
#include "bide/with_stop.h"

#include "bide/extend/wrapper.h"

static bide_with_stop_operation *operation_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_with_stop_operation, awaiter);
}

static void detach(bide_with_stop_operation *operation)
{
    if (operation->token != NULL)
        bide_stop_source_detach(&operation->source);
}

static bide_next step(bide_frame *frame, unsigned depth)
{
    bide_with_stop_operation *operation = bide_container_of(frame, bide_with_stop_operation, frame);
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        bide_frame_destroyed(frame);
        bide_wrapper_discard(&operation->inner);
        detach(operation);
        return bide_next_none();
    }
    operation->status = bide_wrapper_take(&operation->inner);
    detach(operation);
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(frame->awaiter.frame);
}

static const bide_coroutine_code code = {step, "bide_with_stop", __FILE__, &bide_by_hand, NULL};
static const bide_point at_await = BIDE_POINT(&code, NULL, 0, BIDE_AT_AWAIT);

static bide_frame *suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_with_stop_operation *operation = operation_of(awaiter);
    operation->context = *frame->context;
    operation->context.stop = NULL;
    if (operation->token != NULL) {
        operation->context.stop = &operation->source;
        bide_stop_source_init(&operation->source);
        bide_stop_source_attach(&operation->source, operation->token);
    }
    operation->frame.awaiter.ops = &at_await.ops;
    operation->frame.awaiter.frame = frame;
    operation->frame.context = &operation->context;
    return bide_frame_await(&operation->frame, operation->inner);
}

static int resume(bide_awaiter *awaiter)
{
    return operation_of(awaiter)->status;
}

static bide_frame *coroutine(bide_awaiter *awaiter)
{
    return &operation_of(awaiter)->frame;
}

static void give_back(bide_awaiter *awaiter)
{
    bide_wrapper_release(&operation_of(awaiter)->inner);
}

static bide_awaiter *inner_of(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? operation_of(awaiter)->inner : NULL;
}

bide_awaiter *bide_with_stop(bide_with_stop_operation *operation, bide_stop_source *token,
                             bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = {
        .ops = BIDE_WRAPPER_OPS(NULL, suspend, resume, "bide_with_stop"),
        .coroutine = coroutine,
        .release = give_back,
        .inner = inner_of,
        .inner_at = offsetof(bide_with_stop_operation, inner),
    };
    operation->awaiter.ops = &ops.ops;
    operation->inner = inner;
    operation->token = token;
    return &operation->awaiter;
}
