/*
 * A registered set of waits: operations that stay registered while their owner takes whichever
 * completes next, again and again. Floor: queue.
 *
 *     bide_select_set_init(&self->set);
 *     for (size_t i = 0; i < CLIENTS; i++)
 *         bide_select_set_add(&self->set, &clients[i].member, next_job(&clients[i]));
 *     while (!stop) {
 *         bide_try(bide_select_set_next(&self->set, &self->member));
 *         struct client *client = bide_container_of(self->member, struct client, member);
 *         if (client->member.status < 0)              // -EPIPE: closed
 *             continue;
 *         serve(client);
 *         bide_select_set_add(&self->set, &client->member, next_job(client));    // and again
 *     }
 *     bide_await(bide_select_set_end(&self->set));
 *     bide_finally();
 *     bide_select_set_destroy(&self->set);            // if the owner is destroyed
 *
 * It is for many waits, of which few complete at a time. bide_select_any (select.h) begins and
 * cancels all of its waits each time, so a message costs it time that is linear in the cases. Here
 * a message costs the same however many members there are. It serves the members in the order in
 * which they were notified.
 *
 *     outside --add--> to try --next: attempt fails, wait begins--> waiting
 *        ^               |  ^                                          |
 *        |               |  +----next: the attempt fails---- notified <-+ its wait has ended
 *        +--next, remove, end--+
 *
 * An operation may be a member if it may be a case of a select (select.h): nothing is taken before
 * `next` returns it, or it is given back if the member is removed instead. A partner at a
 * rendezvous is the exception: it may carry out a member's operation while the set waits. So may
 * the thread of a descriptor's loop, if that is another one than the owner's. Then the member is
 * returned by `next`; if the set ends first, the member's status is 0.
 *
 * While the owner does something else, a member that has been notified keeps its notification: other
 * waiters of the same object are not notified in its place until the owner calls `next` again, or
 * removes the member. `next` passes on the notifications of the members that it does not return.
 *
 * The coroutine that owns the set calls all functions; other sides of the operations may be on any
 * thread. Nothing here allocates. Why it is correct: docs/internals/select_set.md.
 *
 * Source: epoll(7) registers once and asks often; Go's reflect.Select has the cost that this avoids.
 */
#ifndef BIDE_SELECT_SET_H
#define BIDE_SELECT_SET_H

#include "bide/select.h"
#include "bide/stop.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_select_member bide_select_member;
typedef struct bide_select_set bide_select_set;

typedef enum bide_select_member_state_ {
    BIDE_MEMBER_OUTSIDE_,
    BIDE_MEMBER_TO_TRY_,   /* in `ready`: its operation is to be attempted or begun */
    BIDE_MEMBER_WAITING_,  /* in `waiting`: its frame waits, or is in `ended` */
    BIDE_MEMBER_NOTIFIED_, /* in `ready`: the wait has ended, the operation is to be attempted */
    BIDE_MEMBER_COMPLETE_  /* in `ready`: the operation has ended, with `status` */
} bide_select_member_state_;

/* One wait of a set. The caller's memory until it is outside the set. */
struct bide_select_member {
    int status;            /* what its operation has ended with; see `next` and `remove` */
    bide_frame frame;      /* waits for `awaited` */
    bide_awaiter *awaiter; /* the operation */
    bide_awaiter *awaited; /* the operation itself, or what an attempt has given to wait for */
    const bide_awaiter_ops *ops; /* of `awaiter`, as it was made */
    bide_choice choice;
    bide_select_set *set;
    bide_select_member_state_ state;
    bool tried;                        /* the operation was attempted, and is not as it was made */
    bide_select_member *next, **place; /* in the list that it is in */
    bide_select_member *next_ended;    /* in `ended` */
    bide_context context;
    bide_stop_source stop;
};

/* The owner's memory until it has ended. */
struct bide_select_set {
    bide_task task; /* at the head: of `next`, `remove` and `end`, one at a time */
    bide_awaiter until_ended;

    /* Members whose waits have ended, the newest first; NULL; or &until_ended: the owner waits. */
    bide_atomic(void *) ended;

    bide_select_member *ready, **ready_end;
    bide_select_member *notified; /* the first in `ready` that may have a notification, or NULL */
    bide_select_member *waiting;
    bide_select_member *which;   /* what `next` has found, or what is removed */
    bide_select_member **result; /* the caller's */
    bool suspends;
};

/*
 * Makes an empty set. It must be ended (bide_select_set_end) before its memory is used otherwise.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_select_set_init(bide_select_set *set);

void bide_select_set_add_(bide_select_set *set, bide_select_member *member, bide_awaiter *awaiter);

/*
 * Adds `awaiter`, an operation that was made but not begun: bide_select_set_next attempts or begins
 * it. `member` and the operation are the caller's until `next` has returned the member, or it was
 * removed; then the member may be added again, with an operation made anew. An operation that a
 * select refuses is refused here: `next` returns the member with -EOPNOTSUPP, debug builds report
 * it, and it does not compile where bide_select_case_init does not.
 * Threads: the owner's. Progress: wait-free.
 */
BIDE_INLINE void bide_select_set_add(bide_select_set *set, bide_select_member *member,
                                     bide_awaiter *awaiter)
{
    const bide_awaiter_ops *ops = awaiter->ops;
    BIDE_SELECT_CHECK_(ops);
    bide_select_set_add_(set, member, awaiter);
}

/*
 * Waits until the operation of a member is ready, and takes it. The member is stored in *member,
 * is outside the set, and member->status is what its operation ended with. If the wait is cancelled
 * nothing was taken, and all members stay.
 * Threads: the owner's. Errors: -ENOENT (the set is empty), -ECANCELED, -ETIMEDOUT. Suspends: if no
 * member is ready. Cancel-safe: yes. Progress: that of the members' operations; the time for each
 * of their ends does not depend on the number of members.
 */
BIDE_KEY_SCOPED(bide_select_set_destroy);
BIDE_MUST_AWAIT
bide_awaiter *bide_select_set_next(bide_select_set *set, bide_select_member **member);

/*
 * The same at once: does not wait.
 * Threads: the owner's. Errors: -ENOENT (the set is empty), -EAGAIN (no member is ready).
 * Suspends: never. Cancel-safe: yes. Progress: as bide_select_set_next.
 */
BIDE_KEY_SCOPED(bide_select_set_destroy);
BIDE_MUST_AWAIT
bide_awaiter *bide_select_set_poll(bide_select_set *set, bide_select_member **member);

/*
 * Takes a member out, which was added before. Its operation is cancelled, or given back if it has
 * completed, and member->status is -ECANCELED. If a partner has carried it out meanwhile, or it has
 * failed by itself, the status says that. A member that is outside the set is left as it is. Ends
 * with 0, also in a coroutine that is asked to stop.
 * Threads: the owner's. Errors: none. Suspends: if the wait of the member does not end at once.
 * Cancel-safe: no, it waits until the operation has ended. Progress: blocks until the operation has
 * ended.
 */
BIDE_KEY_SCOPED(bide_select_set_destroy);
BIDE_MUST_AWAIT
bide_awaiter *bide_select_set_remove(bide_select_set *set, bide_select_member *member);

/*
 * Takes all members out, as bide_select_set_remove does. The set is empty then, and may be used
 * again.
 * Threads: the owner's. Errors: none. Suspends: as bide_select_set_remove. Cancel-safe: no, it
 * waits until the operations have ended. Progress: blocks until the operations have ended; linear
 * in the members.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_select_set_end(bide_select_set *set);

/*
 * For the owner's `finally` part: when the owner is destroyed, withdraws the waits of the members
 * that are left, as bide_destroy does and under its conditions, and empties the set. Does nothing
 * if the set was ended.
 * Threads: the owner's. Progress: that of the operations' `withdraw`; linear in the members.
 */
void bide_select_set_destroy(bide_select_set *set);

BIDE_EXTERN_C_END

#endif
