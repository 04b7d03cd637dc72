/*
 * Plain memory beside atomic objects: the pairs of accesses that race, and the values that are read
 * if none does.
 */
#include "testing.h"

#include "bide/check.h"

typedef struct state {
    bide_atomic(uint32_t) object;
    bide_atomic(uint32_t) flag;
    uint32_t read;
} state;

/* ---- Races ---- */

/* A plain access to an atomic object. */
static volatile uint32_t *plainly(void *p)
{
    return (volatile uint32_t *)(uintptr_t) & ((state *)p)->object;
}

static void plain_read(void *p)
{
    (void)*plainly(p);
}

static void plain_write(void *p)
{
    *plainly(p) = 1;
}

static void plain_read_and_write(void *p)
{
    *plainly(p) += 1;
}

static void atomic_read(void *p)
{
    (void)bide_atomic_load(&((state *)p)->object, relaxed);
}

static void atomic_write(void *p)
{
    bide_atomic_store(&((state *)p)->object, 2, relaxed);
}

static void atomic_read_and_write(void *p)
{
    (void)bide_atomic_fetch_add(&((state *)p)->object, 1, relaxed);
}

/* A compare-exchange that fails writes nothing. */
static void atomic_failure(void *p)
{
    uint32_t expected = 77;
    bide_check_assert(
        !bide_atomic_compare_exchange(&((state *)p)->object, &expected, 1, seq_cst, relaxed));
}

static const struct way {
    const char *name;
    void (*access)(void *state);
    bool is_atomic, writes;
} ways[] = {
    {"plain read", plain_read, false, false},
    {"plain write", plain_write, false, true},
    {"plain read and write", plain_read_and_write, false, true},
    {"atomic read", atomic_read, true, false},
    {"atomic write", atomic_write, true, true},
    {"atomic read-modify-write", atomic_read_and_write, true, true},
    {"atomic compare-exchange that fails", atomic_failure, true, false},
};
enum { WAYS = sizeof ways / sizeof *ways };

static const struct way *first, *second;

static void go_first(void *p)
{
    first->access(p);
    bide_atomic_store(&((state *)p)->flag, 1, release);
}

static void go_second(void *p)
{
    second->access(p);
}

static void go_second_if_ordered(void *p)
{
    if (bide_atomic_load(&((state *)p)->flag, acquire) == 1)
        second->access(p);
}

static bide_check_finding found(void (*follower)(void *))
{
    bide_check_scenario scenario = {
        .name = "two", .size = sizeof(state), .threads = {go_first, follower}};
    bide_check_result r;
    bide_check_finding finding = bide_check_explore(&scenario, &r);
    bide_check_result_free(&r);
    return finding;
}

/* Not both are atomic, and one of them writes. */
static void each_pair_of_accesses_races_that_must(void **unused)
{
    (void)unused;
    for (unsigned a = 0; a < WAYS; a++) {
        for (unsigned b = 0; b < WAYS; b++) {
            first = &ways[a];
            second = &ways[b];
            bool races =
                !(first->is_atomic && second->is_atomic) && (first->writes || second->writes);
            print_message("%s, %s: %s\n", first->name, second->name, races ? "race" : "none");
            assert_int_equal(found(go_second), races ? BIDE_CHECK_RACE : BIDE_CHECK_NOTHING);
        }
    }
}

static void none_races_that_comes_after_the_other(void **unused)
{
    (void)unused;
    for (unsigned a = 0; a < WAYS; a++) {
        for (unsigned b = 0; b < WAYS; b++) {
            first = &ways[a];
            second = &ways[b];
            print_message("%s, then %s\n", first->name, second->name);
            assert_int_equal(found(go_second_if_ordered), BIDE_CHECK_NOTHING);
        }
    }
}

/* Takes the object as a lock, and may read it plainly meanwhile. */
static void lock_and_look(void *p)
{
    uint32_t expected = 0;
    if (!bide_atomic_compare_exchange(&((state *)p)->object, &expected, 1, acquire, relaxed))
        return;
    if (bide_check_thread() == 1)
        (void)*plainly(p);
    bide_atomic_store(&((state *)p)->object, 0, release);
}

/* The second thread may read the value from before the first one's compare-exchange, but not replace it. */
static void a_read_modify_write_that_cannot_store_does_not_race(void **unused)
{
    (void)unused;
    bide_check_scenario scenario = {
        .name = "lock", .size = sizeof(state), .threads = {lock_and_look, lock_and_look}};
    bide_check_result r;
    assert_int_equal(bide_check_explore(&scenario, &r), BIDE_CHECK_NOTHING);
    assert_false(r.is_unfinished);
    bide_check_result_free(&r);
}

/* ---- Values ---- */

static void store_5_and_7(void *p)
{
    state *s = p;
    bide_atomic_store(&s->object, 5, relaxed);
    bide_atomic_store(&s->object, 7, relaxed);
    bide_atomic_store(&s->flag, 1, release);
}

static void read_plainly(void *p)
{
    state *s = p;
    if (bide_atomic_load(&s->flag, acquire) != 1)
        return;
    bide_check_assert(*plainly(p) == 7);
    bide_atomic_fetch_add(&s->object, 1, relaxed);
    bide_check_assert(*plainly(p) == 8);
    bide_check_assert(bide_atomic_load(&s->object, relaxed) == 8);
}

static void read_plainly_at_last(void *p)
{
    uint32_t value = *plainly(p);
    bide_check_note("%u", value);
    bide_check_assert(bide_atomic_load(&((state *)p)->object, relaxed) == value);
}

static void a_plain_read_finds_what_was_stored_before(void **unused)
{
    (void)unused;
    bide_check_scenario scenario = {.name = "ordered",
                                    .size = sizeof(state),
                                    .threads = {store_5_and_7, read_plainly},
                                    .finish = read_plainly_at_last};
    bide_check_result r;
    assert_int_equal(bide_check_explore(&scenario, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.executions, 2);
    assert_int_equal(r.outcomes_count, 2);
    assert_string_equal(r.outcomes[0], "7");
    assert_string_equal(r.outcomes[1], "8");
    bide_check_result_free(&r);
}

/* The two stores are in either order, and the last one is the value in memory. */
static void a_plain_read_finds_the_last_in_the_order_of_stores(void **unused)
{
    (void)unused;
    bide_check_scenario scenario = {.name = "last",
                                    .size = sizeof(state),
                                    .threads = {atomic_write, store_5_and_7},
                                    .finish = read_plainly_at_last};
    bide_check_result r;
    assert_int_equal(bide_check_explore(&scenario, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.executions, 3);
    assert_int_equal(r.outcomes_count, 2);
    assert_string_equal(r.outcomes[0], "2");
    assert_string_equal(r.outcomes[1], "7");
    bide_check_result_free(&r);
}

/* Outside of the state too, where each execution must find the initial values. */
static bide_atomic(uint32_t) elsewhere;

static void count_elsewhere(void *unused)
{
    (void)unused;
    bide_atomic_fetch_add(&elsewhere, 1, relaxed);
}

static void read_elsewhere(void *unused)
{
    (void)unused;
    bide_check_assert(*(volatile uint32_t *)(uintptr_t)&elsewhere == 2);
}

static void what_is_static_begins_anew_in_each_execution(void **unused)
{
    (void)unused;
    bide_check_scenario scenario = {.name = "static",
                                    .size = sizeof(state),
                                    .threads = {count_elsewhere, count_elsewhere},
                                    .finish = read_elsewhere};
    bide_check_result r;
    assert_int_equal(bide_check_explore(&scenario, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.executions, 2);
    bide_check_result_free(&r);
    assert_int_equal(bide_atomic_load(&elsewhere, relaxed), 0);
}

/* ---- Values of objects ---- */

typedef struct numbers {
    bide_atomic(double) d;
    bide_atomic(float) f;
    bide_atomic(bool) b;
    bide_atomic(int8_t) small;
} numbers;

static void set_numbers(void *p)
{
    numbers *n = p;
    bide_atomic_init(&n->d, 1);
    bide_atomic_init(&n->f, -0.25f);
    bide_atomic_init(&n->b, false);
    bide_atomic_init(&n->small, -3);
}

static void use_numbers(void *p)
{
    numbers *n = p;
    double d = 1;
    bide_check_assert(bide_atomic_compare_exchange(&n->d, &d, 0.1, relaxed, relaxed));
    bide_check_assert(!bide_atomic_compare_exchange(&n->d, &d, 0.2, relaxed, relaxed) && d == 0.1);
    bide_check_assert(bide_atomic_exchange(&n->d, 3, relaxed) == 0.1);
    bide_check_assert(bide_atomic_load(&n->d, relaxed) == 3.0);
    bide_check_assert(bide_atomic_load(&n->f, relaxed) == -0.25f);
    bide_atomic_store(&n->f, 1.5, relaxed);
    bide_check_assert(bide_atomic_load(&n->f, relaxed) == 1.5f);
    bide_atomic_store(&n->b, 256, relaxed);
    bide_check_assert(bide_atomic_load(&n->b, relaxed));
    bide_check_assert(bide_atomic_fetch_sub(&n->small, 1, relaxed) == -3);
    bide_check_assert(bide_atomic_load(&n->small, relaxed) == -4);
}

static void store_a_tenth(void *p)
{
    bide_atomic_store(&((numbers *)p)->d, 0.1, relaxed);
}

static void read_it(void *p)
{
    double d = bide_atomic_load(&((numbers *)p)->d, relaxed);
    bide_check_assert(d == 1 || d == 0.1);
    bide_check_note("%g", d);
}

static void numbers_of_each_type_are_what_was_stored(void **unused)
{
    (void)unused;
    bide_check_scenario alone = {
        .name = "alone", .size = sizeof(numbers), .setup = set_numbers, .threads = {use_numbers}};
    bide_check_scenario shared = {.name = "shared",
                                  .size = sizeof(numbers),
                                  .setup = set_numbers,
                                  .threads = {store_a_tenth, read_it}};
    bide_check_result r;
    assert_int_equal(bide_check_explore(&alone, &r), BIDE_CHECK_NOTHING);
    bide_check_result_free(&r);
    assert_int_equal(bide_check_explore(&shared, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.outcomes_count, 2);
    assert_string_equal(r.outcomes[0], "0.1");
    assert_string_equal(r.outcomes[1], "1");
    bide_check_result_free(&r);
}

/* ---- Local variables ---- */

typedef struct shared {
    bide_atomic(uintptr_t) place; /* of a local variable */
    bide_atomic(uint32_t) is_done;
    uint32_t *plain;
} shared;

static void wait_until_done(shared *s)
{
    while (bide_atomic_load(&s->is_done, acquire) == 0)
        bide_cpu_relax();
}

/* The functions whose variables are meant must be functions of their own. */
__attribute__((noinline)) static void lend_until_done(shared *s)
{
    uint32_t local, *place = &local;
    *place = 0; /* (the compiler reports this access) */
    bide_atomic_store(&s->place, (uintptr_t)place, release);
    wait_until_done(s);
}

__attribute__((noinline)) static void lend_and_return(shared *s)
{
    uint32_t local, *place = &local;
    *place = 0; /* (the compiler reports this access) */
    bide_atomic_store(&s->place, (uintptr_t)place, release);
}

__attribute__((noinline)) static void use_stack(shared *s)
{
    uint32_t locals[8] = {0};
    s->plain = locals;
    s->plain[3] = 1;
    bide_check_assert(s->plain[3] == 1);
}

static void owner_waits(void *p)
{
    lend_until_done(p);
}

static void owner_returns(void *p)
{
    lend_and_return(p);
}

static void owner_waits_and_goes_on(void *p)
{
    lend_until_done(p);
    for (int i = 0; i < 3; i++)
        use_stack(p);
}

static uint32_t *taken_place(shared *s)
{
    uintptr_t place;
    while ((place = bide_atomic_load(&s->place, acquire)) == 0)
        bide_cpu_relax();
    return (uint32_t *)place;
}

static void user_writes_and_tells(void *p)
{
    shared *s = p;
    *taken_place(s) = 1;
    bide_atomic_store(&s->is_done, 1, release);
}

static void user_tells_and_writes(void *p)
{
    shared *s = p;
    uint32_t *place = taken_place(s);
    bide_atomic_store(&s->is_done, 1, release);
    *place = 1;
}

static void user_reads_and_tells_too_weakly(void *p)
{
    shared *s = p;
    s->plain = taken_place(s);
    uint32_t read = *s->plain;
    bide_atomic_store(&s->is_done, 1 + read, relaxed);
}

static void user_writes_atomically(void *p)
{
    shared *s = p;
    __atomic_store_n(taken_place(s), 1, __ATOMIC_SEQ_CST);
    bide_atomic_store(&s->is_done, 1, relaxed);
}

static void a_local_variable_ends_when_its_function_returns(void **unused)
{
    (void)unused;
    static const struct {
        void (*owner)(void *), (*user)(void *);
        bide_check_finding finding;
    } all[] = {
        {owner_waits, user_writes_and_tells, BIDE_CHECK_NOTHING},
        {owner_waits_and_goes_on, user_writes_and_tells, BIDE_CHECK_NOTHING},
        {owner_waits, user_tells_and_writes, BIDE_CHECK_USE_AFTER_FREE},
        {owner_waits_and_goes_on, user_tells_and_writes, BIDE_CHECK_USE_AFTER_FREE},
        {owner_waits, user_reads_and_tells_too_weakly, BIDE_CHECK_USE_AFTER_FREE},
        {owner_waits, user_writes_atomically, BIDE_CHECK_USE_AFTER_FREE},
        {owner_returns, user_writes_and_tells, BIDE_CHECK_USE_AFTER_FREE},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bide_check_scenario scenario = {
            .name = "locals", .size = sizeof(shared), .threads = {all[i].owner, all[i].user}};
        bide_check_result r, again;
        bide_check_explore(&scenario, &r);
        print_message("# %zu: %s\n", i, r.message != NULL ? r.message : "nothing");
        assert_int_equal(r.finding, all[i].finding);
        if (r.finding != BIDE_CHECK_NOTHING) {
            assert_non_null(strstr(r.message, " a local variable of thread 1, at "));
            assert_int_equal(bide_check_replay(&scenario, r.replay, &again), r.finding);
            assert_string_equal(again.message, r.message);
            bide_check_result_free(&again);
        }
        bide_check_result_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_local_variable_ends_when_its_function_returns),
        cmocka_unit_test(each_pair_of_accesses_races_that_must),
        cmocka_unit_test(none_races_that_comes_after_the_other),
        cmocka_unit_test(a_read_modify_write_that_cannot_store_does_not_race),
        cmocka_unit_test(a_plain_read_finds_what_was_stored_before),
        cmocka_unit_test(a_plain_read_finds_the_last_in_the_order_of_stores),
        cmocka_unit_test(what_is_static_begins_anew_in_each_execution),
        cmocka_unit_test(numbers_of_each_type_are_what_was_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
