/*
 * Waiting for several operations at once: the order of their ends, the fate of the others, and of all of them if
 * the waiting coroutine is cancelled or destroyed.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/event.h"
#include "bide/handle.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/when.h"

#include <errno.h>

/* Waits for an event, then ends with the given error. */
struct part {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    int status;
    int waited; /* the status of the wait; 1: none yet */
    bool finally;
};

bide_coroutine(part_body)
{
    bide_begin(part_body, struct part * self);
    self->waited = 1;
    if (self->event != NULL) {
        bide_await_status(self->waited, bide_event_wait(&self->wait, self->event));
        if (self->waited < 0)
            bide_return(self->waited);
    }
    bide_return(self->status);
    bide_finally();
    self->finally = true;
    bide_end();
}

enum { PARTS = 4 };

struct whole {
    bide_task task;
    struct part parts[PARTS];
    bide_event events[PARTS];
    bide_branch branches[PARTS];
    bide_when when;
    bide_awaiter *(*which)(bide_when *when, bide_branch *branches, size_t count);
    size_t count;
    int status;
    bool ended;
};

bide_coroutine(whole_body)
{
    bide_begin(whole_body, struct whole * self);
    bide_await_status(self->status, self->which(&self->when, self->branches, self->count));
    self->ended = true;
    bide_end();
}

static bide_awaiter *whole(struct whole *self,
                           bide_awaiter *(*which)(bide_when *, bide_branch *, size_t), size_t count)
{
    *self = (struct whole){.which = which, .count = count};
    for (size_t i = 0; i < PARTS; i++) {
        bide_event_init(&self->events[i], false);
        self->parts[i].event = &self->events[i];
        bide_branch_init(&self->branches[i], bide_task_init(&self->parts[i].task, &part_body));
    }
    return bide_task_init(&self->task, &whole_body);
}

static void begin(struct whole *self, bide_awaiter *(*which)(bide_when *, bide_branch *, size_t),
                  size_t count, const bide_context *context)
{
    whole(self, which, count);
    bide_start(&self->task.frame, &whole_body, context);
    bide_resume(&self->task.frame);
}

static void all_of_them_are_begun_and_waited_for(void **state)
{
    (void)state;
    struct whole self;
    begin(&self, bide_when_all, 3, &bide_default_context);
    for (int i = 0; i < 3; i++)
        assert_int_equal(self.parts[i].waited, 1);
    assert_int_equal(self.parts[3].waited, 0); /* not one of them */
    bide_event_set(&self.events[1]);
    bide_event_set(&self.events[0]);
    assert_false(self.ended);
    assert_true(self.parts[0].finally && self.parts[1].finally && !self.parts[2].finally);
    bide_event_set(&self.events[2]);
    assert_true(self.ended);
    assert_int_equal(self.status, 0);
    assert_int_equal(bide_when_winner(&self.when), 3);
}

static void what_is_ready_at_once_ends_at_once(void **state)
{
    (void)state;
    bide_awaiter *(*const each[])(bide_when *, bide_branch *,
                                  size_t) = {bide_when_all, bide_when_all_ready, bide_when_any};
    for (size_t i = 0; i < 3; i++) {
        struct whole self;
        bide_awaiter *awaiter = whole(&self, each[i], PARTS);
        for (size_t j = 0; j < PARTS; j++)
            self.parts[j].event = NULL;
        assert_int_equal(bide_sync_wait(awaiter), 0);
        assert_true(self.ended);
        assert_int_equal(self.status, 0);
    }
}

static void none_of_them_end_at_once(void **state)
{
    (void)state;
    struct whole self;
    assert_int_equal(bide_sync_wait(whole(&self, bide_when_all, 0)), 0);
    assert_int_equal(self.status, 0);
    assert_int_equal(bide_sync_wait(whole(&self, bide_when_all_ready, 0)), 0);
    assert_int_equal(self.status, 0);
    assert_int_equal(bide_sync_wait(whole(&self, bide_when_any, 0)), 0);
    assert_int_equal(self.status, -EINVAL);
}

static void an_error_stops_the_others_and_is_the_result_of_all(void **state)
{
    (void)state;
    struct whole self;
    begin(&self, bide_when_all, PARTS, &bide_default_context);
    self.parts[2].status = -EDOM;
    bide_event_set(&self.events[0]);
    assert_false(self.ended);
    bide_event_set(&self.events[2]);
    assert_true(self.ended);
    assert_int_equal(self.status, -EDOM);
    assert_int_equal(bide_when_winner(&self.when), 2);
    assert_int_equal(self.branches[0].status, 0);
    assert_int_equal(self.branches[1].status, -ECANCELED);
    assert_int_equal(self.branches[2].status, -EDOM);
    assert_int_equal(self.branches[3].status, -ECANCELED);
    for (int i = 0; i < PARTS; i++) {
        assert_true(self.parts[i].finally);
        bide_event_set(&self.events[i]); /* nobody is left there */
    }
}

static void all_ready_stops_no_branch(void **state)
{
    (void)state;
    struct whole self;
    begin(&self, bide_when_all_ready, 2, &bide_default_context);
    self.parts[0].status = -EDOM;
    bide_event_set(&self.events[0]);
    assert_false(self.ended);
    bide_event_set(&self.events[1]);
    assert_true(self.ended);
    assert_int_equal(self.status, 0);
    assert_int_equal(self.branches[0].status, -EDOM);
    assert_int_equal(self.branches[1].status, 0);
}

static void any_ends_with_the_first_and_when_the_others_have_ended(void **state)
{
    (void)state;
    for (int error = 0; error >= -EDOM; error -= EDOM) {
        struct whole self;
        begin(&self, bide_when_any, PARTS, &bide_default_context);
        self.parts[1].status = error;
        bide_event_set(&self.events[1]);
        assert_true(self.ended);
        assert_int_equal(self.status, error);
        assert_int_equal(bide_when_winner(&self.when), 1);
        for (int i = 0; i < PARTS; i++) {
            assert_int_equal(self.branches[i].status, i == 1 ? error : -ECANCELED);
            assert_true(self.parts[i].finally);
        }
    }
}

static void a_request_to_the_parent_reaches_all_branches(void **state)
{
    (void)state;
    bide_awaiter *(*const each[])(bide_when *, bide_branch *,
                                  size_t) = {bide_when_all, bide_when_all_ready, bide_when_any};
    const int expected[] = {-ECANCELED, 0, -ECANCELED};
    for (size_t i = 0; i < 3; i++) {
        bide_stop_source stop;
        bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
        struct whole self;
        bide_stop_source_init(&stop);
        begin(&self, each[i], PARTS, &context);
        assert_false(self.ended);
        bide_stop_request(&stop);
        assert_true(self.ended);
        assert_int_equal(self.status, expected[i]);
        for (int j = 0; j < PARTS; j++)
            assert_int_equal(self.branches[j].status, -ECANCELED);
    }
}

static void after_an_earlier_request_branches_end_at_their_first_wait(void **state)
{
    (void)state;
    bide_stop_source stop;
    bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
    struct whole self;
    bide_stop_source_init(&stop);
    bide_stop_request(&stop);
    begin(&self, bide_when_all, 2, &context);
    assert_true(self.ended);
    assert_int_equal(self.status, -ECANCELED);
    assert_int_equal(self.parts[0].waited, -ECANCELED);
    assert_int_equal(self.parts[1].waited, -ECANCELED);
}

static void destroyed_all_of_them_are_destroyed(void **state)
{
    (void)state;
    bide_stop_source stop;
    bide_context stoppable = {.scheduler = &bide_inline_scheduler, .stop = &stop};
    const bide_context *contexts[] = {&bide_default_context, &stoppable};
    bide_awaiter *(*const each[])(bide_when *, bide_branch *,
                                  size_t) = {bide_when_all, bide_when_all_ready, bide_when_any};
    for (int i = 0; i < 6; i++) {
        struct whole self;
        bide_stop_source_init(&stop);
        begin(&self, each[i / 2], PARTS, contexts[i % 2]);
        if (i / 2 != 2)
            bide_event_set(&self.events[0]); /* one has ended already */
        bide_destroy(&self.task.frame);
        assert_true(bide_done(&self.task.frame));
        assert_false(self.ended);
        for (int j = 0; j < PARTS; j++) {
            assert_true(self.parts[j].finally);
            bide_event_set(&self.events[j]); /* nobody is left there */
        }
        bide_stop_request(&stop); /* nor here */
    }
}

/* A tree of them. */
struct tree {
    bide_task task;
    bide_when when;
    bide_branch branches[2];
    struct tree *children;
    int *ended;
};

bide_coroutine(tree_body)
{
    bide_begin(tree_body, struct tree * self);
    if (self->children != NULL) {
        for (int i = 0; i < 2; i++)
            bide_branch_init(&self->branches[i],
                             bide_task_init(&self->children[i].task, &tree_body));
        bide_try(bide_when_all(&self->when, self->branches, 2));
    }
    ++*self->ended;
    bide_end();
}

static void they_nest(void **state)
{
    enum { INNER = 63, ALL = 2 * INNER + 1 };
    static struct tree nodes[ALL];
    int ended = 0;
    (void)state;
    for (int i = 0; i < ALL; i++)
        nodes[i] = (struct tree){.children = i < INNER ? &nodes[2 * i + 1] : NULL, .ended = &ended};
    assert_int_equal(bide_sync_wait(bide_task_init(&nodes[0].task, &tree_body)), 0);
    assert_int_equal(ended, ALL);
}

/* With the branches in one member with the wait. */
struct few {
    bide_task task;
    struct part parts[3];
    bide_when_of(3) few;
    int status[3];
};

bide_coroutine(few_body)
{
    bide_begin(few_body, struct few * self);
    bide_await_status(self->status[0],
                      bide_when_all_of(&self->few,
                                       bide_call(&self->parts[0], &part_body, status = 0),
                                       bide_call(&self->parts[1], &part_body, status = -EIO),
                                       bide_call(&self->parts[2], &part_body, event = NULL)));
    bide_await_status(self->status[1],
                      bide_when_all_ready_of(
                          &self->few, bide_call(&self->parts[0], &part_body, status = -EPERM)));
    bide_await_status(self->status[2],
                      bide_when_any_of(&self->few,
                                       bide_call(&self->parts[1], &part_body, status = 5),
                                       bide_call(&self->parts[2], &part_body)));
    bide_end();
}

static void a_few_are_given_where_they_are_waited_for(void **state)
{
    (void)state;
    struct few self = {.status = {1, 1, 1}};
    assert_int_equal(bide_sync_wait(bide_task_init(&self.task, &few_body)), 0);
    assert_int_equal(self.status[0], -EIO);
    assert_int_equal(self.status[1], 0);
    assert_int_equal(self.status[2], 5);
    assert_int_equal(bide_when_winner(&self.few.when), 0);
    assert_int_equal(self.few.branches[0].status, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_them_are_begun_and_waited_for),
        cmocka_unit_test(what_is_ready_at_once_ends_at_once),
        cmocka_unit_test(none_of_them_end_at_once),
        cmocka_unit_test(an_error_stops_the_others_and_is_the_result_of_all),
        cmocka_unit_test(all_ready_stops_no_branch),
        cmocka_unit_test(any_ends_with_the_first_and_when_the_others_have_ended),
        cmocka_unit_test(a_request_to_the_parent_reaches_all_branches),
        cmocka_unit_test(after_an_earlier_request_branches_end_at_their_first_wait),
        cmocka_unit_test(destroyed_all_of_them_are_destroyed),
        cmocka_unit_test(they_nest),
        cmocka_unit_test(a_few_are_given_where_they_are_waited_for),
    };
    return cmocka_run_group_tests_name("when", tests, NULL, NULL);
}
