/*
 * A scope: coroutines that are begun one by one, run beside the coroutine that owns the scope, and
 * have all ended when it has been joined. Floor: coroutine.
 *
 *     bide_scope_init(&self->scope, bide_this_frame());
 *     bide_scope_spawn(&self->scope, &self->reads, reader(&self->reader));
 *     bide_scope_spawn(&self->scope, &self->writes, writer(&self->writer));
 *     bide_try(bide_scope_join(&self->scope));        // all have ended; the first error
 *
 * With options (bide_scope_init_with) a coroutine that fails spares the others, results are taken in
 * the order of completion, and only so many run at a time:
 *
 *     static const bide_scope_options options = {.spares = true, .collects = true, .max_running = 8};
 *     bide_scope_init_with(&self->scope, bide_this_frame(), &options);
 *     for (size_t i = 0; i < JOBS; i++)
 *         bide_scope_spawn(&self->scope, &self->branches[i], job(&self->jobs[i]));
 *     for (;;) {
 *         bide_await_status(self->status, bide_scope_next(&self->next, &self->scope, &self->ended));
 *         if (self->status < 0)
 *             break;                                  // -ENOENT: there are no more
 *         self->failed += self->ended->status < 0;    // of a coroutine that has ended
 *     }
 *     bide_try(bide_scope_join(&self->scope));
 *
 *     open --join--> joining --the last one has ended--> joined
 *
 * The owner and the coroutines of the scope may begin more coroutines in it, and stop it; the owner
 * alone joins it. All coroutines of the scope are asked to stop when one of them fails, by
 * bide_scope_stop, when the owner is asked to stop, and when the join is: by a deadline around it, for
 * one. Beginning one costs a post to the scheduler and no allocation.
 *
 * If the owner ended without joining, the coroutines would go on in memory that is gone. That is
 * misuse, which is detected if BIDE_DEBUG is 1.
 *
 * Why it is correct: it is a group of branches that counts its owner too; extend/branch.h has the
 * argument.
 *
 * Source: structured concurrency as of Trio's nurseries and Sustrik's bundles.
 */
#ifndef BIDE_SCOPE_H
#define BIDE_SCOPE_H

#include "bide/extend/branch.h"

BIDE_EXTERN_C_BEGIN

/* How a scope differs from one of bide_scope_init. All zero: in nothing. */
typedef struct bide_scope_options {
    bool spares;        /* a coroutine that fails does not stop the others */
    bool collects;      /* ended branches are kept for bide_scope_next */
    size_t max_running; /* so many run at a time, and the rest waits in the scope; 0: any number */
} bide_scope_options;

typedef struct bide_scope {
    bide_awaiter awaiter; /* of join */
    bide_branch_group group;
    bide_context context; /* as the owner's was when it opened the scope; constant */
    bool is_gated;        /* its join waits in another source than the group's parent */

    /* of one with options; `lock` is for all that follows, but for the options */
    bool collects;
    bide_atomic(uint32_t) lock;
    size_t max_running;
    size_t has_begun;            /* branches that were begun and have not ended */
    size_t uncollected;          /* branches that next has not returned */
    bide_awaiter_chain held;     /* branches that wait for room, in order */
    bide_awaiter_chain finished; /* branches that next is to return, in order */
    bide_awaiter *waits;         /* the next that waits, or NULL */

    /* of the trees of open scopes, where misuse is looked for */
    bide_frame *owner; /* or NULL: in none */
    struct bide_scope *below[2];
} bide_scope;

void bide_scope_init_(bide_scope *scope, bide_frame *owner, bool debug);

/*
 * Opens a scope, of the coroutine `owner`, which calls this (bide_this_frame()). It must be joined,
 * by the owner, before the owner ends. Cannot fail.
 * Threads: the owner's. Suspends: never. Progress: blocks as bide_stop_source_attach does.
 */
#define bide_scope_init(scope, owner) bide_scope_init_(scope, owner, BIDE_DEBUG)

void bide_scope_init_with_(bide_scope *scope, bide_frame *owner, const bide_scope_options *options,
                           bool debug);

/*
 * The same with options, which are copied.
 *
 * `spares`: bide_scope_join still ends with the first error. `collects`: each branch is returned by
 * bide_scope_next once it has ended, except branches that were given an `ended`, which is called
 * instead. `max_running`: a coroutine that is begun beyond that waits until one ends, then the one
 * that has waited longest begins. A coroutine that waits in turn for one that it has begun in the
 * same scope still counts, so such scopes need room for both.
 * Threads: the owner's. Suspends: never. Progress: blocks as bide_stop_source_attach does.
 */
#define bide_scope_init_with(scope, owner, options) \
    bide_scope_init_with_(scope, owner, options, BIDE_DEBUG)

/*
 * Begins `awaiter` (a task, or any operation) beside the owner, in the context that the owner had
 * when it opened the scope, but for the stop source; it stays there if the owner moves. It is
 * posted, not run, by this. Cannot fail. In a scope that was asked to stop it begins all the same,
 * and its waits end at once.
 *
 * `branch` is the caller's until the scope is joined. Where BIDE_DEBUG is 1, spawning into a scope
 * that is not open is reported as misuse, and so is using `branch` again before. A result
 * that the operation acquired belongs to the scope's user when the branch has ended, also if the
 * owner is destroyed before it joins; branch->status says whether it acquired anything.
 * Threads: the owner's, or that of a coroutine of the scope. Suspends: never. Progress: blocks as
 * bide_stop_source_attach does, and with options for a moment, for a lock of the scope's.
 */
void bide_scope_spawn(bide_scope *scope, bide_branch *branch, bide_awaiter *awaiter);

/*
 * The same, in another context, for a scheduler or a name of its own; its stop source is not used.
 * `context` is copied. `ended`, or NULL, is called with the branch, last of all, on the thread
 * where the branch ends, or is destroyed with the owner. branch->status is set then. `branch` is
 * the caller's until that call, which may free it.
 * Threads: as bide_scope_spawn. Suspends: never. Progress: as bide_scope_spawn.
 */
void bide_scope_spawn_in(bide_scope *scope, bide_branch *branch, const bide_context *context,
                         bide_awaiter *awaiter, void (*ended)(bide_branch *branch));

/*
 * Asks all that run in the scope to stop.
 * Threads: the owner's, or that of a coroutine of the scope. Suspends: never. Progress: as
 * bide_stop_request.
 */
BIDE_INLINE void bide_scope_stop(bide_scope *scope)
{
    bide_stop_request(&scope->group.stop);
}

/*
 * Asks one branch of the scope to stop: `branch`, and whatever runs below it. If it then ends
 * with -ECANCELED, that is no failure: the others continue, and the join does not end with it;
 * branch->status says it. `branch` must stay until this has returned, so it may have ended, but its
 * memory may not have been used again.
 * Threads: the owner's, or that of a coroutine of the scope. Suspends: never. Progress: as
 * bide_stop_request.
 */
BIDE_INLINE void bide_scope_stop_one(bide_scope *scope, bide_branch *branch)
{
    (void)scope;
    bide_stop_request(&branch->stop);
}

/* One wait for the next one that has ended. The caller's memory until the wait has ended. */
typedef struct bide_scope_next_operation {
    bide_awaiter awaiter;
    bide_scope *scope;
    bide_branch *taken; /* or NULL */
    bide_branch **branch;
} bide_scope_next_operation;

/*
 * Waits until another coroutine of a scope that `collects` has ended, and stores its branch in
 * *branch; branch->status says what it ended with. In the order in which they end, each once. From
 * then on the branch is the caller's, who may spawn in it again. Branches that are not taken are
 * the caller's when the scope is joined.
 *
 * A request to stop the owner reaches the scope's coroutines too. This then ends with the reason if
 * none has ended; bide_scope_join waits for them.
 * Threads: the owner's. Errors: -ENOENT (all were returned), -ECANCELED, -ETIMEDOUT. Suspends: if none
 * has ended. Cancel-safe: yes; the branch is the next one's. Progress: blocks for a moment, for a lock
 * of the scope's.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_scope_next(bide_scope_next_operation *next, bide_scope *scope,
                              bide_branch **branch);

/*
 * Waits until all that was begun in the scope has ended; ends with the first error, or 0. A scope
 * that was joined is joined again at once, with the same status. Joining a scope that was never
 * opened is misuse, which is detected if BIDE_DEBUG is 1.
 *
 * When the coroutine that awaits this is asked to stop, so are they, with the same reason, and the
 * wait ends when they have:
 *
 *     bide_with_deadline(&self->limited, time, bide_scope_join(&self->scope))    // -ETIMEDOUT
 *
 * They also still follow the owner's source, so bide_with_stop(..., NULL, ...) around the join does
 * not shelter them: open the scope in a coroutine that is sheltered.
 * Threads: the owner's. Errors: those of the coroutines, the first. Suspends: unless all have
 * ended. Cancel-safe: as its inner operation is, for each branch: branch->status says. Progress:
 * lock-free, but for stop sources: blocks as bide_stop_source_detach does.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_scope_join(bide_scope *scope);

/*
 * Destroys what still runs in the scope, newest first, as bide_destroy does, and closes it; if it was
 * joined, or its owner was destroyed while it joined, this does nothing. For the owner's `finally`:
 * so an owner that is destroyed, or returns early, leaves nothing behind. The destroyed coroutines
 * must not run meanwhile: the rules of bide_destroy.
 * Threads: the owner's. Suspends: never. Progress: as bide_destroy, for each.
 */
void bide_scope_destroy(bide_scope *scope);

/*
 * The same where BIDE_DEBUG is 1. They report misuse by `function`: `what`, if the scope is not open,
 * because it was joined, destroyed, or never opened; `reused`, if what was begun with the branch has
 * not ended; and an awaiter that is in flight, or was never initialised.
 * Threads: as those.
 */
void bide_scope_spawn_checked_(bide_scope *scope, bide_branch *branch, const bide_context *context,
                               bide_awaiter *awaiter, void (*ended)(bide_branch *branch),
                               const char *reused, const char *what, const char *function,
                               const char *file, unsigned line);
BIDE_MUST_AWAIT
bide_awaiter *bide_scope_join_checked_(bide_scope *scope, const char *what, const char *function,
                                       const char *file, unsigned line);
#if BIDE_DEBUG
#define BIDE_BRANCH_REUSED_ "a bide_branch is used again before what it ran ended"
#define BIDE_SCOPE_CLOSED_ \
    "something is spawned into a scope that bide_scope_init has not opened, or that was joined"
#define BIDE_SCOPE_JOINED_ "a scope is joined that was never opened"
#define bide_scope_spawn(scope, branch, awaiter)                        \
    bide_scope_spawn_checked_((scope), (branch), NULL, (awaiter), NULL, \
                              BIDE_BRANCH_REUSED_ ": " #branch,         \
                              BIDE_MISUSE_(BIDE_SCOPE_CLOSED_, #scope))
#define bide_scope_spawn_in(scope, branch, context, awaiter, ended)             \
    bide_scope_spawn_checked_((scope), (branch), (context), (awaiter), (ended), \
                              BIDE_BRANCH_REUSED_ ": " #branch,                 \
                              BIDE_MISUSE_(BIDE_SCOPE_CLOSED_, #scope))
#define bide_scope_join(scope) \
    bide_scope_join_checked_((scope), BIDE_MISUSE_(BIDE_SCOPE_JOINED_, #scope))
#endif

BIDE_EXTERN_C_END

#endif
