/*
 * The rendezvous: senders and receivers that wait for each other, a cancelled one, and a closer. An
 * element is received once or not at all, and its sender knows which. And the operations of a
 * select that waits: one of them is carried out.
 */
#include "kept.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/rendezvous.h"
#include "bide/stop.h"
#include "bide/task.h"

struct state;

/* A coroutine that sends in a source of its own. */
struct sender {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_rendezvous_sender wait;
    uint64_t element;
    int status;
    int ended;
};

/* A thread's receive, and the received element. */
struct receiver {
    bide_rendezvous_receiver wait;
    uint64_t element;
    int status;
};

typedef bide_rendezvous(uint64_t) numbers;

/* A send and a receive that are the cases of a waiting select; each in a coroutine and a source. */
struct part {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_awaiter *awaited;
    int status;
    int ended;
};

struct chooser {
    bide_choice choice;
    struct part parts[2]; /* sends; receives */
    bide_rendezvous_sender send;
    bide_rendezvous_receiver receive;
    uint64_t sent, received;
};

typedef struct state {
    numbers numbers;
    struct sender senders[2];
    struct receiver receivers[2];
    struct chooser chooser;
    struct part waiting;   /* receives as the first receiver, in a coroutine */
    int tried;             /* the result of a send without waiting */
    uint64_t before_close; /* plain */
} state;

enum { FIRST = 7 }; /* element of the first sender; then of the next one */

static void setup(void *p)
{
    state *s = p;
    bide_rendezvous_init(&s->numbers);
    for (unsigned i = 0; i < 2; i++) {
        struct sender *sender = &s->senders[i];
        sender->state = s;
        sender->element = FIRST + i;
        sender->status = sender->ended = 0;
        bide_stop_source_init(&sender->stop);
        sender->context = (bide_context){&bide_inline_scheduler, &sender->stop, NULL, NULL, NULL};
        s->receivers[i].element = 0;
        s->receivers[i].status = 1;
    }
    s->before_close = 0;
}

bide_coroutine(sender_body)
{
    bide_begin(sender_body, struct sender * self);
    bide_await_status(self->status,
                      bide_rendezvous_send(&self->wait, &self->state->numbers, &self->element));
    bide_plain_store(&self->element, 0); /* the sender owns it again */
    if (self->status == -EPIPE)
        bide_check_assert(bide_plain_load(&self->state->before_close) == 1);
    self->ended++;
    bide_end();
}

static void begin(state *s, unsigned i)
{
    struct sender *sender = &s->senders[i];
    bide_start(&sender->task.frame, &sender_body, &sender->context);
    bide_resume(&sender->task.frame);
}

static void setup_one_offered(void *p)
{
    setup(p);
    begin(p, 0);
}

static void setup_one_offered_one_waits(void *p)
{
    setup(p);
    begin(p, 0);
    begin(p, 1);
}

static void send_first(void *p)
{
    begin(p, 0);
}

static void send_second(void *p)
{
    begin(p, 1);
}

static void received(state *s, unsigned i, int status)
{
    s->receivers[i].status = status;
    if (status == -EPIPE)
        bide_check_assert(bide_plain_load(&s->before_close) == 1);
}

static void receive(void *p)
{
    state *s = p;
    unsigned i = bide_check_thread() - 1;
    struct receiver *receiver = &s->receivers[i];
    received(s, i,
             bide_check_await(
                 bide_rendezvous_recv(&receiver->wait, &s->numbers, &receiver->element)));
}

static void try_receive(void *p)
{
    state *s = p;
    unsigned i = bide_check_thread() - 1;
    received(s, i, bide_rendezvous_try_recv(&s->numbers, &s->receivers[i].element));
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->senders[0].stop);
}

static void close_it(void *p)
{
    state *s = p;
    bide_plain_store(&s->before_close, 1);
    bide_rendezvous_close(&s->numbers);
}

/* How many times the element of a sender was received. */
static int times(const state *s, unsigned sender)
{
    int times = 0;
    for (unsigned i = 0; i < 2; i++)
        times += s->receivers[i].status == 0 && s->receivers[i].element == FIRST + sender;
    return times;
}

/* Each send that was begun has ended, and reports whether its element was received. */
static void finish_senders(state *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bide_check_assert(s->senders[i].ended == 1);
        bide_check_assert(times(s, i) == (s->senders[i].status == 0));
    }
    bide_check_assert(bide_rendezvous_is_idle_(&s->numbers.rendezvous));
}

static void finish_none(void *p)
{
    finish_senders(p, 0);
}

static void finish_one(void *p)
{
    finish_senders(p, 1);
}

static void finish_two(void *p)
{
    finish_senders(p, 2);
}

/* One element was received; the other sender still waits, and is closed. */
static void finish_one_of_two(void *p)
{
    state *s = p;
    bide_check_assert(s->senders[0].ended + s->senders[1].ended == 1);
    close_it(p);
    finish_senders(p, 2);
}

/*
 * The first was received, or the first was cancelled and the second was received; the other is
 * closed.
 */
static void finish_next(void *p)
{
    state *s = p;
    bide_check_assert(s->senders[0].ended == 1);
    bide_check_assert(s->senders[0].status == (s->senders[1].ended ? -ECANCELED : 0));
    close_it(p);
    finish_senders(p, 2);
}

/* ---- A choice ---- */

enum { SEND = 1, RECEIVE }; /* the numbers of its operations */
enum {
    TRIED = 99,
    CHOSEN = FIRST + 1
}; /* elements: of a send without waiting, and of the choice */

bide_coroutine(part_body)
{
    bide_begin(part_body, struct part * self);
    bide_await_status(self->status, self->awaited);
    self->ended++;
    bide_end();
}

/* The awaiter of a case of the choice: it has no waiter yet. */
static bide_awaiter *wait_of(struct chooser *chooser, bide_awaiter *awaiter, size_t number)
{
    chooser->choice.number = number;
    bide_check_assert(awaiter->ops->attempt(awaiter, &chooser->choice) == -EAGAIN);
    return chooser->choice.wait;
}

static void setup_choice(void *p)
{
    setup(p);
    state *s = p;
    struct chooser *chooser = &s->chooser;
    bide_choice_init(&chooser->choice);
    chooser->sent = CHOSEN;
    chooser->received = 0;
    s->tried = 1;
    for (unsigned i = 0; i < 2; i++) {
        struct part *part = &chooser->parts[i];
        part->status = 1;
        part->ended = 0;
        bide_stop_source_init(&part->stop);
        part->context = (bide_context){&bide_inline_scheduler, &part->stop, NULL, NULL, NULL};
    }
    chooser->parts[0].awaited =
        wait_of(chooser, bide_rendezvous_send(&chooser->send, &s->numbers, &chooser->sent), SEND);
    chooser->parts[1].awaited = wait_of(
        chooser, bide_rendezvous_recv(&chooser->receive, &s->numbers, &chooser->received),
        RECEIVE);
}

static void begin_part(state *s, unsigned i)
{
    struct part *part = &s->chooser.parts[i];
    bide_start(&part->task.frame, &part_body, &part->context);
    bide_resume(&part->task.frame);
}

static void choose_send_first(void *p)
{
    begin_part(p, 0);
    begin_part(p, 1);
}

static void choose_receive_first(void *p)
{
    begin_part(p, 1);
    begin_part(p, 0);
}

static void setup_choice_waits(void *p)
{
    setup_choice(p);
    choose_send_first(p);
}

static void try_send(void *p)
{
    state *s = p;
    uint64_t number = TRIED;
    s->tried = bide_rendezvous_try_send(&s->numbers, &number);
}

static void stop_choice(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < 2; i++)
        bide_stop_request(&s->chooser.parts[i].stop);
}

/*
 * The parts have ended, and the choice reports its partner: `sends` and `receives`, which have
 * ended with these.
 */
static void finish_choice(state *s, int sent, int received)
{
    struct chooser *chooser = &s->chooser;
    stop_choice(s);
    size_t taken = bide_choice_taken(&chooser->choice);
    bide_check_assert(chooser->parts[0].ended == 1 && chooser->parts[1].ended == 1);
    bide_check_assert((chooser->parts[0].status == 0) == (taken == SEND));
    bide_check_assert(taken != RECEIVE || chooser->parts[1].status == 0);
    bide_check_assert((received == 0) == (taken == SEND));
    bide_check_assert((sent == 0) == (taken == RECEIVE));
    bide_check_assert((chooser->received != 0) == (taken == RECEIVE));
    bide_check_assert(bide_rendezvous_is_idle_(&s->numbers.rendezvous));
}

/* Two arrive at once: one of them meets the choice. */
static void finish_met_by_one(void *p)
{
    state *s = p;
    bide_check_assert((s->tried == 0) != (s->receivers[1].status == 0));
    finish_choice(s, s->tried, s->receivers[1].status);
    bide_check_assert(s->tried != 0 || s->chooser.received == TRIED);
    bide_check_assert(s->receivers[1].status != 0 || s->receivers[1].element == CHOSEN);
}

static void finish_met_or_stopped(void *p)
{
    finish_choice(p, ((state *)p)->tried, 1);
}

/* The receiver has its element, whatever its own receive reported. */
static void finish_received(void *p)
{
    state *s = p;
    bide_check_assert(s->receivers[0].status == 0 && s->receivers[0].element == CHOSEN);
    finish_choice(s, 1, 0);
}

/*
 * The sender has met the choice, or it waits, and its receive was released to take its element,
 * although its own offer may have been first.
 */
static void finish_sent(void *p)
{
    state *s = p;
    struct sender *sender = &s->senders[0];
    bide_check_assert(sender->ended == 1 || s->chooser.parts[1].ended == 1);
    stop_first(p);
    finish_choice(s, sender->status, 1);
}

/* ---- An operation that is left behind ---- */

/* Two try; the later one finds the second's offer, or is too early for it, and waits then. */
static void finish_both_in_the_end(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < 2; i++) {
        if (s->receivers[i].status != 0)
            received(s, i, bide_rendezvous_try_recv(&s->numbers, &s->receivers[i].element));
    }
    finish_senders(p, 2);
}

/* A select that only offers, and a send that waits behind it. */
static void setup_one_waits_behind_choice(void *p)
{
    setup_choice(p);
    begin_part(p, 0);
    begin(p, 0);
}

enum {
    ELSEWHERE = RECEIVE + 1
}; /* the number of an operation of the choice on another rendezvous */

/* A partner carries out another operation of the choice. True: its select has that one. */
static bool take_elsewhere(state *s)
{
    return bide_choice_take(&s->chooser.choice, ELSEWHERE);
}

/* The same; and the select cancels the others. */
static void choose_elsewhere(void *p)
{
    if (take_elsewhere(p))
        stop_choice(p);
}

/* The same, but the select has not cancelled the others yet. */
static void choose_elsewhere_only(void *p)
{
    take_elsewhere(p);
}

/*
 * The element of the choice was received and the next one is offered, or the next one was received.
 */
static void finish_behind_choice(void *p)
{
    state *s = p;
    bool met = bide_choice_taken(&s->chooser.choice) == SEND;
    bide_check_assert(s->chooser.parts[0].ended == 1);
    bide_check_assert((s->chooser.parts[0].status == 0) == met);
    bide_check_assert(s->receivers[0].status == 0);
    bide_check_assert(s->receivers[0].element == (met ? CHOSEN : FIRST));
    if (met)
        received(s, 1, bide_rendezvous_try_recv(&s->numbers, &s->receivers[1].element));
    finish_senders(s, 1);
}

static void begin_waiting(state *s)
{
    struct part *part = &s->waiting;
    part->status = 1;
    part->ended = 0;
    part->context = (bide_context){&bide_inline_scheduler, NULL, NULL, NULL, NULL};
    part->awaited =
        bide_rendezvous_recv(&s->receivers[0].wait, &s->numbers, &s->receivers[0].element);
    bide_start(&part->task.frame, &part_body, &part->context);
    bide_resume(&part->task.frame);
}

/* A select that only receives, and a receive that waits behind it. */
static void setup_one_receives_behind_choice(void *p)
{
    setup_choice(p);
    begin_part(p, 1);
    begin_waiting(p);
}

/* One of the two has the element: there was a waiter for it all the time. */
static void finish_given_to_one(void *p)
{
    state *s = p;
    bool met = bide_choice_taken(&s->chooser.choice) == RECEIVE;
    bide_check_assert(s->tried == 0);
    bide_check_assert(s->chooser.parts[1].ended == 1);
    bide_check_assert((met ? s->chooser.received : s->receivers[0].element) == TRIED);
    bide_check_assert(s->waiting.ended == !met);
    close_it(p);
    bide_check_assert(bide_rendezvous_is_idle_(&s->numbers.rendezvous));
}

static void setup_to_try(void *p)
{
    setup(p);
    ((state *)p)->tried = 1;
}

static void try_send_and_see(void *p)
{
    try_send(p);
    state *s = p;
    if (s->tried == -EPIPE)
        bide_check_assert(bide_plain_load(&s->before_close) == 1);
}

static void finish_tried_at_close(void *p)
{
    state *s = p;
    bide_check_assert(s->tried == -EAGAIN || s->tried == -EPIPE);
    try_send(p);
    bide_check_assert(s->tried == -EPIPE);
}

/* It offers, its own receive waits beside the offer, and ends only with an element. */
static void finish_not_with_itself(void *p)
{
    state *s = p;
    bide_check_assert(s->chooser.parts[0].ended == 0);
    bide_check_assert(s->chooser.parts[1].ended == (s->tried == 0));
    finish_choice(s, s->tried, 1);
}

/* ---- Destroyed ---- */

/* The second has waited; an offer was made on its behalf, and it has not run since. */
static void setup_offered_on_behalf(void *p)
{
    state *s = p;
    setup(p);
    begin(s, 0);
    s->senders[1].context.scheduler = &kept;
    begin(s, 1);
    received(s, 1, bide_rendezvous_try_recv(&s->numbers, &s->receivers[1].element));
}

static void destroy_second(void *p)
{
    struct sender *sender = &((state *)p)->senders[1];
    bide_destroy(&sender->task.frame);
    bide_plain_store(&sender->element, 0); /* the sender owns it again */
}

static void finish_destroyed(void *p)
{
    state *s = p;
    bide_check_assert(s->senders[1].ended == 0);
    bide_check_assert(s->receivers[0].status == -EAGAIN ||
                      (s->receivers[0].status == 0 && s->receivers[0].element == FIRST + 1));
    finish_senders(p, 1);
}

static void setup_choice_kept(void *p)
{
    setup_choice(p);
    ((state *)p)->chooser.parts[1].context.scheduler = &kept;
}

/* A select that receives, and a receive behind it. */
static void receive_twice(void *p)
{
    begin_part(p, 1);
    begin_waiting(p);
}

/*
 * The select or the receiver behind it has the element, although the select may have been notified
 * first, and does not run.
 */
static void finish_told(void *p)
{
    state *s = p;
    bool met = bide_choice_taken(&s->chooser.choice) == RECEIVE;
    bide_destroy(&s->chooser.parts[1].task.frame);
    bide_check_assert(s->senders[0].ended == 1);
    bide_check_assert((met ? s->chooser.received : s->receivers[0].element) == FIRST);
    bide_check_assert(s->waiting.ended == !met);
    close_it(p);
    bide_check_assert(bide_rendezvous_is_idle_(&s->numbers.rendezvous));
}

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(one, "a_sender_comes_while_a_receiver_comes", .setup = setup,
         .threads = {receive, send_first}, .finish = finish_one);
SCENARIO(one_tries, "a_sender_comes_while_a_receive_is_tried", .setup = setup,
         .threads = {try_receive, send_first, close_it}, .finish = finish_one);
SCENARIO(two_receive, "two_receive_from_two_waiting_senders", .setup = setup_one_offered_one_waits,
         .threads = {receive, receive}, .finish = finish_two);
SCENARIO(two_try, "two_try_to_receive_the_same_offer", .setup = setup_one_offered,
         .threads = {try_receive, try_receive}, .finish = finish_one);
SCENARIO(two_send, "a_sender_comes_behind_an_offer_while_a_receiver_takes_it",
         .setup = setup_one_offered, .threads = {receive, send_second},
         .finish = finish_one_of_two);

/* ---- Cancellation ---- */

SCENARIO(stopped, "an_offer_is_asked_to_stop_while_a_receiver_comes", .setup = setup_one_offered,
         .threads = {try_receive, stop_first}, .finish = finish_one);
SCENARIO(stopped_early, "a_sender_is_asked_to_stop_as_it_sends", .setup = setup,
         .threads = {try_receive, send_first, stop_first}, .finish = finish_one);
SCENARIO(next, "the_next_offers_when_an_offer_is_asked_to_stop",
         .setup = setup_one_offered_one_waits, .threads = {receive, stop_first},
         .finish = finish_next);

/* ---- Closed ---- */

SCENARIO(closed, "it_is_closed_while_a_sender_and_a_receiver_come", .setup = setup,
         .threads = {receive, send_first, close_it}, .finish = finish_one, .preemptions = 1);
SCENARIO(receiver_closed, "it_is_closed_while_a_receiver_comes", .setup = setup,
         .threads = {receive, close_it}, .finish = finish_none);
SCENARIO(offer_closed, "it_is_closed_while_an_offer_is_received", .setup = setup_one_offered,
         .threads = {try_receive, close_it}, .finish = finish_one);
SCENARIO(sender_closed, "it_is_closed_while_a_sender_comes", .setup = setup,
         .threads = {send_first, close_it}, .finish = finish_one);
SCENARIO(waiting_closed, "it_is_closed_while_a_sender_offers_and_another_waits_behind_it",
         .setup = setup_one_offered_one_waits, .threads = {try_receive, close_it},
         .finish = finish_two);

/* ---- A choice ---- */

SCENARIO(met, "a_choice_meets_either_of_two", .setup = setup_choice_waits,
         .threads = {try_send, try_receive}, .finish = finish_met_by_one);
SCENARIO(met_or_stopped, "a_choice_is_met_as_it_is_asked_to_stop", .setup = setup_choice_waits,
         .threads = {try_send, stop_choice}, .finish = finish_met_or_stopped);
SCENARIO(chosen, "a_receiver_comes_as_a_choice_begins", .setup = setup_choice,
         .threads = {receive, choose_send_first}, .finish = finish_received);
SCENARIO(passed_on, "a_receiver_comes_as_a_choice_begins_to_receive", .setup = setup_choice,
         .threads = {receive, choose_receive_first}, .finish = finish_received, .preemptions = 3);
SCENARIO(sent, "a_sender_comes_as_a_choice_begins", .setup = setup_choice,
         .threads = {send_first, choose_send_first}, .finish = finish_sent);

SCENARIO(sent_late, "a_sender_comes_as_a_choice_begins_to_receive", .setup = setup_choice,
         .threads = {send_first, choose_receive_first}, .finish = finish_sent);

/* ---- An operation that is left behind ---- */

SCENARIO(try_next, "the_next_offers_when_an_offer_was_taken_by_a_try",
         .setup = setup_one_offered_one_waits, .threads = {try_receive, try_receive},
         .finish = finish_both_in_the_end);
SCENARIO(behind_choice, "the_next_offers_behind_a_choice_of_something_else",
         .setup = setup_one_waits_behind_choice, .threads = {receive, choose_elsewhere},
         .finish = finish_behind_choice);
SCENARIO(given_behind, "a_receiver_is_given_an_element_behind_a_choice_of_something_else",
         .setup = setup_one_receives_behind_choice, .threads = {try_send, choose_elsewhere_only},
         .finish = finish_given_to_one);
SCENARIO(try_closed, "it_is_closed_while_a_send_is_tried", .setup = setup_to_try,
         .threads = {try_send_and_see, close_it}, .finish = finish_tried_at_close);
SCENARIO(not_itself, "a_choice_does_not_meet_itself", .setup = setup_choice,
         .threads = {try_send, choose_send_first}, .finish = finish_not_with_itself);

/* ---- Destroyed ---- */

SCENARIO(destroyed, "a_sender_whose_offer_was_made_for_it_is_destroyed",
         .setup = setup_offered_on_behalf, .threads = {try_receive, destroy_second},
         .finish = finish_destroyed);

SCENARIO(told, "a_choice_is_destroyed_that_was_told_of_an_offer", .setup = setup_choice_kept,
         .threads = {send_first, receive_twice}, .finish = finish_told);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&one,
                                                     &one_tries,
                                                     &two_receive,
                                                     &two_try,
                                                     &two_send,
                                                     &stopped,
                                                     &stopped_early,
                                                     &next,
                                                     &closed,
                                                     &offer_closed,
                                                     &sender_closed,
                                                     &receiver_closed,
                                                     &waiting_closed,
                                                     &met,
                                                     &met_or_stopped,
                                                     &chosen,
                                                     &passed_on,
                                                     &sent_late,
                                                     &sent,
                                                     &try_next,
                                                     &behind_choice,
                                                     &given_behind,
                                                     &try_closed,
                                                     &not_itself,
                                                     &destroyed,
                                                     &told,
                                                     NULL};
    static const char *const files[] = {"rendezvous.h", "rendezvous.c", "choice.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
