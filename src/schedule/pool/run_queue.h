/*
 * The run queue of a pool's worker: a ring, first in, first out. The worker that owns it pushes and
 * takes; other workers, the thieves, take half of it at once into rings of their own.
 *
 *     head                 tail
 *      v                    v
 *     [h  h+1  ...     t-1] t          taken in order from head, pushed at tail; both count on
 *
 *     tail    written by the owner alone
 *     head    moved on by whoever takes, by a compare-exchange: what lies between the old and the
 *             new value is the taker's
 *
 * Why it is right:
 *
 * 1. Nothing is taken twice: each position is in the range of one successful exchange of `head`.
 *    Nothing is lost: the exchanges lead from value to value without a gap.
 * 2. What a taker has read in its slots belongs to their positions. It has read them before its
 *    exchange, which releases, and the owner acquires `head` before it writes a slot anew. So what
 *    is written after the exchange is not what was read. What was written before it is found out:
 *    the owner had seen `head` move on, so the exchange, which expects the value before that,
 *    fails. `head` would have to go once round, through 2^32 takes, during one take.
 * 3. A thief acquires `tail`, so it sees what was written in the slots before that, and the
 *    coroutines that they stand for. It may have read a `head` and a `tail` that were never there
 *    at once. Then there seem to be more than the ring holds, or the exchange fails.
 * 4. What a thief takes it publishes in its own ring by its own tail, as a push does.
 */
#ifndef BIDE_SCHEDULE_POOL_RUN_QUEUE_H
#define BIDE_SCHEDULE_POOL_RUN_QUEUE_H

#include "bide/frame.h"

/* How many a ring holds: a power of two. The model checker sees it overflow. */
enum { BIDE_RUN_QUEUE_SIZE_ = BIDE_CHECK ? 4 : 256 };

typedef struct bide_run_queue_ {
    bide_atomic(uint32_t) head; /* writers: all who take */
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

/* Is it empty? A hint, to other threads than the owner's. */
BIDE_INLINE bool bide_run_queue_is_empty_(bide_run_queue_ *queue)
{
    return bide_atomic_load(&queue->head, relaxed) == bide_atomic_load(&queue->tail, relaxed);
}

/* How many more it holds. The owner's; there may be more by the time it returns. */
BIDE_INLINE uint32_t bide_run_queue_room_(bide_run_queue_ *queue)
{
    uint32_t tail = bide_atomic_load(&queue->tail, relaxed);
    /* acquire: 2; partners are the exchanges of the takers */
    uint32_t head = bide_atomic_load(&queue->head, acquire);
    return BIDE_RUN_QUEUE_SIZE_ - (tail - head);
}

/* The owner's. False: it is full. */
BIDE_INLINE bool bide_run_queue_push_(bide_run_queue_ *queue, bide_awaiter *awaiter)
{
    uint32_t tail = bide_atomic_load(&queue->tail, relaxed);
    /* acquire: 2; partners are the exchanges of the takers */
    uint32_t head = bide_atomic_load(&queue->head, acquire);
    if (tail - head == BIDE_RUN_QUEUE_SIZE_)
        return false;
    bide_atomic_store(bide_run_queue_slot_(queue, tail), awaiter, relaxed);
    /* release: 3; partner is the thief's load */
    bide_atomic_store(&queue->tail, tail + 1, release);
    return true;
}

/* The owner's: takes the oldest, or returns NULL. */
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

/* The same where there are no thieves. */
BIDE_INLINE bide_awaiter *bide_run_queue_take_alone_(bide_run_queue_ *queue)
{
    uint32_t head = bide_atomic_load(&queue->head, relaxed);
    if (head == bide_atomic_load(&queue->tail, relaxed))
        return NULL;
    bide_atomic_store(&queue->head, head + 1, relaxed);
    return bide_atomic_load(bide_run_queue_slot_(queue, head), relaxed);
}

/*
 * The owner's, of a queue that is full: takes the older half and appends it to `chain`. False: it
 * is full no more.
 */
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
 * A thief's, whose own queue is empty: takes the older half of `victim`, rounded up. Returns the
 * oldest, and puts the others into its own queue; NULL: there was nothing, or others were faster.
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
    /* acquire: 2, as in push: all that was in these slots has been taken */
    (void)bide_atomic_load(&thief->head, acquire);
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

/* A thief's: takes the oldest alone; NULL: there was nothing, or others were faster. */
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
