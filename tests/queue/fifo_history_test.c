/*
 * The checker of histories: it finds each fault in a history made by hand, and none in good ones; on random small
 * histories it agrees with a search through all orders.
 */
#include "sync/meeting.h"
#include "queue/fifo_history.h"

#define PUSH(v, from, to)            \
    {                                \
        (v), (from), (to), FIFO_PUSH \
    }
#define POP(v, from, to)            \
    {                               \
        (v), (from), (to), FIFO_POP \
    }
#define NOTHING(from, to)           \
    {                               \
        0, (from), (to), FIFO_EMPTY \
    }
#define HISTORY(...) ((const fifo_operation[]){__VA_ARGS__})
#define FAULT_OF(...)                                                         \
    (fifo_history_check(HISTORY(__VA_ARGS__),                                 \
                        sizeof HISTORY(__VA_ARGS__) / sizeof(fifo_operation)) \
         .fault)

/* ---- By hand ---- */

static void histories_of_a_queue_are_good(void **state)
{
    (void)state;
    assert_int_equal(fifo_history_check(NULL, 0).fault, FIFO_GOOD);
    assert_int_equal(FAULT_OF(NOTHING(1, 2)), FIFO_GOOD);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2)), FIFO_GOOD);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), POP(1, 3, 4), NOTHING(5, 6)), FIFO_GOOD);
    /* one after the other, and two that stay */
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 3, 4), PUSH(3, 5, 6), PUSH(4, 7, 8),
                              POP(1, 9, 10), POP(2, 11, 12)),
                     FIFO_GOOD);
    /* at the same time, so in any order */
    assert_int_equal(FAULT_OF(PUSH(1, 1, 3), PUSH(2, 2, 4), POP(2, 5, 6), POP(1, 7, 8)), FIFO_GOOD);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 3, 4), POP(2, 5, 8), POP(1, 6, 7)), FIFO_GOOD);
    /* found while it is pushed; or not yet */
    assert_int_equal(FAULT_OF(PUSH(1, 1, 4), POP(1, 2, 3)), FIFO_GOOD);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 4), NOTHING(2, 3), POP(1, 5, 6)), FIFO_GOOD);
    /* empty between the pop of one and the push of another */
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), NOTHING(3, 10), POP(1, 4, 5), PUSH(2, 6, 7)),
                     FIFO_GOOD);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), NOTHING(4, 5), POP(1, 3, 6)), FIFO_GOOD);
}

static void what_was_never_pushed_is_found(void **state)
{
    (void)state;
    assert_int_equal(FAULT_OF(POP(1, 1, 2)), FIFO_NEVER_PUSHED);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), POP(1, 3, 4), POP(2, 5, 6)), FIFO_NEVER_PUSHED);
}

static void what_is_there_twice_is_found(void **state)
{
    (void)state;
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), POP(1, 3, 4), POP(1, 5, 6)), FIFO_POPPED_TWICE);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), POP(1, 3, 5), POP(1, 4, 6)), FIFO_POPPED_TWICE);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(1, 3, 4)), FIFO_PUSHED_TWICE);
}

static void what_is_popped_before_it_is_pushed_is_found(void **state)
{
    (void)state;
    assert_int_equal(FAULT_OF(POP(1, 1, 2), PUSH(1, 3, 4)), FIFO_POPPED_EARLY);
    assert_int_equal(FAULT_OF(PUSH(2, 1, 6), POP(1, 2, 3), PUSH(1, 4, 5)), FIFO_POPPED_EARLY);
}

static void what_overtakes_is_found(void **state)
{
    (void)state;
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 3, 4), POP(2, 5, 6), POP(1, 7, 8)),
                     FIFO_OUT_OF_ORDER);
    /* far apart, with overlapping others in between */
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(3, 3, 20), PUSH(2, 4, 5), POP(2, 6, 7),
                              POP(3, 8, 21), POP(1, 9, 10)),
                     FIFO_OUT_OF_ORDER);
    /* a value that is overtaken by one that left is lost */
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 3, 4), POP(2, 5, 6)), FIFO_OUT_OF_ORDER);
}

static void what_overtakes_in_a_batch_is_found(void **state)
{
    (void)state;
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 1, 2), POP(1, 3, 4), POP(2, 5, 6)), FIFO_GOOD);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 1, 2), POP(2, 3, 4), POP(1, 5, 6)),
                     FIFO_OUT_OF_ORDER);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 1, 2), POP(2, 3, 4)), FIFO_OUT_OF_ORDER);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 3, 4), POP(1, 5, 6), POP(2, 5, 6)), FIFO_GOOD);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 3, 4), POP(2, 5, 6), POP(1, 5, 6)),
                     FIFO_OUT_OF_ORDER);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 1, 2), POP(1, 3, 4), POP(2, 3, 4)), FIFO_GOOD);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 1, 2), POP(2, 3, 4), POP(1, 3, 4)),
                     FIFO_OUT_OF_ORDER);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), PUSH(2, 1, 2), POP(2, 3, 5), POP(1, 4, 6)), FIFO_GOOD);
}

static void nothing_found_where_something_was_is_found(void **state)
{
    (void)state;
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), NOTHING(3, 4)), FIFO_NOT_EMPTY);
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), NOTHING(3, 4), POP(1, 5, 6)), FIFO_NOT_EMPTY);
    /* three by turns */
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), NOTHING(3, 12), PUSH(2, 4, 5), POP(1, 6, 7),
                              PUSH(3, 8, 9), POP(2, 10, 11)),
                     FIFO_NOT_EMPTY);
    /* and one instant without */
    assert_int_equal(FAULT_OF(PUSH(1, 1, 2), NOTHING(3, 12), PUSH(2, 4, 7), POP(1, 6, 8),
                              PUSH(3, 9, 10), POP(2, 11, 13)),
                     FIFO_GOOD);
    /* a value that nobody popped stays */
    assert_int_equal(
        FAULT_OF(NOTHING(1, 2), PUSH(1, 3, 4), PUSH(2, 5, 6), POP(1, 7, 8), NOTHING(9, 10)),
        FIFO_NOT_EMPTY);
}

/* ---- By searching ---- */

enum { MOST = 9 };

typedef struct search {
    const fifo_operation *operations;
    size_t count;
    uint64_t queue[MOST];
} search;

/* Whether the operations outside `done` can follow, one by one, with `head` to `tail` in the queue. */
static bool can_follow(search *s, unsigned done, size_t head, size_t tail)
{
    if (done == (1U << s->count) - 1)
        return true;
    for (size_t i = 0; i < s->count; i++) {
        const fifo_operation *next = &s->operations[i];
        bool may = (done >> i & 1) == 0;
        for (size_t j = 0; j < s->count && may; j++)
            may = (done >> j & 1) != 0 || !fifo_precedes(&s->operations[j], next);
        if (!may)
            continue;
        size_t from = head, to = tail;
        if (next->kind == FIFO_PUSH)
            s->queue[to++] = next->value;
        else if (next->kind == FIFO_POP)
            may = head != tail && s->queue[from++] == next->value;
        else
            may = head == tail;
        if (may && can_follow(s, done | 1U << i, from, to))
            return true;
    }
    return false;
}

static bool is_linearizable(const fifo_operation *operations, size_t count)
{
    search s = {.operations = operations, .count = count};
    return can_follow(&s, 0, 0, 0);
}

/* An operation takes place at a moment, and begins and ends around it. */
typedef struct moment {
    uint64_t at; /* unique, as the number of the event is in its low bits */
    uint64_t *stamp;
} moment;

static int by_moment(const void *x, const void *y)
{
    const moment *a = x, *b = y;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Stamps for consecutive operations, which overlap by up to `spread`. */
static void give_stamps(uint64_t *random, fifo_operation *operations, size_t count, uint64_t spread)
{
    moment moments[2 * MOST] = {{0, NULL}};
    for (size_t i = 0; i < count; i++) {
        uint64_t at = (i + 100) * 1000;
        uint64_t before = testing_random(random) % spread, after = testing_random(random) % spread;
        moments[2 * i] = (moment){(at - before) << 8 | (2 * i), &operations[i].began};
        moments[2 * i + 1] = (moment){(at + 1 + after) << 8 | (2 * i + 1), &operations[i].ended};
    }
    qsort(moments, 2 * count, sizeof *moments, by_moment);
    for (size_t i = 0; i < 2 * count; i++)
        *moments[i].stamp = i + 1;
}

/* The operations of a queue. */
static void simulate(uint64_t *random, fifo_operation *operations, size_t count)
{
    uint64_t pushed = 0, popped = 0;
    for (size_t i = 0; i < count; i++) {
        fifo_operation *operation = &operations[i];
        if (testing_random(random) % 2 == 0)
            *operation = (fifo_operation){.value = ++pushed, .kind = FIFO_PUSH};
        else if (pushed == popped)
            *operation = (fifo_operation){.kind = FIFO_EMPTY};
        else
            *operation = (fifo_operation){.value = ++popped, .kind = FIFO_POP};
    }
}

/* Makes another history of it, which may be wrong or not. No value is pushed twice. */
static void disturb(uint64_t *random, fifo_operation *operations, size_t count)
{
    fifo_operation *one = &operations[testing_random(random) % count];
    fifo_operation *other = &operations[testing_random(random) % count];
    fifo_operation copy = *one;
    if (one->kind == other->kind) {
        one->value = other->value;
        other->value = copy.value;
    } else if (one->kind == FIFO_POP && testing_random(random) % 4 == 0) {
        one->value = testing_random(random) % 5;
    } else if (one->kind == FIFO_POP) {
        one->kind = FIFO_EMPTY;
    } else if (one->kind == FIFO_EMPTY) {
        one->kind = FIFO_POP;
        one->value = 1 + testing_random(random) % 4;
    } else if (other->kind != FIFO_PUSH) { /* they change places */
        one->began = other->began, one->ended = other->ended;
        other->began = copy.began, other->ended = copy.ended;
    }
}

/* Makes neighbours of one kind a batch. */
static void join_batches(uint64_t *random, fifo_operation *operations, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        fifo_operation *last = &operations[i - 1], *next = &operations[i];
        if (last->kind != next->kind || next->kind == FIFO_EMPTY || testing_random(random) % 2 == 0)
            continue;
        uint64_t ended = last->ended > next->ended ? last->ended : next->ended;
        next->began = last->began;
        for (size_t j = 0; j <= i; j++)
            if (operations[j].began == last->began)
                operations[j].ended = ended;
    }
}

static size_t make_history(uint64_t *random, fifo_operation *operations)
{
    size_t count = 1 + testing_random(random) % MOST;
    simulate(random, operations, count);
    give_stamps(random, operations, count, 1 + testing_random(random) % 5000);
    for (uint64_t times = testing_random(random) % 4; times != 0; times--)
        disturb(random, operations, count);
    return count;
}

static void print_history(const fifo_operation *operations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("# kind %d, value %d, %d to %d\n", operations[i].kind, (int)operations[i].value,
               (int)operations[i].began, (int)operations[i].ended);
}

static void it_says_what_a_search_through_all_orders_says(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    uint32_t rounds = rounds_of(10000), good = 0, faults[FIFO_NOT_EMPTY + 1] = {0};
    for (uint32_t i = 0; i < rounds; i++) {
        fifo_operation operations[MOST];
        size_t count = make_history(&random, operations);
        fifo_verdict verdict = fifo_history_check(operations, count);
        bool linearizable = is_linearizable(operations, count);
        if (linearizable != (verdict.fault == FIFO_GOOD)) {
            print_history(operations, count);
            fifo_verdict_print(&verdict);
        }
        assert_int_equal(linearizable, verdict.fault == FIFO_GOOD);
        good += linearizable;
        faults[verdict.fault]++;
    }
    printf("# of %u histories %u are good; never pushed %u, twice %u, early %u, out of order %u, "
           "not empty %u\n",
           rounds, good, faults[FIFO_NEVER_PUSHED], faults[FIFO_POPPED_TWICE],
           faults[FIFO_POPPED_EARLY], faults[FIFO_OUT_OF_ORDER], faults[FIFO_NOT_EMPTY]);
    for (int i = FIFO_NEVER_PUSHED; i <= FIFO_NOT_EMPTY; i++)
        assert_true(faults[i] > rounds / 200);
    assert_true(good > rounds / 10);
}

/* With batches, every reported fault is one. */
static void in_batches_it_finds_no_fault_where_a_search_finds_none(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    uint32_t rounds = rounds_of(10000), good = 0, found = 0;
    for (uint32_t i = 0; i < rounds; i++) {
        fifo_operation operations[MOST];
        size_t count = make_history(&random, operations);
        join_batches(&random, operations, count);
        fifo_verdict verdict = fifo_history_check(operations, count);
        bool linearizable = is_linearizable(operations, count);
        if (linearizable && verdict.fault != FIFO_GOOD) {
            print_history(operations, count);
            fifo_verdict_print(&verdict);
        }
        assert_true(!linearizable || verdict.fault == FIFO_GOOD);
        good += linearizable;
        found += verdict.fault != FIFO_GOOD;
    }
    printf("# of %u histories %u are good, %u of the %u others are found\n", rounds, good, found,
           rounds - good);
    assert_true(found > (rounds - good) / 2);
}

/* Many operations of a queue, many of them at a time. */
static void a_long_history_is_looked_at_in_time(void **state)
{
    (void)state;
    enum { LONG = 300000, AT_ONCE = 8 };
    fifo_operation *operations = calloc(LONG, sizeof *operations);
    assert_non_null(operations);
    uint64_t random = testing_seed();
    simulate(&random, operations, LONG);
    for (uint64_t i = 0; i < LONG; i++) {
        operations[i].began = AT_ONCE * i;
        operations[i].ended =
            AT_ONCE * (i + testing_random(&random) % AT_ONCE) + 1 + i % (AT_ONCE - 1);
    }
    fifo_verdict verdict = fifo_history_check(operations, LONG);
    fifo_verdict_print(&verdict);
    assert_int_equal(verdict.fault, FIFO_GOOD);
    free(operations);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histories_of_a_queue_are_good),
        cmocka_unit_test(what_was_never_pushed_is_found),
        cmocka_unit_test(what_is_there_twice_is_found),
        cmocka_unit_test(what_is_popped_before_it_is_pushed_is_found),
        cmocka_unit_test(what_overtakes_is_found),
        cmocka_unit_test(what_overtakes_in_a_batch_is_found),
        cmocka_unit_test(nothing_found_where_something_was_is_found),
        cmocka_unit_test(it_says_what_a_search_through_all_orders_says),
        cmocka_unit_test(in_batches_it_finds_no_fault_where_a_search_finds_none),
        cmocka_unit_test(a_long_history_is_looked_at_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
