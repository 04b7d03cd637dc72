/*
 * Sends and receives on rendezvous as cases of a select: one of them meets one partner, or none does, and the select
 * reports which; in line with plain sends and receives.
 */
#include "testing.h"

#include "bide/event.h"
#include "bide/handle.h"
#include "bide/rendezvous.h"
#include "bide/run_loop.h"
#include "bide/select.h"
#include "bide/sleep.h"
#include "bide/sync_wait.h"

#include "sync/by_hand.h"
#include "sync/meeting.h"

#include <errno.h>
#include <pthread.h>

typedef bide_rendezvous(uint64_t) numbers;

static struct {
    numbers numbers;
    bide_event event;
    bide_run_loop loop;
} the;

static int setup(void **state)
{
    (void)state;
    bide_rendezvous_init(&the.numbers);
    bide_event_init(&the.event, false);
    bide_run_loop_init(&the.loop);
    return 0;
}

/* A task that selects: it sends `number`, or receives it; or the event. */
typedef struct selecting {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_select select;
    bide_select_case cases[2];
    bide_rendezvous_sender send;
    bide_rendezvous_receiver receive;
    bide_event_waiter wait;
    uint64_t random, number;
    bool sends;
    int status;
    size_t winner;
    uint32_t ended;
} selecting;

bide_coroutine(selecting_body)
{
    bide_begin(selecting_body, selecting * self);
    bide_select_case_init(
        &self->cases[0],
        self->sends ? bide_rendezvous_send(&self->send, &the.numbers, &self->number)
                    : bide_rendezvous_recv(&self->receive, &the.numbers, &self->number));
    bide_select_case_init(&self->cases[1], bide_event_wait(&self->wait, &the.event));
    bide_await_status(self->status, bide_select_any(&self->select, self->cases, 2, &self->random));
    self->winner = bide_select_winner(&self->select);
    self->ended++;
    bide_end();
}

/* A select that sends `number`, or, if that is 0, receives. */
static void begin(selecting *self, uint64_t number)
{
    memset(self, 0, sizeof *self);
    self->number = number;
    self->sends = number != 0;
    bide_stop_source_init(&self->stop);
    self->context = the.loop.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &selecting_body, &self->context);
    bide_resume(&self->task.frame);
    bide_run_loop_run_ready(&the.loop);
}

/* The number that is offered, or 0. */
static uint64_t receive_now(void)
{
    uint64_t number = 0;
    return bide_rendezvous_try_recv(&the.numbers, &number) == 0 ? number : 0;
}

static void assert_won(const selecting *self, size_t winner, int status)
{
    assert_int_equal(self->ended, 1);
    assert_int_equal(self->winner, winner);
    assert_int_equal(self->status, status);
}

/* A task that only receives. */
typedef struct receiving {
    bide_task task;
    bide_rendezvous_receiver wait;
    uint64_t number;
    int status;
} receiving;

bide_coroutine(receiving_body)
{
    bide_begin(receiving_body, receiving * self);
    bide_await_status(self->status,
                      bide_rendezvous_recv(&self->wait, &the.numbers, &self->number));
    bide_end();
}

static void a_receiver_that_waits_has_it_at_once(void **state)
{
    (void)state;
    receiving receiver = {.status = 1};
    selecting s;
    bide_start(&receiver.task.frame, &receiving_body, &the.loop.context);
    bide_resume(&receiver.task.frame);
    begin(&s, 5);
    assert_won(&s, 0, 0);
    assert_int_equal(receiver.status, 0);
    assert_int_equal(receiver.number, 5);
}

static void it_stands_while_the_select_waits(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    assert_int_equal(s.ended, 0);
    assert_int_equal(receive_now(), 5);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 0, 0);
    assert_int_equal(receive_now(), 0);
}

static void when_another_case_has_come_its_offer_is_not_received(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    bide_event_set(&the.event);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 1, 0);
    assert_int_equal(receive_now(), 0);
    begin(&s, 6); /* at once */
    assert_won(&s, 1, 0);
    assert_int_equal(receive_now(), 0);
}

static void when_it_was_taken_it_wins_whatever_else_has_come(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    bide_event_set(&the.event);
    assert_int_equal(receive_now(), 5);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 0, 0);
}

static void two_selects_meet(void **state)
{
    (void)state;
    for (int sender_first = 0; sender_first < 2; sender_first++) {
        setup(NULL);
        selecting sender, receiver;
        begin(sender_first ? &sender : &receiver, sender_first ? 5 : 0);
        begin(sender_first ? &receiver : &sender, sender_first ? 0 : 5);
        bide_run_loop_run_ready(&the.loop);
        assert_won(&sender, 0, 0);
        assert_won(&receiver, 0, 0);
        assert_int_equal(receiver.number, 5);
    }
}

static void a_select_asked_to_stop_or_destroyed_has_sent_nothing(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    bide_stop_request(&s.stop);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 2, -ECANCELED);
    assert_int_equal(receive_now(), 0);
    begin(&s, 6);
    bide_destroy(&s.task.frame);
    assert_int_equal(receive_now(), 0);
    bide_rendezvous_destroy(&the.numbers);
    bide_event_destroy(&the.event);
}

static void closed_it_ends_so(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    bide_rendezvous_close(&the.numbers);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 0, -EPIPE);
    begin(&s, 6);
    assert_won(&s, 0, -EPIPE);
}

/* ---- In line with others ---- */

static void begin_receiving(receiving *self)
{
    memset(self, 0, sizeof *self);
    self->status = 1;
    bide_start(&self->task.frame, &receiving_body, &the.loop.context);
    bide_resume(&self->task.frame);
    bide_run_loop_run_ready(&the.loop);
}

static int send_now(uint64_t number)
{
    int status = bide_rendezvous_try_send(&the.numbers, &number);
    bide_run_loop_run_ready(&the.loop);
    return status;
}

static void a_select_that_receives_is_served_before_the_receiver_behind_it(void **state)
{
    (void)state;
    selecting first, sender;
    receiving behind;
    begin(&first, 0);
    begin_receiving(&behind);
    begin(&sender, 5);
    assert_won(&sender, 0, 0);
    assert_won(&first, 0, 0);
    assert_int_equal(first.number, 5);
    assert_int_equal(behind.status, 1);
    begin(&sender, 6);
    assert_int_equal(behind.number, 6);
}

/* A partner that sends, or receives, `left` numbers; a receive may be by a select. */
typedef struct repeating {
    bide_task task;
    bide_rendezvous_sender send;
    bide_rendezvous_receiver receive;
    bide_event_waiter wait;
    bide_select select;
    bide_select_case cases[2];
    uint64_t random, number;
    uint32_t done, left;
    bool selects;
    int status;
} repeating;

bide_coroutine(repeated_send)
{
    bide_begin(repeated_send, repeating * self);
    for (; self->done < self->left; self->done++)
        bide_await_status(self->status,
                          bide_rendezvous_send(&self->send, &the.numbers, &self->number));
    bide_rendezvous_close(&the.numbers);
    bide_end();
}

bide_coroutine(repeated_receive)
{
    bide_begin(repeated_receive, repeating * self);
    for (;;) {
        if (self->selects) {
            bide_select_case_init(
                &self->cases[0],
                bide_rendezvous_recv(&self->receive, &the.numbers, &self->number));
            bide_select_case_init(&self->cases[1], bide_event_wait(&self->wait, &the.event));
            bide_await_status(self->status,
                              bide_select_any(&self->select, self->cases, 2, &self->random));
        } else {
            bide_await_status(self->status,
                              bide_rendezvous_recv(&self->receive, &the.numbers, &self->number));
        }
        if (self->status != 0)
            break;
        self->done++;
    }
    bide_end();
}

static void a_select_has_its_share_beside_a_receiver(void **state)
{
    (void)state;
    enum { ALL = 10000 };
    repeating selects = {.selects = true}, receives = {.done = 0}, sends = {.left = ALL};
    const bide_point *bodies[] = {&repeated_receive, &repeated_receive, &repeated_send};
    repeating *all[] = {&selects, &receives, &sends};
    for (size_t i = 0; i < 3; i++) {
        bide_start(&all[i]->task.frame, bodies[i], &the.loop.context);
        bide_resume(&all[i]->task.frame);
    }
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(sends.done, ALL);
    assert_int_equal(selects.done + receives.done, ALL);
    assert_in_range(selects.done, ALL / 4, ALL / 4 * 3);
}

static void to_send_at_once_a_select_may_wait(void **state)
{
    (void)state;
    selecting first, third;
    receiving second;
    assert_int_equal(send_now(4), -EAGAIN);
    begin(&first, 0);
    begin_receiving(&second);
    begin(&third, 0);
    assert_int_equal(send_now(5), 0);
    assert_int_equal(send_now(6), 0);
    assert_int_equal(send_now(7), 0);
    assert_int_equal(send_now(8), -EAGAIN);
    assert_won(&first, 0, 0);
    assert_int_equal(first.number, 5);
    assert_int_equal(second.number, 6);
    assert_won(&third, 0, 0);
    assert_int_equal(third.number, 7);
}

/* ---- Several cases on rendezvous in one select ---- */

/* Sends and receives, on two rendezvous: the letters of `kinds` are s or r for the first, S or R for the other. */
typedef struct meeting_select {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_select select;
    const char *kinds;
    bide_select_case cases[6];
    bide_rendezvous_sender sends[6];
    bide_rendezvous_receiver receives[6];
    uint64_t random, sent, received;
    int status;
    size_t winner;
    uint32_t ended;
} meeting_select;

static numbers other;

bide_coroutine(meeting_body)
{
    bide_begin(meeting_body, meeting_select * self);
    for (size_t i = 0; self->kinds[i] != '\0'; i++) {
        char kind = self->kinds[i];
        numbers *where = kind == 's' || kind == 'r' ? &the.numbers : &other;
        bide_select_case_init(
            &self->cases[i],
            kind == 's' || kind == 'S'
                ? bide_rendezvous_send(&self->sends[i], where, &self->sent)
                : bide_rendezvous_recv(&self->receives[i], where, &self->received));
    }
    bide_await_status(self->status, bide_select_any(&self->select, self->cases, strlen(self->kinds),
                                                    &self->random));
    self->winner = bide_select_winner(&self->select);
    self->ended++;
    bide_end();
}

static void begin_meeting_in(meeting_select *self, const bide_context *context, const char *kinds,
                             uint64_t number)
{
    memset(self, 0, sizeof *self);
    self->kinds = kinds;
    self->sent = number;
    bide_stop_source_init(&self->stop);
    self->context = *context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &meeting_body, &self->context);
    bide_resume(&self->task.frame);
}

static void begin_meeting(meeting_select *self, const char *kinds, uint64_t number)
{
    begin_meeting_in(self, &the.loop.context, kinds, number);
}

/* Resumes woken coroutines until none is left, up to a limit. */
static bool comes_to_rest(by_hand *by_hand)
{
    for (int i = 0; i < 1000; i++) {
        bide_awaiter *awaiter = bide_awaiter_chain_take(&by_hand->queue);
        if (awaiter == NULL)
            return true;
        bide_resume(awaiter->frame);
    }
    return false;
}

static void a_select_that_sends_and_receives_on_one_waits_for_another(void **state)
{
    (void)state;
    static const char *const kinds[] = {"sr", "rs", "rsr", "srsr", "sSrR", "rrss"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (int sends = 0; sends < 2; sends++) {
            by_hand by_hand;
            meeting_select s;
            setup(NULL);
            by_hand_init(&by_hand);
            bide_rendezvous_init(&other);
            begin_meeting_in(&s, &by_hand.context, kinds[i], 5);
            assert_true(comes_to_rest(&by_hand));
            assert_int_equal(s.ended, 0);
            if (sends)
                assert_int_equal(send_now(7), 0);
            else
                assert_int_equal(receive_now(), 5);
            assert_true(comes_to_rest(&by_hand));
            assert_int_equal(s.ended, 1);
            assert_int_equal(s.status, 0);
            assert_int_equal(s.received, sends ? 7 : 0);
            assert_int_equal(kinds[i][s.winner], sends ? 'r' : 's');
            assert_int_equal(receive_now(), 0);
            assert_int_equal(send_now(8), -EAGAIN);
        }
    }
}

static void beside_a_select_that_meets_no_other_timers_run(void **state)
{
    (void)state;
    by_hand by_hand;
    meeting_select s;
    bide_sleep sleep;
    by_hand_init(&by_hand);
    begin_meeting_in(&s, &by_hand.context, "sr", 5);
    assert_true(comes_to_rest(&by_hand));
    bide_destroy(&s.task.frame);
    begin_meeting(&s, "sr", 5);
    assert_int_equal(bide_run_loop_wait(&the.loop, bide_sleep_for(&sleep, 1000)), 0);
    assert_int_equal(s.ended, 0);
    bide_destroy(&s.task.frame);
    bide_rendezvous_destroy(&the.numbers);
}

/* A sender comes after the offer is made, and before the receive is enlisted. */
static void a_send_behind_its_own_offer_is_met(void **state)
{
    (void)state;
    by_hand by_hand;
    meeting_select first, second;
    by_hand_init(&by_hand);
    begin_meeting_in(&first, &by_hand.context, "ssr", 5);
    begin_meeting_in(&second, &by_hand.context, "s", 6);
    assert_true(comes_to_rest(&by_hand));
    assert_int_equal(first.ended, 1);
    assert_int_equal(first.winner, 2);
    assert_int_equal(first.received, 6);
    assert_int_equal(second.ended, 1);
    assert_int_equal(second.status, 0);
}

static void two_that_send_and_receive_on_one_meet(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        meeting_select a, b;
        setup(NULL);
        begin_meeting(&a, "sr", 5);
        bide_run_loop_run_ready(&the.loop);
        begin_meeting(&b, "rs", 6);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(a.ended + b.ended, 2);
        assert_int_equal(a.status, 0);
        assert_int_equal(b.status, 0);
        assert_int_equal(a.received, a.winner == 1 ? 6 : 0);
        assert_int_equal(b.received, a.winner == 1 ? 0 : 5);
        assert_int_equal(receive_now(), 0);
    }
}

static void of_several_sends_one_is_received(void **state)
{
    (void)state;
    for (int other_first = 0; other_first < 2; other_first++) {
        meeting_select s;
        uint64_t number[2] = {0};
        setup(NULL);
        bide_rendezvous_init(&other);
        begin_meeting(&s, "ssS", 5);
        bide_run_loop_run_ready(&the.loop);
        numbers *first = other_first ? &other : &the.numbers;
        numbers *second = other_first ? &the.numbers : &other;
        assert_int_equal(bide_rendezvous_try_recv(first, &number[0]), 0);
        /* it has not run */
        assert_int_equal(bide_rendezvous_try_recv(second, &number[1]), -EAGAIN);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(number[0], 5);
        assert_int_equal(s.ended, 1);
        assert_int_equal(s.status, 0);
        assert_int_equal(s.winner == 2, other_first);
        assert_int_equal(bide_rendezvous_try_recv(second, &number[1]), -EAGAIN);
    }
}

/* After the select was met, its other offer is not received, and the next sender there offers. */
static void an_offer_of_one_that_was_met_makes_way(void **state)
{
    (void)state;
    meeting_select s, next;
    uint64_t number = 9;
    bide_rendezvous_init(&other);
    begin_meeting(&s, "rS", 5);
    bide_run_loop_run_ready(&the.loop);
    begin_meeting(&next, "S", 6);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(bide_rendezvous_try_send(&the.numbers, &number), 0);
    assert_int_equal(bide_rendezvous_try_recv(&other, &number), 0);
    assert_int_equal(number, 6);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(s.winner, 0);
    assert_int_equal(s.received, 9);
    assert_int_equal(next.status, 0);
    assert_int_equal(next.ended, 1);
    bide_rendezvous_destroy(&other);
}

static void of_several_receives_one_is_given(void **state)
{
    (void)state;
    meeting_select s;
    receiving behind;
    uint64_t number = 9;
    bide_rendezvous_init(&other);
    begin_meeting(&s, "rRr", 0);
    bide_run_loop_run_ready(&the.loop);
    begin_receiving(&behind);
    assert_int_equal(bide_rendezvous_try_send(&other, &number), 0);
    number = 10; /* it is still in line here, and is passed over */
    assert_int_equal(bide_rendezvous_try_send(&the.numbers, &number), 0);
    assert_int_equal(bide_rendezvous_try_send(&the.numbers, &number), -EAGAIN);
    assert_int_equal(bide_rendezvous_try_send(&other, &number), -EAGAIN);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(behind.number, 10);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.winner, 1);
    assert_int_equal(s.received, 9);
    assert_int_equal(send_now(8), -EAGAIN);
}

static void stopped_closed_or_destroyed_several_leave_nothing(void **state)
{
    (void)state;
    static const char *const kinds[] = {"sr", "ssRR", "rSsR", "rr"};
    for (size_t i = 0; i < 4 * sizeof kinds / sizeof *kinds; i++) {
        meeting_select s;
        setup(NULL);
        bide_rendezvous_init(&other);
        begin_meeting(&s, kinds[i / 4], 5);
        if (i % 2 == 0)
            bide_run_loop_run_ready(&the.loop);
        if (i % 4 < 2) {
            bide_destroy(&s.task.frame);
        } else if (i % 4 == 2) {
            bide_stop_request(&s.stop);
            bide_run_loop_run_ready(&the.loop);
            assert_int_equal(s.status, -ECANCELED);
            assert_int_equal(s.winner, strlen(s.kinds));
        } else {
            bide_rendezvous_close(&the.numbers);
            bide_run_loop_run_ready(&the.loop);
            assert_int_equal(s.status, -EPIPE);
            assert_in_range(s.kinds[s.winner], 'a', 'z');
        }
        bide_run_loop_run_ready(&the.loop);
        bide_rendezvous_destroy(&the.numbers);
        bide_rendezvous_destroy(&other);
    }
}

/* A select that was woken for an offer is destroyed before it runs: the next has the element. */
static void a_destroyed_select_that_was_let_go_lets_the_next_go(void **state)
{
    (void)state;
    selecting first;
    receiving next;
    uint64_t number = 0;
    begin(&first, 0);
    begin_receiving(&next);
    bide_rendezvous_close(&the.numbers); /* (wakes all, without an element) */
    bide_destroy(&first.task.frame);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(next.status, -EPIPE);
    assert_int_equal(bide_rendezvous_try_recv(&the.numbers, &number), -EPIPE);
}

#if TESTING_HOSTED
/* ---- Threads ---- */

typedef struct party {
    uint64_t seed;
    uint32_t rounds;
    uint32_t wrong;
} party;

/* Sends 1, 2, ... each until it was received, by selects that sometimes have a short deadline; closes. */
static void *send_in_a_hurry(void *argument)
{
    party *self = argument;
    uint64_t random = self->seed;
    for (uint64_t number = 1; number <= self->rounds;) {
        bide_select select;
        bide_select_case cases[2];
        bide_rendezvous_sender sender;
        bide_event_waiter wait;
        bide_event hurry;
        bool hurries = testing_random(&random) % 4 == 0;
        bide_event_init(&hurry, false);
        bide_select_case_init(&cases[0], bide_rendezvous_send(&sender, &the.numbers, &number));
        bide_select_case_init(&cases[1], bide_event_wait(&wait, &hurry));
        int status = bide_sync_wait_until(
            bide_select_any(&select, cases, 2, &random),
            hurries ? bide_platform.now() + testing_random(&random) % 2000 : BIDE_FOREVER);
        if (status == 0 && bide_select_winner(&select) == 0)
            number++;
        else
            self->wrong += status != -ETIMEDOUT;
    }
    bide_rendezvous_close(&the.numbers);
    return NULL;
}

static void *receive_in_a_hurry(void *argument)
{
    party *self = argument;
    uint64_t random = self->seed, number = 0, last = 0;
    for (;;) {
        bool hurries = testing_random(&random) % 4 == 0;
        int status = bide_rendezvous_recv_blocking(
            &the.numbers, &number,
            hurries ? bide_platform.now() + testing_random(&random) % 2000 : BIDE_FOREVER);
        if (status == -EPIPE)
            break;
        if (status == 0)
            self->wrong += number != ++last;
        else
            self->wrong += status != -ETIMEDOUT;
    }
    self->wrong += last != self->rounds;
    return NULL;
}

static void threads_that_are_in_a_hurry_lose_and_repeat_nothing(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    party sender = {.seed = seed, .rounds = rounds_of(20000)};
    party receiver = {.seed = seed + 1, .rounds = sender.rounds};
    pthread_t threads[2];
    assert_int_equal(pthread_create(&threads[0], NULL, send_in_a_hurry, &sender), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, receive_in_a_hurry, &receiver), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(sender.wrong, 0);
    assert_int_equal(receiver.wrong, 0);
}

/* A thread that meets the others by all kinds of selects, and without, mostly with short deadlines. */
typedef struct guest {
    uint64_t seed, index;
    uint32_t rounds;
    uint64_t sent, received;         /* how many */
    uint64_t sent_mix, received_mix; /* of the numbers */
    uint32_t wrong;
} guest;

static uint64_t mix(uint64_t number)
{
    return (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static int meet_by_select(const char *kinds, uint64_t *random, uint64_t sent, uint64_t *received,
                          uint64_t deadline, char *kind)
{
    bide_select select;
    bide_select_case cases[6];
    bide_rendezvous_sender sends[6];
    bide_rendezvous_receiver receives[6];
    for (size_t i = 0; kinds[i] != '\0'; i++) {
        numbers *where = kinds[i] == 's' || kinds[i] == 'r' ? &the.numbers : &other;
        bide_select_case_init(&cases[i],
                              kinds[i] == 's' || kinds[i] == 'S'
                                  ? bide_rendezvous_send(&sends[i], where, &sent)
                                  : bide_rendezvous_recv(&receives[i], where, received));
    }
    int status =
        bide_sync_wait_until(bide_select_any(&select, cases, strlen(kinds), random), deadline);
    *kind = kinds[bide_select_winner(&select)];
    return status;
}

static void *meet_all(void *argument)
{
    static const char *const kinds[] = {"sr", "rs", "sS",   "rR", "srSR",
                                        "sR", "rS", "RrSs", "s",  "r"};
    guest *self = argument;
    uint64_t random = self->seed + self->index;
    for (uint32_t i = 0; i < self->rounds; i++) {
        uint64_t sent = self->index << 32 | i, received = UINT64_MAX;
        uint64_t deadline = bide_platform.now() + testing_random(&random) % 20000;
        size_t way = testing_random(&random) % 14;
        char kind;
        int status;
        if (way < 10) {
            status = meet_by_select(kinds[way], &random, sent, &received, deadline, &kind);
        } else if (way < 12) {
            kind = way == 10 ? 's' : 'r';
            status = way == 10 ? bide_rendezvous_try_send(&the.numbers, &sent)
                               : bide_rendezvous_try_recv(&other, &received);
        } else {
            kind = way == 12 ? 'S' : 'r';
            status = way == 12
                         ? bide_rendezvous_send_blocking(&other, &sent, deadline)
                         : bide_rendezvous_recv_blocking(&the.numbers, &received, deadline);
        }
        bool sends = kind == 's' || kind == 'S';
        self->wrong += status != 0 && status != -ETIMEDOUT && status != -EAGAIN;
        self->wrong += (received != UINT64_MAX) != (status == 0 && !sends);
        self->wrong += received >> 32 == self->index;
        if (status != 0)
            continue;
        self->sent += sends;
        self->sent_mix += sends ? mix(sent) : 0;
        self->received += !sends;
        self->received_mix += sends ? 0 : mix(received);
    }
    return NULL;
}

static void of_all_that_meet_each_number_is_had_once(void **state)
{
    (void)state;
    enum { GUESTS = 4 };
    guest guests[GUESTS], all = {.rounds = 0};
    pthread_t threads[GUESTS];
    uint64_t seed = testing_seed();
    bide_rendezvous_init(&other);
    for (uint64_t i = 0; i < GUESTS; i++) {
        guests[i] = (guest){.seed = seed, .index = i + 1, .rounds = rounds_of(8000)};
        assert_int_equal(pthread_create(&threads[i], NULL, meet_all, &guests[i]), 0);
    }
    for (size_t i = 0; i < GUESTS; i++) {
        pthread_join(threads[i], NULL);
        all.sent += guests[i].sent;
        all.received += guests[i].received;
        all.sent_mix += guests[i].sent_mix;
        all.received_mix += guests[i].received_mix;
        all.wrong += guests[i].wrong;
    }
    print_message("# %llu were met\n", (unsigned long long)all.sent);
    assert_int_equal(all.wrong, 0);
    assert_true(all.sent == all.received);
    assert_true(all.sent_mix == all.received_mix);
    bide_rendezvous_destroy(&the.numbers);
    bide_rendezvous_destroy(&other);
}
#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(a_receiver_that_waits_has_it_at_once),
        TEST(it_stands_while_the_select_waits),
        TEST(when_another_case_has_come_its_offer_is_not_received),
        TEST(when_it_was_taken_it_wins_whatever_else_has_come),
        TEST(two_selects_meet),
        TEST(a_select_asked_to_stop_or_destroyed_has_sent_nothing),
        TEST(closed_it_ends_so),
        TEST(a_select_that_receives_is_served_before_the_receiver_behind_it),
        TEST(a_select_has_its_share_beside_a_receiver),
        TEST(to_send_at_once_a_select_may_wait),
        TEST(a_select_that_sends_and_receives_on_one_waits_for_another),
        TEST(two_that_send_and_receive_on_one_meet),
        TEST(a_send_behind_its_own_offer_is_met),
        TEST(beside_a_select_that_meets_no_other_timers_run),
        TEST(of_several_sends_one_is_received),
        TEST(an_offer_of_one_that_was_met_makes_way),
        TEST(of_several_receives_one_is_given),
        TEST(stopped_closed_or_destroyed_several_leave_nothing),
        TEST(a_destroyed_select_that_was_let_go_lets_the_next_go),
#if TESTING_HOSTED
        TEST(threads_that_are_in_a_hurry_lose_and_repeat_nothing),
        TEST(of_all_that_meet_each_number_is_had_once),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
