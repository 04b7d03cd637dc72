/*
 * Pools and loops in a child of fork, where their threads are not: misuse is reported there, and nothing crashes.
 */
#define _GNU_SOURCE
#include "by_readiness.h"
#include "misuse.h"
#include "schedule_testing.h"

#include "bide/blocking.h"
#include "bide/io_pool.h"
#include "bide/loop.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/extend/timer.h"
#include "bide/thread_pool.h"

#include <errno.h>

static bide_thread_pool *pool;
static bide_blocking *blocking;
static bide_loop *loop;

/* The result of the function in a child. */
static int in_a_child(int (*function)(void))
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(function());
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void destroy_pool(void)
{
    bide_thread_pool_destroy(pool);
}

static void destroy_blocking(void)
{
    bide_blocking_destroy(blocking);
}

static void do_nothing(void *argument)
{
    (void)argument;
}

static void call_blocking(void)
{
    static bide_run_loop own;
    bide_blocking_call call;
    bide_run_loop_init(&own);
    bide_run_loop_wait(&own, bide_blocking_run(&call, blocking, do_nothing, NULL));
}

static void post_to_pool(void)
{
    static witness task;
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_spawned spawned;
    bide_spawn(&spawned, &context, witness_run(&task, NULL, 0));
}

static void destroy_loop(void)
{
    bide_loop_destroy(loop);
}

/* ---- Pools ---- */

static void a_pool_that_is_destroyed_in_a_child_is_misuse(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
        assert_true(misuse_aborts_naming(destroy_pool, "thread pool is destroyed in a child",
                                         "forked_child_test.c"));
        bide_thread_pool_destroy(pool);
    }
}

static void a_post_to_a_pool_in_a_child_is_misuse(void **state)
{
    (void)state;
    witness task;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    assert_true(
        misuse_aborts_naming(post_to_pool, "posted to a thread pool in a child", "worker.c"));
    assert_int_equal(bide_sync_wait_in(&context, witness_run(&task, NULL, 0)), 0);
    bide_thread_pool_destroy(pool);
}

static bide_timer timer;

static void set_a_timer_of_the_pool(void)
{
    bide_scheduler *scheduler = bide_thread_pool_scheduler(pool);
    bide_timer_init(&timer, BIDE_FOREVER - 1);
    scheduler->set_timer(scheduler, &timer);
}

static void clear_the_timer_of_the_pool(void)
{
    bide_scheduler *scheduler = bide_thread_pool_scheduler(pool);
    scheduler->clear_timer(scheduler, &timer);
}

static void a_timer_of_a_pool_in_a_child_is_misuse(void **state)
{
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_scheduler *scheduler = bide_thread_pool_scheduler(pool);
    assert_true(misuse_aborts_naming(set_a_timer_of_the_pool,
                                     "timer of a thread pool is set in a child", "timers.c"));
    set_a_timer_of_the_pool();
    assert_true(misuse_aborts_naming(clear_the_timer_of_the_pool,
                                     "timer of a thread pool is cleared in a child", "timers.c"));
    assert_true(scheduler->clear_timer(scheduler, &timer));
    bide_thread_pool_destroy(pool);
}

static void an_io_pool_that_is_destroyed_in_a_child_is_misuse(void **state)
{
    (void)state;
    const bide_io_pool_options options = {.threads = {.threads = 2}};
    assert_int_equal(bide_io_pool_create(&pool, &options), 0);
    assert_true(misuse_aborts_naming(destroy_pool, "thread pool is destroyed in a child",
                                     "forked_child_test.c"));
    bide_thread_pool_destroy(pool);
}

static void threads_for_blocking_calls_in_a_child_are_misuse(void **state)
{
    (void)state;
    bide_blocking_call call;
    assert_int_equal(bide_blocking_create(&blocking, 1), 0);
    assert_true(
        misuse_aborts_naming(destroy_blocking, "are destroyed in a child", "forked_child_test.c"));
    assert_true(misuse_aborts_naming(call_blocking, "a blocking call in a child", "call"));
    assert_int_equal(bide_sync_wait(bide_blocking_run(&call, blocking, do_nothing, NULL)), 0);
    bide_blocking_destroy(blocking);
}

/* ---- Loops ---- */

struct forker {
    bide_task task;
    bool is_reported;
};

bide_coroutine(forker_body)
{
    bide_begin(forker_body, struct forker * self);
    self->is_reported = misuse_aborts_naming(
        destroy_loop, "a loop is destroyed while it runs on this thread", "forked_child_test.c");
    bide_end();
}

static const bide_loop_kind kinds[] = {BY_READINESS, BIDE_LOOP_ANY};

static void a_loop_that_a_coroutine_of_it_destroys_is_misuse_in_a_child_too(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const bide_loop_options options = {.kind = kinds[i]};
        struct forker forker = {.is_reported = false};
        assert_int_equal(bide_loop_create(&loop, &options), 0);
        assert_int_equal(bide_loop_wait(loop, bide_task_init(&forker.task, &forker_body)), 0);
        assert_true(forker.is_reported);
        bide_loop_destroy(loop);
    }
}

static int wait_and_destroy(void)
{
    witness task;
    if (bide_loop_wait(loop, witness_run(&task, NULL, 0)) != -ENOTSUP)
        return 1;
    bide_loop_destroy(loop);
    return 0;
}

static void a_loop_is_destroyed_in_a_child_and_runs_on_in_the_parent(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const bide_loop_options options = {.kind = kinds[i]};
        witness task;
        assert_int_equal(bide_loop_create(&loop, &options), 0);
        assert_int_equal(bide_loop_wait(loop, witness_run(&task, NULL, 0)), 0);
        assert_int_equal(in_a_child(wait_and_destroy), 0);
        assert_int_equal(bide_loop_wait(loop, witness_run(&task, NULL, 0)), 0);
        bide_loop_destroy(loop);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_that_is_destroyed_in_a_child_is_misuse),
        cmocka_unit_test(a_post_to_a_pool_in_a_child_is_misuse),
        cmocka_unit_test(a_timer_of_a_pool_in_a_child_is_misuse),
        cmocka_unit_test(an_io_pool_that_is_destroyed_in_a_child_is_misuse),
        cmocka_unit_test(threads_for_blocking_calls_in_a_child_are_misuse),
        cmocka_unit_test(a_loop_that_a_coroutine_of_it_destroys_is_misuse_in_a_child_too),
        cmocka_unit_test(a_loop_is_destroyed_in_a_child_and_runs_on_in_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
