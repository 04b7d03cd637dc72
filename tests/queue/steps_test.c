/*
 * A thread that stops at any point of an operation on a queue stops nobody else (steps.h), for each queue; where its
 * push is under way a ring says that there is nothing to take, or no room, but it says so. All of the table of queues is
 * made once more here, with what it is made of, from sources that can be stepped through.
 */
#include "queue/steps.h"

#include "queue/queues.c" /* NOLINT(bugprone-suspicious-include) */
#include "queue/stepped_sources.h"
#include "queue/steps_scenes.h"

/* (Under a mutex there are no steps: nobody parks there.) */
static void a_thread_that_stops_holds_up_no_other(void **state)
{
    bool is_reference = *state == &locked || *state == &locked_unbounded;
    assert_int_equal(play_all(*state), is_reference ? ENDED : PARKED);
}

int main(void)
{
    static const queue_case cases[] = {
        {"a_thread_that_stops_holds_up_no_other", a_thread_that_stops_holds_up_no_other, 0},
    };
    return queue_cases_run("steps", cases, 1);
}
