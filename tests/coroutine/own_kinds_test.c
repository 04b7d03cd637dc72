/*
 * The interface for authors of kinds and operations: a frame made a coroutine of any body, bodies that
 * are declared before they are defined, here and in another file, and operations that forward to
 * another.
 */
#define _GNU_SOURCE
#include "own_kinds.h"
#include "testing.h"

#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/mutex.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/extend/wrapper.h"

#include <errno.h>

/* ---- Frames and bodies ---- */

static void a_frame_becomes_a_coroutine_of_a_body_of_another_file(void **state)
{
    (void)state;
    int failures = 0;
    struct failing self = {{.failures = &failures}, EIO};
    assert_int_equal(bide_sync_wait(bide_frame_init(&self.tallied.frame, &failing_body)), -EIO);
    self.error = 0;
    assert_int_equal(bide_sync_wait(bide_frame_init(&self.tallied.frame, &failing_body)), 0);
    assert_int_equal(failures, 1);
    assert_string_equal(failing_body.code->name, "failing_body");
}

static void a_frame_that_is_not_awaited_has_a_context_and_no_continuation(void **state)
{
    (void)state;
    int failures = 0;
    struct failing self = {{.failures = &failures}, EIO};
    const bide_context context = {.scheduler = &bide_inline_scheduler, .name = "alone"};
    bide_frame_init_in(&self.tallied.frame, &failing_body, &context);
    assert_ptr_equal(self.tallied.frame.context, &context);
    assert_null(self.tallied.frame.awaiter.frame);
    bide_resume(&self.tallied.frame);
    assert_true(bide_done(&self.tallied.frame));
    assert_int_equal(self.tallied.frame.error, -EIO);
    assert_int_equal(failures, 1);
}

/* Two that call each other: the second is declared before it is defined. */
bide_declare_body(own_kinds_odd_body);

struct parity {
    bide_task task;
    int n;
    bool is_odd;
    struct parity *less;
};

bide_coroutine(even_body)
{
    bide_begin(even_body, struct parity * self);
    if (self->n > 0) {
        self->less->n = self->n - 1;
        self->less->less = self->less + 1;
        bide_try(bide_task_init(&self->less->task, &own_kinds_odd_body));
        self->is_odd = self->less->is_odd;
    }
    bide_end();
}

bide_declared_coroutine(own_kinds_odd_body)
{
    bide_begin(own_kinds_odd_body, struct parity * self);
    self->is_odd = true;
    if (self->n > 0) {
        self->less->n = self->n - 1;
        self->less->less = self->less + 1;
        bide_try(bide_task_init(&self->less->task, &even_body));
        self->is_odd = self->less->is_odd;
    }
    bide_end();
}

static void bodies_that_call_each_other_are_declared(void **state)
{
    (void)state;
    for (int n = 0; n < 10; n++) {
        struct parity parities[12] = {{.n = n, .less = &parities[1]}};
        assert_int_equal(bide_sync_wait(bide_task_init(&parities[0].task, &even_body)), 0);
        assert_int_equal(parities[0].is_odd, n % 2 == 1);
    }
}

/* ---- A forwarding operation: counts the results ---- */

struct counted {
    bide_forward forward;
    int ended;
    int last;
};

static int counted_resume(bide_awaiter *awaiter)
{
    struct counted *self = (struct counted *)(void *)awaiter;
    self->last = bide_forward_take(&self->forward);
    self->ended++;
    return self->last == -EIO ? 0 : self->last;
}

BIDE_MUST_AWAIT
static bide_awaiter *counted(struct counted *self, bide_awaiter *inner)
{
    static const bide_wrapper_ops ops = BIDE_FORWARD_OPS(counted_resume, "counted");
    return bide_forward_init(&self->forward, &ops, inner);
}

struct user {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    struct counted counted, again;
    int status, cleaned;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_await_status(
        self->status,
        counted(&self->again, counted(&self->counted, bide_event_wait(&self->wait, self->event))));
    bide_return(self->status);
    bide_finally();
    self->cleaned++;
    bide_end();
}

static void forwarding_adds_to_what_the_inner_one_ends_with(void **state)
{
    (void)state;
    int failures = 0;
    struct failing failing = {{.failures = &failures}, EIO};
    struct counted operation = {.ended = 0};
    assert_int_equal(
        bide_sync_wait(counted(&operation, bide_frame_init(&failing.tallied.frame, &failing_body))),
        0);
    assert_int_equal(operation.last, -EIO);
    failing.error = EPERM;
    assert_int_equal(
        bide_sync_wait(counted(&operation, bide_frame_init(&failing.tallied.frame, &failing_body))),
        -EPERM);
    assert_int_equal(operation.ended, 2);
}

static void forwarding_suspends_and_wakes_as_the_inner_one_does(void **state)
{
    (void)state;
    for (int is_set = 0; is_set < 2; is_set++) {
        bide_event event;
        bide_spawned spawned;
        struct user user = {.event = &event};
        bide_event_init(&event, is_set);
        bide_spawn(&spawned, &bide_default_context, bide_task_init(&user.task, &user_body));
        assert_int_equal(user.cleaned, is_set);
        bide_event_set(&event);
        assert_true(bide_event_is_set(&spawned.ended));
        assert_int_equal(user.counted.ended, 1);
        assert_int_equal(user.again.ended, 1);
    }
}

static void forwarding_is_asked_to_stop_as_the_inner_one_is(void **state)
{
    (void)state;
    bide_event event;
    bide_spawned spawned;
    bide_stop_source stop;
    struct user user = {.event = &event};
    bide_context context = bide_default_context;
    bide_event_init(&event, false);
    bide_stop_source_init(&stop);
    context.stop = &stop;
    bide_spawn(&spawned, &context, bide_task_init(&user.task, &user_body));
    bide_stop_request(&stop);
    assert_int_equal(spawned.root.status, -ECANCELED);
    assert_int_equal(user.counted.last, -ECANCELED);
    assert_int_equal(user.again.last, -ECANCELED);
    bide_event_destroy(&event);
}

static void forwarding_is_destroyed_as_the_inner_one_is(void **state)
{
    (void)state;
    bide_event event;
    bide_spawned spawned;
    struct user user = {.event = &event};
    bide_event_init(&event, false);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&user.task, &user_body));
    bide_destroy(&spawned.root.frame);
    assert_int_equal(user.cleaned, 1);
    assert_int_equal(user.counted.ended, 0);
    bide_event_destroy(&event); /* nobody is enlisted */
}

/*
 * The inner operation holds the mutex when the awaiting coroutine is destroyed: the mutex is released.
 */
struct locker {
    bide_task task;
    bide_mutex *mutex;
    bide_mutex_waiter lock;
    struct counted counted;
};

bide_coroutine(locker_body)
{
    bide_begin(locker_body, struct locker * self);
    bide_try(counted(&self->counted, bide_mutex_lock(&self->lock, self->mutex)));
    bide_end();
}

static void forwarding_gives_back_what_the_inner_one_has_had(void **state)
{
    (void)state;
    bide_mutex mutex;
    bide_mutex_waiter lock;
    bide_run_loop loop;
    bide_spawned spawned;
    struct locker locker = {.mutex = &mutex};
    bide_mutex_init(&mutex);
    bide_run_loop_init(&loop);
    assert_true(bide_mutex_try_lock(&lock, &mutex));
    bide_spawn(&spawned, &loop.context, bide_task_init(&locker.task, &locker_body));
    bide_run_loop_run_ready(&loop);
    bide_mutex_unlock(&lock); /* handed to the posted one, and not resumed */
    bide_destroy(&spawned.root.frame);
    assert_int_equal(locker.counted.ended, 0);
    assert_true(bide_mutex_try_lock(&lock, &mutex));
    bide_mutex_unlock(&lock);
    bide_run_loop_destroy(&loop);
    bide_mutex_destroy(&mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_becomes_a_coroutine_of_a_body_of_another_file),
        cmocka_unit_test(a_frame_that_is_not_awaited_has_a_context_and_no_continuation),
        cmocka_unit_test(bodies_that_call_each_other_are_declared),
        cmocka_unit_test(forwarding_adds_to_what_the_inner_one_ends_with),
        cmocka_unit_test(forwarding_suspends_and_wakes_as_the_inner_one_does),
        cmocka_unit_test(forwarding_is_asked_to_stop_as_the_inner_one_is),
        cmocka_unit_test(forwarding_is_destroyed_as_the_inner_one_is),
        cmocka_unit_test(forwarding_gives_back_what_the_inner_one_has_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
