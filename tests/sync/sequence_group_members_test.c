/*
 * Members of a barrier group that join and leave while others wait for it, for every type of sequence: one thread,
 * each step by hand.
 */
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/handle.h"
#include "bide/sequence_group.h"
#include "bide/stop.h"

#include <errno.h>

/* (their arguments are expanded before names are made of them) */
#define TESTING_CASE(function)  cmocka_unit_test(function)
#define TESTING_COROUTINE(name) bide_coroutine(name)

#define BIDE_SEQUENCE_TEMPLATE "sync/sequence_group_members_cases.h"
#include "each_sequence.h"

#if TESTING_HOSTED && BIDE_DEBUG && TESTING_8_BITS
static void destroy_a_group_with_a_member(void)
{
    bide_sequence_group rope;
    bide_sequence_group_member member;
    bide_sequence_barrier barrier;
    bide_sequence_group_init(&rope, NULL, 0);
    bide_sequence_barrier_init(&barrier, 0);
    bide_sequence_group_add(&rope, &member, &barrier);
    bide_sequence_group_destroy(&rope);
}

static void a_group_that_is_destroyed_with_members_is_misused(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_a_group_with_a_member, "rope",
                                     "destroy_a_group_with_a_member"));
    bide_sequence_group8 group;
    bide_sequence_group8_init(&group, NULL, 0);
    bide_sequence_group8_destroy(&group);
}
#endif

int main(void)
{
    int failed = RUN_EACH_SEQUENCE(members);
#if TESTING_HOSTED && BIDE_DEBUG && TESTING_8_BITS
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_that_is_destroyed_with_members_is_misused),
    };
    failed += cmocka_run_group_tests(tests, NULL, NULL);
#endif
    return failed;
}
