/*
 * Coroutines side by side: a group waits for several operations, each in a branch of its own. The
 * basis of when_all, when_any and scopes; used through them. Its owner is the coroutine that waits for
 * it. Any thread may end a branch's operation. Floor: coroutine.
 *
 *     group                         branch
 *     +-----------+               +-----------+
 *     | running   | <------------ | group     |
 *     | decided   |               | frame     |  awaits `awaited` on behalf of the group
 *     | stop      | <-- child of -| stop      |  a wait in the branch can be cancelled by itself
 *     +-----------+               +-----------+
 *
 * A branch runs in a copy of the owner's context, with a stop source of its own: one source serves
 * one sequence of waits. If what it awaits moves it to another scheduler, it ends there, and the
 * owner resumes on its own scheduler.
 *
 * Why it is correct: `running` counts the branches that have not ended; a scope counts one more until
 * it is joined. The branch that counts down to 0 continues with the owner, and no branch touches the
 * group after its own count.
 *
 * 1. The count down releases, and the last one acquires: the owner sees what each branch wrote.
 * 2. `decided` is set once, by compare-exchange, before that branch's count down; so by 1 it is
 *    visible too, and needs no order of its own.
 * 3. The decider cancels the others before its count down, so the group's source is still
 *    there.
 * 4. A scope may be joined in another source than its opening one. The join is then an
 *    operation that can be cancelled there (stop.md): its `cancel` requests a stop of the group, and
 *    the join ends as always, by the last branch. While it is in `cancel` the gate is shut, so the
 *    owner does not continue, and the group stays, although its last branch may have ended. A source
 *    that was asked before is not waited in; the request is passed on before the owner counts down.
 */
#ifndef BIDE_EXTEND_BRANCH_H
#define BIDE_EXTEND_BRANCH_H

#include "bide/extend/root.h"
#include "bide/stop.h"

BIDE_EXTERN_C_BEGIN

/* The cause of a request that stops the other branches of a group. */
typedef enum bide_decision {
    BIDE_DECIDED_BY_NONE,
    BIDE_DECIDED_BY_ERROR, /* the first branch that fails */
    BIDE_DECIDED_BY_END,   /* the first branch that ends */
    BIDE_DECIDED_SPARING,  /* nothing; the first branch that fails is noted */
} bide_decision;

typedef struct bide_branch_group {
    bide_atomic(size_t) running;
    bide_atomic(size_t)
        decided; /* 0, or the number of the branch that decided, from 1; in a scope, its -error */
    bide_decision decision;
    bool can_stop; /* can anybody ask the branches to stop? */
    bool is_kept;  /* a scope's that keeps accounts of its branches (scope.c) */

    /* A branch that was asked before it begins does not begin what can be cancelled. */
    bool begins_asked;
    bide_awaiter *joined; /* the operation that ends with the group */
    size_t passed;        /* while it is destroyed: the branches up to this number have ended */
    bide_stop_source stop;
} bide_branch_group;

typedef struct bide_branch bide_branch;

/* The caller's memory until the branch has ended. */
struct bide_branch {
    bide_frame frame;
    bide_root_links_ links; /* of a scope's: among the live ones (bide_dump) */
    bide_awaiter *awaited;
    int status; /* what `awaited` ended with: 0 or a negative errno */
    bide_branch_group *group;
    size_t number;
    void (*ended)(bide_branch *branch); /* called last, and may free the branch; or NULL */
    bide_context context;
    bide_stop_source stop;
};

/*
 * Makes `branch` wait for `awaiter`, once it is given to when_all or the like.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_branch_init(bide_branch *branch, bide_awaiter *awaiter)
{
    branch->awaited = awaiter;
}

/*
 * Of a scope that keeps accounts: the branch has ended, and not been counted down. It may be the
 * caller's of bide_scope_next from then on, so nothing of it is touched.
 */
void bide_scope_branch_ended_(bide_branch *branch);

/* The branch of a scope is to wait in the scope's queue; then it begins after all. */
void bide_branch_hold_(bide_branch *branch);
void bide_branch_begin_(bide_branch *branch);

/* Makes a group of `running` branches. `context` is the owner's. */
void bide_branch_group_init_(bide_branch_group *group, size_t running, bide_decision decision,
                             const bide_context *context, bide_awaiter *joined);

/*
 * After that, and before any branch runs: a request that asks the owner to stop asks the branches.
 */
void bide_branch_group_attach_(bide_branch_group *group, const bide_context *context);

/*
 * Makes a branch ready to be posted, or to run next; in `context` but for the source. With a
 * number, from 1: one that stays until the group ends, prepared before the group is attached. With
 * 0: at any time, by a counted branch.
 */
void bide_branch_prepare_(bide_branch *branch, bide_branch_group *group, size_t number,
                          const bide_context *context);

/*
 * One of the counted branches has ended. Returns whether it was the last: then the group is the
 * caller's, otherwise it is not to be touched.
 */
bool bide_branch_group_count_down_(bide_branch_group *group);

/* After the last: nothing refers to the group any more. */
void bide_branch_group_end_(bide_branch_group *group);

/*
 * The branch has ended, and the group's owner is destroyed before it has learnt of that: the
 * branch's result is given back, and its status is -ECANCELED.
 */
void bide_branch_release_(bide_branch *branch);

BIDE_EXTERN_C_END

#endif
