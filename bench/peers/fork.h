/* The work of the benchmark `fork`, for its peers. */
#ifndef BENCH_PEERS_FORK_H
#define BENCH_PEERS_FORK_H

#include <stdint.h>

enum { FORK_N = 30, FORK_RESULT = 832040, FORK_CALLS = 2692537 };

#ifdef __cplusplus
extern "C" {
#endif

/* The number FORK_N by oneTBB, on so many threads. */
uint64_t peer_fork_tbb(unsigned threads);

/* The same by coroutines of C++20. */
uint64_t peer_fork_coroutines(unsigned threads);

#ifdef __cplusplus
}
#endif

#endif
