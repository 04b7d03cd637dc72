/*
 * Waiting for several operations at once, without an allocation. Floor: coroutine.
 *
 *     bide_when_of(2) both;           // a member of the frame
 *     ...
 *     bide_try(bide_when_all_of(&self->both, fetch(&self->a, url), fetch(&self->b, other_url)));
 *     ...
 *     int first = self->both.branches[0].status;
 *
 *     bide_when_all         the first that fails asks the others to stop; ends with its error,
 *                           or with 0
 *     bide_when_all_ready   none asks the others to stop; ends with 0
 *     bide_when_any         the first that ends asks the others to stop; ends with its status
 *
 * Each of the three ends when all its operations have ended, so none of them outlives the wait.
 *
 * With `_of` they take the operations, up to nine; without it an array of branches, of any number,
 * each made by bide_branch_init. Each operation's own status is in its branch. The operations begin
 * in the order of the branches. The first runs on this thread next; the others are posted to the
 * context's scheduler, so that on a thread pool they run beside each other.
 *
 * None of the three can be a case of a select (select.h), which refuses them: when another case wins,
 * some operations have ended and others are in the middle, and the first could not be undone for a
 * second attempt. In place of bide_when_any, another select can be the case. In place of bide_when_all,
 * start the operations by themselves, and select on a wait group (wait_group.h) that they count down.
 *
 * Why it is correct: extend/branch.h has the argument.
 *
 * Source: when_all and when_all_ready of cppcoro; select of Tokio.
 */
#ifndef BIDE_WHEN_H
#define BIDE_WHEN_H

#include "bide/detail/arguments.h"
#include "bide/extend/branch.h"

BIDE_EXTERN_C_BEGIN

/* One such wait. The caller's until it has ended. */
typedef struct bide_when {
    bide_awaiter awaiter;
    bide_branch *branches;
    size_t count;
    bide_branch_group group;
} bide_when;

/*
 * Runs the operations of `count` branches, an array of the caller's, and waits for all. If one ends
 * with a negative errno, the others are asked to stop; it ends with the first error, or 0.
 * With no branches it ends at once. `when` and the branches are the caller's until the wait has
 * ended. Cancelled, it cancels each branch, and ends when they have.
 * Threads: any. Errors: those of the branches, the first. Suspends: if there are branches.
 * Cancel-safe: as its inner operation is, for each branch: branch->status says. Progress:
 * lock-free, but for stop sources: blocks as bide_stop_source_attach does.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_when_all(bide_when *when, bide_branch *branches, size_t count);

/*
 * The same, but no error asks the others to stop, and it ends with 0.
 * Threads: any. Errors: none. Suspends: if there are branches. Cancel-safe: as bide_when_all.
 * Progress: as bide_when_all.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_when_all_ready(bide_when *when, bide_branch *branches, size_t count);

/*
 * The same, but the first that ends, with whatever status, asks the others to stop. Ends, when all
 * have ended, with the status of the first; bide_when_winner says which it was. With no branches it
 * ends at once.
 * Threads: any. Errors: those of the first branch to end; -EINVAL (no branches). Suspends: if there
 * are branches. Cancel-safe: as bide_when_all. Progress: as bide_when_all.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_when_any(bide_when *when, bide_branch *branches, size_t count);

/*
 * After bide_when_any, which branch ended first: its index. After bide_when_all, which failed
 * first; `count` if none did.
 * Threads: any that knows of the end. Progress: wait-free.
 */
BIDE_INLINE size_t bide_when_winner(bide_when *when)
{
    /* relaxed: branch.h, 2. */
    size_t number = bide_atomic_load(&when->group.decided, relaxed);
    return number != 0 ? number - 1 : when->count;
}

/*
 * One such wait of up to `max` operations, with its branches: one member of the frame. `branches`
 * have the operations' statuses, in their order; `when` is what bide_when_winner is asked about.
 * Threads: any may use the type.
 */
#define bide_when_of(max)          \
    struct {                       \
        bide_when when;            \
        bide_branch branches[max]; \
    }

/*
 * The three waits for these operations, nine at most. `of` points to a bide_when_of with room for
 * them, and is evaluated once for each operation.
 * Threads: any. Errors: as bide_when_all, and so on. Suspends: always. Cancel-safe: as
 * bide_when_all. Progress: as bide_when_all.
 */
#define bide_when_all_of(of, ...)       BIDE_WHEN_OF_(bide_when_all, of, __VA_ARGS__)
#define bide_when_all_ready_of(of, ...) BIDE_WHEN_OF_(bide_when_all_ready, of, __VA_ARGS__)
#define bide_when_any_of(of, ...)       BIDE_WHEN_OF_(bide_when_any, of, __VA_ARGS__)
#define BIDE_WHEN_OF_(wait, of, ...)                             \
    (BIDE_CHECK_ROOM_((of)->branches, BIDE_COUNT_(__VA_ARGS__)), \
     BIDE_EACH_(BIDE_WHEN_BRANCH_, of, __VA_ARGS__),             \
     wait(&(of)->when, (of)->branches, BIDE_COUNT_(__VA_ARGS__)))
#define BIDE_WHEN_BRANCH_(of, index, operation) \
    bide_branch_init(&(of)->branches[index], (operation))

BIDE_EXTERN_C_END

#endif
