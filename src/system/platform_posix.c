/*
 * The platform table for POSIX: threads sleep on condition variables (park.c), the clock is the monotonic one, and
 * there is no barrier, so that all fences are full ones. Any thread may call its functions; `wake` takes a lock, so a
 * signal handler must not call it.
 *
 * -Dplatform=posix chooses it, on Linux too.
 */
#define _GNU_SOURCE
#include "bide/extend/fence.h"
#include "bide/platform.h"

#include "../coroutine/flights.h"
#include "fork.h"
#include "park.h"
#include "print_misuse.h"
#include "timer_service.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

static uint64_t posix_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void posix_yield(void)
{
    sched_yield();
}

#if BIDE_FLIGHTS_
static void *posix_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static void posix_unmap(void *memory, size_t size)
{
    munmap(memory, size);
}
#endif

/*
 * Handlers in the child run in the order of their registration. Those of bide_survive_forks_ may wake, so the lists are
 * made anew before. (ENOMEM is the only error; a child may then find a list's lock held.)
 */
__attribute__((constructor)) static void posix_init(void)
{
    bide_clock_began_ = posix_now();
    bide_atomic_fence_heavy();
    (void)pthread_atfork(NULL, NULL, bide_park_in_child_);
    bide_survive_forks_();
    bide_offer_timer_service_();
#if BIDE_FLIGHTS_
    bide_flights_use_(posix_map, posix_unmap);
#endif
}

const bide_platform_table bide_platform = {bide_park_wait_, bide_park_wake_, posix_now,
                                           posix_yield,     print_misuse,    NULL};
