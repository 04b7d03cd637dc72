/*
 * The cost of an operation in a crowd: many waiters wait on one object, and the operation concerns
 * one of them, or none. All on one thread.
 *
 *     "cancelled"   nanoseconds to cancel a random wait, finish its coroutine, and start a new one
 *                   that waits in its place. "on" an event, or a semaphore without permits
 *     "select"      for a message: each waiter loops over a select of its own channel and of an
 *                   event, "shutdown", that all share; the messages go to one after another
 *     "timeout"     for each waiter: all have one deadline, and wait on one event or semaphore; from
 *                   the deadline until the last has finished
 *     "publish"     for a publish on a sequence barrier: the waiters wait for a number far ahead
 *
 * bench/peers/crowd.sh adds goroutines and tokio tasks; bench/plot_crowd.py plots the lines.
 */
#include "bench.h"

#include "bide/bide.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ROUNDS = 5 };

static const unsigned numbers[] = {10, 1000, 100000};

enum object { EVENT, SEMAPHORE };

static const char *const object_names[] = {"event", "semaphore"};

static bide_event event;
static bide_semaphore semaphore;
static bide_sequence_barrier barrier;

typedef bide_channel(int) channel;

/* One waiter, with everything that any of the benchmarks needs. */
struct waiter {
    bide_task task;
    bide_stop_source stop;
    bide_context context;
    bide_event_waiter on_event;
    bide_semaphore_waiter on_semaphore;
    bide_sequence_waiter on_barrier;
    bide_with_deadline_operation limited;
    uint64_t deadline;
    enum object object;
    /* for the select */
    channel messages;
    bide_channel_slot(int) memory[1];
    bide_channel_waiter receive;
    bide_select select;
    bide_select_case cases[2];
    uint64_t random;
    int message;
    bide_spawned spawned;
};

static struct waiter *waiters;
static size_t ended;
static size_t received;

static void *allocate(size_t count, size_t size)
{
    void *memory =
        aligned_alloc(BIDE_CACHE_LINE, (count * size / BIDE_CACHE_LINE + 1) * BIDE_CACHE_LINE);
    if (memory == NULL)
        bench_fail("crowd", "there is no memory");
    return memory;
}

static unsigned draw(unsigned count)
{
    static uint64_t random = 42;
    random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((random >> 33) % count);
}

static bide_awaiter *wait_on(struct waiter *self)
{
    return self->object == EVENT ? bide_event_wait(&self->on_event, &event)
                                 : bide_semaphore_acquire(&self->on_semaphore, &semaphore);
}

static void make_objects(void)
{
    bide_event_init(&event, false);
    bide_semaphore_init(&semaphore, 0);
    bide_sequence_barrier_init(&barrier, bide_sequence_initial());
    ended = 0;
    received = 0;
}

static void begin(struct waiter *waiter, const bide_point *body, bide_stop_source *parent)
{
    bide_stop_source_init(&waiter->stop);
    if (parent != NULL)
        bide_stop_source_attach(&waiter->stop, parent);
    waiter->context = bide_default_context;
    waiter->context.stop = &waiter->stop;
    bide_start(&waiter->task.frame, body, &waiter->context);
    bide_resume(&waiter->task.frame);
}

static void expect(size_t count, size_t expected)
{
    if (count != expected)
        bench_fail("crowd", "a wait was lost");
}

/* ---- A cancelled wait ---- */

bide_coroutine(waiting_body)
{
    bide_begin(waiting_body, struct waiter * self);
    int status;
    bide_await_status(status, wait_on(self));
    ended += status == -ECANCELED;
    bide_end();
}

static void end_crowd(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        bide_stop_request(&waiters[i].stop);
}

static double cancel_some(unsigned count, enum object object, size_t times)
{
    make_objects();
    for (unsigned i = 0; i < count; i++) {
        waiters[i].object = object;
        begin(&waiters[i], &waiting_body, NULL);
    }
    bide_stop_request(&waiters[0].stop);
    begin(&waiters[0], &waiting_body, NULL);
    double begun = bench_now();
    for (size_t i = 0; i < times; i++) {
        struct waiter *waiter = &waiters[draw(count)];
        bide_stop_request(&waiter->stop);
        begin(waiter, &waiting_body, NULL);
    }
    double took = bench_now() - begun;
    expect(ended, times + 1);
    end_crowd(count);
    expect(ended, times + 1 + count);
    return took / (double)times;
}

/* ---- A loop of a select, with one event for all ---- */

bide_coroutine(select_body)
{
    bide_begin(select_body, struct waiter * self);
    for (;;) {
        bide_select_case_init(
            &self->cases[0], bide_channel_recv(&self->receive, &self->messages, &self->message));
        bide_select_case_init(&self->cases[1], bide_event_wait(&self->on_event, &event));
        bide_try(bide_select_any(&self->select, self->cases, 2, &self->random));
        if (bide_select_winner(&self->select) == 1)
            break;
        received++;
    }
    ended++;
    bide_end();
}

static double select_messages(unsigned count, enum object object, size_t times)
{
    (void)object;
    make_objects();
    for (unsigned i = 0; i < count; i++) {
        waiters[i].random = i;
        bide_channel_init(&waiters[i].messages, waiters[i].memory, 1);
        begin(&waiters[i], &select_body, NULL);
    }
    int message = 1;
    bide_channel_try_send(&waiters[0].messages, &message);
    double begun = bench_now();
    for (size_t i = 0; i < times; i++)
        bide_channel_try_send(&waiters[i % count].messages, &message);
    double took = bench_now() - begun;
    expect(received, times + 1);
    bide_event_set(&event);
    expect(ended, count);
    return took / (double)times;
}

/* ---- Waits whose time has come ---- */

bide_coroutine(limited_body)
{
    bide_begin(limited_body, struct waiter * self);
    int status;
    bide_await_status(status, bide_with_deadline(&self->limited, self->deadline, wait_on(self)));
    ended += status == -ETIMEDOUT;
    bide_end();
}

struct host {
    bide_task task;
    unsigned count;
    uint64_t deadline;
    unsigned next;
    bide_event_waiter wait;
    bide_schedule_operation yield;
};

bide_coroutine(host_body)
{
    bide_begin(host_body, struct host * self);
    for (unsigned i = 0; i < self->count; i++)
        bide_spawn(&waiters[i].spawned, bide_this_context(),
                   bide_task_init(&waiters[i].task, &limited_body));
    while (bide_platform.now() < self->deadline) /* keeps the thread from sleeping */
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    for (self->next = 0; self->next < self->count; self->next++)
        bide_await(bide_event_wait(&self->wait, &waiters[self->next].spawned.ended));
    bide_end();
}

static double time_out_all(unsigned count, enum object object, size_t times)
{
    bide_run_loop loop;
    (void)times;
    make_objects();
    uint64_t deadline = bide_platform.now() + 2000000 + (uint64_t)count * 5000;
    for (unsigned i = 0; i < count; i++) {
        waiters[i].object = object;
        waiters[i].deadline = deadline;
    }
    struct host host = {.count = count, .deadline = deadline};
    bide_run_loop_init(&loop);
    bide_run_loop_wait(&loop, bide_task_init(&host.task, &host_body));
    double took = (double)(bide_platform.now() - deadline);
    expect(ended, count);
    return took / count;
}

/* ---- A publish ---- */

bide_coroutine(far_body)
{
    bide_begin(far_body, struct waiter * self);
    bide_await(
        bide_sequence_barrier_wait_until_published(&self->on_barrier, &barrier, SIZE_MAX / 4));
    ended++;
    bide_end();
}

static double publish(unsigned count, enum object object, size_t times)
{
    (void)object;
    make_objects();
    for (unsigned i = 0; i < count; i++)
        begin(&waiters[i], &far_body, NULL);
    bide_sequence_barrier_publish(&barrier, 0);
    double begun = bench_now();
    for (size_t i = 1; i <= times; i++)
        bide_sequence_barrier_publish(&barrier, i);
    double took = bench_now() - begun;
    bide_sequence_barrier_close(&barrier);
    expect(ended, count);
    return took / (double)times;
}

/* ---- */

/* The number of operations for which a round takes a moment, but not a minute. */
static size_t times_for(double nanoseconds)
{
    double times = 5e7 / nanoseconds;
    return times < 20 ? 20 : times > 200000 ? 200000 : (size_t)times;
}

static void measure(const char *of, enum object object, unsigned count,
                    double (*run)(unsigned count, enum object object, size_t times))
{
    double values[MAX_ROUNDS];
    char params[100];
    double first = run(count, object, 20);
    /* (long runs are not repeated) */
    int rounds = first * count > 2e10 ? 1 : MAX_ROUNDS;
    for (int round = 0; round < rounds; round++)
        values[round] = rounds == 1 ? first : run(count, object, times_for(first));
    snprintf(params, sizeof params, "{\"of\": \"%s\", \"on\": \"%s\", \"waiters\": %u}", of,
             object_names[object], count);
    bench_print("crowd", "bide", bench_median(values, (size_t)rounds), "ns/op", params);
}

int main(void)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        unsigned count = numbers[i];
        waiters = allocate(count, sizeof *waiters);
        for (enum object object = EVENT; object <= SEMAPHORE; object++) {
            measure("cancelled", object, count, cancel_some);
            measure("timeout", object, count, time_out_all);
        }
        measure("select", EVENT, count, select_messages);
        measure("publish", EVENT, count, publish);
        free(waiters);
    }
    return 0;
}
