/*
 * sync_wait across threads: it blocks until another thread has ended what it waits for.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>

static void statuses_are_returned(void **state)
{
    (void)state;
    witness task;
    assert_int_equal(bide_sync_wait(witness_run(&task, NULL, 0)), 0);
    assert_int_equal(bide_sync_wait(witness_run(&task, NULL, -EDOM)), -EDOM);
    assert_true(pthread_equal(task.began_on, pthread_self()));
    assert_true(pthread_equal(task.ended_on, pthread_self()));
    assert_ptr_equal(task.scheduler, &bide_inline_scheduler);

    bide_context named = {.scheduler = &bide_inline_scheduler, .name = "named"};
    assert_int_equal(bide_sync_wait_in(&named, witness_run(&task, NULL, -EPIPE)), -EPIPE);
    assert_string_equal(task.context_name, "named");
}

static void an_operation_may_be_waited_for_without_a_task(void **state)
{
    (void)state;
    bide_event event;
    bide_event_init(&event, true);
    bide_event_waiter wait;
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &event)), 0);
}

/* ---- An event that another thread sets ---- */

enum { WAITS = 10000 };

struct setter {
    uint64_t random;
    bide_atomic(bide_event *) event; /* the next to be set */
    bide_atomic(bool) ending;
    unsigned sets; /* before the set: how many, with this one */
};

static void *set_events(void *argument)
{
    struct setter *setter = argument;
    while (!bide_atomic_load(&setter->ending, relaxed)) {
        bide_event *event = bide_atomic_exchange(&setter->event, NULL, acquire);
        if (event == NULL) {
            sched_yield();
            continue;
        }
        schedule_until(schedule_is_awaited(event));
        schedule_jitter(&setter->random);
        setter->sets++;
        bide_event_set(event);
    }
    return NULL;
}

static void it_blocks_until_another_thread_has_set_the_event(void **state)
{
    (void)state;
    struct setter setter = {.random = testing_seed()};
    pthread_t thread = schedule_thread(set_events, &setter);
    for (unsigned i = 1; i <= WAITS; i++) {
        bide_event event;
        bide_event_init(&event, false);
        witness task;
        int status = i % 2 == 0 ? 0 : -EDOM;
        bide_awaiter *awaiter = witness_run(&task, &event, status);
        bide_atomic_store(&setter.event, &event, release);
        assert_int_equal(bide_sync_wait(awaiter), status);
        assert_int_equal(setter.sets, i);
        assert_int_equal(witness_ends(&task), 1);
        /* The inline scheduler resumes it where it was woken. */
        assert_true(pthread_equal(task.began_on, pthread_self()));
        assert_true(pthread_equal(task.ended_on, thread));
    }
    bide_atomic_store(&setter.ending, true, relaxed);
    pthread_join(thread, NULL);
}

/* ---- Several threads that wait for a pool ---- */

enum { CALLERS = 4, CALLS = 5000 };

struct caller {
    unsigned number;
    const bide_context *context;
    uint64_t random;
    unsigned wrong;
};

static void *call(void *argument)
{
    struct caller *caller = argument;
    for (unsigned i = 0; i < CALLS; i++) {
        witness task;
        int status = -(int)(caller->number * CALLS + i);
        if (bide_sync_wait_in(caller->context, witness_run(&task, NULL, status)) != status ||
            bide_task_error(&task.task) != status || witness_ends(&task) != 1 ||
            pthread_equal(task.ended_on, pthread_self()))
            caller->wrong++;
        schedule_jitter(&caller->random);
    }
    return NULL;
}

static void several_threads_wait_for_tasks_on_one_pool(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    struct caller callers[CALLERS];
    pthread_t threads[CALLERS];
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){i, &context, seed + i, 0};
        threads[i] = schedule_thread(call, &callers[i]);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    bide_thread_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_are_returned),
        cmocka_unit_test(an_operation_may_be_waited_for_without_a_task),
        cmocka_unit_test(it_blocks_until_another_thread_has_set_the_event),
        cmocka_unit_test(several_threads_wait_for_tasks_on_one_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
