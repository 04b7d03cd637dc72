/*
 * Running one operation under a stop source of the caller's choice, in place of that of its context.
 * Floor: coroutine.
 *
 *     bide_await_status(status,
 *                       bide_with_stop(&self->limited, &server->draining, accept(&self->accept)));
 *
 *     // a stop of the context does not reach this one
 *     bide_await(bide_with_stop(&self->sheltered, NULL, flush(&self->flush)));
 *
 * Coroutines on any thread may await this, and any number of operations may share one source. The
 * operation ends with the status of the inner one. It attaches a source of its own to the given one
 * for as long as it runs.
 *
 * Why it is correct: src/coroutine/with_stop.c.
 *
 * Source: the cancellation tokens that cppcoro's operations take as a parameter; asyncio's shield.
 */
#ifndef BIDE_WITH_STOP_H
#define BIDE_WITH_STOP_H

#include "bide/stop.h"
#include "bide/extend/choice.h"

BIDE_EXTERN_C_BEGIN

/* One operation under another source. The caller's memory until the wait has ended. */
typedef struct bide_with_stop_operation {
    bide_awaiter awaiter;
    bide_awaiter *inner;
    bide_stop_source *token; /* or NULL */
    bide_frame frame; /* awaits `inner` */
    bide_context context;
    bide_stop_source source; /* attached to `token` */
    bide_wrapper_wait_ wait; /* as a case of a select: under both sources */
} bide_with_stop_operation;

/*
 * Runs `inner` (a task, or any operation) in the awaiting coroutine's context, but for its stop
 * source: it is asked to stop when `token` is, which any number of operations may share; when the
 * context's source is asked, it is not. With NULL for `token` it never is. Ends when `inner` has
 * ended, with its status. `operation` must stay until then; `token` outlives it. As a case of a
 * select it can be left when another case wins, or the select is asked to stop.
 * Threads: any. Errors: those of `inner`. Suspends: if `inner` does. Cancel-safe: as its inner
 * operation is. Progress: blocks as bide_stop_source_attach does.
 */
BIDE_PASSES_RESULT
BIDE_MUST_AWAIT
bide_awaiter *bide_with_stop(bide_with_stop_operation *operation, bide_stop_source *token,
                             bide_awaiter *inner);

BIDE_EXTERN_C_END

#endif
