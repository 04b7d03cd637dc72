/* The counted queue; the model, the argument and its numbers are in counted_queue.h. */
#include "bide/counted_queue.h"

#if BIDE_HAVE_ATOMIC_64

/* In `references`, beside references, which are ones. */
#define ROLE (UINT64_C(1) << 32)

/* In place of the next node's index, which is never that big. */
#define CLOSED UINT32_MAX

/* ---- A word: an index, and how many references were taken through it ---- */

static uint32_t index_of(uint64_t word)
{
    return (uint32_t)word;
}

static uint64_t references_of(uint64_t word)
{
    return word >> 32;
}

static const uint64_t one = UINT64_C(1) << 32; /* one reference more */

static bide_counted_node_ *node_at(const bide_node_pool *pool, uint32_t index)
{
    return (bide_counted_node_ *)bide_node_at(pool, index);
}

/* Adds to a node's references, modulo 2^64, and puts it back if there are none. */
static void add_references(bide_node_cache *cache, uint32_t index, uint64_t difference)
{
    /* acq_rel: 3. */
    if (bide_atomic_fetch_add(&node_at(cache->pool, index)->references, difference, acq_rel) +
            difference ==
        0)
        bide_node_put(cache, index);
}

/* Refers to the node of `word`; returns what that contains now. */
static uint64_t refer(bide_atomic(uint64_t) * word)
{
    uint64_t found = bide_atomic_load(word, relaxed);
    /* acquire: 2, partners are advance and the taking. */
    while (!bide_atomic_compare_exchange_weak(word, &found, found + one, acquire, relaxed))
        bide_atomic_retry();
    return found + one;
}

/* Unrefers the node of `index`, to which the caller referred through `word`. */
static void unrefer(bide_atomic(uint64_t) * word, bide_node_cache *cache, uint32_t index)
{
    uint64_t found = bide_atomic_load(word, relaxed);
    while (index_of(found) == index) {
        /* release: 3, partners are advance and the taking. */
        if (bide_atomic_compare_exchange_weak(word, &found, found - one, release, relaxed))
            return;
        if (index_of(found) == index)
            bide_atomic_retry();
    }
    add_references(cache, index, -(uint64_t)1);
}

/*
 * Moves tail from `index`, to which the caller refers, to the next; true, unless that was done.
 * `mine`: how many references through tail the caller gives back with that: 1, or 0 if it refers to
 * the node through head.
 */
static bool advance(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t index,
                    uint32_t next, uint64_t mine)
{
    uint64_t found = bide_atomic_load(&queue->tail, relaxed);
    while (index_of(found) == index) {
        /* release: 2. (Nothing to acquire: nobody gives a reference back through tail before it is
         * closed.) */
        if (bide_atomic_compare_exchange_weak(&queue->tail, &found, next, release, relaxed)) {
            add_references(cache, index, references_of(found) - mine - ROLE);
            return true;
        }
        if (index_of(found) == index)
            bide_atomic_retry();
    }
    if (mine != 0)
        add_references(cache, index, -mine);
    return false;
}

/* ---- Pushing ---- */

uint32_t bide_counted_queue_reserve_(bide_node_cache *cache)
{
    uint32_t index = bide_node_get(cache);
    if (index != 0) {
        bide_counted_node_ *node = node_at(cache->pool, index);
        bide_atomic_init(&node->references, 3 * ROLE);
        bide_atomic_init(&node->next, 0);
    }
    return index;
}

void bide_counted_queue_string_(bide_node_cache *cache, uint32_t index, uint32_t next)
{
    bide_atomic_init(&node_at(cache->pool, index)->next, next);
}

/* Tail went past the nodes from `first` to the one before `last`, the caller's own. */
static void pass(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t first, uint32_t last)
{
    while (first != last) {
        /* relaxed: it is the caller's own store. */
        uint32_t next = bide_atomic_load(&node_at(queue->pool, first)->next, relaxed);
        add_references(cache, first, -ROLE);
        first = next;
    }
}

/* Puts behind the last node those from `first` to `last`, or CLOSED. -EPIPE if that is there. */
static int append(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t first, uint32_t last)
{
    for (;;) {
        uint32_t index = index_of(refer(&queue->tail));
        uint32_t next = 0;
        /* release: 2, partners are the next line and the taking; acquire if failed: 2, for advance.
         */
        bool linked = bide_atomic_compare_exchange(&node_at(queue->pool, index)->next, &next, first,
                                                   release, acquire);
        if (linked)
            next = last;
        if (next == CLOSED)
            unrefer(&queue->tail, cache, index);
        else if (advance(queue, cache, index, next, 1) && linked)
            pass(queue, cache, first, last);
        if (linked)
            return 0;
        if (next == CLOSED)
            return -EPIPE;
    }
}

int bide_counted_queue_commit_(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t first,
                               uint32_t last)
{
    int status = append(queue, cache, first, last);
    while (status != 0) {
        uint32_t next = bide_atomic_load(&node_at(queue->pool, first)->next, relaxed); /* own */
        bide_node_put(cache, first);
        if (first == last)
            break;
        first = next;
    }
    return status;
}

void bide_counted_queue_close_(bide_counted_queue_ *queue, bide_node_cache *cache)
{
    append(queue, cache, CLOSED, CLOSED);
}

/* ---- Popping ---- */

int bide_counted_queue_take_(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t *taken)
{
    uint64_t found = refer(&queue->head);
    for (;;) {
        uint32_t index = index_of(found);
        /* acquire: 2, partner is append. */
        uint32_t next = bide_atomic_load(&node_at(queue->pool, index)->next, acquire);
        if (next == 0 || next == CLOSED) {
            unrefer(&queue->head, cache, index);
            return next == 0 ? -EAGAIN : -EPIPE;
        }
        /* relaxed: 4. */
        if (index_of(bide_atomic_load(&queue->tail, relaxed)) == index)
            advance(queue, cache, index, next, 0);
        do {
            /* acq_rel: 2 and 3. */
            if (bide_atomic_compare_exchange_weak(&queue->head, &found, next, acq_rel, relaxed)) {
                add_references(cache, index, references_of(found) - 1 - ROLE);
                *taken = next;
                return 0;
            }
        } while (index_of(found) == index);
        add_references(cache, index, -(uint64_t)1);
        found = refer(&queue->head);
    }
}

void bide_counted_queue_taken_(bide_node_cache *cache, uint32_t index)
{
    add_references(cache, index, -ROLE);
}

/* ---- The queue ---- */

int bide_counted_queue_init_(bide_counted_queue_ *queue, bide_node_cache *cache)
{
    uint32_t first = bide_counted_queue_reserve_(cache);
    if (first == 0)
        return -ENOMEM;
    bide_atomic_init(&node_at(cache->pool, first)->references, 2 * ROLE); /* it has no element */
    bide_atomic_init(&queue->head, first);
    bide_atomic_init(&queue->tail, first);
    queue->pool = cache->pool;
    return 0;
}

void bide_counted_queue_destroy_(bide_counted_queue_ *queue, bide_node_cache *cache)
{
    /* relaxed: nobody uses the queue any more, so all of it was before. */
    uint32_t index = index_of(bide_atomic_load(&queue->head, relaxed));
    while (index != 0 && index != CLOSED) {
        uint32_t next = bide_atomic_load(&node_at(queue->pool, index)->next, relaxed);
        bide_node_put(cache, index);
        index = next;
    }
}

#endif
