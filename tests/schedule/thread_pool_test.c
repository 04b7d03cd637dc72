/*
 * The thread pool: its tasks run on its threads, in parallel, each to its end once.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "schedule_testing.h"

#include "../../src/schedule/pool/worker.h"

#include "bide/channel.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>

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

/* Blocks this thread until it has ended; returns its status. */
static int wait_for(bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &spawned->ended)), 0);
    return spawned->root.status;
}

/* ---- Threads ---- */

static void tasks_run_on_the_pools_threads(void **state)
{
    (void)state;
    enum { TASKS = 100 };
    bide_thread_pool *pool = create(3);
    bide_context context = context_of(pool);
    witness tasks[TASKS];
    bide_spawned spawned[TASKS];
    for (int i = 0; i < TASKS; i++)
        bide_spawn(&spawned[i], &context, witness_run(&tasks[i], NULL, -i));

    pthread_t seen[TASKS];
    unsigned count = 0;
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(wait_for(&spawned[i]), -i);
        assert_true(pthread_equal(tasks[i].began_on, tasks[i].ended_on));
        assert_false(pthread_equal(tasks[i].began_on, pthread_self()));
        unsigned j = 0;
        while (j < count && !pthread_equal(seen[j], tasks[i].began_on))
            j++;
        seen[j] = tasks[i].began_on;
        if (j == count)
            count++;
    }
    assert_in_range(count, 1, 3);
    bide_thread_pool_destroy(pool);
}

static void zero_threads_means_one_for_each_processor(void **state)
{
    (void)state;
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    bide_thread_pool *pool = create(0);
    assert_int_equal(bide_thread_pool_threads(pool), CPU_COUNT(&set));
    bide_thread_pool_destroy(pool);
    pool = create(5);
    assert_int_equal(bide_thread_pool_threads(pool), 5);
    bide_thread_pool_destroy(pool);
}

static void far_too_many_threads_are_EINVAL(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    assert_int_equal(bide_thread_pool_create(&pool, 65537), -EINVAL);
    assert_int_equal(bide_thread_pool_create(&pool, UINT_MAX), -EINVAL);
}

struct mask_reader {
    bide_task task;
    sigset_t mask;
};

bide_coroutine(mask_reader_body)
{
    bide_begin(mask_reader_body, struct mask_reader * self);
    pthread_sigmask(SIG_SETMASK, NULL, &self->mask);
    bide_end();
}

static void the_threads_block_signals_and_the_callers_mask_stays(void **state)
{
    (void)state;
    sigset_t mine, before, after;
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &mine, &before);
    bide_thread_pool *pool = create(1);
    pthread_sigmask(SIG_SETMASK, &before, &after);
    assert_int_equal(sigismember(&after, SIGUSR1), 1);
    assert_int_equal(sigismember(&after, SIGUSR2), 0);

    bide_context context = context_of(pool);
    struct mask_reader reader;
    bide_sync_wait_in(&context, bide_task_init(&reader.task, &mask_reader_body));
    const int signals[] = {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        assert_int_equal(sigismember(&reader.mask, signals[i]), 1);
    bide_thread_pool_destroy(pool);
}

static void a_coroutine_woken_by_another_thread_resumes_on_the_pool(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(2);
    bide_context context = context_of(pool);
    for (int i = 0; i < 200; i++) {
        bide_event event;
        bide_event_init(&event, false);
        witness task;
        bide_spawned spawned;
        bide_spawn(&spawned, &context, witness_run(&task, &event, -EDOM));
        schedule_until(schedule_is_awaited(&event));
        bide_event_set(&event);
        assert_int_equal(wait_for(&spawned), -EDOM);
        assert_false(pthread_equal(task.began_on, pthread_self()));
        assert_false(pthread_equal(task.ended_on, pthread_self()));
    }
    bide_thread_pool_destroy(pool);
}

static void waiters_of_an_event_resume_each_on_its_own_scheduler(void **state)
{
    (void)state;
    enum { WAITERS = 30 };
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    bide_thread_pool *pools[] = {create(1), create(1)};
    bide_context contexts[] = {context_of(pools[0]), context_of(pools[1]), loop.context};
    bide_event event;
    bide_event_init(&event, false);
    witness tasks[WAITERS];
    bide_spawned spawned[WAITERS];
    /* Alternating at first, then several of each in a row. */
    for (int i = 0; i < WAITERS; i++) {
        const bide_context *context = &contexts[i < WAITERS / 2 ? i % 3 : i / 2 % 3];
        bide_spawn(&spawned[i], context, witness_run(&tasks[i], &event, 0));
    }
    bide_run_loop_run_ready(&loop);
    for (int i = 0; i < 2; i++) {
        witness last; /* after it has run, the earlier ones wait: the pool has one thread */
        bide_sync_wait_in(&contexts[i], witness_run(&last, NULL, 0));
    }
    bide_event_set(&event);
    for (int i = 0; i < WAITERS; i++) {
        bide_event_waiter wait;
        bide_run_loop_wait(&loop, bide_event_wait(&wait, &spawned[i].ended));
        assert_int_equal(witness_ends(&tasks[i]), 1);
        assert_true(pthread_equal(tasks[i].ended_on, tasks[i].began_on));
        assert_true(pthread_equal(tasks[i].ended_on, pthread_self()) ==
                    (tasks[i].scheduler == contexts[2].scheduler));
        assert_true(pthread_equal(tasks[i].ended_on, tasks[0].ended_on) ==
                    (tasks[i].scheduler == contexts[0].scheduler));
    }
    for (int i = 0; i < 2; i++)
        bide_thread_pool_destroy(pools[i]);
}

/* ---- In parallel ---- */

struct meeting {
    unsigned expected;
    bide_atomic(unsigned) invited; /* attendees that have reached their wait */
    bide_atomic(unsigned) arrived;
    bide_event begin;
};

/* Holds its thread until the expected number has arrived. */
struct attendee {
    bide_task task;
    bide_spawned spawned;
    bide_event_waiter wait;
    struct meeting *meeting;
};

bide_coroutine(attendee_body)
{
    bide_begin(attendee_body, struct attendee * self);
    bide_atomic_fetch_add(&self->meeting->invited, 1, relaxed);
    bide_await(bide_event_wait(&self->wait, &self->meeting->begin));
    bide_atomic_fetch_add(&self->meeting->arrived, 1, relaxed);
    schedule_until(bide_atomic_load(&self->meeting->arrived, relaxed) == self->meeting->expected);
    bide_end();
}

/* The attendees are posted one by one, to a meeting that has begun, or wait and are posted together. */
static void meet(unsigned count, bool posted_at_once)
{
    bide_thread_pool *pool = create(count);
    bide_context context = context_of(pool);
    struct attendee attendees[8];
    for (int round = 0; round < 100; round++) {
        struct meeting meeting = {.expected = count};
        bide_event_init(&meeting.begin, !posted_at_once);
        for (unsigned i = 0; i < count; i++) {
            attendees[i].meeting = &meeting;
            bide_spawn(&attendees[i].spawned, &context,
                       bide_task_init(&attendees[i].task, &attendee_body));
        }
        if (posted_at_once)
            schedule_until(bide_atomic_load(&meeting.invited, relaxed) == count &&
                           schedule_is_awaited(&meeting.begin));
        bide_event_set(&meeting.begin);
        for (unsigned i = 0; i < count; i++)
            assert_int_equal(wait_for(&attendees[i].spawned), 0);
    }
    bide_thread_pool_destroy(pool);
}

static void as_many_tasks_as_threads_run_side_by_side(void **state)
{
    (void)state;
    meet(2, false);
    meet(4, false);
}

static void tasks_woken_at_once_run_side_by_side(void **state)
{
    (void)state;
    meet(2, true);
    meet(4, true);
}

/* ---- Every task ends once ---- */

struct counted {
    witness task;
    bide_spawned spawned;
};

static void each_of_many_tasks_ends_once(void **state)
{
    (void)state;
    const uint32_t tasks = rounds_of(100000);
    bide_thread_pool *pool = create(4);
    bide_context context = context_of(pool);
    struct counted *counted = malloc(tasks * sizeof *counted);
    assert_non_null(counted);
    for (uint32_t i = 0; i < tasks; i++)
        bide_spawn(&counted[i].spawned, &context, witness_run(&counted[i].task, NULL, -(int)i));
    for (uint32_t i = 0; i < tasks; i++)
        assert_int_equal(wait_for(&counted[i].spawned), -(int)i);
    bide_thread_pool_destroy(pool);
    for (uint32_t i = 0; i < tasks; i++)
        assert_int_equal(witness_ends(&counted[i].task), 1);
    free(counted);
}

enum { WAKERS = 4, WOKEN_EACH = 16, WAKES = 500 };

struct woken {
    bide_task task;
    bide_spawned spawned;
    bide_event event;
    bide_event_waiter wait;
    bide_atomic(unsigned) wakes;
};

bide_coroutine(woken_body)
{
    bide_begin(woken_body, struct woken * self);
    while (bide_atomic_load(&self->wakes, relaxed) < WAKES) {
        bide_await(bide_event_wait(&self->wait, &self->event));
        bide_event_reset(&self->event);
        /* release: the next set comes after the reset. */
        bide_atomic_fetch_add(&self->wakes, 1, release);
    }
    bide_end();
}

struct waking {
    uint64_t random;
    struct woken woken[WOKEN_EACH];
};

/* Wakes each of its coroutines as often as needed, one after the other or several at a time. */
static void *wake(void *argument)
{
    struct waking *waking = argument;
    for (unsigned round = 0; round < WAKES; round++) {
        for (unsigned i = 0; i < WOKEN_EACH; i++) {
            struct woken *woken = &waking->woken[i];
            schedule_until(bide_atomic_load(&woken->wakes, acquire) == round);
            bide_event_set(&woken->event);
        }
        schedule_jitter(&waking->random);
    }
    return NULL;
}

static void no_wake_of_many_threads_is_lost_or_doubled(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    bide_thread_pool *pool = create(3);
    bide_context context = context_of(pool);
    static struct waking wakings[WAKERS];
    pthread_t threads[WAKERS];
    for (unsigned i = 0; i < WAKERS; i++) {
        wakings[i].random = seed + i;
        for (unsigned j = 0; j < WOKEN_EACH; j++) {
            struct woken *woken = &wakings[i].woken[j];
            bide_event_init(&woken->event, false);
            bide_atomic_init(&woken->wakes, 0);
            bide_spawn(&woken->spawned, &context, bide_task_init(&woken->task, &woken_body));
        }
        threads[i] = schedule_thread(wake, &wakings[i]);
    }
    for (unsigned i = 0; i < WAKERS; i++) {
        pthread_join(threads[i], NULL);
        for (unsigned j = 0; j < WOKEN_EACH; j++) {
            assert_int_equal(wait_for(&wakings[i].woken[j].spawned), 0);
            assert_int_equal(bide_atomic_load(&wakings[i].woken[j].wakes, relaxed), WAKES);
        }
    }
    bide_thread_pool_destroy(pool);
}

/* ---- Nobody starves ---- */

/* Sets the partner's event and waits for its own, until `enough`. */
struct partner {
    bide_task task;
    bide_spawned spawned;
    struct partner *other;
    bide_event event;
    bide_event_waiter wait;
    bide_atomic(bool) * enough;
};

bide_coroutine(partner_body)
{
    bide_begin(partner_body, struct partner * self);
    while (!bide_atomic_load(self->enough, relaxed)) {
        bide_event_set(&self->other->event);
        bide_await(bide_event_wait(&self->wait, &self->event));
        bide_event_reset(&self->event);
    }
    bide_event_set(&self->other->event);
    bide_end();
}

/* Yields `rounds` times, then ends the others. */
struct third {
    bide_task task;
    bide_spawned spawned;
    bide_schedule_operation move;
    unsigned rounds;
    bide_atomic(bool) * enough;
};

bide_coroutine(third_body)
{
    bide_begin(third_body, struct third * self);
    while (self->rounds-- != 0)
        bide_await(bide_schedule(&self->move, bide_this_context()->scheduler));
    bide_atomic_store(self->enough, true, relaxed);
    bide_end();
}

struct family {
    bide_task task;
    struct partner partners[2];
    struct third third;
    bide_event_waiter wait;
    bide_atomic(bool) enough;
    bool is_third_here; /* begun by this coroutine, or by another thread */
    bide_event begun;
    unsigned next;
};

bide_coroutine(family_body)
{
    bide_begin(family_body, struct family * self);
    if (self->is_third_here)
        bide_spawn(&self->third.spawned, bide_this_context(),
                   bide_task_init(&self->third.task, &third_body));
    for (self->next = 0; self->next < 2; self->next++)
        bide_spawn(&self->partners[self->next].spawned, bide_this_context(),
                   bide_task_init(&self->partners[self->next].task, &partner_body));
    bide_event_set(&self->begun);
    for (self->next = 0; self->next < 2; self->next++)
        bide_await(bide_event_wait(&self->wait, &self->partners[self->next].spawned.ended));
    bide_end();
}

static void run_family(unsigned threads, bool is_third_here)
{
    bide_thread_pool *pool = create(threads);
    bide_context context = context_of(pool);
    struct family family = {.is_third_here = is_third_here};
    bide_spawned spawned;
    bide_event_waiter wait;
    bide_atomic_init(&family.enough, false);
    bide_event_init(&family.begun, false);
    for (unsigned i = 0; i < 2; i++) {
        family.partners[i].other = &family.partners[1 - i];
        family.partners[i].enough = &family.enough;
        bide_event_init(&family.partners[i].event, false);
    }
    family.third.rounds = 100;
    family.third.enough = &family.enough;
    bide_spawn(&spawned, &context, bide_task_init(&family.task, &family_body));
    if (!is_third_here) {
        bide_sync_wait(bide_event_wait(&wait, &family.begun));
        bide_spawn(&family.third.spawned, &context,
                   bide_task_init(&family.third.task, &third_body));
    }
    assert_int_equal(wait_for(&spawned), 0);
    assert_int_equal(wait_for(&family.third.spawned), 0);
    bide_thread_pool_destroy(pool);
}

static void two_that_wake_each_other_for_ever_do_not_starve_a_third(void **state)
{
    (void)state;
    run_family(1, true);
    run_family(2, true);
}

static void two_that_wake_each_other_for_ever_do_not_starve_one_from_outside(void **state)
{
    (void)state;
    run_family(1, false);
    run_family(2, false);
}

/* Two coroutines that yield to each other forever leave a turn to a timer, too. */
struct timed {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    bide_atomic(bool) * enough;
};

bide_coroutine(timed_body)
{
    bide_begin(timed_body, struct timed * self);
    bide_try(bide_sleep_until(&self->sleep, bide_platform.now() + 1000));
    bide_atomic_store(self->enough, true, relaxed);
    bide_end();
}

static void two_that_wake_each_other_for_ever_do_not_starve_a_timer(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(1);
    bide_context context = context_of(pool);
    struct partner partners[2];
    struct timed timed;
    bide_atomic(bool) enough;
    bide_atomic_init(&enough, false);
    timed.enough = &enough;
    for (unsigned i = 0; i < 2; i++) {
        partners[i].other = &partners[1 - i];
        partners[i].enough = &enough;
        bide_event_init(&partners[i].event, false);
    }
    for (unsigned i = 0; i < 2; i++)
        bide_spawn(&partners[i].spawned, &context,
                   bide_task_init(&partners[i].task, &partner_body));
    bide_spawn(&timed.spawned, &context, bide_task_init(&timed.task, &timed_body));
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(wait_for(&partners[i].spawned), 0);
    assert_int_equal(wait_for(&timed.spawned), 0);
    bide_thread_pool_destroy(pool);
}

/* Wakes some, and then holds its thread until they have run. */
struct hog {
    bide_task task;
    unsigned count;
    witness woken[40];
    bide_spawned spawned[40];
};

bide_coroutine(hog_body)
{
    bide_begin(hog_body, struct hog * self);
    for (unsigned i = 0; i < self->count; i++)
        bide_spawn(&self->spawned[i], bide_this_context(), witness_run(&self->woken[i], NULL, 0));
    for (unsigned i = 0; i < self->count; i++)
        schedule_until(witness_ends(&self->woken[i]) == 1);
    bide_end();
}

static void others_serve_the_wakes_of_one_that_keeps_its_thread(void **state)
{
    (void)state;
    static const unsigned counts[] = {1, 2, 3, 40};
    for (unsigned threads = 2; threads <= 4; threads++) {
        bide_thread_pool *pool = create(threads);
        bide_context context = context_of(pool);
        struct hog hog;
        for (unsigned round = 0; round < 40; round++) {
            hog.count = counts[round % 4];
            bide_sync_wait_in(&context, bide_task_init(&hog.task, &hog_body));
            for (unsigned i = 0; i < hog.count; i++)
                assert_int_equal(wait_for(&hog.spawned[i]), 0);
        }
        bide_thread_pool_destroy(pool);
    }
}

/* ---- Rings that overflow ---- */

struct crowd {
    bide_task task;
    struct counted *members;
    unsigned count;
};

bide_coroutine(crowd_body)
{
    bide_begin(crowd_body, struct crowd * self);
    for (unsigned i = 0; i < self->count; i++)
        bide_spawn(&self->members[i].spawned, bide_this_context(),
                   witness_run(&self->members[i].task, NULL, 0));
    bide_end();
}

static void what_one_worker_makes_beyond_its_ring_ends_once(void **state)
{
    (void)state;
    enum { MEMBERS = 5000 };
    struct counted *members = malloc(MEMBERS * sizeof *members);
    assert_non_null(members);
    for (unsigned threads = 1; threads <= 3; threads++) {
        bide_thread_pool *pool = create(threads);
        bide_context context = context_of(pool);
        struct crowd crowd = {.members = members, .count = MEMBERS};
        bide_sync_wait_in(&context, bide_task_init(&crowd.task, &crowd_body));
        for (unsigned i = 0; i < MEMBERS; i++)
            assert_int_equal(wait_for(&members[i].spawned), 0);
        bide_thread_pool_destroy(pool);
        for (unsigned i = 0; i < MEMBERS; i++)
            assert_int_equal(witness_ends(&members[i].task), 1);
    }
    free(members);
}

/* ---- Tokens that circulate at random ---- */

enum { STATIONS = 24, TOKENS = 12 };

struct mesh;

struct station {
    bide_task task;
    bide_spawned spawned;
    struct mesh *mesh;
    uint64_t random;
    bide_channel_waiter receive;
    bide_channel_waiter send;
    bide_schedule_operation yield;
    bide_sleep sleep;
    uint64_t whim;
    uint32_t hops; /* of the current token */
    uint32_t number;
};

typedef bide_channel_slot(uint32_t) token_slot;
typedef bide_channel(uint32_t) token_channel;

struct mesh {
    struct station stations[STATIONS];
    token_slot slots[STATIONS][TOKENS + 4]; /* a power of two */
    token_channel channels[STATIONS];
    bide_atomic(uint32_t) hops; /* of all tokens */
    bide_atomic(uint32_t) left; /* circulating tokens */
};

bide_coroutine(station_body)
{
    bide_begin(station_body, struct station * self);
    for (;;) {
        bide_try_or_break(
            bide_channel_recv(&self->receive, &self->mesh->channels[self->number], &self->hops));
        bide_atomic_fetch_add(&self->mesh->hops, 1, relaxed);
        self->whim = testing_random(&self->random) % 8;
        if (self->whim == 0)
            bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
        else if (self->whim == 1)
            bide_try(bide_sleep_until(&self->sleep, bide_platform.now() + 2000));
        else if (self->whim == 2)
            schedule_jitter(&self->random);
        if (self->hops-- == 1) {
            if (bide_atomic_fetch_sub(&self->mesh->left, 1, acq_rel) == 1) {
                for (unsigned i = 0; i < STATIONS; i++)
                    bide_channel_close(&self->mesh->channels[i]);
            }
            continue;
        }
        bide_try(bide_channel_send(&self->send,
                                   &self->mesh->channels[testing_random(&self->random) % STATIONS],
                                   &self->hops));
    }
    bide_end();
}

static void tokens_that_go_round_at_random_all_arrive(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    uint32_t hops = rounds_of(400);
    for (unsigned threads = 1; threads <= 4; threads++) {
        static struct mesh mesh;
        bide_thread_pool *pool = create(threads);
        bide_context context = context_of(pool);
        bide_atomic_init(&mesh.hops, 0);
        bide_atomic_init(&mesh.left, TOKENS);
        for (unsigned i = 0; i < STATIONS; i++) {
            struct station *station = &mesh.stations[i];
            bide_channel_init(&mesh.channels[i], mesh.slots[i], TOKENS + 4);
            station->mesh = &mesh;
            station->number = i;
            station->random = seed + threads * STATIONS + i;
            bide_spawn(&station->spawned, &context, bide_task_init(&station->task, &station_body));
        }
        for (unsigned i = 0; i < TOKENS; i++) {
            bide_channel_waiter send;
            assert_int_equal(bide_sync_wait(bide_channel_send(&send, &mesh.channels[i], &hops)), 0);
        }
        for (unsigned i = 0; i < STATIONS; i++)
            assert_int_equal(wait_for(&mesh.stations[i].spawned), 0);
        assert_int_equal(bide_atomic_load(&mesh.hops, relaxed), TOKENS * hops);
        bide_thread_pool_destroy(pool);
    }
}

/* ---- The timekeeper ---- */

/* Started outside the pool: so its timer is set by a thread that is not the pool's, and nobody is posted. */
struct alarm {
    bide_task task;
    uint64_t time;
    bide_sleep sleep;
    bide_atomic(bool) rings;
    bide_atomic(bool) * until; /* the thread is kept until then; or NULL */
};

bide_coroutine(alarm_body)
{
    bide_begin(alarm_body, struct alarm * self);
    bide_try(bide_sleep_until(&self->sleep, self->time));
    bide_atomic_store(&self->rings, true, release);
    if (self->until != NULL)
        schedule_until(bide_atomic_load(self->until, acquire));
    bide_end();
}

static void start_alarm(struct alarm *alarm, const bide_context *context, uint64_t time)
{
    alarm->time = time;
    bide_start(&alarm->task.frame, &alarm_body, context);
    bide_resume(&alarm->task.frame);
}

/* The worker that kept the time is busy with the first timer, and another sleeps. */
static void a_timer_is_kept_while_the_timekeeper_is_busy(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        bide_thread_pool *pool = create(2);
        bide_context context = context_of(pool);
        struct alarm first = {.rings = false}, second = {.rings = false};
        uint64_t time = bide_platform.now() + 2000000;
        first.until = &second.rings;
        start_alarm(&first, &context, time);
        schedule_until(bide_atomic_load(&first.rings, acquire));
        start_alarm(&second, &context, time + (uint64_t)i * 100000);
        schedule_until(bide_atomic_load(&second.rings, acquire));
        bide_thread_pool_destroy(pool);
    }
}

static uint64_t kept(bide_thread_pool *pool)
{
    bide_short_lock_take_(&pool->wheels[0].lock);
    uint64_t time = pool->wheels[0].kept;
    bide_short_lock_free_(&pool->wheels[0].lock);
    return time;
}

/* Such as a deadline of an operation that completes in time, again and again. */
static void timers_that_are_set_and_cleared_wake_the_timekeeper_once(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(1);
    bide_context context = context_of(pool);
    bide_scheduler *scheduler = context.scheduler;
    uint64_t time = bide_platform.now() + UINT64_C(3600000000000);
    bide_frame frame;
    bide_timer timer;
    uint32_t parked = 0;
    bide_frame_init_in(&frame, &alarm_body, &context);
    for (uint64_t i = 0; i < 1000; i++) {
        bide_timer_init(&timer, time + i);
        timer.awaiter.frame = &frame;
        assert_int_equal(scheduler->set_timer(scheduler, &timer), 0);
        if (i == 0) {
            schedule_until(kept(pool) == time);
            parked = bide_atomic_load(&pool->workers[0].parked, relaxed);
        }
        assert_true(scheduler->clear_timer(scheduler, &timer));
    }
    assert_int_equal(bide_atomic_load(&pool->workers[0].parked, relaxed), parked);
    bide_timer_init(&timer, time - 1); /* an earlier one does */
    timer.awaiter.frame = &frame;
    assert_int_equal(scheduler->set_timer(scheduler, &timer), 0);
    schedule_until(kept(pool) == time - 1);
    assert_true(scheduler->clear_timer(scheduler, &timer));
    bide_thread_pool_destroy(pool);
}

/* Keeps its worker until it may go. */
struct held {
    bide_task task;
    bide_atomic(bool) has_begun, may_go;
};

bide_coroutine(held_body)
{
    bide_begin(held_body, struct held * self);
    bide_atomic_store(&self->has_begun, true, release);
    schedule_until(bide_atomic_load(&self->may_go, acquire));
    bide_end();
}

/* The timekeeper is woken while it is about to look at the timers: nobody looks at them at a time that it notes then. */
static void a_worker_that_was_woken_keeps_the_time_no_more(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(1);
    bide_context context = context_of(pool);
    bide_scheduler *scheduler = context.scheduler;
    bide_frame frame;
    bide_timer timer;
    bide_frame_init_in(&frame, &alarm_body, &context);
    bide_timer_init(&timer, bide_platform.now() + UINT64_C(3600000000000));
    timer.awaiter.frame = &frame;
    assert_int_equal(scheduler->set_timer(scheduler, &timer), 0);
    for (int i = 0; i < 300; i++) {
        struct held held = {.has_begun = false};
        bide_spawned spawned;
        schedule_until(kept(pool) != BIDE_FOREVER);
        bide_short_lock_take_(&pool->wheels[0].lock);
        bide_platform.wake(&pool->workers[0].parked, 1);
        for (int j = 0; j < i % 8; j++)
            sched_yield();
        bide_short_lock_free_(&pool->wheels[0].lock);
        bide_spawn(&spawned, &context, bide_task_init(&held.task, &held_body));
        schedule_until(bide_atomic_load(&held.has_begun, acquire));
        assert_true(kept(pool) == BIDE_FOREVER);
        bide_atomic_store(&held.may_go, true, release);
        assert_int_equal(wait_for(&spawned), 0);
    }
    assert_true(scheduler->clear_timer(scheduler, &timer));
    bide_thread_pool_destroy(pool);
}

/* ---- Posted coroutines are taken back ---- */

/*
 * Spawns, in a pool of one thread, and destroys the coroutine with the given number before it has
 * started: from the slot, the ring, or the overflow.
 */
struct regret {
    bide_task task;
    struct counted *members;
    unsigned count, regretted;
    unsigned ran_before;
};

bide_coroutine(regret_body)
{
    bide_begin(regret_body, struct regret * self);
    for (unsigned i = 0; i < self->count; i++)
        bide_spawn(&self->members[i].spawned, bide_this_context(),
                   witness_run(&self->members[i].task, NULL, 0));
    bide_destroy(&self->members[self->regretted].spawned.root.frame);
    bide_end();
}

static void what_waits_to_run_in_a_pool_can_be_destroyed(void **state)
{
    (void)state;
    enum { MEMBERS = 600 };
    static const unsigned which[] = {0, 1, 127, 128, 300, 597, 598, 599};
    struct counted *members = malloc(MEMBERS * sizeof *members);
    assert_non_null(members);
    for (unsigned i = 0; i < sizeof which / sizeof which[0]; i++) {
        bide_thread_pool *pool = create(1);
        bide_context context = context_of(pool);
        struct regret regret = {.members = members, .count = MEMBERS, .regretted = which[i]};
        bide_sync_wait_in(&context, bide_task_init(&regret.task, &regret_body));
        bide_thread_pool_destroy(pool);
        for (unsigned j = 0; j < MEMBERS; j++)
            assert_int_equal(witness_ends(&members[j].task), j != which[i]);
    }
    free(members);
}

/* The same for a coroutine in the ring or the slot of a busy worker. */
struct timekeeper {
    bide_task task;
    bide_spawned spawned;
    struct counted *members;
    unsigned count;
    bide_atomic(uint32_t) made;
    bide_atomic(uint32_t) free;
};

bide_coroutine(keeper_body)
{
    bide_begin(keeper_body, struct timekeeper * self);
    for (unsigned i = 0; i < self->count; i++)
        bide_spawn(&self->members[i].spawned, bide_this_context(),
                   witness_run(&self->members[i].task, NULL, 0));
    bide_atomic_store(&self->made, 1, release);
    schedule_until(bide_atomic_load(&self->free, acquire) != 0);
    bide_end();
}

/* Holds the other thread before the first has pushed anything. */
struct taker {
    bide_task task;
    bide_spawned spawned;
    struct timekeeper *timekeeper;
    unsigned regretted;
    bide_atomic(uint32_t) begun;
};

bide_coroutine(taker_body)
{
    bide_begin(taker_body, struct taker * self);
    bide_atomic_store(&self->begun, 1, relaxed);
    schedule_until(bide_atomic_load(&self->timekeeper->made, acquire) != 0);
    bide_destroy(&self->timekeeper->members[self->regretted].spawned.root.frame);
    bide_atomic_store(&self->timekeeper->free, 1, release);
    bide_end();
}

static void what_waits_on_a_busy_worker_can_be_destroyed_on_another(void **state)
{
    (void)state;
    enum { MEMBERS = 300 };
    static const unsigned which[] = {0, 1, 100, 298, 299};
    struct counted *members = malloc(MEMBERS * sizeof *members);
    assert_non_null(members);
    for (unsigned i = 0; i < sizeof which / sizeof which[0]; i++) {
        bide_thread_pool *pool = create(2);
        bide_context context = context_of(pool);
        struct timekeeper timekeeper = {.members = members, .count = MEMBERS};
        struct taker taker = {.timekeeper = &timekeeper, .regretted = which[i]};
        bide_atomic_init(&timekeeper.made, 0);
        bide_atomic_init(&timekeeper.free, 0);
        bide_atomic_init(&taker.begun, 0);
        bide_spawn(&taker.spawned, &context, bide_task_init(&taker.task, &taker_body));
        schedule_until(bide_atomic_load(&taker.begun, relaxed) != 0);
        bide_spawn(&timekeeper.spawned, &context, bide_task_init(&timekeeper.task, &keeper_body));
        assert_int_equal(wait_for(&taker.spawned), 0);
        bide_thread_pool_destroy(pool);
        for (unsigned j = 0; j < MEMBERS; j++)
            assert_int_equal(witness_ends(&members[j].task), j != which[i]);
    }
    free(members);
}

/* ---- Options and statistics of the workers ---- */

struct hooked {
    bide_atomic(uint32_t) starts[2], ends[2], sleeps[2], wakes[2];
};

static void note_start(void *argument, unsigned worker)
{
    bide_atomic_fetch_add(&((struct hooked *)argument)->starts[worker], 1, relaxed);
}

static void note_end(void *argument, unsigned worker)
{
    bide_atomic_fetch_add(&((struct hooked *)argument)->ends[worker], 1, relaxed);
}

static void note_sleep(void *argument, unsigned worker)
{
    bide_atomic_fetch_add(&((struct hooked *)argument)->sleeps[worker], 1, relaxed);
}

static void note_wake(void *argument, unsigned worker)
{
    bide_atomic_fetch_add(&((struct hooked *)argument)->wakes[worker], 1, relaxed);
}

static void hooks_are_called_on_each_thread(void **state)
{
    (void)state;
    struct hooked hooked;
    for (unsigned i = 0; i < 2; i++) {
        bide_atomic_init(&hooked.starts[i], 0);
        bide_atomic_init(&hooked.ends[i], 0);
        bide_atomic_init(&hooked.sleeps[i], 0);
        bide_atomic_init(&hooked.wakes[i], 0);
    }
    bide_thread_pool *pool;
    const bide_thread_pool_options options = {
        .threads = 2,
        .hooks = {note_start, note_end, note_sleep, note_wake, &hooked},
    };
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
    bide_context context = context_of(pool);
    witness task;
    for (unsigned i = 0; i < 2; i++)
        schedule_until(bide_atomic_load(&hooked.sleeps[i], relaxed) == 1);
    bide_sync_wait_in(&context, witness_run(&task, NULL, 0));
    bide_thread_pool_destroy(pool);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(bide_atomic_load(&hooked.starts[i], relaxed), 1);
        assert_int_equal(bide_atomic_load(&hooked.ends[i], relaxed), 1);
        assert_int_equal(bide_atomic_load(&hooked.wakes[i], relaxed),
                         bide_atomic_load(&hooked.sleeps[i], relaxed));
    }
}

struct named {
    bide_task task;
    char name[16];
    cpu_set_t set;
};

bide_coroutine(named_body)
{
    bide_begin(named_body, struct named * self);
    pthread_getname_np(pthread_self(), self->name, sizeof self->name);
    pthread_getaffinity_np(pthread_self(), sizeof self->set, &self->set);
    bide_end();
}

static unsigned first_processor(void)
{
    cpu_set_t set;
    unsigned i = 0;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(i, &set))
        i++;
    return i;
}

static void threads_have_a_name_and_a_processor(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"work", "work-0"},
                                           {"a name far too long", "a name far to-0"}};
    const unsigned processor = first_processor();
    for (unsigned i = 0; i < 2; i++) {
        bide_thread_pool *pool;
        const bide_thread_pool_options options = {
            .threads = 1, .name = names[i][0], .processors = &processor};
        assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
        bide_context context = context_of(pool);
        struct named named;
        bide_sync_wait_in(&context, bide_task_init(&named.task, &named_body));
        assert_string_equal(named.name, names[i][1]);
        assert_int_equal(CPU_COUNT(&named.set), 1);
        assert_true(CPU_ISSET(processor, &named.set));
        bide_thread_pool_destroy(pool);
    }
}

static void a_processor_that_is_not_there_is_EINVAL(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    const unsigned processors[] = {first_processor(), UINT_MAX};
    const bide_thread_pool_options options = {.threads = 2, .processors = processors};
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), -EINVAL);
}

static void stats_count_what_the_workers_do(void **state)
{
    (void)state;
    enum { TASKS = 100 };
    bide_thread_pool *pool;
    const bide_thread_pool_options options = {.threads = 2, .times_runs = true};
    bide_thread_pool_stats before, after;
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
    bide_context context = context_of(pool);
    do
        bide_thread_pool_get_stats(pool, &before);
    while (before.sleeps < 2);
    assert_int_equal(before.runs, 0);
    assert_int_equal(before.steals, 0);
    assert_int_equal(before.longest_run, 0);
    struct hog hog = {.count = 3};
    bide_sync_wait_in(&context, bide_task_init(&hog.task, &hog_body));
    for (unsigned i = 0; i < hog.count; i++)
        assert_int_equal(wait_for(&hog.spawned[i]), 0);
    bide_thread_pool_get_stats(pool, &after);
    assert_in_range(after.runs, 4, 5); /* with the coroutine that waits for the hog */
    assert_in_range(after.steals, 1, 4);
    assert_true(after.longest_run > 0);
    bide_thread_pool_destroy(pool);
}

/* ---- The end of the pool ---- */

struct gated {
    bide_task task;
    bide_spawned spawned;
    bide_atomic(bool) open;
};

/* Holds its thread until the gate is open. */
bide_coroutine(gated_body)
{
    bide_begin(gated_body, struct gated * self);
    schedule_until(bide_atomic_load(&self->open, relaxed));
    bide_end();
}

/* Wakes some coroutines, which are ready then, and keeps its worker until it may go. */
struct warden {
    bide_task task;
    bide_event event;
    bide_atomic(bool) has_woken, may_go;
};

bide_coroutine(warden_body)
{
    bide_begin(warden_body, struct warden * self);
    bide_event_set(&self->event);
    bide_atomic_store(&self->has_woken, true, release);
    schedule_until(bide_atomic_load(&self->may_go, acquire));
    bide_end();
}

static void a_workers_stats_are_read_while_it_is_busy(void **state)
{
    (void)state;
    enum { READY = 5 };
    bide_thread_pool *pool = create(1);
    bide_context context = context_of(pool);
    bide_thread_pool_worker_stats stats, later;
    bide_thread_pool_stats all;
    struct warden warden = {.has_woken = false};
    bide_spawned spawned[READY + 1];
    witness tasks[READY];
    bide_event_init(&warden.event, false);
    for (int i = 0; i < READY; i++)
        bide_spawn(&spawned[i], &context, witness_run(&tasks[i], &warden.event, 0));
    do
        assert_int_equal(bide_thread_pool_get_worker_stats(pool, 0, &stats), 0);
    while (stats.runs < READY || stats.ready != 0);
    bide_spawn(&spawned[READY], &context, bide_task_init(&warden.task, &warden_body));
    schedule_until(bide_atomic_load(&warden.has_woken, acquire));
    assert_int_equal(bide_thread_pool_get_worker_stats(pool, 0, &stats), 0);
    assert_int_equal(stats.ready, READY);
    assert_int_equal(bide_thread_pool_get_worker_stats(pool, 0, &later), 0);
    assert_int_equal(later.runs, stats.runs);
    assert_int_equal(later.longest_run, 0);
    bide_atomic_store(&warden.may_go, true, release);
    for (int i = 0; i <= READY; i++)
        assert_int_equal(wait_for(&spawned[i]), 0);
    assert_int_equal(bide_thread_pool_get_worker_stats(pool, 0, &stats), 0);
    bide_thread_pool_get_stats(pool, &all);
    assert_int_equal(stats.runs, all.runs);
    assert_int_equal(stats.ready, 0);
    assert_int_equal(bide_thread_pool_get_worker_stats(pool, 1, &stats), -EINVAL);
    bide_event_destroy(&warden.event);
    bide_thread_pool_destroy(pool);
}

/* ---- Options ---- */

enum { HOSTS = 64 };

/*
 * Several that yield until a guest has run. When all have begun, one of them has a thread post the guest from
 * outside, and joins it; or the guest sleeps, and that host computes until its time has come.
 */
struct interval_party {
    bide_context context;
    unsigned begun;         /* hosts */
    size_t turns, from;     /* in all, and when all had begun */
    size_t invited, guest;  /* turns when the guest could run, and when it ran */
    bool sleeps, is_asleep; /* the guest */
    bool has_run;
    uint64_t time; /* for which it sleeps */
    bide_spawned guest_spawned;
    bide_task guest_task;
    bide_sleep sleep;
};

struct interval_host {
    bide_task task;
    struct interval_party *party;
    bool invites;
    bide_schedule_operation turn;
};

static struct interval_party *party_of(bide_task *guest)
{
    return bide_container_of(guest, struct interval_party, guest_task);
}

bide_coroutine(interval_guest_body)
{
    bide_begin(interval_guest_body, bide_task * self);
    if (party_of(self)->sleeps) {
        party_of(self)->is_asleep = true;
        party_of(self)->time = bide_platform.now() + 5000000;
        bide_await(bide_sleep_until(&party_of(self)->sleep, party_of(self)->time));
    }
    party_of(self)->guest = party_of(self)->turns;
    party_of(self)->has_run = true;
    bide_end();
}

static void *spawn_guest(void *argument)
{
    struct interval_party *party = argument;
    bide_spawn(&party->guest_spawned, &party->context,
               bide_task_init(&party->guest_task, &interval_guest_body));
    return NULL;
}

/* In each turn of the host that invites. */
static int invite(struct interval_party *party)
{
    if (party->begun < HOSTS || party->invited != 0)
        return 0;
    if (party->from == 0)
        party->from = party->turns;
    if (party->turns - party->from < 2000) /* (the pace is found) */
        return 0;
    if (party->sleeps && party->time == 0) {
        party->time = BIDE_FOREVER;
        spawn_guest(party);
        return 0;
    }
    if (party->sleeps && !party->is_asleep)
        return 0;
    party->invited = party->turns;
    if (party->sleeps) {
        while (bide_platform.now() < party->time)
            ;
        return 0;
    }
    pthread_t thread;
    int error = pthread_create(&thread, NULL, spawn_guest, party);
    if (error == 0)
        pthread_join(thread, NULL);
    return -error;
}

bide_coroutine(interval_host_body)
{
    bide_begin(interval_host_body, struct interval_host * self);
    self->party->begun++;
    while (!self->party->has_run) {
        self->party->turns++;
        int status = self->invites ? invite(self->party) : 0;
        if (status != 0)
            bide_return(status);
        bide_await(bide_schedule(&self->turn, bide_this_context()->scheduler));
    }
    bide_end();
}

/* How many turns begin after the guest could run, and before it does. */
static size_t turns_before_the_guest(unsigned interval, bool sleeps)
{
    const bide_thread_pool_options options = {.threads = 1, .event_interval = interval};
    bide_thread_pool *pool;
    struct interval_party party = {.sleeps = sleeps};
    struct interval_host hosts[HOSTS];
    bide_spawned spawned[HOSTS];
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
    party.context = context_of(pool);
    for (int j = 0; j < HOSTS; j++) {
        hosts[j].party = &party;
        hosts[j].invites = j == 0;
        bide_spawn(&spawned[j], &party.context,
                   bide_task_init(&hosts[j].task, &interval_host_body));
    }
    for (int j = 0; j < HOSTS; j++)
        assert_int_equal(wait_for(&spawned[j]), 0);
    assert_int_equal(wait_for(&party.guest_spawned), 0);
    bide_thread_pool_destroy(pool);
    return party.invited != 0 ? party.guest - party.invited : 0; /* (0: it slept too short) */
}

static const unsigned event_intervals[] = {2, 3, 8, 16};

static void a_post_from_outside_runs_within_the_event_interval(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof event_intervals / sizeof event_intervals[0]; i++)
        assert_in_range(turns_before_the_guest(event_intervals[i], false), 0, event_intervals[i]);
}

static void a_due_timer_runs_within_the_event_interval(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof event_intervals / sizeof event_intervals[0]; i++)
        assert_in_range(turns_before_the_guest(event_intervals[i], true), 0, event_intervals[i]);
}

static void note_stack_size(void *argument, unsigned worker)
{
    pthread_attr_t attributes;
    (void)worker;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    pthread_attr_getstacksize(&attributes, argument);
    pthread_attr_destroy(&attributes);
}

static void the_threads_have_stacks_of_the_size_that_was_asked_for(void **state)
{
    (void)state;
    enum { ASKED = 24 << 20, GUARD_MAX = 1 << 20 }; /* more than the default */
    size_t size = 0;
    bide_thread_pool *pool;
    const bide_thread_pool_options options = {
        .threads = 1,
        .stack_size = ASKED,
        .hooks = {.start = note_stack_size, .argument = &size},
    };
    assert_int_equal(bide_thread_pool_create_with(&pool, &options), 0);
    bide_thread_pool_destroy(pool);
    assert_true(size >= ASKED - GUARD_MAX);
}

static void intervals_and_stacks_that_cannot_be_are_EINVAL(void **state)
{
    (void)state;
    static const bide_thread_pool_options wrong[] = {
        {.threads = 2, .event_interval = 1},
        {.threads = 2, .event_interval = 65537},
        {.threads = 2, .stack_size = 1},
    };
    bide_thread_pool *pool;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(bide_thread_pool_create_with(&pool, &wrong[i]), -EINVAL);
}

static void destroy_first_runs_what_is_queued(void **state)
{
    (void)state;
    enum { TASKS = 10000 };
    struct counted *counted = malloc(TASKS * sizeof *counted);
    assert_non_null(counted);
    for (unsigned threads = 1; threads <= 3; threads++) {
        bide_thread_pool *pool = create(threads);
        bide_context context = context_of(pool);
        struct gated gated[3];
        for (unsigned i = 0; i < threads; i++) {
            bide_atomic_init(&gated[i].open, false);
            bide_spawn(&gated[i].spawned, &context, bide_task_init(&gated[i].task, &gated_body));
        }
        for (int i = 0; i < TASKS; i++)
            bide_spawn(&counted[i].spawned, &context, witness_run(&counted[i].task, NULL, 0));
        for (unsigned i = 0; i < threads; i++)
            bide_atomic_store(&gated[i].open, true, relaxed);
        bide_thread_pool_destroy(pool);
        for (int i = 0; i < TASKS; i++) {
            assert_int_equal(witness_ends(&counted[i].task), 1);
            assert_true(bide_event_is_set(&counted[i].spawned.ended));
        }
    }
    free(counted);
}

static void pools_come_and_go(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        bide_thread_pool *pool = create(1 + i % 4);
        bide_context context = context_of(pool);
        struct counted counted[3];
        for (unsigned j = 0; j < i % 3; j++)
            bide_spawn(&counted[j].spawned, &context, witness_run(&counted[j].task, NULL, 0));
        bide_thread_pool_destroy(pool);
        for (unsigned j = 0; j < i % 3; j++)
            assert_int_equal(witness_ends(&counted[j].task), 1);
    }
}

static void *set_once_awaited(void *argument)
{
    bide_event *event = argument;
    schedule_until(schedule_is_awaited(event));
    bide_event_set(event);
    return NULL;
}

static void the_pool_may_go_while_its_waker_is_still_at_it(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        bide_thread_pool *pool = create(2);
        bide_context context = context_of(pool);
        bide_event event;
        bide_event_init(&event, false);
        witness task;
        pthread_t thread = schedule_thread(set_once_awaited, &event);
        int status = bide_sync_wait_in(&context, witness_run(&task, &event, -EDOM));
        bide_thread_pool_destroy(pool);
        assert_int_equal(status, -EDOM);
        pthread_join(thread, NULL);
    }
}

/* ---- The context ---- */

/* Waits repeatedly until it is cancelled; so does its child. */
struct stoppable {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    const bide_context *context;
    struct stoppable *child; /* or NULL */
    int child_status;
    unsigned waits;
};

bide_coroutine(stoppable_body)
{
    bide_begin(stoppable_body, struct stoppable * self);
    if (self->child != NULL)
        bide_await_status(self->child_status, bide_task_init(&self->child->task, &stoppable_body));
    while (!bide_stop_requested(bide_this_context()->stop)) {
        bide_await(bide_event_wait(&self->wait, self->event));
        bide_event_reset(self->event);
        self->waits++;
    }
    self->context = bide_this_context();
    bide_return(-ECANCELED);
    bide_end();
}

static void a_request_to_stop_is_seen_through_the_context(void **state)
{
    (void)state;
    bide_thread_pool *pool = create(2);
    bide_stop_source stop;
    bide_stop_source_init(&stop);
    bide_context context = {
        .scheduler = bide_thread_pool_scheduler(pool), .stop = &stop, .name = "stoppable"};
    bide_event event;
    bide_event_init(&event, false);
    struct stoppable child = {.event = &event};
    struct stoppable task = {.event = &event, .child = &child};
    bide_spawned spawned;
    bide_spawn(&spawned, &context, bide_task_init(&task.task, &stoppable_body));

    for (int i = 0; i < 2; i++) {
        schedule_until(schedule_is_awaited(&event));
        bide_event_set(&event);
    }
    schedule_until(schedule_is_awaited(&event));
    bide_stop_request(&stop); /* ends the wait too */
    assert_int_equal(wait_for(&spawned), -ECANCELED);
    assert_int_equal(task.child_status, -ECANCELED);
    assert_int_equal(child.waits, 3);
    assert_int_equal(task.waits, 0);
    assert_ptr_equal(child.context, task.context);
    bide_thread_pool_destroy(pool);
}

/* ---- Misuse ---- */

struct destroyer {
    bide_task task;
    bide_thread_pool *pool;
};

bide_coroutine(destroyer_body)
{
    bide_begin(destroyer_body, struct destroyer * self);
    bide_thread_pool_destroy(self->pool);
    bide_end();
}

static void destroy_it_in_it(void)
{
    struct destroyer destroyer = {.pool = create(2)};
    bide_context context = context_of(destroyer.pool);
    bide_sync_wait_in(&context, bide_task_init(&destroyer.task, &destroyer_body));
}

static void to_destroy_it_on_one_of_its_threads_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_it_in_it, "destroyed on one of its threads",
                                     "thread_pool_test.c"));
}

struct sleeper {
    bide_task task;
    bide_sleep sleep;
    bide_atomic(bool) begun;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    bide_atomic_store(&self->begun, true, relaxed);
    bide_try(bide_sleep_until(&self->sleep, bide_platform.now() + UINT64_C(3600000000000)));
    bide_end();
}

static void destroy_it_while_one_sleeps(void)
{
    bide_thread_pool *pool = create(2);
    bide_context context = context_of(pool);
    static struct sleeper sleeper;
    bide_spawned spawned;
    bide_spawn(&spawned, &context, bide_task_init(&sleeper.task, &sleeper_body));
    schedule_until(bide_atomic_load(&sleeper.begun, relaxed));
    bide_thread_pool_destroy(pool);
}

static void destroy_it_while_one_waits(void)
{
    bide_thread_pool *pool = create(2);
    bide_context context = context_of(pool);
    bide_event event;
    witness task;
    bide_spawned spawned;
    bide_event_init(&event, false);
    bide_spawn(&spawned, &context, witness_run(&task, &event, 0));
    schedule_until(schedule_is_awaited(&event));
    bide_thread_pool_destroy(pool);
}

static void destroy_it_while_an_operation_is_awaited(void)
{
    bide_thread_pool *pool = create(1);
    bide_context context = context_of(pool);
    bide_event event;
    bide_event_waiter wait;
    bide_spawned spawned;
    bide_event_init(&event, false);
    bide_spawn(&spawned, &context, bide_event_wait(&wait, &event));
    bide_thread_pool_destroy(pool);
}

static void to_destroy_it_while_a_task_or_timer_of_it_waits_is_misuse(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(destroy_it_while_one_sleeps, "a timer of it is set", "sleeper_body"));
    assert_true(
        misuse_aborts_naming(destroy_it_while_one_waits, "a task of it waits", "witness_body"));
    assert_true(misuse_aborts_naming(destroy_it_while_an_operation_is_awaited, "a task of it waits",
                                     "bide_event_wait"));
}

/* ---- Rings that are full at each look ---- */

/*
 * 256 coroutines a worker yield for ever, so that each ring is full whenever its worker looks at what is
 * injected and at the timers. Something else is due to run, and the turns from then on are counted.
 */
enum { HOUSE_A_WORKER = 256, HOUSE_TURNS_MAX = 1000000 };

typedef struct full_house {
    bide_atomic(uint32_t) begun;  /* yielders */
    bide_atomic(uint32_t) is_due; /* the guest was posted */
    uint64_t time;                /* when it is due, if it waits for a time */
    bide_atomic(uint32_t) has_run;
    bide_atomic(uint32_t) turns; /* of the yielders, since it was due */
} full_house;

struct house_yielder {
    bide_task task;
    full_house *house;
    bide_schedule_operation yield;
    bide_spawned spawned;
};

bide_coroutine(house_yielder_body)
{
    bide_begin(house_yielder_body, struct house_yielder * self);
    bide_atomic_fetch_add(&self->house->begun, 1, relaxed);
    while (bide_atomic_load(&self->house->has_run, relaxed) == 0) {
        if (bide_atomic_load(&self->house->is_due, acquire) != 0 &&
            (self->house->time == 0 || bide_platform.now() >= self->house->time) &&
            bide_atomic_fetch_add(&self->house->turns, 1, relaxed) >= HOUSE_TURNS_MAX)
            break;
        bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_end();
}

struct house_guest {
    bide_task task;
    full_house *house;
    bide_event *event; /* or NULL */
    bide_sleep sleep;
    bide_event_waiter wait;
    bide_spawned spawned;
};

bide_coroutine(house_guest_body)
{
    bide_begin(house_guest_body, struct house_guest * self);
    if (self->event != NULL)
        bide_try(bide_event_wait(&self->wait, self->event));
    if (self->house->time != 0)
        bide_try(bide_sleep_until(&self->sleep, self->house->time));
    bide_atomic_store(&self->house->has_run, 1, relaxed);
    bide_end();
}

typedef enum house_guest_kind { GUEST_POSTED, GUEST_WAITS, GUEST_SLEEPS } house_guest_kind;

static void guest_runs_in_a_full_house(unsigned workers, house_guest_kind kind)
{
    unsigned count = workers * HOUSE_A_WORKER;
    struct house_yielder *yielders = calloc(count, sizeof *yielders);
    full_house house = {.time = 0};
    bide_event event;
    assert_non_null(yielders);
    bide_event_init(&event, false);
    struct house_guest guest = {.house = &house, .event = kind == GUEST_WAITS ? &event : NULL};
    bide_thread_pool *pool = create(workers);
    bide_context context = context_of(pool);
    if (kind == GUEST_WAITS) {
        bide_spawn(&guest.spawned, &context, bide_task_init(&guest.task, &house_guest_body));
        schedule_until(schedule_is_awaited(&event));
    }
    for (unsigned i = 0; i < count; i++) {
        yielders[i].house = &house;
        bide_spawn(&yielders[i].spawned, &context,
                   bide_task_init(&yielders[i].task, &house_yielder_body));
    }
    schedule_until(bide_atomic_load(&house.begun, relaxed) == count);
    if (kind == GUEST_SLEEPS)
        house.time = bide_platform.now() + 1000000;
    if (kind == GUEST_WAITS)
        bide_event_set(&event);
    else
        bide_spawn(&guest.spawned, &context, bide_task_init(&guest.task, &house_guest_body));
    bide_atomic_store(&house.is_due, 1, release);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(wait_for(&yielders[i].spawned), 0);
    assert_int_equal(wait_for(&guest.spawned), 0);
    assert_true(bide_atomic_load(&house.turns, relaxed) < HOUSE_TURNS_MAX);
    bide_thread_pool_destroy(pool);
    bide_event_destroy(&event);
    free(yielders);
}

static void what_is_posted_from_outside_runs_while_all_rings_are_full(void **state)
{
    (void)state;
    guest_runs_in_a_full_house(1, GUEST_POSTED);
    guest_runs_in_a_full_house(2, GUEST_POSTED);
    guest_runs_in_a_full_house(3, GUEST_WAITS);
}

static void a_timer_fires_while_all_rings_are_full(void **state)
{
    (void)state;
    guest_runs_in_a_full_house(1, GUEST_SLEEPS);
    guest_runs_in_a_full_house(2, GUEST_SLEEPS);
}

/* More than fit a ring, each of which only gives way: each has its turns. Counts them, and waits for all. */
enum { CROWD = 300, CROWD_TURNS = 3 };

static bide_atomic(uint32_t) crowd_arrived;
static bide_event crowd_always, crowd_complete;

struct crowd_member {
    bide_task task;
    bide_spawned spawned;
    bide_event_waiter wait;
    uint64_t seen, awaits;
};

static uint64_t crowd_turns_of(const struct crowd_member *self)
{
    return self->awaits / 256; /* a turn is a budget of operations, or less of longer ones */
}

bide_coroutine(crowd_member_body)
{
    bide_begin(crowd_member_body, struct crowd_member * self);
    for (self->awaits = 0; !bide_event_is_set(&crowd_complete); self->awaits++) {
        bide_await(bide_event_wait(&self->wait, &crowd_always));
        if (self->seen == 0 && crowd_turns_of(self) >= CROWD_TURNS) {
            self->seen = 1;
            if (bide_atomic_fetch_add(&crowd_arrived, 1, relaxed) + 1 == CROWD)
                bide_event_set(&crowd_complete);
        }
    }
    bide_end();
}

static void each_of_more_than_a_ring_has_its_turns(void **state)
{
    static struct crowd_member members[CROWD];
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++) {
        bide_thread_pool *pool;
        bide_event_init(&crowd_always, true);
        bide_event_init(&crowd_complete, false);
        bide_atomic_init(&crowd_arrived, 0);
        assert_int_equal(bide_thread_pool_create(&pool, threads), 0);
        bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
        for (unsigned i = 0; i < CROWD; i++) {
            members[i].seen = 0;
            bide_spawn(&members[i].spawned, &context,
                       bide_task_init(&members[i].task, &crowd_member_body));
        }
        for (unsigned i = 0; i < CROWD; i++)
            bide_event_wait_blocking(&members[i].spawned.ended, BIDE_FOREVER);
        assert_int_equal(bide_atomic_load(&crowd_arrived, relaxed), CROWD);
        bide_thread_pool_destroy(pool);
        bide_event_destroy(&crowd_always);
        bide_event_destroy(&crowd_complete);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_run_on_the_pools_threads),
        cmocka_unit_test(zero_threads_means_one_for_each_processor),
        cmocka_unit_test(far_too_many_threads_are_EINVAL),
        cmocka_unit_test(the_threads_block_signals_and_the_callers_mask_stays),
        cmocka_unit_test(a_coroutine_woken_by_another_thread_resumes_on_the_pool),
        cmocka_unit_test(waiters_of_an_event_resume_each_on_its_own_scheduler),
        cmocka_unit_test(as_many_tasks_as_threads_run_side_by_side),
        cmocka_unit_test(tasks_woken_at_once_run_side_by_side),
        cmocka_unit_test(each_of_many_tasks_ends_once),
        cmocka_unit_test(no_wake_of_many_threads_is_lost_or_doubled),
        cmocka_unit_test(two_that_wake_each_other_for_ever_do_not_starve_a_third),
        cmocka_unit_test(two_that_wake_each_other_for_ever_do_not_starve_one_from_outside),
        cmocka_unit_test(two_that_wake_each_other_for_ever_do_not_starve_a_timer),
        cmocka_unit_test(others_serve_the_wakes_of_one_that_keeps_its_thread),
        cmocka_unit_test(what_one_worker_makes_beyond_its_ring_ends_once),
        cmocka_unit_test(what_is_posted_from_outside_runs_while_all_rings_are_full),
        cmocka_unit_test(a_timer_fires_while_all_rings_are_full),
        cmocka_unit_test(each_of_more_than_a_ring_has_its_turns),
        cmocka_unit_test(tokens_that_go_round_at_random_all_arrive),
        cmocka_unit_test(a_timer_is_kept_while_the_timekeeper_is_busy),
        cmocka_unit_test(timers_that_are_set_and_cleared_wake_the_timekeeper_once),
        cmocka_unit_test(a_worker_that_was_woken_keeps_the_time_no_more),
        cmocka_unit_test(what_waits_to_run_in_a_pool_can_be_destroyed),
        cmocka_unit_test(what_waits_on_a_busy_worker_can_be_destroyed_on_another),
        cmocka_unit_test(hooks_are_called_on_each_thread),
        cmocka_unit_test(threads_have_a_name_and_a_processor),
        cmocka_unit_test(a_processor_that_is_not_there_is_EINVAL),
        cmocka_unit_test(stats_count_what_the_workers_do),
        cmocka_unit_test(a_workers_stats_are_read_while_it_is_busy),
        cmocka_unit_test(a_post_from_outside_runs_within_the_event_interval),
        cmocka_unit_test(a_due_timer_runs_within_the_event_interval),
        cmocka_unit_test(the_threads_have_stacks_of_the_size_that_was_asked_for),
        cmocka_unit_test(intervals_and_stacks_that_cannot_be_are_EINVAL),
        cmocka_unit_test(destroy_first_runs_what_is_queued),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(the_pool_may_go_while_its_waker_is_still_at_it),
        cmocka_unit_test(a_request_to_stop_is_seen_through_the_context),
        cmocka_unit_test(to_destroy_it_on_one_of_its_threads_is_misuse),
        cmocka_unit_test(to_destroy_it_while_a_task_or_timer_of_it_waits_is_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
