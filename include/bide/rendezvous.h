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
 *     cut short  -ECANCELED, -ETIMEDOUT          nothing was sent, or received
 *
 * Any thread may do any of this. It is lock-free, with one exception: a send that a receiver has
 * claimed waits until that receiver has copied the element.
 *
 * One sender's elements are received in its order. Waiters are notified first come, first served;
 * an operation that comes at that moment may be faster.
 *
 * Both operations may be cases of one select, or of several. Elements are copied as memcpy does.
 * The macros evaluate their arguments once.
 *
 * Why it is right: its state is one word, the offer, with two event counts (event_count.h) for the
 * waiters. Receivers wait in `offered`, senders in `free`.
 *
 *     offer      NULL
 *                pointer    this send waits to be taken
 *                CLOSED     for good
 *
 *     send       takes a receiver that waits in `offered`, if there is one, and gives it the
 *                element. Otherwise: NULL -> pointer, notifies `offered`, and waits for its end.
 *                Not NULL: waits in `free` to do that
 *     receive    pointer -> NULL: the send is claimed. Copies the element, ends the send with 0,
 *                and notifies `free`. NULL: waits in `offered` to do that, or to be given one
 *     cut short  own pointer -> NULL, and notifies `free`: the element was not received
 *     close      any -> CLOSED, and notifies all; a pointer: ends that send with -EPIPE
 *
 * 1. An offer is taken off the word once: by a receiver, by the close, or by its own being cut
 *    short. The taker ends it. So an element is received once or not at all, and the sender knows
 *    which. A send that was claimed ends with 0, in a moment, although it is asked to stop
 *    meanwhile.
 * 2. The offer releases the element and the operation, and the claiming receiver acquires them.
 *    ABA: a pointer says that this send waits now, whenever it came, and what belongs to it is
 *    acquired with it.
 * 3. An offer may be claimed, and ended, before its own suspend has done with it. So between the
 *    two there is a handshake (handshake.h). Its results are the status, and that the element has
 *    been read.
 * 4. A send that is asked to stop as it is about to suspend has an offer that stands, and no wait
 *    that could be cut short (stop.h). It takes the offer back itself. If the offer was claimed,
 *    the send waits for its end, which cannot be cut short. A coroutine that is destroyed when its
 *    offer was made, and it does not know of that yet, takes it back as well.
 * 5. Each offer notifies one receiver after it, and each end of an offer one sender: N and L of
 *    event_count.h. A waiter's look is at that word. CLOSED notifies all, and stays. The notifier
 *    attempts the operation on the waiter's behalf. So an offer is received by a waiting receiver
 *    before its own send has suspended, and the next offer is made as one ends. A sender that has
 *    taken a receiver has acquired it, and gives it back to its coroutine by waking that
 *    (event_count.h, 5). A sender goes on taking while the receivers that it finds have chosen
 *    otherwise (7).
 * 6. What was written before the close is seen by each operation that ends with -EPIPE because of
 *    it: the close releases, they acquire.
 *
 * In a select:
 *
 *     choice     taken: 0 --a partner carries out an operation--> its number
 *     send       is offered while the select waits
 *     receive    is in line in `offered` while the select waits
 *
 * 7. The operations of a select that waits are one choice. A partner is a send that has taken the
 *    receive out of the line, or a receive that has taken the offer off the word. A partner is
 *    itself committed to nothing. It exchanges the choice's 0 for the number, and carries the
 *    operation out. If that fails the select has something else: the partner ends the operation as
 *    one that is let go, and looks for the next. While a partner has an operation its branch has
 *    not ended, so the choice stays, and is not used again. When all branches have ended the select
 *    reads which operation was chosen. The ends of the branches order that, so the exchange is
 *    relaxed.
 * 8. An offer does not carry out a receive of a select that waits, because both may be taken by
 *    others. It lets the receive go, and the select, which has taken back what it offered, takes
 *    the offer itself. That happens only where an offer is made as a select begins to wait: a send
 *    looks for receivers in line before it offers.
 * 9. A select does not meet itself: its receive sees its own offer as no offer, unless a sender
 *    waits in `free`, which that offer hides. Then the select is let go, and takes the offer back.
 *    A sender that comes to wait in `free` notifies `offered` for that. Its coming is a change, N,
 *    of what such a receive looks at. A notification of its own offer that has come to the receive
 *    is passed on to the next in line.
 * 10. Of several sends of a select on one rendezvous one is offered while it waits. So a sender
 *     that waits in `free` beside a select's own offer is another.
 *
 * Source: Hoare, Communicating Sequential Processes (1978); Go's unbuffered channels.
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
    bide_frame frame;         /* awaits `retry`, then `offer` */
    bide_event_count_waiter retry;         /* until the offer is made */
    bide_awaiter offer;       /* until it has ended */
    bide_handshake handshake; /* 3 */
    uint32_t stage;           /* which of them it awaits */
    int status;               /* written by the ender of the offer; then what the send ends with */
    bide_choice *choice;      /* NULL: it is in none; constant while it waits, as is what follows */
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
 * Makes a rendezvous. The memory may go when nothing waits and nothing uses it. A receiver uses it
 * until its receive has ended, even if the send has ended by then.
 * Threads: before it is shared. Progress: wait-free.
 */
#define bide_rendezvous_init(rendezvous_) \
    bide_rendezvous_init_(&(rendezvous_)->rendezvous, sizeof *(rendezvous_)->typed_)

/*
 * Sends a copy of the element at `from`; waits until a receiver has it. `from` and `sender` must
 * stay until the wait has ended. If the coroutine is destroyed before it goes on, the element may
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
 * serve the one that does). Suspends: never. Progress: lock-free.
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
 * Threads: any. Errors: -EPIPE (closed), -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
#define bide_rendezvous_send_blocking(rendezvous_, from, deadline) \
    bide_rendezvous_send_blocking_(&(rendezvous_)->rendezvous,     \
                                   BIDE_RENDEZVOUS_ELEMENT_((rendezvous_), (from)), (deadline))
#define bide_rendezvous_recv_blocking(rendezvous_, to, deadline) \
    bide_rendezvous_recv_blocking_(&(rendezvous_)->rendezvous,   \
                                      BIDE_RENDEZVOUS_ELEMENT_((rendezvous_), (to)), (deadline))

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
 * The end of its life. Does nothing; where BIDE_DEBUG is 1 it tells of misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_rendezvous_destroy(rendezvous_)                                        \
    BIDE_END_OF_LIFE_(bide_rendezvous_destroy_checked_, &(rendezvous_)->rendezvous, \
                      "a rendezvous is destroyed while it is waited for", #rendezvous_)

BIDE_EXTERN_C_END

#endif
