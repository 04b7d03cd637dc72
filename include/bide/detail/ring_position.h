/*
 * Positions in a ring of any capacity, as one word: which lap, which slot in it, and bits that are
 * free. Floor: base.
 *
 *     | lap ...... | index ... | reserved | closed |
 *                  <-------- < lap --------------->
 *
 *     step      a power of two: what one slot more adds to the word
 *     lap       a power of two: what one lap more adds to the word
 *     end       the capacity in steps, at most lap: where the index goes back to 0
 *     reserved  how many slots from the position on are promised to holders of permits (channel.h)
 *     closed    the queue is closed
 *
 * The last two are in `tail` only. Equal words are the same place in the same lap, so no slot need
 * stay free to tell full from empty. No capacity needs a division: a step is an addition, and a
 * comparison at the wrap. The lap wraps around with the word, after 2^51 steps or more; where words
 * have 32 bits, 2^27. Part of mpmc_ring.h.
 */
#ifndef BIDE_DETAIL_RING_POSITION_H
#define BIDE_DETAIL_RING_POSITION_H

#include "bide/compiler.h"

#define BIDE_RING_CLOSED_       ((size_t)1)
#define BIDE_RING_RESERVED_ONE_ ((size_t)2)
#define BIDE_RING_STEP_         ((size_t)1 << (sizeof(size_t) > 4 ? 13 : 5))
#define BIDE_RING_BITS_         (BIDE_RING_STEP_ - 1)

/* How many slots may be reserved: 4095; where words have 32 bits, 15. */
#define BIDE_RING_MAX_RESERVED_ (BIDE_RING_BITS_ / BIDE_RING_RESERVED_ONE_)

/* Constant while the ring is shared; handed on by value, so that it is read once. */
typedef struct bide_ring_shape_ {
    size_t lap;
    size_t end;
} bide_ring_shape_;

/* `capacity` from 1 to SIZE_MAX / 4 / BIDE_RING_STEP_. */
BIDE_INLINE bide_ring_shape_ bide_ring_shape_of_(size_t capacity)
{
    bide_ring_shape_ shape = {BIDE_RING_STEP_, BIDE_RING_STEP_ * capacity};
    while (shape.lap < shape.end)
        shape.lap *= 2;
    return shape;
}

BIDE_INLINE size_t bide_ring_capacity_(bide_ring_shape_ shape)
{
    return shape.end / BIDE_RING_STEP_;
}

/* How many slots are reserved, by a tail. */
BIDE_INLINE size_t bide_ring_reserved_(size_t tail)
{
    return (tail & BIDE_RING_BITS_) / BIDE_RING_RESERVED_ONE_;
}

BIDE_INLINE size_t bide_ring_index_(bide_ring_shape_ shape, size_t position)
{
    return (position & (shape.lap - 1)) / BIDE_RING_STEP_;
}

/* The word with its lap alone. */
BIDE_INLINE size_t bide_ring_lap_(bide_ring_shape_ shape, size_t position)
{
    return position & ~(shape.lap - 1);
}

/* `count` slots further, at most the capacity; with the same bits. */
BIDE_INLINE size_t bide_ring_after_(bide_ring_shape_ shape, size_t position, size_t count)
{
    size_t in_lap = (position & (shape.lap - 1)) + BIDE_RING_STEP_ * count;
    return position + BIDE_RING_STEP_ * count + (in_lap >= shape.end ? shape.lap - shape.end : 0);
}

/*
 * How many slots from `from` on are before `to`, from 0 to the capacity. The two words were read
 * one after the other, so either may be too old by any distance. Bits do not count. For
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
    return laps == shape.lap && ahead < behind ? bide_ring_capacity_(shape) - (behind - ahead)
                                               : bide_ring_capacity_(shape);
}

#endif
