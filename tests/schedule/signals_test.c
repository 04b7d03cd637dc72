/*
 * Signals and the library's threads: signals to the program are handled on the program's own threads; a fault of a
 * coroutine or a call is handled where it is raised, by the program's handler.
 */
#define _GNU_SOURCE
#include "schedule_testing.h"

#include "bide/blocking.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
static const int sent[] = {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGUSR2};

enum { RAISED = sizeof raised / sizeof raised[0], SENT = sizeof sent / sizeof sent[0] };

/* ---- A function, run on a thread of a pool and on one for blocking calls ---- */

struct call {
    bide_task task;
    void (*function)(void *);
    void *argument;
};

bide_coroutine(call_body)
{
    bide_begin(call_body, struct call * self);
    self->function(self->argument);
    bide_end();
}

static void on_a_pool(void (*function)(void *), void *argument)
{
    bide_thread_pool *pool;
    struct call call = {.function = function, .argument = argument};
    assert_int_equal(bide_thread_pool_create(&pool, 1), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    bide_sync_wait_in(&context, bide_task_init(&call.task, &call_body));
    bide_thread_pool_destroy(pool);
}

static void on_a_blocking_thread(void (*function)(void *), void *argument)
{
    bide_blocking *blocking;
    bide_blocking_call call;
    assert_int_equal(bide_blocking_create(&blocking, 1), 0);
    bide_sync_wait(bide_blocking_run(&call, blocking, function, argument));
    bide_blocking_destroy(blocking);
}

static void (*const runs[])(void (*function)(void *), void *argument) = {on_a_pool,
                                                                         on_a_blocking_thread};

enum { RUNS = sizeof runs / sizeof runs[0] };

/* ---- Masks ---- */

static void read_mask(void *argument)
{
    pthread_sigmask(SIG_SETMASK, NULL, argument);
}

/* Also if the creator blocks everything, as programs do that receive their signals by sigwait. */
static void what_is_sent_is_blocked_and_what_is_raised_is_not(void **state)
{
    (void)state;
    sigset_t masks[2], before;
    sigemptyset(&masks[0]);
    sigfillset(&masks[1]);
    for (unsigned i = 0; i < 2 * RUNS; i++) {
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, &masks[i % 2], &before);
        runs[i / 2](read_mask, &mask);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        for (unsigned j = 0; j < SENT; j++)
            assert_int_equal(sigismember(&mask, sent[j]), 1);
        for (unsigned j = 0; j < RAISED; j++)
            assert_int_equal(sigismember(&mask, raised[j]), 0);
    }
}

/* ---- Handlers ---- */

static volatile sig_atomic_t handled;

static void handle(int number)
{
    handled = number;
}

static void raise_number(void *argument)
{
    raise(*(const int *)argument);
}

static struct sigaction handle_by(int number, void (*handler)(int, siginfo_t *, void *),
                                  void (*simple)(int))
{
    struct sigaction action = {0}, before;
    if (handler != NULL) {
        action.sa_sigaction = handler;
        action.sa_flags = SA_SIGINFO;
    } else {
        action.sa_handler = simple;
    }
    assert_int_equal(sigaction(number, &action, &before), 0);
    return before;
}

static void what_is_raised_reaches_the_programs_handler(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RAISED * RUNS; i++) {
        int number = raised[i / RUNS];
        struct sigaction before = handle_by(number, NULL, handle);
        handled = 0;
        runs[i % RUNS](raise_number, &number);
        assert_int_equal(handled, number);
        assert_int_equal(sigaction(number, &before, NULL), 0);
    }
}

/* A page without access, until the handler of the fault allows it. */
static char *page;
static long page_size;

static void allow(int number, siginfo_t *info, void *context)
{
    (void)context;
    if ((char *)info->si_addr != page || mprotect(page, (size_t)page_size, PROT_READ) != 0)
        _exit(99);
    handled = number;
}

static void read_page(void *argument)
{
    *(char *)argument = *(volatile char *)page;
}

static void a_fault_is_mended_by_the_programs_handler(void **state)
{
    (void)state;
    page_size = sysconf(_SC_PAGESIZE);
    page = mmap(NULL, (size_t)page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    struct sigaction before = handle_by(SIGSEGV, allow, NULL);
    for (unsigned i = 0; i < RUNS; i++) {
        char found = 1;
        handled = 0;
        assert_int_equal(mprotect(page, (size_t)page_size, PROT_NONE), 0);
        runs[i](read_page, &found);
        assert_int_equal(handled, SIGSEGV);
        assert_int_equal(found, 0);
    }
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(munmap(page, (size_t)page_size), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_blocked_and_what_is_raised_is_not),
        cmocka_unit_test(what_is_raised_reaches_the_programs_handler),
        cmocka_unit_test(a_fault_is_mended_by_the_programs_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
