/*
 * Nodes of one size for linked lock-free structures, identified by a 32-bit index, so that an index
 * and a count fit in one word. Floor: queue.
 *
 *     bide_node_pool_init(&pool, &bide_heap, sizeof(struct node), 1024, 1000000);
 *     bide_node_cache_init(&cache, &pool);                    // each thread has one
 *     uint32_t index = bide_node_get(&cache);                 // 0: there is no memory
 *     struct node *node = bide_node_at(&pool, index);
 *     bide_node_put(&cache, index);
 *
 *     pool      chunks of nodes, from an allocator; and a shared list of batches of free nodes
 *     cache     free nodes of one user: a thread, or a coroutine
 *
 *     get       a node, from the cache; from a batch of the list; from an unused batch of a chunk; from
 *               a new chunk
 *     put       a node, into the cache; a batch onto the list when the cache holds two
 *     trim      returns chunks whose nodes are all on the list to the allocator
 *
 * Any thread may use the pool, with a cache of its own. There are never more than `maximum` nodes;
 * a cache holds back at most 2 * BIDE_NODE_BATCH free ones. Of a returned chunk, 12 bytes a node
 * stay, its links, until the pool is destroyed. get and put are lock-free, except for the calls of
 * the allocator.
 *
 * Available if there are 64-bit atomics (BIDE_HAVE_ATOMIC_64). Why it is correct:
 * docs/internals/node_pool.md. The numbers below refer to that.
 */
#ifndef BIDE_NODE_POOL_H
#define BIDE_NODE_POOL_H

#include "bide/allocator.h"
#include "bide/atomic.h"
#include "bide/errors.h"

BIDE_EXTERN_C_BEGIN

/* How many nodes go between a cache and the pool at once. */
enum { BIDE_NODE_BATCH = 32 };

typedef struct bide_node_batch_ {
    bide_atomic(uint32_t) next; /* the next batch */
    uint32_t count;             /* of nodes */
} bide_node_batch_;

typedef struct bide_node_links_ {
    uint32_t *next;            /* for each node: the next in its batch, or cache; its owner's */
    bide_node_batch_ *batches; /* for each node: of the batch whose first it is */
} bide_node_links_;

typedef struct bide_node_chunk_ {
    bide_atomic(unsigned char *) nodes;    /* NULL: there is none */
    bide_atomic(bide_node_links_ *) links; /* stay when the nodes are given back */
    bide_atomic(uint64_t) fresh; /* how many were taken from it; above 32 bits, its life. 4 */
    uint32_t found, first;       /* of the trimmer */
} bide_node_chunk_;

typedef struct bide_node_pool {
    bide_allocator *allocator; /* constant, as is what follows up to the chunks' contents */
    size_t node_size;
    uint32_t shift; /* log2 of the nodes in a chunk */
    uint32_t chunks_count;
    uint32_t maximum;
    bide_node_chunk_ *chunks;
    BIDE_ALIGNAS(BIDE_CACHE_LINE > 8 ? BIDE_CACHE_LINE : 8) bide_atomic(uint64_t) shared;
    bide_atomic(uint32_t) trimming;
    bide_atomic(uint32_t) growing; /* a chunk that has fresh nodes, perhaps: a hint */
} bide_node_pool;

/* One user's free nodes; one thread at a time. */
typedef struct bide_node_cache {
    bide_node_pool *pool;
    uint32_t loaded; /* a list */
    uint32_t count;  /* of it */
    uint32_t spare;  /* a list of BIDE_NODE_BATCH, or 0 */
} bide_node_cache;

/*
 * Makes a pool of nodes of `node_size` bytes, aligned as the allocator does, at most `maximum` (1
 * to 2^31) of them, in chunks of `chunk_nodes` (a power of two, at least BIDE_NODE_BATCH). Takes a
 * table of the chunks from `allocator`, and later the chunks. The allocator outlives the pool. Each
 * get may call it, so it is for any thread, unless all that is needed is reserved before.
 * Threads: before it is shared. Errors: -EINVAL, -ENOMEM.
 */
int bide_node_pool_init(bide_node_pool *pool, bide_allocator *allocator, size_t node_size,
                        uint32_t chunk_nodes, uint32_t maximum);

/*
 * Gives all memory back, whoever holds nodes of it. Nobody uses the pool any more.
 * Threads: one at a time.
 */
void bide_node_pool_destroy(bide_node_pool *pool);

/*
 * Sees to it that the pool has memory for `count` nodes at least, or else for as many as it could
 * get.
 * Threads: any. Errors: -ENOMEM (also if that is more than the maximum). Progress: lock-free,
 * except for the allocator.
 */
int bide_node_pool_reserve(bide_node_pool *pool, size_t count);

/*
 * Gives the chunks whose nodes are all free and in no cache back to the allocator, and returns how
 * many nodes that were; 0 if another thread trims already. Nodes that others put meanwhile are not
 * looked at. While this holds the free nodes, others may have to take new chunks, or get -ENOMEM if
 * there may be no more.
 * Threads: any. Progress: lock-free, except for the allocator; linear in the nodes that are free.
 */
size_t bide_node_pool_trim(bide_node_pool *pool);

/*
 * For how many nodes there is memory now.
 * Threads: any. Progress: wait-free, linear in the chunks.
 */
size_t bide_node_pool_size(const bide_node_pool *pool);

/*
 * Makes an empty cache.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_node_cache_init(bide_node_cache *cache, bide_node_pool *pool)
{
    cache->pool = pool;
    cache->loaded = 0;
    cache->count = 0;
    cache->spare = 0;
}

/*
 * Puts what the cache holds onto the pool's list. To be called before a cache goes.
 * Threads: the cache's owner's. Progress: lock-free.
 */
void bide_node_cache_flush(bide_node_cache *cache);

/*
 * The memory of a node that the caller has, or may read.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE void *bide_node_at(const bide_node_pool *pool, uint32_t index)
{
    /* relaxed: 3. */
    unsigned char *nodes = bide_atomic_load(&pool->chunks[index >> pool->shift].nodes, relaxed);
    return nodes + (index & ((UINT32_C(1) << pool->shift) - 1)) * pool->node_size;
}

BIDE_INLINE uint32_t *bide_node_next_(const bide_node_pool *pool, uint32_t index)
{
    /* relaxed: as the nodes, 3. */
    bide_node_links_ *links = bide_atomic_load(&pool->chunks[index >> pool->shift].links, relaxed);
    return &links->next[index & ((UINT32_C(1) << pool->shift) - 1)];
}

/* Fills an empty list, or leaves it empty: no memory. */
void bide_node_cache_fill_(bide_node_cache *cache);

/* Makes room: the list is full. */
void bide_node_cache_spill_(bide_node_cache *cache);

/*
 * A node for the caller, whatever it contains; 0: there is no memory, or no more nodes. In the
 * latter case, at a moment of the call all that there may be were had by users, or in other caches,
 * or held by a trim. Costs a few loads and stores, except once in BIDE_NODE_BATCH.
 * Threads: the cache's owner's. Progress: lock-free, except for the allocator.
 */
BIDE_INLINE uint32_t bide_node_get(bide_node_cache *cache)
{
    if (BIDE_UNLIKELY(cache->count == 0))
        bide_node_cache_fill_(cache);
    uint32_t index = cache->loaded;
    if (BIDE_LIKELY(index != 0)) {
        cache->loaded = *bide_node_next_(cache->pool, index);
        cache->count--;
    }
    return index;
}

/*
 * Gives a node back, through any cache of its pool. As cheap.
 * Threads: the cache's owner's. Progress: lock-free.
 */
BIDE_INLINE void bide_node_put(bide_node_cache *cache, uint32_t index)
{
    if (BIDE_UNLIKELY(cache->count == BIDE_NODE_BATCH))
        bide_node_cache_spill_(cache);
    *bide_node_next_(cache->pool, index) = cache->loaded;
    cache->loaded = index;
    cache->count++;
}

BIDE_EXTERN_C_END

#endif
