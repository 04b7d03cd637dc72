/*
 * Stop callbacks: a function that is called when a stop is requested. Floor: coroutine.
 *
 *     bide_stop_callback_init(&callback, bide_this_context()->stop, bide_this_context(),
 *                             abort_it, &query);
 *     ...
 *     if (!bide_stop_callback_remove(&callback))
 *         bide_await(bide_stop_callback_wait(&wait, &callback));
 *
 * It is for work outside coroutines: a call of another library that has to be aborted, or a thread that
 * polls a flag. A coroutine's wait is cancelled without it.
 *
 * The context's scheduler calls the function, without any lock held; bide_stop_request does not. The
 * owner inits, removes and waits; any thread may request the stop.
 *
 *     init --> SET --request--> posted --> runs --> ENDED
 *               |                  (remove: false, so wait)
 *               +-----remove: true----------------> may be freed
 *
 * Why it is correct: src/coroutine/stop_callback.c.
 *
 * Source: std::stop_callback of C++20, but for its destructor, which blocks.
 */
#ifndef BIDE_STOP_CALLBACK_H
#define BIDE_STOP_CALLBACK_H

#include "bide/stop.h"

BIDE_EXTERN_C_BEGIN

/* The caller's memory, from init until remove has said true, or the wait after it has ended. */
typedef struct bide_stop_callback {
    bide_stop_source source; /* attached to the given one; the frame waits in it */
    bide_awaiter request;    /* what the frame waits for; the request posts it */
    bide_frame frame;        /* calls the function */
    bide_context context;    /* a copy: the frame's; constant */
    void (*function)(void *argument);
    void *argument;
    bide_atomic(
        uintptr_t) state; /* BIDE_STOP_CALLBACK_SET, _ENDED, or the waiter for it to have run */
} bide_stop_callback;

#define BIDE_STOP_CALLBACK_SET   ((uintptr_t)0)
#define BIDE_STOP_CALLBACK_ENDED ((uintptr_t)1)

/* One wait for a callback to have run. The caller's memory until the wait has ended. */
typedef struct bide_stop_callback_waiter {
    bide_awaiter awaiter;
    bide_stop_callback *callback;
} bide_stop_callback_waiter;

/*
 * From now on a request on `source` has function(argument) called once, on the scheduler of
 * `context`; at once if `source` was asked already. Writes made before the request are visible
 * in it. It must not block, like anything that a scheduler runs. With the inline scheduler it runs
 * on the thread of the request, where waking runs coroutines: after what runs there has suspended
 * or, if nothing does, before bide_stop_request (or this) returns. `source` and the scheduler of
 * `context` outlive the callback; `context` is copied. A `source` that is NULL is never asked. A
 * `function` that is NULL is misuse, which is detected if BIDE_DEBUG is 1.
 * Threads: any. Suspends: never. Progress: blocks as bide_stop_source_attach does.
 */
void bide_stop_callback_init(bide_stop_callback *callback, bide_stop_source *source,
                             const bide_context *context, void (*function)(void *argument),
                             void *argument);

BIDE_INLINE void bide_stop_callback_init_checked_(bide_stop_callback *callback,
                                                  bide_stop_source *source,
                                                  const bide_context *context,
                                                  void (*function)(void *argument), void *argument,
                                                  const char *what, const char *where,
                                                  const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(function == NULL))
        bide_misuse_(what, where, file, line);
    bide_stop_callback_init(callback, source, context, function, argument);
}

#if BIDE_DEBUG
#define bide_stop_callback_init(callback, source, context, function, argument)                \
    bide_stop_callback_init_checked_((callback), (source), (context), (function), (argument), \
                                     BIDE_NULL_FUNCTION_("bide_stop_callback_init"))
#endif

/*
 * Always to be called before the memory goes. True: the function was not called and never will be,
 * and nothing refers to the callback any more. False: the function has been posted, runs, or has
 * run; the memory stays until a wait has ended. It says the same again when called again.
 * Threads: one at a time, also in the function itself. Suspends: never. Progress: blocks as
 * bide_stop_source_detach does, but not for the function.
 */
bool bide_stop_callback_remove(bide_stop_callback *callback);

/*
 * After a remove that said false: waits until the function has run. Its writes are then visible,
 * and the callback's memory may go. `waiter` must stay until the wait has ended; one at a time. Not
 * where the function itself waits for the end of it. A coroutine that is destroyed here leaves the
 * callback as it is, still to be waited for.
 * Threads: any. Errors: none. Suspends: if it has not run yet. Cancel-safe: yes, it cannot be cut
 * short. Progress: lock-free.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_stop_callback_wait(bide_stop_callback_waiter *waiter,
                                      bide_stop_callback *callback);

BIDE_EXTERN_C_END

#endif
