/* The work of parties that contend for a mutex, while they hold it and between: for C and C++. */
#ifndef BENCH_MUTEX_CONTEST_H
#define BENCH_MUTEX_CONTEST_H

#include <stdint.h>

enum { MUTEX_PARTIES = 4 };

struct mutex_contest {
    unsigned outside; /* constant */
    int over;         /* atomic: 1 when the parties have to stop */
    /* under the mutex */
    unsigned last; /* the previous holder */
    uint64_t locks;
    uint64_t handovers; /* locks by another party than the previous holder */
};

static inline int mutex_contest_goes_on(const struct mutex_contest *contest)
{
    return !__atomic_load_n(&contest->over, __ATOMIC_RELAXED);
}

/* Work of party `who` while it holds the mutex. */
static inline void mutex_contest_inside(struct mutex_contest *contest, unsigned who)
{
    contest->handovers += contest->last != who;
    contest->last = who;
    contest->locks++;
}

/* Work without the mutex: `outside` steps, about a nanosecond each. */
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
