/*
 * The race of publishing and enlisting alone, without coroutines. There is one mock waiter for each number,
 * each at its own address; it is taken when it is free, and marked free when its wait ends. A producer
 * publishes number after number. (With 16 bits it skips some, or the lists would be too long to traverse
 * often.) Whenever the published number has changed, each consumer enlists a waiter for a number ahead and
 * one for a number behind, so that lists are taken, sorted and put back on both sides.
 *
 * Source: the test that the seed article on the sequence barrier runs under the ThreadSanitizer.
 */
#include "sync/meeting.h"

#include "bide/sequence16.h"
#include "bide/sequence8.h"

#include "paste.h"

struct race {
    uint32_t laps;
    uint32_t greatest_step; /* of the producer */
    uint64_t seed;
    bide_atomic(bool) stopping;
    bide_atomic(uint32_t) consumers; /* that still run */
    bide_atomic(uint32_t) begun;
    bide_atomic(uint32_t) at_once; /* of these, ended by suspend, or never suspended */
    bide_atomic(uint32_t) ended;
    bide_atomic(uint32_t) wrong; /* ended though not reached, or with an error */
};

/* The counts are relaxed, so that they do not add an ordering that the barrier must provide. */
static void race_init(struct race *race, uint32_t consumers, uint32_t laps, uint32_t greatest_step)
{
    race->laps = laps;
    race->greatest_step = greatest_step;
    race->seed = testing_seed();
    bide_atomic_init(&race->stopping, false);
    bide_atomic_init(&race->consumers, consumers);
    bide_atomic_init(&race->begun, 0);
    bide_atomic_init(&race->at_once, 0);
    bide_atomic_init(&race->ended, 0);
    bide_atomic_init(&race->wrong, 0);
}

static uint64_t race_step(struct race *race, uint64_t *random)
{
    return 1 + testing_random(random) % race->greatest_step;
}

static void race_count_begin(struct race *race)
{
    bide_atomic_fetch_add(&race->begun, 1, relaxed);
}

static void race_count_at_once(struct race *race, bool own_frame)
{
    bide_atomic_fetch_add(&race->at_once, 1, relaxed);
    if (!own_frame)
        bide_atomic_fetch_add(&race->wrong, 1, relaxed);
}

static void race_count_end(struct race *race, bool right)
{
    bide_atomic_fetch_add(&race->ended, 1, relaxed);
    if (!right)
        bide_atomic_fetch_add(&race->wrong, 1, relaxed);
}

static void race_assert_ended(struct race *race)
{
    uint32_t begun = bide_atomic_load(&race->begun, relaxed);
    printf("# %u waits, of which %u ended at once\n", begun,
           bide_atomic_load(&race->at_once, relaxed));
    assert_int_equal(bide_atomic_load(&race->wrong, relaxed), 0);
    assert_int_equal(bide_atomic_load(&race->ended, relaxed), begun);
}

#define BIDE_SEQUENCE      uint8_t
#define BIDE_SEQUENCE_BITS 8
#include "sync/waiter_list_race_cases.h"
#undef BIDE_SEQUENCE
#undef BIDE_SEQUENCE_BITS

#define BIDE_SEQUENCE      uint16_t
#define BIDE_SEQUENCE_BITS 16
#include "sync/waiter_list_race_cases.h"
#undef BIDE_SEQUENCE
#undef BIDE_SEQUENCE_BITS

static void one_consumer_with_8_bits_leaves_no_waiter(void **state)
{
    (void)state;
    race8_run(1, rounds_of(600), 1);
}

static void two_consumers_with_8_bits_leave_no_waiter(void **state)
{
    (void)state;
    race8_run(2, rounds_of(600), 1);
}

static void one_consumer_with_16_bits_leaves_no_waiter(void **state)
{
    (void)state;
    race16_run(1, rounds_of(600), 400);
}

static void two_consumers_with_16_bits_leave_no_waiter(void **state)
{
    (void)state;
    race16_run(2, rounds_of(600), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_consumer_with_8_bits_leaves_no_waiter),
        cmocka_unit_test(two_consumers_with_8_bits_leave_no_waiter),
        cmocka_unit_test(one_consumer_with_16_bits_leaves_no_waiter),
        cmocka_unit_test(two_consumers_with_16_bits_leave_no_waiter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
