/*
 * A sequence barrier under load: the rate of publishes, and the time from a publish until a waiter
 * runs, against the number of waiters. The original article asks for this.
 *
 *     "target"    "far"    the waiters wait for a number far ahead, so each publish examines all of
 *                          them and wakes none. For the wake-up time there is one more waiter, for
 *                          each next number
 *                 "next"   each waiter waits for each next number, so each publish wakes all
 *     "threads"   1        publisher and waiters share a run loop; the publisher publishes, and lets
 *                          the waiters run
 *                 2        a run loop each. The rate is that of a publisher that never waits; for the
 *                          wake-up time, the publisher continues when all waiters wait again,
 *     "loop"      "looks"  at once, so the waiters' loop is polling, or
 *                 "sleeps" after a pause, so that the loop sleeps
 *
 * bench/plot_barrier.py plots the lines.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "loops.h"

#include "bide/coroutine.h"
#include "bide/schedule.h"
#include "bide/sequence_barrier.h"
#include "bide/task.h"

#include <stdio.h>
#include <time.h>

enum { MAX_WAITERS = 10000, MAX_SAMPLES = 1000000, ROUNDS = 5 };

static const unsigned numbers[] = {0, 1, 10, 100, 1000, MAX_WAITERS};

enum loop_state { LOOKS, SLEEPS };

struct setting {
    unsigned far;  /* waiters for a number far ahead */
    unsigned next; /* waiters for each next number */
    unsigned threads;
    bool timed; /* measure each wake-up */
    enum loop_state loop;
    size_t publishes;
};

/* The state of the current run. */
static struct {
    const struct setting *setting;
    bide_sequence_barrier barrier;
    double published_at;
    double rate;
    /* of the waiters' thread */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(size_t) waits; /* waits that have started */
    double samples[MAX_SAMPLES];
    size_t sample_count;
} run;

struct waiter {
    bide_task task;
    size_t target;
    bide_sequence_waiter wait;
};

/* All waiters are on one thread. */
static void count_wait(void)
{
    /*
     * release: pairs with the acquire in await_all. A thread that sees the next wait sees the
     * samples of this one.
     */
    bide_atomic_store(&run.waits, bide_atomic_load(&run.waits, relaxed) + 1, release);
}

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    for (;;) {
        count_wait();
        bide_try(
            bide_sequence_barrier_wait_until_published(&self->wait, &run.barrier, self->target));
        if (run.setting->timed && run.sample_count < MAX_SAMPLES)
            run.samples[run.sample_count++] = bench_now() - run.published_at;
        self->target = self->wait.published + 1;
    }
    bide_end();
}

static bool have_begun(size_t waits)
{
    return bide_atomic_load(&run.waits, acquire) >= waits; /* acquire: count_wait */
}

/*
 * Called on another thread than the waiters': waits until that many waits have started and some
 * time has passed. Their loop polls for some tens of microseconds before it sleeps. If it is to
 * sleep, this thread sleeps too, so that it does not occupy a processor that the woken threads
 * need.
 */
static void await_all(size_t waits)
{
    if (run.setting->loop == SLEEPS) {
        const struct timespec pause = {.tv_nsec = 300000};
        while (!have_begun(waits))
            nanosleep(&pause, NULL);
        nanosleep(&pause, NULL);
        return;
    }
    while (!have_begun(waits))
        bide_cpu_relax();
    for (double end = bench_now() + 1000; bench_now() < end;)
        bide_cpu_relax();
}

struct publisher {
    bide_task task;
    size_t sequence;
    double begun;
    bide_schedule_operation yield;
};

bide_coroutine(publisher_body)
{
    bide_begin(publisher_body, struct publisher * self);
    if (run.setting->threads == 2)
        await_all(run.setting->far + run.setting->next);
    self->begun = bench_now();
    for (self->sequence = 0; self->sequence < run.setting->publishes; self->sequence++) {
        if (run.setting->timed)
            run.published_at = bench_now();
        bide_sequence_barrier_publish(&run.barrier, self->sequence);
        if (run.setting->next != 0 && run.setting->threads == 1)
            bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
        else if (run.setting->timed)
            await_all(run.setting->far + run.setting->next * (self->sequence + 2));
    }
    run.rate = (double)run.setting->publishes * 1e9 / (bench_now() - self->begun);
    bide_sequence_barrier_close(&run.barrier);
    bide_end();
}

static void run_barrier(const struct setting *setting)
{
    static struct publisher publisher;
    static struct waiter waiters[MAX_WAITERS + 1];
    static bench_party parties[MAX_WAITERS + 2];
    unsigned count = setting->far + setting->next;

    run.setting = setting;
    run.sample_count = 0;
    bide_atomic_init(&run.waits, 0);
    bide_sequence_barrier_init(&run.barrier, bide_sequence_initial());
    for (unsigned i = 0; i < count; i++) {
        waiters[i].target = i < setting->far ? SIZE_MAX / 4 : 0;
        parties[i].awaiter = bide_task_init(&waiters[i].task, &waiter_body);
        parties[i].loop = setting->threads == 1 ? 0 : 1;
    }
    parties[count].awaiter = bide_task_init(&publisher.task, &publisher_body);
    parties[count].loop = 0;
    bench_loops_run(parties, count + 1, BENCH_LOOKS);
}

static size_t between(size_t min, size_t value, size_t max)
{
    return value < min ? min : value > max ? max : value;
}

static void print(const struct setting *setting, const char *of, double value, const char *unit)
{
    char params[200];
    snprintf(params, sizeof params,
             "{\"of\": \"%s\", \"waiters\": %u, \"target\": \"%s\", \"threads\": %u, \"loop\": "
             "\"%s\"}",
             of, setting->far != 0 ? setting->far : setting->next,
             setting->far != 0 ? "far" : "next", setting->threads,
             setting->loop == LOOKS ? "looks" : "sleeps");
    bench_print("barrier", "bide", value, unit, params);
}

static void measure_rate(struct setting setting)
{
    double rates[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        run_barrier(&setting);
        if (round >= 0)
            rates[round] = run.rate;
    }
    print(&setting, "rate", bench_median(rates, ROUNDS), "publishes/s");
}

static void measure_wakes(struct setting setting)
{
    setting.timed = true;
    run_barrier(&setting);
    if (run.sample_count < setting.publishes)
        bench_fail("barrier", "a wake-up was lost");
    print(&setting, "median", bench_quantile(run.samples, run.sample_count, 0.5), "ns");
    print(&setting, "p99", bench_quantile(run.samples, run.sample_count, 0.99), "ns");
    print(&setting, "p99.9", bench_quantile(run.samples, run.sample_count, 0.999), "ns");
}

int main(void)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        unsigned n = numbers[i];
        size_t rounds = between(300, 4000000 / (n + 4), 1000000);
        size_t wakes = between(100, 200000 / (n + 1), 20000);
        for (unsigned threads = 1; threads <= 2; threads++) {
            measure_rate((struct setting){.far = n, .threads = threads, .publishes = rounds});
            measure_wakes((struct setting){
                .far = n, .next = 1, .threads = threads, .publishes = between(4000, wakes, 20000)});
            if (n == 0)
                continue;
            measure_rate((struct setting){.next = n, .threads = threads, .publishes = rounds});
            measure_wakes((struct setting){.next = n, .threads = threads, .publishes = wakes});
        }
        if (n != 0)
            measure_wakes((struct setting){
                .next = n, .threads = 2, .loop = SLEEPS, .publishes = between(100, wakes, 1000)});
    }
    return 0;
}
