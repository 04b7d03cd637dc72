/*
 * An operation with a value: a small coroutine with a context of its own, whose list of values is
 * longer by one. One thread at a time runs it. It waits in place of the awaiting coroutine, so it has
 * the same stop source.
 */
#include "bide/context_value.h"

#include "bide/extend/wrapper.h"

static bide_with_value_operation *with_value_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_with_value_operation, awaiter);
}

static bide_next with_value_step(bide_frame *frame, unsigned depth)
{
    bide_with_value_operation *operation =
        bide_container_of(frame, bide_with_value_operation, frame);
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        bide_frame_destroyed(frame);
        bide_wrapper_discard(&operation->inner);
        return bide_next_none();
    }
    operation->status = bide_wrapper_take(&operation->inner);
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(frame->awaiter.frame);
}

static const bide_coroutine_code with_value_code = {with_value_step, "bide_with_value", __FILE__,
                                                    &bide_by_hand, NULL};
static const bide_point with_value_await = BIDE_POINT(&with_value_code, NULL, 0, BIDE_AT_AWAIT);

static bide_frame *with_value_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_with_value_operation *operation = with_value_of(awaiter);
    operation->value.outer = frame->context->values;
    operation->context = *frame->context;
    operation->context.values = &operation->value;
    operation->frame.awaiter.ops = &with_value_await.ops;
    operation->frame.awaiter.frame = frame;
    operation->frame.context = &operation->context;
    return bide_frame_await(&operation->frame, operation->inner);
}

static int with_value_resume(bide_awaiter *awaiter)
{
    return with_value_of(awaiter)->status;
}

static bide_frame *with_value_coroutine(bide_awaiter *awaiter)
{
    return &with_value_of(awaiter)->frame;
}

static void with_value_release(bide_awaiter *awaiter)
{
    bide_wrapper_release(&with_value_of(awaiter)->inner);
}

static bide_awaiter *with_value_inner(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? with_value_of(awaiter)->inner : NULL;
}

bide_awaiter *bide_with_value_(bide_with_value_operation *operation, const bide_context_key_ *key,
                               const void *value, bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = {
        .ops = BIDE_WRAPPER_OPS(NULL, with_value_suspend, with_value_resume, "bide_with_value"),
        .coroutine = with_value_coroutine,
        .release = with_value_release,
        .inner = with_value_inner,
        .inner_at = offsetof(bide_with_value_operation, inner),
    };
    operation->awaiter.ops = &ops.ops;
    operation->inner = inner;
    operation->value.key = key;
    operation->value.value = value;
    return &operation->awaiter;
}

const void *bide_context_get_(const bide_context *context, const bide_context_key_ *key)
{
    const bide_context_value *at = context->values;
    while (at != NULL && at->key != key)
        at = at->outer;
    return at != NULL ? at->value : NULL;
}
