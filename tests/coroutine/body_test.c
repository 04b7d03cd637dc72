/*
 * Statements in the body of a coroutine: loops, blocks, switch, several awaits on a line, try, return, finally. Built
 * twice: with labels as values and in standard C.
 */
#include "testing.h"

#include "bide/event.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <errno.h>

/* An operation that suspends, and ends when the test ends it; or that ends in suspend. */
typedef struct pause {
    bide_awaiter awaiter;
    int status;
    bool ends_in_suspend;
} pause;

static bide_awaiter *paused; /* the newest that waits */

static bool pause_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

static bide_frame *pause_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    if (((pause *)(void *)awaiter)->ends_in_suspend)
        return frame;
    paused = awaiter;
    return NULL;
}

static int pause_resume(bide_awaiter *awaiter)
{
    return ((pause *)(void *)awaiter)->status;
}

static bide_awaiter *pause_for(pause *operation, int status)
{
    static const bide_awaiter_ops ops = {
        .ready = pause_ready,
        .suspend = pause_suspend,
        .resume = pause_resume,
    };
    operation->awaiter.ops = &ops;
    operation->status = status;
    operation->ends_in_suspend = false;
    return &operation->awaiter;
}

static bide_awaiter *pause_briefly(pause *operation, int status)
{
    pause_for(operation, status);
    operation->ends_in_suspend = true;
    return &operation->awaiter;
}

/* Starts a task by hand, with nobody awaiting it. */
static void begin(bide_task *task)
{
    task->frame.context = &bide_default_context;
    task->frame.awaiter.frame = NULL;
    paused = NULL;
    bide_resume(&task->frame);
}

/* Ends the awaited operation, as long as there is one. Returns the number of times. */
static int end_pauses(void)
{
    int count = 0;
    while (paused != NULL) {
        bide_awaiter *ended = paused;
        paused = NULL;
        bide_resume(ended->frame);
        count++;
    }
    return count;
}

struct traced {
    bide_task task;
    int parameter;
    int i, j;
    int status;
    char trace[256];
    pause pause;
};

static void note(struct traced *self, const char *what)
{
    strncat(self->trace, what, sizeof self->trace - strlen(self->trace) - 1);
}

static void run_body(struct traced *self, const bide_point *body, int expected_pauses)
{
    self->trace[0] = '\0';
    bide_await_later(bide_task_init(&self->task, body));
    begin(&self->task);
    assert_int_equal(end_pauses(), expected_pauses);
    assert_true(bide_done(&self->task.frame));
}

bide_coroutine(nested_body)
{
    bide_begin(nested_body, struct traced * self);
    for (self->i = 0; self->i < 3; self->i++) {
        self->j = 0;
        while (true) {
            if (self->j == 2)
                break;
            {
                do {
                    bide_await(pause_for(&self->pause, 0));
                    note(self, "a");
                } while (0);
            }
            self->j++;
        }
        if (self->i == 1)
            bide_await(pause_for(&self->pause, 0));
        else
            note(self, "b");
    }
    bide_end();
}

static void awaits_inside_loops_and_blocks(void **state)
{
    (void)state;
    struct traced self;
    run_body(&self, &nested_body, 7);
    assert_string_equal(self.trace, "aabaaaab");
}

bide_coroutine(switch_body)
{
    bide_begin(switch_body, struct traced * self);
    for (self->i = 0; self->i < 4; self->i++) {
        switch (self->i) {
        case 0:
            note(self, "zero ");
            break;
        case 2:
            note(self, "two ");
            /* fall through */
        case 3:
            note(self, "three ");
            break;
        default:
            note(self, "other ");
        }
        bide_await(pause_for(&self->pause, 0));
    }
    bide_end();
}

static void a_switch_of_the_user_works(void **state)
{
    (void)state;
    struct traced self;
    run_body(&self, &switch_body, 4);
    assert_string_equal(self.trace, "zero other two three three ");
}

#if !BIDE_STANDARD_C
bide_coroutine(await_in_switch_body)
{
    bide_begin(await_in_switch_body, struct traced * self);
    for (self->i = 0; self->i < 4; self->i++) {
        switch (self->i) {
        case 0:
            bide_await(pause_for(&self->pause, 0));
            note(self, "zero ");
            break;
        case 2:
            bide_await(pause_for(&self->pause, 0));
            note(self, "two ");
            /* fall through */
        case 3:
            note(self, "three ");
            bide_await(pause_for(&self->pause, 0));
            break;
        default:
            note(self, "other ");
        }
    }
    bide_end();
}

static void awaits_inside_a_switch_of_the_user(void **state)
{
    (void)state;
    struct traced self;
    run_body(&self, &await_in_switch_body, 4);
    assert_string_equal(self.trace, "zero other two three three ");
}

/* clang-format off */
bide_coroutine(two_on_a_line_body)
{
    bide_begin(two_on_a_line_body, struct traced *self);
    bide_await(pause_for(&self->pause, 0)); note(self, "a"); bide_await(pause_for(&self->pause, 0)); note(self, "b");
    bide_end();
}
/* clang-format on */

static void two_awaits_on_one_line(void **state)
{
    (void)state;
    struct traced self;
    run_body(&self, &two_on_a_line_body, 2);
    assert_string_equal(self.trace, "ab");
}
#endif

bide_coroutine(status_body)
{
    bide_begin(status_body, struct traced * self);
    bide_await_status(self->status, pause_for(&self->pause, -EPIPE));
    if (self->status == -EPIPE)
        note(self, "after suspension ");
    self->status = 0;
    bide_await_status(self->status, pause_briefly(&self->pause, -EPIPE));
    if (self->status == -EPIPE)
        note(self, "without ");
    bide_end();
}

static void status_is_taken_after_suspension_and_without(void **state)
{
    (void)state;
    struct traced self;
    run_body(&self, &status_body, 1);
    assert_string_equal(self.trace, "after suspension without ");
    assert_int_equal(bide_task_error(&self.task), 0);
}

bide_coroutine(try_body)
{
    bide_begin(try_body, struct traced * self);
    bide_try(pause_for(&self->pause, 0));
    note(self, "one ");
    bide_try(pause_for(&self->pause, self->parameter));
    note(self, "two ");
    bide_finally();
    note(self, "finally ");
    bide_end();
}

static void try_passes_a_failure_on_through_finally(void **state)
{
    (void)state;
    struct traced self = {.parameter = -ENOENT};
    run_body(&self, &try_body, 2);
    assert_string_equal(self.trace, "one finally ");
    assert_int_equal(bide_task_error(&self.task), -ENOENT);
}

/* ---- try or break ---- */

struct receiver {
    bide_task task;
    pause pause;
    const int *statuses; /* of one receive after the other */
    bool briefly;
    int received, after_the_loop, finally;
};

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    for (;; self->received++)
        bide_try_or_break(self->briefly
                              ? pause_briefly(&self->pause, self->statuses[self->received])
                              : pause_for(&self->pause, self->statuses[self->received]));
    self->after_the_loop = 1;
    do {
        /* NOLINTNEXTLINE(bugprone-terminating-continue): breaking is the case under test */
        bide_try_or_break(pause_briefly(&self->pause, -EPIPE));
        self->after_the_loop = 2;
    } while (0);
    bide_finally();
    self->finally++;
    bide_end();
}

static void try_or_break_ends_the_loop_or_the_coroutine(void **state)
{
    (void)state;
    static const int closed[] = {0, 1, 0, -EPIPE}, broken[] = {0, 0, -EIO};
    for (int briefly = 0; briefly < 2; briefly++) {
        struct receiver self = {.statuses = closed, .briefly = briefly};
        bide_spawned spawned;
        bide_spawn(&spawned, &bide_default_context, bide_task_init(&self.task, &receiver_body));
        for (int i = 0; !briefly && i < 4; i++)
            bide_wake_one(paused);
        assert_true(bide_event_is_set(&spawned.ended));
        assert_int_equal(spawned.root.status, 0);
        assert_int_equal(self.received, 3);
        assert_int_equal(self.after_the_loop, 1);
        assert_int_equal(self.finally, 1);

        self = (struct receiver){.statuses = broken, .briefly = briefly};
        bide_spawn(&spawned, &bide_default_context, bide_task_init(&self.task, &receiver_body));
        for (int i = 0; !briefly && i < 3; i++)
            bide_wake_one(paused);
        assert_true(bide_event_is_set(&spawned.ended));
        assert_int_equal(spawned.root.status, -EIO);
        assert_int_equal(self.received, 2);
        assert_int_equal(self.after_the_loop, 0);
        assert_int_equal(self.finally, 1);
    }
}

static void finally_runs_when_the_end_is_reached(void **state)
{
    (void)state;
    struct traced self = {.parameter = 0};
    run_body(&self, &try_body, 2);
    assert_string_equal(self.trace, "one two finally ");
    assert_int_equal(bide_task_error(&self.task), 0);
}

bide_coroutine(return_body)
{
    bide_begin(return_body, struct traced * self);
    for (self->i = 0;; self->i++) {
        bide_await(pause_for(&self->pause, 0));
        if (self->i == 2)
            bide_return(self->parameter);
        note(self, "a");
    }
    bide_finally();
    note(self, "f");
    bide_end();
}

static void return_leaves_nested_loops_through_finally(void **state)
{
    (void)state;
    struct traced self = {.parameter = -EIO};
    run_body(&self, &return_body, 3);
    assert_string_equal(self.trace, "aaf");
    assert_int_equal(bide_task_error(&self.task), -EIO);
}

bide_coroutine(empty_body)
{
    bide_begin(empty_body, struct traced * self);
    (void)self;
    bide_end();
}

static void an_empty_body_ends_with_0(void **state)
{
    (void)state;
    struct traced self;
    run_body(&self, &empty_body, 0);
    assert_int_equal(bide_task_error(&self.task), 0);
}

static unsigned line_of_await;

bide_coroutine(where_body)
{
    bide_begin(where_body, struct traced * self);
    line_of_await = __LINE__ + 1;
    bide_await(pause_for(&self->pause, 0));
    bide_end();
}

static void a_suspended_frame_says_where_it_stands(void **state)
{
    (void)state;
    struct traced self;
    bide_await_later(bide_task_init(&self.task, &where_body));
    assert_string_equal(bide_frame_point(&self.task.frame)->code->name, "where_body");
    begin(&self.task);
    const bide_point *point = bide_frame_point(&self.task.frame);
    assert_string_equal(point->code->name, "where_body");
    assert_string_equal(point->code->file, __FILE__);
    assert_int_equal(point->line, line_of_await);
    assert_false(bide_done(&self.task.frame));
    assert_ptr_equal(self.task.frame.awaiter.link, &self.pause.awaiter);
    assert_int_equal(end_pauses(), 1);
}

static void the_sizes_are_as_promised(void **state)
{
    (void)state;
    assert_true(sizeof(bide_frame) <= 4 * sizeof(void *));
    assert_true(sizeof(bide_task) <= 4 * sizeof(void *));
    assert_true(sizeof(bide_event) <= sizeof(void *));
    assert_true(sizeof(bide_event_waiter) <= 6 * sizeof(void *)); /* 5, aligned to 8 bytes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(awaits_inside_loops_and_blocks),
        cmocka_unit_test(a_switch_of_the_user_works),
#if !BIDE_STANDARD_C
        cmocka_unit_test(awaits_inside_a_switch_of_the_user),
        cmocka_unit_test(two_awaits_on_one_line),
#endif
        cmocka_unit_test(status_is_taken_after_suspension_and_without),
        cmocka_unit_test(try_passes_a_failure_on_through_finally),
        cmocka_unit_test(try_or_break_ends_the_loop_or_the_coroutine),
        cmocka_unit_test(finally_runs_when_the_end_is_reached),
        cmocka_unit_test(return_leaves_nested_loops_through_finally),
        cmocka_unit_test(an_empty_body_ends_with_0),
        cmocka_unit_test(a_suspended_frame_says_where_it_stands),
        cmocka_unit_test(the_sizes_are_as_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
