/*
 * A million tasks that wait for one event: the memory of each, the time to create it and run it
 * until it waits, and the time to resume and finish it. All on one thread.
 *
 *   bide                the tasks in an array, not awaited; resumed oldest first
 *   bide-created        the same, but each allocated separately, on the heap
 *   cxx20-task-g++      minimal C++20 tasks in a vector, not awaited; resumed newest first, which
 *                       saves reversing the list of waiters; compiled by g++
 *   cxx20-task-clang    the same, compiled by clang
 *
 * (peers/memory.sh adds goroutines.) The bytes include malloc's own overhead. Freed memory stays
 * with malloc, so every timed round finds its memory there. Freeing the tasks is not timed.
 */
#include "bench.h"

#include "bide/allocator.h"
#include "bide/create.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/task.h"

#include "peers/memory.h"
#include "waiting_tasks.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { TASKS = 1000000, ROUNDS = 9, MAX_SUBJECTS = 8 };

struct waiting {
    bide_task task;
    bide_event_waiter wait;
};

static bide_event ready;
static size_t ended;

bide_coroutine(waiting_body)
{
    bide_begin(waiting_body, struct waiting * self);
    bide_await(bide_event_wait(&self->wait, &ready));
    ended++;
    bide_end();
}

/* Runs a detached task until it waits. */
static void start(struct waiting *task)
{
    bide_start(&task->task.frame, &waiting_body, &bide_default_context);
    bide_resume(&task->task.frame);
}

static void *allocate_or_abort(size_t size)
{
    void *memory = malloc(size);
    if (memory == NULL)
        abort();
    return memory;
}

static size_t resume(void)
{
    bide_event_set(&ready);
    return ended;
}

static struct waiting *tasks;

static void make(size_t n)
{
    bide_event_init(&ready, false);
    ended = 0;
    tasks = allocate_or_abort(n * sizeof tasks[0]);
    for (size_t i = 0; i < n; i++)
        start(&tasks[i]);
}

static void destroy(void)
{
    free(tasks);
}

static size_t frame(void)
{
    return sizeof(struct waiting);
}

static const struct waiting_tasks bide = {make, resume, destroy, frame, 0};

static struct waiting **created;
static size_t created_count;

static void created_make(size_t n)
{
    bide_event_init(&ready, false);
    ended = 0;
    created_count = n;
    created = (struct waiting **)allocate_or_abort(n * sizeof(struct waiting *));
    for (size_t i = 0; i < n; i++) {
        created[i] = bide_create(sizeof *created[i], &waiting_body, &bide_heap);
        if (created[i] == NULL)
            abort();
        start(created[i]);
    }
}

static void created_destroy(void)
{
    for (size_t i = 0; i < created_count; i++)
        bide_free(&created[i]->task.frame);
    free((void *)created);
}

static size_t created_frame(void)
{
    return sizeof(bide_owner) + sizeof(struct waiting);
}

static const struct waiting_tasks bide_created = {created_make, resume, created_destroy,
                                                  created_frame, sizeof(struct waiting *)};

struct figures {
    double bytes;
    double make[ROUNDS];
    double resume[ROUNDS];
};

/* Runs one round; the first is the warm-up. */
static void run(const struct waiting_tasks *of, struct figures *figures, int round)
{
    size_t before = mallinfo2().uordblks;
    double begun = bench_now();
    of->make(TASKS);
    double waiting = bench_now();
    size_t after = mallinfo2().uordblks;
    double set = bench_now();
    size_t count = of->resume();
    double all_ended = bench_now();
    of->destroy();
    if (count != TASKS) {
        fprintf(stderr, "memory: not every task has ended\n");
        exit(1);
    }
    if (round < 0)
        return;
    figures->bytes = (double)(after - before) / TASKS;
    figures->make[round] = (waiting - begun) / TASKS;
    figures->resume[round] = (all_ended - set) / TASKS;
}

static void print(const char *name, const struct waiting_tasks *of, struct figures *figures)
{
    char params[100];
    snprintf(params, sizeof params,
             "{\"of\": \"task\", \"frame\": %zu, \"handle\": %zu, \"malloc\": %.2f}", of->frame(),
             of->handle, figures->bytes - (double)(of->frame() + of->handle));
    bench_print("memory", name, figures->bytes, "bytes", params);
    bench_print("memory", name, bench_median(figures->make, ROUNDS), "ns/op", "{\"of\": \"make\"}");
    bench_print("memory", name, bench_median(figures->resume, ROUNDS), "ns/op",
                "{\"of\": \"resume\"}");
}

int main(void)
{
    static struct figures figures[MAX_SUBJECTS];
    static const struct {
        const char *name;
        const struct waiting_tasks *of;
    } subjects[] = {
        {"bide", &bide},
        {"bide-created", &bide_created},
#if BENCH_GXX
        {"cxx20-task-g++", &peer_memory_gxx},
#endif
#if BENCH_CLANG
        {"cxx20-task-clang", &peer_memory_clang},
#endif
    };
    const size_t count = sizeof subjects / sizeof subjects[0];
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    for (int round = -1; round < ROUNDS; round++) {
        for (size_t i = 0; i < count; i++)
            run(subjects[i].of, &figures[i], round);
    }
    for (size_t i = 0; i < count; i++)
        print(subjects[i].name, subjects[i].of, &figures[i]);
    return 0;
}
