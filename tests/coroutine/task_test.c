/*
 * Tasks: they start when they are awaited, run by symmetric transfer, pass results and errors, inherit the
 * awaiter's context, and allocate nothing.
 */
#define _GNU_SOURCE
#include "misuse.h"

#include "bide/event.h"
#include "bide/extend/root.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <errno.h>

struct sum {
    bide_task task;
    int a, b;
    int result;
    bool started;
};

bide_coroutine(sum_body)
{
    bide_begin(sum_body, struct sum * self);
    self->started = true;
    if (self->a < 0)
        bide_return(-EDOM);
    self->result = self->a + self->b;
    bide_end();
}

static bide_awaiter *sum(struct sum *self, int a, int b)
{
    self->a = a;
    self->b = b;
    return bide_task_init(&self->task, &sum_body);
}

static void a_task_starts_only_when_it_is_awaited(void **state)
{
    (void)state;
    struct sum self = {.started = false};
    bide_awaiter *awaiter = sum(&self, 2, 3);
    assert_false(self.started);
    assert_int_equal(bide_sync_wait(awaiter), 0);
    assert_true(self.started);
    assert_int_equal(self.result, 5);
}

static void sync_wait_returns_the_error_of_the_task(void **state)
{
    (void)state;
    struct sum self;
    assert_int_equal(bide_sync_wait(sum(&self, -1, 0)), -EDOM);
    assert_int_equal(bide_task_error(&self.task), -EDOM);
}

static void sync_wait_takes_any_operation(void **state)
{
    (void)state;
    bide_event event;
    bide_event_waiter wait;
    bide_event_init(&event, true);
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &event)), 0);
}

/* fib(n), each call a frame of its own from an array: recursion. */
struct fib {
    bide_task task;
    int n;
    uint64_t result;
    struct fib *frames; /* two for each level below */
};

bide_coroutine(fib_body)
{
    bide_begin(fib_body, struct fib * self);
    if (self->n < 2) {
        self->result = (uint64_t)self->n;
    } else {
        for (int i = 0; i < 2; i++) {
            self->frames[i].n = self->n - 1 - i;
            self->frames[i].frames = self->frames + 2;
        }
        bide_await(bide_task_init(&self->frames[0].task, &fib_body));
        bide_await(bide_task_init(&self->frames[1].task, &fib_body));
        self->result = self->frames[0].result + self->frames[1].result;
    }
    bide_end();
}

static void tasks_recurse_deeper_than_they_are_stepped_directly(void **state)
{
    (void)state;
    enum { N = 22 }; /* more than BIDE_DIRECT_DEPTH */
    struct fib frames[2 * N];
    struct fib self = {.n = N, .frames = frames};
    assert_true(N > BIDE_DIRECT_DEPTH);
    bide_sync_wait(bide_task_init(&self.task, &fib_body));
    assert_int_equal(self.result, 17711);
}

struct inheriting {
    bide_task task;
    const bide_context *seen;
    const char *name;
    struct inheriting *child;
};

bide_coroutine(inheriting_body)
{
    bide_begin(inheriting_body, struct inheriting * self);
    self->seen = bide_this_context();
    self->name = bide_this_context()->name;
    if (self->child != NULL)
        bide_await(bide_task_init(&self->child->task, &inheriting_body));
    bide_end();
}

static void children_inherit_the_context(void **state)
{
    (void)state;
    const bide_context context = {.scheduler = &bide_inline_scheduler, .name = "mine"};
    struct inheriting grandchild = {.child = NULL};
    struct inheriting child = {.child = &grandchild};
    struct inheriting parent = {.child = &child};
    bide_sync_wait_in(&context, bide_task_init(&parent.task, &inheriting_body));
    assert_string_equal(parent.name, "mine"); /* the root has a copy */
    assert_ptr_equal(child.seen, parent.seen);
    assert_ptr_equal(grandchild.seen, parent.seen);
}

struct reusing {
    bide_task task;
    int i;
    int total;
    struct sum child;
};

bide_coroutine(reusing_body)
{
    bide_begin(reusing_body, struct reusing * self);
    for (self->i = 0; self->i < 10; self->i++) {
        bide_try(sum(&self->child, self->i, 1));
        self->total += self->child.result;
    }
    bide_end();
}

static void a_childs_frame_may_be_used_again_at_once(void **state)
{
    (void)state;
    struct reusing self = {.total = 0};
    assert_int_equal(bide_sync_wait(bide_task_init(&self.task, &reusing_body)), 0);
    assert_int_equal(self.total, 55);
}

/*
 * A frame that resumes elsewhere before a step that it started has returned, and then comes back through that
 * step from another await. `detour` hands control to `other` after it has given the waiting frame away.
 * `other` resumes the frame (as another thread would), the frame awaits `other` itself, and `other` ends. The
 * frame is then handed back to the first await's step, but is at the second.
 */
struct detour {
    bide_awaiter awaiter;
    bide_frame *transfer_to;
    bide_frame *given_away;
};

static bool detour_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static bide_frame *detour_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    struct detour *detour = (struct detour *)(void *)awaiter;
    detour->given_away = frame;
    return detour->transfer_to;
}

static int detour_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

/* Awaits a running task by becoming its continuation. */
static bide_frame *join_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    struct detour *join = (struct detour *)(void *)awaiter;
    join->transfer_to->awaiter.frame = frame;
    return NULL;
}

static const bide_awaiter_ops detour_ops = {
    .ready = detour_ready,
    .suspend = detour_suspend,
    .resume = detour_resume,
};
static const bide_awaiter_ops join_ops = {
    .ready = detour_ready,
    .suspend = join_suspend,
    .resume = detour_resume,
};

struct other {
    bide_task task;
    struct detour *detour;
};

bide_coroutine(other_body)
{
    bide_begin(other_body, struct other * self);
    bide_resume(self->detour->given_away);
    bide_end();
}

struct detoured {
    bide_task task;
    char trace[32];
    struct other other;
    struct detour detour;
    struct detour join;
};

bide_coroutine(detoured_body)
{
    bide_begin(detoured_body, struct detoured * self);
    bide_await_later(bide_task_init(&self->other.task, &other_body));
    self->other.task.frame.context = bide_this_context();
    self->other.task.frame.awaiter.frame = NULL;
    self->other.detour = &self->detour;
    self->detour.awaiter.ops = &detour_ops;
    self->detour.transfer_to = &self->other.task.frame;
    bide_await(&self->detour.awaiter);
    strcat(self->trace, "1");
    self->join.awaiter.ops = &join_ops;
    self->join.transfer_to = &self->other.task.frame;
    bide_await(&self->join.awaiter);
    strcat(self->trace, "2");
    bide_end();
}

static void a_frame_handed_back_from_another_await_goes_on_there(void **state)
{
    (void)state;
    struct detoured self = {.trace = ""};
    bide_sync_wait(bide_task_init(&self.task, &detoured_body));
    assert_string_equal(self.trace, "12");
}

/*
 * The same through one await in a loop, and with operations of different kinds at one address: the frame
 * returns to the same place, which then waits with the other kind.
 */
static int other_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 7;
}

static const bide_awaiter_ops other_join_ops = {
    .ready = detour_ready,
    .suspend = join_suspend,
    .resume = other_resume,
};

struct looped {
    bide_task task;
    int i;
    int statuses[2];
    struct other other;
    struct detour detour;
};

static __attribute__((noinline)) bide_awaiter *detour_or_join(struct looped *self)
{
    self->detour.awaiter.ops = self->i == 0 ? &detour_ops : &other_join_ops;
    self->detour.transfer_to = &self->other.task.frame;
    return &self->detour.awaiter;
}

bide_coroutine(looped_body)
{
    bide_begin(looped_body, struct looped * self);
    bide_await_later(bide_task_init(&self->other.task, &other_body));
    self->other.task.frame.context = bide_this_context();
    self->other.task.frame.awaiter.frame = NULL;
    self->other.detour = &self->detour;
    for (self->i = 0; self->i < 2; self->i++)
        bide_await_status(self->statuses[self->i], detour_or_join(self));
    bide_end();
}

static void a_frame_handed_back_to_the_same_await_takes_the_newer_operations_result(void **state)
{
    (void)state;
    struct looped self = {.statuses = {-1, -1}};
    bide_sync_wait(bide_task_init(&self.task, &looped_body));
    assert_int_equal(self.statuses[0], 0);
    assert_int_equal(self.statuses[1], 7);
}

struct blocking_inside {
    bide_task task;
    struct sum child;
    int status;
};

bide_coroutine(blocking_inside_body)
{
    bide_begin(blocking_inside_body, struct blocking_inside * self);
    self->status = bide_sync_wait(sum(&self->child, 4, 5));
    bide_end();
}

static void sync_wait_inside_a_coroutine_runs_what_does_not_need_it(void **state)
{
    (void)state;
    struct blocking_inside self = {.status = -1};
    bide_sync_wait(bide_task_init(&self.task, &blocking_inside_body));
    assert_int_equal(self.status, 0);
    assert_int_equal(self.child.result, 9);
}

#if TESTING_HOSTED
static void await_a_finished_task(void)
{
    struct sum self;
    bide_awaiter *awaiter = sum(&self, 1, 2);
    bide_sync_wait(awaiter);
    bide_sync_wait(awaiter);
}

struct idle {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
};

bide_coroutine(idle_body)
{
    bide_begin(idle_body, struct idle * self);
    bide_await(bide_event_wait(&self->wait, &self->event));
    bide_end();
}

static void ignore(bide_root *root)
{
    (void)root;
}

static void await_a_suspended_task(void)
{
    struct idle self;
    bide_root root;
    bide_event_init(&self.event, false);
    bide_awaiter *awaiter = bide_task_init(&self.task, &idle_body);
    bide_root_start(&root, &bide_default_context, awaiter, ignore);
    bide_sync_wait(awaiter);
}

static void resume_a_finished_task(void)
{
    struct sum self;
    bide_sync_wait(sum(&self, 1, 2));
    bide_resume(&self.task.frame);
}

static void misuse_aborts_with_a_line_that_names_the_coroutine(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(await_a_finished_task, "awaited", "sum_body"));
    assert_true(misuse_aborts_naming(await_a_suspended_task, "awaited", "idle_body"));
    assert_true(misuse_aborts_naming(resume_a_finished_task, "finished", "sum_body"));
}
#endif

struct resuming {
    bide_task task;
    bide_event_waiter wait;
    bide_event *event;
    const char *name;
};

static char order[64];

bide_coroutine(resuming_body)
{
    bide_begin(resuming_body, struct resuming * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    strcat(order, self->name);
    bide_end();
}

static void ended(bide_root *root)
{
    (void)root;
    strcat(order, "!");
}

static void roots_under_the_inline_scheduler_run_in_turn(void **state)
{
    (void)state;
    bide_event event;
    bide_root roots[2];
    struct resuming a = {.event = &event, .name = "a"}, b = {.event = &event, .name = "b"};
    order[0] = '\0';
    bide_event_init(&event, false);
    bide_root_start(&roots[0], &bide_default_context, bide_task_init(&a.task, &resuming_body),
                    ended);
    bide_root_start(&roots[1], &bide_default_context, bide_task_init(&b.task, &resuming_body),
                    ended);
    assert_string_equal(order, "");
    bide_event_set(&event);
    assert_string_equal(order, "a!b!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_starts_only_when_it_is_awaited),
        cmocka_unit_test(sync_wait_returns_the_error_of_the_task),
        cmocka_unit_test(sync_wait_takes_any_operation),
        cmocka_unit_test(tasks_recurse_deeper_than_they_are_stepped_directly),
        cmocka_unit_test(children_inherit_the_context),
        cmocka_unit_test(a_childs_frame_may_be_used_again_at_once),
        cmocka_unit_test(a_frame_handed_back_from_another_await_goes_on_there),
        cmocka_unit_test(a_frame_handed_back_to_the_same_await_takes_the_newer_operations_result),
        cmocka_unit_test(sync_wait_inside_a_coroutine_runs_what_does_not_need_it),
#if TESTING_HOSTED
        cmocka_unit_test(misuse_aborts_with_a_line_that_names_the_coroutine),
#endif
        cmocka_unit_test(roots_under_the_inline_scheduler_run_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
