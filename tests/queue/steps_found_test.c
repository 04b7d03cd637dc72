/*
 * The harness that suspends threads in the middle of operations (steps.h), tried on queues that hold others up then,
 * and on queues that do not.
 */
#include "queue/steps.h"

#include "queue/steps_queues.h"
#include "queue/steps_scenes.h"

static void of_lock_free_queues_everything_goes_on(void **state)
{
    (void)state;
    assert_int_equal(play_all(&stepped_linked), PARKED);
    assert_int_equal(play_all(&stepped_bag), PARKED);
}

static void a_wait_for_a_lock_is_found(void **state)
{
    (void)state;
    assert_int_equal(play_all(&stepped_spinning), HELD_UP);
}

/* There is no lock, but no other thread completes the victim's operation. */
static void a_wait_for_the_others_next_step_is_found(void **state)
{
    (void)state;
    assert_int_equal(play_all(&stepped_unhelped), HELD_UP);
}

/* Nobody is held up, but the rest of the operation is done twice. */
static void what_is_lost_in_between_is_found(void **state)
{
    (void)state;
    assert_int_equal(play_all(&stepped_careless), WRONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_lock_free_queues_everything_goes_on),
        cmocka_unit_test(a_wait_for_a_lock_is_found),
        cmocka_unit_test(a_wait_for_the_others_next_step_is_found),
        cmocka_unit_test(what_is_lost_in_between_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
