/*
 * Numbers through a ring of 16384, from producers to consumers (ring_bide.h): all on one thread, or
 * on two; claimed and published one at a time, in tens or in 256s.
 *
 *   bide                coroutines, on a run loop for each thread. With more than two parties on two
 *                       threads: producers on one and consumers on the other ("apart"), or dealt in
 *                       turn ("dealt")
 *   bide-spinning       the same, but consumers spin briefly before they wait
 *                       (bide/adaptive_spin.h)
 *   bide-cxx-g++        1-1: tasks of C++20 on bide (bide/bide.hpp), compiled by g++
 *   mutex+cond          1-1: a ring under a mutex and two condition variables, two threads
 *   cxx20-barrier-g++   1-1 on one thread: a minimal sequence barrier like cppcoro's, compiled by
 *                       g++. A waiter is "resumed" "inline", in publish, or "queued", when the
 *                       publisher has suspended (as in bide)
 *   ..-clang            the same, compiled by clang
 *
 * (peers/ring.sh adds the Disruptor for Java, with a thread for each party.) `ring TOPOLOGY` runs
 * one topology only.
 */
#include "bench.h"
#include "ring_bide.h"

#include "cxx/cxx.h"
#include "peers/locked_ring.h"
#include "peers/ring.h"

#include <stdbool.h>
#include <string.h>

enum { ROUNDS = 9 };

static void check_sum(uint64_t sum, uint64_t items)
{
    if (sum != items * (items - 1) / 2)
        bench_fail("ring", "the consumer's sum is wrong");
}

struct locked {
    struct locked_ring ring;
    const struct ring_setting *setting;
    uint64_t sum;
};

static void *run_locked_consumer(void *argument)
{
    struct locked *locked = argument;
    uint64_t items[256];
    bench_place_thread(1);
    for (uint64_t seen = 0; seen < locked->setting->items;) {
        size_t count = locked_ring_pop(&locked->ring, items, locked->setting->batch);
        for (size_t i = 0; i < count; i++)
            locked->sum += items[i];
        seen += count;
    }
    return NULL;
}

static uint64_t run_locked(const void *argument)
{
    struct locked locked = {.setting = argument};
    uint64_t items[256];
    bench_place_thread(0);
    if (locked_ring_init(&locked.ring, BENCH_RING) != 0)
        bench_fail("ring", "no memory");
    pthread_t thread = bench_start_thread(run_locked_consumer, &locked);
    for (uint64_t sent = 0; sent < locked.setting->items;) {
        size_t count = 0;
        for (; count < locked.setting->batch && sent < locked.setting->items; count++)
            items[count] = sent++;
        locked_ring_push(&locked.ring, items, count);
    }
    pthread_join(thread, NULL);
    locked_ring_destroy(&locked.ring);
    check_sum(locked.sum, locked.setting->items);
    return locked.setting->items;
}

#define RUN_CXX(name, peer, function)                                                           \
    static uint64_t name(const void *argument)                                                  \
    {                                                                                           \
        const struct ring_setting *setting = argument;                                          \
        check_sum((peer).function(setting->items, setting->batch, BENCH_RING), setting->items); \
        return setting->items;                                                                  \
    }
#define RUN_ON_BIDE(name, subject)                                         \
    static uint64_t name(const void *argument)                             \
    {                                                                      \
        const struct ring_setting *setting = argument;                     \
        check_sum((subject).run(setting->items, setting->batch,            \
                                setting->placement == RING_APART ? 2 : 1), \
                  setting->items);                                         \
        return setting->items;                                             \
    }
#if BENCH_GXX
RUN_ON_BIDE(run_on_bide_gxx, cxx_ring_gxx)
RUN_CXX(run_gxx_inline, peer_ring_gxx, run_inline)
RUN_CXX(run_gxx_queued, peer_ring_gxx, run_queued)
#endif
#if BENCH_CLANG
RUN_ON_BIDE(run_on_bide_clang, cxx_ring_clang)
RUN_CXX(run_clang_inline, peer_ring_clang, run_inline)
RUN_CXX(run_clang_queued, peer_ring_clang, run_queued)
#endif

#define PARAMS(topology, threads, placement, batch)                                            \
    "{\"topology\": \"" topology "\", \"threads\": " #threads placement ", \"batch\": " #batch \
    ", \"ring\": 16384}"
#define SUBJECT(name, run, topology, named, placement, threads, placed, batch, items, spins)     \
    {                                                                                            \
        name, run,                                                                               \
            &(const struct ring_setting){topology, placement, batch, (items)*1000000ULL, spins}, \
            PARAMS(named, threads, placed, batch)                                                \
    }
/* In batches of 1, 10 and 256; the items in millions. */
#define SUBJECTS(name, run, topology, named, placement, threads, placed, n1, n10, n256, spins) \
    SUBJECT(name, run, topology, named, placement, threads, placed, 1, n1, spins),             \
        SUBJECT(name, run, topology, named, placement, threads, placed, 10, n10, spins),       \
        SUBJECT(name, run, topology, named, placement, threads, placed, 256, n256, spins)
#define BIDE(topology, named, placement, threads, placed, n1, n10, n256)                          \
    SUBJECTS("bide", ring_bide_run, topology, named, placement, threads, placed, n1, n10, n256,   \
             false),                                                                              \
        SUBJECTS("bide-spinning", ring_bide_run, topology, named, placement, threads, placed, n1, \
                 n10, n256, true)
#define CXX(name, run, resumed, n1, n10, n256)                                                   \
    SUBJECTS(name, run, RING_1_1, "1-1", RING_TOGETHER, 1, ", \"resumed\": \"" resumed "\"", n1, \
             n10, n256, false)
#define ON_BIDE(name, run)                                                        \
    SUBJECTS(name, run, RING_1_1, "1-1", RING_TOGETHER, 1, "", 6, 30, 60, false), \
        SUBJECTS(name, run, RING_1_1, "1-1", RING_APART, 2, "", 6, 30, 40, false)
#define APART ", \"placement\": \"apart\""
#define DEALT ", \"placement\": \"dealt\""

static const bench_subject subjects_1_1[] = {
    BIDE(RING_1_1, "1-1", RING_TOGETHER, 1, "", 6, 30, 60),
    BIDE(RING_1_1, "1-1", RING_APART, 2, "", 6, 30, 40),
    SUBJECTS("mutex+cond", run_locked, RING_1_1, "1-1", RING_APART, 2, "", 1, 10, 30, false),
#if BENCH_GXX
    ON_BIDE("bide-cxx-g++", run_on_bide_gxx),
    CXX("cxx20-barrier-g++", run_gxx_inline, "inline", 2, 10, 40),
    CXX("cxx20-barrier-g++", run_gxx_queued, "queued", 6, 30, 60),
#endif
#if BENCH_CLANG
    ON_BIDE("bide-cxx-clang", run_on_bide_clang),
    CXX("cxx20-barrier-clang", run_clang_inline, "inline", 2, 10, 40),
    CXX("cxx20-barrier-clang", run_clang_queued, "queued", 6, 30, 60),
#endif
};

static const bench_subject subjects_1_3[] = {
    BIDE(RING_1_3, "1-3", RING_TOGETHER, 1, "", 3, 15, 30),
    BIDE(RING_1_3, "1-3", RING_APART, 2, APART, 3, 15, 20),
    BIDE(RING_1_3, "1-3", RING_DEALT, 2, DEALT, 3, 15, 20),
};

static const bench_subject subjects_3_1[] = {
    BIDE(RING_3_1, "3-1", RING_TOGETHER, 1, "", 3, 15, 30),
    BIDE(RING_3_1, "3-1", RING_APART, 2, APART, 3, 10, 20),
    BIDE(RING_3_1, "3-1", RING_DEALT, 2, DEALT, 3, 10, 20),
};

static const bench_subject subjects_1_2_1[] = {
    BIDE(RING_1_2_1, "1-2-1", RING_TOGETHER, 1, "", 3, 15, 30),
    BIDE(RING_1_2_1, "1-2-1", RING_APART, 2, APART, 3, 15, 20),
    BIDE(RING_1_2_1, "1-2-1", RING_DEALT, 2, DEALT, 3, 15, 20),
};

#define ALL(subjects) (subjects), sizeof(subjects) / sizeof((subjects)[0])

static const struct {
    const char *name;
    const bench_subject *subjects;
    size_t count;
} topologies[] = {
    {"1-1", ALL(subjects_1_1)},
    {"1-3", ALL(subjects_1_3)},
    {"3-1", ALL(subjects_3_1)},
    {"1-2-1", ALL(subjects_1_2_1)},
};

int main(int argc, char **argv)
{
    bool known = false;
    for (size_t i = 0; i < sizeof topologies / sizeof topologies[0]; i++) {
        if (argc > 1 && strcmp(argv[1], topologies[i].name) != 0)
            continue;
        known = true;
        bench_run("ring", BENCH_ITEMS_PER_SECOND, topologies[i].subjects, topologies[i].count,
                  ROUNDS);
    }
    if (!known)
        bench_fail("ring", "there is no such topology");
    return 0;
}
