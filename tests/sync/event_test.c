/*
 * The manual-reset event: which waiters are woken, when, in which order and how often; and that setting it
 * touches nothing that woken waiters may have freed.
 */
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/event.h"
#include "bide/sync_wait.h"

struct waiter {
    bide_task task;
    by_hand *by_hand;
    bide_event *event;
    char name;
    bide_event_waiter wait;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_try(bide_event_wait(&self->wait, self->event));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void begin_waiter(struct waiter *self, by_hand *by_hand, bide_event *event, char name)
{
    self->by_hand = by_hand;
    self->event = event;
    self->name = name;
    bide_await_later(bide_task_init(&self->task, &waiter_body));
    by_hand_begin(by_hand, &self->task);
}

static void a_set_before_the_wait_lets_it_pass(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    bide_event event;
    bide_event_init(&event, false);
    bide_event_set(&event);
    struct waiter waiter;
    begin_waiter(&waiter, &by_hand, &event, 'a');
    assert_true(bide_done(&waiter.task.frame));
    assert_int_equal(bide_task_error(&waiter.task), 0);
    assert_int_equal(by_hand.posted, 0);
    by_hand_assert_trace(&by_hand, "a");
}

static void an_event_may_be_made_set(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    bide_event event;
    bide_event_init(&event, true);
    assert_true(bide_event_is_set(&event));
    struct waiter waiter;
    begin_waiter(&waiter, &by_hand, &event, 'a');
    assert_true(bide_done(&waiter.task.frame));
    assert_int_equal(by_hand.posted, 0);
    bide_event_init(&event, false);
    assert_false(bide_event_is_set(&event));
}

/* Found not set; then it is set, and only then does the waiter enlist. */
static void a_wait_that_is_overtaken_by_the_set_ends_at_once(void **state)
{
    (void)state;
    bide_event event;
    bide_event_init(&event, false);
    bide_event_waiter wait;
    probe probe;
    probe_init(&probe);
    bide_awaiter *awaiter = bide_event_wait(&wait, &event);
    assert_false(awaiter->ops->ready(awaiter));
    bide_event_set(&event);
    assert_true(probe_suspend(&probe, awaiter));
    assert_int_equal(awaiter->ops->resume(awaiter), 0);
    assert_int_equal(probe_ended(&probe), 0);
    assert_true(bide_event_is_set(&event));
}

static void set_resumes_every_waiter_once_in_order_of_arrival(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    bide_event event;
    bide_event_init(&event, false);
    struct waiter waiters[5];
    for (int i = 0; i < 5; i++) {
        begin_waiter(&waiters[i], &by_hand, &event, (char)('a' + i));
        assert_false(bide_done(&waiters[i].task.frame));
    }
    assert_int_equal(by_hand.posted, 0);
    by_hand_assert_trace(&by_hand, "");
    bide_event_set(&event);
    assert_int_equal(by_hand.posted, 5);
    by_hand_assert_trace(&by_hand, ""); /* posted, not run by set */
    assert_int_equal(by_hand_run(&by_hand), 5);
    by_hand_assert_trace(&by_hand, "abcde");
    for (int i = 0; i < 5; i++)
        assert_true(bide_done(&waiters[i].task.frame));
}

static void inline_waiters_have_run_when_set_returns(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    by_hand.context.scheduler = &bide_inline_scheduler;
    bide_event event;
    bide_event_init(&event, false);
    struct waiter waiters[5];
    for (int i = 0; i < 5; i++)
        begin_waiter(&waiters[i], &by_hand, &event, (char)('a' + i));
    bide_event_set(&event);
    by_hand_assert_trace(&by_hand, "abcde");
}

static void each_waiter_is_woken_on_its_own_scheduler(void **state)
{
    (void)state;
    by_hand one, other;
    by_hand_init(&one);
    by_hand_init(&other);
    bide_event event;
    bide_event_init(&event, false);
    struct waiter waiters[6];
    begin_waiter(&waiters[0], &one, &event, 'a');
    begin_waiter(&waiters[1], &other, &event, 'b');
    begin_waiter(&waiters[2], &other, &event, 'c');
    begin_waiter(&waiters[3], &one, &event, 'd');
    begin_waiter(&waiters[4], &one, &event, 'e');
    begin_waiter(&waiters[5], &other, &event, 'f');
    bide_event_set(&event);
    assert_int_equal(by_hand_run(&other), 3);
    by_hand_assert_trace(&other, "bcf");
    by_hand_assert_trace(&one, "");
    assert_int_equal(by_hand_run(&one), 3);
    by_hand_assert_trace(&one, "ade");
}

static void set_twice_is_set_once(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    bide_event event;
    bide_event_init(&event, false);
    struct waiter waiter;
    begin_waiter(&waiter, &by_hand, &event, 'a');
    bide_event_set(&event);
    bide_event_set(&event);
    assert_true(bide_event_is_set(&event));
    assert_int_equal(by_hand.posted, 1);
    assert_int_equal(by_hand_run(&by_hand), 1);
    bide_event_reset(&event);
    assert_false(bide_event_is_set(&event));
}

static void a_wait_after_reset_waits_for_the_next_set(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    bide_event event;
    bide_event_init(&event, true);
    struct waiter waiter;
    for (int i = 0; i < 3; i++) {
        bide_event_reset(&event);
        assert_false(bide_event_is_set(&event));
        begin_waiter(&waiter, &by_hand, &event, 'a');
        assert_int_equal(by_hand_run(&by_hand), 0);
        assert_false(bide_done(&waiter.task.frame));
        bide_event_set(&event);
        assert_int_equal(by_hand_run(&by_hand), 1);
        assert_true(bide_done(&waiter.task.frame));
        assert_true(bide_event_is_set(&event));
    }
}

static void a_woken_waiter_stays_woken_after_a_reset(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    bide_event event;
    bide_event_init(&event, false);
    struct waiter waiter;
    begin_waiter(&waiter, &by_hand, &event, 'a');
    bide_event_set(&event);
    bide_event_reset(&event);
    assert_int_equal(by_hand_run(&by_hand), 1);
    by_hand_assert_trace(&by_hand, "a");
}

static void reset_of_an_event_that_is_not_set_keeps_its_waiters(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    bide_event event;
    bide_event_init(&event, false);
    bide_event_reset(&event);
    assert_false(bide_event_is_set(&event));
    struct waiter waiters[2];
    begin_waiter(&waiters[0], &by_hand, &event, 'a');
    bide_event_reset(&event);
    begin_waiter(&waiters[1], &by_hand, &event, 'b');
    bide_event_reset(&event);
    bide_event_set(&event);
    assert_int_equal(by_hand_run(&by_hand), 2);
    by_hand_assert_trace(&by_hand, "ab");
}

/* Waits for one event and then sets another. */
struct link {
    bide_task task;
    bide_event event;
    bide_event *next;
    bide_event_waiter wait;
};

static int running;       /* links that are in their code at this moment */
static int max_running;  /* its maximum */
static int links_resumed; /* how many links have ended */

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    bide_await(bide_event_wait(&self->wait, &self->event));
    if (++running > max_running)
        max_running = running;
    bide_event_set(self->next);
    links_resumed++;
    running--;
    bide_end();
}

static void a_set_inside_a_resumed_waiter_does_not_nest(void **state)
{
    (void)state;
    enum { COUNT = TESTING_HOSTED ? 100000 : 500 };
    static struct link links[COUNT];
    bide_event last;
    bide_event_init(&last, false);
    running = max_running = links_resumed = 0;
    for (int i = 0; i < COUNT; i++) {
        links[i].next = i + 1 < COUNT ? &links[i + 1].event : &last;
        bide_event_init(&links[i].event, false);
        bide_await_later(bide_task_init(&links[i].task, &link_body));
        links[i].task.frame.context = &bide_default_context;
        links[i].task.frame.awaiter.frame = NULL;
        bide_resume(&links[i].task.frame);
    }
    bide_event_set(&links[0].event);
    assert_int_equal(links_resumed, COUNT);
    assert_int_equal(max_running, 1);
    assert_true(bide_event_is_set(&last));
}

/* Notes its name, sets an event, and notes its name as a capital. */
struct setter {
    bide_task task;
    by_hand *by_hand;
    bide_event *event;
    bide_event *to_set;
    char name;
    bide_event_waiter wait;
};

bide_coroutine(setter_body)
{
    bide_begin(setter_body, struct setter * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    by_hand_note(self->by_hand, self->name);
    bide_event_set(self->to_set);
    by_hand_note(self->by_hand, (char)(self->name - 'a' + 'A'));
    bide_end();
}

static void the_first_woken_runs_before_those_it_wakes(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    by_hand.context.scheduler = &bide_inline_scheduler;
    bide_event first, second;
    bide_event_init(&first, false);
    bide_event_init(&second, false);
    struct setter setter = {.by_hand = &by_hand, .event = &first, .to_set = &second, .name = 's'};
    struct waiter waiters[3];
    begin_waiter(&waiters[0], &by_hand, &first, 'a');
    bide_await_later(bide_task_init(&setter.task, &setter_body));
    by_hand_begin(&by_hand, &setter.task);
    begin_waiter(&waiters[1], &by_hand, &first, 'b');
    begin_waiter(&waiters[2], &by_hand, &second, 'c');
    bide_event_set(&first);
    by_hand_assert_trace(&by_hand, "asSbc");
}

#if TESTING_HOSTED
/* Waits for an event that is its own, and destroys it at once. */
struct owner {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

static void destroy(bide_event *event)
{
    memset((void *)event, 0x5a, sizeof *event);
    free(event);
}

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    destroy(self->event);
    memset(&self->wait, 0x5a, sizeof self->wait);
    bide_end();
}

static bide_event *make_event(void)
{
    bide_event *event = malloc(sizeof *event);
    assert_non_null(event);
    bide_event_init(event, false);
    return event;
}

static void the_event_may_be_destroyed_by_its_waiter(void **state)
{
    (void)state;
    struct owner owner = {.event = make_event()};
    bide_await_later(bide_task_init(&owner.task, &owner_body));
    owner.task.frame.context = &bide_default_context;
    owner.task.frame.awaiter.frame = NULL;
    bide_resume(&owner.task.frame);
    bide_event_set(owner.event); /* runs the owner before it returns */
    assert_true(bide_done(&owner.task.frame));
}

struct destroying {
    uint32_t rounds;
    bide_atomic(bide_event *) event; /* given to the setter */
};

static void *destroying_set(void *argument)
{
    struct destroying *self = argument;
    for (uint32_t round = 0; round < self->rounds; round++) {
        bide_event *event;
        uint32_t spins = 0;
        while ((event = bide_atomic_exchange(&self->event, NULL, acquire)) == NULL)
            wait_a_moment(&spins);
        bide_event_set(event);
    }
    return NULL;
}

static void the_event_may_be_destroyed_by_its_waiter_while_set_runs_in_another_thread(void **state)
{
    (void)state;
    struct destroying shared = {.rounds = rounds_of(20000)};
    uint64_t random = testing_seed();
    pthread_t setter;
    start_thread(&setter, destroying_set, &shared);
    for (uint32_t round = 0; round < shared.rounds; round++) {
        bide_event *event = make_event();
        bide_event_waiter wait;
        bide_atomic_store(&shared.event, event, release);
        random_moment(&random, 40);
        assert_int_equal(bide_sync_wait(bide_event_wait(&wait, event)), 0);
        destroy(event);
    }
    join_thread(setter);
}

/* One thread waits while another sets; when both have returned, the wait must have ended. */
struct race {
    meeting meeting;
    uint32_t rounds;
    uint64_t seed;
    bide_event event;
    uint32_t announced; /* written before the set */
};

static void *race_set(void *argument)
{
    struct race *self = argument;
    uint64_t random = self->seed + 1;
    for (uint32_t round = 0; round < self->rounds; round++) {
        meet(&self->meeting);
        random_moment(&random, 20);
        self->announced = round;
        bide_event_set(&self->event);
        meet(&self->meeting);
    }
    return NULL;
}

static void a_wait_and_a_set_at_once_end_the_wait_once(void **state)
{
    (void)state;
    struct race race = {.rounds = rounds_of(20000), .seed = testing_seed()};
    meeting_init(&race.meeting, 2);
    uint64_t random = race.seed;
    uint32_t wrong_ends = 0, wrong_values = 0, at_once = 0;
    pthread_t setter;
    start_thread(&setter, race_set, &race);
    for (uint32_t round = 0; round < race.rounds; round++) {
        bide_event_waiter wait;
        probe probe;
        probe_init(&probe);
        bide_event_init(&race.event, false);
        meet(&race.meeting);
        random_moment(&random, 20);
        bool ended = probe_await(&probe, bide_event_wait(&wait, &race.event));
        if (ended) {
            at_once++;
            wrong_values += race.announced != round;
        }
        meet(&race.meeting);
        wrong_ends += probe_ended(&probe) + (ended ? 1 : 0) != 1;
    }
    join_thread(setter);
    printf("# %u of %u waits ended at once\n", at_once, race.rounds);
    assert_int_equal(wrong_ends, 0);
    assert_int_equal(wrong_values, 0);
}

/*
 * Setters and waiters, each on a thread. Event s of row i belongs to setter s, which writes its datum
 * before it sets it; every waiter waits for all of them, row by row.
 */
enum { SETTERS = 2, WAITERS = 2 };

struct announced {
    bide_event event;
    uint64_t datum;
    bide_atomic(uint32_t) arrived; /* waiters that have reached this row */
};

struct wait_of_row {
    bide_task task;
    struct announced *awaited;
    uint64_t datum;
    uint32_t ended; /* how often */
    bide_event_waiter wait;
};

struct stress {
    uint32_t rows;
    uint64_t seed;
    struct announced *announced;
    struct wait_of_row *waits[WAITERS];
};

struct stress_thread {
    struct stress *stress;
    uint32_t number;
    pthread_t thread;
};

bide_coroutine(wait_of_row_body)
{
    bide_begin(wait_of_row_body, struct wait_of_row * self);
    bide_await(bide_event_wait(&self->wait, &self->awaited->event));
    self->ended++;
    self->datum = self->awaited->datum;
    bide_end();
}

static uint64_t datum_of(uint32_t row, uint32_t setter)
{
    return (uint64_t)row * SETTERS + setter + 1;
}

static void *stress_set(void *argument)
{
    struct stress_thread *self = argument;
    uint64_t random = self->stress->seed + self->number;
    for (uint32_t row = 0; row < self->stress->rows; row++) {
        struct announced *own = &self->stress->announced[row * SETTERS + self->number];
        /* Neither far ahead of the waiters nor always behind them. */
        uint32_t patience = (uint32_t)(testing_random(&random) % (WAITERS + 1));
        uint32_t spins = 0;
        while (bide_atomic_load(&own->arrived, relaxed) < patience)
            wait_a_moment(&spins);
        own->datum = datum_of(row, self->number);
        bide_event_set(&own->event);
    }
    return NULL;
}

static void *stress_wait(void *argument)
{
    struct stress_thread *self = argument;
    for (uint32_t i = 0; i < self->stress->rows * SETTERS; i++) {
        struct wait_of_row *wait = &self->stress->waits[self->number][i];
        wait->awaited = &self->stress->announced[i];
        bide_atomic_fetch_add(&wait->awaited->arrived, 1, relaxed);
        bide_sync_wait(bide_task_init(&wait->task, &wait_of_row_body));
    }
    return NULL;
}

static void waits_on_several_threads_end_once_each_and_see_what_was_announced(void **state)
{
    (void)state;
    struct stress stress = {.rows = rounds_of(3000), .seed = testing_seed()};
    uint32_t count = stress.rows * SETTERS;
    stress.announced = calloc(count, sizeof *stress.announced);
    assert_non_null(stress.announced);
    for (uint32_t i = 0; i < count; i++)
        bide_event_init(&stress.announced[i].event, false);
    for (uint32_t w = 0; w < WAITERS; w++) {
        stress.waits[w] = calloc(count, sizeof *stress.waits[w]);
        assert_non_null(stress.waits[w]);
    }

    struct stress_thread threads[SETTERS + WAITERS];
    for (uint32_t i = 0; i < SETTERS + WAITERS; i++) {
        threads[i].stress = &stress;
        threads[i].number = i < SETTERS ? i : i - SETTERS;
        start_thread(&threads[i].thread, i < SETTERS ? stress_set : stress_wait, &threads[i]);
    }
    for (uint32_t i = 0; i < SETTERS + WAITERS; i++)
        join_thread(threads[i].thread);

    for (uint32_t w = 0; w < WAITERS; w++) {
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(stress.waits[w][i].ended, 1);
            assert_int_equal(stress.waits[w][i].datum, datum_of(i / SETTERS, i % SETTERS));
        }
        free(stress.waits[w]);
    }
    free(stress.announced);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_before_the_wait_lets_it_pass),
        cmocka_unit_test(an_event_may_be_made_set),
        cmocka_unit_test(a_wait_that_is_overtaken_by_the_set_ends_at_once),
        cmocka_unit_test(set_resumes_every_waiter_once_in_order_of_arrival),
        cmocka_unit_test(inline_waiters_have_run_when_set_returns),
        cmocka_unit_test(each_waiter_is_woken_on_its_own_scheduler),
        cmocka_unit_test(set_twice_is_set_once),
        cmocka_unit_test(a_wait_after_reset_waits_for_the_next_set),
        cmocka_unit_test(a_woken_waiter_stays_woken_after_a_reset),
        cmocka_unit_test(reset_of_an_event_that_is_not_set_keeps_its_waiters),
        cmocka_unit_test(a_set_inside_a_resumed_waiter_does_not_nest),
        cmocka_unit_test(the_first_woken_runs_before_those_it_wakes),
#if TESTING_HOSTED
        cmocka_unit_test(the_event_may_be_destroyed_by_its_waiter),
        cmocka_unit_test(the_event_may_be_destroyed_by_its_waiter_while_set_runs_in_another_thread),
        cmocka_unit_test(a_wait_and_a_set_at_once_end_the_wait_once),
        cmocka_unit_test(waits_on_several_threads_end_once_each_and_see_what_was_announced),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
