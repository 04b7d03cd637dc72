/*
 * Allocations that fail, as a choice: what is found on the paths of errors, and how many executions
 * there are.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/check.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

typedef struct state {
    bide_atomic(uint32_t) failed, passed;
    int *block;
} state;

extern void __asan_init(void) __attribute__((weak));

/* With AddressSanitizer or another C library, malloc() is not the checker's. */
static bool malloc_fails(void)
{
#ifdef __GLIBC__
    return __asan_init == NULL;
#else
    return false;
#endif
}

/* ---- Bugs on the paths of errors ---- */

/* The compiler cannot know that it is the result of an allocation, which it may remove. */
static void *opaque(void *block)
{
    void *volatile copy = block;
    return copy;
}

static void write_unchecked(void *p)
{
    int *block = opaque(malloc(sizeof *block));
    (void)p;
    *(volatile int *)block = 1;
    free(block);
}

static void write_unchecked_own(void *p)
{
    int *block = bide_check_alloc(sizeof *block);
    (void)p;
    *(volatile int *)block = 1;
    bide_check_free(block);
}

static void leak_the_first(void *p)
{
    char *first = bide_check_alloc(24), *second;
    (void)p;
    if (first == NULL)
        return;
    second = bide_check_alloc(8);
    if (second == NULL)
        return;
    bide_check_free(second);
    bide_check_free(first);
}

static void free_the_first(void *p)
{
    char *first = bide_check_alloc(24), *second;
    (void)p;
    if (first == NULL)
        return;
    second = bide_check_alloc(8);
    if (second != NULL)
        bide_check_free(second);
    bide_check_free(first);
}

/* The result of realloc() replaces the only pointer to the block. */
static void lose_the_old(void *p)
{
    char *block = opaque(malloc(16));
    (void)p;
    if (block == NULL)
        return;
    block = opaque(realloc(block, 32));
    free(block);
}

static void keep_the_old(void *p)
{
    char *block = opaque(malloc(16)), *larger;
    (void)p;
    if (block == NULL)
        return;
    block[15] = 7;
    larger = realloc(block, 32);
    bide_check_assert((larger != NULL ? larger : block)[15] == 7);
    free(larger != NULL ? larger : block);
}

static void clear_unchecked(void *p)
{
    int *blocks = opaque(calloc(2, sizeof *blocks));
    (void)p;
    bide_check_assert(blocks != NULL);
    bide_check_assert(blocks[0] == 0 && blocks[1] == 0);
    free(blocks);
}

static void align_unchecked(void *p)
{
    void *block = opaque(aligned_alloc(64, 64));
    (void)p;
    bide_check_assert(block != NULL);
    free(block);
}

static void publish_nothing(void *p)
{
    ((state *)p)->block = bide_check_alloc(sizeof(int));
    bide_atomic_store(&((state *)p)->passed, 1, release);
}

static void use_what_is_published(void *p)
{
    state *s = p;
    if (bide_atomic_load(&s->passed, acquire) == 1)
        *(volatile int *)s->block = 1;
}

static void free_block(void *p)
{
    bide_check_free(((state *)p)->block);
}

static const struct bug {
    const char *name;
    bide_check_scenario scenario;
    bide_check_finding finding; /* if an allocation may fail */
    const char *words;          /* of the message */
    const char *step;           /* of the trace */
    bool needs_heap;
} bugs[] = {
    {"an unchecked malloc",
     {.threads = {write_unchecked}},
     BIDE_CHECK_CRASH,
     "it uses address 0",
     "allocate 4 bytes: it fails",
     true},
    {"an unchecked bide_check_alloc",
     {.threads = {write_unchecked_own}},
     BIDE_CHECK_CRASH,
     "it uses address 0",
     "allocate 4 bytes: it fails",
     false},
    {"an unchecked calloc",
     {.threads = {clear_unchecked}},
     BIDE_CHECK_ASSERTION,
     "blocks != NULL",
     "allocate 8 bytes: it fails",
     true},
    {"an unchecked aligned_alloc",
     {.threads = {align_unchecked}},
     BIDE_CHECK_ASSERTION,
     "block != NULL",
     "allocate 64 bytes: it fails",
     true},
    {"a leak on the path of an error",
     {.threads = {leak_the_first}},
     BIDE_CHECK_LEAK,
     "24 bytes in 1 blocks are never freed",
     "allocate 8 bytes: it fails",
     false},
    {"a pointer that realloc replaces",
     {.threads = {lose_the_old}},
     BIDE_CHECK_LEAK,
     "16 bytes in 1 blocks are never freed",
     "allocate 32 bytes: it fails",
     true},
    {"another thread that uses it",
     {.threads = {publish_nothing, use_what_is_published}, .finish = free_block},
     BIDE_CHECK_CRASH,
     "it uses address 0",
     "allocate 4 bytes: it fails",
     false},
    {"both paths free", {.threads = {free_the_first}}, BIDE_CHECK_NOTHING, NULL, NULL, false},
    {"realloc that keeps the block",
     {.threads = {keep_the_old}},
     BIDE_CHECK_NOTHING,
     NULL,
     NULL,
     true},
};

static void bugs_on_the_paths_of_errors_are_found(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        bide_check_scenario scenario = bugs[i].scenario;
        bide_check_result r, again;
        if (bugs[i].needs_heap && !malloc_fails())
            continue;
        scenario.name = bugs[i].name;
        scenario.size = sizeof(state);
        assert_int_equal(bide_check_explore(&scenario, &r), BIDE_CHECK_NOTHING);
        bide_check_result_free(&r);
        scenario.failing_allocations = 1;
        bide_check_explore(&scenario, &r);
        print_message("# %s: %s\n", bugs[i].name, r.message != NULL ? r.message : "nothing");
        assert_int_equal(r.finding, bugs[i].finding);
        if (r.finding != BIDE_CHECK_NOTHING) {
            assert_non_null(strstr(r.message, bugs[i].words));
            const char *step = strstr(r.trace, bugs[i].step);
            assert_non_null(step);
            assert_non_null(strstr(step, "allocation_test.c:"));
            assert_true(strstr(step, "allocation_test.c:") < strchr(step, '\n'));
            assert_non_null(strstr(r.graph, bugs[i].step));
            assert_int_equal(bide_check_replay(&scenario, r.replay, &again), r.finding);
            assert_string_equal(again.message, r.message);
            bide_check_result_free(&again);
        }
        bide_check_result_free(&r);
    }
}

static void a_sampling_finds_them_too(void **unused)
{
    (void)unused;
    const bide_check_scenario scenario = {.name = "sampled",
                                          .size = sizeof(state),
                                          .threads = {leak_the_first},
                                          .failing_allocations = 1};
    const bide_check_sampling ways[] = {{.runs = 1000, .seed = 1},
                                        {.runs = 1000, .seed = 1, .depth = 2}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        bide_check_result r, again;
        assert_int_equal(bide_check_sample(&scenario, &ways[i], &r), BIDE_CHECK_LEAK);
        assert_non_null(strstr(r.trace, "allocate 8 bytes: it fails"));
        assert_int_equal(bide_check_replay(&scenario, r.replay, &again), BIDE_CHECK_LEAK);
        bide_check_result_free(&again);
        bide_check_result_free(&r);
    }
}

/* ---- Executions ---- */

/* Three allocations, each whatever the others do. */
static void allocate_3(void *p)
{
    (void)p;
    unsigned failed = 0;
    for (unsigned i = 0; i < 3; i++) {
        void *block = bide_check_alloc(8);
        failed += block == NULL;
        bide_check_free(block);
    }
    if (bide_check_thread() == 1)
        bide_check_note("%u", failed);
}

/* Three allocations; the first that fails is the last. */
static void allocate_up_to_3(void *p)
{
    (void)p;
    for (unsigned i = 0; i < 3; i++) {
        void *block = bide_check_alloc(8);
        if (block == NULL)
            return;
        bide_check_free(block);
    }
}

static void allocate_1(void *p)
{
    (void)p;
    bide_check_free(bide_check_alloc(8));
}

static const struct count {
    bide_check_scenario scenario;
    uint64_t executions;
} counts[] = {
    {{.threads = {allocate_3}}, 1},
    {{.threads = {allocate_3}, .failing_allocations = 1}, 1 + 3},
    {{.threads = {allocate_3}, .failing_allocations = 2}, 1 + 3 + 3},
    {{.threads = {allocate_3}, .failing_allocations = 3}, 8},
    {{.threads = {allocate_3}, .failing_allocations = 4}, 8},
    {{.threads = {allocate_up_to_3}, .failing_allocations = 1}, 4},
    {{.threads = {allocate_up_to_3}, .failing_allocations = 2}, 4},
    /* The limit is that of each thread. */
    {{.threads = {allocate_1, allocate_1}, .failing_allocations = 1}, 2 * 2},
    {{.threads = {allocate_3, allocate_3}, .failing_allocations = 1}, 4 * 4},
    {{.setup = allocate_1, .threads = {allocate_1}, .finish = allocate_1, .failing_allocations = 1},
     2 * 2 * 2},
};

static void each_choice_of_failures_is_one_execution(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        bide_check_scenario scenario = counts[i].scenario;
        bide_check_result r;
        scenario.name = "failures";
        scenario.size = sizeof(state);
        assert_int_equal(bide_check_explore(&scenario, &r), BIDE_CHECK_NOTHING);
        print_message("# %zu: %u executions\n", i, (unsigned)r.executions);
        assert_int_equal(r.executions, counts[i].executions);
        assert_false(r.is_unfinished);
        if (scenario.threads[0] == allocate_3)
            assert_int_equal(r.outcomes_count, scenario.failing_allocations > 3
                                                   ? 4
                                                   : scenario.failing_allocations + 1);
        bide_check_result_free(&r);
    }
}

/* ---- What a failure is ---- */

static void fail_in_each_way(void *p)
{
    char own, *kept = &own;
    void *block;
    (void)p;
    errno = 0;
    switch (bide_check_choose(6)) {
    case 0:
        block = malloc(8);
        break;
    case 1:
        block = calloc(2, 4);
        break;
    case 2:
        block = realloc(NULL, 8);
        break;
    case 3:
        block = aligned_alloc(16, 16);
        break;
    case 4:
        block = memalign(16, 16);
        break;
    default:
        block = bide_check_alloc(8);
    }
    bide_check_assert(errno == (block == NULL ? ENOMEM : 0));
    bide_check_note("%s", block == NULL ? "fails" : "succeeds");
    bide_check_free(block);
    errno = 0;
    block = kept;
    int error = posix_memalign(&block, 16, 16);
    bide_check_assert(errno == 0 && error == (block == kept ? ENOMEM : 0));
    if (error == 0)
        free(block);
}

static void each_function_fails_as_its_manual_says(void **unused)
{
    (void)unused;
    if (!malloc_fails())
        skip();
    const bide_check_scenario scenario = {.name = "ways",
                                          .size = sizeof(state),
                                          .threads = {fail_in_each_way},
                                          .failing_allocations = 2};
    bide_check_result r;
    bide_check_explore(&scenario, &r);
    print_message("# %s\n", r.message != NULL ? r.message : "nothing");
    assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
    assert_int_equal(r.executions, 6 * 2 * 2);
    assert_int_equal(r.outcomes_count, 2);
    assert_int_equal(r.counts[0], 6 * 2);
    bide_check_result_free(&r);
}

static void fail_and_read_errno_later(void *p)
{
    state *s = p;
    bide_check_assert(errno == 0);
    void *block = bide_check_alloc(8);
    int expected = block == NULL ? ENOMEM : 0;
    bide_atomic_store(&s->failed, 1, relaxed);
    (void)bide_atomic_load(&s->passed, relaxed);
    bide_check_assert(errno == expected);
    bide_check_free(block);
}

static void change_errno(void *p)
{
    state *s = p;
    bide_check_assert(errno == 0);
    errno = EINVAL;
    (void)bide_atomic_load(&s->failed, relaxed);
    bide_atomic_store(&s->passed, 1, relaxed);
    bide_check_assert(errno == EINVAL);
}

static void each_thread_has_its_own_errno(void **unused)
{
    (void)unused;
    const bide_check_scenario scenario = {.name = "errno",
                                          .size = sizeof(state),
                                          .threads = {fail_and_read_errno_later, change_errno},
                                          .failing_allocations = 1};
    bide_check_result r;
    bide_check_explore(&scenario, &r);
    print_message("# %s\n", r.message != NULL ? r.message : "nothing");
    assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
    assert_int_equal(r.executions, 2 * 4);
    bide_check_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bugs_on_the_paths_of_errors_are_found),
        cmocka_unit_test(a_sampling_finds_them_too),
        cmocka_unit_test(each_choice_of_failures_is_one_execution),
        cmocka_unit_test(each_function_fails_as_its_manual_says),
        cmocka_unit_test(each_thread_has_its_own_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
