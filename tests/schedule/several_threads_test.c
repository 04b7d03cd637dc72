/*
 * Pools of threads, strands on them, a run loop beside them and sleeps, by the library's own
 * threads alone: so it also runs where there is no pthread.h. tests/base/core_elsewhere_test.sh
 * runs it there, with a small cmocka of its own.
 */
#include "testing.h"

#include "bide/core.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
#include "bide/strand.h"
#include "bide/thread_pool.h"

enum { MILLISECOND = 1000000, WORKERS = 4 };

/* Adds to a number that a mutex guards, each time after a turn of the scheduler. */
struct adder {
    bide_task task;
    bide_spawned spawned;
    bide_schedule_operation turn;
    bide_mutex_waiter lock;
    bide_mutex *mutex;
    long *sum;
    int i, rounds;
};

bide_coroutine(adder_body)
{
    bide_begin(adder_body, struct adder * self);
    for (self->i = 0; self->i < self->rounds; self->i++) {
        bide_try(bide_schedule(&self->turn, bide_this_context()->scheduler));
        bide_try(bide_mutex_lock(&self->lock, self->mutex));
        ++*self->sum;
        bide_mutex_unlock(&self->lock);
    }
    bide_end();
}

static void workers_pass_a_lock_on(void **state)
{
    enum { ADDERS = 8, ROUNDS = 500 };
    static struct adder adders[ADDERS];
    bide_thread_pool *pool;
    bide_mutex mutex;
    long sum = 0;
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, WORKERS), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_mutex_init(&mutex);
    for (int i = 0; i < ADDERS; i++) {
        adders[i].mutex = &mutex;
        adders[i].sum = &sum;
        adders[i].rounds = ROUNDS;
        bide_spawn(&adders[i].spawned, &context, bide_task_init(&adders[i].task, &adder_body));
    }
    for (int i = 0; i < ADDERS; i++)
        assert_int_equal(bide_event_wait_blocking(&adders[i].spawned.ended, BIDE_FOREVER), 0);
    assert_true(sum == (long)ADDERS * ROUNDS);
    bide_thread_pool_destroy(pool);
}

/* Sleeps, and counts on the strand or the loop that it belongs to. */
struct sleeper {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    uint64_t woken;
    bide_atomic(unsigned) * count;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    bide_try(bide_sleep_for(&self->sleep, 3 * MILLISECOND));
    self->woken = bide_platform.now();
    bide_atomic_fetch_add(self->count, 1, relaxed);
    bide_end();
}

enum { SLEEPERS = 20 };

static struct sleeper sleepers[SLEEPERS];

static void sleep_all(const bide_context *context)
{
    bide_atomic(unsigned) count;
    bide_atomic_init(&count, 0);
    uint64_t begun = bide_platform.now();
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i].count = &count;
        bide_spawn(&sleepers[i].spawned, context, bide_task_init(&sleepers[i].task, &sleeper_body));
    }
    for (int i = 0; i < SLEEPERS; i++) {
        assert_int_equal(bide_event_wait_blocking(&sleepers[i].spawned.ended, BIDE_FOREVER), 0);
        assert_true(sleepers[i].woken - begun >= 3 * MILLISECOND);
    }
    assert_int_equal(bide_atomic_load(&count, relaxed), SLEEPERS);
}

static void a_strand_on_a_pool_sleeps(void **state)
{
    bide_thread_pool *pool;
    bide_strand strand;
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, WORKERS), 0);
    bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
    sleep_all(&strand.context);
    bide_strand_destroy(&strand);
    bide_thread_pool_destroy(pool);
}

static void sleeps_of_the_inline_scheduler_end_on_a_thread_of_their_own(void **state)
{
    (void)state;
    sleep_all(&bide_default_context);
}

/* Goes to and fro between a loop and a pool. */
struct traveller {
    bide_task task;
    bide_schedule_operation turn;
    bide_scheduler *there, *back;
    int i, rounds;
};

bide_coroutine(traveller_body)
{
    bide_begin(traveller_body, struct traveller * self);
    for (self->i = 0; self->i < self->rounds; self->i++) {
        bide_try(bide_schedule(&self->turn, self->there));
        bide_try(bide_schedule(&self->turn, self->back));
    }
    bide_end();
}

static void a_coroutine_goes_to_and_fro_between_a_loop_and_a_pool(void **state)
{
    enum { ROUNDS = 300 };
    static bide_run_loop loop;
    bide_thread_pool *pool;
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, WORKERS), 0);
    bide_run_loop_init(&loop);
    struct traveller traveller = {
        .there = bide_thread_pool_scheduler(pool), .back = &loop.scheduler, .rounds = ROUNDS};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&traveller.task, &traveller_body)),
                     0);
    assert_int_equal(traveller.i, ROUNDS);
    bide_run_loop_destroy(&loop);
    bide_thread_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_pass_a_lock_on),
        cmocka_unit_test(a_strand_on_a_pool_sleeps),
        cmocka_unit_test(sleeps_of_the_inline_scheduler_end_on_a_thread_of_their_own),
        cmocka_unit_test(a_coroutine_goes_to_and_fro_between_a_loop_and_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
