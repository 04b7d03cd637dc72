/*
 * Coroutines of a pool that block their thread in a region, while spare threads stand in for it.
 *
 * A function in a region blocks until a coroutine of the same pool has done something. Without another thread in its
 * place nobody would do it, and the test would not end.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "schedule_testing.h"

#include "bide/fork.h"
#include "bide/io_pool.h"
#include "bide/join.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

static bide_thread_pool *create(unsigned threads, unsigned spares)
{
    bide_thread_pool *pool;
    const bide_thread_pool_options options = {.threads = threads, .spare_threads = spares};
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
    return pool;
}

static bide_context context_of(bide_thread_pool *pool)
{
    return (bide_context){.scheduler = bide_thread_pool_scheduler(pool)};
}

/* Blocks this thread until it has ended; returns its status. */
static int await_end(bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &spawned->ended)), 0);
    return spawned->root.status;
}

/* A number that threads wait for on the processor: no part of the library can see that they block. */
typedef struct counter {
    bide_atomic(uint32_t) value;
} counter;

static void count(counter *self)
{
    bide_atomic_fetch_add(&self->value, 1, acq_rel);
}

static uint32_t counted(counter *self)
{
    return bide_atomic_load(&self->value, acquire);
}

/* What a blocking function waits for. */
struct until {
    counter *counter;
    uint32_t value;
};

#define UNTIL(counter, value) (&(struct until){(counter), (value)})

static void block_until(void *argument)
{
    struct until *self = argument;
    schedule_until(counted(self->counter) >= self->value);
}

/* ---- A coroutine that counts, and one that blocks until others have ---- */

struct counting {
    bide_task task;
    counter *counter;
    bide_spawned spawned;
};

bide_coroutine(counting_body)
{
    bide_begin(counting_body, struct counting * self);
    count(self->counter);
    bide_end();
}

static void begin_counting(struct counting *self, bide_thread_pool *pool, counter *counter)
{
    bide_context context = context_of(pool);
    self->counter = counter;
    bide_spawn(&self->spawned, &context, bide_task_init(&self->task, &counting_body));
}

struct blocking {
    bide_task task;
    counter *begun; /* or NULL */
    struct until until;
    int result;
    pthread_t before, after;
    bide_spawned spawned;
};

bide_coroutine(blocking_body)
{
    bide_begin(blocking_body, struct blocking * self);
    self->before = pthread_self();
    if (self->begun != NULL)
        count(self->begun);
    self->result = bide_blocking_here(block_until, &self->until);
    self->after = pthread_self();
    bide_end();
}

static void begin_blocking(struct blocking *self, bide_thread_pool *pool, counter *counter,
                           uint32_t value)
{
    bide_context context = context_of(pool);
    self->until = (struct until){counter, value};
    self->result = 1;
    bide_spawn(&self->spawned, &context, bide_task_init(&self->task, &blocking_body));
}

static void all_workers_block_for_what_only_another_coroutine_does(void **state)
{
    (void)state;
    enum { WORKERS = 3 };
    struct blocking blocking[WORKERS];
    struct counting counting;
    counter begun = {0}, done = {0};
    bide_thread_pool_stats stats;
    bide_thread_pool *pool = create(WORKERS, WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        blocking[i].begun = &begun;
        begin_blocking(&blocking[i], pool, &done, 1);
    }
    schedule_until(counted(&begun) == WORKERS);
    begin_counting(&counting, pool, &done);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(await_end(&blocking[i].spawned), 0);
        assert_int_equal(blocking[i].result, 0);
        assert_true(pthread_equal(blocking[i].before, blocking[i].after));
    }
    assert_int_equal(await_end(&counting.spawned), 0);
    bide_thread_pool_get_stats(pool, &stats);
    assert_int_equal(stats.stand_ins, WORKERS);
    assert_in_range(stats.spares, 0, WORKERS);
    assert_int_equal(bide_thread_pool_threads(pool), WORKERS);
    bide_thread_pool_destroy(pool);
}

/* ---- What stands on the worker that blocks ---- */

/* One that is woken by the coroutine that blocks, in its turn or in the region. */
struct woken {
    bide_task task;
    bide_event *event;
    counter *counter;
    bide_event_waiter wait;
    bide_spawned spawned;
};

bide_coroutine(woken_body)
{
    bide_begin(woken_body, struct woken * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    count(self->counter);
    bide_end();
}

enum { BEFORE = 3, WITHIN = 2, ALL = BEFORE + WITHIN + 1 };

struct waking {
    bide_task task;
    bide_event events[BEFORE + WITHIN];
    struct until until;
    int result;
    bide_spawned spawned;
};

static void wake_and_block(void *argument)
{
    struct waking *self = argument;
    for (int i = BEFORE; i < BEFORE + WITHIN; i++)
        bide_event_set(&self->events[i]);
    block_until(&self->until);
}

bide_coroutine(waking_body)
{
    bide_begin(waking_body, struct waking * self);
    for (int i = 0; i < BEFORE; i++)
        bide_event_set(&self->events[i]);
    self->result = bide_blocking_here(wake_and_block, self);
    bide_end();
}

struct sleeping {
    bide_task task;
    counter *counter;
    bide_sleep sleep;
    bide_spawned spawned;
};

bide_coroutine(sleeping_body)
{
    bide_begin(sleeping_body, struct sleeping * self);
    bide_await(bide_sleep_for(&self->sleep, 2000000));
    count(self->counter);
    bide_end();
}

/* The slot, the ring, what the region itself wakes, and a timer: of a pool of one thread. */
static void what_is_ready_on_the_worker_and_timers_go_on(void **state)
{
    (void)state;
    counter done = {0};
    struct woken woken[BEFORE + WITHIN];
    struct sleeping sleeping = {.counter = &done};
    struct waking waking = {.until = {&done, ALL}};
    bide_thread_pool *pool = create(1, 1);
    bide_context context = context_of(pool);
    for (int i = 0; i < BEFORE + WITHIN; i++) {
        bide_event_init(&waking.events[i], false);
        woken[i].event = &waking.events[i];
        woken[i].counter = &done;
        bide_spawn(&woken[i].spawned, &context, bide_task_init(&woken[i].task, &woken_body));
        schedule_until(schedule_is_awaited(&waking.events[i]));
    }
    bide_spawn(&sleeping.spawned, &context, bide_task_init(&sleeping.task, &sleeping_body));
    bide_spawn(&waking.spawned, &context, bide_task_init(&waking.task, &waking_body));
    assert_int_equal(await_end(&waking.spawned), 0);
    assert_int_equal(waking.result, 0);
    for (int i = 0; i < BEFORE + WITHIN; i++)
        assert_int_equal(await_end(&woken[i].spawned), 0);
    assert_int_equal(await_end(&sleeping.spawned), 0);
    bide_thread_pool_destroy(pool);
}

/* A worker whose spare one is always busy does not keep its ring to itself. */
struct yielding {
    bide_task task;
    counter *stops;
    bide_schedule_operation hop;
    bide_spawned spawned;
};

bide_coroutine(yielding_body)
{
    bide_begin(yielding_body, struct yielding * self);
    while (counted(self->stops) == 0)
        bide_await(bide_schedule(&self->hop, bide_this_context()->scheduler));
    bide_end();
}

static void a_busy_pool_runs_what_stood_on_the_worker(void **state)
{
    (void)state;
    enum { YIELDERS = 4 };
    counter done = {0};
    struct woken woken[BEFORE + WITHIN];
    struct yielding yielding[YIELDERS];
    struct waking waking = {.until = {&done, BEFORE + WITHIN}};
    bide_thread_pool *pool = create(2, 1);
    bide_context context = context_of(pool);
    for (int i = 0; i < BEFORE + WITHIN; i++) {
        bide_event_init(&waking.events[i], false);
        woken[i].event = &waking.events[i];
        woken[i].counter = &done;
        bide_spawn(&woken[i].spawned, &context, bide_task_init(&woken[i].task, &woken_body));
        schedule_until(schedule_is_awaited(&waking.events[i]));
    }
    for (int i = 0; i < YIELDERS; i++) {
        yielding[i].stops = &done;
        bide_spawn(&yielding[i].spawned, &context,
                   bide_task_init(&yielding[i].task, &yielding_body));
    }
    bide_spawn(&waking.spawned, &context, bide_task_init(&waking.task, &waking_body));
    assert_int_equal(await_end(&waking.spawned), 0);
    for (int i = 0; i < BEFORE + WITHIN; i++)
        assert_int_equal(await_end(&woken[i].spawned), 0);
    for (int i = 0; i < YIELDERS; i++)
        assert_int_equal(await_end(&yielding[i].spawned), 0);
    bide_thread_pool_destroy(pool);
}

/* ---- Blocking waits of the library ---- */

struct asking {
    bide_task task;
    bide_thread_pool *pool;
    unsigned depth;
    int result;
};

static bide_awaiter *asking_run(struct asking *self);

static void ask_and_wait(void *argument)
{
    struct asking *self = argument;
    bide_context context = context_of(self->pool);
    struct asking inner = {.pool = self->pool, .depth = self->depth - 1};
    int status = bide_sync_wait_in(&context, asking_run(&inner));
    self->result = status == 0 ? inner.result : -1;
}

bide_coroutine(asking_body)
{
    bide_begin(asking_body, struct asking * self);
    if (self->depth != 0)
        bide_blocking_here(ask_and_wait, self);
    bide_end();
}

static bide_awaiter *asking_run(struct asking *self)
{
    return bide_task_init(&self->task, &asking_body);
}

/* Each waits in a region for a coroutine that does the same, on the thread of a pool that has one otherwise. */
static void regions_wait_for_regions(void **state)
{
    (void)state;
    enum { DEPTH = 8 };
    bide_thread_pool_stats stats;
    bide_thread_pool *pool = create(1, DEPTH);
    bide_context context = context_of(pool);
    struct asking asking = {.pool = pool, .depth = DEPTH};
    assert_int_equal(bide_sync_wait_in(&context, asking_run(&asking)), 0);
    assert_int_equal(asking.result, 0);
    bide_thread_pool_get_stats(pool, &stats);
    assert_int_equal(stats.stand_ins, DEPTH);
    bide_thread_pool_destroy(pool);
}

/* ---- Regions in regions, and the pair ---- */

struct nesting {
    bide_task task;
    bide_thread_pool *pool;
    struct counting counting;
    counter done;
    int results[3];
};

bide_coroutine(nesting_body)
{
    bide_begin(nesting_body, struct nesting * self);
    bide_blocking_region outer, inner;
    self->results[0] = bide_blocking_here_begin(&outer);
    self->results[1] = bide_blocking_here_begin(&inner);
    self->results[2] = bide_blocking_here(block_until, UNTIL(&self->done, 0));
    bide_blocking_here_end(&inner);
    begin_counting(&self->counting, self->pool, &self->done);
    block_until(UNTIL(&self->done, 1));
    bide_blocking_here_end(&outer);
    bide_blocking_here_end(&outer); /* does nothing */
    bide_end();
}

static void an_inner_region_needs_no_spare_thread(void **state)
{
    (void)state;
    bide_thread_pool_stats stats;
    bide_thread_pool *pool = create(1, 1);
    bide_context context = context_of(pool);
    struct nesting nesting = {.pool = pool};
    assert_int_equal(bide_sync_wait_in(&context, bide_task_init(&nesting.task, &nesting_body)), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(nesting.results[i], 0);
    assert_int_equal(await_end(&nesting.counting.spawned), 0);
    bide_thread_pool_get_stats(pool, &stats);
    assert_int_equal(stats.stand_ins, 1);
    bide_thread_pool_destroy(pool);
}

/* ---- Joins ---- */

struct deep {
    unsigned depth;
    bide_thread_pool *pool;
    struct counting counting;
    counter done;
    unsigned ends;
    unsigned failed;
};

static void joins_nothing(void *argument)
{
    (void)argument;
}

/* Below the stack's end, on the thread of a join: in a region that began above it, and in one of its own. */
static void join_deeply(void *argument)
{
    struct deep *self = argument;
    volatile char stack[256];
    stack[0] = 1;
    if (self->depth-- == 0) {
        bide_blocking_region region;
        self->failed += bide_blocking_here_begin(&region) != 0;
        begin_counting(&self->counting, self->pool, &self->done);
        block_until(UNTIL(&self->done, 1));
        bide_blocking_here_end(&region);
    } else {
        bide_join(join_deeply, self, joins_nothing, NULL);
    }
    self->ends += (unsigned)stack[0];
}

static void join_in_a_region(void *argument)
{
    struct deep *self = argument;
    self->failed += bide_blocking_here(join_deeply, self) != 0;
}

static void joins_go_deeper_than_a_stack_in_a_region_and_outside(void **state)
{
    (void)state;
    enum { DEPTH = 3000, STACK = 512 << 10, THREADS = 20 };
    const bide_thread_pool_options options = {
        .threads = 1, .spare_threads = 1, .stack_size = STACK};
    bide_thread_pool *pool;
    if (!schedule_may_have_threads(THREADS, STACK))
        skip();
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
    for (int round = 0; round < 2; round++) {
        struct deep deep = {.depth = DEPTH, .pool = pool};
        bide_call_in(pool, round == 0 ? join_in_a_region : join_deeply, &deep);
        assert_int_equal(await_end(&deep.counting.spawned), 0);
        assert_int_equal(deep.failed, 0);
        assert_int_equal(deep.ends, DEPTH + 1);
    }
    uint64_t deep_joins = 0;
    for (unsigned i = 0; i < 2; i++) { /* (either thread may have run one) */
        bide_thread_pool_worker_stats stats;
        assert_int_equal(bide_thread_pool_get_worker_stats(pool, i, &stats), 0);
        deep_joins += stats.deep_joins;
    }
    assert_true(deep_joins >= 2);
    bide_thread_pool_destroy(pool);
}

static void the_numbers_of_spare_threads_come_last(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(2, 3);
    bide_thread_pool_worker_stats stats;
    assert_int_equal(bide_thread_pool_threads(pool), 2);
    assert_int_equal(bide_thread_pool_get_worker_stats(pool, 4, &stats), 0);
    assert_int_equal(stats.runs, 0);
    assert_int_equal(bide_thread_pool_get_worker_stats(pool, 5, &stats), -EINVAL);
    bide_thread_pool_destroy(pool);
}

/* The second half is stolen by the worker in its place, while the first blocks for it. */
struct halves {
    counter second;
    int result;
};

static void half_that_blocks(void *argument)
{
    struct halves *self = argument;
    self->result = bide_blocking_here(block_until, UNTIL(&self->second, 1));
}

static void half_that_counts(void *argument)
{
    struct halves *self = argument;
    count(&self->second);
}

static void a_half_is_stolen_from_a_worker_that_blocks(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(1, 1);
    struct halves halves = {.result = 1};
    bide_join_in(pool, half_that_blocks, &halves, half_that_counts, &halves);
    assert_int_equal(halves.result, 0);
    bide_thread_pool_destroy(pool);
}

/* The forked parent goes on in the place of the child's worker. */
struct child {
    bide_fork_task forking;
    counter *parent;
};

bide_fork_coroutine(child_body)
{
    bide_begin(child_body, struct child * self);
    bide_return(bide_blocking_here(block_until, UNTIL(self->parent, 1)));
    bide_end();
}

struct forks {
    bide_fork_task forking;
    counter parent;
};

bide_fork_coroutine(forks_body)
{
    bide_begin(forks_body, struct forks * self);
    bide_await(bide_fork(self, struct child, &child_body, parent = &self->parent));
    count(&self->parent);
    bide_try(bide_fork_join(self));
    bide_end();
}

static void a_forked_parent_goes_on_while_its_child_blocks(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(1, 1);
    bide_context context = context_of(pool);
    struct forks forks = {.parent = {0}};
    assert_int_equal(bide_sync_wait_in(&context, bide_fork_task_init(&forks.forking, &forks_body)),
                     0);
    bide_thread_pool_destroy(pool);
}

/* ---- Where there is none ---- */

static void on_other_threads_it_calls_the_function(void **state)
{
    (void)state;
    counter calls = {1};
    bide_blocking_region region;
    assert_int_equal(bide_blocking_here(block_until, UNTIL(&calls, 1)), -ENOTSUP);
    assert_int_equal(bide_blocking_here_begin(&region), -ENOTSUP);
    bide_blocking_here_end(&region);
}

static void on_a_run_loop_and_in_a_pool_without_spare_threads_too(void **state)
{
    (void)state;
    counter calls = {1};
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct blocking blocking = {.until = {&calls, 1}};
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&blocking.task, &blocking_body)), 0);
    assert_int_equal(blocking.result, -ENOTSUP);
    bide_run_loop_destroy(&loop);

    bide_thread_pool *pool = create(1, 0);
    bide_context context = context_of(pool);
    blocking.result = 0;
    assert_int_equal(bide_sync_wait_in(&context, bide_task_init(&blocking.task, &blocking_body)),
                     0);
    assert_int_equal(blocking.result, -ENOTSUP);
    bide_thread_pool_destroy(pool);
}

static void a_pool_of_loops_and_too_many_are_EINVAL(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    const bide_io_pool_options loops = {.threads = {.threads = 1, .spare_threads = 1}};
    assert_int_equal(bide_io_pool_create(&pool, &loops), -EINVAL);
    bide_thread_pool_options options = {.threads = 1, .spare_threads = 65536};
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), -EINVAL);
    options.spare_threads = UINT_MAX;
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), -EINVAL);
}

/* The first has the only spare thread, on which the second runs. */
static void without_another_spare_thread_it_is_EAGAIN(void **state)
{
    (void)state;
    counter begun = {0}, done = {0}, none = {0};
    struct blocking first = {.begun = &begun}, second = {.begun = NULL};
    bide_thread_pool *pool = create(1, 1);
    begin_blocking(&first, pool, &done, 1);
    schedule_until(counted(&begun) == 1);
    begin_blocking(&second, pool, &none, 0);
    assert_int_equal(await_end(&second.spawned), 0);
    assert_int_equal(second.result, -EAGAIN);
    count(&done);
    assert_int_equal(await_end(&first.spawned), 0);
    assert_int_equal(first.result, 0);
    bide_thread_pool_destroy(pool);
}

/* ---- The end of a pool ---- */

struct ending {
    bide_task task;
    bide_thread_pool *pool;
    counter *begun;
    counter *goes_on;
    struct counting counting;
    counter done;
};

/* What it waits for is posted only when the pool ends, or soon before. */
static void post_late(void *argument)
{
    struct ending *self = argument;
    count(self->begun);
    block_until(UNTIL(self->goes_on, 1));
    begin_counting(&self->counting, self->pool, &self->done);
    block_until(UNTIL(&self->done, 1));
}

bide_coroutine(ending_body)
{
    bide_begin(ending_body, struct ending * self);
    bide_blocking_here(post_late, self);
    bide_end();
}

static void a_pool_that_ends_still_runs_what_a_region_waits_for(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    unsigned rounds = rounds_of(60);
    for (unsigned round = 0; round < rounds; round++) {
        counter begun = {0}, goes_on = {0};
        bide_spawned spawned;
        bide_thread_pool *pool = create(1 + (unsigned)(testing_random(&random) % 2), 1);
        bide_context context = context_of(pool);
        struct ending ending = {.pool = pool, .begun = &begun, .goes_on = &goes_on};
        bide_spawn(&spawned, &context, bide_task_init(&ending.task, &ending_body));
        schedule_until(counted(&begun) == 1);
        count(&goes_on);
        schedule_jitter(&random);
        bide_thread_pool_destroy(pool);
        assert_int_equal(counted(&ending.done), 1);
    }
}

/* The second region begins when its pool ends already, and the first may have had the only spare thread. */
static void block_for_a_moment(void *argument)
{
    struct ending *self = argument;
    count(self->begun);
    block_until(UNTIL(self->goes_on, 1));
    usleep(1000);
}

static void post_again(void *argument)
{
    struct ending *self = argument;
    begin_counting(&self->counting, self->pool, &self->done);
    block_until(UNTIL(&self->done, 1));
}

bide_coroutine(ending_again_body)
{
    bide_begin(ending_again_body, struct ending * self);
    bide_blocking_here(block_for_a_moment, self);
    usleep(1000);
    bide_blocking_here(post_again, self);
    bide_end();
}

static void a_pool_that_ends_has_a_spare_thread_for_each_further_region(void **state)
{
    (void)state;
    unsigned rounds = rounds_of(10);
    for (unsigned round = 0; round < rounds; round++) {
        counter begun = {0}, goes_on = {0};
        bide_spawned spawned;
        bide_thread_pool *pool = create(1 + round % 2, 1);
        bide_context context = context_of(pool);
        struct ending ending = {.pool = pool, .begun = &begun, .goes_on = &goes_on};
        bide_spawn(&spawned, &context, bide_task_init(&ending.task, &ending_again_body));
        schedule_until(counted(&begun) == 1);
        count(&goes_on);
        bide_thread_pool_destroy(pool);
        assert_int_equal(counted(&ending.done), 1);
    }
}

static void a_shutdown_counts_a_thread_that_blocks(void **state)
{
    (void)state;
    counter begun = {0}, done = {0};
    struct blocking blocking = {.begun = &begun};
    bide_thread_pool_remaining remaining;
    bide_thread_pool *pool = create(2, 2);
    begin_blocking(&blocking, pool, &done, 1);
    schedule_until(counted(&begun) == 1);
    assert_int_equal(bide_thread_pool_shutdown(pool, 0, &remaining), -ETIMEDOUT);
    assert_in_range(remaining.threads, 1, 4); /* (the others may need longer) */
    count(&done);
    assert_int_equal(bide_thread_pool_shutdown(pool, BIDE_FOREVER, &remaining), 0);
    assert_int_equal(remaining.threads, 0);
    assert_int_equal(await_end(&blocking.spawned), 0);
    bide_thread_pool_destroy(pool);
}

/* ---- Misuse ---- */

struct suspending {
    bide_task task;
    bide_blocking_region region;
    bide_event never;
    bide_event_waiter wait;
};

bide_coroutine(suspending_body)
{
    bide_begin(suspending_body, struct suspending * self);
    bide_blocking_here_begin(&self->region);
    bide_await(bide_event_wait(&self->wait, &self->never));
    bide_blocking_here_end(&self->region);
    bide_end();
}

static void suspends(void)
{
    bide_thread_pool *pool = create(1, 1);
    bide_context context = context_of(pool);
    struct suspending suspending;
    bide_event_init(&suspending.never, false);
    (void)bide_sync_wait_in(&context, bide_task_init(&suspending.task, &suspending_body));
}

static void calls_nothing(void)
{
    (void)bide_blocking_here(NULL, NULL);
}

static void misuse_is_reported(void **state)
{
    (void)state;
    if (!BIDE_DEBUG)
        skip();
    assert_true(misuse_aborts_naming(suspends, "suspended", "bide_blocking_here_begin"));
    assert_true(misuse_aborts_naming(calls_nothing, "NULL", "bide_blocking_here"));
}

/* ---- Stress ---- */

/*
 * Coroutines in pairs that block for each other, if a spare thread stands in for them, and that hop, and fork halves of
 * joins meanwhile.
 */
enum { MEMBERS_MAX = 40, TURNS = 12 };

struct member {
    bide_task task;
    struct crowd *crowd;
    struct member *partner;
    counter arrived; /* how often it has come to meet its partner */
    uint64_t random;
    unsigned turn, regions, depth;
    bide_schedule_operation hop;
    bide_spawned spawned;
};

struct crowd {
    bide_thread_pool *pool;
    counter ran;
};

static void member_join(void *argument)
{
    struct member *self = argument;
    if (self->depth-- != 0)
        bide_join(member_join, self, joins_nothing, NULL);
}

static void member_meet(struct member *self)
{
    bide_blocking_region region, inner;
    count(&self->arrived);
    bool is_region = bide_blocking_here_begin(&region) == 0;
    if (is_region && testing_random(&self->random) % 4 == 0) {
        bide_blocking_here_begin(&inner);
        bide_blocking_here_end(&inner);
    }
    self->depth = (unsigned)(testing_random(&self->random) % 3);
    member_join(self);
    if (is_region) {
        self->regions++;
        block_until(UNTIL(&self->partner->arrived, counted(&self->arrived)));
    }
    bide_blocking_here_end(&region);
}

bide_coroutine(member_body)
{
    bide_begin(member_body, struct member * self);
    for (self->turn = 0; self->turn < TURNS; self->turn++) {
        member_meet(self);
        if (testing_random(&self->random) % 2 == 0)
            bide_await(bide_schedule(&self->hop, bide_this_context()->scheduler));
    }
    count(&self->crowd->ran);
    bide_end();
}

static void pairs_meet_in_regions(uint64_t *random)
{
    struct member members[MEMBERS_MAX];
    struct crowd crowd = {.ran = {0}};
    unsigned count_of = 2 * (1 + (unsigned)(testing_random(random) % (MEMBERS_MAX / 2)));
    bide_thread_pool_stats stats;
    uint64_t regions = 0;
    crowd.pool = create(1 + (unsigned)(testing_random(random) % 3),
                        1 + (unsigned)(testing_random(random) % 4));
    bide_context context = context_of(crowd.pool);
    for (unsigned i = 0; i < count_of; i++) {
        members[i] = (struct member){.crowd = &crowd,
                                     .partner = &members[i % 2 == 0 ? i + 1 : i - 1],
                                     .random = testing_random(random)};
    }
    for (unsigned i = 0; i < count_of; i++)
        bide_spawn(&members[i].spawned, &context, bide_task_init(&members[i].task, &member_body));
    for (unsigned i = 0; i < count_of; i++) {
        assert_int_equal(await_end(&members[i].spawned), 0);
        regions += members[i].regions;
    }
    assert_int_equal(counted(&crowd.ran), count_of);
    bide_thread_pool_get_stats(crowd.pool, &stats);
    assert_int_equal(stats.stand_ins, regions);
    bide_thread_pool_destroy(crowd.pool);
}

static void coroutines_that_block_for_each_other_all_end(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    unsigned rounds = rounds_of(30);
    for (unsigned round = 0; round < rounds; round++)
        pairs_meet_in_regions(&random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_workers_block_for_what_only_another_coroutine_does),
        cmocka_unit_test(what_is_ready_on_the_worker_and_timers_go_on),
        cmocka_unit_test(a_busy_pool_runs_what_stood_on_the_worker),
        cmocka_unit_test(regions_wait_for_regions),
        cmocka_unit_test(an_inner_region_needs_no_spare_thread),
        cmocka_unit_test(joins_go_deeper_than_a_stack_in_a_region_and_outside),
        cmocka_unit_test(the_numbers_of_spare_threads_come_last),
        cmocka_unit_test(a_half_is_stolen_from_a_worker_that_blocks),
        cmocka_unit_test(a_forked_parent_goes_on_while_its_child_blocks),
        cmocka_unit_test(on_other_threads_it_calls_the_function),
        cmocka_unit_test(on_a_run_loop_and_in_a_pool_without_spare_threads_too),
        cmocka_unit_test(a_pool_of_loops_and_too_many_are_EINVAL),
        cmocka_unit_test(without_another_spare_thread_it_is_EAGAIN),
        cmocka_unit_test(a_pool_that_ends_still_runs_what_a_region_waits_for),
        cmocka_unit_test(a_pool_that_ends_has_a_spare_thread_for_each_further_region),
        cmocka_unit_test(a_shutdown_counts_a_thread_that_blocks),
        cmocka_unit_test(misuse_is_reported),
        cmocka_unit_test(coroutines_that_block_for_each_other_all_end),
    };
    return cmocka_run_group_tests_name("blocking_here", tests, NULL, NULL);
}
