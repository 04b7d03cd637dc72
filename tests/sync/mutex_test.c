/*
 * The mutex: one holder at a time, in order of arrival; keys; close; a crowd in line; and random
 * runs with threads.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/handle.h"
#include "bide/mutex.h"

#if TESTING_HOSTED
#define STORM_OBJECT bide_mutex
#define STORM_WAITER bide_mutex_waiter
#include "small_stack.h"
#include "sync/storm.h"
#endif

/* A coroutine that locks, notes its name, and waits for its event before it unlocks. */
struct user {
    bide_task task;
    by_hand *by_hand;
    bide_mutex *mutex;
    bide_mutex_waiter lock;
    char name;
    int status;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_await_status(self->status, bide_mutex_lock(&self->lock, self->mutex));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void begin(struct user *self, by_hand *by_hand, bide_mutex *mutex, char name)
{
    self->by_hand = by_hand;
    self->mutex = mutex;
    self->name = name;
    self->status = 1;
    bide_await_later(bide_task_init(&self->task, &user_body));
    by_hand_begin(by_hand, &self->task);
}

static void it_is_free_at_first_and_after_unlocking(void **state)
{
    (void)state;
    bide_mutex mutex;
    bide_mutex_waiter one, two;
    bide_mutex_init(&mutex);
    assert_false(bide_mutex_is_locked(&mutex));
    assert_true(bide_mutex_try_lock(&one, &mutex));
    assert_true(bide_mutex_is_locked(&mutex));
    assert_false(bide_mutex_try_lock(&two, &mutex));
    bide_mutex_unlock(&one);
    assert_false(bide_mutex_is_locked(&mutex));
    assert_true(bide_mutex_try_lock(&two, &mutex));
    bide_mutex_unlock(&two);
    bide_mutex_destroy(&mutex);
}

static void it_is_handed_over_in_the_order_of_arrival(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_mutex mutex;
    struct user users[5];
    by_hand_init(&by_hand);
    bide_mutex_init(&mutex);
    for (int i = 0; i < 5; i++)
        begin(&users[i], &by_hand, &mutex, (char)('a' + i));
    by_hand_assert_trace(&by_hand, "a");
    for (int i = 0; i < 4; i++) {
        bide_mutex_waiter other;
        bide_mutex_unlock(&users[i].lock);
        /* The next one holds it already, though it has not run. */
        assert_true(bide_mutex_is_locked(&mutex));
        assert_false(bide_mutex_try_lock(&other, &mutex));
        assert_int_equal(by_hand_run(&by_hand), 1);
        assert_int_equal(users[i + 1].status, 0);
    }
    by_hand_assert_trace(&by_hand, "bcde");
    bide_mutex_unlock(&users[4].lock);
    assert_int_equal(by_hand_run(&by_hand), 0);
    assert_false(bide_mutex_is_locked(&mutex));
    bide_mutex_destroy(&mutex);
}

static void closing_ends_those_in_line_and_those_that_come(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_mutex mutex;
    struct user users[4];
    bide_mutex_waiter other;
    by_hand_init(&by_hand);
    bide_mutex_init(&mutex);
    for (int i = 0; i < 3; i++)
        begin(&users[i], &by_hand, &mutex, (char)('a' + i));
    bide_mutex_close(&mutex);
    bide_mutex_close(&mutex);
    assert_int_equal(by_hand_run(&by_hand), 2);
    by_hand_assert_trace(&by_hand, "abc");
    assert_int_equal(users[0].status, 0);
    assert_int_equal(users[1].status, -EPIPE);
    assert_int_equal(users[2].status, -EPIPE);
    begin(&users[3], &by_hand, &mutex, 'd');
    assert_int_equal(users[3].status, -EPIPE);
    assert_true(bide_mutex_is_locked(&mutex));
    bide_mutex_unlock(&users[0].lock);
    assert_false(bide_mutex_is_locked(&mutex));
    assert_false(bide_mutex_try_lock(&other, &mutex));
    bide_mutex_destroy(&mutex);
}

static void a_destroyed_coroutine_leaves_the_line(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_mutex mutex;
    struct user users[3];
    by_hand_init(&by_hand);
    bide_mutex_init(&mutex);
    for (int i = 0; i < 3; i++)
        begin(&users[i], &by_hand, &mutex, (char)('a' + i));
    bide_destroy(&users[1].task.frame);
    bide_mutex_unlock(&users[0].lock);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "ac");
    bide_mutex_unlock(&users[2].lock);
}

static void what_was_handed_over_to_a_destroyed_coroutine_goes_to_the_next(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_mutex mutex;
    struct user users[3];
    by_hand_init(&by_hand);
    bide_mutex_init(&mutex);
    for (int i = 0; i < 3; i++)
        begin(&users[i], &by_hand, &mutex, (char)('a' + i));
    bide_mutex_unlock(&users[0].lock); /* b holds it, and has not run */
    bide_destroy(&users[1].task.frame);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "ac");
    bide_mutex_unlock(&users[2].lock);
    bide_mutex_destroy(&mutex);
}

#if TESTING_HOSTED
static void a_thread_locks_it_until_a_deadline(void **state)
{
    (void)state;
    bide_mutex mutex;
    bide_mutex_waiter one, two;
    bide_mutex_init(&mutex);
    assert_int_equal(bide_mutex_lock_blocking(&one, &mutex, 0), 0);
    assert_int_equal(bide_mutex_lock_blocking(&two, &mutex, 0), -ETIMEDOUT);
    assert_int_equal(bide_mutex_lock_blocking(&two, &mutex, bide_platform.now() + 1000000),
                     -ETIMEDOUT);
    bide_mutex_unlock(&one);
    assert_int_equal(bide_mutex_lock_blocking(&two, &mutex, BIDE_FOREVER), 0);
    bide_mutex_close(&mutex);
    assert_int_equal(bide_mutex_lock_blocking(&one, &mutex, BIDE_FOREVER), -EPIPE);
    bide_mutex_unlock(&two);
    bide_mutex_destroy(&mutex);
}
#endif

#if BIDE_DEBUG && TESTING_HOSTED
static void unlock_with_another_key(void)
{
    bide_mutex mutex;
    bide_mutex_waiter one, two = {.mutex = &mutex};
    bide_mutex_init(&mutex);
    bide_mutex_try_lock(&one, &mutex);
    bide_mutex_unlock(&two);
}

static void unlock_twice(void)
{
    bide_mutex mutex;
    bide_mutex_waiter one;
    bide_mutex_init(&mutex);
    bide_mutex_try_lock(&one, &mutex);
    bide_mutex_unlock(&one);
    bide_mutex_unlock(&one);
}

static void destroy_what_is_locked(void)
{
    bide_mutex mutex;
    bide_mutex_waiter one;
    bide_mutex_init(&mutex);
    bide_mutex_try_lock(&one, &mutex);
    bide_mutex_destroy(&mutex);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(unlock_with_another_key,
                                     "a mutex is unlocked by a waiter that has not locked it: &two",
                                     "unlock_with_another_key"));
    assert_true(misuse_aborts_naming(unlock_twice, "&one", "unlock_twice"));
    assert_true(misuse_aborts_naming(destroy_what_is_locked,
                                     "a mutex is destroyed while it is in use: &mutex",
                                     "destroy_what_is_locked"));
}
#endif

/* ---- A crowd in line, on a small stack ---- */

#if TESTING_HOSTED
static uint32_t locked;

struct link {
    bide_task task;
    bide_mutex *mutex;
    bide_mutex_waiter lock;
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    bide_try(bide_mutex_lock(&self->lock, self->mutex));
    locked++;
    bide_mutex_unlock(&self->lock); /* wakes the next */
    bide_end();
}

static void *wake_a_chain(void *argument)
{
    struct link *links = argument;
    bide_mutex mutex;
    bide_mutex_waiter first;
    bide_mutex_init(&mutex);
    bide_mutex_try_lock(&first, &mutex);
    for (uint32_t i = 0; i < crowd_of_waiters(); i++) {
        links[i].mutex = &mutex;
        bide_await_later(bide_task_init(&links[i].task, &link_body));
        links[i].task.frame.context = &bide_default_context;
        links[i].task.frame.awaiter.frame = NULL;
        bide_resume(&links[i].task.frame);
    }
    bide_mutex_unlock(&first);
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
    bide_await_status(self->status, bide_mutex_lock(&self->waiter, &self->storm->object));
    if (self->status == 0) {
        storm_write(self->storm, self->section);
        bide_mutex_unlock(&self->waiter);
    }
    storm_ended(self->storm);
    bide_end();
}

static int storm_block(storm *storm, uint64_t deadline)
{
    bide_mutex_waiter lock;
    int status = bide_mutex_lock_blocking(&lock, &storm->object, deadline);
    if (status == 0) {
        storm_write(storm, 20);
        bide_mutex_unlock(&lock);
    }
    return status;
}

static void storm_init(storm *storm)
{
    bide_mutex_init(&storm->object);
    storm->data[0] = storm->data[1] = 0;
}

static void storm_end(storm *storm)
{
    bide_mutex_close(&storm->object);
}

static bool storm_is_good(storm *storm)
{
    return storm->data[0] == storm_count(storm, 0) + (storm->blocked == 0) &&
           !bide_mutex_is_locked(&storm->object) && bide_waiter_queue_is_idle(&storm->object.queue);
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
        cmocka_unit_test(it_is_free_at_first_and_after_unlocking),
        cmocka_unit_test(it_is_handed_over_in_the_order_of_arrival),
        cmocka_unit_test(closing_ends_those_in_line_and_those_that_come),
        cmocka_unit_test(a_destroyed_coroutine_leaves_the_line),
        cmocka_unit_test(what_was_handed_over_to_a_destroyed_coroutine_goes_to_the_next),
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
