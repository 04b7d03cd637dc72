/*
 * The wrappers, as rows of one table for the tests of moves and of destruction. Each row runs an operation in a coroutine
 * of its own; a new wrapper is a new row.
 */
#ifndef BIDE_WRAPPING_H
#define BIDE_WRAPPING_H

#include "testing.h"

#include "bide/deadline.h"
#include "bide/once.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/task.h"
#include "bide/when.h"
#include "bide/with_stop.h"

#define WRAPPING_TIME (bide_platform.now() + UINT64_C(3600000000000))

/* The memory of any wrapper. */
typedef struct wrapping {
    bide_task task; /* for the scope, which needs an owner */
    bide_awaiter *inner;
    bide_scheduler *scheduler; /* the target of schedule_on and resume_on */
    bide_scope scope;
    bide_branch branch;
    bide_when when;
    bide_with_stop_operation with_stop;
    bide_with_deadline_operation with_deadline;
    bide_once_operation once_run;
    bide_once once;
    bide_schedule_on_operation schedule_on;
    bide_resume_on_operation resume_on;
    bide_stop_source source;
    int status;
} wrapping;

typedef struct wrapper_row {
    const char *name;
    bide_awaiter *(*wrap)(wrapping *self, bide_awaiter *inner);
    bool needs_timers;
} wrapper_row;

static inline bide_awaiter *wrap_with_stop(wrapping *self, bide_awaiter *inner)
{
    bide_stop_source_init(&self->source);
    return bide_with_stop(&self->with_stop, &self->source, inner);
}

static inline bide_awaiter *wrap_with_deadline(wrapping *self, bide_awaiter *inner)
{
    return bide_with_deadline(&self->with_deadline, WRAPPING_TIME, inner);
}

static inline bide_awaiter *wrap_all(wrapping *self, bide_awaiter *inner)
{
    bide_branch_init(&self->branch, inner);
    return bide_when_all(&self->when, &self->branch, 1);
}

static inline bide_awaiter *wrap_all_ready(wrapping *self, bide_awaiter *inner)
{
    bide_branch_init(&self->branch, inner);
    return bide_when_all_ready(&self->when, &self->branch, 1);
}

static inline bide_awaiter *wrap_any(wrapping *self, bide_awaiter *inner)
{
    bide_branch_init(&self->branch, inner);
    return bide_when_any(&self->when, &self->branch, 1);
}

bide_coroutine(wrapping_scope_body)
{
    bide_begin(wrapping_scope_body, wrapping * self);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->branch, self->inner);
    bide_await_status(self->status, bide_scope_join(&self->scope));
    bide_return(self->status);
    bide_end();
}

static inline bide_awaiter *wrap_scope(wrapping *self, bide_awaiter *inner)
{
    self->inner = inner;
    return bide_task_init(&self->task, &wrapping_scope_body);
}

static inline bide_awaiter *wrap_once(wrapping *self, bide_awaiter *inner)
{
    bide_once_init(&self->once);
    return bide_once_run(&self->once_run, &self->once, inner);
}

static inline bide_awaiter *wrap_schedule_on(wrapping *self, bide_awaiter *inner)
{
    return bide_schedule_on(&self->schedule_on, self->scheduler, inner);
}

static inline bide_awaiter *wrap_resume_on(wrapping *self, bide_awaiter *inner)
{
    return bide_resume_on(&self->resume_on, self->scheduler, inner);
}

static const wrapper_row wrapper_rows[] = {
    {"with_stop", wrap_with_stop, false}, {"with_deadline", wrap_with_deadline, true},
    {"when_all", wrap_all, false},        {"when_all_ready", wrap_all_ready, false},
    {"when_any", wrap_any, false},        {"scope", wrap_scope, false},
    {"once", wrap_once, false},           {"schedule_on", wrap_schedule_on, false},
    {"resume_on", wrap_resume_on, false},
};

enum { WRAPPER_ROWS = sizeof wrapper_rows / sizeof wrapper_rows[0] };

#endif
