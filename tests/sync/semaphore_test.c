/*
 * The semaphore: permits in the order of arrival, several at a time; cancellation and closing in line.
 */
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/handle.h"
#include "bide/semaphore.h"
#include "bide/stop.h"

#if TESTING_HOSTED
#define STORM_OBJECT bide_semaphore
#define STORM_WAITER bide_semaphore_waiter
#include "sync/storm.h"
#endif

/* A coroutine with a stop source of its own that acquires, and notes its name. */
struct user {
    bide_task task;
    by_hand *by_hand;
    bide_semaphore *semaphore;
    bide_semaphore_waiter wait;
    bide_context context;
    bide_stop_source stop;
    uint32_t permits;
    char name;
    int status;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_await_status(self->status,
                      bide_semaphore_acquire_many(&self->wait, self->semaphore, self->permits));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void begin(struct user *self, by_hand *by_hand, bide_semaphore *semaphore, uint32_t permits,
                  char name)
{
    self->by_hand = by_hand;
    self->semaphore = semaphore;
    self->permits = permits;
    self->name = name;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = by_hand->context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &user_body, &self->context);
    bide_resume(&self->task.frame);
}

static void it_has_the_permits_that_it_was_made_with(void **state)
{
    (void)state;
    bide_semaphore semaphore;
    bide_semaphore_init(&semaphore, 3);
    assert_int_equal(bide_semaphore_available(&semaphore), 3);
    assert_true(bide_semaphore_try_acquire(&semaphore, 2));
    assert_false(bide_semaphore_try_acquire(&semaphore, 2));
    assert_true(bide_semaphore_try_acquire(&semaphore, 1));
    assert_true(bide_semaphore_try_acquire(&semaphore, 0));
    assert_false(bide_semaphore_try_acquire(&semaphore, 1));
    bide_semaphore_release(&semaphore, 5);
    assert_int_equal(bide_semaphore_available(&semaphore), 5);
    bide_semaphore_destroy(&semaphore);
}

/* If a word has 32 bits, so many permits of the queue's ones are more than the word holds. */
static void more_permits_than_there_can_be_are_never_free(void **state)
{
    (void)state;
    bide_semaphore semaphore;
    bide_semaphore_init(&semaphore, BIDE_SEMAPHORE_MAX);
    assert_int_equal(bide_semaphore_available(&semaphore), BIDE_SEMAPHORE_MAX);
    assert_false(bide_semaphore_try_acquire(&semaphore, BIDE_SEMAPHORE_MAX + 1));
    assert_false(bide_semaphore_try_acquire(&semaphore, UINT32_MAX));
    assert_int_equal(bide_semaphore_available(&semaphore), BIDE_SEMAPHORE_MAX);
    assert_true(bide_semaphore_try_acquire(&semaphore, BIDE_SEMAPHORE_MAX));
    assert_int_equal(bide_semaphore_available(&semaphore), 0);
    bide_semaphore_destroy(&semaphore);
}

static void waiters_are_served_in_order_of_arrival_whatever_they_want(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_semaphore semaphore;
    struct user users[4];
    static const uint32_t permits[] = {1, 3, 1, 2};
    by_hand_init(&by_hand);
    bide_semaphore_init(&semaphore, 0);
    for (int i = 0; i < 4; i++)
        begin(&users[i], &by_hand, &semaphore, permits[i], (char)('a' + i));

    bide_semaphore_release(&semaphore, 3);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "a");
    assert_int_equal(bide_semaphore_available(&semaphore), 2);
    assert_false(bide_semaphore_try_acquire(&semaphore, 1)); /* it would be out of turn */

    bide_semaphore_release(&semaphore, 2);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "bc");
    assert_int_equal(bide_semaphore_available(&semaphore), 0);

    bide_semaphore_release(&semaphore, 9);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "d");
    assert_int_equal(bide_semaphore_available(&semaphore), 7);
}

static void a_cancelled_wait_takes_nothing_and_lets_the_next_go_on(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_semaphore semaphore;
    struct user users[3];
    static const uint32_t permits[] = {5, 1, 5};
    by_hand_init(&by_hand);
    bide_semaphore_init(&semaphore, 2);
    for (int i = 0; i < 3; i++)
        begin(&users[i], &by_hand, &semaphore, permits[i], (char)('a' + i));
    assert_int_equal(by_hand_run(&by_hand), 0);
    bide_stop_request_with(&users[0].stop, -ETIMEDOUT);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "ab");
    assert_int_equal(users[0].status, -ETIMEDOUT);
    assert_int_equal(users[1].status, 0);
    assert_int_equal(bide_semaphore_available(&semaphore), 1);
    bide_destroy(&users[2].task.frame);
    assert_true(bide_semaphore_try_acquire(&semaphore, 1));
}

static void permits_that_were_handed_over_are_not_lost_to_a_request(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_semaphore semaphore;
    struct user user;
    by_hand_init(&by_hand);
    bide_semaphore_init(&semaphore, 0);
    begin(&user, &by_hand, &semaphore, 1, 'a');
    bide_semaphore_release(&semaphore, 1); /* posted, not run */
    bide_stop_request(&user.stop);
    by_hand_run(&by_hand);
    assert_int_equal(user.status, 0);
    assert_int_equal(bide_semaphore_available(&semaphore), 0);
}

static void closing_ends_all_waits_now_and_later(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_semaphore semaphore;
    struct user users[3];
    by_hand_init(&by_hand);
    bide_semaphore_init(&semaphore, 1);
    begin(&users[0], &by_hand, &semaphore, 2, 'a');
    begin(&users[1], &by_hand, &semaphore, 1, 'b');
    bide_semaphore_close(&semaphore);
    by_hand_run(&by_hand);
    begin(&users[2], &by_hand, &semaphore, 1, 'c');
    by_hand_assert_trace(&by_hand, "abc");
    for (int i = 0; i < 3; i++)
        assert_int_equal(users[i].status, -EPIPE);
    assert_int_equal(bide_semaphore_available(&semaphore), 1);
    bide_semaphore_release(&semaphore, 1);
    assert_false(bide_semaphore_try_acquire(&semaphore, 1));
}

static void permits_that_were_handed_over_to_a_destroyed_coroutine_go_to_the_next(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_semaphore semaphore;
    struct user users[2];
    by_hand_init(&by_hand);
    bide_semaphore_init(&semaphore, 0);
    begin(&users[0], &by_hand, &semaphore, 3, 'a');
    begin(&users[1], &by_hand, &semaphore, 2, 'b');
    bide_semaphore_release(&semaphore, 4); /* a has three permits, and has not run */
    bide_destroy(&users[0].task.frame);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "b");
    assert_int_equal(bide_semaphore_available(&semaphore), 2);
    bide_semaphore_destroy(&semaphore);
}

#if TESTING_HOSTED
static void a_thread_acquires_until_a_deadline(void **state)
{
    (void)state;
    bide_semaphore semaphore;
    bide_semaphore_init(&semaphore, 2);
    assert_int_equal(bide_semaphore_acquire_blocking(&semaphore, 3, 0), -ETIMEDOUT);
    assert_int_equal(bide_semaphore_acquire_blocking(&semaphore, 3, bide_platform.now() + 1000000),
                     -ETIMEDOUT);
    assert_int_equal(bide_semaphore_acquire_blocking(&semaphore, 2, 0), 0);
    bide_semaphore_release(&semaphore, 1);
    assert_int_equal(bide_semaphore_acquire_blocking(&semaphore, 1, BIDE_FOREVER), 0);
    bide_semaphore_close(&semaphore);
    assert_int_equal(bide_semaphore_acquire_blocking(&semaphore, 1, BIDE_FOREVER), -EPIPE);
    bide_semaphore_destroy(&semaphore);
}

/* ---- At random, with threads ---- */

enum { STORM_PERMITS = 5 };

/* Takes 1 to 4 of five permits; at most one holder has more than half. */
bide_coroutine(storm_body)
{
    bide_begin(storm_body, storm_user * self);
    bide_await_status(self->status, bide_semaphore_acquire_many(&self->waiter, &self->storm->object,
                                                                1 + self->kind % 4));
    if (self->status == 0) {
        uint32_t permits = 1 + self->kind % 4;
        if (permits > STORM_PERMITS / 2)
            storm_write(self->storm, self->section);
        else
            storm_pass(self->section);
        bide_semaphore_release(&self->storm->object, permits);
    }
    storm_ended(self->storm);
    bide_end();
}

static int storm_block(storm *storm, uint64_t deadline)
{
    int status = bide_semaphore_acquire_blocking(&storm->object, STORM_PERMITS, deadline);
    if (status == 0) {
        storm_write(storm, 20);
        bide_semaphore_release(&storm->object, STORM_PERMITS);
    }
    return status;
}

static void storm_init(storm *storm)
{
    bide_semaphore_init(&storm->object, STORM_PERMITS);
}

static void storm_end(storm *storm)
{
    bide_semaphore_close(&storm->object);
}

static bool storm_is_good(storm *storm)
{
    return bide_semaphore_available(&storm->object) == STORM_PERMITS &&
           bide_waiter_queue_is_idle(&storm->object.queue);
}

static void no_permit_is_lost_or_had_twice(void **state)
{
    static const storm_kind kind = {&storm_body,   storm_init,  storm_end,
                                    storm_is_good, storm_block, NULL};
    (void)state;
    storm_run(&kind);
}
#endif

#if TESTING_HOSTED
static void release_too_many(void)
{
    bide_semaphore semaphore;
    bide_semaphore_init(&semaphore, BIDE_SEMAPHORE_MAX);
    bide_semaphore_release(&semaphore, 1);
}

static void begin_with_too_many(void)
{
    bide_semaphore semaphore;
    bide_semaphore_init(&semaphore, BIDE_SEMAPHORE_MAX + 1);
}

static void wait_for_too_many(void)
{
    by_hand by_hand;
    bide_semaphore semaphore;
    struct user user;
    by_hand_init(&by_hand);
    bide_semaphore_init(&semaphore, 1);
    begin(&user, &by_hand, &semaphore, BIDE_SEMAPHORE_MAX + 1, 'a');
}

static void block_for_too_many(void)
{
    bide_semaphore semaphore;
    bide_semaphore_init(&semaphore, BIDE_SEMAPHORE_MAX);
    bide_semaphore_acquire_blocking(&semaphore, BIDE_SEMAPHORE_MAX + 1, 0);
}

static void wait_for_none(void)
{
    bide_semaphore semaphore;
    bide_semaphore_waiter waiter;
    bide_semaphore_init(&semaphore, 1);
    int status = bide_sync_wait(bide_semaphore_acquire_many(&waiter, &semaphore, 0));
    if (status == -EINVAL && bide_semaphore_available(&semaphore) == 1)
        bide_platform.misuse("refused", "wait_for_none", __FILE__, __LINE__);
}

static void to_wait_for_no_permits_is_misuse_or_refused(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(wait_for_none,
                                     BIDE_DEBUG ? "no permits are waited for" : "refused", ""));
}

static void too_many_permits_are_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(release_too_many, "too many permits", "semaphore_release"));
    assert_true(misuse_aborts_naming(begin_with_too_many, "too many permits", "semaphore_init"));
    assert_true(
        misuse_aborts_naming(wait_for_too_many, "more permits are wanted", "semaphore_acquire"));
    assert_true(
        misuse_aborts_naming(block_for_too_many, "more permits are wanted", "semaphore_acquire"));
}
#endif

#if BIDE_DEBUG && TESTING_HOSTED
static void destroy_what_is_waited_for(void)
{
    by_hand by_hand;
    bide_semaphore semaphore;
    struct user user;
    by_hand_init(&by_hand);
    bide_semaphore_init(&semaphore, 0);
    begin(&user, &by_hand, &semaphore, 1, 'a');
    bide_semaphore_destroy(&semaphore);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_what_is_waited_for, "&semaphore",
                                     "destroy_what_is_waited_for"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_the_permits_that_it_was_made_with),
        cmocka_unit_test(more_permits_than_there_can_be_are_never_free),
        cmocka_unit_test(waiters_are_served_in_order_of_arrival_whatever_they_want),
        cmocka_unit_test(a_cancelled_wait_takes_nothing_and_lets_the_next_go_on),
        cmocka_unit_test(permits_that_were_handed_over_are_not_lost_to_a_request),
        cmocka_unit_test(closing_ends_all_waits_now_and_later),
        cmocka_unit_test(permits_that_were_handed_over_to_a_destroyed_coroutine_go_to_the_next),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_acquires_until_a_deadline),
        cmocka_unit_test(no_permit_is_lost_or_had_twice),
        cmocka_unit_test(to_wait_for_no_permits_is_misuse_or_refused),
        cmocka_unit_test(too_many_permits_are_misuse),
#endif
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
