/*
 * Zero and impossible arguments of init functions: each is reported with its caller's place in debug builds, or ends
 * with the error that the header names, or means what the header says.
 */
#include "testing.h"

#include <bide/bide.h>

#include "misuse.h"

#include <stdint.h>

#if BIDE_DEBUG

static union {
    bide_strand strand;
    bide_buffer_pool buffers;
    bide_hazard_domain hazard;
    bide_connection_pool connections;
    bide_ring(int) ring;
} object;
static char memory[4096];
static int elements[4];
static bide_hazard_seat seats[2];
static bide_pooled_connection connections[2];
static bide_address address;

static void strand_on_null(void)
{
    bide_strand_init(&object.strand, NULL);
}

static void no_buffers(void)
{
    bide_buffer_pool_init(&object.buffers, memory, 16, 0);
}

static void too_many_buffers(void)
{
    bide_buffer_pool_init(&object.buffers, memory, 16, 32769);
}

static void buffers_of_size_0(void)
{
    bide_buffer_pool_init(&object.buffers, memory, 0, 4);
}

static void no_seats(void)
{
    bide_hazard_init(&object.hazard, seats, 0);
}

static void more_seats_than_there_are(void)
{
    bide_hazard_init(&object.hazard, seats, 3);
}

static void no_connections(void)
{
    bide_connection_pool_init(&object.connections, &address, connections, 0, 1);
}

static void more_connections_than_there_are(void)
{
    bide_connection_pool_init(&object.connections, &address, connections, 3, 1);
}

static void a_ring_larger_than_its_memory(void)
{
    (void)bide_ring_init(&object.ring, elements, 8);
}

static const struct row {
    void (*misuse)(void);
    const char *what;
    const char *function;
} rows[] = {
#define ROW(function, what)            \
    {                                  \
        function, what, #function " (" \
    }
    ROW(strand_on_null, "a strand on NULL: &object.strand"),
    ROW(no_buffers, "a pool of no buffers"),
    ROW(too_many_buffers, "more than 32768"),
    ROW(buffers_of_size_0, "buffers are smaller than a pointer"),
    ROW(no_seats, "a hazard domain without seats"),
    ROW(more_seats_than_there_are, "a hazard domain without seats, or of more than there are"),
    ROW(no_connections, "a pool of no connections"),
    ROW(more_connections_than_there_are, "or of more than there is room for"),
    ROW(a_ring_larger_than_its_memory, "a ring's memory is smaller than its size: &object.ring"),
};

static void what_has_no_error_is_reported_with_its_callers_place(void **state)
{
    unsigned failed = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        failed += !misuse_aborts_naming(rows[i].misuse, rows[i].what, rows[i].function);
    assert_int_equal(failed, 0);
}

#else

static void what_has_no_error_is_reported_with_its_callers_place(void **state)
{
    (void)state;
    skip();
}

#endif

bide_coroutine(nothing)
{
    bide_begin(nothing, bide_task * self);
    (void)self;
    bide_end();
}

static void the_others_end_with_their_error(void **state)
{
    static bide_server server;
    static bide_token_bucket bucket;
    bide_blocking *blocking;
    bide_file_watcher watcher;
    int four[4];
    bide_ring(int) ring;
    static char slots[4096];
    (void)state;
    bide_server_options options = {
        .body = &nothing, .size = sizeof(bide_connection), .slots = slots};
    assert_int_equal(bide_server_init(&server, &options), -EINVAL); /* no connections */
    options.max_connections = 1;
    options.size = 0;
    assert_int_equal(bide_server_init(&server, &options), -EINVAL);
    options.size = sizeof(bide_connection);
    options.body = NULL;
    assert_int_equal(bide_server_init(&server, &options), -EINVAL);
    assert_int_equal(bide_token_bucket_init(&bucket, 0, 1, 1), -EINVAL);
    assert_int_equal(bide_token_bucket_init(&bucket, 1, 0, 1), -EINVAL);
    assert_int_equal(bide_token_bucket_init(&bucket, 1, 1, 0), -EINVAL);
    assert_int_equal(bide_blocking_create(&blocking, 0), -EINVAL);
    assert_int_equal(bide_file_watcher_init(&watcher, slots, 0), -EINVAL);
    assert_false(bide_ring_init(&ring, four, 0));
    assert_false(bide_ring_init(&ring, four, 3));
}

static void count_numbers(void *argument, size_t begin, size_t end)
{
    assert_int_equal(end - begin, 1);
    ++*(int *)argument;
}

static void the_rest_means_what_the_header_says(void **state)
{
    bide_interval interval;
    bide_thread_pool *pool;
    int count = 0;
    (void)state;
    (bide_interval_init)(&interval, 1, 0, BIDE_MISSED_BURST); /* 1 nanosecond; the macro reports it */
    assert_int_equal(interval.period, 1);
    assert_int_equal(bide_thread_pool_create(&pool, 0), 0); /* a thread for each processor */
    bide_thread_pool_destroy(pool);
    bide_parallel_for(0, 3, 0, count_numbers, &count); /* a grain of 1 */
    assert_int_equal(count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_error_is_reported_with_its_callers_place),
        cmocka_unit_test(the_others_end_with_their_error),
        cmocka_unit_test(the_rest_means_what_the_header_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
