/* Signals: none is missed, each wait ends once, and everything is restored afterwards. */
#define _GNU_SOURCE
#include "runner.h"

#include "../../src/base/thread_sanitizer.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static void send_signal(int number)
{
    assert_int_equal(kill(getpid(), number), 0);
}

static void (*handler_of(int number))(int)
{
    struct sigaction action;
    assert_int_equal(sigaction(number, NULL, &action), 0);
    return action.sa_handler;
}

static void set_handler(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    assert_int_equal(sigaction(number, &action, NULL), 0);
}

static void do_nothing(int number)
{
    (void)number;
}

/*
 * ThreadSanitizer defers handlers until the thread makes a call that it intercepts, and it intercepts no
 * wait on a futex. Under it, tests whose signals come from other threads block the signals on the waiting
 * threads.
 */
static void block_under_tsan(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGHUP);
    if (BIDE_UNDER_TSAN_)
        pthread_sigmask(how, &set, NULL);
}

/* ---- Calls that fail: the first of them after so many ---- */

static int sigaction_fails_after = -1, pthread_create_fails_after = -1;

static atomic_int threads; /* threads that are not joined */

static bool fails(int *after)
{
    return *after >= 0 && (*after)-- == 0;
}

int __real_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    if (fails(&sigaction_fails_after)) {
        errno = EINVAL;
        return -1;
    }
    return __real_sigaction(number, action, before);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument)
{
    if (fails(&pthread_create_fails_after))
        return EAGAIN;
    threads++;
    return __real_pthread_create(thread, attributes, function, argument);
}

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result)
{
    threads--;
    return __real_pthread_join(thread, result);
}

/* ---- Delivery ---- */

static void a_signal_ends_a_wait(void **state)
{
    world *w = world_of(state);
    bide_signal signal;
    bide_signal_waiter wait;
    static struct runner runner;
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    begin(w, &runner, bide_signal_wait(&wait, &signal));
    turn(w);
    assert_false(runner.has_ended);
    send_signal(SIGUSR1);
    assert_int_equal(end(w, &runner), 0);
    assert_int_equal(bide_signal_destroy(&signal), 0);
}

static void a_signal_that_comes_before_the_wait_is_remembered_once(void **state)
{
    world *w = world_of(state);
    bide_signal signal, witness;
    bide_signal_waiter wait;
    assert_int_equal(bide_signal_listen(&witness, SIGUSR2), 0);
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    for (int i = 0; i < 3; i++) {
        send_signal(SIGUSR1);
        send_signal(SIGUSR2); /* (reported together with earlier signals) */
        assert_int_equal(bide_signal_wait_blocking(&witness, BIDE_FOREVER), 0);
    }
    send_signal(SIGUSR2);
    assert_int_equal(world_wait(w, bide_signal_wait(&wait, &witness)), 0);
    assert_int_equal(world_wait(w, bide_signal_wait(&wait, &signal)), 0);
    assert_false(bide_signal_try_wait(&signal));
    assert_int_equal(bide_signal_destroy(&signal), 0);
    assert_int_equal(bide_signal_destroy(&witness), 0);
}

enum { LOOPS = 3, EACH = 5 };

/* A loop on a thread of its own, with several waiters. */
struct hearer {
    pthread_t thread;
    bide_signal signals[EACH];
    int heard;
};

struct hearing {
    bide_task task;
    bide_signal *signal;
    int *heard;
    bide_signal_waiter wait;
};

bide_coroutine(hearing_body)
{
    bide_begin(hearing_body, struct hearing * self);
    bide_try(bide_signal_wait(&self->wait, self->signal));
    ++*self->heard;
    bide_end();
}

static void *hear(void *argument)
{
    struct hearer *self = argument;
    struct hearing hearings[EACH];
    bide_loop *loop;
    bide_loop_options options = {.kind = world_kind()};
    bide_when when;
    bide_branch branches[EACH];
    assert_int_equal(bide_loop_create(&loop, &options), 0);
    for (int i = 0; i < EACH; i++) {
        hearings[i] = (struct hearing){.signal = &self->signals[i], .heard = &self->heard};
        bide_branch_init(&branches[i], bide_task_init(&hearings[i].task, &hearing_body));
    }
    assert_int_equal(bide_loop_wait(loop, bide_when_all(&when, branches, EACH)), 0);
    bide_loop_destroy(loop);
    return NULL;
}

static void each_listener_on_each_loop_hears_of_it(void **state)
{
    static struct hearer hearers[LOOPS];
    world_of(state);
    for (int i = 0; i < LOOPS; i++) {
        hearers[i].heard = 0;
        for (int j = 0; j < EACH; j++)
            assert_int_equal(bide_signal_listen(&hearers[i].signals[j], SIGUSR1), 0);
        assert_int_equal(pthread_create(&hearers[i].thread, NULL, hear, &hearers[i]), 0);
    }
    send_signal(SIGUSR1);
    for (int i = 0; i < LOOPS; i++) {
        pthread_join(hearers[i].thread, NULL);
        assert_int_equal(hearers[i].heard, EACH);
        for (int j = 0; j < EACH; j++)
            assert_int_equal(bide_signal_destroy(&hearers[i].signals[j]), 0);
    }
    assert_true(handler_of(SIGUSR1) == SIG_DFL);
}

static void of_the_waits_on_one_listener_each_signal_ends_the_first(void **state)
{
    enum { WAITS = 4 };
    world *w = world_of(state);
    bide_signal signal;
    bide_signal_waiter waits[WAITS];
    static struct runner runners[WAITS];
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    for (int i = 0; i < WAITS; i++) {
        begin(w, &runners[i], bide_signal_wait(&waits[i], &signal));
        turn(w);
    }
    for (int i = 0; i < WAITS; i++) {
        send_signal(SIGUSR1);
        assert_int_equal(end(w, &runners[i]), 0);
        for (int j = i + 1; j < WAITS; j++)
            assert_false(runners[j].has_ended);
    }
    assert_int_equal(bide_signal_destroy(&signal), 0);
}

static void several_signals_are_distinguished(void **state)
{
    static const int numbers[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGWINCH, SIGURG};
    enum { COUNT = sizeof numbers / sizeof numbers[0] };
    world *w = world_of(state);
    bide_signal signals[COUNT];
    bide_signal_waiter wait;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(bide_signal_listen(&signals[i], numbers[i]), 0);
    for (int i = 0; i < COUNT; i++) {
        send_signal(numbers[i]);
        assert_int_equal(world_wait(w, bide_signal_wait(&wait, &signals[i])), 0);
        for (int j = 0; j < COUNT; j++)
            assert_false(bide_signal_try_wait(&signals[j]));
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(bide_signal_destroy(&signals[i]), 0);
        assert_true(handler_of(numbers[i]) == SIG_DFL);
    }
}

static void a_real_time_signal_is_received(void **state)
{
    world *w = world_of(state);
    bide_signal signal;
    bide_signal_waiter wait;
    assert_int_equal(bide_signal_listen(&signal, SIGRTMAX), 0);
    send_signal(SIGRTMAX);
    assert_int_equal(world_wait(w, bide_signal_wait(&wait, &signal)), 0);
    assert_int_equal(bide_signal_destroy(&signal), 0);
}

/* ---- Waits that end early ---- */

static void end_it(void *signal)
{
    assert_int_equal(bide_signal_destroy(signal), 0);
}

static void a_wait_that_ends_early_takes_no_signal(void **state)
{
    world *w = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        bide_signal signal;
        bide_signal_waiter wait, next;
        static struct runner runner;
        assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
        begin_by(w, &runner, bide_signal_wait(&wait, &signal), how);
        if (how == CLOSE) {
            call_inside(w, end_it, &signal);
            assert_int_equal(end(w, &runner), -EPIPE);
            assert_true(handler_of(SIGUSR1) == SIG_DFL);
            continue;
        }
        end_by(w, &runner, NULL, how);
        send_signal(SIGUSR1);
        assert_int_equal(world_wait(w, bide_signal_wait(&next, &signal)), 0);
        end_it(&signal);
    }
}

/* The signal and the cancellation arrive together: one of them wins, and the signal is not lost. */
static void a_signal_and_a_request_to_stop_at_once(void **state)
{
    world *w = world_of(state);
    bide_signal signal;
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    for (int round = 0; round < 200; round++) {
        bide_signal_waiter wait;
        static struct runner runner;
        int how = round % 3 == 0 ? DESTROY : STOP;
        begin_by(w, &runner, bide_signal_wait(&wait, &signal), how);
        send_signal(SIGUSR1);
        bool had = false;
        if (how == DESTROY) {
            destroy(w, &runner);
            had = runner.has_ended;
        } else {
            stop(&runner);
            int status = end(w, &runner);
            assert_true(status == 0 || status == -ECANCELED);
            had = status == 0;
        }
        if (!had)
            assert_int_equal(world_wait(w, bide_signal_wait(&wait, &signal)), 0);
    }
    end_it(&signal);
}

/* ---- Other users of the signal ---- */

static void the_previous_disposition_is_restored(void **state)
{
    static void (*const before[])(int) = {SIG_DFL, SIG_IGN};
    (void)state;
    for (int i = 0; i < 2; i++) {
        bide_signal one, other;
        set_handler(SIGUSR1, before[i]);
        assert_int_equal(bide_signal_listen(&one, SIGUSR1), 0);
        assert_int_equal(bide_signal_listen(&other, SIGUSR1), 0);
        assert_int_equal(one.was_ignored, before[i] == SIG_IGN);
        assert_int_equal(other.was_ignored, before[i] == SIG_IGN);
        assert_int_equal(bide_signal_destroy(&one), 0);
        send_signal(SIGUSR1);
        assert_int_equal(bide_signal_wait_blocking(&other, BIDE_FOREVER), 0);
        assert_int_equal(bide_signal_destroy(&other), 0);
        assert_true(handler_of(SIGUSR1) == before[i]);
    }
    set_handler(SIGUSR1, SIG_DFL);
}

static void somebody_elses_handler_stays(void **state)
{
    bide_signal one, other;
    (void)state;
    set_handler(SIGUSR1, do_nothing);
    assert_int_equal(bide_signal_listen(&one, SIGUSR1), -EBUSY);
    assert_true(handler_of(SIGUSR1) == do_nothing);
    set_handler(SIGUSR1, SIG_DFL);

    /* a handler that is set meanwhile. */
    assert_int_equal(bide_signal_listen(&one, SIGUSR1), 0);
    set_handler(SIGUSR1, do_nothing);
    assert_int_equal(bide_signal_listen(&other, SIGUSR1), -EBUSY);
    assert_int_equal(bide_signal_destroy(&one), -EBUSY);
    assert_true(handler_of(SIGUSR1) == do_nothing);
    set_handler(SIGUSR1, SIG_DFL);
    assert_int_equal(bide_signal_listen(&one, SIGUSR1), 0);
    assert_int_equal(bide_signal_destroy(&one), 0);
}

static void invalid_signals_are_rejected(void **state)
{
    static const int numbers[] = {-1,      0,      65,      INT_MAX, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,
                                  SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    bide_signal signal;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_int_equal(bide_signal_listen(&signal, numbers[i]), -EINVAL);
}

static void a_signal_that_all_threads_block_is_received(void **state)
{
    world *w = world_of(state);
    bide_signal signal;
    bide_signal_waiter wait;
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    assert_true(signal.was_blocked);
    send_signal(SIGUSR1);
    assert_int_equal(world_wait(w, bide_signal_wait(&wait, &signal)), 0);

    /* after the end, it stays pending and does nothing on the thread that reported it */
    assert_int_equal(bide_signal_destroy(&signal), 0);
    send_signal(SIGUSR1);
    assert_int_equal(sigpending(&set), 0);
    assert_int_equal(sigismember(&set, SIGUSR1), 1);
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    assert_int_equal(world_wait(w, bide_signal_wait(&wait, &signal)), 0);
    assert_int_equal(bide_signal_destroy(&signal), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static sem_t permission;

static void *wait_for_permission(void *status)
{
    *(int *)status = sem_wait(&permission);
    return NULL;
}

/* A thread without a listener is in a system call, which continues. */
static void a_thread_in_a_call_is_not_disturbed(void **state)
{
    bide_signal signal;
    pthread_t thread;
    int status = 1;
    (void)state;
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    assert_false(signal.was_blocked);
    assert_int_equal(sem_init(&permission, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_permission, &status), 0);
    for (int i = 0; i < 20; i++) {
        pthread_kill(thread, SIGUSR1);
        assert_int_equal(bide_signal_wait_blocking(&signal, BIDE_FOREVER), 0);
    }
    assert_int_equal(sem_post(&permission), 0);
    pthread_join(thread, NULL);
    assert_int_equal(status, 0);
    assert_int_equal(bide_signal_destroy(&signal), 0);
}

/* A failed listen leaves no handler and no thread, and the next one succeeds. */
static void a_call_that_fails_is_reported(void **state)
{
    bide_signal signal;
    (void)state;
    for (int after = 0; after < 2; after++) {
        sigaction_fails_after = after;
        assert_int_equal(bide_signal_listen(&signal, SIGUSR1), -EINVAL);
        assert_int_equal(sigaction_fails_after, -1);
        assert_true(handler_of(SIGUSR1) == SIG_DFL);
    }
    pthread_create_fails_after = 0;
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), -EAGAIN);
    assert_true(handler_of(SIGUSR1) == SIG_DFL);
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    send_signal(SIGUSR1);
    assert_int_equal(bide_signal_wait_blocking(&signal, BIDE_FOREVER), 0);
    assert_int_equal(bide_signal_destroy(&signal), 0);
}

static void the_last_listener_leaves_no_thread(void **state)
{
    bide_signal one, other;
    int before = threads;
    (void)state;
    assert_int_equal(bide_signal_listen(&one, SIGUSR1), 0);
    assert_int_equal(bide_signal_listen(&other, SIGUSR2), 0);
    assert_int_equal(threads, before + 1);
    assert_int_equal(bide_signal_destroy(&one), 0);
    assert_int_equal(threads, before + 1);
    assert_int_equal(bide_signal_destroy(&other), 0);
    assert_int_equal(threads, before);
}

/* ---- Children ---- */

/* How the child has ended: its exit code, or the negative number of a signal. */
static int end_of(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* In the child: it may listen on its own. */
static bool hears_by_itself(void)
{
    bide_signal own;
    if (bide_signal_listen(&own, SIGUSR1) != 0)
        return false;
    send_signal(SIGUSR1);
    return bide_signal_wait_blocking(&own, BIDE_FOREVER) == 0 && bide_signal_destroy(&own) == 0;
}

static void in_a_child_of_fork_it_is_as_before(void **state)
{
    bide_signal signal;
    (void)state;
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    pid_t child = fork();
    if (child == 0) {
        if (handler_of(SIGUSR1) != SIG_DFL || bide_signal_destroy(&signal) != 0)
            _exit(1);
        if (!BIDE_UNDER_TSAN_ && /* (ThreadSanitizer allows no thread there) */
            !hears_by_itself())
            _exit(2);
        send_signal(SIGUSR1);
        _exit(3);
    }
    assert_int_equal(end_of(child), -SIGUSR1);
    assert_false(bide_signal_try_wait(&signal));
    send_signal(SIGUSR1);
    assert_int_equal(bide_signal_wait_blocking(&signal, BIDE_FOREVER), 0);
    assert_int_equal(bide_signal_destroy(&signal), 0);
}

extern char **environ;

static void a_program_that_is_begun_has_what_was_before(void **state)
{
    static char *const arguments[] = {"sh", "-c", "kill -USR1 $$", NULL};
    bide_signal signal;
    pid_t child;
    (void)state;
    assert_int_equal(bide_signal_listen(&signal, SIGUSR1), 0);
    assert_int_equal(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ), 0);
    assert_int_equal(end_of(child), -SIGUSR1);
    assert_false(bide_signal_try_wait(&signal));
    assert_int_equal(bide_signal_destroy(&signal), 0);
}

/* ---- Inline, on the dispatcher thread ---- */

struct leaver {
    bide_task task;
    bide_signal signals[2];
    bide_signal_waiter wait;
};

bide_coroutine(leaver_body)
{
    bide_begin(leaver_body, struct leaver * self);
    bide_try(bide_signal_wait(&self->wait, &self->signals[0]));
    bide_signal_destroy(&self->signals[0]);
    if (bide_signal_listen(&self->signals[1], SIGUSR2) != 0)
        bide_return(-EINVAL);
    send_signal(SIGUSR2);
    bide_try(bide_signal_wait(&self->wait, &self->signals[1]));
    if (bide_signal_destroy(&self->signals[1]) != 0)
        bide_return(-EINVAL);
    if (bide_signal_listen(&self->signals[0], SIGUSR1) != 0)
        bide_return(-EINVAL);
    if (bide_signal_destroy(&self->signals[0]) != 0)
        bide_return(-EINVAL);
    bide_end();
}

static void a_coroutine_that_is_woken_inline_may_listen_and_end(void **state)
{
    struct leaver leaver;
    bide_spawned spawned;
    (void)state;
    block_under_tsan(SIG_BLOCK);
    for (int round = 0; round < 50; round++) {
        assert_int_equal(bide_signal_listen(&leaver.signals[0], SIGUSR1), 0);
        bide_spawn(&spawned, &bide_default_context, bide_task_init(&leaver.task, &leaver_body));
        send_signal(SIGUSR1);
        assert_int_equal(bide_event_wait_blocking(&spawned.ended, BIDE_FOREVER), 0);
        assert_true(handler_of(SIGUSR1) == SIG_DFL);
        assert_true(handler_of(SIGUSR2) == SIG_DFL);
    }
    block_under_tsan(SIG_UNBLOCK);
}

/* ---- All at once ---- */

static void *listen_and_end(void *argument)
{
    static const int numbers[] = {SIGUSR1, SIGUSR2, SIGHUP};
    uint64_t seed = *(uint64_t *)argument;
    for (uint32_t round = rounds_of(300); round != 0; round--) {
        bide_signal signal;
        int number = numbers[testing_random(&seed) % 3];
        assert_int_equal(bide_signal_listen(&signal, number), 0);
        for (int i = 0, times = (int)(testing_random(&seed) % 3); i < times; i++) {
            send_signal(number);
            assert_int_equal(bide_signal_wait_blocking(&signal, BIDE_FOREVER), 0);
        }
        assert_int_equal(bide_signal_destroy(&signal), 0);
    }
    return NULL;
}

static void listeners_come_and_go_on_all_threads(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS], seed = testing_seed();
    bide_signal witnesses[3];
    static const int numbers[] = {SIGUSR1, SIGUSR2, SIGHUP};
    (void)state;
    /* (a signal after the last listener would end the program, so signals are ignored) */
    for (int i = 0; i < 3; i++)
        set_handler(numbers[i], SIG_IGN);
    block_under_tsan(SIG_BLOCK);
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = testing_random(&seed);
        assert_int_equal(pthread_create(&threads[i], NULL, listen_and_end, &seeds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) {
        assert_true(handler_of(numbers[i]) == SIG_IGN);
        assert_int_equal(bide_signal_listen(&witnesses[i], numbers[i]), 0);
        assert_int_equal(bide_signal_destroy(&witnesses[i]), 0);
        set_handler(numbers[i], SIG_DFL);
    }
    block_under_tsan(SIG_UNBLOCK);
}

/* (a loop's wake-up descriptor is kept for later loops: as many exist as loops existed at once) */
static int make_loops(void **state)
{
    bide_loop *loops[LOOPS + 1];
    (void)state;
    for (int i = 0; i <= LOOPS; i++) {
        setenv("BIDE_IO_WITHOUT", "futex", 1);
        if (bide_loop_create(&loops[i], NULL) != 0)
            return -1;
    }
    for (int i = 0; i <= LOOPS; i++)
        bide_loop_destroy(loops[i]);
    return 0;
}

int main(void)
{
    signal(SIGHUP, SIG_DFL); /* the parent of this process may have ignored it */
    const struct CMUnitTest tests[] = {
        world_test(a_signal_ends_a_wait),
        world_test(a_signal_that_comes_before_the_wait_is_remembered_once),
        world_test(each_listener_on_each_loop_hears_of_it),
        world_test(of_the_waits_on_one_listener_each_signal_ends_the_first),
        world_test(several_signals_are_distinguished),
        world_test(a_real_time_signal_is_received),
        world_test(a_wait_that_ends_early_takes_no_signal),
        world_test(a_signal_and_a_request_to_stop_at_once),
        cmocka_unit_test(the_previous_disposition_is_restored),
        cmocka_unit_test(somebody_elses_handler_stays),
        cmocka_unit_test(invalid_signals_are_rejected),
        world_test(a_signal_that_all_threads_block_is_received),
        cmocka_unit_test(a_thread_in_a_call_is_not_disturbed),
        cmocka_unit_test(a_call_that_fails_is_reported),
        cmocka_unit_test(the_last_listener_leaves_no_thread),
        cmocka_unit_test(in_a_child_of_fork_it_is_as_before),
        cmocka_unit_test(a_program_that_is_begun_has_what_was_before),
        cmocka_unit_test(a_coroutine_that_is_woken_inline_may_listen_and_end),
        cmocka_unit_test(listeners_come_and_go_on_all_threads),
    };
    return cmocka_run_group_tests(tests, make_loops, NULL);
}
