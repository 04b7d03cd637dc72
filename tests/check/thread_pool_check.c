/*
 * The thread pool: its queue, how its threads sleep and are woken, its timers, and its end.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/task.h"
#include "bide/thread_pool.h"

typedef struct state {
    bide_thread_pool *pool;
    bide_context context;
    bide_event event;
    int data;
    bide_atomic(uint32_t) ran;
} state;

struct worker {
    bide_task task;
    state *state;
    bide_event_waiter wait;
};

bide_coroutine(worker_body)
{
    bide_begin(worker_body, struct worker * self);
    bide_await(bide_event_wait(&self->wait, &self->state->event));
    bide_check_assert(self->state->data == 1);
    bide_atomic_fetch_add(&self->state->ran, 1, relaxed);
    bide_end();
}

static void setup(void *p)
{
    bide_event_init(&((state *)p)->event, false);
}

static void create(state *s, unsigned threads)
{
    bide_check_assert(bide_thread_pool_create(&s->pool, threads) == 0);
    s->context = (bide_context){.scheduler = bide_thread_pool_scheduler(s->pool)};
}

static void spawn_and_wait(state *s, unsigned threads, unsigned workers)
{
    struct worker worker[2];
    bide_spawned spawned[2];
    bide_event_waiter wait;
    create(s, threads);
    for (unsigned i = 0; i < workers; i++) {
        worker[i].state = s;
        bide_spawn(&spawned[i], &s->context, bide_task_init(&worker[i].task, &worker_body));
    }
    for (unsigned i = 0; i < workers; i++)
        bide_check_await(bide_event_wait(&wait, &spawned[i].ended));
    bide_thread_pool_destroy(s->pool);
    bide_check_assert(bide_atomic_load(&s->ran, relaxed) == workers);
}

static void one_thread_one_worker(void *p)
{
    spawn_and_wait(p, 1, 1);
}

static void one_thread_two_workers(void *p)
{
    spawn_and_wait(p, 1, 2);
}

static void two_threads_one_worker(void *p)
{
    spawn_and_wait(p, 2, 1);
}

static void set_event(void *p)
{
    state *s = p;
    s->data = 1;
    bide_event_set(&s->event);
}

static void create_and_destroy(void *p)
{
    state *s = p;
    create(s, 2);
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario created = {
    .name = "a_pool_of_two_ends",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {create_and_destroy},
};

static const bide_check_scenario one_one = {
    .name = "a_pool_of_one_runs_what_another_thread_wakes",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {one_thread_one_worker, set_event},
};

static const bide_check_scenario one_two = {
    .name = "a_pool_of_one_runs_two",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {one_thread_two_workers, set_event},
    .never_spurious = true,
};

static const bide_check_scenario two_one = {
    .name = "a_pool_of_two_runs_one",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {two_threads_one_worker, set_event},
    .never_spurious = true,
};

/* ---- Timers. The clock stands at 1: what is due later comes when a thread has slept until then ---- */

enum { LATER = 5 };

struct sleeper {
    bide_task task;
    state *state;
    bide_sleep sleep;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    bide_try(bide_sleep_until(&self->sleep, LATER));
    bide_atomic_fetch_add(&self->state->ran, 1, relaxed);
    bide_end();
}

static void sleep_and_wait(state *s, unsigned threads)
{
    struct sleeper sleeper = {.state = s};
    bide_spawned spawned;
    bide_event_waiter wait;
    create(s, threads);
    bide_spawn(&spawned, &s->context, bide_task_init(&sleeper.task, &sleeper_body));
    bide_check_await(bide_event_wait(&wait, &spawned.ended));
    bide_check_assert(spawned.root.status == 0);
    bide_thread_pool_destroy(s->pool);
    bide_check_assert(bide_atomic_load(&s->ran, relaxed) == 1);
}

static void one_thread_sleeps(void *p)
{
    sleep_and_wait(p, 1);
}

static void one_of_two_threads_sleeps(void *p)
{
    sleep_and_wait(p, 2);
}

static const bide_check_scenario sleeper_of_one = {
    .name = "a_pool_of_one_sleeps_until_its_timer_is_due",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {one_thread_sleeps},
};

static const bide_check_scenario sleeper_of_two = {
    .name = "one_thread_of_a_pool_of_two_keeps_the_time",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {one_of_two_threads_sleeps},
    .never_spurious = true,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &created, &one_one, &one_two, &two_one, &sleeper_of_one, &sleeper_of_two, NULL};
    static const char *const files[] = {"thread_pool.c", "threads.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
