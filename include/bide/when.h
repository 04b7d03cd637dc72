/*
 * Waiting for several operations at once, without an allocation. Floor: coroutine.
 *
 *     bide_branch_init(&self->branches[0], fetch(&self->a, url));
 *     bide_branch_init(&self->branches[1], fetch(&self->b, other_url));
 *     bide_try(bide_when_all(&self->all, self->branches, 2));
 *
 *     bide_when_all         ends when all have: with 0, or the first error; an error asks the others to stop
 *     bide_when_all_ready   ends when all have, whatever with: with 0
 *     bide_when_any         the first that ends asks the others to stop; ends, with its status, when all have
 *
 * Each operation's own status is in its branch. None of them outlives the wait. They begin in the order of the
 * branches; the first runs on this thread next, the others are posted to the context's scheduler, so that on
 * a thread pool they run beside each other.
 *
 * Source: when_all and when_all_ready of cppcoro; select of Tokio.
 */
#ifndef BIDE_WHEN_H
#define BIDE_WHEN_H

#include "bide/extend/branch.h"

BIDE_EXTERN_C_BEGIN

/* One such wait. The caller's until it has ended. */
typedef struct bide_when {
    bide_awaiter awaiter;
    bide_branch *branches;
    size_t count;
    bide_fork fork;
} bide_when;

/*
 * Waits for what `count` branches, an array of the caller's, wait for. If one ends with a negative errno, the
 * others are asked to stop; it ends when all have ended, with the first error, or 0. With no branches it ends at
 * once. `when` and the branches are the caller's until the wait has ended. Any thread; suspends; cancelled, it
 * cancels each branch, and ends when they have. Lock-free, but for stop sources.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_when_all(bide_when *when, bide_branch *branches, size_t count);

/* The same, but no error asks anybody to stop, and it ends with 0. */
BIDE_MUST_AWAIT
bide_awaiter *bide_when_all_ready(bide_when *when, bide_branch *branches, size_t count);

/*
 * The same, but the first that ends, with whatever status, asks the others to stop. Ends, when all have
 * ended, with the status of the first; bide_when_winner says which it was. With no branches: -EINVAL, at
 * once.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_when_any(bide_when *when, bide_branch *branches, size_t count);

/* After bide_when_any, which branch ended first: its index. After bide_when_all, which failed first; `count` if
 * none did. */
BIDE_INLINE size_t bide_when_winner(bide_when *when)
{
    /* relaxed: branch.h, 2. */
    size_t number = bide_atomic_load(&when->fork.decided, relaxed);
    return number != 0 ? number - 1 : when->count;
}

BIDE_EXTERN_C_END

#endif
