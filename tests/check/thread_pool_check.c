/*
 * The thread pool: its queue, how its threads sleep and are woken, its timers, and its end.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/task.h"
#include "bide/thread_pool.h"

typedef struct state {
    bide_thread_pool *pool;
    bide_context context;
    bide_event event;
    bide_event met;
    int data;
    bide_atomic(uint32_t) ran;
} state;

struct worker {
    bide_task task;
    state *state;
    bide_event_waiter wait;
    bide_sleep sleep;
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
    bide_event_init(&((state *)p)->met, false);
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

bide_coroutine(sleep_and_set_body)
{
    bide_begin(sleep_and_set_body, struct worker * self);
    bide_try(bide_sleep_until(&self->sleep, LATER));
    bide_event_set(&self->state->event);
    bide_end();
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

/* A timer that no thread of the pool sets. */
static void begin_outside_and_wait(void *p)
{
    state *s = p;
    struct worker worker = {.state = s};
    bide_event_waiter wait;
    create(s, 1);
    bide_start(&worker.task.frame, &sleep_and_set_body, &s->context);
    bide_resume(&worker.task.frame);
    bide_check_await(bide_event_wait(&wait, &s->event));
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario set_outside = {
    .name = "a_timer_that_is_set_outside_the_pool_is_kept",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {begin_outside_and_wait},
    .never_spurious = true,
};

/* ---- Two that need two threads, since each blocks its own until the other has come ---- */

static void meet(state *s)
{
    bide_event_waiter wait;
    if (bide_atomic_fetch_add(&s->ran, 1, acq_rel) == 1)
        bide_event_set(&s->met);
    bide_check_await(bide_event_wait(&wait, &s->met));
}

bide_coroutine(meeting_body)
{
    bide_begin(meeting_body, struct worker * self);
    bide_await(bide_event_wait(&self->wait, &self->state->event));
    meet(self->state);
    bide_end();
}

/* They are begun here, so that nothing but the event brings them to the pool. */
static void two_woken_at_once_meet(void *p)
{
    state *s = p;
    struct worker worker[2];
    bide_event_waiter wait;
    create(s, 2);
    for (unsigned i = 0; i < 2; i++) {
        worker[i].state = s;
        bide_start(&worker[i].task.frame, &meeting_body, &s->context);
        bide_resume(&worker[i].task.frame);
    }
    bide_event_set(&s->event);
    bide_check_await(bide_event_wait(&wait, &s->met));
    bide_thread_pool_destroy(s->pool);
}

static const bide_check_scenario woken_at_once = {
    .name = "two_that_are_woken_at_once_have_two_threads",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {two_woken_at_once_meet},
    .never_spurious = true,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&created,     &one_one,        &one_two,
                                                     &two_one,     &sleeper_of_one, &sleeper_of_two,
                                                     &set_outside, &woken_at_once,  NULL};
    static const char *const files[] = {"thread_pool.c", "worker.c", "run_queue.h", "threads.c",
                                        NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
