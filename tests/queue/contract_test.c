/* The contract that all queues share (queues.h), by one thread, shown for each. */
#include "queue/contract_cases.h"

#define TEST(name)                                               \
    static void test_##name(void **state)                        \
    {                                                            \
        assert_true(contract_run(*state, name, testing_seed())); \
    }

TEST(an_empty_queue_has_nothing)
TEST(what_is_pushed_first_is_popped_first)
TEST(it_is_full_at_its_capacity)
TEST(a_batch_keeps_its_order)
TEST(a_batch_may_be_moved_in_part)
TEST(a_batch_of_none_moves_none)
TEST(closed_it_takes_no_more_and_what_is_in_it_is_popped)
TEST(closed_it_gives_batches_to_the_end)
TEST(one_comes_when_another_has_left)
TEST(after_heavy_use_a_burst_comes_out_whole)
TEST(at_random_it_answers_what_it_must)

#define CASE(name, needs)         \
    {                             \
#name, test_##name, needs \
    }

int main(void)
{
    static const queue_case cases[] = {
        CASE(an_empty_queue_has_nothing, 0),
        CASE(what_is_pushed_first_is_popped_first, 0),
        CASE(it_is_full_at_its_capacity, QUEUE_BOUNDED),
        CASE(a_batch_keeps_its_order, 0),
        CASE(a_batch_may_be_moved_in_part, 0),
        CASE(a_batch_of_none_moves_none, 0),
        CASE(closed_it_takes_no_more_and_what_is_in_it_is_popped, 0),
        CASE(closed_it_gives_batches_to_the_end, 0),
        CASE(one_comes_when_another_has_left, 0),
        CASE(after_heavy_use_a_burst_comes_out_whole, 0),
        CASE(at_random_it_answers_what_it_must, 0),
    };
    return queue_cases_run("contract", cases, sizeof cases / sizeof cases[0]);
}
