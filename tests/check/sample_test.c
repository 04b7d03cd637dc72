/*
 * Sampled executions: planted bugs are found within a number of draws by a fixed seed, nothing is
 * found in their repaired twins, a seed replays its execution, and what can be drawn is what the
 * exploration reaches.
 */
#include "seeded.h"

#include "bide/event.h"

#include "testing.h"

#include <inttypes.h>
#include <semaphore.h>

typedef struct state {
    bide_atomic(uint32_t) x, y, turn;
    uint32_t read[4];
    sem_t is_over;
} state;

#define SCENARIO(id, ...) \
    static const bide_check_scenario id = {.name = #id, .size = sizeof(state), __VA_ARGS__}

/* ---- Bugs ---- */

static void send_relaxed(void *p)
{
    state *s = p;
    bide_atomic_store(&s->x, 42, relaxed);
    bide_atomic_store(&s->y, 1, relaxed);
}

static void receive_relaxed(void *p)
{
    state *s = p;
    if (bide_atomic_load(&s->y, relaxed) == 1)
        bide_check_assert(bide_atomic_load(&s->x, relaxed) == 42);
}

static void receive_in_a_loop(void *p)
{
    state *s = p;
    while (bide_atomic_load(&s->y, relaxed) == 0) {
    }
    bide_check_assert(bide_atomic_load(&s->x, relaxed) == 42);
}

static void store_x_load_y(void *p)
{
    state *s = p;
    bide_atomic_store(&s->x, 1, release);
    s->read[0] = bide_atomic_load(&s->y, acquire);
}

static void store_y_load_x(void *p)
{
    state *s = p;
    bide_atomic_store(&s->y, 1, release);
    s->read[1] = bide_atomic_load(&s->x, acquire);
}

static void one_has_read_1(void *p)
{
    const state *s = p;
    bide_check_assert(s->read[0] == 1 || s->read[1] == 1);
}

static void store_x(void *p)
{
    bide_atomic_store(&((state *)p)->x, 1, release);
}

static void store_y(void *p)
{
    bide_atomic_store(&((state *)p)->y, 1, release);
}

static void load_x_load_y(void *p)
{
    state *s = p;
    s->read[0] = bide_atomic_load(&s->x, acquire);
    s->read[1] = bide_atomic_load(&s->y, acquire);
}

static void load_y_load_x(void *p)
{
    state *s = p;
    s->read[2] = bide_atomic_load(&s->y, acquire);
    s->read[3] = bide_atomic_load(&s->x, acquire);
}

static void readers_agree(void *p)
{
    const uint32_t *read = ((state *)p)->read;
    bide_check_assert(read[0] != 1 || read[1] != 0 || read[2] != 1 || read[3] != 0);
}

/* Wrong only if the second thread's one step comes between two steps of the first, which takes many. */
static void open_and_close(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < 20; i++)
        bide_atomic_fetch_add(&s->y, 1, seq_cst);
    bide_atomic_exchange(&s->x, 1, seq_cst);
    bide_atomic_exchange(&s->x, 0, seq_cst);
    for (unsigned i = 0; i < 20; i++)
        bide_atomic_fetch_add(&s->y, 1, seq_cst);
}

static void must_be_closed(void *p)
{
    bide_check_assert(bide_atomic_fetch_add(&((state *)p)->x, 0, seq_cst) == 0);
}

SCENARIO(message_passing_relaxed, .threads = {send_relaxed, receive_relaxed},
         .expected = BIDE_CHECK_ASSERTION);
SCENARIO(message_passing_in_a_loop, .threads = {send_relaxed, receive_in_a_loop},
         .expected = BIDE_CHECK_ASSERTION);
SCENARIO(store_buffering, .threads = {store_x_load_y, store_y_load_x}, .finish = one_has_read_1,
         .expected = BIDE_CHECK_ASSERTION);
SCENARIO(independent_reads, .threads = {store_x, store_y, load_x_load_y, load_y_load_x},
         .finish = readers_agree, .expected = BIDE_CHECK_ASSERTION);
SCENARIO(short_window, .threads = {open_and_close, must_be_closed},
         .expected = BIDE_CHECK_ASSERTION);

/* Each is found by the seed 1 within so many draws: by uniform ones, unless that is 0, and by PCT with that depth. */
typedef struct planted {
    const char *name;
    const bide_check_scenario *own; /* or NULL: a seeded one */
    uint64_t uniform;
    unsigned depth;
    uint64_t pct;
} planted;

static const planted bugs[] = {
    {"message_passing_relaxed", &message_passing_relaxed, 100, 2, 100},
    {"message_passing_in_a_loop", &message_passing_in_a_loop, 100, 2, 100},
    {"store_buffering", &store_buffering, 100, 2, 100},
    {"independent_reads", &independent_reads, 500, 2, 500},
    {"short_window", &short_window, 0, 2, 2000}, /* uniform draws leave the window at once */
    {"dekker_with_acquire_and_release", NULL, 100, 2, 100},
    {"double_checked_locking_without_acquire", NULL, 500, 2, 500},
    {"sequence_lock_without_the_writers_fence", NULL, 500, 2, 500},
    {"ring_with_relaxed_index", NULL, 100, 2, 100},
    {"reference_count_with_relaxed_decrement", NULL, 100, 2, 100},
    {"buffer_that_checks_and_then_sleeps", NULL, 100, 2, 100},
    {"stack_with_aba", NULL, 2000, 3, 2000},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

static const bide_check_scenario *scenario_of(const planted *bug)
{
    const bide_check_scenario *all[MAX_SEEDED];
    size_t i = 0;
    if (bug->own != NULL)
        return bug->own;
    seeded_all(all);
    while (all[i] != NULL && strcmp(all[i]->name, bug->name) != 0)
        i++;
    assert_non_null(all[i]);
    return all[i];
}

/* Samples, and expects that the seed of the finding and its text give the same execution again. */
static uint64_t draws_until_found(const bide_check_scenario *scenario, bide_check_sampling sampling)
{
    bide_check_result found, again;
    bide_check_finding finding = bide_check_sample(scenario, &sampling, &found);
    if (finding != scenario->expected)
        print_message("%s: %s\n", scenario->name, bide_check_finding_name(finding));
    assert_int_equal(finding, scenario->expected);
    assert_true(found.is_sampled);
    assert_false(found.is_unfinished);
    uint64_t draws = found.executions + found.blocked + 1;

    sampling.runs = 1;
    sampling.seed = found.seed;
    assert_int_equal(bide_check_sample(scenario, &sampling, &again), finding);
    assert_string_equal(again.message, found.message);
    assert_string_equal(again.trace, found.trace);
    assert_string_equal(again.replay, found.replay);
    assert_int_equal(again.seed, found.seed);
    bide_check_result_free(&again);

    if (bide_check_replay(scenario, found.replay, &again) != finding)
        print_message("%s: %s\n%s%s\n", scenario->name, found.replay, found.trace, again.message);
    assert_int_equal(again.finding, finding);
    assert_string_equal(again.message, found.message);
    assert_string_equal(again.replay, found.replay);
    bide_check_result_free(&again);
    bide_check_result_free(&found);
    return draws;
}

static void planted_bugs_are_found_within_a_number_of_draws(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < BUGS; i++) {
        const bide_check_scenario *s = scenario_of(&bugs[i]);
        uint64_t uniform = 0;
        if (bugs[i].uniform != 0)
            uniform =
                draws_until_found(s, (bide_check_sampling){.runs = bugs[i].uniform, .seed = 1});
        uint64_t pct = draws_until_found(
            s, (bide_check_sampling){.runs = bugs[i].pct, .seed = 1, .depth = bugs[i].depth});
        printf("# %s: draw %" PRIu64 ", by PCT %" PRIu64 "\n", s->name, uniform, pct);
    }
}

/* For the table of docs/checking-pct.md. */
static void print_table_of_draws(void)
{
    enum { SEEDS = 50, MAX_DRAWS = 3000 };
    for (size_t i = 0; i < BUGS; i++) {
        uint64_t sums[4] = {0};
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            for (unsigned depth = 0; depth < 4; depth++) {
                bide_check_sampling sampling = {
                    .runs = MAX_DRAWS, .seed = seed << 32, .depth = depth};
                bide_check_result r;
                bide_check_sample(scenario_of(&bugs[i]), &sampling, &r);
                sums[depth] += r.executions + r.blocked + 1;
                bide_check_result_free(&r);
            }
        }
        printf("| %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " |\n", bugs[i].name,
               sums[0] / SEEDS, sums[1] / SEEDS, sums[2] / SEEDS, sums[3] / SEEDS);
    }
}

/* Of the seeded scenarios, those that find nothing if they are explored. */
static void nothing_is_found_where_nothing_is_wrong(void **unused)
{
    (void)unused;
    const bide_check_scenario *all[MAX_SEEDED];
    seeded_all(all);
    for (size_t i = 0; all[i] != NULL; i++) {
        for (unsigned depth = 0; depth < 4 && all[i]->expected == BIDE_CHECK_NOTHING; depth++) {
            bide_check_sampling sampling = {.runs = 200, .seed = 1, .depth = depth};
            bide_check_result r;
            if (bide_check_sample(all[i], &sampling, &r) != BIDE_CHECK_NOTHING)
                print_message("%s, depth %u: %s\n%s", all[i]->name, depth, r.message, r.trace);
            assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
            assert_true(r.executions > 0);
            assert_int_equal(r.executions + r.blocked, 200 + (depth != 0));
            bide_check_result_free(&r);
        }
    }
}

/* ---- What can be drawn ---- */

static void note_read(void *p)
{
    const state *s = p;
    bide_check_note("%u%u%u%u", s->read[0], s->read[1], s->read[2], s->read[3]);
}

static void store_1_and_2(void *p)
{
    state *s = p;
    bide_atomic_store(&s->x, 1, relaxed);
    bide_atomic_store(&s->x, 2, relaxed);
}

static void store_3_and_look(void *p)
{
    state *s = p;
    bide_atomic_store(&s->x, 3, relaxed);
    s->read[0] = bide_atomic_load(&s->x, relaxed);
    s->read[1] = bide_atomic_load(&s->x, relaxed);
}

static void take_turn(void *p)
{
    state *s = p;
    uint32_t mine = bide_atomic_fetch_add(&s->x, 1, relaxed);
    while (bide_atomic_load(&s->turn, acquire) != mine) {
    }
    s->read[mine] = bide_check_thread();
    bide_atomic_store(&s->turn, mine + 1, release);
}

static void exchange_weakly(void *p)
{
    state *s = p;
    uint32_t zero = 0;
    s->read[bide_check_thread()] =
        bide_atomic_compare_exchange_weak(&s->x, &zero, 1, seq_cst, relaxed);
}

static void choose_and_sleep(void *p)
{
    state *s = p;
    s->read[0] = bide_check_choose(3);
    s->read[1] = (uint32_t)bide_platform.wait(&s->x, 0, BIDE_FOREVER);
    s->read[2] = bide_atomic_load(&s->y, relaxed);
}

static void store_and_wake(void *p)
{
    state *s = p;
    bide_atomic_store(&s->y, 1, relaxed);
    bide_atomic_store(&s->x, 1, release);
    bide_platform.wake(&s->x, 1);
}

static void add_and_reset(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < 2; i++)
        s->read[i] = bide_atomic_fetch_add(&s->x, 1, acq_rel);
}

SCENARIO(sb, .threads = {store_x_load_y, store_y_load_x}, .finish = note_read);
SCENARIO(iriw, .threads = {store_x, store_y, load_x_load_y, load_y_load_x}, .finish = note_read);
SCENARIO(places, .threads = {store_1_and_2, store_3_and_look}, .finish = note_read);
SCENARIO(turns, .threads = {take_turn, take_turn, take_turn}, .finish = note_read);
SCENARIO(weak_exchange, .threads = {exchange_weakly, exchange_weakly}, .finish = note_read);
SCENARIO(sleeps, .threads = {choose_and_sleep, store_and_wake}, .finish = note_read);
SCENARIO(adds, .threads = {add_and_reset, exchange_weakly}, .finish = note_read);

static void what_is_drawn_is_what_is_explored(void **unused)
{
    (void)unused;
    static const bide_check_scenario *const all[] = {
        &sb, &iriw, &places, &turns, &weak_exchange, &sleeps, &adds};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bide_check_result explored;
        assert_int_equal(bide_check_explore(all[i], &explored), BIDE_CHECK_NOTHING);
        for (unsigned depth = 0; depth < 4; depth += 3) {
            bide_check_sampling sampling = {.runs = 4000, .seed = 7, .depth = depth};
            bide_check_result r;
            assert_int_equal(bide_check_sample(all[i], &sampling, &r), BIDE_CHECK_NOTHING);
            if (r.outcomes_count != explored.outcomes_count)
                print_message("%s, depth %u: %zu outcomes of %zu\n", all[i]->name, depth,
                              r.outcomes_count, explored.outcomes_count);
            assert_int_equal(r.outcomes_count, explored.outcomes_count);
            for (size_t j = 0; j < r.outcomes_count; j++)
                assert_string_equal(r.outcomes[j], explored.outcomes[j]);
            bide_check_result_free(&r);
        }
        bide_check_result_free(&explored);
    }
}

/* ---- Loops that wait ---- */

/* Each round changes something, so only the limit of steps in a row lets the other thread run. */
static void back_off_until_set(void *p)
{
    state *s = p;
    while (bide_atomic_load(&s->y, acquire) == 0) {
        bide_atomic_fetch_add(&s->turn, 1, relaxed);
        bide_atomic_fetch_sub(&s->turn, 1, relaxed);
    }
}

static void wait_for_x(void *p)
{
    while (bide_atomic_load(&((state *)p)->x, acquire) == 0) {
    }
}

static void wait_for_x_politely(void *p)
{
    while (bide_atomic_load(&((state *)p)->x, acquire) == 0)
        bide_cpu_relax();
    store_y(p);
}

static void add_long_and_set_y(void *p)
{
    for (unsigned i = 0; i < 1800; i++)
        bide_atomic_fetch_add(&((state *)p)->x, 1, relaxed);
    store_y(p);
}

/* Two that wait take most steps of the run that is measured, so its length is beyond what one thread may take. */
SCENARIO(two_wait_long, .threads = {back_off_until_set, back_off_until_set, add_long_and_set_y});
SCENARIO(waits, .threads = {back_off_until_set, wait_for_x, wait_for_x_politely, store_x});
SCENARIO(waits_in_vain, .threads = {wait_for_x, store_y}, .max_steps = 1000,
         .expected = BIDE_CHECK_LIVELOCK);

static void loops_that_wait_end_when_they_can(void **unused)
{
    (void)unused;
    for (unsigned depth = 0; depth < 5; depth++) {
        bide_check_sampling sampling = {.runs = 300, .seed = 3, .depth = depth};
        bide_check_result r;
        if (bide_check_sample(&waits, &sampling, &r) != BIDE_CHECK_NOTHING)
            print_message("%s\n%s", r.message, r.trace);
        assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
        assert_int_equal(r.blocked, 0);
        bide_check_result_free(&r);
        draws_until_found(&waits_in_vain, sampling);
        sampling.runs = 20;
        assert_int_equal(bide_check_sample(&two_wait_long, &sampling, &r), BIDE_CHECK_NOTHING);
        bide_check_result_free(&r);
    }
}

/* ---- The bound of PCT ---- */

static void init_is_over(void *p)
{
    sem_init(&((state *)p)->is_over, 0, 0);
}

/* The window is open only if the waiter comes first. */
static void open_behind_the_waiter(void *p)
{
    state *s = p;
    uint32_t opened = bide_atomic_fetch_add(&s->turn, 0, seq_cst);
    for (unsigned i = 0; i < 10; i++)
        bide_atomic_fetch_add(&s->y, 1, seq_cst);
    bide_atomic_exchange(&s->x, opened, seq_cst);
    bide_atomic_exchange(&s->x, 0, seq_cst);
    for (unsigned i = 0; i < 10; i++)
        bide_atomic_fetch_add(&s->y, 1, seq_cst);
    sem_post(&s->is_over);
}

static void come_and_wait(void *p)
{
    state *s = p;
    bide_atomic_exchange(&s->turn, 1, seq_cst);
    sem_wait(&s->is_over);
}

SCENARIO(window_beside_a_waiter, .setup = init_is_over,
         .threads = {open_behind_the_waiter, come_and_wait, must_be_closed},
         .expected = BIDE_CHECK_ASSERTION);

/* The waiter has a higher priority than the thread in which the change must be. */
static void no_change_is_spent_on_a_thread_that_waits(void **unused)
{
    (void)unused;
    bide_check_sampling sampling = {.runs = 5000, .seed = 1, .depth = 2};
    draws_until_found(&window_beside_a_waiter, sampling);
}

static void add_often(void *p)
{
    for (unsigned i = 0; i < 600; i++)
        bide_atomic_fetch_add(&((state *)p)->y, 1, relaxed);
}

static void add_if_x_is_set(void *p)
{
    state *s = p;
    uint32_t more = bide_atomic_load(&s->x, relaxed);
    for (unsigned i = 0; i < 4 * more; i++)
        bide_atomic_fetch_add(&s->y, 1, relaxed);
}

SCENARIO(one_adds_often, .threads = {add_often, store_x});
SCENARIO(x_is_set_last, .threads = {add_if_x_is_set, add_if_x_is_set, add_if_x_is_set, store_x});

static void fail_always(void *p)
{
    store_x(p);
    bide_check_assert(false);
}

SCENARIO(always_wrong, .threads = {fail_always, store_y}, .expected = BIDE_CHECK_ASSERTION);

static double bound_of(const bide_check_scenario *scenario, unsigned depth, uint64_t runs)
{
    bide_check_sampling sampling = {.runs = runs, .seed = 1, .depth = depth};
    bide_check_result r;
    assert_int_equal(bide_check_sample(scenario, &sampling, &r), scenario->expected);
    double bound = r.bound;
    bide_check_result_free(&r);
    return bound;
}

static void the_bound_is_reported_where_it_holds(void **unused)
{
    (void)unused;
    enum { SEEDS = 2000, STEPS = 2 * 42 + 2 };
    assert_true(bound_of(&sb, 0, 10) == 0);
    assert_true(bound_of(&sb, 1, 10) == 1 / (2 * 2.0));
    assert_true(bound_of(&sb, 3, 10) == 1 / (2 * 2.0 * 4 * 4));
    /* A long row of steps is no loop that waits. */
    assert_true(bound_of(&one_adds_often, 2, 10) == 1 / (2 * 2.0 * 1201));
    assert_true(bound_of(&waits, 2, 100) == 0);
    assert_true(bound_of(&x_is_set_last, 2, 1) != 0);
    assert_true(bound_of(&x_is_set_last, 2, 1000) == 0);
    /* The run that is measured is not whole. */
    assert_true(bound_of(&always_wrong, 1, 10) == 0);

    unsigned found = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        bide_check_sampling sampling = {.runs = 1, .seed = seed, .depth = 2};
        bide_check_result r;
        found += bide_check_sample(&short_window, &sampling, &r) == BIDE_CHECK_ASSERTION;
        assert_true(r.bound == 1 / (2 * 2.0 * STEPS));
        bide_check_result_free(&r);
    }
    printf("# the short window: %u of %d\n", found, SEEDS);
    assert_true(found * 2 * 2 * STEPS >= SEEDS);
}

/* ---- Limits ---- */

static void a_draw_that_is_over_time_is_the_last(void **unused)
{
    (void)unused;
    bide_check_scenario s = one_adds_often;
    s.max_seconds = 1e-9;
    for (unsigned depth = 0; depth < 2; depth++) {
        bide_check_sampling sampling = {.runs = UINT64_MAX, .seed = 1, .depth = depth};
        bide_check_result r;
        assert_int_equal(bide_check_sample(&s, &sampling, &r), BIDE_CHECK_NOTHING);
        assert_true(r.is_unfinished);
        assert_int_equal(r.executions, 1 + depth);
        bide_check_result_free(&r);
    }
}

static void a_limit_of_time_leaves_it_unfinished(void **unused)
{
    (void)unused;
    bide_check_scenario s = sb;
    s.max_seconds = 0.01;
    bide_check_sampling sampling = {.runs = UINT64_MAX, .seed = 1};
    bide_check_result r;
    assert_int_equal(bide_check_sample(&s, &sampling, &r), BIDE_CHECK_NOTHING);
    assert_true(r.is_unfinished);
    assert_true(r.is_sampled);
    bide_check_result_free(&r);

    /* Those of an exploration do not count. */
    s.max_seconds = 0;
    s.max_executions = 2;
    s.preemptions = 1;
    sampling.runs = 100;
    assert_int_equal(bide_check_sample(&s, &sampling, &r), BIDE_CHECK_NOTHING);
    assert_false(r.is_unfinished);
    assert_false(r.is_bounded);
    assert_int_equal(r.executions, 100);
    assert_int_equal(r.outcomes_count, 4);
    bide_check_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_bugs_are_found_within_a_number_of_draws),
        cmocka_unit_test(nothing_is_found_where_nothing_is_wrong),
        cmocka_unit_test(what_is_drawn_is_what_is_explored),
        cmocka_unit_test(loops_that_wait_end_when_they_can),
        cmocka_unit_test(no_change_is_spent_on_a_thread_that_waits),
        cmocka_unit_test(the_bound_is_reported_where_it_holds),
        cmocka_unit_test(a_draw_that_is_over_time_is_the_last),
        cmocka_unit_test(a_limit_of_time_leaves_it_unfinished),
    };
    if (getenv("BIDE_TABLE") != NULL) {
        print_table_of_draws();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
