/*
 * The platform table for Windows, 64 bits: a thread sleeps on a word by WaitOnAddress, the clock is
 * the performance counter, and FlushProcessWriteBuffers is the heavy fence. The library's threads,
 * locks and conditions. Any thread may call its functions.
 *
 * 1. WaitOnAddress and the waker's WakeByAddress compare addresses alone, as a futex does: a waker
 *    may come after the word's memory has gone.
 * 2. A timeout is in milliseconds and may come early: so the time is compared, and the sleep is
 *    made again.
 * 3. A thread's handle is closed by whoever joins it. pthread_self() has no handle, and is only
 *    compared.
 */
#define _WIN32_WINNT 0x0602 /* Windows 8 */
#include "bide/errors.h"
#include "bide/extend/fence.h"
#include "bide/platform.h"

#include "../coroutine/flights.h"
#include "print_misuse.h"
#include "processors.h"
#include "threads.h"
#include "timer_service.h"

#include <process.h>
#include <stdlib.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

BIDE_STATIC_ASSERT(sizeof(bide_system_lock_) == sizeof(SRWLOCK), "a lock is an SRWLOCK");
BIDE_STATIC_ASSERT(sizeof(bide_system_condition_) == sizeof(CONDITION_VARIABLE),
                   "a condition is a CONDITION_VARIABLE");

/* ---- The table ---- */

static uint64_t windows_now(void)
{
    static const uint64_t second = 1000000000u;
    LARGE_INTEGER count, frequency;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency); /* (constant) */
    uint64_t ticks = (uint64_t)count.QuadPart, of_a_second = (uint64_t)frequency.QuadPart;
    return ticks / of_a_second * second + ticks % of_a_second * second / of_a_second;
}

static int windows_wait(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    DWORD span = INFINITE;
    if (deadline != BIDE_FOREVER) {
        static const uint64_t longest = 86400000;
        uint64_t now = windows_now();
        uint64_t left = deadline > now ? (deadline - now + 999999) / 1000000 : 0;
        span = (DWORD)(left < longest ? left : longest);
    }
    /* (without its qualifiers the word is what the call compares) */
    if (WaitOnAddress((volatile void *)(uintptr_t)word, &expected, sizeof expected, span))
        return 0;
    return deadline != BIDE_FOREVER && windows_now() >= deadline ? -ETIMEDOUT : 0; /* 2 */
}

static void windows_wake(bide_atomic(uint32_t) * word, uint32_t count)
{
    enum { MANY = 16 };
    void *address = (void *)(uintptr_t)word;
    if (count > MANY) {
        WakeByAddressAll(address);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        WakeByAddressSingle(address);
}

static void windows_yield(void)
{
    SwitchToThread();
}

static int windows_barrier(void)
{
    FlushProcessWriteBuffers();
    return 0;
}

#if BIDE_FLIGHTS_
static void *windows_map(size_t size)
{
    return VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

static void windows_unmap(void *memory, size_t size)
{
    (void)size;
    VirtualFree(memory, 0, MEM_RELEASE);
}
#endif

__attribute__((constructor)) static void windows_init(void)
{
    bide_clock_began_ = windows_now();
    bide_atomic_fence_heavy();
    bide_offer_timer_service_();
#if BIDE_FLIGHTS_
    bide_flights_use_(windows_map, windows_unmap);
#endif
}

const bide_platform_table bide_platform = {windows_wait,  windows_wake, windows_now,
                                           windows_yield, print_misuse, windows_barrier};

unsigned bide_processors_(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwNumberOfProcessors != 0 ? info.dwNumberOfProcessors : 1;
}

/* ---- Locks and conditions ---- */

void bide_windows_lock_(bide_system_lock_ *lock)
{
    AcquireSRWLockExclusive((SRWLOCK *)(void *)lock);
}

void bide_windows_unlock_(bide_system_lock_ *lock)
{
    ReleaseSRWLockExclusive((SRWLOCK *)(void *)lock);
}

void bide_windows_wait_(bide_system_condition_ *condition, bide_system_lock_ *lock)
{
    SleepConditionVariableSRW((CONDITION_VARIABLE *)(void *)condition, (SRWLOCK *)(void *)lock,
                              INFINITE, 0);
}

void bide_windows_wake_(bide_system_condition_ *condition)
{
    WakeConditionVariable((CONDITION_VARIABLE *)(void *)condition);
}

void bide_windows_wake_all_(bide_system_condition_ *condition)
{
    WakeAllConditionVariable((CONDITION_VARIABLE *)(void *)condition);
}

/* ---- Threads (threads.h) ---- */

bide_system_thread_ bide_windows_this_thread_(void)
{
    bide_system_thread_ this_thread = {NULL, GetCurrentThreadId()};
    return this_thread;
}

void bide_windows_join_(bide_system_thread_ thread)
{
    WaitForSingleObject(thread.handle, INFINITE);
    CloseHandle(thread.handle);
}

/* What a new thread is to call. The thread frees it. */
typedef struct windows_start {
    void *(*function)(void *);
    void *argument;
} windows_start;

static unsigned __stdcall windows_thread_main(void *begun)
{
    windows_start start = *(windows_start *)begun;
    free(begun);
    start.function(start.argument);
    return 0;
}

int bide_threads_start_one_(pthread_t *thread, size_t stack_size, void *(*function)(void *),
                            void *argument)
{
    unsigned number = 0;
    int error = bide_threads_check_stack_(stack_size);
    if (error != 0)
        return error;
    windows_start *start = malloc(sizeof *start);
    if (start == NULL)
        return -ENOMEM;
    start->function = function;
    start->argument = argument;
    uintptr_t handle = _beginthreadex(NULL, (unsigned)stack_size, windows_thread_main, start,
                                      STACK_SIZE_PARAM_IS_A_RESERVATION, &number);
    if (handle == 0) {
        free(start);
        return -EAGAIN;
    }
    thread->handle = (void *)handle;
    thread->number = number;
    return 0;
}

int bide_threads_check_stack_(size_t stack_size)
{
    return stack_size <= UINT32_MAX / 2 ? 0 : -EINVAL;
}

size_t bide_threads_stack_(uintptr_t *low)
{
    *low = 0;
    return 0;
}

/* (threads have no names here, and run where the system lets them) */
void bide_threads_name_this_(const char *name, unsigned number)
{
    (void)name;
    (void)number;
}

bool bide_threads_may_use_(unsigned processor)
{
    (void)processor;
    return false;
}

void bide_threads_keep_this_on_(unsigned processor)
{
    (void)processor;
}
