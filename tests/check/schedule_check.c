/*
 * The run loop's queue, sleep and timers, spawn, sync_wait: coroutines that are woken by other
 * threads, and threads that sleep until they are needed.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/run_loop.h"
#include "bide/sequence8.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include "../../src/system/descriptors.h"

typedef struct state {
    bide_run_loop loop;
    bide_event event;
    bide_event second;
    bide_sequence_barrier8 barrier;
    int data;
    int result;
    bide_run_loop *allocated;
    void *shared;
    void *second_alarm; /* sets `second`; NULL: none does */
    bide_atomic(uint32_t) rung;
    bide_atomic(uint32_t) flag;
} state;

/* Waits for both events, on any scheduler. */
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
    self->state->result++;
    bide_return(7 * -1);
    bide_end();
}

static void setup(void *p)
{
    state *s = p;
    bide_run_loop_init(&s->loop);
    bide_event_init(&s->event, false);
    bide_event_init(&s->second, false);
    bide_atomic_init(&s->rung, 0);
}

static void set_event(void *p)
{
    state *s = p;
    s->data = 1;
    bide_event_set(&s->event);
}

/* ---- sync_wait: a plain thread sleeps until a coroutine has ended ---- */

static void wait_on_this_thread(void *p)
{
    struct worker worker = {.state = p};
    bide_check_assert(bide_sync_wait(bide_task_init(&worker.task, &worker_body)) == -7);
    bide_check_assert(((state *)p)->result == 1);
}

static const bide_check_scenario sync_wait = {
    .name = "a_thread_waits_for_a_coroutine_that_another_ends",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_event, wait_on_this_thread},
};

/* ---- The run loop ---- */

static void run_until_the_worker_has_ended(void *p)
{
    state *s = p;
    struct worker worker = {.state = s};
    bide_check_assert(bide_run_loop_wait(&s->loop, bide_task_init(&worker.task, &worker_body)) ==
                      -7);
    bide_check_assert(s->result == 1);
}

static const bide_check_scenario loop_woken = {
    .name = "a_loop_sleeps_until_its_coroutine_is_woken",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_event, run_until_the_worker_has_ended},
};

/* Two threads post to a loop that may be asleep. */
struct pair {
    bide_task task;
    state *state;
    bide_event_waiter first, second;
};

bide_coroutine(pair_body)
{
    bide_begin(pair_body, struct pair * self);
    bide_await(bide_event_wait(&self->first, &self->state->event));
    bide_await(bide_event_wait(&self->second, &self->state->second));
    bide_end();
}

static void set_second(void *p)
{
    bide_event_set(&((state *)p)->second);
}

static void run_until_the_pair_has_ended(void *p)
{
    state *s = p;
    struct pair pair = {.state = s};
    bide_check_assert(bide_run_loop_wait(&s->loop, bide_task_init(&pair.task, &pair_body)) == 0);
}

static const bide_check_scenario loop_woken_by_two = {
    .name = "two_wake_a_coroutine_of_a_loop_in_turn",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {set_event, set_second, run_until_the_pair_has_ended},
    .never_spurious = true,
};

/*
 * A coroutine that is about to wait on a barrier checks again first, because its loop has nothing
 * else to do.
 */
struct looker {
    bide_task task;
    state *state;
    bide_sequence_waiter8 wait;
};

bide_coroutine(looker_body)
{
    bide_begin(looker_body, struct looker * self);
    bide_await(bide_sequence_barrier8_wait_until_published(&self->wait, &self->state->barrier, 1));
    bide_check_assert(self->state->data == 1);
    bide_end();
}

static void setup_barrier(void *p)
{
    setup(p);
    bide_sequence_barrier8_init(&((state *)p)->barrier, 0);
}

static void publish(void *p)
{
    state *s = p;
    s->data = 1;
    bide_sequence_barrier8_publish(&s->barrier, 1);
}

static void run_until_the_looker_has_ended(void *p)
{
    state *s = p;
    struct looker looker = {.state = s};
    bide_check_assert(bide_run_loop_wait(&s->loop, bide_task_init(&looker.task, &looker_body)) ==
                      0);
}

static const bide_check_scenario looked = {
    .name = "a_coroutine_of_a_loop_looks_before_it_waits",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_barrier,
    .threads = {publish, run_until_the_looker_has_ended},
};

/* ---- Order: posts by another thread before those by the loop's own thread run first ---- */

typedef struct noted {
    bide_frame frame;
    state *state;
    int before; /* the value of `result` when it runs */
} noted;

static bide_next noted_step(bide_frame *frame, unsigned depth)
{
    noted *self = bide_container_of(frame, noted, frame);
    (void)depth;
    bide_check_assert(self->state->result == self->before);
    self->state->result++;
    return bide_next_none();
}

static const bide_coroutine_code noted_code = {noted_step, "noted", __FILE__, NULL, NULL};
static const bide_point noted_point = BIDE_POINT_START(&noted_code);

static void post_noted(state *s, int number)
{
    noted *self = &((noted *)s->shared)[number];
    self->state = s;
    self->before = number;
    self->frame.awaiter.ops = &noted_point.ops;
    self->frame.awaiter.frame = &self->frame;
    self->frame.context = &s->loop.context;
    bide_wake_one(&self->frame.awaiter);
}

static void setup_noted(void *p)
{
    setup(p);
    ((state *)p)->shared = bide_check_alloc(2 * sizeof(noted));
    bide_atomic_init(&((state *)p)->flag, 0);
}

static void post_the_first(void *p)
{
    state *s = p;
    post_noted(s, 0);
    bide_atomic_store(&s->flag, 1, release);
}

/* On the loop. */
struct second {
    bide_task task;
    state *state;
};

bide_coroutine(second_body)
{
    bide_begin(second_body, struct second * self);
    if (bide_atomic_load(&self->state->flag, acquire) == 1) {
        post_noted(self->state, 1);
        bide_check_note("%s", "both");
    }
    bide_end();
}

static void post_the_second_afterwards(void *p)
{
    state *s = p;
    struct second second = {.state = s};
    bide_check_assert(bide_run_loop_wait(&s->loop, bide_task_init(&second.task, &second_body)) ==
                      0);
    bide_run_loop_run_ready(&s->loop);
}

static void free_noted(void *p)
{
    state *s = p;
    bide_run_loop_run_ready(&s->loop);
    bide_check_assert(s->result >= 1);
    bide_check_free(s->shared);
}

static const bide_check_scenario in_order = {
    .name = "what_another_thread_has_posted_before_runs_first",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_noted,
    .threads = {post_the_first, post_the_second_afterwards},
    .finish = free_noted,
};

/* Both by the other thread. */
static void post_both(void *p)
{
    post_noted(p, 0);
    post_noted(p, 1);
    bide_atomic_store(&((state *)p)->flag, 1, release);
}

static void run_both(void *p)
{
    state *s = p;
    bide_run_loop_run_ready(&s->loop);
}

static void finish_both(void *p)
{
    state *s = p;
    bide_run_loop_run_ready(&s->loop);
    bide_check_assert(s->result == 2);
    bide_check_free(s->shared);
}

static const bide_check_scenario both_in_order = {
    .name = "what_another_thread_posts_runs_in_its_order",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_noted,
    .threads = {post_both, run_both},
    .finish = finish_both,
};

/* ---- Spawning on another thread's loop, and stopping it ---- */

static void run_the_loop(void *p)
{
    bide_run_loop_run(&((state *)p)->loop);
}

static void spawn_wait_and_stop(void *p)
{
    state *s = p;
    struct worker worker = {.state = s};
    bide_spawned spawned;
    bide_event_waiter wait;
    set_event(s);
    bide_spawn(&spawned, &s->loop.context, bide_task_init(&worker.task, &worker_body));
    bide_check_await(bide_event_wait(&wait, &spawned.ended));
    bide_check_assert(spawned.root.status == -7 && s->result == 1);
    bide_run_loop_stop(&s->loop);
}

static const bide_check_scenario spawned_elsewhere = {
    .name = "what_is_spawned_on_another_loop_ends_and_the_loop_is_stopped",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {run_the_loop, spawn_wait_and_stop},
    .never_spurious = true,
};

static void stop_the_loop(void *p)
{
    bide_run_loop_stop(&((state *)p)->loop);
}

static const bide_check_scenario stopped_by_two = {
    .name = "two_stop_a_loop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {run_the_loop, stop_the_loop, stop_the_loop},
};

/*
 * Two runs, with a stop for each: the second stop may come before the end of the first run, and is
 * then part of that.
 */
static void run_twice(void *p)
{
    state *s = p;
    bide_run_loop_run(&s->loop);
    s->data++;
    bide_event_set(&s->event);
    bide_run_loop_run(&s->loop);
    s->data++;
}

static void stop_twice(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_run_loop_stop(&s->loop);
    bide_check_await(bide_event_wait(&wait, &s->event));
    bide_run_loop_stop(&s->loop);
}

static const bide_check_scenario run_and_stopped_twice = {
    .name = "a_loop_is_run_and_stopped_twice",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {run_twice, stop_twice},
    .never_spurious = true,
};

/* A loop may be freed as soon as it owns nothing: a poster uses only its address by then. */
static void setup_allocated(void *p)
{
    state *s = p;
    setup(p);
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_run_loop_init(s->allocated);
}

static void run_and_free(void *p)
{
    state *s = p;
    struct worker worker = {.state = s};
    bide_run_loop_wait(s->allocated, bide_task_init(&worker.task, &worker_body));
    bide_check_free(s->allocated);
}

static const bide_check_scenario loop_freed = {
    .name = "a_loop_is_freed_once_its_coroutine_has_ended",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_allocated,
    .threads = {set_event, run_and_free},
};

/* ---- Timers. The clock is at 1: a later time comes after a thread has slept until then ---- */

enum { DUE = 1, LATER = 5 };

/* Sleeps, and then waits for the event. */
struct sleeper {
    bide_task task;
    state *state;
    bide_sleep sleep;
    bide_event_waiter wait;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    bide_try(bide_sleep_until(&self->sleep, LATER));
    bide_await(bide_event_wait(&self->wait, &self->state->event));
    bide_check_assert(self->state->data == 1);
    bide_end();
}

static void run_until_the_sleeper_has_ended(void *p)
{
    state *s = p;
    struct sleeper sleeper = {.state = s};
    bide_check_assert(bide_run_loop_wait(&s->loop, bide_task_init(&sleeper.task, &sleeper_body)) ==
                      0);
}

static const bide_check_scenario loop_slept = {
    .name = "a_loop_sleeps_until_its_timer_is_due",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup,
    .threads = {run_until_the_sleeper_has_ended, set_event},
};

/* A timer whose frame, on the loop, sets the event. */
typedef struct alarm {
    bide_timer timer;
    bide_frame frame;
    state *state;
} alarm;

static bide_next alarm_step(bide_frame *frame, unsigned depth)
{
    (void)depth;
    alarm *self = bide_container_of(frame, alarm, frame);
    state *s = self->state;
    bide_event *event = self == s->second_alarm ? &s->second : &s->event;
    bide_atomic_fetch_add(&s->rung, 1, relaxed);
    bide_event_set(event);
    return bide_next_none();
}

static const bide_coroutine_code alarm_code = {alarm_step, "alarm", __FILE__, NULL, NULL};
static const bide_point alarm_point = BIDE_POINT_START(&alarm_code);

static void alarm_set(alarm *self, state *s, uint64_t time)
{
    bide_timer_init(&self->timer, time);
    self->timer.awaiter.frame = &self->frame;
    self->frame.awaiter.ops = &alarm_point.ops;
    self->frame.context = &s->loop.context;
    self->state = s;
    s->data = 1;
    s->loop.scheduler.set_timer(&s->loop.scheduler, &self->timer);
}

static bool alarm_clear(alarm *self)
{
    return self->state->loop.scheduler.clear_timer(&self->state->loop.scheduler, &self->timer);
}

static void setup_two(void *p)
{
    setup(p);
    ((state *)p)->shared = bide_check_alloc(2 * sizeof(alarm));
}

static void set_an_alarm(void *p)
{
    state *s = p;
    alarm_set(s->shared, s, LATER);
}

static void run_until_the_alarm(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_run_loop_wait(&s->loop, bide_event_wait(&wait, &s->event));
    bide_check_assert(s->data == 1);
}

static void free_two(void *p)
{
    bide_check_free(((state *)p)->shared);
}

static const bide_check_scenario alarmed = {
    .name = "a_timer_that_another_thread_sets_is_served_by_a_loop_that_may_sleep",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {run_until_the_alarm, set_an_alarm},
    .finish = free_two,
};

/* The first is set in advance, and cleared or not; a cleared timer may be freed at once. */
static void setup_one_set(void *p)
{
    setup_two(p);
    set_an_alarm(p);
}

static void clear_and_set_another(void *p)
{
    state *s = p;
    alarm *alarms = s->shared;
    if (alarm_clear(&alarms[0])) {
        bide_check_assert(!bide_event_is_set(&s->event));
        alarms[0].timer.time = 0;
        alarm_set(&alarms[1], s, DUE);
    }
}

static const bide_check_scenario cleared = {
    .name = "a_timer_is_cleared_or_posted_by_a_loop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_set,
    .threads = {run_until_the_alarm, clear_and_set_another},
    .finish = free_two,
};

/* Both are due when the loop wakes, and it takes one at a time. Another thread may clear one until it is taken. */
static void setup_both_set(void *p)
{
    state *s = p;
    setup_two(s);
    alarm *alarms = s->shared;
    s->second_alarm = &alarms[1];
    alarm_set(&alarms[0], s, LATER);
    alarm_set(&alarms[1], s, LATER);
}

static void run_until_both(void *p)
{
    state *s = p;
    struct pair pair = {.state = s};
    bide_check_assert(bide_run_loop_wait(&s->loop, bide_task_init(&pair.task, &pair_body)) == 0);
    bide_check_assert(bide_atomic_load(&s->rung, relaxed) == 2);
}

/* Rings on behalf of an alarm that it has cleared. */
static void clear_the_first(void *p)
{
    alarm *first = ((state *)p)->shared;
    if (alarm_clear(first))
        alarm_step(&first->frame, 0);
}

static void clear_the_second(void *p)
{
    alarm *second = ((state *)p)->second_alarm;
    if (alarm_clear(second))
        alarm_step(&second->frame, 0);
}

static const bide_check_scenario first_of_due = {
    .name = "a_timer_that_is_due_is_taken_after_another_that_is_due",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_both_set,
    .threads = {run_until_both, clear_the_first},
    .finish = free_two,
};

static const bide_check_scenario second_of_due = {
    .name = "a_timer_that_is_due_and_left_is_taken_or_cleared",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_both_set,
    .threads = {run_until_both, clear_the_second},
    .finish = free_two,
};

/*
 * ---- A foreign loop: it polls a descriptor, which is a word here (src/system/descriptors.h) ----
 */

static void setup_polled(void *p)
{
    setup(p);
    bide_atomic_init(&bide_descriptor_word_, 0);
}

static void poll_and_run(void *p)
{
    state *s = p;
    struct worker worker = {.state = s};
    bide_spawned spawned;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_spawn(&spawned, &loop.context, bide_task_init(&worker.task, &worker_body));
    bide_check_assert(bide_run_loop_fd(&loop) == 0);
    while (!bide_event_is_set(&spawned.ended)) {
        while (bide_atomic_load(&bide_descriptor_word_, relaxed) == 0)
            bide_platform.wait(&bide_descriptor_word_, 0, BIDE_FOREVER);
        bide_run_loop_run_ready(&loop);
    }
    bide_run_loop_close_fd(&loop);
}

static const bide_check_scenario polled = {
    .name = "a_foreign_loop_that_polls_misses_no_wake",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_polled,
    .threads = {poll_and_run, set_event},
    .never_spurious = true,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&sync_wait,
                                                     &loop_woken,
                                                     &loop_freed,
                                                     &stopped_by_two,
                                                     &spawned_elsewhere,
                                                     &run_and_stopped_twice,
                                                     &loop_woken_by_two,
                                                     &looked,
                                                     &in_order,
                                                     &loop_slept,
                                                     &alarmed,
                                                     &cleared,
                                                     &first_of_due,
                                                     &second_of_due,
                                                     &both_in_order,
                                                     &polled,
                                                     NULL};
    static const char *const files[] = {"run_loop.c", "sync_wait.c", "spawn.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
