/* The time, for reports. */
#ifndef BIDE_CHECK_SECONDS_H
#define BIDE_CHECK_SECONDS_H

#include <time.h>

static inline double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
