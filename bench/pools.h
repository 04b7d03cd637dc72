/*
 * Coroutines of bide on a thread pool; the pools stay from round to round, as other libraries' do.
 */
#ifndef BENCH_POOLS_H
#define BENCH_POOLS_H

#include "loops.h"

#include "bide/thread_pool.h"

enum { BENCH_POOL_THREADS = 2 };

/* A pool of `threads` threads, at most BENCH_POOL_THREADS: the same each time. */
bide_thread_pool *bench_pool(unsigned threads);

/* Runs the parties on it until all have ended. */
void bench_pool_run(bench_party *parties, size_t count, unsigned threads);

#endif
