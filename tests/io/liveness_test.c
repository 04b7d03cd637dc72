/*
 * Nothing starves. Sources are timers, ready coroutines, posts of another thread, input and output, and blocking
 * calls. While one kind of source is always due, one event of each kind is seen. So it is on each back end, and on pools
 * with one and several workers.
 *
 * 1. A crowd of coroutines waits again and again for its source, and counts its turns. A probe begins one wait and
 *    counts the turns of the crowd until that wait ends. The crowd ends when the probe has, or at the limit.
 * 2. A turn takes at least a nanosecond, and a loop looks at its events once in BIDE_LOOK_TIME_ of running time. So it
 *    sees an event of one of its own coroutines within BIDE_LOOK_TIME_ turns of the crowd, and one queue of them. Time
 *    that the kernel gives to other threads adds no turns. The limit is several times as many (FEW_LOOKS).
 * 3. An event that another thread causes needs that thread to run. The limit is then only there to end a test that
 *    fails with a reason.
 */
#define _GNU_SOURCE
#include "runner.h"

#include "../../src/base/thread_sanitizer.h"

#include "bide/detail/tuning.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { CROWD_MAX = 300, FEW_LOOKS = 8 * BIDE_LOOK_TIME_, OTHER_THREADS = 200000000 };

typedef enum source {
    TIMER,
    READY,
    POST,
    IO,
    CALL,
    SOURCES,
    SIGNAL = SOURCES,
    CHILD,
    EVENTS
} source;

static const char *const source_names[EVENTS] = {"timers",           "ready coroutines", "posts",
                                                 "input and output", "blocking calls",   "a signal",
                                                 "a child"};

struct crowd;

/* One of the crowd. */
typedef struct member {
    bide_task task;
    bide_branch branch;
    struct crowd *crowd;
    unsigned index;
    bide_auto_event posted;
    bide_descriptor own; /* connected to that of its neighbour */
    char byte;
    bide_io_operation io;
    bide_sleep sleep;
    bide_schedule_operation schedule;
    bide_auto_event_waiter wait;
    bide_blocking_call call;
} member;

/* Waits for one event. */
typedef struct probe {
    bide_task task;
    bide_branch branch;
    struct crowd *crowd;
    bide_event posted;
    bide_descriptor own, peer;
    bide_signal signal;
    bide_process process;
    char byte;
    int status;
    uint64_t ended; /* in turns of the crowd */
    bide_sleep sleep;
    bide_schedule_operation schedule;
    bide_event_waiter wait;
    bide_blocking_call call;
    bide_io_operation io;
    bide_signal_waiter signal_wait;
    bide_process_wait_operation child;
} probe;

typedef struct crowd {
    bide_task task;
    source always, once;
    unsigned count;
    uint64_t step; /* nanoseconds of its timers */
    uint64_t limit, cause_at;
    bide_scope scope;
    bide_scheduler *scheduler;
    bide_blocking *blocking;
    bide_io_operation io;
    unsigned next;
    bide_atomic(uint64_t) turns;
    bide_atomic(uint32_t) ends;
    bide_atomic(uint32_t) has_ended;
    probe probe;
    member members[CROWD_MAX];
} crowd;

static void call_nothing(void *argument)
{
    (void)argument;
}

bide_coroutine(member_body)
{
    bide_begin(member_body, member * self);
    while (bide_atomic_load(&self->crowd->ends, relaxed) == 0) {
        uint64_t turn = bide_atomic_fetch_add(&self->crowd->turns, 1, relaxed);
        if (turn >= self->crowd->limit)
            break;
        if (turn == self->crowd->cause_at && self->crowd->once == SIGNAL)
            assert_int_equal(kill(getpid(), SIGUSR1), 0);
        if (turn == self->crowd->cause_at && self->crowd->once == IO) {
            bide_await(bide_send(&self->io, &self->crowd->probe.peer, "!", 1));
            assert_int_equal(self->io.status, 0);
        }
        if (self->crowd->always == TIMER) {
            bide_await(bide_sleep_for(&self->sleep, self->crowd->step * (self->index % 2 + 1)));
        } else if (self->crowd->always == READY) {
            bide_await(bide_schedule(&self->schedule, self->crowd->scheduler));
        } else if (self->crowd->always == POST) {
            bide_await(bide_auto_event_wait(&self->wait, &self->posted));
        } else if (self->crowd->always == CALL) {
            bide_await(bide_blocking_run(&self->call, self->crowd->blocking, call_nothing, NULL));
        } else {
            bide_await(bide_send(&self->io, &self->own, "?", 1));
            bide_await(bide_recv(&self->io, &self->own, &self->byte, 1));
        }
    }
    if (self->crowd->always == IO)
        bide_shutdown(&self->own, BIDE_HALF_BOTH); /* (its neighbour ends too) */
    bide_end();
}

bide_coroutine(probe_body)
{
    bide_begin(probe_body, probe * self);
    if (self->crowd->once == TIMER) {
        bide_await_status(self->status, bide_sleep_for(&self->sleep, 1000));
    } else if (self->crowd->once == READY) {
        bide_await_status(self->status, bide_schedule(&self->schedule, self->crowd->scheduler));
    } else if (self->crowd->once == POST) {
        bide_await_status(self->status, bide_event_wait(&self->wait, &self->posted));
    } else if (self->crowd->once == IO) {
        bide_await_status(self->status, bide_recv(&self->io, &self->own, &self->byte, 1));
        assert_int_equal(self->byte, '!');
    } else if (self->crowd->once == CALL) {
        bide_await_status(self->status, bide_blocking_run(&self->call, self->crowd->blocking,
                                                          call_nothing, NULL));
    } else if (self->crowd->once == SIGNAL) {
        bide_await_status(self->status, bide_signal_wait(&self->signal_wait, &self->signal));
    } else {
        assert_int_equal(
            bide_process_start(&self->process, &(bide_process_options){.program = "/bin/true"}), 0);
        bide_await_status(self->status, bide_process_wait(&self->child, &self->process));
        bide_process_destroy(&self->process);
    }
    self->ended = bide_atomic_load(&self->crowd->turns, relaxed);
    bide_atomic_store(&self->crowd->ends, 1, relaxed);
    bide_end();
}

bide_coroutine(crowd_body)
{
    bide_begin(crowd_body, crowd * self);
    bide_scope_init(&self->scope, bide_this_frame());
    self->scheduler = bide_this_context()->scheduler;
    if (self->once == IO) {
        bide_await(bide_socket_pair(&self->io, &self->probe.own, &self->probe.peer));
        assert_int_equal(self->io.status, 0);
    }
    for (self->next = 0; self->always == IO && self->next < self->count; self->next += 2) {
        bide_await(bide_socket_pair(&self->io, &self->members[self->next].own,
                                    &self->members[self->next + 1].own));
        assert_int_equal(self->io.status, 0);
    }
    bide_scope_spawn(&self->scope, &self->probe.branch,
                     bide_task_init(&self->probe.task, &probe_body));
    for (unsigned i = 0; i < self->count; i++)
        bide_scope_spawn(&self->scope, &self->members[i].branch,
                         bide_task_init(&self->members[i].task, &member_body));
    bide_await(bide_scope_join(&self->scope));
    bide_atomic_store(&self->has_ended, 1, relaxed);
    if (self->once == IO) {
        bide_close(&self->probe.own);
        bide_close(&self->probe.peer);
    }
    for (unsigned i = 0; self->always == IO && i < self->count; i++)
        bide_close(&self->members[i].own);
    bide_end();
}

/* Another thread: posts to the members all the time, or to the probe once. */
static void *post(void *argument)
{
    crowd *self = argument;
    bool has_posted = false;
    while (bide_atomic_load(&self->has_ended, relaxed) == 0) {
        if (!has_posted && bide_atomic_load(&self->turns, relaxed) >= self->cause_at) {
            bide_event_set(&self->probe.posted);
            has_posted = true;
        }
        for (unsigned i = 0; self->always == POST && i < self->count; i++)
            bide_auto_event_set(&self->members[i].posted);
        if (self->always != POST)
            sched_yield();
    }
    return NULL;
}

/* Where the coroutines run. */
typedef struct place {
    world *world;           /* its loop; or */
    bide_thread_pool *pool; /* a pool of `workers` */
    unsigned workers;
    bide_blocking *blocking;
} place;

static int place_wait(const place *place, bide_awaiter *awaiter)
{
    if (place->pool == NULL)
        return world_wait(place->world, awaiter);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(place->pool)};
    return bide_sync_wait_in(&context, awaiter);
}

static bool is_in_memory(const place *place)
{
    return place->pool == NULL && place->world->memory != NULL;
}

static void see(const place *place, source always, unsigned count, source once)
{
    static crowd it;
    pthread_t poster;
    bool has_poster = always == POST || once == POST;
    bool is_caused_here = (once == TIMER || once == READY || once == IO) && place->workers == 1;
    it.always = always;
    it.once = once;
    it.count = always == IO && count % 2 != 0 ? count + 1 : count;
    it.cause_at = 3 * it.count + 5;
    it.limit = it.cause_at + (is_caused_here ? FEW_LOOKS : OTHER_THREADS);
    it.step = is_in_memory(place) ? 10000 : 1; /* (time that is not real passes by steps only) */
    it.blocking = place->blocking;
    bide_atomic_init(&it.turns, 0);
    bide_atomic_init(&it.ends, 0);
    bide_atomic_init(&it.has_ended, 0);
    it.probe.crowd = &it;
    it.probe.status = 1;
    bide_event_init(&it.probe.posted, false);
    for (unsigned i = 0; i < it.count; i++) {
        it.members[i].crowd = &it;
        it.members[i].index = i;
        bide_auto_event_init(&it.members[i].posted, false);
    }
    if (once == SIGNAL)
        assert_int_equal(bide_signal_listen(&it.probe.signal, SIGUSR1), 0);
    if (has_poster)
        assert_int_equal(pthread_create(&poster, NULL, post, &it), 0);
    assert_int_equal(place_wait(place, bide_task_init(&it.task, &crowd_body)), 0);
    if (has_poster)
        pthread_join(poster, NULL);
    if (once == SIGNAL)
        assert_int_equal(bide_signal_destroy(&it.probe.signal), 0);
    assert_int_equal(it.probe.status, 0);
    if (it.probe.ended >= it.limit)
        fail_msg(
            "beside %u %s that are always due, one of %s was not seen in %llu turns (%u workers)",
            it.count, source_names[always], source_names[once], (unsigned long long)it.limit,
            place->workers);
}

/* Whether the place has such a source or event. */
static bool is_had(const place *place, source source)
{
    if (is_in_memory(place))
        return source != POST && source != SIGNAL && source != CHILD;
    return !BIDE_UNDER_TSAN_ || (source != SIGNAL && source != CHILD); /* (as the tests of those) */
}

/* (The test loop lets a timer wait for half a million turns while something is ready.) */
static bool is_soon(const place *place, source always, source once)
{
    return !is_in_memory(place) || always == TIMER || once == READY;
}

static void see_all(place *place)
{
    static const unsigned counts[] = {5, 1, 70, CROWD_MAX};
    size_t sizes = is_in_memory(place) ? 1 : sizeof counts / sizeof *counts;
    assert_int_equal(bide_blocking_create(&place->blocking, 2), 0);
    for (source always = 0; always < SOURCES; always++)
        for (source once = 0; once < EVENTS; once++)
            for (size_t i = 0; i < sizes; i++)
                if (is_had(place, always) && is_had(place, once) && is_soon(place, always, once))
                    see(place, always, counts[i], once);
    bide_blocking_destroy(place->blocking);
}

static void a_loop_sees_each_event_beside_each_source(void **state)
{
    place place = {.world = world_of(state), .workers = 1};
    see_all(&place);
}

static void pool_sees(void **state, unsigned workers)
{
    (void)state;
    bide_io_pool_options options = {.threads = {.threads = workers},
                                    .loop = {.kind = world_kind()}};
    place place = {.workers = workers};
    int status = world_is("memory") ? -ENOSYS : bide_io_pool_create(&place.pool, &options);
    if (status < 0 && !world_is_by_readiness()) {
        printf("# %s\n", world_is("memory") ? "a pool has no memory world" : "no io_uring");
        skip();
    }
    assert_int_equal(status, 0);
    see_all(&place);
    bide_thread_pool_destroy(place.pool);
}

static void a_pool_of_one_sees_each_event_beside_each_source(void **state)
{
    pool_sees(state, 1);
}

static void a_pool_of_several_sees_each_event_beside_each_source(void **state)
{
    pool_sees(state, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_loop_sees_each_event_beside_each_source, world_begin,
                                        world_end),
        cmocka_unit_test(a_pool_of_one_sees_each_event_beside_each_source),
        cmocka_unit_test(a_pool_of_several_sees_each_event_beside_each_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
