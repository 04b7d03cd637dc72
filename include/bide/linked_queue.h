/*
 * An unbounded queue of one producer and one consumer: a list of nodes from a pool. Floor: queue.
 *
 *     typedef bide_linked_queue(struct job) job_queue;
 *     bide_node_pool_init(&pool, &bide_heap, bide_linked_queue_node_size(struct job), 1024, 1000);
 *     bide_linked_queue_init(&queue, &producers_cache);
 *     bide_linked_queue_push(&queue, &producers_cache, &job);
 *     bide_linked_queue_pop(&queue, &consumers_cache, &job);
 *
 * One thread at a time is the producer, which pushes and closes; one is the consumer, which pops.
 * Each has a cache of nodes; nodes travel back through the pool, in batches. Everything is
 * wait-free except for the pool, which is lock-free.
 *
 * Elements are copied as by memcpy. In the macros `queue_` may be evaluated more than once, the
 * other arguments once.
 */
#ifndef BIDE_LINKED_QUEUE_H
#define BIDE_LINKED_QUEUE_H

#include "bide/detail/element.h"
#include "bide/node_pool.h"

BIDE_EXTERN_C_BEGIN

/* Where the element is: aligned as the node. The index of the next is in front of it. */
enum { BIDE_LINKED_ELEMENT_ = BIDE_ALLOCATOR_ALIGN };

typedef struct bide_linked_queue_ {
    /* the consumer's */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) uint32_t head;
    uint32_t seen;        /* of tail */
    bide_node_pool *pool; /* constant */
    /* the producer's; the consumer looks at them */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(uint32_t) tail;
    bide_atomic(uint32_t) closed;
} bide_linked_queue_;

/*
 * A queue of elements of `type`, aligned to BIDE_ALLOCATOR_ALIGN at most. Each use is a type of its
 * own, to be named by a typedef.
 */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none */
#define bide_linked_queue(type)   \
    struct {                      \
        bide_linked_queue_ queue; \
        type *typed_;             \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

/* The size of the nodes of its pool, at least. */
#define bide_linked_queue_node_size(type) (BIDE_LINKED_ELEMENT_ + sizeof(type))

BIDE_INLINE uint32_t *bide_linked_next_(const bide_node_pool *pool, uint32_t index)
{
    return (uint32_t *)bide_node_at(pool, index);
}

BIDE_INLINE void *bide_linked_element_(const bide_node_pool *pool, uint32_t index)
{
    return (unsigned char *)bide_node_at(pool, index) + BIDE_LINKED_ELEMENT_;
}

BIDE_INLINE int bide_linked_queue_init_(bide_linked_queue_ *queue, bide_node_cache *cache)
{
    queue->pool = cache->pool;
    queue->head = bide_node_get(cache);
    queue->seen = queue->head;
    bide_atomic_init(&queue->tail, queue->head);
    bide_atomic_init(&queue->closed, 0);
    return queue->head != 0 ? 0 : -ENOMEM;
}

BIDE_INLINE void bide_linked_queue_destroy_(bide_linked_queue_ *queue, bide_node_cache *cache)
{
    /* relaxed: nobody uses the queue any more, so all of it was before. */
    uint32_t tail = bide_atomic_load(&queue->tail, relaxed);
    for (uint32_t index = queue->head, next; index != 0; index = next) {
        next = index == tail ? 0 : *bide_linked_next_(queue->pool, index);
        bide_node_put(cache, index);
    }
}

BIDE_INLINE ptrdiff_t bide_linked_queue_push_many_(bide_linked_queue_ *queue,
                                                   bide_node_cache *cache, const void *from,
                                                   size_t size, size_t count)
{
    /* relaxed, both: the producer's own. */
    uint32_t tail = bide_atomic_load(&queue->tail, relaxed);
    if (BIDE_UNLIKELY(bide_atomic_load(&queue->closed, relaxed) != 0))
        return count == 0 ? 0 : -EPIPE;
    size_t i = 0;
    for (; i < count; i++) {
        uint32_t next = bide_node_get(cache);
        if (BIDE_UNLIKELY(next == 0))
            break;
        bide_element_copy_(bide_linked_element_(queue->pool, tail),
                           (const unsigned char *)from + i * size, size);
        *bide_linked_next_(queue->pool, tail) = next;
        tail = next;
    }
    bide_atomic_store(&queue->tail, tail, release); /* 1 */
    return i != 0 || count == 0 ? (ptrdiff_t)i : -ENOMEM;
}

/* Nothing is left of what was seen. 0 if there is more, or -EAGAIN or -EPIPE. */
BIDE_INLINE int bide_linked_queue_look_(bide_linked_queue_ *queue)
{
    queue->seen = bide_atomic_load(&queue->tail, acquire); /* 1 */
    if (queue->seen != queue->head)
        return 0;
    /* acquire: 3. */
    if (bide_atomic_load(&queue->closed, acquire) == 0)
        return -EAGAIN;
    queue->seen = bide_atomic_load(&queue->tail, relaxed); /* 3: what was released before that */
    return queue->seen != queue->head ? 0 : -EPIPE;
}

BIDE_INLINE ptrdiff_t bide_linked_queue_pop_many_(bide_linked_queue_ *queue, bide_node_cache *cache,
                                                  void *to, size_t size, size_t count)
{
    size_t i = 0;
    for (; i < count; i++) {
        uint32_t index = queue->head;
        if (index == queue->seen) {
            int status = bide_linked_queue_look_(queue);
            if (status != 0)
                return i != 0 ? (ptrdiff_t)i : status;
        }
        bide_element_copy_((unsigned char *)to + i * size, bide_linked_element_(queue->pool, index),
                           size);
        queue->head = *bide_linked_next_(queue->pool, index);
        bide_node_put(cache, index);
    }
    return (ptrdiff_t)i;
}

BIDE_INLINE int bide_linked_queue_push_(bide_linked_queue_ *queue, bide_node_cache *cache,
                                        const void *from, size_t size)
{
    ptrdiff_t pushed = bide_linked_queue_push_many_(queue, cache, from, size, 1);
    return pushed < 0 ? (int)pushed : 0;
}

BIDE_INLINE int bide_linked_queue_pop_(bide_linked_queue_ *queue, bide_node_cache *cache, void *to,
                                       size_t size)
{
    ptrdiff_t popped = bide_linked_queue_pop_many_(queue, cache, to, size, 1);
    return popped < 0 ? (int)popped : 0;
}

/*
 * Makes an empty queue whose nodes come from the pool of `cache`, which outlives it and has nodes
 * of bide_linked_queue_node_size at least. It needs a node itself.
 * Threads: before it is shared. Errors: -ENOMEM.
 */
#define bide_linked_queue_init(queue_, cache) bide_linked_queue_init_(&(queue_)->queue, (cache))

/*
 * Puts the queue's nodes back, with the elements that are in it. Nobody uses the queue any more.
 * Threads: one at a time.
 */
#define bide_linked_queue_destroy(queue_, cache) \
    bide_linked_queue_destroy_(&(queue_)->queue, (cache))

/*
 * Puts a copy of the element that `from` points to at the end. `cache` is the producer's, of the
 * queue's pool.
 * Threads: the producer's. Errors: -EPIPE (closed), -ENOMEM (the pool has no node). Progress:
 * wait-free, except for the pool.
 */
#define bide_linked_queue_push(queue_, cache, from)                                     \
    bide_linked_queue_push_(&(queue_)->queue, (cache), (1 ? (from) : (queue_)->typed_), \
                            sizeof *(queue_)->typed_)

/*
 * Takes the first element, to where `to` points. `cache` is the consumer's.
 * Threads: the consumer's. Errors: -EAGAIN (empty), -EPIPE (empty and closed). Progress: wait-free,
 * except for the pool.
 */
#define bide_linked_queue_pop(queue_, cache, to)                                     \
    bide_linked_queue_pop_(&(queue_)->queue, (cache), (1 ? (to) : (queue_)->typed_), \
                           sizeof *(queue_)->typed_)

/*
 * Puts `count` elements of the array `from` at the end; the consumer sees all of them at once.
 * Returns how many, fewer if the pool had no more nodes; 0 only if `count` is; or an error, and
 * then none.
 * Threads: the producer's. Errors: -EPIPE (closed), -ENOMEM (the pool has no node). Progress:
 * wait-free, except for the pool.
 */
#define bide_linked_queue_push_many(queue_, cache, from, count)                              \
    bide_linked_queue_push_many_(&(queue_)->queue, (cache), (1 ? (from) : (queue_)->typed_), \
                                 sizeof *(queue_)->typed_, (count))

/*
 * Takes up to `count` elements to the array `to`. Returns how many, 0 only if `count` is; or an
 * error, and then none.
 * Threads: the consumer's. Errors: -EAGAIN (empty), -EPIPE (empty and closed). Progress: wait-free,
 * except for the pool.
 */
#define bide_linked_queue_pop_many(queue_, cache, to, count)                              \
    bide_linked_queue_pop_many_(&(queue_)->queue, (cache), (1 ? (to) : (queue_)->typed_), \
                                sizeof *(queue_)->typed_, (count))

/*
 * Closes it for good: what is in it may be taken, more does not come.
 * Threads: the producer's. Progress: wait-free.
 */
#define bide_linked_queue_close(queue_) \
    bide_atomic_store(&(queue_)->queue.closed, 1, release) /* 3 */

/*
 * Why it is correct:
 *
 *     head -> a -> b -> c -> (empty) <- tail        the last node has no element yet, and no next
 *
 *     push    fill tail's node; its next is a new one; tail to the new one
 *     pop     unless head is tail: take head's element; head to its next; put the node back
 *
 * 1. `tail` is stored by the producer (release) after it has filled and linked the nodes before it;
 *    the consumer loads it (acquire) and touches only those: elements and links need be no atomics.
 *    The consumer keeps what it saw of tail, and looks again only when it gets there.
 * 2. The consumer is done with a node before it puts it back; the pool's release and acquire order
 *    that before its next use (node_pool.md, 2).
 * 3. `closed` is stored (release) after the last tail. So a consumer that finds it set (acquire),
 *    and head at the tail that it loads after that, has taken everything. Only the producer closes:
 *    a push that is under way could otherwise come after the consumer has found the end.
 *
 * Source: the seed's listing 7.13, with the orders that it needs.
 */

BIDE_EXTERN_C_END

#endif
