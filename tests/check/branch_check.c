/*
 * Groups of branches that end on different threads, with an owner that is continued once; and a
 * scope that is joined while its branches end.
 */
#include "bide/check.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/extend/root.h"
#include "bide/scope.h"
#include "bide/stop.h"
#include "bide/task.h"
#include "bide/when.h"
#include "bide/with_stop.h"

struct part {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    int data;   /* written by the setter of the event */
    int result; /* written at the end, read by the waiter of the branch */
    int *running;
};

struct whole {
    bide_task task;
    struct part parts[2];
    bide_branch branches[2];
    bide_when when;
    bide_scope scope;
    bide_stop_source stop; /* of the cancelled branches */
    bide_context context;  /* with it */
    bide_with_stop_operation under;
    bool is_polite; /* the owner waits for an event before it joins */
    bide_event go;
    bide_event_waiter wait;
    bide_scope_next_operation next;
    bide_branch *taken;
    int running; /* of those that may run one at a time */
    int status;
    int ended;
};

bide_coroutine(part_body)
{
    int status;
    bide_begin(part_body, struct part * self);
    bide_await_status(status, bide_event_wait(&self->wait, &self->event));
    if (status == 0)
        bide_check_assert(self->data == 1);
    self->result = 2;
    bide_return(status);
    bide_end();
}

static void set(struct part *part)
{
    part->data = 1;
    bide_event_set(&part->event);
}

static void set_first(void *p)
{
    set(&((struct whole *)p)->parts[0]);
}

static void set_second(void *p)
{
    set(&((struct whole *)p)->parts[1]);
}

static void begin(struct whole *self, const bide_point *body)
{
    for (int i = 0; i < 2; i++) {
        bide_event_init(&self->parts[i].event, false);
        bide_branch_init(&self->branches[i], bide_task_init(&self->parts[i].task, &part_body));
    }
    bide_start(&self->task.frame, body, &bide_default_context);
    bide_resume(&self->task.frame);
}

static void both_have_ended(struct whole *self)
{
    for (int i = 0; i < 2; i++) {
        bide_check_assert(self->parts[i].result == 2);
        bide_check_assert(bide_done(&self->parts[i].task.frame));
    }
    self->ended++;
}

static void it_has_ended_once(void *p)
{
    bide_check_assert(((struct whole *)p)->ended == 1);
}

bide_coroutine(all_body)
{
    bide_begin(all_body, struct whole * self);
    bide_await_status(self->status, bide_when_all(&self->when, self->branches, 2));
    bide_check_assert(self->status == 0);
    both_have_ended(self);
    bide_end();
}

static void begin_all(void *p)
{
    begin(p, &all_body);
}

static const bide_check_scenario all = {
    .name = "all_of_two_that_end_on_two_threads",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_all,
    .threads = {set_first, set_second},
    .finish = it_has_ended_once,
};

bide_coroutine(any_body)
{
    bide_begin(any_body, struct whole * self);
    bide_await_status(self->status, bide_when_any(&self->when, self->branches, 2));
    bide_check_assert(self->status == 0);
    bide_check_assert(self->branches[bide_when_winner(&self->when)].status == 0);
    both_have_ended(self);
    bide_end();
}

static void begin_any(void *p)
{
    begin(p, &any_body);
}

static const bide_check_scenario any = {
    .name = "any_of_two_that_end_on_two_threads",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_any,
    .threads = {set_first, set_second},
    .finish = it_has_ended_once,
};

/* The owner joins on the second thread, where it was started. */
bide_coroutine(scope_body)
{
    bide_begin(scope_body, struct whole * self);
    bide_scope_init_(&self->scope, bide_this_frame(), false);
    bide_scope_spawn(&self->scope, &self->branches[0],
                     bide_task_init(&self->parts[0].task, &part_body));
    self->parts[1].result = 2;
    bide_destroy(&self->parts[1].task.frame);
    bide_await_status(self->status, bide_scope_join(&self->scope));
    bide_check_assert(self->status == 0);
    both_have_ended(self);
    bide_end();
}

static void prepare_scope(void *p)
{
    struct whole *self = p;
    bide_event_init(&self->parts[0].event, false);
    bide_start(&self->parts[1].task.frame, &part_body, &bide_default_context);
}

static void begin_scope(void *p)
{
    struct whole *self = p;
    bide_start(&self->task.frame, &scope_body, &bide_default_context);
    bide_resume(&self->task.frame);
}

static const bide_check_scenario scope = {
    .name = "a_scope_is_joined_while_its_branch_ends",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = prepare_scope,
    .threads = {set_first, begin_scope},
    .finish = it_has_ended_once,
};

/* The branch runs at once, before the owner joins, and ends on the other thread or later. */
bide_coroutine(polite_scope_body)
{
    bide_begin(polite_scope_body, struct whole * self);
    bide_scope_init_(&self->scope, bide_this_frame(), false);
    bide_scope_spawn(&self->scope, &self->branches[0],
                     bide_task_init(&self->parts[0].task, &part_body));
    self->parts[1].result = 2;
    bide_destroy(&self->parts[1].task.frame);
    bide_await(bide_event_wait(&self->parts[1].wait, &self->parts[1].event));
    bide_await_status(self->status, bide_scope_join(&self->scope));
    bide_check_assert(self->status == 0);
    both_have_ended(self);
    bide_end();
}

static void begin_polite_scope(void *p)
{
    struct whole *self = p;
    prepare_scope(p);
    bide_event_init(&self->parts[1].event, false);
    bide_start(&self->task.frame, &polite_scope_body, &bide_default_context);
    bide_resume(&self->task.frame);
}

static const bide_check_scenario polite_scope = {
    .name = "a_scope_is_joined_when_its_branch_may_have_ended",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_polite_scope,
    .threads = {set_first, set_second},
    .finish = it_has_ended_once,
};

/* ---- Cancellation ---- */

/* The awaited operation was cancelled, or it decided the others. */
static void both_have_stopped(struct whole *self)
{
    bide_check_assert(self->status == 0 || self->status == -ECANCELED);
    both_have_ended(self);
}

static void begin_in_source(struct whole *self, const bide_point *body)
{
    bide_stop_source_init(&self->stop);
    self->context = bide_default_context;
    self->context.stop = &self->stop;
    for (int i = 0; i < 2; i++) {
        bide_event_init(&self->parts[i].event, false);
        bide_branch_init(&self->branches[i], bide_task_init(&self->parts[i].task, &part_body));
    }
    bide_start(&self->task.frame, body, &self->context);
    bide_resume(&self->task.frame);
}

bide_coroutine(stopped_body)
{
    bide_begin(stopped_body, struct whole * self);
    bide_await_status(self->status, bide_when_any(&self->when, self->branches, 2));
    both_have_stopped(self);
    bide_end();
}

static void begin_stopped(void *p)
{
    begin_in_source(p, &stopped_body);
}

static void stop_all(void *p)
{
    bide_stop_request(&((struct whole *)p)->stop);
}

/* No child of the branch is attached to the source any longer. */
static void it_has_left_the_source(void *p)
{
    struct whole *self = p;
    it_has_ended_once(p);
    bide_check_assert(self->stop.first_child == NULL);
}

static const bide_check_scenario decided = {
    .name = "any_of_two_ends_as_a_branch_ends_by_itself",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_stopped,
    .threads = {set_first},
    .finish = it_has_left_the_source,
};

static const bide_check_scenario stopped = {
    .name = "any_of_two_is_asked_to_stop_as_a_branch_ends",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_stopped,
    .threads = {stop_all, set_first},
    .finish = it_has_left_the_source,
};

bide_coroutine(stopped_scope_body)
{
    bide_begin(stopped_scope_body, struct whole * self);
    bide_scope_init_(&self->scope, bide_this_frame(), false);
    bide_scope_spawn(&self->scope, &self->branches[0],
                     bide_task_init(&self->parts[0].task, &part_body));
    bide_scope_spawn(&self->scope, &self->branches[1],
                     bide_task_init(&self->parts[1].task, &part_body));
    bide_await_status(self->status, bide_scope_join(&self->scope));
    bide_check_assert(self->scope.group.stop.first_child == NULL);
    both_have_stopped(self);
    bide_end();
}

static void begin_stopped_scope(void *p)
{
    begin_in_source(p, &stopped_scope_body);
}

static const bide_check_scenario stopped_scope = {
    .name = "a_scope_is_asked_to_stop_as_its_branch_ends",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_stopped_scope,
    .threads = {stop_all, set_first},
    .finish = it_has_left_the_source,
    .preemptions = 2,
};

/* The owner does not join before the branch has ended. */
static void go_on(bide_branch *branch)
{
    set(&bide_container_of(branch, struct whole, branches[0])->parts[1]);
}

bide_coroutine(late_scope_body)
{
    bide_begin(late_scope_body, struct whole * self);
    bide_scope_init_(&self->scope, bide_this_frame(), false);
    bide_scope_spawn_in(&self->scope, &self->branches[0], bide_this_context(),
                        bide_task_init(&self->parts[0].task, &part_body), go_on);
    self->parts[1].result = 2;
    bide_destroy(&self->parts[1].task.frame);
    bide_await(bide_with_stop(&self->under, NULL,
                              bide_event_wait(&self->parts[1].wait, &self->parts[1].event)));
    bide_await_status(self->status, bide_scope_join(&self->scope));
    bide_check_assert(self->status == -ECANCELED);
    both_have_ended(self);
    bide_end();
}

static void begin_late_scope(void *p)
{
    struct whole *self = p;
    prepare_scope(p);
    bide_stop_source_init(&self->stop);
    self->context = bide_default_context;
    self->context.stop = &self->stop;
    bide_event_init(&self->parts[1].event, false);
    bide_start(&self->task.frame, &late_scope_body, &self->context);
    bide_resume(&self->task.frame);
}

static const bide_check_scenario late_scope = {
    .name = "a_scope_is_asked_to_stop_before_it_is_joined",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_late_scope,
    .threads = {stop_all},
    .finish = it_has_left_the_source,
};

/* ---- A join in another source ---- */

static void it_has_left_both(struct whole *self)
{
    bide_check_assert(self->stop.first_child == NULL);
    bide_check_assert(self->scope.group.stop.first_child == NULL);
    bide_check_assert(self->scope.group.stop.parent == NULL);
}

bide_coroutine(joined_elsewhere_body)
{
    bide_begin(joined_elsewhere_body, struct whole * self);
    bide_scope_init_(&self->scope, bide_this_frame(), false);
    bide_scope_spawn(&self->scope, &self->branches[0],
                     bide_task_init(&self->parts[0].task, &part_body));
    self->parts[1].result = 2;
    bide_destroy(&self->parts[1].task.frame);
    if (self->is_polite)
        bide_await(bide_event_wait(&self->parts[1].wait, &self->parts[1].event));
    bide_await_status(self->status,
                      bide_with_stop(&self->under, &self->stop, bide_scope_join(&self->scope)));
    it_has_left_both(self);
    both_have_stopped(self);
    self->scope.group.stop.first_child = NULL; /* the memory is the owner's again */
    bide_end();
}

static void prepare_joined_elsewhere(void *p)
{
    struct whole *self = p;
    bide_stop_source_init(&self->stop);
    prepare_scope(p);
}

static void begin_joined_elsewhere(void *p)
{
    struct whole *self = p;
    bide_start(&self->task.frame, &joined_elsewhere_body, &bide_default_context);
    bide_resume(&self->task.frame);
}

static void prepare_and_begin_joined_elsewhere(void *p)
{
    prepare_joined_elsewhere(p);
    begin_joined_elsewhere(p);
}

/* The branch is not woken otherwise: it ends by the request, whenever that comes. */
static void it_was_stopped(void *p)
{
    struct whole *self = p;
    it_has_ended_once(p);
    bide_check_assert(self->status == -ECANCELED);
    bide_check_assert(self->branches[0].status == -ECANCELED);
}

static const bide_check_scenario asked_joining = {
    .name = "a_scope_is_joined_in_a_source_that_is_asked",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = prepare_joined_elsewhere,
    .threads = {begin_joined_elsewhere, stop_all},
    .finish = it_was_stopped,
};

static const bide_check_scenario asked_ending = {
    .name = "the_source_of_a_join_is_asked_as_the_last_branch_ends",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = prepare_and_begin_joined_elsewhere,
    .threads = {stop_all, set_first},
    .finish = it_has_ended_once,
};

static void prepare_polite(void *p)
{
    struct whole *self = p;
    prepare_joined_elsewhere(p);
    self->is_polite = true;
    bide_event_init(&self->parts[1].event, false);
    begin_joined_elsewhere(p);
}

static void prepare_asked(void *p)
{
    prepare_polite(p);
    stop_all(p);
}

/* In a source that is not asked: the gate alone. */
static const bide_check_scenario ends_joining = {
    .name = "a_scope_is_joined_in_another_source_while_its_branch_ends",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = prepare_polite,
    .threads = {set_second, set_first},
    .finish = it_has_ended_once,
};

static const bide_check_scenario asked_before = {
    .name = "a_scope_is_joined_in_a_source_that_was_asked_while_its_branch_ends",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = prepare_asked,
    .threads = {set_second, set_first},
    .finish = it_has_ended_once,
};

static const bide_check_scenario all_at_once = {
    .name = "a_join_begins_is_asked_and_ends_at_once",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = prepare_polite,
    .threads = {set_second, set_first, stop_all},
    .finish = it_has_ended_once,
    .preemptions = 2,
};

/* ---- Scopes that collect, and scopes with a limit ---- */

static void begin_owner(struct whole *self, const bide_point *body)
{
    bide_stop_source_init(&self->stop);
    bide_event_init(&self->go, false);
    for (int i = 0; i < 2; i++)
        bide_event_init(&self->parts[i].event, false);
    bide_start(&self->task.frame, body, &bide_default_context);
    bide_resume(&self->task.frame);
}

/* Its branches may be spawned again at once, so it writes to them. */
bide_coroutine(collecting_body)
{
    bide_begin(collecting_body, struct whole * self);
    bide_scope_init_with_(&self->scope, bide_this_frame(),
                          &(bide_scope_options){.collects = true, .spares = true}, false);
    for (int i = 0; i < 2; i++)
        bide_scope_spawn(&self->scope, &self->branches[i],
                         bide_task_init(&self->parts[i].task, &part_body));
    bide_await(bide_event_wait(&self->wait, &self->go));
    for (; self->running < 2; self->running++) {
        bide_await_status(self->status, bide_scope_next(&self->next, &self->scope, &self->taken));
        bide_check_assert(self->status == 0);
        bide_check_assert(self->taken->status == 0);
        self->taken->ended = NULL; /* its memory is the owner's */
    }
    bide_await_status(self->status, bide_scope_next(&self->next, &self->scope, &self->taken));
    bide_check_assert(self->status == -ENOENT);
    bide_await_status(self->status, bide_scope_join(&self->scope));
    bide_check_assert(self->status == 0);
    both_have_ended(self);
    bide_end();
}

static void begin_collecting(void *p)
{
    struct whole *self = p;
    begin_owner(self, &collecting_body);
    bide_event_set(&self->go);
}

/* One has ended before; the other ends as the owner goes on. */
static void begin_collecting_later(void *p)
{
    begin_owner(p, &collecting_body);
    set_second(p);
}

static void go(void *p)
{
    bide_event_set(&((struct whole *)p)->go);
}

static const bide_check_scenario collecting = {
    .name = "the_next_of_two_that_end_on_two_threads",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_collecting,
    .threads = {set_first, set_second},
    .finish = it_has_ended_once,
    .preemptions = 2,
};

static const bide_check_scenario collecting_late = {
    .name = "the_next_is_awaited_as_one_ends",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_collecting_later,
    .threads = {go, set_first},
    .finish = it_has_ended_once,
};

/* One branch; the next is asked to stop, and awaited again without being asked. */
bide_coroutine(next_asked_body)
{
    bide_begin(next_asked_body, struct whole * self);
    bide_scope_init_with_(&self->scope, bide_this_frame(), &(bide_scope_options){.collects = true},
                          false);
    bide_scope_spawn(&self->scope, &self->branches[0],
                     bide_task_init(&self->parts[0].task, &part_body));
    self->parts[1].result = 2;
    bide_destroy(&self->parts[1].task.frame);
    bide_await_status(self->status,
                      bide_with_stop(&self->under, &self->stop,
                                     bide_scope_next(&self->next, &self->scope, &self->taken)));
    bide_check_assert(self->status == 0 || self->status == -ECANCELED);
    if (self->status < 0)
        bide_await_status(self->status, bide_scope_next(&self->next, &self->scope, &self->taken));
    bide_check_assert(self->status == 0 && self->taken == &self->branches[0]);
    bide_await_status(self->status, bide_scope_next(&self->next, &self->scope, &self->taken));
    bide_check_assert(self->status == -ENOENT);
    bide_await_status(self->status, bide_scope_join(&self->scope));
    both_have_ended(self);
    bide_end();
}

static void begin_next_asked(void *p)
{
    struct whole *self = p;
    bide_start(&self->parts[1].task.frame, &part_body, &bide_default_context);
    begin_owner(self, &next_asked_body);
}

static const bide_check_scenario next_asked = {
    .name = "the_next_is_asked_to_stop_as_one_ends",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_next_asked,
    .threads = {stop_all, set_first},
    .finish = it_has_left_the_source,
};

/* One at a time: `running` counts those that have begun and not ended, without being atomic. */
bide_coroutine(alone_body)
{
    bide_begin(alone_body, struct part * self);
    bide_check_assert(*self->running == 0);
    *self->running = 1;
    bide_await(bide_event_wait(&self->wait, &self->event));
    *self->running = 0;
    self->result = 2;
    bide_end();
}

bide_coroutine(limited_body)
{
    bide_begin(limited_body, struct whole * self);
    bide_scope_init_with_(&self->scope, bide_this_frame(), &(bide_scope_options){.max_running = 1},
                          false);
    bide_scope_spawn(&self->scope, &self->branches[0],
                     bide_task_init(&self->parts[0].task, &alone_body));
    bide_await(bide_event_wait(&self->wait, &self->go));
    bide_scope_spawn(&self->scope, &self->branches[1],
                     bide_task_init(&self->parts[1].task, &alone_body));
    bide_await_status(self->status, bide_scope_join(&self->scope));
    bide_check_assert(self->status == 0);
    both_have_ended(self);
    bide_end();
}

static void begin_limited_later(void *p)
{
    struct whole *self = p;
    self->running = 0;
    for (int i = 0; i < 2; i++)
        self->parts[i].running = &self->running;
    begin_owner(self, &limited_body);
}

/* The second ends as soon as it begins. */
static void begin_limited_ending(void *p)
{
    begin_limited_later(p);
    set_second(p);
}

static void begin_limited(void *p)
{
    begin_limited_later(p);
    go(p);
}

static const bide_check_scenario limited = {
    .name = "one_of_two_begins_when_the_other_has_ended",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_limited,
    .threads = {set_first, set_second},
    .finish = it_has_ended_once,
};

static const bide_check_scenario limited_late = {
    .name = "one_is_spawned_beyond_the_limit_as_another_ends",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_limited_ending,
    .threads = {go, set_first},
    .finish = it_has_ended_once,
};

/* The scope's memory is the owner's again after the join. */
bide_coroutine(roomy_body)
{
    bide_begin(roomy_body, struct whole * self);
    bide_scope_init_with_(&self->scope, bide_this_frame(), &(bide_scope_options){.max_running = 2},
                          false);
    for (int i = 0; i < 2; i++)
        bide_scope_spawn(&self->scope, &self->branches[i],
                         bide_task_init(&self->parts[i].task, &part_body));
    bide_await_status(self->status, bide_scope_join(&self->scope));
    self->scope.has_begun = 0;
    both_have_ended(self);
    bide_end();
}

static void begin_roomy(void *p)
{
    begin_owner(p, &roomy_body);
}

static const bide_check_scenario roomy = {
    .name = "a_scope_with_a_limit_is_joined_as_two_end",
    .size = sizeof(struct whole),
    .cxx20_release_sequences = true,
    .setup = begin_roomy,
    .threads = {set_first, set_second},
    .finish = it_has_ended_once,
};

int main(int argc, char **argv)
{
    const bide_check_scenario *scenarios[] = {
        &all,          &any,           &scope,        &polite_scope,  &decided,
        &stopped,      &stopped_scope, &late_scope,   &asked_joining, &asked_ending,
        &ends_joining, &asked_before,  &all_at_once,  &collecting,    &collecting_late,
        &next_asked,   &limited,       &limited_late, &roomy,         NULL};
    const char *files[] = {"branch.h", "branch.c", "when.h", "when.c", "scope.h", "scope.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){scenarios, files, NULL});
}
