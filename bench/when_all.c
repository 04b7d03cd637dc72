/*
 * A parent that awaits a thousand children at once and adds up their results: create, start, finish
 * and collect, for each child. They complete at once ("suspends": 0), or each waits once, for an
 * event that is set when all are waiting ("suspends": 1). All on one thread.
 *
 *   bide                  when_all over an array of branches, with the children in an array too
 *   calls                 an out-of-line call that does the child's work, for each: the floor
 *   cxx20-when_all-g++    a minimal when_all over C++20 tasks, in vectors, compiled by g++; "frames":
 *                         2, the child's and one of when_all's own for it, like cppcoro's, or 1, for
 *                         children that only when_all can await
 *   cxx20-when_all-clang  the same, compiled by clang
 */
#include "bench.h"

#include "bide/event.h"
#include "bide/handle.h"
#include "bide/task.h"
#include "bide/when.h"

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

struct ready_child {
    bide_task task;
    uint64_t argument;
    uint64_t result;
};

bide_coroutine(ready_child_body)
{
    bide_begin(ready_child_body, struct ready_child * self);
    self->result = self->argument & 0xff;
    bide_end();
}

struct suspending_child {
    bide_task task;
    uint64_t argument;
    uint64_t result;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(suspending_child_body)
{
    bide_begin(suspending_child_body, struct suspending_child * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    self->result = self->argument & 0xff;
    bide_end();
}

struct parent {
    bide_task task;
    bide_event event;
    uint64_t sum;
    bide_when all;
    bide_branch branches[CHILDREN];
    union {
        struct ready_child ready[CHILDREN];
        struct suspending_child suspending[CHILDREN];
    } children;
};

bide_coroutine(parent_of_ready_body)
{
    bide_begin(parent_of_ready_body, struct parent * self);
    struct ready_child *children = self->children.ready;
    for (size_t i = 0; i < CHILDREN; i++) {
        children[i].argument = i;
        bide_branch_init(&self->branches[i], bide_task_init(&children[i].task, &ready_child_body));
    }
    bide_await(bide_when_all(&self->all, self->branches, CHILDREN));
    for (size_t i = 0; i < CHILDREN; i++)
        self->sum += self->children.ready[i].result;
    bide_end();
}

bide_coroutine(parent_of_suspending_body)
{
    bide_begin(parent_of_suspending_body, struct parent * self);
    struct suspending_child *children = self->children.suspending;
    for (size_t i = 0; i < CHILDREN; i++) {
        children[i].argument = i;
        children[i].event = &self->event;
        bide_branch_init(&self->branches[i],
                         bide_task_init(&children[i].task, &suspending_child_body));
    }
    bide_await(bide_when_all(&self->all, self->branches, CHILDREN));
    for (size_t i = 0; i < CHILDREN; i++)
        self->sum += self->children.suspending[i].result;
    bide_end();
}

static uint64_t run_bide(const void *body)
{
    static struct parent parent;
    parent.sum = 0;
    for (int times = 0; times < TIMES; times++) {
        bide_event_init(&parent.event, false);
        bide_start(&parent.task.frame, body, &bide_default_context);
        bide_resume(&parent.task.frame);
        bide_event_set(&parent.event);
    }
    return check_sum(parent.sum);
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
        {"bide", run_bide, &parent_of_ready_body, PARAMS(0, 1)},
        {"bide", run_bide, &parent_of_suspending_body, PARAMS(1, 1)},
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
