/*
 * A channel for one value, once: the answer to a request. Floor: queue.
 *
 *     bide_oneshot(struct answer) oneshot;
 *     bide_oneshot_init(&oneshot);
 *     bide_oneshot_send(&oneshot, &answer);                            0, or -EPIPE: not sent
 *     bide_try(bide_oneshot_recv(&self->wait, &oneshot, &answer));  -EPIPE: there will be none
 *
 * Any thread may send or close. Of all sends and closes exactly one wins. So several senders may
 * race to give the answer; or a receiver that no longer wants it, or a sender that will not give
 * it, closes first. A send that has not won returns -EPIPE, and leaves the value with its caller.
 *
 * One thread at a time is the receiver: it receives, tries to, and waits. A receive that is
 * cancelled, that loses in a select, or whose coroutine is destroyed before it resumes, takes
 * nothing: the value is there for the next. Two waits at once are misuse, and detected.
 *
 * Lifetime: the memory may be freed when the last receive has ended, and no other call is under way
 * or will come. A send that returns 0, and a close, touch nothing of the oneshot after they have
 * changed the event. So if there is only ever one send or close, the receiver may free the memory
 * as soon as its receive has ended with 0 or -EPIPE, even before that call returns. After a
 * cancelled receive, or its own close, the receiver must know by other means that no send will
 * come.
 *
 * Everything is wait-free, except send and close, which are lock-free: they retry if a wait has
 * begun or was cancelled in between. Nothing allocates. Values are copied as by memcpy: any type in
 * C; in C++ trivially copyable ones. In the macros `oneshot` may be evaluated more than once, the
 * other arguments once.
 */
#ifndef BIDE_ONESHOT_H
#define BIDE_ONESHOT_H

#include "bide/detail/element.h"
#include "bide/errors.h"
#include "bide/single_consumer_event.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_oneshot_ {
    bide_single_consumer_event event;
    bide_atomic(uint32_t) claimed;
    bool received;
} bide_oneshot_;

/*
 * A oneshot for a value of `type`. Each use is a type of its own: give it a name by a typedef, or
 * declare one where it is used.
 */
#define bide_oneshot(type)   \
    struct {                 \
        bide_oneshot_ state; \
        type value;          \
    }

/*
 * One receive. Its memory, and that of the value's place, is the caller's until the wait has ended.
 */
typedef struct bide_oneshot_waiter {
    bide_single_consumer_event_waiter wait; /* the head */
    bide_oneshot_ *oneshot;
    const void *value;
    void *to; /* NULL once it has taken the value */
    size_t size;
} bide_oneshot_waiter;

/* `pointer`, which must be one to a value. */
#define BIDE_ONESHOT_VALUE_(oneshot, pointer) (1 ? (pointer) : &(oneshot)->value)

/*
 * Makes a oneshot.
 * Threads: before it is shared. Progress: wait-free.
 */
#define bide_oneshot_init(oneshot) bide_oneshot_init_(&(oneshot)->state)

BIDE_INLINE void bide_oneshot_init_(bide_oneshot_ *oneshot)
{
    bide_single_consumer_event_init(&oneshot->event, false);
    bide_atomic_init(&oneshot->claimed, 0);
    oneshot->received = false;
}

/* ---- Sending ---- */

/*
 * Sends a copy of the value at `from`, and wakes the receiver on its scheduler, but not on the
 * caller's stack while a coroutine is running on it.
 * Threads: any. Errors: -EPIPE (closed, or another send came first; nothing is sent). Suspends:
 * never. Progress: lock-free.
 */
#define bide_oneshot_send(oneshot, from)                     \
    bide_oneshot_send_(&(oneshot)->state, &(oneshot)->value, \
                       BIDE_ONESHOT_VALUE_((oneshot), (from)), sizeof(oneshot)->value)

BIDE_INLINE int bide_oneshot_send_(bide_oneshot_ *oneshot, void *value, const void *from,
                                   size_t size)
{
    /* relaxed: 1. */
    if (bide_atomic_load(&oneshot->claimed, relaxed) != 0 ||
        bide_atomic_exchange(&oneshot->claimed, 1, relaxed) != 0)
        return -EPIPE;
    bide_element_copy_(value, from, size);
    if (BIDE_LIKELY(bide_single_consumer_set_(&oneshot->event.state, BIDE_SINGLE_SET_))) /* 2 */
        return 0;
    /* acquire: 3, partner is the close. */
    (void)bide_atomic_load(&oneshot->event.state.word, acquire);
    return -EPIPE;
}

/*
 * Closes it, unless a value was sent: sends answer -EPIPE, and receives end with -EPIPE, now and
 * later. For a sender that will not send, and a receiver that no longer wants the value. A value
 * that was sent is still received. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
#define bide_oneshot_close(oneshot) bide_single_consumer_event_close(&(oneshot)->state.event)

/*
 * Was it sent or closed? Then no send wins any more: a sender need not make what nobody takes. What
 * was written before that is visible.
 * Threads: any. Progress: wait-free.
 */
#define bide_oneshot_is_decided(oneshot) bide_oneshot_is_decided_(&(oneshot)->state)

BIDE_INLINE bool bide_oneshot_is_decided_(bide_oneshot_ *oneshot)
{
    /* acquire: 2 and 3, partners are the set and the close. */
    uintptr_t word = bide_atomic_load(&oneshot->event.state.word, acquire);
    return word != BIDE_SINGLE_NOT_SET_ && !bide_single_consumer_is_waiter_(word);
}

/* ---- Receiving ---- */

BIDE_INLINE int bide_oneshot_take_(bide_oneshot_ *oneshot, const void *value, void *to, size_t size)
{
    if (oneshot->received) /* 4 */
        return -EPIPE;
    bide_element_copy_(to, value, size);
    oneshot->received = true;
    return 0;
}

/*
 * Receives at once, or not at all.
 * Threads: the receiver's. Errors: -EAGAIN (not sent yet), -EPIPE (closed before anything was sent,
 * or the value has been received already). Progress: wait-free.
 */
#define bide_oneshot_try_recv(oneshot, to)                       \
    bide_oneshot_try_recv_(&(oneshot)->state, &(oneshot)->value, \
                           BIDE_ONESHOT_VALUE_((oneshot), (to)), sizeof(oneshot)->value)

BIDE_INLINE int bide_oneshot_try_recv_(bide_oneshot_ *oneshot, const void *value, void *to,
                                       size_t size)
{
    /* acquire: 2, partner is the set, or the close. */
    uintptr_t word = bide_atomic_load(&oneshot->event.state.word, acquire);
    if (word == BIDE_SINGLE_SET_ || word == BIDE_SINGLE_SET_FOR_GOOD_)
        return bide_oneshot_take_(oneshot, value, to, size);
    return word == BIDE_SINGLE_CLOSED_ ? -EPIPE : -EAGAIN;
}

BIDE_INLINE bool bide_oneshot_ready_(bide_awaiter *awaiter)
{
    return bide_oneshot_is_decided_(((bide_oneshot_waiter *)(void *)awaiter)->oneshot);
}

BIDE_INLINE int bide_oneshot_resume_(bide_awaiter *awaiter)
{
    bide_oneshot_waiter *waiter = (bide_oneshot_waiter *)(void *)awaiter;
    int status = bide_oneshot_try_recv_(waiter->oneshot, waiter->value, waiter->to, waiter->size);
    if (BIDE_LIKELY(status == 0))
        waiter->to = NULL;
    return status;
}

/* In src/queue/oneshot.c: 5. */
void bide_oneshot_begin_wait_(bide_oneshot_ *oneshot, const bide_frame *frame);
bool bide_oneshot_withdraw_(bide_awaiter *awaiter);
int bide_oneshot_attempt_(bide_awaiter *awaiter, bide_choice *choice);

BIDE_INLINE bide_frame *bide_oneshot_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
#if BIDE_DEBUG && !BIDE_CHECK /* the check would add events to all executions */
    bide_oneshot_begin_wait_(((bide_oneshot_waiter *)(void *)awaiter)->oneshot, frame);
#endif
    return bide_single_consumer_event_suspend_(awaiter, frame);
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_oneshot_recv_(bide_oneshot_waiter *waiter, bide_oneshot_ *oneshot,
                                             const void *value, void *to, size_t size)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_oneshot_ready_,
        .suspend = bide_oneshot_suspend_,
        .resume = bide_oneshot_resume_,
        .cancel = bide_single_consumer_cancel_,
        .withdraw = bide_oneshot_withdraw_,
        .name = "bide_oneshot_recv",
        .attempt = bide_oneshot_attempt_,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->oneshot = oneshot;
    waiter->value = value;
    waiter->to = to;
    waiter->size = size;
    return bide_single_consumer_wait_(&waiter->wait, &oneshot->event.state, &ops);
}

/*
 * Receives the value, to where `to` points; waits until it is sent. `waiter` and `to` must stay
 * until the wait has ended. The value is taken when the receiver resumes, and stays for another
 * receive if it does not.
 * Threads: the receiver's. Errors: -EPIPE (closed before anything was sent, or the value has been
 * received already), -ECANCELED, -ETIMEDOUT. Suspends: if nothing was sent yet. Cancel-safe: yes.
 * Progress: wait-free.
 */
#define bide_oneshot_recv(waiter, oneshot, to) BIDE_ONESHOT_RECV_(waiter, oneshot, to)
#define BIDE_ONESHOT_RECV_(waiter, oneshot, to)                        \
    bide_oneshot_recv_((waiter), &(oneshot)->state, &(oneshot)->value, \
                       BIDE_ONESHOT_VALUE_((oneshot), (to)), sizeof(oneshot)->value)

/*
 * The same for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: the receiver's, but not that of a loop (sync_wait.h). Errors: as bide_oneshot_recv;
 * -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_oneshot_recv_blocking(oneshot, to, deadline)                          \
    BIDE_BLOCKS_(bide_oneshot_recv_blocking_(&(oneshot)->state, &(oneshot)->value, \
                                             BIDE_ONESHOT_VALUE_((oneshot), (to)), \
                                             sizeof(oneshot)->value, (deadline)))

BIDE_INLINE int bide_oneshot_recv_blocking_(bide_oneshot_ *oneshot, const void *value, void *to,
                                            size_t size, uint64_t deadline)
{
    bide_oneshot_waiter waiter;
    return bide_sync_wait_until(bide_oneshot_recv_(&waiter, oneshot, value, to, size), deadline);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is under
 * way.
 * Threads: any. Progress: wait-free.
 */
#define bide_oneshot_destroy(oneshot)                                                       \
    BIDE_END_OF_LIFE_(bide_single_consumer_destroy_checked_, &(oneshot)->state.event.state, \
                      "a oneshot is destroyed while it is waited for", #oneshot)

/*
 * Why it is correct:
 *
 *     event     NOT_SET, or the waiter   nothing has been sent
 *               SET, SET_FOR_GOOD        the value is there; it stays there until it is received
 *               CLOSED                   it was closed before anything was sent
 *     claimed   0 --the first send--> 1
 *     received  false --a receive ends with 0--> true; back to false if the result has no user (5)
 *
 *     send      claim; copy the value; set the event
 *     receive   wait for the event; copy the value
 *     close     close the event: does nothing to a value that was sent
 *
 * 1. Only the sender that has claimed writes the value, and it claims once. Claiming orders
 *    nothing: relaxed. The look before it spares the others the exchange.
 * 2. The value is written before the event is set, and read after it was found set, or the receiver
 *    was woken because it was set. By the event's own argument (single_consumer_event.h, 1 and 2)
 *    neither the value nor the wake-up is missed. If the event was closed first, setting it fails,
 *    and nobody reads the value.
 * 3. A send that finds it closed has seen what was written before the close. That takes one more
 *    load, with acquire, because the set that failed is relaxed; its partner is the close. A send
 *    that finds it claimed by another has seen nothing.
 * 4. `received` is the receiver's alone.
 * 5. The value stays in the oneshot, so a receive that has taken it gives it back by `received`: if
 *    it loses in a select behind a wrapper, or if its coroutine is destroyed before it resumes. A
 *    select itself attempts the receive, which takes nothing unless it wins. It waits by the same
 *    waiter, with a table that takes nothing.
 *
 * Source: Tokio's and the futures crate's oneshot; the event is cppcoro's single_consumer_event.
 */

BIDE_EXTERN_C_END

#endif
