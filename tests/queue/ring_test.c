/*
 * A ring over the caller's memory: valid counts, the slot of a sequence across the wrap, and batches.
 */
#include "testing.h"

#include "bide/ring.h"
#include "bide/sequence.h"

typedef bide_ring(uint32_t) number_ring;

struct record {
    char name[24];
    uint16_t length;
};

typedef bide_ring(struct record) record_ring;

static void a_count_that_is_no_power_of_two_is_refused(void **state)
{
    (void)state;
    uint32_t memory[16];
    number_ring ring;
    const size_t refused[] = {0, 3, 5, 6, 7, 9, 12, 15, SIZE_MAX / 2, SIZE_MAX / 2 + 2, SIZE_MAX};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_false(bide_ring_fits(refused[i]));
        assert_false(bide_ring_init(&ring, memory, refused[i]));
    }
}

static void every_power_of_two_is_taken(void **state)
{
    (void)state;
    uint32_t one[1];
    uint32_t *volatile memory = one; /* (it is not touched, and the compiler does not see its size) */
    number_ring ring;
    for (size_t count = 1; count != 0; count *= 2) {
        assert_true(bide_ring_fits(count));
        assert_true(bide_ring_init(&ring, memory, count));
        assert_true(bide_ring_size(&ring) == count);
    }
}

static void the_slots_are_those_of_the_memory_given(void **state)
{
    (void)state;
    uint32_t memory[8];
    number_ring ring;
    assert_true(bide_ring_init(&ring, memory, 8));
    for (size_t i = 0; i < 8; i++)
        assert_ptr_equal(bide_ring_at(&ring, i), &memory[i]);
    assert_ptr_equal(bide_ring_at(&ring, 8), &memory[0]);
    assert_ptr_equal(bide_ring_at(&ring, 8 * 1000 + 5), &memory[5]);
}

static void a_ring_of_one_has_one_slot(void **state)
{
    (void)state;
    uint32_t memory[1];
    number_ring ring;
    assert_true(bide_ring_init(&ring, memory, 1));
    for (size_t sequence = 0; sequence < 5; sequence++)
        assert_ptr_equal(bide_ring_at(&ring, sequence), &memory[0]);
    assert_ptr_equal(bide_ring_at(&ring, SIZE_MAX), &memory[0]);
}

/* Walks `steps` sequences from the one before 0: each slot follows its neighbour, across the wrap too. */
#define WALK_(ring, memory, count, type, steps)                                               \
    do {                                                                                      \
        type sequence = (type)-1;                                                             \
        size_t slot = (count)-1;                                                              \
        for (size_t step = 0; step < (steps); step++) {                                       \
            assert_ptr_equal(bide_ring_at((ring), sequence), (memory) + slot);                \
            sequence = (type)(sequence + 1);                                                  \
            slot = slot + 1 == (count) ? 0 : slot + 1;                                        \
        }                                                                                     \
        assert_ptr_equal(bide_ring_at((ring), (type)-1), (memory) + ((count)-1));             \
        assert_ptr_equal(bide_ring_at((ring), (type)((type)-1 / 2)), (memory) + ((count)-1)); \
        assert_ptr_equal(bide_ring_at((ring), (type)((type)-1 / 2 + 1)), (memory) + 0);       \
    } while (0)

static void slots_follow_each_other_where_the_sequence_wraps(void **state)
{
    (void)state;
    static uint32_t memory[128];
    number_ring ring;
    for (size_t count = 1; count <= 128; count *= 2) {
        assert_true(bide_ring_init(&ring, memory, count));
        WALK_(&ring, memory, count, uint8_t, 1000);
        WALK_(&ring, memory, count, uint16_t, 140000);
        WALK_(&ring, memory, count, uint32_t, 1000);
        WALK_(&ring, memory, count, size_t, 1000);
    }
}

static void a_ring_of_structs_keeps_what_is_written_until_it_comes_round(void **state)
{
    (void)state;
    struct record records[4];
    record_ring ring;
    assert_true(bide_ring_init(&ring, records, 4));
    uint8_t sequence = 254; /* wraps among these four */
    for (unsigned i = 0; i < 4; i++, sequence++) {
        struct record *record = bide_ring_at(&ring, sequence);
        record->length = (uint16_t)(100 + i);
        snprintf(record->name, sizeof record->name, "record %u", i);
    }
    sequence = 254;
    for (unsigned i = 0; i < 4; i++, sequence++) {
        char name[24];
        snprintf(name, sizeof name, "record %u", i);
        assert_int_equal(bide_ring_at(&ring, sequence)->length, 100 + i);
        assert_string_equal(bide_ring_at(&ring, sequence)->name, name);
    }
    assert_ptr_equal(bide_ring_at(&ring, sequence), bide_ring_at(&ring, (uint8_t)254));
}

/* From each position, for each length, a batch is one span or two, which cover its slots in order. */
static void a_batch_is_one_span_or_two(void **state)
{
    (void)state;
    uint32_t memory[16];
    number_ring ring;
    for (size_t size = 1; size <= 16; size *= 2) {
        assert_true(bide_ring_init(&ring, memory, size));
        for (unsigned start = 0; start < 300; start++) {
            for (size_t count = 0; count <= size; count++) {
                uint8_t sequence = (uint8_t)start;
                size_t left = count, spans = 0;
                uint32_t *slots = NULL;
                for (size_t span; (span = bide_ring_span(&ring, sequence, left, &slots)) != 0;
                     left -= span) {
                    spans++;
                    for (size_t i = 0; i < span; i++, sequence++) {
                        assert_ptr_equal(&slots[i], bide_ring_at(&ring, sequence));
                        assert_true(&slots[i] < memory + size);
                    }
                }
                assert_true(left == 0);
                assert_true(spans == (count == 0                             ? 0
                                      : (start & (size - 1)) + count <= size ? 1
                                                                             : 2));
            }
        }
    }
}

static void a_span_ends_where_the_memory_does(void **state)
{
    (void)state;
    uint32_t memory[8];
    uint32_t *slots;
    number_ring ring;
    assert_true(bide_ring_init(&ring, memory, 8));
    assert_true(bide_ring_span(&ring, SIZE_MAX - 1, 5, &slots) == 2);
    assert_ptr_equal(slots, &memory[6]);
    assert_true(bide_ring_span(&ring, (uint16_t)65533, SIZE_MAX, &slots) == 3);
    assert_ptr_equal(slots, &memory[5]);
    assert_true(bide_ring_span(&ring, 0u, SIZE_MAX, &slots) == 8);
    assert_ptr_equal(slots, &memory[0]);
}

static void what_is_written_as_a_batch_is_read_as_one(void **state)
{
    (void)state;
    uint32_t memory[8] = {0};
    number_ring ring;
    assert_true(bide_ring_init(&ring, memory, 8));
    uint32_t number = 0;
    for (unsigned start = 0; start < 300; start++) {
        for (size_t count = 0; count <= 8; count++) {
            uint32_t from[8], to[9] = {0};
            for (size_t i = 0; i < count; i++)
                from[i] = ++number;
            to[count] = 77;
            bide_ring_write(&ring, (uint8_t)start, from, count);
            bide_ring_read(&ring, (uint8_t)start, to, count);
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(to[i], from[i]);
                assert_int_equal(*bide_ring_at(&ring, (uint8_t)(start + i)), from[i]);
            }
            assert_int_equal(to[count], 77);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_count_that_is_no_power_of_two_is_refused),
        cmocka_unit_test(every_power_of_two_is_taken),
        cmocka_unit_test(the_slots_are_those_of_the_memory_given),
        cmocka_unit_test(a_ring_of_one_has_one_slot),
        cmocka_unit_test(slots_follow_each_other_where_the_sequence_wraps),
        cmocka_unit_test(a_ring_of_structs_keeps_what_is_written_until_it_comes_round),
        cmocka_unit_test(a_batch_is_one_span_or_two),
        cmocka_unit_test(a_span_ends_where_the_memory_does),
        cmocka_unit_test(what_is_written_as_a_batch_is_read_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
