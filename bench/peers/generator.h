/* The C++20 peer: a generator of the numbers 0 .. n-1. */
#ifndef BENCH_PEERS_GENERATOR_H
#define BENCH_PEERS_GENERATOR_H

#include <stdint.h>

#include "both.h"

#ifdef __cplusplus
extern "C" {
#endif

struct peer_generator {
    uint64_t (*sum)(uint64_t n); /* of what it yields */
};

extern const struct peer_generator peer_generator_gxx, peer_generator_clang;

#ifdef __cplusplus
}
#endif

#endif
