/*
 * A rendezvous: a channel without a slot. A send ends when a receiver has the element, which is
 * copied straight from the sender's memory into the receiver's. Any number of senders and
 * receivers. Floor: queue.
 *
 *     bide_rendezvous(struct job) jobs;
 *     bide_rendezvous_init(&jobs);
 *     bide_try(bide_rendezvous_send(&self->send, &jobs, &self->job));
 *     bide_try(bide_rendezvous_recv(&self->receive, &jobs, &self->job));
 *
 *     send       0: a receiver has it            -EPIPE: closed; the element is still the sender's
 *     receive    0: it is the receiver's         -EPIPE: closed
 *     cancelled  -ECANCELED, -ETIMEDOUT          nothing was sent, or received
 *
 * Any thread may send, receive and close. Everything is lock-free, with one exception: a send that
 * a receiver has claimed waits until that receiver has copied the element.
 *
 * A receiver gets one sender's elements in order. Waiters are notified first come, first served; an
 * operation that arrives at that moment may be faster.
 *
 * Both operations may be cases of one select, or of several. Elements are copied as by memcpy. The
 * macros evaluate their arguments once. Why it is correct: docs/internals/rendezvous.md. The
 * numbers below refer to that.
 */
#ifndef BIDE_RENDEZVOUS_H
#define BIDE_RENDEZVOUS_H

#include "bide/extend/choice.h"
#include "bide/extend/event_count.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_rendezvous_sender bide_rendezvous_sender;

/* A rendezvous without its type. */
typedef struct bide_rendezvous_ {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(bide_rendezvous_sender *) offer;
    size_t size; /* of an element; constant */
    bide_event_count offered;
    bide_event_count free;
} bide_rendezvous_;

/*
 * A rendezvous for elements of `type`. Each use is a type of its own: give it a name by a typedef.
 */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none */
#define bide_rendezvous(type)        \
    struct {                         \
        bide_rendezvous_ rendezvous; \
        type *typed_;                \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

/* One send. The caller's memory until the wait has ended. */
struct bide_rendezvous_sender {
    bide_awaiter awaiter;
    bide_rendezvous_ *rendezvous;
    const void *element;
    bide_frame frame;              /* awaits `retry`, then `offer` */
    bide_event_count_waiter retry; /* until the offer is made */
    bide_awaiter offer;            /* until it has ended */
    bide_handshake handshake;      /* 3 */
    uint32_t stage;                /* which of them it awaits */
    int status;          /* written by the ender of the offer; then what the send ends with */
    bide_choice *choice; /* NULL: it is in none; constant while it waits, as is what follows */
    size_t number;
    bide_choice_offer chosen; /* its offer, as one of the choice's */
};

/* One receive. The caller's memory until the wait has ended. */
typedef struct bide_rendezvous_receiver {
    bide_event_count_waiter retry; /* at the head: it is the awaiter */
    bide_rendezvous_ *rendezvous;
    void *element;
    bide_choice *choice; /* NULL: it is in none; constant while it waits, as is `number` */
    size_t number;
} bide_rendezvous_receiver;

extern const bide_event_count_ops bide_rendezvous_recv_ops_;

bide_frame *bide_rendezvous_suspend_(bide_awaiter *awaiter, bide_frame *frame);
bool bide_rendezvous_withdraw_(bide_awaiter *awaiter);
int bide_rendezvous_try_send_(bide_rendezvous_ *rendezvous, const void *from);
int bide_rendezvous_try_recv_(bide_rendezvous_ *rendezvous, void *to);
int bide_rendezvous_send_blocking_(bide_rendezvous_ *rendezvous, const void *from,
                                   uint64_t deadline);
int bide_rendezvous_recv_blocking_(bide_rendezvous_ *rendezvous, void *to, uint64_t deadline);
void bide_rendezvous_init_(bide_rendezvous_ *rendezvous, size_t size);

/*
 * As a case of a select. The wait of a send ends with 0 when it was carried out, that of a receive
 * then or when it is let go.
 */
int bide_rendezvous_choose_send_(bide_awaiter *awaiter, bide_choice *choice);
int bide_rendezvous_choose_recv_(bide_awaiter *awaiter, bide_choice *choice);
void bide_rendezvous_close_(bide_rendezvous_ *rendezvous);
bool bide_rendezvous_is_idle_(bide_rendezvous_ *rendezvous);

BIDE_INLINE bool bide_rendezvous_sends_(bide_awaiter *awaiter)
{
    bide_rendezvous_sender *sender = (bide_rendezvous_sender *)(void *)awaiter;
    sender->status = bide_rendezvous_try_send_(sender->rendezvous, sender->element);
    return sender->status != -EAGAIN;
}

BIDE_INLINE int bide_rendezvous_sent_(bide_awaiter *awaiter)
{
    return ((bide_rendezvous_sender *)(void *)awaiter)->status;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_rendezvous_send_(bide_rendezvous_sender *sender,
                                                bide_rendezvous_ *rendezvous, const void *from)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_rendezvous_sends_,
        .suspend = bide_rendezvous_suspend_,
        .resume = bide_rendezvous_sent_,
        .cancel = NULL,
        .withdraw = bide_rendezvous_withdraw_,
        .name = "bide_rendezvous_send",
        .attempt = bide_rendezvous_choose_send_,
        .undo = BIDE_UNDO_NONE,
    };
    sender->awaiter.ops = &ops;
    sender->rendezvous = rendezvous;
    sender->element = from;
    sender->choice = NULL;
    return &sender->awaiter;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_rendezvous_recv_(bide_rendezvous_receiver *receiver,
                                                bide_rendezvous_ *rendezvous, void *to)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_event_count_waiter_ready_,
        .suspend = bide_event_count_waiter_suspend_,
        .resume = bide_event_count_waiter_resume_,
        .cancel = bide_event_count_waiter_cancel_,
        .withdraw = bide_event_count_waiter_withdraw_,
        .name = "bide_rendezvous_recv",
        .attempt = bide_rendezvous_choose_recv_,
        .undo = BIDE_UNDO_NONE,
    };
    receiver->rendezvous = rendezvous;
    receiver->element = to;
    receiver->choice = NULL;
    return bide_event_count_waiter_init_(&receiver->retry, &ops, &bide_rendezvous_recv_ops_,
                                         &rendezvous->offered);
}

/* `pointer`, which must be one to an element. */
#define BIDE_RENDEZVOUS_ELEMENT_(rendezvous_, pointer) (1 ? (pointer) : (rendezvous_)->typed_)

/*
 * Makes a rendezvous. The memory may be freed when nothing waits and nothing uses it. A receiver uses it
 * until its receive has ended, even if the send has ended by then.
 * Threads: before it is shared. Progress: wait-free.
 */
#define bide_rendezvous_init(rendezvous_) \
    bide_rendezvous_init_(&(rendezvous_)->rendezvous, sizeof *(rendezvous_)->typed_)

/*
 * Sends a copy of the element at `from`; waits until a receiver has it. `from` and `sender` must
 * stay until the wait has ended. If the coroutine is destroyed before it resumes, the element may
 * have been received.
 * Threads: any. Errors: -EPIPE (closed), -ECANCELED, -ETIMEDOUT. Suspends: unless a receiver waits,
 * or it is closed. Cancel-safe: yes, the element was not received. Progress: lock-free; a claimed
 * send waits for the receiver's copy.
 */
#define bide_rendezvous_send(sender, rendezvous_, from) \
    BIDE_RENDEZVOUS_SEND_(sender, rendezvous_, from)
#define BIDE_RENDEZVOUS_SEND_(sender, rendezvous_, from)        \
    bide_rendezvous_send_((sender), &(rendezvous_)->rendezvous, \
                          BIDE_RENDEZVOUS_ELEMENT_((rendezvous_), (from)))

/*
 * Receives an element, to where `to` points; waits until one is offered. `to` and `receiver` must
 * stay until the wait has ended.
 * Threads: any. Errors: -EPIPE (closed), -ECANCELED, -ETIMEDOUT. Suspends: if nothing is offered.
 * Cancel-safe: yes, no element was taken. Progress: lock-free.
 */
#define bide_rendezvous_recv(receiver, rendezvous_, to) \
    BIDE_RENDEZVOUS_RECV_(receiver, rendezvous_, to)
#define BIDE_RENDEZVOUS_RECV_(receiver, rendezvous_, to)          \
    bide_rendezvous_recv_((receiver), &(rendezvous_)->rendezvous, \
                          BIDE_RENDEZVOUS_ELEMENT_((rendezvous_), (to)))

/*
 * Sends at once, to a receiver that waits, in a select or not; or not at all.
 * Threads: any. Errors: -EPIPE (closed), -EAGAIN (no receiver waits, or another thread is about to
 * serve the waiting receiver). Suspends: never. Progress: lock-free.
 */
#define bide_rendezvous_try_send(rendezvous_, from)       \
    bide_rendezvous_try_send_(&(rendezvous_)->rendezvous, \
                              BIDE_RENDEZVOUS_ELEMENT_((rendezvous_), (from)))

/*
 * Receives at once, or not at all.
 * Threads: any. Errors: -EPIPE (closed), -EAGAIN (nothing is offered). Suspends: never. Progress:
 * lock-free.
 */
#define bide_rendezvous_try_recv(rendezvous_, to)         \
    bide_rendezvous_try_recv_(&(rendezvous_)->rendezvous, \
                              BIDE_RENDEZVOUS_ELEMENT_((rendezvous_), (to)))

/*
 * Send and receive for a plain thread, which they block until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any but that of a loop (sync_wait.h). Errors: -EPIPE (closed), -ETIMEDOUT (the deadline
 * has come). Progress: blocks.
 */
#define bide_rendezvous_send_blocking(rendezvous_, from, deadline) \
    BIDE_BLOCKS_(bide_rendezvous_send_blocking_(                   \
        &(rendezvous_)->rendezvous, BIDE_RENDEZVOUS_ELEMENT_((rendezvous_), (from)), (deadline)))
#define bide_rendezvous_recv_blocking(rendezvous_, to, deadline) \
    BIDE_BLOCKS_(bide_rendezvous_recv_blocking_(                 \
        &(rendezvous_)->rendezvous, BIDE_RENDEZVOUS_ELEMENT_((rendezvous_), (to)), (deadline)))

/*
 * Closes the rendezvous for good: sends and receives, now and later, end with -EPIPE. A send that a
 * receiver has claimed ends with 0 all the same. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
#define bide_rendezvous_close(rendezvous_) bide_rendezvous_close_(&(rendezvous_)->rendezvous)

BIDE_INLINE void bide_rendezvous_destroy_checked_(bide_rendezvous_ *rendezvous, const char *what,
                                                  const char *function, const char *file,
                                                  unsigned line)
{
    if (!bide_rendezvous_is_idle_(rendezvous))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_rendezvous_destroy(rendezvous_)                                        \
    BIDE_END_OF_LIFE_(bide_rendezvous_destroy_checked_, &(rendezvous_)->rendezvous, \
                      "a rendezvous is destroyed while it is waited for", #rendezvous_)

BIDE_EXTERN_C_END

#endif
