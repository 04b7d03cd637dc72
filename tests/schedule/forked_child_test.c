/*
 * Pools and loops in a child of fork, where their threads are not: misuse is reported there, and nothing crashes.
 */
#define _GNU_SOURCE
#include "by_readiness.h"
#include "misuse.h"
#include "schedule_testing.h"

#include "bide/blocking.h"
#include "bide/handle.h"
#include "bide/io_pool.h"
#include "bide/join.h"
#include "bide/loop.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/strand.h"
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

/* ---- What other threads of the child may do with them ---- */

static bide_strand strand;
static bide_scheduler *there; /* the pool's or the strand's */
static bide_event event;
static bide_spawned waiting; /* there, for the event */

static void shut_pool_down(void)
{
    bide_thread_pool_shutdown(pool, BIDE_FOREVER, NULL);
}

static void call_in_pool(void)
{
    bide_call_in(pool, do_nothing, NULL);
}

static void begin_there(void)
{
    static witness task;
    bide_context context = {.scheduler = there};
    bide_spawned spawned;
    bide_spawn(&spawned, &context, witness_run(&task, NULL, 0));
}

static void wait_there(void)
{
    static witness task;
    bide_context context = {.scheduler = there};
    bide_sync_wait_in(&context, witness_run(&task, NULL, 0));
}

static void wake_there(void)
{
    bide_event_set(&event);
}

static void set_a_timer_there(void)
{
    bide_timer_init(&timer, BIDE_FOREVER - 1);
    there->set_timer(there, &timer);
}

static void clear_the_timer_there(void)
{
    there->clear_timer(there, &timer);
}

static void destroy_strand(void)
{
    bide_strand_destroy(&strand);
}

static const struct operation_row {
    const char *name;
    void (*operation)(void);
    const char *of_pool, *of_strand; /* what is reported; NULL: there is no such operation */
    const char *place;               /* of that of the strand; NULL: strand.c */
} operation_rows[] = {
    {"shutdown", shut_pool_down, "a thread pool is shut down in a child", NULL, NULL},
    {"call", call_in_pool, "is posted to a thread pool in a child", NULL, NULL},
    {"spawn", begin_there, "is posted to a thread pool in a child",
     "is posted to a strand of a thread pool in a child", NULL},
    {"wait", wait_there, "is posted to a thread pool in a child",
     "is posted to a strand of a thread pool in a child", NULL},
    {"wake", wake_there, "is posted to a thread pool in a child",
     "is posted to a strand of a thread pool in a child", NULL},
    {"set a timer", set_a_timer_there, "a timer of a thread pool is set in a child",
     "a timer of a strand of a thread pool is set in a child", NULL},
    {"clear a timer", clear_the_timer_there, "a timer of a thread pool is cleared in a child",
     "a timer of a strand of a thread pool is cleared in a child", NULL},
    {"destroy", destroy_pool, "a thread pool is destroyed in a child", NULL, NULL},
    {"destroy", destroy_strand, NULL, "a strand of a thread pool is destroyed in a child",
     "forked_child_test.c"},
};

enum { OPERATION_ROWS = sizeof operation_rows / sizeof operation_rows[0] };

/* Something waits there for the event, and a timer is set. */
static void begin_what_waits(witness *task)
{
    bide_context context = {.scheduler = there};
    bide_event_init(&event, false);
    bide_spawn(&waiting, &context, witness_run(task, &event, 0));
    schedule_until(schedule_is_awaited(&event));
    set_a_timer_there();
}

static void end_what_waits(void)
{
    bide_event_waiter wait;
    clear_the_timer_there();
    bide_event_set(&event);
    bide_sync_wait(bide_event_wait(&wait, &waiting.ended));
    bide_event_destroy(&event);
}

static void try_operations(bool of_strand)
{
    witness task;
    begin_what_waits(&task);
    for (size_t i = 0; i < OPERATION_ROWS; i++) {
        const struct operation_row *row = &operation_rows[i];
        const char *what = of_strand ? row->of_strand : row->of_pool;
        const char *place = of_strand ? "strand.c" : "";
        if (what != NULL &&
            !misuse_aborts_naming(row->operation, what, row->place != NULL ? row->place : place))
            fail_msg("%s, of a %s", row->name, of_strand ? "strand" : "pool");
    }
    end_what_waits();
}

static void each_operation_on_a_pool_in_a_child_is_misuse(void **state)
{
    (void)state;
    const bide_io_pool_options options = {.threads = {.threads = 2}};
    for (int with_loops = 0; with_loops < 2; with_loops++) {
        if (with_loops != 0)
            assert_int_equal(bide_io_pool_create(&pool, &options), 0);
        else
            assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
        there = bide_thread_pool_scheduler(pool);
        try_operations(false);
        bide_thread_pool_destroy(pool);
    }
}

static void each_operation_on_a_strand_of_a_pool_in_a_child_is_misuse(void **state)
{
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
    there = &strand.scheduler;
    try_operations(true);
    bide_strand_destroy(&strand);
    bide_thread_pool_destroy(pool);
}

/* A strand on a copy of a run loop goes on, as the copy does. */
static bide_run_loop own_loop;

static int go_on_on_a_strand(void)
{
    witness task;
    bide_schedule_on_operation on_strand;
    int status = bide_run_loop_wait(
        &own_loop, bide_schedule_on(&on_strand, &strand.scheduler, witness_run(&task, NULL, 0)));
    bide_strand_destroy(&strand);
    return status == 0 && witness_ends(&task) == 1 ? 0 : 1;
}

static void a_strand_of_a_run_loop_goes_on_in_a_child(void **state)
{
    (void)state;
    bide_run_loop_init(&own_loop);
    bide_strand_init(&strand, &own_loop.scheduler);
    assert_int_equal(in_a_child(go_on_on_a_strand), 0);
    assert_int_equal(go_on_on_a_strand(), 0);
    bide_run_loop_destroy(&own_loop);
}

/* ---- A coroutine that is woken, and is destroyed in a child ---- */

static bide_atomic(bool) holds, is_held;

/* Keeps the only thread of the pool. */
struct holder {
    bide_task task;
};

bide_coroutine(holder_body)
{
    bide_begin(holder_body, struct holder * self);
    (void)self;
    bide_atomic_store(&is_held, true, release);
    schedule_until(!bide_atomic_load(&holds, acquire));
    bide_end();
}

static void destroy_the_woken(void)
{
    bide_destroy(&waiting.root.frame);
}

static void a_woken_coroutine_that_is_destroyed_in_a_child_is_misuse(void **state)
{
    (void)state;
    witness task;
    struct holder holder;
    bide_spawned spawned;
    bide_event_waiter wait;
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    there = bide_thread_pool_scheduler(pool);
    bide_context context = {.scheduler = there};
    begin_what_waits(&task);
    bide_atomic_store(&holds, true, relaxed);
    bide_atomic_store(&is_held, false, relaxed);
    bide_spawn(&spawned, &context, bide_task_init(&holder.task, &holder_body));
    schedule_until(bide_atomic_load(&is_held, acquire));
    bide_event_set(&event);
    assert_true(misuse_aborts_naming(destroy_the_woken,
                                     "a woken coroutine of a thread pool is destroyed in a child",
                                     "worker.c"));
    bide_atomic_store(&holds, false, release);
    bide_sync_wait(bide_event_wait(&wait, &spawned.ended));
    end_what_waits();
    bide_thread_pool_destroy(pool);
}

/* ---- A coroutine of theirs that forks ---- */

/* What it does in the child. */
typedef enum goes_on { ENDS, SUSPENDS, YIELDS, SLEEPS, WAKES, GOES_ON } goes_on;

struct own {
    bide_task task;
    goes_on how;
    pid_t child;
    int says;
    bide_event never;
    bide_event_waiter wait;
    bide_schedule_operation yield;
    bide_sleep sleep;
};

bide_coroutine(own_body)
{
    bide_begin(own_body, struct own * self);
    bide_event_init(&self->never, false);
    self->child = misuse_fork(&self->says);
    if (self->child != 0)
        bide_return(0);
    if (self->how == SUSPENDS)
        bide_await(bide_event_wait(&self->wait, &self->never));
    if (self->how == YIELDS)
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    if (self->how == SLEEPS)
        bide_await(bide_sleep_for(&self->sleep, BIDE_SECONDS(1000)));
    if (self->how == WAKES)
        bide_event_set(&event);
    bide_end();
}

static const char *const of_pool_that_goes_on[GOES_ON][2] = {
    [ENDS] = {"a coroutine of a thread pool has suspended, or ended, in a child", "worker.c"},
    [SUSPENDS] = {"a coroutine of a thread pool has suspended, or ended, in a child", "worker.c"},
    [YIELDS] = {"is posted to a thread pool in a child", "worker.c"},
    [SLEEPS] = {"a timer of a thread pool is set in a child", "timers.c"},
    [WAKES] = {"is posted to a thread pool in a child", "worker.c"},
};

static void a_coroutine_of_a_pool_that_goes_on_in_a_child_is_misuse(void **state)
{
    (void)state;
    witness task;
    for (unsigned threads = 1; threads <= 3; threads++) {
        assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
        there = bide_thread_pool_scheduler(pool);
        bide_context context = {.scheduler = there};
        begin_what_waits(&task);
        for (goes_on how = 0; how < GOES_ON; how++) {
            struct own own = {.how = how};
            assert_int_equal(bide_sync_wait_in(&context, bide_task_init(&own.task, &own_body)), 0);
            if (!misuse_child_aborts_naming(own.child, own.says, of_pool_that_goes_on[how][0],
                                            of_pool_that_goes_on[how][1]))
                fail_msg("%u threads, way %d", threads, (int)how);
        }
        end_what_waits();
        bide_thread_pool_destroy(pool);
    }
}

static void a_coroutine_of_a_strand_of_a_pool_that_goes_on_in_a_child_is_misuse(void **state)
{
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
    for (goes_on how = ENDS; how <= SUSPENDS; how++) {
        struct own own = {.how = how};
        assert_int_equal(bide_sync_wait_in(&strand.context, bide_task_init(&own.task, &own_body)),
                         0);
        assert_true(misuse_child_aborts_naming(own.child, own.says, of_pool_that_goes_on[how][0],
                                               of_pool_that_goes_on[how][1]));
    }
    bide_strand_destroy(&strand);
    bide_thread_pool_destroy(pool);
}

/* In a call. */
struct forking_call {
    pid_t child;
    int says;
};

static void fork_and_return(void *argument)
{
    struct forking_call *forking = argument;
    forking->child = misuse_fork(&forking->says);
}

static void a_blocking_call_that_returns_in_a_child_is_misuse(void **state)
{
    (void)state;
    bide_blocking_call call;
    struct forking_call forking;
    assert_int_equal(bide_blocking_create(&blocking, 2), 0);
    assert_int_equal(bide_sync_wait(bide_blocking_run(&call, blocking, fork_and_return, &forking)),
                     0);
    assert_true(misuse_child_aborts_naming(
        forking.child, forking.says, "a blocking call has returned in a child", "blocking.c"));
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

static void a_coroutine_of_a_loop_that_waits_in_a_child_is_misuse(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const bide_loop_options options = {.kind = kinds[i]};
        assert_int_equal(bide_loop_create(&loop, &options), 0);
        for (goes_on how = SUSPENDS; how <= SLEEPS; how++) {
            struct own own = {.how = how};
            if (how == YIELDS)
                continue;
            assert_int_equal(bide_loop_wait(loop, bide_task_init(&own.task, &own_body)), 0);
            assert_true(misuse_child_aborts_naming(own.child, own.says, "a loop runs on in a child",
                                                   "bide_loop_wait"));
        }
        bide_loop_destroy(loop);
    }
}

static int wait_and_destroy(void)
{
    witness task;
    bide_loop_run(loop); /* returns at once */
    if (bide_loop_shutdown(loop, BIDE_FOREVER, NULL) != -ENOTSUP)
        return 2;
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
        cmocka_unit_test(each_operation_on_a_pool_in_a_child_is_misuse),
        cmocka_unit_test(each_operation_on_a_strand_of_a_pool_in_a_child_is_misuse),
        cmocka_unit_test(a_strand_of_a_run_loop_goes_on_in_a_child),
        cmocka_unit_test(a_woken_coroutine_that_is_destroyed_in_a_child_is_misuse),
        cmocka_unit_test(a_coroutine_of_a_pool_that_goes_on_in_a_child_is_misuse),
        cmocka_unit_test(a_coroutine_of_a_strand_of_a_pool_that_goes_on_in_a_child_is_misuse),
        cmocka_unit_test(a_blocking_call_that_returns_in_a_child_is_misuse),
        cmocka_unit_test(a_coroutine_of_a_loop_that_waits_in_a_child_is_misuse),
        cmocka_unit_test(a_loop_that_a_coroutine_of_it_destroys_is_misuse_in_a_child_too),
        cmocka_unit_test(a_loop_is_destroyed_in_a_child_and_runs_on_in_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
