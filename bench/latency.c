/*
 * How late a timer is, and how long a coroutine that another thread has woken waits, on a scheduler with other work:
 * microseconds, of SAMPLES.
 *
 *   of timer    from the time of a sleep until the coroutine runs
 *   of post     from the set of an event by another thread until the coroutine runs
 *
 *   load idle       nothing else
 *   load ready      a coroutine for each worker whose operations are always ready
 *   load turns      four coroutines for each worker that compute for a millisecond, and yield
 *   load yielders   256 coroutines for each worker that yield
 *
 * (peers/latency.sh adds Go and tokio.)
 */
#define _GNU_SOURCE
#include "bench.h"

#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/thread_pool.h"

#include <stdio.h>
#include <time.h>

enum { WORKERS = 2, SAMPLES = 200, YIELDERS = 256, COMPUTING = 4 };

static const uint64_t interval = 5000000, turn = 1000000; /* nanoseconds */

static bide_atomic(bool) over;

static void sleep_for(uint64_t nanoseconds)
{
    const struct timespec duration = {0, (long)nanoseconds};
    nanosleep(&duration, NULL);
}

/* ---- Loads ---- */

struct load {
    bide_task task;
    bide_event event; /* is set */
    bide_event_waiter wait;
    bide_schedule_operation yield;
    bide_spawned spawned;
};

bide_coroutine(ready_body)
{
    bide_begin(ready_body, struct load * self);
    bide_event_init(&self->event, true);
    while (!bide_atomic_load(&over, relaxed))
        bide_try(bide_event_wait(&self->wait, &self->event));
    bide_end();
}

bide_coroutine(turns_body)
{
    bide_begin(turns_body, struct load * self);
    while (!bide_atomic_load(&over, relaxed)) {
        for (uint64_t end = bide_platform.now() + turn; bide_platform.now() < end;)
            ;
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_end();
}

bide_coroutine(yielder_body)
{
    bide_begin(yielder_body, struct load * self);
    while (!bide_atomic_load(&over, relaxed))
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    bide_end();
}

static const struct {
    const char *name;
    unsigned each; /* of a worker */
    const bide_point *body;
} loads[] = {
    {"idle", 0, NULL},
    {"ready", 1, &ready_body},
    {"turns", COMPUTING, &turns_body},
    {"yielders", YIELDERS, &yielder_body},
};

/* ---- What is measured ---- */

struct probe {
    bide_task task;
    double late[SAMPLES]; /* microseconds */
    int i;
    uint64_t time;
    bide_sleep sleep;
    bide_event event;
    bide_event_waiter wait;
    bide_atomic(uint64_t) posted; /* when; 0: it has run */
};

static void probe_note(struct probe *probe, uint64_t since)
{
    probe->late[probe->i] = (double)(bide_platform.now() - since) / 1e3;
}

bide_coroutine(timer_body)
{
    bide_begin(timer_body, struct probe * self);
    for (self->i = 0; self->i < SAMPLES; self->i++) {
        self->time = bide_platform.now() + interval;
        bide_try(bide_sleep_until(&self->sleep, self->time));
        probe_note(self, self->time);
    }
    bide_atomic_store(&over, true, relaxed);
    bide_end();
}

bide_coroutine(post_body)
{
    bide_begin(post_body, struct probe * self);
    for (self->i = 0; self->i < SAMPLES; self->i++) {
        bide_try(bide_event_wait(&self->wait, &self->event));
        probe_note(self, bide_atomic_load(&self->posted, relaxed));
        bide_event_reset(&self->event);
        bide_atomic_store(&self->posted, 0, release);
    }
    bide_atomic_store(&over, true, relaxed);
    bide_end();
}

static void *post(void *argument)
{
    struct probe *probe = argument;
    for (int i = 0; i < SAMPLES; i++) {
        do
            sleep_for(interval);
        while (bide_atomic_load(&probe->posted, acquire) != 0);
        bide_atomic_store(&probe->posted, bide_platform.now(), relaxed);
        bide_event_set(&probe->event);
    }
    return NULL;
}

static void print_figure(const char *subject, const char *load, const char *of, double *late,
                         const char *at, double part)
{
    char params[120];
    snprintf(params, sizeof params, "{\"load\": \"%s\", \"of\": \"%s\", \"at\": \"%s\"}", load, of,
             at);
    bench_print("latency", subject, bench_quantile(late, SAMPLES, part), "us", params);
}

/* On the loop, or on the pool if that is NULL. */
static void measure(bide_run_loop *loop, bide_thread_pool *pool, unsigned which, bool is_timer)
{
    static struct load others[WORKERS * YIELDERS];
    static struct probe probe;
    bide_context context = {.scheduler =
                                loop != NULL ? &loop->scheduler : bide_thread_pool_scheduler(pool)};
    unsigned count = loads[which].each * (loop != NULL ? 1 : WORKERS);
    pthread_t poster;
    bide_atomic_store(&over, false, relaxed);
    bide_atomic_store(&probe.posted, 0, relaxed);
    bide_event_init(&probe.event, false);
    for (unsigned i = 0; i < count; i++)
        bide_spawn(&others[i].spawned, &context,
                   bide_task_init(&others[i].task, loads[which].body));
    bide_awaiter *awaiter = is_timer ? bide_task_init(&probe.task, &timer_body)
                                     : bide_task_init(&probe.task, &post_body);
    if (!is_timer)
        poster = bench_start_thread(post, &probe);
    int status =
        loop != NULL ? bide_run_loop_wait(loop, awaiter) : bide_sync_wait_in(&context, awaiter);
    if (status != 0)
        bench_fail("latency", "a wait has failed");
    if (!is_timer)
        pthread_join(poster, NULL);
    for (unsigned i = 0; i < count; i++) {
        bide_event_waiter wait;
        bide_awaiter *ended = bide_event_wait(&wait, &others[i].spawned.ended);
        if ((loop != NULL ? bide_run_loop_wait(loop, ended) : bide_sync_wait(ended)) != 0)
            bench_fail("latency", "a load has failed");
    }
    const char *subject = loop != NULL ? "bide-loop" : "bide-pool";
    const char *of = is_timer ? "timer" : "post";
    print_figure(subject, loads[which].name, of, probe.late, "p50", 0.5);
    print_figure(subject, loads[which].name, of, probe.late, "p99", 0.99);
    print_figure(subject, loads[which].name, of, probe.late, "max", 1);
}

int main(void)
{
    static bide_run_loop loop;
    bide_thread_pool *pool;
    bide_run_loop_init(&loop);
    if (bide_thread_pool_create(&pool, WORKERS) != 0)
        bench_fail("latency", "no pool can be made");
    for (unsigned i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        for (int is_timer = 1; is_timer >= 0; is_timer--) {
            measure(&loop, NULL, i, is_timer);
            measure(NULL, pool, i, is_timer);
        }
    }
    bide_thread_pool_destroy(pool);
    return 0;
}
