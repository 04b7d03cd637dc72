/*
 * A function of what an operation ends with. Floor: coroutine.
 *
 *     bide_await(bide_then(&self->then, fetch(&self->fetch, url), parse, self));
 *
 * Source: `then` and `fmap` of the articles on coroutines and of the libraries after them.
 */
#ifndef BIDE_THEN_H
#define BIDE_THEN_H

#include "bide/extend/wrapper.h"

BIDE_EXTERN_C_BEGIN

/* One such operation. The caller's until it has ended. */
typedef struct bide_then_operation {
    bide_awaiter awaiter;
    bide_awaiter *inner;
    int (*function)(void *argument, int status);
    void *argument;
} bide_then_operation;

BIDE_INLINE bool bide_then_ready_(bide_awaiter *awaiter)
{
    bide_awaiter *inner = bide_container_of(awaiter, bide_then_operation, awaiter)->inner;
    return bide_awaiter_had(inner);
}

/* What is awaited goes on with who awaits this: at its end nothing runs in between. */
BIDE_INLINE bide_frame *bide_then_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_awaiter *inner = bide_container_of(awaiter, bide_then_operation, awaiter)->inner;
    inner->frame = frame;
    return bide_awaiter_suspend(inner, inner->ops, frame);
}

BIDE_INLINE int bide_then_resume_(bide_awaiter *awaiter)
{
    bide_then_operation *then = bide_container_of(awaiter, bide_then_operation, awaiter);
    return then->function(then->argument, bide_wrapper_take(&then->inner));
}

BIDE_INLINE void bide_then_give_back_(bide_awaiter *awaiter)
{
    bide_wrapper_give_back(&bide_container_of(awaiter, bide_then_operation, awaiter)->inner);
}

BIDE_INLINE bide_awaiter *bide_then_inner_(bide_awaiter *awaiter, size_t index)
{
    return index == 0 ? bide_container_of(awaiter, bide_then_operation, awaiter)->inner : NULL;
}

/*
 * Waits for `inner` (a task, or any operation), then calls function(argument, status) with what it ended with,
 * where the awaiting coroutine goes on; ends with what the function returns, 0 or a negative errno. (What else
 * there is to a result is in the operation's struct, which `argument` leads to.) `then` is the caller's until
 * the wait has ended. Suspends if `inner` does; is cancelled as it is, and the function then told.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_then(bide_then_operation *then, bide_awaiter *inner,
                                    int (*function)(void *argument, int status), void *argument)
{
    static const bide_wrapper_ops ops = {
        BIDE_WRAPPER_OPS(bide_then_ready_, bide_then_suspend_, bide_then_resume_, "bide_then"),
        NULL, bide_then_give_back_, bide_then_inner_};
    then->awaiter.ops = &ops.ops;
    then->inner = inner;
    then->function = function;
    then->argument = argument;
    return &then->awaiter;
}

BIDE_EXTERN_C_END

#endif
