/*
 * A typed ring over the caller's memory, indexed by sequence. It holds elements and no positions: who may
 * use which slot is what sequencers and barriers say. Floor: queue.
 *
 *     struct record records[1024];
 *     bide_ring(struct record) ring;
 *     bide_ring_init(&ring, records, 1024);
 *     bide_ring_at(&ring, sequence)->length = 7;
 *     bide_ring_write(&ring, claim.first, batch, claim.count);
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

BIDE_INLINE size_t bide_ring_span_(size_t mask, size_t sequence, size_t count)
{
    size_t left = mask + 1 - (sequence & mask); /* up to the end of the memory */
    return count < left ? count : left;
}

/*
 * How many of `count` slots, at most all, from that of `sequence` on stand side by side in memory, where the ring does
 * not wrap; *start is set to point at the first. So a batch is one span or two, each an array:
 *
 *     struct record *records;
 *     for (size_t span; (span = bide_ring_span(&ring, first, count, &records)) != 0; first += span, count -= span)
 *         fill(records, span);
 */
#define bide_ring_span(ring, sequence, count, start) \
    (*(start) = bide_ring_at((ring), (sequence)),    \
     bide_ring_span_((ring)->mask, (size_t)(sequence), (size_t)(count)))

/* Copies `count` elements from the array `from` to the slots from that of `sequence` on. A statement; `ring`, `sequence`
 * and `from` are evaluated once for each. */
#define bide_ring_write(ring, sequence, from, count)                                      \
    do {                                                                                  \
        for (size_t bide_i_ = 0, bide_count_ = (count); bide_i_ < bide_count_; bide_i_++) \
            *bide_ring_at((ring), (size_t)(sequence) + bide_i_) = (from)[bide_i_];        \
    } while (0)

/* Copies `count` elements from the slots from that of `sequence` on to the array `to`. As above otherwise. */
#define bide_ring_read(ring, sequence, to, count)                                         \
    do {                                                                                  \
        for (size_t bide_i_ = 0, bide_count_ = (count); bide_i_ < bide_count_; bide_i_++) \
            (to)[bide_i_] = *bide_ring_at((ring), (size_t)(sequence) + bide_i_);          \
    } while (0)

BIDE_EXTERN_C_END

#endif
