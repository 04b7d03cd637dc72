/*
 * The barging mutex: it may be acquired ahead of the waiters, but not forever; keys; waits that are cancelled while
 * they compete; many waiters in line; and random runs with threads.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/barging_mutex.h"
#include "bide/handle.h"
#include "bide/stop.h"

#if TESTING_HOSTED
#define STORM_OBJECT bide_barging_mutex
#define STORM_WAITER bide_barging_mutex_waiter
#include "small_stack.h"
#include "sync/storm.h"
#endif

/* A coroutine with a stop source of its own that locks, and notes its name. */
struct user {
    bide_task task;
    by_hand *by_hand;
    bide_barging_mutex *mutex;
    bide_barging_mutex_waiter lock;
    bide_context context;
    bide_stop_source stop;
    char name;
    int status;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_await_status(self->status, bide_barging_mutex_lock(&self->lock, self->mutex));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void begin(struct user *self, by_hand *by_hand, bide_barging_mutex *mutex, char name)
{
    self->by_hand = by_hand;
    self->mutex = mutex;
    self->name = name;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = by_hand->context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &user_body, &self->context);
    bide_resume(&self->task.frame);
}

/* `holder` holds the mutex, and three are in line. */
struct fixture {
    by_hand by_hand;
    bide_barging_mutex mutex;
    bide_barging_mutex_waiter holder;
    struct user users[4]; /* 'a' to 'd' */
};

static void fixture_init(struct fixture *self)
{
    by_hand_init(&self->by_hand);
    bide_barging_mutex_init(&self->mutex);
    assert_true(bide_barging_mutex_try_lock(&self->holder, &self->mutex));
    for (int i = 0; i < 3; i++)
        begin(&self->users[i], &self->by_hand, &self->mutex, (char)('a' + i));
    by_hand_assert_trace(&self->by_hand, "");
}

/* The users from `index` on hold it, one after the other. */
static void fixture_end(struct fixture *self, int index)
{
    for (; index < 3; index++) {
        assert_int_equal(self->users[index].status, 0);
        bide_barging_mutex_unlock(&self->users[index].lock);
        by_hand_run(&self->by_hand);
    }
    bide_barging_mutex_destroy(&self->mutex);
}

static void unlocking_frees_it_and_wakes_the_first_alone(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    assert_false(bide_barging_mutex_is_locked(&f.mutex));
    assert_int_equal(f.by_hand.posted, 1);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    assert_true(bide_barging_mutex_is_locked(&f.mutex));
    fixture_end(&f, 0);
    by_hand_assert_trace(&f.by_hand, "bc");
}

static void a_comer_takes_it_before_the_woken_waiter(void **state)
{
    (void)state;
    struct fixture f;
    bide_barging_mutex_waiter other;
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    assert_true(bide_barging_mutex_try_lock(&other, &f.mutex));
    bide_barging_mutex_unlock(&other); /* a was woken and has not run, so nobody else is woken */
    assert_int_equal(f.by_hand.posted, 1);
    begin(&f.users[3], &f.by_hand, &f.mutex, 'd');
    by_hand_assert_trace(&f.by_hand, "d");
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, ""); /* a has lost */
    bide_barging_mutex_unlock(&f.users[3].lock);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a"); /* and was first in line again */
    fixture_end(&f, 0);
}

static void a_waiter_that_has_lost_often_enough_is_handed_it(void **state)
{
    (void)state;
    struct fixture f;
    bide_barging_mutex_waiter other;
    fixture_init(&f);
    for (int i = 0; i <= BIDE_BARGING_LOSSES; i++) {
        bide_barging_mutex_unlock(&f.holder);
        assert_true(bide_barging_mutex_try_lock(&f.holder, &f.mutex));
        by_hand_run(&f.by_hand);
        by_hand_assert_trace(&f.by_hand, "");
    }
    bide_barging_mutex_unlock(&f.holder);
    assert_true(bide_barging_mutex_is_locked(&f.mutex));
    assert_false(bide_barging_mutex_try_lock(&other, &f.mutex));
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    fixture_end(&f, 0);
}

/* `count` coroutines lock and unlock it in turn, while a woken waiter does not run. */
static void pass(struct fixture *self, int count)
{
    bide_barging_mutex_waiter other;
    for (int i = 0; i < count; i++) {
        assert_true(bide_barging_mutex_try_lock(&other, &self->mutex));
        bide_barging_mutex_unlock(&other);
    }
}

static void a_woken_waiter_is_passed_so_often_and_then_handed_it(void **state)
{
    (void)state;
    struct fixture f;
    bide_barging_mutex_waiter other;
    fixture_init(&f);
    for (int i = 0; i < 2; i++) { /* counted from 0 for each waiter */
        bide_barging_mutex_unlock(i == 0 ? &f.holder : &f.users[0].lock);
        pass(&f, BIDE_BARGING_PASSES);
        assert_false(bide_barging_mutex_is_locked(&f.mutex));
        assert_false(bide_barging_mutex_try_lock(&other, &f.mutex));
        assert_int_equal(f.by_hand.posted, i + 1);
        by_hand_run(&f.by_hand);
        by_hand_assert_trace(&f.by_hand, i == 0 ? "a" : "b");
    }
    fixture_end(&f, 1);
    by_hand_assert_trace(&f.by_hand, "c");
}

static void a_comer_gets_in_line_when_it_is_handed_to_another(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    pass(&f, BIDE_BARGING_PASSES);
    begin(&f.users[3], &f.by_hand, &f.mutex, 'd');
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    for (int i = 0; i < 3; i++) {
        bide_barging_mutex_unlock(&f.users[i].lock);
        by_hand_run(&f.by_hand);
    }
    by_hand_assert_trace(&f.by_hand, "bcd");
    bide_barging_mutex_unlock(&f.users[3].lock);
    bide_barging_mutex_destroy(&f.mutex);
}

static void a_waiter_handed_it_has_it_although_asked_to_stop(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    pass(&f, BIDE_BARGING_PASSES);
    bide_stop_request(&f.users[0].stop);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    fixture_end(&f, 0);
}

static void destroying_the_woken_waiter_takes_back_a_hand_over(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    pass(&f, BIDE_BARGING_PASSES);
    bide_destroy(&f.users[0].task.frame);
    assert_int_equal(f.by_hand.posted, 2); /* b was woken and has not run */
    assert_true(bide_barging_mutex_try_lock(&f.holder, &f.mutex));
    bide_barging_mutex_unlock(&f.holder);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "b");
    fixture_end(&f, 1);
}

static void a_close_takes_back_a_hand_over(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    pass(&f, BIDE_BARGING_PASSES);
    bide_barging_mutex_close(&f.mutex);
    by_hand_run(&f.by_hand);
    assert_int_equal(strlen(f.by_hand.trace), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(f.users[i].status, -EPIPE);
    bide_barging_mutex_destroy(&f.mutex);
}

/* Locks it repeatedly, and suspends nowhere else, until another has held it. */
struct barger {
    bide_task task;
    struct fixture *fixture;
    bide_barging_mutex_waiter lock;
    int count;
};

enum { PATIENCE = 10 * (BIDE_BARGING_LOSSES + 2) * BIDE_BARGING_PASSES };

bide_coroutine(barger_body)
{
    bide_begin(barger_body, struct barger * self);
    while (self->fixture->by_hand.trace[0] == '\0' && self->count < PATIENCE) {
        bide_try(bide_barging_mutex_lock(&self->lock, &self->fixture->mutex));
        self->count++;
        bide_barging_mutex_unlock(&self->lock);
    }
    bide_end();
}

static void a_holder_that_never_suspends_in_between_suspends_at_last(void **state)
{
    (void)state;
    struct fixture f;
    struct barger barger = {.fixture = &f};
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    bide_start(&barger.task.frame, &barger_body, &f.by_hand.context);
    by_hand_begin(&f.by_hand, &barger.task);
    assert_int_equal(barger.count, BIDE_BARGING_PASSES);
    assert_false(bide_done(&barger.task.frame));
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    fixture_end(&f, 0);
    assert_true(bide_done(&barger.task.frame));
    assert_int_equal(barger.count, BIDE_BARGING_PASSES + 1);
}

static void a_waiter_asked_to_stop_on_its_way_wakes_the_next(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    assert_true(bide_barging_mutex_try_lock(&f.holder, &f.mutex));
    bide_stop_request_with(&f.users[0].stop, -ETIMEDOUT);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    assert_int_equal(f.users[0].status, -ETIMEDOUT);
    bide_barging_mutex_unlock(&f.holder);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "b");
    fixture_end(&f, 1);
}

static void a_waiter_asked_to_stop_that_finds_it_free_has_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    bide_stop_request(&f.users[0].stop);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    fixture_end(&f, 0);
}

static void a_waiter_that_leaves_the_line_takes_its_hand_over_along(void **state)
{
    (void)state;
    struct fixture f;
    bide_barging_mutex_waiter other;
    fixture_init(&f);
    for (int i = 0; i <= BIDE_BARGING_LOSSES; i++) {
        bide_barging_mutex_unlock(&f.holder);
        assert_true(bide_barging_mutex_try_lock(&f.holder, &f.mutex));
        by_hand_run(&f.by_hand);
    }
    bide_stop_request(&f.users[0].stop);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    assert_int_equal(f.users[0].status, -ECANCELED);
    bide_barging_mutex_unlock(&f.holder);
    assert_true(bide_barging_mutex_try_lock(&other, &f.mutex));
    bide_barging_mutex_unlock(&other);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "b");
    fixture_end(&f, 1);
}

static void a_destroyed_coroutine_leaves_the_line_wherever_it_is(void **state)
{
    (void)state;
    for (int lost = 0; lost <= BIDE_BARGING_LOSSES + 1; lost++) {
        for (int is_woken = 0; is_woken < 2; is_woken++) {
            struct fixture f;
            fixture_init(&f);
            for (int i = 0; i < lost; i++) {
                bide_barging_mutex_unlock(&f.holder);
                assert_true(bide_barging_mutex_try_lock(&f.holder, &f.mutex));
                by_hand_run(&f.by_hand);
            }
            if (is_woken)
                bide_barging_mutex_unlock(&f.holder);
            bide_destroy(&f.users[0].task.frame);
            if (!is_woken)
                bide_barging_mutex_unlock(&f.holder);
            by_hand_run(&f.by_hand);
            by_hand_assert_trace(&f.by_hand, "b");
            fixture_end(&f, 1);
        }
    }
}

static void closing_ends_those_in_line_and_on_their_way(void **state)
{
    (void)state;
    struct fixture f;
    bide_barging_mutex_waiter other;
    fixture_init(&f);
    bide_barging_mutex_unlock(&f.holder);
    assert_true(bide_barging_mutex_try_lock(&f.holder, &f.mutex));
    bide_barging_mutex_close(&f.mutex);
    by_hand_run(&f.by_hand);
    assert_int_equal(strlen(f.by_hand.trace), 3);
    begin(&f.users[3], &f.by_hand, &f.mutex, 'd');
    for (int i = 0; i < 4; i++)
        assert_int_equal(f.users[i].status, -EPIPE);
    bide_barging_mutex_unlock(&f.holder);
    assert_false(bide_barging_mutex_try_lock(&other, &f.mutex));
    bide_barging_mutex_destroy(&f.mutex);
}

#if TESTING_HOSTED
static void a_thread_locks_it_until_a_deadline(void **state)
{
    (void)state;
    bide_barging_mutex mutex;
    bide_barging_mutex_waiter one, two;
    bide_barging_mutex_init(&mutex);
    assert_int_equal(bide_barging_mutex_lock_blocking(&one, &mutex, 0), 0);
    assert_int_equal(bide_barging_mutex_lock_blocking(&two, &mutex, 0), -ETIMEDOUT);
    assert_int_equal(bide_barging_mutex_lock_blocking(&two, &mutex, bide_platform.now() + 1000000),
                     -ETIMEDOUT);
    bide_barging_mutex_unlock(&one);
    assert_int_equal(bide_barging_mutex_lock_blocking(&two, &mutex, BIDE_FOREVER), 0);
    bide_barging_mutex_unlock(&two);
    bide_barging_mutex_destroy(&mutex);
}
#endif

#if BIDE_DEBUG && TESTING_HOSTED
static void unlock_with_another_key(void)
{
    bide_barging_mutex mutex;
    bide_barging_mutex_waiter one, two = {.mutex = &mutex};
    bide_barging_mutex_init(&mutex);
    bide_barging_mutex_try_lock(&one, &mutex);
    bide_barging_mutex_unlock(&two);
}

static void destroy_what_is_locked(void)
{
    bide_barging_mutex mutex;
    bide_barging_mutex_waiter one;
    bide_barging_mutex_init(&mutex);
    bide_barging_mutex_try_lock(&one, &mutex);
    bide_barging_mutex_destroy(&mutex);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(unlock_with_another_key,
                             "a barging mutex is unlocked by a waiter that has not locked it: &two",
                             "unlock_with_another_key"));
    assert_true(misuse_aborts_naming(destroy_what_is_locked,
                                     "a barging mutex is destroyed while it is in use: &mutex",
                                     "destroy_what_is_locked"));
}
#endif

/* ---- A crowd in line, on a small stack ---- */

#if TESTING_HOSTED
static uint32_t locked;

struct link {
    bide_task task;
    bide_barging_mutex *mutex;
    bide_barging_mutex_waiter lock;
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    bide_try(bide_barging_mutex_lock(&self->lock, self->mutex));
    locked++;
    bide_barging_mutex_unlock(&self->lock); /* wakes the next */
    bide_end();
}

static void *wake_a_chain(void *argument)
{
    struct link *links = argument;
    bide_barging_mutex mutex;
    bide_barging_mutex_waiter first;
    bide_barging_mutex_init(&mutex);
    bide_barging_mutex_try_lock(&first, &mutex);
    for (uint32_t i = 0; i < crowd_of_waiters(); i++) {
        links[i].mutex = &mutex;
        bide_start(&links[i].task.frame, &link_body, &bide_default_context);
        bide_resume(&links[i].task.frame);
    }
    bide_barging_mutex_unlock(&first);
    return NULL;
}

static void a_crowd_in_line_each_wakes_the_next_on_a_small_stack(void **state)
{
    (void)state;
    struct link *links = calloc(crowd_of_waiters(), sizeof *links);
    assert_non_null(links);
    locked = 0;
    on_a_small_stack(wake_a_chain, links);
    assert_int_equal(locked, crowd_of_waiters());
    free(links);
}

/* ---- At random, with threads ---- */

bide_coroutine(storm_body)
{
    bide_begin(storm_body, storm_user * self);
    bide_await_status(self->status, bide_barging_mutex_lock(&self->waiter, &self->storm->object));
    if (self->status == 0) {
        storm_write(self->storm, self->section);
        bide_barging_mutex_unlock(&self->waiter);
    }
    storm_ended(self->storm);
    bide_end();
}

static int storm_block(storm *storm, uint64_t deadline)
{
    bide_barging_mutex_waiter lock;
    int status = bide_barging_mutex_lock_blocking(&lock, &storm->object, deadline);
    if (status == 0) {
        storm_write(storm, 20);
        bide_barging_mutex_unlock(&lock);
    }
    return status;
}

static void storm_init(storm *storm)
{
    bide_barging_mutex_init(&storm->object);
    storm->data[0] = storm->data[1] = 0;
}

static void storm_end(storm *storm)
{
    bide_barging_mutex_close(&storm->object);
}

static bool storm_is_good(storm *storm)
{
    return storm->data[0] == storm_count(storm, 0) + (storm->blocked == 0) &&
           BIDE_QUEUE_VALUE(bide_atomic_load(&storm->object.queue.state, relaxed)) == 0 &&
           bide_waiter_queue_is_idle(&storm->object.queue);
}

static void each_locks_it_or_is_told_why_not(void **state)
{
    static const storm_kind kind = {&storm_body,   storm_init,  storm_end,
                                    storm_is_good, storm_block, NULL};
    (void)state;
    storm_run(&kind);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unlocking_frees_it_and_wakes_the_first_alone),
        cmocka_unit_test(a_comer_takes_it_before_the_woken_waiter),
        cmocka_unit_test(a_waiter_that_has_lost_often_enough_is_handed_it),
        cmocka_unit_test(a_woken_waiter_is_passed_so_often_and_then_handed_it),
        cmocka_unit_test(a_comer_gets_in_line_when_it_is_handed_to_another),
        cmocka_unit_test(a_waiter_handed_it_has_it_although_asked_to_stop),
        cmocka_unit_test(destroying_the_woken_waiter_takes_back_a_hand_over),
        cmocka_unit_test(a_close_takes_back_a_hand_over),
        cmocka_unit_test(a_holder_that_never_suspends_in_between_suspends_at_last),
        cmocka_unit_test(a_waiter_asked_to_stop_on_its_way_wakes_the_next),
        cmocka_unit_test(a_waiter_asked_to_stop_that_finds_it_free_has_it),
        cmocka_unit_test(a_waiter_that_leaves_the_line_takes_its_hand_over_along),
        cmocka_unit_test(a_destroyed_coroutine_leaves_the_line_wherever_it_is),
        cmocka_unit_test(closing_ends_those_in_line_and_on_their_way),
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
#endif
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_locks_it_until_a_deadline),
        cmocka_unit_test(a_crowd_in_line_each_wakes_the_next_on_a_small_stack),
        cmocka_unit_test(each_locks_it_or_is_told_why_not),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
