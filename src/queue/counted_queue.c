/*
 * The counted queue: a list of nodes from a pool, kept by split reference counts. Any thread may push,
 * pop and close, with a cache of its own. The model, the argument and its numbers:
 * docs/internals/counted_queue.md.
 */
#include "bide/counted_queue.h"

#if BIDE_HAVE_ATOMIC_64

/* One role in `references`; a reference is 1. */
#define ROLE (UINT64_C(1) << 32)

/* Instead of the next node's index, which is never that large. */
#define COUNTED_CLOSED UINT32_MAX

/* ---- A word: an index, and the number of references taken through it ---- */

static uint32_t index_of(uint64_t word)
{
    return (uint32_t)word;
}

static uint64_t references_of(uint64_t word)
{
    return word >> 32;
}

static const uint64_t one = UINT64_C(1) << 32; /* one reference */

static bide_counted_node_ *node_at(const bide_node_pool *pool, uint32_t index)
{
    return (bide_counted_node_ *)bide_node_at(pool, index);
}

/* Adds to a node's references, modulo 2^64, and puts the node back if there are none. */
static void add_references(bide_node_cache *cache, uint32_t index, uint64_t difference)
{
    /* acq_rel: 3. */
    if (bide_atomic_fetch_add(&node_at(cache->pool, index)->references, difference, acq_rel) +
            difference ==
        0)
        bide_node_put(cache, index);
}

/* Refers to the node of `word`; returns the new value of `word`. */
static uint64_t counted_refer(bide_atomic(uint64_t) * word)
{
    uint64_t found = bide_atomic_load(word, relaxed);
    /* acquire: 2, partners are counted_advance and the pop. */
    while (!bide_atomic_compare_exchange_weak(word, &found, found + one, acquire, relaxed))
        bide_atomic_retry();
    return found + one;
}

/* Unrefers the node of `index`, to which the caller referred through `word`. */
static void counted_unrefer(bide_atomic(uint64_t) * word, bide_node_cache *cache, uint32_t index)
{
    uint64_t found = bide_atomic_load(word, relaxed);
    while (index_of(found) == index) {
        /* release: 3, partners are counted_advance and the pop. */
        if (bide_atomic_compare_exchange_weak(word, &found, found - one, release, relaxed))
            return;
        if (index_of(found) == index)
            bide_atomic_retry();
    }
    add_references(cache, index, -(uint64_t)1);
}

/*
 * Moves tail from `index`, to which the caller refers, to the next node; false if that was done
 * already. `mine`: the number of references through tail that the caller returns with that: 1, or 0
 * if it refers to the node through head.
 */
static bool counted_advance(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t index,
                            uint32_t next, uint64_t mine)
{
    uint64_t found = bide_atomic_load(&queue->tail, relaxed);
    while (index_of(found) == index) {
        /* release: 2. (Nothing to acquire: no thread gives a reference back through tail before it is
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

/* Tail has passed the nodes from `first` to the one before `last`, all of them the caller's. */
static void counted_pass_role(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t first,
                              uint32_t last)
{
    while (first != last) {
        /* relaxed: it is the caller's own store. */
        uint32_t next = bide_atomic_load(&node_at(queue->pool, first)->next, relaxed);
        add_references(cache, first, -ROLE);
        first = next;
    }
}

/* Appends the nodes from `first` to `last`, or CLOSED. Returns -EPIPE if it is closed already. */
static int counted_append(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t first,
                          uint32_t last)
{
    for (;;) {
        uint32_t index = index_of(counted_refer(&queue->tail));
        uint32_t next = 0;
        /* release: 2, partners are the next line and the taking; acquire if failed: 2, for advance.
         */
        bool linked = bide_atomic_compare_exchange(&node_at(queue->pool, index)->next, &next, first,
                                                   release, acquire);
        if (linked)
            next = last;
        if (next == COUNTED_CLOSED)
            counted_unrefer(&queue->tail, cache, index);
        else if (counted_advance(queue, cache, index, next, 1) && linked)
            counted_pass_role(queue, cache, first, last);
        if (linked)
            return 0;
        if (next == COUNTED_CLOSED)
            return -EPIPE;
    }
}

int bide_counted_queue_commit_(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t first,
                               uint32_t last)
{
    int status = counted_append(queue, cache, first, last);
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
    counted_append(queue, cache, COUNTED_CLOSED, COUNTED_CLOSED);
}

/* ---- Popping ---- */

int bide_counted_queue_take_(bide_counted_queue_ *queue, bide_node_cache *cache, uint32_t *taken)
{
    uint64_t found = counted_refer(&queue->head);
    for (;;) {
        uint32_t index = index_of(found);
        /* acquire: 2, partner is append. */
        uint32_t next = bide_atomic_load(&node_at(queue->pool, index)->next, acquire);
        if (next == 0 || next == COUNTED_CLOSED) {
            counted_unrefer(&queue->head, cache, index);
            return next == 0 ? -EAGAIN : -EPIPE;
        }
        /* relaxed: 4. */
        if (index_of(bide_atomic_load(&queue->tail, relaxed)) == index)
            counted_advance(queue, cache, index, next, 0);
        do {
            /* acq_rel: 2 and 3. */
            if (bide_atomic_compare_exchange_weak(&queue->head, &found, next, acq_rel, relaxed)) {
                add_references(cache, index, references_of(found) - 1 - ROLE);
                *taken = next;
                return 0;
            }
        } while (index_of(found) == index);
        add_references(cache, index, -(uint64_t)1);
        found = counted_refer(&queue->head);
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
    bide_atomic_init(&node_at(cache->pool, first)->references,
                     2 * ROLE); /* the first node has no element */
    bide_atomic_init(&queue->head, first);
    bide_atomic_init(&queue->tail, first);
    queue->pool = cache->pool;
    return 0;
}

void bide_counted_queue_destroy_(bide_counted_queue_ *queue, bide_node_cache *cache)
{
    /* relaxed: no thread uses the queue any more, so all uses happened before. */
    uint32_t index = index_of(bide_atomic_load(&queue->head, relaxed));
    while (index != 0 && index != COUNTED_CLOSED) {
        uint32_t next = bide_atomic_load(&node_at(queue->pool, index)->next, relaxed);
        bide_node_put(cache, index);
        index = next;
    }
}

#endif
