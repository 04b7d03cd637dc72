/*
 * An unbounded lock-free queue of many producers and many consumers: a list of segments of cells,
 * which producers are given by fetch-and-add as long as they are not in each other's way.
 * Floor: queue.
 *
 *     typedef bide_segment_queue(struct job) job_queue;
 *     bide_hazard_init(&domain, seats, 16);
 *     bide_segment_queue_init(&queue, &domain, &bide_heap, 1024);
 *     bide_hazard_seat *seat = bide_hazard_join(&domain);      // each thread has one
 *     bide_segment_queue_push(&queue, seat, &job);
 *     bide_segment_queue_pop(&queue, seat, &job);
 *
 * Any thread may push, pop and close, with a seat of its own. It is lock-free, except for the
 * allocator, and linearizable. A cell that is given up costs its producer and its consumer one more
 * try each, and the segment a cell; a new segment brings the element of its producer along, so one
 * push ends at least with each.
 *
 * Segments are protected by hazard pointers: a seat's hazard 0 by a push, 1 by a pop. They stay set
 * from one call to the next, so a push or pop in the segment of the one before costs a load for it.
 * A seat that rests keeps up to two segments, unless its owner clears them (bide_hazard_clear).
 *
 * How much memory there is: the segments from head to tail, and what was popped and is not
 * reclaimed yet. Of that, with S seats in the domain and C cells in a segment, no more than 64
 * segments or 16 * S / (1 + C / 32), whichever is more, and those that are protected, 2 * S at most
 * and usually a few. A segment has 320 bytes and C * (the size of an element, and 8, as aligned).
 * So with 512 seats and 1,024 elements of 8 bytes: 248 segments, 4.2 MB; if each seat has come to
 * rest in two segments of its own, 21 MB.
 *
 * Elements are copied as memcpy does. In the macros `queue_` may be evaluated more than once, the
 * other arguments once. The numbers of cells in a segment are size_t: where that is 32 bits, 2^31
 * cells.
 *
 * Why it is right:
 *
 *     head -> segment -> segment -> segment -> 0         next: 0, the next segment, or CLOSED
 *                                   ^ tail
 *     segment    pushed     how many cells producers were given; may go past the end;
 *                           the top bit: CLOSED
 *                popped     how many cells consumers were given: never past what `pushed` was
 *                cells      element
 *                           state: EMPTY --its producer has put the element there--> FULL
 *                           claim: NOBODY, or the first to claim the cell: PRODUCERS, CONSUMERS
 *                early      NO, ARMING, YES: has a consumer come too early to some cell?
 *
 *     push    take the next cell of tail's segment; fill it; EMPTY to FULL. If consumers come early
 *             here, claim it: it may have been given up; then the element goes to another cell.
 *             No cell is left: a new segment, with the element in it, behind the last; tail there
 *     pop     if fewer were popped than pushed in head's segment, take the next cell.
 *             FULL: it is ours. EMPTY: look a few times more; then say that a consumer has come
 *             early, claim the cell, and take another one.
 *             All cells were popped: head to the next segment, and retire this one
 *     close   next of the last segment from 0 to CLOSED, so none follows;
 *             CLOSED into its pushed, so no cell is given
 *
 * 1. A segment appears in `next` by a compare-exchange that releases what is in it, and in tail and
 *    head by others that release it again. A thread that gets it there acquires.
 * 2. A cell has one producer and one consumer. FULL is stored with release, and acquired by the
 *    thread that finds it; it is the last state of that cell, and nobody else writes the element.
 *    To fill a cell takes no locked instruction: the consumer that does not want to wait any longer
 *    pays,
 *
 *        producer:  S  state.store(FULL, release)     consumer:  Y  early.store(ARMING)
 *                   L  light fence                               X  heavy fence; early.store(YES)
 *                   E  early.load(): NO: it is done;             F  state.load(acquire): FULL:
 *                      else: claim it                               it is taken; else: claim it
 *
 *    If E finds NO, L came before X (fence.h), so F finds FULL; also in a consumer that acquired
 * YES and needs no X. Otherwise both claim, by an exchange, which both see, and the second gives
 * way. A consumer gives way by taking the element, which the producer's exchange has released; a
 * producer by taking another cell.
 * 3. A consumer takes cells only if `pushed` was past them, and by a compare-exchange of what it
 *    found in `popped`. So none is taken twice, nor one that no producer was given. Some are not
 *    filled any more: see 7.
 * 4. Empty: `popped` is loaded (acquire), and then `pushed`, which is no more than that. The
 *    consumer that raised popped had seen pushed beyond it, and released that. So pushed is loaded
 *    no older, and when it was loaded each cell that a producer had was some consumer's.
 * 5. Tail leaves a segment before head does: the thread that moves head has seen tail elsewhere, or
 *    moved it. So a segment that head has left is in none of the two, and may be retired, by the
 *    thread that moved head.
 * 6. A hazard that was set and checked once protects as long as it is set. So if tail is found at
 *    what it holds already, that is protected, even if in between it was elsewhere.
 * 7. Closed: once CLOSED is in `pushed` no cell is given to be filled, and no segment follows. A
 *    producer that had a cell before fills it, or finds it claimed and then fails. A producer that
 *    fails takes its cells off again. A consumer may have taken them meanwhile, and so get to the
 *    end of the segment: it has seen CLOSED then (acquire), or acquires from one that has (4), so
 *    it finds it in `next` too.
 *
 * Heuristics, on which nothing depends but speed:
 *
 * 8. Consumers that are faster than producers would follow them from cell to cell, and each cell's
 *    line, and that of `pushed`, would go to and fro. So where looks at `pushed` have found few
 *    cells some times, and never none, a pop pauses for some microseconds, and looks again;
 *    meanwhile producers have those lines alone. If not many came, the producers are slower, so
 *    consumers stop pausing for most of the segment. Where they find none now and then, as where an
 *    element is answered by another, they do not pause.
 * 9. A thread that comes in another's way pauses before it tries again, so that the other has the
 *    cache lines alone for a while: for some microseconds, then for twice as long, and so on. A
 *    consumer does so if its compare-exchange fails. A fetch-and-add does not fail. So one producer
 *    in 16, by the number of the cell that it was given, looks whether `pushed` has moved on
 *    already. Then its seat is `crowded`: it takes its cells by a compare-exchange too, until so
 *    many in a row have not failed. All these are hints: it does not matter which way a cell is
 *    given, nor to which queue the seat came last.
 *
 * Source: Correia and Ramalhete, FAAArrayQueue (2016), after Morrison and Afek, LCRQ (2013), and
 * Yang and Mellor-Crummey (2016).
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
 * What a cell is. Its type is known to macros only: functions take the sizes of a cell (`stride`)
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
