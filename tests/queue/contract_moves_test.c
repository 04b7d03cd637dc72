/*
 * Each queue (queues.h) moves elements between threads, at full speed, and loses, doubles and reorders none
 * (moves.h). BIDE_ROUNDS multiplies the elements.
 */
#include "queue/moves.h"

enum { ELEMENTS = 100000 };

static void threads_move_each_element_once_and_in_order(void **state)
{
    const queue_kind *kind = *state;
    uint64_t seed = testing_seed();
    fflush(stdout); /* if it hangs */
    uint64_t count = rounds_of(ELEMENTS);
    if (count > ELEMENTS) /* a long test */
        count /= kind->slowness;
    assert_true(moves_run(kind, count, seed));
}

int main(void)
{
    static const queue_case cases[] = {
        {"threads_move_each_element_once_and_in_order", threads_move_each_element_once_and_in_order,
         0},
    };
    return queue_cases_run("moves", cases, 1);
}
