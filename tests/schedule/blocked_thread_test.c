/*
 * A blocking wait that leaves a scheduler without a thread is reported in debug builds: on the thread of a loop at
 * once; in a pool if all its workers wait for as long as nobody runs what is ready. Waits that end are not reported.
 */
#include "misuse.h"

#include <bide/bide.h>

#include <pthread.h>

#if BIDE_DEBUG

/* ---- Waits inside a coroutine ---- */

typedef bide_channel(int) channel;

static struct {
    bide_event event;
    bide_auto_event auto_event;
    bide_mutex mutex;
    bide_mutex_waiter key, other_key;
    bide_semaphore semaphore;
    bide_latch latch;
    bide_wait_group group;
    bide_notify notify;
    channel channel;
    bide_channel_slot(int) slots[2];
    int value;
} shared;

static void shared_init(void)
{
    bide_event_init(&shared.event, false);
    bide_auto_event_init(&shared.auto_event, false);
    bide_mutex_init(&shared.mutex);
    assert_true(bide_mutex_try_lock(&shared.key, &shared.mutex));
    bide_semaphore_init(&shared.semaphore, 0);
    bide_latch_init(&shared.latch, 1);
    bide_wait_group_init(&shared.group);
    bide_wait_group_add(&shared.group, 1);
    bide_notify_init(&shared.notify);
    bide_channel_init(&shared.channel, shared.slots, 2);
}

static void wait_for_event(void)
{
    bide_event_wait_blocking(&shared.event, BIDE_FOREVER);
}

static void wait_for_event_for_a_while(void)
{
    bide_event_wait_blocking(&shared.event, bide_platform.now() + UINT64_C(3600000000000));
}

static void wait_for_auto_event(void)
{
    bide_auto_event_wait_blocking(&shared.auto_event, BIDE_FOREVER);
}

static void wait_for_mutex(void)
{
    bide_mutex_lock_blocking(&shared.other_key, &shared.mutex, BIDE_FOREVER);
}

static void wait_for_semaphore(void)
{
    bide_semaphore_acquire_blocking(&shared.semaphore, 1, BIDE_FOREVER);
}

static void wait_for_latch(void)
{
    bide_latch_wait_blocking(&shared.latch, BIDE_FOREVER);
}

static void wait_for_group(void)
{
    bide_wait_group_wait_blocking(&shared.group, BIDE_FOREVER);
}

static void wait_for_notify(void)
{
    bide_notify_wait_blocking(&shared.notify, BIDE_FOREVER);
}

static void wait_for_channel(void)
{
    (void)bide_channel_recv_blocking(&shared.channel, &shared.value, BIDE_FOREVER);
}

static void wait_for_operation(void)
{
    static bide_event_waiter wait;
    bide_sync_wait(bide_event_wait(&wait, &shared.event));
}

#define WAY(function) function, #function

static const struct way {
    const char *name;
    const char *operation; /* that the report names */
    void (*wait)(void);
    const char *function; /* its name */
} ways[] = {{"an event", "bide_event_wait", WAY(wait_for_event)},
            {"an event with a deadline", "bide_event_wait", WAY(wait_for_event_for_a_while)},
            {"an auto-reset event", "bide_auto_event_wait", WAY(wait_for_auto_event)},
            {"a mutex", "bide_mutex_lock", WAY(wait_for_mutex)},
            {"a semaphore", "bide_semaphore_acquire", WAY(wait_for_semaphore)},
            {"a latch", "bide_", WAY(wait_for_latch)},
            {"a wait group", "bide_wait_group_wait", WAY(wait_for_group)},
            {"a notify", "bide_notify_wait", WAY(wait_for_notify)},
            {"a channel", "bide_channel_recv", WAY(wait_for_channel)},
            {"bide_sync_wait", "bide_event_wait", WAY(wait_for_operation)}};

struct blocker {
    bide_task task;
    void (*wait)(void);
};

bide_coroutine(blocker_body)
{
    bide_begin(blocker_body, struct blocker * self);
    self->wait();
    bide_end();
}

struct caller {
    bide_task task;
    struct blocker blocker;
};

bide_coroutine(caller_body)
{
    bide_begin(caller_body, struct caller * self);
    bide_try(bide_call(&self->blocker, &blocker_body));
    bide_end();
}

static const char in_blocker[] = ", in the coroutine blocker_body: ";

/* ---- Loops ---- */

static const struct way *way;

static void block_a_run_loop(void)
{
    static bide_run_loop loop;
    struct caller caller = {.blocker.wait = way->wait};
    shared_init();
    bide_run_loop_init(&loop);
    bide_run_loop_wait(&loop, bide_task_init(&caller.task, &caller_body));
}

static void block_a_loop(void)
{
    bide_loop *loop;
    struct blocker blocker = {.wait = way->wait};
    shared_init();
    assert_int_equal(bide_loop_create(&loop, NULL), 0);
    bide_loop_wait(loop, bide_task_init(&blocker.task, &blocker_body));
}

static void block_a_strand_of_a_loop(void)
{
    static bide_run_loop loop;
    static bide_strand strand;
    static bide_spawned spawned;
    struct blocker blocker = {.wait = way->wait};
    shared_init();
    bide_run_loop_init(&loop);
    bide_strand_init(&strand, &loop.scheduler);
    bide_spawn(&spawned, &strand.context, bide_task_init(&blocker.task, &blocker_body));
    bide_run_loop_run_ready(&loop);
}

static void block_a_worker_that_has_a_loop(void)
{
    bide_thread_pool *pool;
    struct blocker blocker = {.wait = way->wait};
    shared_init();
    assert_int_equal(bide_io_pool_create(&pool, NULL), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_sync_wait_in(&context, bide_task_init(&blocker.task, &blocker_body));
}

static void a_wait_on_the_thread_of_a_loop_is_reported(void **state)
{
    static const char what[] = "the thread of a loop blocks for ";
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char text[100], place[200];
        way = &ways[i];
        snprintf(text, sizeof text, "%s%s", what, way->operation);
        snprintf(place, sizeof place, ", in the coroutine blocker_body: %s (%s:", way->function,
                 __FILE__);
        if (!misuse_aborts_naming(block_a_run_loop, text, place))
            fail_msg("%s", way->name);
    }
    way = &ways[0];
    assert_true(misuse_aborts_naming(block_a_loop, what, in_blocker));
    assert_true(misuse_aborts_naming(block_a_strand_of_a_loop, what, in_blocker));
    assert_true(misuse_aborts_naming(block_a_worker_that_has_a_loop, what, in_blocker));
}

/* ---- Waits on loops that end at once ---- */

struct setter {
    bide_task task;
    bide_event_waiter wait;
    bide_event *first;
};

bide_coroutine(setter_body)
{
    bide_begin(setter_body, struct setter * self);
    bide_await(bide_event_wait(&self->wait, self->first));
    bide_event_set(&shared.event);
    bide_end();
}

struct patient {
    bide_task task;
    bide_event first;
    int ready, passed, queued;
};

bide_coroutine(patient_body)
{
    bide_begin(patient_body, struct patient * self);
    self->passed = bide_event_wait_blocking(&shared.event, 0);
    bide_event_set(&self->first); /* its waiter is inline, so it is queued on this thread */
    self->queued = bide_event_wait_blocking(&shared.event, BIDE_FOREVER);
    self->ready = bide_event_wait_blocking(&shared.event, BIDE_FOREVER);
    bide_end();
}

static void a_wait_on_a_loop_that_need_not_sleep_is_not(void **state)
{
    static bide_run_loop loop;
    static bide_spawned spawned;
    struct patient patient = {.ready = -1, .queued = -1};
    struct setter setter = {.first = &patient.first};
    (void)state;
    shared_init();
    bide_event_init(&patient.first, false);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&setter.task, &setter_body));
    bide_run_loop_init(&loop);
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&patient.task, &patient_body)), 0);
    bide_run_loop_destroy(&loop);
    assert_int_equal(patient.passed, -ETIMEDOUT);
    assert_int_equal(patient.queued, 0);
    assert_int_equal(patient.ready, 0);
}

/* ---- Pools ---- */

enum { WORKERS = 2 };

struct crowd {
    struct blocker blockers[WORKERS];
    bide_spawned spawned[WORKERS];
    bide_latch begun;
};

static struct crowd crowd;

static void begin_and_wait(void)
{
    bide_latch_count_down(&crowd.begun);
    bide_event_wait_blocking(&shared.event, BIDE_FOREVER);
}

/* All workers wait. */
static bide_thread_pool *begin_crowd(bide_context *context)
{
    bide_thread_pool *pool;
    shared_init();
    bide_latch_init(&crowd.begun, WORKERS);
    assert_int_equal(bide_thread_pool_create(&pool, WORKERS), 0);
    *context = (bide_context){.scheduler = bide_thread_pool_scheduler(pool)};
    for (int i = 0; i < WORKERS; i++) {
        crowd.blockers[i].wait = begin_and_wait;
        bide_spawn(&crowd.spawned[i], context,
                   bide_task_init(&crowd.blockers[i].task, &blocker_body));
    }
    bide_latch_wait_blocking(&crowd.begun, BIDE_FOREVER);
    return pool;
}

static void end_crowd(bide_thread_pool *pool)
{
    for (int i = 0; i < WORKERS; i++)
        bide_event_wait_blocking(&crowd.spawned[i].ended, BIDE_FOREVER);
    bide_thread_pool_destroy(pool);
}

struct ender {
    bide_task task;
    bide_sleep sleep;
    bool sleeps;
};

bide_coroutine(ender_body)
{
    bide_begin(ender_body, struct ender * self);
    if (self->sleeps)
        bide_await(bide_sleep_for(&self->sleep, 1000000));
    bide_event_set(&shared.event);
    bide_end();
}

static void all_workers_wait_for_what_is_ready(void)
{
    static bide_context context;
    struct ender ender = {.sleeps = false};
    begin_crowd(&context);
    bide_sync_wait_in(&context, bide_task_init(&ender.task, &ender_body));
}

/* The only worker waits for a coroutine that sleeps there. */
static struct ender sleeper;
static bide_spawned sleeper_spawned;
static bide_context sleeper_context;

static void begin_sleeper_and_wait(void)
{
    bide_event_wait_blocking(&shared.event, BIDE_FOREVER);
}

struct two {
    bide_task task;
    struct blocker blocker;
    bide_schedule_operation turn;
};

bide_coroutine(two_body)
{
    bide_begin(two_body, struct two * self);
    /* (it has to sleep still; while this turn lasts, nothing wakes it) */
    do {
        bide_event_reset(&shared.event);
        sleeper.sleeps = true;
        bide_spawn(&sleeper_spawned, &sleeper_context, bide_task_init(&sleeper.task, &ender_body));
        bide_await(bide_schedule(&self->turn, sleeper_context.scheduler));
    } while (bide_event_is_set(&shared.event));
    bide_await(bide_call(&self->blocker, &blocker_body, wait = begin_sleeper_and_wait));
    bide_end();
}

static void the_only_worker_waits_for_a_timer(void)
{
    static struct two two;
    bide_thread_pool *pool;
    shared_init();
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    sleeper_context = (bide_context){.scheduler = bide_thread_pool_scheduler(pool)};
    bide_sync_wait_in(&sleeper_context, bide_task_init(&two.task, &two_body));
}

/* Each pool's only worker calls into the other pool. */
static bide_context contexts[2];

struct call {
    bide_task task;
    int of;
    int depth;
};

bide_coroutine(call_body)
{
    bide_begin(call_body, struct call * self);
    if (self->depth > 0) {
        struct call call = {.of = 1 - self->of, .depth = self->depth - 1};
        bide_sync_wait_in(&contexts[call.of], bide_task_init(&call.task, &call_body));
    }
    bide_end();
}

static void call_in_a_circle(int depth)
{
    bide_thread_pool *pools[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bide_thread_pool_create(&pools[i], 1), 0);
        contexts[i] = (bide_context){.scheduler = bide_thread_pool_scheduler(pools[i])};
    }
    struct call call = {.of = 0, .depth = depth};
    assert_int_equal(bide_sync_wait_in(&contexts[0], bide_task_init(&call.task, &call_body)), 0);
    for (int i = 0; i < 2; i++)
        bide_thread_pool_destroy(pools[i]);
}

static void two_pools_wait_for_each_other(void)
{
    call_in_a_circle(2);
}

static void pools_whose_workers_all_wait_are_reported(void **state)
{
    static const char what[] = "all threads of a pool block although it has coroutines to run; one "
                               "does for bide_event_wait";
    (void)state;
    assert_true(misuse_aborts_naming(all_workers_wait_for_what_is_ready, what, in_blocker));
    assert_true(misuse_aborts_naming(the_only_worker_waits_for_a_timer, what, in_blocker));
    assert_true(misuse_aborts_naming(two_pools_wait_for_each_other, "one does for call_body",
                                     "call_body ("));
}

/* (nothing is ready, so an outer thread may end the waits when it likes) */
static void pools_whose_workers_wait_for_others_are_not(void **state)
{
    static bide_context context;
    (void)state;
    bide_thread_pool *pool = begin_crowd(&context);
    bide_event_set(&shared.event);
    end_crowd(pool);
    call_in_a_circle(1);
}

/* One worker waits, and the other ends that. */
static void begin_alone_and_wait(void)
{
    bide_event_wait_blocking(&shared.event, BIDE_FOREVER);
}

static void a_worker_may_wait_for_another(void **state)
{
    bide_thread_pool *pool;
    struct blocker blocker = {.wait = begin_alone_and_wait};
    struct ender ender = {.sleeps = true};
    static bide_spawned spawned;
    (void)state;
    shared_init();
    assert_int_equal(bide_thread_pool_create(&pool, WORKERS), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_spawn(&spawned, &context, bide_task_init(&blocker.task, &blocker_body));
    assert_int_equal(bide_sync_wait_in(&context, bide_task_init(&ender.task, &ender_body)), 0);
    bide_event_wait_blocking(&spawned.ended, BIDE_FOREVER);
    bide_thread_pool_destroy(pool);
}

/* ---- Work on a pool that a loop's coroutine asks for ---- */

static void count(void *argument)
{
    ++*(int *)argument;
}

struct asker {
    bide_task task;
    bide_thread_pool *pool;
    int count;
};

bide_coroutine(asker_body)
{
    bide_begin(asker_body, struct asker * self);
    bide_call_in(self->pool, count, &self->count);
    bide_end();
}

static void a_call_in_a_pool_may_keep_a_loop_busy(void **state)
{
    static bide_run_loop loop;
    struct asker asker = {.count = 0};
    (void)state;
    assert_int_equal(bide_thread_pool_create(&asker.pool, 1), 0);
    bide_run_loop_init(&loop);
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&asker.task, &asker_body)), 0);
    bide_run_loop_destroy(&loop);
    bide_thread_pool_destroy(asker.pool);
    assert_int_equal(asker.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_on_the_thread_of_a_loop_is_reported),
        cmocka_unit_test(a_wait_on_a_loop_that_need_not_sleep_is_not),
        cmocka_unit_test(pools_whose_workers_all_wait_are_reported),
        cmocka_unit_test(pools_whose_workers_wait_for_others_are_not),
        cmocka_unit_test(a_worker_may_wait_for_another),
        cmocka_unit_test(a_call_in_a_pool_may_keep_a_loop_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("1..0 # SKIP only debug builds report it");
    return 0;
}

#endif
