/*
 * Handles: a coroutine is started, resumed, checked for its end, and destroyed, from outside; and misuse of a
 * handle is detected.
 */
#define _GNU_SOURCE
#include "misuse.h"

#include "bide/handle.h"
#include "bide/extend/root.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <errno.h>

/* An operation that ends when the test ends it, or is withdrawn. */
struct gate {
    bide_awaiter awaiter;
    bool withdrawn;
    bool ended;
};

static bide_frame *gate_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter;
    (void)frame;
    return NULL;
}

static int gate_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bool gate_withdraw(bide_awaiter *awaiter)
{
    struct gate *gate = bide_container_of(awaiter, struct gate, awaiter);
    gate->withdrawn = !gate->ended;
    return !gate->ended;
}

static const bide_awaiter_ops gate_ops = {
    .suspend = gate_suspend,
    .resume = gate_resume,
    .withdraw = gate_withdraw,
    .name = "gate",
};

static bide_awaiter *wait_at(struct gate *gate)
{
    gate->awaiter.ops = &gate_ops;
    return &gate->awaiter;
}

static void open_gate(struct gate *gate)
{
    gate->ended = true;
    gate->awaiter.link = NULL;
    bide_wake(&gate->awaiter);
}

static char said[256];

static void say(const char *what)
{
    strcat(said, what);
}

/* Waits at its gate, in a chain of length `depth`. */
struct link {
    bide_task task;
    struct gate gate;
    struct link *next;
    const char *name;
    int after;
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    if (self->next != NULL)
        bide_try(bide_task_init(&self->next->task, &link_body));
    else
        bide_await(wait_at(&self->gate));
    self->after++;
    bide_finally();
    if (self->name != NULL)
        say(self->name);
    bide_end();
}

static void a_coroutine_that_was_started_waits_to_be_resumed(void **state)
{
    (void)state;
    struct link self = {.name = "finally"};
    bide_frame *frame = &self.task.frame;
    said[0] = '\0';
    assert_ptr_equal(bide_start(frame, &link_body, &bide_default_context), frame);
    assert_false(bide_done(frame));
    assert_null(self.gate.awaiter.ops);
    bide_resume(frame);
    assert_false(bide_done(frame));
    assert_ptr_equal(self.gate.awaiter.ops, &gate_ops);
    open_gate(&self.gate);
    assert_true(bide_done(frame));
    assert_string_equal(said, "finally");
    assert_int_equal(self.after, 1);
    assert_int_equal(bide_task_error(&self.task), 0);
}

static void a_promise_and_its_handle_lead_to_each_other(void **state)
{
    (void)state;
    struct link self = {.after = 0};
    assert_ptr_equal(bide_promise(bide_task, bide_from_promise(&self.task)), &self.task);
    assert_ptr_equal(bide_from_promise(&self.task), &self.task.frame);
}

static void destroyed_before_its_start_it_runs_nothing(void **state)
{
    (void)state;
    struct link self = {.name = "finally"};
    said[0] = '\0';
    bide_start(&self.task.frame, &link_body, &bide_default_context);
    bide_destroy(&self.task.frame);
    assert_true(bide_done(&self.task.frame));
    assert_int_equal(bide_task_error(&self.task), -ECANCELED);
    assert_string_equal(said, "");
    bide_destroy(&self.task.frame); /* does nothing */
    assert_true(bide_done(&self.task.frame));
}

static void destroyed_while_it_waits_it_withdraws_the_wait_and_runs_finally(void **state)
{
    (void)state;
    struct link self = {.name = "finally"};
    said[0] = '\0';
    bide_start(&self.task.frame, &link_body, &bide_default_context);
    bide_resume(&self.task.frame);
    bide_destroy(&self.task.frame);
    assert_true(bide_done(&self.task.frame));
    assert_true(self.gate.withdrawn);
    assert_string_equal(said, "finally");
    assert_int_equal(self.after, 0);
    assert_int_equal(bide_task_error(&self.task), -ECANCELED);
}

static void children_are_destroyed_innermost_first(void **state)
{
    (void)state;
    struct link inner = {.name = "inner "};
    struct link middle = {.name = "middle ", .next = &inner};
    struct link outer = {.name = "outer ", .next = &middle};
    said[0] = '\0';
    bide_start(&outer.task.frame, &link_body, &bide_default_context);
    bide_resume(&outer.task.frame);
    bide_destroy(&outer.task.frame);
    assert_string_equal(said, "inner middle outer ");
    assert_true(inner.gate.withdrawn);
    assert_true(bide_done(&inner.task.frame) && bide_done(&middle.task.frame) &&
                bide_done(&outer.task.frame));
    assert_int_equal(inner.after + middle.after + outer.after, 0);
}

static void a_child_can_be_destroyed_without_its_parent(void **state)
{
    (void)state;
    struct link inner = {.name = "inner "};
    struct link outer = {.name = "outer ", .next = &inner};
    said[0] = '\0';
    bide_start(&outer.task.frame, &link_body, &bide_default_context);
    bide_resume(&outer.task.frame);
    bide_destroy(&inner.task.frame);
    assert_string_equal(said, "inner ");
    assert_false(bide_done(&outer.task.frame));
    bide_destroy(&outer.task.frame);
    assert_string_equal(said, "inner outer ");
}

/* An operation that ends while another coroutine runs is in the queue of the inline scheduler. */
struct destroyer {
    bide_task task;
    struct link *victim;
};

bide_coroutine(destroyer_body)
{
    bide_begin(destroyer_body, struct destroyer * self);
    open_gate(&self->victim->gate);
    bide_destroy(&self->victim->task.frame);
    bide_end();
}

static void what_is_about_to_be_resumed_is_taken_back(void **state)
{
    (void)state;
    struct link victim = {.name = "finally"};
    struct destroyer destroyer = {.victim = &victim};
    said[0] = '\0';
    bide_start(&victim.task.frame, &link_body, &bide_default_context);
    bide_resume(&victim.task.frame);
    assert_int_equal(bide_sync_wait(bide_task_init(&destroyer.task, &destroyer_body)), 0);
    assert_true(bide_done(&victim.task.frame));
    assert_int_equal(victim.after, 0);
    assert_string_equal(said, "finally");
}

#if TESTING_HOSTED
static void a_long_chain_is_destroyed_in_a_loop(void **state)
{
    enum { LENGTH = 300000 };
    (void)state;
    struct link *links = calloc(LENGTH, sizeof *links);
    assert_non_null(links);
    for (int i = 0; i < LENGTH - 1; i++)
        links[i].next = &links[i + 1];
    bide_start(&links[0].task.frame, &link_body, &bide_default_context);
    bide_resume(&links[0].task.frame);
    assert_ptr_equal(links[LENGTH - 1].gate.awaiter.ops, &gate_ops);
    bide_destroy(&links[0].task.frame);
    for (int i = 0; i < LENGTH; i++)
        assert_true(bide_done(&links[i].task.frame));
    free(links);
}
#endif

/* Its `finally` opens the gate of another. */
struct opener {
    bide_task task;
    struct gate gate;
    struct opener *inner; /* or NULL */
    struct link *waiting;
};

bide_coroutine(opener_body)
{
    bide_begin(opener_body, struct opener * self);
    if (self->inner != NULL)
        bide_await(bide_task_init(&self->inner->task, &opener_body));
    else
        bide_await(wait_at(&self->gate));
    bide_finally();
    say("finally ");
    if (self->waiting != NULL)
        open_gate(&self->waiting->gate);
    bide_end();
}

struct opening_destroyer {
    bide_task task;
    bide_frame *victim;
};

bide_coroutine(opening_destroyer_body)
{
    bide_begin(opening_destroyer_body, struct opening_destroyer * self);
    bide_destroy(self->victim);
    say("destroyed ");
    bide_end();
}

/* A woken coroutine may check the destroyed ones: all of them are done. */
static void what_finally_wakes_runs_when_all_are_destroyed(void **state)
{
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        struct link waiting = {.name = "woken "};
        struct opener inner = {.waiting = &waiting};
        struct opener outer = {.inner = &inner};
        struct opening_destroyer destroyer = {.victim = &outer.task.frame};
        said[0] = '\0';
        bide_start(&waiting.task.frame, &link_body, &bide_default_context);
        bide_resume(&waiting.task.frame);
        bide_start(&outer.task.frame, &opener_body, &bide_default_context);
        bide_resume(&outer.task.frame);
        if (inside)
            bide_sync_wait(bide_task_init(&destroyer.task, &opening_destroyer_body));
        else
            bide_destroy(&outer.task.frame);
        assert_true(bide_done(&waiting.task.frame));
        assert_string_equal(said,
                            inside ? "finally finally destroyed woken " : "finally finally woken ");
    }
}

struct failing {
    bide_task task;
    struct gate gate;
};

bide_coroutine(failing_body)
{
    bide_begin(failing_body, struct failing * self);
    bide_await(wait_at(&self->gate));
    bide_return(-EDOM);
    bide_end();
}

static int failures;
static const char *failed_name;
static int failed_with;

static void note_failure(const bide_context *context, const bide_coroutine_code *code, int error)
{
    (void)context;
    failures++;
    failed_name = code->name;
    failed_with = error;
}

static const bide_context watched = {
    .scheduler = &bide_inline_scheduler,
    .on_unhandled_error = note_failure,
};

static void a_failure_that_is_not_awaited_is_reported_once(void **state)
{
    (void)state;
    struct failing self = {.gate.ended = false};
    failures = 0;
    bide_start(&self.task.frame, &failing_body, &watched);
    bide_resume(&self.task.frame);
    assert_int_equal(failures, 0);
    open_gate(&self.gate);
    assert_int_equal(failures, 1);
    assert_string_equal(failed_name, "failing_body");
    assert_int_equal(failed_with, -EDOM);
}

struct catching {
    bide_task task;
    struct failing child;
    int status;
};

bide_coroutine(catching_body)
{
    bide_begin(catching_body, struct catching * self);
    bide_await_status(self->status, bide_task_init(&self->child.task, &failing_body));
    bide_end();
}

static void a_failure_that_is_awaited_is_not(void **state)
{
    (void)state;
    struct catching self = {.status = 0};
    failures = 0;
    bide_start(&self.task.frame, &catching_body, &watched);
    bide_resume(&self.task.frame);
    open_gate(&self.child.gate);
    assert_int_equal(self.status, -EDOM);
    assert_int_equal(failures, 0);
}

static void destroyed_coroutines_have_not_failed(void **state)
{
    (void)state;
    struct failing self = {.gate.ended = false};
    failures = 0;
    bide_start(&self.task.frame, &failing_body, &watched);
    bide_resume(&self.task.frame);
    bide_destroy(&self.task.frame);
    assert_int_equal(failures, 0);
}

#if TESTING_HOSTED
struct itself_later {
    bide_task task;
    struct gate gate;
    void (*misuse)(bide_frame *frame);
};

bide_coroutine(itself_later_body)
{
    bide_begin(itself_later_body, struct itself_later * self);
    bide_await(wait_at(&self->gate));
    self->misuse(&self->task.frame);
    bide_await(wait_at(&self->gate));
    bide_end();
}

/* (A coroutine that has begun but not yet waited cannot be distinguished from one at its start.) */
static void run_itself_later(void (*misuse)(bide_frame *frame))
{
    struct itself_later self = {.misuse = misuse};
    bide_start(&self.task.frame, &itself_later_body, &bide_default_context);
    bide_resume(&self.task.frame);
    open_gate(&self.gate);
}

static void resume_a_running_one(void)
{
    run_itself_later(bide_resume);
}

static void destroy_a_running_one(void)
{
    run_itself_later(bide_destroy);
}

static void resume_a_destroyed_one(void)
{
    struct link self = {.name = NULL};
    bide_start(&self.task.frame, &link_body, &bide_default_context);
    bide_resume(&self.task.frame);
    bide_destroy(&self.task.frame);
    bide_resume(&self.task.frame);
}

static const bide_awaiter_ops stubborn_ops = {
    .suspend = gate_suspend,
    .resume = gate_resume,
    .name = "stubborn",
};

struct stubborn {
    bide_task task;
    bide_awaiter awaiter;
};

bide_coroutine(stubborn_body)
{
    bide_begin(stubborn_body, struct stubborn * self);
    self->awaiter.ops = &stubborn_ops;
    bide_await(&self->awaiter);
    bide_end();
}

static void destroy_what_cannot_be_withdrawn(void)
{
    struct stubborn self;
    bide_start(&self.task.frame, &stubborn_body, &bide_default_context);
    bide_resume(&self.task.frame);
    bide_destroy(&self.task.frame);
}

static void destroy_what_is_resumed_elsewhere(void)
{
    struct link self = {.name = NULL};
    bide_start(&self.task.frame, &link_body, &bide_default_context);
    bide_resume(&self.task.frame);
    self.gate.ended = true; /* the code that ended it is about to resume it */
    bide_destroy(&self.task.frame);
}

static void misuse_is_caught_with_name_and_file(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(resume_a_destroyed_one, "finished", "link_body"));
    assert_true(
        misuse_aborts_naming(destroy_what_cannot_be_withdrawn, "withdrawn", "stubborn_body"));
    assert_true(misuse_aborts_naming(destroy_what_is_resumed_elsewhere, "resumed", "link_body"));
    assert_true(
        misuse_aborts_naming(destroy_what_is_resumed_elsewhere, "resumed", "handle_test.c:"));
    if (BIDE_DEBUG) {
        assert_true(misuse_aborts_naming(resume_a_running_one, "running", "itself_later_body"));
        assert_true(misuse_aborts_naming(destroy_a_running_one, "running", "itself_later_body"));
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coroutine_that_was_started_waits_to_be_resumed),
        cmocka_unit_test(a_promise_and_its_handle_lead_to_each_other),
        cmocka_unit_test(destroyed_before_its_start_it_runs_nothing),
        cmocka_unit_test(destroyed_while_it_waits_it_withdraws_the_wait_and_runs_finally),
        cmocka_unit_test(children_are_destroyed_innermost_first),
        cmocka_unit_test(a_child_can_be_destroyed_without_its_parent),
        cmocka_unit_test(what_is_about_to_be_resumed_is_taken_back),
        cmocka_unit_test(what_finally_wakes_runs_when_all_are_destroyed),
        cmocka_unit_test(a_failure_that_is_not_awaited_is_reported_once),
        cmocka_unit_test(a_failure_that_is_awaited_is_not),
        cmocka_unit_test(destroyed_coroutines_have_not_failed),
#if TESTING_HOSTED
        cmocka_unit_test(a_long_chain_is_destroyed_in_a_loop),
        cmocka_unit_test(misuse_is_caught_with_name_and_file),
#endif
    };
    return cmocka_run_group_tests_name("handle", tests, NULL, NULL);
}
