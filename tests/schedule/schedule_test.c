/*
 * Moving to another scheduler: a coroutine runs on the scheduler it was moved to, and so do coroutines that it awaits; its
 * awaiting coroutine resumes on its own scheduler.
 */
#include "testing.h"

#include "bide/async_generator.h"
#include "bide/create.h"
#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/extend/root.h"
#include "bide/run_loop.h"
#include "bide/scope.h"
#include "bide/schedule.h"
#include "bide/shared_task.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/then.h"
#include "bide/thread_pool.h"
#include "bide/when.h"

#include <errno.h>
#include <pthread.h>

static bide_thread_pool *pool;
static bide_scheduler *there;
static pthread_t here;

static int set_up(void **state)
{
    (void)state;
    here = pthread_self();
    int status = bide_thread_pool_create(&pool, 1);
    if (status == 0)
        there = bide_thread_pool_scheduler(pool);
    return status;
}

static int tear_down(void **state)
{
    (void)state;
    bide_thread_pool_destroy(pool);
    return 0;
}

static bool is_here(void)
{
    return pthread_equal(pthread_self(), here) != 0;
}

/* A child that reports where it runs. */
struct asks {
    bide_task task;
    bool here;
    int status;
};

bide_coroutine(asks_body)
{
    bide_begin(asks_body, struct asks * self);
    self->here = is_here();
    bide_return(self->status);
    bide_end();
}

static bide_awaiter *asks(struct asks *self, int status)
{
    self->status = status;
    return bide_task_init(&self->task, &asks_body);
}

struct moving {
    bide_task task;
    bide_schedule_operation schedule;
    bide_scheduler *to[3];
    bool here[3];
    bool child_here[3];
    struct asks child;
    int i;
};

bide_coroutine(moving_body)
{
    bide_begin(moving_body, struct moving * self);
    for (self->i = 0; self->i < 3; self->i++) {
        bide_await(bide_schedule(&self->schedule, self->to[self->i]));
        self->here[self->i] = is_here();
        bide_await(asks(&self->child, 0));
        self->child_here[self->i] = self->child.here;
    }
    bide_return(-EDOM);
    bide_end();
}

struct outer {
    bide_task task;
    struct moving moving;
    bool here_before, here_after;
    int status;
};

bide_coroutine(outer_body)
{
    bide_begin(outer_body, struct outer * self);
    self->here_before = is_here();
    bide_await_status(self->status, bide_task_init(&self->moving.task, &moving_body));
    self->here_after = is_here();
    bide_end();
}

static void schedule_moves_the_coroutine_and_no_other(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    /* Ends there, and returns to its own scheduler in between. */
    struct outer self = {.moving.to = {there, &loop.scheduler, there}};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &outer_body)), 0);
    assert_true(self.here_before && self.here_after);
    assert_int_equal(self.status, -EDOM);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(self.moving.here[i], i == 1);
        assert_int_equal(self.moving.child_here[i], i == 1);
    }
}

/* With two operations, one after the other. */
struct moving_on {
    bide_task task;
    bide_schedule_operation first, second;
    bide_scheduler *loop;
    bool here_first, here_second;
};

bide_coroutine(moving_on_body)
{
    bide_begin(moving_on_body, struct moving_on * self);
    bide_await(bide_schedule(&self->first, there));
    self->here_first = is_here();
    bide_await(bide_schedule(&self->second, self->loop));
    self->here_second = is_here();
    bide_end();
}

static void schedule_may_be_used_again_with_another_operation(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct moving_on self = {.loop = &loop.scheduler};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &moving_on_body)), 0);
    assert_false(self.here_first);
    assert_true(self.here_second);
}

/* There and back, each way by its own operation. */
struct to_and_fro {
    bide_task task;
    bide_schedule_operation to, fro;
    bide_scheduler *loop;
    int i;
    int here_after[2];
};

bide_coroutine(to_and_fro_body)
{
    bide_begin(to_and_fro_body, struct to_and_fro * self);
    for (self->i = 0; self->i < 100; self->i++) {
        bide_await(bide_schedule(&self->to, there));
        self->here_after[0] += is_here();
        bide_await(bide_schedule(&self->fro, self->loop));
        self->here_after[1] += is_here();
    }
    bide_await(bide_schedule(&self->to, there));
    bide_end();
}

static void two_operations_may_take_turns(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct to_and_fro self = {.loop = &loop.scheduler};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &to_and_fro_body)), 0);
    assert_int_equal(self.here_after[0], 0);
    assert_int_equal(self.here_after[1], 100);
}

struct via {
    bide_task task;
    bide_resume_on_operation resume_on;
    bide_schedule_on_operation schedule_on;
    struct asks child;
    bool here_after_schedule_on, child_here_schedule_on;
    bool here_after_resume_on, child_here_resume_on;
    int status_schedule_on, status_resume_on;
};

bide_coroutine(via_body)
{
    bide_begin(via_body, struct via * self);
    bide_await_status(self->status_schedule_on,
                      bide_schedule_on(&self->schedule_on, there, asks(&self->child, -EIO)));
    self->here_after_schedule_on = is_here();
    self->child_here_schedule_on = self->child.here;
    bide_await_status(self->status_resume_on,
                      bide_resume_on(&self->resume_on, there, asks(&self->child, -ENOENT)));
    self->here_after_resume_on = is_here();
    self->child_here_resume_on = self->child.here;
    bide_end();
}

static void schedule_on_comes_back_and_resume_on_goes(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct via self;
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &via_body)), 0);
    assert_int_equal(self.status_schedule_on, -EIO);
    assert_false(self.child_here_schedule_on);
    assert_true(self.here_after_schedule_on);
    assert_int_equal(self.status_resume_on, -ENOENT);
    assert_true(self.child_here_resume_on);
    assert_false(self.here_after_resume_on);
}

/* Each yields to the other. */
struct polite {
    bide_task task;
    bide_schedule_operation schedule;
    bide_scheduler *own;
    int *turn;
    int who;
    int i;
    bool in_turn;
};

bide_coroutine(polite_body)
{
    bide_begin(polite_body, struct polite * self);
    self->in_turn = true;
    for (self->i = 0; self->i < 100; self->i++) {
        if (*self->turn != self->who)
            self->in_turn = false;
        *self->turn = 1 - self->who;
        bide_await(bide_schedule(&self->schedule, self->own));
    }
    bide_end();
}

static void ignore(bide_root *root)
{
    (void)root;
}

static void with_its_own_scheduler_a_coroutine_lets_others_run(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    int turn = 0;
    struct polite one = {.own = &loop.scheduler, .turn = &turn, .who = 0};
    struct polite other = {.own = &loop.scheduler, .turn = &turn, .who = 1};
    bide_root roots[2];
    bide_root_start(&roots[0], &loop.context, bide_task_init(&one.task, &polite_body), ignore);
    bide_root_start(&roots[1], &loop.context, bide_task_init(&other.task, &polite_body), ignore);
    bide_run_loop_run_ready(&loop);
    assert_true(bide_done(&one.task.frame) && bide_done(&other.task.frame));
    assert_true(one.in_turn && other.in_turn);
}

/* ---- bide_then ---- */

static int doubled(void *argument, int status)
{
    int *calls = argument;
    ++*calls;
    return status < 0 ? status * 2 : 0;
}

struct doubling {
    bide_task task;
    bide_then_operation then, again;
    struct asks child;
    int calls;
    int once, twice;
};

bide_coroutine(doubling_body)
{
    bide_begin(doubling_body, struct doubling * self);
    bide_await_status(self->once,
                      bide_then(&self->then, asks(&self->child, -1), doubled, &self->calls));
    bide_await_status(self->twice, bide_then(&self->again,
                                             bide_then(&self->then, asks(&self->child, -1), doubled,
                                                       &self->calls),
                                             doubled, &self->calls));
    bide_end();
}

static void then_makes_its_own_of_what_something_ends_with(void **state)
{
    (void)state;
    struct doubling self = {.calls = 0};
    assert_int_equal(bide_sync_wait(bide_task_init(&self.task, &doubling_body)), 0);
    assert_int_equal(self.once, -2);
    assert_int_equal(self.twice, -4);
    assert_int_equal(self.calls, 3);
}

/* ---- Destroyed during a move ---- */

struct on_the_way {
    bide_task task;
    bide_schedule_operation schedule;
    bide_schedule_on_operation schedule_on;
    bide_scheduler *to;
    struct asks child;
    int which;
    bool after, finally;
};

bide_coroutine(on_the_way_body)
{
    bide_begin(on_the_way_body, struct on_the_way * self);
    if (self->which == 0)
        bide_await(bide_schedule(&self->schedule, self->to));
    else
        bide_await(bide_schedule_on(&self->schedule_on, self->to, asks(&self->child, 0)));
    self->after = true;
    bide_finally();
    self->finally = true;
    bide_end();
}

struct parent_of_moved {
    bide_task task;
    struct on_the_way child;
    bool finally;
};

bide_coroutine(parent_of_moved_body)
{
    bide_begin(parent_of_moved_body, struct parent_of_moved * self);
    bide_await(bide_task_init(&self->child.task, &on_the_way_body));
    bide_finally();
    self->finally = true;
    bide_end();
}

static void the_parent_of_a_coroutine_that_went_elsewhere_is_destroyed_with_it(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct parent_of_moved self = {.child = {.to = &loop.scheduler, .which = 0}};
    bide_start(&self.task.frame, &parent_of_moved_body, &bide_default_context);
    bide_resume(&self.task.frame);
    bide_destroy(&self.task.frame);
    assert_true(self.child.finally && self.finally);
    assert_true(bide_done(&self.task.frame));
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
}

static void what_is_posted_is_taken_back_when_destroyed(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        bide_run_loop loop;
        bide_run_loop_init(&loop);
        struct on_the_way self = {.to = &loop.scheduler, .which = which};
        bide_start(&self.task.frame, &on_the_way_body, &bide_default_context);
        bide_resume(&self.task.frame);
        bide_destroy(&self.task.frame);
        assert_true(self.finally);
        assert_int_equal(bide_run_loop_run_ready(&loop), 0);
        assert_false(self.after);
    }
}

/* ---- Destroyed when the child has ended elsewhere ---- */

/* One frame, counted. */
struct one_frame {
    bide_allocator allocator;
    _Alignas(BIDE_ALLOCATOR_ALIGN) unsigned char memory[512];
    int held;
};

static void *one_frame_allocate(bide_allocator *allocator, size_t size)
{
    struct one_frame *one = bide_container_of(allocator, struct one_frame, allocator);
    assert_true(one->held == 0 && size <= sizeof one->memory);
    one->held++;
    return one->memory;
}

static void one_frame_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    struct one_frame *one = bide_container_of(allocator, struct one_frame, allocator);
    memset(memory, 0xdd, size);
    one->held--;
}

static void one_frame_init(struct one_frame *one)
{
    one->allocator.allocate = one_frame_allocate;
    one->allocator.deallocate = one_frame_deallocate;
    one->held = 0;
}

struct goes {
    bide_task task;
    bide_schedule_operation schedule;
    bide_scheduler *to;
};

bide_coroutine(goes_body)
{
    bide_begin(goes_body, struct goes * self);
    bide_await(bide_schedule(&self->schedule, self->to));
    bide_end();
}

enum how { AS_A_FRAME, OWNED, OWNED_IN_THEN, OWNED_ELSEWHERE, OWNED_IN_WHEN, OWNED_WITH_DEADLINE };

struct parent_of_leaver {
    bide_task task;
    bide_allocator *allocator;
    bide_scheduler *to;
    enum how how;
    struct goes child;
    bide_then_operation then;
    bide_schedule_on_operation schedule_on;
    bide_when when;
    bide_branch branches[2];
    bide_with_deadline_operation with_deadline;
    int status;
    bool after, finally;
};

static int same(void *argument, int status)
{
    (void)argument;
    return status;
}

static bide_awaiter *owned_goes(struct parent_of_leaver *parent)
{
    struct goes *self = bide_create(sizeof *self, &goes_body, parent->allocator);
    if (self != NULL)
        self->to = parent->to;
    return bide_owned(self, &goes_body);
}

static bide_awaiter *child_of(struct parent_of_leaver *self)
{
    self->child.to = self->to;
    switch (self->how) {
    case OWNED:
        return owned_goes(self);
    case OWNED_IN_THEN:
        return bide_then(&self->then, owned_goes(self), same, NULL);
    case OWNED_ELSEWHERE:
        return bide_schedule_on(&self->schedule_on, self->to, owned_goes(self));
    case OWNED_IN_WHEN:
        bide_branch_init(&self->branches[0], bide_task_init(&self->child.task, &goes_body));
        bide_branch_init(&self->branches[1], owned_goes(self));
        return bide_when_all(&self->when, self->branches, 2);
    case OWNED_WITH_DEADLINE:
        return bide_with_deadline(&self->with_deadline, 1, owned_goes(self));
    case AS_A_FRAME:
    default:
        return bide_task_init(&self->child.task, &goes_body);
    }
}

bide_coroutine(parent_of_leaver_body)
{
    bide_begin(parent_of_leaver_body, struct parent_of_leaver * self);
    bide_await_status(self->status, child_of(self));
    self->after = true;
    bide_finally();
    self->finally = true;
    bide_end();
}

/*
 * The parent belongs to one loop, the child moves to another and ends there; the parent is destroyed before its loop
 * has run again.
 */
static void destroyed_with_the_way_back_posted_it_is_taken_back(void **state)
{
    (void)state;
    for (enum how how = AS_A_FRAME; how <= OWNED_IN_THEN; how++) {
        bide_run_loop loop, elsewhere;
        struct one_frame memory;
        bide_run_loop_init(&loop);
        bide_run_loop_init(&elsewhere);
        one_frame_init(&memory);
        struct parent_of_leaver self = {
            .allocator = &memory.allocator, .to = &elsewhere.scheduler, .how = how};
        bide_start(&self.task.frame, &parent_of_leaver_body, &loop.context);
        bide_resume(&self.task.frame);
        assert_int_equal(bide_run_loop_run_ready(&elsewhere), 1);
        assert_int_equal(memory.held, how != AS_A_FRAME);
        bide_destroy(&self.task.frame);
        assert_true(self.finally && !self.after);
        assert_int_equal(memory.held, 0);
        assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    }
}

static void what_was_to_start_elsewhere_is_freed_when_destroyed(void **state)
{
    (void)state;
    bide_run_loop elsewhere;
    struct one_frame memory;
    bide_run_loop_init(&elsewhere);
    one_frame_init(&memory);
    struct parent_of_leaver self = {
        .allocator = &memory.allocator, .to = &elsewhere.scheduler, .how = OWNED_ELSEWHERE};
    bide_start(&self.task.frame, &parent_of_leaver_body, &bide_default_context);
    bide_resume(&self.task.frame);
    assert_int_equal(memory.held, 1);
    bide_destroy(&self.task.frame);
    assert_true(self.finally && !self.after);
    assert_int_equal(memory.held, 0);
    assert_int_equal(bide_run_loop_run_ready(&elsewhere), 0);
}

static void a_branch_that_was_not_started_is_freed_when_destroyed(void **state)
{
    (void)state;
    bide_run_loop loop, elsewhere;
    struct one_frame memory;
    bide_run_loop_init(&loop);
    bide_run_loop_init(&elsewhere);
    one_frame_init(&memory);
    struct parent_of_leaver self = {
        .allocator = &memory.allocator, .to = &elsewhere.scheduler, .how = OWNED_IN_WHEN};
    bide_start(&self.task.frame, &parent_of_leaver_body, &loop.context);
    bide_resume(&self.task.frame);
    assert_int_equal(memory.held, 1);
    bide_destroy(&self.task.frame);
    assert_true(self.finally && !self.after);
    assert_int_equal(memory.held, 0);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    assert_int_equal(bide_run_loop_run_ready(&elsewhere), 0);
}

static void what_is_not_begun_for_want_of_a_timer_is_freed(void **state)
{
    (void)state;
    bide_scheduler untimed = {.post = bide_inline_scheduler.post,
                              .take_back = bide_inline_scheduler.take_back};
    const bide_context context = {.scheduler = &untimed};
    struct one_frame memory;
    one_frame_init(&memory);
    struct parent_of_leaver self = {.allocator = &memory.allocator, .how = OWNED_WITH_DEADLINE};
    assert_int_equal(
        bide_sync_wait_in(&context, bide_task_init(&self.task, &parent_of_leaver_body)), 0);
    assert_int_equal(self.status, -ENOTSUP);
    assert_int_equal(memory.held, 0);
}

/* ---- Other kinds of coroutine ---- */

struct shared {
    bide_shared_task shared;
    bide_schedule_operation schedule;
    bool here;
};

bide_shared_coroutine(shared_body)
{
    bide_begin(shared_body, struct shared * self);
    bide_await(bide_schedule(&self->schedule, there));
    self->here = is_here();
    bide_return(-EDOM);
    bide_end();
}

static void a_shared_task_may_go_elsewhere(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_shared_task_waiter waiter;
    struct shared self;
    memset(&self, 0xa5, sizeof self); /* members that are not initialised are not used */
    bide_run_loop_init(&loop);
    bide_shared_task_init(&self.shared, &shared_body, &loop.context);
    assert_int_equal(bide_run_loop_wait(&loop, bide_shared_task_wait(&waiter, &self.shared)),
                     -EDOM);
    assert_false(self.here);
}

struct counter {
    bide_async_generator generator;
    bide_schedule_operation schedule;
    bide_scheduler *to;
    int i;
    bool finally;
};

bide_async_generator_coroutine(counter_body)
{
    bide_begin(counter_body, struct counter * self);
    for (self->i = 0; self->i < 3; self->i++) {
        bide_await(bide_schedule(&self->schedule, self->to));
        bide_yield(&self->i);
    }
    bide_finally();
    self->finally = true;
    bide_end();
}

struct adder {
    bide_task task;
    struct counter counter;
    bide_async_generator_next_operation next;
    int sum;
    bool all_here;
};

bide_coroutine(adder_body)
{
    bide_begin(adder_body, struct adder * self);
    bide_async_generator_init(&self->counter.generator, &counter_body);
    self->all_here = true;
    bide_for_await (&self->next, &self->counter.generator) {
        self->sum += 1 + *(int *)self->next.value;
        self->all_here = self->all_here && is_here();
    }
    bide_end();
}

static void a_generator_may_yield_from_elsewhere(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct adder self = {.counter.to = there};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &adder_body)), 0);
    assert_int_equal(self.sum, 6);
    assert_true(self.all_here && self.counter.finally);
}

static void destroyed_with_a_value_on_its_way_it_is_taken_back(void **state)
{
    (void)state;
    bide_run_loop loop, elsewhere;
    bide_run_loop_init(&loop);
    bide_run_loop_init(&elsewhere);
    struct adder self = {.counter.to = &elsewhere.scheduler};
    bide_start(&self.task.frame, &adder_body, &loop.context);
    bide_resume(&self.task.frame);
    assert_int_equal(bide_run_loop_run_ready(&elsewhere), 1);
    bide_destroy(&self.task.frame);
    assert_true(self.counter.finally);
    assert_int_equal(self.sum, 0);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
}

/* Its branch runs elsewhere. */
struct owner {
    bide_task task;
    bide_scheduler *to;
    bide_scope scope;
    bide_context context;
    bide_branch branch;
    struct asks child;
    bool after, finally;
};

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    bide_scope_init(&self->scope, &self->task.frame);
    self->context = *bide_this_context();
    self->context.scheduler = self->to;
    bide_scope_spawn_in(&self->scope, &self->branch, &self->context, asks(&self->child, 0), NULL);
    bide_await(bide_scope_join(&self->scope));
    self->after = true;
    bide_finally();
    self->finally = true;
    bide_end();
}

static void destroyed_with_its_scope_joined_but_not_resumed_it_leaves_nothing(void **state)
{
    (void)state;
    bide_run_loop loop, elsewhere;
    bide_run_loop_init(&loop);
    bide_run_loop_init(&elsewhere);
    struct owner self = {.to = &elsewhere.scheduler};
    bide_start(&self.task.frame, &owner_body, &loop.context);
    bide_resume(&self.task.frame);
    assert_int_equal(bide_run_loop_run_ready(&elsewhere), 1);
    bide_destroy(&self.task.frame); /* (with the scope still in the list, it is misuse) */
    assert_true(self.finally && !self.after);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule_moves_the_coroutine_and_no_other),
        cmocka_unit_test(schedule_may_be_used_again_with_another_operation),
        cmocka_unit_test(schedule_on_comes_back_and_resume_on_goes),
        cmocka_unit_test(with_its_own_scheduler_a_coroutine_lets_others_run),
        cmocka_unit_test(then_makes_its_own_of_what_something_ends_with),
        cmocka_unit_test(the_parent_of_a_coroutine_that_went_elsewhere_is_destroyed_with_it),
        cmocka_unit_test(what_is_posted_is_taken_back_when_destroyed),
        cmocka_unit_test(two_operations_may_take_turns),
        cmocka_unit_test(destroyed_with_the_way_back_posted_it_is_taken_back),
        cmocka_unit_test(what_was_to_start_elsewhere_is_freed_when_destroyed),
        cmocka_unit_test(a_branch_that_was_not_started_is_freed_when_destroyed),
        cmocka_unit_test(what_is_not_begun_for_want_of_a_timer_is_freed),
        cmocka_unit_test(a_shared_task_may_go_elsewhere),
        cmocka_unit_test(a_generator_may_yield_from_elsewhere),
        cmocka_unit_test(destroyed_with_a_value_on_its_way_it_is_taken_back),
        cmocka_unit_test(destroyed_with_its_scope_joined_but_not_resumed_it_leaves_nothing),
    };
    return cmocka_run_group_tests_name("schedule", tests, set_up, tear_down);
}
