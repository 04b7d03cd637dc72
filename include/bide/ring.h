/*
 * A typed ring over the caller's memory, indexed by sequence. It holds elements and no positions: who may
 * use which slot is what sequencers and barriers say. Floor: queue.
 *
 *     struct record records[1024];
 *     bide_ring(struct record) ring;
 *     bide_ring_init(&ring, records, 1024);
 *     bide_ring_at(&ring, sequence)->length = 7;
 *
 * The count is a power of two, so that a slot is found by a mask and the sequence may wrap around.
 * None of these allocates, suspends or synchronises.
 */
#ifndef BIDE_RING_H
#define BIDE_RING_H

#include "bide/compiler.h"

BIDE_EXTERN_C_BEGIN

/* A ring of elements of `type`. Each use is a type of its own: give it a name by a typedef, or declare
 * one where it is used. */
#define bide_ring(type) \
    struct {            \
        type *slots;    \
        size_t mask;    \
    }

/* Is it a count that a ring can have: a power of two? */
BIDE_INLINE bool bide_ring_fits(size_t count)
{
    return count != 0 && (count & (count - 1)) == 0;
}

/*
 * Lays `ring` over `count` elements at `memory`, which stay the caller's and must outlive it. Returns
 * true, or false, with the ring unusable, if count is not a power of two.
 */
#define bide_ring_init(ring, memory, count) \
    ((ring)->slots = (memory), (ring)->mask = (size_t)(count)-1, bide_ring_fits((size_t)(count)))

/* The slot of `sequence`, a pointer to an element. */
#define bide_ring_at(ring, sequence) (&(ring)->slots[(size_t)(sequence) & (ring)->mask])

/* How many slots there are. */
#define bide_ring_size(ring) ((ring)->mask + 1)

BIDE_EXTERN_C_END

#endif
