/*
 * The platform table for Linux: futexes, the monotonic clock.
 */
#define _GNU_SOURCE
#include "bide/platform.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int linux_wait(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    struct timespec at;
    struct timespec *timeout = NULL;
    if (deadline != BIDE_FOREVER) {
        at.tv_sec = (time_t)(deadline / 1000000000u);
        at.tv_nsec = (long)(deadline % 1000000000u);
        timeout = &at;
    }
    /* The bitset form takes an absolute time on the monotonic clock. */
    long r = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, timeout,
                     NULL, FUTEX_BITSET_MATCH_ANY);
    /* EAGAIN (the word has changed) and EINTR are returns "for no reason". */
    return r < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

static void linux_wake(bide_atomic(uint32_t) * word, uint32_t count)
{
    int n = count > INT32_MAX ? INT32_MAX : (int)count;
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, n, NULL, NULL, 0);
}

static uint64_t linux_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void linux_yield(void)
{
    sched_yield();
}

static void linux_misuse(const char *what, const char *where, const char *file, unsigned line)
{
    fprintf(stderr, "bide: %s: %s (%s:%u)\n", what, where, file, line);
    abort();
}

const bide_platform_table bide_platform = {linux_wait, linux_wake, linux_now, linux_yield,
                                           linux_misuse};
