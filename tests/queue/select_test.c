/*
 * Select: exactly one case completes, and the others have no effect; over channels, events and timers; fair from a
 * seed.
 */
#include "testing.h"

#include "bide/channel.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/select.h"
#include "bide/sleep.h"
#include "bide/sync_wait.h"

#include <errno.h>
#include <pthread.h>

typedef bide_channel(uint64_t) numbers;
typedef bide_channel_slot(uint64_t) number_slot;

enum { CHANNELS = 3, CAPACITY = 2 };

static struct {
    number_slot memory[CHANNELS][CAPACITY];
    numbers channels[CHANNELS];
    bide_event event;
    bide_run_loop loop;
} the;

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHANNELS; i++)
        bide_channel_init(&the.channels[i], the.memory[i], CAPACITY);
    bide_event_init(&the.event, false);
    bide_run_loop_init(&the.loop);
    return 0;
}

/* A task that selects: receives from channels 0 and 1, a send on channel 2, the event, perhaps a time. */
typedef struct selecting {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_select select;
    bide_select_case cases[5];
    bide_channel_waiter receives[2], send;
    bide_event_waiter wait;
    bide_sleep sleep;
    uint64_t time; /* 0: no such case */
    uint64_t random;
    uint64_t received[2], sent;
    int status;
    size_t winner;
    uint32_t ended;
} selecting;

static size_t make_cases(selecting *self)
{
    self->received[0] = self->received[1] = 0;
    bide_select_case_init(
        &self->cases[0],
        bide_channel_recv(&self->receives[0], &the.channels[0], &self->received[0]));
    bide_select_case_init(
        &self->cases[1],
        bide_channel_recv(&self->receives[1], &the.channels[1], &self->received[1]));
    bide_select_case_init(&self->cases[2],
                          bide_channel_send(&self->send, &the.channels[2], &self->sent));
    bide_select_case_init(&self->cases[3], bide_event_wait(&self->wait, &the.event));
    if (self->time == 0)
        return 4;
    bide_select_case_init(&self->cases[4], bide_sleep_until(&self->sleep, self->time));
    return 5;
}

bide_coroutine(selecting_body)
{
    bide_begin(selecting_body, selecting * self);
    bide_await_status(self->status,
                      bide_select_any(&self->select, self->cases, make_cases(self), &self->random));
    self->winner = bide_select_winner(&self->select);
    self->ended++;
    bide_end();
}

static void begin(selecting *self, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    self->random = seed;
    self->sent = 99;
    bide_stop_source_init(&self->stop);
    self->context = the.loop.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &selecting_body, &self->context);
    bide_resume(&self->task.frame);
    bide_run_loop_run_ready(&the.loop);
}

static void fill(size_t channel, uint64_t number)
{
    assert_int_equal(bide_channel_try_send(&the.channels[channel], &number), 0);
    bide_run_loop_run_ready(&the.loop);
}

/* So that the case that sends has to wait. */
static void fill_the_third(void)
{
    fill(2, 1);
    fill(2, 2);
}

static size_t count_of_all(void)
{
    size_t count = 0;
    for (size_t i = 0; i < CHANNELS; i++)
        count += bide_channel_count(&the.channels[i]);
    return count;
}

static void what_can_be_had_is_had_at_once(void **state)
{
    (void)state;
    selecting s;
    fill_the_third();
    fill(1, 7);
    begin(&s, 1);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.status, 0);
    assert_int_equal(s.winner, 1);
    assert_int_equal(s.received[1], 7);
    assert_int_equal(count_of_all(), 2);
}

static void one_case_alone_is_had_though_all_can_be(void **state)
{
    (void)state;
    selecting s;
    for (uint64_t seed = 0; seed < 100; seed++) {
        setup(NULL);
        fill(0, 5);
        fill(1, 7);
        bide_event_set(&the.event);
        begin(&s, seed);
        assert_int_equal(s.ended, 1);
        assert_int_equal(s.status, 0);
        size_t there = count_of_all();
        assert_int_equal(there, s.winner < 2 ? 1 : s.winner == 2 ? 3 : 2);
        assert_int_equal(s.received[0] != 0, s.winner == 0);
        assert_int_equal(s.received[1] != 0, s.winner == 1);
        bide_event_reset(&the.event);
    }
}

static void each_case_ends_a_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        setup(NULL);
        selecting s;
        uint64_t number;
        fill_the_third();
        begin(&s, i);
        assert_int_equal(s.ended, 0);
        if (i < 2)
            fill(i, 5 + i);
        else if (i == 2)
            assert_int_equal(bide_channel_try_recv(&the.channels[2], &number), 0);
        else
            bide_event_set(&the.event);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(s.ended, 1);
        assert_int_equal(s.status, 0);
        assert_int_equal(s.winner, i);
        assert_int_equal(count_of_all(), 2);
        for (size_t c = 0; c < CHANNELS; c++)
            bide_channel_destroy(&the.channels[c]);
    }
}

static void a_time_ends_a_wait(void **state)
{
    (void)state;
    selecting s;
    fill_the_third();
    memset(&s, 0, sizeof s);
    bide_stop_source_init(&s.stop);
    s.time = bide_platform.now() + 1000;
    s.context = the.loop.context;
    s.context.stop = &s.stop;
    assert_int_equal(bide_run_loop_wait(&the.loop, bide_task_init(&s.task, &selecting_body)), 0);
    assert_int_equal(s.winner, 4);
    assert_int_equal(s.status, 0);
    assert_int_equal(count_of_all(), 2);
}

static void a_closed_channel_is_a_case_that_can_be_had(void **state)
{
    (void)state;
    selecting s;
    fill_the_third();
    begin(&s, 1);
    bide_channel_close(&the.channels[0]);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.winner, 0);
    assert_int_equal(s.status, -EPIPE);
}

static void a_select_asked_to_stop_has_nothing(void **state)
{
    (void)state;
    selecting s;
    fill_the_third();
    begin(&s, 1);
    bide_stop_request_with(&s.stop, -ETIMEDOUT);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.status, -ETIMEDOUT);
    assert_int_equal(s.winner, 4);
    fill(0, 5);
    assert_int_equal(count_of_all(), 3);
}

static void a_destroyed_select_has_nothing(void **state)
{
    (void)state;
    selecting s;
    fill_the_third();
    begin(&s, 1);
    bide_destroy(&s.task.frame);
    fill(0, 5);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(count_of_all(), 3);
    for (size_t c = 0; c < CHANNELS; c++)
        bide_channel_destroy(&the.channels[c]);
    bide_event_destroy(&the.event);
}

/* Two elements arrive at once on two channels, for a select and two plain receivers. */
typedef struct receiving {
    bide_task task;
    bide_channel_waiter wait;
    size_t channel;
    uint64_t received;
    int status;
    uint32_t ended;
} receiving;

bide_coroutine(receiving_body)
{
    bide_begin(receiving_body, receiving * self);
    bide_await_status(self->status, bide_channel_recv(&self->wait, &the.channels[self->channel],
                                                         &self->received));
    self->ended++;
    bide_end();
}

static void what_was_meant_for_a_loser_goes_to_the_next(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        setup(NULL);
        selecting s;
        receiving next[2];
        const uint64_t number = 8;
        fill_the_third();
        begin(&s, seed);
        for (size_t i = 0; i < 2; i++) {
            memset(&next[i], 0, sizeof next[i]);
            next[i].channel = i;
            bide_start(&next[i].task.frame, &receiving_body, &the.loop.context);
            bide_resume(&next[i].task.frame);
        }
        bide_run_loop_run_ready(&the.loop);
        /* both lines wake the select before it runs */
        assert_int_equal(bide_channel_try_send(&the.channels[0], &number), 0);
        assert_int_equal(bide_channel_try_send(&the.channels[1], &number), 0);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(s.ended, 1);
        assert_true(s.winner < 2);
        assert_int_equal(next[0].ended + next[1].ended, 1);
        assert_int_equal(next[1 - s.winner].ended, 1);
        fill(s.winner, 9);
        assert_int_equal(next[s.winner].ended, 1);
        assert_int_equal(next[s.winner].received, 9);
        assert_int_equal(count_of_all(), 2);
    }
}

/* Destroyed after it was woken and before it runs. */
static void a_destroyed_select_lets_the_next_go(void **state)
{
    (void)state;
    selecting s;
    receiving next = {.channel = 0};
    const uint64_t number = 8;
    fill_the_third();
    begin(&s, 1);
    bide_start(&next.task.frame, &receiving_body, &the.loop.context);
    bide_resume(&next.task.frame);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(bide_channel_try_send(&the.channels[0], &number), 0);
    bide_destroy(&s.task.frame);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(next.ended, 1);
    assert_int_equal(next.received, 8);
}

static void each_case_has_its_chance(void **state)
{
    (void)state;
    enum { ROUNDS = 4000 };
    uint32_t won[4] = {0};
    selecting s;
    memset(&s, 0, sizeof s);
    s.random = 12345;
    for (int round = 0; round < ROUNDS; round++) {
        setup(NULL);
        fill(0, 5);
        fill(1, 7);
        bide_event_set(&the.event);
        size_t count = make_cases(&s);
        assert_int_equal(bide_select_try(&s.select, s.cases, count, &s.random), 0);
        won[bide_select_winner(&s.select)]++;
    }
    for (size_t i = 0; i < 4; i++)
        assert_in_range(won[i], ROUNDS / 4 - ROUNDS / 20, ROUNDS / 4 + ROUNDS / 20);
}

static void the_same_seed_chooses_the_same(void **state)
{
    (void)state;
    size_t winners[2][50];
    for (int time = 0; time < 2; time++) {
        uint64_t random = 42;
        for (size_t i = 0; i < 50; i++) {
            setup(NULL);
            selecting s;
            memset(&s, 0, sizeof s);
            fill(0, 5);
            fill(1, 7);
            bide_event_set(&the.event);
            assert_int_equal(bide_select_try(&s.select, s.cases, make_cases(&s), &random), 0);
            winners[time][i] = bide_select_winner(&s.select);
        }
    }
    assert_memory_equal(winners[0], winners[1], sizeof winners[0]);
}

static void a_try_waits_for_nothing(void **state)
{
    (void)state;
    selecting s;
    memset(&s, 0, sizeof s);
    fill_the_third();
    assert_int_equal(bide_select_try(&s.select, s.cases, make_cases(&s), &s.random), -EAGAIN);
    assert_int_equal(bide_select_winner(&s.select), 4);
    assert_int_equal(count_of_all(), 2);
}

/* ---- The cases in one member with the select ---- */

static void a_few_are_given_where_they_are_selected(void **state)
{
    (void)state;
    bide_select_of(2) select;
    bide_channel_waiter receive;
    bide_event_waiter wait;
    uint64_t received = 0;
    select.random = 1;
    fill(0, 5);
    assert_int_equal(bide_sync_wait(bide_select_any_of(
                         &select, bide_event_wait(&wait, &the.event),
                         bide_channel_recv(&receive, &the.channels[0], &received))),
                     0);
    assert_int_equal(bide_select_winner(&select.any), 1);
    assert_int_equal(received, 5);
    bide_event_set(&the.event);
    assert_int_equal(
        bide_sync_wait(bide_select_any_of(&select, bide_event_wait(&wait, &the.event))), 0);
    assert_int_equal(bide_select_winner(&select.any), 0);
    /* at most its parts */
    assert_int_equal(sizeof select,
                     sizeof(bide_select) + 2 * sizeof(bide_select_case) + sizeof(uint64_t));
}

/* ---- Without a case ---- */

typedef struct without {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_select select;
    uint64_t random;
    int status;
    uint32_t ended;
} without;

bide_coroutine(without_body)
{
    bide_begin(without_body, without * self);
    bide_await_status(self->status, bide_select_any(&self->select, NULL, 0, &self->random));
    self->ended++;
    bide_end();
}

static void begin_without(without *self)
{
    memset(self, 0, sizeof *self);
    bide_stop_source_init(&self->stop);
    self->context = the.loop.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &without_body, &self->context);
}

static void without_a_case_it_waits_until_it_is_asked_to_stop(void **state)
{
    (void)state;
    without s;
    for (int before = 0; before < 2; before++) {
        begin_without(&s);
        if (before)
            bide_stop_request_with(&s.stop, -ETIMEDOUT);
        bide_resume(&s.task.frame);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(s.ended, before);
        bide_stop_request_with(&s.stop, -ETIMEDOUT);
        bide_run_loop_run_ready(&the.loop);
        assert_int_equal(s.ended, 1);
        assert_int_equal(s.status, -ETIMEDOUT);
        assert_int_equal(bide_select_winner(&s.select), 0);
    }
    begin_without(&s);
    bide_resume(&s.task.frame);
    bide_destroy(&s.task.frame);
    bide_run_loop_run_ready(&the.loop);
    assert_int_equal(s.ended, 0);
    bide_select select;
    uint64_t random = 1;
    assert_int_equal(bide_select_try(&select, NULL, 0, &random), -EAGAIN);
    assert_int_equal(bide_sync_wait_until(bide_select_any(&select, NULL, 0, &random),
                                          bide_platform.now() + 1000),
                     -ETIMEDOUT);
}

/* ---- Threads ---- */

enum { SELECTORS = 3, EACH = 3000 };

typedef struct storm {
    bide_atomic(uint64_t) sum, count;
    uint64_t seed;
} storm;

typedef struct selector {
    storm *storm;
    uint64_t number;
} selector;

/* Receives from both channels by select, until both are closed. */
static void *receive_either(void *argument)
{
    selector *self = argument;
    uint64_t random = self->storm->seed + self->number;
    uint64_t received[2];
    bool open[2] = {true, true};
    while (open[0] || open[1]) {
        bide_select select;
        bide_select_case cases[2];
        bide_channel_waiter waits[2];
        size_t count = 0, of[2];
        for (size_t i = 0; i < 2; i++)
            if (open[i]) {
                of[count] = i;
                bide_select_case_init(
                    &cases[count++],
                    bide_channel_recv(&waits[i], &the.channels[i], &received[i]));
            }
        int status = bide_sync_wait_until(
            bide_select_any(&select, cases, count, &random),
            testing_random(&random) % 4 == 0 ? bide_platform.now() + 1000 : BIDE_FOREVER);
        if (status == -ETIMEDOUT)
            continue;
        size_t winner = of[bide_select_winner(&select)];
        if (status == -EPIPE) {
            open[winner] = false;
        } else {
            bide_atomic_fetch_add(&self->storm->sum, received[winner], relaxed);
            bide_atomic_fetch_add(&self->storm->count, 1, relaxed);
        }
    }
    return NULL;
}

static void *send_many(void *argument)
{
    const selector *self = argument;
    for (uint64_t i = 1; i <= EACH; i++)
        if (bide_channel_send_blocking(&the.channels[self->number], &i, BIDE_FOREVER) != 0)
            return argument;
    bide_channel_close(&the.channels[self->number]);
    return NULL;
}

static void threads_that_select_get_everything_once(void **state)
{
    (void)state;
    storm storm;
    pthread_t threads[SELECTORS + 2];
    selector selectors[SELECTORS + 2];
    bide_atomic_init(&storm.sum, 0);
    bide_atomic_init(&storm.count, 0);
    storm.seed = testing_seed();
    for (uint64_t i = 0; i < SELECTORS + 2; i++) {
        selectors[i] = (selector){&storm, i < 2 ? i : i + 100};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < 2 ? send_many : receive_either, &selectors[i]),
            0);
    }
    for (size_t i = 0; i < SELECTORS + 2; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_true(bide_atomic_load(&storm.count, relaxed) == 2 * (uint64_t)EACH);
    assert_true(bide_atomic_load(&storm.sum, relaxed) == (uint64_t)EACH * (EACH + 1));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(what_can_be_had_is_had_at_once),
        TEST(one_case_alone_is_had_though_all_can_be),
        TEST(each_case_ends_a_wait),
        TEST(a_time_ends_a_wait),
        TEST(a_closed_channel_is_a_case_that_can_be_had),
        TEST(a_select_asked_to_stop_has_nothing),
        TEST(a_destroyed_select_has_nothing),
        TEST(what_was_meant_for_a_loser_goes_to_the_next),
        TEST(a_destroyed_select_lets_the_next_go),
        TEST(each_case_has_its_chance),
        TEST(the_same_seed_chooses_the_same),
        TEST(a_try_waits_for_nothing),
        TEST(a_few_are_given_where_they_are_selected),
        TEST(without_a_case_it_waits_until_it_is_asked_to_stop),
        TEST(threads_that_select_get_everything_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
