/* Scans of a table that changes between two steps, against a list of what must be visited. */
#include "../../../programs/kv/table.h"

#include "testing.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES = 4096 };

struct scanned {
    struct table table;
    uint64_t seed;
    size_t stay;          /* the names below are never removed */
    bool is_there[NAMES]; /* in the table */
    bool adds;            /* names, for a while; or removes them */
    unsigned visits[NAMES];
    bool has_shrunk;
};

static struct bytes name_of(char text[NUMBER_SIZE], size_t number)
{
    return (struct bytes){text, number_print(text, (int64_t)number)};
}

static void toggle(struct scanned *scanned, size_t number)
{
    struct table *table = &scanned->table;
    char text[NUMBER_SIZE];
    struct bytes name = name_of(text, number);
    struct entry **link = table_find(table, name, table_hash(table, name));
    assert_int_equal(link != NULL && *link != NULL, scanned->is_there[number]);
    if (scanned->is_there[number])
        memory_free(table_unlink(table, link));
    else
        assert_non_null(table_add(table, name, table_hash(table, name), 0));
    scanned->is_there[number] = !scanned->is_there[number];
}

static void change_some(struct scanned *scanned)
{
    if (testing_random(&scanned->seed) % 64 == 0)
        scanned->adds = !scanned->adds;
    for (size_t i = testing_random(&scanned->seed) % 128; i > 0; i--) {
        size_t number = testing_random(&scanned->seed) % NAMES;
        if (number >= scanned->stay && scanned->is_there[number] != scanned->adds)
            toggle(scanned, number);
    }
}

static void visit(void *argument, struct entry *entry)
{
    struct scanned *scanned = argument;
    int64_t number;
    assert_true(number_read(entry_key(entry), &number));
    assert_true(number >= 0 && number < NAMES && scanned->is_there[number]);
    scanned->visits[number]++;
}

static size_t smaller_size(const struct table *table)
{
    size_t size = table->sizes[0];
    return table->buckets[1] != NULL && table->sizes[1] < size ? table->sizes[1] : size;
}

static void begin_scan(struct scanned *scanned, uint64_t seed)
{
    const uint64_t key[2] = {seed, 2};
    *scanned = (struct scanned){.seed = seed};
    scanned->stay = testing_random(&scanned->seed) % 64 + 1;
    table_init(&scanned->table, key);
    for (size_t i = 0; i < NAMES; i++) {
        if (i < scanned->stay || testing_random(&scanned->seed) % 2 == 0)
            toggle(scanned, i);
    }
}

static void each_entry_that_stays_is_visited_once(void **state)
{
    enum { SCANS = 24 };
    static struct scanned scanned;
    uint64_t seed = testing_seed();
    size_t shrunk = 0;
    (void)state;
    for (int i = 0; i < SCANS; i++) {
        size_t cursor = 0;
        begin_scan(&scanned, testing_random(&seed));
        do {
            cursor = table_scan_once(&scanned.table, cursor, visit, &scanned);
            change_some(&scanned);
            scanned.has_shrunk |= (cursor & ~(smaller_size(&scanned.table) - 1)) != 0;
        } while (cursor != 0);
        for (size_t number = 0; number < NAMES; number++)
            assert_true(scanned.visits[number] <= 1 &&
                        (number >= scanned.stay || scanned.visits[number] == 1));
        shrunk += scanned.has_shrunk;
        while (!table_free_some(&scanned.table, 1024))
            continue;
    }
    assert_true(shrunk > 0); /* (some of them below a cursor) */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry_that_stays_is_visited_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
