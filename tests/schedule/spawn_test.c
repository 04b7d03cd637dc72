/*
 * Spawned coroutines: each runs in its own context, its end is reported once, and nothing of it is touched
 * after that.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/create.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>

static void the_end_is_announced_and_the_status_is_there(void **state)
{
    (void)state;
    const int statuses[] = {0, -EDOM};
    for (int i = 0; i < 2; i++) {
        bide_event event;
        bide_event_init(&event, false);
        witness task;
        bide_spawned spawned;
        bide_spawn(&spawned, &bide_default_context, witness_run(&task, &event, statuses[i]));
        assert_false(bide_event_is_set(&spawned.ended));
        assert_int_equal(witness_ends(&task), 0);
        bide_event_set(&event);
        assert_true(bide_event_is_set(&spawned.ended));
        assert_int_equal(spawned.root.status, statuses[i]);
        assert_int_equal(witness_ends(&task), 1);
    }
}

static void what_is_spawned_on_a_loop_begins_there(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    witness task;
    bide_spawned spawned;
    bide_spawn(&spawned, &loop.context, witness_run(&task, NULL, -EDOM));
    assert_int_equal(witness_ends(&task), 0);
    assert_int_equal(bide_run_loop_run_ready(&loop), 1);
    assert_true(bide_event_is_set(&spawned.ended));
    assert_int_equal(spawned.root.status, -EDOM);
}

struct created {
    bide_task task;
};

bide_coroutine(created_body)
{
    bide_begin(created_body, struct created * self);
    (void)self;
    bide_end();
}

static void what_is_spawned_can_be_destroyed_before_it_begins(void **state)
{
    (void)state;
    static _Alignas(BIDE_ALLOCATOR_ALIGN) unsigned char memory[256];
    bide_arena arena;
    bide_arena_init(&arena, memory, sizeof memory);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    bide_context context = loop.context;
    context.stop = &stop;
    witness task;
    bide_spawned spawned[2];
    bide_spawn(&spawned[0], &context, witness_run(&task, NULL, 0));
    bide_spawn(&spawned[1], &context,
               bide_owned(bide_create(sizeof(struct created), &created_body, &arena.allocator),
                          &created_body));
    assert_true(arena.used > 0);
    for (int i = 0; i < 2; i++) {
        bide_destroy(&spawned[i].root.frame);
        assert_true(bide_done(&spawned[i].root.frame));
        assert_false(bide_event_is_set(&spawned[i].ended));
    }
    assert_int_equal(arena.used, 0);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    assert_int_equal(witness_ends(&task), 0);
    assert_null(stop.first_child);
}

/* ---- A coroutine that spawns others ---- */

enum { CHILDREN = 50 };

/* Spawns its children in another context, waits for their ends, and adds up their statuses. */
struct spawner {
    bide_task task;
    const bide_context *context;
    bide_event *begin; /* or NULL */
    unsigned i;
    int sum;
    unsigned began_early; /* children that had ended before the spawner suspended */
    bide_event_waiter wait;
    bide_spawned spawned[CHILDREN];
    witness children[CHILDREN];
};

bide_coroutine(spawner_body)
{
    bide_begin(spawner_body, struct spawner * self);
    for (unsigned i = 0; i < CHILDREN; i++)
        bide_spawn(&self->spawned[i], self->context,
                   witness_run(&self->children[i], self->begin, -(int)i));
    for (unsigned i = 0; i < CHILDREN; i++)
        self->began_early += witness_ends(&self->children[i]);
    if (self->begin != NULL)
        bide_event_set(self->begin);
    for (self->i = 0; self->i < CHILDREN; self->i++) {
        bide_await(bide_event_wait(&self->wait, &self->spawned[self->i].ended));
        self->sum += self->spawned[self->i].root.status;
    }
    bide_end();
}

static void assert_all_ended(struct spawner *spawner)
{
    assert_int_equal(spawner->sum, -CHILDREN * (CHILDREN - 1) / 2);
    for (unsigned i = 0; i < CHILDREN; i++) {
        assert_int_equal(witness_ends(&spawner->children[i]), 1);
        assert_ptr_equal(spawner->children[i].scheduler, spawner->context->scheduler);
    }
}

static void a_coroutine_waits_for_what_it_spawned_in_other_contexts(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 3), 0);
    const bide_context contexts[] = {
        {.scheduler = bide_thread_pool_scheduler(pool), .name = "pool"},
        {.scheduler = &loop.scheduler, .name = "another on the same loop"},
        {.scheduler = &bide_inline_scheduler, .name = "inline"},
    };
    for (int i = 0; i < 6; i++) {
        bide_event begin;
        bide_event_init(&begin, false);
        struct spawner spawner = {.context = &contexts[i % 3], .begin = i < 3 ? NULL : &begin};
        bide_awaiter *task = bide_task_init(&spawner.task, &spawner_body);
        assert_int_equal(bide_run_loop_wait(&loop, task), 0);
        assert_all_ended(&spawner);
    }
    bide_thread_pool_destroy(pool);
}

static void nothing_runs_on_the_stack_of_the_coroutine_that_spawns_it(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct spawner on_loop = {.context = &loop.context};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&on_loop.task, &spawner_body)), 0);
    assert_int_equal(on_loop.began_early, 0);
    assert_all_ended(&on_loop);

    struct spawner inlined = {.context = &bide_default_context};
    assert_int_equal(bide_sync_wait(bide_task_init(&inlined.task, &spawner_body)), 0);
    assert_int_equal(inlined.began_early, 0);
    assert_all_ended(&inlined);
}

/* ---- Memory ---- */

struct life {
    bide_spawned spawned;
    witness task;
    bide_event event;
};

static void what_was_spawned_may_be_freed_when_it_has_ended(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    const int rounds = (int)rounds_of(10000);
    for (int i = 0; i < rounds; i++) {
        struct life *life = malloc(sizeof *life);
        assert_non_null(life);
        bool waits = testing_random(&random) % 2 == 0;
        bool is_awaited = testing_random(&random) % 2 == 0;
        bide_event_init(&life->event, false);
        bide_spawn(&life->spawned, &context,
                   witness_run(&life->task, waits ? &life->event : NULL, -i));
        schedule_jitter(&random);
        if (waits) {
            /* This thread sets the event, so it may free it. */
            bide_event_set(&life->event);
        }
        if (is_awaited) {
            bide_event_waiter wait;
            bide_sync_wait(bide_event_wait(&wait, &life->spawned.ended));
        } else {
            schedule_until(bide_event_is_set(&life->spawned.ended));
        }
        int status = life->spawned.root.status;
        free(life);
        assert_int_equal(status, -i);
    }
    bide_thread_pool_destroy(pool);
}

/* Spawns one task after the other, and frees each when it has ended. */
struct freer {
    bide_task task;
    bide_spawned spawned;
    const bide_context *context;
    struct life *life;
    bide_event_waiter wait;
    int i;
    unsigned wrong;
};

bide_coroutine(freer_body)
{
    bide_begin(freer_body, struct freer * self);
    for (self->i = 0; self->i < 3000; self->i++) {
        self->life = malloc(sizeof *self->life);
        if (self->life == NULL)
            bide_return(-ENOMEM);
        bide_spawn(&self->life->spawned, self->context,
                   witness_run(&self->life->task, NULL, -self->i));
        bide_await(bide_event_wait(&self->wait, &self->life->spawned.ended));
        if (self->life->spawned.root.status != -self->i)
            self->wrong++;
        free(self->life);
    }
    bide_end();
}

static void a_coroutine_may_free_what_it_spawned_when_it_has_ended(void **state)
{
    (void)state;
    enum { FREERS = 3 };
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 3), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    struct freer freers[FREERS];
    for (int i = 0; i < FREERS; i++) {
        freers[i].context = &context;
        freers[i].wrong = 0;
        bide_spawn(&freers[i].spawned, &context, bide_task_init(&freers[i].task, &freer_body));
    }
    for (int i = 0; i < FREERS; i++) {
        bide_event_waiter wait;
        bide_sync_wait(bide_event_wait(&wait, &freers[i].spawned.ended));
        assert_int_equal(freers[i].spawned.root.status, 0);
        assert_int_equal(freers[i].wrong, 0);
    }
    bide_thread_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_is_announced_and_the_status_is_there),
        cmocka_unit_test(what_is_spawned_can_be_destroyed_before_it_begins),
        cmocka_unit_test(what_is_spawned_on_a_loop_begins_there),
        cmocka_unit_test(a_coroutine_waits_for_what_it_spawned_in_other_contexts),
        cmocka_unit_test(nothing_runs_on_the_stack_of_the_coroutine_that_spawns_it),
        cmocka_unit_test(what_was_spawned_may_be_freed_when_it_has_ended),
        cmocka_unit_test(a_coroutine_may_free_what_it_spawned_when_it_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
