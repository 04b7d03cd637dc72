/*
 * How events and their waits end: by closing, by destroying, and by the deadline of a blocking wait.
 */
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/errors.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/stop.h"

#include "misuse.h"

struct waiter {
    bide_task task;
    by_hand *by_hand;
    bide_event *event;
    char name;
    int status;
    bide_event_waiter wait;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_await_status(self->status, bide_event_wait(&self->wait, self->event));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void begin_waiter(struct waiter *self, by_hand *by_hand, bide_event *event, char name)
{
    self->by_hand = by_hand;
    self->event = event;
    self->name = name;
    self->status = 1;
    bide_await_later(bide_task_init(&self->task, &waiter_body));
    by_hand_begin(by_hand, &self->task);
}

static void waits_end_with_epipe_in_order_of_arrival(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_event event;
    struct waiter waiters[3];
    by_hand_init(&by_hand);
    bide_event_init(&event, false);
    for (int i = 0; i < 3; i++)
        begin_waiter(&waiters[i], &by_hand, &event, (char)('a' + i));
    bide_event_close(&event);
    assert_int_equal(by_hand.posted, 3);
    assert_int_equal(by_hand_run(&by_hand), 3);
    by_hand_assert_trace(&by_hand, "abc");
    for (int i = 0; i < 3; i++)
        assert_int_equal(waiters[i].status, -EPIPE);
    assert_false(bide_event_is_set(&event));
    bide_event_destroy(&event);
}

static void a_later_wait_ends_with_epipe_at_once(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_event event;
    struct waiter waiter;
    by_hand_init(&by_hand);
    bide_event_init(&event, false);
    bide_event_close(&event);
    bide_event_close(&event);
    begin_waiter(&waiter, &by_hand, &event, 'a');
    assert_true(bide_done(&waiter.task.frame));
    assert_int_equal(waiter.status, -EPIPE);
    assert_int_equal(by_hand.posted, 0);
}

static void set_and_reset_do_nothing_to_a_closed_event(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_event event;
    struct waiter waiter;
    by_hand_init(&by_hand);
    for (int is_set = 0; is_set <= 1; is_set++) {
        bide_event_init(&event, is_set);
        bide_event_close(&event);
        assert_int_equal(bide_event_is_set(&event), is_set);
        bide_event_set(&event);
        assert_int_equal(bide_event_is_set(&event), is_set);
        bide_event_reset(&event);
        assert_int_equal(bide_event_is_set(&event), is_set);
        bide_event_close(&event);
        assert_int_equal(bide_event_is_set(&event), is_set);
        begin_waiter(&waiter, &by_hand, &event, 'a');
        assert_int_equal(waiter.status, is_set ? 0 : -EPIPE);
        bide_event_destroy(&event);
    }
}

static void a_wait_ended_by_the_set_is_not_ended_by_the_close(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_event event;
    struct waiter waiter;
    by_hand_init(&by_hand);
    bide_event_init(&event, false);
    begin_waiter(&waiter, &by_hand, &event, 'a');
    bide_event_set(&event);
    bide_event_reset(&event);
    bide_event_close(&event);
    assert_int_equal(by_hand_run(&by_hand), 1);
    assert_int_equal(waiter.status, 0);
}

/* A wait that the close has ended is not ended again by a stop request. */
static void a_closed_wait_is_not_cut_short(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_event event;
    struct waiter waiters[2];
    bide_stop_source stop;
    by_hand_init(&by_hand);
    bide_event_init(&event, false);
    bide_stop_source_init(&stop);
    by_hand.context.stop = &stop;
    begin_waiter(&waiters[0], &by_hand, &event, 'a');
    bide_event_close(&event);
    bide_stop_request(&stop);
    assert_int_equal(by_hand_run(&by_hand), 1);
    assert_int_equal(waiters[0].status, -EPIPE);
    begin_waiter(&waiters[1], &by_hand, &event, 'b');
    assert_int_equal(waiters[1].status, -ECANCELED);
}

static void a_waiter_of_a_closed_event_may_be_destroyed(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_event event;
    struct waiter waiter;
    by_hand_init(&by_hand);
    bide_event_init(&event, false);
    begin_waiter(&waiter, &by_hand, &event, 'a');
    bide_event_close(&event);
    bide_destroy(&waiter.task.frame);
    assert_int_equal(by_hand_run(&by_hand), 0);
    assert_int_equal(waiter.status, 1);
}

#if TESTING_HOSTED

enum { SHORT = 1000 * 1000 };

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    bide_event event;
    bide_event_init(&event, false);
    assert_int_equal(bide_event_wait_blocking(&event, bide_platform.now() + SHORT), -ETIMEDOUT);
    assert_int_equal(bide_event_wait_blocking(&event, 0), -ETIMEDOUT);
    bide_event_set(&event);
    assert_int_equal(bide_event_wait_blocking(&event, 0), 0);
    bide_event_reset(&event);
    bide_event_close(&event);
    assert_int_equal(bide_event_wait_blocking(&event, BIDE_FOREVER), -EPIPE);
    bide_event_destroy(&event);
}

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    by_hand by_hand;
    bide_event precious;
    struct waiter waiter;
    by_hand_init(&by_hand);
    bide_event_init(&precious, false);
    begin_waiter(&waiter, &by_hand, &precious, 'a');
    bide_event_destroy(&precious);
}

static void to_destroy_it_while_it_is_awaited_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_it_while_it_is_awaited,
                                     "an event is destroyed while it is waited for: &precious",
                                     "destroy_it_while_it_is_awaited"));
}
#endif

/*
 * Three threads wait, each time with a deadline, and a fourth sets, resets, and at last closes. In each round each
 * wait ends once; a thread that saw -EPIPE keeps seeing it.
 */
enum { WAITERS = 3 };

struct stress {
    meeting meeting;
    bide_event event;
    uint32_t rounds;
    uint64_t seed;
    uint32_t announced; /* before each set of a round, and before its close */
    uint32_t wrong[WAITERS];
    uint32_t ended[WAITERS][3]; /* with 0, -ETIMEDOUT, -EPIPE */
};

struct stress_waiter {
    struct stress *stress;
    uint32_t number;
    pthread_t thread;
};

static void *stress_wait(void *argument)
{
    struct stress_waiter *self = argument;
    struct stress *stress = self->stress;
    uint64_t random = stress->seed + 1 + self->number;
    for (uint32_t round = 1; round <= stress->rounds; round++) {
        meet(&stress->meeting);
        int status;
        do {
            uint64_t number = testing_random(&random);
            uint64_t deadline =
                number % 8 == 0
                    ? 0
                    : (number % 8 == 1 ? BIDE_FOREVER : bide_platform.now() + number / 8 % 20000);
            status = bide_event_wait_blocking(&stress->event, deadline);
            stress->ended[self->number][status == 0 ? 0 : (status == -ETIMEDOUT ? 1 : 2)]++;
            if (status != -ETIMEDOUT && stress->announced != round)
                stress->wrong[self->number]++;
            if (status != 0 && status != -EPIPE && status != -ETIMEDOUT)
                stress->wrong[self->number]++;
        } while (status != -EPIPE);
        if (bide_event_wait_blocking(&stress->event, BIDE_FOREVER) != -EPIPE)
            stress->wrong[self->number]++;
        meet(&stress->meeting);
    }
    return NULL;
}

static void each_wait_ends_once_however_it_is_set_and_closed(void **state)
{
    (void)state;
    struct stress stress = {.rounds = rounds_of(2000), .seed = testing_seed()};
    struct stress_waiter waiters[WAITERS];
    uint64_t random = stress.seed;
    meeting_init(&stress.meeting, WAITERS + 1);
    for (uint32_t i = 0; i < WAITERS; i++) {
        waiters[i].stress = &stress;
        waiters[i].number = i;
        start_thread(&waiters[i].thread, stress_wait, &waiters[i]);
    }
    for (uint32_t round = 1; round <= stress.rounds; round++) {
        bide_event_init(&stress.event, false);
        stress.announced = round;
        meet(&stress.meeting);
        for (uint64_t sets = testing_random(&random) % 4; sets != 0; sets--) {
            random_moment(&random, 500);
            bide_event_set(&stress.event);
            random_moment(&random, 50);
            bide_event_reset(&stress.event);
        }
        random_moment(&random, 500);
        bide_event_close(&stress.event);
        meet(&stress.meeting);
        assert_false(bide_event_is_set(&stress.event));
        bide_event_destroy(&stress.event);
    }
    uint32_t ended[3] = {0};
    for (uint32_t i = 0; i < WAITERS; i++) {
        join_thread(waiters[i].thread);
        assert_int_equal(stress.wrong[i], 0);
        for (int how = 0; how < 3; how++)
            ended[how] += stress.ended[i][how];
    }
    printf("# %u set, %u too late, %u closed\n", ended[0], ended[1], ended[2]);
    assert_int_equal(ended[2], stress.rounds * WAITERS);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_end_with_epipe_in_order_of_arrival),
        cmocka_unit_test(a_later_wait_ends_with_epipe_at_once),
        cmocka_unit_test(set_and_reset_do_nothing_to_a_closed_event),
        cmocka_unit_test(a_wait_ended_by_the_set_is_not_ended_by_the_close),
        cmocka_unit_test(a_closed_wait_is_not_cut_short),
        cmocka_unit_test(a_waiter_of_a_closed_event_may_be_destroyed),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
#if BIDE_DEBUG
        cmocka_unit_test(to_destroy_it_while_it_is_awaited_is_misuse),
#endif
        cmocka_unit_test(each_wait_ends_once_however_it_is_set_and_closed),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
