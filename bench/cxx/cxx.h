/*
 * The benchmarks await, event, generator and ring as C++20 on bide (bide/bide.hpp), compiled with g++ and with clang as the
 * peers are (peers/both.h).
 */
#ifndef BENCH_CXX_CXX_H
#define BENCH_CXX_CXX_H

#include <stddef.h>
#include <stdint.h>

#include "../loops.h"
#include "../peers/both.h"

#ifdef __cplusplus
extern "C" {
/* Each compiler's code in a namespace of its own: the linker must not replace one's by the other's. */
#define bide    PEER(bide)
#define cppcoro PEER(cppcoro)
#endif

/* A task awaits a child n times. Returns the sum of the results, (int)(i & 0xff) for i in 0 .. n-1. */
struct cxx_await {
    uint64_t (*run)(uint64_t n);
};

/* Two tasks pass a turn by auto-reset events, on so many run loops. Returns the turns of the second. */
struct cxx_event {
    uint64_t (*run)(uint64_t round_trips, unsigned loops, enum bench_idling idling);
};

/* The sum of the numbers 0 .. n-1: of a body's, by bide::values; of cppcoro::generator's. */
struct cxx_generator {
    uint64_t (*values)(uint64_t n);
    uint64_t (*coroutine)(uint64_t n);
};

/* Sends the numbers 0 .. items-1 through a ring, claimed in batches. Returns the sum of what was received. */
struct cxx_ring {
    uint64_t (*run)(uint64_t items, size_t batch, unsigned loops);
};

extern const struct cxx_await cxx_await_gxx, cxx_await_clang;
extern const struct cxx_event cxx_event_gxx, cxx_event_clang;
extern const struct cxx_generator cxx_generator_gxx, cxx_generator_clang;
extern const struct cxx_ring cxx_ring_gxx, cxx_ring_clang;

#ifdef __cplusplus
}
#endif

#endif
