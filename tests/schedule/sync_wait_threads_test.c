/*
 * sync_wait across threads: it blocks until another thread has ended the operation.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "schedule_testing.h"

#include "bide/mutex.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
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
    bide_atomic(bide_event *) event; /* the next one to set */
    bide_atomic(bool) ending;
    unsigned sets; /* before the set: the number of sets, including this one */
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
        /* The inline scheduler resumes it on the waking thread. */
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

/* ---- In a coroutine: the awaited coroutine is queued behind it ---- */

/* Locks a mutex, and unlocks it. */
struct locker {
    bide_task task;
    bide_mutex *mutex;
    bide_mutex_waiter wait;
    bide_spawned spawned;
    bool had_it;
};

bide_coroutine(locker_body)
{
    bide_begin(locker_body, struct locker * self);
    bide_try(bide_mutex_lock(&self->wait, self->mutex));
    self->had_it = true;
    bide_mutex_unlock(&self->wait);
    bide_end();
}

/*
 * Unlocks it, which hands it to another that is queued on this thread; and blocks until it holds it again.
 */
struct blocker {
    bide_task task;
    bide_mutex *mutex;
    bide_mutex_waiter wait;
    struct locker others[3];
    int (*block)(bide_mutex_waiter *wait, bide_mutex *mutex);
    int status;
};

bide_coroutine(blocker_body)
{
    bide_begin(blocker_body, struct blocker * self);
    bide_mutex_unlock(&self->wait);
    self->status = self->block(&self->wait, self->mutex);
    bide_mutex_unlock(&self->wait);
    bide_end();
}

static int block_at_once(bide_mutex_waiter *wait, bide_mutex *mutex)
{
    return bide_mutex_lock_blocking(wait, mutex, BIDE_FOREVER);
}

struct inner_blocker {
    bide_task task;
    bide_mutex *mutex;
    bide_mutex_waiter *wait;
    int status;
};

bide_coroutine(inner_blocker_body)
{
    bide_begin(inner_blocker_body, struct inner_blocker * self);
    self->status = bide_mutex_lock_blocking(self->wait, self->mutex, BIDE_FOREVER);
    bide_end();
}

/* In a resume loop of its own: the others are in the queue of the outer one. */
static int block_inside(bide_mutex_waiter *wait, bide_mutex *mutex)
{
    struct inner_blocker inner = {.mutex = mutex, .wait = wait};
    bide_sync_wait(bide_task_init(&inner.task, &inner_blocker_body));
    return inner.status;
}

static int block_in_a_loop(bide_mutex_waiter *wait, bide_mutex *mutex)
{
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    return bide_run_loop_wait(&loop, bide_mutex_lock(wait, mutex));
}

static void what_a_blocking_wait_needs_runs_though_it_is_queued_behind_it(void **state)
{
    (void)state;
    int (*const blocks[])(bide_mutex_waiter *, bide_mutex *) = {block_at_once, block_inside,
                                                                block_in_a_loop};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        bide_mutex mutex;
        struct blocker blocker = {.mutex = &mutex, .block = blocks[i], .status = 1};
        bide_mutex_init(&mutex);
        assert_true(bide_mutex_try_lock(&blocker.wait, &mutex));
        for (int j = 0; j < 3; j++) {
            struct locker *other = &blocker.others[j];
            other->mutex = &mutex;
            bide_spawn(&other->spawned, &bide_default_context,
                       bide_task_init(&other->task, &locker_body));
        }
        assert_int_equal(bide_sync_wait(bide_task_init(&blocker.task, &blocker_body)), 0);
        assert_int_equal(blocker.status, 0);
        for (int j = 0; j < 3; j++)
            assert_true(blocker.others[j].had_it);
        assert_true(bide_mutex_try_lock(&blocker.wait, &mutex));
        bide_mutex_unlock(&blocker.wait);
        bide_mutex_destroy(&mutex);
    }
}

/* ---- Misuse: it blocks the thread that would run the awaited coroutine ---- */

enum { MAX_SECONDS = 60 }; /* after this time it counts as hanging */

struct waits {
    bide_task task;
    const bide_context *context;
    witness child;
    int status;
};

bide_coroutine(waits_body)
{
    bide_begin(waits_body, struct waits * self);
    self->status = bide_sync_wait_in(self->context, witness_run(&self->child, NULL, -EDOM));
    bide_end();
}

static void wait_on_the_loops_thread(void)
{
    bide_run_loop loop;
    struct waits waits = {.context = &loop.context};
    bide_run_loop_init(&loop);
    alarm(MAX_SECONDS);
    bide_run_loop_wait(&loop, bide_task_init(&waits.task, &waits_body));
}

/* ... which runs another loop in it. */
struct nested {
    bide_task task;
    struct waits waits;
};

bide_coroutine(nested_body)
{
    bide_begin(nested_body, struct nested * self);
    bide_run_loop inner;
    bide_run_loop_init(&inner);
    bide_run_loop_wait(&inner, bide_task_init(&self->waits.task, &waits_body));
    bide_end();
}

static void wait_on_a_loop_inside(void)
{
    bide_run_loop loop;
    struct nested nested = {.waits.context = &loop.context};
    bide_run_loop_init(&loop);
    alarm(MAX_SECONDS);
    bide_run_loop_wait(&loop, bide_task_init(&nested.task, &nested_body));
}

static int wait_on_a_pool(unsigned threads)
{
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    struct waits waits = {.context = &context};
    bide_sync_wait_in(&context, bide_task_init(&waits.task, &waits_body));
    bide_thread_pool_destroy(pool);
    return waits.status;
}

static void wait_on_the_only_thread_of_a_pool(void)
{
    alarm(MAX_SECONDS);
    wait_on_a_pool(1);
}

static void to_block_the_only_thread_that_runs_it_is_misuse(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(wait_on_the_loops_thread, "only it could run", "witness_body"));
    assert_true(misuse_aborts_naming(wait_on_a_loop_inside, "only it could run", "witness_body"));
    assert_true(misuse_aborts_naming(wait_on_the_only_thread_of_a_pool, "only it could run",
                                     "witness_body"));
    assert_int_equal(wait_on_a_pool(2), -EDOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_are_returned),
        cmocka_unit_test(an_operation_may_be_waited_for_without_a_task),
        cmocka_unit_test(it_blocks_until_another_thread_has_set_the_event),
        cmocka_unit_test(several_threads_wait_for_tasks_on_one_pool),
        cmocka_unit_test(what_a_blocking_wait_needs_runs_though_it_is_queued_behind_it),
        cmocka_unit_test(to_block_the_only_thread_that_runs_it_is_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
