/*
 * Coroutines of bide on one run loop, or spread over two with a thread each; the calling thread
 * runs the first loop.
 */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include "bide/run_loop.h"
#include "bide/spawn.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_LOOPS = 2 };

/* A coroutine and its loop. */
typedef struct bench_party {
    bide_awaiter *awaiter;
    unsigned loop;
    bide_spawned spawned;
} bench_party;

/* An idle loop polls for a while before it sleeps, or sleeps at once. */
enum bench_idling { BENCH_LOOKS, BENCH_SLEEPS };

/* Runs the parties until all have finished. */
void bench_loops_run(bench_party *parties, size_t count, enum bench_idling idling);

#ifdef __cplusplus
}
#endif

#endif
