/* The C++20 peer: tasks that wait for one event. */
#ifndef BENCH_PEERS_MEMORY_H
#define BENCH_PEERS_MEMORY_H

#include "../waiting_tasks.h"
#include "both.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct waiting_tasks peer_memory_gxx, peer_memory_clang;

/* The number of bytes requested from operator new. */
extern size_t peer_new_bytes;

#ifdef __cplusplus
}
#endif

#endif
