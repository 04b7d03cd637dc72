/*
 * A thread that is suspended at any point of an operation on a queue blocks no other (steps.h), for each queue. While
 * its push is in progress a ring may report that it is empty, or full, but it does report. The table of queues is
 * compiled again here, with everything that it uses, from sources that can be stepped through.
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
