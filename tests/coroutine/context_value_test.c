/*
 * Values in contexts: what bide_with_value gives is seen by all that runs below it, and by nothing else; the innermost
 * one of a key is found; and nothing is seen by what begins without values.
 */
#include "testing.h"

#include "bide/context_value.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/spawn.h"
#include "bide/stop_callback.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/when.h"
#include "bide/with_stop.h"

#include <errno.h>

struct trace {
    int number;
};

static const bide_context_key(struct trace) trace_key = BIDE_CONTEXT_KEY("trace");
static const bide_context_key(char) tenant_key = BIDE_CONTEXT_KEY("tenant");

/* What a coroutine sees. */
struct seen {
    const struct trace *trace;
    const char *tenant;
};

static struct seen see(const bide_context *context)
{
    return (struct seen){bide_context_get(context, &trace_key),
                         bide_context_get(context, &tenant_key)};
}

static void assert_seen(const struct seen *seen, const struct trace *trace, const char *tenant)
{
    assert_ptr_equal(seen->trace, trace);
    assert_ptr_equal(seen->tenant, tenant);
}

struct looking {
    bide_task task;
    struct seen seen, later;
    bide_event *event; /* or NULL */
    bide_event_waiter wait;
    bide_schedule_operation move;
    int status;
};

bide_coroutine(looking_body)
{
    bide_begin(looking_body, struct looking * self);
    self->seen = see(bide_this_context());
    if (self->event != NULL)
        bide_try(bide_event_wait(&self->wait, self->event));
    bide_await(bide_schedule(&self->move, &bide_inline_scheduler));
    self->later = see(bide_this_context());
    bide_return(self->status);
    bide_end();
}

static bide_awaiter *looking(struct looking *self, bide_event *event)
{
    *self = (struct looking){.event = event};
    return bide_task_init(&self->task, &looking_body);
}

static void note(void *argument)
{
    *(bool *)argument = true;
}

/* Looks in every way in which something begins below it. */
struct spreading {
    bide_task task;
    struct seen before, after;
    bide_with_value_operation outer, inner;
    bide_with_stop_operation sheltered;
    bide_branch branches[2];
    bide_when all;
    bide_scope scope;
    bide_branch branch;
    bide_spawned spawned, without;
    bide_event_waiter wait;
    bide_stop_callback callback;
    bool called;
    bide_context context;
    struct looking child, in_shelter, first, second, of_scope, root, bare;
    struct trace trace;
};

bide_coroutine(spreading_body)
{
    bide_begin(spreading_body, struct spreading * self);
    bide_await(looking(&self->child, NULL));
    bide_await(bide_with_stop(&self->sheltered, NULL, looking(&self->in_shelter, NULL)));
    bide_branch_init(&self->branches[0], looking(&self->first, NULL));
    bide_branch_init(&self->branches[1], bide_with_value(&self->inner, &trace_key, &self->trace,
                                                         looking(&self->second, NULL)));
    bide_await(bide_when_all(&self->all, self->branches, 2));
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->branch, looking(&self->of_scope, NULL));
    bide_await(bide_scope_join(&self->scope));
    bide_spawn(&self->spawned, bide_this_context(), looking(&self->root, NULL));
    bide_await(bide_event_wait(&self->wait, &self->spawned.ended));
    self->context = bide_context_without_values(bide_this_context());
    bide_spawn(&self->without, &self->context, looking(&self->bare, NULL));
    bide_await(bide_event_wait(&self->wait, &self->without.ended));
    bide_stop_callback_init(&self->callback, NULL, bide_this_context(), note, &self->called);
    assert_ptr_equal(self->callback.context.values, bide_this_context()->values);
    assert_true(bide_stop_callback_remove(&self->callback));
    bide_end();
}

static void assert_saw(const struct looking *self, const struct trace *trace, const char *tenant)
{
    assert_seen(&self->seen, trace, tenant);
    assert_seen(&self->later, trace, tenant);
}

bide_coroutine(top_body)
{
    bide_begin(top_body, struct spreading * self);
    self->before = see(bide_this_context());
    bide_await(bide_with_value(&self[1].outer, &tenant_key, "one",
                               bide_with_value(&self->outer, &trace_key, &self[1].trace,
                                               bide_task_init(&self[1].task, &spreading_body))));
    self->after = see(bide_this_context());
    bide_end();
}

static void what_runs_below_sees_the_values_and_nothing_else_does(void **state)
{
    (void)state;
    struct spreading all[2] = {{.trace = {1}}, {.trace = {2}}};
    struct spreading *below = &all[1];
    assert_int_equal(bide_sync_wait(bide_task_init(&all[0].task, &top_body)), 0);
    assert_seen(&all[0].before, NULL, NULL);
    assert_seen(&all[0].after, NULL, NULL);
    const char *tenant = below->child.seen.tenant;
    assert_string_equal(tenant, "one");
    assert_saw(&below->child, &below->trace, tenant);
    assert_saw(&below->in_shelter, &below->trace, tenant);
    assert_saw(&below->first, &below->trace, tenant);
    assert_saw(&below->second, &below->trace, tenant);
    assert_saw(&below->of_scope, &below->trace, tenant);
    assert_saw(&below->root, &below->trace, tenant);
    assert_saw(&below->bare, NULL, NULL);
}

static void the_innermost_value_of_a_key_is_found_and_null_hides_it(void **state)
{
    (void)state;
    struct trace traces[2] = {{1}, {2}};
    for (int hides = 0; hides < 2; hides++) {
        bide_with_value_operation outer, inner;
        struct looking child;
        const struct trace *within = hides ? NULL : &traces[1];
        assert_int_equal(bide_sync_wait(bide_with_value(
                             &outer, &trace_key, &traces[0],
                             bide_with_value(&inner, &trace_key, within, looking(&child, NULL)))),
                         0);
        assert_saw(&child, within, NULL);
    }
}

static void it_ends_with_the_status_of_what_it_runs(void **state)
{
    (void)state;
    bide_with_value_operation with;
    struct looking child;
    struct trace trace = {1};
    bide_awaiter *awaiter = looking(&child, NULL);
    child.status = -EDOM;
    assert_int_equal(bide_sync_wait(bide_with_value(&with, &trace_key, &trace, awaiter)), -EDOM);
}

struct holder {
    bide_task task;
    bide_with_value_operation with;
    struct trace trace;
    struct looking child;
    bide_event event;
    int status;
};

bide_coroutine(holder_body)
{
    bide_begin(holder_body, struct holder * self);
    bide_await_status(self->status, bide_with_value(&self->with, &trace_key, &self->trace,
                                                    looking(&self->child, &self->event)));
    bide_end();
}

/* It waits in its coroutine's place: in the same stop source. */
static void asked_to_stop_or_destroyed_it_leaves_nothing(void **state)
{
    (void)state;
    for (int destroyed = 0; destroyed < 2; destroyed++) {
        bide_stop_source stop;
        bide_context context = bide_default_context;
        struct holder self = {.status = 1};
        bide_stop_source_init(&stop);
        context.stop = &stop;
        bide_event_init(&self.event, false);
        bide_start(&self.task.frame, &holder_body, &context);
        bide_resume(&self.task.frame);
        assert_int_equal(self.status, 1);
        if (destroyed)
            bide_destroy(&self.task.frame);
        else
            bide_stop_request(&stop);
        assert_int_equal(self.status, destroyed ? 1 : -ECANCELED);
        assert_true(bide_done(&self.child.task.frame));
        bide_event_set(&self.event); /* nobody waits there */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_below_sees_the_values_and_nothing_else_does),
        cmocka_unit_test(the_innermost_value_of_a_key_is_found_and_null_hides_it),
        cmocka_unit_test(it_ends_with_the_status_of_what_it_runs),
        cmocka_unit_test(asked_to_stop_or_destroyed_it_leaves_nothing),
    };
    return cmocka_run_group_tests_name("context_value", tests, NULL, NULL);
}
