/*
 * Fork and join: the Fibonacci number 30 by naive recursion, in which each call forks one half.
 * Nanoseconds for each call of the function, of which there are 2.7 million. A call does nothing
 * but fork, so this measures the cost of a fork and not its benefit.
 *
 * Subjects: `call`, the plain recursion, and `call-struct`, the same with its argument in a struct
 * behind a void pointer, like bide_join's functions; `bide-join`; `bide-fork`, coroutines; `c++20`,
 * coroutines that fork like libfork's; `tbb`, oneTBB's task_group; and rayon's join, which fork.sh
 * runs.
 */
#include "bench.h"
#include "peers/fork.h"
#include "pools.h"

#include "bide/fork.h"
#include "bide/join.h"
#include "bide/sync_wait.h"

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

struct forking_fib {
    bide_fork_task forking;
    uint64_t n;
    uint64_t *result;
    uint64_t one, other;
};

bide_fork_coroutine(forking_fib_body)
{
    bide_begin(forking_fib_body, struct forking_fib * self);
    *self->result = self->n;
    if (self->n < 2)
        bide_return(0);
    bide_await(bide_fork(self, struct forking_fib, &forking_fib_body, n = self->n - 1,
                         result = &self->one));
    bide_try(bide_fork_call(self, struct forking_fib, &forking_fib_body, n = self->n - 2,
                            result = &self->other));
    bide_try(bide_fork_join(self));
    *self->result = self->one + self->other;
    bide_end();
}

static uint64_t run_fork(const void *threads)
{
    uint64_t result = 0;
    struct forking_fib all = {.n = FORK_N, .result = &result};
    bide_context context = bide_default_context;
    context.scheduler = bide_thread_pool_scheduler(bench_pool(*(const unsigned *)threads));
    if (bide_sync_wait_in(&context, bide_fork_task_init(&all.forking, &forking_fib_body)) != 0)
        bench_fail("fork", "no memory");
    return check(result);
}

#if BENCH_COROUTINES
static uint64_t run_coroutines(const void *threads)
{
    return check(peer_fork_coroutines(*(const unsigned *)threads));
}
#endif

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
        {"bide-fork", run_fork, &one, PARAMS(1)},
        {"bide-fork", run_fork, &two, PARAMS(2)},
#if BENCH_COROUTINES
        {"c++20", run_coroutines, &one, PARAMS(1)},
        {"c++20", run_coroutines, &two, PARAMS(2)},
#endif
#if BENCH_TBB
        {"tbb", run_tbb, &one, PARAMS(1)},
        {"tbb", run_tbb, &two, PARAMS(2)},
#endif
    };
    bench_run("fork", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof subjects[0], 21);
    return 0;
}
