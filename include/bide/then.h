/*
 * Calling a function with the status of an operation; its result is the new status. Floor: coroutine.
 *
 *     static int parse(void *self, int status) { ... return status; }
 *
 *     bide_try(bide_then(&self->then, fetch(&self->fetch, url), parse, self));
 *
 * The function is called however the operation ends, also when it is cancelled. It runs in the
 * awaiting coroutine, on that coroutine's thread. It costs the call; no coroutine runs in between.
 *
 * Why it is correct: it is a forwarding operation; extend/wrapper.h has the rules.
 *
 * Source: `then` and `fmap` of the articles on coroutines and of the libraries after them.
 */
#ifndef BIDE_THEN_H
#define BIDE_THEN_H

#include "bide/extend/wrapper.h"

BIDE_EXTERN_C_BEGIN

/* One such operation. The caller's until it has ended. */
typedef struct bide_then_operation {
    bide_forward forward;
    int (*function)(void *argument, int status);
    void *argument;
} bide_then_operation;

BIDE_INLINE int bide_then_resume_(bide_awaiter *awaiter)
{
    bide_then_operation *then = (bide_then_operation *)(void *)awaiter;
    return then->function(then->argument, bide_forward_take(&then->forward));
}

/*
 * Waits for `inner` (a task, or any operation), then calls function(argument, status) with its
 * status, where the awaiting coroutine continues; ends with what the function returns, 0 or a
 * negative errno. Other parts of a result are in the operation's struct, which `argument`
 * leads to. `then` is the caller's until the wait has ended. It is cancelled as `inner` is, and the
 * function then gets that status. NULL for the function is misuse, which is detected if BIDE_DEBUG
 * is 1.
 * Threads: any. Errors: those of `function`. Suspends: if `inner` does. Cancel-safe: as its inner
 * operation is, if the function had no effect then. Progress: that of `inner`, and of the function.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_then(bide_then_operation *then, bide_awaiter *inner,
                                    int (*function)(void *argument, int status), void *argument)
{
    static const bide_wrapper_ops ops = BIDE_FORWARD_OPS(bide_then_resume_, "bide_then");
    then->function = function;
    then->argument = argument;
    return bide_forward_init(&then->forward, &ops, inner);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_then_checked_(bide_then_operation *then, bide_awaiter *inner,
                                             int (*function)(void *argument, int status),
                                             void *argument, const char *what, const char *where,
                                             const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(function == NULL))
        bide_misuse_(what, where, file, line);
    return bide_then(then, inner, function, argument);
}

#if BIDE_DEBUG
#define bide_then(then, inner, function, argument) BIDE_THEN_(then, inner, function, argument)
#define BIDE_THEN_(then, inner, function, argument) \
    bide_then_checked_((then), (inner), (function), (argument), BIDE_NULL_FUNCTION_("bide_then"))
#endif

BIDE_EXTERN_C_END

#endif
