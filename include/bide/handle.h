/*
 * What can be done with a coroutine from outside: a `bide_frame *` is its handle. It owns nothing.
 * Floor: coroutine.
 *
 *     bide_start      begins a coroutine beside whoever calls; lazy or eager, as its type says
 *     bide_resume     runs it on (frame.h)
 *     bide_done       has it ended? (frame.h)
 *     bide_destroy    ends it where it stands
 *     bide_promise, bide_from_promise    from a handle to its promise and back (coroutine_type.h)
 *
 * Misuse is caught with the coroutine's name, file and line: always for what ended or was awaited twice, and
 * for what is running where BIDE_DEBUG is 1 (it is, unless NDEBUG is defined).
 */
#ifndef BIDE_HANDLE_H
#define BIDE_HANDLE_H

#include "bide/extend/coroutine_type.h"

BIDE_EXTERN_C_BEGIN

/*
 * Puts `frame` at the start of `body` in `context`, with no continuation, and does what its type's
 * initial_suspend says: nothing, so that it waits for bide_resume, or runs it on this thread up to where it
 * first suspends. Parameters are written into the frame beforehand. Returns what the type's get_return_object
 * made, or else the frame; after an eager start the frame itself may be gone. `context` outlives the
 * coroutine. Any thread that is one of the context's scheduler's; cannot fail.
 *
 * With NULL for `frame`, for which bide_create had no memory, nothing is begun: returns what the
 * type's get_return_object_on_allocation_failure returns, or NULL.
 */
void *bide_start(bide_frame *frame, const bide_point *body, const bide_context *context);

/*
 * Ends a coroutine that has not started or is suspended, without running what follows: from the innermost
 * that it awaits outwards, withdraws what each waits for, runs its `finally` part, and leaves it done,
 * with -ECANCELED. Frames that bide_owned awaits are freed; `frame` itself is the caller's
 * (or, if bide_owned awaits it, is freed when who awaits it is destroyed). Nobody's
 * continuation runs. On one that has ended it does nothing.
 *
 * Who awaits `frame` is left waiting: destroy the outermost. For what was spawned that is its root
 * (spawned.root.frame), which must not be forgotten either, for live roots are in a list.
 *
 * On a thread of the context's scheduler; not while it runs, nor while somebody else resumes it or ends what
 * it waits for, for then it is about to be resumed elsewhere, which is caught as misuse if it is seen; so
 * is waiting for what cannot be withdrawn. (To end what runs on other threads: cancel it, and wait for its
 * end.) What `finally` wakes runs before this returns, or, inside a coroutine, is queued. Linear in the
 * coroutines that await each other, on a stack of constant size; a wait that is withdrawn leaves its object in constant
 * time, amortised, and a queue of a scheduler that it was posted to by a walk along it.
 */
void bide_destroy(bide_frame *frame);

BIDE_EXTERN_C_END

#endif
