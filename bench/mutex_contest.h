/*
 * What those who contend for a mutex do while they have it, and between: in C and C++.
 */
#ifndef BENCH_MUTEX_CONTEST_H
#define BENCH_MUTEX_CONTEST_H

#include <stdint.h>

enum { MUTEX_PARTIES = 4 };

struct mutex_contest {
    unsigned outside; /* constant */
    int over;         /* atomic: 1 when the parties are to end */
    /* under the mutex */
    unsigned last; /* who had it last */
    uint64_t locks;
    uint64_t handovers; /* the locks of another than who had it before */
};

static inline int mutex_contest_goes_on(const struct mutex_contest *contest)
{
    return !__atomic_load_n(&contest->over, __ATOMIC_RELAXED);
}

/* While party `who` has it. */
static inline void mutex_contest_inside(struct mutex_contest *contest, unsigned who)
{
    contest->handovers += contest->last != who;
    contest->last = who;
    contest->locks++;
}

/* While it has it not: `outside` steps, about a nanosecond each. */
static inline void mutex_contest_outside(const struct mutex_contest *contest)
{
    uint64_t number = 88172645463325252U;
    for (unsigned i = 0; i < contest->outside; i++) {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
    }
    __asm__ volatile("" ::"r"(number));
}

#endif
