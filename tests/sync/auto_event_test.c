/*
 * The auto-reset event: a set passes one waiter, the first in line. A set without waiters is remembered once, and a
 * set is never lost to a waiter that leaves.
 */
#include "misuse.h"
#include "sync/meeting.h"
#include "sync/users.h"

static bide_awaiter *wait_for(user *self)
{
    return bide_auto_event_wait(&self->waiter.auto_event, self->object);
}

static void a_set_is_remembered_once(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_auto_event event;
    user users[2];
    by_hand_init(&by_hand);
    bide_auto_event_init(&event, false);
    assert_false(bide_auto_event_try_wait(&event));
    bide_auto_event_set(&event);
    bide_auto_event_set(&event);
    users_begin(users, 2, &by_hand, wait_for, &event);
    assert_int_equal(by_hand.posted, 0);
    by_hand_assert_trace(&by_hand, "a");
    bide_auto_event_set(&event);
    assert_int_equal(by_hand_run(&by_hand), 1);
    by_hand_assert_trace(&by_hand, "b");
    assert_false(bide_auto_event_try_wait(&event));
    bide_auto_event_destroy(&event);
}

static void it_may_be_made_set(void **state)
{
    (void)state;
    bide_auto_event event;
    bide_auto_event_init(&event, true);
    assert_true(bide_auto_event_try_wait(&event));
    assert_false(bide_auto_event_try_wait(&event));
}

static void each_set_lets_the_first_in_line_pass(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_auto_event event;
    user users[4];
    by_hand_init(&by_hand);
    bide_auto_event_init(&event, false);
    users_begin(users, 4, &by_hand, wait_for, &event);
    bide_auto_event_set(&event);
    assert_false(bide_auto_event_try_wait(&event));
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "a");
    /* The waiters need not run in between: three sets pass three waiters. */
    for (int i = 0; i < 3; i++)
        bide_auto_event_set(&event);
    assert_int_equal(by_hand_run(&by_hand), 3);
    by_hand_assert_trace(&by_hand, "bcd");
    assert_false(bide_auto_event_try_wait(&event));
    bide_auto_event_destroy(&event);
}

static void reset_forgets_the_set(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_auto_event event;
    user user;
    by_hand_init(&by_hand);
    bide_auto_event_init(&event, true);
    bide_auto_event_reset(&event);
    bide_auto_event_reset(&event);
    assert_false(bide_auto_event_try_wait(&event));
    user_begin(&user, &by_hand, wait_for, &event, 'a');
    bide_auto_event_reset(&event); /* no set to forget: the waiter stays */
    assert_int_equal(user.status, 1);
    bide_auto_event_set(&event);
    bide_auto_event_reset(&event); /* too late */
    by_hand_run(&by_hand);
    assert_int_equal(user.status, 0);
}

static void a_wait_cut_short_takes_no_set(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_auto_event event;
    user users[3];
    by_hand_init(&by_hand);
    bide_auto_event_init(&event, false);
    users_begin(users, 3, &by_hand, wait_for, &event);
    bide_stop_request_with(&users[0].stop, -ETIMEDOUT);
    bide_stop_request(&users[1].stop);
    by_hand_run(&by_hand);
    assert_int_equal(users[0].status, -ETIMEDOUT);
    assert_int_equal(users[1].status, -ECANCELED);
    bide_auto_event_set(&event);
    bide_stop_request(&users[2].stop); /* it has passed already */
    by_hand_run(&by_hand);
    assert_int_equal(users[2].status, 0);
    assert_false(bide_auto_event_try_wait(&event));
}

static void a_destroyed_coroutine_leaves_the_line(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_auto_event event;
    user users[3];
    by_hand_init(&by_hand);
    bide_auto_event_init(&event, false);
    users_begin(users, 3, &by_hand, wait_for, &event);
    bide_destroy(&users[0].task.frame);
    bide_destroy(&users[2].task.frame);
    bide_auto_event_set(&event);
    bide_auto_event_set(&event);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "b");
    assert_true(bide_auto_event_try_wait(&event));
    bide_auto_event_destroy(&event);
}

static void a_set_that_a_destroyed_coroutine_was_handed_goes_to_the_next(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_auto_event event;
    user users[2];
    by_hand_init(&by_hand);
    bide_auto_event_init(&event, false);
    users_begin(users, 2, &by_hand, wait_for, &event);
    bide_auto_event_set(&event); /* posted, not run */
    bide_destroy(&users[0].task.frame);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "b");
    user_begin(&users[0], &by_hand, wait_for, &event, 'a');
    bide_auto_event_set(&event);
    bide_destroy(&users[0].task.frame);
    assert_true(bide_auto_event_try_wait(&event));
    assert_false(bide_auto_event_try_wait(&event));
}

static void closing_ends_waits_but_a_set_that_is_left_lets_one_pass(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_auto_event event;
    user users[5];
    by_hand_init(&by_hand);
    bide_auto_event_init(&event, false);
    users_begin(users, 2, &by_hand, wait_for, &event);
    bide_auto_event_close(&event);
    bide_auto_event_close(&event);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "ab");
    assert_int_equal(users[0].status, -EPIPE);
    assert_int_equal(users[1].status, -EPIPE);
    bide_auto_event_set(&event);
    user_begin(&users[2], &by_hand, wait_for, &event, 'c');
    assert_int_equal(users[2].status, -EPIPE);

    bide_auto_event_init(&event, true);
    bide_auto_event_close(&event);
    bide_auto_event_reset(&event);
    users_begin(&users[3], 2, &by_hand, wait_for, &event);
    assert_int_equal(users[3].status, 0);
    assert_int_equal(users[4].status, -EPIPE);
    bide_auto_event_init(&event, true);
    bide_auto_event_close(&event);
    assert_true(bide_auto_event_try_wait(&event));
    assert_false(bide_auto_event_try_wait(&event));
}

#if TESTING_HOSTED

#include "small_stack.h"

enum { SHORT = 1000 * 1000 };

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    bide_auto_event event;
    bide_auto_event_init(&event, false);
    assert_int_equal(bide_auto_event_wait_blocking(&event, bide_platform.now() + SHORT),
                     -ETIMEDOUT);
    assert_int_equal(bide_auto_event_wait_blocking(&event, 0), -ETIMEDOUT);
    bide_auto_event_set(&event);
    assert_int_equal(bide_auto_event_wait_blocking(&event, 0), 0);
    bide_auto_event_close(&event);
    assert_int_equal(bide_auto_event_wait_blocking(&event, BIDE_FOREVER), -EPIPE);
    bide_auto_event_destroy(&event);
}

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    by_hand by_hand;
    bide_auto_event precious;
    user user;
    by_hand_init(&by_hand);
    bide_auto_event_init(&precious, false);
    user_begin(&user, &by_hand, wait_for, &precious, 'a');
    bide_auto_event_destroy(&precious);
}

static void to_destroy_it_while_it_is_awaited_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_it_while_it_is_awaited,
                                     "an event is destroyed while it is waited for: &precious",
                                     "destroy_it_while_it_is_awaited"));
}
#endif

/* ---- A crowd in line, on a small stack ---- */

static uint32_t passed;

struct link {
    bide_task task;
    bide_auto_event *event;
    bide_auto_event_waiter wait;
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    bide_try(bide_auto_event_wait(&self->wait, self->event));
    passed++;
    bide_auto_event_set(self->event); /* wakes the next */
    bide_end();
}

static void *wake_a_chain(void *argument)
{
    struct link *links = argument;
    bide_auto_event event;
    bide_auto_event_init(&event, false);
    for (uint32_t i = 0; i < crowd_of_waiters(); i++) {
        links[i].event = &event;
        bide_start(&links[i].task.frame, &link_body, &bide_default_context);
        bide_resume(&links[i].task.frame);
    }
    bide_auto_event_set(&event);
    return NULL;
}

static void a_crowd_in_line_each_wakes_the_next_on_a_small_stack(void **state)
{
    (void)state;
    struct link *links = calloc(crowd_of_waiters(), sizeof *links);
    assert_non_null(links);
    passed = 0;
    on_a_small_stack(wake_a_chain, links);
    assert_int_equal(passed, crowd_of_waiters());
    free(links);
}

/*
 * ---- At random, with threads ----
 *
 * One set travels from thread to thread: the waiter that it passes owns the counter, and sets the event again. If a
 * set were lost to a waiter that gives up at the same time, all threads would wait forever. If a set were doubled,
 * there would be two owners at once.
 */
enum { THREADS = 4 };

struct relay {
    meeting meeting;
    bide_auto_event event;
    uint32_t rounds;
    uint32_t passes; /* by waiters that were passed */
    bide_atomic(uint32_t) owners;
};

struct runner {
    pthread_t thread;
    struct relay *relay;
    uint64_t random;
    uint32_t too_late, wrong;
};

static void *run_relay(void *argument)
{
    struct runner *self = argument;
    struct relay *relay = self->relay;
    meet(&relay->meeting);
    for (;;) {
        uint64_t number = testing_random(&self->random);
        uint64_t deadline =
            number % 4 == 0 ? BIDE_FOREVER : bide_platform.now() + number / 4 % 10000;
        int status = bide_auto_event_wait_blocking(&relay->event, deadline);
        if (status == -EPIPE)
            return NULL;
        if (status == -ETIMEDOUT) {
            self->too_late++;
            continue;
        }
        self->wrong += status != 0 || bide_atomic_fetch_add(&relay->owners, 1, relaxed) != 0;
        bool last = ++relay->passes == relay->rounds;
        random_moment(&self->random, 100);
        bide_atomic_fetch_sub(&relay->owners, 1, relaxed);
        if (last)
            bide_auto_event_close(&relay->event);
        else
            bide_auto_event_set(&relay->event);
    }
}

static void no_set_is_lost_or_doubled(void **state)
{
    (void)state;
    struct relay relay = {.rounds = rounds_of(20000)};
    struct runner runners[THREADS];
    uint64_t seed = testing_seed();
    uint32_t too_late = 0;
    meeting_init(&relay.meeting, THREADS);
    bide_auto_event_init(&relay.event, true);
    bide_atomic_init(&relay.owners, 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        runners[i] = (struct runner){.relay = &relay, .random = seed + i};
        start_thread(&runners[i].thread, run_relay, &runners[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        join_thread(runners[i].thread);
        assert_int_equal(runners[i].wrong, 0);
        too_late += runners[i].too_late;
    }
    printf("# %u waits passed, %u were too late\n", relay.passes, too_late);
    assert_int_equal(relay.passes, relay.rounds);
    bide_auto_event_destroy(&relay.event);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_remembered_once),
        cmocka_unit_test(it_may_be_made_set),
        cmocka_unit_test(each_set_lets_the_first_in_line_pass),
        cmocka_unit_test(reset_forgets_the_set),
        cmocka_unit_test(a_wait_cut_short_takes_no_set),
        cmocka_unit_test(a_destroyed_coroutine_leaves_the_line),
        cmocka_unit_test(a_set_that_a_destroyed_coroutine_was_handed_goes_to_the_next),
        cmocka_unit_test(closing_ends_waits_but_a_set_that_is_left_lets_one_pass),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
#if BIDE_DEBUG
        cmocka_unit_test(to_destroy_it_while_it_is_awaited_is_misuse),
#endif
        cmocka_unit_test(a_crowd_in_line_each_wakes_the_next_on_a_small_stack),
        cmocka_unit_test(no_set_is_lost_or_doubled),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
