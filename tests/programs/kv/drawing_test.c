/* Drawing entries of a table, counted in steps. */
#include "../../../programs/kv/drawing.h"

#include "testing.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t next_random(void *argument)
{
    return testing_random(argument);
}

static struct bytes name_of(char text[NUMBER_SIZE], int64_t number)
{
    return (struct bytes){text, number_print(text, number)};
}

/* Adds the numbers from 0 on; then removes all but the last `left`. */
static void fill_table(struct table *table, int64_t count, int64_t left)
{
    const uint64_t key[2] = {1, 2};
    char text[NUMBER_SIZE];
    table_init(table, key);
    for (int64_t i = 0; i < count; i++) {
        struct bytes name = name_of(text, i);
        struct entry *entry = table_add(table, name, table_hash(table, name), 0);
        assert_non_null(entry);
        table_find(table, name, table_hash(table, name)); /* (each operation moves some buckets) */
    }
    for (int64_t i = 0; i < count - left; i++) {
        struct bytes name = name_of(text, i);
        struct entry **link = table_find(table, name, table_hash(table, name));
        assert_true(link != NULL && *link != NULL);
        memory_free(table_unlink(table, link));
    }
    assert_int_equal(table->count, left);
}

static void empty_table(struct table *table)
{
    while (!table_free_some(table, 1024))
        continue;
}

/* Draws, and returns the steps. The entries' `snapshot` counts how often each was drawn. */
static uint64_t draw_entries(struct table *table, uint64_t draws, bool differ, uint64_t *state)
{
    struct drawing drawing;
    assert_true(drawing_begin(&drawing, table, draws, differ, next_random, state));
    for (uint64_t i = 0; i < draws; i++) {
        struct entry *entry = drawing_next(&drawing);
        assert_non_null(entry);
        assert_true(!differ || entry->snapshot == 0);
        entry->snapshot++;
        if (differ)
            assert_ptr_equal(drawing.entries[i], entry);
    }
    uint64_t steps = drawing.steps;
    drawing_end(&drawing);
    return steps;
}

struct tally {
    uint64_t sum, never, most;
};

static void tally_entry(void *argument, struct entry *entry)
{
    struct tally *tally = argument;
    tally->sum += entry->snapshot;
    tally->never += entry->snapshot == 0;
    if (entry->snapshot > tally->most)
        tally->most = entry->snapshot;
    entry->snapshot = 0;
}

static struct tally tally_table(struct table *table)
{
    struct tally tally = {0, 0, 0};
    size_t cursor = 0;
    do
        cursor = table_scan(table, cursor, tally_entry, &tally);
    while (cursor != 0);
    return tally;
}

static size_t buckets_of(const struct table *table)
{
    return table->sizes[0] + table->sizes[1];
}

/* Of a dense table, and of one from which almost all was removed: also while it shrinks. */
static void draws_take_few_steps(void **state)
{
    static const int64_t left[] = {4096, 300, 257, 200, 128, 64, 17, 2, 1};
    uint64_t seed = testing_seed();
    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        struct table table;
        fill_table(&table, 4096, left[i]);
        for (uint64_t draws = 1; draws <= 100000; draws *= 10) {
            /* (twice the average, and some more for few draws) */
            uint64_t steps = draw_entries(&table, draws, false, &seed);
            uint64_t limit = 2 * (buckets_of(&table) + table.count + draws) + 20000;
            if (steps > limit)
                print_error("%llu draws of %lld entries in %zu buckets: %llu steps\n",
                            (unsigned long long)draws, (long long)left[i], buckets_of(&table),
                            (unsigned long long)steps);
            assert_true(steps <= limit);
            assert_int_equal(tally_table(&table).sum, draws);
        }
        empty_table(&table);
    }
}

static void different_draws_are_different(void **state)
{
    uint64_t seed = testing_seed();
    (void)state;
    for (int64_t count = 1; count <= 4096; count *= 4) {
        struct table table;
        fill_table(&table, 4096, count);
        for (int64_t draws = 1; draws <= count; draws = draws < 16 ? draws + 1 : 2 * draws) {
            draw_entries(&table, (uint64_t)draws, true, &seed);
            struct tally tally = tally_table(&table);
            assert_int_equal(tally.sum, draws);
            assert_int_equal(tally.never, count - draws);
            assert_int_equal(tally.most, 1);
        }
        empty_table(&table);
    }
}

/* A thousand draws of each on average: none is drawn half as often as that, or twice as often. */
static void each_entry_has_the_same_chance(void **state)
{
    enum { ENTRIES = 160, TIMES = 1000 };
    uint64_t seed = testing_seed();
    (void)state;
    for (int is_listed = 0; is_listed < 2; is_listed++) {
        struct table table;
        uint64_t counts[ENTRIES] = {0}, piece = is_listed ? ENTRIES * TIMES : ENTRIES / 16;
        fill_table(&table, ENTRIES, ENTRIES);
        for (uint64_t drawn = 0; drawn < ENTRIES * TIMES; drawn += piece)
            draw_entries(&table, piece, false, &seed);
        for (int64_t i = 0; i < ENTRIES; i++) {
            char text[NUMBER_SIZE];
            struct bytes name = name_of(text, i);
            struct entry **link = table_find(&table, name, table_hash(&table, name));
            counts[i] = (*link)->snapshot;
            assert_in_range(counts[i], TIMES / 2, 2 * TIMES);
        }
        empty_table(&table);
    }
}

/* As if memory for a smaller table had never been there. */
static void a_table_that_did_not_shrink_is_walked(void **state)
{
    uint64_t seed = testing_seed(), steps = 0;
    struct table table;
    (void)state;
    fill_table(&table, 1, 1);
    struct entry **sparse = memory_allocate_zeroed(1 << 20, sizeof *sparse);
    struct entry *only = table_draw(&table, next_random, &seed, &steps);
    assert_non_null(sparse);
    assert_non_null(only);
    sparse[(1 << 20) - 1] = only;
    memory_free(table.buckets[0]);
    table.buckets[0] = sparse;
    table.sizes[0] = 1 << 20;
    steps = 0;
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(table_draw(&table, next_random, &seed, &steps), only);
    assert_true(steps <= 3 * (TABLE_DRAW_TRIES + (UINT64_C(1) << 20)));
    empty_table(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_take_few_steps),
        cmocka_unit_test(different_draws_are_different),
        cmocka_unit_test(each_entry_has_the_same_chance),
        cmocka_unit_test(a_table_that_did_not_shrink_is_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
