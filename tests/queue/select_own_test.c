/*
 * Select cases over custom operations, made with extend/choice.h alone: a shelf of numbers, from which a taker waits
 * for an auto-reset event; and a handshake that is completed by the partner.
 */
#include "testing.h"

#include "bide/auto_event.h"
#include "bide/channel.h"
#include "bide/extend/choice.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/select.h"

#include <errno.h>

/* ---- Taking from a shelf ---- */

typedef struct shelf {
    unsigned count;
    bide_auto_event filled; /* set for each number that is put there */
} shelf;

typedef struct take {
    bide_awaiter awaiter;
    shelf *from;
    bide_auto_event_waiter wait;
    unsigned attempts, had, given_back;
} take;

static int take_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    take *self = (take *)(void *)awaiter;
    self->attempts++;
    if (self->from->count != 0) {
        self->from->count--;
        self->had++;
        return 0;
    }
    choice->wait = bide_auto_event_wait(&self->wait, &self->from->filled);
    return -EAGAIN;
}

static bide_frame *never_suspends(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter;
    fail_msg("an operation was awaited that is to be attempted");
    return frame;
}

static int never_resumes(bide_awaiter *awaiter)
{
    (void)awaiter;
    fail_msg("an operation was resumed that was attempted");
    return -EINVAL;
}

static bool take_withdraw(bide_awaiter *awaiter)
{
    take *self = (take *)(void *)awaiter;
    assert_false(bide_awaiter_suspended(awaiter));
    self->given_back++;
    self->from->count++;
    bide_auto_event_set(&self->from->filled);
    return false;
}

static bide_awaiter *take_from(take *self, shelf *from)
{
    static const bide_awaiter_ops ops = {
        .suspend = never_suspends,
        .resume = never_resumes,
        .withdraw = take_withdraw,
        .name = "take_from",
        .attempt = take_attempt,
    };
    memset(self, 0, sizeof *self);
    self->awaiter.ops = &ops;
    self->awaiter.frame = (bide_frame *)(void *)self; /* (not yet as if it had been ready) */
    self->from = from;
    return &self->awaiter;
}

static void put_on(shelf *onto)
{
    onto->count++;
    bide_auto_event_set(&onto->filled);
}

/* ---- A coroutine that selects between two shelves and a channel ---- */

typedef bide_channel(uint64_t) numbers;
typedef bide_channel_slot(uint64_t) number_slot;

static struct {
    shelf shelves[2];
    number_slot memory[2];
    numbers channel;
    bide_run_loop loop;
} the;

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        the.shelves[i].count = 0;
        bide_auto_event_init(&the.shelves[i].filled, false);
    }
    bide_channel_init(&the.channel, the.memory, 2);
    bide_run_loop_init(&the.loop);
    return 0;
}

typedef struct taker {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_select select;
    bide_select_case cases[3];
    take takes[2];
    bide_channel_waiter receive;
    uint64_t received, random;
    size_t winner;
    int status;
    uint32_t ended;
} taker;

static void make_cases(taker *self)
{
    for (size_t i = 0; i < 2; i++)
        bide_select_case_init(&self->cases[i], take_from(&self->takes[i], &the.shelves[i]));
    bide_select_case_init(&self->cases[2],
                          bide_channel_recv(&self->receive, &the.channel, &self->received));
}

bide_coroutine(taker_body)
{
    bide_begin(taker_body, taker * self);
    make_cases(self);
    bide_await_status(self->status, bide_select_any(&self->select, self->cases, 3, &self->random));
    self->winner = bide_select_winner(&self->select);
    self->ended++;
    bide_end();
}

static void begin(taker *self, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    self->random = seed;
    bide_stop_source_init(&self->stop);
    self->context = the.loop.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &taker_body, &self->context);
    bide_resume(&self->task.frame);
    bide_run_loop_run_ready(&the.loop);
}

static void an_operation_of_ones_own_is_had_at_once(void **state)
{
    (void)state;
    taker t;
    put_on(&the.shelves[1]);
    begin(&t, 1);
    assert_int_equal(t.ended, 1);
    assert_int_equal(t.status, 0);
    assert_int_equal(t.winner, 1);
    assert_int_equal(t.takes[1].had, 1);
    assert_int_equal(the.shelves[1].count, 0);
}

static void it_is_tried_without_waiting(void **state)
{
    (void)state;
    taker t;
    memset(&t, 0, sizeof t);
    make_cases(&t);
    assert_int_equal(bide_select_try(&t.select, t.cases, 3, &t.random), -EAGAIN);
    put_on(&the.shelves[0]);
    assert_int_equal(bide_select_try(&t.select, t.cases, 3, &t.random), 0);
    assert_int_equal(bide_select_winner(&t.select), 0);
    assert_int_equal(t.takes[0].attempts, 2);
    assert_int_equal(the.shelves[0].count, 0);
}

static void it_is_attempted_again_when_its_wait_has_ended(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        setup(NULL);
        taker t;
        begin(&t, seed);
        assert_int_equal(t.ended, 0);
        bide_auto_event_set(&the.shelves[0].filled); /* in vain */
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(t.ended, 0);
        assert_int_equal(t.takes[0].attempts, 2);
        assert_int_equal(t.takes[1].attempts, 2);
        put_on(&the.shelves[0]);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(t.ended, 1);
        assert_int_equal(t.status, 0);
        assert_int_equal(t.winner, 0);
        assert_int_equal(the.shelves[0].count, 0);
        bide_auto_event_destroy(&the.shelves[0].filled);
        bide_auto_event_destroy(&the.shelves[1].filled);
        bide_channel_destroy(&the.channel);
    }
}

static void nothing_of_it_is_done_when_another_case_has_come(void **state)
{
    (void)state;
    const uint64_t number = 8;
    taker t;
    begin(&t, 1);
    assert_int_equal(bide_channel_try_send(&the.channel, &number), 0);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(t.ended, 1);
    assert_int_equal(t.winner, 2);
    put_on(&the.shelves[0]);
    put_on(&the.shelves[1]);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(the.shelves[0].count + the.shelves[1].count, 2);
}

static void nothing_of_it_is_done_when_it_is_asked_to_stop(void **state)
{
    (void)state;
    taker t;
    begin(&t, 1);
    bide_stop_request(&t.stop);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(t.ended, 1);
    assert_int_equal(t.status, -ECANCELED);
    put_on(&the.shelves[0]);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(the.shelves[0].count, 1);
}

/* Both shelves wake the first taker. It takes one number, and the other number goes to the second taker. */
static void what_its_wait_had_goes_to_the_next(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        setup(NULL);
        taker first, second;
        begin(&first, seed);
        begin(&second, seed + 1);
        put_on(&the.shelves[0]);
        put_on(&the.shelves[1]);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(first.ended + second.ended, 2);
        assert_int_equal(first.status, 0);
        assert_int_equal(second.status, 0);
        assert_true(first.winner != second.winner && first.winner + second.winner == 1);
        assert_int_equal(the.shelves[0].count + the.shelves[1].count, 0);
    }
}

/* The same when the first is destroyed after it was woken and before its attempt. */
static void a_destroyed_select_lets_the_next_go(void **state)
{
    (void)state;
    taker first, second;
    begin(&first, 1);
    begin(&second, 2);
    put_on(&the.shelves[1]);
    bide_destroy(&first.task.frame);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(second.ended, 1);
    assert_int_equal(second.winner, 1);
    assert_int_equal(the.shelves[1].count, 0);
}

/* ---- The result of a coroutine that is destroyed before it sees it ---- */

static void what_it_had_is_given_back(void **state)
{
    (void)state;
    taker t;
    bide_branch branch;
    memset(&t, 0, sizeof t);
    put_on(&the.shelves[0]);
    make_cases(&t);
    bide_branch_init(&branch, bide_select_any(&t.select, t.cases, 3, &t.random));
    t.task.frame.context = &the.loop.context;
    t.select.task.frame.context = &the.loop.context;
    t.select.task.frame.awaiter.frame = NULL;
    bide_resume(&t.select.task.frame);
    assert_true(bide_done(&t.select.task.frame));
    assert_int_equal(t.takes[0].had, 1);
    assert_int_equal(the.shelves[0].count, 0);
    bide_branch_release_(&branch);
    assert_int_equal(t.takes[0].given_back, 1);
    assert_int_equal(the.shelves[0].count, 1);
}

/* ---- An operation that a partner completes ---- */

/* A place where a coroutine offers to be met: the partner that meets it completes the meeting. */
typedef struct place {
    struct meet *offered;
} place;

typedef struct meet {
    bide_awaiter awaiter;
    place *at;
    bide_choice *choice;
    size_t number;
    bide_choice_offer offer;
    bool met;
} meet;

/* Completes the meeting that is offered at a place. False: nothing is offered, or the offer was decided otherwise. */
static bool meet_the_waiting_one(place *at)
{
    meet *other = at->offered;
    if (other == NULL)
        return false;
    at->offered = NULL;
    other->met = bide_choice_take(other->choice, other->number);
    bool met = other->met;
    bide_wake_one(&other->awaiter);
    return met;
}

static bide_frame *offer_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    meet *self = (meet *)(void *)awaiter;
    if (self->at->offered != NULL)
        fail_msg("two are offered at once");
    (void)frame;
    self->at->offered = self;
    return NULL;
}

static int offer_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bool offer_withdraw(bide_awaiter *awaiter)
{
    meet *self = (meet *)(void *)awaiter;
    if (self->at->offered != self)
        return false;
    self->at->offered = NULL;
    return true;
}

static void offer_cancel(bide_awaiter *awaiter)
{
    if (offer_withdraw(awaiter)) {
        bide_awaiter_finish_cancelled(awaiter);
        bide_wake_one(awaiter);
    }
}

static int meet_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_awaiter_ops offer = {
        .suspend = offer_suspend,
        .resume = offer_resume,
        .cancel = offer_cancel,
        .withdraw = offer_withdraw,
        .name = "meet",
    };
    meet *self = (meet *)(void *)awaiter;
    if (meet_the_waiting_one(self->at))
        return 0;
    assert_false(bide_choice_offers_to(choice, self->at));
    self->choice = choice;
    self->number = choice->number;
    bide_choice_add(choice, &self->offer, self->at);
    assert_true(bide_choice_has(choice, &self->offer));
    awaiter->ops = &offer;
    choice->wait = awaiter;
    return -EAGAIN;
}

static bide_awaiter *meet_at(meet *self, place *at)
{
    static const bide_awaiter_ops ops = {
        .suspend = never_suspends,
        .resume = never_resumes,
        .name = "meet_at",
        .attempt = meet_attempt,
    };
    memset(self, 0, sizeof *self);
    self->awaiter.ops = &ops;
    self->at = at;
    return &self->awaiter;
}

typedef struct meeter {
    bide_task task;
    bide_select select;
    bide_select_case cases[2];
    meet meets[2];
    place *places;
    uint64_t random;
    size_t winner;
    int status;
    uint32_t ended;
} meeter;

bide_coroutine(meeter_body)
{
    bide_begin(meeter_body, meeter * self);
    for (size_t i = 0; i < 2; i++)
        bide_select_case_init(&self->cases[i], meet_at(&self->meets[i], &self->places[i]));
    bide_await_status(self->status, bide_select_any(&self->select, self->cases, 2, &self->random));
    self->winner = bide_select_winner(&self->select);
    self->ended++;
    bide_end();
}

static void begin_meeter(meeter *self, place *places, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    self->places = places;
    self->random = seed;
    bide_start(&self->task.frame, &meeter_body, &the.loop.context);
    bide_resume(&self->task.frame);
    bide_run_loop_run_ready(&the.loop);
}

/* Two partners come for both offers: one completes its own, and the other is rejected. */
static void of_all_that_is_offered_one_is_carried_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        place places[2] = {{NULL}, {NULL}};
        meeter m;
        begin_meeter(&m, places, i);
        assert_int_equal(m.ended, 0);
        assert_non_null(places[0].offered);
        assert_non_null(places[1].offered);
        assert_true(meet_the_waiting_one(&places[i]));
        assert_false(meet_the_waiting_one(&places[1 - i]));
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(m.ended, 1);
        assert_int_equal(m.status, 0);
        assert_int_equal(m.winner, i);
        assert_null(places[1 - i].offered);
    }
}

static void two_selects_meet_once(void **state)
{
    (void)state;
    place places[2] = {{NULL}, {NULL}};
    meeter first, second;
    begin_meeter(&first, places, 1);
    begin_meeter(&second, places, 2);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(first.ended, 1);
    assert_int_equal(second.ended, 1);
    assert_int_equal(first.winner, second.winner);
    assert_null(places[0].offered);
    assert_null(places[1].offered);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(an_operation_of_ones_own_is_had_at_once),
        TEST(it_is_tried_without_waiting),
        TEST(it_is_attempted_again_when_its_wait_has_ended),
        TEST(nothing_of_it_is_done_when_another_case_has_come),
        TEST(nothing_of_it_is_done_when_it_is_asked_to_stop),
        TEST(what_its_wait_had_goes_to_the_next),
        TEST(a_destroyed_select_lets_the_next_go),
        TEST(what_it_had_is_given_back),
        TEST(of_all_that_is_offered_one_is_carried_out),
        TEST(two_selects_meet_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
