/*
 * Forks: a child may use the library although other threads of its parent were in the middle of its functions, and does
 * not touch memory of these threads. The child must find the lock of the live roots free.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "../../src/coroutine/roots.h"

#include "bide/dump.h"
#include "bide/run_loop.h"
#include "bide/scope.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Returns the result of the function in a child. A child that hangs is killed, and counts as failed. */
enum { MAX_SECONDS = 60 };

static int in_a_child(int (*function)(void *), void *argument)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(MAX_SECONDS);
        _exit(function(argument));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The number of tasks in a dump. */
static unsigned shown(void)
{
    char *text = NULL;
    size_t length = 0;
    unsigned count = UINT32_MAX;
    FILE *file = open_memstream(&text, &length);
    if (file == NULL || bide_dump(file) != 0)
        return count;
    fclose(file);
    const char *end = text + length - 1;
    while (end > text && end[-1] != '\n')
        end--;
    sscanf(end, "%u", &count);
    free(text);
    return count;
}

/* Has a scope open while it waits for `event`, if it has one. */
struct owner {
    bide_task task;
    bide_scope scope;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(owner_body)
{
    bide_begin(owner_body, struct owner * self);
    bide_scope_init(&self->scope, bide_this_frame());
    if (self->event != NULL)
        bide_await(bide_event_wait(&self->wait, self->event));
    bide_await(bide_scope_join(&self->scope));
    bide_end();
}

static bide_awaiter *own(struct owner *owner, bide_event *event)
{
    owner->event = event;
    return bide_task_init(&owner->task, &owner_body);
}

/* ---- With one thread ---- */

struct begun {
    bide_run_loop loop;
    bide_event event;
    witness task;
    bide_spawned spawned;
    struct owner owner;
    bide_spawned owning;
};

static void begin_both(struct begun *begun)
{
    bide_run_loop_init(&begun->loop);
    bide_event_init(&begun->event, false);
    bide_spawn(&begun->spawned, &begun->loop.context, witness_run(&begun->task, &begun->event, 0));
    bide_spawn(&begun->owning, &begun->loop.context, own(&begun->owner, &begun->event));
    bide_run_loop_run_ready(&begun->loop);
}

static bool ends_both(struct begun *begun)
{
    bide_event_set(&begun->event);
    bide_run_loop_run_ready(&begun->loop);
    return witness_ends(&begun->task) == 1 && bide_event_is_set(&begun->owning.ended) &&
           shown() == 0;
}

static int go_on(void *argument)
{
    if (shown() != 2)
        return 1;
    return ends_both(argument) ? 0 : 2;
}

static void what_was_begun_goes_on_in_the_child(void **state)
{
    (void)state;
    static struct begun begun;
    begin_both(&begun);
    assert_int_equal(in_a_child(go_on, &begun), 0);
    assert_int_equal(go_on(&begun), 0);
}

/* ---- Beside threads that start and end ---- */

enum { THREADS = 3, CHILDREN = 40, TASKS = 64 };

static bide_atomic(bool) ending;

static void begin_and_end(witness *tasks)
{
    struct owner owner;
    for (int i = 0; i < TASKS; i++) {
        bide_sync_wait(witness_run(&tasks[i], NULL, 0));
        bide_sync_wait(own(&owner, NULL));
    }
}

static void *keep_beginning(void *argument)
{
    witness tasks[TASKS];
    (void)argument;
    while (!bide_atomic_load(&ending, relaxed))
        begin_and_end(tasks);
    return NULL;
}

static void *keep_dumping(void *argument)
{
    (void)argument;
    while (!bide_atomic_load(&ending, relaxed))
        shown();
    return NULL;
}

/* Roots in every list. */
static int begin_some(void *argument)
{
    static bide_spawned spawned[TASKS];
    static witness tasks[TASKS];
    bide_run_loop loop;
    (void)argument;
    bide_run_loop_init(&loop);
    for (int i = 0; i < TASKS; i++)
        bide_spawn(&spawned[i], &loop.context, witness_run(&tasks[i], NULL, 0));
    if (shown() != TASKS)
        return 1;
    bide_run_loop_run_ready(&loop);
    begin_and_end(tasks);
    static struct owner owners[TASKS];
    bide_event event;
    bide_event_init(&event, false);
    for (int i = 0; i < TASKS; i++)
        bide_spawn(&spawned[i], &loop.context, own(&owners[i], &event));
    bide_run_loop_run_ready(&loop);
    bide_event_set(&event);
    bide_run_loop_run_ready(&loop);
    return shown() == 0 ? 0 : 2;
}

static void a_child_begins_and_ends_though_other_threads_were_about_to(void **state)
{
    (void)state;
    pthread_t threads[THREADS + 1];
    bide_atomic_store(&ending, false, relaxed);
    for (int i = 0; i < THREADS; i++)
        threads[i] = schedule_thread(keep_beginning, NULL);
    threads[THREADS] = schedule_thread(keep_dumping, NULL);
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(in_a_child(begin_some, NULL), 0);
    bide_atomic_store(&ending, true, relaxed);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- The memory of threads that are not in the child ---- */

/* Roots in every list, of a waiting thread. The child overwrites their memory. */
struct stale {
    bide_run_loop loop;
    bide_event event;
    bide_event stays;
    bide_spawned spawned[TASKS];
    witness tasks[TASKS];
    bide_atomic(bool) is_there;
};

static void *wait_in_another_thread(void *argument)
{
    struct stale *stale = argument;
    bide_event_waiter wait;
    bide_run_loop_init(&stale->loop);
    for (int i = 0; i < TASKS; i++)
        bide_spawn(&stale->spawned[i], &stale->loop.context,
                   witness_run(&stale->tasks[i], &stale->stays, 0));
    bide_run_loop_run_ready(&stale->loop);
    bide_atomic_store(&stale->is_there, true, release);
    bide_sync_wait(bide_event_wait(&wait, &stale->event));
    bide_event_set(&stale->stays);
    bide_run_loop_run_ready(&stale->loop);
    return NULL;
}

static int use_the_memory(void *argument)
{
    struct stale *stale = argument;
    unsigned char *bytes = (unsigned char *)stale->spawned;
    memset(bytes, 0xa5, sizeof stale->spawned);
    int status = begin_some(NULL);
    for (size_t i = 0; i < sizeof stale->spawned; i++) {
        if (bytes[i] != 0xa5)
            return 3;
    }
    return status;
}

static void a_child_does_not_touch_what_other_threads_had_begun(void **state)
{
    (void)state;
    static struct stale stale;
    bide_event_init(&stale.event, false);
    bide_event_init(&stale.stays, false);
    pthread_t thread = schedule_thread(wait_in_another_thread, &stale);
    schedule_until(bide_atomic_load(&stale.is_there, acquire) && schedule_is_awaited(&stale.event));
    assert_int_equal(in_a_child(use_the_memory, &stale), 0);
    bide_event_set(&stale.event);
    pthread_join(thread, NULL);
    assert_int_equal(shown(), 0);
}

/* Tasks that the forking thread has started end in the child as usual. */
static int end_own(void *argument)
{
    int status = begin_some(NULL);
    return ends_both(argument) ? status : 4;
}

static void what_goes_on_in_the_child_of_several_threads_ends_there(void **state)
{
    (void)state;
    static struct begun begun;
    begin_both(&begun);
    bide_atomic_store(&ending, false, relaxed);
    pthread_t thread = schedule_thread(keep_dumping, NULL);
    assert_int_equal(in_a_child(end_own, &begun), 0);
    bide_atomic_store(&ending, true, relaxed);
    pthread_join(thread, NULL);
    assert_int_equal(go_on(&begun), 0);
}

/* ---- A thread sleeps while it waits for a held list ---- */

struct contender {
    bide_root root;
    bide_atomic(bool) has_begun;
    bide_atomic(bool) has_added;
};

static void *add_and_remove(void *argument)
{
    struct contender *contender = argument;
    bide_atomic_store(&contender->has_begun, true, release);
    bide_roots_add_(&contender->root);
    bide_roots_remove_(&contender->root);
    bide_atomic_store(&contender->has_added, true, release);
    return NULL;
}

static uint64_t cpu_time_of(pthread_t thread)
{
    clockid_t clock;
    struct timespec time;
    assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
    assert_int_equal(clock_gettime(clock, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/*
 * A thread that only yielded would do so without end. If it had a greater priority (SCHED_FIFO) and ran on the holder's
 * processor, it would do so in vain. Its processor time shows the difference: a sleeping thread uses none.
 */
static void a_thread_that_finds_the_list_held_sleeps_and_is_woken(void **state)
{
    (void)state;
    enum { ALIKE = 1000 };
    for (int round = 0; round < 20; round++) {
        static struct contender contender;
        bide_atomic_init(&contender.has_begun, false);
        bide_atomic_init(&contender.has_added, false);
        bide_root_list_ *list = bide_roots_hold_(&contender.root);
        pthread_t thread = schedule_thread(add_and_remove, &contender);
        schedule_until(bide_atomic_load(&contender.has_begun, acquire));
        uint64_t ran = 0;
        unsigned alike = 0;
        while (alike < ALIKE && ran < 1000000000u) {
            uint64_t now = cpu_time_of(thread);
            alike = now == ran ? alike + 1 : 0;
            ran = now;
            sched_yield();
        }
        assert_int_equal(alike, ALIKE);
        assert_false(bide_atomic_load(&contender.has_added, acquire));
        bide_roots_release_(list);
        pthread_join(thread, NULL);
        assert_true(bide_atomic_load(&contender.has_added, acquire));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* (first, while there is one thread) */
        cmocka_unit_test(what_was_begun_goes_on_in_the_child),
        cmocka_unit_test(a_child_begins_and_ends_though_other_threads_were_about_to),
        cmocka_unit_test(a_child_does_not_touch_what_other_threads_had_begun),
        cmocka_unit_test(what_goes_on_in_the_child_of_several_threads_ends_there),
        cmocka_unit_test(a_thread_that_finds_the_list_held_sleeps_and_is_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
