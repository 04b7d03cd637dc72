/*
 * The model checker: how many executions small programs have, and how many of them it runs per
 * second.
 *
 *   relaxed, seq_cst  three threads; each stores to x, loads y, stores to y and loads x
 *   sb                store buffering: two threads, each a store and a load of the other's; seq_cst
 *   iriw              two threads store, two load both in opposite order; seq_cst
 *   fetch_add         four threads, one fetch_add each on the same object
 */
#include "bench.h"

#include "bide/check.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct state {
    bide_atomic(uint32_t) x;
    bide_atomic(uint32_t) y;
} state;

#define CROSS_OVER(order)                           \
    static void cross_over_##order(void *p)         \
    {                                               \
        state *s = p;                               \
        uint32_t number = bide_check_thread();      \
        bide_atomic_store(&s->x, number, order);    \
        bench_keep(bide_atomic_load(&s->y, order)); \
        bide_atomic_store(&s->y, number, order);    \
        bench_keep(bide_atomic_load(&s->x, order)); \
    }

CROSS_OVER(relaxed)
CROSS_OVER(seq_cst)

static void store_x(void *p)
{
    bide_atomic_store(&((state *)p)->x, 1, seq_cst);
}

static void store_y(void *p)
{
    bide_atomic_store(&((state *)p)->y, 1, seq_cst);
}

static void load_x(void *p)
{
    bench_keep(bide_atomic_load(&((state *)p)->x, seq_cst));
}

static void load_y(void *p)
{
    bench_keep(bide_atomic_load(&((state *)p)->y, seq_cst));
}

static void store_x_load_y(void *p)
{
    store_x(p);
    load_y(p);
}

static void store_y_load_x(void *p)
{
    store_y(p);
    load_x(p);
}

static void load_x_load_y(void *p)
{
    load_x(p);
    load_y(p);
}

static void load_y_load_x(void *p)
{
    load_y(p);
    load_x(p);
}

static void add(void *p)
{
    bench_keep(bide_atomic_fetch_add(&((state *)p)->x, 1, relaxed));
}

#define SCENARIO(...) \
    (&(const bide_check_scenario){.size = sizeof(state), .threads = {__VA_ARGS__}})

enum { EXECUTIONS = 20000 };

/* Explores the whole program once. */
static uint64_t executions_of(const bide_check_scenario *scenario)
{
    bide_check_result result;
    if (bide_check_explore(scenario, &result) != BIDE_CHECK_NOTHING) {
        fprintf(stderr, "%s\n", result.message);
        exit(1);
    }
    uint64_t executions = result.executions;
    bide_check_result_free(&result);
    return executions;
}

/* Explores the program repeatedly until this many executions have been run. */
static uint64_t run(const void *scenario)
{
    uint64_t executions = 0;
    while (executions < EXECUTIONS)
        executions += executions_of(scenario);
    return executions;
}

int main(void)
{
    const bench_subject subjects[] = {
        {"relaxed", run, SCENARIO(cross_over_relaxed, cross_over_relaxed, cross_over_relaxed),
         "{\"threads\": 3, \"operations\": 4, \"objects\": 2, \"item\": \"execution\"}"},
        {"seq_cst", run, SCENARIO(cross_over_seq_cst, cross_over_seq_cst, cross_over_seq_cst),
         "{\"threads\": 3, \"operations\": 4, \"objects\": 2, \"item\": \"execution\"}"},
        {"sb", run, SCENARIO(store_x_load_y, store_y_load_x),
         "{\"threads\": 2, \"operations\": 2, \"objects\": 2, \"item\": \"execution\"}"},
        {"iriw", run, SCENARIO(store_x, store_y, load_x_load_y, load_y_load_x),
         "{\"threads\": 4, \"operations\": 2, \"objects\": 2, \"item\": \"execution\"}"},
        {"fetch_add", run, SCENARIO(add, add, add, add),
         "{\"threads\": 4, \"operations\": 1, \"objects\": 1, \"item\": \"execution\"}"},
    };
    size_t count = sizeof subjects / sizeof subjects[0];
    for (size_t i = 0; i < count; i++)
        bench_print("check", subjects[i].name, (double)executions_of(subjects[i].argument),
                    "executions", subjects[i].params);
    bench_run("check", BENCH_ITEMS_PER_SECOND, subjects, count, 9);
    return 0;
}
