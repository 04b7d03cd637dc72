/*
 * When the proxy looks up and checks a server (programs/proxy/due.h), with times of the test's own.
 */
#define _GNU_SOURCE
#include "../../../programs/proxy/due.h"
#include "testing.h"

#define SECOND UINT64_C(1000000000)

/* The look-ups and checks within an hour, each of which takes some time. */
static void count_in_an_hour(struct due due, uint64_t every, bool has_address, unsigned *lookups,
                             unsigned *checks)
{
    *lookups = *checks = 0;
    for (uint64_t now = 0; now < 3600 * SECOND; now = due_next(&due, has_address)) {
        if (due_is_lookup(&due, now)) {
            ++*lookups;
            due_looked_up(&due, has_address, now);
        }
        if (due_is_check(&due, has_address, now)) {
            ++*checks;
            due_checked(&due, every, now);
        }
        assert_true(due_next(&due, has_address) > now);
    }
}

static void checks_cause_no_look_ups(void **state)
{
    (void)state;
    const uint64_t intervals[] = {SECOND / 50, SECOND, 7 * SECOND, 30 * SECOND, 100 * SECOND};
    unsigned lookups, checks;
    for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
        count_in_an_hour((struct due){0, 0}, intervals[i], true, &lookups, &checks);
        assert_int_equal(lookups, 120);
        assert_int_equal(checks, (3600 * SECOND + intervals[i] - 1) / intervals[i]);
    }
}

static void a_server_has_what_it_needs(void **state)
{
    (void)state;
    unsigned lookups, checks;
    count_in_an_hour((struct due){0, UINT64_MAX}, SECOND, true, &lookups, &checks); /* no checks */
    assert_int_equal(lookups, 120);
    assert_int_equal(checks, 0);
    count_in_an_hour((struct due){UINT64_MAX, 0}, SECOND, true, &lookups, &checks); /* no name */
    assert_int_equal(lookups, 0);
    assert_int_equal(checks, 3600);
    count_in_an_hour((struct due){0, 0}, SECOND, false, &lookups, &checks); /* no address */
    assert_int_equal(lookups, 720);
    assert_int_equal(checks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_cause_no_look_ups),
        cmocka_unit_test(a_server_has_what_it_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
