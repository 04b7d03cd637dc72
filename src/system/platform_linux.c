/*
 * The platform table for Linux: futexes, the monotonic clock, membarrier. Any thread may call its
 * functions.
 */
#define _GNU_SOURCE
#include "bide/extend/fence.h"
#include "bide/platform.h"

#include "../coroutine/flights.h"
#include "fork.h"
#include "print_misuse.h"
#include "timer_service.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* For calls without a timeout, either call will do. */
#if defined SYS_futex
#define FUTEX_CALL SYS_futex
#else
#define FUTEX_CALL SYS_futex_time64
#endif

/* The bitset form of the wait takes an absolute time on the monotonic clock. */
static long futex_wait(long call, void *word, uint32_t expected, const void *timeout)
{
    return syscall(call, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, timeout, NULL,
                   FUTEX_BITSET_MATCH_ANY);
}

/*
 * Sleeps until `deadline`, whatever the size of time_t. 32-bit systems have two calls: one with 64 bits
 * of seconds (Linux 5.1), and one with a long, for older kernels. A deadline beyond the range of the
 * latter means forever.
 */
static long futex_wait_until(void *word, uint32_t expected, uint64_t deadline)
{
    uint64_t seconds = deadline / 1000000000u;
    uint32_t nanoseconds = (uint32_t)(deadline % 1000000000u);
#if defined SYS_futex_time64
    const int64_t at_64[2] = {(int64_t)seconds, (int64_t)nanoseconds};
    long r = futex_wait(SYS_futex_time64, word, expected, at_64);
    if (r == 0 || errno != ENOSYS)
        return r;
#endif
#if defined SYS_futex
    const long at[2] = {(long)seconds, (long)nanoseconds};
    return futex_wait(SYS_futex, word, expected, seconds > LONG_MAX ? NULL : at);
#else
    return r;
#endif
}

static int linux_wait(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    long r = deadline == BIDE_FOREVER ? futex_wait(FUTEX_CALL, word, expected, NULL)
                                      : futex_wait_until(word, expected, deadline);
    /* EAGAIN (the word has changed) and EINTR are spurious returns. */
    return r < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

static void linux_wake(bide_atomic(uint32_t) * word, uint32_t count)
{
    int n = count > INT32_MAX ? INT32_MAX : (int)count;
    syscall(FUTEX_CALL, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, n, NULL, NULL, 0);
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

static int linux_membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0 ? 0 : -errno;
}

/*
 * Linux 4.14. A process may register more than once; the child of a fork inherits the registration.
 */
static int linux_barrier(void)
{
    int error = linux_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    if (error == -EPERM && linux_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0)
        error = linux_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    return error;
}

#if BIDE_FLIGHTS_
static void *linux_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static void linux_unmap(void *memory, size_t size)
{
    munmap(memory, size);
}
#endif

/*
 * Registering for the fence takes microseconds while the program has one thread, and tens of milliseconds
 * later. Light fences are full fences until a heavy one has succeeded.
 */
__attribute__((constructor)) static void linux_init(void)
{
    bide_clock_began_ = linux_now();
    bide_atomic_fence_heavy();
    bide_survive_forks_();
    bide_offer_timer_service_();
#if BIDE_FLIGHTS_
    bide_flights_use_(linux_map, linux_unmap);
#endif
}

const bide_platform_table bide_platform = {linux_wait,  linux_wake,   linux_now,
                                           linux_yield, print_misuse, linux_barrier};
