/*
 * Controlling a coroutine from outside: a `bide_frame *` is its handle. It owns nothing.
 * Floor: coroutine.
 *
 *     bide_frame *handle = &counter.frame;
 *     bide_start(handle, &counter_body, &bide_default_context);   // lazy; a body that yields
 *     while (!bide_done(handle))
 *         bide_resume(handle);                                    // until it next suspends
 *
 *     bide_start      starts a coroutine beside the caller; lazy or eager, depending on its type
 *     bide_resume     resumes it (frame.h)
 *     bide_done       whether it has ended (frame.h)
 *     bide_destroy    ends it where it is suspended
 *     bide_promise, bide_from_promise
 *                     from a handle to its promise and back (coroutine_type.h)
 *
 * A handle may be passed between threads while its coroutine is suspended. It is resumed and
 * destroyed on a thread of its context's scheduler, by one thread at a time. Nothing here
 * allocates.
 *
 * Misuse is reported with the coroutine's name, file and line: always for a coroutine that has ended or
 * was awaited twice, and for a running one if BIDE_DEBUG is 1 (it is, unless NDEBUG is defined).
 */
#ifndef BIDE_HANDLE_H
#define BIDE_HANDLE_H

#include "bide/extend/coroutine_type.h"

BIDE_EXTERN_C_BEGIN

/*
 * Puts `frame` at the start of `body` in `context`, with no continuation, and does what its type's
 * initial_suspend says: nothing, so that it waits for bide_resume, or runs it on this thread up to
 * where it first suspends. Parameters are written into the frame beforehand. Returns what the
 * type's get_return_object made, or else the frame; after an eager start the frame itself may be
 * gone. `context` outlives the coroutine. Cannot fail.
 *
 * With NULL for `frame`, for which bide_create had no memory, nothing is begun: returns what the
 * type's get_return_object_on_allocation_failure returns, or NULL.
 * Threads: any of the context's scheduler's. Suspends: never. Progress: wait-free, and then that of
 * what it runs.
 */
void *bide_start(bide_frame *frame, const bide_point *body, const bide_context *context);

#define bide_start(frame, body, context) bide_start(frame, BIDE_BODY_FOR_(body, frame), context)

/*
 * Ends a coroutine that has not started or is suspended, without running what follows. From the
 * innermost that it awaits outwards, it withdraws what each waits for, runs its `finally` part, and
 * leaves it done, with -ECANCELED. No coroutine's continuation runs. Frames that bide_owned awaits
 * are freed. `frame` itself is the caller's; if bide_owned awaits it, it is freed when the
 * coroutine that awaits it is destroyed. On a coroutine that has ended it does nothing.
 *
 * A coroutine that awaits `frame` is left waiting, so destroy the outermost. For what was spawned
 * that is its root (spawned.root.frame), which must not be forgotten either, because live roots are
 * in a list.
 *
 * It must not run meanwhile. Nor may another thread resume it, or end what it waits for, because
 * then it is about to be resumed elsewhere. That is caught as misuse if it is seen; so is waiting
 * for what cannot be withdrawn. To end what runs on other threads, cancel it, and wait for its end.
 *
 * Coroutines that `finally` wakes run before this returns, or, inside a coroutine, are queued.
 * Linear in the coroutines that await each other, on a stack of constant size. A wait that is
 * withdrawn leaves its object in amortised constant time. If the coroutine was already posted, the
 * scheduler's queue is searched for it, from where the last search ended. That takes some steps if
 * coroutines are destroyed in the order in which they were woken, or in the opposite order, as in a
 * scope. If the scheduler has several queues, as a pool has one for each worker, they are searched
 * one after the other until it is found.
 * Threads: the context's scheduler's. Suspends: never. Progress: that of `finally` and of what it
 * wakes.
 */
void bide_destroy(bide_frame *frame);

BIDE_EXTERN_C_END

#endif
