/*
 * Sleeping on a word and waking by its address, with mutexes and condition variables alone: `wait` and `wake`
 * of the platform table (platform.h) where the system has no futex.
 */
#ifndef BIDE_SYSTEM_PARK_H
#define BIDE_SYSTEM_PARK_H

#include "bide/platform.h"

/* As bide_platform.wait. Threads: any. Progress: blocks. */
int bide_park_wait_(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline);

/* As bide_platform.wake. Threads: any, not in a signal handler. Progress: blocks for a moment, for a lock. */
void bide_park_wake_(bide_atomic(uint32_t) * word, uint32_t count);

/* In the child of a fork, before any other use: nothing sleeps, and no lock is held. */
void bide_park_in_child_(void);

#endif
