/* The C++20 peer: awaiting a child coroutine that completes at once. */
#ifndef BENCH_PEERS_TASK_H
#define BENCH_PEERS_TASK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Awaits a child task n times, on one thread. Returns the sum of the results, which is the sum of
 * (int)(i & 0xff) for i in 0 .. n-1.
 */
uint64_t peer_cxx_task_run(uint64_t n);

#ifdef __cplusplus
}
#endif

#endif
