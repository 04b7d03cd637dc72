/*
 * Timers without a loop or a pool: coroutines of the inline scheduler sleep under a plain bide_sync_wait, on its thread,
 * or by the library's own thread if no thread waits.
 */
#define _GNU_SOURCE
#include "faults.h"
#include "schedule_testing.h"

#include "../../src/base/thread_sanitizer.h"

#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)
#define HOUR        (3600 * UINT64_C(1000000000))

/* ---- Under bide_sync_wait ---- */

static void a_sleep_by_itself_ends_under_sync_wait(void **state)
{
    (void)state;
    bide_sleep sleep;
    uint64_t until = bide_platform.now() + MILLISECOND;
    assert_int_equal(bide_sync_wait(bide_sleep_for(&sleep, MILLISECOND)), 0);
    assert_true(bide_platform.now() >= until);
    assert_int_equal(bide_sync_wait(bide_sleep_until(&sleep, 0)), 0);
}

/* Sleeps for random times; counts in plain memory that other coroutines of its thread use too. */
struct dozer {
    bide_task task;
    bide_spawned spawned;
    bide_sleep sleep;
    uint64_t random;
    unsigned naps;
    unsigned i;
    uint64_t until;
    unsigned early;
    unsigned *total;
    pthread_t thread;
    unsigned elsewhere;
};

bide_coroutine(dozer_body)
{
    bide_begin(dozer_body, struct dozer * self);
    self->thread = pthread_self();
    for (self->i = 0; self->i < self->naps; self->i++) {
        self->until = bide_platform.now() + testing_random(&self->random) % MILLISECOND;
        bide_try(bide_sleep_until(&self->sleep, self->until));
        if (bide_platform.now() < self->until)
            self->early++;
        if (!pthread_equal(self->thread, pthread_self()))
            self->elsewhere++;
        if (self->total != NULL)
            (*self->total)++;
    }
    bide_end();
}

static bide_awaiter *doze(struct dozer *self, uint64_t random, unsigned naps, unsigned *total)
{
    self->random = random;
    self->naps = naps;
    self->early = 0;
    self->elsewhere = 0;
    self->total = total;
    return bide_task_init(&self->task, &dozer_body);
}

enum { DOZERS = 20, NAPS = 20 };

struct all {
    bide_task task;
    struct dozer dozers[DOZERS];
    bide_spawned spawned[DOZERS];
    bide_event_waiter wait;
    uint64_t seed;
    unsigned i;
    unsigned total;
};

bide_coroutine(all_body)
{
    bide_begin(all_body, struct all * self);
    for (self->i = 0; self->i < DOZERS; self->i++)
        bide_spawn(&self->spawned[self->i], bide_this_context(),
                   doze(&self->dozers[self->i], self->seed + self->i, NAPS, &self->total));
    for (self->i = 0; self->i < DOZERS; self->i++)
        bide_await(bide_event_wait(&self->wait, &self->spawned[self->i].ended));
    bide_end();
}

static void *sleep_side_by_side(void *argument)
{
    static const uint64_t step = 1000;
    struct all *all = calloc(1, sizeof *all);
    assert_non_null(all);
    all->seed = *(uint64_t *)argument * step;
    assert_int_equal(bide_sync_wait(bide_task_init(&all->task, &all_body)), 0);
    assert_int_equal(all->total, DOZERS * NAPS);
    for (unsigned i = 0; i < DOZERS; i++) {
        assert_int_equal(all->dozers[i].early, 0);
        assert_int_equal(all->dozers[i].elsewhere, 0); /* no other thread was needed */
    }
    free(all);
    return NULL;
}

static void what_sleeps_under_a_wait_stays_on_its_thread(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    sleep_side_by_side(&seed);
}

static void threads_that_wait_each_keep_their_own_time(void **state)
{
    (void)state;
    uint64_t seeds[4];
    pthread_t threads[4];
    seeds[0] = testing_seed();
    for (unsigned i = 0; i < 4; i++) {
        seeds[i] = seeds[0] + i;
        threads[i] = schedule_thread(sleep_side_by_side, &seeds[i]);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void a_deadline_cuts_short_under_sync_wait(void **state)
{
    (void)state;
    bide_with_deadline_operation limited;
    bide_event event;
    bide_event_waiter wait;
    bide_sleep sleep;
    bide_event_init(&event, false);
    uint64_t until = bide_platform.now() + MILLISECOND;
    assert_int_equal(
        bide_sync_wait(bide_with_deadline(&limited, until, bide_event_wait(&wait, &event))),
        -ETIMEDOUT);
    assert_true(bide_platform.now() >= until);
    assert_int_equal(bide_sync_wait(bide_with_deadline(&limited, 1, bide_sleep_for(&sleep, HOUR))),
                     -ETIMEDOUT);
    assert_int_equal(
        bide_sync_wait(bide_with_deadline(&limited, until + HOUR, bide_sleep_for(&sleep, 1000))),
        0);
}

static void a_wait_with_a_deadline_cuts_a_sleep_short(void **state)
{
    (void)state;
    bide_sleep sleep;
    uint64_t until = bide_platform.now() + MILLISECOND;
    assert_int_equal(bide_sync_wait_until(bide_sleep_for(&sleep, HOUR), until), -ETIMEDOUT);
    assert_true(bide_platform.now() >= until);
    assert_int_equal(bide_sync_wait_until(bide_sleep_for(&sleep, 1000), until + HOUR), 0);
}

struct setter {
    bide_task task;
    bide_sleep sleep;
    bide_event *event;
};

bide_coroutine(setter_body)
{
    bide_begin(setter_body, struct setter * self);
    bide_try(bide_sleep_for(&self->sleep, MILLISECOND));
    bide_event_set(self->event);
    bide_end();
}

struct outer {
    bide_task task;
    struct setter setter;
    bide_spawned spawned;
    bide_event event;
    bide_event_waiter wait;
    int status;
};

/* A wait inside a coroutine, which only a timer further out on the same thread ends. */
bide_coroutine(outer_body)
{
    bide_begin(outer_body, struct outer * self);
    bide_event_init(&self->event, false);
    self->setter.event = &self->event;
    bide_spawn(&self->spawned, bide_this_context(),
               bide_task_init(&self->setter.task, &setter_body));
    self->status = bide_sync_wait(bide_event_wait(&self->wait, &self->event));
    bide_await(bide_event_wait(&self->wait, &self->spawned.ended));
    bide_return(self->status);
    bide_end();
}

static void a_wait_inside_serves_what_sleeps_further_out(void **state)
{
    (void)state;
    struct outer outer;
    assert_int_equal(bide_sync_wait(bide_task_init(&outer.task, &outer_body)), 0);
    assert_int_equal(outer.spawned.root.status, 0);
}

/* ---- Where no thread waits ---- */

/* Waits until the event is set, on a futex: bide_sync_wait would serve the timers. */
static void wait_plainly(bide_spawned *spawned)
{
    while (!bide_event_is_set(&spawned->ended))
        bide_platform.yield();
}

static void what_no_thread_waits_for_sleeps_too(void **state)
{
    (void)state;
    static struct dozer dozers[DOZERS];
    uint64_t seed = testing_seed();
    for (unsigned i = 0; i < DOZERS; i++)
        bide_spawn(&dozers[i].spawned, &bide_default_context,
                   doze(&dozers[i], seed + i, NAPS, NULL));
    for (unsigned i = 0; i < DOZERS; i++) {
        wait_plainly(&dozers[i].spawned);
        assert_int_equal(dozers[i].spawned.root.status, 0);
        assert_int_equal(dozers[i].i, NAPS);
        assert_int_equal(dozers[i].early, 0);
    }
}

/* A timer of an hour, then an earlier one: the library's thread sleeps, and has to be woken. */
static void an_earlier_time_is_not_missed(void **state)
{
    (void)state;
    bide_stop_source stop;
    bide_context context = bide_default_context;
    bide_sleep late;
    bide_spawned spawned;
    bide_stop_source_init(&stop);
    context.stop = &stop;
    bide_spawn(&spawned, &context, bide_sleep_for(&late, HOUR));
    for (unsigned i = 0; i < 100; i++) {
        bide_sleep soon;
        bide_spawned other;
        bide_spawn(&other, &bide_default_context, bide_sleep_for(&soon, i % 2 * 100000));
        wait_plainly(&other);
        assert_int_equal(other.root.status, 0);
    }
    assert_false(bide_event_is_set(&spawned.ended));
    bide_stop_request(&stop);
    wait_plainly(&spawned);
    assert_int_equal(spawned.root.status, -ECANCELED);
}

/* Started by a coroutine under a wait, and left behind when the wait has ended. */
struct leaver {
    bide_task task;
    struct dozer *left;
};

bide_coroutine(leaver_body)
{
    bide_begin(leaver_body, struct leaver * self);
    bide_spawn(&self->left->spawned, bide_this_context(), doze(self->left, 1, NAPS, NULL));
    bide_end();
}

static void what_a_wait_leaves_behind_is_served(void **state)
{
    (void)state;
    static struct dozer left;
    struct leaver leaver = {.left = &left};
    assert_int_equal(bide_sync_wait(bide_task_init(&leaver.task, &leaver_body)), 0);
    wait_plainly(&left.spawned);
    assert_int_equal(left.spawned.root.status, 0);
    assert_int_equal(left.i, NAPS);
    assert_int_equal(left.early, 0);
}

/*
 * The library's service thread blocks in a wait, inside a coroutine that it runs; its other timers expire all the same.
 */
static void the_librarys_thread_serves_while_it_blocks(void **state)
{
    (void)state;
    static struct outer outer;
    static struct dozer others[DOZERS];
    for (unsigned round = 0; round < 10; round++) {
        bide_sleep first;
        bide_spawned begun, spawned;
        bide_spawn(&begun, &bide_default_context, bide_sleep_for(&first, 1));
        for (unsigned i = 0; i < DOZERS; i++)
            bide_spawn(&others[i].spawned, &bide_default_context, doze(&others[i], i, 5, NULL));
        bide_spawn(&spawned, &bide_default_context, bide_task_init(&outer.task, &outer_body));
        wait_plainly(&spawned);
        wait_plainly(&begun);
        for (unsigned i = 0; i < DOZERS; i++)
            wait_plainly(&others[i].spawned);
        assert_int_equal(spawned.root.status, 0);
    }
}

/* ---- Clearing against firing ---- */

struct race {
    bide_stop_source stop;
    bide_atomic(uint32_t) go;
    bide_atomic(uint32_t) done;
    uint64_t at; /* when to request */
    unsigned rounds;
};

static void *request_each_round(void *argument)
{
    struct race *race = argument;
    for (uint32_t round = 1; round <= race->rounds; round++) {
        while (bide_atomic_load(&race->go, acquire) != round)
            bide_cpu_relax();
        while (bide_platform.now() < race->at)
            bide_cpu_relax();
        bide_stop_request(&race->stop);
        bide_atomic_store(&race->done, round, release);
    }
    return NULL;
}

/* The wait's thread sleeps, and another cancels the sleep about when the time comes. */
static void a_sleep_is_cut_short_or_ends_but_not_both(void **state)
{
    (void)state;
    struct race race = {.rounds = rounds_of(500)};
    uint64_t random = testing_seed();
    unsigned cut = 0;
    bide_atomic_init(&race.go, 0);
    bide_atomic_init(&race.done, 0);
    pthread_t thread = schedule_thread(request_each_round, &race);
    for (uint32_t round = 1; round <= race.rounds; round++) {
        bide_context context = bide_default_context;
        bide_sleep sleep;
        bide_stop_source_init(&race.stop);
        context.stop = &race.stop;
        uint64_t until = bide_platform.now() + testing_random(&random) % 20000;
        race.at = until + testing_random(&random) % 100000;
        bide_atomic_store(&race.go, round, release);
        int status = bide_sync_wait_in(&context, bide_sleep_until(&sleep, until));
        assert_true(status == -ECANCELED || (status == 0 && bide_platform.now() >= until));
        cut += status != 0;
        while (bide_atomic_load(&race.done, acquire) != round)
            bide_cpu_relax();
    }
    pthread_join(thread, NULL);
    print_message("# %u of %u were cut short\n", cut, race.rounds);
}

/* The same with deadlines, set on threads that serve no timers. */
static void a_sleep_of_the_librarys_thread_is_cut_short_or_ends(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    unsigned rounds = rounds_of(500);
    for (unsigned round = 0; round < rounds; round++) {
        bide_stop_source stop;
        bide_context context = bide_default_context;
        bide_sleep sleep;
        bide_spawned spawned;
        bide_stop_source_init(&stop);
        context.stop = &stop;
        uint64_t until = bide_platform.now() + testing_random(&random) % 50000;
        bide_spawn(&spawned, &context, bide_sleep_until(&sleep, until));
        uint64_t stop_at = bide_platform.now() + testing_random(&random) % 100000;
        while (bide_platform.now() < stop_at)
            bide_cpu_relax();
        bide_stop_request(&stop);
        wait_plainly(&spawned);
        int status = spawned.root.status;
        assert_true(status == -ECANCELED || (status == 0 && bide_platform.now() >= until));
    }
}

/* ---- Forks, and failing thread creation ---- */

/*
 * The result of the function in a child; -1 if it hangs, and is killed. The child is ended by a signal: otherwise
 * memory of the parent's other threads, which has no owner there, would be reported as leaked.
 */
static int in_a_child(int (*function)(void *), void *argument)
{
    int status, said = -1, ends[2];
    fflush(stdout);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        said = function(argument);
        if (write(ends[1], &said, sizeof said) != (ssize_t)sizeof said)
            abort();
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ends[1]);
    if (read(ends[0], &said, sizeof said) != (ssize_t)sizeof said)
        said = -1;
    close(ends[0]);
    return said;
}

struct sleeper {
    bide_stop_source stop;
    bide_context context;
    bide_sleep sleep;
    bide_spawned spawned;
};

static void begin_sleeper(struct sleeper *self, uint64_t nanoseconds)
{
    bide_stop_source_init(&self->stop);
    self->context = bide_default_context;
    self->context.stop = &self->stop;
    bide_spawn(&self->spawned, &self->context, bide_sleep_for(&self->sleep, nanoseconds));
}

static int sleep_in_the_child(void *argument)
{
    struct sleeper *old = argument;
    struct sleeper soon;
    bide_sleep sleep;
    begin_sleeper(&soon, MILLISECOND); /* a thread of the child's own */
    wait_plainly(&soon.spawned);
    if (soon.spawned.root.status != 0)
        return 1;
    if (bide_sync_wait(bide_sleep_for(&sleep, MILLISECOND)) != 0)
        return 2;
    /* Timers of the parent's service thread do not expire here, but can be cancelled. */
    if (bide_event_is_set(&old[0].spawned.ended) || bide_event_is_set(&old[1].spawned.ended))
        return 3;
    bide_stop_request(&old[0].stop);
    bide_stop_request(&old[1].stop);
    return old[0].spawned.root.status == -ECANCELED && old[1].spawned.root.status == -ECANCELED ? 0
                                                                                                : 4;
}

static void a_child_sleeps_by_a_thread_of_its_own(void **state)
{
    (void)state;
    static struct sleeper old[2];
#if BIDE_UNDER_TSAN_
    print_message("# TSan: no threads in a child of a program that has threads\n");
    skip();
#endif
    if (getenv("MESON_EXE_WRAPPER") != NULL) {
        print_message("# QEMU ends by itself where such a child begins a thread\n");
        skip();
    }
    begin_sleeper(&old[0], HOUR);
    begin_sleeper(&old[1], 2 * HOUR);
    assert_int_equal(in_a_child(sleep_in_the_child, old), 0);
    for (unsigned i = 0; i < 2; i++) {
        bide_stop_request(&old[i].stop);
        wait_plainly(&old[i].spawned);
        assert_int_equal(old[i].spawned.root.status, -ECANCELED);
    }
}

static int sleep_without_a_thread(void *argument)
{
    struct sleeper self;
    bide_sleep sleep;
    (void)argument;
    faults_clear();
    faults_fail(FAULT_PTHREAD_CREATE, 1, 1, EAGAIN);
    begin_sleeper(&self, MILLISECOND);
    if (!bide_event_is_set(&self.spawned.ended) || self.spawned.root.status != -EAGAIN)
        return 1;
    if (bide_sync_wait(bide_sleep_for(&sleep, MILLISECOND)) != 0 ||
        faults_hits(FAULT_PTHREAD_CREATE) != 1)
        return 2; /* a wait needs none */
    begin_sleeper(&self, MILLISECOND);
    wait_plainly(&self.spawned);
    return self.spawned.root.status == 0 ? 0 : 3;
}

static void without_a_thread_a_sleep_ends_at_once_with_the_error(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(sleep_without_a_thread, NULL), 0);
}

/* Neither the second thread nor the first can be created. */
static int leave_without_a_thread(void *argument)
{
    static struct dozer left;
    struct leaver leaver = {.left = &left};
    (void)argument;
    faults_clear();
    faults_fail(FAULT_PTHREAD_CREATE, 1, 2, EAGAIN);
    if (bide_sync_wait(bide_task_init(&leaver.task, &leaver_body)) != 0)
        return 1;
    wait_plainly(&left.spawned);
    if (left.spawned.root.status != 0 || left.i != NAPS || left.early != 0)
        return 2;
    return faults_hits(FAULT_PTHREAD_CREATE) > 0 ? 0 : 3;
}

static void a_wait_that_can_leave_its_timers_to_none_stays(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(leave_without_a_thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* (these fork, and run first, while the process has one thread) */
        cmocka_unit_test(without_a_thread_a_sleep_ends_at_once_with_the_error),
        cmocka_unit_test(a_wait_that_can_leave_its_timers_to_none_stays),
        cmocka_unit_test(a_sleep_by_itself_ends_under_sync_wait),
        cmocka_unit_test(what_sleeps_under_a_wait_stays_on_its_thread),
        cmocka_unit_test(threads_that_wait_each_keep_their_own_time),
        cmocka_unit_test(a_deadline_cuts_short_under_sync_wait),
        cmocka_unit_test(a_wait_with_a_deadline_cuts_a_sleep_short),
        cmocka_unit_test(a_wait_inside_serves_what_sleeps_further_out),
        cmocka_unit_test(what_no_thread_waits_for_sleeps_too),
        cmocka_unit_test(an_earlier_time_is_not_missed),
        cmocka_unit_test(what_a_wait_leaves_behind_is_served),
        cmocka_unit_test(the_librarys_thread_serves_while_it_blocks),
        cmocka_unit_test(a_sleep_is_cut_short_or_ends_but_not_both),
        cmocka_unit_test(a_sleep_of_the_librarys_thread_is_cut_short_or_ends),
        cmocka_unit_test(a_child_sleeps_by_a_thread_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
