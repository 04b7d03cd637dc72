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
 * The awaiting coroutine's thread calls it; the operations' other sides may be on any thread.
 * bide_select_any takes the cases as an array, for any number of them. The same channel may be in
 * several cases, each with an operation of its own. Waiting takes constant memory, no allocation,
 * and time that is linear in the cases.
 *
 * A case is of one of two kinds, by its table:
 * - The select attempts an operation that has an `attempt` (extend/choice.h): sends and receives on
 *   channels, and your own operations. While that fails it awaits something that takes nothing. So
 *   nothing of the operation is done unless it wins.
 * - The select awaits any other operation, and cancels it when another case wins. So it must be a
 *   wait that takes nothing and can be repeated: for an event, a latch, a sequence, sleep until a
 *   time. Not a mutex, a semaphore, an auto-reset event, a task.
 *
 * Use bide_when_any for operations that each run to completion: it cancels the losers, which may
 * have sent or received an element before. Why it is correct: docs/internals/select.md.
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
 * select at a time. Ends with the winner's status, 0 or -EPIPE mostly. If it is cancelled, no case
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
 * After it has ended: the index of the case that was had; `count` if it was cancelled.
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
    struct {                         \
        bide_select any;             \
        uint64_t random;             \
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

/*
 * A partner may also carry out a send or a receive on a rendezvous while the select waits: one of
 * all such cases of the select. That case wins, even if others have become ready. A send and a
 * receive on one rendezvous may be cases of one select: they wait for another partner, and do not
 * meet each other.
 */

BIDE_EXTERN_C_END

#endif
