/*
 * A typed ring over the caller's memory, indexed by sequence. It holds elements and no positions:
 * which slots may be used, and by which thread, is what sequencers and barriers say. Floor: queue.
 *
 *     struct record records[1024];
 *     bide_ring(struct record) ring;
 *     bide_ring_init(&ring, records, 1024);
 *     bide_ring_at(&ring, sequence)->length = 7;
 *     bide_ring_write(&ring, claim.first, batch, claim.count);
 *
 * Any thread may use any of these on slots that are its own by a claim or a wait. They do not
 * suspend, allocate or synchronise, cannot fail, and are wait-free: an index, or a copy of so many
 * elements.
 *
 * The count is a power of two, so that a slot is found by a mask and the sequence may wrap around.
 */
#ifndef BIDE_RING_H
#define BIDE_RING_H

#include "bide/platform.h"

BIDE_EXTERN_C_BEGIN

/*
 * A ring of elements of `type`. Each use is a type of its own: give it a name by a typedef, or
 * declare one where it is used.
 */
#define bide_ring(type) \
    struct {            \
        type *slots;    \
        size_t mask;    \
    }

/*
 * Whether a ring can have `count` elements: it is a power of two.
 * Threads: any. Errors: none. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE bool bide_ring_fits(size_t count)
{
    return count != 0 && (count & (count - 1)) == 0;
}

/*
 * bide_ring_init(ring, memory, count): lays `ring` over `count` elements at `memory`, which stay
 * the caller's and must outlive it. Returns true; or false, with the ring unusable, if count is not
 * a power of two. Memory that is smaller is misuse, which is reported where BIDE_DEBUG is 1 and the
 * compiler sees the array.
 * Threads: before it is shared. Suspends: never. Progress: wait-free.
 */
#define bide_ring_init(ring, memory, count)                                                   \
    ((ring)->slots = (memory),                                                                \
     (ring)->mask =                                                                           \
         BIDE_COUNT_IN_((size_t)(count), 0,                                                   \
                        bide_ring_fits((size_t)(count)) ? BIDE_ROOM_AT_(memory) : (size_t)-1, \
                        "a ring's memory is smaller than its size", #ring) -                  \
         1,                                                                                   \
     bide_ring_fits((size_t)(count)))

/*
 * bide_ring_at(ring, sequence): the slot of `sequence`, a pointer to an element.
 * Threads: any, on slots that are its own by a claim or a wait. Errors: none. Suspends: never.
 * Progress: wait-free.
 */
#define bide_ring_at(ring, sequence) (&(ring)->slots[(size_t)(sequence) & (ring)->mask])

/*
 * bide_ring_size(ring): how many slots there are.
 * Threads: any. Errors: none. Suspends: never. Progress: wait-free.
 */
#define bide_ring_size(ring) ((ring)->mask + 1)

BIDE_INLINE size_t bide_ring_span_(size_t mask, size_t sequence, size_t count)
{
    size_t left = mask + 1 - (sequence & mask); /* up to the end of the memory */
    return count < left ? count : left;
}

/*
 * bide_ring_span(ring, sequence, count, start): how many of `count` slots, at most all, stand side
 * by side in memory, from that of `sequence` to where the ring wraps; *start is set to point at the
 * first. So a batch is one span or two, each an array:
 *
 *     struct record *records;
 *     size_t span;
 *     while ((span = bide_ring_span(&ring, first, count, &records)) != 0) {
 *         fill(records, span);
 *         first += span, count -= span;
 *     }
 *
 * Threads: any, on slots that are its own by a claim or a wait. Errors: none. Suspends: never.
 * Progress: wait-free.
 */
#define bide_ring_span(ring, sequence, count, start) \
    (*(start) = bide_ring_at((ring), (sequence)),    \
     bide_ring_span_((ring)->mask, (size_t)(sequence), (size_t)(count)))

/*
 * bide_ring_write(ring, sequence, from, count): copies `count` elements from the array `from` to
 * the slots from that of `sequence` on. A statement; `ring`, `sequence` and `from` are evaluated
 * once for each element.
 * Threads: any, on slots that are its own by a claim or a wait. Errors: none. Suspends: never.
 * Progress: wait-free: a copy of so many elements.
 */
#define bide_ring_write(ring, sequence, from, count)                                      \
    do {                                                                                  \
        for (size_t bide_i_ = 0, bide_count_ = (count); bide_i_ < bide_count_; bide_i_++) \
            *bide_ring_at((ring), (size_t)(sequence) + bide_i_) = (from)[bide_i_];        \
    } while (0)

/*
 * bide_ring_read(ring, sequence, to, count): copies `count` elements from the slots from that of
 * `sequence` on to the array `to`. Otherwise as bide_ring_write.
 * Threads: any, on slots that are its own by a claim or a wait. Errors: none. Suspends: never.
 * Progress: wait-free: a copy of so many elements.
 */
#define bide_ring_read(ring, sequence, to, count)                                         \
    do {                                                                                  \
        for (size_t bide_i_ = 0, bide_count_ = (count); bide_i_ < bide_count_; bide_i_++) \
            (to)[bide_i_] = *bide_ring_at((ring), (size_t)(sequence) + bide_i_);          \
    } while (0)

BIDE_EXTERN_C_END

#endif
