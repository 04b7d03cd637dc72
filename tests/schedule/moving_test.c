/*
 * Moves to other schedulers, inside wrappers and beside other coroutines: a move changes where the moving coroutine runs,
 * and nothing that another coroutine can see.
 */
#include "wrapping.h"

#include "bide/inspect.h"
#include "bide/run_loop.h"
#include "bide/shared_task.h"
#include "bide/spawn.h"
#include "bide/stop_callback.h"
#include "bide/sync_wait.h"
#include "bide/then.h"
#include "bide/thread_pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

static bide_thread_pool *pool;
static bide_scheduler *there;
static bide_run_loop loop;
static pthread_t here;

static int set_up(void **state)
{
    (void)state;
    here = pthread_self();
    bide_run_loop_init(&loop);
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

static int forward(void *argument, int status)
{
    (void)argument;
    return status;
}

static void a_wait_of_a_run_loop_for_a_move_ends(void **state)
{
    (void)state;
    bide_schedule_operation schedule;
    bide_resume_on_operation resume_on;
    bide_then_operation then;
    bide_schedule_operation second;
    assert_int_equal(bide_run_loop_wait(&loop, bide_schedule(&schedule, there)), 0);
    assert_int_equal(
        bide_run_loop_wait(&loop, bide_resume_on(&resume_on, there, bide_schedule(&second, there))),
        0);
    assert_int_equal(
        bide_run_loop_wait(&loop, bide_then(&then, bide_schedule(&schedule, there), forward, NULL)),
        0);
    assert_int_equal(
        bide_sync_wait(bide_then(&then, bide_schedule(&schedule, there), forward, NULL)), 0);
}

/* ---- A move given to a wrapper ---- */

struct parent {
    bide_task task;
    wrapping wrapping, outer;
    const wrapper_row *row, *outer_row; /* the second may be NULL */
    bool by_resume_on;
    bide_schedule_operation schedule, yield;
    bide_resume_on_operation resume_on;
    bide_then_operation then;
    int status;
    bool after_here, later_here, same_context;
    const bide_context *context;
};

static bide_awaiter *a_move(struct parent *self)
{
    bide_awaiter *move = bide_schedule(&self->schedule, there);
    if (self->by_resume_on)
        move = bide_resume_on(&self->resume_on, there, bide_then(&self->then, move, forward, NULL));
    return move;
}

static bide_awaiter *wrapped_move(struct parent *self)
{
    bide_awaiter *wrapped = self->row->wrap(&self->wrapping, a_move(self));
    return self->outer_row != NULL ? self->outer_row->wrap(&self->outer, wrapped) : wrapped;
}

bide_coroutine(parent_body)
{
    bide_begin(parent_body, struct parent * self);
    self->context = bide_this_context();
    bide_await_status(self->status, wrapped_move(self));
    self->after_here = is_here();
    self->same_context = self->context->scheduler == &loop.scheduler &&
                         bide_this_context()->scheduler == &loop.scheduler;
    bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    self->later_here = is_here();
    bide_end();
}

static void check_move(const wrapper_row *row, const wrapper_row *outer, bool by_resume_on)
{
    static struct parent self;
    memset(&self, 0, sizeof self);
    self.row = row;
    self.outer_row = outer;
    self.by_resume_on = by_resume_on;
    self.wrapping.scheduler = self.outer.scheduler = &loop.scheduler;
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &parent_body)), 0);
    assert_int_equal(self.status, 0);
    if (!self.after_here || !self.later_here || !self.same_context)
        fail_msg("%s in %s: goes on elsewhere", row->name, outer != NULL ? outer->name : "nothing");
}

static void a_move_given_to_a_wrapper_leaves_the_parent_where_it_belongs(void **state)
{
    (void)state;
    for (int by_resume_on = 0; by_resume_on < 2; by_resume_on++) {
        for (size_t i = 0; i < WRAPPER_ROWS; i++) {
            check_move(&wrapper_rows[i], NULL, by_resume_on);
            for (size_t j = 0; j < WRAPPER_ROWS; j++)
                check_move(&wrapper_rows[i], &wrapper_rows[j], by_resume_on);
        }
    }
}

/* ---- Roots ---- */

static void a_spawned_move_is_detached_from_its_stop_source(void **state)
{
    (void)state;
    bide_stop_source source;
    bide_schedule_operation schedule;
    bide_event_waiter wait;
    bide_stop_source_init(&source);
    bide_context context = loop.context;
    context.stop = &source;
    bide_spawned *spawned = malloc(sizeof *spawned);
    bide_spawn(spawned, &context, bide_schedule(&schedule, there));
    assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned->ended)), 0);
    assert_null(source.first_child);
    free(spawned);
    bide_stop_request(&source);
}

struct spawner {
    bide_task task;
    struct sleeper {
        bide_task task;
        bide_event *event;
        bide_event_waiter wait;
        bool was_here, is_here;
    } spawned;
    bide_spawned root;
    bide_event event;
    bide_schedule_operation schedule;
    bide_event_waiter wait;
    bool moves_back;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    self->was_here = is_here();
    bide_await(bide_event_wait(&self->wait, self->event));
    self->is_here = is_here();
    bide_end();
}

bide_coroutine(spawner_body)
{
    bide_begin(spawner_body, struct spawner * self);
    /* this makes its context that of its own operation, which the next move changes */
    bide_await(bide_schedule(&self->schedule, there));
    bide_await(bide_schedule(&self->schedule, &loop.scheduler));
    self->spawned.event = &self->event;
    bide_spawn(&self->root, bide_this_context(),
               bide_task_init(&self->spawned.task, &sleeper_body));
    bide_await(bide_schedule(&self->schedule, there));
    bide_event_set(&self->event);
    bide_await(bide_event_wait(&self->wait, &self->root.ended));
    bide_end();
}

static void what_is_spawned_stays_where_it_is_when_its_spawner_moves(void **state)
{
    (void)state;
    static struct spawner self;
    for (int i = 0; i < 200; i++) {
        memset(&self, 0, sizeof self);
        bide_event_init(&self.event, false);
        assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &spawner_body)), 0);
        assert_true(self.spawned.was_here);
        assert_true(self.spawned.is_here);
    }
}

/* ---- A scope whose owner moves while its coroutines spawn ---- */

enum { GRANDCHILDREN = 16 };

struct child {
    bide_task task;
    bide_scope *scope;
    bide_schedule_operation schedule;
    bide_branch branches[GRANDCHILDREN];
    struct leaf {
        bide_task task;
        bool here;
    } leaves[GRANDCHILDREN];
    int i;
};

bide_coroutine(leaf_body)
{
    bide_begin(leaf_body, struct leaf * self);
    self->here = is_here();
    bide_end();
}

bide_coroutine(child_body)
{
    bide_begin(child_body, struct child * self);
    bide_await(bide_schedule(&self->schedule, there));
    for (self->i = 0; self->i < GRANDCHILDREN; self->i++) {
        struct leaf *leaf = &self->leaves[self->i];
        bide_scope_spawn(self->scope, &self->branches[self->i],
                         bide_task_init(&leaf->task, &leaf_body));
    }
    bide_end();
}

struct owner {
    bide_task task;
    bide_scope scope;
    bide_branch branch;
    struct child child;
    bide_schedule_operation first, second;
    int i;
};

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    bide_await(bide_schedule(&self->first, there));
    bide_await(bide_schedule(&self->first, &loop.scheduler));
    bide_scope_init(&self->scope, bide_this_frame());
    self->child.scope = &self->scope;
    bide_scope_spawn(&self->scope, &self->branch, bide_task_init(&self->child.task, &child_body));
    for (self->i = 0; self->i < 8; self->i++) {
        bide_await(bide_schedule(&self->first, there));
        bide_await(bide_schedule(&self->first, &loop.scheduler));
    }
    bide_try(bide_scope_join(&self->scope));
    bide_end();
}

static void a_scope_spawns_where_its_owner_opened_it_while_that_moves(void **state)
{
    (void)state;
    static struct owner self;
    for (int i = 0; i < 200; i++) {
        memset(&self, 0, sizeof self);
        assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &owner_body)), 0);
        for (int j = 0; j < GRANDCHILDREN; j++)
            assert_true(self.child.leaves[j].here);
    }
}

/* ---- A stop callback made with bide_this_context() ---- */

struct caller {
    bide_task task;
    bide_stop_source *source;
    bide_stop_callback callback;
    bide_stop_callback_waiter wait;
    bide_schedule_operation schedule;
    bide_atomic(bool) called_here;
    int i;
};

static void note_where(void *argument)
{
    bide_atomic_store((bide_atomic(bool) *)argument, is_here(), relaxed);
}

bide_coroutine(caller_body)
{
    bide_begin(caller_body, struct caller * self);
    bide_await(bide_schedule(&self->schedule, there));
    bide_await(bide_schedule(&self->schedule, &loop.scheduler));
    bide_stop_callback_init(&self->callback, self->source, bide_this_context(), note_where,
                            &self->called_here);
    for (self->i = 0; !bide_stop_requested(self->source) || self->i < 8; self->i++) {
        bide_await(bide_schedule(&self->schedule, there));
        bide_await(bide_schedule(&self->schedule, &loop.scheduler));
    }
    if (!bide_stop_callback_remove(&self->callback))
        bide_await(bide_stop_callback_wait(&self->wait, &self->callback));
    bide_end();
}

static void *request(void *source)
{
    bide_stop_request(source);
    return NULL;
}

static void a_stop_callback_stays_where_it_was_made(void **state)
{
    (void)state;
    static struct caller self;
    for (int i = 0; i < 200; i++) {
        bide_stop_source source;
        pthread_t thread;
        bide_stop_source_init(&source);
        memset(&self, 0, sizeof self);
        self.source = &source;
        bide_atomic_init(&self.called_here, false);
        assert_int_equal(pthread_create(&thread, NULL, request, &source), 0);
        assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &caller_body)), 0);
        pthread_join(thread, NULL);
        assert_true(bide_atomic_load(&self.called_here, relaxed));
    }
}

/* ---- A shared task that was started by posting, and has moved ---- */

struct shared {
    bide_shared_task shared;
    bide_schedule_operation schedule;
    bide_backtrace_entry entries[8];
    size_t depth;
};

bide_shared_coroutine(shared_body)
{
    bide_begin(shared_body, struct shared * self);
    bide_await(bide_schedule(&self->schedule, there));
    self->depth = bide_backtrace_from_(bide_this_frame(), __LINE__, self->entries, 8);
    bide_end();
}

static void the_backtrace_of_a_shared_task_that_moved_ends(void **state)
{
    (void)state;
    struct shared self;
    bide_shared_task_waiter wait;
    /* no thread runs the loop yet: the task is posted to it */
    bide_shared_task_init(&self.shared, &shared_body, &loop.context);
    bide_context pool_context = {there, NULL, NULL, NULL, NULL};
    bide_spawned spawned;
    bide_event_waiter ended;
    bide_spawn(&spawned, &pool_context, bide_shared_task_wait(&wait, &self.shared));
    assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&ended, &spawned.ended)), 0);
    assert_int_equal(spawned.root.status, 0);
    assert_int_equal(self.depth, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wait_of_a_run_loop_for_a_move_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_move_given_to_a_wrapper_leaves_the_parent_where_it_belongs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_spawned_move_is_detached_from_its_stop_source, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_spawned_stays_where_it_is_when_its_spawner_moves,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_scope_spawns_where_its_owner_opened_it_while_that_moves,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stop_callback_stays_where_it_was_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_backtrace_of_a_shared_task_that_moved_ends, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
