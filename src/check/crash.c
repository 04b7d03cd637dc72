/*
 * A signal handler, on a stack of its own, notes the crash and returns to the scheduler as if the
 * thread had left. It never returns to the crashed code, whose stack is reused by the next execution.
 * An exit() that is caught stays unfinished until the program itself exits.
 */
#define _GNU_SOURCE
#include "crash.h"

#include "execution.h"
#include "fiber.h"
#include "memory.h"
#include "source_location.h"

#include "bide/platform.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>

#if defined __has_include
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAS_BACKTRACE 1
#endif
#endif

extern char __executable_start[] __attribute__((weak));
extern char _end[] __attribute__((weak));

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
enum {
    SIGNALS = sizeof signals / sizeof *signals,
    EXIT = 0,
    NOTHING = -1,
    ALTERNATE_SIZE = 1 << 16
};

static struct sigaction before[SIGNALS];
static stack_t stack_before;
static unsigned depth;
static bool will_see_exit;

/* The crash that was noted: a signal, EXIT, or NOTHING. */
static int happened = NOTHING;
static uintptr_t accessed;
static const void *code; /* its return address, or the address after its instruction; or NULL */

static bool is_timed;
static struct sigaction alarm_before;
static uint64_t moves_seen;  /* at the last alarm */
static unsigned idle_alarms; /* in a row */
static double time_counted; /* processor time at the last alarm that was idle, or that saw a step */
static long sleeps_counted; /* and how often the process had slept */

/*
 * Returns the return address of the first caller, after `skipped` others, that belongs to the program
 * and not to a library. With `is_exact`, the first one was interrupted at an instruction and did not
 * call anything.
 */
static const void *program_caller(int skipped, bool is_exact)
{
#ifdef HAS_BACKTRACE
    void *callers[32];
    execution_enter_checker();
    int count = backtrace(callers, 32);
    execution_leave_checker();
    for (int i = skipped; i < count; i++) {
        char *c = callers[i];
        if (c >= __executable_start && c < _end)
            return i == skipped && is_exact ? c + 1 : c;
    }
#endif
    (void)skipped;
    (void)is_exact;
    return NULL;
}

static bool is_memory_fault(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS;
}

static void count_use(double *processor_time, long *sleeps)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    *processor_time = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                      (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    *sleeps = used.ru_nvcsw;
}

/*
 * True if the thread that runs has made no step between three alarms (one of them may be late). An alarm counts if the
 * process has had processor time since the last, or has slept, which is what a wait for the system does. On a loaded
 * machine it may have had neither.
 */
static bool is_stuck(void)
{
    double time;
    long sleeps;
    count_use(&time, &sleeps);
    bool has_moved = moves_seen != the_execution.moves || !execution_is_running();
    moves_seen = the_execution.moves;
    if (!has_moved && time - time_counted < 0.5 && sleeps == sleeps_counted)
        return false;
    time_counted = time;
    sleeps_counted = sleeps;
    idle_alarms = has_moved ? 0 : idle_alarms + 1;
    return idle_alarms == 2;
}

static void note_alarm(int signal)
{
    if (!is_stuck())
        return;
    happened = signal;
    code = program_caller(2, true);
    fiber_abandon();
}

static void note_signal(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (!execution_is_running()) {
        /* Not in a scenario: the program's own handler gets the signal. */
        for (unsigned i = 0; i < SIGNALS; i++) {
            if (signals[i] == signal)
                sigaction(signal, &before[i], NULL);
        }
        if (info->si_code <= 0) /* it was sent, so it is not repeated on return */
            raise(signal);
        return;
    }
    happened = signal;
    accessed = is_memory_fault(signal) ? (uintptr_t)info->si_addr : 0;
    /* Skip the frames of the handler and of the system's call of it. */
    code = is_memory_fault(signal) && memory_is_below_stack(accessed)
               ? NULL
               : program_caller(2, signal != SIGABRT);
    fiber_abandon();
}

static void note_exit(void)
{
    if (!execution_is_running())
        return;
    will_see_exit = false;
    happened = EXIT;
    code = program_caller(1, false);
    fiber_abandon();
}

/* Begins the alarms, one a second after `seconds`. */
static void begin_alarms(double seconds)
{
    struct itimerval timer = {.it_interval = {1, 0}, .it_value = {(time_t)seconds + 1, 0}};
    struct sigaction action = {.sa_handler = note_alarm};
    action.sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, &alarm_before);
    moves_seen = the_execution.moves;
    idle_alarms = 0;
    count_use(&time_counted, &sleeps_counted);
    is_timed = true;
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void end_alarms(void)
{
    const struct itimerval never = {0};
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &alarm_before, NULL);
    is_timed = false;
}

void crash_begin(double seconds)
{
    static _Alignas(16) char alternate[ALTERNATE_SIZE];
    if (depth++ != 0)
        return;
#ifdef HAS_BACKTRACE
    void *one[1];
    backtrace(one, 1); /* loads the libraries that it needs now, not in the handler */
#endif
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, &stack_before);
    for (unsigned i = 0; i < SIGNALS; i++) {
        struct sigaction action = {.sa_sigaction = note_signal};
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        sigaction(signals[i], &action, &before[i]);
    }
    if (!will_see_exit)
        will_see_exit = atexit(note_exit) == 0;
    if (seconds > 0)
        begin_alarms(seconds);
}

void crash_end(void)
{
    bide_assert(depth != 0 && happened == NOTHING);
    if (--depth != 0)
        return;
    if (is_timed)
        end_alarms();
    for (unsigned i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
    sigaltstack(&stack_before, NULL);
}

static const char *thread_label(unsigned thread, char text[24])
{
    if (thread == SETUP || thread == LAST)
        return thread == SETUP ? "the set-up" : "the final check";
    snprintf(text, 24, "thread %u", thread);
    return text;
}

bool crash_report(unsigned thread, const bide_check_site_ *at)
{
    if (happened == NOTHING)
        return false;
    char text[24];
    const char *who = thread_label(thread, text);
    char where[256] = "an unknown place";
    int what = happened;
    happened = NOTHING;
    if (at != NULL)
        source_location_describe(at, where, sizeof where);
    else if (code != NULL)
        source_location_describe_code(code, where, sizeof where);
    if (what == EXIT)
        execution_found(BIDE_CHECK_CRASH, "%s calls exit, at %s", who, where);
    else if (is_memory_fault(what) && memory_is_below_stack(accessed))
        execution_found(BIDE_CHECK_CRASH, "%s uses more than its stack of %zu KiB (see stack_size)",
                        who, memory_stack_size() / 1024);
    else if (is_memory_fault(what))
        execution_found(BIDE_CHECK_CRASH, "%s crashes: it uses address %#zx, at %s", who,
                        (size_t)accessed, where);
    else if (what == SIGALRM)
        execution_found(BIDE_CHECK_LIVELOCK,
                        "%s does not return: it makes no step that the checker sees, at %s", who,
                        where);
    else if (what == SIGABRT)
        execution_found(BIDE_CHECK_CRASH, "%s aborts, at %s", who, where);
    else
        execution_found(BIDE_CHECK_CRASH, "%s crashes, by signal %d, at %s", who, what, where);
    return true;
}
