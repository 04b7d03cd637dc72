/*
 * Once: one runner, the others wait; if the runner fails, the next one runs; operations that are run once; and random
 * runs with threads.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/create.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/once.h"
#include "bide/stop.h"

#if TESTING_HOSTED
#define STORM_OBJECT bide_once
#define STORM_WAITER bide_once_waiter
#include "small_stack.h"
#include "sync/storm.h"
#endif

/*
 * A coroutine with a stop source of its own that begins, notes its name (a capital if it is the runner), and ends
 * there.
 */
struct user {
    bide_task task;
    by_hand *by_hand;
    bide_once *once;
    bide_once_waiter begin;
    bide_context context;
    bide_stop_source stop;
    char name;
    int status;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_await_status(self->status, bide_once_start(&self->begin, self->once));
    by_hand_note(
        self->by_hand,
        (char)(self->status == 0 && self->begin.runs ? self->name - 'a' + 'A' : self->name));
    bide_end();
}

/* The same with an operation: a task that waits for an event, and ends with `result`. */
struct runner {
    bide_task task;
    by_hand *by_hand;
    bide_once *once;
    bide_once_operation run;
    struct inner {
        bide_task task;
        bide_event_waiter wait;
        bide_event go;
        int result;
        int begun;
        int ended;
    } inner;
    bide_context context;
    bide_stop_source stop;
    char name;
    int status;
};

bide_coroutine(inner_body)
{
    bide_begin(inner_body, struct inner * self);
    self->begun++;
    bide_try(bide_event_wait(&self->wait, &self->go));
    bide_return(self->result);
    bide_finally();
    self->ended++;
    bide_end();
}

bide_coroutine(runner_body)
{
    bide_begin(runner_body, struct runner * self);
    bide_await_status(self->status, bide_once_run(&self->run, self->once,
                                                  bide_task_init(&self->inner.task, &inner_body)));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void start(bide_frame *frame, const bide_point *body, bide_context *context,
                  bide_stop_source *stop, by_hand *by_hand)
{
    bide_stop_source_init(stop);
    *context = by_hand->context;
    context->stop = stop;
    bide_start(frame, body, context);
    bide_resume(frame);
}

struct fixture {
    by_hand by_hand;
    bide_once once;
    struct user users[5];
    struct runner runners[3];
};

static void begin(struct fixture *self, int index)
{
    struct user *user = &self->users[index];
    user->by_hand = &self->by_hand;
    user->once = &self->once;
    user->name = (char)('a' + index);
    user->status = 1;
    start(&user->task.frame, &user_body, &user->context, &user->stop, &self->by_hand);
}

static void run(struct fixture *self, int index, int result)
{
    struct runner *runner = &self->runners[index];
    runner->by_hand = &self->by_hand;
    runner->once = &self->once;
    runner->name = (char)('x' + index);
    runner->status = 1;
    runner->inner.result = result;
    runner->inner.begun = runner->inner.ended = 0;
    bide_event_init(&runner->inner.go, false);
    start(&runner->task.frame, &runner_body, &runner->context, &runner->stop, &self->by_hand);
}

static void fixture_init(struct fixture *self, int users)
{
    by_hand_init(&self->by_hand);
    bide_once_init(&self->once);
    for (int i = 0; i < users; i++)
        begin(self, i);
}

static void the_first_runs_it_and_the_others_wait_until_it_is_done(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 4);
    by_hand_assert_trace(&f.by_hand, "A");
    assert_false(bide_once_is_done(&f.once));
    bide_once_finish(&f.users[0].begin, true);
    assert_true(bide_once_is_done(&f.once));
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "bcd");
    begin(&f, 4);
    by_hand_assert_trace(&f.by_hand, "e");
    for (int i = 0; i < 5; i++)
        assert_int_equal(f.users[i].status, 0);
    bide_once_destroy(&f.once);
}

static void if_it_was_not_done_the_next_in_line_runs_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    bide_once_finish(&f.users[0].begin, false);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "AB");
    bide_once_finish(&f.users[1].begin, false);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "C");
    bide_once_finish(&f.users[2].begin, false);
    begin(&f, 3);
    by_hand_assert_trace(&f.by_hand, "D");
    bide_once_finish(&f.users[3].begin, true);
    bide_once_destroy(&f.once);
}

static void a_wait_is_cut_short_and_the_others_go_on(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 4);
    bide_stop_request_with(&f.users[1].stop, -ETIMEDOUT);
    bide_destroy(&f.users[2].task.frame);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "Ab");
    assert_int_equal(f.users[1].status, -ETIMEDOUT);
    bide_once_finish(&f.users[0].begin, true);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "d");
    bide_once_destroy(&f.once);
}

static void the_turn_of_a_destroyed_waiter_goes_to_the_next(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    bide_once_finish(&f.users[0].begin, false); /* b is the runner, and has not run */
    bide_destroy(&f.users[1].task.frame);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "AC");
    bide_once_finish(&f.users[2].begin, true);
    begin(&f, 3);
    bide_destroy(&f.users[3].task.frame);
    bide_once_destroy(&f.once);
}

static void closing_ends_waits_unless_it_is_done(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    bide_once_close(&f.once);
    by_hand_run(&f.by_hand);
    begin(&f, 3);
    by_hand_assert_trace(&f.by_hand, "Abcd");
    for (int i = 1; i < 4; i++)
        assert_int_equal(f.users[i].status, -EPIPE);
    bide_once_finish(&f.users[0].begin, true);
    begin(&f, 4);
    assert_int_equal(f.users[4].status, 0);
    assert_false(f.users[4].begin.runs);
    bide_once_destroy(&f.once);
}

static void closing_after_the_end_disturbs_no_wait(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 2);
    bide_once_finish(&f.users[0].begin, true);
    bide_once_close(&f.once);
    by_hand_run(&f.by_hand);
    begin(&f, 2);
    by_hand_assert_trace(&f.by_hand, "Abc");
    assert_int_equal(f.users[1].status, 0);
    assert_int_equal(f.users[2].status, 0);
}

/* ---- Operations ---- */

static void an_operation_is_run_once_and_a_failure_is_only_the_runners(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 0);
    run(&f, 0, -EINVAL);
    run(&f, 1, 0);
    run(&f, 2, 0);
    assert_int_equal(f.runners[0].inner.begun, 1);
    assert_int_equal(f.runners[1].inner.begun, 0);
    bide_event_set(&f.runners[0].inner.go);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "x");
    assert_int_equal(f.runners[0].status, -EINVAL);
    assert_int_equal(f.runners[1].inner.begun, 1);
    bide_event_set(&f.runners[1].inner.go);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "yz");
    assert_int_equal(f.runners[1].status, 0);
    assert_int_equal(f.runners[2].status, 0);
    assert_int_equal(f.runners[2].inner.begun, 0);
    run(&f, 0, 0);
    assert_int_equal(f.runners[0].status, 0);
    assert_int_equal(f.runners[0].inner.begun, 0);
    bide_once_destroy(&f.once);
}

static void if_the_runner_is_asked_to_stop_the_next_runs_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 0);
    run(&f, 0, 0);
    run(&f, 1, 0);
    bide_stop_request(&f.runners[0].stop);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "x");
    assert_int_equal(f.runners[0].status, -ECANCELED);
    assert_int_equal(f.runners[0].inner.ended, 1);
    bide_event_set(&f.runners[1].inner.go);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "y");
    assert_int_equal(f.runners[1].status, 0);
    bide_once_destroy(&f.once);
}

static void if_the_runner_is_destroyed_so_is_its_operation_and_the_next_runs_it(void **state)
{
    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        struct fixture f;
        fixture_init(&f, 0);
        run(&f, 0, 0);
        run(&f, 1, 0);
        run(&f, 2, 0);
        bide_destroy(&f.runners[1].task.frame);
        if (ended)
            bide_event_set(&f.runners[0].inner.go); /* posted, not run */
        bide_destroy(&f.runners[0].task.frame);
        assert_int_equal(f.runners[0].inner.ended, 1);
        by_hand_run(&f.by_hand);
        assert_int_equal(f.runners[1].inner.begun, 0);
        assert_int_equal(f.runners[2].inner.begun, 1);
        bide_event_set(&f.runners[2].inner.go);
        by_hand_run(&f.by_hand);
        by_hand_assert_trace(&f.by_hand, "z");
        bide_once_destroy(&f.once);
    }
}

/* A created operation has to be freed, run or not. */
static size_t in_use;
static _Alignas(BIDE_ALLOCATOR_ALIGN) unsigned char memory[512];

static void *allocate(bide_allocator *allocator, size_t size)
{
    (void)allocator;
    assert_true(size <= sizeof memory && in_use == 0);
    in_use = size;
    return memory;
}

static void deallocate(bide_allocator *allocator, void *block, size_t size)
{
    (void)allocator;
    assert_ptr_equal(block, memory);
    assert_int_equal(size, in_use);
    in_use = 0;
}

bide_coroutine(created_body)
{
    bide_begin(created_body, bide_task * self);
    (void)self;
    bide_end();
}

static void a_created_operation_is_freed_run_or_not(void **state)
{
    (void)state;
    bide_allocator allocator = {allocate, deallocate};
    bide_once once;
    bide_once_operation operation;
    bide_once_waiter waiter;
    bide_once_init(&once);
    for (int i = 0; i < 2; i++) {
        bide_task *task = bide_create(sizeof *task, &created_body, &allocator);
        assert_int_equal(
            bide_sync_wait(bide_once_run(&operation, &once, bide_owned(task, &created_body))), 0);
        assert_int_equal(in_use, 0);
    }
    bide_once_init(&once);
    assert_int_equal(bide_once_start_blocking(&waiter, &once, 0), 0);
    bide_task *task = bide_create(sizeof *task, &created_body, &allocator);
    assert_int_equal(
        bide_sync_wait_until(bide_once_run(&operation, &once, bide_owned(task, &created_body)), 0),
        -ETIMEDOUT);
    assert_int_equal(in_use, 0);
    bide_once_finish(&waiter, true);
}

#if TESTING_HOSTED
static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    bide_once once;
    bide_once_waiter one, two;
    bide_once_init(&once);
    assert_int_equal(bide_once_start_blocking(&one, &once, 0), 0);
    assert_true(one.runs);
    assert_int_equal(bide_once_start_blocking(&two, &once, bide_platform.now() + 1000000),
                     -ETIMEDOUT);
    bide_once_finish(&one, true);
    assert_int_equal(bide_once_start_blocking(&two, &once, 0), 0);
    assert_false(two.runs);
    bide_once_destroy(&once);
}
#endif

#if BIDE_DEBUG && TESTING_HOSTED
static void end_twice(void)
{
    bide_once once;
    bide_once_waiter waiter;
    bide_once_init(&once);
    bide_once_start_blocking(&waiter, &once, 0);
    bide_once_finish(&waiter, false);
    bide_once_finish(&waiter, true);
}

static void destroy_what_runs(void)
{
    bide_once once;
    bide_once_waiter waiter;
    bide_once_init(&once);
    bide_once_start_blocking(&waiter, &once, 0);
    bide_once_destroy(&once);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(
        end_twice, "a once is ended by a waiter that does not run it: &waiter", "end_twice"));
    assert_true(misuse_aborts_naming(
        destroy_what_runs, "a once is destroyed while it is in use: &once", "destroy_what_runs"));
}
#endif

/* ---- A crowd in line, on a small stack ---- */

#if TESTING_HOSTED
static uint32_t ran, done;

struct link {
    bide_task task;
    bide_once *once;
    bide_once_waiter begin;
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    bide_try(bide_once_start(&self->begin, self->once));
    done++;
    if (self->begin.runs)
        bide_once_finish(&self->begin,
                      ++ran == crowd_of_waiters() / 2); /* half of them fail, each wakes the next */
    bide_end();
}

static void *wake_a_chain(void *argument)
{
    struct link *links = argument;
    bide_once once;
    bide_once_waiter first;
    bide_once_init(&once);
    bide_once_start_blocking(&first, &once, 0);
    for (uint32_t i = 0; i < crowd_of_waiters(); i++) {
        links[i].once = &once;
        bide_start(&links[i].task.frame, &link_body, &bide_default_context);
        bide_resume(&links[i].task.frame);
    }
    bide_once_finish(&first, false);
    return NULL;
}

static void those_of_a_crowd_wake_each_other_on_a_small_stack(void **state)
{
    (void)state;
    struct link *links = calloc(crowd_of_waiters(), sizeof *links);
    assert_non_null(links);
    ran = done = 0;
    on_a_small_stack(wake_a_chain, links);
    assert_int_equal(done, crowd_of_waiters());
    assert_int_equal(ran, crowd_of_waiters() / 2);
    free(links);
}

/* ---- At random, with threads ---- */

/* The runner succeeds one time in eight. */
bide_coroutine(storm_body)
{
    bide_begin(storm_body, storm_user * self);
    bide_await_status(self->status, bide_once_start(&self->waiter, &self->storm->object));
    if (self->status == 0 && self->waiter.runs) {
        storm_assert(self->storm, self->storm->data[0] == 0);
        storm_pass(self->section);
        if (self->kind % 8 == 0)
            storm_write(self->storm, self->section);
        bide_once_finish(&self->waiter, self->kind % 8 == 0);
    } else if (self->status == 0) {
        storm_assert(self->storm, self->storm->data[0] == 1);
    }
    storm_ended(self->storm);
    bide_end();
}

static void storm_init(storm *storm)
{
    bide_once_init(&storm->object);
    storm->data[0] = storm->data[1] = 0;
}

static void storm_end(storm *storm)
{
    bide_once_close(&storm->object);
}

static bool storm_is_good(storm *storm)
{
    uintptr_t value = BIDE_QUEUE_VALUE(bide_atomic_load(&storm->object.queue.state, relaxed));
    return bide_waiter_queue_is_idle(&storm->object.queue) &&
           value == (storm->data[0] != 0 ? (uintptr_t)BIDE_ONCE_DONE_ : 0);
}

static void it_is_done_once_at_most_and_then_all_have_it(void **state)
{
    static const storm_kind kind = {&storm_body, storm_init, storm_end, storm_is_good, NULL, NULL};
    (void)state;
    storm_run(&kind);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_runs_it_and_the_others_wait_until_it_is_done),
        cmocka_unit_test(if_it_was_not_done_the_next_in_line_runs_it),
        cmocka_unit_test(a_wait_is_cut_short_and_the_others_go_on),
        cmocka_unit_test(the_turn_of_a_destroyed_waiter_goes_to_the_next),
        cmocka_unit_test(closing_ends_waits_unless_it_is_done),
        cmocka_unit_test(closing_after_the_end_disturbs_no_wait),
        cmocka_unit_test(an_operation_is_run_once_and_a_failure_is_only_the_runners),
        cmocka_unit_test(if_the_runner_is_asked_to_stop_the_next_runs_it),
        cmocka_unit_test(if_the_runner_is_destroyed_so_is_its_operation_and_the_next_runs_it),
        cmocka_unit_test(a_created_operation_is_freed_run_or_not),
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
#endif
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(those_of_a_crowd_wake_each_other_on_a_small_stack),
        cmocka_unit_test(it_is_done_once_at_most_and_then_all_have_it),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
