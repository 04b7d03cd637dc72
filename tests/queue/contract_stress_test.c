/*
 * The contract that all queues share (queues.h), with threads at random, shown for each: their results must be those of
 * a queue whose operations are atomic (histories.h). BIDE_ROUNDS multiplies the rounds.
 */
#include "queue/histories.h"

#include "../../src/base/thread_sanitizer.h"

/* (of each crew) */
enum {
    ROUNDS = BIDE_UNDER_TSAN_ ? 15 : 40,
    OPERATIONS = 50,
    LONG = BIDE_UNDER_TSAN_ ? 1000 : 4000
};

static bool run(const queue_kind *kind, uint32_t rounds, size_t operations, bool closes)
{
    uint64_t seed = testing_seed();
    fflush(stdout); /* if it hangs */
    return history_run(kind, rounds, operations, closes, seed);
}

static void what_threads_see_is_what_a_queue_does(void **state)
{
    assert_true(run(*state, rounds_of(ROUNDS), OPERATIONS, false));
}

static void what_threads_see_for_long_is_what_a_queue_does(void **state)
{
    assert_true(run(*state, rounds_of(1), LONG, false));
}

static void closed_in_the_middle_it_gives_what_it_has_taken_and_ends(void **state)
{
    assert_true(run(*state, rounds_of(ROUNDS), OPERATIONS, true));
}

int main(void)
{
#define CASE(name)     \
    {                  \
#name, name, 0 \
    }
    static const queue_case cases[] = {
        CASE(what_threads_see_is_what_a_queue_does),
        CASE(what_threads_see_for_long_is_what_a_queue_does),
        CASE(closed_in_the_middle_it_gives_what_it_has_taken_and_ends),
    };
#undef CASE
    return queue_cases_run("contract_stress", cases, sizeof cases / sizeof cases[0]);
}
