/*
 * Producers and consumers of bide over a ring of numbers, in a topology, on one run loop or spread
 * over two.
 *
 *     1-1      a producer, a consumer                       1-3      each consumer gets everything
 *     3-1      three producers, a consumer                  1-2-1    two consumers, and a third after both
 *
 * A producer claims and publishes one number at a time or in batches; a consumer consumes
 * everything that is published, like the Disruptor's. The sums of the consumed numbers are checked.
 */
#ifndef BENCH_RING_BIDE_H
#define BENCH_RING_BIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_RING = 16384 };

enum ring_topology { RING_1_1, RING_1_3, RING_3_1, RING_1_2_1 };

/* On one loop; producers on one and consumers on the other; or dealt in turn. */
enum ring_placement { RING_TOGETHER, RING_APART, RING_DEALT };

struct ring_setting {
    enum ring_topology topology;
    enum ring_placement placement;
    size_t batch;
    uint64_t items;
    bool spins; /* consumers spin before they wait: bide/adaptive_spin.h */
};

/* For bench_run: the argument is a struct ring_setting. */
uint64_t ring_bide_run(const void *setting);

#endif
