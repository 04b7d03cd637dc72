/*
 * The contract of queues with threads at random (contract_stress_test.c), where each thread is often delayed before one
 * of its atomic operations, as if it were preempted there. So mistakes that need two threads in the middle of an
 * operation are met on two processors as well. BIDE_ROUNDS multiplies the rounds.
 */
#include "queue/histories.h"

static bide_atomic(uint64_t) steppers;
static _Thread_local uint64_t step_random;

static void step(void)
{
    if (step_random == 0)
        step_random = bide_atomic_fetch_add(&steppers, 1, relaxed) + 1;
    uint64_t number = testing_random(&step_random);
    if (number % 16 == 0)
        bide_platform.yield();
    else if (number % 16 == 1)
        random_moment(&step_random, 100);
}

#include "queue/stepped_atomic.h"

#include "queue/queues.c" /* NOLINT(bugprone-suspicious-include) */
#include "queue/stepped_sources.h"

enum { ROUNDS = 4, OPERATIONS = 30 };

static bool run(const queue_kind *kind, bool closes)
{
    uint64_t seed = testing_seed();
    fflush(stdout); /* if it hangs */
    return history_run(kind, rounds_of(ROUNDS), OPERATIONS, closes, seed);
}

static void what_threads_see_is_what_a_queue_does(void **state)
{
    assert_true(run(*state, false));
}

static void closed_in_the_middle_it_gives_what_it_has_taken_and_ends(void **state)
{
    assert_true(run(*state, true));
}

int main(void)
{
#define CASE(name)     \
    {                  \
#name, name, 0 \
    }
    static const queue_case cases[] = {
        CASE(what_threads_see_is_what_a_queue_does),
        CASE(closed_in_the_middle_it_gives_what_it_has_taken_and_ends),
    };
#undef CASE
    return queue_cases_run("contract_preempted", cases, sizeof cases / sizeof cases[0]);
}
