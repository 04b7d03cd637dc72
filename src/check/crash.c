/*
 * A handler, on a stack of its own, notes what has happened and goes back to the scheduler, as if
 * the thread had left. It never returns to what crashed: its stack is used anew in the next
 * execution. What exit() had begun to do stays undone until the program itself ends.
 */
#define _GNU_SOURCE
#include "crash.h"

#include "execution.h"
#include "fiber.h"
#include "memory.h"
#include "source_location.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

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

/* What has happened: a signal, or EXIT. */
static int happened = NOTHING;
static uintptr_t accessed;
static const void *code; /* where, if that is known: behind the call or the instruction */

/*
 * The first of the callers that is part of the program, and not of a library, behind the first
 * `skipped`: the place behind its call. The first may have called nobody, but been interrupted
 * (`is_exact`) at an instruction.
 */
static const void *caller(int skipped, bool is_exact)
{
#ifdef HAS_BACKTRACE
    void *callers[32];
    int count = backtrace(callers, 32);
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

static bool is_access(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS;
}

static void note_signal(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (!execution_is_running()) {
        /* Not ours: to whom it would have gone. */
        for (unsigned i = 0; i < SIGNALS; i++) {
            if (signals[i] == signal)
                sigaction(signal, &before[i], NULL);
        }
        if (info->si_code <= 0) /* it was sent, and does not come again by itself */
            raise(signal);
        return;
    }
    happened = signal;
    accessed = is_access(signal) ? (uintptr_t)info->si_addr : 0;
    /* The handler, and how the system calls it, are not where it happened. */
    code =
        is_access(signal) && memory_is_below_stack(accessed) ? NULL : caller(2, signal != SIGABRT);
    fiber_abandon();
}

static void note_exit(void)
{
    if (!execution_is_running())
        return;
    will_see_exit = false;
    happened = EXIT;
    code = caller(1, false);
    fiber_abandon();
}

void crash_begin(void)
{
    static _Alignas(16) char alternate[ALTERNATE_SIZE];
    if (depth++ != 0)
        return;
#ifdef HAS_BACKTRACE
    void *one[1];
    backtrace(one, 1); /* what it needs is loaded now, not in the handler */
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
}

void crash_end(void)
{
    if (--depth != 0)
        return;
    for (unsigned i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
    sigaltstack(&stack_before, NULL);
}

static const char *name_of(unsigned thread, char text[24])
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
    const char *who = name_of(thread, text);
    char where[256] = "a place that is not known";
    int what = happened;
    happened = NOTHING;
    if (at != NULL)
        site_describe(at, where, sizeof where);
    else if (code != NULL)
        site_describe_code(code, where, sizeof where);
    if (what == EXIT)
        execution_found(BIDE_CHECK_CRASH, "%s calls exit, at %s", who, where);
    else if (is_access(what) && memory_is_below_stack(accessed))
        execution_found(BIDE_CHECK_CRASH, "%s uses more than its stack of %zu KiB (see stack_size)",
                        who, memory_stack_size() / 1024);
    else if (is_access(what))
        execution_found(BIDE_CHECK_CRASH, "%s crashes: it uses address %#zx, at %s", who,
                        (size_t)accessed, where);
    else if (what == SIGABRT)
        execution_found(BIDE_CHECK_CRASH, "%s aborts, at %s", who, where);
    else
        execution_found(BIDE_CHECK_CRASH, "%s crashes, by signal %d, at %s", who, what, where);
    return true;
}
