/*
 * An unbounded lock-free queue of many producers and many consumers: a thread that stops anywhere
 * in it stops nobody else. Floor: queue.
 *
 *     typedef bide_counted_queue(struct job) job_queue;
 *     bide_node_pool_init(&pool, &bide_heap, bide_counted_queue_node_size(struct job), 64, 100000);
 *     bide_node_cache_init(&cache, &pool);                    // each thread has one
 *     bide_counted_queue_init(&queue, &cache);
 *     bide_counted_queue_push(&queue, &cache, &job);
 *     bide_counted_queue_pop(&queue, &cache, &job);
 *
 * Any thread may push, pop and close, with a cache of its own. Nodes come from a pool and are given
 * back as soon as nobody reads them, which split reference counts say. It is for users that want
 * that, and bounded garbage without a domain of hazards; a segment queue (segment_queue.h) is
 * faster.
 *
 * It is lock-free, as the pool is, and linearizable: push where `next` is exchanged, pop where head
 * is; empty and closed where next is loaded. Elements are copied as memcpy does. In the macros
 * `queue_` may be evaluated more than once, the other arguments once.
 *
 * Why it is right:
 *
 *     head, tail   index of a node, and how many references were taken through this word, and not
 *                  given back
 *     node         references, next, element
 *
 *     head -> D -> a -> b -> c         D holds no element any more; that of the next is the first
 *                       tail ^         tail is the last node or, for a moment, the one before it
 *
 *     next         0: it is the last        index: the next        CLOSED: it is the last for ever
 *
 * A node is kept by three roles, and by references:
 *
 *     LINKED       the node before it, or `head`, leads to it         until head goes on
 *     TAIL         `tail` leads to it, or will                        until tail goes on
 *     VALUE        its element is in the queue, or being taken        until it is taken
 *
 *     push    refer to tail's node; its next from 0 to the new node; tail to the new node; unrefer
 *     pop     refer to head's node; head to its next; take that one's element; unrefer
 *     help    a thread that finds that tail's node has a next moves tail there
 *
 * ---- Reference counts in two halves ----
 *
 * To refer is to add one to the count beside the index, so it cannot be a node that has gone.
 * Changing the index of a word adds that count to the node's own references, less the role that the
 * word was. To unrefer takes one off the word's count if the word leads to the node still, and off
 * the node's own if not. `references` is the sum: how many roles, in its upper half, and how many
 * references, in the lower, which may be below zero until both words have left. It is 0 once only,
 * when there are neither: the thread that brings it there puts the node back.
 *
 * 1. A node that a thread refers to is not put back, so it is the same for as long, and an index
 *    that is found equal means that nothing has changed but the count. There is no ABA. And no
 *    count runs over: there are never more references than threads.
 * 2. What is written into a node (element, references) comes before its `next` is linked (release).
 *    Finding it there acquires; putting it into tail or head releases it again; referring to it
 *    through those acquires.
 * 3. All reading of a node comes before it is put back. To unrefer releases, on the word or the
 *    node. Changing the word's index acquires that and passes it on, by the same exchange and the
 *    addition, which both acquire and release. Bringing the sum to 0 acquires.
 * 4. Head does not pass tail: the thread that moves head has seen tail elsewhere than on head's
 *    node, which it refers to, so tail had gone on. What it saw is no older than what the threads
 *    saw that moved head there, by the acquire of head; so it is not from before tail came there.
 * 5. A thread may move tail to a node `next` without referring to it: tail is on the one before
 *    still, so the role TAIL keeps it.
 * 6. Empty: next of head's node is 0 while the thread refers to it, so it was the last, and head
 *    was there. Closed: CLOSED is put where the next node would be linked, so every push came
 *    before or fails.
 *
 * Source: the seed's listings 7.15 to 7.21, after Joe Seigh; the printed ones have faults
 * (docs/seed-queues.md). The list is that of Michael and Scott (1996): a new node brings its
 * element along, so that one exchange claims the place and links it.
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
