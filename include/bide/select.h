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
 * Nothing is lost: of the operations, the winner is done, and the others are as if they had never
 * begun. So a case is of one of three kinds, by its table:
 * - The select attempts an operation that has an `attempt` (extend/choice.h): sends and receives on
 *   channels, receives, reads and accepts on descriptors, operations around one other (bide_then,
 *   bide_with_deadline and the like), another select, and your own operations. While that fails it
 *   awaits something that takes nothing.
 * - The select awaits an operation that gives back what it took, or takes nothing: locks,
 *   semaphores, events, joins of tasks, timers. It cancels it when another case wins; if it has
 *   completed in the same turn, it is undone (bide_awaiter_ops.undo).
 * - All others are refused, because what they have done would be lost: coroutines of yours (a
 *   bide_task, the next value of a generator, bide_once_run), what is awaited side by side
 *   (bide_when_all), and operations that cannot give back, as sends on descriptors: there bide_poll is
 *   the case, and the operation follows it.
 *   Debug builds report that as misuse, with the operation's name; the select ends with
 *   -EOPNOTSUPP. The compiler reports a bide_task, if it sees its body and optimises.
 *
 * On descriptors these can be cases: bide_recv, bide_recv_from, bide_recvmsg, bide_recv_batch,
 * bide_recv_fds, bide_read, bide_readv at the position, bide_accept and bide_poll, with io_uring, epoll and
 * in memory. A case that loses has taken no byte, datagram or connection: it waits for input, and makes
 * its call when nothing else has been had. If another reader was faster then, it waits on. It waits in
 * the descriptor's line, behind operations that have begun before. A descriptor that does not poll, as
 * that of a regular file, ends the case with -EOPNOTSUPP, since its read waits for nobody: await it by
 * itself. If the select runs on another thread than the descriptor's loop (bide_schedule_on, a pool of
 * loops), that thread makes the call while the select waits, and what follows about partners holds.
 *
 * If the awaiting coroutine is destroyed as it waits, no case is lost either: what was taken is
 * given back. There are two exceptions. A partner on a rendezvous whose send has ended has left its
 * element in the receiver's memory, and the thread of another loop may have received bytes for the
 * select. bide_select_winner names that case, in the coroutine's `finally` part and after it. (A connection that was accepted so is closed.)
 *
 * Use bide_when_any for operations that each run to completion: it cancels the losers, which may
 * have sent or received an element before. Why it is correct: docs/internals/select.md.
 */
#ifndef BIDE_SELECT_H
#define BIDE_SELECT_H

#include "bide/detail/arguments.h"
#include "bide/extend/branch.h"
#include "bide/extend/choice.h"
#include "bide/extend/wrapper.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* One case. The caller's until the select has ended. */
typedef struct bide_select_case {
    bide_branch branch;
    bide_awaiter *awaiter;
    const bide_awaiter_ops *ops; /* of `awaiter`, as it was made */
    size_t turn;                 /* which case is tried at this place */
    uint32_t number;             /* of its attempt in the choice; a select as a case has several */
    bool is_plain; /* it is no wrapper, and can be attempted or undone, by its table */
} bide_select_case;

/* One select. The caller's until it has ended. */
typedef struct bide_select {
    bide_task task; /* at the head: it is the awaiter */
    bide_select_case *cases;
    size_t count;
    size_t winner;
    uint64_t *random;            /* NULL: the cases are tried in order */
    size_t last;                 /* the greatest number of its attempts */
    bide_choice choice;          /* of the cases that are attempted */
    bide_choice *offered;        /* the same, or that of the select of which this one is a case */
    bide_awaiter waiting;        /* for all branches */
    const bide_context *context; /* of the wait */
    bide_branch_group group;
    int status;
    int reason;     /* why it was asked to stop, or 0 */
    uint32_t waits; /* how many there were */
} bide_select;

#if defined __GNUC__ && defined __OPTIMIZE__
/*
 * Called if the compiler sees the operation's table, and that a select refuses it. It throws nothing:
 * clang reports no call that may throw.
 */
__attribute__((__error__("a select cannot give back what this operation has taken"),
               __nothrow__)) void
bide_select_refuses_(void);

BIDE_INLINE bool bide_select_is_refused_(const bide_awaiter_ops *ops)
{
    if (ops->attempt != NULL || ops->undo != BIDE_UNDO_NONE)
        return false;
    if (ops->withdraw != bide_frame_withdraw_)
        return ops->suspend != NULL;
    const bide_coroutine_code *code = ((const bide_point *)(const void *)ops)->code;
    return code != NULL && code->type != NULL && *code->type != NULL &&
           (*code->type)->release == NULL;
}
#define BIDE_SELECT_CHECK_(ops)                         \
    do {                                                \
        bool refused_ = bide_select_is_refused_(ops);   \
        if (__builtin_constant_p(refused_) && refused_) \
            bide_select_refuses_();                     \
    } while (0)
#else
#define BIDE_SELECT_CHECK_(ops) ((void)(ops))
#endif

/*
 * Makes a case of an operation that was made but not begun. It does not compile if the compiler
 * sees that a select refuses the operation (gcc and clang, optimised).
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_select_case_init(bide_select_case *c, bide_awaiter *awaiter)
{
    const bide_awaiter_ops *ops = awaiter->ops;
    BIDE_SELECT_CHECK_(ops);
    c->awaiter = awaiter;
    c->ops = ops;
    c->is_plain = ops->attempt != NULL ? ops->withdraw != bide_wrapper_withdraw_
                                       : ops->undo == BIDE_UNDO_WITHDRAW;
}

/*
 * Waits until one of `count` cases is ready, and takes it alone; with none, until it is asked to
 * stop, as Go's select does. *random is any number, the seed; it is changed with each use, by one
 * select at a time; NULL: as bide_select_any_in_order. Ends with the winner's status, 0 or -EPIPE
 * mostly. If it is cancelled, no case was had. `select`, the cases and what they are of are the
 * caller's until the wait has ended; the same cases may be used again, each made anew.
 * Threads: any. Errors: those of the winner, -ECANCELED, -ETIMEDOUT, -EOPNOTSUPP (a case cannot be
 * undone, see above; misuse in debug builds). Suspends: if no case is ready. Cancel-safe: yes.
 * Progress: that of its cases; waiting blocks as bide_stop_source_attach does, if the context has a
 * stop source.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_select_any(bide_select *select, bide_select_case *cases, size_t count,
                              uint64_t *random);

/*
 * The same, but of several ready cases it takes the first in the array. So a case that is always
 * ready keeps the cases behind it from ever being taken: put rare and urgent cases in front, such
 * as a request to stop before a stream of work.
 * Threads: any. Errors: as bide_select_any. Suspends: as bide_select_any. Cancel-safe: as
 * bide_select_any. Progress: as bide_select_any.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_select_any_in_order(bide_select *select, bide_select_case *cases, size_t count);

/*
 * bide_select_any at once. Receives from descriptors are attempted only on the thread of their loop.
 * Threads: any. Errors: -EAGAIN (no case is ready, or there is none), those of the winner,
 * -EOPNOTSUPP (as above). Suspends: never. Progress: that of its cases.
 */
int bide_select_try(bide_select *select, bide_select_case *cases, size_t count, uint64_t *random);

/*
 * bide_select_any_in_order at once.
 * Threads: any. Errors: as bide_select_try. Suspends: never. Progress: that of its cases.
 */
int bide_select_try_in_order(bide_select *select, bide_select_case *cases, size_t count);

/*
 * After it has ended: the index of the case that was had; `count` if it was cancelled or refused.
 * If the awaiting coroutine was destroyed: `count`, or the case that a partner carried out.
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

/*
 * bide_select_any_in_order of these operations, in the same way. The select's `random` is not used.
 * Threads: as bide_select_any. Errors: as bide_select_any. Suspends: as bide_select_any.
 * Cancel-safe: as bide_select_any. Progress: as bide_select_any.
 */
#define bide_select_any_of_in_order(select, ...)                  \
    (BIDE_CHECK_ROOM_((select)->cases, BIDE_COUNT_(__VA_ARGS__)), \
     BIDE_EACH_(BIDE_SELECT_CASE_, select, __VA_ARGS__),          \
     bide_select_any_in_order(&(select)->any, (select)->cases, BIDE_COUNT_(__VA_ARGS__)))

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
