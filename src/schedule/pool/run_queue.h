/*
 * The run queue of a pool's worker: a bounded ring, first in, first out. Its owner, the worker, pushes
 * and takes. The other workers are thieves: they take half of it at once into their own rings.
 *
 *     head                 tail
 *      v                    v
 *     [h  h+1  ...     t-1] t          taken in order from head, pushed at tail; both only grow
 *
 *     tail    written by the owner alone
 *     head    advanced by a taker's compare-exchange: the positions between the old and the new value
 *             are the taker's
 *
 * Why it is correct:
 *
 * 1. No awaiter is taken twice: each position is in the range of one successful exchange of `head`.
 *    None is lost: the exchanges advance from value to value without a gap.
 * 2. A taker has read the awaiters of its positions. It reads the slots before its exchange, which
 *    releases, and the owner acquires `head` before it reuses a slot. So it did not read a write that
 *    follows the exchange. If it read a later write that precedes the exchange, the owner had seen an
 *    advanced `head`, so the exchange, which expects the older value, fails. (For an ABA, `head` would
 *    have to wrap around, through 2^32 takes, during one take.)
 * 3. A thief acquires `tail`, so it sees the slots that were written before, and the coroutines. It
 *    may have read a `head` and a `tail` that did not exist at the same time. Then the count exceeds
 *    the ring's size, or the exchange fails.
 * 4. A thief publishes the awaiters that it has taken by the tail of its own ring, as a push does.
 */
#ifndef BIDE_SCHEDULE_POOL_RUN_QUEUE_H
#define BIDE_SCHEDULE_POOL_RUN_QUEUE_H

#include "bide/frame.h"

/* A power of two; small under the model checker, so that it overflows. */
enum { BIDE_RUN_QUEUE_SIZE_ = BIDE_CHECK ? 4 : 256 };

typedef struct bide_run_queue_ {
    bide_atomic(uint32_t) head; /* writers: the owner and thieves */
    bide_atomic(uint32_t) tail; /* writer: the owner */
    bide_atomic(bide_awaiter *) slots[BIDE_RUN_QUEUE_SIZE_];
} bide_run_queue_;

BIDE_INLINE void bide_run_queue_init_(bide_run_queue_ *queue)
{
    bide_atomic_init(&queue->head, 0);
    bide_atomic_init(&queue->tail, 0);
    for (uint32_t i = 0; i < BIDE_RUN_QUEUE_SIZE_; i++)
        bide_atomic_init(&queue->slots[i], NULL);
}

BIDE_INLINE bide_atomic(bide_awaiter *) * bide_run_queue_slot_(bide_run_queue_ *queue, uint32_t at)
{
    return &queue->slots[at % BIDE_RUN_QUEUE_SIZE_];
}

/* To other threads than the owner's, a hint. */
BIDE_INLINE bool bide_run_queue_is_empty_(bide_run_queue_ *queue)
{
    return bide_atomic_load(&queue->head, relaxed) == bide_atomic_load(&queue->tail, relaxed);
}

/* The number of free slots, at least. The owner's. */
BIDE_INLINE uint32_t bide_run_queue_room_(bide_run_queue_ *queue)
{
    uint32_t tail = bide_atomic_load(&queue->tail, relaxed);
    /* acquire: 2; partners are the exchanges of the takers */
    uint32_t head = bide_atomic_load(&queue->head, acquire);
    bide_assert(tail - head <= BIDE_RUN_QUEUE_SIZE_);
    return BIDE_RUN_QUEUE_SIZE_ - (tail - head);
}

/* The position behind the newest. The owner's. */
BIDE_INLINE uint32_t bide_run_queue_end_(bide_run_queue_ *queue)
{
    return bide_atomic_load(&queue->tail, relaxed);
}

/*
 * Whether all before position `end` were taken. The owner's. False now and then although they were: half of
 * all positions count as ahead.
 */
BIDE_INLINE bool bide_run_queue_is_past_(bide_run_queue_ *queue, uint32_t end)
{
    return (int32_t)(bide_atomic_load(&queue->head, relaxed) - end) >= 0;
}

/* The owner's. False: the ring is full. */
BIDE_INLINE bool bide_run_queue_push_(bide_run_queue_ *queue, bide_awaiter *awaiter)
{
    uint32_t tail = bide_atomic_load(&queue->tail, relaxed);
    /* acquire: 2; partners are the exchanges of the takers */
    uint32_t head = bide_atomic_load(&queue->head, acquire);
    bide_assert(tail - head <= BIDE_RUN_QUEUE_SIZE_);
    if (tail - head == BIDE_RUN_QUEUE_SIZE_)
        return false;
    bide_atomic_store(bide_run_queue_slot_(queue, tail), awaiter, relaxed);
    /* release: 3; partner is the thief's load */
    bide_atomic_store(&queue->tail, tail + 1, release);
    return true;
}

/*
 * Whether `awaiter` is in the ring. A hint, unless nobody who could run it takes from the ring meanwhile.
 * Nothing is read through the awaiters.
 */
BIDE_INLINE bool bide_run_queue_has_(bide_run_queue_ *queue, const bide_awaiter *awaiter)
{
    uint32_t head = bide_atomic_load(&queue->head, relaxed);
    uint32_t count = bide_atomic_load(&queue->tail, acquire) - head; /* 3; partner: push */
    for (uint32_t i = 0; i < count && i < BIDE_RUN_QUEUE_SIZE_; i++) {
        if (bide_atomic_load(bide_run_queue_slot_(queue, head + i), relaxed) == awaiter)
            return true;
    }
    return false;
}

/* The owner's. Takes the oldest; NULL: the ring is empty. */
BIDE_INLINE bide_awaiter *bide_run_queue_take_(bide_run_queue_ *queue)
{
    uint32_t tail = bide_atomic_load(&queue->tail, relaxed);
    uint32_t head = bide_atomic_load(&queue->head, relaxed);
    while (head != tail) {
        bide_awaiter *awaiter = bide_atomic_load(bide_run_queue_slot_(queue, head), relaxed);
        /* relaxed: the slots are this thread's own writes */
        if (BIDE_LIKELY(
                bide_atomic_compare_exchange_weak(&queue->head, &head, head + 1, relaxed, relaxed)))
            return awaiter;
    }
    return NULL;
}

/* As bide_run_queue_take_, without thieves. */
BIDE_INLINE bide_awaiter *bide_run_queue_take_alone_(bide_run_queue_ *queue)
{
    uint32_t head = bide_atomic_load(&queue->head, relaxed);
    if (head == bide_atomic_load(&queue->tail, relaxed))
        return NULL;
    bide_atomic_store(&queue->head, head + 1, relaxed);
    return bide_atomic_load(bide_run_queue_slot_(queue, head), relaxed);
}

/* The owner's, of a full ring. Appends the older half to `chain`; false: the ring is not full. */
BIDE_INLINE bool bide_run_queue_take_half_(bide_run_queue_ *queue, bide_awaiter_chain *chain)
{
    enum { HALF = BIDE_RUN_QUEUE_SIZE_ / 2 };
    uint32_t tail = bide_atomic_load(&queue->tail, relaxed);
    uint32_t head = tail - BIDE_RUN_QUEUE_SIZE_;
    bide_awaiter *taken[HALF];
    for (uint32_t i = 0; i < HALF; i++)
        taken[i] = bide_atomic_load(bide_run_queue_slot_(queue, head + i), relaxed);
    /* relaxed: as in take */
    if (!bide_atomic_compare_exchange(&queue->head, &head, head + HALF, relaxed, relaxed))
        return false;
    for (uint32_t i = 0; i < HALF; i++) {
        taken[i]->link = NULL;
        bide_awaiter_chain_append(chain, taken[i], taken[i]);
    }
    return true;
}

/*
 * A thief's, whose own ring is empty. Takes the older half of `victim`, rounded up: returns the oldest
 * awaiter, and puts the others into its own ring. NULL: the ring was empty, or another taker won.
 */
BIDE_INLINE bide_awaiter *bide_run_queue_steal_(bide_run_queue_ *thief, bide_run_queue_ *victim)
{
    uint32_t head = bide_atomic_load(&victim->head, relaxed);         /* 3 */
    uint32_t count = bide_atomic_load(&victim->tail, acquire) - head; /* 3; partner: push */
    if (count == 0 || count > BIDE_RUN_QUEUE_SIZE_)
        return NULL;
    count -= count / 2;
    bide_awaiter *oldest = bide_atomic_load(bide_run_queue_slot_(victim, head), relaxed);
    uint32_t tail = bide_atomic_load(&thief->tail, relaxed);
    /* acquire: 2, as in push: all earlier awaiters of these slots have been taken */
    uint32_t own_head = bide_atomic_load(&thief->head, acquire);
    bide_assert(tail - own_head + count - 1 <= BIDE_RUN_QUEUE_SIZE_);
    (void)own_head;
    for (uint32_t i = 1; i < count; i++) {
        bide_awaiter *awaiter = bide_atomic_load(bide_run_queue_slot_(victim, head + i), relaxed);
        bide_atomic_store(bide_run_queue_slot_(thief, tail + i - 1), awaiter, relaxed);
    }
    /* release: 2; partner is the load of head in push */
    if (!bide_atomic_compare_exchange(&victim->head, &head, head + count, release, relaxed))
        return NULL;
    if (count > 1)
        bide_atomic_store(&thief->tail, tail + count - 1, release); /* 4; partner: a thief's load */
    return oldest;
}

/* A thief's. Takes the oldest alone. NULL: the ring was empty, or another taker won. */
BIDE_INLINE bide_awaiter *bide_run_queue_steal_one_(bide_run_queue_ *victim)
{
    uint32_t head = bide_atomic_load(&victim->head, relaxed);         /* 3 */
    uint32_t count = bide_atomic_load(&victim->tail, acquire) - head; /* 3; partner: push */
    if (count == 0 || count > BIDE_RUN_QUEUE_SIZE_)
        return NULL;
    bide_awaiter *oldest = bide_atomic_load(bide_run_queue_slot_(victim, head), relaxed);
    /* release: 2; partner is the load of head in push */
    return bide_atomic_compare_exchange(&victim->head, &head, head + 1, release, relaxed) ? oldest
                                                                                          : NULL;
}

#endif
