/* The cases for each type of sequence; sequence_test.c includes this once for each. */

#define TRAIT_(name) PASTE3(bide_sequence, BIDE_SEQUENCE_BITS, name)
#define CASE_(name)  PASTE3(sequence, BIDE_SEQUENCE_BITS, name)
#define SIGNED_      PASTE3(bide_sequence, BIDE_SEQUENCE_BITS, _signed)

/* Numbers that are about to wrap, and those at which the signed type wraps. */
static const BIDE_SEQUENCE CASE_(_bases)[] = {
    0,
    1,
    (BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 2 - 1),
    (BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 2),
    (BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 2 + 1),
    (BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 2 + 2),
    (BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 - 1),
    (BIDE_SEQUENCE)-1,
};

static void CASE_(_initial_is_the_one_before_0)(void **state)
{
    (void)state;
    assert_true((BIDE_SEQUENCE)(TRAIT_(_initial)() + 1) == 0);
    assert_true(TRAIT_(_precedes)(TRAIT_(_initial)(), 0));
    assert_false(TRAIT_(_precedes)(0, TRAIT_(_initial)()));
}

/*
 * Checks the results of the three functions for `b`, which lies `ahead` ahead of `a`, `ahead` being
 * less than half.
 */
static void CASE_(_check_ahead)(BIDE_SEQUENCE a, BIDE_SEQUENCE ahead)
{
    BIDE_SEQUENCE b = (BIDE_SEQUENCE)(a + ahead);
    assert_true(TRAIT_(_distance)(a, b) == ahead);
    assert_true(TRAIT_(_distance)(b, a) == 0);
    assert_true(TRAIT_(_precedes)(a, b) == (ahead != 0));
    assert_false(TRAIT_(_precedes)(b, a));
    assert_true(TRAIT_(_difference)(b, a) == (SIGNED_)ahead);
    assert_true(TRAIT_(_difference)(a, b) == -(SIGNED_)ahead);
}

static void CASE_(_up_to_half_the_range_is_ahead_and_more_is_behind)(void **state)
{
    (void)state;
    const BIDE_SEQUENCE half = (BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 2 + 1);
    for (size_t i = 0; i < sizeof CASE_(_bases) / sizeof CASE_(_bases)[0]; i++) {
        BIDE_SEQUENCE base = CASE_(_bases)[i];
        CASE_(_check_ahead)(base, 0);
        CASE_(_check_ahead)(base, 1);
        CASE_(_check_ahead)(base, 2);
        CASE_(_check_ahead)(base, (BIDE_SEQUENCE)(half - 2));
        CASE_(_check_ahead)(base, (BIDE_SEQUENCE)(half - 1));
        /* One past half: `base` lies less than half ahead of it, so it lies behind `base`. */
        CASE_(_check_ahead)((BIDE_SEQUENCE)(base + half + 1), (BIDE_SEQUENCE)(half - 1));
        CASE_(_check_ahead)((BIDE_SEQUENCE)(base + half + 2), (BIDE_SEQUENCE)(half - 2));
    }
}

static void CASE_(_at_half_the_range_each_precedes_the_other)(void **state)
{
    (void)state;
    const BIDE_SEQUENCE half = (BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 2 + 1);
    for (size_t i = 0; i < sizeof CASE_(_bases) / sizeof CASE_(_bases)[0]; i++) {
        BIDE_SEQUENCE a = CASE_(_bases)[i];
        BIDE_SEQUENCE b = (BIDE_SEQUENCE)(a + half);
        assert_true(TRAIT_(_precedes)(a, b));
        assert_true(TRAIT_(_precedes)(b, a));
        assert_true(TRAIT_(_distance)(a, b) == half);
        assert_true(TRAIT_(_distance)(b, a) == half);
        /* The greatest number of the signed type: positive, as it precedes. */
        assert_true(TRAIT_(_difference)(a, b) == (SIGNED_)(half - 1));
        assert_true(TRAIT_(_difference)(b, a) == (SIGNED_)(half - 1));
        assert_true(TRAIT_(_difference)(a, b) > 0);
    }
}

static int CASE_(_run)(void)
{
    const struct CMUnitTest tests[] = {
        TESTING_CASE(CASE_(_initial_is_the_one_before_0)),
        TESTING_CASE(CASE_(_up_to_half_the_range_is_ahead_and_more_is_behind)),
        TESTING_CASE(CASE_(_at_half_the_range_each_precedes_the_other)),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#undef TRAIT_
#undef CASE_
#undef SIGNED_
