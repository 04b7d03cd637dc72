/*
 * Which of two numbers that wrap around comes first: on 8 bits for every pair, on the others where half
 * the range ends.
 */
#include "testing.h"

#include "bide/sequence.h"

/* (its argument is expanded before cmocka makes a name of it) */
#define TESTING_CASE(function) cmocka_unit_test(function)

#define BIDE_SEQUENCE_TEMPLATE "base/sequence_cases.h"
#include "each_sequence.h"

#if TESTING_8_BITS
static void eight_bits_as_seen_from_0_and_from_128(void **state)
{
    (void)state;
    assert_true(bide_sequence8_precedes(0, 127));
    assert_true(bide_sequence8_precedes(0, 128));
    assert_false(bide_sequence8_precedes(0, 129));
    assert_true(bide_sequence8_precedes(128, 255));
    assert_true(bide_sequence8_precedes(128, 0));
    assert_false(bide_sequence8_precedes(128, 1));
}

static void eight_bits_as_seen_from_255_and_from_127(void **state)
{
    (void)state;
    assert_int_equal(bide_sequence8_initial(), 255);
    assert_true(bide_sequence8_precedes(255, 126));
    assert_true(bide_sequence8_precedes(255, 127));
    assert_false(bide_sequence8_precedes(255, 128));
    assert_true(bide_sequence8_precedes(127, 254));
    assert_true(bide_sequence8_precedes(127, 255));
    assert_false(bide_sequence8_precedes(127, 0));
}

static void the_three_agree_on_every_pair_of_8_bits(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            bool precedes = bide_sequence8_precedes((uint8_t)a, (uint8_t)b);
            assert_int_equal(precedes, bide_sequence8_distance((uint8_t)a, (uint8_t)b) > 0);
            assert_int_equal(precedes, bide_sequence8_difference((uint8_t)b, (uint8_t)a) > 0);
        }
    }
}

static void they_are_the_walk_around_the_circle_on_every_pair_of_8_bits(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        uint8_t b = (uint8_t)a;
        for (int steps = 0; steps < 256; steps++, b++) {
            /* From a to b it is so many steps forward, or, if fewer, so many back. */
            int signed_steps = steps < 128 ? steps : steps - 256;
            if (steps == 128)
                signed_steps =
                    127; /* the difference that does not fit, with the sign of precedes */
            assert_int_equal(bide_sequence8_difference(b, (uint8_t)a), signed_steps);
            assert_int_equal(bide_sequence8_distance((uint8_t)a, b), steps <= 128 ? steps : 0);
            assert_int_equal(bide_sequence8_precedes((uint8_t)a, b), steps >= 1 && steps <= 128);
        }
        assert_int_equal(b, a);
    }
}

#endif

int main(void)
{
    int failed = RUN_EACH_SEQUENCE(sequence);
#if TESTING_8_BITS
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_bits_as_seen_from_0_and_from_128),
        cmocka_unit_test(eight_bits_as_seen_from_255_and_from_127),
        cmocka_unit_test(the_three_agree_on_every_pair_of_8_bits),
        cmocka_unit_test(they_are_the_walk_around_the_circle_on_every_pair_of_8_bits),
    };
    failed += cmocka_run_group_tests(tests, NULL, NULL);
#endif
    return failed;
}
