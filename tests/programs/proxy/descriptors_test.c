/*
 * The budget of descriptors (programs/proxy/descriptors.c): how it is divided, in a table and at random.
 */
#define _GNU_SOURCE
#include "../../../programs/proxy/descriptors.h"
#include "testing.h"

#include <sys/resource.h>
#include <unistd.h>

enum { MAX_SHARES = 6 };

static struct descriptors budget_of(size_t budget, size_t used)
{
    return (struct descriptors){.limit = budget + 10, .reserve = 10, .used_spare = used};
}

static struct share *link_shares(struct share *shares, size_t count)
{
    for (size_t i = 0; i < count; i++)
        shares[i].next = i + 1 < count ? &shares[i + 1] : NULL;
    return count != 0 ? shares : NULL;
}

static void each_listener_has_its_own_if_all_fit(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(1000, 0);
    struct share shares[] = {
        {.wanted = 300, .cost = 2}, {.wanted = 64, .cost = 1}, {.wanted = 43, .cost = 2}};
    descriptors_divide(&budget, link_shares(shares, 3));
    assert_int_equal(shares[0].max, 300);
    assert_int_equal(shares[1].max, 64);
    assert_int_equal(shares[2].max, 43);
    assert_int_equal(budget.spare, 1000 - 600 - 64 - 86);
    assert_false(budget.is_uneven);
}

static void otherwise_they_are_divided_evenly(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(1000, 0);
    struct share shares[] = {
        {.wanted = 10000, .cost = 2}, {.wanted = 5000, .cost = 2}, {.wanted = 1, .cost = 2}};
    descriptors_divide(&budget, link_shares(shares, 3));
    assert_int_equal(budget.spare, 250);
    assert_int_equal(shares[0].max, 187);
    assert_int_equal(shares[1].max, 187);
    assert_int_equal(shares[2].max, 1);
    assert_false(budget.is_uneven);
}

static void no_listener_has_less_than_one_connection(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(0, 0);
    struct share shares[] = {{.wanted = 10000, .cost = 2}, {.wanted = 1, .cost = 1}};
    descriptors_divide(&budget, link_shares(shares, 2));
    assert_int_equal(shares[0].max, 1);
    assert_int_equal(shares[1].max, 1);
    assert_int_equal(budget.spare, 0);
    assert_false(descriptors_take(&budget, 1));
}

static void connections_of_before_are_subtracted_until_they_end(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(800, 0);
    struct share shares[] = {{.wanted = 1000, .cost = 2, .live = 280},
                             {.wanted = 1000, .cost = 2},
                             {.wanted = 1000, .cost = 2, .live = 10, .is_ending = true}};
    descriptors_divide(&budget, link_shares(shares, 3));
    assert_int_equal(budget.spare, 200);
    assert_true(shares[0].max < shares[0].live);
    assert_int_equal(shares[1].max, (600 - 560 - 20) / 2);
    assert_true(budget.is_uneven);
    shares[0].live = 100;
    shares[2].live = 0;
    descriptors_divide(&budget, link_shares(shares, 3));
    assert_int_equal(shares[0].max, 150);
    assert_int_equal(shares[1].max, 150);
    assert_false(budget.is_uneven);
}

static void spare_ones_are_taken_and_given_back(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(16, 0);
    struct share shares[] = {{.wanted = 100, .cost = 2}};
    descriptors_divide(&budget, link_shares(shares, 1));
    assert_int_equal(budget.spare, 4);
    assert_true(descriptors_take(&budget, 2));
    assert_false(descriptors_take(&budget, 3));
    assert_true(descriptors_take(&budget, 2));
    assert_false(descriptors_take(&budget, 1));
    descriptors_give(&budget, 2);
    assert_true(descriptors_take(&budget, 1));
}

static unsigned divided; /* how often */

static void divide_once_more(struct descriptors *budget)
{
    divided++;
    budget->is_uneven = budget->used_spare > budget->spare;
}

static void spare_ones_given_back_are_divided_if_it_is_uneven(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(100, 40);
    struct share shares[] = {{.wanted = 100, .cost = 2}};
    budget.divide = divide_once_more;
    descriptors_divide(&budget, link_shares(shares, 1));
    assert_int_equal(shares[0].max, (100 - 40) / 2);
    assert_true(budget.is_uneven);
    divided = 0;
    descriptors_give(&budget, 10);
    assert_int_equal(divided, 1);
    assert_true(budget.is_uneven);
    descriptors_give(&budget, 5);
    assert_int_equal(divided, 2);
    assert_false(budget.is_uneven);
    descriptors_give(&budget, 5);
    assert_int_equal(divided, 2);
}

/* ---- The queue ---- */

enum { MAX_TAKEN = 16 };

static struct spare_waiter *taken[MAX_TAKEN];
static unsigned taken_count;

static void note_taken(struct spare_waiter *waiter)
{
    assert_false(waiter->is_queued);
    assert_true(taken_count < MAX_TAKEN);
    taken[taken_count++] = waiter;
}

static void init_waiters(struct spare_waiter *waiters, size_t count)
{
    taken_count = 0;
    for (size_t i = 0; i < count; i++)
        waiters[i] = (struct spare_waiter){.take = note_taken};
}

static void spare_ones_go_to_the_queue_in_its_order(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(100, 0);
    struct spare_waiter waiters[4];
    init_waiters(waiters, 4);
    budget.spare = budget.used_spare = 3;
    for (int i = 0; i < 4; i++)
        descriptors_wait(&budget, &waiters[i]);
    assert_int_equal(taken_count, 0);
    descriptors_leave(&budget, &waiters[1]);
    descriptors_leave(&budget, &waiters[1]);
    descriptors_give(&budget, 1);
    assert_int_equal(taken_count, 1);
    assert_ptr_equal(taken[0], &waiters[0]);
    descriptors_give(&budget, 2);
    assert_int_equal(taken_count, 3);
    assert_ptr_equal(taken[1], &waiters[2]);
    assert_ptr_equal(taken[2], &waiters[3]);
    assert_int_equal(budget.used_spare, 3);
    descriptors_wait(&budget, &waiters[1]);
    descriptors_leave(&budget, &waiters[1]);
    descriptors_give(&budget, 3);
    assert_int_equal(taken_count, 3);
    descriptors_wait(&budget, &waiters[1]); /* one is free */
    assert_int_equal(taken_count, 4);
    assert_int_equal(budget.used_spare, 1);
}

static struct descriptors *waited_for;

/* (as a client whose other requests wait) */
static void wait_again(struct spare_waiter *waiter)
{
    taken[taken_count++] = waiter;
    if (taken_count <= 2)
        descriptors_wait(waited_for, waiter);
}

static void one_that_waits_again_is_behind_the_others(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(100, 0);
    struct spare_waiter waiters[2];
    init_waiters(waiters, 2);
    waited_for = &budget;
    waiters[0].take = wait_again;
    budget.spare = budget.used_spare = 3;
    descriptors_wait(&budget, &waiters[0]);
    descriptors_wait(&budget, &waiters[1]);
    descriptors_give(&budget, 3);
    assert_int_equal(taken_count, 3);
    assert_ptr_equal(taken[0], &waiters[0]);
    assert_ptr_equal(taken[1], &waiters[1]);
    assert_ptr_equal(taken[2], &waiters[0]);
    assert_null(budget.first);
    assert_null(budget.last);
}

static void a_greater_share_serves_the_queue(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(100, 0);
    struct share shares[] = {{.wanted = 1000, .cost = 2, .live = 50}};
    struct spare_waiter waiters[2];
    init_waiters(waiters, 2);
    descriptors_divide(&budget, link_shares(shares, 1));
    assert_int_equal(budget.spare, 0);
    for (int i = 0; i < 2; i++)
        descriptors_wait(&budget, &waiters[i]);
    assert_int_equal(taken_count, 0);
    shares[0].live = 0;
    descriptors_divide(&budget, link_shares(shares, 1));
    assert_int_equal(taken_count, 2);
    assert_int_equal(budget.used_spare, 2);
}

static void nothing_is_uneven_if_each_listener_has_its_own(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(1000, 400);
    struct share shares[] = {{.wanted = 100, .cost = 2}};
    budget.divide = divide_once_more;
    descriptors_divide(&budget, link_shares(shares, 1));
    assert_int_equal(shares[0].max, 100);
    assert_int_equal(budget.spare, 800);
    assert_false(budget.is_uneven);
    divided = 0;
    descriptors_give(&budget, 1);
    assert_int_equal(divided, 0);
}

static void a_reload_needs_the_reserve_of_both(void **state)
{
    (void)state;
    struct descriptors budget = budget_of(100, 7);
    struct share shares[] = {{.live = 3, .cost = 2}, {.live = 5, .cost = 1, .is_ending = true}};
    assert_int_equal(descriptors_in_use(&budget, link_shares(shares, 2)), 3 * 2 + 5 + 7);
    assert_int_equal(descriptors_reserve(3, 2), descriptors_reload_reserve(3 + 3, 2 + 2));
    assert_true(descriptors_reload_reserve(3, 0) < descriptors_reload_reserve(3, 1));
}

static uint64_t draw_below(uint64_t *draw, uint64_t end)
{
    *draw = *draw * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (*draw >> 20) % end;
}

/* However many connections there are, no listener gets more than is left: the budget is kept, but for the reserve's part. */
static void the_budget_is_kept(void **state)
{
    (void)state;
    uint64_t draw = testing_seed();
    for (int i = 0; i < 200000; i++) {
        struct share shares[MAX_SHARES];
        size_t count = draw_below(&draw, MAX_SHARES + 1), size = draw_below(&draw, 3000), held = 0,
               sum = 0;
        struct descriptors budget =
            budget_of(size, draw_below(&draw, 4) == 0 ? draw_below(&draw, size + 1) : 0);
        for (size_t k = 0; k < count; k++) {
            shares[k] = (struct share){
                .wanted = 1 + draw_below(&draw, draw_below(&draw, 2) ? 1 << 20 : 200),
                .cost = 1 + (unsigned)draw_below(&draw, 2),
                .live = draw_below(&draw, 3) == 0 ? draw_below(&draw, 500) : 0,
                .is_ending = draw_below(&draw, 4) == 0};
            held += shares[k].cost * shares[k].live;
        }
        descriptors_divide(&budget, link_shares(shares, count));
        bool is_whole = true;
        for (size_t k = 0; k < count; k++) {
            bool accepts = !shares[k].is_ending && shares[k].max > shares[k].live;
            sum += shares[k].cost * (accepts ? shares[k].max : shares[k].live);
            is_whole &= shares[k].is_ending || shares[k].max == shares[k].wanted;
            assert_true(shares[k].is_ending ||
                        (shares[k].max >= 1 && shares[k].max <= shares[k].wanted));
            assert_true(budget.is_uneven || shares[k].is_ending || shares[k].live <= shares[k].max);
        }
        size_t spare = budget.used_spare > budget.spare ? budget.used_spare : budget.spare;
        size_t bound = held + budget.used_spare > size ? held + budget.used_spare : size;
        assert_true(sum + spare <= bound + 2 * count);
        assert_true(is_whole || count == 0 || budget.spare <= size / 4);
    }
}

static void the_limit_is_raised_and_what_is_open_subtracted(void **state)
{
    (void)state;
    struct rlimit limit;
    struct descriptors before, after;
    descriptors_init(&before);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(limit.rlim_cur == limit.rlim_max);
    assert_true(before.limit < limit.rlim_cur);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    descriptors_init(&after);
    close(ends[0]);
    close(ends[1]);
    assert_true(before.limit == after.limit + 2 || limit.rlim_cur > 1 << 28);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_listener_has_its_own_if_all_fit),
        cmocka_unit_test(otherwise_they_are_divided_evenly),
        cmocka_unit_test(no_listener_has_less_than_one_connection),
        cmocka_unit_test(connections_of_before_are_subtracted_until_they_end),
        cmocka_unit_test(spare_ones_are_taken_and_given_back),
        cmocka_unit_test(spare_ones_given_back_are_divided_if_it_is_uneven),
        cmocka_unit_test(spare_ones_go_to_the_queue_in_its_order),
        cmocka_unit_test(one_that_waits_again_is_behind_the_others),
        cmocka_unit_test(a_greater_share_serves_the_queue),
        cmocka_unit_test(nothing_is_uneven_if_each_listener_has_its_own),
        cmocka_unit_test(a_reload_needs_the_reserve_of_both),
        cmocka_unit_test(the_budget_is_kept),
        cmocka_unit_test(the_limit_is_raised_and_what_is_open_subtracted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
