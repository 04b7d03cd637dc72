/*
 * Which key is evicted when memory is short, as the policies of redis have it. "Least recently used" is approximated: it is the
 * one of EVICTION_SAMPLES keys at random that has not been used for the longest time; and "least frequently used" the one with
 * the smallest counter (uses.h).
 */
#ifndef KV_EVICTION_H
#define KV_EVICTION_H

#include "keyspace.h"

enum { EVICTION_SAMPLES = 10 };

enum eviction {
    EVICTION_VOLATILE_LRU,    /* of the keys with an expiry, one that is not used */
    EVICTION_VOLATILE_LFU,    /* ... one that is used rarely */
    EVICTION_VOLATILE_RANDOM, /* ... any */
    EVICTION_VOLATILE_TTL,    /* ... which expires first */
    EVICTION_ALL_LRU,         /* of all keys, one that is not used */
    EVICTION_ALL_LFU,         /* ... one that is used rarely */
    EVICTION_ALL_RANDOM,      /* ... any */
    EVICTION_NONE,
    EVICTION_POLICIES
};

/* Redis's names, in this order. */
extern const char *const eviction_names[EVICTION_POLICIES];

/* True if the policy needs counted uses. */
static inline bool eviction_counts_uses(enum eviction policy)
{
    return policy == EVICTION_VOLATILE_LFU || policy == EVICTION_ALL_LFU;
}

/* Parses a name. Returns false if it is none. */
bool eviction_read(struct bytes name, enum eviction *policy);

/*
 * Chooses a key, or returns NULL if there is none to be evicted. `draw` returns random numbers. Adds the number of steps to
 * *steps.
 */
struct entry *eviction_choose(const struct keyspace *keyspace, enum eviction policy,
                              uint64_t (*draw)(void *argument), void *argument, uint64_t *steps);

#endif
