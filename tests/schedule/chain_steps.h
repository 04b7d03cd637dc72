/*
 * Included before src/coroutine/chain_cursor.h: counts the awaiters that are looked at, or passed, on all threads.
 */
#ifndef BIDE_TESTS_CHAIN_STEPS_H
#define BIDE_TESTS_CHAIN_STEPS_H

#include "bide/atomic.h"

#include <stddef.h>

extern bide_atomic(size_t) chain_steps;

#define BIDE_CHAIN_STEP_() ((void)bide_atomic_fetch_add(&chain_steps, 1, relaxed))

#endif
