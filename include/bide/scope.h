/*
 * A scope: coroutines that are begun one by one, run beside the one that owns the scope, and have all ended when
 * it has been joined. Floor: coroutine.
 *
 *     bide_scope_init(&self->scope, bide_this_frame());
 *     bide_scope_spawn(&self->scope, &self->reader, reader(...));
 *     bide_scope_spawn(&self->scope, &self->writer, writer(...));
 *     bide_try(bide_scope_join(&self->scope));        // all have ended; the first error
 *
 *     open --join--> joining --the last one has ended--> joined
 *
 * The first that fails asks the others to stop; so does bide_scope_cancel, and whoever asks the owner to stop. A
 * scope that is not joined before its owner ends is a fault that would leave coroutines with memory that is gone:
 * caught where BIDE_DEBUG is 1.
 *
 * Source: structured concurrency as of Trio's nurseries and Sustrik's bundles.
 */
#ifndef BIDE_SCOPE_H
#define BIDE_SCOPE_H

#include "bide/extend/branch.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_scope {
    bide_awaiter awaiter; /* of join */
    bide_fork fork;
    bide_context context; /* as the owner's was when it opened the scope; constant */

    /* of the trees of open scopes, where misuse is looked for */
    bide_frame *owner; /* or NULL: in none */
    struct bide_scope *below[2];
} bide_scope;

/*
 * Opens a scope, of the coroutine `owner`, which calls this (bide_this_frame()). It must be joined, by the owner,
 * before that ends. Cannot fail.
 */
void bide_scope_init_(bide_scope *scope, bide_frame *owner, bool debug);
#define bide_scope_init(scope, owner) bide_scope_init_(scope, owner, BIDE_DEBUG)

/*
 * Begins `awaiter` (a task, or any operation) beside the owner, in the context that the owner had when it opened the
 * scope, but for the stop source; it stays there if the owner moves. It is posted, not run, by this. `branch` is the caller's until the scope is joined, or until `ended` is called
 * with it, last of all, where it was set: see the next. By the owner, or by a coroutine of the scope. In a
 * scope that was asked to stop it begins all the same, and its waits end at once. What the operation had when the branch
 * ended is the scope's user's from then on (branch->status says so), also if the owner is destroyed before it joins.
 * Does not suspend; cannot fail.
 */
void bide_scope_spawn(bide_scope *scope, bide_branch *branch, bide_awaiter *awaiter);

/* The same, in another context, for a scheduler or a name of its own; its stop source is not used. `context`
 * is copied. `ended` is called on the thread where the branch ends, or is destroyed with the owner, with branch->status;
 * it may free the branch; or NULL. */
void bide_scope_spawn_in(bide_scope *scope, bide_branch *branch, const bide_context *context,
                         bide_awaiter *awaiter, void (*ended)(bide_branch *branch));

/* Asks all that run in the scope to stop. By the owner, or by a coroutine of the scope. */
BIDE_INLINE void bide_scope_cancel(bide_scope *scope)
{
    bide_stop_request(&scope->fork.stop);
}

/*
 * Waits until all that was begun in the scope has ended; ends with the first error, or 0. By the owner, once;
 * suspends unless all have ended. When the owner is asked to stop meanwhile, so are they, and the wait ends when
 * they have.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_scope_join(bide_scope *scope);

BIDE_EXTERN_C_END

#endif
