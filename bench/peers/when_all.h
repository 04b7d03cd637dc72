/* The C++20 peer: awaiting many children at once. */
#ifndef BENCH_PEERS_WHEN_ALL_H
#define BENCH_PEERS_WHEN_ALL_H

#include <stddef.h>
#include <stdint.h>

#include "both.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each awaits so many children, whose results are (i & 0xff) for i in 0 .. children-1, so many times over.
 * Returns the sum of all results. */
struct peer_when_all {
    uint64_t (*ready)(size_t children, size_t times);      /* they complete at once */
    uint64_t (*suspending)(size_t children, size_t times); /* each waits for an event first */
};

extern const struct peer_when_all peer_when_all_gxx, peer_when_all_clang;

#ifdef __cplusplus
}
#endif

#endif
