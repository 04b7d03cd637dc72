/*
 * The rendezvous: sends offer their element in one word, receives take it from there, and both wait on
 * event counts. Any thread may send, receive and close. The states, the argument and its numbers:
 * docs/internals/rendezvous.md.
 */
#include "bide/rendezvous.h"

#include "bide/detail/element.h"
#include "bide/handle.h"
#include "bide/stop.h"

/* The stages of a send. */
enum { SEND_IDLE, SEND_OFFERED, SEND_CLAIMED };

/* The result of an attempt that lets the select go. Not 0: nothing was received. */
enum { LET_GO = 1 };

/* Marks a closed rendezvous, instead of an offer. */
static bide_rendezvous_sender closed_offer;

/* CLOSED was found. */
static int end_closed(bide_rendezvous_ *rendezvous)
{
    (void)bide_atomic_load(&rendezvous->offer, acquire); /* 6; partner: the close */
    return -EPIPE;
}

/* ---- Choices ---- */

/* Whether the caller, which has taken the operation, may carry it out: 7. */
static bool is_chosen(bide_choice *choice, size_t number)
{
    return choice == NULL || bide_choice_take(choice, number);
}

/* ---- Ending an offer ---- */

/* Ends an offer that the caller has taken off the word. */
static void rendezvous_end_send(bide_rendezvous_sender *sender, int status)
{
    sender->status = status;
    if (bide_handshake_finish(&sender->handshake)) /* 3 */
        bide_wake_one(&sender->offer);
}

/* Takes the sender's own offer off the word. Returns false if it was claimed, or closed. */
static bool rendezvous_take_back(bide_rendezvous_sender *sender)
{
    bide_rendezvous_ *rendezvous = sender->rendezvous;
    bide_rendezvous_sender *own = sender;
    /* relaxed: no other thread has used it. */
    if (!bide_atomic_compare_exchange(&rendezvous->offer, &own, NULL, relaxed, relaxed))
        return false;
    bide_event_count_notify(&rendezvous->free, 1);
    return true;
}

/* Takes the offer off the word, for the caller to end. Returns NULL if there is none: *status. */
static bide_rendezvous_sender *take_offer(bide_rendezvous_ *rendezvous, int *status)
{
    bide_rendezvous_sender *sender = bide_atomic_load(&rendezvous->offer, relaxed);
    for (;;) {
        *status = -EAGAIN;
        if (sender == NULL)
            return NULL;
        if (sender == &closed_offer) {
            *status = end_closed(rendezvous);
            return NULL;
        }
        /* acquire: 2; partner: `make_offer`. */
        if (bide_atomic_compare_exchange(&rendezvous->offer, &sender, NULL, acquire, relaxed))
            return sender;
        bide_atomic_retry();
    }
}

/* Receives from an offer that the caller has taken off the word. */
static int receive_from(bide_rendezvous_sender *sender, void *to)
{
    bide_element_copy_(to, sender->element, sender->rendezvous->size);
    rendezvous_end_send(sender, 0);
    return 0;
}

/* Continues a receive at the offer of a select: until an offer may be carried out. */
BIDE_COLD static int receive_chosen(bide_rendezvous_ *rendezvous, bide_rendezvous_sender *sender,
                                    void *to)
{
    int status;
    do {
        if (is_chosen(sender->choice, sender->number))
            return receive_from(sender, to);
        rendezvous_end_send(sender, -EAGAIN);
        /*
         * In an attempt too, which does not notify otherwise. The select is taking its offer back at
         * this moment, and none that has chosen offers, so these calls do not nest.
         */
        bide_event_count_notify(&rendezvous->free, 1);
    } while ((sender = take_offer(rendezvous, &status)) != NULL);
    return status;
}

static int rendezvous_take_offer(bide_rendezvous_ *rendezvous, void *to)
{
    int status;
    bide_rendezvous_sender *sender = take_offer(rendezvous, &status);
    if (sender == NULL)
        return status;
    return BIDE_LIKELY(sender->choice == NULL) ? receive_from(sender, to)
                                               : receive_chosen(rendezvous, sender, to);
}

int bide_rendezvous_try_recv_(bide_rendezvous_ *rendezvous, void *to)
{
    int status = rendezvous_take_offer(rendezvous, to);
    if (status == 0)
        bide_event_count_notify(&rendezvous->free, 1);
    return status;
}

/* ---- Giving to a receiver that waits ---- */

static bide_rendezvous_receiver *rendezvous_receiver_of(bide_event_count_waiter *retry)
{
    return bide_container_of(retry, bide_rendezvous_receiver, retry);
}

/* The caller has taken it out of the line. */
static int rendezvous_give(bide_rendezvous_receiver *receiver, const void *from)
{
    bide_element_copy_(receiver->element, from, receiver->rendezvous->size);
    bide_event_count_waiter_end_(&receiver->retry, 0);
    return 0;
}

/* Takes the first receiver out of the line; NULL if there is none. */
BIDE_INLINE bide_rendezvous_receiver *take_receiver(bide_rendezvous_ *rendezvous)
{
    if (!bide_event_count_has_waiters_(&rendezvous->offered))
        return NULL;
    bide_event_count_waiter *retry = bide_event_count_take_(&rendezvous->offered);
    return retry != NULL ? rendezvous_receiver_of(retry) : NULL;
}

/* Continues try_send at the receive of a select: until a receive may be carried out. */
BIDE_COLD static int give_chosen(bide_rendezvous_ *rendezvous, bide_rendezvous_receiver *receiver,
                                 const void *from)
{
    do {
        if (is_chosen(receiver->choice, receiver->number))
            return rendezvous_give(receiver, from);
        bide_event_count_waiter_end_(&receiver->retry, 0);
    } while ((receiver = take_receiver(rendezvous)) != NULL);
    return -EAGAIN;
}

int bide_rendezvous_try_send_(bide_rendezvous_ *rendezvous, const void *from)
{
    /* relaxed: end_closed acquires CLOSED. */
    if (bide_atomic_load(&rendezvous->offer, relaxed) == &closed_offer)
        return end_closed(rendezvous);
    bide_rendezvous_receiver *receiver = take_receiver(rendezvous);
    if (receiver == NULL)
        return -EAGAIN;
    return BIDE_LIKELY(receiver->choice == NULL) ? rendezvous_give(receiver, from)
                                                 : give_chosen(rendezvous, receiver, from);
}

/* ---- Waiting for an offer to end ---- */

static bide_rendezvous_sender *of_offer(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_rendezvous_sender, offer);
}

static bool offer_ready(bide_awaiter *awaiter)
{
    return bide_handshake_has_ended(&of_offer(awaiter)->handshake);
}

static bide_frame *offer_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    if (bide_spin_until_ready(awaiter, frame))
        return frame;
    return bide_handshake_arm(&of_offer(awaiter)->handshake) ? frame : NULL; /* 3 */
}

static int offer_resume(bide_awaiter *awaiter)
{
    return of_offer(awaiter)->status;
}

static void offer_cancel(bide_awaiter *awaiter)
{
    if (rendezvous_take_back(of_offer(awaiter))) {
        bide_awaiter_finish_cancelled(awaiter);
        bide_wake_one(awaiter);
    }
}

static bool offer_withdraw(bide_awaiter *awaiter)
{
    return rendezvous_take_back(of_offer(awaiter));
}

static const bide_awaiter_ops offer_ops = {
    .ready = offer_ready,
    .suspend = offer_suspend,
    .resume = offer_resume,
    .cancel = offer_cancel,
    .withdraw = offer_withdraw,
    .name = "bide_rendezvous_send",
};

/* The table of a claimed send. */
static const bide_awaiter_ops claimed_ops = {
    .ready = offer_ready,
    .suspend = offer_suspend,
    .resume = offer_resume,
    .withdraw = offer_withdraw,
    .name = "bide_rendezvous_send",
};

/* ---- A send: a coroutine that makes an offer, and waits for its end ---- */

static bide_rendezvous_sender *of_retry(bide_event_count_waiter *retry)
{
    return bide_container_of(retry, bide_rendezvous_sender, retry);
}

static int make_offer(bide_rendezvous_sender *sender)
{
    bide_rendezvous_sender *found = NULL;
    if (sender->choice != NULL && bide_choice_taken(sender->choice) != 0)
        return -ECANCELED; /* a partner that comes too late does not carry it out either: 7 */
    /* release: 2; partners: the claiming receiver, and the close. */
    if (bide_atomic_compare_exchange(&sender->rendezvous->offer, &found, sender, release, relaxed))
        return 0;
    return found == &closed_offer ? end_closed(sender->rendezvous) : -EAGAIN;
}

static int retry_offer(bide_event_count_waiter *retry)
{
    return make_offer(of_retry(retry));
}

static bool may_offer(bide_event_count_waiter *retry)
{
    bide_rendezvous_ *rendezvous = of_retry(retry)->rendezvous;
    bide_rendezvous_sender *found = bide_atomic_load(&rendezvous->offer, relaxed);
    if (found == NULL || found == &closed_offer)
        return true;
    bide_event_count_notify(&rendezvous->offered, 1); /* 9 */
    return false;
}

static bide_event_count *rendezvous_offered(bide_event_count_waiter *retry)
{
    return &of_retry(retry)->rendezvous->offered;
}

static const bide_event_count_ops send_rules = {retry_offer, may_offer, rendezvous_offered};

static bide_next rendezvous_send_step(bide_frame *frame, unsigned depth);

static const bide_coroutine_code rendezvous_send_code = {
    rendezvous_send_step, "bide_rendezvous_send", __FILE__, NULL, NULL};
static const bide_point rendezvous_send_await =
    BIDE_POINT(&rendezvous_send_code, NULL, 0, BIDE_AT_AWAIT);

/* The usual case: makes an offer at once. Returns false if it must wait in `free`, or end. */
static bool offer_at_once(bide_rendezvous_sender *sender)
{
    if (make_offer(sender) != 0)
        return false;
    bide_event_count_notify(&sender->rendezvous->offered, 1); /* 5 */
    return true;
}

static bide_frame *await_offer(bide_rendezvous_sender *sender, uint32_t stage)
{
    sender->stage = stage;
    sender->offer.ops = stage == SEND_CLAIMED ? &claimed_ops : &offer_ops;
    return bide_frame_await(&sender->frame, &sender->offer);
}

/*
 * The wait for the offer's end was cancelled. Returns true if a taker has the offer, and will end it;
 * false if the offer was taken back: 4.
 */
static bool must_wait_on(bide_rendezvous_sender *sender)
{
    /* If it was armed, the canceller has taken it back. */
    return !bide_handshake_is_armed(&sender->handshake) && !rendezvous_take_back(sender);
}

static bide_next rendezvous_send_step(bide_frame *frame, unsigned depth)
{
    bide_rendezvous_sender *sender = bide_container_of(frame, bide_rendezvous_sender, frame);
    int status;
    (void)depth;
    if (sender->stage == SEND_IDLE) {
        bide_awaiter *awaiter = &sender->retry.waiter.awaiter;
        status = bide_awaiter_resume(awaiter, awaiter->ops);
        if (status == 0)
            return bide_next_frame(await_offer(sender, SEND_OFFERED));
    } else {
        status = bide_awaiter_resume(&sender->offer, sender->offer.ops);
        if (sender->stage == SEND_OFFERED && (status == -ECANCELED || status == -ETIMEDOUT) &&
            must_wait_on(sender))
            return bide_next_frame(await_offer(sender, SEND_CLAIMED));
    }
    sender->status = status;
    frame->awaiter.ops = &bide_point_finished.ops;
    return bide_next_frame(frame->awaiter.frame);
}

bide_frame *bide_rendezvous_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_rendezvous_sender *sender = (bide_rendezvous_sender *)(void *)awaiter;
    bide_frame *own = &sender->frame;
    bide_handshake_init(&sender->handshake);
    sender->stage = SEND_IDLE;
    own->awaiter.ops = &rendezvous_send_await.ops;
    own->awaiter.frame = frame;
    own->context = frame->context;
    bide_frame *next =
        offer_at_once(sender)
            ? await_offer(sender, SEND_OFFERED)
            : bide_frame_await(own, bide_event_count_wait(&sender->retry, &sender->rendezvous->free,
                                                          &send_rules));
    return next == own ? rendezvous_send_step(own, 0).frame : next;
}

bool bide_rendezvous_withdraw_(bide_awaiter *awaiter)
{
    bide_rendezvous_sender *sender = (bide_rendezvous_sender *)(void *)awaiter;
    if (!bide_awaiter_suspended(awaiter) || bide_done(&sender->frame))
        return false;
    bool knows_of_none = sender->stage == SEND_IDLE;
    bide_destroy(&sender->frame);
    /* An offer may have been made on its behalf. */
    if (knows_of_none && sender->retry.status == 0 && !rendezvous_take_back(sender)) {
        /* The receiver that has claimed it has not finished with it. */
        while (!bide_handshake_has_ended(&sender->handshake))
            bide_platform.yield();
    }
    return true;
}

/* ---- A receive ---- */

/* Whether the offer is the receive's own select's, and no other send waits: 9. */
static bool is_for_nobody(bide_rendezvous_receiver *receiver, const bide_rendezvous_sender *offer)
{
    return receiver->choice != NULL && bide_choice_has(receiver->choice, &offer->chosen) &&
           !bide_event_count_has_waiters_(&receiver->rendezvous->free);
}

/* On behalf of a select that waits: lets it go if there is an offer for it to take: 8, 9. */
BIDE_COLD static int rendezvous_notify(bide_rendezvous_receiver *receiver)
{
    bide_rendezvous_ *rendezvous = receiver->rendezvous;
    bide_rendezvous_sender *offer = bide_atomic_load(&rendezvous->offer, relaxed);
    if (offer == NULL)
        return -EAGAIN;
    if (is_for_nobody(receiver, offer)) {
        /* These calls nest no deeper than the select has receives in line here. */
        bide_event_count_notify(&rendezvous->offered, 1);
        return -EAGAIN;
    }
    return LET_GO;
}

static int rendezvous_attempt_receive(bide_event_count_waiter *retry)
{
    bide_rendezvous_receiver *receiver = rendezvous_receiver_of(retry);
    return BIDE_LIKELY(receiver->choice == NULL)
               ? rendezvous_take_offer(receiver->rendezvous, receiver->element)
               : rendezvous_notify(receiver);
}

static bool rendezvous_may_receive(bide_event_count_waiter *retry)
{
    bide_rendezvous_receiver *receiver = rendezvous_receiver_of(retry);
    bide_rendezvous_sender *offer = bide_atomic_load(&receiver->rendezvous->offer, relaxed);
    return offer != NULL && !is_for_nobody(receiver, offer);
}

static bide_event_count *rendezvous_freed(bide_event_count_waiter *retry)
{
    return &rendezvous_receiver_of(retry)->rendezvous->free;
}

const bide_event_count_ops bide_rendezvous_recv_ops_ = {rendezvous_attempt_receive,
                                                        rendezvous_may_receive, rendezvous_freed};

/* ---- In a select ---- */

/* A send of a select that offers another here already: 10. */
static bide_frame *second_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter, (void)frame;
    return NULL;
}

static void second_cancel(bide_awaiter *awaiter)
{
    bide_awaiter_finish_cancelled(awaiter);
    bide_wake_one(awaiter);
}

static bool second_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

int bide_rendezvous_choose_send_(bide_awaiter *awaiter, bide_choice *choice)
{
    /*
     * Never ready: it would give to a waiting receiver while partners may carry out the choice's other
     * operations.
     */
    static const bide_awaiter_ops ops = {
        .suspend = bide_rendezvous_suspend_,
        .resume = bide_rendezvous_sent_,
        .withdraw = bide_rendezvous_withdraw_,
        .name = "bide_rendezvous_send",
    };
    static const bide_awaiter_ops second = {
        .suspend = second_suspend,
        .resume = bide_rendezvous_sent_,
        .cancel = second_cancel,
        .withdraw = second_withdraw,
        .name = "bide_rendezvous_send",
    };
    bide_rendezvous_sender *sender = (bide_rendezvous_sender *)(void *)awaiter;
    int status = bide_rendezvous_try_send_(sender->rendezvous, sender->element);
    if (status != -EAGAIN)
        return status;
    choice->wait = awaiter;
    sender->choice = choice;
    sender->number = choice->number;
    awaiter->ops = bide_choice_offers_to(choice, sender->rendezvous) ? &second : &ops;
    bide_choice_add(choice, &sender->chosen, sender->rendezvous);
    return -EAGAIN;
}

static bool chosen_receive_ready(bide_awaiter *awaiter)
{
    return rendezvous_may_receive((bide_event_count_waiter *)(void *)awaiter);
}

static int chosen_receive_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bool chosen_receive_withdraw(bide_awaiter *awaiter)
{
    bide_rendezvous_receiver *receiver = (bide_rendezvous_receiver *)(void *)awaiter;
    if (bide_event_count_waiter_withdraw_(awaiter))
        return true;
    /* The notification goes to the next receiver, unless a partner has carried the receive out. */
    if (bide_choice_taken(receiver->choice) != receiver->number &&
        rendezvous_may_receive(&receiver->retry))
        bide_event_count_notify(&receiver->rendezvous->offered, 1);
    return false;
}

int bide_rendezvous_choose_recv_(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_awaiter_ops ops = {
        .ready = chosen_receive_ready,
        .suspend = bide_event_count_waiter_suspend_,
        .resume = chosen_receive_resume,
        .cancel = bide_event_count_waiter_cancel_,
        .withdraw = chosen_receive_withdraw,
        .name = "bide_rendezvous_recv",
    };
    bide_rendezvous_receiver *receiver = (bide_rendezvous_receiver *)(void *)awaiter;
    int status = bide_rendezvous_try_recv_(receiver->rendezvous, receiver->element);
    if (status != -EAGAIN)
        return status;
    choice->wait = awaiter;
    receiver->choice = choice;
    receiver->number = choice->number;
    awaiter->ops = &ops;
    return -EAGAIN;
}

/* ---- The rendezvous ---- */

void bide_rendezvous_init_(bide_rendezvous_ *rendezvous, size_t size)
{
    bide_atomic_init(&rendezvous->offer, NULL);
    rendezvous->size = size;
    bide_event_count_init(&rendezvous->offered);
    bide_event_count_init(&rendezvous->free);
}

void bide_rendezvous_close_(bide_rendezvous_ *rendezvous)
{
    /* release: 6; partner: `end_closed`. acquire: 2; partner: `make_offer`. */
    bide_rendezvous_sender *sender =
        bide_atomic_exchange(&rendezvous->offer, &closed_offer, acq_rel);
    if (sender != NULL && sender != &closed_offer)
        rendezvous_end_send(sender, -EPIPE);
    bide_event_count_notify_all(&rendezvous->offered);
    bide_event_count_notify_all(&rendezvous->free);
}

bool bide_rendezvous_is_idle_(bide_rendezvous_ *rendezvous)
{
    /* relaxed: the caller has seen all uses. */
    bide_rendezvous_sender *offer = bide_atomic_load(&rendezvous->offer, relaxed);
    return (offer == NULL || offer == &closed_offer) &&
           bide_event_count_is_idle(&rendezvous->offered) &&
           bide_event_count_is_idle(&rendezvous->free);
}

int bide_rendezvous_send_blocking_(bide_rendezvous_ *rendezvous, const void *from,
                                   uint64_t deadline)
{
    bide_rendezvous_sender sender;
    return bide_sync_wait_until(bide_rendezvous_send_(&sender, rendezvous, from), deadline);
}

int bide_rendezvous_recv_blocking_(bide_rendezvous_ *rendezvous, void *to, uint64_t deadline)
{
    bide_rendezvous_receiver receiver;
    return bide_sync_wait_until(bide_rendezvous_recv_(&receiver, rendezvous, to), deadline);
}
