/*
 * A list that members leave from any position: compared with an array that has the members in their order.
 */
#include "testing.h"

#include "bide/handle.h"
#include "../src/sync/list.h"

enum { MEMBERS = 12, STEPS = 20000 };

typedef struct member {
    bide_awaiter awaiter;
    bide_awaiter *before;
} member;

static member members[MEMBERS];

static bide_awaiter **before_of(bide_awaiter *awaiter)
{
    return &((member *)(void *)awaiter)->before;
}

/* Traversed in both directions, the list matches the array; members that are in no list know it. */
static void check(bide_awaiter *first, bide_awaiter *const *order, size_t count)
{
    size_t in_line = 0;
    bide_awaiter *a = first;
    for (size_t i = 0; i < count; i++, a = a->link) {
        assert_ptr_equal(a, order[i]);
        assert_ptr_equal(*before_of(a), order[i == 0 ? count - 1 : i - 1]);
    }
    assert_null(a);
    for (size_t i = 0; i < MEMBERS; i++)
        in_line += members[i].before != NULL;
    assert_int_equal(in_line, count);
}

/* Makes a line of the first `count` members, in their order. */
static bide_awaiter *make(size_t count, bide_awaiter **order)
{
    memset(members, 0, sizeof members);
    for (size_t i = 0; i < count; i++) {
        order[i] = &members[i].awaiter;
        members[i].awaiter.link = i + 1 < count ? &members[i + 1].awaiter : NULL;
        members[i].before = &members[i == 0 ? count - 1 : i - 1].awaiter;
    }
    return count == 0 ? NULL : order[0];
}

static void each_leaves_wherever_it_stands(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    for (unsigned step = 0; step < STEPS; step++) {
        bide_awaiter *order[MEMBERS];
        size_t count = testing_random(&random) % (MEMBERS + 1);
        bide_awaiter *first = make(count, order);
        for (; count != 0; count--) {
            check(first, order, count);
            size_t i = testing_random(&random) % count;
            line_remove(&first, order[i], before_of);
            /* NOLINTNEXTLINE(bugprone-sizeof-expression): they are pointers */
            memmove(&order[i], &order[i + 1], (count - 1 - i) * sizeof *order);
        }
        check(first, order, 0);
        assert_null(first);
    }
}

static void those_that_step_out_step_in_again_where_they_stood(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    for (unsigned step = 0; step < STEPS; step++) {
        bide_awaiter *order[MEMBERS], *out[MEMBERS];
        size_t count = 1 + testing_random(&random) % MEMBERS;
        bide_awaiter *first = make(count, order);
        size_t outside = 0;
        for (size_t i = 0; i < count; i++) {
            if (testing_random(&random) % 2 == 0) {
                out[outside] = order[i];
                line_unlink(&first, out[outside++], before_of);
            }
        }
        while (outside != 0)
            line_reinsert(&first, out[--outside], before_of);
        check(first, order, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_leaves_wherever_it_stands),
        cmocka_unit_test(those_that_step_out_step_in_again_where_they_stood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
