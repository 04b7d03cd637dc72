/*
 * Custom coroutine types: each hook is called where it should be, and only there.
 */
#define _GNU_SOURCE
#include "misuse.h"

#include "bide/create.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <errno.h>

static char said[512];

static void say(const char *what)
{
    strcat(said, what);
    strcat(said, " ");
}

/* A type that records its calls. */
struct traced {
    bide_frame frame;
    int value;
    bool eager;
};

static void *traced_return_object(bide_frame *frame)
{
    say("object");
    return bide_promise(struct traced, frame);
}

static bide_frame *traced_initial_suspend(bide_frame *frame)
{
    say("initial");
    return bide_promise(struct traced, frame)->eager ? frame : NULL;
}

static bide_frame *traced_yield_value(bide_frame *frame, void *value)
{
    say("yield");
    bide_promise(struct traced, frame)->value = *(int *)value;
    return NULL;
}

static void traced_return_value(bide_frame *frame, void *value)
{
    say("value");
    bide_promise(struct traced, frame)->value = *(int *)value;
}

static void traced_return_void(bide_frame *frame)
{
    (void)frame;
    say("void");
}

static int traced_unhandled_error(bide_frame *frame, int error)
{
    (void)frame;
    say("error");
    return error == -EDOM ? -ERANGE : error;
}

static bide_frame *traced_final_suspend(bide_frame *frame, const bide_context *context)
{
    say(context->name);
    say(frame->error == 0 ? "final" : frame->error == -ERANGE ? "final(ERANGE)" : "final(?)");
    return frame->awaiter.frame;
}

static bide_awaiter *traced_transform(bide_frame *frame, bide_awaiter *awaiter)
{
    (void)frame;
    say("transform");
    return awaiter;
}

static void traced_destroyed(bide_frame *frame)
{
    (void)frame;
    say("destroyed");
}

static const bide_coroutine_type traced_type = {
    .name = "traced",
    .get_return_object = traced_return_object,
    .initial_suspend = traced_initial_suspend,
    .yield_value = traced_yield_value,
    .return_value = traced_return_value,
    .return_void = traced_return_void,
    .unhandled_error = traced_unhandled_error,
    .final_suspend = traced_final_suspend,
    .await_transform = traced_transform,
    .destroyed = traced_destroyed,
};

static const bide_context named = {.scheduler = &bide_inline_scheduler, .name = "in"};

struct nothing {
    bide_task task;
};

bide_coroutine(nothing_body)
{
    bide_begin(nothing_body, struct nothing * self);
    (void)self;
    bide_end();
}

struct all {
    struct traced traced;
    struct nothing child;
    int what;
    int number;
};

enum { RETURN_NOTHING, RETURN_ZERO, RETURN_A_VALUE, FAIL, FAIL_OTHERWISE };

bide_coroutine_of(traced_type, all_body)
{
    bide_begin(all_body, struct all * self);
    say("body");
    bide_await(bide_task_init(&self->child.task, &nothing_body));
    self->number = 7;
    bide_yield(&self->number);
    say("again");
    switch (self->what) {
    case RETURN_ZERO:
        bide_return(0);
    case RETURN_A_VALUE:
        self->number = 8;
        bide_return_value(&self->number);
    case FAIL:
        bide_return(-EDOM);
    case FAIL_OTHERWISE:
        bide_return(-EIO);
    default:
        break;
    }
    bide_finally();
    say("finally");
    bide_end();
}

static void run_all(struct all *self, int what, bool eager)
{
    *self = (struct all){.traced.eager = eager, .what = what};
    said[0] = '\0';
    assert_ptr_equal(bide_start(&self->traced.frame, &all_body, &named), &self->traced);
    if (!eager)
        bide_resume(&self->traced.frame);
    assert_int_equal(self->traced.value, 7);
    assert_false(bide_done(&self->traced.frame));
    bide_resume(&self->traced.frame);
    assert_true(bide_done(&self->traced.frame));
}

static void each_hook_is_called_where_it_should_be(void **state)
{
    (void)state;
    struct all self;
    run_all(&self, RETURN_NOTHING, false);
    assert_string_equal(said, "object initial body transform yield again void finally in final ");
    run_all(&self, RETURN_ZERO, false);
    assert_string_equal(said, "object initial body transform yield again void finally in final ");
    run_all(&self, RETURN_A_VALUE, true);
    assert_string_equal(said, "object initial body transform yield again value finally in final ");
    assert_int_equal(self.traced.value, 8);
    run_all(&self, FAIL, true);
    assert_string_equal(
        said, "object initial body transform yield again error finally in final(ERANGE) ");
    assert_int_equal(self.traced.frame.error, -ERANGE);
    run_all(&self, FAIL_OTHERWISE, false);
    assert_string_equal(said,
                        "object initial body transform yield again error finally in final(?) ");
}

/* Without a `finally`, and with only the end customised. */
static const bide_coroutine_type ending_type = {
    .name = "ending",
    .return_void = traced_return_void,
};

struct ending {
    bide_frame frame;
};

bide_coroutine_of(ending_type, ending_body)
{
    bide_begin(ending_body, struct ending * self);
    (void)self;
    bide_end();
}

static void the_end_of_a_body_without_finally_returns_void_once(void **state)
{
    (void)state;
    struct ending self;
    said[0] = '\0';
    assert_int_equal(bide_sync_wait(bide_frame_init(&self.frame, &ending_body)), 0);
    assert_string_equal(said, "void ");
}

static void destroying_calls_one_hook_before_finally(void **state)
{
    (void)state;
    struct all self = {.traced.eager = true};
    bide_start(&self.traced.frame, &all_body, &named);
    said[0] = '\0';
    bide_destroy(&self.traced.frame);
    assert_true(bide_done(&self.traced.frame));
    assert_string_equal(said, "destroyed finally ");

    struct all unbegun = {.traced.eager = false};
    bide_start(&unbegun.traced.frame, &all_body, &named);
    said[0] = '\0';
    bide_destroy(&unbegun.traced.frame);
    assert_string_equal(said, "");
}

/* await_transform may replace the awaiter. */
struct replacing {
    bide_frame frame;
    struct nothing other;
    bide_awaiter *replaced;
};

static bide_awaiter *replace(bide_frame *frame, bide_awaiter *awaiter)
{
    struct replacing *promise = bide_promise(struct replacing, frame);
    promise->replaced = awaiter;
    return bide_task_init(&promise->other.task, &nothing_body);
}

static const bide_coroutine_type replacing_type = {.name = "replacing", .await_transform = replace};

struct replaced {
    struct replacing promise;
    struct nothing child;
};

bide_coroutine_of(replacing_type, replaced_body)
{
    bide_begin(replaced_body, struct replaced * self);
    bide_try(bide_task_init(&self->child.task, &nothing_body));
    bide_end();
}

static void await_transform_says_what_is_awaited(void **state)
{
    (void)state;
    struct replaced self;
    self.child.task.frame.error = 1;
    assert_int_equal(bide_sync_wait(bide_frame_init(&self.promise.frame, &replaced_body)), 0);
    assert_ptr_equal(self.promise.replaced, &self.child.task.frame.awaiter);
    assert_true(bide_done(&self.promise.other.task.frame));
    assert_false(bide_done(&self.child.task.frame));
}

/* Memory from the type. */
static _Alignas(16) unsigned char memory[512];
static bool memory_is_used;
static size_t size_asked_for;

static void *own_allocate(size_t size, void *argument)
{
    if (memory_is_used || size > sizeof memory)
        return NULL;
    *(int *)argument += 1;
    memory_is_used = true;
    size_asked_for = size;
    return memory;
}

static void own_deallocate(void *freed, size_t size)
{
    assert_ptr_equal(freed, memory);
    assert_int_equal(size, size_asked_for);
    memory_is_used = false;
}

static struct traced no_object;

static void *own_failure(void)
{
    return &no_object;
}

static const bide_coroutine_type own_memory_type = {
    .name = "own memory",
    .allocate = own_allocate,
    .deallocate = own_deallocate,
    .get_return_object_on_allocation_failure = own_failure,
};

bide_coroutine_of(own_memory_type, own_memory_body)
{
    bide_begin(own_memory_body, struct ending * self);
    (void)self;
    bide_end();
}

static void a_types_frames_are_where_it_says(void **state)
{
    (void)state;
    int asked = 0;
    struct ending *self = bide_create(sizeof *self, &own_memory_body, &asked);
    assert_non_null(self);
    assert_int_equal(asked, 1);
    assert_true(memory_is_used && (unsigned char *)self > memory);
    assert_null(bide_create(sizeof *self, &own_memory_body, &asked));
    assert_ptr_equal(bide_start(NULL, &own_memory_body, &named), &no_object);
    assert_ptr_equal(bide_owned(NULL, &own_memory_body), (void *)&no_object);
    assert_ptr_equal(bide_start(&self->frame, &own_memory_body, &named), self);
    bide_resume(&self->frame);
    assert_true(bide_done(&self->frame));
    assert_true(memory_is_used);
    bide_free(&self->frame);
    assert_false(memory_is_used);

    self = bide_create(sizeof *self, &own_memory_body, &asked);
    assert_int_equal(bide_sync_wait(bide_owned(self, &own_memory_body)), 0);
    assert_false(memory_is_used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hook_is_called_where_it_should_be),
        cmocka_unit_test(the_end_of_a_body_without_finally_returns_void_once),
        cmocka_unit_test(destroying_calls_one_hook_before_finally),
        cmocka_unit_test(await_transform_says_what_is_awaited),
        cmocka_unit_test(a_types_frames_are_where_it_says),
    };
    return cmocka_run_group_tests_name("coroutine types", tests, NULL, NULL);
}
