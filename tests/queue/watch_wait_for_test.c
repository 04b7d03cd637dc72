/*
 * Waiting until a predicate is true of a watch's latest value: at once, after several changes, as a case of a select,
 * under a deadline, and with a coroutine that is destroyed at each moment.
 */
#include "misuse.h"
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/auto_event.h"
#include "bide/handle.h"
#include "bide/select.h"
#include "bide/stop.h"
#include "bide/watch.h"
#include "bide/when.h"

typedef struct level {
    uint32_t number;
    unsigned char more[5];
} level;

typedef bide_watch(level) levels;
typedef bide_watch_receiver(level) levels_receiver;

static struct {
    by_hand by_hand;
    levels watch;
    levels_receiver receiver;
    bide_auto_event event;
} the;

static int setup(void **state)
{
    level first = {0, {0}};
    (void)state;
    by_hand_init(&the.by_hand);
    bide_watch_init(&the.watch, &first);
    bide_watch_receiver_init(&the.receiver, &the.watch);
    bide_watch_mark_seen(&the.receiver);
    bide_auto_event_init(&the.event, false);
    return 0;
}

static void send(uint32_t number)
{
    level l = {number, {1, 2, 3, 4, 5}};
    assert_int_equal(bide_watch_send(&the.watch, &l), 0);
}

/* The value is whole, and at least the number. */
struct condition {
    uint32_t at_least;
    int tests;
};

static bool is_reached(const void *value, void *argument)
{
    struct condition *condition = argument;
    condition->tests++;
    return ((const level *)value)->number >= condition->at_least;
}

struct waiting {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct condition condition;
    bide_watch_predicate_waiter wait;
    level got;
    int status; /* 1: not ended */
};

bide_coroutine(waiting_body)
{
    bide_begin(waiting_body, struct waiting * self);
    bide_await_status(self->status, bide_watch_wait_for(&self->wait, &the.receiver, is_reached,
                                                        &self->condition, &self->got));
    bide_end();
}

static void begin(struct waiting *self, uint32_t at_least)
{
    memset(self, 0, sizeof *self);
    self->condition.at_least = at_least;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = the.by_hand.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &waiting_body, &self->context);
    bide_resume(&self->task.frame);
}

/* What the receiver has seen: whether the latest value is new to it. */
static void assert_new(bool is_new, uint32_t number)
{
    level l;
    assert_int_equal(bide_watch_try_recv(&the.receiver, &l), is_new ? 0 : -EAGAIN);
    if (is_new)
        assert_int_equal(l.number, number);
}

static void it_ends_at_once_if_it_holds_of_a_value_that_was_seen(void **state)
{
    (void)state;
    struct waiting w;
    begin(&w, 0);
    assert_int_equal(w.status, 0);
    assert_int_equal(w.condition.tests, 1);
    assert_new(false, 0);
    send(7);
    begin(&w, 7);
    assert_int_equal(w.status, 0);
    assert_int_equal(w.got.number, 7);
    assert_new(false, 0);
}

static void it_waits_until_it_holds(void **state)
{
    (void)state;
    struct waiting w;
    begin(&w, 3);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(w.status, 1);
        send(i);
        by_hand_run(&the.by_hand);
        assert_int_equal(w.condition.tests, i + 1);
    }
    assert_int_equal(w.status, 0);
    assert_int_equal(w.got.number, 3);
    assert_new(false, 0);
    bide_watch_destroy(&the.watch);
}

static void only_the_latest_is_tested_and_once(void **state)
{
    (void)state;
    struct waiting w;
    begin(&w, 5);
    send(9); /* true of this one, which is overwritten before the coroutine looks */
    send(1);
    by_hand_run(&the.by_hand);
    assert_int_equal(w.status, 1);
    assert_int_equal(w.condition.tests, 2);
    send(6);
    by_hand_run(&the.by_hand);
    assert_int_equal(w.status, 0);
    assert_int_equal(w.condition.tests, 3);
}

static void a_close_ends_it_after_the_last_value(void **state)
{
    for (int way = 0; way < 4; way++) {
        struct waiting w;
        level l;
        setup(state);
        if (way != 3)
            begin(&w, 2);
        if (way == 1)
            send(1);
        if (way == 2)
            send(2);
        bide_watch_close(&the.watch);
        if (way == 3)
            begin(&w, 2);
        by_hand_run(&the.by_hand);
        assert_int_equal(w.status, way == 2 ? 0 : -EPIPE);
        assert_int_equal(bide_watch_try_wait_for(&the.receiver, is_reached, &w.condition, &l),
                         way == 2 ? 0 : -EPIPE);
        bide_watch_destroy(&the.watch);
    }
}

static void a_wait_that_ends_otherwise_has_seen_nothing(void **state)
{
    for (int way = 0; way < 4; way++) {
        struct waiting w;
        setup(state);
        begin(&w, 5);
        send(1);
        if (way % 2 == 0)
            by_hand_run(&the.by_hand); /* tested in vain */
        if (way < 2)
            bide_destroy(&w.task.frame);
        else
            bide_stop_request_with(&w.stop, -ETIMEDOUT);
        by_hand_run(&the.by_hand);
        /* (if the change ended the wait inside, the request comes too late for that one) */
        assert_int_equal(w.status, way < 2 ? 1 : -ETIMEDOUT);
        assert_new(true, 1);
        bide_watch_destroy(&the.watch);
    }
}

static void it_tries_without_waiting(void **state)
{
    (void)state;
    struct condition condition = {4, 0};
    level l;
    send(3);
    assert_int_equal(bide_watch_try_wait_for(&the.receiver, is_reached, &condition, &l), -EAGAIN);
    send(4);
    assert_int_equal(bide_watch_try_wait_for(&the.receiver, is_reached, &condition, &l), 0);
    assert_int_equal(l.number, 4);
    assert_new(false, 0);
}

/* ---- A case of a select ---- */

struct selecting {
    bide_task task;
    struct condition condition;
    bide_watch_predicate_waiter wait;
    bide_auto_event_waiter other;
    bide_select_of(2) select;
    level got;
    int status;
};

bide_coroutine(selecting_body)
{
    bide_begin(selecting_body, struct selecting * self);
    bide_await_status(self->status,
                      bide_select_any_of(&self->select,
                                         bide_auto_event_wait(&self->other, &the.event),
                                         bide_watch_wait_for(&self->wait, &the.receiver, is_reached,
                                                             &self->condition, &self->got)));
    bide_end();
}

static void begin_select(struct selecting *self, uint32_t at_least, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    self->condition.at_least = at_least;
    self->select.random = seed;
    self->status = 1;
    bide_start(&self->task.frame, &selecting_body, &the.by_hand.context);
    bide_resume(&self->task.frame);
    by_hand_run(&the.by_hand);
}

static void as_a_case_it_sees_nothing_unless_it_wins(void **state)
{
    int wins[2] = {0, 0};
    for (int round = 0; round < 200; round++) {
        struct selecting s;
        setup(state);
        bool at_once = round % 2 != 0;
        if (at_once) {
            send(2);
            bide_auto_event_set(&the.event);
        }
        begin_select(&s, 2, (uint64_t)round);
        if (!at_once) {
            send(1); /* not true of it: it waits on */
            by_hand_run(&the.by_hand);
            assert_int_equal(s.status, 1);
            send(2);
            if (round % 4 != 0)
                bide_auto_event_set(&the.event);
            by_hand_run(&the.by_hand);
        }
        assert_int_equal(s.status, 0);
        size_t winner = bide_select_winner(&s.select.any);
        wins[winner]++;
        assert_new(winner == 0, 2);
        if (winner == 1)
            assert_int_equal(s.got.number, 2);
        bide_watch_destroy(&the.watch);
    }
    assert_true(wins[0] > 0 && wins[1] > 0);
}

static void a_select_is_destroyed_with_it(void **state)
{
    (void)state;
    struct selecting s;
    begin_select(&s, 1, 1);
    send(1);
    bide_destroy(&s.task.frame);
    assert_int_equal(by_hand_run(&the.by_hand), 0);
    assert_new(true, 1);
    bide_watch_destroy(&the.watch);
}

/* ---- Behind a wrapper that has the result ---- */

struct both {
    bide_task task;
    struct condition condition;
    bide_watch_predicate_waiter wait;
    bide_auto_event_waiter other;
    bide_when_of(2) both;
    level got;
    int status;
};

bide_coroutine(both_body)
{
    bide_begin(both_body, struct both * self);
    bide_await_status(self->status,
                      bide_when_all_of(&self->both,
                                       bide_watch_wait_for(&self->wait, &the.receiver, is_reached,
                                                           &self->condition, &self->got),
                                       bide_auto_event_wait(&self->other, &the.event)));
    bide_end();
}

static void a_result_without_a_user_is_not_seen(void **state)
{
    for (int is_there = 0; is_there < 2; is_there++) {
        struct both b = {.condition = {1, 0}, .status = 1};
        setup(state);
        if (is_there)
            send(1);
        bide_start(&b.task.frame, &both_body, &the.by_hand.context);
        bide_resume(&b.task.frame);
        by_hand_run(&the.by_hand);
        if (!is_there)
            send(1);
        by_hand_run(&the.by_hand);
        assert_int_equal(b.got.number, 1);
        assert_int_equal(b.status, 1);
        bide_destroy(&b.task.frame);
        assert_int_equal(by_hand_run(&the.by_hand), 0);
        assert_new(true, 1);
        bide_watch_destroy(&the.watch);
    }
}

#if TESTING_HOSTED

#if BIDE_DEBUG
static void wait_for_twice_at_once(void)
{
    struct waiting w[2];
    setup(NULL);
    begin(&w[0], 1);
    begin(&w[1], 1);
}

static void wait_for_in_a_select_too(void)
{
    struct selecting s;
    struct waiting w;
    setup(NULL);
    begin_select(&s, 1, 1);
    begin(&w, 1);
}

static void wait_for_and_then_in_a_select(void)
{
    struct selecting s;
    struct waiting w;
    setup(NULL);
    begin(&w, 1);
    begin_select(&s, 1, 1);
}

static void one_receiver_in_two_waits_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(
        wait_for_twice_at_once, "a receiver of a watch is in two waits at once", "waiting_body"));
    assert_true(misuse_aborts_naming(
        wait_for_in_a_select_too, "a receiver of a watch is in two waits at once", "waiting_body"));
    assert_true(misuse_aborts_naming(wait_for_and_then_in_a_select,
                                     "a receiver of a watch is in two waits at once",
                                     "bide_watch_wait_for"));
}

/* A wait that has ended leaves no mark, however it ended: the receiver may wait again. */
static void after_a_select_the_receiver_may_wait(void **state)
{
    for (int how = 0; how < 4; how++) {
        struct selecting s;
        struct waiting w;
        setup(state);
        begin_select(&s, 1, (uint64_t)how);
        if (how == 0)
            send(1);
        else if (how == 1)
            bide_auto_event_set(&the.event);
        else if (how == 2)
            bide_watch_close(&the.watch);
        if (how == 3)
            bide_destroy(&s.task.frame);
        by_hand_run(&the.by_hand);
        if (how != 3)
            assert_int_not_equal(s.status, 1);
        begin(&w, how == 0 ? 2 : 1);
        if (how != 2)
            send(2);
        by_hand_run(&the.by_hand);
        assert_int_equal(w.status, how == 2 ? -EPIPE : 0);
        bide_watch_destroy(&the.watch);
    }
}
#endif

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    struct condition condition = {1, 0};
    level l;
    assert_int_equal(bide_watch_wait_for_blocking(&the.receiver, is_reached, &condition, &l, 0),
                     -ETIMEDOUT);
    send(1);
    assert_int_equal(
        bide_watch_wait_for_blocking(&the.receiver, is_reached, &condition, &l, BIDE_FOREVER), 0);
    assert_int_equal(l.number, 1);
}

/* ---- Threads: each waits for all numbers that it must not miss ---- */

enum { WAITERS = 3 };

struct waiter {
    levels_receiver receiver;
    pthread_t thread;
    uint32_t rounds, wrong;
    bide_atomic(uint32_t) * acknowledged;
};

static void *wait_for_each(void *argument)
{
    struct waiter *self = argument;
    for (uint32_t i = 1; i <= self->rounds; i++) {
        struct condition condition = {i, 0};
        level l;
        self->wrong += bide_watch_wait_for_blocking(&self->receiver, is_reached, &condition, &l,
                                                    BIDE_FOREVER) != 0 ||
                       l.number != i;
        bide_atomic_fetch_add(self->acknowledged, 1, release);
    }
    return NULL;
}

/* Every number is waited for by all before the next is sent, with numbers in between that nobody waits for. */
static void no_wake_up_is_missed(void **state)
{
    struct waiter waiters[WAITERS];
    bide_atomic(uint32_t) acknowledged;
    uint32_t rounds = rounds_of(4000), wrong = 0, spins;
    uint64_t random = testing_seed();
    (void)state;
    bide_atomic_init(&acknowledged, 0);
    for (uint32_t i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.rounds = rounds, .acknowledged = &acknowledged};
        bide_watch_receiver_init(&waiters[i].receiver, &the.watch);
        start_thread(&waiters[i].thread, wait_for_each, &waiters[i]);
    }
    for (uint32_t i = 1; i <= rounds; i++) {
        for (uint64_t other = testing_random(&random) % 3; other != 0; other--)
            send(i - 1);
        random_moment(&random, 50);
        send(i);
        spins = 0;
        while (bide_atomic_load(&acknowledged, acquire) != i * WAITERS)
            wait_a_moment(&spins);
    }
    for (uint32_t i = 0; i < WAITERS; i++) {
        join_thread(waiters[i].thread);
        wrong += waiters[i].wrong;
    }
    assert_int_equal(wrong, 0);
    bide_watch_destroy(&the.watch);
}

#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(it_ends_at_once_if_it_holds_of_a_value_that_was_seen),
        TEST(it_waits_until_it_holds),
        TEST(only_the_latest_is_tested_and_once),
        TEST(a_close_ends_it_after_the_last_value),
        TEST(a_wait_that_ends_otherwise_has_seen_nothing),
        TEST(it_tries_without_waiting),
        TEST(as_a_case_it_sees_nothing_unless_it_wins),
        TEST(a_select_is_destroyed_with_it),
#if TESTING_HOSTED && BIDE_DEBUG
        TEST(after_a_select_the_receiver_may_wait),
#endif
        TEST(a_result_without_a_user_is_not_seen),
#if TESTING_HOSTED
#if BIDE_DEBUG
        TEST(one_receiver_in_two_waits_is_misuse),
#endif
        TEST(a_thread_waits_until_a_deadline),
        TEST(no_wake_up_is_missed),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
