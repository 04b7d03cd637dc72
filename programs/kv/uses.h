/*
 * When a key was used last, or how often it is used: 32 bits in its entry. Which of the two it is depends on the policy of eviction.
 * After the policy has changed, the bits of keys that are not used meanwhile have no meaning.
 *
 *     time         in steps of USES_STEP milliseconds
 *     frequency    the minute of the last use in the upper 24 bits (of which 16 are used), and a counter in the lower 8
 *
 * The counter is that of redis: a use increases it with a probability that is the lower the larger it is, and minutes without a use
 * decrease it. A new key begins at USES_FIRST, so that it is not evicted at once.
 */
#ifndef KV_USES_H
#define KV_USES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { USES_STEP = 64, USES_FIRST = 5, USES_MAX = 255 };

struct uses {
    bool are_counted;  /* the bits are a frequency */
    size_t log_factor; /* the larger, the more uses the counter needs */
    size_t decay_time; /* minutes without a use that decrease the counter by one; 0: it stays */
    uint64_t (*draw)(void *of); /* random numbers */
    void *draw_of;
    const void *
        last; /* the entry that the present command has used last: it counts once for each command */
};

/* The bits of a new entry. `now` is in milliseconds since 1970. */
uint32_t uses_begin(const struct uses *uses, int64_t now);

/* The bits of an entry that had `used`, and is used again. */
uint32_t uses_add(const struct uses *uses, uint32_t used, int64_t now);

/* The milliseconds since the use, in steps of USES_STEP; wrong after eight years. */
int64_t uses_idle_time(uint32_t used, int64_t now);

/* The counter as it is now. */
unsigned uses_frequency(const struct uses *uses, uint32_t used, int64_t now);

#endif
