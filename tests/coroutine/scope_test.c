/*
 * Scopes: every branch that was started in one has ended when it has been joined, whatever happens in
 * between.
 */
#define _GNU_SOURCE
#include "misuse.h"

#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/scope.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/when.h"
#include "bide/with_stop.h"

#include <errno.h>

struct part {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    int status;
    bool finally;
};

bide_coroutine(part_body)
{
    bide_begin(part_body, struct part * self);
    bide_try(bide_event_wait(&self->wait, self->event));
    bide_return(self->status);
    bide_finally();
    self->finally = true;
    bide_end();
}

static bide_awaiter *part(struct part *self, bide_event *event, int status)
{
    *self = (struct part){.event = event, .status = status};
    return bide_task_init(&self->task, &part_body);
}

enum { PARTS = 3 };

struct owner {
    bide_task task;
    bide_scope scope;
    bide_branch branches[PARTS];
    struct part parts[PARTS];
    bide_event events[PARTS];
    bide_event go;
    bide_event_waiter wait;
    int i;
    int status;
    int statuses[PARTS]; /* to end with */
    bool cancel;
    bool joining, joined;
};

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    bide_scope_init(&self->scope, bide_this_frame());
    for (self->i = 0; self->i < PARTS; self->i++)
        bide_scope_spawn(
            &self->scope, &self->branches[self->i],
            part(&self->parts[self->i], &self->events[self->i], self->statuses[self->i]));
    bide_await(bide_event_wait(&self->wait, &self->go));
    if (self->cancel)
        bide_scope_stop(&self->scope);
    self->joining = true;
    bide_await_status(self->status, bide_scope_join(&self->scope));
    self->joined = true;
    bide_return(self->status);
    bide_end();
}

static void begin(struct owner *self, const bide_context *context)
{
    bide_event_init(&self->go, false);
    for (int i = 0; i < PARTS; i++)
        bide_event_init(&self->events[i], false);
    bide_start(&self->task.frame, &owner_body, context);
    bide_resume(&self->task.frame);
}

static void join_waits_for_all_that_was_begun(void **state)
{
    (void)state;
    struct owner self = {.status = 1};
    begin(&self, &bide_default_context);
    bide_event_set(&self.events[0]);
    bide_event_set(&self.go);
    assert_true(self.joining && !self.joined);
    bide_event_set(&self.events[2]);
    assert_false(self.joined);
    bide_event_set(&self.events[1]);
    assert_true(self.joined);
    assert_int_equal(self.status, 0);
}

static void join_does_not_wait_if_all_have_ended(void **state)
{
    (void)state;
    struct owner self = {.status = 1};
    begin(&self, &bide_default_context);
    for (int i = 0; i < PARTS; i++)
        bide_event_set(&self.events[i]);
    assert_false(self.joining);
    bide_event_set(&self.go);
    assert_true(self.joined);
    assert_int_equal(self.status, 0);
}

static void an_error_stops_the_others_and_is_what_join_ends_with(void **state)
{
    (void)state;
    struct owner self = {.statuses = {0, -EDOM, 0}};
    begin(&self, &bide_default_context);
    bide_event_set(&self.events[1]);
    for (int i = 0; i < PARTS; i++) {
        assert_true(self.parts[i].finally);
        assert_int_equal(self.branches[i].status, i == 1 ? -EDOM : -ECANCELED);
    }
    assert_false(bide_done(&self.task.frame)); /* the owner itself continues */
    bide_event_set(&self.go);
    assert_int_equal(self.status, -EDOM);
    assert_int_equal(bide_task_error(&self.task), -EDOM);
}

static void cancelled_all_of_them_end(void **state)
{
    (void)state;
    struct owner self = {.cancel = true};
    begin(&self, &bide_default_context);
    bide_event_set(&self.go);
    assert_true(self.joined);
    assert_int_equal(self.status, -ECANCELED);
    for (int i = 0; i < PARTS; i++)
        assert_int_equal(self.branches[i].status, -ECANCELED);
}

static void what_asks_the_owner_asks_all_of_them(void **state)
{
    (void)state;
    bide_stop_source stop;
    bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
    for (int joining = 0; joining < 2; joining++) {
        struct owner self = {.status = 1};
        bide_stop_source_init(&stop);
        begin(&self, &context);
        if (joining)
            bide_event_set(&self.go);
        bide_stop_request(&stop);
        assert_true(self.joined);
        assert_int_equal(self.status, -ECANCELED);
        for (int i = 0; i < PARTS; i++)
            assert_int_equal(self.branches[i].status, -ECANCELED);
    }
}

/* ---- A join in another source than the one that the scope was opened in ---- */

typedef enum { BY_TOKEN, BY_TOKEN_AT_ONCE, BY_DEADLINE, BY_ANY, IN_SHELTER, WAYS } join_way;

struct joiner {
    bide_task task;
    join_way way;
    bide_scope scope;
    bide_branch branches[PARTS];
    struct part parts[PARTS];
    bide_event events[PARTS];
    bide_stop_source token;
    bide_with_stop_operation under;
    bide_with_deadline_operation limited;
    bide_branch raced[2];
    bide_when any;
    bide_event over;
    bide_event_waiter wait;
    int i;
    int status;
    bool joined;
};

static bide_awaiter *join_in(struct joiner *self)
{
    bide_awaiter *join = bide_scope_join(&self->scope);
    switch (self->way) {
    case BY_TOKEN:
    case BY_TOKEN_AT_ONCE:
        return bide_with_stop(&self->under, &self->token, join);
    case BY_DEADLINE:
        return bide_with_deadline(&self->limited, 1, join); /* long past */
    case BY_ANY:
        bide_branch_init(&self->raced[0], bide_event_wait(&self->wait, &self->over));
        bide_branch_init(&self->raced[1], join);
        return bide_when_any(&self->any, self->raced, 2);
    default:
        return bide_with_stop(&self->under, NULL, join);
    }
}

bide_coroutine(joiner_body)
{
    bide_begin(joiner_body, struct joiner * self);
    bide_scope_init(&self->scope, bide_this_frame());
    for (self->i = 0; self->i < PARTS; self->i++)
        bide_scope_spawn(&self->scope, &self->branches[self->i],
                         part(&self->parts[self->i], &self->events[self->i], 0));
    bide_await_status(self->status, join_in(self));
    self->joined = true;
    bide_end();
}

static void joiner_init(struct joiner *self, join_way way)
{
    *self = (struct joiner){.way = way, .status = 1};
    bide_stop_source_init(&self->token);
    bide_event_init(&self->over, false);
    for (int i = 0; i < PARTS; i++)
        bide_event_init(&self->events[i], false);
    if (way == BY_TOKEN_AT_ONCE)
        bide_stop_request(&self->token);
}

static void joiner_begin(struct joiner *self, join_way way, const bide_context *context)
{
    joiner_init(self, way);
    bide_start(&self->task.frame, &joiner_body, context);
    bide_resume(&self->task.frame);
}

static void assert_all_stopped(struct joiner *self, int reason)
{
    for (int i = 0; i < PARTS; i++) {
        assert_true(self->parts[i].finally);
        assert_int_equal(self->branches[i].status, reason);
    }
}

/* The context of the owner has a source, or none. */
static void what_asks_the_join_asks_all_of_them(void **state)
{
    (void)state;
    for (int way = 0; way < BY_DEADLINE; way++) {
        for (int has_source = 0; has_source < 2; has_source++) {
            struct joiner self;
            bide_stop_source stop;
            bide_context context = bide_default_context;
            bide_stop_source_init(&stop);
            context.stop = has_source ? &stop : NULL;
            joiner_begin(&self, (join_way)way, &context);
            if (way == BY_TOKEN) {
                assert_false(self.joined);
                bide_stop_request_with(&self.token, -ETIMEDOUT);
            }
            assert_true(self.joined);
            assert_int_equal(self.status, way == BY_TOKEN ? -ETIMEDOUT : -ECANCELED);
            assert_all_stopped(&self, self.status);
            assert_null(self.token.first_child);
            assert_null(stop.first_child);
        }
    }
}

static void a_deadline_around_the_join_asks_all_of_them(void **state)
{
    (void)state;
    struct joiner self;
    joiner_init(&self, BY_DEADLINE);
    assert_int_equal(bide_sync_wait(bide_task_init(&self.task, &joiner_body)), 0);
    assert_int_equal(self.status, -ETIMEDOUT);
    assert_all_stopped(&self, -ETIMEDOUT);
}

static void a_join_that_loses_asks_all_of_them(void **state)
{
    (void)state;
    struct joiner self;
    joiner_begin(&self, BY_ANY, &bide_default_context);
    assert_false(self.joined);
    bide_event_set(&self.over);
    assert_true(self.joined);
    assert_int_equal(self.status, 0);
    assert_int_equal(self.raced[1].status, -ECANCELED);
    assert_all_stopped(&self, -ECANCELED);
}

static void not_asked_the_join_ends_with_the_last(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        struct joiner self;
        if (way == BY_TOKEN_AT_ONCE || way == BY_DEADLINE)
            continue;
        joiner_begin(&self, (join_way)way, &bide_default_context);
        for (int i = 0; i < PARTS; i++) {
            assert_false(self.joined);
            bide_event_set(&self.events[i]);
        }
        assert_true(self.joined);
        assert_int_equal(self.status, 0);
        assert_null(self.token.first_child);
        assert_int_equal(bide_atomic_load(&self.token.word, relaxed), 0);
    }
}

/* The scope keeps the source of its owner, whatever its join waits in. */
static void what_asks_the_owner_asks_all_of_them_in_a_shelter_too(void **state)
{
    (void)state;
    struct joiner self;
    bide_stop_source stop;
    bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
    bide_stop_source_init(&stop);
    joiner_begin(&self, IN_SHELTER, &context);
    assert_false(self.joined);
    bide_stop_request(&stop);
    assert_true(self.joined);
    assert_int_equal(self.status, -ECANCELED);
}

static void destroyed_in_another_source_all_of_them_are_destroyed(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        struct joiner self;
        bide_stop_source stop;
        bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
        if (way == BY_TOKEN_AT_ONCE || way == BY_DEADLINE)
            continue;
        bide_stop_source_init(&stop);
        joiner_begin(&self, (join_way)way, &context);
        bide_destroy(&self.task.frame);
        assert_false(self.joined);
        assert_all_stopped(&self, -ECANCELED);
        assert_null(self.token.first_child);
        assert_null(stop.first_child);
        assert_int_equal(bide_atomic_load(&stop.word, relaxed), 0);
        for (int i = 0; i < PARTS; i++)
            bide_event_set(&self.events[i]);
    }
}

static void destroyed_while_it_joins_all_of_them_are_destroyed(void **state)
{
    (void)state;
    struct owner self = {.status = 1};
    begin(&self, &bide_default_context);
    bide_event_set(&self.go);
    bide_event_set(&self.events[0]);
    bide_destroy(&self.task.frame);
    assert_true(bide_done(&self.task.frame));
    assert_false(self.joined);
    for (int i = 0; i < PARTS; i++) {
        assert_true(self.parts[i].finally);
        bide_event_set(&self.events[i]);
    }
}

/* ---- Options ---- */

enum { MANY = 6 };

/* Begins parts as it is told to, takes them by next, and joins. */
struct manager {
    bide_task task;
    bide_scope_options options;
    bide_scope scope;
    bide_branch branches[MANY];
    struct part parts[MANY];
    bide_event events[MANY];
    int statuses[MANY];
    int count, i;
    bool takes;
    bide_scope_next_operation next;
    bide_branch *ended;
    bide_branch *order[MANY];
    int taken;
    int next_status, status;
    bool joined;
    bide_event go;
    bide_event_waiter wait;
};

bide_coroutine(manager_body)
{
    bide_begin(manager_body, struct manager * self);
    bide_scope_init_with(&self->scope, bide_this_frame(), &self->options);
    for (self->i = 0; self->i < self->count; self->i++)
        bide_scope_spawn(
            &self->scope, &self->branches[self->i],
            part(&self->parts[self->i], &self->events[self->i], self->statuses[self->i]));
    while (self->takes) {
        bide_await_status(self->next_status,
                          bide_scope_next(&self->next, &self->scope, &self->ended));
        if (self->next_status < 0)
            break;
        self->order[self->taken++] = self->ended;
    }
    bide_await(bide_event_wait(&self->wait, &self->go));
    bide_await_status(self->status, bide_scope_join(&self->scope));
    self->joined = true;
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

static void manager_begin(struct manager *self, const bide_context *context)
{
    self->status = self->next_status = 1;
    bide_event_init(&self->go, !self->takes);
    for (int i = 0; i < MANY; i++)
        bide_event_init(&self->events[i], false);
    bide_start(&self->task.frame, &manager_body, context);
    bide_resume(&self->task.frame);
}

static int how_many_began(const struct manager *self)
{
    int began = 0;
    for (int i = 0; i < self->count; i++)
        began += !bide_waiter_list_word_is_idle(
                     bide_atomic_load(&self->events[i].waiters.word, relaxed)) ||
                 self->parts[i].finally;
    return began;
}

static void one_that_fails_may_spare_the_others(void **state)
{
    (void)state;
    struct manager self = {
        .options = {.spares = true}, .count = 3, .statuses = {-EDOM, -ERANGE, 0}};
    manager_begin(&self, &bide_default_context);
    bide_event_set(&self.events[1]);
    assert_false(self.parts[0].finally || self.parts[2].finally);
    bide_event_set(&self.events[0]);
    assert_false(self.joined);
    bide_event_set(&self.events[2]);
    assert_true(self.joined);
    assert_int_equal(self.status, -ERANGE); /* the first */
    assert_int_equal(self.branches[0].status, -EDOM);
    assert_int_equal(self.branches[1].status, -ERANGE);
    assert_int_equal(self.branches[2].status, 0);
}

static void next_returns_them_in_the_order_in_which_they_end(void **state)
{
    static const int order[] = {3, 0, 4, 1, 2, 5};
    (void)state;
    for (int max = 0; max < 2; max++) { /* (all run at once then too) */
        struct manager self = {
            .options = {.collects = true, .spares = true, .max_running = max * MANY},
            .count = MANY,
            .statuses = {-EDOM},
            .takes = true};
        bide_stop_source stop;
        bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
        bide_stop_source_init(&stop);
        manager_begin(&self, &context);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(self.taken, i);
            assert_int_equal(self.next_status, i == 0 ? 1 : 0);
            bide_event_set(&self.events[order[i]]);
            assert_ptr_equal(self.order[i], &self.branches[order[i]]);
            assert_int_equal(self.order[i]->status, order[i] == 0 ? -EDOM : 0);
        }
        assert_int_equal(self.next_status, -ENOENT);
        bide_event_set(&self.go);
        assert_int_equal(self.status, -EDOM);
    }
}

static void next_ends_when_its_owner_is_asked_and_loses_none(void **state)
{
    (void)state;
    struct manager self = {.options = {.collects = true}, .count = 2, .takes = true};
    bide_stop_source stop;
    bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &stop};
    bide_stop_source_init(&stop);
    manager_begin(&self, &context);
    bide_event_set(&self.events[1]);
    assert_int_equal(self.taken, 1);
    bide_stop_request(&stop);
    assert_true(self.joined);
    /* either it ended with the reason, or it was the child's end first; then the child is taken */
    assert_true(self.next_status == -ECANCELED || (self.next_status == -ENOENT && self.taken == 2));
    assert_int_equal(self.status, -ECANCELED);
    assert_int_equal(self.branches[0].status, -ECANCELED);
}

static void destroyed_in_next_the_rest_is_destroyed(void **state)
{
    (void)state;
    for (size_t max = 0; max < 3; max++) {
        for (int ended = 0; ended < 2; ended++) {
            struct manager self = {
                .options = {.collects = true, .max_running = max}, .count = MANY, .takes = true};
            manager_begin(&self, &bide_default_context);
            for (int i = 0; i < ended; i++)
                bide_event_set(&self.events[i]);
            assert_int_equal(self.taken, ended);
            bide_destroy(&self.task.frame);
            for (int i = ended; i < MANY; i++) {
                assert_int_equal(self.branches[i].status, -ECANCELED);
                bide_event_set(&self.events[i]); /* nobody waits there */
            }
        }
    }
}

/* The next that had its branch, and is not resumed, gives it back. */
static void a_withdrawn_next_puts_its_branch_back_in_front(void **state)
{
    (void)state;
    struct manager self = {.options = {.collects = true}, .count = 3};
    bide_scope_next_operation next;
    bide_branch *branch = NULL;
    bide_event_init(&self.go, false);
    manager_begin(&self, &bide_default_context);
    bide_event_set(&self.events[2]);
    bide_event_set(&self.events[0]);
    for (int i = 0; i < 2; i++) {
        bide_awaiter *awaiter = bide_scope_next(&next, &self.scope, &branch);
        assert_true(bide_awaiter_had(awaiter));
        if (i != 0)
            assert_int_equal(awaiter->ops->resume(awaiter), 0); /* taken, for nobody */
        assert_false(awaiter->ops->withdraw(awaiter));
    }
    assert_int_equal(bide_sync_wait(bide_scope_next(&next, &self.scope, &branch)), 0);
    assert_ptr_equal(branch, &self.branches[2]);
    assert_int_equal(bide_sync_wait(bide_scope_next(&next, &self.scope, &branch)), 0);
    assert_ptr_equal(branch, &self.branches[0]);
    bide_event_set(&self.events[1]);
    assert_true(self.joined);
}

static void only_so_many_run_at_a_time_and_the_others_in_order(void **state)
{
    (void)state;
    for (size_t max = 1; max <= MANY + 1; max++) {
        struct manager self = {.options = {.max_running = max}, .count = MANY};
        int all = (int)(max < MANY ? max : MANY);
        manager_begin(&self, &bide_default_context);
        assert_int_equal(how_many_began(&self), all);
        for (int i = 0; i < MANY; i++) {
            assert_false(self.joined);
            assert_int_equal(how_many_began(&self), i + all < MANY ? i + all : MANY);
            bide_event_set(&self.events[i]);
        }
        assert_true(self.joined);
        assert_int_equal(self.status, 0);
    }
}

static void in_a_scope_that_was_stopped_those_held_begin_and_end(void **state)
{
    (void)state;
    struct manager self = {.options = {.max_running = 2}, .count = MANY};
    manager_begin(&self, &bide_default_context);
    bide_scope_stop(&self.scope);
    assert_true(self.joined);
    assert_int_equal(self.status, -ECANCELED);
    for (int i = 0; i < MANY; i++) {
        assert_true(self.parts[i].finally);
        assert_int_equal(self.branches[i].status, -ECANCELED);
    }
}

static void one_may_be_stopped_and_the_others_go_on(void **state)
{
    (void)state;
    for (int spares = 0; spares < 2; spares++) {
        struct manager self = {.options = {.spares = spares, .max_running = 2}, .count = 4};
        manager_begin(&self, &bide_default_context);
        bide_scope_stop_one(&self.scope, &self.branches[1]);
        bide_scope_stop_one(&self.scope, &self.branches[3]); /* which is held */
        assert_int_equal(self.branches[1].status, -ECANCELED);
        assert_false(self.parts[0].finally || self.parts[2].finally);
        bide_event_set(&self.events[0]);
        assert_int_equal(self.branches[3].status, -ECANCELED);
        bide_scope_stop_one(&self.scope, &self.branches[0]); /* which has ended */
        assert_false(self.joined);
        bide_event_set(&self.events[2]);
        assert_true(self.joined);
        assert_int_equal(self.status, 0);
        assert_int_equal(self.branches[0].status, 0);
        assert_int_equal(self.branches[2].status, 0);
    }
}

static void a_joined_scope_is_joined_again_with_the_same_status(void **state)
{
    (void)state;
    struct owner self = {.statuses = {0, -EDOM, 0}};
    begin(&self, &bide_default_context);
    bide_event_set(&self.events[1]);
    bide_event_set(&self.go);
    assert_int_equal(self.status, -EDOM);
    assert_int_equal(bide_sync_wait(bide_scope_join(&self.scope)), -EDOM);
}

/* Branches of a scope that spawn more branches, and branches that free themselves. */
struct spreading {
    bide_task task;
    bide_scope *scope;
    struct spreading *all;
    bide_branch branch;
    int number, count;
    int *ended, *freed;
};

static void note_freed(bide_branch *branch)
{
    struct spreading *self = bide_container_of(branch, struct spreading, branch);
    int *freed = self->freed;
    memset(self, 0xdd, sizeof *self);
    ++*freed;
}

bide_coroutine(spreading_body)
{
    bide_begin(spreading_body, struct spreading * self);
    for (int i = 2 * self->number + 1; i <= 2 * self->number + 2 && i < self->count; i++) {
        struct spreading *child = &self->all[i];
        *child = *self;
        child->number = i;
        bide_scope_spawn_in(self->scope, &child->branch, &bide_default_context,
                            bide_task_init(&child->task, &spreading_body), note_freed);
    }
    ++*self->ended;
    bide_end();
}

struct spread_owner {
    bide_task task;
    bide_scope scope;
    struct spreading all[100];
    int ended, freed;
};

bide_coroutine(spread_owner_body)
{
    bide_begin(spread_owner_body, struct spread_owner * self);
    bide_scope_init(&self->scope, bide_this_frame());
    self->all[0] = (struct spreading){
        .scope = &self->scope,
        .all = self->all,
        .count = 100,
        .ended = &self->ended,
        .freed = &self->freed,
    };
    bide_scope_spawn_in(&self->scope, &self->all[0].branch, &bide_default_context,
                        bide_task_init(&self->all[0].task, &spreading_body), note_freed);
    bide_try(bide_scope_join(&self->scope));
    bide_end();
}

static void what_runs_in_a_scope_may_begin_more_and_free_itself(void **state)
{
    (void)state;
    struct spread_owner self = {.ended = 0};
    assert_int_equal(bide_sync_wait(bide_task_init(&self.task, &spread_owner_body)), 0);
    assert_int_equal(self.ended, 100);
    assert_int_equal(self.freed, 100);
}

/* Joins its scope, or returns at once, and leaves nothing in it either way. */
struct careful {
    bide_task task;
    bide_scope scope;
    bide_branch branches[PARTS];
    struct part parts[PARTS];
    bide_event events[PARTS];
    bide_event go;
    bide_event_waiter wait;
    bool joins;
    int i;
};

bide_coroutine(careful_body)
{
    bide_begin(careful_body, struct careful * self);
    bide_scope_init(&self->scope, bide_this_frame());
    for (self->i = 0; self->i < PARTS; self->i++)
        bide_scope_spawn(&self->scope, &self->branches[self->i],
                         part(&self->parts[self->i], &self->events[self->i], 0));
    bide_await(bide_event_wait(&self->wait, &self->go));
    if (self->joins)
        bide_try(bide_scope_join(&self->scope));
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

/* `ended` of its branches end before; then it continues or not, joins or not, and may be destroyed. */
static void what_is_left_in_a_scope_is_destroyed(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 32; way++) {
        unsigned ended = way & 3;
        bool goes_on = way & 4, joins = way & 8, destroyed = way & 16;
        struct careful self = {.joins = joins};
        bide_event_init(&self.go, false);
        for (int i = 0; i < PARTS; i++)
            bide_event_init(&self.events[i], false);
        bide_start(&self.task.frame, &careful_body, &bide_default_context);
        bide_resume(&self.task.frame);
        for (unsigned i = 0; i < ended; i++)
            bide_event_set(&self.events[i]);
        if (goes_on)
            bide_event_set(&self.go);
        if (destroyed || !goes_on)
            bide_destroy(&self.task.frame);
        else if (joins)
            for (unsigned i = ended; i < PARTS; i++)
                bide_event_set(&self.events[i]);
        assert_true(bide_done(&self.task.frame));
        bool all_end = goes_on && joins && !destroyed;
        for (unsigned i = 0; i < PARTS; i++) {
            assert_true(self.parts[i].finally);
            assert_int_equal(self.branches[i].status, i < ended || all_end ? 0 : -ECANCELED);
            bide_event_set(&self.events[i]); /* nobody waits there */
        }
    }
}

#if TESTING_HOSTED
struct forgetful {
    bide_task task;
    bide_scope scope;
    bide_branch branch;
    struct part part;
    bide_event event;
};

bide_coroutine(forgetful_body)
{
    bide_begin(forgetful_body, struct forgetful * self);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->branch, part(&self->part, &self->event, 0));
    bide_end();
}

static void drop_a_scope(void)
{
    struct forgetful self;
    bide_event_init(&self.event, false);
    bide_sync_wait(bide_task_init(&self.task, &forgetful_body));
}

static void destroy_the_owner_of_a_scope(void)
{
    struct owner self = {.status = 1};
    begin(&self, &bide_default_context);
    bide_destroy(&self.task.frame);
}

/* Opens two scopes, one inside the other, and joins both when the event is set. */
struct keeper {
    bide_task task;
    bide_scope scopes[2];
    bide_event event;
    bide_event_waiter wait;
};

bide_coroutine(keeper_body)
{
    bide_begin(keeper_body, struct keeper * self);
    bide_scope_init(&self->scopes[0], bide_this_frame());
    bide_scope_init(&self->scopes[1], bide_this_frame());
    bide_await(bide_event_wait(&self->wait, &self->event));
    bide_await(bide_scope_join(&self->scopes[0]));
    bide_await(bide_scope_join(&self->scopes[1]));
    bide_end();
}

enum { KEEPERS = 1000 };

/* Keepers end in no fixed order, each while the keepers after it have their scopes open. */
static size_t keep_many(struct keeper *keepers, void (*beside)(void))
{
    size_t ended = 0;
    for (size_t i = 0; i < KEEPERS; i++) {
        bide_event_init(&keepers[i].event, false);
        bide_start(&keepers[i].task.frame, &keeper_body, &bide_default_context);
        bide_resume(&keepers[i].task.frame);
    }
    for (size_t i = 0; i < KEEPERS; i++) {
        struct keeper *keeper = &keepers[i * 379 % KEEPERS];
        if (i == KEEPERS / 2)
            beside();
        bide_event_set(&keeper->event);
        ended += bide_done(&keeper->task.frame);
    }
    return ended;
}

static void open_no_scope(void)
{
    struct part part_;
    bide_event event;
    bide_event_init(&event, true);
    bide_sync_wait(part(&part_, &event, 0));
}

static void drop_a_scope_beside_many(void)
{
    static struct keeper keepers[KEEPERS];
    keep_many(keepers, drop_a_scope);
}

static void among_many_open_scopes_only_one_that_is_dropped_is_caught(void **state)
{
    static struct keeper keepers[KEEPERS];
    (void)state;
    assert_int_equal(keep_many(keepers, open_no_scope), KEEPERS);
    if (!BIDE_DEBUG)
        skip();
    assert_true(misuse_aborts_naming(drop_a_scope_beside_many, "scope", "forgetful_body"));
}

static void a_scope_that_is_dropped_is_caught(void **state)
{
    (void)state;
    if (!BIDE_DEBUG)
        skip();
    assert_true(misuse_aborts_naming(drop_a_scope, "scope", "forgetful_body"));
    assert_true(misuse_aborts_naming(destroy_the_owner_of_a_scope, "scope", "owner_body"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_waits_for_all_that_was_begun),
        cmocka_unit_test(join_does_not_wait_if_all_have_ended),
        cmocka_unit_test(an_error_stops_the_others_and_is_what_join_ends_with),
        cmocka_unit_test(cancelled_all_of_them_end),
        cmocka_unit_test(what_asks_the_owner_asks_all_of_them),
        cmocka_unit_test(what_asks_the_join_asks_all_of_them),
        cmocka_unit_test(a_deadline_around_the_join_asks_all_of_them),
        cmocka_unit_test(a_join_that_loses_asks_all_of_them),
        cmocka_unit_test(not_asked_the_join_ends_with_the_last),
        cmocka_unit_test(what_asks_the_owner_asks_all_of_them_in_a_shelter_too),
        cmocka_unit_test(destroyed_in_another_source_all_of_them_are_destroyed),
        cmocka_unit_test(destroyed_while_it_joins_all_of_them_are_destroyed),
        cmocka_unit_test(one_that_fails_may_spare_the_others),
        cmocka_unit_test(next_returns_them_in_the_order_in_which_they_end),
        cmocka_unit_test(next_ends_when_its_owner_is_asked_and_loses_none),
        cmocka_unit_test(destroyed_in_next_the_rest_is_destroyed),
        cmocka_unit_test(a_withdrawn_next_puts_its_branch_back_in_front),
        cmocka_unit_test(only_so_many_run_at_a_time_and_the_others_in_order),
        cmocka_unit_test(in_a_scope_that_was_stopped_those_held_begin_and_end),
        cmocka_unit_test(one_may_be_stopped_and_the_others_go_on),
        cmocka_unit_test(a_joined_scope_is_joined_again_with_the_same_status),
        cmocka_unit_test(what_runs_in_a_scope_may_begin_more_and_free_itself),
        cmocka_unit_test(what_is_left_in_a_scope_is_destroyed),
#if TESTING_HOSTED
        cmocka_unit_test(a_scope_that_is_dropped_is_caught),
        cmocka_unit_test(among_many_open_scopes_only_one_that_is_dropped_is_caught),
#endif
    };
    return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
