/*
 * Coroutines of bide on a thread pool; the pools are kept from round to round, like other
 * libraries'.
 */
#ifndef BENCH_POOLS_H
#define BENCH_POOLS_H

#include "loops.h"

#include "bide/thread_pool.h"

enum { BENCH_POOL_THREADS = 2 };

/* A pool of `threads` threads, BENCH_POOL_THREADS at most: the same pool each time. */
bide_thread_pool *bench_pool(unsigned threads);

/* Runs the parties on the pool until all have finished. */
void bench_pool_run(bench_party *parties, size_t count, unsigned threads);

#endif
