/*
 * Positions in a ring of any capacity, as one word: which lap, which slot in it, and one bit that
 * is free. Floor: base.
 *
 *     | lap ...... | index ... | bit |
 *                  <---- < lap ---->
 *
 *     lap     a power of two: what one lap more adds to the word
 *     end     twice the capacity, at most lap: where the index goes back to 0
 *
 * Equal words are the same place in the same lap, so no slot need stay free to tell full from
 * empty. No capacity needs a division: a step is an addition, and a comparison at the wrap. The lap
 * wraps around with the word, after 2^62 steps or more; where words have 32 bits, 2^30. Part of
 * mpmc_ring.h.
 */
#ifndef BIDE_DETAIL_RING_POSITION_H
#define BIDE_DETAIL_RING_POSITION_H

#include "bide/compiler.h"

/* The bit of a position that is free: the queue is closed. */
#define BIDE_RING_CLOSED_ ((size_t)1)

/* Constant while the ring is shared; handed on by value, so that it is read once. */
typedef struct bide_ring_shape_ {
    size_t lap;
    size_t end;
} bide_ring_shape_;

/* `capacity` from 1 to a quarter of what a size_t holds. */
BIDE_INLINE bide_ring_shape_ bide_ring_shape_of_(size_t capacity)
{
    bide_ring_shape_ shape = {2, 2 * capacity};
    while (shape.lap < shape.end)
        shape.lap *= 2;
    return shape;
}

BIDE_INLINE size_t bide_ring_index_(bide_ring_shape_ shape, size_t position)
{
    return (position & (shape.lap - 1)) / 2;
}

/* The word with its lap alone. */
BIDE_INLINE size_t bide_ring_lap_(bide_ring_shape_ shape, size_t position)
{
    return position & ~(shape.lap - 1);
}

/* `count` slots further; at most the capacity. */
BIDE_INLINE size_t bide_ring_after_(bide_ring_shape_ shape, size_t position, size_t count)
{
    size_t in_lap = (position & (shape.lap - 1)) + 2 * count;
    return position + 2 * count + (in_lap >= shape.end ? shape.lap - shape.end : 0);
}

/*
 * How many slots from `from` on are before `to`, from 0 to the capacity. The two words were read
 * one after the other, so either may be too old by any distance. Either may be closed. For
 * statistics.
 */
BIDE_INLINE size_t bide_ring_about_(bide_ring_shape_ shape, size_t from, size_t to)
{
    size_t laps = bide_ring_lap_(shape, to) - bide_ring_lap_(shape, from);
    size_t behind = bide_ring_index_(shape, from), ahead = bide_ring_index_(shape, to);
    if (laps == 0)
        return ahead > behind ? ahead - behind : 0;
    if (laps > SIZE_MAX / 2)
        return 0;
    return laps == shape.lap && ahead < behind ? shape.end / 2 - (behind - ahead) : shape.end / 2;
}

#endif
