/*
 * Destruction through wrappers: nothing that was handed over is lost or leaked, each branch is ended, and the stack stays
 * small.
 */
#include "wrapping.h"

#include "../../src/coroutine/internal.h"

#include "bide/async_generator.h"
#include "bide/condition.h"
#include "bide/create.h"
#include "bide/handle.h"
#include "bide/mutex.h"
#include "bide/recursive_generator.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/shared_task.h"
#include "bide/sim_loop.h"
#include "bide/spawn.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

/* ---- Roots ---- */

struct brief {
    bide_task task;
    int status;
};

bide_coroutine(brief_body)
{
    bide_begin(brief_body, struct brief * self);
    bide_return(self->status);
    bide_end();
}

static void destroying_a_spawned_root_that_has_ended_does_nothing(void **state)
{
    (void)state;
    bide_stop_source source;
    bide_stop_source_init(&source);
    bide_context context = bide_default_context;
    for (int i = 0; i < 2; i++) {
        struct brief brief = {.status = -EDOM};
        bide_spawned spawned;
        context.stop = i == 0 ? NULL : &source;
        bide_spawn(&spawned, &context, bide_task_init(&brief.task, &brief_body));
        assert_true(bide_event_is_set(&spawned.ended));
        assert_true(bide_done(&spawned.root.frame));
        memset(&spawned.root.links, 0xff, sizeof spawned.root.links);
        bide_destroy(&spawned.root.frame);
        assert_int_equal(spawned.root.status, -EDOM);
    }
    bide_stop_request(&source);
}

/* ---- Results that were handed over ---- */

/* Waits for a mutex behind a wrapper. */
struct waiter {
    bide_task task;
    const wrapper_row *row;
    wrapping wrapping;
    bide_mutex *mutex;
    bide_mutex_waiter lock;
    bide_condition *condition; /* or NULL: locks only */
    bide_condition_waiter wait;
    bool has_it;
    int status;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    if (self->condition != NULL) {
        bide_try(bide_mutex_lock(&self->lock, self->mutex));
        bide_await_status(
            self->status,
            self->row->wrap(&self->wrapping,
                            bide_condition_wait(&self->wait, self->condition, &self->lock)));
    } else {
        bide_await_status(self->status, self->row->wrap(&self->wrapping,
                                                        bide_mutex_lock(&self->lock, self->mutex)));
    }
    if (self->status == 0) {
        self->has_it = true;
        bide_mutex_unlock(&self->lock);
    }
    bide_end();
}

/* Hands over the awaited result, runs the loop for `turns` turns, then destroys the waiter. */
struct destroyer {
    bide_task task;
    bide_mutex_waiter *unlock;  /* or NULL */
    bide_condition *notify_one; /* or NULL */
    bide_frame *victim;
    bide_schedule_operation turn;
    int turns;
};

bide_coroutine(destroyer_body)
{
    bide_begin(destroyer_body, struct destroyer * self);
    if (self->unlock != NULL)
        bide_mutex_unlock(self->unlock);
    if (self->notify_one != NULL)
        bide_condition_notify_one(self->notify_one);
    for (; self->turns > 0; self->turns--)
        bide_await(bide_schedule(&self->turn, bide_this_context()->scheduler));
    bide_destroy(self->victim);
    bide_end();
}

enum { TURNS = 6 };

static bide_run_loop loop;

/* Destroys the waiter after `turns` turns; returns whether it had the result. */
static bool destroy_after(struct waiter *waiter, bide_spawned *spawned, int turns,
                          bide_mutex_waiter *unlock, bide_condition *notify_one)
{
    struct destroyer destroyer = {
        .victim = &spawned->root.frame, .turns = turns, .unlock = unlock, .notify_one = notify_one};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&destroyer.task, &destroyer_body)),
                     0);
    bide_run_loop_run_ready(&loop);
    return waiter->has_it;
}

static void what_was_handed_to_a_destroyed_waiter_goes_to_the_next(void **state)
{
    (void)state;
    static struct waiter waiter;
    bide_run_loop_init(&loop);
    for (size_t i = 0; i < WRAPPER_ROWS; i++) {
        int had = 0;
        for (int turns = 0; turns < TURNS; turns++) {
            bide_mutex mutex;
            bide_mutex_waiter first, next;
            bide_spawned spawned;
            bide_mutex_init(&mutex);
            memset(&waiter, 0, sizeof waiter);
            waiter.row = &wrapper_rows[i];
            waiter.wrapping.scheduler = &loop.scheduler;
            waiter.mutex = &mutex;
            assert_true(bide_mutex_try_lock(&first, &mutex));
            bide_spawn(&spawned, &loop.context, bide_task_init(&waiter.task, &waiter_body));
            bide_run_loop_run_ready(&loop);
            had += destroy_after(&waiter, &spawned, turns, &first, NULL);
            if (!bide_mutex_try_lock(&next, &mutex))
                fail_msg("%s, destroyed after %d turns: the mutex is lost", wrapper_rows[i].name,
                         turns);
            bide_mutex_unlock(&next);
            bide_mutex_destroy(&mutex);
        }
        assert_in_range(had, 1, TURNS - 1); /* destroyed before and after */
    }
}

static void what_was_free_and_taken_by_a_destroyed_waiter_goes_to_the_next(void **state)
{
    (void)state;
    static struct waiter waiter;
    bide_run_loop_init(&loop);
    for (size_t i = 0; i < WRAPPER_ROWS; i++) {
        for (int turns = 0; turns < TURNS; turns++) {
            bide_mutex mutex;
            bide_mutex_waiter next;
            bide_spawned spawned;
            bide_mutex_init(&mutex);
            memset(&waiter, 0xa5, sizeof waiter);
            waiter.row = &wrapper_rows[i];
            waiter.wrapping.scheduler = &loop.scheduler;
            waiter.mutex = &mutex;
            waiter.condition = NULL;
            waiter.has_it = false;
            bide_spawn(&spawned, &loop.context, bide_task_init(&waiter.task, &waiter_body));
            destroy_after(&waiter, &spawned, turns, NULL, NULL);
            if (!bide_mutex_try_lock(&next, &mutex))
                fail_msg("%s, destroyed after %d turns: the mutex is lost", wrapper_rows[i].name,
                         turns);
            bide_mutex_unlock(&next);
        }
    }
}

static void
a_destroyed_waiter_of_a_condition_has_neither_the_mutex_nor_the_notification(void **state)
{
    (void)state;
    static struct waiter waiters[2];
    bide_run_loop_init(&loop);
    for (size_t i = 0; i < WRAPPER_ROWS; i++) {
        for (int turns = 0; turns < TURNS; turns++) {
            bide_mutex mutex;
            bide_condition condition;
            bide_spawned spawned[2];
            bide_mutex_init(&mutex);
            bide_condition_init(&condition);
            memset(waiters, 0, sizeof waiters);
            for (int j = 0; j < 2; j++) {
                waiters[j].row = &wrapper_rows[i];
                waiters[j].wrapping.scheduler = &loop.scheduler;
                waiters[j].mutex = &mutex;
                waiters[j].condition = &condition;
                bide_spawn(&spawned[j], &loop.context,
                           bide_task_init(&waiters[j].task, &waiter_body));
                bide_run_loop_run_ready(&loop);
            }
            if (!destroy_after(&waiters[0], &spawned[0], turns, NULL, &condition))
                assert_true(waiters[1].has_it);
            else
                assert_false(waiters[1].has_it);
            bide_condition_notify_all(&condition);
            bide_run_loop_run_ready(&loop);
            assert_true(waiters[1].has_it);
            assert_false(bide_mutex_is_locked(&mutex));
        }
    }
}

/* ---- Branches of a scope ---- */

enum { BRANCHES = 3 };

struct owner {
    bide_task task;
    bide_scope scope;
    bide_branch branches[BRANCHES];
    struct brief brief;
    bide_event never;
    bide_event_waiter waits[BRANCHES];
    unsigned ended;
    int statuses[BRANCHES];
};

static void branch_ended(bide_branch *branch)
{
    struct owner *owner = bide_container_of(branch->group, struct owner, scope.group);
    owner->statuses[owner->ended++] = branch->status;
}

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn_in(&self->scope, &self->branches[0], bide_this_context(),
                        bide_task_init(&self->brief.task, &brief_body), branch_ended);
    for (int i = 1; i < BRANCHES; i++)
        bide_scope_spawn_in(&self->scope, &self->branches[i], bide_this_context(),
                            bide_event_wait(&self->waits[i], &self->never), branch_ended);
    bide_await(bide_scope_join(&self->scope));
    bide_end();
}

static void a_destroyed_owner_tells_each_branch_of_its_end_once(void **state)
{
    (void)state;
    for (int turns = 0; turns < 4; turns++) {
        struct owner owner = {.ended = 0};
        bide_spawned spawned;
        bide_run_loop_init(&loop);
        bide_event_init(&owner.never, false);
        bide_spawn(&spawned, &loop.context, bide_task_init(&owner.task, &owner_body));
        struct destroyer destroyer = {.victim = &spawned.root.frame, .turns = turns};
        assert_int_equal(
            bide_run_loop_wait(&loop, bide_task_init(&destroyer.task, &destroyer_body)), 0);
        assert_int_equal(owner.ended, BRANCHES);
        for (unsigned i = 0; i < owner.ended; i++)
            assert_true(owner.statuses[i] == -ECANCELED || owner.statuses[i] == 0);
    }
}

/* ---- Operations that never start ---- */

struct counting {
    bide_allocator allocator;
    int live;
};

static void *count_allocate(bide_allocator *allocator, size_t size)
{
    bide_container_of(allocator, struct counting, allocator)->live++;
    return malloc(size);
}

static void count_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    (void)size;
    bide_container_of(allocator, struct counting, allocator)->live--;
    free(memory);
}

static void what_is_never_begun_is_freed_behind_any_wrapper(void **state)
{
    (void)state;
    struct counting counting = {{count_allocate, count_deallocate}, 0};
    static wrapping inner, outer;
    bide_run_loop_init(&loop);
    for (size_t i = 0; i < WRAPPER_ROWS; i++) {
        for (size_t j = 0; j < WRAPPER_ROWS; j++) {
            bide_spawned spawned;
            if (wrapper_rows[i].wrap == wrap_scope || wrapper_rows[j].wrap == wrap_scope)
                continue; /* a task of the test's own, which has not started its operation */
            inner.scheduler = outer.scheduler = &loop.scheduler;
            struct brief *brief = bide_create(sizeof *brief, &brief_body, &counting.allocator);
            brief->status = 0;
            bide_awaiter *awaiter = wrapper_rows[i].wrap(&inner, bide_owned(brief, &brief_body));
            bide_spawn(&spawned, &loop.context, wrapper_rows[j].wrap(&outer, awaiter));
            assert_int_equal(counting.live, 1);
            bide_destroy(&spawned.root.frame);
            if (counting.live != 0)
                fail_msg("%s in %s: not freed", wrapper_rows[i].name, wrapper_rows[j].name);
        }
    }
}

/* ---- A small stack ---- */

enum { DEPTH = 20000, STACK = 96 * 1024 };

struct link {
    bide_task task;
    const wrapper_row *row;
    wrapping wrapping;
    struct link *next; /* or NULL: waits forever */
    bide_event *event;
    bide_event_waiter wait;
    unsigned *finals;
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    if (self->next != NULL)
        bide_await(self->row->wrap(&self->wrapping, bide_task_init(&self->next->task, &link_body)));
    else
        bide_await(bide_event_wait(&self->wait, self->event));
    bide_finally();
    ++*self->finals;
    bide_end();
}

static void *destroy_chain(void *argument)
{
    const wrapper_row *row = argument;
    bide_event event;
    bide_spawned spawned;
    unsigned finals = 0;
    struct link *links = malloc(DEPTH * sizeof *links);
    if (links == NULL)
        return (void *)"no memory";
    bide_run_loop_init(&loop);
    bide_event_init(&event, false);
    for (int i = 0; i < DEPTH; i++) {
        links[i].row = row;
        links[i].wrapping.scheduler = &loop.scheduler;
        links[i].next = i + 1 < DEPTH ? &links[i + 1] : NULL;
        links[i].event = &event;
        links[i].finals = &finals;
    }
    bide_spawn(&spawned, &loop.context, bide_task_init(&links[0].task, &link_body));
    bide_run_loop_run_ready(&loop);
    bide_destroy(&spawned.root.frame);
    bool good = finals == DEPTH && bide_atomic_load(&event.waiters.word, relaxed) == 0;
    free(links);
    return good ? NULL : (void *)"not all of the chain was destroyed";
}

static void a_long_chain_through_any_wrapper_is_destroyed_on_a_small_stack(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t min = (size_t)PTHREAD_STACK_MIN; /* 128 KiB on some processors */
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK < min ? min : STACK), 0);
    for (size_t i = 0; i < WRAPPER_ROWS; i++) {
        pthread_t thread;
        void *fault;
        assert_int_equal(pthread_create(&thread, &attributes, destroy_chain,
                                        (void *)(uintptr_t)&wrapper_rows[i]),
                         0);
        pthread_join(thread, &fault);
        if (fault != NULL)
            fail_msg("%s: %s", wrapper_rows[i].name, (const char *)fault);
    }
    pthread_attr_destroy(&attributes);
}

/* ---- `finally` runs once, wherever a coroutine stands ---- */

typedef enum stands {
    STANDS_WAITING,
    STANDS_AT_YIELD,
    STANDS_GIVING_WAY, /* at an operation that was ready */
    STANDS_ENDED,      /* its parent is posted, and has not resumed */
    STANDS
} stands;

typedef enum part_kind { PART_TASK, PART_ASYNC_GENERATOR, PART_SHARED, PART_KINDS } part_kind;

static struct {
    unsigned begun, ended;
    bide_event never, set;
} swept;

static bide_sim_loop turns_of;

struct part {
    union {
        bide_task task;
        bide_async_generator generator;
        bide_recursive_generator nested;
        bide_shared_task shared;
    } head;
    stands stands;
    unsigned depth; /* of those that are nested below it */
    bool is_owned;
    bide_event_waiter wait;
    unsigned value;
    struct part *below;
};

#define PART_BEGINS(name)                                     \
    bide_begin(name, struct part *self);                      \
    swept.begun++;                                            \
    if (self->stands == STANDS_WAITING)                       \
        bide_try(bide_event_wait(&self->wait, &swept.never)); \
    if (self->stands == STANDS_GIVING_WAY)                    \
    bide_try(bide_event_wait(&self->wait, &swept.set))

bide_coroutine(task_part_body)
{
    PART_BEGINS(task_part_body);
    bide_finally();
    swept.ended++;
    bide_end();
}

bide_shared_coroutine(shared_part_body)
{
    PART_BEGINS(shared_part_body);
    bide_finally();
    swept.ended++;
    bide_end();
}

bide_async_generator_coroutine(generator_part_body)
{
    PART_BEGINS(generator_part_body);
    if (self->stands == STANDS_AT_YIELD)
        bide_yield(&self->value);
    bide_finally();
    swept.ended++;
    bide_end();
}

/* Awaits a part, which is in its frame or was created. */
struct whole {
    bide_task task;
    part_kind kind;
    stands stands;
    bool is_owned;
    struct part placed;
    struct part *part;
    bide_context context; /* of a shared task */
    bide_shared_task_waiter shared_wait;
    bide_async_generator_next_operation next;
    bide_event_waiter wait;
    bide_schedule_on_operation there;
    bool has_resumed;
};

static bide_awaiter *await_part(struct whole *self)
{
    self->part->stands = self->stands;
    switch (self->kind) {
    case PART_ASYNC_GENERATOR:
        bide_async_generator_init(&self->part->head.generator, &generator_part_body);
        return bide_async_generator_next(&self->next, &self->part->head.generator);
    case PART_SHARED:
        bide_shared_task_init(&self->part->head.shared, &shared_part_body, &self->context);
        return bide_shared_task_wait(&self->shared_wait, &self->part->head.shared);
    case PART_TASK:
    default:
        return self->is_owned ? bide_owned(self->part, &task_part_body)
                              : bide_task_init(&self->part->head.task, &task_part_body);
    }
}

bide_coroutine(whole_body)
{
    bide_begin(whole_body, struct whole * self);
    self->part = &self->placed;
    if (self->is_owned)
        self->part = bide_create(sizeof *self->part,
                                 self->kind == PART_TASK ? &task_part_body : &generator_part_body,
                                 &bide_heap);
    if (self->stands == STANDS_ENDED)
        bide_await(
            bide_schedule_on(&self->there, bide_this_context()->scheduler, await_part(self)));
    else
        bide_await(await_part(self));
    self->has_resumed = true;
    bide_await(bide_event_wait(&self->wait, &swept.never)); /* a generator has yielded */
    bide_finally();
    if (self->kind == PART_ASYNC_GENERATOR) {
        bide_async_generator_destroy(&self->part->head.generator);
        if (self->is_owned)
            bide_free(&self->part->head.generator.frame);
    }
    bide_end();
}

static void destroy_where_it_stands(part_kind kind, stands where, bool is_owned)
{
    bide_spawned spawned;
    struct whole whole = {.kind = kind, .stands = where, .is_owned = is_owned};
    swept.begun = swept.ended = 0;
    whole.context = turns_of.context;
    bide_spawn(&spawned, &turns_of.context, bide_task_init(&whole.task, &whole_body));
    int32_t full = bide_budget_full_;
    if (where == STANDS_GIVING_WAY)
        bide_budget_full_ = 0;
    /* All but the last turn, after which the whole would have resumed. */
    for (unsigned turns = where == STANDS_ENDED ? 2 : 1; turns != 0; turns--)
        assert_true(bide_sim_loop_step(&turns_of));
    bide_budget_full_ = full;
    assert_int_equal(swept.begun, 1);
    assert_int_equal(swept.ended, where == STANDS_ENDED);
    assert_int_equal(whole.has_resumed, where == STANDS_AT_YIELD);
    bide_destroy(&spawned.root.frame);
    if (kind == PART_SHARED && where != STANDS_ENDED) { /* it belongs to all its waiters */
        assert_int_equal(swept.ended, 0);
        bide_destroy(&whole.part->head.shared.frame);
    }
    assert_int_equal(swept.begun, 1);
    assert_int_equal(swept.ended, 1);
    while (bide_sim_loop_step(&turns_of)) {
    }
    assert_int_equal(swept.ended, 1);
}

static void finally_runs_once_wherever_a_coroutine_is_destroyed(void **state)
{
    (void)state;
    bide_sim_loop_init(&turns_of, 1);
    bide_event_init(&swept.never, false);
    bide_event_init(&swept.set, true);
    for (part_kind kind = 0; kind < PART_KINDS; kind++) {
        for (stands where = 0; where < STANDS; where++) {
            for (int is_owned = 0; is_owned < 2; is_owned++) {
                if ((where == STANDS_AT_YIELD && kind != PART_ASYNC_GENERATOR) ||
                    (is_owned && kind == PART_SHARED))
                    continue;
                destroy_where_it_stands(kind, where, is_owned);
            }
        }
    }
    bide_event_destroy(&swept.never);
    bide_event_destroy(&swept.set);
    bide_sim_loop_destroy(&turns_of);
}

static const bide_point *nested_part_point(void);

static struct part *make_nested(unsigned depth, bool is_owned, struct part *memory)
{
    struct part *part =
        is_owned ? bide_create(sizeof *part, nested_part_point(), &bide_heap) : memory;
    memset(part, 0, sizeof *part);
    part->depth = depth;
    part->is_owned = is_owned;
    part->below = memory + 1;
    return part;
}

bide_recursive_generator_coroutine(nested_part_body)
{
    bide_begin(nested_part_body, struct part * self);
    swept.begun++;
    if (self->depth != 0 && self->is_owned) {
        bide_yield_from_owned(make_nested(self->depth - 1, true, self->below), &nested_part_body);
    } else if (self->depth != 0) {
        make_nested(self->depth - 1, false, self->below);
        bide_yield_from(
            bide_recursive_generator_init(&self->below->head.nested, &nested_part_body));
    }
    bide_yield(&self->value);
    bide_finally();
    swept.ended++;
    bide_end();
}

static const bide_point *nested_part_point(void)
{
    return &nested_part_body;
}

enum { NESTED = 4 };

/* Left after each of its values: the innermost first. */
static void finally_runs_once_in_each_generator_of_a_chain_that_is_left(void **state)
{
    (void)state;
    for (unsigned values = 1; values <= NESTED; values++) {
        for (int is_owned = 0; is_owned < 2; is_owned++) {
            struct part memory[NESTED + 1];
            struct part *root = make_nested(NESTED - 1, false, memory);
            root->is_owned = is_owned;
            swept.begun = swept.ended = 0;
            bide_recursive_generator_init(&root->head.nested, &nested_part_body);
            for (unsigned i = 0; i < values; i++)
                assert_non_null(bide_recursive_generator_next(&root->head.nested));
            assert_int_equal(swept.begun, NESTED);
            assert_int_equal(swept.ended, values - 1);
            bide_recursive_generator_destroy(&root->head.nested);
            assert_int_equal(swept.ended, NESTED);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finally_runs_once_wherever_a_coroutine_is_destroyed),
        cmocka_unit_test(finally_runs_once_in_each_generator_of_a_chain_that_is_left),
        cmocka_unit_test(destroying_a_spawned_root_that_has_ended_does_nothing),
        cmocka_unit_test(what_was_handed_to_a_destroyed_waiter_goes_to_the_next),
        cmocka_unit_test(what_was_free_and_taken_by_a_destroyed_waiter_goes_to_the_next),
        cmocka_unit_test(
            a_destroyed_waiter_of_a_condition_has_neither_the_mutex_nor_the_notification),
        cmocka_unit_test(a_destroyed_owner_tells_each_branch_of_its_end_once),
        cmocka_unit_test(what_is_never_begun_is_freed_behind_any_wrapper),
        cmocka_unit_test(a_long_chain_through_any_wrapper_is_destroyed_on_a_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
