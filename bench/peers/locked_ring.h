/* A bounded queue of numbers under one mutex, with two condition variables. */
#ifndef BENCH_PEERS_LOCKED_RING_H
#define BENCH_PEERS_LOCKED_RING_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct locked_ring {
    pthread_mutex_t lock;
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    uint64_t *slots;
    size_t capacity;
    size_t count;
    size_t head;    /* the oldest item */
    size_t pushers; /* threads waiting for room */
    size_t poppers; /* threads waiting for an item */
};

/* Returns 0, -EINVAL if the capacity is 0 or too large, -ENOMEM, or what else
 * pthread_mutex_init and pthread_cond_init report, as a negative errno value. */
int locked_ring_init(struct locked_ring *q, size_t capacity);

/* No thread may still be inside push or pop. */
void locked_ring_destroy(struct locked_ring *q);

/* Blocks until all n items are in; they may go in in parts. */
void locked_ring_push(struct locked_ring *q, const uint64_t *items, size_t n);

/* Blocks until there is an item, takes up to max, and returns the number taken. */
size_t locked_ring_pop(struct locked_ring *q, uint64_t *items, size_t max);

#endif
