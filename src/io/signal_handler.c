/*
 * The signal handler of the library. signal.c has the argument; 1 and 6 below are its numbers.
 *
 * The handler runs on any thread, at any instruction. It reads `process`, counts, and posts a
 * semaphore, which a handler may do. All else here runs under the lock of signal.c.
 *
 * In place of the semaphore there is a pipe where the system has no eventfd: macOS has no semaphores of this
 * kind. Its posts are not counted: a wait takes all of them. The dispatcher looks at everything after a wait.
 */
#define _GNU_SOURCE
#include "signal_handler.h"

#include "bide/atomic.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "../base/thread_sanitizer.h"
#include "../system/descriptors.h"

static struct {
    bide_atomic(int) process; /* the process id, for 6; 0: not initialized */
#if BIDE_HAS_EVENTFD
    sem_t news;
#else
    int news, posted; /* the ends of the pipe */
#endif
    struct {
        bide_atomic(uint32_t) delivered; /* calls of the handler */
        struct sigaction before;
    } signals[SIGNAL_COUNT];
} signal_handlers;

bool bide_signal_handler_is_raised_(int number)
{
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof raised / sizeof raised[0]; i++) {
        if (raised[i] == number)
            return true;
    }
    return false;
}

/* ---- The handler ---- */

#if BIDE_HAS_EVENTFD

void bide_signal_handler_post_(void)
{
    sem_post(&signal_handlers.news);
}

#else

void bide_signal_handler_post_(void)
{
    (void)bide_descriptor_write_(signal_handlers.posted);
}

#endif

static void signal_handler_run(int number)
{
    int saved = errno;
    /* relaxed: stored before the handler was installed */
    if (getpid() == bide_atomic_load(&signal_handlers.process, relaxed)) {
        /* release: 1, partner is the load in bide_signal_handler_count_ */
        bide_atomic_fetch_add(&signal_handlers.signals[number].delivered, 1, release);
        bide_signal_handler_post_();
    } else { /* 6 */
        sigaction(number, &signal_handlers.signals[number].before, NULL);
        raise(number);
    }
    errno = saved;
}

uint32_t bide_signal_handler_count_(int number)
{
    /* acquire: partner is the handler's release */
    return bide_atomic_load(&signal_handlers.signals[number].delivered, acquire);
}

/* The dispatcher's sleep is bounded under ThreadSanitizer: thread_sanitizer.h. */
static int signal_handler_sleep(void)
{
#if !BIDE_HAS_EVENTFD
    struct pollfd polled = {signal_handlers.news, POLLIN, 0};
    if (poll(&polled, 1, BIDE_UNDER_TSAN_ ? BIDE_TSAN_SLEEP_MAX_ / 1000000 : -1) < 0)
        return -1;
    bide_descriptor_lower_(signal_handlers.news);
    return 0;
#elif BIDE_UNDER_TSAN_
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += BIDE_TSAN_SLEEP_MAX_;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return sem_timedwait(&signal_handlers.news, &until);
#else
    return sem_wait(&signal_handlers.news);
#endif
}

void bide_signal_handler_wait_(void)
{
    while (signal_handler_sleep() != 0) { /* interrupted */
    }
}

/* ---- Installation ---- */

static bool signal_action_is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == signal_handler_run;
}

static bool signal_action_is_free(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 &&
           (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN);
}

int bide_signal_handler_init_(void)
{
    if (bide_atomic_load(&signal_handlers.process, relaxed) != 0) /* relaxed: under the lock */
        return 0;
#if BIDE_HAS_EVENTFD
    if (sem_init(&signal_handlers.news, 0, 0) != 0)
        return -errno;
#else
    int fd = bide_descriptor_create_();
    if (fd < 0)
        return fd;
    signal_handlers.news = fd;
    signal_handlers.posted = bide_descriptor_writing_end_(fd);
#endif
    bide_atomic_store(&signal_handlers.process, getpid(),
                      relaxed); /* relaxed: the handler's load */
    return 0;
}

int bide_signal_handler_install_(int number)
{
    struct sigaction *before = &signal_handlers.signals[number].before;
    struct sigaction after = {.sa_handler = signal_handler_run,
                              .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&after.sa_mask);
    if (sigaction(number, NULL, before) != 0)
        return -errno;
    if (!signal_action_is_free(before))
        return -EBUSY;
    struct sigaction replaced;
    if (sigaction(number, &after, &replaced) != 0)
        return -errno;
    if (!signal_action_is_free(&replaced)) { /* another handler was installed in between */
        sigaction(number, &replaced, NULL);
        return -EBUSY;
    }
    *before = replaced;
    return 0;
}

bool bide_signal_handler_is_installed_(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && signal_action_is_ours(&now);
}

bool bide_signal_handler_was_ignored_(int number)
{
    const struct sigaction *before = &signal_handlers.signals[number].before;
    return (before->sa_flags & SA_SIGINFO) == 0 && before->sa_handler == SIG_IGN;
}

bool bide_signal_handler_restore_(int number)
{
    bool is_installed = bide_signal_handler_is_installed_(number);
    if (is_installed)
        sigaction(number, &signal_handlers.signals[number].before, NULL);
    return is_installed;
}

void bide_signal_handler_reset_(void)
{
    for (int number = 1; number < SIGNAL_COUNT; number++)
        bide_atomic_init(&signal_handlers.signals[number].delivered, 0);
#if !BIDE_HAS_EVENTFD
    if (bide_atomic_load(&signal_handlers.process, relaxed) != 0) /* relaxed: one thread */
        bide_descriptor_close_(signal_handlers.news);
#endif
    bide_atomic_init(&signal_handlers.process, 0);
}
