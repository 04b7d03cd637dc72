/*
 * Timers of run loops and thread pools, and sleeps: none is early or missed, no matter which thread sets or
 * clears it. No test checks how late a timer is; a missed one hangs.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/handle.h"
#include "bide/dump.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>
#include <poll.h>

#define MILLISECOND UINT64_C(1000000)
#define HOUR        (3600 * UINT64_C(1000000000))

static bool is_parked(bide_run_loop *loop)
{
    return bide_atomic_load(&loop->posted, relaxed) == 1;
}

static bide_thread_pool *create(unsigned threads)
{
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
    return pool;
}

static bide_context context_of(bide_thread_pool *pool)
{
    return (bide_context){.scheduler = bide_thread_pool_scheduler(pool)};
}

static int wait_for(bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &spawned->ended)), 0);
    return spawned->root.status;
}

/* ---- A timer alone: its frame, written by hand, counts, and sets an event ---- */

typedef struct alarm {
    bide_timer timer;
    bide_frame frame;
    bide_event *event; /* or NULL */
    bool was_early;
    bide_atomic(unsigned) rings;
} alarm;

static bide_next alarm_step(bide_frame *frame, unsigned depth)
{
    alarm *self = bide_container_of(frame, alarm, frame);
    bide_event *event = self->event;
    (void)depth;
    self->was_early = bide_platform.now() < self->timer.time;
    bide_atomic_fetch_add(&self->rings, 1,
                          release); /* the test's thread may now continue, and free it */
    if (event != NULL)
        bide_event_set(event);
    return bide_next_none();
}

static const bide_coroutine_code alarm_code = {alarm_step, "alarm", __FILE__, NULL, NULL};
static const bide_point alarm_point = BIDE_POINT_START(&alarm_code);

static void alarm_init(alarm *self, const bide_context *context, bide_event *event)
{
    static const bide_awaiter_ops ops = {
        .name = "alarm",
    };
    bide_timer_init(&self->timer, 0);
    self->timer.awaiter.ops = &ops;
    self->timer.awaiter.frame = &self->frame;
    self->frame.awaiter.ops = &alarm_point.ops;
    self->frame.context = context;
    self->event = event;
    self->was_early = false;
    bide_atomic_init(&self->rings, 0);
}

static int alarm_set(alarm *self, uint64_t time)
{
    bide_scheduler *scheduler = self->frame.context->scheduler;
    bide_timer_init(&self->timer, time);
    return scheduler->set_timer(scheduler, &self->timer);
}

static bool alarm_clear(alarm *self)
{
    bide_scheduler *scheduler = self->frame.context->scheduler;
    return scheduler->clear_timer(scheduler, &self->timer);
}

static unsigned alarm_rings(alarm *self)
{
    return bide_atomic_load(&self->rings, acquire);
}

/* ---- Sleeping ---- */

/* Sleeps for each of some times; notes whether it woke early. */
struct dozer {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    uint64_t random;
    uint64_t max;
    unsigned naps;
    unsigned i;
    uint64_t until;
    unsigned early;
};

bide_coroutine(dozer_body)
{
    bide_begin(dozer_body, struct dozer * self);
    for (self->i = 0; self->i < self->naps; self->i++) {
        uint64_t nanoseconds = testing_random(&self->random) % self->max;
        self->until = bide_platform.now() + nanoseconds;
        if (self->i % 2 == 0)
            bide_try(bide_sleep_for(&self->sleep, nanoseconds));
        else
            bide_try(bide_sleep_until(&self->sleep, self->until));
        if (bide_platform.now() < self->until)
            self->early++;
    }
    bide_end();
}

static void begin_dozer(struct dozer *self, const bide_context *context, uint64_t random,
                        unsigned naps, uint64_t max)
{
    self->random = random;
    self->naps = naps;
    self->max = max;
    self->early = 0;
    bide_spawn(&self->spawned, context, bide_task_init(&self->task, &dozer_body));
}

enum { DOZERS = 50 };

static void no_sleep_of_a_loop_ends_early(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    static struct dozer dozers[DOZERS];
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    for (unsigned i = 0; i < DOZERS; i++)
        begin_dozer(&dozers[i], &loop.context, seed + i, 20, 1 + i * MILLISECOND / 10);
    for (unsigned i = 0; i < DOZERS; i++) {
        bide_event_waiter wait;
        assert_int_equal(
            bide_run_loop_wait(&loop, bide_event_wait(&wait, &dozers[i].spawned.ended)), 0);
        assert_int_equal(dozers[i].spawned.root.status, 0);
        assert_int_equal(dozers[i].i, 20);
        assert_int_equal(dozers[i].early, 0);
    }
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
}

static void no_sleep_of_a_pool_ends_early(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    static struct dozer dozers[DOZERS];
    for (unsigned threads = 1; threads <= 3; threads++) {
        bide_thread_pool *pool = create(threads);
        bide_context context = context_of(pool);
        for (unsigned i = 0; i < DOZERS; i++)
            begin_dozer(&dozers[i], &context, seed + i, 20, 1 + i * MILLISECOND / 10);
        for (unsigned i = 0; i < DOZERS; i++) {
            assert_int_equal(wait_for(&dozers[i].spawned), 0);
            assert_int_equal(dozers[i].i, 20);
            assert_int_equal(dozers[i].early, 0);
        }
        bide_thread_pool_destroy(pool);
    }
}

static void without_timers_a_sleep_ends_with_ENOTSUP(void **state)
{
    (void)state;
    bide_scheduler untimed = {.post = bide_inline_scheduler.post,
                              .take_back = bide_inline_scheduler.take_back};
    const bide_context context = {.scheduler = &untimed};
    bide_sleep sleep;
    assert_int_equal(bide_sync_wait_in(&context, bide_sleep_for(&sleep, 1)), -ENOTSUP);
    assert_int_equal(bide_sync_wait_in(&context, bide_sleep_until(&sleep, 0)), -ENOTSUP);
}

static void a_sleep_for_more_than_there_is_ends_never(void **state)
{
    static const uint64_t times[] = {BIDE_FOREVER, BIDE_FOREVER - 1};
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        bide_run_loop loop;
        bide_spawned spawned;
        bide_sleep sleep;
        bide_run_loop_init(&loop);
        /* (the function: to the macro of debug builds it may be a negative number) */
        bide_spawn(&spawned, &loop.context, (bide_sleep_for)(&sleep, times[i]));
        bide_run_loop_run_ready(&loop);
        assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
        bide_destroy(&spawned.root.frame);
    }
}

/* ---- The order ---- */

enum { LISTED = 64 };

struct list {
    unsigned count;
    unsigned numbers[LISTED];
};

/* Sleeps until its time, and then adds its number to the list. */
struct listed {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    uint64_t time;
    struct list *list;
    unsigned number;
};

bide_coroutine(listed_body)
{
    bide_begin(listed_body, struct listed * self);
    bide_try(bide_sleep_until(&self->sleep, self->time));
    self->list->numbers[self->list->count++] = self->number;
    bide_end();
}

static void begin_listed(struct listed *self, const bide_context *context, uint64_t time,
                         unsigned number, struct list *list)
{
    self->time = time;
    self->list = list;
    self->number = number;
    bide_spawn(&self->spawned, context, bide_task_init(&self->task, &listed_body));
}

/*
 * Sets many alarms in one turn of the only thread. The first may be due when the last is set, but the timers are
 * not polled in between. Each time is shared by two alarms, which are ordered by when they were set.
 */
struct many {
    bide_task task;
    uint64_t from;
    bide_event events[LISTED];
    alarm alarms[LISTED];
    bide_event_waiter wait;
    struct list list;
};

static bide_next listing_step(bide_frame *frame, unsigned depth);
static const bide_coroutine_code listing_code = {listing_step, "listing", __FILE__, NULL, NULL};
static const bide_point listing_point = BIDE_POINT_START(&listing_code);
static struct many many;

static bide_next listing_step(bide_frame *frame, unsigned depth)
{
    alarm *self = bide_container_of(frame, alarm, frame);
    many.list.numbers[many.list.count++] = (unsigned)(self - many.alarms);
    return alarm_step(frame, depth);
}

bide_coroutine(many_body)
{
    bide_begin(many_body, struct many * self);
    for (unsigned second = 0; second < 2; second++) {
        for (unsigned i = 0; i < LISTED / 2; i++) {
            unsigned which = i * 13 % (LISTED / 2); /* in no order */
            alarm *alarm = &self->alarms[2 * which + second];
            bide_event *event = &self->events[2 * which + second];
            bide_event_init(event, false);
            alarm_init(alarm, bide_this_context(), event);
            alarm->frame.awaiter.ops = &listing_point.ops;
            alarm_set(alarm, self->from + which * MILLISECOND / 20);
        }
    }
    bide_await(bide_event_wait(&self->wait, &self->events[LISTED - 1]));
    bide_end();
}

static void assert_in_order(void)
{
    assert_int_equal(many.list.count, LISTED);
    for (unsigned i = 0; i < LISTED; i++) {
        assert_int_equal(many.list.numbers[i], i);
        assert_false(many.alarms[i].was_early);
    }
}

static bide_awaiter *many_run(uint64_t from)
{
    many.from = from;
    many.list.count = 0;
    return bide_task_init(&many.task, &many_body);
}

static void timers_of_a_loop_come_by_time_and_by_arrival(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t from = i == 0 ? 1 : bide_platform.now() + (i - 1) * MILLISECOND;
        assert_int_equal(bide_run_loop_wait(&loop, many_run(from)), 0);
        assert_in_order();
    }
}

static void timers_of_a_pool_of_one_come_by_time_and_by_arrival(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(1);
    bide_context context = context_of(pool);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t from = i == 0 ? 1 : bide_platform.now() + (i - 1) * MILLISECOND;
        assert_int_equal(bide_sync_wait_in(&context, many_run(from)), 0);
        assert_in_order();
    }
    bide_thread_pool_destroy(pool);
}

/* ---- Setting and clearing ---- */

static void what_was_cleared_is_not_posted(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    alarm cleared, other;
    alarm_init(&cleared, &loop.context, NULL);
    alarm_init(&other, &loop.context, NULL);
    assert_false(alarm_clear(&cleared));
    assert_int_equal(alarm_set(&cleared, 1), 0);
    assert_int_equal(alarm_set(&other, 2), 0);
    assert_int_equal(bide_run_loop_next_deadline(&loop), 1);
    assert_true(alarm_clear(&cleared));
    assert_int_equal(bide_run_loop_next_deadline(&loop), 2);
    assert_false(alarm_clear(&cleared));
    bide_run_loop_run_ready(&loop);
    assert_int_equal(alarm_rings(&cleared), 0);
    assert_int_equal(alarm_rings(&other), 1);
    assert_false(alarm_clear(&other));
}

static void a_timer_may_be_set_again_once_it_was_posted_or_cleared(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    alarm alarm;
    alarm_init(&alarm, &loop.context, NULL);
    for (unsigned i = 1; i <= 10; i++) {
        assert_int_equal(alarm_set(&alarm, 1), 0);
        assert_true(alarm_clear(&alarm));
        assert_int_equal(alarm_set(&alarm, bide_platform.now()), 0);
        bide_run_loop_run_ready(&loop);
        assert_int_equal(alarm_rings(&alarm), i);
    }
}

/* Sets the alarm while the loop sleeps. */
struct setter {
    bide_run_loop *loop;
    alarm *alarm;
    uint64_t in;
};

static void *set_when_parked(void *argument)
{
    struct setter *setter = argument;
    schedule_until(is_parked(setter->loop));
    alarm_set(setter->alarm, bide_platform.now() + setter->in);
    return NULL;
}

/* With a later timer set, and without one. */
static void an_earlier_timer_of_another_thread_wakes_a_loop_that_sleeps(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        bide_run_loop loop;
        bide_run_loop_init(&loop);
        bide_event event;
        bide_event_init(&event, false);
        alarm late, soon;
        alarm_init(&late, &loop.context, NULL);
        alarm_init(&soon, &loop.context, &event);
        if (i % 2 == 0)
            alarm_set(&late, bide_platform.now() + HOUR);
        struct setter setter = {&loop, &soon, i % 4 < 2 ? 0 : MILLISECOND};
        pthread_t thread = schedule_thread(set_when_parked, &setter);
        bide_event_waiter wait;
        assert_int_equal(bide_run_loop_wait(&loop, bide_event_wait(&wait, &event)), 0);
        pthread_join(thread, NULL);
        assert_int_equal(alarm_rings(&soon), 1);
        assert_false(soon.was_early);
        assert_int_equal(alarm_clear(&late), i % 2 == 0);
        assert_int_equal(alarm_rings(&late), 0);
    }
}

/* Waits for the event, then sleeps a little, while others sleep for long. */
struct napper {
    bide_task task;
    bide_run_loop *loop;
    bide_event *event;
    bide_event_waiter wait;
    bide_sleep sleep;
};

bide_coroutine(napper_body)
{
    bide_begin(napper_body, struct napper * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_try(bide_sleep_for(&self->sleep, MILLISECOND));
    bide_end();
}

static void *set_when_awaited_and_parked(void *argument)
{
    struct napper *napper = argument;
    schedule_until(is_parked(napper->loop));
    bide_event_set(napper->event);
    return NULL;
}

static void a_loop_that_was_woken_sleeps_until_the_new_earliest_time(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_event event;
    bide_event_init(&event, false);
    alarm late;
    alarm_init(&late, &loop.context, NULL);
    alarm_set(&late, bide_platform.now() + HOUR);
    struct napper napper = {.loop = &loop, .event = &event};
    pthread_t thread = schedule_thread(set_when_awaited_and_parked, &napper);
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&napper.task, &napper_body)), 0);
    pthread_join(thread, NULL);
    assert_true(alarm_clear(&late));
}

/* Yields until the alarm has expired: its scheduler always has something to run. */
struct busy {
    bide_task task;
    bide_spawned spawned;
    alarm *alarm;
    bide_awaiter turn;
};

static bide_frame *turn_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)frame;
    awaiter->link = NULL;
    bide_wake(awaiter);
    return NULL;
}

static int turn_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bide_awaiter *turn(bide_awaiter *awaiter)
{
    static const bide_awaiter_ops ops = {
        .suspend = turn_suspend,
        .resume = turn_resume,
        .name = "turn",
    };
    awaiter->ops = &ops;
    return awaiter;
}

bide_coroutine(busy_body)
{
    bide_begin(busy_body, struct busy * self);
    while (alarm_rings(self->alarm) == 0)
        bide_await(turn(&self->turn));
    bide_end();
}

static void a_loop_that_is_never_idle_has_its_timers_served(void **state)
{
    (void)state;
    for (uint64_t in = 0; in < 3; in++) {
        bide_run_loop loop;
        bide_run_loop_init(&loop);
        alarm alarm;
        alarm_init(&alarm, &loop.context, NULL);
        alarm_set(&alarm, bide_platform.now() + in * MILLISECOND);
        struct busy busy = {.alarm = &alarm};
        assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&busy.task, &busy_body)), 0);
        assert_false(alarm.was_early);
    }
}

static void a_pool_that_is_never_idle_has_its_timers_served(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        unsigned threads = 1 + i % 3;
        bide_thread_pool *pool = create(threads);
        bide_context context = context_of(pool);
        alarm alarm;
        alarm_init(&alarm, &context, NULL);
        struct busy busy[8];
        for (unsigned j = 0; j < 8; j++) {
            busy[j].alarm = &alarm;
            bide_spawn(&busy[j].spawned, &context, bide_task_init(&busy[j].task, &busy_body));
        }
        alarm_set(&alarm, bide_platform.now() + i / 3 * MILLISECOND);
        for (unsigned j = 0; j < 8; j++)
            assert_int_equal(wait_for(&busy[j].spawned), 0);
        bide_thread_pool_destroy(pool);
        assert_int_equal(alarm_rings(&alarm), 1);
        assert_false(alarm.was_early);
    }
}

/* ---- run_ready ---- */

static void run_ready_resumes_what_is_due_and_the_next_deadline_tells_of_the_rest(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
    struct list list = {0};
    struct listed past, future;
    uint64_t now = bide_platform.now();
    begin_listed(&past, &loop.context, now, 1, &list);
    begin_listed(&future, &loop.context, now + HOUR, 2, &list);
    bide_run_loop_run_ready(&loop);
    bide_run_loop_run_ready(&loop);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.numbers[0], 1);
    assert_true(bide_event_is_set(&past.spawned.ended));
    assert_true(bide_run_loop_next_deadline(&loop) == now + HOUR);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    bide_destroy(&future.spawned.root.frame);
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    assert_int_equal(list.count, 1);
}

/* Repeatedly sleeps until a time that has passed. */
struct restless {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    unsigned naps;
    bool is_to_end;
};

bide_coroutine(restless_body)
{
    bide_begin(restless_body, struct restless * self);
    for (self->naps = 0; !self->is_to_end; self->naps++)
        bide_try(bide_sleep_until(&self->sleep, 0));
    bide_end();
}

static void run_ready_ends_although_some_are_always_due(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct restless restless = {.is_to_end = false};
    bide_spawn(&restless.spawned, &loop.context, bide_task_init(&restless.task, &restless_body));
    for (unsigned i = 0; i < 10; i++) {
        bide_run_loop_run_ready(&loop);
        assert_int_equal(restless.naps, i);
    }
    restless.is_to_end = true;
    bide_run_loop_run_ready(&loop);
    assert_true(bide_event_is_set(&restless.spawned.ended));
}

static void a_timer_of_another_thread_is_served_by_run_ready(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_run_loop_run_ready(&loop);
    alarm alarm;
    alarm_init(&alarm, &loop.context, NULL);
    alarm_set(&alarm, 1); /* the loop does not run now, so this counts as any thread */
    bide_run_loop_run_ready(&loop);
    assert_int_equal(alarm_rings(&alarm), 1);
}

/* ---- Many that are due: the loop takes some at a time ---- */

enum { CROWD = 3000, CROWD_APART = 10000 };

struct crowd_alarm {
    bide_timer timer;
    bide_frame frame;
};

static struct {
    struct crowd_alarm all[CROWD];
    bide_run_loop loop;
    bide_event ended; /* set by the last */
    unsigned rung;
    unsigned out_of_order;
    bool clears_last;
    bool has_cleared;
} crowd;

static bool crowd_clear(unsigned i)
{
    return crowd.loop.scheduler.clear_timer(&crowd.loop.scheduler, &crowd.all[i].timer);
}

static bide_next crowd_step(bide_frame *frame, unsigned depth)
{
    struct crowd_alarm *self = bide_container_of(frame, struct crowd_alarm, frame);
    (void)depth;
    if (self != &crowd.all[crowd.rung])
        crowd.out_of_order++;
    if (crowd.rung == 0 && crowd.clears_last)
        crowd.has_cleared = crowd_clear(CROWD - 1);
    if (++crowd.rung == CROWD)
        bide_event_set(&crowd.ended);
    return bide_next_none();
}

static const bide_coroutine_code crowd_code = {crowd_step, "crowd", __FILE__, NULL, NULL};
static const bide_point crowd_point = BIDE_POINT_START(&crowd_code);

static void crowd_set(struct crowd_alarm *one, const bide_point *point, uint64_t time)
{
    static const bide_awaiter_ops ops = {.name = "crowd"};
    bide_timer_init(&one->timer, time);
    one->timer.awaiter.ops = &ops;
    one->timer.awaiter.frame = &one->frame;
    one->frame.awaiter.ops = &point->ops;
    one->frame.context = &crowd.loop.context;
    assert_int_equal(crowd.loop.scheduler.set_timer(&crowd.loop.scheduler, &one->timer), 0);
}

/* A loop with alarms that have all been due since it last looked. */
static void crowd_init(bool clears_last)
{
    bide_run_loop_init(&crowd.loop);
    bide_event_init(&crowd.ended, false);
    crowd.rung = crowd.out_of_order = 0;
    crowd.clears_last = clears_last;
    crowd.has_cleared = false;
    uint64_t begin = bide_platform.now() + 1;
    for (unsigned i = CROWD; i-- > 0;)
        crowd_set(&crowd.all[i], &crowd_point, begin + (uint64_t)i * CROWD_APART);
    while (bide_platform.now() <= begin + (uint64_t)CROWD * CROWD_APART)
        bide_platform.yield();
}

static void one_call_of_run_ready_resumes_all_that_are_due(void **state)
{
    (void)state;
    crowd_init(false);
    assert_in_range(bide_run_loop_run_ready(&crowd.loop), CROWD,
                    CROWD + 1); /* (with the loop's hint) */
    assert_int_equal(crowd.rung, CROWD);
    assert_int_equal(crowd.out_of_order, 0);
    assert_true(bide_run_loop_next_deadline(&crowd.loop) == BIDE_FOREVER);
    bide_run_loop_destroy(&crowd.loop);
}

static void a_timer_that_is_due_among_many_can_be_cleared_until_its_part_is_taken(void **state)
{
    (void)state;
    crowd_init(true);
    bide_run_loop_run_ready(&crowd.loop);
    assert_true(crowd.has_cleared);
    assert_int_equal(crowd.rung, CROWD - 1);
    assert_int_equal(crowd.out_of_order, 0);
    bide_run_loop_destroy(&crowd.loop);
}

static void a_descriptor_stays_readable_while_timers_that_are_due_are_left(void **state)
{
    (void)state;
    crowd_init(false);
    struct pollfd readable = {.fd = bide_run_loop_fd(&crowd.loop), .events = POLLIN};
    assert_true(readable.fd >= 0);
    while (crowd.rung < CROWD) {
        assert_int_equal(poll(&readable, 1, 0), 1);
        bide_run_loop_run_ready(&crowd.loop);
    }
    assert_int_equal(crowd.out_of_order, 0);
    bide_run_loop_close_fd(&crowd.loop);
    bide_run_loop_destroy(&crowd.loop);
}

/* Takes turns with the crowd. */
struct beside {
    bide_task task;
    bide_schedule_operation hop;
    uint64_t turns;
};

bide_coroutine(beside_body)
{
    bide_begin(beside_body, struct beside * self);
    while (!bide_event_is_set(&crowd.ended)) {
        bide_await(bide_schedule(&self->hop, &crowd.loop.scheduler));
        self->turns++;
    }
    bide_end();
}

static void many_that_are_due_are_served_beside_one_that_is_always_ready(void **state)
{
    (void)state;
    crowd_init(false);
    struct beside beside = {.turns = 0};
    assert_int_equal(bide_run_loop_wait(&crowd.loop, bide_task_init(&beside.task, &beside_body)),
                     0);
    assert_int_equal(crowd.rung, CROWD);
    assert_int_equal(crowd.out_of_order, 0);
    assert_true(beside.turns > 1);
    bide_run_loop_destroy(&crowd.loop);
}

/* The first alarm of the crowd takes all others back, and sets another timer. */
static struct {
    struct crowd_alarm late;
    unsigned taken_back, cleared;
    bool has_rung;
} breakup;

static bide_next late_step(bide_frame *frame, unsigned depth)
{
    (void)frame;
    (void)depth;
    breakup.has_rung = true;
    bide_event_set(&crowd.ended);
    return bide_next_none();
}

static const bide_coroutine_code late_code = {late_step, "late", __FILE__, NULL, NULL};
static const bide_point late_point = BIDE_POINT_START(&late_code);

static bide_next breakup_step(bide_frame *frame, unsigned depth)
{
    bide_scheduler *scheduler = &crowd.loop.scheduler;
    (void)depth;
    crowd.rung++;
    for (unsigned i = 0; i < CROWD; i++) {
        if (&crowd.all[i].frame == frame)
            continue;
        if (scheduler->take_back(scheduler, &crowd.all[i].timer.awaiter))
            breakup.taken_back++;
        else
            breakup.cleared += crowd_clear(i);
    }
    crowd_set(&breakup.late, &late_point, bide_platform.now());
    return bide_next_none();
}

static const bide_coroutine_code breakup_code = {breakup_step, "breakup", __FILE__, NULL, NULL};
static const bide_point breakup_point = BIDE_POINT_START(&breakup_code);

/* Those that were taken back do not count: the next timer does not wait for as many resumptions. */
static void a_timer_does_not_wait_for_those_that_were_taken_back(void **state)
{
    (void)state;
    bide_run_loop_init(&crowd.loop);
    bide_event_init(&crowd.ended, false);
    crowd.rung = 0;
    breakup.taken_back = breakup.cleared = 0;
    breakup.has_rung = false;
    uint64_t begin = bide_platform.now() + 1;
    for (unsigned i = 0; i < CROWD; i++)
        crowd_set(&crowd.all[i], &breakup_point, begin);
    while (bide_platform.now() <= begin)
        bide_platform.yield();
    struct beside beside = {.turns = 0};
    assert_int_equal(bide_run_loop_wait(&crowd.loop, bide_task_init(&beside.task, &beside_body)),
                     0);
    assert_true(breakup.has_rung);
    assert_int_equal(crowd.rung, 1);
    assert_int_equal(breakup.taken_back + breakup.cleared, CROWD - 1);
    assert_true(breakup.taken_back > CROWD / 2); /* (all of one slot are taken at once) */
    assert_true(beside.turns < CROWD / 2);
    bide_run_loop_destroy(&crowd.loop);
}

static void many_that_are_due_are_served_by_a_loop_that_is_to_sleep(void **state)
{
    (void)state;
    crowd_init(false);
    bide_event_waiter wait;
    assert_int_equal(bide_run_loop_wait(&crowd.loop, bide_event_wait(&wait, &crowd.ended)), 0);
    assert_int_equal(crowd.rung, CROWD);
    assert_int_equal(crowd.out_of_order, 0);
    bide_run_loop_destroy(&crowd.loop);
}

/* ---- Destroying ---- */

/* Sleeps, and then destroys another. */
struct destroyer {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    uint64_t time;
    bide_frame *other;
};

bide_coroutine(destroyer_body)
{
    bide_begin(destroyer_body, struct destroyer * self);
    bide_try(bide_sleep_until(&self->sleep, self->time));
    bide_destroy(self->other);
    bide_end();
}

static void a_sleeping_coroutine_is_destroyed(const bide_context *context, uint64_t time,
                                              bide_run_loop *loop)
{
    struct list list = {0};
    struct listed listed;
    begin_listed(&listed, context, time, 1, &list);
    struct destroyer destroyer = {.time = 1, .other = &listed.spawned.root.frame};
    bide_awaiter *awaiter = bide_task_init(&destroyer.task, &destroyer_body);
    if (loop != NULL)
        assert_int_equal(bide_run_loop_wait(loop, awaiter), 0);
    else
        assert_int_equal(bide_sync_wait_in(context, awaiter), 0);
    assert_true(bide_done(&listed.task.frame));
    assert_int_equal(bide_task_error(&listed.task), -ECANCELED);
    assert_int_equal(list.count, 0);
    assert_false(bide_event_is_set(&listed.spawned.ended));
}

static void a_coroutine_that_sleeps_can_be_destroyed(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_thread_pool *pool = create(1);
    bide_context context = context_of(pool);
    a_sleeping_coroutine_is_destroyed(&loop.context, bide_platform.now() + HOUR, &loop);
    a_sleeping_coroutine_is_destroyed(&loop.context, BIDE_FOREVER, &loop);
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
    a_sleeping_coroutine_is_destroyed(&context, bide_platform.now() + HOUR, NULL);
    a_sleeping_coroutine_is_destroyed(&context, BIDE_FOREVER, NULL);
    bide_thread_pool_destroy(pool);
}

/* Both are due at once, so the second is posted when the first runs. */
static void a_coroutine_that_has_slept_and_is_to_be_resumed_can_be_destroyed(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    struct list list = {0};
    struct listed listed;
    struct destroyer destroyer = {.time = 1, .other = &listed.spawned.root.frame};
    begin_listed(&listed, &loop.context, 2, 1, &list);
    bide_spawn(&destroyer.spawned, &loop.context, bide_task_init(&destroyer.task, &destroyer_body));
    bide_run_loop_run_ready(&loop); /* both begin to sleep */
    bide_run_loop_run_ready(&loop);
    assert_true(bide_event_is_set(&destroyer.spawned.ended));
    assert_true(bide_done(&listed.task.frame));
    assert_int_equal(bide_run_loop_run_ready(&loop), 0);
    assert_int_equal(list.count, 0);
}

/* ---- The pool ---- */

static void an_earlier_timer_wakes_the_thread_of_a_pool_that_keeps_the_time(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        bide_thread_pool *pool = create(threads);
        bide_context context = context_of(pool);
        alarm late;
        alarm_init(&late, &context, NULL);
        alarm_set(&late, bide_platform.now() + HOUR);
        for (unsigned i = 0; i < 50; i++) {
            bide_event event;
            bide_event_init(&event, false);
            alarm soon;
            alarm_init(&soon, &context, &event);
            alarm_set(&soon, bide_platform.now() + i % 3 * (MILLISECOND / 4));
            bide_event_waiter wait;
            assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &event)), 0);
            assert_int_equal(alarm_rings(&soon), 1);
            assert_false(soon.was_early);
            /* Also from one of its own threads. */
            bide_sleep sleep;
            assert_int_equal(bide_sync_wait_in(&context, bide_sleep_for(&sleep, MILLISECOND / 4)),
                             0);
        }
        assert_true(alarm_clear(&late));
        bide_thread_pool_destroy(pool);
        assert_int_equal(alarm_rings(&late), 0);
    }
}

/* Holds its thread until the alarm has rung. */
struct holder {
    bide_task task;
    bide_spawned spawned;
    alarm *alarm;
    bide_atomic(bool) holds;
};

bide_coroutine(holder_body)
{
    bide_begin(holder_body, struct holder * self);
    bide_atomic_store(&self->holds, true, relaxed);
    schedule_until(alarm_rings(self->alarm) != 0);
    bide_end();
}

/* All threads but one have work, whichever of them was the timekeeper before. */
static void the_thread_that_is_left_keeps_the_time(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    bide_thread_pool *pool = create(THREADS);
    bide_context context = context_of(pool);
    for (unsigned i = 0; i < 100; i++) {
        alarm alarm;
        alarm_init(&alarm, &context, NULL);
        alarm_set(&alarm, bide_platform.now() + MILLISECOND);
        struct holder holders[THREADS - 1];
        for (unsigned j = 0; j < THREADS - 1; j++) {
            holders[j].alarm = &alarm;
            bide_atomic_init(&holders[j].holds, false);
            bide_spawn(&holders[j].spawned, &context,
                       bide_task_init(&holders[j].task, &holder_body));
        }
        for (unsigned j = 0; j < THREADS - 1; j++) {
            assert_int_equal(wait_for(&holders[j].spawned), 0);
            assert_true(bide_atomic_load(&holders[j].holds, relaxed));
        }
        assert_int_equal(alarm_rings(&alarm), 1);
    }
    bide_thread_pool_destroy(pool);
}

static void a_pool_ends_while_a_thread_keeps_the_time(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        bide_thread_pool *pool = create(1 + i % 3);
        bide_context context = context_of(pool);
        alarm alarm;
        alarm_init(&alarm, &context, NULL);
        alarm_set(&alarm, bide_platform.now() + HOUR);
        if (i % 2 == 0) {
            witness task; /* when it has ended, the threads have run */
            assert_int_equal(bide_sync_wait_in(&context, witness_run(&task, NULL, 0)), 0);
        }
        assert_true(alarm_clear(&alarm)); /* the thread sleeps on */
        bide_thread_pool_destroy(pool);
        assert_int_equal(alarm_rings(&alarm), 0);
    }
}

/* ---- Many threads ---- */

enum { SETTERS = 3, ALARMS = 16, ROUNDS = 3000 };

struct setting {
    uint64_t random;
    bide_context *context;
    alarm alarms[ALARMS];
    unsigned cleared;
    unsigned rung;
    unsigned wrong;
};

/* Sets and clears. An alarm that was set is cleared or rings, never both. */
static void *set_and_clear(void *argument)
{
    struct setting *self = argument;
    bool is_set[ALARMS] = {false};
    unsigned rings[ALARMS] = {0};
    for (unsigned i = 0; i < ALARMS; i++)
        alarm_init(&self->alarms[i], self->context, NULL);
    for (unsigned round = 0; round < ROUNDS + ALARMS; round++) {
        uint64_t number = testing_random(&self->random);
        unsigned i = round < ROUNDS ? (unsigned)(number % ALARMS) : round - ROUNDS;
        alarm *alarm = &self->alarms[i];
        if (is_set[i]) {
            if (alarm_clear(alarm)) {
                self->cleared++;
                self->wrong += alarm_rings(alarm) != rings[i];
            } else {
                self->rung++;
                rings[i]++;
                schedule_until(alarm_rings(alarm) >= rings[i]);
                self->wrong += alarm_rings(alarm) != rings[i] || alarm->was_early;
            }
            is_set[i] = false;
        } else if (round < ROUNDS) {
            alarm_set(alarm, bide_platform.now() + (number >> 8) % (MILLISECOND / 20));
            is_set[i] = true;
        }
        schedule_jitter(&self->random);
    }
    return NULL;
}

static struct setting settings[SETTERS];

static void begin_setting(pthread_t *threads, bide_context *context)
{
    uint64_t seed = testing_seed();
    for (unsigned i = 0; i < SETTERS; i++) {
        settings[i] = (struct setting){.random = seed + i, .context = context};
        threads[i] = schedule_thread(set_and_clear, &settings[i]);
    }
}

static void end_setting(pthread_t *threads)
{
    for (unsigned i = 0; i < SETTERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(settings[i].wrong, 0);
        assert_true(settings[i].cleared + settings[i].rung > ROUNDS / 3);
    }
}

static void *join_and_stop(void *argument)
{
    bide_run_loop *loop = argument;
    pthread_t threads[SETTERS];
    begin_setting(threads, &loop->context);
    end_setting(threads);
    bide_run_loop_stop(loop);
    return NULL;
}

static void timers_of_a_loop_that_many_threads_set_ring_once_or_are_cleared(void **state)
{
    (void)state;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    static struct dozer dozers[4];
    for (unsigned i = 0; i < 4; i++)
        begin_dozer(&dozers[i], &loop.context, i, 100, MILLISECOND / 10);
    pthread_t thread = schedule_thread(join_and_stop, &loop);
    bide_run_loop_run(&loop);
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < 4; i++) {
        bide_event_waiter wait;
        bide_run_loop_wait(&loop, bide_event_wait(&wait, &dozers[i].spawned.ended));
        assert_int_equal(dozers[i].early, 0);
    }
    assert_true(bide_run_loop_next_deadline(&loop) == BIDE_FOREVER);
}

static void timers_of_a_pool_that_many_threads_set_ring_once_or_are_cleared(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        bide_thread_pool *pool = create(i);
        bide_context context = context_of(pool);
        static struct dozer dozers[4];
        for (unsigned j = 0; j < 4; j++)
            begin_dozer(&dozers[j], &context, j, 100, MILLISECOND / 10);
        pthread_t threads[SETTERS];
        begin_setting(threads, &context);
        end_setting(threads);
        for (unsigned j = 0; j < 4; j++) {
            assert_int_equal(wait_for(&dozers[j].spawned), 0);
            assert_int_equal(dozers[j].early, 0);
        }
        bide_thread_pool_destroy(pool);
    }
}

/* Each test has ended its operations. */
static int no_task_is_left(void **state)
{
    char text[4096] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    (void)state;
    int status = file == NULL ? -1 : bide_dump(file);
    if (file != NULL)
        fclose(file);
    if (status == 0 && strcmp(text, "0 tasks\n") == 0)
        return 0;
    fputs(text, stdout);
    return -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(no_sleep_of_a_loop_ends_early, no_task_is_left),
        cmocka_unit_test_teardown(no_sleep_of_a_pool_ends_early, no_task_is_left),
        cmocka_unit_test_teardown(without_timers_a_sleep_ends_with_ENOTSUP, no_task_is_left),
        cmocka_unit_test_teardown(a_sleep_for_more_than_there_is_ends_never, no_task_is_left),
        cmocka_unit_test_teardown(timers_of_a_loop_come_by_time_and_by_arrival, no_task_is_left),
        cmocka_unit_test_teardown(timers_of_a_pool_of_one_come_by_time_and_by_arrival,
                                  no_task_is_left),
        cmocka_unit_test_teardown(what_was_cleared_is_not_posted, no_task_is_left),
        cmocka_unit_test_teardown(a_timer_may_be_set_again_once_it_was_posted_or_cleared,
                                  no_task_is_left),
        cmocka_unit_test_teardown(an_earlier_timer_of_another_thread_wakes_a_loop_that_sleeps,
                                  no_task_is_left),
        cmocka_unit_test_teardown(a_loop_that_was_woken_sleeps_until_the_new_earliest_time,
                                  no_task_is_left),
        cmocka_unit_test_teardown(a_loop_that_is_never_idle_has_its_timers_served, no_task_is_left),
        cmocka_unit_test_teardown(a_pool_that_is_never_idle_has_its_timers_served, no_task_is_left),
        cmocka_unit_test_teardown(
            run_ready_resumes_what_is_due_and_the_next_deadline_tells_of_the_rest, no_task_is_left),
        cmocka_unit_test_teardown(run_ready_ends_although_some_are_always_due, no_task_is_left),
        cmocka_unit_test_teardown(a_timer_of_another_thread_is_served_by_run_ready,
                                  no_task_is_left),
        cmocka_unit_test_teardown(one_call_of_run_ready_resumes_all_that_are_due, no_task_is_left),
        cmocka_unit_test_teardown(
            a_timer_that_is_due_among_many_can_be_cleared_until_its_part_is_taken, no_task_is_left),
        cmocka_unit_test_teardown(a_descriptor_stays_readable_while_timers_that_are_due_are_left,
                                  no_task_is_left),
        cmocka_unit_test_teardown(many_that_are_due_are_served_beside_one_that_is_always_ready,
                                  no_task_is_left),
        cmocka_unit_test_teardown(a_timer_does_not_wait_for_those_that_were_taken_back,
                                  no_task_is_left),
        cmocka_unit_test_teardown(many_that_are_due_are_served_by_a_loop_that_is_to_sleep,
                                  no_task_is_left),
        cmocka_unit_test_teardown(a_coroutine_that_sleeps_can_be_destroyed, no_task_is_left),
        cmocka_unit_test_teardown(a_coroutine_that_has_slept_and_is_to_be_resumed_can_be_destroyed,
                                  no_task_is_left),
        cmocka_unit_test_teardown(an_earlier_timer_wakes_the_thread_of_a_pool_that_keeps_the_time,
                                  no_task_is_left),
        cmocka_unit_test_teardown(the_thread_that_is_left_keeps_the_time, no_task_is_left),
        cmocka_unit_test_teardown(a_pool_ends_while_a_thread_keeps_the_time, no_task_is_left),
        cmocka_unit_test_teardown(timers_of_a_loop_that_many_threads_set_ring_once_or_are_cleared,
                                  no_task_is_left),
        cmocka_unit_test_teardown(timers_of_a_pool_that_many_threads_set_ring_once_or_are_cleared,
                                  no_task_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
