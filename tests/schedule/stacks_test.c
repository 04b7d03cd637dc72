/*
 * The stacks of the threads that the library starts: BIDE_THREAD_STACK, whatever the C library's default, or what the
 * owner's options ask for. The test sees each thread as it is created.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/bide.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEEN_MAX = 16, ASKED = 3 << 20 };

static size_t seen[SEEN_MAX];
static bide_atomic(unsigned) seen_count;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);

/* (Without attributes the size is the C library's choice: 0.) */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument)
{
    size_t size = 0;
    if (attributes != NULL)
        pthread_attr_getstacksize(attributes, &size);
    unsigned index = bide_atomic_fetch_add(&seen_count, 1, relaxed);
    if (index < SEEN_MAX)
        seen[index] = size;
    return __real_pthread_create(thread, attributes, function, argument);
}

/* How many threads were created since the last call; fails unless all have stacks of `size`. */
static unsigned created_with(size_t size)
{
    unsigned count = bide_atomic_load(&seen_count, relaxed);
    assert_true(count <= SEEN_MAX);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(seen[i], size);
    bide_atomic_store(&seen_count, 0, relaxed);
    return count;
}

static void of_a_thread_pool(void **state)
{
    bide_thread_pool *pool;
    bide_thread_pool_options options = {.threads = 2, .stack_size = ASKED};
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_thread_pool_destroy(pool);
    assert_int_equal(created_with(BIDE_THREAD_STACK), 2);
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
    bide_thread_pool_destroy(pool);
    assert_int_equal(created_with(ASKED), 2);
}

static void of_blocking_calls(void **state)
{
    bide_blocking *blocking;
    bide_blocking_options options = {
        .max_threads = 1, .min_threads = 1, .spare_threads = 1, .interrupt_signal = SIGURG};
    (void)state;
    assert_int_equal(bide_blocking_create_with(&blocking, &options), 0);
    bide_blocking_destroy(blocking);
    assert_int_equal(created_with(BIDE_THREAD_STACK), 2); /* with the supervisor */
    options.spare_threads = 0;
    options.interrupt_signal = 0;
    options.stack_size = ASKED;
    assert_int_equal(bide_blocking_create_with(&blocking, &options), 0);
    bide_blocking_destroy(blocking);
    assert_int_equal(created_with(ASKED), 1);
    options.stack_size = 1; /* also if no thread is started at first */
    assert_int_equal(bide_blocking_create_with(&blocking, &options), -EINVAL);
    options.min_threads = 0;
    assert_int_equal(bide_blocking_create_with(&blocking, &options), -EINVAL);
    assert_int_equal(created_with(ASKED), 0);
}

static void of_pools_of_loops(void **state)
{
    bide_thread_pool *pool;
    const bide_io_pool_options options = {.threads = {.threads = 2}};
    (void)state;
    assert_int_equal(bide_io_pool_create(&pool, &options), 0);
    bide_thread_pool_destroy(pool);
    assert_int_equal(created_with(BIDE_THREAD_STACK), 2);
}

static void of_signals_and_the_stall_detector(void **state)
{
    bide_signal listened;
    (void)state;
    assert_int_equal(bide_signal_listen(&listened, SIGUSR1), 0);
    bide_signal_destroy(&listened);
    assert_int_equal(created_with(BIDE_THREAD_STACK), 1);
    assert_int_equal(bide_stall_detector_start(BIDE_SECONDS(100), NULL, NULL), 0);
    assert_int_equal(bide_stall_detector_stop(), 0);
    assert_int_equal(created_with(BIDE_THREAD_STACK), 1);
}

static void of_the_monitor(void **state)
{
    char path[64];
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/bide-stacks-%ld", (long)getpid());
    const bide_monitor_options options = {.path = path};
    assert_int_equal(bide_monitor_start(&options), 0);
    assert_int_equal(bide_monitor_stop(), 0);
    assert_int_equal(created_with(BIDE_THREAD_STACK), 1);
}

/* A sleep on the inline scheduler that nobody awaits on a thread: the library's own thread keeps the time. */
static void of_the_timer_service(void **state)
{
    bide_sleep sleeping;
    bide_spawned spawned;
    bide_event_waiter wait;
    (void)state;
    bide_spawn(&spawned, &bide_default_context, bide_sleep_for(&sleeping, 1));
    bide_sync_wait(bide_event_wait(&wait, &spawned.ended));
    assert_int_equal(created_with(BIDE_THREAD_STACK), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_thread_pool),  cmocka_unit_test(of_blocking_calls),
        cmocka_unit_test(of_pools_of_loops), cmocka_unit_test(of_signals_and_the_stall_detector),
        cmocka_unit_test(of_the_monitor),    cmocka_unit_test(of_the_timer_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
