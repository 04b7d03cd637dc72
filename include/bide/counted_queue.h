/*
 * An unbounded lock-free queue of many producers and many consumers: a thread that is suspended
 * anywhere in it blocks no other. Floor: queue.
 *
 *     typedef bide_counted_queue(struct job) job_queue;
 *     bide_node_pool_init(&pool, &bide_heap, bide_counted_queue_node_size(struct job), 64, 100000);
 *     bide_node_cache_init(&cache, &pool);                    // each thread has one
 *     bide_counted_queue_init(&queue, &cache);
 *     bide_counted_queue_push(&queue, &cache, &job);
 *     bide_counted_queue_pop(&queue, &cache, &job);
 *
 * Any thread may push, pop and close, with a cache of its own. Nodes come from a pool and return to
 * it as soon as no thread reads them, which split reference counts show. It is for programs that
 * want that, and bounded garbage without a domain of hazard pointers. A segment queue
 * (segment_queue.h) is faster.
 *
 * The queue is linearizable, and lock-free, as the pool is. Elements are copied as by memcpy. In
 * the macros `queue_` may be evaluated more than once, the other arguments once. Why it is correct:
 * docs/internals/counted_queue.md. The numbers below refer to that.
 */
#ifndef BIDE_COUNTED_QUEUE_H
#define BIDE_COUNTED_QUEUE_H

#include "bide/detail/element.h"
#include "bide/node_pool.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_counted_node_ {
    bide_atomic(uint64_t) references;
    bide_atomic(uint32_t) next;
} bide_counted_node_;

/* Where the element is: aligned as the node. */
enum { BIDE_COUNTED_ELEMENT_ = BIDE_ALLOCATOR_ALIGN };

typedef struct bide_counted_queue_ {
    BIDE_ALIGNAS(BIDE_CACHE_LINE > 8 ? BIDE_CACHE_LINE : 8) bide_atomic(uint64_t) head;
    BIDE_ALIGNAS(BIDE_CACHE_LINE > 8 ? BIDE_CACHE_LINE : 8) bide_atomic(uint64_t) tail;
    bide_node_pool *pool; /* constant */
} bide_counted_queue_;

/*
 * A queue of elements of `type`, aligned to BIDE_ALLOCATOR_ALIGN at most. Each use is a type of its
 * own, to be named by a typedef.
 */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none */
#define bide_counted_queue(type)   \
    struct {                       \
        bide_counted_queue_ queue; \
        type *typed_;              \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

/* The size of the nodes of its pool, at least. Queues with elements of many types may share one. */
#define bide_counted_queue_node_size(type) (BIDE_COUNTED_ELEMENT_ + sizeof(type))

int bide_counted_queue_init_(bide_counted_queue_ *queue, bide_node_cache *cache);
void bide_counted_queue_destroy_(bide_counted_queue_ *queue, bide_node_cache *cache);
void bide_counted_queue_close_(bide_counted_queue_ *queue, bide_node_cache *cache);

/* A node for an element, or 0; the address of its element. */
uint32_t bide_counted_queue_reserve_(bide_node_cache *cache);

BIDE_INLINE void *bide_counted_queue_element_(const bide_node_pool *pool, uint32_t index)
{
    return (unsigned char *)bide_node_at(pool, index) + BIDE_COUNTED_ELEMENT_;
}

/*
 * Links the nodes that were reserved, from `first` to `last`, which are strung together. 0 or
 * -EPIPE.
 */
int bide_counted_queue_commit_(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t first,
                               uint32_t last);

/* The node behind `index`, which is reserved and is to be linked with it. */
void bide_counted_queue_string_(bide_node_cache *cache, uint32_t index, uint32_t next);

/* The node whose element is the caller's now in *index, and 0; or -EAGAIN or -EPIPE. */
int bide_counted_queue_take_(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t *index);

/* Its element has been taken. */
void bide_counted_queue_taken_(bide_node_cache *cache, uint32_t index);

BIDE_INLINE int bide_counted_queue_push_(bide_counted_queue_ *queue, bide_node_cache *cache,
                                         const void *from, size_t size)
{
    uint32_t index = bide_counted_queue_reserve_(cache);
    if (index == 0)
        return -ENOMEM;
    bide_element_copy_(bide_counted_queue_element_(queue->pool, index), from, size);
    return bide_counted_queue_commit_(queue, cache, index, index);
}

BIDE_INLINE int bide_counted_queue_pop_(bide_counted_queue_ *queue, bide_node_cache *cache,
                                        void *to, size_t size)
{
    uint32_t index;
    int status = bide_counted_queue_take_(queue, cache, &index);
    if (status != 0)
        return status;
    bide_element_copy_(to, bide_counted_queue_element_(queue->pool, index), size);
    bide_counted_queue_taken_(cache, index);
    return 0;
}

BIDE_INLINE ptrdiff_t bide_counted_queue_push_many_(bide_counted_queue_ *queue,
                                                    bide_node_cache *cache, const void *from,
                                                    size_t size, size_t count)
{
    uint32_t first = 0, last = 0;
    size_t i = 0;
    for (; i < count; i++) {
        uint32_t index = bide_counted_queue_reserve_(cache);
        if (index == 0)
            break;
        bide_element_copy_(bide_counted_queue_element_(queue->pool, index),
                           (const unsigned char *)from + i * size, size);
        if (first == 0)
            first = index;
        else
            bide_counted_queue_string_(cache, last, index);
        last = index;
    }
    if (i == 0)
        return count == 0 ? 0 : -ENOMEM;
    int status = bide_counted_queue_commit_(queue, cache, first, last);
    return status != 0 ? status : (ptrdiff_t)i;
}

BIDE_INLINE ptrdiff_t bide_counted_queue_pop_many_(bide_counted_queue_ *queue,
                                                   bide_node_cache *cache, void *to, size_t size,
                                                   size_t count)
{
    int status = 0;
    size_t i = 0;
    for (; i < count && status == 0; i += status == 0)
        status = bide_counted_queue_pop_(queue, cache, (unsigned char *)to + i * size, size);
    return i != 0 ? (ptrdiff_t)i : status;
}

/*
 * Makes an empty queue whose nodes come from the pool of `cache`, which outlives it and has nodes
 * of bide_counted_queue_node_size at least. It needs a node itself.
 * Threads: before it is shared. Errors: -ENOMEM.
 */
#define bide_counted_queue_init(queue_, cache) bide_counted_queue_init_(&(queue_)->queue, (cache))

/*
 * Puts the queue's nodes back, with the elements that are in it. Nobody uses the queue any more.
 * Threads: one at a time.
 */
#define bide_counted_queue_destroy(queue_, cache) \
    bide_counted_queue_destroy_(&(queue_)->queue, (cache))

/*
 * Puts a copy of the element that `from` points to at the end. `cache` is the caller's, of the
 * queue's pool.
 * Threads: any. Errors: -EPIPE (closed), -ENOMEM (the pool has no node). Progress: lock-free.
 */
#define bide_counted_queue_push(queue_, cache, from)                                     \
    bide_counted_queue_push_(&(queue_)->queue, (cache), (1 ? (from) : (queue_)->typed_), \
                             sizeof *(queue_)->typed_)

/*
 * Takes the first element, to where `to` points. `cache` is the caller's, of the queue's pool.
 * Threads: any. Errors: -EAGAIN (empty), -EPIPE (empty and closed). Progress: lock-free.
 */
#define bide_counted_queue_pop(queue_, cache, to)                                     \
    bide_counted_queue_pop_(&(queue_)->queue, (cache), (1 ? (to) : (queue_)->typed_), \
                            sizeof *(queue_)->typed_)

/*
 * Puts `count` elements of the array `from` at the end, with nothing between them: one exchange for
 * all. Returns how many, fewer if the pool had no more nodes; 0 only if `count` is; or an error,
 * and then none.
 * Threads: any. Errors: -EPIPE (closed), -ENOMEM (the pool has no node). Progress: lock-free.
 */
#define bide_counted_queue_push_many(queue_, cache, from, count)                              \
    bide_counted_queue_push_many_(&(queue_)->queue, (cache), (1 ? (from) : (queue_)->typed_), \
                                  sizeof *(queue_)->typed_, (count))

/*
 * Takes up to `count` elements to the array `to`, one after the other: others may take some that
 * were between. Returns how many, 0 only if `count` is; or an error, and then none.
 * Threads: any. Errors: -EAGAIN (empty), -EPIPE (empty and closed). Progress: lock-free.
 */
#define bide_counted_queue_pop_many(queue_, cache, to, count)                              \
    bide_counted_queue_pop_many_(&(queue_)->queue, (cache), (1 ? (to) : (queue_)->typed_), \
                                 sizeof *(queue_)->typed_, (count))

/*
 * Closes it for good: pushes fail from now on, what is in it may be taken. More than once is once.
 * Threads: any. Progress: lock-free.
 */
#define bide_counted_queue_close(queue_, cache) bide_counted_queue_close_(&(queue_)->queue, (cache))

BIDE_EXTERN_C_END

#endif
