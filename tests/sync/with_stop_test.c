/* An operation under a stop source of the caller's choice. */
#include "sync/by_hand.h"

#include "bide/event.h"
#include "bide/handle.h"
#include "bide/with_stop.h"

struct waiter {
    bide_task task;
    bide_event *event;
    bide_stop_source *token;
    bide_event_waiter wait;
    bide_with_stop_operation limited;
    bide_context context;
    bide_stop_source own;
    int status;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_await_status(self->status, bide_with_stop(&self->limited, self->token,
                                                   bide_event_wait(&self->wait, self->event)));
    bide_end();
}

struct fixture {
    by_hand by_hand;
    bide_event event;
    bide_stop_source token;
    struct waiter waiter;
};

static void begin(struct fixture *self, bool with_token)
{
    struct waiter *waiter = &self->waiter;
    by_hand_init(&self->by_hand);
    bide_event_init(&self->event, false);
    bide_stop_source_init(&self->token);
    bide_stop_source_init(&waiter->own);
    waiter->event = &self->event;
    waiter->token = with_token ? &self->token : NULL;
    waiter->status = 1;
    waiter->context = self->by_hand.context;
    waiter->context.stop = &waiter->own;
    bide_start(&waiter->task.frame, &waiter_body, &waiter->context);
    bide_resume(&waiter->task.frame);
}

static void it_ends_with_its_own_status(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, true);
    bide_event_set(&f.event);
    by_hand_run(&f.by_hand);
    assert_int_equal(f.waiter.status, 0);
    assert_null(f.token.first_child);
}

static void a_request_on_the_token_cuts_it_short(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, true);
    bide_stop_request_with(&f.token, -ETIMEDOUT);
    by_hand_run(&f.by_hand);
    assert_int_equal(f.waiter.status, -ETIMEDOUT);
    assert_null(f.token.first_child);
    assert_false(bide_stop_requested(&f.waiter.own));
}

static void a_token_that_was_asked_already_cuts_it_short_at_once(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, false);
    bide_stop_request(&f.token);
    f.waiter.token = &f.token;
    struct waiter second = f.waiter;
    bide_start(&second.task.frame, &waiter_body, &f.by_hand.context);
    bide_resume(&second.task.frame);
    assert_int_equal(second.status, -ECANCELED);
    bide_destroy(&f.waiter.task.frame);
}

static void a_request_on_the_context_does_not_reach_it(void **state)
{
    (void)state;
    struct fixture f;
    for (int with_token = 0; with_token < 2; with_token++) {
        begin(&f, with_token);
        bide_stop_request(&f.waiter.own);
        assert_int_equal(by_hand_run(&f.by_hand), 0);
        bide_event_set(&f.event);
        by_hand_run(&f.by_hand);
        assert_int_equal(f.waiter.status, 0);
    }
}

static void destroying_a_waiter_leaves_nothing(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, true);
    bide_destroy(&f.waiter.task.frame);
    assert_null(f.token.first_child);
    bide_event_set(&f.event);
    assert_int_equal(by_hand_run(&f.by_hand), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_with_its_own_status),
        cmocka_unit_test(a_request_on_the_token_cuts_it_short),
        cmocka_unit_test(a_token_that_was_asked_already_cuts_it_short_at_once),
        cmocka_unit_test(a_request_on_the_context_does_not_reach_it),
        cmocka_unit_test(destroying_a_waiter_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
