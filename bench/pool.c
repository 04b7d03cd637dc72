/*
 * The costs of a thread pool, in nanoseconds each.
 *
 *   hop     a coroutine yields and is run again; alone, and as one of a thousand
 *   spawn   one coroutine starts a thousand short ones and waits for each
 *   wake    a coroutine wakes one on another pool of one thread, and waits until that wakes it
 *
 * (peers/pool.sh adds those of Go, tokio and Asio.)
 */
#include "bench.h"
#include "pools.h"

#include "bide/coroutine.h"
#include "bide/schedule.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

enum { ROUNDS = 11, MAX_TASKS = 1000, SPAWNED = 1000 };

struct setting {
    uint64_t operations;
    unsigned tasks;
    unsigned threads;
};

/* ---- Hop ---- */

struct hopper {
    bide_task task;
    bide_schedule_operation hop;
    uint64_t left;
};

bide_coroutine(hopper_body)
{
    bide_begin(hopper_body, struct hopper * self);
    while (self->left-- != 0)
        bide_await(bide_schedule(&self->hop, bide_this_context()->scheduler));
    bide_end();
}

static uint64_t hop(const void *argument)
{
    static struct hopper hoppers[MAX_TASKS];
    static bench_party parties[MAX_TASKS];
    const struct setting *setting = argument;
    for (unsigned i = 0; i < setting->tasks; i++) {
        hoppers[i].left = setting->operations / setting->tasks;
        parties[i].awaiter = bide_task_init(&hoppers[i].task, &hopper_body);
    }
    bench_pool_run(parties, setting->tasks, setting->threads);
    return setting->operations;
}

/* ---- Spawn ---- */

struct child {
    bide_task task;
    bide_spawned spawned;
    uint64_t *sum;
    uint64_t number;
};

bide_coroutine(child_body)
{
    bide_begin(child_body, struct child * self);
    self->number++;
    bide_end();
}

struct parent {
    bide_task task;
    bide_event_waiter wait;
    uint64_t left;
    unsigned next;
    struct child children[SPAWNED];
};

bide_coroutine(parent_body)
{
    bide_begin(parent_body, struct parent * self);
    while (self->left-- != 0) {
        for (self->next = 0; self->next < SPAWNED; self->next++) {
            struct child *child = &self->children[self->next];
            child->number = self->next;
            bide_spawn(&child->spawned, bide_this_context(),
                       bide_task_init(&child->task, &child_body));
        }
        for (self->next = 0; self->next < SPAWNED; self->next++)
            bide_await(bide_event_wait(&self->wait, &self->children[self->next].spawned.ended));
    }
    bide_end();
}

static uint64_t spawn(const void *argument)
{
    static struct parent parent;
    const struct setting *setting = argument;
    parent.left = setting->operations / SPAWNED;
    bench_party party = {.awaiter = bide_task_init(&parent.task, &parent_body)};
    bench_pool_run(&party, 1, setting->threads);
    for (unsigned i = 0; i < SPAWNED; i++) {
        if (parent.children[i].number != i + 1)
            bench_fail("pool", "a child has not run once");
    }
    return setting->operations;
}

/* ---- Wake ---- */

struct waker {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    struct waker *other;
    uint64_t left;
};

bide_coroutine(waker_body)
{
    bide_begin(waker_body, struct waker * self);
    while (self->left-- != 0) {
        bide_await(bide_event_wait(&self->wait, &self->event));
        bide_event_reset(&self->event);
        bide_event_set(&self->other->event);
    }
    bide_end();
}

static uint64_t wake(const void *argument)
{
    static bide_thread_pool *pools[2];
    const struct setting *setting = argument;
    struct waker wakers[2];
    bide_spawned spawned[2];
    bide_context contexts[2];
    for (unsigned i = 0; i < 2; i++) {
        if (pools[i] == NULL && bide_thread_pool_create(&pools[i], 1) != 0)
            bench_fail("pool", "no pool can be made");
        contexts[i] = (bide_context){.scheduler = bide_thread_pool_scheduler(pools[i])};
        wakers[i].other = &wakers[1 - i];
        wakers[i].left = setting->operations / 2;
        bide_event_init(&wakers[i].event, i == 0);
    }
    for (unsigned i = 0; i < 2; i++)
        bide_spawn(&spawned[i], &contexts[i], bide_task_init(&wakers[i].task, &waker_body));
    for (unsigned i = 0; i < 2; i++) {
        bide_event_waiter wait;
        if (bide_sync_wait(bide_event_wait(&wait, &spawned[i].ended)) != 0)
            bench_fail("pool", "a wait has failed");
    }
    return setting->operations;
}

#define SUBJECT(run, threads, tasks, operations)                                       \
    {                                                                                  \
        "bide", run, &(const struct setting){operations, tasks, threads},              \
            "{\"of\": \"" #run "\", \"threads\": " #threads ", \"tasks\": " #tasks "}" \
    }

static const bench_subject subjects[] = {
    SUBJECT(hop, 1, 1, 2000000),      SUBJECT(hop, 1, 1000, 2000000),
    SUBJECT(hop, 2, 1000, 2000000),   SUBJECT(spawn, 1, 1000, 1000000),
    SUBJECT(spawn, 2, 1000, 1000000), SUBJECT(wake, 2, 2, 100000),
};

int main(void)
{
    bench_run("pool", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof subjects[0],
              ROUNDS);
    return 0;
}
