/* Conditions whose deadlines are of CLOCK_MONOTONIC, as bide's times are. */
#ifndef BIDE_SYSTEM_MONOTONIC_CONDITION_H
#define BIDE_SYSTEM_MONOTONIC_CONDITION_H

#include <pthread.h>
#include <string.h>
#include <time.h>

static inline void init_monotonic_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    memset(&monotonic, 0, sizeof monotonic); /* the checker's init leaves it as it is */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

#endif
