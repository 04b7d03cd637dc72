/*
 * A bounded queue between one producer and one consumer, in the caller's memory: the fastest queue
 * here. Any capacity from 1 on, and all of it is used. Floor: queue.
 *
 *     uint64_t memory[100];
 *     bide_spsc_ring(uint64_t) ring;
 *     bide_spsc_ring_init(&ring, memory, 100);
 *     bide_spsc_ring_push(&ring, &number);    the producer: 0, -ENOBUFS (full), -EPIPE (closed)
 *     bide_spsc_ring_pop(&ring, &number);     the consumer: 0, -EAGAIN (empty), -EPIPE (drained)
 *
 * One thread at a time is the producer: push, push_many, reserve, commit, close. One is the
 * consumer: pop, pop_many, peek, release. A role passes to another thread by something that orders
 * the two, such as a mutex.
 *
 * Everything is wait-free: no loops, except over the elements of a batch. Nothing allocates, waits
 * or suspends. A consumer that is faster than the producer may pause for a microsecond, so that the
 * two do not share cache lines. A batch moves its end once.
 *
 * Elements are copied as by memcpy: any type in C; in C++ trivially copyable ones. In the macros
 * `ring` may be evaluated more than once, the other arguments once. Why it is correct, and fast:
 * docs/internals/spsc_ring.md. The numbers below refer to that.
 */
#ifndef BIDE_SPSC_RING_H
#define BIDE_SPSC_RING_H

#include "bide/detail/back_off.h"
#include "bide/detail/element.h"
#include "bide/errors.h"
#include "bide/platform.h"

BIDE_EXTERN_C_BEGIN

/*
 * Elements are few if they are fewer than this and than a quarter of the ring. (The processor
 * fetches lines in advance, of some hundred elements, so few is more than is in a line or two.)
 * Then: how often a consumer finds few before it pauses; how often the processor pauses then; how
 * many elements have to come meanwhile; and how often it finds few before it pauses again if they
 * did not.
 */
enum {
    BIDE_SPSC_RING_FEW_ = 256,
    BIDE_SPSC_RING_PATIENCE_ = 4,
    BIDE_SPSC_RING_PAUSES_ = 64,
    BIDE_SPSC_RING_PAYS_ = 32,
    BIDE_SPSC_RING_LONG_PATIENCE_ = 1000
};

/* In tail. */
#define BIDE_SPSC_RING_CLOSED_ ((size_t)1)

typedef struct bide_spsc_ring_ends_ {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(size_t) tail; /* the producer writes */
    size_t tail_place;                                      /* the producer's own, as is `limit` */
    size_t limit;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(size_t) head; /* the consumer writes */
    size_t head_place; /* the consumer's own, as is what follows */
    size_t seen;
    uint32_t patience;
} bide_spsc_ring_ends_;

/*
 * A ring of elements of `type`. Each use is a type of its own: give it a name by a typedef, or
 * declare one where it is used. `slots` and `capacity` are constant while it is shared.
 */
#define bide_spsc_ring(type)       \
    struct {                       \
        type *slots;               \
        size_t capacity;           \
        bide_spsc_ring_ends_ ends; \
    }

/*
 * Makes `ring` an empty one over `count` elements, 1 to SIZE_MAX / 4, at `memory`, which stay the
 * caller's and must outlive it. There is nothing to destroy.
 * Threads: before it is shared. Progress: wait-free.
 */
#define bide_spsc_ring_init(ring, memory, count)                  \
    (BIDE_CHECK_MEMORY_(memory, count), (ring)->slots = (memory), \
     (ring)->capacity = BIDE_CAPACITY_((count), #ring),           \
     bide_spsc_ring_init_(&(ring)->ends, (ring)->capacity))

BIDE_INLINE void bide_spsc_ring_init_(bide_spsc_ring_ends_ *ends, size_t capacity)
{
    bide_atomic_init(&ends->tail, 0);
    bide_atomic_init(&ends->head, 0);
    ends->tail_place = 0;
    ends->limit = 2 * capacity;
    ends->head_place = 0;
    ends->seen = 0;
    ends->patience = BIDE_SPSC_RING_PATIENCE_;
}

/* `place`, which is below the capacity, `count` slots further, at most the capacity. */
BIDE_INLINE size_t bide_spsc_ring_after_(size_t capacity, size_t place, size_t count)
{
    bide_assert(place < capacity && count <= capacity);
    size_t after = place + count;
    return after < capacity ? after : after - capacity;
}

/* How many of `count` slots from `place` on come before the end of the memory. */
BIDE_INLINE size_t bide_spsc_ring_side_by_side_(size_t capacity, size_t place, size_t count)
{
    size_t left = capacity - place;
    return count < left ? count : left;
}

/* ---- The producer ---- */

/* Looks where head is now. */
BIDE_INLINE void bide_spsc_ring_look_at_head_(bide_spsc_ring_ends_ *ends, size_t capacity)
{
    /* acquire: 2, partner is _move_head_. */
    size_t limit = bide_atomic_load(&ends->head, acquire) + 2 * capacity;
    /* A look in vain leaves the line to the other side, which looks there. */
    if (limit != ends->limit)
        ends->limit = limit;
}

BIDE_INLINE void bide_spsc_ring_move_tail_(bide_spsc_ring_ends_ *ends, size_t capacity, size_t tail,
                                           size_t count)
{
    ends->tail_place = bide_spsc_ring_after_(capacity, ends->tail_place, count);
    /* release: 1, partner is _look_at_tail_. */
    bide_atomic_store(&ends->tail, tail + 2 * count, release);
}

/*
 * Copies the element at `from` into the ring, or does nothing.
 * Threads: the producer's. Errors: -ENOBUFS (full), -EPIPE (closed). Progress: wait-free.
 */
#define bide_spsc_ring_push(ring, from)                                  \
    bide_spsc_ring_push_(&(ring)->ends, (ring)->capacity, (ring)->slots, \
                         (1 ? (from) : (ring)->slots), sizeof *(ring)->slots)

BIDE_INLINE int bide_spsc_ring_push_(bide_spsc_ring_ends_ *ends, size_t capacity, void *slots,
                                     const void *from, size_t size)
{
    size_t tail = bide_atomic_load(&ends->tail, relaxed); /* 3 */
    /* A closed one comes here too: see _close_. */
    if (BIDE_UNLIKELY(tail == ends->limit)) {
        if (tail & BIDE_SPSC_RING_CLOSED_)
            return -EPIPE;
        bide_spsc_ring_look_at_head_(ends, capacity);
        if (tail == ends->limit)
            return -ENOBUFS;
    }
    bide_element_copy_((char *)slots + ends->tail_place * size, from, size);
    bide_spsc_ring_move_tail_(ends, capacity, tail, 1);
    return 0;
}

/*
 * How many slots are free, up to `wanted`, or more; if it seems fewer, looks again. None, and it
 * says why.
 */
BIDE_INLINE ptrdiff_t bide_spsc_ring_room_(bide_spsc_ring_ends_ *ends, size_t capacity, size_t tail,
                                           size_t wanted)
{
    if (BIDE_UNLIKELY(tail & BIDE_SPSC_RING_CLOSED_))
        return -EPIPE;
    if ((ends->limit - tail) / 2 < wanted)
        bide_spsc_ring_look_at_head_(ends, capacity);
    return tail == ends->limit ? -ENOBUFS : (ptrdiff_t)((ends->limit - tail) / 2);
}

/*
 * Copies elements from the array `from`, in order, as many of `count` as there is room for. Returns
 * how many, at least 1, or an error; 0 only if count is 0. The consumer sees all of them at once.
 * Threads: the producer's. Errors: -ENOBUFS (full), -EPIPE (closed). Progress: wait-free.
 */
#define bide_spsc_ring_push_many(ring, from, count)                           \
    bide_spsc_ring_push_many_(&(ring)->ends, (ring)->capacity, (ring)->slots, \
                              (1 ? (from) : (ring)->slots), (count), sizeof *(ring)->slots)

BIDE_INLINE ptrdiff_t bide_spsc_ring_push_many_(bide_spsc_ring_ends_ *ends, size_t capacity,
                                                void *slots, const void *from, size_t count,
                                                size_t size)
{
    if (count == 0)
        return 0;
    size_t tail = bide_atomic_load(&ends->tail, relaxed); /* 3 */
    ptrdiff_t room = bide_spsc_ring_room_(ends, capacity, tail, count);
    if (room < 0)
        return room;
    if (count > (size_t)room)
        count = (size_t)room;
    size_t first = bide_spsc_ring_side_by_side_(capacity, ends->tail_place, count);
    bide_element_copy_((char *)slots + ends->tail_place * size, from, first * size);
    if (first != count)
        bide_element_copy_(slots, (const char *)from + first * size, (count - first) * size);
    bide_spsc_ring_move_tail_(ends, capacity, tail, count);
    return (ptrdiff_t)count;
}

/*
 * The free slots that stand side by side in memory, up to `count`, to be filled in place: returns
 * how many, at least 1, or an error, and sets *start, a pointer to an element, to the first; 0 only
 * if count is 0. They become elements by a commit; without one nothing has happened, and the next
 * push or reserve has the same slots. If fewer came than were wanted, more may be free where the
 * memory begins: reserve again after the commit.
 *
 *     struct record *records;
 *     ptrdiff_t free = bide_spsc_ring_reserve(&ring, &records, 16);
 *     if (free > 0)
 *         bide_spsc_ring_commit(&ring, fill(records, free));
 *
 * Threads: the producer's. Errors: -ENOBUFS (none is free), -EPIPE (closed). Progress: wait-free.
 */
#define bide_spsc_ring_reserve(ring, start, count)       \
    (*(start) = (ring)->slots + (ring)->ends.tail_place, \
     bide_spsc_ring_reserve_(&(ring)->ends, (ring)->capacity, (count)))

BIDE_INLINE ptrdiff_t bide_spsc_ring_reserve_(bide_spsc_ring_ends_ *ends, size_t capacity,
                                              size_t count)
{
    if (count == 0)
        return 0;
    size_t tail = bide_atomic_load(&ends->tail, relaxed); /* 3 */
    count = bide_spsc_ring_side_by_side_(capacity, ends->tail_place, count);
    ptrdiff_t room = bide_spsc_ring_room_(ends, capacity, tail, count);
    return room < (ptrdiff_t)count ? room : (ptrdiff_t)count;
}

/*
 * Makes elements of the first `count` slots of what was reserved last: no more than that were.
 * Threads: the producer's. Progress: wait-free.
 */
#define bide_spsc_ring_commit(ring, count) \
    bide_spsc_ring_commit_(&(ring)->ends, (ring)->capacity, (count))

BIDE_INLINE void bide_spsc_ring_commit_(bide_spsc_ring_ends_ *ends, size_t capacity, size_t count)
{
    size_t tail = bide_atomic_load(&ends->tail, relaxed); /* 3 */
    bide_spsc_ring_move_tail_(ends, capacity, tail, count);
}

/*
 * Closes it: pushes answer -EPIPE from now on; what is in it is still popped, and after that pops
 * answer -EPIPE for ever. More than once is once. Slots that were reserved and not committed are
 * given up. A consumer that wants no more says so in another way (4).
 * Threads: the producer's. Progress: wait-free.
 */
#define bide_spsc_ring_close(ring) bide_spsc_ring_close_(&(ring)->ends)

BIDE_INLINE void bide_spsc_ring_close_(bide_spsc_ring_ends_ *ends)
{
    size_t tail = bide_atomic_load(&ends->tail, relaxed) | BIDE_SPSC_RING_CLOSED_; /* 3 */
    ends->limit = tail;                            /* so that a push looks */
    bide_atomic_store(&ends->tail, tail, release); /* 1, partner is _look_at_tail_ */
}

/* ---- The consumer ---- */

/* Looks where tail is now, and returns it, CLOSED too. */
BIDE_INLINE size_t bide_spsc_ring_look_at_tail_(bide_spsc_ring_ends_ *ends)
{
    /* acquire: 1, partners are _move_tail_ and _close_. */
    size_t tail = bide_atomic_load(&ends->tail, acquire);
    size_t seen = tail & ~BIDE_SPSC_RING_CLOSED_;
    if (seen != ends->seen) /* as above */
        ends->seen = seen;
    return tail;
}

/* The same where what it saw is used up, or nearly. Few again: pauses before it looks once more. */
BIDE_INLINE size_t bide_spsc_ring_look_for_more_(bide_spsc_ring_ends_ *ends, size_t capacity,
                                                 size_t head)
{
    size_t tail = bide_spsc_ring_look_at_tail_(ends);
#if BIDE_CHECK
    (void)capacity, (void)head;
#else
    size_t seen = ends->seen, found = (seen - head) / 2;
    if (found == 0) {
        if (ends->patience < BIDE_SPSC_RING_PATIENCE_)
            ends->patience = BIDE_SPSC_RING_PATIENCE_;
    } else if (found < BIDE_SPSC_RING_FEW_ && found < capacity / 4) {
        if (ends->patience != 0) {
            ends->patience--;
            return tail;
        }
        bide_pause_(BIDE_SPSC_RING_PAUSES_);
        tail = bide_spsc_ring_look_at_tail_(ends);
        if ((ends->seen - seen) / 2 < BIDE_SPSC_RING_PAYS_)
            ends->patience = BIDE_SPSC_RING_LONG_PATIENCE_;
    }
#endif
    return tail;
}

BIDE_INLINE void bide_spsc_ring_move_head_(bide_spsc_ring_ends_ *ends, size_t capacity, size_t head,
                                           size_t count)
{
    ends->head_place = bide_spsc_ring_after_(capacity, ends->head_place, count);
    /* release: 2, partner is _look_at_head_. */
    bide_atomic_store(&ends->head, head + 2 * count, release);
}

/*
 * Takes the first element, and copies it to `to`, or does nothing.
 * Threads: the consumer's. Errors: -EAGAIN (empty), -EPIPE (closed, and all that was pushed has
 * been taken). Progress: wait-free.
 */
#define bide_spsc_ring_pop(ring, to)                                    \
    bide_spsc_ring_pop_(&(ring)->ends, (ring)->capacity, (ring)->slots, \
                        (1 ? (to) : (ring)->slots), sizeof *(ring)->slots)

BIDE_INLINE int bide_spsc_ring_pop_(bide_spsc_ring_ends_ *ends, size_t capacity, const void *slots,
                                    void *to, size_t size)
{
    size_t head = bide_atomic_load(&ends->head, relaxed); /* 3 */
    if (BIDE_UNLIKELY(head == ends->seen)) {
        size_t tail = bide_spsc_ring_look_for_more_(ends, capacity, head);
        if (head == ends->seen)
            return (tail & BIDE_SPSC_RING_CLOSED_) != 0 ? -EPIPE : -EAGAIN;
    }
    bide_element_copy_(to, (const char *)slots + ends->head_place * size, size);
    bide_spsc_ring_move_head_(ends, capacity, head, 1);
    return 0;
}

/*
 * How many elements there are, up to `wanted`, or more; if it seems fewer, looks again. None, and
 * it says why.
 */
BIDE_INLINE ptrdiff_t bide_spsc_ring_known_(bide_spsc_ring_ends_ *ends, size_t capacity,
                                            size_t head, size_t wanted)
{
    if ((ends->seen - head) / 2 < wanted) {
        size_t tail = bide_spsc_ring_look_for_more_(ends, capacity, head);
        if (head == ends->seen)
            return (tail & BIDE_SPSC_RING_CLOSED_) != 0 ? -EPIPE : -EAGAIN;
    }
    return (ptrdiff_t)((ends->seen - head) / 2);
}

/*
 * Takes elements, as many of `count` as there are, and copies them to the array `to`, in order.
 * Returns how many, at least 1, or an error; 0 only if count is 0.
 * Threads: the consumer's. Errors: -EAGAIN (empty), -EPIPE (closed and drained). Progress:
 * wait-free.
 */
#define bide_spsc_ring_pop_many(ring, to, count)                             \
    bide_spsc_ring_pop_many_(&(ring)->ends, (ring)->capacity, (ring)->slots, \
                             (1 ? (to) : (ring)->slots), (count), sizeof *(ring)->slots)

BIDE_INLINE ptrdiff_t bide_spsc_ring_pop_many_(bide_spsc_ring_ends_ *ends, size_t capacity,
                                               const void *slots, void *to, size_t count,
                                               size_t size)
{
    if (count == 0)
        return 0;
    size_t head = bide_atomic_load(&ends->head, relaxed); /* 3 */
    ptrdiff_t known = bide_spsc_ring_known_(ends, capacity, head, count);
    if (known < 0)
        return known;
    if (count > (size_t)known)
        count = (size_t)known;
    size_t first = bide_spsc_ring_side_by_side_(capacity, ends->head_place, count);
    bide_element_copy_(to, (const char *)slots + ends->head_place * size, first * size);
    if (first != count)
        bide_element_copy_((char *)to + first * size, slots, (count - first) * size);
    bide_spsc_ring_move_head_(ends, capacity, head, count);
    return (ptrdiff_t)count;
}

/*
 * The elements that stand side by side in memory from the first on, up to `count`, to be read in
 * place: returns how many, at least 1, or an error, and sets *start, a pointer to an element, to
 * the first; 0 only if count is 0. They stay in the ring, the consumer's, until they are released.
 * If fewer came than were wanted, more may stand where the memory begins.
 * Threads: the consumer's. Errors: -EAGAIN (empty), -EPIPE (closed and drained). Progress:
 * wait-free.
 */
#define bide_spsc_ring_peek(ring, start, count)          \
    (*(start) = (ring)->slots + (ring)->ends.head_place, \
     bide_spsc_ring_peek_(&(ring)->ends, (ring)->capacity, (count)))

BIDE_INLINE ptrdiff_t bide_spsc_ring_peek_(bide_spsc_ring_ends_ *ends, size_t capacity,
                                           size_t count)
{
    if (count == 0)
        return 0;
    size_t head = bide_atomic_load(&ends->head, relaxed); /* 3 */
    count = bide_spsc_ring_side_by_side_(capacity, ends->head_place, count);
    ptrdiff_t known = bide_spsc_ring_known_(ends, capacity, head, count);
    return known < (ptrdiff_t)count ? known : (ptrdiff_t)count;
}

/*
 * Takes the first `count` elements of what was peeked at last out of the ring: no more than that
 * were. Their slots are the producer's then.
 * Threads: the consumer's. Progress: wait-free.
 */
#define bide_spsc_ring_release(ring, count) \
    bide_spsc_ring_release_(&(ring)->ends, (ring)->capacity, (count))

BIDE_INLINE void bide_spsc_ring_release_(bide_spsc_ring_ends_ *ends, size_t capacity, size_t count)
{
    size_t head = bide_atomic_load(&ends->head, relaxed); /* 3 */
    bide_spsc_ring_move_head_(ends, capacity, head, count);
}

/* ---- Anybody ---- */

/*
 * How many elements are in it: what was true at about this moment. For statistics.
 * Threads: any. Progress: wait-free.
 */
#define bide_spsc_ring_count(ring) bide_spsc_ring_count_(&(ring)->ends, (ring)->capacity)

BIDE_INLINE size_t bide_spsc_ring_count_(bide_spsc_ring_ends_ *ends, size_t capacity)
{
    /* relaxed: it orders nothing. So either may be older than the other. */
    size_t head = bide_atomic_load(&ends->head, relaxed);
    size_t twice = bide_atomic_load(&ends->tail, relaxed) - head;
    if (twice > SIZE_MAX / 2)
        return 0;
    return twice / 2 < capacity ? twice / 2 : capacity;
}

/*
 * How many there is room for.
 * Threads: any. Progress: wait-free.
 */
#define bide_spsc_ring_capacity(ring) ((ring)->capacity)

BIDE_EXTERN_C_END

#endif
