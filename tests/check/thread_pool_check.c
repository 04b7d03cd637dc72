/*
 * The thread pool: how its workers fall asleep and are woken, its timers, and its end.
 * run_queue_check.c checks a ring and a slot; spare_check.c is the part with spare workers.
 *
 * Most scenarios have a pool whose workers they run themselves. Worker 0 is not run: the first
 * thread replaces it, as a coroutine that has made another one and does not suspend.
 */
#include "../src/schedule/pool/worker.h"

#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/sleep.h"
#include "bide/task.h"

#include <errno.h>

enum { JOBS = 3, MEET = 2, LATER = 5 };

typedef struct job {
    bide_frame frame;
    int data;                   /* written by its maker */
    bide_atomic(uint32_t) done; /* how often it has run */
    struct state *ends;         /* ends its pool when all jobs have run, or NULL */
    struct state *ends_all;     /* the same of all jobs with that of the shutdown, or NULL */
    struct state *meets;        /* waits in it until MEET jobs have begun, or NULL */
    bool writes;                /* `data` */
} job;

typedef struct state {
    bide_thread_pool *pool;
    bide_context context;
    job jobs[JOBS + 1]; /* the last is of the shutdown */
    bide_timer timer, later;
    bide_atomic(uint32_t) begun;
    bide_atomic(uint32_t) ended;
    bide_event event;
} state;

static void await_word(bide_atomic(uint32_t) * word, uint32_t value)
{
    uint32_t found;
    while ((found = bide_atomic_load(word, acquire)) != value)
        bide_platform.wait(word, found, BIDE_FOREVER);
}

static bide_next job_step(bide_frame *frame, unsigned depth)
{
    job *self = bide_container_of(frame, job, frame);
    (void)depth;
    bide_check_assert(bide_plain_load(&self->data) == 42);
    if (self->writes) {
        bide_plain_store(&self->data, 43);
        return bide_next_none();
    }
    if (self->meets != NULL) {
        bide_atomic_fetch_add(&self->meets->begun, 1, release);
        bide_platform.wake(&self->meets->begun, MEET);
        await_word(&self->meets->begun, MEET);
    }
    bide_check_assert(bide_atomic_fetch_add(&self->done, 1, release) == 0);
    bide_platform.wake(&self->done, 1);
    if (self->ends != NULL && bide_atomic_fetch_add(&self->ends->ended, 1, relaxed) == JOBS - 1)
        bide_pool_end_(self->ends->pool);
    if (self->ends_all != NULL && bide_atomic_fetch_add(&self->ends_all->ended, 1, relaxed) == JOBS)
        bide_pool_end_(self->ends_all->pool);
    return bide_next_none();
}

static const bide_coroutine_code job_code = {job_step, "job", __FILE__, NULL, NULL};
static const bide_point job_point = BIDE_POINT_START(&job_code);

static bide_awaiter *make(state *s, unsigned index)
{
    job *self = &s->jobs[index];
    bide_frame_init_in(&self->frame, &job_point, &s->context);
    self->frame.awaiter.frame = &self->frame;
    bide_plain_store(&self->data, 42);
    return &self->frame.awaiter;
}

static void set_up(state *s, unsigned workers)
{
    s->pool = bide_pool_make_(workers, 0);
    s->context = (bide_context){.scheduler = &s->pool->scheduler};
    for (unsigned i = 0; i < JOBS; i++)
        bide_atomic_init(&s->jobs[i].done, 0);
    bide_atomic_init(&s->begun, 0);
    bide_atomic_init(&s->ended, 0);
}

static void one_worker(void *p)
{
    set_up(p, 1);
}

static void two_workers(void *p)
{
    set_up(p, 2);
}

static void three_workers(void *p)
{
    set_up(p, 3);
}

/* Of three coroutines in the ring of a busy worker, a thief takes two, which have to meet. */
static void three_workers_and_three_jobs(void *p)
{
    state *s = p;
    set_up(s, 3);
    s->jobs[0].meets = s;
    s->jobs[1].meets = s;
    for (unsigned i = 0; i < JOBS; i++) {
        s->jobs[i].ends = s;
        bide_run_queue_push_(&s->pool->workers[0].queue, make(s, i));
    }
}

static void finish(void *p)
{
    bide_pool_free_(((state *)p)->pool);
}

static void work_0(void *p)
{
    bide_pool_work_(&((state *)p)->pool->workers[0]);
}

static void work_1(void *p)
{
    bide_pool_work_(&((state *)p)->pool->workers[1]);
}

static void work_2(void *p)
{
    bide_pool_work_(&((state *)p)->pool->workers[2]);
}

static void await_and_end(state *s, unsigned jobs)
{
    for (unsigned i = 0; i < jobs; i++)
        await_word(&s->jobs[i].done, 1);
    bide_pool_end_(s->pool);
}

static void end(void *p)
{
    bide_pool_end_(((state *)p)->pool);
}

static void post(state *s, unsigned index)
{
    bide_awaiter *awaiter = make(s, index);
    awaiter->link = NULL;
    s->pool->scheduler.post(&s->pool->scheduler, awaiter, awaiter);
}

static void post_one(void *p)
{
    post(p, 0);
    await_and_end(p, 1);
}

static void post_two(void *p)
{
    post(p, 0);
    post(p, 1);
    await_and_end(p, 2);
}

/* They run at once, each on a worker. */
static void post_two_that_meet(void *p)
{
    state *s = p;
    s->jobs[0].meets = s;
    s->jobs[1].meets = s;
    bide_awaiter *first = make(s, 0), *second = make(s, 1);
    first->link = second;
    second->link = NULL;
    s->pool->scheduler.post(&s->pool->scheduler, first, second);
    await_and_end(s, 2);
}

static void push_one(void *p)
{
    state *s = p;
    bide_awaiter *awaiter = make(s, 0);
    bide_pool_push_(&s->pool->workers[0], awaiter, awaiter);
    await_and_end(s, 1);
}

static void push_two_that_meet(void *p)
{
    state *s = p;
    s->jobs[0].meets = s;
    s->jobs[1].meets = s;
    for (unsigned i = 0; i < 2; i++) {
        bide_awaiter *awaiter = make(s, i);
        bide_pool_push_(&s->pool->workers[0], awaiter, awaiter);
    }
    await_and_end(s, 2);
}

static void hand_over_one(void *p)
{
    state *s = p;
    bide_pool_hand_over_(&s->pool->workers[0], make(s, 0));
    await_and_end(s, 1);
}

static void set_a_timer(void *p)
{
    state *s = p;
    make(s, 0);
    bide_timer_init(&s->timer, LATER);
    s->timer.awaiter.ops = &job_point.ops;
    s->timer.awaiter.frame = &s->jobs[0].frame;
    bide_check_assert(bide_pool_set_timer_(&s->pool->scheduler, &s->timer) == 0);
    await_and_end(s, 1);
}

static void set_the_timer(state *s, bide_timer *timer, unsigned index, uint64_t time)
{
    make(s, index);
    bide_timer_init(timer, time);
    timer->awaiter.ops = &job_point.ops;
    timer->awaiter.frame = &s->jobs[index].frame;
    bide_check_assert(bide_pool_set_timer_(&s->pool->scheduler, timer) == 0);
}

/* The second is not earlier than the first, which a timekeeper may sleep for still. */
static void set_a_timer_and_another(void *p)
{
    state *s = p;
    set_the_timer(s, &s->timer, 1, LATER);
    bool is_cleared = bide_pool_clear_timer_(&s->pool->scheduler, &s->timer);
    set_the_timer(s, &s->later, 0, LATER);
    await_word(&s->jobs[0].done, 1);
    if (!is_cleared)
        await_word(&s->jobs[1].done, 1);
    bide_pool_end_(s->pool);
}

/* each of the programs uses some of these */
#define MAYBE_UNUSED __attribute__((unused))

/* By a worker that is busy until the timer is run: the other worker keeps the time. */
static void set_a_timer_on_1(void *p)
{
    state *s = p;
    bide_pool_enter_(&s->pool->workers[1]);
    set_the_timer(s, &s->timer, 0, LATER);
    await_word(&s->jobs[0].done, 1);
    bide_pool_enter_(NULL);
    bide_pool_end_(s->pool);
}

/* It is in the wheel of worker 1. */
static void set_a_timer_on_1_and_clear_it(void *p)
{
    state *s = p;
    bide_pool_enter_(&s->pool->workers[1]);
    set_the_timer(s, &s->timer, 0, LATER);
    bide_pool_enter_(NULL);
    bide_check_assert(bide_pool_next_timer_(s->pool) == LATER);
    bide_check_assert(bide_pool_clear_timer_(&s->pool->scheduler, &s->timer));
    bide_check_assert(bide_pool_next_timer_(s->pool) == BIDE_FOREVER);
}

/* Worker 1 falls asleep first, and looks at the timers only when worker 0 sleeps too. */
static void sleep_in_turn(void *p, unsigned worker)
{
    state *s = p;
    bide_atomic(uint32_t) *own = worker == 1 ? &s->begun : &s->ended;
    bide_atomic_store(own, 1, release);
    bide_platform.wake(own, 1);
    if (worker == 1)
        await_word(&s->ended, 1);
}

MAYBE_UNUSED static void two_workers_of_which_1_sleeps_first(void *p)
{
    state *s = p;
    set_up(s, 2);
    s->pool->hooks.before_sleep = sleep_in_turn;
    s->pool->hooks.argument = s;
}

MAYBE_UNUSED static void work_0_after_1(void *p)
{
    await_word(&((state *)p)->begun, 1);
    work_0(p);
}

/*
 * Worker 1 keeps the time of a timer while the other sleeps too. It runs the timer, and is busy until its next one is run,
 * which is as late: the other has to keep the time of that.
 */
MAYBE_UNUSED static void keep_the_time_and_set_a_timer_on_1(void *p)
{
    state *s = p;
    bide_pool_worker *worker = &s->pool->workers[1];
    bide_pool_enter_(worker);
    set_the_timer(s, &s->timer, 0, LATER);
    bide_check_assert(bide_pool_sleep_(worker));
    bide_pool_run_one_(worker, 2);
    bide_pool_found_(worker);
    await_word(&s->jobs[0].done, 1);
    set_the_timer(s, &s->later, 1, LATER);
    await_word(&s->jobs[1].done, 1);
    bide_pool_enter_(NULL);
    bide_pool_end_(s->pool);
}

#define SCENARIO(variable, text, before, ...)     \
    MAYBE_UNUSED                                  \
    static const bide_check_scenario variable = { \
        .name = text,                             \
        .size = sizeof(state),                    \
        .cxx20_release_sequences = true,          \
        .setup = before,                          \
        .threads = {__VA_ARGS__},                 \
        .finish = finish,                         \
        .never_spurious = true,                   \
    }

SCENARIO(ended, "a_worker_ends", one_worker, work_0, end);
SCENARIO(posted, "what_is_posted_from_outside_runs", one_worker, post_one, work_0);
SCENARIO(both, "two_that_are_posted_run", one_worker, post_two, work_0);
SCENARIO(posted_to_two, "one_of_two_workers_runs_what_is_posted", two_workers, post_one, work_0,
         work_1);
SCENARIO(posted_to_meet, "two_that_are_posted_at_once_have_two_workers", two_workers,
         post_two_that_meet, work_0, work_1);
SCENARIO(pushed, "what_a_busy_worker_has_pushed_is_stolen", two_workers, push_one, work_1);
SCENARIO(pushed_to_meet, "two_that_a_busy_worker_has_pushed_have_two_workers", three_workers,
         push_two_that_meet, work_1, work_2);
SCENARIO(handed_over, "what_stands_in_the_slot_of_a_busy_worker_is_taken", two_workers,
         hand_over_one, work_1);
SCENARIO(timed, "a_worker_sleeps_until_a_timer_is_due", one_worker, set_a_timer, work_0);
SCENARIO(timed_again, "a_timer_after_one_that_was_cleared_is_kept", two_workers,
         set_a_timer_and_another, work_1);
SCENARIO(timed_by_one, "one_of_two_workers_keeps_the_time", two_workers, set_a_timer, work_0,
         work_1);

SCENARIO(timed_elsewhere, "a_timer_of_a_busy_worker_is_kept_by_another", two_workers, work_0,
         set_a_timer_on_1);

MAYBE_UNUSED static const bide_check_scenario timed_in_the_first = {
    .name = "a_timer_in_the_wheel_of_another_is_kept",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = two_workers,
    .threads = {work_1, set_a_timer},
    .finish = finish,
    .never_spurious = true,
    .max_executions = 1000,
};

SCENARIO(cleared, "a_timer_is_cleared_in_the_wheel_that_it_is_in", two_workers,
         set_a_timer_on_1_and_clear_it);

MAYBE_UNUSED static const bide_check_scenario timed_after = {
    .name = "a_timer_after_one_that_its_worker_has_kept_is_kept_by_another",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = two_workers_of_which_1_sleeps_first,
    .threads = {keep_the_time_and_set_a_timer_on_1, work_0_after_1},
    .finish = finish,
    .never_spurious = true,
    .max_executions = 1000, /* (the first are those that matter) */
};

MAYBE_UNUSED static const bide_check_scenario stolen_to_meet = {
    .name = "what_a_thief_leaves_has_another_worker",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = three_workers_and_three_jobs,
    .threads = {work_1, work_2},
    .finish = finish,
    .never_spurious = true,
    .preemptions = 2,
};

/* ---- A pool with its threads ---- */

static void create_and_destroy(void *p)
{
    state *s = p;
    bide_check_assert(bide_thread_pool_create(&s->pool, 2) == 0);
    bide_thread_pool_destroy(s->pool);
}

MAYBE_UNUSED static const bide_check_scenario created = {
    .name = "a_pool_of_two_ends",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .threads = {create_and_destroy},
    .never_spurious = true,
};

/* ---- A shutdown ---- */

enum { SHUT_JOBS = JOBS + 1 };

/* Each job has run, which is visible then, or is counted. */
static void check_shut_down(state *s, const bide_thread_pool_remaining *remaining)
{
    size_t ran = 0;
    for (unsigned i = 0; i < SHUT_JOBS; i++)
        ran += bide_plain_load(&s->jobs[i].data) == 43;
    bide_check_assert(remaining->threads == 0 && ran + remaining->ready == SHUT_JOBS);
    bide_check_note(remaining->ready != 0 ? "some are left" : "none is left");
}

static void one_worker_and_its_jobs(void *p)
{
    state *s = p;
    set_up(s, 1);
    s->pool->is_joined = true; /* it has no thread of its own */
    for (unsigned i = 0; i < SHUT_JOBS; i++) {
        s->jobs[i].writes = true;
        bide_run_queue_push_(&s->pool->workers[0].queue, make(s, i));
    }
}

static void work_0_and_note(void *p)
{
    work_0(p);
    bide_pool_note_end_(((state *)p)->pool);
}

/* The deadline passes whenever it likes. */
static void shut_down(void *p)
{
    state *s = p;
    bide_thread_pool_remaining remaining;
    int status = bide_thread_pool_shutdown(s->pool, LATER, &remaining);
    if (remaining.threads != 0)
        status = bide_thread_pool_shutdown(s->pool, BIDE_FOREVER, &remaining);
    bide_check_assert(status == (remaining.ready == 0 ? 0 : -ETIMEDOUT));
    check_shut_down(s, &remaining);
}

SCENARIO(shut, "what_a_shutdown_leaves_is_counted_and_does_not_run", one_worker_and_its_jobs,
         shut_down, work_0_and_note);

/* A timer that no thread of the pool sets. */
struct sleeper {
    bide_task task;
    state *state;
    bide_sleep sleep;
};

bide_coroutine(sleep_and_set_body)
{
    bide_begin(sleep_and_set_body, struct sleeper * self);
    bide_try(bide_sleep_until(&self->sleep, LATER));
    bide_event_set(&self->state->event);
    bide_end();
}

static void begin_outside_and_wait(void *p)
{
    state *s = p;
    struct sleeper sleeper = {.state = s};
    bide_event_waiter wait;
    bide_event_init(&s->event, false);
    bide_check_assert(bide_thread_pool_create(&s->pool, 1) == 0);
    s->context = (bide_context){.scheduler = bide_thread_pool_scheduler(s->pool)};
    bide_start(&sleeper.task.frame, &sleep_and_set_body, &s->context);
    bide_resume(&sleeper.task.frame);
    bide_check_await(bide_event_wait(&wait, &s->event));
    bide_thread_pool_destroy(s->pool);
}

MAYBE_UNUSED static const bide_check_scenario set_outside = {
    .name = "a_timer_that_is_set_outside_the_pool_is_kept",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .threads = {begin_outside_and_wait},
    .never_spurious = true,
};

static void no_pool_yet(void *p)
{
    state *s = p;
    bide_event_init(&s->event, false);
    bide_atomic_init(&s->begun, 0);
}

/* The coroutine of its timer, which may be run before it has returned, has the pool destroyed. */
static void create_and_begin_outside(void *p)
{
    state *s = p;
    static struct sleeper sleeper;
    sleeper = (struct sleeper){.state = s};
    bide_check_assert(bide_thread_pool_create(&s->pool, 1) == 0);
    s->context = (bide_context){.scheduler = bide_thread_pool_scheduler(s->pool)};
    bide_start(&sleeper.task.frame, &sleep_and_set_body, &s->context);
    bide_atomic_store(&s->begun, 1, release);
    bide_platform.wake(&s->begun, 1);
    bide_resume(&sleeper.task.frame);
}

static void wait_and_destroy(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    await_word(&s->begun, 1);
    bide_check_await(bide_event_wait(&wait, &s->event));
    bide_thread_pool_destroy(s->pool);
}

MAYBE_UNUSED static const bide_check_scenario set_by_the_last = {
    .name = "a_pool_may_be_destroyed_while_the_thread_that_has_set_its_last_timer_returns",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = no_pool_yet,
    .threads = {create_and_begin_outside, wait_and_destroy},
    .never_spurious = true,
    .max_executions = 1000,
};

/* ---- Regions, and a spare worker ---- */

static void set_up_with_spare(state *s)
{
    s->pool = bide_pool_make_(1, 1);
    s->context = (bide_context){.scheduler = &s->pool->scheduler};
    for (unsigned i = 0; i < SHUT_JOBS; i++)
        bide_atomic_init(&s->jobs[i].done, 0);
    bide_atomic_init(&s->begun, 0);
    bide_atomic_init(&s->ended, 0);
}

static void one_worker_and_a_spare_one(void *p)
{
    set_up_with_spare(p);
}

/* All end the pool. */
static void one_worker_a_spare_one_and_jobs(void *p)
{
    state *s = p;
    set_up_with_spare(s);
    for (unsigned i = 0; i < SHUT_JOBS; i++)
        s->jobs[i].ends_all = s;
}

static void spare_work(void *p)
{
    bide_pool_worker *spare = &((state *)p)->pool->workers[1];
    while (bide_pool_await_region_(spare) && bide_pool_work_(spare)) {
    }
}

/* The rest of the turn of worker 0, and all later ones. */
static void end_turn(state *s)
{
    bide_pool_enter_(NULL);
    bide_pool_work_(&s->pool->workers[0]);
}

/* In a turn of worker 0: one in the slot, one in the ring, and one from the region. */
static void block_for_three(void *p)
{
    state *s = p;
    bide_pool_worker *worker = &s->pool->workers[0];
    bide_blocking_region region;
    bide_pool_enter_(worker);
    bide_awaiter *awaiter = make(s, 0);
    bide_pool_push_(worker, awaiter, awaiter);
    bide_pool_hand_over_(worker, make(s, 1));
    bide_check_assert(bide_blocking_here_begin(&region) == 0);
    post(s, 2);
    for (unsigned i = 0; i < JOBS; i++)
        await_word(&s->jobs[i].done, 1);
    bide_blocking_here_end(&region);
    bide_pool_end_(s->pool);
    end_turn(s);
}

/* What it waits for is posted when the pool may be ending already. */
static void block_while_it_ends(void *p)
{
    state *s = p;
    bide_blocking_region region;
    bide_pool_enter_(&s->pool->workers[0]);
    bide_check_assert(bide_blocking_here_begin(&region) == 0);
    post(s, 0);
    await_word(&s->jobs[0].done, 1);
    bide_blocking_here_end(&region);
    end_turn(s);
}

/* The second region begins when the pool may be ending already. */
static void block_twice_while_it_ends(void *p)
{
    state *s = p;
    bide_blocking_region region;
    bide_pool_enter_(&s->pool->workers[0]);
    for (unsigned i = 0; i < 2; i++) {
        bide_check_assert(bide_blocking_here_begin(&region) == 0);
        post(s, i);
        await_word(&s->jobs[i].done, 1);
        bide_blocking_here_end(&region);
    }
    end_turn(s);
}

/* The second region begins while the spare worker acts still, or is about to be dormant. */
static void block_twice(void *p)
{
    state *s = p;
    bide_pool_worker *worker = &s->pool->workers[0];
    bide_blocking_region region;
    bide_pool_enter_(worker);
    bide_check_assert(bide_blocking_here_begin(&region) == 0);
    post(s, 0);
    await_word(&s->jobs[0].done, 1);
    bide_blocking_here_end(&region);
    bide_pool_hand_over_(worker, make(s, 1));
    bide_check_assert(bide_blocking_here_begin(&region) == 0);
    await_word(&s->jobs[1].done, 1);
    bide_blocking_here_end(&region);
    bide_pool_end_(s->pool);
    end_turn(s);
}

/* The region ends while the spare worker has more to run, which it leaves when it is dormant. */
static void block_for_the_first(void *p)
{
    state *s = p;
    bide_blocking_region region;
    bide_pool_enter_(&s->pool->workers[0]);
    for (unsigned i = 0; i < SHUT_JOBS; i++)
        bide_pool_post_last_(&s->pool->scheduler, make(s, i));
    bide_check_assert(bide_blocking_here_begin(&region) == 0);
    await_word(&s->jobs[0].done, 1);
    bide_blocking_here_end(&region);
    end_turn(s);
}

/* (too many executions to explore all of them) */
#define REGION_SCENARIO(variable, text, before, ...) \
    MAYBE_UNUSED                                     \
    static const bide_check_scenario variable = {    \
        .name = text,                                \
        .size = sizeof(state),                       \
        .cxx20_release_sequences = true,             \
        .setup = before,                             \
        .threads = {__VA_ARGS__},                    \
        .finish = finish,                            \
        .never_spurious = true,                      \
        .max_executions = 10000,                     \
    }

/* (the first executions are those in which the first thread runs first) */
REGION_SCENARIO(blocked, "what_a_worker_that_blocks_waits_for_runs", one_worker_and_a_spare_one,
                spare_work, block_for_three);
REGION_SCENARIO(blocked_at_end, "a_worker_that_blocks_has_its_spare_one_until_it_ends",
                one_worker_and_a_spare_one, block_while_it_ends, spare_work, end);
REGION_SCENARIO(blocked_after_end, "a_pool_that_ends_has_spare_workers", one_worker_and_a_spare_one,
                end, spare_work, block_while_it_ends);
REGION_SCENARIO(blocked_again_after_end, "a_pool_that_ends_has_a_spare_worker_for_each_region",
                one_worker_and_a_spare_one, end, spare_work, block_twice_while_it_ends);
REGION_SCENARIO(blocked_twice, "a_spare_worker_serves_one_region_after_another",
                one_worker_and_a_spare_one, spare_work, block_twice);
REGION_SCENARIO(retired, "a_spare_worker_leaves_nothing_behind", one_worker_a_spare_one_and_jobs,
                spare_work, block_for_the_first);

/* ---- A ring that is full at each look ---- */

/*
 * One worker, and as many coroutines that yield as its ring holds. Another thread posts jobs, and a timer
 * is due. Each look of the worker runs one of each: they wait for no room in the ring.
 */
enum {
    POSTED = 2,
    YIELDERS = BIDE_RUN_QUEUE_SIZE_,
    TURNS_MAX = POSTED * BIDE_POOL_MAINTENANCE_TURNS_ /* of all yielders */
};

typedef struct yielder {
    bide_frame frame;
    struct crowd *crowd;
} yielder;

typedef struct crowd {
    state base; /* job POSTED is the timer's */
    yielder yielders[YIELDERS];
    bide_atomic(uint32_t) posted;
    unsigned turns, ended;
} crowd;

static bool crowd_is_served(crowd *c)
{
    for (unsigned i = 0; i <= POSTED; i++) {
        if (bide_atomic_load(&c->base.jobs[i].done, relaxed) == 0)
            return false;
    }
    return true;
}

static bide_next yielder_step(bide_frame *frame, unsigned depth)
{
    yielder *self = bide_container_of(frame, yielder, frame);
    crowd *c = self->crowd;
    (void)depth;
    if (c->turns == 0)
        await_word(&c->posted, 1);
    if (crowd_is_served(c)) {
        if (++c->ended == YIELDERS)
            bide_pool_end_(c->base.pool);
        return bide_next_none();
    }
    bide_check_assert(++c->turns <= TURNS_MAX);
    self->frame.awaiter.link = NULL;
    bide_pool_post_last_(&c->base.pool->scheduler, &self->frame.awaiter);
    return bide_next_none();
}

static const bide_coroutine_code yielder_code = {yielder_step, "yielder", __FILE__, NULL, NULL};
static const bide_point yielder_point = BIDE_POINT_START(&yielder_code);

static void one_worker_with_a_full_ring(void *p)
{
    crowd *c = p;
    set_up(&c->base, 1);
    bide_atomic_init(&c->posted, 0);
    for (unsigned i = 0; i < YIELDERS; i++) {
        yielder *self = &c->yielders[i];
        self->crowd = c;
        bide_frame_init_in(&self->frame, &yielder_point, &c->base.context);
        self->frame.awaiter.frame = &self->frame;
        bide_check_assert(
            bide_run_queue_push_(&c->base.pool->workers[0].queue, &self->frame.awaiter));
    }
    make(&c->base, POSTED);
    bide_timer_init(&c->base.timer, 0);
    c->base.timer.awaiter.ops = &job_point.ops;
    c->base.timer.awaiter.frame = &c->base.jobs[POSTED].frame;
    bide_check_assert(bide_pool_set_timer_(&c->base.pool->scheduler, &c->base.timer) == 0);
}

static void post_to_the_crowd(void *p)
{
    crowd *c = p;
    for (unsigned i = 0; i < POSTED; i++)
        post(&c->base, i);
    bide_atomic_store(&c->posted, 1, release);
    bide_platform.wake(&c->posted, 1);
}

static void finish_crowd(void *p)
{
    crowd *c = p;
    bide_check_assert(crowd_is_served(c));
    bide_pool_free_(c->base.pool);
}

MAYBE_UNUSED static const bide_check_scenario crowded = {
    .name = "what_is_injected_or_due_runs_while_the_ring_is_full",
    .size = sizeof(crowd),
    .cxx20_release_sequences = true,
    .setup = one_worker_with_a_full_ring,
    .threads = {post_to_the_crowd, work_0},
    .finish = finish_crowd,
    .never_spurious = true,
};

int main(int argc, char **argv)
{
#if MANY /* too many executions to explore all of them: a program of its own */
    static const bide_check_scenario *const all[] = {
        &both, &posted_to_two, &posted_to_meet, &pushed_to_meet, &timed_by_one, &timed_again, NULL};
#elif SPARE
    static const bide_check_scenario *const all[] = {&blocked,
                                                     &blocked_at_end,
                                                     &blocked_after_end,
                                                     &blocked_again_after_end,
                                                     &blocked_twice,
                                                     &retired,
                                                     NULL};
#elif WHEELS
    static const bide_check_scenario *const all[] = {&timed_in_the_first, &timed_after,
                                                     &set_by_the_last, NULL};
#else
    static const bide_check_scenario *const all[] = {
        &cleared,        &ended,           &posted,  &pushed,      &handed_over,
        &stolen_to_meet, &timed,           &created, &set_outside, &crowded,
        &shut,           &timed_elsewhere, NULL};
#endif
#if SPARE
    static const char *const files[] = {"spare.c", NULL};
#else
    static const char *const files[] = {"thread_pool.c", "worker.c",  "search.c",
                                        "parking.c",     "timers.c",  "shutdown.c",
                                        "worker.h",      "threads.c", NULL};
#endif
    static const bide_check_reason reasons[] = {
        {"bide_pool_run_one_", "load", "&pool->deque_hooks", "relaxed",
         "what it guards is a constant table, and no scenario has other work"},
        {"bide_pool_stop_searching_", "fetch_sub", "&pool->idle", "relaxed",
         "it counts where light and heavy fences are plain ones, and here they are not"},
        {"bide_pool_has_work_", "load", "&pool->deque_hooks", "relaxed",
         "what it guards is a constant table, and no scenario has other work"},
        {NULL, NULL, NULL, NULL, NULL}};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, reasons});
}
