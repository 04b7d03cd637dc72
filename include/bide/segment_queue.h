/*
 * An unbounded lock-free queue of many producers and many consumers: a list of segments of cells,
 * which producers get by fetch-and-add as long as they do not collide. Floor: queue.
 *
 *     typedef bide_segment_queue(struct job) job_queue;
 *     bide_hazard_init(&domain, seats, 16);
 *     bide_segment_queue_init(&queue, &domain, &bide_heap, 1024);
 *     bide_hazard_seat *seat = bide_hazard_join(&domain);      // each thread has one
 *     bide_segment_queue_push(&queue, seat, &job);
 *     bide_segment_queue_pop(&queue, seat, &job);
 *
 * Any thread may push, pop and close, with a seat of its own. The queue is linearizable, and
 * lock-free except for the allocator. Hazard pointers protect the segments; an idle seat keeps up
 * to two of them, unless its owner clears them (bide_hazard_clear).
 *
 * Garbage is bounded: with 512 seats and segments of 1,024 elements of 8 bytes, 4.2 MB, or 21 MB if
 * each seat is idle in two segments of its own. The argument has the formula.
 *
 * Elements are copied as by memcpy. In the macros `queue_` may be evaluated more than once, the
 * other arguments once. Why it is correct: docs/internals/segment_queue.md. The numbers below refer
 * to that.
 */
#ifndef BIDE_SEGMENT_QUEUE_H
#define BIDE_SEGMENT_QUEUE_H

#include "bide/allocator.h"
#include "bide/detail/element.h"
#include "bide/detail/tuning.h"
#include "bide/errors.h"
#include "bide/hazard.h"

BIDE_EXTERN_C_BEGIN

enum { BIDE_CELL_EMPTY_, BIDE_CELL_FULL_ };
enum { BIDE_CELL_NOBODYS_, BIDE_CELL_PRODUCERS_, BIDE_CELL_CONSUMERS_ };
enum { BIDE_SEGMENT_NOT_EARLY_, BIDE_SEGMENT_ARMING_, BIDE_SEGMENT_EARLY_ };

/* How many cells of a segment weigh as much as an object, when it is retired (hazard.h). */
enum { BIDE_SEGMENT_WEIGHS_ = 32 };

/* In `pushed`. */
#define BIDE_SEGMENT_CLOSED_ (SIZE_MAX / 2 + 1)

/*
 * The type of a cell. It is known to macros only: functions take the sizes of a cell (`stride`)
 * and an element.
 */
#define BIDE_SEGMENT_CELL_(type)      \
    struct {                          \
        type element_;                \
        bide_atomic(uint32_t) state_; \
        bide_atomic(uint32_t) claim_; \
    }

BIDE_INLINE bide_atomic(uint32_t) * bide_segment_state_(unsigned char *cell, size_t size)
{
    const size_t align = sizeof(uint32_t) - 1;
    return (bide_atomic(uint32_t) *)(void *)(cell + ((size + align) & ~align));
}

typedef struct bide_segment_ {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(size_t) pushed;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(size_t) popped;
    bide_atomic(size_t) seen; /* no more than `pushed`, so that consumers need not look there */
    bide_atomic(uint32_t) patience; /* how often they may find few there before they pause */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(void *) next;
    bide_atomic(uint32_t) early;
    bide_hazard_retired retired;
    bide_allocator *allocator; /* constant, as is what follows */
    void *memory;              /* what the allocator gave */
    size_t size;               /* of it */
} bide_segment_;

/*
 * A cell. They follow the segment, on cache lines of their own: its size is a multiple of a line.
 */
BIDE_INLINE unsigned char *bide_segment_cell_(bide_segment_ *segment, size_t index, size_t stride)
{
    return (unsigned char *)(segment + 1) + index * stride;
}

typedef struct bide_segment_queue_ {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(void *) head;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(void *) tail;
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_hazard_domain *domain; /* constant, as is what follows */
    bide_allocator *allocator;
    size_t cells;        /* of a segment */
    size_t stride, size; /* of a cell, of an element */
} bide_segment_queue_;

/*
 * A queue of elements of `type`, aligned to BIDE_CACHE_LINE at most. Each use is a type of its own,
 * to be named by a typedef.
 */
#define bide_segment_queue(type)           \
    struct {                               \
        bide_segment_queue_ queue;         \
        BIDE_SEGMENT_CELL_(type) * typed_; \
    }

#define BIDE_SEGMENT_STRIDE_(queue_) (sizeof *(queue_)->typed_)

int bide_segment_queue_init_(bide_segment_queue_ *queue, bide_hazard_domain *domain,
                             bide_allocator *allocator, size_t cells, size_t stride, size_t size);
void bide_segment_queue_destroy_(bide_segment_queue_ *queue);
void bide_segment_queue_close_(bide_segment_queue_ *queue, bide_hazard_seat *seat);

/* Lets the winner go on alone for a while. */
void bide_segment_lost_(unsigned *pauses);

/* Gives `wanted` cells to a producer whose seat is crowded. Returns what `pushed` was. */
size_t bide_segment_give_(bide_segment_queue_ *queue, bide_hazard_seat *seat,
                          bide_segment_ *segment, size_t wanted);

/* A producer was given `wanted` cells at `given` by fetch-and-add: 9. */
BIDE_INLINE void bide_segment_look_around_(bide_hazard_seat *seat, bide_segment_ *segment,
                                           size_t given, size_t wanted)
{
    /* A number of 4 bits that depends on all others: it is one in 16 whatever the batches are. */
    bool looks = (uint32_t)given * UINT32_C(0x9e3779b1) >> 28 == 0;
    if (BIDE_UNLIKELY(looks) && bide_atomic_load(&segment->pushed, relaxed) != given + wanted)
        seat->crowded = BIDE_SEGMENT_CROWDED_;
}

/*
 * The caller was given cells behind the end of the last segment, or of a closed one. NULL and 0 if
 * there is another now, or -EPIPE or -ENOMEM; or a new one, to be linked with one element.
 */
bide_segment_ *bide_segment_prepare_(bide_segment_queue_ *queue, bide_segment_ *last, size_t given,
                                     size_t taken, int *status);

/* Links it, its first element being written; or frees it, if there is another. */
bool bide_segment_link_(bide_segment_queue_ *queue, bide_segment_ *last, bide_segment_ *fresh);

/*
 * Nothing is known to be left in the segment, `popped` having been found. 0 if there is something,
 * with *limit; 1: look again, at another; -EAGAIN or -EPIPE.
 */
int bide_segment_look_(bide_segment_queue_ *queue, bide_hazard_seat *seat, bide_segment_ *segment,
                       size_t popped, size_t *limit);

/*
 * The cell was EMPTY when it was looked at. Is it FULL? Claims it if not; then it is given up, or
 * FULL after all.
 */
bool bide_segment_wait_(bide_segment_ *segment, bide_atomic(uint32_t) * state);

/* The cell was filled, where consumers come early. False: it was given up before. */
bool bide_segment_claim_(bide_atomic(uint32_t) * state);

/*
 * Would a pop, now, say anything but -EAGAIN? True if in doubt. It sees what was done before a
 * fence that another has passed. The seat's owner.
 */
bool bide_segment_queue_may_pop_(bide_segment_queue_ *queue, bide_hazard_seat *seat);

/* Calls function(argument, element) for each element that is in it. No thread uses it any more. */
void bide_segment_queue_visit_(bide_segment_queue_ *queue,
                               void (*function)(void *argument, void *element), void *argument);

/* Loads head or tail, protected. The seat's owner. */
BIDE_INLINE bide_segment_ *bide_segment_protect_(bide_hazard_seat *seat, size_t index,
                                                 bide_atomic(void *) * source)
{
    /* relaxed, both: its own; and what is found at that was acquired when it was protected. */
    void *held = bide_atomic_load(&seat->hazards[index], relaxed);
    void *found = bide_atomic_load(source, relaxed);
    if (BIDE_UNLIKELY(found != held)) /* 6 */
        found = bide_hazard_protect(seat, index, source);
    return (bide_segment_ *)found;
}

BIDE_INLINE ptrdiff_t bide_segment_queue_push_many_(bide_segment_queue_ *queue,
                                                    bide_hazard_seat *seat, const void *from,
                                                    size_t stride, size_t size, size_t count)
{
    const unsigned char *next = (const unsigned char *)from;
    size_t left = count;
    while (left != 0) {
        bide_segment_ *segment = bide_segment_protect_(seat, 0, &queue->tail);
        size_t wanted = left;
        size_t given = BIDE_LIKELY(seat->crowded == 0)
                           ? bide_atomic_fetch_add(&segment->pushed, wanted, relaxed)
                           : bide_segment_give_(queue, seat, segment, wanted);
        if (BIDE_LIKELY(given < queue->cells)) {
            size_t end = wanted < queue->cells - given ? given + wanted : queue->cells;
            bide_segment_look_around_(seat, segment, given, wanted);
            for (; given < end; given++) {
                unsigned char *cell = bide_segment_cell_(segment, given, stride);
                bide_atomic(uint32_t) *state = bide_segment_state_(cell, size);
                bide_element_copy_(cell, next, size);
                bide_atomic_store(state, BIDE_CELL_FULL_, release); /* S; partners: F, and below */
                bide_atomic_fence_light();                          /* L; partner: X */
                /* relaxed: E. */
                if (BIDE_LIKELY(bide_atomic_load(&segment->early, relaxed) ==
                                BIDE_SEGMENT_NOT_EARLY_) ||
                    bide_segment_claim_(state)) {
                    next += size;
                    left--;
                }
            }
            continue;
        }
        int status;
        bide_segment_ *fresh = bide_segment_prepare_(queue, segment, given, wanted, &status);
        if (fresh != NULL) {
            bide_element_copy_(bide_segment_cell_(fresh, 0, stride), next, size);
            if (bide_segment_link_(queue, segment, fresh)) {
                next += size;
                left--;
            }
        } else if (status != 0) {
            return left != count ? (ptrdiff_t)(count - left) : status;
        }
    }
    return (ptrdiff_t)count;
}

/*
 * Takes the elements of `count` cells, from `given` on, as far as they are FULL. Returns how many.
 */
BIDE_INLINE size_t bide_segment_take_(bide_segment_ *segment, size_t given, size_t end,
                                      unsigned char *to, size_t stride, size_t size)
{
    size_t taken = 0;
    for (; given < end; given++) {
        unsigned char *cell = bide_segment_cell_(segment, given, stride);
        bide_atomic(uint32_t) *state = bide_segment_state_(cell, size);
        /* acquire: 2, partner is S. */
        if (BIDE_LIKELY(bide_atomic_load(state, acquire) == BIDE_CELL_FULL_) ||
            bide_segment_wait_(segment, state)) {
            bide_element_copy_(to + taken * size, cell, size);
            taken++;
        }
    }
    return taken;
}

BIDE_INLINE ptrdiff_t bide_segment_queue_pop_many_(bide_segment_queue_ *queue,
                                                   bide_hazard_seat *seat, void *to, size_t stride,
                                                   size_t size, size_t count, bool single)
{
    size_t done = 0;
    unsigned pauses = BIDE_SEGMENT_PAUSES_;
    while (done < count) {
        /* A single consumer is the only thread that moves head. */
        bide_segment_ *segment = single ? (bide_segment_ *)bide_atomic_load(&queue->head, relaxed)
                                        : bide_segment_protect_(seat, 1, &queue->head);
        size_t popped = bide_atomic_load(&segment->popped, acquire); /* 4 */
        size_t limit = bide_atomic_load(&segment->seen, relaxed);    /* a hint */
        if (popped >= limit) {
            int status = bide_segment_look_(queue, seat, segment, popped, &limit);
            if (status < 0)
                return done != 0 ? (ptrdiff_t)done : status;
            if (status != 0)
                continue;
        }
        size_t wanted = count - done < limit - popped ? count - done : limit - popped;
        size_t given = popped, end = popped + wanted;
        if (single) {
            bide_atomic_store(&segment->popped, end, relaxed);
        } else if (BIDE_UNLIKELY(
                       /* release: 4. */
                       !bide_atomic_compare_exchange(&segment->popped, &popped, end, release,
                                                     relaxed))) {
            bide_segment_lost_(&pauses);
            continue;
        }
        done += bide_segment_take_(segment, given, end, (unsigned char *)to + done * size, stride,
                                   size);
    }
    return (ptrdiff_t)count;
}

BIDE_INLINE int bide_segment_queue_one_(ptrdiff_t moved)
{
    return moved < 0 ? (int)moved : 0;
}

#define BIDE_SEGMENT_SIZE_(queue_) sizeof((queue_)->typed_->element_)

/*
 * Makes an empty queue that takes a segment of `cells` (1 to SIZE_MAX / 4) elements at a time from
 * `allocator`, the first one now. Any thread that has a seat in `domain` calls the allocator; the
 * domain protects the segments. Users of the queue have a seat in it. Both outlive the queue, and
 * `allocator` the domain.
 * Threads: before it is shared. Errors: -ENOMEM.
 */
#define bide_segment_queue_init(queue_, domain, allocator, cells)              \
    bide_segment_queue_init_(&(queue_)->queue, (domain), (allocator), (cells), \
                             BIDE_SEGMENT_STRIDE_(queue_), BIDE_SEGMENT_SIZE_(queue_))

/*
 * Gives the segments back, with the elements that are in them. Nobody uses the queue any more.
 * Threads: one at a time.
 */
#define bide_segment_queue_destroy(queue_) bide_segment_queue_destroy_(&(queue_)->queue)

/*
 * Puts a copy of the element that `from` points to at the end. `seat` is the caller's, of the
 * queue's domain.
 * Threads: any. Errors: -EPIPE (closed), -ENOMEM. Progress: lock-free, except for the allocator.
 */
#define bide_segment_queue_push(queue_, seat, from) \
    bide_segment_queue_one_(bide_segment_queue_push_many(queue_, seat, from, 1))

/*
 * Takes the first element, to where `to` points. `seat` is the caller's, of the queue's domain.
 * Threads: any. Errors: -EAGAIN (empty), -EPIPE (empty and closed). Progress: lock-free, except for
 * the allocator.
 */
#define bide_segment_queue_pop(queue_, seat, to) \
    bide_segment_queue_one_(bide_segment_queue_pop_many(queue_, seat, to, 1))

/*
 * Puts `count` elements of the array `from` at the end, side by side except for what comes between
 * where a segment ends or a consumer was too fast; their cells are given out at once. Returns how
 * many, fewer if the queue was closed or memory was short meanwhile; 0 only if `count` is; or an
 * error, and then none.
 * Threads: any. Errors: -EPIPE (closed), -ENOMEM. Progress: lock-free, except for the allocator.
 */
#define bide_segment_queue_push_many(queue_, seat, from, count)               \
    bide_segment_queue_push_many_(                                            \
        &(queue_)->queue, (seat), (1 ? (from) : &(queue_)->typed_->element_), \
        BIDE_SEGMENT_STRIDE_(queue_), BIDE_SEGMENT_SIZE_(queue_), (count))

/*
 * Takes up to `count` elements to the array `to`, in order. Returns how many, 0 only if `count` is;
 * or an error, and then none.
 * Threads: any. Errors: -EAGAIN (empty), -EPIPE (empty and closed). Progress: lock-free, except for
 * the allocator.
 */
#define bide_segment_queue_pop_many(queue_, seat, to, count) \
    BIDE_SEGMENT_POP_(queue_, seat, to, count, false)

/*
 * The same where there is one consumer, one thread at a time: without a locked instruction. Nobody
 * else pops.
 * Threads: the consumer's. Errors: as bide_segment_queue_pop. Progress: lock-free, except for the
 * allocator.
 */
#define bide_segment_queue_pop_single(queue_, seat, to) \
    bide_segment_queue_one_(bide_segment_queue_pop_many_single(queue_, seat, to, 1))
#define bide_segment_queue_pop_many_single(queue_, seat, to, count) \
    BIDE_SEGMENT_POP_(queue_, seat, to, count, true)

#define BIDE_SEGMENT_POP_(queue_, seat, to, count, single)                  \
    bide_segment_queue_pop_many_(                                           \
        &(queue_)->queue, (seat), (1 ? (to) : &(queue_)->typed_->element_), \
        BIDE_SEGMENT_STRIDE_(queue_), BIDE_SEGMENT_SIZE_(queue_), (count), (single))

/*
 * Closes it for good: pushes fail from now on, what is in it may be taken. More than once is once.
 * Threads: any. Progress: lock-free.
 */
#define bide_segment_queue_close(queue_, seat) bide_segment_queue_close_(&(queue_)->queue, (seat))

BIDE_EXTERN_C_END

#endif
