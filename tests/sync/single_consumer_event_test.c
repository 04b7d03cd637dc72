/*
 * Events for one waiter: manual reset and auto-reset.
 */
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/single_consumer_event.h"

#include "misuse.h"

typedef bide_single_consumer_event manual;
typedef bide_single_consumer_auto_event automatic;

/* A task that waits for either kind, `waits` times or until a wait fails. */
struct waiter {
    bide_task task;
    by_hand *by_hand;
    manual *manual; /* or NULL */
    automatic *automatic;
    int waits;
    int status;
    bide_single_consumer_event_waiter wait;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    while (self->waits > 0) {
        self->waits--;
        if (self->manual != NULL)
            bide_await_status(self->status,
                              bide_single_consumer_event_wait(&self->wait, self->manual));
        else
            bide_await_status(self->status,
                              bide_single_consumer_auto_event_wait(&self->wait, self->automatic));
        by_hand_note(self->by_hand, self->status == 0 ? 'w' : 'e');
        if (self->status != 0)
            break;
    }
    bide_end();
}

static void begin_waiter(struct waiter *self, by_hand *by_hand, manual *manual,
                         automatic *automatic, int waits)
{
    self->by_hand = by_hand;
    self->manual = manual;
    self->automatic = automatic;
    self->waits = waits;
    self->status = 1;
    bide_await_later(bide_task_init(&self->task, &waiter_body));
    by_hand_begin(by_hand, &self->task);
}

/* ---- Manual reset ---- */

static void once_set_it_lets_every_wait_pass_until_it_is_reset(void **state)
{
    (void)state;
    by_hand by_hand;
    manual event;
    struct waiter waiter;
    by_hand_init(&by_hand);
    bide_single_consumer_event_init(&event, false);
    assert_false(bide_single_consumer_event_is_set(&event));
    begin_waiter(&waiter, &by_hand, &event, NULL, 3);
    by_hand_assert_trace(&by_hand, "");
    bide_single_consumer_event_set(&event);
    bide_single_consumer_event_set(&event);
    assert_true(bide_single_consumer_event_is_set(&event));
    assert_int_equal(by_hand.posted, 1);
    assert_int_equal(by_hand_run(&by_hand), 1);
    by_hand_assert_trace(&by_hand, "www");
    bide_single_consumer_event_reset(&event);
    bide_single_consumer_event_reset(&event);
    begin_waiter(&waiter, &by_hand, &event, NULL, 1);
    by_hand_assert_trace(&by_hand, "");
    bide_single_consumer_event_reset(&event);
    bide_single_consumer_event_set(&event);
    bide_single_consumer_event_reset(&event);
    assert_int_equal(by_hand_run(&by_hand), 1);
    by_hand_assert_trace(&by_hand, "w");
    bide_single_consumer_event_destroy(&event);
    bide_single_consumer_event_init(&event, true);
    assert_true(bide_single_consumer_event_is_set(&event));
}

static void a_wait_that_is_overtaken_by_the_set_ends_at_once(void **state)
{
    (void)state;
    manual event;
    automatic other;
    bide_single_consumer_event_waiter wait;
    probe probe;
    probe_init(&probe);
    bide_single_consumer_event_init(&event, false);
    bide_awaiter *awaiter = bide_single_consumer_event_wait(&wait, &event);
    assert_false(awaiter->ops->ready(awaiter));
    bide_single_consumer_event_set(&event);
    assert_true(probe_suspend(&probe, awaiter));
    assert_int_equal(probe_result(awaiter), 0);

    bide_single_consumer_auto_event_init(&other, false);
    awaiter = bide_single_consumer_auto_event_wait(&wait, &other);
    assert_false(awaiter->ops->ready(awaiter));
    bide_single_consumer_auto_event_set(&other);
    assert_true(probe_suspend(&probe, awaiter));
    assert_int_equal(probe_result(awaiter), 0);
    assert_false(bide_single_consumer_auto_event_try_wait(&other));
    assert_int_equal(probe_ended(&probe), 0);
}

/* ---- Auto-reset ---- */

static void each_set_lets_one_wait_pass(void **state)
{
    (void)state;
    by_hand by_hand;
    automatic event;
    struct waiter waiter;
    by_hand_init(&by_hand);
    bide_single_consumer_auto_event_init(&event, false);
    begin_waiter(&waiter, &by_hand, NULL, &event, 3);
    for (int i = 0; i < 3; i++) {
        by_hand_assert_trace(&by_hand, "");
        bide_single_consumer_auto_event_set(&event);
        assert_int_equal(by_hand_run(&by_hand), 1);
        by_hand_assert_trace(&by_hand, "w");
    }
    assert_true(bide_done(&waiter.task.frame));
    assert_false(bide_single_consumer_auto_event_try_wait(&event));
    bide_single_consumer_auto_event_destroy(&event);
}

static void a_set_without_a_waiter_is_remembered_once(void **state)
{
    (void)state;
    by_hand by_hand;
    automatic event;
    struct waiter waiter;
    by_hand_init(&by_hand);
    bide_single_consumer_auto_event_init(&event, true);
    bide_single_consumer_auto_event_set(&event);
    bide_single_consumer_auto_event_set(&event);
    begin_waiter(&waiter, &by_hand, NULL, &event, 2);
    by_hand_assert_trace(&by_hand, "w");
    /* The woken waiter has consumed the set: the next set is remembered. */
    bide_single_consumer_auto_event_set(&event);
    bide_single_consumer_auto_event_set(&event);
    assert_int_equal(by_hand_run(&by_hand), 1);
    by_hand_assert_trace(&by_hand, "w");
    assert_true(bide_single_consumer_auto_event_try_wait(&event));
    assert_false(bide_single_consumer_auto_event_try_wait(&event));
}

/* ---- Both: cancelled, closed, destroyed ---- */

static void a_wait_that_is_cut_short_takes_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        by_hand by_hand;
        manual event;
        automatic other;
        struct waiter waiter;
        bide_stop_source stop;
        by_hand_init(&by_hand);
        bide_stop_source_init(&stop);
        by_hand.context.stop = &stop;
        bide_single_consumer_event_init(&event, false);
        bide_single_consumer_auto_event_init(&other, false);
        begin_waiter(&waiter, &by_hand, kind == 0 ? &event : NULL, &other, 1);
        bide_stop_request_with(&stop, -ETIMEDOUT);
        bide_single_consumer_event_set(&event);
        bide_single_consumer_auto_event_set(&other);
        assert_int_equal(by_hand_run(&by_hand), 1);
        assert_int_equal(waiter.status, -ETIMEDOUT);
        assert_true(bide_single_consumer_event_is_set(&event));
        assert_true(bide_single_consumer_auto_event_try_wait(&other));
        /* The word may be used for the next wait. */
        by_hand.context.stop = NULL;
        bide_single_consumer_event_reset(&event);
        begin_waiter(&waiter, &by_hand, kind == 0 ? &event : NULL, &other, 1);
        bide_single_consumer_event_set(&event);
        bide_single_consumer_auto_event_set(&other);
        assert_int_equal(by_hand_run(&by_hand), 1);
        assert_int_equal(waiter.status, 0);
    }
}

static void a_waiter_may_be_destroyed(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        by_hand by_hand;
        manual event;
        automatic other;
        struct waiter waiter;
        by_hand_init(&by_hand);
        bide_single_consumer_event_init(&event, false);
        bide_single_consumer_auto_event_init(&other, false);
        begin_waiter(&waiter, &by_hand, kind == 0 ? &event : NULL, &other, 1);
        bide_destroy(&waiter.task.frame);
        bide_single_consumer_event_set(&event);
        bide_single_consumer_auto_event_set(&other);
        assert_int_equal(by_hand_run(&by_hand), 0);
        assert_true(bide_single_consumer_event_is_set(&event));
        assert_true(bide_single_consumer_auto_event_try_wait(&other));
    }
}

static void a_wait_for_a_closed_event_ends_with_epipe(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        by_hand by_hand;
        manual event;
        automatic other;
        struct waiter waiter;
        by_hand_init(&by_hand);
        bide_single_consumer_event_init(&event, false);
        bide_single_consumer_auto_event_init(&other, false);
        begin_waiter(&waiter, &by_hand, kind == 0 ? &event : NULL, &other, 1);
        for (int again = 0; again < 2; again++) {
            bide_single_consumer_event_close(&event);
            bide_single_consumer_auto_event_close(&other);
        }
        assert_int_equal(by_hand_run(&by_hand), 1);
        assert_int_equal(waiter.status, -EPIPE);
        bide_single_consumer_event_set(&event);
        bide_single_consumer_auto_event_set(&other);
        begin_waiter(&waiter, &by_hand, kind == 0 ? &event : NULL, &other, 1);
        assert_true(bide_done(&waiter.task.frame));
        assert_int_equal(waiter.status, -EPIPE);
        assert_false(bide_single_consumer_event_is_set(&event));
        assert_int_equal(by_hand.posted, 1);
    }
}

static void what_was_set_when_it_was_closed_is_still_had(void **state)
{
    (void)state;
    by_hand by_hand;
    manual event;
    automatic other;
    struct waiter waiter;
    by_hand_init(&by_hand);
    bide_single_consumer_event_init(&event, true);
    bide_single_consumer_event_close(&event);
    bide_single_consumer_event_reset(&event);
    assert_true(bide_single_consumer_event_is_set(&event));
    begin_waiter(&waiter, &by_hand, &event, NULL, 3);
    by_hand_assert_trace(&by_hand, "www");
    assert_int_equal(waiter.status, 0);

    bide_single_consumer_auto_event_init(&other, true);
    bide_single_consumer_auto_event_close(&other);
    bide_single_consumer_auto_event_close(&other);
    begin_waiter(&waiter, &by_hand, NULL, &other, 3);
    by_hand_assert_trace(&by_hand, "we");
    assert_int_equal(waiter.status, -EPIPE);
}

#if TESTING_HOSTED

enum { SHORT = 1000 * 1000 };

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    manual event;
    automatic other;
    bide_single_consumer_event_init(&event, false);
    bide_single_consumer_auto_event_init(&other, false);
    uint64_t soon = bide_platform.now() + SHORT;
    assert_int_equal(bide_single_consumer_event_wait_blocking(&event, soon), -ETIMEDOUT);
    assert_int_equal(bide_single_consumer_auto_event_wait_blocking(&other, soon), -ETIMEDOUT);
    bide_single_consumer_event_set(&event);
    bide_single_consumer_auto_event_set(&other);
    assert_int_equal(bide_single_consumer_event_wait_blocking(&event, 0), 0);
    assert_int_equal(bide_single_consumer_auto_event_wait_blocking(&other, 0), 0);
    assert_int_equal(bide_single_consumer_auto_event_wait_blocking(&other, 0), -ETIMEDOUT);
}

static void wait_by_two(void)
{
    by_hand by_hand;
    manual event;
    struct waiter waiters[2];
    by_hand_init(&by_hand);
    bide_single_consumer_event_init(&event, false);
    begin_waiter(&waiters[0], &by_hand, &event, NULL, 1);
    begin_waiter(&waiters[1], &by_hand, &event, NULL, 1);
}

static void two_waits_at_once_are_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(wait_by_two, "two wait at once", "single_consumer_event"));
}

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    by_hand by_hand;
    automatic precious;
    struct waiter waiter;
    by_hand_init(&by_hand);
    bide_single_consumer_auto_event_init(&precious, false);
    begin_waiter(&waiter, &by_hand, NULL, &precious, 1);
    bide_single_consumer_auto_event_destroy(&precious);
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
 * Three threads add to a sum and set; a fourth waits, alternately as a thread and as a task, often for a moment only,
 * and takes the sum. A lost set would leave a part of the sum behind, and nobody would announce it.
 */
enum { SETTERS = 3 };

struct stress {
    automatic event;
    manual manual_event; /* used as an auto-reset event: the waiter resets it */
    bool is_manual;
    bide_atomic(uint32_t) sum;
    uint32_t rounds;
    uint64_t seed;
};

struct stress_setter {
    struct stress *stress;
    uint32_t number;
    pthread_t thread;
};

static void *stress_set(void *argument)
{
    struct stress_setter *self = argument;
    struct stress *stress = self->stress;
    uint64_t random = stress->seed + 1 + self->number;
    for (uint32_t round = 0; round < stress->rounds; round++) {
        random_moment(&random, 200);
        bide_atomic_fetch_add(&stress->sum, 1, relaxed);
        if (stress->is_manual)
            bide_single_consumer_event_set(&stress->manual_event);
        else
            bide_single_consumer_auto_event_set(&stress->event);
    }
    return NULL;
}

static int wait_once(struct stress *stress, uint64_t *random)
{
    uint64_t number = testing_random(random);
    bide_single_consumer_event_waiter wait;
    bide_awaiter *awaiter = stress->is_manual
                                ? bide_single_consumer_event_wait(&wait, &stress->manual_event)
                                : bide_single_consumer_auto_event_wait(&wait, &stress->event);
    uint64_t deadline = number % 4 == 0
                            ? BIDE_FOREVER
                            : (number % 4 == 1 ? 0 : bide_platform.now() + number / 4 % 5000);
    int status = bide_sync_wait_until(awaiter, deadline);
    if (status == 0 && stress->is_manual)
        bide_single_consumer_event_reset(&stress->manual_event);
    return status;
}

static void run_stress(bool is_manual)
{
    struct stress stress = {.rounds = rounds_of(20000), .seed = testing_seed()};
    struct stress_setter setters[SETTERS];
    uint64_t random = stress.seed;
    uint32_t taken = 0, late = 0, wrong = 0;
    stress.is_manual = is_manual;
    bide_single_consumer_event_init(&stress.manual_event, false);
    bide_single_consumer_auto_event_init(&stress.event, false);
    bide_atomic_init(&stress.sum, 0);
    for (uint32_t i = 0; i < SETTERS; i++) {
        setters[i].stress = &stress;
        setters[i].number = i;
        start_thread(&setters[i].thread, stress_set, &setters[i]);
    }
    while (taken < SETTERS * stress.rounds) {
        int status = wait_once(&stress, &random);
        if (status == 0)
            taken += bide_atomic_exchange(&stress.sum, 0, relaxed);
        late += status == -ETIMEDOUT;
        wrong += status != 0 && status != -ETIMEDOUT;
    }
    for (uint32_t i = 0; i < SETTERS; i++)
        join_thread(setters[i].thread);
    bide_single_consumer_event_close(&stress.manual_event);
    bide_single_consumer_auto_event_close(&stress.event);
    printf("# %u waits were cut short\n", late);
    assert_int_equal(wrong, 0);
    assert_int_equal(taken, SETTERS * stress.rounds);
}

static void no_set_is_lost_when_waits_are_cut_short(void **state)
{
    (void)state;
    run_stress(false);
}

static void no_set_is_lost_when_the_waiter_resets(void **state)
{
    (void)state;
    run_stress(true);
}

/* One waits while another closes: the wait ends once, despite sets and cancellation. */
struct closing {
    meeting meeting;
    automatic event;
    uint32_t rounds;
    uint64_t seed;
};

static void *close_each(void *argument)
{
    struct closing *self = argument;
    uint64_t random = self->seed + 1;
    for (uint32_t round = 0; round < self->rounds; round++) {
        meet(&self->meeting);
        random_moment(&random, 100);
        if (testing_random(&random) % 2 == 0)
            bide_single_consumer_auto_event_set(&self->event);
        bide_single_consumer_auto_event_close(&self->event);
        meet(&self->meeting);
    }
    return NULL;
}

static void a_wait_and_a_close_at_once_end_the_wait_once(void **state)
{
    (void)state;
    struct closing self = {.rounds = rounds_of(20000), .seed = testing_seed()};
    pthread_t thread;
    uint64_t random = self.seed;
    uint32_t wrong = 0;
    meeting_init(&self.meeting, 2);
    start_thread(&thread, close_each, &self);
    for (uint32_t round = 0; round < self.rounds; round++) {
        bide_single_consumer_auto_event_init(&self.event, false);
        meet(&self.meeting);
        random_moment(&random, 100);
        int passed = 0;
        int status;
        do {
            uint64_t deadline = testing_random(&random) % 2 == 0
                                    ? BIDE_FOREVER
                                    : bide_platform.now() + testing_random(&random) % 2000;
            status = bide_single_consumer_auto_event_wait_blocking(&self.event, deadline);
            passed += status == 0;
        } while (status != -EPIPE);
        meet(&self.meeting);
        wrong += passed > 1;
    }
    join_thread(thread);
    assert_int_equal(wrong, 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_set_it_lets_every_wait_pass_until_it_is_reset),
        cmocka_unit_test(a_wait_that_is_overtaken_by_the_set_ends_at_once),
        cmocka_unit_test(each_set_lets_one_wait_pass),
        cmocka_unit_test(a_set_without_a_waiter_is_remembered_once),
        cmocka_unit_test(a_wait_that_is_cut_short_takes_nothing),
        cmocka_unit_test(a_waiter_may_be_destroyed),
        cmocka_unit_test(a_wait_for_a_closed_event_ends_with_epipe),
        cmocka_unit_test(what_was_set_when_it_was_closed_is_still_had),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(two_waits_at_once_are_misuse),
#if BIDE_DEBUG
        cmocka_unit_test(to_destroy_it_while_it_is_awaited_is_misuse),
#endif
        cmocka_unit_test(no_set_is_lost_when_waits_are_cut_short),
        cmocka_unit_test(no_set_is_lost_when_the_waiter_resets),
        cmocka_unit_test(a_wait_and_a_close_at_once_end_the_wait_once),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
