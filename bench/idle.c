/*
 * Processor time, in milliseconds per second, while consumers wait for a ring and nothing is
 * published.
 *
 *   bide               coroutines that wait on a sequence barrier, all on one run loop with a thread
 *   bide-blocking      threads that wait on a sequence barrier
 *   mutex+cond         threads that wait on a ring under a mutex and two condition variables
 *
 * (peers/idle.sh adds the Disruptor for Java.) Each has done some work before, and then had half a
 * second to become idle.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "loops.h"

#include "bide/coroutine.h"
#include "bide/sequence_barrier.h"
#include "bide/task.h"

#include "peers/locked_ring.h"

#include <stdio.h>
#include <time.h>

enum { MAX_CONSUMERS = 10000, MILLISECONDS = 2000, SETTLING = 500, ITEMS = 100 };

static bide_sequence_barrier published;

static void sleep_for(unsigned milliseconds)
{
    const struct timespec duration = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&duration, NULL);
}

static void publish_some(void)
{
    for (size_t i = 0; i < ITEMS; i++) {
        bide_sequence_barrier_publish(&published, i);
        sleep_for(1);
    }
}

/* Measures the processor time per second from now on. */
static double measure(void)
{
    sleep_for(SETTLING);
    double cpu = bench_cpu_now(), begun = bench_now();
    sleep_for(MILLISECONDS);
    return 1e3 * (bench_cpu_now() - cpu) / (bench_now() - begun);
}

static void print(const char *subject, double value, unsigned consumers, unsigned threads)
{
    char params[100];
    snprintf(params, sizeof params, "{\"consumers\": %u, \"threads\": %u}", consumers, threads);
    bench_print("idle", subject, value, "ms/s", params);
}

struct consumer {
    bide_task task;
    size_t next;
    bide_sequence_waiter wait;
};

bide_coroutine(consumer_body)
{
    bide_begin(consumer_body, struct consumer * self);
    for (;;) {
        bide_try(bide_sequence_barrier_wait_until_published(&self->wait, &published, self->next));
        self->next = self->wait.published + 1;
    }
    bide_end();
}

static void *run_consumers(void *argument)
{
    static struct consumer consumers[MAX_CONSUMERS];
    static bench_party parties[MAX_CONSUMERS];
    unsigned count = *(unsigned *)argument;
    for (unsigned i = 0; i < count; i++) {
        consumers[i] = (struct consumer){.next = 0};
        parties[i].awaiter = bide_task_init(&consumers[i].task, &consumer_body);
    }
    bench_loops_run(parties, count, BENCH_LOOKS);
    return NULL;
}

static void run_bide(unsigned consumers)
{
    bide_sequence_barrier_init(&published, bide_sequence_initial());
    pthread_t thread = bench_start_thread(run_consumers, &consumers);
    publish_some();
    double value = measure();
    bide_sequence_barrier_close(&published);
    pthread_join(thread, NULL);
    print("bide", value, consumers, 1);
}

static void *run_blocking_consumer(void *unused)
{
    size_t next = 0, last;
    (void)unused;
    while (bide_sequence_barrier_wait_until_published_blocking(&published, next, BIDE_FOREVER,
                                                               &last) == 0)
        next = last + 1;
    return NULL;
}

enum { MAX_THREADS = 3 };

static void run_blocking(unsigned consumers)
{
    pthread_t threads[MAX_THREADS];
    bide_sequence_barrier_init(&published, bide_sequence_initial());
    for (unsigned i = 0; i < consumers; i++)
        threads[i] = bench_start_thread(run_blocking_consumer, NULL);
    publish_some();
    double value = measure();
    bide_sequence_barrier_close(&published);
    for (unsigned i = 0; i < consumers; i++)
        pthread_join(threads[i], NULL);
    print("bide-blocking", value, consumers, consumers);
}

static void *run_locked_consumer(void *ring)
{
    uint64_t item;
    for (unsigned seen = 0; seen <= ITEMS;)
        seen += (unsigned)locked_ring_pop(ring, &item, 1);
    return NULL;
}

static void run_locked(void)
{
    struct locked_ring ring;
    if (locked_ring_init(&ring, 16384) != 0)
        bench_fail("idle", "no memory");
    pthread_t thread = bench_start_thread(run_locked_consumer, &ring);
    uint64_t item = 0;
    for (; item < ITEMS; item++) {
        locked_ring_push(&ring, &item, 1);
        sleep_for(1);
    }
    print("mutex+cond", measure(), 1, 1);
    locked_ring_push(&ring, &item, 1);
    pthread_join(thread, NULL);
    locked_ring_destroy(&ring);
}

int main(void)
{
    run_bide(1);
    run_bide(3);
    run_bide(MAX_CONSUMERS);
    run_blocking(1);
    run_blocking(MAX_THREADS);
    run_locked();
    return 0;
}
