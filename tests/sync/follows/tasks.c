/* Operations of the floors coroutine and schedule, wrappers, and groups: around a wait for an event that never comes. */
#include "follows.h"

#include "bide/async_generator.h"
#include "bide/context_value.h"
#include "bide/create.h"
#include "bide/fork.h"
#include "bide/handle.h"
#include "bide/interval.h"
#include "bide/once.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/select.h"
#include "bide/select_set.h"
#include "bide/sleep.h"
#include "bide/stop_callback.h"
#include "bide/then.h"
#include "bide/token_bucket.h"

#include <errno.h>

/* A wait for an event that never comes. */
static bide_awaiter *never(cell *c)
{
    NEW(bide_event, event);
    NEW(bide_event_waiter, wait);
    bide_event_init(event, false);
    return bide_event_wait(wait, event);
}

struct waiting {
    bide_task task;
    cell *cell;
};

bide_coroutine(waiting_body)
{
    bide_begin(waiting_body, struct waiting * self);
    bide_try(never(self->cell));
    bide_end();
}

static bide_awaiter *begin_bide_task_init(cell *c)
{
    NEW(struct waiting, task);
    task->cell = c;
    return bide_task_init(&task->task, &waiting_body);
}

static bide_awaiter *begin_bide_owned(cell *c)
{
    struct waiting *task = bide_create(sizeof *task, &waiting_body, &bide_heap);
    if (task != NULL)
        task->cell = c;
    return bide_owned(task, &waiting_body);
}

/* ---- Wrappers ---- */

static int passes(void *argument, int status)
{
    (void)argument;
    return status;
}

static bide_awaiter *begin_bide_then(cell *c)
{
    NEW(bide_then_operation, then);
    return bide_then(then, never(c), passes, NULL);
}

static bide_awaiter *begin_bide_with_stop(cell *c)
{
    NEW(bide_with_stop_operation, with_stop);
    NEW(bide_stop_source, source);
    bide_stop_source_init(source);
    c->object_of_clean = source;
    return bide_with_stop(with_stop, source, never(c));
}

static void request_its_own(cell *c)
{
    bide_stop_request(c->object_of_clean);
}

static bide_awaiter *begin_bide_with_deadline(cell *c)
{
    NEW(bide_with_deadline_operation, limited);
    return bide_with_deadline(limited, BIDE_FOREVER - 1, never(c));
}

static bide_awaiter *begin_bide_with_timeout(cell *c)
{
    NEW(bide_with_deadline_operation, limited);
    return bide_with_timeout(limited, BIDE_SECONDS(HOUR_IN_SECONDS), never(c));
}

static const bide_context_key(cell) cell_key = BIDE_CONTEXT_KEY("a cell");

static bide_awaiter *begin_bide_with_value(cell *c)
{
    NEW(bide_with_value_operation, with_value);
    return bide_with_value(with_value, &cell_key, c, never(c));
}

static bide_awaiter *begin_bide_schedule_on(cell *c)
{
    NEW(bide_schedule_on_operation, on);
    return bide_schedule_on(on, &bide_inline_scheduler, never(c));
}

static bide_awaiter *begin_bide_resume_on(cell *c)
{
    NEW(bide_resume_on_operation, on);
    return bide_resume_on(on, &c->loop.scheduler, never(c));
}

static bide_awaiter *begin_bide_once_run(cell *c)
{
    NEW(bide_once, once);
    NEW(bide_once_operation, run);
    bide_once_init(once);
    return bide_once_run(run, once, never(c));
}

/* ---- Several at once ---- */

static bide_branch *two(cell *c)
{
    bide_branch *branches = cell_new(c, 2 * sizeof *branches);
    bide_branch_init(&branches[0], never(c));
    bide_branch_init(&branches[1], never(c));
    return branches;
}

static bide_awaiter *begin_bide_when_all(cell *c)
{
    NEW(bide_when, when);
    return bide_when_all(when, two(c), 2);
}

struct all_ready {
    bide_task task;
    bide_when when;
    bide_branch *branches;
};

/* It ends with 0 itself; its branches say what they have ended with. */
bide_coroutine(all_ready_body)
{
    bide_begin(all_ready_body, struct all_ready * self);
    bide_await(bide_when_all_ready(&self->when, self->branches, 2));
    bide_return(self->branches[0].status);
    bide_end();
}

static bide_awaiter *begin_bide_when_all_ready(cell *c)
{
    NEW(struct all_ready, self);
    self->branches = two(c);
    return bide_task_init(&self->task, &all_ready_body);
}

static bide_awaiter *begin_bide_when_any(cell *c)
{
    NEW(bide_when, when);
    return bide_when_any(when, two(c), 2);
}

static bide_select_case *cases(cell *c)
{
    bide_select_case *cases = cell_new(c, 2 * sizeof *cases);
    bide_select_case_init(&cases[0], never(c));
    bide_select_case_init(&cases[1], never(c));
    return cases;
}

static bide_awaiter *begin_bide_select_any(cell *c)
{
    NEW(bide_select, select);
    NEW(uint64_t, random);
    return bide_select_any(select, cases(c), 2, random);
}

static bide_awaiter *begin_bide_select_any_in_order(cell *c)
{
    NEW(bide_select, select);
    return bide_select_any_in_order(select, cases(c), 2);
}

struct set {
    bide_select_set set;
    bide_select_member member, *which;
};

static void clean_set(cell *c)
{
    bide_select_set_destroy(&((struct set *)c->object_of_clean)->set);
}

static bide_awaiter *begin_bide_select_set_next(cell *c)
{
    NEW(struct set, self);
    bide_select_set_init(&self->set);
    bide_select_set_add(&self->set, &self->member, never(c));
    c->object_of_clean = self;
    cell_clean(c, clean_set);
    return bide_select_set_next(&self->set, &self->which);
}

struct scope {
    bide_task task;
    cell *cell;
    bide_scope scope;
    bide_scope_next_operation next;
    bide_branch branch, *which;
    bool collects;
    int status;
};

bide_coroutine(scope_body)
{
    bide_begin(scope_body, struct scope * self);
    bide_scope_init_with(&self->scope, bide_this_frame(),
                         &(const bide_scope_options){.collects = self->collects});
    bide_scope_spawn(&self->scope, &self->branch, never(self->cell));
    if (self->collects)
        bide_await_status(self->status, bide_scope_next(&self->next, &self->scope, &self->which));
    else
        bide_await_status(self->status, bide_scope_join(&self->scope));
    bide_await(bide_scope_join(&self->scope));
    bide_return(self->status);
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

static bide_awaiter *scope(cell *c, bool collects)
{
    NEW(struct scope, self);
    self->cell = c;
    self->collects = collects;
    return bide_task_init(&self->task, &scope_body);
}

static bide_awaiter *begin_bide_scope_join(cell *c)
{
    return scope(c, false);
}

static bide_awaiter *begin_bide_scope_next(cell *c)
{
    return scope(c, true);
}

struct generated {
    bide_async_generator generator;
    bide_async_generator_next_operation next;
    cell *cell;
};

bide_async_generator_coroutine(generated_body)
{
    bide_begin(generated_body, struct generated * self);
    bide_try(never(self->cell));
    bide_yield(self);
    bide_end();
}

static void clean_generator(cell *c)
{
    bide_async_generator_destroy(&((struct generated *)c->object_of_clean)->generator);
}

static bide_awaiter *begin_bide_async_generator_next(cell *c)
{
    NEW(struct generated, self);
    self->cell = c;
    c->object_of_clean = self;
    cell_clean(c, clean_generator);
    return bide_async_generator_next(&self->next,
                                     bide_async_generator_init(&self->generator, &generated_body));
}

/* ---- Forked children ---- */

struct forking {
    bide_fork_task forking;
    cell *cell;
    bool calls;
};

bide_fork_coroutine(forked_body)
{
    bide_begin(forked_body, struct forking * self);
    bide_try(never(self->cell));
    bide_end();
}

bide_fork_coroutine(forking_body)
{
    bide_begin(forking_body, struct forking * self);
    if (self->calls) {
        bide_try(bide_fork_call(self, struct forking, &forked_body, cell = self->cell));
    } else {
        bide_await(bide_fork(self, struct forking, &forked_body, cell = self->cell));
        bide_try(bide_fork_join(self));
    }
    bide_end();
}

static bide_awaiter *forking(cell *c, bool calls)
{
    NEW(struct forking, self);
    self->cell = c;
    self->calls = calls;
    return bide_fork_task_init(&self->forking, &forking_body);
}

static bide_awaiter *begin_bide_fork_call(cell *c)
{
    return forking(c, true);
}

static bide_awaiter *begin_bide_fork_join(cell *c)
{
    return forking(c, false);
}

/* ---- Times ---- */

static bide_awaiter *begin_bide_sleep_until(cell *c)
{
    NEW(bide_sleep, sleep);
    return bide_sleep_until(sleep, BIDE_FOREVER - 1);
}

static bide_awaiter *begin_bide_sleep_for(cell *c)
{
    NEW(bide_sleep, sleep);
    return bide_sleep_for(sleep, BIDE_SECONDS(HOUR_IN_SECONDS));
}

static bide_awaiter *begin_bide_interval_tick(cell *c)
{
    NEW(bide_interval, interval);
    bide_interval_init(interval, BIDE_FOREVER - 1, 1, BIDE_MISSED_BURST);
    return bide_interval_tick(interval);
}

static bide_awaiter *begin_bide_token_bucket_take(cell *c)
{
    NEW(bide_token_bucket, bucket);
    NEW(bide_token_take_operation, taking);
    if (bide_token_bucket_init(bucket, 1, BIDE_SECONDS(HOUR_IN_SECONDS), 1) != 0 ||
        !bide_token_bucket_try_take(bucket, &c->loop.context, 1))
        return NULL;
    return bide_token_bucket_take(taking, bucket, 1);
}

/* ---- What completes on another scheduler: a test loop that does not run yet ---- */

struct elsewhere {
    bide_sim_loop loop;
    bide_schedule_operation move;
    bide_stop_source source;
    bide_stop_callback callback;
    bide_stop_callback_waiter wait;
};

static void clean_elsewhere(cell *c)
{
    bide_sim_loop_destroy(&((struct elsewhere *)c->object_of_clean)->loop);
}

static struct elsewhere *elsewhere(cell *c)
{
    NEW(struct elsewhere, self);
    bide_sim_loop_init(&self->loop, 1);
    c->object_of_clean = self;
    cell_clean(c, clean_elsewhere);
    return self;
}

static void run_elsewhere(cell *c)
{
    bide_sim_loop_run_until(&((struct elsewhere *)c->object_of_clean)->loop, 0);
}

static bide_awaiter *begin_bide_schedule(cell *c)
{
    struct elsewhere *self = elsewhere(c);
    return bide_schedule(&self->move, &self->loop.scheduler);
}

static void is_called(void *argument)
{
    (void)argument;
}

static bide_awaiter *begin_bide_stop_callback_wait(cell *c)
{
    struct elsewhere *self = elsewhere(c);
    bide_stop_source_init(&self->source);
    bide_stop_callback_init(&self->callback, &self->source, &self->loop.context, is_called, c);
    bide_stop_request(&self->source);
    if (bide_stop_callback_remove(&self->callback))
        return NULL;
    return bide_stop_callback_wait(&self->wait, &self->callback);
}

const row rows_of_tasks[] = {
    ROW(bide_task_init),
    ROW(bide_owned),
    ROW(bide_then),
    ROW_COMPLETES(bide_with_stop, "it follows the source that it is given", request_its_own),
    ROW(bide_with_deadline),
    ROW(bide_with_timeout),
    ROW(bide_with_value),
    ROW(bide_schedule_on),
    ROW(bide_resume_on),
    ROW(bide_once_run),
    ROW(bide_when_all),
    ROW(bide_when_all_ready),
    ROW(bide_when_any),
    ROW(bide_select_any),
    ROW(bide_select_any_in_order),
    ROW(bide_select_set_next),
    ROW(bide_scope_join),
    ROW(bide_scope_next),
    ROW(bide_async_generator_next),
    ROW(bide_fork_call),
    ROW(bide_fork_join),
    ROW(bide_sleep_until),
    ROW(bide_sleep_for),
    ROW(bide_interval_tick),
    ROW(bide_token_bucket_take),
    ROW_COMPLETES(bide_schedule, "the coroutine moves, whatever it ends with", run_elsewhere),
    ROW_COMPLETES(bide_stop_callback_wait, "the function is about to be called", run_elsewhere),
};
const size_t rows_of_tasks_count = sizeof rows_of_tasks / sizeof rows_of_tasks[0];
