/*
 * Stop callbacks: the scheduler calls the function once if a stop of the source is requested before the
 * callback is removed; a remove that came too late is followed by a wait.
 */
#include "sync/by_hand.h"

#include "bide/handle.h"
#include "bide/stop_callback.h"
#include "bide/sync_wait.h"

struct counter {
    bide_stop_callback callback;
    int calls;
    bool removed;
};

static void note_call(void *p)
{
    ((struct counter *)p)->calls++;
}

static void note_call_and_remove(void *p)
{
    struct counter *self = p;
    self->calls++;
    self->removed = bide_stop_callback_remove(&self->callback);
}

/* Waits until a callback has run. */
struct waiter {
    bide_task task;
    bide_stop_callback *callback;
    bide_stop_callback_waiter wait;
    int status;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_await_status(self->status, bide_stop_callback_wait(&self->wait, self->callback));
    bide_end();
}

static void waiter_begin(struct waiter *self, by_hand *scheduler, bide_stop_callback *callback)
{
    self->callback = callback;
    self->status = 1;
    bide_await_later(bide_task_init(&self->task, &waiter_body));
    by_hand_begin(scheduler, &self->task);
}

static void a_request_has_the_function_called_by_the_scheduler_once(void **state)
{
    (void)state;
    by_hand scheduler;
    by_hand_init(&scheduler);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    struct counter counter = {.calls = 0};
    bide_stop_callback_init(&counter.callback, &stop, &scheduler.context, note_call, &counter);
    assert_int_equal(scheduler.posted, 0);

    bide_stop_request(&stop);
    assert_int_equal(scheduler.posted, 1);
    assert_int_equal(counter.calls, 0);
    assert_int_equal(by_hand_run(&scheduler), 1);
    assert_int_equal(counter.calls, 1);

    bide_stop_request(&stop);
    assert_int_equal(scheduler.posted, 1);
    assert_false(bide_stop_callback_remove(&counter.callback));
    assert_null(stop.first_child);
}

static void of_a_source_that_was_asked_it_is_posted_at_once(void **state)
{
    (void)state;
    by_hand scheduler;
    by_hand_init(&scheduler);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    bide_stop_request(&stop);
    struct counter counter = {.calls = 0};
    bide_stop_callback_init(&counter.callback, &stop, &scheduler.context, note_call, &counter);
    assert_int_equal(counter.calls, 0);
    assert_int_equal(by_hand_run(&scheduler), 1);
    assert_int_equal(counter.calls, 1);
    assert_false(bide_stop_callback_remove(&counter.callback));
    assert_null(stop.first_child);
}

static void a_request_far_above_reaches_it(void **state)
{
    (void)state;
    by_hand scheduler;
    by_hand_init(&scheduler);
    bide_stop_source above, stop;
    bide_stop_source_init(&above);
    bide_stop_source_init(&stop);
    bide_stop_source_attach(&stop, &above);
    struct counter counter = {.calls = 0};
    bide_stop_callback_init(&counter.callback, &stop, &scheduler.context, note_call, &counter);
    bide_stop_request(&above);
    by_hand_run(&scheduler);
    assert_int_equal(counter.calls, 1);
    assert_false(bide_stop_callback_remove(&counter.callback));
    bide_stop_source_detach(&stop);
}

static void what_was_removed_in_time_is_not_called(void **state)
{
    (void)state;
    by_hand scheduler;
    by_hand_init(&scheduler);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    struct counter counters[3] = {{.calls = 0}};
    for (int i = 0; i < 3; i++)
        bide_stop_callback_init(&counters[i].callback, &stop, &scheduler.context, note_call,
                                &counters[i]);
    assert_true(bide_stop_callback_remove(&counters[1].callback));
    memset(&counters[1].callback, 0xff, sizeof counters[1].callback);
    bide_stop_request(&stop);
    assert_int_equal(by_hand_run(&scheduler), 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(counters[i].calls, i != 1);
    assert_false(bide_stop_callback_remove(&counters[0].callback));
    assert_false(bide_stop_callback_remove(&counters[2].callback));
    assert_null(stop.first_child);
}

static void remove_says_the_same_again(void **state)
{
    (void)state;
    by_hand scheduler;
    by_hand_init(&scheduler);
    for (int asked = 0; asked < 2; asked++) {
        bide_stop_source stop;
        bide_stop_source_init(&stop);
        struct counter counter = {.calls = 0};
        bide_stop_callback_init(&counter.callback, &stop, &scheduler.context, note_call, &counter);
        if (asked)
            bide_stop_request(&stop);
        assert_int_equal(bide_stop_callback_remove(&counter.callback), !asked);
        bide_stop_request(&stop);
        assert_int_equal(bide_stop_callback_remove(&counter.callback), !asked);
        by_hand_run(&scheduler);
        assert_int_equal(bide_stop_callback_remove(&counter.callback), !asked);
        assert_int_equal(counter.calls, asked);
    }
}

static void without_a_source_it_is_never_called(void **state)
{
    (void)state;
    struct counter counter = {.calls = 0};
    bide_stop_callback_init(&counter.callback, NULL, &bide_default_context, note_call, &counter);
    assert_true(bide_stop_callback_remove(&counter.callback));
    assert_int_equal(counter.calls, 0);
}

static void a_remove_that_is_too_late_waits_until_the_function_has_run(void **state)
{
    (void)state;
    by_hand scheduler, waiters;
    by_hand_init(&scheduler);
    by_hand_init(&waiters);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    struct counter counter = {.calls = 0};
    bide_stop_callback_init(&counter.callback, &stop, &scheduler.context, note_call, &counter);
    bide_stop_request(&stop);
    assert_false(bide_stop_callback_remove(&counter.callback));

    struct waiter waiter, late;
    waiter_begin(&waiter, &waiters, &counter.callback);
    assert_int_equal(waiters.posted, 0);
    assert_int_equal(by_hand_run(&scheduler), 1);
    assert_int_equal(counter.calls, 1);
    assert_int_equal(waiters.posted, 1);
    assert_int_equal(waiter.status, 1);
    by_hand_run(&waiters);
    assert_int_equal(waiter.status, 0);
    waiter_begin(&late, &waiters, &counter.callback);
    assert_int_equal(late.status, 0);
    assert_int_equal(waiters.posted, 1);
}

static void the_function_may_remove_its_callback(void **state)
{
    (void)state;
    by_hand scheduler;
    by_hand_init(&scheduler);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    struct counter counter = {.removed = true};
    bide_stop_callback_init(&counter.callback, &stop, &scheduler.context, note_call_and_remove,
                            &counter);
    bide_stop_request(&stop);
    struct waiter waiter;
    waiter_begin(&waiter, &scheduler, &counter.callback);
    by_hand_run(&scheduler);
    assert_int_equal(counter.calls, 1);
    assert_false(counter.removed);
    assert_int_equal(waiter.status, 0);
    assert_null(stop.first_child);
}

static void a_waiting_remove_can_be_destroyed(void **state)
{
    (void)state;
    by_hand scheduler;
    by_hand_init(&scheduler);
    for (int ran = 0; ran < 2; ran++) { /* before it has run, and when the waiter has been posted */
        bide_stop_source stop;
        bide_stop_source_init(&stop);
        struct counter counter = {.calls = 0};
        bide_stop_callback_init(&counter.callback, &stop, &scheduler.context, note_call, &counter);
        bide_stop_request(&stop);
        assert_false(bide_stop_callback_remove(&counter.callback));
        struct waiter waiter, next;
        waiter_begin(&waiter, &scheduler, &counter.callback);
        if (ran)
            bide_resume(bide_awaiter_chain_take(&scheduler.queue)->frame);
        assert_int_equal(counter.calls, ran);
        bide_destroy(&waiter.task.frame);
        assert_true(bide_done(&waiter.task.frame));
        memset(&waiter, 0xff, sizeof waiter);
        waiter_begin(&next, &scheduler, &counter.callback);
        by_hand_run(&scheduler);
        assert_int_equal(counter.calls, 1);
        assert_int_equal(next.status, 0);
    }
}

/* ---- The inline scheduler ---- */

static void inline_it_has_run_when_the_request_returns(void **state)
{
    (void)state;
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    struct counter counter = {.calls = 0};
    bide_stop_callback_init(&counter.callback, &stop, &bide_default_context, note_call, &counter);
    bide_stop_request(&stop);
    assert_int_equal(counter.calls, 1);
    assert_false(bide_stop_callback_remove(&counter.callback));
    bide_stop_callback_waiter wait;
    assert_int_equal(bide_sync_wait(bide_stop_callback_wait(&wait, &counter.callback)), 0);
}

/* Requests a stop of its source, and then waits for the callback. */
struct asker {
    bide_task task;
    struct counter *counter;
    bide_stop_source *stop;
    bide_stop_callback_waiter wait;
    int calls_after_request, calls_after_wait;
};

bide_coroutine(asker_body)
{
    bide_begin(asker_body, struct asker * self);
    bide_stop_request(self->stop);
    self->calls_after_request = self->counter->calls;
    if (!bide_stop_callback_remove(&self->counter->callback))
        bide_await(bide_stop_callback_wait(&self->wait, &self->counter->callback));
    self->calls_after_wait = self->counter->calls;
    bide_end();
}

static void inside_a_coroutine_it_runs_when_that_has_suspended(void **state)
{
    (void)state;
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    struct counter counter = {.calls = 0};
    bide_stop_callback_init(&counter.callback, &stop, &bide_default_context, note_call, &counter);
    struct asker asker = {.counter = &counter, .stop = &stop};
    assert_int_equal(bide_sync_wait(bide_task_init(&asker.task, &asker_body)), 0);
    assert_int_equal(asker.calls_after_request, 0);
    assert_int_equal(asker.calls_after_wait, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_the_function_called_by_the_scheduler_once),
        cmocka_unit_test(of_a_source_that_was_asked_it_is_posted_at_once),
        cmocka_unit_test(a_request_far_above_reaches_it),
        cmocka_unit_test(what_was_removed_in_time_is_not_called),
        cmocka_unit_test(remove_says_the_same_again),
        cmocka_unit_test(without_a_source_it_is_never_called),
        cmocka_unit_test(a_remove_that_is_too_late_waits_until_the_function_has_run),
        cmocka_unit_test(the_function_may_remove_its_callback),
        cmocka_unit_test(a_waiting_remove_can_be_destroyed),
        cmocka_unit_test(inline_it_has_run_when_the_request_returns),
        cmocka_unit_test(inside_a_coroutine_it_runs_when_that_has_suspended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
