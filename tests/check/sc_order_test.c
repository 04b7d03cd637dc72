/*
 * The order of seq_cst accesses of sampled executions: what can be drawn is what the exploration reaches, and a step costs
 * no more in a long execution than in a short one.
 */
#include "../src/check/sc_order.h"

#include "testing.h"

#include <inttypes.h>

enum { LOCATIONS = 3, MAX_STEPS = 12, MAX_THREADS = 3 };

typedef struct state {
    bide_atomic(uint32_t) words[LOCATIONS];
    uint32_t results[MAX_THREADS];
} state;

/* ---- Random programs ---- */

typedef enum kind { LOADS, STORES, ADDS, SWAPS, FENCES, KINDS } kind;

typedef struct step {
    kind kind;
    unsigned location, value;
    bool is_strong; /* seq_cst */
} step;

static struct {
    step steps[MAX_THREADS][MAX_STEPS];
    unsigned lengths[MAX_THREADS];
} program;

static uint32_t take_step(state *s, const step *now)
{
    bide_atomic(uint32_t) *word = &s->words[now->location];
    uint32_t expected = now->value;
    switch (now->kind) {
    case LOADS:
        return now->is_strong ? bide_atomic_load(word, seq_cst) : bide_atomic_load(word, acquire);
    case STORES:
        if (now->is_strong)
            bide_atomic_store(word, now->value, seq_cst);
        else
            bide_atomic_store(word, now->value, release);
        return 0;
    case ADDS:
        return now->is_strong ? bide_atomic_fetch_add(word, 1, seq_cst)
                              : bide_atomic_fetch_add(word, 1, relaxed);
    case SWAPS:
        bide_atomic_compare_exchange(word, &expected, 7, seq_cst, relaxed);
        return expected;
    default:
        if (now->value == 0)
            bide_atomic_fence(acquire);
        else if (now->value == 1)
            bide_atomic_fence(release);
        else if (now->is_strong)
            bide_atomic_fence(seq_cst);
        else
            bide_atomic_fence(relaxed);
        return 0;
    }
}

static void run_steps(void *p)
{
    state *s = p;
    unsigned self = bide_check_thread() - 1;
    uint32_t sum = 0;
    for (unsigned i = 0; i < program.lengths[self]; i++)
        sum = sum * 9 + take_step(s, &program.steps[self][i]);
    s->results[self] = sum;
}

static void note_all(void *p)
{
    state *s = p;
    bide_check_note("%u %u %u: %u %u %u", s->results[0], s->results[1], s->results[2],
                    bide_atomic_load(&s->words[0], relaxed),
                    bide_atomic_load(&s->words[1], relaxed),
                    bide_atomic_load(&s->words[2], relaxed));
}

static void make_program(uint64_t *random, unsigned threads, unsigned max_length)
{
    unsigned locations = 1 + (unsigned)(testing_random(random) % LOCATIONS);
    /* (most programs have no seq_cst fence: then the whole graph is looked at) */
    bool has_fences = testing_random(random) % 4 == 0;
    for (unsigned t = 0; t < MAX_THREADS; t++) {
        program.lengths[t] = t < threads ? 1 + (unsigned)(testing_random(random) % max_length) : 0;
        for (unsigned i = 0; i < program.lengths[t]; i++) {
            uint64_t drawn = testing_random(random);
            program.steps[t][i] = (step){
                .kind = (kind)(drawn % KINDS),
                .location = (unsigned)(drawn / 16 % locations),
                .value = (unsigned)(drawn / 256 % 3),
                .is_strong = drawn / 4096 % 3 != 0,
            };
            if (program.steps[t][i].kind == FENCES && !has_fences)
                program.steps[t][i].value %= 2;
        }
    }
}

static bool is_among(const char *outcome, const bide_check_result *r)
{
    size_t i = 0;
    while (i < r->outcomes_count && strcmp(r->outcomes[i], outcome) != 0)
        i++;
    return i < r->outcomes_count;
}

static void what_is_drawn_in_random_programs_is_what_is_explored(void **unused)
{
    (void)unused;
    uint64_t random = testing_seed();
    unsigned programs = rounds_of(300), compared = 0, all = 0;
    for (unsigned i = 0; i < programs; i++) {
        unsigned threads = 2 + (unsigned)(testing_random(&random) % 2);
        make_program(&random, threads, threads == 2 ? 4 : 3);
        bide_check_scenario scenario = {.name = "random",
                                        .size = sizeof(state),
                                        .threads = {run_steps, run_steps},
                                        .finish = note_all,
                                        .max_executions = 3000};
        if (threads == 3)
            scenario.threads[2] = run_steps;
        bide_check_result explored, drawn;
        bide_check_explore(&scenario, &explored);
        bide_check_sampling sampling = {
            .runs = 600, .seed = testing_random(&random), .depth = i % 4};
        assert_int_equal(bide_check_sample(&scenario, &sampling, &drawn), BIDE_CHECK_NOTHING);
        for (size_t k = 0; k < drawn.outcomes_count && !explored.is_unfinished; k++) {
            if (!is_among(drawn.outcomes[k], &explored))
                printf("# program %u: %s is not explored\n", i, drawn.outcomes[k]);
            assert_true(is_among(drawn.outcomes[k], &explored));
        }
        compared += !explored.is_unfinished;
        all += !explored.is_unfinished && drawn.outcomes_count == explored.outcomes_count;
        bide_check_result_free(&explored);
        bide_check_result_free(&drawn);
    }
    printf("# %u of %u programs compared, all outcomes of %u drawn\n", compared, programs, all);
    assert_true(compared != 0 && all != 0);
}

/* The checker asserts, for graphs of up to 64 events, that the order agrees with the whole graph's. */
static void the_order_agrees_with_the_graph(void **unused)
{
    (void)unused;
    uint64_t random = testing_seed();
    for (unsigned i = 0, programs = rounds_of(1000); i < programs; i++) {
        make_program(&random, MAX_THREADS, MAX_STEPS);
        bide_check_scenario scenario = {
            .name = "random", .size = sizeof(state), .threads = {run_steps, run_steps, run_steps}};
        bide_check_sampling sampling = {.runs = 100, .seed = testing_random(&random)};
        bide_check_result drawn;
        assert_int_equal(bide_check_sample(&scenario, &sampling, &drawn), BIDE_CHECK_NOTHING);
        bide_check_result_free(&drawn);
    }
}

/* ---- What a step costs ---- */

static unsigned rounds;

static void store_and_load(void *p)
{
    state *s = p;
    unsigned self = bide_check_thread() - 1;
    for (unsigned i = 0; i < rounds; i++) {
        bide_atomic_store(&s->words[self], i, seq_cst);
        s->results[self] += bide_atomic_load(&s->words[(self + 1) % MAX_THREADS], seq_cst);
    }
}

static void add_and_load(void *p)
{
    state *s = p;
    unsigned self = bide_check_thread() - 1;
    for (unsigned i = 0; i < rounds; i++) {
        bide_atomic_fetch_add(&s->words[0], 1, seq_cst);
        s->results[self] += bide_atomic_load(&s->words[i % 2], seq_cst);
    }
}

static void only_store(void *p)
{
    for (unsigned i = 0; i < 2 * rounds; i++)
        bide_atomic_store(&((state *)p)->words[0], i, seq_cst);
}

static void only_load(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < 2 * rounds; i++)
        s->results[1] += bide_atomic_load(&s->words[0], seq_cst);
}

/* The accesses that are looked at, for each round. */
static uint64_t looks_of_round(const bide_check_scenario *scenario, unsigned depth, unsigned count)
{
    enum { RUNS = 20 };
    uint64_t before = sc_order_looks;
    bide_check_sampling sampling = {.runs = RUNS, .seed = 5, .depth = depth};
    bide_check_result r;
    rounds = count;
    assert_int_equal(bide_check_sample(scenario, &sampling, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.executions, RUNS + (depth != 0));
    bide_check_result_free(&r);
    return (sc_order_looks - before) / (RUNS * count);
}

static void a_step_costs_as_much_in_a_long_execution(void **unused)
{
    (void)unused;
    static const bide_check_scenario scenarios[] = {
        {.name = "stores and loads",
         .size = sizeof(state),
         .threads = {store_and_load, store_and_load, store_and_load}},
        {.name = "adds and loads", .size = sizeof(state), .threads = {add_and_load, add_and_load}},
        {.name = "only one stores", .size = sizeof(state), .threads = {only_store, only_load}},
    };
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        for (unsigned depth = 0; depth < 3; depth += 2) {
            uint64_t few = looks_of_round(&scenarios[i], depth, 100);
            uint64_t many = looks_of_round(&scenarios[i], depth, 1600);
            printf("# %s, depth %u: %" PRIu64 " looks a round of 100, %" PRIu64 " of 1600\n",
                   scenarios[i].name, depth, few, many);
            assert_true(few != 0);
            assert_true(many <= 4 * few);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_drawn_in_random_programs_is_what_is_explored),
        cmocka_unit_test(the_order_agrees_with_the_graph),
        cmocka_unit_test(a_step_costs_as_much_in_a_long_execution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
