/*
 * The core's interface to the system: a table of six functions, one for the whole program,
 * chosen when it is linked. Floor: base.
 *
 *     const bide_platform_table bide_platform = {
 *         .wait = ..., .wake = ..., .now = ..., .yield = ..., .misuse = ..., .barrier = ...,
 *     };
 *
 * bide's library brings the table for Linux; a program for bare metal defines its own. Any thread
 * may call any of the functions.
 */
#ifndef BIDE_PLATFORM_H
#define BIDE_PLATFORM_H

#include "bide/atomic.h"

BIDE_EXTERN_C_BEGIN

/* A time without end, where a deadline is asked for. */
#define BIDE_FOREVER UINT64_MAX

/*
 * Bytes of stack of each thread that the library starts, unless an option of its owner says otherwise. It
 * is the same with every C library; musl's own default is 128 KiB. The system provides the memory when the
 * stack is used. Another number is chosen when the library is compiled.
 */
#ifndef BIDE_THREAD_STACK
#define BIDE_THREAD_STACK ((size_t)8 << 20)
#endif

/* Durations in nanoseconds, the unit of all of the library's times. `n` is an integer. */
#define BIDE_NANOSECONDS(n)  ((uint64_t)(n))
#define BIDE_MICROSECONDS(n) ((uint64_t)(n)*UINT64_C(1000))
#define BIDE_MILLISECONDS(n) ((uint64_t)(n)*UINT64_C(1000000))
#define BIDE_SECONDS(n)      ((uint64_t)(n)*UINT64_C(1000000000))
#define BIDE_MINUTES(n)      ((uint64_t)(n)*UINT64_C(60000000000))
#define BIDE_HOURS(n)        ((uint64_t)(n)*UINT64_C(3600000000000))

typedef struct bide_platform_table {
    /*
     * Sleeps while *word == expected, until bide_platform.wake on the same address or until the
     * clock `now` has reached `deadline` (nanoseconds, or BIDE_FOREVER). Returns 0 or -ETIMEDOUT;
     * may return 0 for no reason, so the caller looks at *word again. The word may be the half of a
     * pointer-sized atomic that holds its low 32 bits.
     */
    int (*wait)(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline);

    /* Wakes up to `count` threads that sleep on `word`. Uses the address, never what it holds, so
     * the word may be gone by then: at worst a sleeper on a new word there wakes for no reason. */
    void (*wake)(bide_atomic(uint32_t) * word, uint32_t count);

    /* A monotonic clock in nanoseconds. */
    uint64_t (*now)(void);

    /* Lets another thread run. */
    void (*yield)(void);

    /* A caller broke a rule of the library: says so in one line (what; where: a function or a
     * coroutine, its file and line) and does not return. */
    void (*misuse)(const char *what, const char *where, const char *file, unsigned line);

    /* The caller, and every thread of the program that runs, passes a full fence between the call
     * and the return, which is 0; a negative errno if the system offers no such thing. NULL: it
     * does not. Where there is one processor and one address space, a function that returns 0 and
     * does nothing. See fence.h. */
    int (*barrier)(void);
} bide_platform_table;

extern const bide_platform_table bide_platform;

/* The clock when the process began; 0: not known. Written before main(). */
extern uint64_t bide_clock_began_;

/*
 * bide_platform.misuse, for a place that knows the C function it is in: where that is a step, which
 * the user has not written, the body that it is of is named. Does not return either.
 */
BIDE_COLD BIDE_NO_RETURN void bide_misuse_(const char *what, const char *function, const char *file,
                                           unsigned line);

/*
 * The arguments of bide_misuse_, for a macro that knows its caller: what was done, to which object
 * (as it is written there), and where.
 */
#define BIDE_MISUSE_(what, object) what ": " object, __func__, __FILE__, __LINE__

/*
 * BIDE_COUNT_IN_: `count`, which is from `min` to `max`, or it is misuse, which is reported where
 * BIDE_DEBUG is 1. BIDE_ROOM_AT_: how many elements `memory` has room for, if the compiler sees the
 * object that it points into; otherwise SIZE_MAX.
 */
BIDE_INLINE size_t bide_count_in_(size_t count, size_t min, size_t max, const char *what,
                                  const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(count < min || count > max))
        bide_misuse_(what, function, file, line);
    return count;
}

#if BIDE_DEBUG
#define BIDE_COUNT_IN_(count, min, max, what, object) \
    bide_count_in_((count), (min), (max), BIDE_MISUSE_(what, object))
#else
#define BIDE_COUNT_IN_(count, min, max, what, object) ((size_t)(count))
#endif
#if defined __GNUC__
#define BIDE_ROOM_AT_(memory)                         \
    (__builtin_object_size((memory), 0) == (size_t)-1 \
         ? (size_t)-1                                 \
         : __builtin_object_size((memory), 0) / sizeof *(memory))
#else
#define BIDE_ROOM_AT_(memory) ((size_t)-1)
#endif

/*
 * BIDE_DURATION_: `duration`, in nanoseconds, which is not negative, or it is misuse, which is reported
 * where BIDE_DEBUG is 1. Negative are those from 2^63 on, except BIDE_FOREVER. BIDE_NULL_FUNCTION_: the
 * report of a NULL that stands for a function which `name` needs.
 */
BIDE_INLINE uint64_t bide_duration_(uint64_t duration, const char *what, const char *function,
                                    const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(duration > UINT64_MAX / 2 && duration != BIDE_FOREVER))
        bide_misuse_(what, function, file, line);
    return duration;
}

#if BIDE_DEBUG
#define BIDE_DURATION_(duration, object) \
    bide_duration_((duration), BIDE_MISUSE_("a duration is negative", object))
#else
#define BIDE_DURATION_(duration, object) (duration)
#endif
#define BIDE_NULL_FUNCTION_(name) BIDE_MISUSE_("NULL is given for a function", name)

/*
 * The end of an object's life: does nothing; where BIDE_DEBUG is 1 it has `check` look whether the
 * object is in use, and report misuse with BIDE_MISUSE_(what, name).
 */
#if BIDE_DEBUG
#define BIDE_END_OF_LIFE_(check, object, what, name) check((object), BIDE_MISUSE_(what, name))
#else
#define BIDE_END_OF_LIFE_(check, object, what, name) ((void)(object))
#endif

/*
 * A claim of the library about itself. Where BIDE_DEBUG is 1, a false `condition` ends the program
 * through bide_platform.misuse with the claim and its place; elsewhere nothing is evaluated. The
 * condition has no side effects. It reads memory that its thread owns or values that are already
 * loaded: an atomic load would add an event to every execution that the model checker explores.
 * Threads: any. Progress: wait-free.
 */
#if BIDE_DEBUG
#define bide_assert(condition) \
    (BIDE_LIKELY(condition)    \
         ? (void)0             \
         : bide_misuse_("internal assertion failed: " #condition, __func__, __FILE__, __LINE__))
#else
#define bide_assert(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

BIDE_EXTERN_C_END

#endif
