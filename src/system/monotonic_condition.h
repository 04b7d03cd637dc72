/* Conditions whose deadlines are of CLOCK_MONOTONIC, as bide's times are. */
#ifndef BIDE_SYSTEM_MONOTONIC_CONDITION_H
#define BIDE_SYSTEM_MONOTONIC_CONDITION_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static inline void init_monotonic_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    memset(&monotonic, 0, sizeof monotonic); /* the checker's init leaves it as it is */
    pthread_condattr_init(&monotonic);
#ifndef __APPLE__
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/*
 * Sets *span to what is left at `now` until `time`: a nanosecond at least, and a day at most.
 * Returns whether the day cut it short. (The seconds of a time may be any number: a span in
 * nanoseconds could overflow.)
 */
static inline bool monotonic_span(struct timespec *span, const struct timespec *time,
                                  const struct timespec *now)
{
    static const int64_t day = 86400;
    int64_t seconds = (int64_t)time->tv_sec - (int64_t)now->tv_sec;
    long nanoseconds = time->tv_nsec - now->tv_nsec;
    if (nanoseconds < 0) {
        nanoseconds += 1000000000;
        seconds--;
    }
    bool is_cut = seconds >= day;
    if (is_cut)
        *span = (struct timespec){(time_t)day, 0};
    else if (seconds < 0 || (seconds == 0 && nanoseconds == 0))
        *span = (struct timespec){0, 1};
    else
        *span = (struct timespec){(time_t)seconds, nanoseconds};
    return is_cut;
}

/*
 * As pthread_cond_timedwait, until `time` of CLOCK_MONOTONIC. (macOS waits for a span, and knows no
 * other clock. A wait of more than a day may end after a day, for no reason.)
 */
static inline int wait_monotonic_condition(pthread_cond_t *condition, pthread_mutex_t *lock,
                                           const struct timespec *time)
{
#ifdef __APPLE__
    struct timespec now, span;
    clock_gettime(CLOCK_MONOTONIC, &now);
    bool is_cut = monotonic_span(&span, time, &now);
    int error = pthread_cond_timedwait_relative_np(condition, lock, &span);
    return error == ETIMEDOUT && is_cut ? 0 : error;
#else
    return pthread_cond_timedwait(condition, lock, time);
#endif
}

#endif
