/*
 * The platform table for WebAssembly under WASI, which has one thread: clocks and sleeps. (absent.c
 * has what is not there.)
 *
 * 1. While a thread sleeps no other one changes the word. So a sleep ends when its deadline comes,
 *    and one without a deadline never: that is misuse, which is reported.
 */
#define _GNU_SOURCE
#include "bide/errors.h"
#include "bide/platform.h"

#include "print_misuse.h"
#include "processors.h"

#include <errno.h>
#include <time.h>

static uint64_t wasi_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int wasi_wait(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    if (bide_atomic_load(word, relaxed) != expected) /* relaxed: of this thread */
        return 0;
    if (deadline == BIDE_FOREVER) /* 1 */
        print_misuse("the only thread sleeps for ever", "bide_platform.wait", __FILE__, __LINE__);
    for (uint64_t now = wasi_now(); now < deadline; now = wasi_now()) {
        uint64_t left = deadline - now;
        struct timespec span = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        if (nanosleep(&span, NULL) != 0)
            return 0; /* a spurious return */
    }
    return -ETIMEDOUT;
}

static void wasi_wake(bide_atomic(uint32_t) * word, uint32_t count)
{
    (void)word;
    (void)count;
}

static void wasi_yield(void)
{
}

const bide_platform_table bide_platform = {wasi_wait,  wasi_wake,    wasi_now,
                                           wasi_yield, print_misuse, NULL};

unsigned bide_processors_(void)
{
    return 1;
}
