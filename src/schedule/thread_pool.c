/*
 * The thread pool: its creation, its threads, and its destruction. The workers are in pool/worker.c.
 *
 * One thread creates and one destroys a pool. No thread may use the pool during either.
 */
#define _GNU_SOURCE
#include "bide/thread_pool.h"

#include "leak_check.h"
#include "pool/fork_stacks.h"
#include "pool/worker.h"
#include "../coroutine/observe.h"
#include "../system/fork.h"
#include "../system/portable.h"
#include "../system/processors.h"
#include "../system/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENT_INTERVAL_MAX = 65536 };

/* True for the thread of a pool that has one thread. */
static bool pool_runs_here_only(bide_scheduler *scheduler)
{
    const bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    return bide_pool_worker_of_(pool) != NULL && pool->places == 1;
}

/* (A coroutine that is resumed on a thread beside a worker's could not use the driver.) */
void bide_pool_measure_stack_(bide_pool_worker *worker)
{
    uintptr_t low = 0;
    size_t size = worker->pool->driver == NULL ? bide_threads_stack_(&low) : 0;
    worker->join.stack_low = low;
    worker->join.stack_reserve = size / 4;
}

static void *pool_worker_main(void *argument)
{
    bide_thread_pool *pool = argument;
    unsigned index = bide_atomic_fetch_add(&pool->begun, 1, relaxed);
    bide_pool_worker *worker = &pool->workers[index];
#if BIDE_OBSERVED
    bide_atomic_store(&worker->thread, portable_thread_number(), relaxed);
#endif
    if (pool->name[0] != '\0')
        bide_threads_name_this_(pool->name, index);
    if (pool->are_placed && index < pool->count)
        bide_threads_keep_this_on_(worker->processor);
    if (pool->hooks.start != NULL)
        pool->hooks.start(pool->hooks.argument, index);
    if (pool->driver != NULL)
        pool->driver->enter(pool->driver, index);
    bide_pool_measure_stack_(worker);
    bool is_needed = true;
    while (is_needed)
        is_needed =
            (index < pool->count || bide_pool_await_region_(worker)) && bide_pool_work_(worker);
    if (pool->driver != NULL)
        pool->driver->leave(pool->driver, index);
    if (pool->hooks.end != NULL)
        pool->hooks.end(pool->hooks.argument, index);
    bide_pool_note_end_(pool);
    return NULL;
}

/* Some of its threads could not be started. */
static void pool_end_all(void *argument)
{
    bide_thread_pool *pool = argument;
    bide_atomic_store(&pool->halted, 1, relaxed);
    bide_pool_end_(pool);
}

static void pool_init_worker(bide_thread_pool *pool, unsigned index)
{
    bide_pool_worker *worker = &pool->workers[index];
    bide_run_queue_init_(&worker->queue);
    bide_pool_slot_init_(&worker->lifo_slot);
    bide_atomic_init(&worker->turns, 0);
    bide_atomic_init(&worker->parked, 0);
    worker->pool = pool;
    worker->index = index;
    bide_atomic_init(&worker->thread, 0);
    worker->maintenance_countdown = pool->look_turns_max;
    worker->due_end = 0;
    worker->injected_end = 0;
    worker->looked = 0;
    bide_pool_forget_pace_(worker);
    worker->lifo_polls = 0;
    bide_atomic_init(&worker->keeps_time, 0);
    worker->is_searching = false;
    worker->halts = false;
    worker->regions = 0;
    worker->random = index;
    bide_spin_pace_init_(&worker->pace, pool->may_spin ? BIDE_POOL_SPINS_MAX_ : 0);
    bide_join_deque_init_(&worker->join, BIDE_JOIN_POOL_);
    worker->stacks = NULL;
    worker->stack_count = 0;
    bide_atomic_init(&worker->steals, 0);
    bide_atomic_init(&worker->sleeps, 0);
    bide_atomic_init(&worker->longest, 0);
    bide_atomic_init(&worker->deep_joins, 0);
    bide_atomic_init(&worker->seen_turns, 0);
}

static void pool_init_scheduler(bide_scheduler *scheduler, bool may_spin)
{
    scheduler->post = bide_pool_post_;
    scheduler->one_thread = false;
    scheduler->idle = may_spin ? bide_pool_is_idle_ : NULL;
    scheduler->take_back = bide_pool_take_back_;
    scheduler->set_timer = bide_pool_set_timer_;
    scheduler->clear_timer = bide_pool_clear_timer_;
    scheduler->runs_here_only = pool_runs_here_only;
    scheduler->post_last = bide_pool_post_last_;
    scheduler->environment = NULL;
    scheduler->real_time = true;
    scheduler->io = NULL;
    bide_atomic_init(&scheduler->patience, BIDE_PATIENCE_MAX);
}

static bide_thread_pool *thread_pool_allocate(unsigned threads, unsigned spares)
{
    enum { ALIGNMENT = _Alignof(bide_pool_worker) };
    BIDE_STATIC_ASSERT(
        sizeof(bide_thread_pool) % ALIGNMENT == 0 && sizeof(bide_pool_worker) % ALIGNMENT == 0 &&
            sizeof(bide_pool_wheel) % ALIGNMENT == 0 && ALIGNMENT % _Alignof(bide_pool_wheel) == 0,
        "the workers and the wheels are behind the pool in memory");
    unsigned places = threads + spares;
    unsigned wheels = places < BIDE_POOL_WHEELS_MAX_ ? places : (unsigned)BIDE_POOL_WHEELS_MAX_;
    size_t size = sizeof(bide_thread_pool) + wheels * sizeof(bide_pool_wheel) +
                  places * (sizeof(bide_pool_worker) + sizeof(pthread_t));
    void *memory = malloc(size + ALIGNMENT - 1);
    if (memory == NULL)
        return NULL;
    bide_thread_pool *pool = (void *)(((uintptr_t)memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    pool->memory = memory;
    pool->count = threads;
    pool->places = places;
    pool->workers = (bide_pool_worker *)(void *)(pool + 1);
    pool->wheel_count = wheels;
    pool->wheels = (bide_pool_wheel *)(void *)(pool->workers + places);
    pool->threads = (pthread_t *)(void *)(pool->wheels + wheels);
    return pool;
}

static void pool_apply_options(bide_thread_pool *pool, const bide_thread_pool_options *options)
{
    pool->are_turns_timed = options->times_runs;
    if (options->event_interval != 0)
        pool->look_turns_max = options->event_interval;
    pool->stack_size = options->stack_size;
    pool->hooks = options->hooks;
    if (options->name != NULL) {
        strncpy(pool->name, options->name, sizeof pool->name - 1);
        pool->name[sizeof pool->name - 1] = '\0';
    }
    pool->are_placed = options->processors != NULL;
    for (unsigned i = 0; i < pool->places; i++) {
        bool is_placed = pool->are_placed && i < pool->count;
        pool->workers[i].processor = is_placed ? options->processors[i] : 0;
        pool->workers[i].maintenance_countdown = pool->look_turns_max;
        bide_pool_forget_pace_(&pool->workers[i]);
    }
}

static void pool_init(bide_thread_pool *pool)
{
    bool may_spin = bide_processors_() > 1;
    pool_init_scheduler(&pool->scheduler, may_spin);
    pool->may_spin = may_spin;
    pool->are_turns_timed = false;
    pool->hooks = (bide_thread_pool_hooks){NULL, NULL, NULL, NULL, NULL};
    pool->name[0] = '\0';
    pool->are_placed = false;
    pool->stack_size = 0;
    pool->look_turns_max = BIDE_POOL_MAINTENANCE_TURNS_;
    pool->generation = bide_generation_;
    pool->driver = NULL;
    bide_atomic_init(&pool->deque_hooks, NULL);
    bide_atomic_init(&pool->begun, 0);
    bide_atomic_init(&pool->calls, 0);
    bide_atomic_init(&pool->ended, 0);
    bide_atomic_init(&pool->halted, 0);
    pool->is_shut_down = pool->is_joined = false;
    bide_pool_init_blocked_(pool);
    bide_atomic_init(&pool->idle, 0);
    bide_atomic_init(&pool->watched, 0);
    bide_pool_init_wheels_(pool);
    pthread_mutex_init(&pool->outside_lock, NULL);
    bide_atomic_init(&pool->is_injected, 0);
    pthread_mutex_init(&pool->lock, NULL);
    pool->injected.first = NULL;
    pool->passed = NULL;
    pool->first_idle = NULL;
    pool->timekeeper = NULL;
    pool->ending = pool->is_over = false;
    for (unsigned i = 0; i < pool->places; i++)
        pool_init_worker(pool, i);
    bide_pool_init_spares_(pool);
}

bide_thread_pool *bide_pool_make_(unsigned threads, unsigned spares)
{
    bide_thread_pool *pool = thread_pool_allocate(threads, spares);
    if (pool != NULL)
        pool_init(pool);
    return pool;
}

void bide_pool_free_(bide_thread_pool *pool)
{
    bide_assert(pool->first_idle == NULL && pool->timekeeper == NULL);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->outside_lock);
    for (unsigned i = 0; i < pool->places; i++)
        bide_fork_task_free_stacks_(&pool->workers[i]);
    free(pool->memory);
}

void bide_pool_join_(bide_thread_pool *pool)
{
    if (!pool->is_joined)
        bide_threads_join_(pool->threads, pool->places);
    pool->is_joined = true;
}

static bool pool_may_use(const unsigned *processors, unsigned count)
{
    for (unsigned i = 0; processors != NULL && i < count; i++) {
        if (!bide_threads_may_use_(processors[i]))
            return false;
    }
    return true;
}

int bide_pool_create_(bide_thread_pool **created, const bide_thread_pool_options *options,
                      bide_pool_driver *driver, bide_io *(*io)(bide_scheduler *scheduler))
{
    unsigned threads = options->threads != 0 ? options->threads : bide_processors_();
    unsigned spares = options->spare_threads;
    if (threads > BIDE_THREADS_MAX_ || spares > BIDE_THREADS_MAX_ - threads ||
        (driver != NULL && spares != 0) || options->event_interval == 1 ||
        options->event_interval > EVENT_INTERVAL_MAX || !pool_may_use(options->processors, threads))
        return -EINVAL;
    bide_thread_pool *pool = bide_pool_make_(threads, spares);
    if (pool == NULL)
        return -ENOMEM;
    pool_apply_options(pool, options);
    pool->driver = driver;
    pool->scheduler.io = io;
    int error = bide_threads_start_sized_(pool->threads, pool->places, options->stack_size,
                                          pool_worker_main, pool, pool_end_all);
    if (error != 0) {
        bide_pool_free_(pool);
        return error;
    }
#if BIDE_OBSERVED
    bide_registry_add_(&pool->live, BIDE_LIVE_POOL_);
#endif
    *created = pool;
    return 0;
}

int bide_thread_pool_create_with(bide_thread_pool **created,
                                 const bide_thread_pool_options *options)
{
    return bide_pool_create_(created, options, NULL, NULL);
}

int bide_thread_pool_create(bide_thread_pool **created, unsigned threads)
{
    const bide_thread_pool_options options = {.threads = threads};
    return bide_thread_pool_create_with(created, &options);
}

void bide_thread_pool_destroy_in_(bide_thread_pool *pool, const char *function, const char *file,
                                  unsigned line)
{
    if (pool == NULL)
        return;
    if (bide_is_inherited_(pool->generation))
        bide_misuse_("a thread pool is destroyed in a child of the process that created it",
                     function, file, line);
    if (bide_pool_worker_of_(pool) != NULL)
        bide_misuse_("a thread pool is destroyed on one of its threads", function, file, line);
    if (bide_atomic_load(&pool->calls, relaxed) != 0)
        bide_misuse_("a thread pool is destroyed while a call runs in it", function, file, line);
#if BIDE_OBSERVED
    bide_registry_remove_(&pool->live);
#endif
    bide_pool_end_(pool);
    bide_pool_join_(pool);
    bide_pool_await_outside_(pool);
    bide_report_leaked_waiters_(&pool->scheduler, bide_pool_find_timers_(pool),
                                "a thread pool is destroyed while a timer of it is set",
                                "a thread pool is destroyed while a task of it waits", file, line);
    if (bide_atomic_load(&pool->halted, relaxed) != 0 && bide_pool_count_all_ready_(pool) != 0)
        bide_misuse_(
            "a thread pool that was shut down is destroyed while a coroutine of it is ready",
            function, file, line);
    if (pool->driver != NULL)
        pool->driver->destroy(pool->driver);
    bide_pool_free_(pool);
}

#undef bide_thread_pool_destroy

void bide_thread_pool_destroy(bide_thread_pool *pool)
{
    bide_thread_pool_destroy_in_(pool, __func__, __FILE__, __LINE__);
}

bide_scheduler *bide_thread_pool_scheduler(bide_thread_pool *pool)
{
    return &pool->scheduler;
}

unsigned bide_thread_pool_threads(const bide_thread_pool *pool)
{
    return pool->count;
}

int bide_thread_pool_get_worker_stats(bide_thread_pool *pool, unsigned worker,
                                      bide_thread_pool_worker_stats *counts)
{
    if (worker >= pool->places)
        return -EINVAL;
    bide_pool_worker *of = &pool->workers[worker];
    counts->runs = bide_atomic_load(&of->turns, relaxed);
    counts->steals = bide_atomic_load(&of->steals, relaxed);
    counts->sleeps = bide_atomic_load(&of->sleeps, relaxed);
    counts->longest_run = bide_atomic_load(&of->longest, relaxed);
    counts->deep_joins = bide_atomic_load(&of->deep_joins, relaxed);
    counts->ready = bide_pool_count_ready_(of);
    return 0;
}

void bide_thread_pool_get_stats(bide_thread_pool *pool, bide_thread_pool_stats *counts)
{
    counts->runs = 0;
    counts->steals = 0;
    counts->sleeps = 0;
    counts->longest_run = 0;
    counts->stand_ins = bide_atomic_load(&pool->stand_ins, relaxed);
    counts->spares = bide_atomic_load(&pool->acting, relaxed);
    for (unsigned i = 0; i < pool->places; i++) {
        bide_thread_pool_worker_stats worker;
        (void)bide_thread_pool_get_worker_stats(pool, i, &worker);
        counts->runs += worker.runs;
        counts->steals += worker.steals;
        counts->sleeps += worker.sleeps;
        if (worker.longest_run > counts->longest_run)
            counts->longest_run = worker.longest_run;
    }
}
