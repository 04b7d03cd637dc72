/*
 * Waiting for whichever comes first, and taking exactly that: sends and receives on channels, events, timers.
 * Floor: queue.
 *
 *     bide_select_case_init(&self->cases[0], bide_channel_receive(&self->receive, jobs, &self->job));
 *     bide_select_case_init(&self->cases[1], bide_channel_send(&self->send, results, &self->result));
 *     bide_select_case_init(&self->cases[2], bide_event_wait(&self->wait, &self->server->draining));
 *     bide_select_case_init(&self->cases[3], bide_sleep_until(&self->sleep, time));
 *     bide_await_status(status, bide_select_any(&self->select, self->cases, 4, &self->random));
 *     switch (bide_select_winner(&self->select)) { ... }
 *
 * (bide_when_any is for operations that are each to run until they end. There the losers are asked to stop, and may
 * have sent or received an element before they are; here they have not.)
 *
 * A case is one of three kinds. An operation of an event count (bide_retry: sends and receives) is attempted by the
 * select, and otherwise waited with; nobody attempts it meanwhile, so nothing of it is done unless the select does it.
 * A send on a rendezvous, one in a select at most, goes to a receiver that waits; otherwise it stands while the select
 * waits, and if it was taken the select has it, whatever else has come. Any other is awaited, and asked to stop when
 * another case has come; so it must be a wait that takes nothing and may be begun again: for an event, a latch, a
 * sequence, sleep until a time. Not a mutex, a semaphore, an auto-reset event, a task.
 *
 *     ATTEMPT --one has succeeded--> ended
 *        |  ^
 *        v  +---- one of them has ended; the others were asked to stop, and have ended
 *     WAIT, in all of them, each in a branch
 *
 * 1. All cases are tried in an order that is drawn anew each time, from the caller's random numbers; the first that can
 *    be had is the winner. So no case is neglected, and the same seed gives the same choices.
 * 2. A line lets somebody go because something may be possible. A case that was let go and is not the winner lets the
 *    next in its line go (event_count.h, 4).
 * 3. What ends by itself in a branch, and is not of the first kind, has come: it wins if it is its turn. Of the first
 *    that ended it is known that it was not asked to stop, unless the select was; others may have ended by themselves
 *    too: with 0.
 * 4. Before anything is attempted after a wait, a send on a rendezvous has been taken, or taken back. So if it was taken
 *    nothing else is done; with two of them both might be.
 *
 * Progress: that of its cases. Source: Go's select; Hoare, Communicating sequential processes (1978).
 */
#ifndef BIDE_SELECT_H
#define BIDE_SELECT_H

#include "bide/branch.h"
#include "bide/event_count.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* One case. The caller's until the select has ended. */
typedef struct bide_select_case {
    bide_branch branch;
    bide_awaiter *awaiter;
    const bide_awaiter_ops *ops; /* of `awaiter`, as it was made */
    size_t turn;                 /* which case is tried at this place */
} bide_select_case;

/* One select. The caller's until it has ended. */
typedef struct bide_select {
    bide_task task; /* at the head: it is the awaiter */
    bide_select_case *cases;
    size_t count;
    size_t winner;
    size_t offered; /* the case that is a send on a rendezvous; `count`: none is */
    uint64_t *random;
    bide_awaiter waiting; /* for all branches */
    bide_fork fork;
    int status;
    int reason; /* why it was asked to stop, or 0 */
} bide_select;

/* Makes a case of an operation that was made but not begun. */
BIDE_INLINE void bide_select_case_init(bide_select_case *c, bide_awaiter *awaiter)
{
    c->awaiter = awaiter;
    c->ops = awaiter->ops;
}

/*
 * Waits until one of `count` cases can be had, at least one, and takes it alone. *random is any number, the seed; it is
 * changed with each use, by one select at a time. Ends with the winner's status, 0 or -EPIPE mostly; or, cut short,
 * with -ECANCELED or -ETIMEDOUT, and no case was had. `select`, the cases and what they are of are the caller's until
 * then; the same cases may be used again, each made anew. Any thread; suspends if it has to wait; cancel-safe: yes.
 * Waiting takes constant memory and no allocation, and time that is linear in the cases.
 */
bide_awaiter *bide_select_any(bide_select *select, bide_select_case *cases, size_t count,
                              uint64_t *random);

/* The same at once: -EAGAIN if none can be had. Does not suspend. */
int bide_select_try(bide_select *select, bide_select_case *cases, size_t count, uint64_t *random);

/* After it has ended: the index of the case that was had; `count` if it was cut short. */
BIDE_INLINE size_t bide_select_winner(const bide_select *select)
{
    return select->winner;
}

BIDE_EXTERN_C_END

#endif
