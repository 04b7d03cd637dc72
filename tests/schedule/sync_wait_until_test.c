/*
 * sync_wait with a deadline: the wait is cancelled at the deadline, and each wait ends once; its result is neither lost nor
 * delivered twice.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>
#include <signal.h>

enum { SHORT = 1000 * 1000 };

static uint64_t in(uint64_t nanoseconds)
{
    return bide_platform.now() + nanoseconds;
}

static bool nobody_waits(bide_event *event)
{
    return bide_atomic_load(&event->waiters.word, relaxed) <= BIDE_LIST_SHUT;
}

/* ---- One thread ---- */

static void what_waits_ends_when_its_deadline_has_come(void **state)
{
    (void)state;
    bide_event event;
    bide_event_waiter wait;
    uint64_t deadline = in(SHORT);
    bide_event_init(&event, false);
    assert_int_equal(bide_sync_wait_until(bide_event_wait(&wait, &event), deadline), -ETIMEDOUT);
    assert_true(bide_platform.now() >= deadline);
    assert_true(nobody_waits(&event));
}

static void a_deadline_that_has_passed_ends_what_would_wait(void **state)
{
    (void)state;
    bide_event event;
    bide_event_waiter wait;
    bide_event_init(&event, false);
    assert_int_equal(bide_sync_wait_until(bide_event_wait(&wait, &event), 0), -ETIMEDOUT);
    assert_int_equal(bide_sync_wait_until(bide_event_wait(&wait, &event), in(0)), -ETIMEDOUT);
    assert_true(nobody_waits(&event));
}

static void what_is_ready_is_had_though_the_deadline_has_passed(void **state)
{
    (void)state;
    bide_event event;
    bide_event_waiter wait;
    witness task;
    bide_event_init(&event, true);
    assert_int_equal(bide_sync_wait_until(bide_event_wait(&wait, &event), 0), 0);
    assert_int_equal(bide_sync_wait_until(witness_run(&task, &event, -EDOM), 0), -EDOM);
    assert_int_equal(bide_sync_wait_until(bide_event_wait(&wait, &event), BIDE_FOREVER), 0);
}

/* A task whose waits are cancelled, and that decides its result. */
struct stubborn {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    int first;
    int second;
};

bide_coroutine(stubborn_body)
{
    bide_begin(stubborn_body, struct stubborn * self);
    bide_await_status(self->first, bide_event_wait(&self->wait, self->event));
    bide_await_status(self->second, bide_event_wait(&self->wait, self->event));
    bide_return(-EDOM);
    bide_end();
}

static void a_task_ends_with_a_status_of_its_own(void **state)
{
    (void)state;
    for (int passed = 0; passed <= 1; passed++) {
        bide_event event;
        struct stubborn task = {.event = &event};
        bide_event_init(&event, false);
        bide_awaiter *awaiter = bide_task_init(&task.task, &stubborn_body);
        assert_int_equal(bide_sync_wait_until(awaiter, passed ? 0 : in(SHORT)), -EDOM);
        assert_int_equal(task.first, -ETIMEDOUT);
        assert_int_equal(task.second, -ETIMEDOUT);
        assert_true(nobody_waits(&event));
    }
}

/* A coroutine that blocks its thread: coroutines that the deadline wakes inline must not wait for its suspend. */
struct blocking {
    bide_task task;
    bide_event *event;
    struct stubborn child;
    bide_event_waiter wait;
    int statuses[2];
};

bide_coroutine(blocking_body)
{
    bide_begin(blocking_body, struct blocking * self);
    self->child.event = self->event;
    self->statuses[0] = bide_sync_wait_until(bide_event_wait(&self->wait, self->event), in(SHORT));
    self->statuses[1] =
        bide_sync_wait_until(bide_task_init(&self->child.task, &stubborn_body), in(SHORT));
    bide_end();
}

static void a_coroutine_may_block_its_thread_until_a_deadline(void **state)
{
    (void)state;
    bide_event event;
    struct blocking task = {.event = &event};
    bide_event_init(&event, false);
    assert_int_equal(bide_sync_wait(bide_task_init(&task.task, &blocking_body)), 0);
    assert_int_equal(task.statuses[0], -ETIMEDOUT);
    assert_int_equal(task.statuses[1], -EDOM);
    assert_true(nobody_waits(&event));
}

/* ---- Its context ---- */

struct request {
    bide_event *event;
    bide_stop_source *stop;
};

static void *request_later(void *argument)
{
    struct request *asked = argument;
    schedule_until(schedule_is_awaited(asked->event));
    bide_stop_request(asked->stop);
    return NULL;
}

static void a_request_to_the_stop_source_of_the_context_comes_first(void **state)
{
    (void)state;
    bide_event event;
    bide_event_waiter wait;
    bide_stop_source stop;
    struct request asked = {&event, &stop};
    bide_event_init(&event, false);
    bide_stop_source_init(&stop);
    bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
    pthread_t thread = schedule_thread(request_later, &asked);
    int status = bide_sync_wait_until_in(&context, bide_event_wait(&wait, &event),
                                         in(UINT64_C(3600000000000)));
    pthread_join(thread, NULL);
    assert_int_equal(status, -ECANCELED);
    status = bide_sync_wait_until_in(&context, bide_event_wait(&wait, &event), BIDE_FOREVER);
    assert_int_equal(status, -ECANCELED);
    assert_null(stop.first_child);
}

static void the_source_of_the_context_is_not_asked_by_the_deadline(void **state)
{
    (void)state;
    bide_event event;
    bide_event_waiter wait;
    bide_stop_source stop;
    bide_event_init(&event, false);
    bide_stop_source_init(&stop);
    bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
    assert_int_equal(bide_sync_wait_until_in(&context, bide_event_wait(&wait, &event), in(SHORT)),
                     -ETIMEDOUT);
    assert_false(bide_stop_requested(&stop));
    assert_null(stop.first_child);
}

static void what_runs_on_a_pool_is_cut_short_there(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    bide_event event;
    struct stubborn task = {.event = &event};
    bide_event_init(&event, false);
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    for (int i = 0; i < 20; i++) {
        bide_awaiter *awaiter = bide_task_init(&task.task, &stubborn_body);
        assert_int_equal(bide_sync_wait_until_in(&context, awaiter, in(SHORT / 20)), -EDOM);
        assert_int_equal(task.second, -ETIMEDOUT);
        assert_true(nobody_waits(&event));
    }
    bide_thread_pool_destroy(pool);
}

/* ---- Operations that cannot be cancelled ---- */

typedef struct firm {
    bide_awaiter awaiter;
    bide_atomic(bool) is_waiting;
} firm;

static bool firm_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static bide_frame *firm_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)frame;
    bide_atomic_store(&bide_container_of(awaiter, firm, awaiter)->is_waiting, true, release);
    return NULL;
}

static int firm_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return -EDOM;
}

static const bide_awaiter_ops firm_ops = {
    .ready = firm_ready,
    .suspend = firm_suspend,
    .resume = firm_resume,
    .name = "firm",
};

struct firm_ender {
    firm operation;
    uint64_t not_before;
    bool has_ended; /* before the wake */
};

static void *end_it_late(void *argument)
{
    struct firm_ender *ender = argument;
    schedule_until(bide_atomic_load(&ender->operation.is_waiting, acquire) &&
                   bide_platform.now() > ender->not_before);
    ender->has_ended = true;
    bide_wake_one(&ender->operation.awaiter);
    return NULL;
}

static void what_cannot_be_cut_short_is_waited_for(void **state)
{
    (void)state;
    struct firm_ender ender = {.operation.awaiter.ops = &firm_ops};
    uint64_t deadline = in(SHORT);
    ender.not_before = deadline + SHORT;
    pthread_t thread = schedule_thread(end_it_late, &ender);
    assert_int_equal(bide_sync_wait_until(&ender.operation.awaiter, deadline), -EDOM);
    assert_true(ender.has_ended);
    pthread_join(thread, NULL);
}

/* ---- Signals ---- */

static bide_atomic(unsigned) signals;

static void on_signal(int number)
{
    (void)number;
    bide_atomic_fetch_add(&signals, 1, relaxed);
}

struct disturber {
    pthread_t victim;
    bide_atomic(bool) has_ended;
    bide_event *event;
    unsigned wanted; /* after so many the event is set, if there is one */
};

static void *disturb(void *argument)
{
    struct disturber *disturber = argument;
    if (disturber->event != NULL)
        schedule_until(schedule_is_awaited(disturber->event));
    while (!bide_atomic_load(&disturber->has_ended, acquire)) {
        pthread_kill(disturber->victim, SIGUSR1);
        sched_yield();
        if (disturber->event != NULL && bide_atomic_load(&signals, relaxed) >= disturber->wanted)
            bide_event_set(disturber->event);
    }
    return NULL;
}

static void signals_do_not_end_a_wait(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    for (int is_set = 0; is_set <= 1; is_set++) {
        bide_event event;
        bide_event_waiter wait;
        struct disturber disturber = {.victim = pthread_self(), .wanted = 100};
        bide_atomic_store(&signals, 0, relaxed);
        bide_event_init(&event, false);
        disturber.event = is_set ? &event : NULL;
        bide_atomic_init(&disturber.has_ended, false);
        pthread_t thread = schedule_thread(disturb, &disturber);
        uint64_t deadline = is_set ? in(UINT64_C(3600000000000)) : in((uint64_t)20 * SHORT);
        int status = bide_sync_wait_until(bide_event_wait(&wait, &event), deadline);
        bide_atomic_store(&disturber.has_ended, true, release);
        pthread_join(thread, NULL);
        assert_int_equal(status, is_set ? 0 : -ETIMEDOUT);
        assert_true(bide_atomic_load(&signals, relaxed) > 0);
        if (!is_set)
            assert_true(bide_platform.now() >= deadline);
    }
    sigaction(SIGUSR1, &before, NULL);
}

/* ---- Deadlines and sets at once ---- */

enum { WAITERS = 3, ROUNDS = 3000 };

/* One event for all; in each round it is set about when their deadlines pass. */
struct contest {
    bide_event event;
    unsigned rounds;
    bide_atomic(unsigned) round;
    bide_atomic(unsigned) done; /* waits that have ended, of all rounds */
    bide_atomic(unsigned) in_time;
    bide_atomic(unsigned) wrong;
    uint64_t seed;
    const bide_context *context;
};

struct contestant {
    struct contest *contest;
    unsigned number;
};

static void *wait_in_each_round(void *argument)
{
    struct contestant *self = argument;
    struct contest *contest = self->contest;
    uint64_t random = contest->seed + self->number;
    for (unsigned round = 1; round <= contest->rounds; round++) {
        schedule_until(bide_atomic_load(&contest->round, acquire) == round);
        witness task;
        bide_event_waiter wait;
        bool is_task = testing_random(&random) % 2 == 0;
        bide_awaiter *awaiter = is_task ? witness_run(&task, &contest->event, -EDOM)
                                        : bide_event_wait(&wait, &contest->event);
        uint64_t deadline =
            testing_random(&random) % 16 == 0 ? 0 : in(testing_random(&random) % 40000);
        int status = bide_sync_wait_until_in(contest->context, awaiter, deadline);
        if (is_task ? status != -EDOM || witness_ends(&task) != 1
                    : status != 0 && status != -ETIMEDOUT)
            bide_atomic_fetch_add(&contest->wrong, 1, relaxed);
        if (status == 0)
            bide_atomic_fetch_add(&contest->in_time, 1, relaxed);
        bide_atomic_fetch_add(&contest->done, 1, release);
    }
    return NULL;
}

static void run_contest(const bide_context *context)
{
    struct contest contest = {.context = context};
    struct contestant contestants[WAITERS];
    pthread_t threads[WAITERS];
    contest.rounds = rounds_of(ROUNDS);
    contest.seed = testing_seed();
    uint64_t random = contest.seed;
    bide_event_init(&contest.event, false);
    bide_atomic_init(&contest.round, 0);
    bide_atomic_init(&contest.done, 0);
    bide_atomic_init(&contest.in_time, 0);
    bide_atomic_init(&contest.wrong, 0);
    for (unsigned i = 0; i < WAITERS; i++) {
        contestants[i] = (struct contestant){&contest, i};
        threads[i] = schedule_thread(wait_in_each_round, &contestants[i]);
    }
    for (unsigned round = 1; round <= contest.rounds; round++) {
        bide_atomic_store(&contest.round, round, release);
        uint64_t set_at = in(testing_random(&random) % 40000);
        schedule_until(bide_platform.now() >= set_at);
        bide_event_set(&contest.event);
        schedule_until(bide_atomic_load(&contest.done, acquire) == round * WAITERS);
        assert_true(nobody_waits(&contest.event));
        bide_event_reset(&contest.event);
    }
    for (unsigned i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(bide_atomic_load(&contest.wrong, relaxed), 0);
    printf("# %u of %u in time\n", bide_atomic_load(&contest.in_time, relaxed),
           contest.rounds * WAITERS);
}

static void each_wait_ends_once_when_deadlines_and_sets_race(void **state)
{
    (void)state;
    run_contest(&bide_default_context);
}

static void each_wait_ends_once_when_they_race_on_a_pool(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    run_contest(&context);
    bide_thread_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_ends_when_its_deadline_has_come),
        cmocka_unit_test(a_deadline_that_has_passed_ends_what_would_wait),
        cmocka_unit_test(what_is_ready_is_had_though_the_deadline_has_passed),
        cmocka_unit_test(a_task_ends_with_a_status_of_its_own),
        cmocka_unit_test(a_coroutine_may_block_its_thread_until_a_deadline),
        cmocka_unit_test(a_request_to_the_stop_source_of_the_context_comes_first),
        cmocka_unit_test(the_source_of_the_context_is_not_asked_by_the_deadline),
        cmocka_unit_test(what_runs_on_a_pool_is_cut_short_there),
        cmocka_unit_test(what_cannot_be_cut_short_is_waited_for),
        cmocka_unit_test(signals_do_not_end_a_wait),
        cmocka_unit_test(each_wait_ends_once_when_deadlines_and_sets_race),
        cmocka_unit_test(each_wait_ends_once_when_they_race_on_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
