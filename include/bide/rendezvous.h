/*
 * A rendezvous: a channel without a slot. A send ends when a receiver has the element, which is copied straight from
 * the sender's memory into the receiver's. Any number of both. Floor: queue.
 *
 *     bide_rendezvous(struct job) jobs;
 *     bide_rendezvous_init(&jobs);
 *     bide_await_status(status, bide_rendezvous_send(&self->send, &jobs, &self->job));
 *     bide_await_status(status, bide_rendezvous_receive(&self->receive, &jobs, &self->job));
 *
 *     offer      NULL
 *                pointer    this send waits to be taken
 *                CLOSED     for good
 *
 *     send       takes a receiver that waits in `offered`, if there is one, and gives it the element. Otherwise:
 *                NULL -> pointer, notifies `offered`, and waits for its end. Not NULL: waits in `free` to do that
 *     receive    pointer -> NULL: the send is claimed. Copies the element, ends the send with 0, and notifies `free`.
 *                NULL: waits in `offered` to do that, or to be given one
 *     cut short  own pointer -> NULL, and notifies `free`: nobody has received it
 *     close      any -> CLOSED, and notifies all; a pointer: ends that send with -EPIPE
 *
 *     send       0: a receiver has it            -EPIPE: it is closed, and the element is the sender's still
 *     receive    0: it is the receiver's         -EPIPE: it is closed
 *     cut short  -ECANCELED, -ETIMEDOUT          nothing was sent, or received
 *
 * 1. An offer is taken off the word once: by a receiver, by the close, or by its own being cut short; and whoever took
 *    it ends it. So an element is received once or not at all, and the sender knows which. A send that was claimed ends
 *    with 0, in a moment, although it is asked to stop meanwhile.
 * 2. The offer releases the element and the operation, and who claims it acquires them. ABA: a pointer says that this
 *    send waits now, whenever it came, and what belongs to it is acquired with it.
 * 3. An offer may be claimed, and ended, before its own suspend has done with it: so between the two there is a handshake
 *    (handshake.h). Its results are the status, and that the element has been read.
 * 4. A send that is asked to stop as it is about to suspend has an offer that stands, and no wait that could be cut
 *    short (stop.h). It takes the offer back itself; if it was claimed it waits for its end, which cannot be cut short.
 *    A coroutine that is destroyed when its offer was made, and it does not know of that yet, takes it back as well.
 * 5. Each offer notifies one receiver after it, each end of an offer one sender: N and L of event_count.h. Who waits
 *    looks at that word. CLOSED notifies all, and stays. Who notifies attempts on behalf of who waits: so an offer is
 *    received by a receiver that waits before its own send has suspended, and the next is made as one ends.
 *    Who has taken a receiver has acquired it, and gives it to its coroutine again by waking that (event_count.h, 5).
 *    A sender goes on taking while the receivers that it finds have chosen otherwise (7).
 * 6. What was written before the close is seen by who ends with -EPIPE because of it: it releases, they acquire.
 *
 * ---- In a select ----
 *
 *     choice     taken: 0 --a partner carries out an operation--> its number
 *     send       is offered while the select waits         receive    is in line in `offered` while the select waits
 *
 * 7. The operations of a select that waits are one choice. A partner that is itself committed to nothing (a send that
 *    has taken the receive out of the line, a receive that has taken the offer off the word) exchanges the choice's 0
 *    for the number, and carries the operation out. If that fails the select has something else: the partner ends the
 *    operation as one that is let go, and looks for the next. While a partner has an operation its branch has not ended,
 *    so the choice stays, and is not used again. When all branches have ended the select reads who was chosen; their
 *    ends order that, so the exchange is relaxed.
 * 8. An offer does not carry out a receive of a select that waits: both may be taken by others. It lets the receive go,
 *    and the select, which has taken back what it offered, takes the offer itself. That happens only where an offer is
 *    made as a select begins to wait: a send looks for receivers in line before it offers.
 * 9. A select does not meet itself: its receive sees its own offer as no offer, unless somebody waits in `free`, whom that
 *    offer hides; then the select is let go, and takes it back. Who comes to wait in `free` notifies `offered` for that.
 *    (To come there is a change, N, of what such a receive looks at.) A notification of its own offer that has come to the
 *    receive is passed on to the next in line.
 * 10. Of several sends of a select on one rendezvous one is offered while it waits; so who waits in `free` beside a
 *    select's own offer is another.
 *
 * Order: one sender's elements are received in its order. Who waits is notified first come, first served; but one who
 * comes at that moment may be faster.
 *
 * Threads: any. Progress: lock-free; but a send that was claimed waits for the receiver to have copied the element.
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

/* A rendezvous for elements of `type`. Each use is a type of its own: give it a name by a typedef. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none */
#define bide_rendezvous(type)        \
    struct {                         \
        bide_rendezvous_ rendezvous; \
        type *typed_;                \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

/* One send. The caller's, for the time of the wait. */
struct bide_rendezvous_sender {
    bide_awaiter awaiter;
    bide_rendezvous_ *rendezvous;
    const void *element;
    bide_frame frame;         /* awaits `retry`, then `offer` */
    bide_retry retry;         /* until the offer is made */
    bide_awaiter offer;       /* until it has ended */
    bide_handshake handshake; /* 3 */
    uint32_t stage;           /* which of them it awaits */
    int status;               /* of who ends the offer; then what the send ends with */
    bide_choice *choice;      /* NULL: it is in none; constant while it waits, as is what follows */
    size_t number;
    bide_choice_offer chosen; /* its offer, as one of the choice's */
};

/* One receive. The caller's, for the time of the wait. */
typedef struct bide_rendezvous_receiver {
    bide_retry retry; /* at the head: it is the awaiter */
    bide_rendezvous_ *rendezvous;
    void *element;
    bide_choice *choice; /* NULL: it is in none; constant while it waits, as is `number` */
    size_t number;
} bide_rendezvous_receiver;

extern const bide_retry_rules bide_rendezvous_receive_rules_;

bide_frame *bide_rendezvous_suspend_(bide_awaiter *awaiter, bide_frame *frame);
bool bide_rendezvous_withdraw_(bide_awaiter *awaiter);
int bide_rendezvous_try_send_(bide_rendezvous_ *rendezvous, const void *from);
int bide_rendezvous_try_receive_(bide_rendezvous_ *rendezvous, void *to);
int bide_rendezvous_send_blocking_(bide_rendezvous_ *rendezvous, const void *from,
                                   uint64_t deadline);
int bide_rendezvous_receive_blocking_(bide_rendezvous_ *rendezvous, void *to, uint64_t deadline);
void bide_rendezvous_init_(bide_rendezvous_ *rendezvous, size_t size);

/* As a case of a select. The wait of a send ends with 0 when it was carried out, that of a receive then or when it is
 * let go. */
int bide_rendezvous_choose_send_(bide_awaiter *awaiter, bide_choice *choice);
int bide_rendezvous_choose_receive_(bide_awaiter *awaiter, bide_choice *choice);
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
BIDE_INLINE bide_awaiter *bide_rendezvous_receive_(bide_rendezvous_receiver *receiver,
                                                   bide_rendezvous_ *rendezvous, void *to)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_retry_ready_,
        .suspend = bide_retry_suspend_,
        .resume = bide_retry_resume_,
        .cancel = bide_retry_cancel_,
        .withdraw = bide_retry_withdraw_,
        .name = "bide_rendezvous_receive",
        .attempt = bide_rendezvous_choose_receive_,
    };
    receiver->rendezvous = rendezvous;
    receiver->element = to;
    receiver->choice = NULL;
    return bide_retry_init_(&receiver->retry, &ops, &bide_rendezvous_receive_rules_,
                            &rendezvous->offered);
}

/* `pointer`, which must be one to an element. */
#define BIDE_RENDEZVOUS_ELEMENT_(met, pointer) (1 ? (pointer) : (met)->typed_)

/* Makes a rendezvous. Before it is shared. The memory may go when nobody waits and nobody uses it: a receiver does
 * until its receive has ended, also when the send has already. */
#define bide_rendezvous_init(made) \
    bide_rendezvous_init_(&(made)->rendezvous, sizeof *(made)->typed_)

/*
 * Sends a copy of the element at `from`, which is the operation's until it has ended; as is `sender`. Waits until a
 * receiver has it. Ends with 0; -EPIPE; or -ECANCELED or -ETIMEDOUT (stop.h). Any thread; suspends; cancel-safe: yes,
 * the element was not received then (of a coroutine that is destroyed it may have been); lock-free.
 */
#define bide_rendezvous_send(sender, met, from) \
    bide_rendezvous_send_((sender), &(met)->rendezvous, BIDE_RENDEZVOUS_ELEMENT_((met), (from)))

/*
 * Receives an element, to where `to` points. Waits until one is offered. Ends with 0; -EPIPE; or -ECANCELED or
 * -ETIMEDOUT. Any thread; suspends if it has to wait; cancel-safe: yes, no element was taken then; lock-free.
 */
#define bide_rendezvous_receive(receiver, met, to) \
    bide_rendezvous_receive_((receiver), &(met)->rendezvous, BIDE_RENDEZVOUS_ELEMENT_((met), (to)))

/* Sends at once: 0, a receiver that waited has it, in a select or not; -EPIPE; or -EAGAIN: nobody waits, or another
 * thread is about to serve who does. Any thread; does not suspend. */
#define bide_rendezvous_try_send(met, from) \
    bide_rendezvous_try_send_(&(met)->rendezvous, BIDE_RENDEZVOUS_ELEMENT_((met), (from)))

/* Receives at once: 0, -EPIPE, or -EAGAIN: nothing is offered. Any thread; does not suspend. */
#define bide_rendezvous_try_receive(met, to) \
    bide_rendezvous_try_receive_(&(met)->rendezvous, BIDE_RENDEZVOUS_ELEMENT_((met), (to)))

/* The same for a plain thread, until `deadline` (nanoseconds of bide_platform.now(), or BIDE_FOREVER): returns what the
 * wait ends with, -ETIMEDOUT when the deadline has come. See bide_sync_wait_until. Blocks. */
#define bide_rendezvous_send_blocking(met, from, deadline)                                      \
    bide_rendezvous_send_blocking_(&(met)->rendezvous, BIDE_RENDEZVOUS_ELEMENT_((met), (from)), \
                                   (deadline))
#define bide_rendezvous_receive_blocking(met, to, deadline)                                      \
    bide_rendezvous_receive_blocking_(&(met)->rendezvous, BIDE_RENDEZVOUS_ELEMENT_((met), (to)), \
                                      (deadline))

/* Closes it for good: who sends or receives, now and later, ends with -EPIPE; but a send that a receiver has claimed
 * ends with 0. Any thread, more than once; does not suspend. */
#define bide_rendezvous_close(closed) bide_rendezvous_close_(&(closed)->rendezvous)

BIDE_INLINE void bide_rendezvous_destroy_checked_(bide_rendezvous_ *rendezvous, const char *what,
                                                  const char *function, const char *file,
                                                  unsigned line)
{
    if (!bide_rendezvous_is_idle_(rendezvous))
        bide_misuse_(what, function, file, line);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if it is waited for. */
#if BIDE_DEBUG
#define bide_rendezvous_destroy(destroyed) \
    bide_rendezvous_destroy_checked_(      \
        &(destroyed)->rendezvous,          \
        BIDE_MISUSE_("a rendezvous is destroyed while it is waited for", #destroyed))
#else
#define bide_rendezvous_destroy(destroyed) ((void)(destroyed))
#endif

BIDE_EXTERN_C_END

#endif
