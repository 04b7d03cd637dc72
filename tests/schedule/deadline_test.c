/*
 * Deadlines and cancelled sleeps: the wait ends with the reason, and afterwards nothing refers to freed memory.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/barging_mutex.h"
#include "bide/condition.h"
#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>

#define MILLISECOND UINT64_C(1000000)
#define HOUR        (3600 * UINT64_C(1000000000))

static bool is_parked(bide_run_loop *loop)
{
    return bide_atomic_load(&loop->posted, relaxed) == 1;
}

/* Waits for the event, or sleeps for an hour, twice; records both statuses. */
struct waiter {
    bide_task task;
    bide_event *event; /* or NULL */
    bide_event_waiter wait;
    bide_sleep sleep;
    int first, second;
    int status; /* to end with */
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    if (self->event != NULL) {
        bide_await_status(self->first, bide_event_wait(&self->wait, self->event));
        bide_await_status(self->second, bide_event_wait(&self->wait, self->event));
    } else {
        bide_await_status(self->first, bide_sleep_for(&self->sleep, HOUR));
        bide_await_status(self->second, bide_sleep_for(&self->sleep, HOUR));
    }
    bide_return(self->status);
    bide_end();
}

static bide_awaiter *waiter_run(struct waiter *self, bide_event *event, int status)
{
    self->event = event;
    self->status = status;
    self->first = self->second = 1;
    return bide_task_init(&self->task, &waiter_body);
}

/* ---- The deadline passes ---- */

static void from_its_deadline_on_waits_end_with_ETIMEDOUT(void **state)
{
    (void)state;
    bide_event never;
    bide_event_init(&never, false);
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    for (unsigned i = 0; i < 6; i++) {
        struct waiter waiter;
        bide_with_deadline_operation operation;
        uint64_t time = i / 2 == 0 ? 0 : bide_platform.now() + (i / 2 - 1) * MILLISECOND;
        bide_awaiter *inner = waiter_run(&waiter, i % 2 == 0 ? &never : NULL, -EDOM);
        assert_int_equal(bide_run_loop_wait(&loop, bide_with_deadline(&operation, time, inner)),
                         -EDOM);
        assert_true(bide_platform.now() >= time);
        assert_int_equal(waiter.first, -ETIMEDOUT);
        assert_int_equal(waiter.second, -ETIMEDOUT);
        assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
        assert_false(schedule_is_awaited(&never));
    }
}

static void the_same_in_a_pool(void **state)
{
    (void)state;
    bide_event never;
    bide_event_init(&never, false);
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    for (unsigned i = 0; i < 200; i++) {
        struct waiter waiter;
        bide_with_deadline_operation operation;
        uint64_t time = bide_platform.now() + i % 7 * (MILLISECOND / 20);
        bide_awaiter *inner = waiter_run(&waiter, i % 2 == 0 ? &never : NULL, 0);
        assert_int_equal(bide_sync_wait_in(&context, bide_with_deadline(&operation, time, inner)),
                         0);
        assert_true(bide_platform.now() >= time);
        assert_int_equal(waiter.first, -ETIMEDOUT);
        assert_int_equal(waiter.second, -ETIMEDOUT);
    }
    bide_thread_pool_destroy(pool);
}

static void a_single_operation_under_a_deadline_ends_with_ETIMEDOUT(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_sleep sleep;
    bide_with_deadline_operation operation;
    assert_int_equal(
        bide_run_loop_wait(&loop, bide_with_deadline(&operation, 0, bide_sleep_for(&sleep, HOUR))),
        -ETIMEDOUT);
}

/* ---- The deadline does not pass ---- */

static void what_ends_before_its_deadline_ends_as_it_would_without(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    uint64_t time = bide_platform.now() + HOUR;
    bide_with_deadline_operation operation;
    witness task;
    assert_int_equal(bide_run_loop_wait(&loop, bide_with_deadline(&operation, time,
                                                                  witness_run(&task, NULL, -EDOM))),
                     -EDOM);
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);

    bide_sleep sleep;
    assert_int_equal(bide_run_loop_wait(
                         &loop, bide_with_deadline(&operation, time, bide_sleep_for(&sleep, 1000))),
                     0);
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);

    bide_event set;
    bide_event_init(&set, true);
    bide_event_waiter wait; /* ends at once */
    assert_int_equal(bide_run_loop_wait(&loop, bide_with_deadline(&operation, BIDE_FOREVER,
                                                                  bide_event_wait(&wait, &set))),
                     0);
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
}

static void without_timers_it_ends_with_ENOTSUP(void **state)
{
    (void)state;
    bide_scheduler untimed = {.post = bide_inline_scheduler.post,
                              .take_back = bide_inline_scheduler.take_back};
    const bide_context context = {.scheduler = &untimed};
    witness task;
    bide_with_deadline_operation operation;
    bide_awaiter *inner = witness_run(&task, NULL, 0);
    assert_int_equal(bide_sync_wait_in(&context, bide_with_deadline(&operation, 0, inner)),
                     -ENOTSUP);
    assert_int_equal(witness_ends(&task), 0);
    bide_deadline deadline;
    assert_int_equal(bide_deadline_init(&deadline, &context, 0), -ENOTSUP);
}

static void of_two_deadlines_the_earlier_counts(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    uint64_t hour = bide_platform.now() + HOUR;
    for (unsigned i = 0; i < 2; i++) {
        struct waiter waiter;
        bide_with_deadline_operation outer, inner;
        bide_awaiter *awaiter = waiter_run(&waiter, NULL, 0);
        awaiter = bide_with_deadline(&inner, i == 0 ? 1 : hour, awaiter);
        awaiter = bide_with_deadline(&outer, i == 0 ? hour : 1, awaiter);
        assert_int_equal(bide_run_loop_wait(&loop, awaiter), 0);
        assert_int_equal(waiter.first, -ETIMEDOUT);
        assert_int_equal(bide_stop_requested(&outer.deadline.source), i == 1);
        assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
    }
}

/* ---- Stop requests ---- */

struct asker {
    bide_run_loop *loop;
    bide_stop_source *source;
};

static void *ask_when_parked(void *argument)
{
    struct asker *asker = argument;
    schedule_until(is_parked(asker->loop));
    bide_stop_request(asker->source);
    return NULL;
}

/* A sleep alone, and under a deadline. */
static void a_request_cuts_a_sleep_short(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        bide_run_loop loop;
        bide_run_loop_init(&loop);
        bide_stop_source source;
        bide_stop_source_init(&source);
        loop.context.stop = &source;
        struct asker asker = {&loop, &source};
        pthread_t thread = schedule_thread(ask_when_parked, &asker);
        struct waiter waiter;
        bide_with_deadline_operation operation;
        bide_awaiter *awaiter = waiter_run(&waiter, NULL, -EDOM);
        if (i % 2 == 0)
            awaiter = bide_with_deadline(&operation, bide_platform.now() + HOUR, awaiter);
        assert_int_equal(bide_run_loop_wait(&loop, awaiter), -EDOM);
        pthread_join(thread, NULL);
        assert_int_equal(waiter.first, -ECANCELED);
        assert_int_equal(waiter.second, -ECANCELED);
        assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
    }
}

/* ---- The end of a deadline ---- */

/* Its sleep resumes it when the deadline has been posted too, but has not run; then it ends the deadline. */
struct ender {
    bide_task task;
    bide_sleep sleep;
    bide_deadline deadline;
    bide_deadline_waiter end;
    bool before, after, tried;
    int status;
};

bide_coroutine(ender_body)
{
    bide_begin(ender_body, struct ender * self);
    self->status = bide_deadline_init(&self->deadline, bide_this_context(), 2);
    if (self->status != 0)
        bide_return(self->status);
    bide_try(bide_sleep_until(&self->sleep, 1));
    self->before = bide_stop_requested(&self->deadline.source);
    self->tried = bide_deadline_try_stop(&self->deadline);
    bide_await_status(self->status, bide_deadline_stop(&self->end, &self->deadline));
    self->after = bide_stop_requested(&self->deadline.source);
    bide_end();
}

static void the_end_of_a_deadline_that_fires_right_now_is_awaited(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct ender ender;
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&ender.task, &ender_body)), 0);
    assert_false(ender.before);
    assert_false(ender.tried);
    assert_true(ender.after);
    assert_int_equal(ender.status, 0);
}

static void a_deadline_can_be_ended_before_and_after_its_time_and_twice(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_deadline deadline;
    bide_deadline_waiter end;
    for (unsigned fires = 0; fires < 2; fires++) {
        assert_int_equal(bide_deadline_init(&deadline, &loop.context, fires ? 1 : BIDE_FOREVER), 0);
        bide_run_loop_run_ready(&loop);
        assert_int_equal(bide_stop_reason(&deadline.source), fires ? -ETIMEDOUT : 0);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(bide_run_loop_wait(&loop, bide_deadline_stop(&end, &deadline)), 0);
            assert_true(bide_deadline_try_stop(&deadline));
        }
        bide_run_loop_run_ready(&loop);
        assert_int_equal(bide_stop_reason(&deadline.source), fires ? -ETIMEDOUT : 0);
    }
}

/* ---- Destroying ---- */

/* Runs a waiter under a deadline. */
struct limited {
    bide_task task;
    bide_spawned spawned;
    struct waiter waiter;
    bide_with_deadline_operation operation;
    uint64_t time;
};

bide_coroutine(limited_body)
{
    bide_begin(limited_body, struct limited * self);
    bide_await(
        bide_with_deadline(&self->operation, self->time, waiter_run(&self->waiter, NULL, 0)));
    bide_end();
}

struct destroyer {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    bide_frame *other;
};

bide_coroutine(destroyer_body)
{
    bide_begin(destroyer_body, struct destroyer * self);
    bide_try(bide_sleep_until(&self->sleep, 1));
    bide_destroy(self->other);
    bide_end();
}

/* Destroyed long before the deadline, and when the deadline has been posted but has not run. */
static void a_coroutine_under_a_deadline_can_be_destroyed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        bide_run_loop loop;
        bide_run_loop_init(&loop);
        struct limited limited = {.time = i == 0 ? bide_platform.now() + HOUR : 2};
        struct destroyer destroyer = {.other = &limited.spawned.root.frame};
        bide_spawn(&limited.spawned, &loop.context, bide_task_init(&limited.task, &limited_body));
        bide_spawn(&destroyer.spawned, &loop.context,
                   bide_task_init(&destroyer.task, &destroyer_body));
        bide_run_loop_run_ready(&loop); /* both wait */
        bide_run_loop_run_ready(&loop);
        assert_true(bide_event_is_set(&destroyer.spawned.ended));
        assert_true(bide_done(&limited.task.frame));
        assert_true(bide_done(&limited.waiter.task.frame));
        assert_int_equal(limited.waiter.first, 1);
        memset(&limited, 0xff, sizeof limited); /* nothing refers to it */
        assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
        assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    }
}

/* The test posts its timer. */
struct timed_by_hand {
    by_hand by_hand;
    bide_timer *timer; /* the set one, or NULL */
};

static int timed_set(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_container_of(scheduler, struct timed_by_hand, by_hand.scheduler)->timer = timer;
    return 0;
}

static bool timed_clear(bide_scheduler *scheduler, bide_timer *timer)
{
    struct timed_by_hand *self =
        bide_container_of(scheduler, struct timed_by_hand, by_hand.scheduler);
    bool is_set = self->timer == timer;
    self->timer = NULL;
    return is_set;
}

struct locks {
    bide_task task;
    bide_with_deadline_operation operation;
    bide_awaiter *lock;
    int status;
};

bide_coroutine(locks_body)
{
    bide_begin(locks_body, struct locks * self);
    bide_await_status(self->status, bide_with_deadline(&self->operation, 1, self->lock));
    bide_end();
}

/* Suspends in it. The caller ends it, and destroys it while it waits for its timer, which was posted. */
static void begin_under_deadline(struct timed_by_hand *self, struct locks *locks)
{
    by_hand_init(&self->by_hand);
    self->by_hand.scheduler.set_timer = timed_set;
    self->by_hand.scheduler.clear_timer = timed_clear;
    locks->status = 1;
    bide_start(&locks->task.frame, &locks_body, &self->by_hand.context);
    by_hand_begin(&self->by_hand, &locks->task);
    assert_non_null(self->timer);
}

static void destroy_at_its_end(struct timed_by_hand *self, struct locks *locks)
{
    assert_int_equal(self->by_hand.posted, 1); /* its operation has ended */
    bide_awaiter *timer = &self->timer->awaiter;
    timer->link = NULL;
    self->timer = NULL;
    by_hand_post(&self->by_hand.scheduler, timer, timer);
    bide_resume(bide_awaiter_chain_take(&self->by_hand.queue)->frame);
    assert_int_equal(locks->status, 1);
    bide_destroy(&locks->task.frame);
    memset(locks, 0xff, sizeof *locks);
    assert_int_equal(by_hand_run(&self->by_hand), 0);
}

static void
what_was_taken_is_given_back_if_the_coroutine_is_destroyed_before_its_deadline_has_ended(
    void **state)
{
    (void)state;
    struct timed_by_hand timed;
    struct locks locks;
    bide_mutex mutex;
    bide_mutex_waiter holder, lock;
    bide_mutex_init(&mutex);
    assert_true(bide_mutex_try_lock(&holder, &mutex));
    locks.lock = bide_mutex_lock(&lock, &mutex);
    begin_under_deadline(&timed, &locks);
    bide_mutex_unlock(&holder);
    assert_true(bide_mutex_is_locked(&mutex)); /* handed over */
    destroy_at_its_end(&timed, &locks);
    assert_false(bide_mutex_is_locked(&mutex));
    bide_mutex_destroy(&mutex);

    bide_barging_mutex barging;
    bide_barging_mutex_waiter barging_holder, barging_lock;
    bide_barging_mutex_init(&barging);
    assert_true(bide_barging_mutex_try_lock(&barging_holder, &barging));
    locks.lock = bide_barging_mutex_lock(&barging_lock, &barging);
    begin_under_deadline(&timed, &locks);
    bide_barging_mutex_unlock(&barging_holder);
    destroy_at_its_end(&timed, &locks);
    assert_false(bide_barging_mutex_is_locked(&barging));
    bide_barging_mutex_destroy(&barging);

    bide_condition condition;
    bide_condition_waiter wait;
    bide_condition_init(&condition);
    assert_true(bide_mutex_try_lock(&lock, &mutex));
    locks.lock = bide_condition_wait(&wait, &condition, &lock);
    begin_under_deadline(&timed, &locks);
    bide_condition_notify_one(&condition);
    destroy_at_its_end(&timed, &locks);
    assert_false(wait.is_locked);
    assert_false(bide_mutex_is_locked(&mutex));
    bide_condition_destroy(&condition);
}

/* ---- Many at once ---- */

enum { RACERS = 8, ROUNDS = 300 };

/* Repeatedly sleeps under a deadline of about the same time, both in memory that is then released. */
struct racer {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    bide_with_deadline_operation operation;
    uint64_t random;
    uint64_t until, time;
    unsigned round;
    int status;
    unsigned slept, timed_out, cancelled, wrong;
};

bide_coroutine(racer_body)
{
    bide_begin(racer_body, struct racer * self);
    for (self->round = 0; self->round < ROUNDS; self->round++) {
        uint64_t now = bide_platform.now();
        self->until = now + testing_random(&self->random) % (MILLISECOND / 20);
        self->time = now + testing_random(&self->random) % (MILLISECOND / 20);
        bide_await_status(self->status,
                          bide_with_deadline(&self->operation, self->time,
                                             bide_sleep_until(&self->sleep, self->until)));
        now = bide_platform.now();
        if (self->status == 0)
            self->slept++, self->wrong += now < self->until;
        else if (self->status == -ETIMEDOUT)
            self->timed_out++, self->wrong += now < self->time;
        else
            self->cancelled++, self->wrong += self->status != -ECANCELED;
        memset(&self->operation, 0xff, sizeof self->operation);
        memset(&self->sleep, 0xff, sizeof self->sleep);
    }
    bide_end();
}

static void race(const bide_context *context, uint64_t seed, bool ask)
{
    static struct racer racers[RACERS];
    bide_stop_source sources[RACERS];
    bide_context contexts[RACERS];
    for (unsigned i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.random = seed + i};
        bide_stop_source_init(&sources[i]);
        contexts[i] = *context;
        contexts[i].stop = &sources[i];
        bide_spawn(&racers[i].spawned, &contexts[i], bide_task_init(&racers[i].task, &racer_body));
    }
    for (unsigned i = 0; ask && i < RACERS; i++) {
        for (unsigned j = 0; j < 200; j++)
            schedule_jitter(&seed);
        bide_stop_request(&sources[i]);
    }
    for (unsigned i = 0; i < RACERS; i++) {
        bide_event_waiter wait;
        bide_sync_wait(bide_event_wait(&wait, &racers[i].spawned.ended));
        assert_int_equal(racers[i].wrong, 0);
        assert_int_equal(racers[i].slept + racers[i].timed_out + racers[i].cancelled, ROUNDS);
        if (!ask)
            assert_int_equal(racers[i].cancelled, 0);
    }
}

static void sleeps_and_deadlines_of_a_pool_race(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (unsigned i = 0; i < 6; i++) {
        bide_thread_pool *pool;
        assert_int_equal(bide_thread_pool_create(&pool, 1 + i % 3), 0);
        bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
        race(&context, seed + (uint64_t)i * RACERS, i >= 3);
        bide_thread_pool_destroy(pool);
    }
}

static void *run_the_loop(void *loop)
{
    bide_run_loop_run(loop);
    return NULL;
}

static void sleeps_and_deadlines_of_a_loop_race(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (unsigned i = 0; i < 4; i++) {
        bide_run_loop loop;
        bide_run_loop_init(&loop);
        pthread_t thread = schedule_thread(run_the_loop, &loop);
        race(&loop.context, seed + (uint64_t)i * RACERS, i >= 2);
        bide_run_loop_stop(&loop);
        pthread_join(thread, NULL);
        assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
    }
}

/* ---- Timeouts, and which deadline it was ---- */

/* Tries again until its own time is not the cause. */
struct retrying {
    bide_task task;
    bide_with_deadline_operation limited;
    bide_sleep sleep;
    unsigned tries, passed;
    int status;
};

bide_coroutine(retrying_body)
{
    bide_begin(retrying_body, struct retrying * self);
    do {
        self->tries++;
        bide_await_status(self->status, bide_with_timeout(&self->limited, BIDE_MICROSECONDS(100),
                                                          bide_sleep_for(&self->sleep, HOUR)));
        self->passed += bide_with_deadline_passed(&self->limited);
    } while (self->status == -ETIMEDOUT && bide_with_deadline_passed(&self->limited));
    bide_return(self->status);
    bide_end();
}

static void a_retry_ends_when_the_outer_time_has_come(void **state)
{
    bide_run_loop loop;
    bide_with_deadline_operation outer;
    struct retrying self = {.tries = 0};
    (void)state;
    bide_run_loop_init(&loop);
    assert_int_equal(
        bide_run_loop_wait(&loop, bide_with_timeout(&outer, BIDE_MILLISECONDS(5),
                                                    bide_task_init(&self.task, &retrying_body))),
        -ETIMEDOUT);
    assert_true(bide_with_deadline_passed(&outer));
    assert_false(bide_with_deadline_passed(&self.limited));
    assert_int_equal(self.passed, self.tries - 1);
    bide_run_loop_destroy(&loop);
}

static void a_timeout_that_does_not_come_has_not_passed(void **state)
{
    bide_run_loop loop;
    bide_with_deadline_operation limited;
    bide_event event;
    bide_event_waiter wait;
    bide_sleep sleep;
    (void)state;
    bide_run_loop_init(&loop);
    bide_event_init(&event, true);
    assert_int_equal(
        bide_run_loop_wait(&loop, bide_with_timeout(&limited, 0, bide_event_wait(&wait, &event))),
        0); /* it is ready */
    assert_false(bide_with_deadline_passed(&limited));
    assert_int_equal(
        bide_run_loop_wait(&loop, bide_with_timeout(&limited, BIDE_FOREVER,
                                                    bide_sleep_for(&sleep, BIDE_MICROSECONDS(1)))),
        0);
    assert_false(bide_with_deadline_passed(&limited));
    assert_int_equal(
        bide_run_loop_wait(&loop, bide_with_timeout(&limited, BIDE_NANOSECONDS(1),
                                                    bide_sleep_for(&sleep, BIDE_HOURS(1)))),
        -ETIMEDOUT);
    assert_true(bide_with_deadline_passed(&limited));
    bide_event_destroy(&event);
    bide_run_loop_destroy(&loop);
}

static void durations_are_in_nanoseconds(void **state)
{
    (void)state;
    assert_true(BIDE_NANOSECONDS(7) == 7);
    assert_true(BIDE_MICROSECONDS(7) == 1000 * BIDE_NANOSECONDS(7));
    assert_true(BIDE_MILLISECONDS(7) == 1000 * BIDE_MICROSECONDS(7));
    assert_true(BIDE_SECONDS(7) == 1000 * BIDE_MILLISECONDS(7));
    assert_true(BIDE_MINUTES(7) == 60 * BIDE_SECONDS(7));
    assert_true(BIDE_HOURS(1 + 6) == 60 * BIDE_MINUTES(7));
}

static void pass_a_duration_to_with_deadline(void)
{
    bide_with_deadline_operation limited;
    bide_sleep sleep;
    bide_sync_wait(
        bide_with_deadline(&limited, BIDE_MILLISECONDS(50), bide_sleep_for(&sleep, HOUR)));
}

static void pass_a_duration_to_sleep_until(void)
{
    bide_sleep sleep;
    bide_sync_wait(bide_sleep_until(&sleep, BIDE_MILLISECONDS(50)));
}

static void pass_a_duration_to_sync_wait_until(void)
{
    bide_sleep sleep;
    bide_sync_wait_until(bide_sleep_for(&sleep, HOUR), BIDE_MILLISECONDS(50));
}

static void a_duration_that_is_passed_as_a_deadline_is_reported(void **state)
{
    (void)state;
    if (!BIDE_DEBUG ||
        bide_platform.now() < BIDE_SECONDS(60)) /* such a time has just passed on this system */
        skip();
    assert_true(misuse_aborts_naming(pass_a_duration_to_with_deadline, "before the process began",
                                     "bide_with_timeout"));
    assert_true(misuse_aborts_naming(pass_a_duration_to_sleep_until, "before the process began",
                                     "bide_sleep_for"));
    assert_true(misuse_aborts_naming(pass_a_duration_to_sync_wait_until, "before the process began",
                                     ": pass_a_duration_to_sync_wait_until (" __FILE__ ":"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_retry_ends_when_the_outer_time_has_come),
        cmocka_unit_test(a_timeout_that_does_not_come_has_not_passed),
        cmocka_unit_test(durations_are_in_nanoseconds),
        cmocka_unit_test(a_duration_that_is_passed_as_a_deadline_is_reported),
        cmocka_unit_test(from_its_deadline_on_waits_end_with_ETIMEDOUT),
        cmocka_unit_test(the_same_in_a_pool),
        cmocka_unit_test(a_single_operation_under_a_deadline_ends_with_ETIMEDOUT),
        cmocka_unit_test(what_ends_before_its_deadline_ends_as_it_would_without),
        cmocka_unit_test(without_timers_it_ends_with_ENOTSUP),
        cmocka_unit_test(of_two_deadlines_the_earlier_counts),
        cmocka_unit_test(a_request_cuts_a_sleep_short),
        cmocka_unit_test(the_end_of_a_deadline_that_fires_right_now_is_awaited),
        cmocka_unit_test(a_deadline_can_be_ended_before_and_after_its_time_and_twice),
        cmocka_unit_test(a_coroutine_under_a_deadline_can_be_destroyed),
        cmocka_unit_test(
            what_was_taken_is_given_back_if_the_coroutine_is_destroyed_before_its_deadline_has_ended),
        cmocka_unit_test(sleeps_and_deadlines_of_a_pool_race),
        cmocka_unit_test(sleeps_and_deadlines_of_a_loop_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
