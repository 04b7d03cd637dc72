/*
 * Waiting for a coroutine from a plain thread. Floor: coroutine.
 */
#ifndef BIDE_SYNC_WAIT_H
#define BIDE_SYNC_WAIT_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

/*
 * Runs `awaiter` (a task, or any operation) in `context` and blocks the calling thread until it has
 * ended; returns its status, 0 or a negative errno. With the inline scheduler it starts on this thread.
 * Sleeps on the platform's futex when there is nothing to run here. Not from inside a coroutine that
 * the awaited one needs: it would wait for itself.
 */
int bide_sync_wait_in(const bide_context *context, bide_awaiter *awaiter);

/* The same in bide_default_context. */
int bide_sync_wait(bide_awaiter *awaiter);

BIDE_EXTERN_C_END

#endif
