/*
 * The shutdown of a pool with a deadline: it waits for what ends, counts what does not, and leaves a pool that runs
 * nothing more.
 */
#define _GNU_SOURCE
#include "by_readiness.h"
#include "misuse.h"
#include "schedule_testing.h"

#include "bide/deadline.h"
#include "bide/dump.h"
#include "bide/handle.h"
#include "bide/io_pool.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The kinds of coroutine: `SPINS` alone does not suspend; the last two do not end by themselves. */
enum { ENDS, SLEEPS, SPINS, WAITS, YIELDS, KINDS };

struct member {
    bide_task task;
    int kind;
    uint64_t pause;
    bide_event *event;
    bide_sleep sleep;
    bide_event_waiter wait;
    bide_schedule_operation hop;
    bide_atomic(uint32_t) began;
    bide_atomic(uint32_t) is_released; /* of one that spins */
    bide_atomic(uint32_t) has_ended;
    bide_spawned spawned;
};

bide_coroutine(member_body)
{
    bide_begin(member_body, struct member * self);
    bide_atomic_store(&self->began, 1, release);
    if (self->kind == SLEEPS)
        bide_await(bide_sleep_for(&self->sleep, self->pause));
    else if (self->kind == WAITS)
        bide_await(bide_event_wait(&self->wait, self->event));
    while (self->kind == SPINS && bide_atomic_load(&self->is_released, acquire) == 0)
        sched_yield();
    while (self->kind == YIELDS)
        bide_await(bide_schedule(&self->hop, bide_this_context()->scheduler));
    bide_atomic_store(&self->has_ended, 1, release);
    bide_end();
}

static void begin(struct member *self, bide_thread_pool *pool, int kind, bide_event *event)
{
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    self->kind = kind;
    self->event = event;
    bide_atomic_init(&self->began, 0);
    bide_atomic_init(&self->is_released, 0);
    bide_atomic_init(&self->has_ended, 0);
    bide_spawn(&self->spawned, &context, bide_task_init(&self->task, &member_body));
}

static bool has_ended(struct member *self)
{
    return bide_atomic_load(&self->has_ended, acquire) != 0;
}

static bide_thread_pool *create(unsigned threads)
{
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
    return pool;
}

/* Of a pool that is shut down: when its threads have ended. */
static int shut_down_again(bide_thread_pool *pool, bide_thread_pool_remaining *remaining)
{
    int status = bide_thread_pool_shutdown(pool, BIDE_FOREVER, remaining);
    assert_int_equal(remaining->threads, 0);
    return status;
}

static void assert_nothing_remains(const bide_thread_pool_remaining *remaining)
{
    assert_int_equal(remaining->tasks, 0);
    assert_int_equal(remaining->threads, 0);
    assert_int_equal(remaining->ready, 0);
    assert_false(remaining->has_timers);
}

/* ---- What ends ---- */

static void a_pool_without_work_ends(void **state)
{
    (void)state;
    bide_thread_pool_remaining remaining;
    bide_thread_pool *pool = create(3);
    assert_int_equal(bide_thread_pool_shutdown(pool, BIDE_FOREVER, &remaining), 0);
    assert_nothing_remains(&remaining);
    assert_int_equal(bide_thread_pool_shutdown(pool, 0, NULL), 0);
    bide_thread_pool_destroy(pool);
}

static void it_waits_for_what_sleeps_and_waits(void **state)
{
    (void)state;
    enum { MEMBERS = 3 };
    struct member members[MEMBERS];
    bide_thread_pool_remaining remaining;
    bide_event event;
    bide_thread_pool *pool = create(2);
    bide_event_init(&event, false);
    begin(&members[0], pool, ENDS, NULL);
    begin(&members[1], pool, WAITS, &event);
    members[2].pause = 3000000;
    begin(&members[2], pool, SLEEPS, NULL);
    schedule_until(schedule_is_awaited(&event));
    bide_event_set(&event);
    assert_int_equal(bide_thread_pool_shutdown(pool, BIDE_FOREVER, &remaining), 0);
    assert_nothing_remains(&remaining);
    for (int i = 0; i < MEMBERS; i++)
        assert_true(has_ended(&members[i]));
    bide_thread_pool_destroy(pool);
}

struct setter {
    bide_event *event;
    struct member *first;
};

static void *set_later(void *argument)
{
    struct setter *self = argument;
    schedule_until(has_ended(self->first));
    bide_event_set(self->event);
    return NULL;
}

static void another_thread_may_end_what_they_wait_for(void **state)
{
    (void)state;
    struct member waiter, first;
    bide_event event;
    struct setter setter = {&event, &first};
    bide_thread_pool *pool = create(2);
    bide_event_init(&event, false);
    begin(&waiter, pool, WAITS, &event);
    first.pause = 2000000;
    begin(&first, pool, SLEEPS, NULL);
    pthread_t thread = schedule_thread(set_later, &setter);
    assert_int_equal(bide_thread_pool_shutdown(pool, BIDE_FOREVER, NULL), 0);
    assert_true(has_ended(&waiter));
    pthread_join(thread, NULL);
    bide_thread_pool_destroy(pool);
}

/* ---- What does not ---- */

static void a_task_that_waits_is_counted_and_may_be_destroyed(void **state)
{
    (void)state;
    struct member waiter;
    bide_thread_pool_remaining remaining;
    bide_event event;
    bide_thread_pool *pool = create(2);
    bide_event_init(&event, false);
    begin(&waiter, pool, WAITS, &event);
    schedule_until(schedule_is_awaited(&event));
    assert_int_equal(bide_thread_pool_shutdown(pool, 0, &remaining), -ETIMEDOUT);
    assert_int_equal(remaining.tasks, 1);
    assert_int_equal(shut_down_again(pool, &remaining), -ETIMEDOUT);
    assert_int_equal(remaining.tasks, 1);
    assert_int_equal(remaining.ready, 0);
    bide_event_set(&event); /* what it wakes is kept, and does not run */
    assert_int_equal(shut_down_again(pool, &remaining), -ETIMEDOUT);
    assert_int_equal(remaining.ready, 1);
    assert_false(has_ended(&waiter));
    bide_destroy(&waiter.spawned.root.frame);
    assert_int_equal(shut_down_again(pool, &remaining), 0);
    assert_nothing_remains(&remaining);
    bide_thread_pool_destroy(pool);
}

static void a_task_that_sleeps_leaves_a_timer(void **state)
{
    (void)state;
    struct member sleeper;
    bide_thread_pool_remaining remaining;
    bide_thread_pool *pool = create(1);
    sleeper.pause = UINT64_C(3600) * 1000000000;
    begin(&sleeper, pool, SLEEPS, NULL);
    schedule_until(bide_atomic_load(&sleeper.began, acquire) != 0);
    assert_int_equal(bide_thread_pool_shutdown(pool, 0, &remaining), -ETIMEDOUT);
    assert_int_equal(shut_down_again(pool, &remaining), -ETIMEDOUT);
    assert_int_equal(remaining.tasks, 1);
    assert_true(remaining.has_timers);
    bide_destroy(&sleeper.spawned.root.frame);
    assert_int_equal(shut_down_again(pool, &remaining), 0);
    bide_thread_pool_destroy(pool);
}

static void those_that_are_always_ready_are_halted(void **state)
{
    (void)state;
    enum { MEMBERS = 5 };
    struct member members[MEMBERS];
    bide_thread_pool_remaining remaining;
    bide_thread_pool *pool = create(2);
    for (int i = 0; i < MEMBERS; i++)
        begin(&members[i], pool, YIELDS, NULL);
    uint64_t deadline = bide_platform.now() + 1000000;
    assert_int_equal(bide_thread_pool_shutdown(pool, deadline, &remaining), -ETIMEDOUT);
    assert_true(bide_platform.now() >= deadline);
    assert_int_equal(remaining.tasks, MEMBERS);
    assert_int_equal(shut_down_again(pool, &remaining), -ETIMEDOUT);
    assert_int_equal(remaining.tasks, MEMBERS);
    assert_int_equal(remaining.ready, MEMBERS);
    for (int i = 0; i < MEMBERS; i++)
        bide_destroy(&members[i].spawned.root.frame);
    assert_int_equal(shut_down_again(pool, &remaining), 0);
    bide_thread_pool_destroy(pool);
}

static void one_that_does_not_suspend_holds_its_thread(void **state)
{
    (void)state;
    struct member spinner;
    bide_thread_pool_remaining remaining;
    char text[4096];
    size_t length;
    FILE *file = tmpfile();
    bide_thread_pool *pool = create(2), *other = create(1);
    assert_non_null(file);
    begin(&spinner, pool, SPINS, NULL);
    schedule_until(bide_atomic_load(&spinner.began, acquire) != 0);
    assert_int_equal(bide_thread_pool_shutdown(pool, 0, &remaining), -ETIMEDOUT);
    assert_in_range(remaining.threads, 1, 2);
    assert_int_equal(remaining.tasks, 1);
    assert_int_equal(bide_dump_scheduler(file, bide_thread_pool_scheduler(pool)), 0);
    rewind(file);
    length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    assert_non_null(strstr(text, "member_body"));
    assert_non_null(strstr(text, "\n1 task\n"));
    rewind(file);
    assert_int_equal(bide_dump_scheduler(file, bide_thread_pool_scheduler(other)), 0);
    rewind(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_string_equal(text, "0 tasks\n");
    fclose(file);
    bide_atomic_store(&spinner.is_released, 1, release);
    assert_int_equal(shut_down_again(pool, &remaining), 0);
    assert_true(has_ended(&spinner));
    bide_thread_pool_destroy(pool);
    bide_thread_pool_destroy(other);
}

enum { BRANCHES = 3 };

struct owner {
    bide_task task;
    bide_scope scope;
    bide_branch branches[BRANCHES];
    struct member members[BRANCHES];
    bide_event *event;
};

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    bide_scope_init(&self->scope, bide_this_frame());
    for (int i = 0; i < BRANCHES; i++) {
        self->members[i].kind = WAITS;
        self->members[i].event = self->event;
        bide_scope_spawn(&self->scope, &self->branches[i],
                         bide_task_init(&self->members[i].task, &member_body));
    }
    bide_try(bide_scope_join(&self->scope));
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

static unsigned count_begun(struct owner *owner)
{
    unsigned count = 0;
    for (int i = 0; i < BRANCHES; i++)
        count += bide_atomic_load(&owner->members[i].began, acquire);
    return count;
}

static void the_coroutines_of_a_scope_are_counted(void **state)
{
    (void)state;
    static struct owner owner;
    bide_thread_pool_remaining remaining;
    bide_event event;
    bide_spawned spawned;
    bide_thread_pool *pool = create(2);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_event_init(&event, false);
    owner.event = &event;
    for (int i = 0; i < BRANCHES; i++)
        bide_atomic_init(&owner.members[i].began, 0);
    bide_spawn(&spawned, &context, bide_task_init(&owner.task, &owner_body));
    schedule_until(count_begun(&owner) == BRANCHES);
    assert_int_equal(bide_thread_pool_shutdown(pool, 0, &remaining), -ETIMEDOUT);
    assert_int_equal(remaining.tasks, BRANCHES + 1);
    assert_int_equal(shut_down_again(pool, &remaining), -ETIMEDOUT);
    assert_int_equal(remaining.tasks, BRANCHES + 1);
    bide_destroy(&spawned.root.frame);
    assert_int_equal(shut_down_again(pool, &remaining), 0);
    bide_thread_pool_destroy(pool);
}

static void a_pool_with_loops_is_shut_down_too(void **state)
{
    (void)state;
    struct member sleeper, waiter;
    bide_thread_pool_remaining remaining;
    bide_event event;
    bide_thread_pool *pool;
    /* (Valgrind does not know that io_uring_enter() waits) */
    bide_io_pool_options options = {.loop.kind = BY_READINESS};
    assert_int_equal(bide_io_pool_create(&pool, &options), 0);
    bide_event_init(&event, false);
    sleeper.pause = 2000000;
    begin(&sleeper, pool, SLEEPS, NULL);
    begin(&waiter, pool, WAITS, &event);
    schedule_until(schedule_is_awaited(&event));
    assert_int_equal(bide_thread_pool_shutdown(pool, 0, &remaining), -ETIMEDOUT);
    assert_int_equal(shut_down_again(pool, &remaining), -ETIMEDOUT);
    bide_destroy(&waiter.spawned.root.frame);
    if (!has_ended(&sleeper))
        bide_destroy(&sleeper.spawned.root.frame);
    assert_int_equal(shut_down_again(pool, &remaining), 0);
    bide_thread_pool_destroy(pool);
}

/* ---- All at once ---- */

static void each_member_has_ended_or_is_counted(void **state)
{
    (void)state;
    enum { MEMBERS = 24, ROUNDS = 40 };
    static struct member members[MEMBERS];
    uint64_t random = testing_seed();
    for (unsigned round = 0; round < rounds_of(ROUNDS); round++) {
        bide_thread_pool *pool = create(1 + (unsigned)(testing_random(&random) % 4));
        bide_thread_pool_remaining remaining;
        bide_event event;
        unsigned kinds = 1 + (unsigned)(testing_random(&random) % KINDS);
        bide_event_init(&event, false);
        for (int i = 0; i < MEMBERS; i++) {
            members[i].pause = testing_random(&random) % 2000000;
            begin(&members[i], pool, (int)(testing_random(&random) % kinds), &event);
            bide_atomic_store(&members[i].is_released, 1, release);
            schedule_jitter(&random);
        }
        if (testing_random(&random) % 2 == 0)
            bide_event_set(&event);
        uint64_t deadline = bide_platform.now() + testing_random(&random) % 3000000;
        bide_thread_pool_shutdown(pool, deadline, NULL);
        shut_down_again(pool, &remaining);
        size_t left = 0;
        for (int i = 0; i < MEMBERS; i++) {
            left += !bide_done(&members[i].spawned.root.frame);
            bide_destroy(&members[i].spawned.root.frame);
        }
        assert_int_equal(remaining.tasks, left);
        assert_true(remaining.ready <= left);
        assert_int_equal(shut_down_again(pool, &remaining), 0);
        assert_nothing_remains(&remaining);
        bide_thread_pool_destroy(pool);
    }
}

/* ---- Misuse ---- */

struct inside {
    bide_task task;
    bide_thread_pool *pool;
};

bide_coroutine(inside_body)
{
    bide_begin(inside_body, struct inside * self);
    bide_thread_pool_shutdown(self->pool, 0, NULL);
    bide_end();
}

static void shut_down_inside(void)
{
    bide_thread_pool *pool = create(1);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    struct inside inside = {.pool = pool};
    bide_sync_wait_in(&context, bide_task_init(&inside.task, &inside_body));
}

static void destroy_with_a_task(void)
{
    struct member member;
    bide_thread_pool *pool = create(1);
    begin(&member, pool, YIELDS, NULL);
    bide_thread_pool_shutdown(pool, 0, NULL);
    bide_thread_pool_destroy(pool);
}

static void misuse_is_reported(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(shut_down_inside, "is shut down on one of its threads",
                                     "bide_thread_pool_shutdown"));
    assert_true(
        misuse_aborts_naming(destroy_with_a_task, "while a task of it waits", "member_body"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_without_work_ends),
        cmocka_unit_test(it_waits_for_what_sleeps_and_waits),
        cmocka_unit_test(another_thread_may_end_what_they_wait_for),
        cmocka_unit_test(a_task_that_waits_is_counted_and_may_be_destroyed),
        cmocka_unit_test(a_task_that_sleeps_leaves_a_timer),
        cmocka_unit_test(those_that_are_always_ready_are_halted),
        cmocka_unit_test(one_that_does_not_suspend_holds_its_thread),
        cmocka_unit_test(the_coroutines_of_a_scope_are_counted),
        cmocka_unit_test(a_pool_with_loops_is_shut_down_too),
        cmocka_unit_test(each_member_has_ended_or_is_counted),
        cmocka_unit_test(misuse_is_reported),
    };
    return cmocka_run_group_tests_name("shutdown", tests, NULL, NULL);
}
