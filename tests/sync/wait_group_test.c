/*
 * The wait group: up and down; each zero ends the waits that have started; it is reusable at once.
 */
#include "misuse.h"
#include "sync/meeting.h"
#include "sync/users.h"

static bide_awaiter *wait_for(user *self)
{
    return bide_wait_group_wait(&self->waiter.wait_group, self->object);
}

static void a_waiter_goes_on_when_all_are_done(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_wait_group group;
    user users[3];
    by_hand_init(&by_hand);
    bide_wait_group_init(&group);
    assert_true(bide_wait_group_try_wait(&group));
    bide_wait_group_add(&group, 2);
    assert_false(bide_wait_group_try_wait(&group));
    users_begin(users, 3, &by_hand, wait_for, &group);
    bide_wait_group_add(&group, 1); /* for these too */
    bide_wait_group_done(&group);
    bide_wait_group_done(&group);
    assert_int_equal(by_hand.posted, 0);
    assert_int_equal(bide_wait_group_count(&group), 1);
    bide_wait_group_done(&group);
    assert_int_equal(by_hand_run(&by_hand), 3);
    by_hand_assert_trace(&by_hand, "abc");
    bide_wait_group_destroy(&group);
}

static void of_none_there_is_nothing_to_wait_for(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_wait_group group;
    user user;
    by_hand_init(&by_hand);
    bide_wait_group_init(&group);
    user_begin(&user, &by_hand, wait_for, &group, 'a');
    assert_int_equal(user.status, 0);
}

static void it_is_used_again_before_its_waiter_has_noticed(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_wait_group group;
    user users[2];
    by_hand_init(&by_hand);
    bide_wait_group_init(&group);
    bide_wait_group_add(&group, 1);
    user_begin(&users[0], &by_hand, wait_for, &group, 'a');
    bide_wait_group_done(&group);
    bide_wait_group_add(&group, 1);
    user_begin(&users[1], &by_hand, wait_for, &group, 'b');
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "a");
    bide_wait_group_done(&group);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "b");
}

static void a_wait_begins_when_it_is_made_not_when_it_is_awaited(void **state)
{
    (void)state;
    bide_wait_group group;
    bide_wait_group_waiter waits[3];
    probe probes[3];
    bide_awaiter *begun[3];
    bide_wait_group_init(&group);
    begun[0] = bide_wait_group_wait(&waits[0], &group); /* at zero */
    bide_wait_group_add(&group, 1);
    begun[1] = bide_wait_group_wait(&waits[1], &group);
    bide_wait_group_done(&group);
    bide_wait_group_add(&group, 1);
    begun[2] = bide_wait_group_wait(&waits[2], &group);
    for (int i = 0; i < 3; i++)
        probe_init(&probes[i]);
    assert_false(probe_await(&probes[2], begun[2]));
    assert_true(probe_await(&probes[0], begun[0]));
    assert_true(probe_await(&probes[1], begun[1]));
    /* Even if it had checked before, and is behind another by now. */
    assert_true(probe_suspend(&probes[1], begun[1]));
    assert_int_equal(probe_ended(&probes[2]), 0);
    bide_wait_group_done(&group);
    assert_int_equal(probe_ended(&probes[2]), 1);
    bide_wait_group_destroy(&group);
}

static void phases_wrap_around(void **state)
{
    (void)state;
    bide_wait_group group;
    bide_wait_group_waiter wait;
    probe probe;
    bide_wait_group_init(&group);
    bide_atomic_init(&group.queue.state, (uintptr_t)0 - BIDE_QUEUE_PHASE_ONE);
    for (int i = 0; i < 2; i++) {
        bide_wait_group_add(&group, BIDE_WAIT_GROUP_MAX > 8191 ? 8191 : BIDE_WAIT_GROUP_MAX);
        probe_init(&probe);
        assert_false(probe_await(&probe, bide_wait_group_wait(&wait, &group)));
        while (bide_wait_group_count(&group) != 0) {
            assert_int_equal(probe_ended(&probe), 0);
            bide_wait_group_done(&group);
        }
        assert_int_equal(probe_ended(&probe), 1);
        assert_int_equal(bide_atomic_load(&group.queue.state, relaxed),
                         (uintptr_t)i * BIDE_QUEUE_PHASE_ONE);
    }
}

static void a_wait_that_is_cut_short_leaves_the_others(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_wait_group group;
    user users[3];
    by_hand_init(&by_hand);
    bide_wait_group_init(&group);
    bide_wait_group_add(&group, 1);
    users_begin(users, 3, &by_hand, wait_for, &group);
    bide_stop_request_with(&users[1].stop, -ETIMEDOUT);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "b");
    assert_int_equal(users[1].status, -ETIMEDOUT);
    bide_wait_group_done(&group);
    bide_stop_request(&users[0].stop); /* too late */
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "ac");
    assert_int_equal(users[0].status, 0);
}

static void a_destroyed_coroutine_waits_no_longer(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_wait_group group;
    user users[2];
    by_hand_init(&by_hand);
    bide_wait_group_init(&group);
    bide_wait_group_add(&group, 1);
    users_begin(users, 2, &by_hand, wait_for, &group);
    bide_destroy(&users[0].task.frame);
    bide_wait_group_done(&group);
    assert_int_equal(by_hand_run(&by_hand), 1);
    by_hand_assert_trace(&by_hand, "b");
    bide_wait_group_destroy(&group);
}

static void closing_ends_waits_for_a_zero_that_has_not_come(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_wait_group group;
    user users[3];
    by_hand_init(&by_hand);
    bide_wait_group_init(&group);
    bide_wait_group_add(&group, 1);
    user_begin(&users[0], &by_hand, wait_for, &group, 'a');
    bide_wait_group_close(&group);
    bide_wait_group_close(&group);
    by_hand_run(&by_hand);
    user_begin(&users[1], &by_hand, wait_for, &group, 'b');
    assert_int_equal(users[0].status, -EPIPE);
    assert_int_equal(users[1].status, -EPIPE);
    bide_wait_group_add(&group, 1);
    bide_wait_group_done(&group);
    bide_wait_group_done(&group);
    user_begin(&users[2], &by_hand, wait_for, &group, 'c');
    assert_int_equal(users[2].status, 0);
    bide_wait_group_destroy(&group);
}

#if TESTING_HOSTED

#include "small_stack.h"

enum { SHORT = 1000 * 1000 };

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    bide_wait_group group;
    bide_wait_group_init(&group);
    bide_wait_group_add(&group, 1);
    assert_int_equal(bide_wait_group_wait_blocking(&group, bide_platform.now() + SHORT),
                     -ETIMEDOUT);
    bide_wait_group_done(&group);
    assert_int_equal(bide_wait_group_wait_blocking(&group, 0), 0);
    bide_wait_group_destroy(&group);
}

static void too_many_are_done(void)
{
    bide_wait_group small;
    bide_wait_group_init(&small);
    bide_wait_group_add(&small, 1);
    bide_wait_group_done(&small);
    bide_wait_group_done(&small);
}

static void too_many_are_added(void)
{
    bide_wait_group large;
    bide_wait_group_init(&large);
    bide_wait_group_add(&large, BIDE_WAIT_GROUP_MAX);
    bide_wait_group_add(&large, 1);
}

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    by_hand by_hand;
    bide_wait_group precious;
    user user;
    by_hand_init(&by_hand);
    bide_wait_group_init(&precious);
    bide_wait_group_add(&precious, 1);
    user_begin(&user, &by_hand, wait_for, &precious, 'a');
    bide_wait_group_destroy(&precious);
}
#endif

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(
        too_many_are_done, "more are done than a wait group has: &small", "too_many_are_done"));
    assert_true(misuse_aborts_naming(too_many_are_added, "a wait group has too many: &large",
                                     "too_many_are_added"));
#if BIDE_DEBUG
    assert_true(misuse_aborts_naming(destroy_it_while_it_is_awaited,
                                     "a wait group is destroyed while it is waited for: &precious",
                                     "destroy_it_while_it_is_awaited"));
#endif
}

/* ---- A crowd, on a small stack ---- */

static uint32_t passed;

struct small {
    bide_task task;
    bide_wait_group *group;
    bide_wait_group_waiter wait;
};

bide_coroutine(small_body)
{
    bide_begin(small_body, struct small * self);
    bide_try(bide_wait_group_wait(&self->wait, self->group));
    passed++;
    bide_end();
}

static void *wake_a_crowd(void *argument)
{
    struct small *all = argument;
    bide_wait_group group;
    bide_wait_group_init(&group);
    bide_wait_group_add(&group, 1);
    for (uint32_t i = 0; i < crowd_of_waiters(); i++) {
        all[i].group = &group;
        bide_start(&all[i].task.frame, &small_body, &bide_default_context);
        bide_resume(&all[i].task.frame);
    }
    bide_wait_group_done(&group);
    return NULL;
}

static void a_crowd_goes_on_on_a_small_stack(void **state)
{
    (void)state;
    struct small *all = calloc(crowd_of_waiters(), sizeof *all);
    assert_non_null(all);
    passed = 0;
    on_a_small_stack(wake_a_crowd, all);
    assert_int_equal(passed, crowd_of_waiters());
    free(all);
}

/*
 * ---- At random, with threads ----
 *
 * In each round a thread adds three, two of them done by one thread and one by another, which add more of their own in
 * between. It waits, at random with deadlines, and reads the results. A fourth waits all the time, and must see no end
 * while it knows that work is under way.
 */
enum { WORKERS = 2 };

struct works {
    meeting meeting;
    bide_wait_group group;
    uint32_t rounds;
    uint64_t seed;
    uint32_t written[WORKERS];
    bide_atomic(uint32_t) begun; /* rounds; written before the round's work is added */
    bide_atomic(
        uint32_t) ended; /* rounds; written when the work of the round is about to be done */
    bide_atomic(uint32_t) over;
};

struct worker {
    pthread_t thread;
    struct works *works;
    uint32_t number;
    uint32_t ends, wrong;
};

static void *work(void *argument)
{
    struct worker *self = argument;
    struct works *works = self->works;
    uint64_t random = works->seed + 1 + self->number;
    for (uint32_t round = 1; round <= works->rounds; round++) {
        meet(&works->meeting);
        for (uint64_t more = testing_random(&random) % 3; more != 0; more--) {
            bide_wait_group_add(&works->group, 1);
            random_moment(&random, 20);
            bide_wait_group_done(&works->group);
        }
        random_moment(&random, 200);
        works->written[self->number] = round;
        if (self->number == 0)
            bide_wait_group_done(&works->group);
        bide_atomic_store(&works->ended, round, relaxed);
        bide_wait_group_done(&works->group);
    }
    return NULL;
}

/* A wait that started when a round had, ends with 0 when that round's work is done, or later. */
static void *watch(void *argument)
{
    struct worker *self = argument;
    struct works *works = self->works;
    uint64_t random = works->seed + 100;
    while (bide_atomic_load(&works->over, acquire) == 0) {
        uint32_t begun = bide_atomic_load(&works->begun, acquire);
        uint64_t number = testing_random(&random);
        uint64_t deadline =
            number % 4 == 0 ? BIDE_FOREVER : bide_platform.now() + number / 4 % 10000;
        int status = bide_wait_group_wait_blocking(&works->group, deadline);
        if (status == 0) {
            self->ends++;
            self->wrong += bide_atomic_load(&works->ended, relaxed) < begun;
            bide_platform.yield();
        } else {
            self->wrong += status != -ETIMEDOUT;
        }
    }
    return NULL;
}

static void no_zero_is_missed_and_none_is_made_up(void **state)
{
    (void)state;
    struct works works = {.rounds = rounds_of(2000), .seed = testing_seed()};
    struct worker workers[WORKERS + 1];
    uint64_t random = works.seed;
    uint32_t too_late = 0;
    meeting_init(&works.meeting, WORKERS + 1);
    bide_wait_group_init(&works.group);
    bide_atomic_init(&works.begun, 0);
    bide_atomic_init(&works.ended, 0);
    bide_atomic_init(&works.over, 0);
    for (uint32_t i = 0; i <= WORKERS; i++) {
        workers[i] = (struct worker){.works = &works, .number = i};
        start_thread(&workers[i].thread, i < WORKERS ? work : watch, &workers[i]);
    }
    for (uint32_t round = 1; round <= works.rounds; round++) {
        bide_wait_group_add(&works.group, 3);
        bide_atomic_store(&works.begun, round, release);
        meet(&works.meeting);
        for (;;) {
            uint64_t number = testing_random(&random);
            uint64_t deadline =
                number % 2 == 0 ? BIDE_FOREVER : bide_platform.now() + number / 2 % 10000;
            int status = bide_wait_group_wait_blocking(&works.group, deadline);
            if (status == 0)
                break;
            assert_int_equal(status, -ETIMEDOUT);
            too_late++;
        }
        for (int i = 0; i < WORKERS; i++)
            assert_int_equal(works.written[i], round);
    }
    bide_atomic_store(&works.over, 1, release);
    for (uint32_t i = 0; i <= WORKERS; i++) {
        join_thread(workers[i].thread);
        assert_int_equal(workers[i].wrong, 0);
    }
    printf("# %u waits were too late; the watcher saw %u ends\n", too_late, workers[WORKERS].ends);
    assert_int_equal(bide_wait_group_count(&works.group), 0);
    bide_wait_group_destroy(&works.group);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiter_goes_on_when_all_are_done),
        cmocka_unit_test(of_none_there_is_nothing_to_wait_for),
        cmocka_unit_test(it_is_used_again_before_its_waiter_has_noticed),
        cmocka_unit_test(a_wait_begins_when_it_is_made_not_when_it_is_awaited),
        cmocka_unit_test(phases_wrap_around),
        cmocka_unit_test(a_wait_that_is_cut_short_leaves_the_others),
        cmocka_unit_test(a_destroyed_coroutine_waits_no_longer),
        cmocka_unit_test(closing_ends_waits_for_a_zero_that_has_not_come),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
        cmocka_unit_test(a_crowd_goes_on_on_a_small_stack),
        cmocka_unit_test(no_zero_is_missed_and_none_is_made_up),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
