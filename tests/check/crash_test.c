/*
 * A crash inside of a scenario is a finding with a trace and a replay, like any other.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#undef assert /* cmocka's handler */
#undef NDEBUG
#include <assert.h>

typedef struct state {
    bide_atomic(uint32_t) word;
    uint32_t *pointer;
    void (*function)(void);
} state;

/* ---- Ways to crash ---- */

static uint32_t load(void *p)
{
    return bide_atomic_load(&((state *)p)->word, relaxed);
}

/* Only if the other's store was seen. */
static void use_null(void *p)
{
    if (load(p) == 1)
        *((state *)p)->pointer = 5;
}

static void call_null(void *p)
{
    if (load(p) == 1)
        ((state *)p)->function();
}

static void use_null_atomically(void *p)
{
    if (load(p) == 1)
        bide_atomic_store((bide_atomic(uint32_t) *)((state *)p)->pointer, 1, relaxed);
}

static void abort_at_once(void *p)
{
    if (load(p) == 1)
        abort();
}

static void assert_0(void *p)
{
    assert(load(p) == 0);
}

static void exit_0(void *p)
{
    if (load(p) == 1)
        exit(0);
}

static void trap(void *p)
{
    if (load(p) == 1)
        __builtin_trap();
}

static void divide(void *p)
{
    volatile uint32_t one = 1;
    bide_check_assert(one / (1 - load(p)) == 1);
}

/*
 * Through pointers, because a compiler that knows the callee turns this into loops, and leaves out
 * unused parts of an array.
 */
static unsigned use_stack(unsigned kilobytes);
static unsigned deep(unsigned n);
static unsigned (*volatile call_use_stack)(unsigned) = use_stack;
static unsigned (*volatile call_deep)(unsigned) = deep;

static unsigned use_stack(unsigned kilobytes)
{
    volatile char room[1024];
    room[kilobytes % 1024] = (char)kilobytes;
    return kilobytes == 0
               ? 0
               : call_use_stack(kilobytes - 1) + (unsigned char)room[kilobytes % 1024] / 255;
}

static void use_a_megabyte(void *p)
{
    if (load(p) == 1)
        use_stack(1000);
}

static unsigned deep(unsigned n)
{
    volatile unsigned x = n;
    return x == 0 ? 0 : call_deep(n + 1) + x;
}

static void recurse_for_ever(void *p)
{
    if (load(p) == 1)
        deep(1);
}

static void store_1(void *p)
{
    bide_atomic_store(&((state *)p)->word, 1, relaxed);
}

/* ---- */

static void assert_crash_of(bide_check_scenario s, const char *says)
{
    bide_check_result r, again;
    s.name = says;
    s.size = sizeof(state);
    assert_int_equal(bide_check_explore(&s, &r), BIDE_CHECK_CRASH);
    print_message("%s\n%s%s\n", r.message, r.trace, r.replay);
    assert_non_null(strstr(r.message, says));
    assert_int_equal(bide_check_replay(&s, r.replay, &again), BIDE_CHECK_CRASH);
    assert_string_equal(again.message, r.message);
    assert_string_equal(again.trace, r.trace);
    assert_string_equal(again.replay, r.replay);
    bide_check_result_free(&again);
    bide_check_result_free(&r);
}

static void assert_crash(void (*function)(void *), const char *says)
{
    assert_crash_of((bide_check_scenario){.threads = {function, store_1}}, says);
    assert_crash_of((bide_check_scenario){.threads = {store_1, function}}, says);
    assert_crash_of((bide_check_scenario){.setup = store_1, .threads = {function}}, says);
    assert_crash_of((bide_check_scenario){.threads = {store_1}, .finish = function}, says);
}

static void a_signal_is_a_finding(void **unused)
{
    (void)unused;
    assert_crash(use_null, "crashes: it uses address 0, at ");
    assert_crash(call_null, "crashes: it uses address 0, at ");
    assert_crash(use_null_atomically, "crashes: it uses address 0, at ");
    assert_crash(trap, "crashes, by signal ");
#if defined __x86_64__
    assert_crash(divide, "crashes, by signal 8, at ");
#endif
}

static void an_abort_is_a_finding(void **unused)
{
    (void)unused;
    assert_crash(abort_at_once, "aborts, at ");
    assert_crash(assert_0, "aborts, at ");
}

static void an_exit_is_a_finding(void **unused)
{
    (void)unused;
    assert_crash(exit_0, "calls exit, at ");
}

static void a_stack_that_is_used_up_is_a_finding(void **unused)
{
    (void)unused;
    assert_crash(use_a_megabyte, "uses more than its stack of 256 KiB");
    assert_crash(recurse_for_ever, "uses more than its stack of 256 KiB");
    bide_check_scenario s = {.name = "larger",
                             .size = sizeof(state),
                             .threads = {use_a_megabyte, store_1},
                             .stack_size = 1200 << 10};
    bide_check_result r;
    assert_int_equal(bide_check_explore(&s, &r), BIDE_CHECK_NOTHING);
    bide_check_result_free(&r);
    s.threads[0] = recurse_for_ever;
    assert_int_equal(bide_check_explore(&s, &r), BIDE_CHECK_CRASH);
    assert_non_null(strstr(r.message, "its stack of 1216 KiB"));
    bide_check_result_free(&r);
}

static volatile sig_atomic_t seen;

static void see(int signal)
{
    seen = signal;
}

static void outside_scenarios_signals_are_the_programs_own(void **unused)
{
    (void)unused;
    struct sigaction mine = {.sa_handler = see}, now;
    sigaction(SIGTRAP, &mine, NULL);
    assert_crash(use_null, "crashes");
    raise(SIGTRAP);
    assert_int_equal(seen, SIGTRAP);
    sigaction(SIGTRAP, NULL, &now);
    assert_ptr_equal(now.sa_handler, see);
    signal(SIGTRAP, SIG_DFL);
}

/* Runs in a process of its own; returns its output and status. */
static int run(const bide_check_scenario *scenario, char *said, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char name[] = "program", *argv[] = {name, NULL};
        const bide_check_scenario *all[] = {scenario, NULL};
        dup2(ends[1], 1);
        exit(bide_check_main(1, argv, &(bide_check_suite){.scenarios = all}));
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], said + length, size - 1 - length)) > 0;)
        length += (size_t)n;
    said[length] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_program_whose_scenario_crashes_fails_and_tells_how(void **unused)
{
    (void)unused;
    static char said[1 << 14];
    void (*const all[])(void *) = {use_null, abort_at_once, assert_0, exit_0, recurse_for_ever};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bide_check_scenario s = {
            .name = "crashing", .size = sizeof(state), .threads = {all[i], store_1}};
        assert_int_equal(run(&s, said, sizeof said), 1);
        assert_non_null(strstr(said, "crash (not nothing)"));
        assert_non_null(strstr(said, "  thread 2  store ((state *)p)->word = 1 (relaxed)"));
        assert_non_null(strstr(said, "to replay it: --replay '2 1' crashing"));
        s.expected = BIDE_CHECK_CRASH;
        assert_int_equal(run(&s, said, sizeof said), 0);
    }
}

/* ---- What does not return, with a limit of time ---- */

static void run_for_ever(void *p)
{
    for (volatile uint32_t seen_there = load(p); seen_there == 1;)
        ;
}

static void read_for_ever(void *p)
{
    if (load(p) == 1) {
        while (((const volatile state *)p)->pointer == NULL)
            ;
    }
}

static void wait_for_the_system(void *p)
{
    if (load(p) == 1) {
        for (;;)
            pause();
    }
}

static void what_does_not_return_is_a_finding_if_the_time_is_limited(void **unused)
{
    (void)unused;
    void (*const all[])(void *) = {run_for_ever, read_for_ever, wait_for_the_system};
    struct sigaction mine = {.sa_handler = see}, now;
    sigaction(SIGALRM, &mine, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const bide_check_scenario s = {.name = "endless",
                                       .size = sizeof(state),
                                       .threads = {all[i], store_1},
                                       .max_seconds = 0.1};
        bide_check_result r, again;
        assert_int_equal(bide_check_explore(&s, &r), BIDE_CHECK_LIVELOCK);
        print_message("%s\n%s%s\n", r.message, r.trace, r.replay);
        assert_non_null(strstr(r.message, "thread 1 does not return: it makes no step"));
        assert_int_equal(bide_check_replay(&s, r.replay, &again), BIDE_CHECK_LIVELOCK);
        assert_string_equal(again.trace, r.trace);
        bide_check_result_free(&again);
        bide_check_result_free(&r);
    }
    sigaction(SIGALRM, NULL, &now);
    assert_ptr_equal(now.sa_handler, see);
    signal(SIGALRM, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_a_finding),
        cmocka_unit_test(an_abort_is_a_finding),
        cmocka_unit_test(an_exit_is_a_finding),
        cmocka_unit_test(a_stack_that_is_used_up_is_a_finding),
        cmocka_unit_test(outside_scenarios_signals_are_the_programs_own),
        cmocka_unit_test(a_program_whose_scenario_crashes_fails_and_tells_how),
        cmocka_unit_test(what_does_not_return_is_a_finding_if_the_time_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
