/*
 * The contract of both timer structures: timers come out in the order of their times, and in insertion order for
 * equal times; any timer can be removed; a million do not exhaust the stack. Before including it, define TIMERS(name)
 * as the name of a function or the type.
 */
#include "testing.h"

#include "bide/extend/timer.h"

typedef TIMERS_TYPE timers_type;

static bool is_set(const bide_timer *timer)
{
    return timer->place != NULL;
}

static void insert(timers_type *timers, bide_timer *timer, uint64_t time)
{
    bide_timer_init(timer, time);
    TIMERS(insert)(timers, timer);
}

static bide_timer *take_first(timers_type *timers)
{
    bide_awaiter *first = timers->first;
    assert_non_null(first);
    assert_true(TIMERS(remove)(timers, bide_container_of(first, bide_timer, awaiter)));
    return bide_container_of(first, bide_timer, awaiter);
}

/* ---- A few ---- */

static void the_next_time_is_that_of_the_earliest(void **state)
{
    (void)state;
    timers_type timers;
    TIMERS(init)(&timers);
    assert_true(TIMERS(next)(&timers) == BIDE_FOREVER);
    bide_timer a, b, c;
    bide_timer_init(&a, 20);
    bide_timer_init(&b, 30);
    bide_timer_init(&c, 10);
    assert_true(TIMERS(insert)(&timers, &a));
    assert_false(TIMERS(insert)(&timers, &b));
    assert_int_equal(TIMERS(next)(&timers), 20);
    assert_true(TIMERS(insert)(&timers, &c));
    assert_int_equal(TIMERS(next)(&timers), 10);
    assert_true(TIMERS(remove)(&timers, &c));
    assert_int_equal(TIMERS(next)(&timers), 20);
}

static void what_is_set_nowhere_is_not_removed(void **state)
{
    (void)state;
    timers_type timers;
    TIMERS(init)(&timers);
    bide_timer timer;
    bide_timer_init(&timer, 1);
    assert_false(TIMERS(remove)(&timers, &timer));
    TIMERS(insert)(&timers, &timer);
    assert_true(TIMERS(remove)(&timers, &timer));
    assert_false(TIMERS(remove)(&timers, &timer));
    assert_null(timers.first);
}

static void only_what_is_due_is_taken(void **state)
{
    (void)state;
    timers_type timers;
    TIMERS(init)(&timers);
    bide_timer timer[4];
    static const uint64_t times[] = {11, 10, 9, 12};
    for (int i = 0; i < 4; i++)
        insert(&timers, &timer[i], times[i]);
    bide_awaiter_chain due = {NULL, NULL};
    TIMERS(take_due)(&timers, 8, &due);
    assert_null(due.first);
    TIMERS(take_due)(&timers, 10, &due);
    assert_ptr_equal(due.first, &timer[2].awaiter);
    assert_ptr_equal(due.first->link, &timer[1].awaiter);
    assert_ptr_equal(due.last, &timer[1].awaiter);
    assert_null(due.last->link);
    assert_false(is_set(&timer[1]));
    assert_true(is_set(&timer[0]));
    TIMERS(take_due)(&timers, UINT64_MAX, &due);
    assert_ptr_equal(due.last, &timer[3].awaiter);
    assert_null(timers.first);
}

static void forever_never_comes(void **state)
{
    (void)state;
    timers_type timers;
    TIMERS(init)(&timers);
    bide_timer forever, last;
    insert(&timers, &forever, BIDE_FOREVER);
    assert_true(TIMERS(next)(&timers) == BIDE_FOREVER);
    insert(&timers, &last, BIDE_FOREVER - 1);
    bide_awaiter_chain due = {NULL, NULL};
    TIMERS(take_due)(&timers, UINT64_MAX, &due);
    assert_ptr_equal(due.first, &last.awaiter);
    assert_null(due.first->link);
    assert_true(TIMERS(remove)(&timers, &forever));
}

enum { TIES = 300 };

static void equal_times_come_in_the_order_of_arrival(void **state)
{
    (void)state;
    static bide_timer tied[3][TIES];
    timers_type timers;
    TIMERS(init)(&timers);
    for (unsigned i = 0; i < TIES; i++) {
        for (unsigned time = 3; time-- > 0;)
            insert(&timers, &tied[time][i], time);
    }
    /* Removing some in between, and inserting them anew, puts them at the end. */
    for (unsigned i = 0; i < TIES; i += 3) {
        assert_true(TIMERS(remove)(&timers, &tied[1][i]));
        insert(&timers, &tied[1][i], 1);
    }
    for (unsigned i = 0; i < TIES; i++)
        assert_ptr_equal(take_first(&timers), &tied[0][i]);
    for (unsigned i = 0; i < TIES; i++) {
        if (i % 3 != 0)
            assert_ptr_equal(take_first(&timers), &tied[1][i]);
    }
    for (unsigned i = 0; i < TIES; i += 3)
        assert_ptr_equal(take_first(&timers), &tied[1][i]);
    for (unsigned i = 0; i < TIES; i++)
        assert_ptr_equal(take_first(&timers), &tied[2][i]);
    assert_null(timers.first);
}

#if TESTING_HOSTED

/* ---- Against a sorted list ---- */

enum { MODELLED = 400, STEPS = 200000, WIDE_ROUNDS = 60, WIDE_STEPS = 3000 };

typedef struct model {
    timers_type timers;
    bide_timer all[MODELLED];
    bide_timer *sorted[MODELLED]; /* the set timers, in the expected order */
    unsigned count;
    uint64_t now; /* what was asked last */
} model;

/* Behind all timers with the same time. */
static void model_insert(model *m, bide_timer *timer)
{
    unsigned at = m->count++;
    for (; at > 0 && m->sorted[at - 1]->time > timer->time; at--)
        m->sorted[at] = m->sorted[at - 1];
    m->sorted[at] = timer;
}

static void model_remove(model *m, unsigned at)
{
    m->count--;
    for (; at < m->count; at++)
        m->sorted[at] = m->sorted[at + 1];
}

static void model_take_due(model *m, uint64_t now)
{
    bide_awaiter_chain due = {NULL, NULL};
    TIMERS(take_due)(&m->timers, now, &due);
    for (bide_awaiter *a = due.first; a != NULL; a = a->link) {
        assert_true(m->count > 0);
        assert_ptr_equal(a, &m->sorted[0]->awaiter);
        assert_true(m->sorted[0]->time <= now);
        assert_false(is_set(m->sorted[0]));
        model_remove(m, 0);
    }
    assert_true(m->count == 0 || m->sorted[0]->time > now || m->sorted[0]->time == BIDE_FOREVER);
    m->now = now;
}

typedef uint64_t draw(model *m, uint64_t *random);

/* Many are equal. */
static uint64_t draw_small(model *m, uint64_t *random)
{
    uint64_t number = testing_random(random);
    (void)m;
    return (number >> 32) % ((number >> 20) % 2 != 0 ? 8 : 1000);
}

/* From a nanosecond to centuries off the time of the last poll, mostly after it. */
static uint64_t draw_wide(model *m, uint64_t *random)
{
    uint64_t number = testing_random(random);
    uint64_t off = testing_random(random) >> number % 64;
    switch ((number >> 6) % 16) {
    case 0:
        return BIDE_FOREVER - (number >> 10) % 2;
    case 1:
        return m->now - (off < m->now ? off : m->now);
    case 2: /* at the edge of a power of two */
        return m->now | ((UINT64_C(1) << (number >> 10) % 64) - 1);
    default:
        return off < BIDE_FOREVER - m->now ? m->now + off : BIDE_FOREVER;
    }
}

static uint64_t draw_now(model *m, draw *time, uint64_t *random)
{
    uint64_t number = testing_random(random);
    if (time == draw_small)
        return m->count != 0 ? m->sorted[number % 4 % m->count]->time : time(m, random);
    switch (number % 8) {
    case 0: /* as if nobody had polled for as long; it may even go back */
        return time(m, random) / ((number >> 10) % 2 + 1);
    case 1:
        return m->count != 0 ? m->sorted[(number >> 10) % m->count]->time : m->now;
    default: /* the next time, or a little earlier */
        return (m->count != 0 ? m->sorted[(number >> 10) % 3 % m->count]->time : m->now) -
               (number >> 20) % 2;
    }
}

static void agree(model *m, unsigned steps, unsigned phase, draw *draw_time, uint64_t *random)
{
    TIMERS(init)(&m->timers);
    m->count = 0;
    m->now = 0;
    for (unsigned i = 0; i < MODELLED; i++)
        bide_timer_init(&m->all[i], 0);
    for (unsigned step = 0; step < steps; step++) {
        uint64_t number = testing_random(random);
        bide_timer *timer = &m->all[number % MODELLED];
        /* Alternately more are inserted than removed, and more removed than inserted. */
        bool grows = step / phase % 2 == 0;
        if ((number >> 16) % 16 < (grows ? 11 : 4)) {
            if (is_set(timer))
                continue;
            bide_timer_init(timer, draw_time(m, random));
            model_insert(m, timer);
            assert_int_equal(TIMERS(insert)(&m->timers, timer), m->sorted[0] == timer);
        } else if ((number >> 24) % 8 != 0) {
            if (m->count == 0)
                continue;
            unsigned at = (unsigned)(number % m->count);
            assert_true(TIMERS(remove)(&m->timers, m->sorted[at]));
            model_remove(m, at);
        } else {
            model_take_due(m, draw_now(m, draw_time, random));
        }
        assert_true(TIMERS(next)(&m->timers) ==
                    (m->count != 0 ? m->sorted[0]->time : BIDE_FOREVER));
    }
    model_take_due(m, UINT64_MAX);
    while (m->count != 0) { /* the timers that are never due */
        assert_true(TIMERS(remove)(&m->timers, m->sorted[0]));
        model_remove(m, 0);
    }
    assert_null(m->timers.first);
}

static void it_agrees_with_a_sorted_list(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    agree(m, rounds_of(STEPS), 1000, draw_small, &random);
    free(m);
}

static void it_agrees_with_a_sorted_list_from_nanoseconds_to_centuries(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (unsigned i = 0; i < rounds_of(WIDE_ROUNDS); i++)
        agree(m, WIDE_STEPS, 50 << i % 5, draw_wide, &random);
    free(m);
}

/* ---- A million ---- */

enum { MANY = 1000000 };

typedef uint64_t time_of(uint64_t i, uint64_t *random);

static uint64_t rising(uint64_t i, uint64_t *random)
{
    (void)random;
    return i;
}

static uint64_t falling(uint64_t i, uint64_t *random)
{
    (void)random;
    return MANY - i;
}

static uint64_t equal(uint64_t i, uint64_t *random)
{
    (void)i;
    (void)random;
    return 7;
}

static uint64_t any(uint64_t i, uint64_t *random)
{
    (void)i;
    return testing_random(random) >> 1;
}

/* As seconds from now, of a machine that has been up for a week. */
static uint64_t usual(uint64_t i, uint64_t *random)
{
    (void)i;
    return UINT64_C(604800000000000) + testing_random(random) % UINT64_C(10000000000);
}

static void a_million_timers_come_in_order(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    static time_of *const ways[] = {rising, falling, equal, any, usual};
    const uint64_t many = 2 * (uint64_t)rounds_of(MANY / 2);
    bide_timer *all = malloc(many * sizeof *all);
    assert_non_null(all);
    for (unsigned way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        timers_type timers;
        TIMERS(init)(&timers);
        for (uint64_t i = 0; i < many; i++)
            insert(&timers, &all[i], ways[way](i, &random));
        /* Every other one is removed, from both ends of the array. */
        for (uint64_t i = 0; i < many / 2; i++)
            assert_true(TIMERS(remove)(&timers, &all[i % 2 == 0 ? i : many - i]));
        bide_awaiter_chain due = {NULL, NULL};
        TIMERS(take_due)(&timers, UINT64_MAX, &due);
        assert_null(timers.first);
        uint64_t count = 0;
        const bide_timer *before = NULL;
        for (bide_awaiter *a = due.first; a != NULL; a = a->link, count++) {
            const bide_timer *timer = bide_container_of(a, bide_timer, awaiter);
            if (before != NULL &&
                (timer->time < before->time || (timer->time == before->time && timer < before)))
                fail_msg("timer %llu came too late", (unsigned long long)(timer - all));
            before = timer;
        }
        assert_int_equal(count, many / 2);
    }
    free(all);
}

/* A slot's number of times; the wheel's finest is 65 us. */
enum { CROWD = 4000, SLOT = 1 << 16 };

/* Many in a slot: equal, nearly equal, near, all over it, before it, and one in the next. */
static uint64_t crowded_time(unsigned i, uint64_t *random)
{
    static const unsigned widths[] = {1, 16, 100, 1000, SLOT / 4};
    uint64_t begin = UINT64_C(1000) * SLOT;
    unsigned kind = (unsigned)(testing_random(random) % 6);
    uint64_t number = testing_random(random) >> 8;
    if (i == 0)
        return begin + SLOT;
    return kind < 5 ? begin + SLOT / 2 + kind * 2000 + number % widths[kind]
                    : begin - 1 - number % SLOT;
}

/* The wheel takes a slot that is due as a whole in another way. */
static void a_crowd_that_is_due_at_once_comes_in_order(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    static bide_timer all[CROWD];
    for (unsigned round = 0; round < 8; round++) {
        timers_type timers;
        TIMERS(init)(&timers);
        bide_awaiter_chain due = {NULL, NULL};
        TIMERS(take_due)(&timers, UINT64_C(1000) * SLOT + 1, &due);
        unsigned left = CROWD;
        for (unsigned i = 0; i < CROWD; i++)
            insert(&timers, &all[i], crowded_time(i, &random));
        for (unsigned i = 0; i < round; i++, left--) /* what is left are trees */
            take_first(&timers);
        for (unsigned i = 1; i < CROWD; i += 5) {
            if (is_set(&all[i])) {
                assert_true(TIMERS(remove)(&timers, &all[i]));
                left--;
            }
        }
        TIMERS(take_due)(&timers, UINT64_C(1001) * SLOT + round % 2, &due);
        assert_ptr_equal(timers.first, NULL);
        const bide_timer *before = NULL;
        for (bide_awaiter *a = due.first; a != NULL; a = a->link, left--) {
            const bide_timer *timer = bide_container_of(a, bide_timer, awaiter);
            assert_false(is_set(timer));
            assert_true(before == NULL || before->time < timer->time ||
                        (before->time == timer->time && before->number < timer->number));
            before = timer;
        }
        assert_int_equal(left, 0);
        assert_ptr_equal(before, &all[0]);
        assert_ptr_equal(due.last, &all[0].awaiter);
    }
}

/* Timers, each with its own memory, that are moved from slot to slot while others are removed, and their memory goes. */
enum { GOING = 5000, GONE_PER_LOOK = 40 };

typedef struct going {
    bide_timer timer;
    struct going **place;
} going;

static going *going_of(bide_awaiter *awaiter)
{
    return bide_container_of(bide_container_of(awaiter, bide_timer, awaiter), going, timer);
}

static void going_end(going *one)
{
    *one->place = NULL;
    free(one);
}

static void removed_timers_may_be_freed_while_others_move(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    static going *all[GOING];
    const uint64_t begin = UINT64_C(1000000000000);
    timers_type timers;
    TIMERS(init)(&timers);
    bide_awaiter_chain due = {NULL, NULL};
    TIMERS(take_due)(&timers, begin, &due);
    for (unsigned i = 0; i < GOING; i++) {
        all[i] = malloc(sizeof *all[i]);
        assert_non_null(all[i]);
        all[i]->place = &all[i];
        insert(&timers, &all[i]->timer, begin + 20000000000 + testing_random(&random) % 300000000);
    }
    unsigned left = GOING;
    uint64_t last = 0;
    for (uint64_t now = begin + 19500000000; left != 0; now += testing_random(&random) % 30000000) {
        due = (bide_awaiter_chain){NULL, NULL};
        TIMERS(take_due)(&timers, now, &due);
        for (bide_awaiter *next, *one = due.first; one != NULL; one = next, left--) {
            next = one->link;
            assert_true(going_of(one)->timer.time >= last && going_of(one)->timer.time <= now);
            last = going_of(one)->timer.time;
            going_end(going_of(one));
        }
        for (unsigned i = 0; i < GONE_PER_LOOK; i++) {
            going *one = all[testing_random(&random) % GOING];
            if (one == NULL)
                continue;
            assert_true(TIMERS(remove)(&timers, &one->timer));
            going_end(one);
            left--;
        }
    }
    assert_null(timers.first);
}

#endif

#if TESTING_HOSTED
#define HOSTED_CASES                                                                  \
    cmocka_unit_test(it_agrees_with_a_sorted_list),                                   \
        cmocka_unit_test(it_agrees_with_a_sorted_list_from_nanoseconds_to_centuries), \
        cmocka_unit_test(a_million_timers_come_in_order),                             \
        cmocka_unit_test(a_crowd_that_is_due_at_once_comes_in_order),                 \
        cmocka_unit_test(removed_timers_may_be_freed_while_others_move),
#else
#define HOSTED_CASES
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_next_time_is_that_of_the_earliest),
                                       cmocka_unit_test(what_is_set_nowhere_is_not_removed),
                                       cmocka_unit_test(only_what_is_due_is_taken),
                                       cmocka_unit_test(forever_never_comes),
                                       cmocka_unit_test(equal_times_come_in_the_order_of_arrival),
                                       HOSTED_CASES};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
