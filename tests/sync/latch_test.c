/*
 * The latch: counted down once; all waiters continue at zero; its memory may be freed right after the wait.
 */
#include "misuse.h"
#include "sync/meeting.h"
#include "sync/users.h"

static bide_awaiter *wait_for(user *self)
{
    return bide_latch_wait(&self->waiter.latch, self->object);
}

static bide_awaiter *arrive_and_wait(user *self)
{
    return bide_latch_arrive_and_wait(&self->waiter.latch, (bide_latch *)self->object);
}

static void all_go_on_at_zero_in_order_of_arrival(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_latch latch;
    user users[4];
    by_hand_init(&by_hand);
    bide_latch_init(&latch, 4);
    users_begin(users, 3, &by_hand, wait_for, &latch);
    bide_latch_count_down(&latch);
    bide_latch_count_down_many(&latch, 0);
    bide_latch_count_down_many(&latch, 2);
    assert_int_equal(by_hand.posted, 0);
    assert_false(bide_latch_try_wait(&latch));
    bide_latch_count_down(&latch);
    assert_true(bide_latch_try_wait(&latch));
    assert_int_equal(by_hand_run(&by_hand), 3);
    by_hand_assert_trace(&by_hand, "abc");
    user_begin(&users[3], &by_hand, wait_for, &latch, 'd');
    by_hand_assert_trace(&by_hand, "d");
    for (int i = 0; i < 4; i++)
        assert_int_equal(users[i].status, 0);
    bide_latch_destroy(&latch);
}

static void one_of_none_is_zero_at_once(void **state)
{
    (void)state;
    bide_latch latch;
    bide_latch_init(&latch, 0);
    assert_true(bide_latch_try_wait(&latch));
    bide_latch_count_down_many(&latch, 0);
    assert_true(bide_latch_try_wait(&latch));
}

static void an_arrival_that_waits_is_counted_and_waits(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_latch latch;
    user users[3];
    by_hand_init(&by_hand);
    bide_latch_init(&latch, 3);
    users_begin(users, 2, &by_hand, arrive_and_wait, &latch);
    assert_int_equal(users[1].status, 1);
    user_begin(&users[2], &by_hand, arrive_and_wait, &latch, 'c');
    by_hand_assert_trace(&by_hand, "c"); /* the last did not wait */
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "ab");
}

static void a_wait_that_is_cut_short_leaves_the_count_as_it_is(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_latch latch;
    user users[2];
    by_hand_init(&by_hand);
    bide_latch_init(&latch, 2);
    user_begin(&users[0], &by_hand, arrive_and_wait, &latch, 'a');
    user_begin(&users[1], &by_hand, wait_for, &latch, 'b');
    bide_stop_request_with(&users[0].stop, -ETIMEDOUT);
    by_hand_run(&by_hand);
    assert_int_equal(users[0].status, -ETIMEDOUT);
    bide_latch_count_down(&latch);
    bide_stop_request(&users[1].stop); /* too late */
    by_hand_run(&by_hand);
    assert_int_equal(users[1].status, 0);
}

static void a_destroyed_coroutine_waits_no_longer(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_latch latch;
    user users[2];
    by_hand_init(&by_hand);
    bide_latch_init(&latch, 1);
    users_begin(users, 2, &by_hand, wait_for, &latch);
    bide_destroy(&users[0].task.frame);
    bide_latch_count_down(&latch);
    assert_int_equal(by_hand_run(&by_hand), 1);
    by_hand_assert_trace(&by_hand, "b");
    bide_latch_destroy(&latch);
}

static void closing_ends_waits_for_a_zero_that_has_not_come(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_latch latch;
    user users[3];
    by_hand_init(&by_hand);
    bide_latch_init(&latch, 1);
    user_begin(&users[0], &by_hand, wait_for, &latch, 'a');
    bide_latch_close(&latch);
    bide_latch_count_down(&latch);
    assert_false(bide_latch_try_wait(&latch));
    by_hand_run(&by_hand);
    user_begin(&users[1], &by_hand, wait_for, &latch, 'b');
    assert_int_equal(users[0].status, -EPIPE);
    assert_int_equal(users[1].status, -EPIPE);

    bide_latch_init(&latch, 1);
    bide_latch_count_down(&latch);
    bide_latch_close(&latch);
    user_begin(&users[2], &by_hand, wait_for, &latch, 'c');
    assert_int_equal(users[2].status, 0);
}

#if TESTING_HOSTED

#include "small_stack.h"

enum { SHORT = 1000 * 1000 };

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    bide_latch latch;
    bide_latch_init(&latch, 1);
    assert_int_equal(bide_latch_wait_blocking(&latch, bide_platform.now() + SHORT), -ETIMEDOUT);
    bide_latch_count_down(&latch);
    assert_int_equal(bide_latch_wait_blocking(&latch, 0), 0);
    bide_latch_destroy(&latch);
}

static void count_down_below_zero(void)
{
    bide_latch small;
    bide_latch_init(&small, 1);
    bide_latch_count_down_many(&small, 2);
}

static void arrive_below_zero(void)
{
    bide_latch small;
    bide_latch_waiter wait;
    bide_latch_init(&small, 0);
    bide_await_later(bide_latch_arrive_and_wait(&wait, &small));
}

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    by_hand by_hand;
    bide_latch precious;
    user user;
    by_hand_init(&by_hand);
    bide_latch_init(&precious, 1);
    user_begin(&user, &by_hand, wait_for, &precious, 'a');
    bide_latch_destroy(&precious);
}
#endif

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(count_down_below_zero,
                                     "a latch is counted down below zero: &small",
                                     "count_down_below_zero"));
    assert_true(misuse_aborts_naming(
        arrive_below_zero, "a latch is counted down below zero: &small", "arrive_below_zero"));
#if BIDE_DEBUG
    assert_true(misuse_aborts_naming(destroy_it_while_it_is_awaited,
                                     "a latch is destroyed while it is waited for: &precious",
                                     "destroy_it_while_it_is_awaited"));
#endif
}

/* ---- A crowd, on a small stack ---- */

static uint32_t passed;

struct small {
    bide_task task;
    bide_latch *latch;
    bide_latch_waiter wait;
};

bide_coroutine(small_body)
{
    bide_begin(small_body, struct small * self);
    bide_try(bide_latch_arrive_and_wait(&self->wait, self->latch));
    passed++;
    bide_end();
}

static void *meet_a_crowd(void *argument)
{
    struct small *all = argument;
    bide_latch latch;
    bide_latch_init(&latch, crowd_of_waiters());
    for (uint32_t i = 0; i < crowd_of_waiters(); i++) {
        all[i].latch = &latch;
        bide_start(&all[i].task.frame, &small_body, &bide_default_context);
        bide_resume(&all[i].task.frame);
    }
    return NULL;
}

static void a_crowd_meets_on_a_small_stack(void **state)
{
    (void)state;
    struct small *all = calloc(crowd_of_waiters(), sizeof *all);
    assert_non_null(all);
    passed = 0;
    on_a_small_stack(meet_a_crowd, all);
    assert_int_equal(passed, crowd_of_waiters());
    free(all);
}

/*
 * ---- At random, with threads ----
 *
 * A thread makes latches that three others count down. It waits for each until it is zero, sometimes with a deadline,
 * reads what they have written, and frees it at once.
 */
enum { COUNTERS = 3 };

struct rounds {
    meeting meeting;
    uint32_t rounds;
    uint64_t seed;
    bide_latch *latch;
    uint32_t written[COUNTERS];
};

struct counter {
    pthread_t thread;
    struct rounds *rounds;
    uint32_t number;
};

static void *count_down(void *argument)
{
    struct counter *self = argument;
    struct rounds *rounds = self->rounds;
    uint64_t random = rounds->seed + 1 + self->number;
    for (uint32_t round = 1; round <= rounds->rounds; round++) {
        meet(&rounds->meeting);
        bide_latch *latch = rounds->latch;
        random_moment(&random, 200);
        rounds->written[self->number] = round;
        bide_latch_count_down(latch);
        meet(&rounds->meeting);
    }
    return NULL;
}

static void a_waiter_sees_all_and_frees_it(void **state)
{
    (void)state;
    struct rounds rounds = {.rounds = rounds_of(5000), .seed = testing_seed()};
    struct counter counters[COUNTERS];
    uint64_t random = rounds.seed;
    uint32_t too_late = 0;
    meeting_init(&rounds.meeting, COUNTERS + 1);
    for (uint32_t i = 0; i < COUNTERS; i++) {
        counters[i] = (struct counter){.rounds = &rounds, .number = i};
        start_thread(&counters[i].thread, count_down, &counters[i]);
    }
    for (uint32_t round = 1; round <= rounds.rounds; round++) {
        rounds.latch = malloc(sizeof *rounds.latch);
        assert_non_null(rounds.latch);
        bide_latch_init(rounds.latch, COUNTERS);
        meet(&rounds.meeting);
        for (;;) {
            uint64_t number = testing_random(&random);
            uint64_t deadline =
                number % 2 == 0 ? BIDE_FOREVER : bide_platform.now() + number / 2 % 10000;
            int status = bide_latch_wait_blocking(rounds.latch, deadline);
            if (status == 0)
                break;
            assert_int_equal(status, -ETIMEDOUT);
            too_late++;
        }
        bide_latch_destroy(rounds.latch);
        memset(rounds.latch, 0x55, sizeof *rounds.latch);
        free(rounds.latch);
        for (int i = 0; i < COUNTERS; i++)
            assert_int_equal(rounds.written[i], round);
        meet(&rounds.meeting);
    }
    for (uint32_t i = 0; i < COUNTERS; i++)
        join_thread(counters[i].thread);
    printf("# %u waits were too late\n", too_late);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_go_on_at_zero_in_order_of_arrival),
        cmocka_unit_test(one_of_none_is_zero_at_once),
        cmocka_unit_test(an_arrival_that_waits_is_counted_and_waits),
        cmocka_unit_test(a_wait_that_is_cut_short_leaves_the_count_as_it_is),
        cmocka_unit_test(a_destroyed_coroutine_waits_no_longer),
        cmocka_unit_test(closing_ends_waits_for_a_zero_that_has_not_come),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
        cmocka_unit_test(a_crowd_meets_on_a_small_stack),
        cmocka_unit_test(a_waiter_sees_all_and_frees_it),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
