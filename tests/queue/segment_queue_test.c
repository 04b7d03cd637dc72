/*
 * The segment queue's memory: it is released after a burst, a failed allocation loses no element, and elements may have
 * any size. (The contract that all queues share is tested over their table, queues.h.)
 */
#include "queue/counting_allocator.h"

#include "bide/segment_queue.h"

#include <errno.h>

enum { SEATS = 2, CELLS = 64, MANY = 100000 };

typedef bide_segment_queue(uint64_t) number_queue;

static struct {
    counting counting;
    bide_hazard_domain domain;
    bide_hazard_seat seats[SEATS];
    bide_hazard_seat *seat;
} the;

static int setup(void **state)
{
    (void)state;
    counting_init(&the.counting, 0);
    bide_hazard_init(&the.domain, the.seats, SEATS);
    the.seat = bide_hazard_join(&the.domain);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bide_hazard_leave(&the.domain, the.seat);
    bide_hazard_destroy(&the.domain);
    return out_of(&the.counting) == 0 ? 0 : -1;
}

/*
 * For any number of seats, and any of them that pops: the memory is within the limit of segment_queue.h, which is
 * small.
 */
static void what_is_popped_by_many_seats_goes(void **state)
{
    (void)state;
    enum { MANY_SEATS = 512, LONG_CELLS = 1024, SEGMENTS = 1000 };
    static bide_hazard_seat seats[MANY_SEATS];
    bide_hazard_seat *joined[MANY_SEATS];
    bide_hazard_domain domain;
    number_queue queue;
    size_t max = 0;
    bide_hazard_init(&domain, seats, MANY_SEATS);
    for (size_t i = 0; i < MANY_SEATS; i++)
        joined[i] = bide_hazard_join(&domain);
    assert_int_equal(bide_segment_queue_init(&queue, &domain, &the.counting.allocator, LONG_CELLS),
                     0);
    size_t segment = out_of(&the.counting);
    assert_in_range(segment, 1, 320 + BIDE_CACHE_LINE + LONG_CELLS * 16);
    for (uint64_t i = 0; i < (uint64_t)SEGMENTS * LONG_CELLS; i++) {
        uint64_t number;
        /* (each segment is used by another seat than the one before) */
        bide_hazard_seat *seat = joined[i / LONG_CELLS % MANY_SEATS];
        assert_int_equal(bide_segment_queue_push(&queue, seat, &i), 0);
        assert_int_equal(bide_segment_queue_pop(&queue, seat, &number), 0);
        if (i % LONG_CELLS == 0) {
            bide_hazard_clear(joined[(i / LONG_CELLS + MANY_SEATS - 3) % MANY_SEATS], 0);
            bide_hazard_clear(joined[(i / LONG_CELLS + MANY_SEATS - 3) % MANY_SEATS], 1);
        }
        max = out_of(&the.counting) > max ? out_of(&the.counting) : max;
    }
    assert_in_range(max / segment, 1, 16 * MANY_SEATS / (1 + LONG_CELLS / 32) + 10);
    for (size_t i = 0; i < MANY_SEATS; i++)
        bide_hazard_leave(&domain, joined[i]);
    bide_segment_queue_destroy(&queue);
    bide_hazard_destroy(&domain);
}

static void memory_goes_back_after_a_burst(void **state)
{
    (void)state;
    number_queue queue;
    assert_int_equal(bide_segment_queue_init(&queue, &the.domain, &the.counting.allocator, CELLS),
                     0);
    size_t segment = out_of(&the.counting);
    for (int burst = 0; burst < 3; burst++) {
        uint64_t number;
        for (uint64_t i = 0; i < MANY; i++)
            assert_int_equal(bide_segment_queue_push(&queue, the.seat, &i), 0);
        assert_true(out_of(&the.counting) >= MANY / CELLS * segment);
        for (uint64_t i = 0; i < MANY; i++) {
            assert_int_equal(bide_segment_queue_pop(&queue, the.seat, &number), 0);
            assert_true(number == i);
            /* popped segments are reclaimed meanwhile: the rest is bounded (hazard.h) */
            assert_true(out_of(&the.counting) <=
                        ((MANY - i) / CELLS + 2 + (size_t)2 * BIDE_HAZARDS * SEATS) * segment);
        }
        assert_int_equal(bide_segment_queue_pop(&queue, the.seat, &number), -EAGAIN);
        bide_hazard_clear(the.seat, 0);
        bide_hazard_clear(the.seat, 1);
        bide_hazard_scan(&the.domain, the.seat);
        assert_true(out_of(&the.counting) == segment);
    }
    bide_segment_queue_destroy(&queue);
    assert_true(out_of(&the.counting) == 0);
}

static void without_memory_nothing_is_lost(void **state)
{
    (void)state;
    for (uint32_t failing = 1; failing < 6; failing++) {
        number_queue queue;
        bide_atomic_store(&the.counting.calls, 0, relaxed);
        the.counting.failing = failing;
        int status = bide_segment_queue_init(&queue, &the.domain, &the.counting.allocator, CELLS);
        assert_int_equal(status, failing == 1 ? -ENOMEM : 0);
        if (status != 0)
            continue;
        uint64_t pushed = 0, number;
        while ((status = bide_segment_queue_push(&queue, the.seat, &pushed)) == 0)
            pushed++;
        assert_int_equal(status, -ENOMEM);
        assert_true(pushed == (uint64_t)CELLS * (failing - 1));
        for (int again = 0; again < 1000; again++)
            assert_int_equal(bide_segment_queue_push(&queue, the.seat, &pushed), -ENOMEM);
        the.counting.failing = 0;
        assert_int_equal(bide_segment_queue_push(&queue, the.seat, &pushed), 0);
        for (uint64_t i = 0; i <= pushed; i++) {
            assert_int_equal(bide_segment_queue_pop(&queue, the.seat, &number), 0);
            assert_true(number == i);
        }
        assert_int_equal(bide_segment_queue_pop(&queue, the.seat, &number), -EAGAIN);
        bide_segment_queue_destroy(&queue);
    }
}

struct record {
    char name[21];
};

static void elements_may_be_of_any_size(void **state)
{
    (void)state;
    bide_segment_queue(uint8_t) bytes;
    bide_segment_queue(struct record) records;
    bide_segment_queue(void *) pointers;
    bide_allocator *allocator = &the.counting.allocator;
    assert_int_equal(bide_segment_queue_init(&bytes, &the.domain, allocator, 3), 0);
    assert_int_equal(bide_segment_queue_init(&records, &the.domain, allocator, 3), 0);
    assert_int_equal(bide_segment_queue_init(&pointers, &the.domain, allocator, 3), 0);
    struct record out, in[10];
    void *pointer;
    for (unsigned i = 0; i < 10; i++) {
        uint8_t byte = (uint8_t)(200 + i);
        snprintf(in[i].name, sizeof in[i].name, "the record %u", i);
        pointer = &in[i];
        assert_int_equal(bide_segment_queue_push(&bytes, the.seat, &byte), 0);
        assert_int_equal(bide_segment_queue_push(&records, the.seat, &in[i]), 0);
        assert_int_equal(bide_segment_queue_push(&pointers, the.seat, &pointer), 0);
    }
    for (unsigned i = 0; i < 10; i++) {
        uint8_t byte = 0;
        assert_int_equal(bide_segment_queue_pop(&bytes, the.seat, &byte), 0);
        assert_int_equal(byte, 200 + i);
        assert_int_equal(bide_segment_queue_pop(&records, the.seat, &out), 0);
        assert_string_equal(out.name, in[i].name);
        assert_int_equal(bide_segment_queue_pop(&pointers, the.seat, &pointer), 0);
        assert_ptr_equal(pointer, &in[i]);
    }
    bide_segment_queue_destroy(&bytes);
    bide_segment_queue_destroy(&records);
    bide_segment_queue_destroy(&pointers);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_popped_by_many_seats_goes),
        TEST(memory_goes_back_after_a_burst),
        TEST(without_memory_nothing_is_lost),
        TEST(elements_may_be_of_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
