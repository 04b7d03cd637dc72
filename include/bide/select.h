/*
 * Waiting for the first of several operations, and taking exactly that one: sends and receives on
 * channels, events, timers. Floor: queue.
 *
 *     bide_select_of(4) select;       // a member of the frame
 *     ...
 *     bide_await_status(
 *         status, bide_select_any_of(&self->select,
 *                                    bide_channel_recv(&self->receive, jobs, &self->job),
 *                                    bide_channel_send(&self->send, results, &self->result),
 *                                    bide_event_wait(&self->wait, &self->server->draining),
 *                                    bide_sleep_until(&self->sleep, time)));
 *     switch (bide_select_winner(&self->select.any)) { ... }
 *
 * bide_select_any takes the cases as an array, for any number of them. The same channel may be in
 * several cases, each with an operation of its own. Waiting takes constant memory and no
 * allocation, and time that is linear in the cases.
 *
 * A case is of one of two kinds, by its table:
 * - An operation with an `attempt` (extend/choice.h) is attempted by the select. While that fails,
 *   something is awaited that takes nothing. So nothing of the operation is done unless the select
 *   does it. These are sends and receives on channels, and operations of your own.
 * - Any other operation is awaited, and asked to stop when another case has come. So it must be a
 *   wait that takes nothing and may be begun again: for an event, a latch, a sequence, sleep until
 *   a time. Not a mutex, a semaphore, an auto-reset event, a task.
 *
 * A send or a receive on a rendezvous may also be carried out by a partner while the select waits,
 * one of all that the select has. That one is what the select has, whatever else has come. A send
 * and a receive on one rendezvous may be cases of one select: they wait for another partner, and do
 * not meet each other.
 *
 * bide_when_any is for operations that are each to run until they end. There the losers are asked
 * to stop, and may have sent or received an element before they are; here they have not.
 *
 * Why it is right:
 *
 *     ATTEMPT --one has succeeded--> ended
 *        |  ^
 *        v  +---- one of them has ended; the others were asked to stop, and have ended
 *     WAIT, in all of them, each in a branch
 *
 * 1. All cases are tried in an order that is drawn anew each time, from the caller's random
 *    numbers; the first that can be had is the winner. So no case is neglected, and the same seed
 *    gives the same choices.
 * 2. A line lets a waiter go because something may be possible. If a case was let go, and is the
 *    winner or is not attempted any more, its wait is given back, and that lets the next in its
 *    line go (event_count.h, 4). An attempt that fails shows that there is nothing to pass on: a
 *    thread that makes it possible later lets a waiter go for that.
 * 3. What is awaited itself, and ends by itself in its branch, has come: it wins if it is its turn.
 *    Of the first that ended it is known that it was not asked to stop, unless the select was.
 *    Others may have ended by themselves too: with 0.
 * 4. Before anything is attempted after a wait, no partner can carry out an operation any more,
 *    because all waits have ended. One was carried out, and is the winner, or none was
 *    (rendezvous.h, 7). So nothing else is done if one was.
 * 5. Without a case it waits for nothing, until it is asked to stop.
 * 6. The waits begin in an order that is drawn anew, too. Two selects that face each other, and
 *    offer and receive in step, would let each other go for ever: each takes back what it offers,
 *    and then there is nothing. When one begins to receive first, it takes the other's offer.
 *
 * Source: Go's select; Hoare, Communicating sequential processes (1978).
 */
#ifndef BIDE_SELECT_H
#define BIDE_SELECT_H

#include "bide/detail/arguments.h"
#include "bide/extend/branch.h"
#include "bide/extend/choice.h"
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
    uint64_t *random;
    bide_choice choice;   /* of the cases that are attempted */
    bide_awaiter waiting; /* for all branches */
    bide_branch_group group;
    int status;
    int reason; /* why it was asked to stop, or 0 */
} bide_select;

/*
 * Makes a case of an operation that was made but not begun.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_select_case_init(bide_select_case *c, bide_awaiter *awaiter)
{
    c->awaiter = awaiter;
    c->ops = awaiter->ops;
}

/*
 * Waits until one of `count` cases can be had, and takes it alone; with none, until it is asked to
 * stop, as Go's select does. *random is any number, the seed; it is changed with each use, by one
 * select at a time. Ends with the winner's status, 0 or -EPIPE mostly. If it is cut short, no case
 * was had. `select`, the cases and what they are of are the caller's until the wait has ended; the
 * same cases may be used again, each made anew.
 * Threads: any. Errors: those of the winner, -ECANCELED, -ETIMEDOUT. Suspends: if no case can be
 * had. Cancel-safe: yes. Progress: that of its cases; waiting blocks as bide_stop_source_attach
 * does, if the context has a stop source.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_select_any(bide_select *select, bide_select_case *cases, size_t count,
                              uint64_t *random);

/*
 * The same at once.
 * Threads: any. Errors: -EAGAIN (no case can be had, or there is none), those of the winner.
 * Suspends: never. Progress: that of its cases.
 */
int bide_select_try(bide_select *select, bide_select_case *cases, size_t count, uint64_t *random);

/*
 * After it has ended: the index of the case that was had; `count` if it was cut short.
 * Threads: any that knows of the end. Progress: wait-free.
 */
BIDE_INLINE size_t bide_select_winner(const bide_select *select)
{
    return select->winner;
}

/*
 * One select of up to `max` operations, with its cases: one member of the frame. `random`, the
 * seed, is the user's to set; `any` is the select that bide_select_winner is asked about.
 * Threads: any may use the type.
 */
#define bide_select_of(max)          \
    struct {                          \
        bide_select any;              \
        uint64_t random;              \
        bide_select_case cases[max]; \
    }

/*
 * bide_select_any of these operations, nine at most, in a bide_select_of with room for them, which
 * is evaluated once for each. Their indices, for the winner, are from 0 in this order.
 * Threads: as bide_select_any. Errors: as bide_select_any. Suspends: as bide_select_any.
 * Cancel-safe: as bide_select_any. Progress: as bide_select_any.
 */
#define bide_select_any_of(select, ...)                                         \
    (BIDE_CHECK_ROOM_((select)->cases, BIDE_COUNT_(__VA_ARGS__)),               \
     BIDE_EACH_(BIDE_SELECT_CASE_, select, __VA_ARGS__),                        \
     bide_select_any(&(select)->any, (select)->cases, BIDE_COUNT_(__VA_ARGS__), \
                     &(select)->random))
#define BIDE_SELECT_CASE_(select, index, operation) \
    bide_select_case_init(&(select)->cases[index], (operation))

BIDE_EXTERN_C_END

#endif
