/*
 * Three tasks for gdb_test.sh: one waits behind two others, one has not started, and one runs; then breakpoint() is
 * called by the one that runs.
 */
#include "bide/create.h"
#include "bide/event.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <stdlib.h>

__attribute__((noinline)) void breakpoint(void)
{
    __asm__ volatile("" ::: "memory");
}

struct leaf {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(leaf_body)
{
    bide_begin(leaf_body, struct leaf * self);
    bide_await(bide_event_wait(&self->wait, self->event)); /* line: leaf */
    bide_end();
}

struct branch {
    bide_task task;
    bide_event *event;
    struct leaf *leaf;
};

bide_coroutine(branch_body)
{
    bide_begin(branch_body, struct branch * self);
    self->leaf = bide_create(sizeof *self->leaf, &leaf_body, &bide_heap);
    self->leaf->event = self->event;
    bide_await(bide_owned(self->leaf, &leaf_body)); /* line: branch */
    bide_end();
}

struct trunk {
    bide_task task;
    struct branch branch;
};

bide_coroutine(trunk_body)
{
    bide_begin(trunk_body, struct trunk * self);
    bide_await(bide_task_init(&self->branch.task, &branch_body)); /* line: trunk */
    bide_end();
}

struct running {
    bide_task task;
    int result;
};

bide_coroutine(running_body)
{
    bide_begin(running_body, struct running * self);
    self->result = 1;
    breakpoint(); /* line: running */
    self->result = 2;
    bide_end();
}

struct runner {
    bide_task task;
    struct running running;
};

bide_coroutine(runner_body)
{
    bide_begin(runner_body, struct runner * self);
    bide_await(bide_task_init(&self->running.task, &running_body)); /* line: runner */
    bide_end();
}

struct trunk trunk;

int main(void)
{
    static bide_event event;
    static bide_run_loop loop;
    static bide_spawned waiting, not_started;
    static struct runner runner;
    static struct leaf unstarted;
    const bide_context context = {.scheduler = &bide_inline_scheduler, .name = "the garden"};
    bide_event_init(&event, false);
    bide_run_loop_init(&loop);
    trunk.branch.event = &event;
    unstarted.event = &event;
    bide_spawn(&waiting, &context, bide_task_init(&trunk.task, &trunk_body));
    bide_spawn(&not_started, &loop.context, bide_task_init(&unstarted.task, &leaf_body));
    int status = bide_sync_wait(bide_task_init(&runner.task, &runner_body));
    bide_event_set(&event);
    bide_run_loop_run_ready(&loop);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
