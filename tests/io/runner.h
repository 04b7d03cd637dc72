/* A coroutine that waits for one operation, and ways to end it, on the loop of a world. */
#ifndef BIDE_TESTS_IO_RUNNER_H
#define BIDE_TESTS_IO_RUNNER_H

#include "world.h"

#include <errno.h>

struct runner {
    bide_task task;
    bide_awaiter *awaiter;
    int status;
    bool has_ended;
    bide_spawned spawned;
    bide_stop_source stop;
    bide_context context;
    bide_with_deadline_operation limited;
};

bide_coroutine(runner_body)
{
    bide_begin(runner_body, struct runner * self);
    bide_await_status(self->status, self->awaiter);
    self->has_ended = true;
    bide_end();
}

static inline void prepare(world *world, struct runner *runner, bide_awaiter *awaiter)
{
    runner->has_ended = false;
    runner->awaiter = awaiter;
    bide_stop_source_init(&runner->stop);
    runner->context = *world->context;
    runner->context.stop = &runner->stop;
}

static inline void begin(world *world, struct runner *runner, bide_awaiter *awaiter)
{
    prepare(world, runner, awaiter);
    bide_spawn(&runner->spawned, &runner->context, bide_task_init(&runner->task, &runner_body));
}

/* It is asked to stop before it begins. */
static inline void begin_stopped(world *world, struct runner *runner, bide_awaiter *awaiter)
{
    prepare(world, runner, awaiter);
    bide_stop_request(&runner->stop);
    bide_spawn(&runner->spawned, &runner->context, bide_task_init(&runner->task, &runner_body));
}

static inline void begin_limited(world *world, struct runner *runner, bide_awaiter *awaiter)
{
    begin(world, runner,
          bide_with_deadline(&runner->limited, world_now(world) + 2000000, awaiter));
}

static inline int end(world *world, struct runner *runner)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(world, bide_event_wait(&wait, &runner->spawned.ended)), 0);
    return runner->status;
}

/* Runs everything that is ready or has completed. */
static inline void turn(world *world)
{
    bide_sleep sleep;
    assert_int_equal(world_wait(world, bide_sleep_for(&sleep, 1000000)), 0);
}

/* ---- Calls on the loop ---- */

struct caller {
    bide_task task;
    void (*function)(void *);
    void *argument;
};

bide_coroutine(caller_body)
{
    bide_begin(caller_body, struct caller * self);
    self->function(self->argument);
    bide_end();
}

static inline void call_inside(world *world, void (*function)(void *), void *argument)
{
    struct caller caller = {.function = function, .argument = argument};
    assert_int_equal(world_wait(world, bide_task_init(&caller.task, &caller_body)), 0);
}

/* Starts a coroutine that may be destroyed while it waits. */
static inline void start_inside(void *runner)
{
    struct runner *it = runner;
    bide_start(&it->task.frame, &runner_body, &it->context);
    bide_resume(&it->task.frame);
}

static inline void destroy_inside(void *runner)
{
    bide_destroy(&((struct runner *)runner)->task.frame);
}

static inline void start(world *world, struct runner *runner, bide_awaiter *awaiter)
{
    runner->has_ended = false;
    runner->awaiter = awaiter;
    runner->context = *world->context;
    call_inside(world, start_inside, runner);
}

static inline void destroy(world *world, struct runner *runner)
{
    call_inside(world, destroy_inside, runner);
}

/* ---- Ways to end a wait early ---- */

static inline void stop(void *runner)
{
    bide_stop_request(&((struct runner *)runner)->stop);
}

static inline void close_it(void *descriptor)
{
    assert_int_equal(bide_close(descriptor), 0);
}

enum { STOP, STOP_OUTSIDE, TIME_OUT, DESTROY, CLOSE, WAYS };

static inline void begin_by(world *world, struct runner *runner, bide_awaiter *awaiter, int how)
{
    if (how == DESTROY)
        start(world, runner, awaiter);
    else if (how == TIME_OUT)
        begin_limited(world, runner, awaiter);
    else
        begin(world, runner, awaiter);
}

/* `descriptor` is the one on which it waits. */
static inline void end_by(world *world, struct runner *runner, bide_descriptor *descriptor, int how)
{
    static const int statuses[] = {-ECANCELED, -ECANCELED, -ETIMEDOUT, 0, -EPIPE};
    if (how == STOP)
        call_inside(world, stop, runner);
    else if (how == STOP_OUTSIDE)
        stop(runner);
    else if (how == DESTROY)
        destroy(world, runner);
    else if (how == CLOSE)
        call_inside(world, close_it, descriptor);
    if (how != DESTROY)
        assert_int_equal(end(world, runner), statuses[how]);
}

#endif
