/*
 * The header that every test includes: cmocka and its prelude, and helpers that more than one test uses. Tests of the
 * core are built for bare metal too (bare_metal/), where TESTING_HOSTED is 0: then helpers that need threads,
 * processes, an allocator or a C library are left out.
 */
#ifndef BIDE_TESTING_H
#define BIDE_TESTING_H

#ifndef TESTING_HOSTED
#define TESTING_HOSTED __STDC_HOSTED__
#endif

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if TESTING_HOSTED
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#endif

#include <cmocka.h>

#if TESTING_HOSTED
/*
 * The seed of a stress test: BIDE_SEED from the environment, or a new one. Prints it (as a TAP comment), so that a
 * failure can be repeated.
 */
static inline uint64_t testing_seed(void)
{
    const char *given = getenv("BIDE_SEED");
    struct timespec now = {0};
    timespec_get(&now, TIME_UTC);
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0)
                                  : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    printf("# BIDE_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/*
 * The number of rounds of a stress test: the usual number, multiplied by BIDE_ROUNDS of the environment. BIDE_ROUNDS is
 * a number, "50", or a fraction, "1/4"; at least one round is done.
 */
static inline uint32_t rounds_of(uint32_t usual)
{
    const char *given = getenv("BIDE_ROUNDS");
    if (given == NULL)
        return usual;
    char *rest;
    uint64_t times = strtoull(given, &rest, 10);
    uint64_t share = *rest == '/' ? strtoull(rest + 1, NULL, 10) : 1;
    uint64_t rounds = usual * times / (share != 0 ? share : 1);
    return rounds == 0 ? 1 : rounds > UINT32_MAX ? UINT32_MAX : (uint32_t)rounds;
}

/*
 * The number of simultaneous waiters in tests in which each takes some stack if waking nests: 20,000, too many for a
 * small stack (small_stack.h) at the minimum size of a call, and a million in the long tests. A fraction in BIDE_ROUNDS
 * does not reduce it.
 */
static inline uint32_t crowd_of_waiters(void)
{
    static uint32_t crowd;
    if (crowd == 0) {
        enum { ENOUGH = 20000 };
        uint32_t rounds = rounds_of(ENOUGH);
        crowd = rounds < ENOUGH ? ENOUGH : rounds;
    }
    return crowd;
}

#endif

/* A small random generator: advances *state, and returns the next number of its sequence. */
static inline uint64_t testing_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* For functions that read arguments that were not passed, and only pass them on. */
#if defined __clang__
#define UNCHECKED_BY_MSAN __attribute__((no_sanitize("memory")))
#else
#define UNCHECKED_BY_MSAN
#endif

#endif
