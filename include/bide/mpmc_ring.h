/*
 * A bounded queue for any number of producers and consumers, in the caller's memory. Any capacity
 * from 1 on, and all of it is used. Floor: queue.
 *
 *     bide_mpmc_ring_slot(uint64_t) memory[100];
 *     bide_mpmc_ring(uint64_t) ring;
 *     bide_mpmc_ring_init(&ring, memory, 100);
 *     bide_mpmc_ring_push(&ring, &number);        0, -ENOBUFS (full), -EPIPE (closed)
 *     bide_mpmc_ring_pop(&ring, &number);         0, -EAGAIN (nothing now), -EPIPE (drained)
 *
 * Any thread may call anything, except _pop_single and _pop_many_single: if they are used, one
 * thread at a time pops, and it may mix them with the other pops.
 *
 * A slot that is claimed and not yet committed counts as occupied for a push, and as empty for a
 * pop:
 *   - -EAGAIN means that the ring is empty, or that the push of the first element is still under
 *     way. Elements behind that one are not taken before it.
 *   - -ENOBUFS means that the ring is full, or that the pop of the oldest element is still under
 *     way.
 *   - A push that has returned is seen by every later pop, and vice versa, if none is under way.
 *
 * So it is not lock-free as a queue, but no thread blocks: a thread that is suspended between claim
 * and commit hides the slots behind its own, and others get -EAGAIN or -ENOBUFS. close, count, and
 * the pops of a single consumer are wait-free. Nothing allocates or suspends.
 *
 * Elements are copied as by memcpy: any type in C; in C++ trivially copyable ones. In the macros
 * `ring` and `memory` may be evaluated more than once, the other arguments once. Why it is correct:
 * docs/internals/mpmc_ring.md. The numbers below refer to that.
 */
#ifndef BIDE_MPMC_RING_H
#define BIDE_MPMC_RING_H

#include "bide/detail/back_off.h"
#include "bide/detail/tuning.h"
#include "bide/detail/element.h"
#include "bide/detail/ring_position.h"
#include "bide/errors.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_mpmc_ring_ends_ {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(size_t) tail;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(size_t) head;
} bide_mpmc_ring_ends_;

/*
 * The ring's memory is an array of these: an element of `type`, and whose turn it is. Each use is a
 * type of its own.
 */
#define bide_mpmc_ring_slot(type) \
    struct {                      \
        bide_atomic(size_t) turn; \
        type value;               \
    }

/*
 * A ring of elements of `type`. Each use is a type of its own: give it a name by a typedef, or
 * declare one where it is used. `slots` and `shape` are constant while it is shared; `closed` is
 * changed once, by closing (7).
 */
#define bide_mpmc_ring(type)               \
    struct {                               \
        bide_mpmc_ring_slot(type) * slots; \
        bide_ring_shape_ shape;            \
        bide_atomic(uint32_t) closed;      \
        bide_mpmc_ring_ends_ ends;         \
    }

/* The ring without its type, for the functions behind the macros. */
typedef struct bide_mpmc_ring_view_ {
    bide_ring_shape_ shape;
    bide_atomic(uint32_t) * closed;
    bide_mpmc_ring_ends_ *ends;
    char *slots;
    size_t stride; /* bytes from slot to slot */
    size_t offset; /* of the element in its slot */
    size_t size;   /* of an element */
} bide_mpmc_ring_view_;

BIDE_INLINE bide_mpmc_ring_view_ bide_mpmc_ring_view_of_(bide_ring_shape_ shape,
                                                         bide_atomic(uint32_t) * closed,
                                                         bide_mpmc_ring_ends_ *ends, void *slots,
                                                         size_t stride, size_t offset, size_t size)
{
    bide_mpmc_ring_view_ view = {shape, closed, ends, (char *)slots, stride, offset, size};
    return view;
}

#define BIDE_MPMC_RING_VIEW_(ring)                                                           \
    bide_mpmc_ring_view_of_(                                                                 \
        (ring)->shape, &(ring)->closed, &(ring)->ends, (ring)->slots, sizeof *(ring)->slots, \
        (size_t)((const char *)&(ring)->slots->value - (const char *)(ring)->slots),         \
        sizeof(ring)->slots->value)

/* `pointer`, which must be one to an element. */
#define BIDE_MPMC_RING_ELEMENT_(ring, pointer) (1 ? (pointer) : &(ring)->slots->value)

/* The memory as the slots of the ring: of another type, with the same members. */
#ifdef __cplusplus
#define BIDE_MPMC_RING_SLOTS_(ring, memory) ((decltype((ring)->slots))(void *)(memory))
#else
#define BIDE_MPMC_RING_SLOTS_(ring, memory) ((void *)(memory))
#endif

BIDE_INLINE char *bide_mpmc_ring_at_(bide_mpmc_ring_view_ ring, size_t position)
{
    return ring.slots + bide_ring_index_(ring.shape, position) * ring.stride;
}

/* The first member of a slot. */
BIDE_INLINE bide_atomic(size_t) * bide_mpmc_ring_turn_(char *slot)
{
    return (bide_atomic(size_t) *)(void *)slot;
}

/*
 * Makes `ring` an empty one over the array `memory` of `capacity` slots, 1 to SIZE_MAX / 2^15
 * (with a 32-bit size_t, 2^7), which stay the caller's and must outlive it. There is nothing to
 * destroy.
 * Threads: before it is shared. Progress: wait-free, linear in the slots.
 */
#define bide_mpmc_ring_init(ring, memory, capacity)                          \
    (BIDE_CHECK_MEMORY_(memory, capacity),                                   \
     (ring)->slots = BIDE_MPMC_RING_SLOTS_((ring), (memory)),                \
     (ring)->shape = bide_ring_shape_of_(BIDE_CAPACITY_((capacity), #ring)), \
     bide_mpmc_ring_init_(BIDE_MPMC_RING_VIEW_(ring),                        \
                          BIDE_MPMC_RING_ELEMENT_((ring), &(memory)->value)))

/* (`first` is for its type alone) */
BIDE_INLINE void bide_mpmc_ring_init_(bide_mpmc_ring_view_ ring, const void *first)
{
    (void)first;
    for (size_t i = 0; i < bide_ring_capacity_(ring.shape); i++)
        bide_atomic_init(bide_mpmc_ring_turn_(ring.slots + i * ring.stride), 0);
    bide_atomic_init(ring.closed, 0);
    bide_atomic_init(&ring.ends->tail, 0);
    bide_atomic_init(&ring.ends->head, 0);
}

/* ---- Turns ---- */

#define BIDE_MPMC_RING_FULL_ ((size_t)1)

/* The turn of a slot that a push may claim at `position`, and that a pop may. */
BIDE_INLINE size_t bide_mpmc_ring_empty_at_(bide_mpmc_ring_view_ ring, size_t position)
{
    return bide_ring_lap_(ring.shape, position);
}

BIDE_INLINE size_t bide_mpmc_ring_full_at_(bide_mpmc_ring_view_ ring, size_t position)
{
    return bide_ring_lap_(ring.shape, position) | BIDE_MPMC_RING_FULL_;
}

/* Is `turn` an earlier one than `wanted`? See 4. */
BIDE_INLINE bool bide_mpmc_ring_is_behind_(size_t turn, size_t wanted)
{
    return turn - wanted > SIZE_MAX / 2;
}

/* The second half of a push, and of a pop: `position` is claimed, `slot` is there. */
BIDE_INLINE void bide_mpmc_ring_fill_(bide_mpmc_ring_view_ ring, size_t position, char *slot,
                                      const void *from)
{
    bide_element_copy_(slot + ring.offset, from, ring.size);
    /* release: 3, partners are the loads of turns by pops. */
    bide_atomic_store(bide_mpmc_ring_turn_(slot), bide_mpmc_ring_full_at_(ring, position), release);
}

BIDE_INLINE void bide_mpmc_ring_take_(bide_mpmc_ring_view_ ring, size_t position, char *slot,
                                      void *to)
{
    bide_element_copy_(to, slot + ring.offset, ring.size);
    /* release: 3, partners are the loads of turns by pushes. */
    bide_atomic_store(bide_mpmc_ring_turn_(slot),
                      bide_mpmc_ring_empty_at_(ring, position) + ring.shape.lap, release);
}

/* Lets the winner go on alone for a while; then returns where `end` is. */
BIDE_INLINE size_t bide_mpmc_ring_lost_(bide_atomic(size_t) * end, unsigned *pauses)
{
    bide_atomic_retry();
    bide_back_off_(pauses, BIDE_MPMC_RING_MAX_PAUSES_);
    return bide_atomic_load(end, relaxed);
}

/* ---- Pushing ---- */

/*
 * A tail was found with bits. -EPIPE: closed. -EBUSY: slots are reserved (9), and the push is for
 * bide_mpmc_ring_push_beside_.
 */
BIDE_INLINE int bide_mpmc_ring_reject_(bide_mpmc_ring_view_ ring)
{
    /* acquire: 6, partner is _close_. */
    size_t tail = bide_atomic_load(&ring.ends->tail, acquire);
    return (tail & BIDE_RING_CLOSED_) != 0 ? -EPIPE : -EBUSY;
}

/*
 * Copies the element at `from` into the ring, or does nothing.
 * Threads: any. Errors: -ENOBUFS (full), -EPIPE (closed). Progress: lock-free for each call, as
 * said above.
 */
#define bide_mpmc_ring_push(ring, from) \
    bide_mpmc_ring_push_(BIDE_MPMC_RING_VIEW_(ring), BIDE_MPMC_RING_ELEMENT_((ring), (from)))

BIDE_INLINE int bide_mpmc_ring_push_(bide_mpmc_ring_view_ ring, const void *from)
{
    unsigned pauses = BIDE_MPMC_RING_PAUSES_;
    size_t tail = bide_atomic_load(&ring.ends->tail, relaxed);
    for (;;) {
        if (BIDE_UNLIKELY(tail & BIDE_RING_BITS_))
            return bide_mpmc_ring_reject_(ring);
        char *slot = bide_mpmc_ring_at_(ring, tail);
        size_t empty = bide_mpmc_ring_empty_at_(ring, tail);
        /* acquire: 3 and 4, partner is _take_. */
        size_t turn = bide_atomic_load(bide_mpmc_ring_turn_(slot), acquire);
        if (BIDE_LIKELY(turn == empty)) {
            size_t next = bide_ring_after_(ring.shape, tail, 1);
            if (BIDE_LIKELY(bide_atomic_compare_exchange(&ring.ends->tail, &tail, next, relaxed,
                                                         relaxed))) {
                bide_mpmc_ring_fill_(ring, tail, slot, from);
                return 0;
            }
            tail = bide_mpmc_ring_lost_(&ring.ends->tail, &pauses);
        } else if (bide_mpmc_ring_is_behind_(turn, empty)) {
            return -ENOBUFS;
        } else {
            tail = bide_atomic_load(&ring.ends->tail, relaxed);
        }
    }
}

/*
 * Copies elements from the array `from`, in order, as many of `count` as there is room for. They
 * are adjacent in the ring, without elements of others between them. Returns how many, at
 * least 1, or an error; 0 only if count is 0.
 * Threads: any. Errors: -ENOBUFS (full), -EPIPE (closed). Progress: lock-free for each call, as
 * said above.
 */
#define bide_mpmc_ring_push_many(ring, from, count)                                                \
    bide_mpmc_ring_push_many_(BIDE_MPMC_RING_VIEW_(ring), BIDE_MPMC_RING_ELEMENT_((ring), (from)), \
                              (count))

BIDE_INLINE ptrdiff_t bide_mpmc_ring_push_many_(bide_mpmc_ring_view_ ring, const void *from,
                                                size_t count)
{
    if (count == 0)
        return 0;
    unsigned pauses = BIDE_MPMC_RING_PAUSES_;
    size_t tail = bide_atomic_load(&ring.ends->tail, relaxed);
    for (;;) {
        if (BIDE_UNLIKELY(tail & BIDE_RING_BITS_))
            return bide_mpmc_ring_reject_(ring);
        size_t free = 0, end = tail, empty, turn;
        do {
            empty = bide_mpmc_ring_empty_at_(ring, end);
            /* acquire: 3 and 4, partner is _take_. */
            turn = bide_atomic_load(bide_mpmc_ring_turn_(bide_mpmc_ring_at_(ring, end)), acquire);
            if (turn != empty)
                break;
            free++;
            end = bide_ring_after_(ring.shape, end, 1);
        } while (free < count);
        if (free != 0) {
            if (BIDE_LIKELY(
                    bide_atomic_compare_exchange(&ring.ends->tail, &tail, end, relaxed, relaxed))) {
                for (size_t i = 0; i < free; i++) {
                    bide_mpmc_ring_fill_(ring, tail, bide_mpmc_ring_at_(ring, tail),
                                         (const char *)from + i * ring.size);
                    tail = bide_ring_after_(ring.shape, tail, 1);
                }
                return (ptrdiff_t)free;
            }
            tail = bide_mpmc_ring_lost_(&ring.ends->tail, &pauses);
        } else if (bide_mpmc_ring_is_behind_(turn, empty)) {
            return -ENOBUFS;
        } else {
            tail = bide_atomic_load(&ring.ends->tail, relaxed);
        }
    }
}

/* ---- Reserving: for channels (9) ---- */

/*
 * Whether there is room behind the slots that are reserved, for one more push or reservation: 0;
 * -EPIPE, -ENOBUFS; or -EAGAIN: `tail`, which was acquired, is out of date.
 */
BIDE_INLINE int bide_mpmc_ring_look_beyond_(bide_mpmc_ring_view_ ring, size_t tail)
{
    if ((tail & BIDE_RING_CLOSED_) != 0)
        return -EPIPE;
    size_t wanted = bide_ring_after_(ring.shape, tail, bide_ring_reserved_(tail));
    size_t empty = bide_mpmc_ring_empty_at_(ring, wanted);
    /* acquire: 3, 4 and 9, partner is _take_. */
    size_t turn = bide_atomic_load(bide_mpmc_ring_turn_(bide_mpmc_ring_at_(ring, wanted)), acquire);
    if (BIDE_LIKELY(turn == empty))
        return 0;
    return bide_mpmc_ring_is_behind_(turn, empty) ? -ENOBUFS : -EAGAIN;
}

/*
 * As bide_mpmc_ring_push_, while slots may be reserved.
 * Threads: any. Errors: -ENOBUFS, -EPIPE. Progress: as bide_mpmc_ring_push.
 */
BIDE_INLINE int bide_mpmc_ring_push_beside_(bide_mpmc_ring_view_ ring, const void *from)
{
    for (;;) {
        /* acquire: 6 and 9; partners are _close_, and the exchanges of this and _reserve_. */
        size_t tail = bide_atomic_load(&ring.ends->tail, acquire);
        int status = bide_mpmc_ring_look_beyond_(ring, tail);
        if (status == 0) {
            size_t next = bide_ring_after_(ring.shape, tail, 1);
            /* release: 9. */
            if (bide_atomic_compare_exchange(&ring.ends->tail, &tail, next, release, relaxed)) {
                bide_mpmc_ring_fill_(ring, tail, bide_mpmc_ring_at_(ring, tail), from);
                return 0;
            }
        } else if (status != -EAGAIN) {
            return status;
        }
        bide_atomic_retry();
    }
}

/*
 * Reserves a slot: one bide_mpmc_ring_push_reserved_ or _unreserve_ follows.
 * Threads: any. Errors: -ENOBUFS (full), -EPIPE (closed), -EOVERFLOW (BIDE_RING_MAX_RESERVED_ are
 * reserved). Progress: as bide_mpmc_ring_push.
 */
BIDE_INLINE int bide_mpmc_ring_reserve_(bide_mpmc_ring_view_ ring)
{
    for (;;) {
        /* acquire: as above. */
        size_t tail = bide_atomic_load(&ring.ends->tail, acquire);
        int status = bide_mpmc_ring_look_beyond_(ring, tail);
        if (status == 0) {
            if (bide_ring_reserved_(tail) == BIDE_RING_MAX_RESERVED_)
                return -EOVERFLOW;
            /* release: 9. */
            if (bide_atomic_compare_exchange(&ring.ends->tail, &tail,
                                             tail + BIDE_RING_RESERVED_ONE_, release, relaxed))
                return 0;
        } else if (status != -EAGAIN) {
            return status;
        }
        bide_atomic_retry();
    }
}

/*
 * Pushes the element at `from` by a reservation, even if the ring is closed by now. Returns the
 * tail as it was.
 * Threads: any. Progress: lock-free.
 */
BIDE_INLINE size_t bide_mpmc_ring_push_reserved_(bide_mpmc_ring_view_ ring, const void *from)
{
    size_t next, tail = bide_atomic_load(&ring.ends->tail, relaxed);
    for (;;) {
        bide_assert(bide_ring_reserved_(tail) != 0);
        next = bide_ring_after_(ring.shape, tail, 1) - BIDE_RING_RESERVED_ONE_;
        /* acquire: 9, partners are the exchanges above. */
        if (bide_atomic_compare_exchange(&ring.ends->tail, &tail, next, acquire, relaxed))
            break;
        bide_atomic_retry();
    }
    bide_mpmc_ring_fill_(ring, tail, bide_mpmc_ring_at_(ring, tail), from);
    return tail;
}

/*
 * Gives a reservation up. Returns the tail as it was.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE size_t bide_mpmc_ring_unreserve_(bide_mpmc_ring_view_ ring)
{
    /* release: 9, partner is _nothing_at_. */
    return bide_atomic_fetch_sub(&ring.ends->tail, BIDE_RING_RESERVED_ONE_, release);
}

/* ---- Popping ---- */

/* There was nothing to take at `head`: will there ever be? */
BIDE_INLINE int bide_mpmc_ring_nothing_at_(bide_mpmc_ring_view_ ring, size_t head)
{
    /* relaxed: 7. */
    if (BIDE_LIKELY(bide_atomic_load(ring.closed, relaxed) == 0))
        return -EAGAIN;
    /* acquire: 6, partner is _close_. */
    size_t tail = bide_atomic_load(&ring.ends->tail, acquire);
    return tail == (head | BIDE_RING_CLOSED_) ? -EPIPE : -EAGAIN;
}

/*
 * Takes the first element, and copies it to `to`, or does nothing.
 * Threads: any. Errors: -EAGAIN (there is nothing to take now), -EPIPE (closed, and all that was
 * pushed has been taken). Progress: lock-free for each call, as said above.
 */
#define bide_mpmc_ring_pop(ring, to) \
    bide_mpmc_ring_pop_(BIDE_MPMC_RING_VIEW_(ring), BIDE_MPMC_RING_ELEMENT_((ring), (to)))

BIDE_INLINE int bide_mpmc_ring_pop_(bide_mpmc_ring_view_ ring, void *to)
{
    unsigned pauses = BIDE_MPMC_RING_PAUSES_;
    size_t head = bide_atomic_load(&ring.ends->head, relaxed);
    for (;;) {
        char *slot = bide_mpmc_ring_at_(ring, head);
        size_t full = bide_mpmc_ring_full_at_(ring, head);
        /* acquire: 3 and 4, partner is _fill_. */
        size_t turn = bide_atomic_load(bide_mpmc_ring_turn_(slot), acquire);
        if (BIDE_LIKELY(turn == full)) {
            size_t next = bide_ring_after_(ring.shape, head, 1);
            if (BIDE_LIKELY(bide_atomic_compare_exchange(&ring.ends->head, &head, next, relaxed,
                                                         relaxed))) {
                bide_mpmc_ring_take_(ring, head, slot, to);
                return 0;
            }
            head = bide_mpmc_ring_lost_(&ring.ends->head, &pauses);
        } else if (bide_mpmc_ring_is_behind_(turn, full)) {
            return bide_mpmc_ring_nothing_at_(ring, head);
        } else {
            head = bide_atomic_load(&ring.ends->head, relaxed);
        }
    }
}

/*
 * The first half of a pop of the first element, whose address it returns; NULL if there is nothing
 * to take; `if_full`: or if there is room, or a pop is under way. bide_mpmc_ring_pop_end_ of
 * *position follows, after the element was read.
 * Threads: any. Progress: lock-free.
 */
BIDE_INLINE void *bide_mpmc_ring_pop_begin_(bide_mpmc_ring_view_ ring, bool if_full,
                                            size_t *position)
{
    for (;;) {
        size_t head = bide_atomic_load(&ring.ends->head, relaxed);
        char *slot = bide_mpmc_ring_at_(ring, head);
        size_t full = bide_mpmc_ring_full_at_(ring, head);
        /* acquire: 3 and 4, partner is _fill_. */
        size_t turn = bide_atomic_load(bide_mpmc_ring_turn_(slot), acquire);
        if (turn == full) {
            size_t next = bide_ring_after_(ring.shape, head, 1);
            if (if_full) {
                /* relaxed: 10. */
                size_t tail = bide_atomic_load(&ring.ends->tail, relaxed);
                tail = bide_ring_after_(ring.shape, tail, bide_ring_reserved_(tail));
                if ((tail & ~BIDE_RING_BITS_) != head + ring.shape.lap)
                    return NULL;
            }
            if (bide_atomic_compare_exchange(&ring.ends->head, &head, next, relaxed, relaxed)) {
                *position = head;
                return slot + ring.offset;
            }
        } else if (bide_mpmc_ring_is_behind_(turn, full)) {
            return NULL;
        }
        bide_atomic_retry();
    }
}

BIDE_INLINE void bide_mpmc_ring_pop_end_(bide_mpmc_ring_view_ ring, size_t position)
{
    /* release: 3, partners are the loads of turns by pushes. */
    bide_atomic_store(bide_mpmc_ring_turn_(bide_mpmc_ring_at_(ring, position)),
                      bide_mpmc_ring_empty_at_(ring, position) + ring.shape.lap, release);
}

/*
 * How many from `head` on can be taken, up to `max`; *end is set to where they end, *turn to what
 * was found there if they are fewer.
 */
BIDE_INLINE size_t bide_mpmc_ring_full_from_(bide_mpmc_ring_view_ ring, size_t head, size_t max,
                                             size_t *end, size_t *turn)
{
    size_t full = 0;
    *end = head;
    do {
        /* acquire: 3 and 4, partner is _fill_. */
        *turn = bide_atomic_load(bide_mpmc_ring_turn_(bide_mpmc_ring_at_(ring, *end)), acquire);
        if (*turn != bide_mpmc_ring_full_at_(ring, *end))
            break;
        full++;
        *end = bide_ring_after_(ring.shape, *end, 1);
    } while (full < max);
    return full;
}

BIDE_INLINE void bide_mpmc_ring_take_many_(bide_mpmc_ring_view_ ring, size_t head, void *to,
                                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bide_mpmc_ring_take_(ring, head, bide_mpmc_ring_at_(ring, head),
                             (char *)to + i * ring.size);
        head = bide_ring_after_(ring.shape, head, 1);
    }
}

/*
 * Takes elements, as many of `count` as can be taken now, and copies them to the array `to`, in
 * order. Returns how many, at least 1, or an error; 0 only if count is 0.
 * Threads: any. Errors: -EAGAIN (there is nothing to take now), -EPIPE (closed and drained).
 * Progress: lock-free for each call, as said above.
 */
#define bide_mpmc_ring_pop_many(ring, to, count)                                                \
    bide_mpmc_ring_pop_many_(BIDE_MPMC_RING_VIEW_(ring), BIDE_MPMC_RING_ELEMENT_((ring), (to)), \
                             (count))

BIDE_INLINE ptrdiff_t bide_mpmc_ring_pop_many_(bide_mpmc_ring_view_ ring, void *to, size_t count)
{
    if (count == 0)
        return 0;
    unsigned pauses = BIDE_MPMC_RING_PAUSES_;
    size_t head = bide_atomic_load(&ring.ends->head, relaxed);
    for (;;) {
        size_t end, turn;
        size_t full = bide_mpmc_ring_full_from_(ring, head, count, &end, &turn);
        if (full != 0) {
            if (BIDE_LIKELY(
                    bide_atomic_compare_exchange(&ring.ends->head, &head, end, relaxed, relaxed))) {
                bide_mpmc_ring_take_many_(ring, head, to, full);
                return (ptrdiff_t)full;
            }
            head = bide_mpmc_ring_lost_(&ring.ends->head, &pauses);
        } else if (bide_mpmc_ring_is_behind_(turn, bide_mpmc_ring_full_at_(ring, head))) {
            return bide_mpmc_ring_nothing_at_(ring, head);
        } else {
            head = bide_atomic_load(&ring.ends->head, relaxed);
        }
    }
}

/*
 * The same as _pop where nobody else pops at the same time: cheaper, since it needs no exchange.
 * Threads: the consumer's. Errors: as bide_mpmc_ring_pop. Progress: wait-free.
 */
#define bide_mpmc_ring_pop_single(ring, to) \
    bide_mpmc_ring_pop_single_(BIDE_MPMC_RING_VIEW_(ring), BIDE_MPMC_RING_ELEMENT_((ring), (to)))

BIDE_INLINE int bide_mpmc_ring_pop_single_(bide_mpmc_ring_view_ ring, void *to)
{
    size_t head = bide_atomic_load(&ring.ends->head, relaxed); /* 8 */
    char *slot = bide_mpmc_ring_at_(ring, head);
    /* acquire: 3, partner is _fill_. */
    size_t turn = bide_atomic_load(bide_mpmc_ring_turn_(slot), acquire);
    if (turn != bide_mpmc_ring_full_at_(ring, head))
        return bide_mpmc_ring_nothing_at_(ring, head);
    bide_atomic_store(&ring.ends->head, bide_ring_after_(ring.shape, head, 1), relaxed); /* 8 */
    bide_mpmc_ring_take_(ring, head, slot, to);
    return 0;
}

/*
 * The same as _pop_many where nobody else pops at the same time.
 * Threads: the consumer's. Errors: as bide_mpmc_ring_pop_many. Progress: wait-free.
 */
#define bide_mpmc_ring_pop_many_single(ring, to, count)         \
    bide_mpmc_ring_pop_many_single_(BIDE_MPMC_RING_VIEW_(ring), \
                                    BIDE_MPMC_RING_ELEMENT_((ring), (to)), (count))

BIDE_INLINE ptrdiff_t bide_mpmc_ring_pop_many_single_(bide_mpmc_ring_view_ ring, void *to,
                                                      size_t count)
{
    if (count == 0)
        return 0;
    size_t head = bide_atomic_load(&ring.ends->head, relaxed); /* 8 */
    size_t end, turn, full = bide_mpmc_ring_full_from_(ring, head, count, &end, &turn);
    if (full == 0)
        return bide_mpmc_ring_nothing_at_(ring, head);
    bide_atomic_store(&ring.ends->head, end, relaxed); /* 8 */
    bide_mpmc_ring_take_many_(ring, head, to, full);
    return (ptrdiff_t)full;
}

/* ---- The rest ---- */

/*
 * Would a push, or a pop, do anything now but say that the ring is full, or that there is nothing
 * to take? True if in doubt. For an operation that is about to wait, behind a fence: it sees what
 * was committed, or closed, before a fence that came before that.
 */
BIDE_INLINE bool bide_mpmc_ring_may_push_(bide_mpmc_ring_view_ ring)
{
    size_t tail = bide_atomic_load(&ring.ends->tail, relaxed);
    size_t wanted = bide_ring_after_(ring.shape, tail, bide_ring_reserved_(tail)); /* 9 */
    /* relaxed: it is only looked at. */
    size_t turn = bide_atomic_load(bide_mpmc_ring_turn_(bide_mpmc_ring_at_(ring, wanted)), relaxed);
    return (tail & BIDE_RING_CLOSED_) != 0 ||
           !bide_mpmc_ring_is_behind_(turn, bide_mpmc_ring_empty_at_(ring, wanted));
}

BIDE_INLINE bool bide_mpmc_ring_may_pop_(bide_mpmc_ring_view_ ring)
{
    size_t head = bide_atomic_load(&ring.ends->head, relaxed);
    /* relaxed: it is only looked at. */
    size_t turn = bide_atomic_load(bide_mpmc_ring_turn_(bide_mpmc_ring_at_(ring, head)), relaxed);
    return !bide_mpmc_ring_is_behind_(turn, bide_mpmc_ring_full_at_(ring, head)) ||
           bide_mpmc_ring_nothing_at_(ring, head) == -EPIPE;
}

/*
 * Closes it: every push that has not claimed its slot yet answers -EPIPE; what is in it is still
 * popped, and after that pops answer -EPIPE for ever. More than once is once.
 * Threads: any. Progress: wait-free.
 */
#define bide_mpmc_ring_close(ring) bide_mpmc_ring_close_(BIDE_MPMC_RING_VIEW_(ring))

BIDE_INLINE void bide_mpmc_ring_close_(bide_mpmc_ring_view_ ring)
{
    /* release: 6, partners are _refuse_ and _nothing_at_. */
    bide_atomic_fetch_or(&ring.ends->tail, BIDE_RING_CLOSED_, release);
    bide_atomic_store(ring.closed, 1, relaxed); /* 7 */
}

/*
 * How many elements are in it, with those under way: what was true at about this moment. For
 * statistics.
 * Threads: any. Progress: wait-free.
 */
#define bide_mpmc_ring_count(ring) bide_mpmc_ring_count_(BIDE_MPMC_RING_VIEW_(ring))

BIDE_INLINE size_t bide_mpmc_ring_count_(bide_mpmc_ring_view_ ring)
{
    /* relaxed: it orders nothing. */
    size_t head = bide_atomic_load(&ring.ends->head, relaxed);
    return bide_ring_about_(ring.shape, head, bide_atomic_load(&ring.ends->tail, relaxed));
}

/*
 * How many there is room for.
 * Threads: any. Progress: wait-free.
 */
#define bide_mpmc_ring_capacity(ring) bide_ring_capacity_((ring)->shape)

BIDE_EXTERN_C_END

#endif
