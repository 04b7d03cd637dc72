/*
 * The atomics of C11 and of the compiler in instrumented code: the checker treats them as bide's
 * own.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/check.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic ignored "-Wtsan" /* the checker supports fences */
#endif

typedef struct state {
    _Atomic uint32_t x, y;
    uint32_t plain_x, plain_y; /* used by __atomic_* */
    _Atomic uint64_t large;
    _Atomic double real;
    uint32_t read[2];
    int data;
} state;

static bide_check_finding explore(bide_check_scenario s, bide_check_result *r)
{
    s.name = "c11";
    s.size = sizeof(state);
    return bide_check_explore(&s, r);
}

static bide_check_finding found(bide_check_scenario s)
{
    bide_check_result r;
    bide_check_finding finding = explore(s, &r);
    if (r.message != NULL)
        print_message("%s\n%s", r.message, r.trace);
    bide_check_result_free(&r);
    return finding;
}

/* ---- Orders have their meaning ---- */

static memory_order store_order, load_order;

static void store_x_load_y(void *p)
{
    state *s = p;
    atomic_store_explicit(&s->x, 1, store_order);
    s->read[0] = atomic_load_explicit(&s->y, load_order);
}

static void store_y_load_x(void *p)
{
    state *s = p;
    atomic_store_explicit(&s->y, 1, store_order);
    s->read[1] = atomic_load_explicit(&s->x, load_order);
}

static void note_both(void *p)
{
    state *s = p;
    bide_check_note("%u%u", s->read[0], s->read[1]);
}

static size_t outcomes(void (*a)(void *), void (*b)(void *))
{
    bide_check_result r;
    assert_int_equal(explore((bide_check_scenario){.threads = {a, b}, .finish = note_both}, &r),
                     BIDE_CHECK_NOTHING);
    size_t count = r.outcomes_count;
    bide_check_result_free(&r);
    return count;
}

static void plainly_x_y(void *p)
{
    state *s = p;
    s->x = 1;
    s->read[0] = s->y;
}

static void plainly_y_x(void *p)
{
    state *s = p;
    s->y = 1;
    s->read[1] = s->x;
}

static void builtins_x_y(void *p)
{
    state *s = p;
    __atomic_store_n(&s->plain_x, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    s->read[0] = __atomic_load_n(&s->plain_y, __ATOMIC_RELAXED);
}

static void builtins_y_x(void *p)
{
    state *s = p;
    __atomic_store_n(&s->plain_y, 1, __ATOMIC_RELAXED);
    __sync_synchronize();
    s->read[1] = __atomic_load_n(&s->plain_x, __ATOMIC_RELAXED);
}

static void orders_are_those_that_are_written(void **unused)
{
    (void)unused;
    store_order = load_order = memory_order_relaxed;
    assert_int_equal(outcomes(store_x_load_y, store_y_load_x), 4);
    store_order = memory_order_release;
    load_order = memory_order_acquire;
    assert_int_equal(outcomes(store_x_load_y, store_y_load_x), 4);
    store_order = load_order = memory_order_seq_cst;
    assert_int_equal(outcomes(store_x_load_y, store_y_load_x), 3);
    assert_int_equal(outcomes(plainly_x_y, plainly_y_x), 3);
    assert_int_equal(outcomes(builtins_x_y, builtins_y_x), 3);
}

/* ---- They order plain memory ---- */

static void publish(void *p)
{
    state *s = p;
    s->data = 1;
    atomic_store_explicit(&s->x, 1, store_order);
}

static void take(void *p)
{
    state *s = p;
    if (atomic_load_explicit(&s->x, memory_order_acquire) == 1)
        bide_check_assert(s->data == 1);
}

static void what_they_do_not_order_races(void **unused)
{
    (void)unused;
    store_order = memory_order_release;
    assert_int_equal(found((bide_check_scenario){.threads = {publish, take}}), BIDE_CHECK_NOTHING);
    store_order = memory_order_relaxed;
    assert_int_equal(found((bide_check_scenario){.threads = {publish, take}}), BIDE_CHECK_RACE);
}

/* ---- Every operation ---- */

#define EACH(type, object)                                                        \
    do {                                                                          \
        type expected = 3;                                                        \
        atomic_init(object, 1);                                                   \
        bide_check_assert(atomic_exchange(object, 3) == 1);                       \
        bide_check_assert(atomic_compare_exchange_strong(object, &expected, 12)); \
        bide_check_assert(!atomic_compare_exchange_strong(object, &expected, 1)); \
        bide_check_assert(expected == 12);                                        \
        while (!atomic_compare_exchange_weak(object, &expected, 12))              \
            ;                                                                     \
        bide_check_assert(atomic_fetch_add(object, 3) == 12);                     \
        bide_check_assert(atomic_fetch_sub(object, 1) == 15);                     \
        bide_check_assert(atomic_fetch_or(object, 1) == 14);                      \
        bide_check_assert(atomic_fetch_and(object, 6) == 15);                     \
        bide_check_assert(atomic_fetch_xor(object, 3) == 6);                      \
        bide_check_assert(++*(object) == 6);                                      \
        bide_check_assert(atomic_fetch_add(object, 6) == 6);                      \
        bide_check_assert(atomic_load(object) == 12);                             \
    } while (0)

static void do_everything(void *p)
{
    state *s = p;
    _Atomic uint8_t small;
    _Atomic int16_t medium;
    uint32_t old = 5;
    EACH(uint8_t, &small);
    EACH(int16_t, &medium);
    EACH(uint32_t, &s->x);
    EACH(uint64_t, &s->large);
    bide_check_assert(__atomic_fetch_nand(&old, 4, __ATOMIC_RELAXED) == 5);
    bide_check_assert(__atomic_load_n(&old, __ATOMIC_RELAXED) == ~4u);
    bide_check_assert(__sync_val_compare_and_swap(&s->plain_x, 0, 7) == 0);
    bide_check_assert(__sync_fetch_and_add(&s->plain_x, 1) == 7);
    s->real = 0.1;
    s->real = s->real + 1;
    bide_check_assert(s->real == 1.1);
}

static void every_operation_does_what_it_is_called(void **unused)
{
    (void)unused;
    assert_int_equal(found((bide_check_scenario){.threads = {do_everything}}), BIDE_CHECK_NOTHING);
}

static void count(void *p)
{
    ((state *)p)->x++;
    __atomic_add_fetch(&((state *)p)->plain_x, 1, __ATOMIC_RELAXED);
}

static void both_counted(void *p)
{
    bide_check_assert(((state *)p)->x == 2);
    bide_check_assert(__atomic_load_n(&((state *)p)->plain_x, __ATOMIC_RELAXED) == 2);
}

static void count_apart(void *p)
{
    state *s = p;
    s->x = s->x + 1;
}

static void read_modify_writes_are_atomic(void **unused)
{
    (void)unused;
    assert_int_equal(
        found((bide_check_scenario){.threads = {count, count}, .finish = both_counted}),
        BIDE_CHECK_NOTHING);
    assert_int_equal(
        found((bide_check_scenario){.threads = {count_apart, count_apart}, .finish = both_counted}),
        BIDE_CHECK_ASSERTION);
}

/* ---- How they are reported ---- */

static void a_trace_names_their_lines(void **unused)
{
    (void)unused;
    bide_check_result r, again;
    bide_check_scenario s = {.threads = {count_apart, count_apart}, .finish = both_counted};
    assert_int_equal(explore(s, &r), BIDE_CHECK_ASSERTION);
    print_message("%s", r.trace);
    assert_non_null(strstr(r.trace, "  load byte 0 of the state: read 0 (seq_cst), its initial"));
    assert_non_null(strstr(r.trace, "c11_test.c:"));
    assert_non_null(strstr(r.trace, ", in count_apart\n"));
    s.name = "c11";
    s.size = sizeof(state);
    assert_int_equal(bide_check_replay(&s, r.replay, &again), BIDE_CHECK_ASSERTION);
    assert_string_equal(r.trace, again.trace);
    bide_check_result_free(&again);
    bide_check_result_free(&r);
}

static void their_orders_are_made_weaker(void **unused)
{
    (void)unused;
    static char said[1 << 14];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char name[] = "program", weaken[] = "--weaken", *argv[] = {name, weaken, NULL};
        static const bide_check_scenario hands_over = {
            .name = "hands_over", .size = sizeof(state), .threads = {publish, take}};
        static const bide_check_scenario *const all[] = {&hands_over, NULL};
        store_order = memory_order_release;
        dup2(ends[1], 1);
        int status = bide_check_main(2, argv, &(bide_check_suite){.scenarios = all});
        fflush(stdout);
        _exit(status);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)n;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    print_message("%s", said);
    assert_int_equal(status, 0);
    assert_non_null(strstr(said, "| `publish` | store | line "));
    assert_non_null(strstr(said, "| release | relaxed | race, in `hands_over` |"));
    assert_non_null(strstr(said, "| acquire | relaxed | race, in `hands_over` |"));
}

/* ---- Overlapping objects ---- */

static void store_whole(void *p)
{
    atomic_store(&((state *)p)->large, 1);
}

static void store_upper_half(void *p)
{
    uint32_t *half = (uint32_t *)(uintptr_t) & ((state *)p)->large + 1;
    __atomic_store_n(half, 1, __ATOMIC_RELAXED);
}

static void store_lower_half(void *p)
{
    uint32_t *half = (uint32_t *)(uintptr_t) & ((state *)p)->large;
    __atomic_store_n(half, 1, __ATOMIC_RELAXED);
}

static void store_third_byte(void *p)
{
    unsigned char *third = (unsigned char *)(uintptr_t) & ((state *)p)->large + 2;
    __atomic_store_n(third, 1, __ATOMIC_RELAXED);
}

static void store_both_halves(void *p)
{
    store_lower_half(p);
    store_upper_half(p);
}

static void an_object_of_two_sizes_is_a_bad_scenario(void **unused)
{
    (void)unused;
    void (*const all[])(void *) = {store_upper_half, store_lower_half, store_third_byte};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(found((bide_check_scenario){.threads = {store_whole, all[i]}}),
                         BIDE_CHECK_BAD_SCENARIO);
        assert_int_equal(found((bide_check_scenario){.threads = {all[i], store_whole}}),
                         BIDE_CHECK_BAD_SCENARIO);
    }
    assert_int_equal(
        found((bide_check_scenario){.threads = {store_both_halves, store_both_halves}}),
        BIDE_CHECK_NOTHING);
}

static void init_anew(void *p)
{
    uint64_t *whole = (uint64_t *)(uintptr_t) & ((state *)p)->large;
    for (unsigned i = 0; i < 2; i++) {
        bide_plain_store(whole, 0);
        if (i == 0)
            store_both_halves(p);
        else
            store_whole(p);
    }
}

static void memory_that_is_written_plainly_may_hold_another(void **unused)
{
    (void)unused;
    assert_int_equal(found((bide_check_scenario){.threads = {init_anew}}), BIDE_CHECK_NOTHING);
}

/* ---- Objects that no processor accesses at once ---- */

typedef struct triple {
    uint64_t of[3];
} triple;

typedef struct odd {
    uint8_t bytes[24];
    _Atomic triple wide;
} odd;

static void add_across_words(void *p)
{
    __atomic_fetch_add((uint32_t *)(void *)(((odd *)p)->bytes + 2), 1, __ATOMIC_RELAXED);
}

static void load_across_words(void *p)
{
    (void)__atomic_load_n((uint64_t *)(void *)(((odd *)p)->bytes + 4), __ATOMIC_ACQUIRE);
}

static void store_across_bytes(void *p)
{
    __atomic_store_n((uint16_t *)(void *)(((odd *)p)->bytes + 1), 1, __ATOMIC_RELEASE);
}

static void exchange_across_words(void *p)
{
    uint32_t expected = 0;
    __atomic_compare_exchange_n((uint32_t *)(void *)(((odd *)p)->bytes + 3), &expected, 1, false,
                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void name_an_object(void *p)
{
    odd *misplaced = p;
    bide_atomic(uint32_t) *word = (void *)(misplaced->bytes + 1);
    bide_atomic_store(word, 1, relaxed);
}

static void load_wide(void *p)
{
    triple t = atomic_load(&((odd *)p)->wide);
    (void)t;
}

static void store_wide(void *p)
{
    atomic_store(&((odd *)p)->wide, ((triple){{1, 2, 3}}));
}

static void exchange_wide(void *p)
{
    triple expected = {{0}};
    (void)atomic_exchange(&((odd *)p)->wide, expected);
}

static void compare_wide(void *p)
{
    triple expected = {{0}};
    (void)atomic_compare_exchange_strong(&((odd *)p)->wide, &expected, ((triple){{1, 2, 3}}));
}

static void objects_that_no_processor_accesses_at_once_are_rejected(void **unused)
{
    (void)unused;
    static const struct {
        void (*thread)(void *);
        const char *words, *place;
    } all[] = {
        {add_across_words, "an atomic object of 4 bytes is misaligned", "c11_test.c:"},
        {load_across_words, "an atomic object of 8 bytes is misaligned", "c11_test.c:"},
        {store_across_bytes, "an atomic object of 2 bytes is misaligned", "c11_test.c:"},
        {exchange_across_words, "an atomic object of 4 bytes is misaligned", "c11_test.c:"},
        {name_an_object, "word: an atomic object of 4 bytes is misaligned", "c11_test.c:"},
        {load_wide, "an atomic object of 24 bytes is used, which is not lock-free", "c11_test.c:"},
        {store_wide, "an atomic object of 24 bytes is used, which is not lock-free", "c11_test.c:"},
        {exchange_wide, "an atomic object of 24 bytes is used", "c11_test.c:"},
        {compare_wide, "an atomic object of 24 bytes is used", "c11_test.c:"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bide_check_result r;
        bide_check_scenario s = {.name = "odd", .size = sizeof(odd), .threads = {all[i].thread}};
        assert_int_equal(bide_check_explore(&s, &r), BIDE_CHECK_BAD_SCENARIO);
        print_message("%s\n", r.message);
        assert_non_null(strstr(r.message, all[i].words));
        assert_non_null(strstr(r.message, all[i].place));
        bide_check_result_free(&r);
    }
}

extern void __asan_init(void) __attribute__((weak));

static void store_very_often(void *p)
{
    for (unsigned i = 0; i < 40000; i++)
        atomic_store_explicit(&((state *)p)->x, 1, memory_order_release);
}

/* Initialising an object begins a new one. */
static void init_very_often(void *p)
{
    for (unsigned i = 0; i < 40000; i++)
        bide_atomic_init((bide_atomic(uint32_t) *)(uintptr_t) & ((state *)p)->x, i);
}

/* So does writing it plainly. */
static void write_very_often(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < 40000; i++) {
        *(volatile uint32_t *)&s->plain_x = bide_check_thread() * 40000 + i + 1;
        (void)__atomic_load_n(&s->plain_x, __ATOMIC_RELAXED);
    }
}

static void choose_of_many(void *p)
{
    ((state *)p)->read[0] = bide_check_choose(UINT16_MAX + 1);
}

static void what_the_checker_cannot_count_is_rejected(void **unused)
{
    (void)unused;
    bide_check_result r;
    bide_check_scenario many = {
        .setup = store_very_often, .threads = {store_very_often}, .max_steps = 65000};
    if (__asan_init == NULL) { /* (it takes minutes there) */
        assert_int_equal(explore(many, &r), BIDE_CHECK_BAD_SCENARIO);
        assert_non_null(strstr(r.message, "more than 65535 stores to one object, at "));
        assert_non_null(strstr(r.message, "c11_test.c:"));
        bide_check_result_free(&r);
        bide_check_scenario objects = {
            .setup = init_very_often, .threads = {write_very_often}, .max_steps = 65000};
        assert_int_equal(explore(objects, &r), BIDE_CHECK_BAD_SCENARIO);
        assert_non_null(strstr(r.message, "more than 65535 atomic objects, at "));
        assert_non_null(strstr(r.message, "c11_test.c:"));
        bide_check_result_free(&r);
    }
    bide_check_scenario wide = {.threads = {choose_of_many}};
    assert_int_equal(explore(wide, &r), BIDE_CHECK_BAD_SCENARIO);
    assert_non_null(strstr(r.message, "more than 65535 options of one choice, at "));
    bide_check_result_free(&r);
}

static void wide_objects_work_outside_of_a_scenario(void **unused)
{
    (void)unused;
    static odd o;
    triple expected = {{1, 2, 3}}, other = {{4, 5, 6}};
    store_wide(&o);
    triple t = atomic_load(&o.wide);
    assert_int_equal(t.of[2], 3);
    assert_false(atomic_compare_exchange_strong(&o.wide, &other, expected));
    assert_int_equal(other.of[1], 2);
    assert_true(atomic_compare_exchange_strong(&o.wide, &expected, ((triple){{7, 8, 9}})));
    t = atomic_exchange(&o.wide, expected);
    assert_int_equal(t.of[0], 7);
    t = atomic_load(&o.wide);
    assert_int_equal(t.of[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            their_orders_are_made_weaker), /* first, because all operations of the process are weakened */
        cmocka_unit_test(orders_are_those_that_are_written),
        cmocka_unit_test(what_they_do_not_order_races),
        cmocka_unit_test(every_operation_does_what_it_is_called),
        cmocka_unit_test(read_modify_writes_are_atomic),
        cmocka_unit_test(a_trace_names_their_lines),
        cmocka_unit_test(an_object_of_two_sizes_is_a_bad_scenario),
        cmocka_unit_test(memory_that_is_written_plainly_may_hold_another),
        cmocka_unit_test(objects_that_no_processor_accesses_at_once_are_rejected),
        cmocka_unit_test(what_the_checker_cannot_count_is_rejected),
        cmocka_unit_test(wide_objects_work_outside_of_a_scenario),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
