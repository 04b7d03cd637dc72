/* Conditions whose deadlines are of CLOCK_MONOTONIC, as bide's times are. */
#ifndef BIDE_SYSTEM_MONOTONIC_CONDITION_H
#define BIDE_SYSTEM_MONOTONIC_CONDITION_H

#include <pthread.h>
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

/* As pthread_cond_timedwait, until `time` of CLOCK_MONOTONIC. (macOS waits for a span, and knows no other clock.) */
static inline int wait_monotonic_condition(pthread_cond_t *condition, pthread_mutex_t *lock,
                                           const struct timespec *time)
{
#ifdef __APPLE__
    struct timespec now, span = {0, 1};
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t left =
        ((int64_t)time->tv_sec - now.tv_sec) * 1000000000 + (time->tv_nsec - now.tv_nsec);
    if (left > 0)
        span = (struct timespec){(time_t)(left / 1000000000), (long)(left % 1000000000)};
    return pthread_cond_timedwait_relative_np(condition, lock, &span);
#else
    return pthread_cond_timedwait(condition, lock, time);
#endif
}

#endif
