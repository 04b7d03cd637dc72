/*
 * A parent that awaits a thousand children at once and adds up their results: create, start, finish and
 * collect, for each child. They complete at once ("suspends": 0), or each waits once, for an event that is
 * set when all do ("suspends": 1). All on one thread.
 *
 * calls                 a call out of line that does the child's work, for each: the floor
 * cxx20-when_all-g++    a minimal when_all over C++20 tasks, in vectors, compiled by g++; "frames": 2, a
 *                       child's and one of when_all's own for it, as cppcoro has it, or 1, for children
 *                       that only when_all can await
 * cxx20-when_all-clang  the same, by clang
 */
#include "bench.h"

#include "peers/when_all.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHILDREN = 1000, TIMES = 1000 };

#define PARAMS(suspends, frames) \
    "{\"children\": 1000, \"suspends\": " #suspends ", \"frames\": " #frames "}"

static uint64_t check_sum(uint64_t sum)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < CHILDREN; i++)
        right += i & 0xff;
    if (sum != right * TIMES) {
        fprintf(stderr, "when_all: the sum is wrong\n");
        exit(1);
    }
    return (uint64_t)CHILDREN * TIMES;
}

static __attribute__((noinline)) void call(uint64_t argument, uint64_t *result)
{
    *result = argument & 0xff;
    __asm__ volatile("" ::: "memory");
}

static uint64_t run_calls(const void *unused)
{
    static uint64_t results[CHILDREN];
    uint64_t sum = 0;
    (void)unused;
    for (int times = 0; times < TIMES; times++) {
        for (uint64_t i = 0; i < CHILDREN; i++)
            call(i, &results[i]);
        for (uint64_t i = 0; i < CHILDREN; i++)
            sum += results[i];
    }
    return check_sum(sum);
}

#if BENCH_GXX || BENCH_CLANG
static uint64_t run_cxx(const void *peer)
{
    return check_sum(((const struct peer_when_all *)peer)->run(CHILDREN, TIMES));
}
#endif

int main(void)
{
    const bench_subject subjects[] = {
        {"calls", run_calls, NULL, PARAMS(0, 0)},
#if BENCH_GXX
        {"cxx20-when_all-g++", run_cxx, &peer_when_all_gxx[PEER_TASKS_READY], PARAMS(0, 2)},
        {"cxx20-when_all-g++", run_cxx, &peer_when_all_gxx[PEER_TASKS_SUSPENDING], PARAMS(1, 2)},
        {"cxx20-when_all-g++", run_cxx, &peer_when_all_gxx[PEER_COUNTED_READY], PARAMS(0, 1)},
        {"cxx20-when_all-g++", run_cxx, &peer_when_all_gxx[PEER_COUNTED_SUSPENDING], PARAMS(1, 1)},
#endif
#if BENCH_CLANG
        {"cxx20-when_all-clang", run_cxx, &peer_when_all_clang[PEER_TASKS_READY], PARAMS(0, 2)},
        {"cxx20-when_all-clang", run_cxx, &peer_when_all_clang[PEER_TASKS_SUSPENDING],
         PARAMS(1, 2)},
        {"cxx20-when_all-clang", run_cxx, &peer_when_all_clang[PEER_COUNTED_READY], PARAMS(0, 1)},
        {"cxx20-when_all-clang", run_cxx, &peer_when_all_clang[PEER_COUNTED_SUSPENDING],
         PARAMS(1, 1)},
#endif
    };
    bench_run("when_all", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof subjects[0],
              21);
    return 0;
}
