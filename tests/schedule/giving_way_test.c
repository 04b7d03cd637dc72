/*
 * A coroutine whose operations are always ready yields after a number of them: timers, cancellations, and other
 * coroutines get their turn, on a run loop and on a pool. The result of the last operation is not lost if the coroutine
 * is then destroyed. (tests/sync/composition_test.c yields at each operation, inside all wrappers.)
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "../../src/coroutine/internal.h"

#include "bide/barging_mutex.h"
#include "bide/channel.h"
#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/mutex.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/select.h"
#include "bide/sim_loop.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/stop.h"
#include "bide/strand.h"
#include "bide/sync_wait.h"
#include "bide/then.h"
#include "bide/thread_pool.h"
#include "bide/when.h"
#include "bide/with_stop.h"

enum { MILLISECOND = 1000000, CAPACITY = 4 };

typedef bide_channel(unsigned) numbers;

/* It has a channel of its own that always holds a value, until it has to end. */
typedef struct hog {
    bide_task task;
    bide_channel_slot(unsigned) memory[CAPACITY];
    numbers channel;
    unsigned number;
    uint64_t rounds;
    bide_atomic(uint32_t) end;
    bool ends_when_stopped;
    bide_channel_waiter send;
    bide_channel_waiter receive;
} hog;

bide_coroutine(hog_body)
{
    bide_begin(hog_body, hog * self);
    while (bide_atomic_load(&self->end, relaxed) == 0) {
        self->number++;
        bide_try(bide_channel_send(&self->send, &self->channel, &self->number));
        bide_try(bide_channel_recv(&self->receive, &self->channel, &self->number));
        self->rounds++;
        if (self->ends_when_stopped && bide_stop_requested(bide_this_context()->stop))
            bide_return(-ECANCELED);
    }
    bide_end();
}

static bide_awaiter *hog_run(hog *self)
{
    bide_channel_init(&self->channel, self->memory, CAPACITY);
    self->number = 0;
    self->rounds = 0;
    self->ends_when_stopped = false;
    bide_atomic_init(&self->end, 0);
    return bide_task_init(&self->task, &hog_body);
}

/* Ends the hog, after some time or as soon as it runs. */
struct ender {
    bide_task task;
    hog *hog;
    uint64_t nanoseconds;
    bide_sleep sleep;
};

bide_coroutine(ender_body)
{
    bide_begin(ender_body, struct ender * self);
    if (self->nanoseconds != 0)
        bide_try(bide_sleep_for(&self->sleep, self->nanoseconds));
    bide_atomic_store(&self->hog->end, 1, relaxed);
    bide_end();
}

static bide_awaiter *ender_run(struct ender *self, hog *hog, uint64_t nanoseconds)
{
    self->hog = hog;
    self->nanoseconds = nanoseconds;
    return bide_task_init(&self->task, &ender_body);
}

/* Both run on a scheduler with one thread; returns when both have ended. */
static void hog_and_ender(bide_scheduler *scheduler, uint64_t nanoseconds, hog *hog)
{
    bide_context context = {.scheduler = scheduler};
    struct ender ender;
    bide_spawned one, other;
    bide_event_waiter waits[2];
    bide_spawn(&one, &context, hog_run(hog));
    bide_spawn(&other, &context, ender_run(&ender, hog, nanoseconds));
    if (scheduler->one_thread) {
        bide_run_loop *loop = bide_container_of(scheduler, bide_run_loop, scheduler);
        assert_int_equal(bide_run_loop_wait(loop, bide_event_wait(&waits[0], &one.ended)), 0);
        assert_int_equal(bide_run_loop_wait(loop, bide_event_wait(&waits[1], &other.ended)), 0);
    } else {
        assert_int_equal(bide_event_wait_blocking(&one.ended, BIDE_FOREVER), 0);
        assert_int_equal(bide_event_wait_blocking(&other.ended, BIDE_FOREVER), 0);
    }
    assert_int_equal(one.root.status, 0);
    assert_int_equal(other.root.status, 0);
}

static void another_coroutine_gets_its_turn(void **state)
{
    bide_run_loop loop;
    hog hog;
    (void)state;
    bide_run_loop_init(&loop);
    hog_and_ender(&loop.scheduler, 0, &hog);
    assert_in_range(hog.rounds, 1, BIDE_BUDGET / 2);
    bide_run_loop_destroy(&loop);
}

static void a_timer_gets_its_turn(void **state)
{
    bide_run_loop loop;
    hog hog;
    (void)state;
    bide_run_loop_init(&loop);
    hog_and_ender(&loop.scheduler, MILLISECOND, &hog);
    assert_true(hog.rounds > 1);
    bide_run_loop_destroy(&loop);
}

static void another_coroutine_of_a_pool_of_one_thread_gets_its_turn(void **state)
{
    bide_thread_pool *pool;
    hog hog;
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    hog_and_ender(bide_thread_pool_scheduler(pool), 0, &hog);
    hog_and_ender(bide_thread_pool_scheduler(pool), MILLISECOND, &hog);
    bide_thread_pool_destroy(pool);
}

static void a_deadline_asks_it_to_stop(void **state)
{
    bide_run_loop loop;
    bide_with_deadline_operation limited;
    hog hog;
    (void)state;
    bide_run_loop_init(&loop);
    bide_await_later(hog_run(&hog));
    hog.ends_when_stopped = true;
    /* It sees the request itself, or meets it in an await. */
    int status =
        bide_run_loop_wait(&loop, bide_with_deadline(&limited, bide_platform.now() + MILLISECOND,
                                                     &hog.task.frame.awaiter));
    assert_true(status == -ECANCELED || status == -ETIMEDOUT);
    bide_run_loop_destroy(&loop);
}

static void *stop_the_loop(void *argument)
{
    bide_run_loop_stop(argument);
    return NULL;
}

static void the_loop_can_be_stopped_by_another_thread(void **state)
{
    bide_run_loop loop;
    bide_spawned spawned;
    hog hog;
    (void)state;
    bide_run_loop_init(&loop);
    bide_spawn(&spawned, &loop.context, hog_run(&hog));
    pthread_t thread = schedule_thread(stop_the_loop, &loop);
    bide_run_loop_run(&loop);
    pthread_join(thread, NULL);
    bide_destroy(&spawned.root.frame);
    bide_run_loop_destroy(&loop);
}

/* Awaits that end in suspend, because of a stop request, count too. */
struct stubborn {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    bool *end;
    uint64_t rounds;
};

bide_coroutine(stubborn_body)
{
    bide_begin(stubborn_body, struct stubborn * self);
    for (self->rounds = 0; !*self->end; self->rounds++)
        bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

struct flag_setter {
    bide_task task;
    bool *flag;
};

bide_coroutine(flag_setter_body)
{
    bide_begin(flag_setter_body, struct flag_setter * self);
    *self->flag = true;
    bide_end();
}

static void one_that_waits_on_although_it_is_asked_to_stop_gives_way(void **state)
{
    bide_run_loop loop;
    bide_event event;
    bide_stop_source source;
    bide_spawned one, other;
    bide_event_waiter wait;
    bool end = false;
    struct stubborn stubborn = {.event = &event, .end = &end};
    struct flag_setter setter = {.flag = &end};
    (void)state;
    bide_run_loop_init(&loop);
    bide_event_init(&event, false);
    bide_stop_source_init(&source);
    bide_stop_request(&source);
    bide_context context = loop.context;
    context.stop = &source;
    bide_spawn(&one, &context, bide_task_init(&stubborn.task, &stubborn_body));
    bide_spawn(&other, &loop.context, bide_task_init(&setter.task, &flag_setter_body));
    assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&wait, &one.ended)), 0);
    assert_in_range(stubborn.rounds, 1, BIDE_BUDGET);
    bide_event_destroy(&event);
    bide_run_loop_destroy(&loop);
}

/* It starts another coroutine; its operations are then ready until that one has run. */
struct beginner {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    const bide_context *others;
    bide_spawned spawned;
    struct flag_setter setter;
    bool end;
    uint64_t rounds;
};

bide_coroutine(beginner_body)
{
    bide_begin(beginner_body, struct beginner * self);
    bide_spawn(&self->spawned, self->others, bide_task_init(&self->setter.task, &flag_setter_body));
    for (self->rounds = 0; !self->end; self->rounds++)
        bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

/* The number of rounds in which it was ready. Everything runs on one thread. */
static uint64_t rounds_before_the_other(const bide_context *context, const bide_context *others)
{
    bide_event event;
    bide_spawned spawned;
    struct beginner beginner = {.event = &event, .others = others};
    beginner.setter.flag = &beginner.end;
    bide_event_init(&event, true);
    bide_spawn(&spawned, context, bide_task_init(&beginner.task, &beginner_body));
    assert_int_equal(bide_event_wait_blocking(&spawned.ended, BIDE_FOREVER), 0);
    assert_int_equal(bide_event_wait_blocking(&beginner.spawned.ended, BIDE_FOREVER), 0);
    bide_event_destroy(&event);
    return beginner.rounds;
}

static void in_a_pool_it_goes_on_behind_what_is_ready(void **state)
{
    bide_thread_pool *pool;
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    assert_in_range(rounds_before_the_other(&context, &context), 1, BIDE_BUDGET);
    bide_thread_pool_destroy(pool);
}

static void a_strand_goes_on_behind_what_is_ready_in_its_pool(void **state)
{
    bide_thread_pool *pool;
    bide_strand strand;
    (void)state;
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_strand_init(&strand, context.scheduler);
    assert_in_range(rounds_before_the_other(&strand.context, &context), 1,
                    BIDE_STRAND_TURN_ * BIDE_BUDGET);
    assert_in_range(rounds_before_the_other(&strand.context, &strand.context), 1, BIDE_BUDGET);
    bide_strand_destroy(&strand);
    bide_thread_pool_destroy(pool);
}

/* A wrapper around a ready operation, repeatedly. */
struct wrapped {
    bide_task task;
    bide_event *event;
    bool *end;
    uint64_t rounds;
    bide_event_waiter wait;
    bide_with_stop_operation with_stop;
    bide_stop_source source;
};

bide_coroutine(wrapped_body)
{
    bide_begin(wrapped_body, struct wrapped * self);
    bide_stop_source_init(&self->source);
    for (self->rounds = 0; !*self->end; self->rounds++)
        bide_await(bide_with_stop(&self->with_stop, &self->source,
                                  bide_event_wait(&self->wait, self->event)));
    bide_end();
}

static void what_is_ready_behind_a_wrapper_counts(void **state)
{
    bide_run_loop loop;
    bide_event event;
    bide_spawned one, other;
    bide_event_waiter wait;
    bool end = false;
    struct wrapped wrapped = {.event = &event, .end = &end};
    struct flag_setter setter = {.flag = &end};
    (void)state;
    bide_run_loop_init(&loop);
    bide_event_init(&event, true);
    bide_spawn(&one, &loop.context, bide_task_init(&wrapped.task, &wrapped_body));
    bide_spawn(&other, &loop.context, bide_task_init(&setter.task, &flag_setter_body));
    assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&wait, &one.ended)), 0);
    assert_in_range(wrapped.rounds, 1, BIDE_BUDGET);
    bide_event_destroy(&event);
    bide_run_loop_destroy(&loop);
}

struct counting {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    unsigned rounds;
};

bide_coroutine(counting_body)
{
    bide_begin(counting_body, struct counting * self);
    for (self->rounds = 0; self->rounds < 10 * BIDE_BUDGET; self->rounds++)
        bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

static void inline_it_does_not_give_way(void **state)
{
    bide_event event;
    struct counting counting = {.event = &event};
    (void)state;
    bide_event_init(&event, true);
    bide_frame_init_in(&counting.task.frame, &counting_body, &bide_default_context);
    bide_frame_step(&counting.task.frame, 0);
    assert_true(bide_done(&counting.task.frame));
    bide_event_destroy(&event);
}

/* Destroyed after it has yielded, it does not keep the result. */
struct holder {
    bide_task task;
    bide_mutex *mutex;
    bide_mutex_waiter lock;
    bool has_it;
};

bide_coroutine(holder_body)
{
    bide_begin(holder_body, struct holder * self);
    bide_try(bide_mutex_lock(&self->lock, self->mutex));
    self->has_it = true;
    bide_mutex_unlock(&self->lock);
    bide_end();
}

static void what_it_took_is_given_back_if_it_is_destroyed(void **state)
{
    bide_run_loop loop;
    bide_mutex mutex;
    bide_mutex_waiter lock;
    struct holder holder = {.mutex = &mutex};
    (void)state;
    bide_run_loop_init(&loop);
    bide_mutex_init(&mutex);
    bide_context context = loop.context;
    bide_frame_init_in(&holder.task.frame, &holder_body, &context);
    int32_t full = bide_budget_full_;
    bide_budget_full_ = 0; /* the next operation exceeds the budget */
    bide_resume(&holder.task.frame);
    bide_budget_full_ = full;
    assert_false(holder.has_it);
    assert_false(bide_mutex_try_lock(&lock, &mutex)); /* it holds the mutex, but has not run */
    bide_destroy(&holder.task.frame);
    assert_true(bide_mutex_try_lock(&lock, &mutex));
    bide_mutex_unlock(&lock);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    bide_mutex_destroy(&mutex);
    bide_run_loop_destroy(&loop);
}

/* ---- A stop request reaches a coroutine whose awaits are always ready ---- */

enum { DUE_IN = 2 * MILLISECOND };

typedef enum loop_kind {
    LOOP_CHANNEL,
    LOOP_EVENT,
    LOOP_UNDER_DEADLINE,
    LOOP_THEN,
    LOOP_SHELTERED_TOO, /* every other operation is sheltered */
    LOOP_YIELDS,
    LOOP_ELSEWHERE,
    LOOP_RESUME_ON,
    LOOP_ALL,
    LOOP_CHILD,
    LOOP_LOCK,
    LOOP_BARGING_LOCK,
    LOOP_SELECT,
    LOOP_KINDS
} loop_kind;

struct looping_child {
    bide_task task;
    bide_event_waiter wait;
    bide_event *event;
};

bide_coroutine(looping_child_body)
{
    bide_begin(looping_child_body, struct looping_child * self);
    bide_try(bide_event_wait(&self->wait, self->event));
    bide_end();
}

/* All its awaits are always ready. It ends by an error only. */
struct looping {
    bide_task task;
    loop_kind kind;
    bide_channel_slot(unsigned) memory[CAPACITY];
    numbers channel;
    unsigned number, received, taken;
    bide_event event;
    bide_mutex mutex;
    bide_barging_mutex barging;
    uint64_t random;
    union {
        bide_channel_waiter channel;
        bide_event_waiter event;
        bide_mutex_waiter lock;
        bide_barging_mutex_waiter barging;
        bide_schedule_operation schedule;
        struct looping_child child;
    } of;
    bide_channel_waiter receive;
    bide_event_waiter wait;
    bide_with_deadline_operation with_deadline;
    bide_with_stop_operation with_stop;
    bide_then_operation then;
    bide_schedule_on_operation there;
    bide_resume_on_operation back;
    bide_when_of(2) both;
    bide_select select;
    bide_select_case cases[2];
};

static int pass_on_status(void *argument, int status)
{
    (void)argument;
    return status;
}

bide_coroutine(looping_body)
{
    bide_begin(looping_body, struct looping * self);
    for (;;) {
        bide_scheduler *scheduler = bide_this_context()->scheduler;
        bide_awaiter *next = NULL;
        switch (self->kind) {
        case LOOP_CHANNEL:
            next = bide_channel_send(&self->of.channel, &self->channel, &self->number);
            break;
        case LOOP_UNDER_DEADLINE:
            next = bide_with_deadline(&self->with_deadline, BIDE_FOREVER,
                                      bide_event_wait(&self->wait, &self->event));
            break;
        case LOOP_THEN:
            next = bide_then(&self->then, bide_event_wait(&self->wait, &self->event),
                             pass_on_status, NULL);
            break;
        case LOOP_SHELTERED_TOO:
            next =
                bide_with_stop(&self->with_stop, NULL, bide_event_wait(&self->wait, &self->event));
            break;
        case LOOP_YIELDS:
            next = bide_schedule(&self->of.schedule, scheduler);
            break;
        case LOOP_ELSEWHERE:
            next = bide_schedule_on(&self->there, scheduler,
                                    bide_event_wait(&self->wait, &self->event));
            break;
        case LOOP_RESUME_ON:
            next =
                bide_resume_on(&self->back, scheduler, bide_event_wait(&self->wait, &self->event));
            break;
        case LOOP_ALL:
            next = bide_when_all_of(
                &self->both, bide_event_wait(&self->wait, &self->event),
                bide_channel_send(&self->of.channel, &self->channel, &self->number));
            break;
        case LOOP_CHILD:
            self->of.child.event = &self->event;
            next = bide_task_init(&self->of.child.task, &looping_child_body);
            break;
        case LOOP_LOCK:
            next = bide_mutex_lock(&self->of.lock, &self->mutex);
            break;
        case LOOP_BARGING_LOCK:
            next = bide_barging_mutex_lock(&self->of.barging, &self->barging);
            break;
        case LOOP_SELECT:
            bide_select_case_init(
                &self->cases[0],
                bide_channel_send(&self->of.channel, &self->channel, &self->number));
            next = bide_select_any(&self->select, self->cases, 1, &self->random);
            break;
        default:
            next = bide_event_wait(&self->wait, &self->event);
        }
        bide_try(next);
        if (self->kind == LOOP_LOCK)
            bide_mutex_unlock(&self->of.lock);
        else if (self->kind == LOOP_BARGING_LOCK)
            bide_barging_mutex_unlock(&self->of.barging);
        if (self->kind == LOOP_CHANNEL || self->kind == LOOP_ALL || self->kind == LOOP_SELECT) {
            self->number++;
            bide_try(bide_channel_recv(&self->receive, &self->channel, &self->received));
            assert_int_equal(self->received, self->taken);
            self->taken++;
        } else if (self->kind == LOOP_SHELTERED_TOO) {
            bide_try(bide_event_wait(&self->wait, &self->event));
        }
    }
    bide_end();
}

static bide_awaiter *looping_run(struct looping *self, loop_kind kind)
{
    memset(self, 0, sizeof *self);
    self->kind = kind;
    self->random = 1;
    bide_channel_init(&self->channel, self->memory, CAPACITY);
    bide_event_init(&self->event, true);
    bide_mutex_init(&self->mutex);
    bide_barging_mutex_init(&self->barging);
    return bide_task_init(&self->task, &looping_body);
}

/* An element that was sent was received, or is in the channel; a lock is free. */
static void looping_has_lost_nothing(struct looping *self)
{
    while (bide_channel_try_recv(&self->channel, &self->received) == 0) {
        assert_int_equal(self->received, self->taken);
        self->taken++;
    }
    if (self->kind == LOOP_ALL) /* its other operation may have failed alone */
        assert_in_range(self->taken, self->number, self->number + 1);
    else
        assert_int_equal(self->taken, self->number);
    assert_true(bide_mutex_try_lock(&self->of.lock, &self->mutex));
    bide_mutex_unlock(&self->of.lock);
    bide_mutex_destroy(&self->mutex);
    bide_event_destroy(&self->event);
}

typedef struct limited_loop {
    bide_task task;
    bide_with_deadline_operation limited;
    struct looping looping;
    loop_kind kind;
    int status;
} limited_loop;

bide_coroutine(limited_loop_body)
{
    bide_begin(limited_loop_body, limited_loop * self);
    bide_await_status(self->status,
                      bide_with_deadline(&self->limited, bide_now(bide_this_context()) + DUE_IN,
                                         looping_run(&self->looping, self->kind)));
    looping_has_lost_nothing(&self->looping);
    bide_end();
}

static bide_awaiter *limited_loop_run(limited_loop *self, loop_kind kind)
{
    self->kind = kind;
    self->status = 0;
    return bide_task_init(&self->task, &limited_loop_body);
}

static void a_deadline_ends_it_on_a_run_loop(void **state)
{
    (void)state;
    for (loop_kind kind = 0; kind < LOOP_KINDS; kind++) {
        bide_run_loop loop;
        limited_loop limited;
        bide_run_loop_init(&loop);
        bide_run_loop_wait(&loop, limited_loop_run(&limited, kind));
        assert_int_equal(limited.status, -ETIMEDOUT);
        bide_run_loop_destroy(&loop);
    }
}

static void a_deadline_ends_it_in_a_pool_and_a_strand(void **state)
{
    (void)state;
    for (loop_kind kind = 0; kind < LOOP_KINDS; kind++) {
        bide_thread_pool *pool;
        bide_strand strand;
        limited_loop limited;
        assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
        bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
        bide_sync_wait_in(&context, limited_loop_run(&limited, kind));
        assert_int_equal(limited.status, -ETIMEDOUT);
        bide_strand_init(&strand, context.scheduler);
        bide_sync_wait_in(&strand.context, limited_loop_run(&limited, kind));
        assert_int_equal(limited.status, -ETIMEDOUT);
        bide_strand_destroy(&strand);
        bide_thread_pool_destroy(pool);
    }
}

/* The thread that keeps time is the one that it holds. */
static void a_deadline_ends_it_inline(void **state)
{
    (void)state;
    for (loop_kind kind = 0; kind < LOOP_KINDS; kind++) {
        limited_loop limited;
        struct looping looping;
        bide_sync_wait(limited_loop_run(&limited, kind));
        assert_int_equal(limited.status, -ETIMEDOUT);
        assert_int_equal(
            bide_sync_wait_until(looping_run(&looping, kind), bide_platform.now() + DUE_IN),
            -ETIMEDOUT);
        looping_has_lost_nothing(&looping);
    }
}

static void a_deadline_ends_it_in_virtual_time(void **state)
{
    (void)state;
    for (loop_kind kind = 0; kind < LOOP_KINDS; kind++) {
        bide_sim_loop loop;
        limited_loop limited;
        bide_sim_loop_init(&loop, 1 + (uint64_t)kind);
        bide_sim_loop_wait(&loop, limited_loop_run(&limited, kind));
        assert_int_equal(limited.status, -ETIMEDOUT);
        bide_sim_loop_destroy(&loop);
    }
}

struct asker {
    bide_stop_source source;
    bide_atomic(uint32_t) begun;
};

static void *asks_when_it_has_begun(void *argument)
{
    struct asker *self = argument;
    bide_stop_request(&self->source);
    return NULL;
}

static void another_thread_ends_it_inline(void **state)
{
    (void)state;
    for (loop_kind kind = 0; kind < LOOP_KINDS; kind++) {
        struct asker asker;
        struct looping looping;
        bide_stop_source_init(&asker.source);
        bide_context context = {.scheduler = &bide_inline_scheduler, .stop = &asker.source};
        pthread_t thread = schedule_thread(asks_when_it_has_begun, &asker);
        assert_int_equal(bide_sync_wait_in(&context, looping_run(&looping, kind)), -ECANCELED);
        pthread_join(thread, NULL);
        looping_has_lost_nothing(&looping);
    }
}

/* After it was told it has a full budget: its cleaning up has what is ready. */
struct cleaner {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    int status;
    unsigned told, had;
};

bide_coroutine(cleaner_body)
{
    bide_begin(cleaner_body, struct cleaner * self);
    for (self->told = self->had = 0; self->told == 0 || self->had < BIDE_BUDGET - 16;) {
        bide_await_status(self->status, bide_event_wait(&self->wait, self->event));
        if (self->status == 0) {
            self->had += self->told;
        } else {
            assert_int_equal(self->told++, 0);
        }
    }
    bide_end();
}

static void after_it_was_told_it_has_a_full_budget(void **state)
{
    bide_run_loop loop;
    bide_event event;
    bide_stop_source source;
    bide_spawned spawned;
    bide_event_waiter wait;
    struct cleaner cleaner = {.event = &event};
    (void)state;
    bide_run_loop_init(&loop);
    bide_event_init(&event, true);
    bide_stop_source_init(&source);
    bide_context context = {.scheduler = &loop.scheduler, .stop = &source};
    bide_spawn(&spawned, &context, bide_task_init(&cleaner.task, &cleaner_body));
    bide_stop_request(&source);
    assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned.ended)), 0);
    assert_int_equal(cleaner.told, 1);
    bide_event_destroy(&event);
    bide_run_loop_destroy(&loop);
}

/* ---- Budgets and looks go by time ---- */

/* (Each takes at least that long. No time is asserted: operations and turns are counted.) */
static void spin_for(uint64_t nanoseconds)
{
    uint64_t end = bide_platform.now() + nanoseconds;
    while (bide_platform.now() < end) {
    }
}

/* As beginner_body, with work for each operation that is ready. */
bide_coroutine(laborer_body)
{
    bide_begin(laborer_body, struct beginner * self);
    bide_spawn(&self->spawned, self->others, bide_task_init(&self->setter.task, &flag_setter_body));
    for (self->rounds = 0; !self->end; self->rounds++) {
        spin_for(20000);
        bide_await(bide_event_wait(&self->wait, self->event));
    }
    bide_end();
}

static void operations_that_take_long_are_fewer_in_a_turn(void **state)
{
    bide_run_loop loop;
    bide_event event;
    bide_spawned spawned;
    bide_event_waiter wait;
    struct beginner laborer = {.event = &event};
    (void)state;
    bide_run_loop_init(&loop);
    bide_event_init(&event, true);
    laborer.setter.flag = &laborer.end;
    laborer.others = &loop.context;
    bide_spawn(&spawned, &loop.context, bide_task_init(&laborer.task, &laborer_body));
    assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned.ended)), 0);
    bide_event_waiter other;
    assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&other, &laborer.spawned.ended)), 0);
    assert_in_range(laborer.rounds, 1, 2 * BIDE_BUDGET_FIRST_ + 1);
    bide_event_destroy(&event);
    bide_run_loop_destroy(&loop);
}

/* Turns of 300 us, until the other's timer has fired; counts those that begin after it was due. */
struct plodder {
    bide_task task;
    bide_schedule_operation yield;
    uint64_t due;
    bool has_fired;
    unsigned late;
};

bide_coroutine(plodder_body)
{
    bide_begin(plodder_body, struct plodder * self);
    while (!self->has_fired) {
        if (bide_platform.now() >= self->due)
            self->late++;
        spin_for(300000);
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_end();
}

struct dozer {
    bide_task task;
    bide_sleep sleep;
    struct plodder *plodder;
    bide_spawned spawned;
};

bide_coroutine(dozer_body)
{
    bide_begin(dozer_body, struct dozer * self);
    self->plodder->due = bide_platform.now() + 3 * MILLISECOND;
    self->plodder->has_fired = false;
    self->plodder->late = 0;
    bide_spawn(&self->spawned, bide_this_context(),
               bide_task_init(&self->plodder->task, &plodder_body));
    bide_try(bide_sleep_until(&self->sleep, self->plodder->due));
    self->plodder->has_fired = true;
    bide_end();
}

/* Both run on a scheduler with one thread. */
static unsigned turns_after_a_timer_was_due(const bide_context *context)
{
    bide_run_loop *loop = context->scheduler->one_thread
                              ? bide_container_of(context->scheduler, bide_run_loop, scheduler)
                              : NULL;
    struct plodder plodder;
    struct dozer dozer = {.plodder = &plodder};
    bide_event_waiter wait;
    if (loop != NULL) {
        assert_int_equal(bide_run_loop_wait(loop, bide_task_init(&dozer.task, &dozer_body)), 0);
        assert_int_equal(bide_run_loop_wait(loop, bide_event_wait(&wait, &dozer.spawned.ended)), 0);
    } else {
        assert_int_equal(bide_sync_wait_in(context, bide_task_init(&dozer.task, &dozer_body)), 0);
        assert_int_equal(bide_event_wait_blocking(&dozer.spawned.ended, BIDE_FOREVER), 0);
    }
    return plodder.late;
}

static void a_timer_is_late_by_few_turns_that_are_long(void **state)
{
    enum { LATE_MAX = 8 }; /* of 300 us; by count alone a look comes once in 32, or 128 */
    bide_run_loop loop;
    bide_thread_pool *pool;
    (void)state;
    bide_run_loop_init(&loop);
    assert_in_range(turns_after_a_timer_was_due(&loop.context), 0, LATE_MAX);
    bide_run_loop_destroy(&loop);
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    assert_in_range(turns_after_a_timer_was_due(&context), 0, LATE_MAX);
    bide_thread_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_coroutine_gets_its_turn),
        cmocka_unit_test(a_timer_gets_its_turn),
        cmocka_unit_test(another_coroutine_of_a_pool_of_one_thread_gets_its_turn),
        cmocka_unit_test(a_deadline_asks_it_to_stop),
        cmocka_unit_test(the_loop_can_be_stopped_by_another_thread),
        cmocka_unit_test(one_that_waits_on_although_it_is_asked_to_stop_gives_way),
        cmocka_unit_test(in_a_pool_it_goes_on_behind_what_is_ready),
        cmocka_unit_test(a_strand_goes_on_behind_what_is_ready_in_its_pool),
        cmocka_unit_test(what_is_ready_behind_a_wrapper_counts),
        cmocka_unit_test(operations_that_take_long_are_fewer_in_a_turn),
        cmocka_unit_test(a_timer_is_late_by_few_turns_that_are_long),
        cmocka_unit_test(inline_it_does_not_give_way),
        cmocka_unit_test(what_it_took_is_given_back_if_it_is_destroyed),
        cmocka_unit_test(a_deadline_ends_it_on_a_run_loop),
        cmocka_unit_test(a_deadline_ends_it_in_a_pool_and_a_strand),
        cmocka_unit_test(a_deadline_ends_it_inline),
        cmocka_unit_test(a_deadline_ends_it_in_virtual_time),
        cmocka_unit_test(another_thread_ends_it_inline),
        cmocka_unit_test(after_it_was_told_it_has_a_full_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
