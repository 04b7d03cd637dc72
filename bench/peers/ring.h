/* The C++20 peer: a sequence barrier of cppcoro's kind, one producer and one consumer over a ring. */
#ifndef BENCH_PEERS_RING_H
#define BENCH_PEERS_RING_H

#include <stddef.h>
#include <stdint.h>

#include "both.h"

#ifdef __cplusplus
extern "C" {
#endif

struct peer_ring {
    /*
     * Sends the numbers 0 to items - 1, claimed in batches, through a ring of `size`, on this
     * thread; returns the sum of the received numbers. A woken party continues on the stack of the
     * publisher, or when the publisher has suspended.
     */
    uint64_t (*run_inline)(uint64_t items, size_t batch, size_t size);
    uint64_t (*run_queued)(uint64_t items, size_t batch, size_t size);
};

extern const struct peer_ring peer_ring_gxx, peer_ring_clang;

#ifdef __cplusplus
}
#endif

#endif
