/*
 * Fork and join: the Fibonacci number 30 by the naive recursion, in which each call forks one half.
 * Nanoseconds a call of the function, of which there are 2.7 million. There is nothing in a call
 * but the forking, so this is what a fork costs and not what it is worth.
 *
 * Subjects: `call`, the plain recursion, and `call-struct`, the same with its argument in a struct
 * behind a void pointer, as bide_join's functions have it; `bide-join`; `tbb`, oneTBB's task_group;
 * and rayon's join, which fork.sh runs.
 */
#include "bench.h"
#include "peers/fork.h"
#include "pools.h"

#include "bide/join.h"

#define PARAMS(threads) "{\"threads\": " #threads "}"

struct fib {
    uint64_t n, result;
};

static uint64_t check(uint64_t result)
{
    if (result != FORK_RESULT)
        bench_fail("fork", "a wrong number");
    return FORK_CALLS;
}

/* ---- Calls ---- */

static __attribute__((noinline)) uint64_t call(uint64_t n)
{
    return n < 2 ? n : call(n - 1) + call(n - 2);
}

static uint64_t run_call(const void *unused)
{
    uint64_t n = FORK_N;
    (void)unused;
    __asm__ volatile("" : "+r"(n));
    return check(call(n));
}

static __attribute__((noinline)) void call_struct(void *argument)
{
    struct fib *self = argument, one, other;
    self->result = self->n;
    if (self->n < 2)
        return;
    one.n = self->n - 1;
    other.n = self->n - 2;
    call_struct(&one);
    call_struct(&other);
    self->result = one.result + other.result;
}

static uint64_t run_call_struct(const void *unused)
{
    struct fib all = {.n = FORK_N};
    (void)unused;
    call_struct(&all);
    return check(all.result);
}

/* ---- bide ---- */

static void join(void *argument)
{
    struct fib *self = argument, one, other;
    self->result = self->n;
    if (self->n < 2)
        return;
    one.n = self->n - 1;
    other.n = self->n - 2;
    bide_join(join, &one, join, &other);
    self->result = one.result + other.result;
}

static uint64_t run_join(const void *threads)
{
    struct fib all = {.n = FORK_N};
    bide_call_in(bench_pool(*(const unsigned *)threads), join, &all);
    return check(all.result);
}

#if BENCH_TBB
static uint64_t run_tbb(const void *threads)
{
    return check(peer_fork_tbb(*(const unsigned *)threads));
}
#endif

int main(void)
{
    static const unsigned one = 1, two = 2;
    const bench_subject subjects[] = {
        {"call", run_call, NULL, PARAMS(1)},
        {"call-struct", run_call_struct, NULL, PARAMS(1)},
        {"bide-join", run_join, &one, PARAMS(1)},
        {"bide-join", run_join, &two, PARAMS(2)},
#if BENCH_TBB
        {"tbb", run_tbb, &one, PARAMS(1)},
        {"tbb", run_tbb, &two, PARAMS(2)},
#endif
    };
    bench_run("fork", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof subjects[0], 21);
    return 0;
}
