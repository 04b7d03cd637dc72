/*
 * Pools of nodes: the shared list of free batches, the chunks, and the caches' slow halves. Any thread
 * may use the pool, with a cache of its own; one thread at a time trims. The model, the argument and
 * its numbers: docs/internals/node_pool.md.
 */
#include "bide/node_pool.h"

#include "bide/platform.h"

#if BIDE_HAVE_ATOMIC_64

/* ---- Places ---- */

static uint32_t chunk_nodes_of(const bide_node_pool *pool)
{
    return UINT32_C(1) << pool->shift;
}

static size_t nodes_size(const bide_node_pool *pool)
{
    return chunk_nodes_of(pool) * pool->node_size;
}

static size_t links_size(const bide_node_pool *pool)
{
    return sizeof(bide_node_links_) +
           chunk_nodes_of(pool) * (sizeof(bide_node_batch_) + sizeof(uint32_t));
}

static bide_node_batch_ *batch_at(const bide_node_pool *pool, uint32_t first)
{
    /* relaxed: 3. */
    bide_node_links_ *links = bide_atomic_load(&pool->chunks[first >> pool->shift].links, relaxed);
    return &links->batches[first & (chunk_nodes_of(pool) - 1)];
}

/* The nodes of a chunk begin at `first`; node 0 does not exist, and the last chunk may have fewer. */
static uint32_t first_node_of(const bide_node_pool *pool, uint32_t chunk)
{
    return chunk == 0 ? 1 : chunk << pool->shift;
}

static uint32_t count_of(const bide_node_pool *pool, uint32_t chunk)
{
    uint32_t first = first_node_of(pool, chunk);
    uint32_t end = (chunk + 1) << pool->shift;
    return (end - 1 < pool->maximum ? end - 1 : pool->maximum) - first + 1;
}

/* ---- The shared list ---- */

static uint64_t shared_changed(uint64_t shared, uint32_t first)
{
    return ((shared >> 32) + 1) << 32 | first;
}

/*
 * Pushes a chain of batches onto the list: the first begins with node `first`, the last with `last`.
 */
static void push_batches(bide_node_pool *pool, uint32_t first, uint32_t last)
{
    uint64_t shared = bide_atomic_load(&pool->shared, relaxed);
    bide_node_batch_ *batch = batch_at(pool, last);
    do
        /* relaxed: 1, 2; it is shared by the exchange. */
        bide_atomic_store(&batch->next, (uint32_t)shared, relaxed);
    /* release: 2, partner is pop_batch. */
    while (!bide_atomic_compare_exchange_weak(&pool->shared, &shared, shared_changed(shared, first),
                                              release, relaxed));
}

static void push_batch(bide_node_pool *pool, uint32_t first, uint32_t count)
{
    bide_assert(first != 0 && count != 0);
    batch_at(pool, first)->count = count;
    push_batches(pool, first, first);
}

/* The first node of a batch, which is the caller's now, or 0. */
static uint32_t pop_batch(bide_node_pool *pool)
{
    /* acquire, here and if failed: the links of the first batch, 2; partner is push_batches. */
    uint64_t shared = bide_atomic_load(&pool->shared, acquire);
    for (;;) {
        uint32_t first = (uint32_t)shared;
        if (first == 0)
            return 0;
        /* relaxed: 1. */
        uint32_t next = bide_atomic_load(&batch_at(pool, first)->next, relaxed);
        /* acquire: if failed, as above; else it has been acquired already. */
        if (bide_atomic_compare_exchange_weak(&pool->shared, &shared, shared_changed(shared, next),
                                              acquire, acquire))
            return first;
    }
}

/* ---- Chunks ---- */

/* Allocates the links of a place, if it has none. Returns false if there is no memory. */
static bool ensure_links(bide_node_pool *pool, bide_node_chunk_ *chunk)
{
    /* acquire, here and if failed: what is in them; partner is the release. */
    bide_node_links_ *links = bide_atomic_load(&chunk->links, acquire);
    if (links != NULL)
        return true;
    size_t nodes = chunk_nodes_of(pool);
    bide_node_links_ *fresh =
        (bide_node_links_ *)pool->allocator->allocate(pool->allocator, links_size(pool));
    if (fresh == NULL)
        return false;
    fresh->batches = (bide_node_batch_ *)(void *)(fresh + 1);
    fresh->next = (uint32_t *)(void *)(fresh->batches + nodes);
    for (size_t i = 0; i < nodes; i++)
        bide_atomic_init(&fresh->batches[i].next, 0);
    if (!bide_atomic_compare_exchange(&chunk->links, &links, fresh, release, acquire))
        pool->allocator->deallocate(pool->allocator, fresh, links_size(pool));
    return true;
}

/* ---- Fresh nodes ---- */

static uint32_t taken_of(uint64_t fresh)
{
    return (uint32_t)fresh;
}

/* Links `count` nodes from `first` on into a batch. */
static void string_batch(bide_node_pool *pool, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        *bide_node_next_(pool, first + i) = i + 1 < count ? first + i + 1 : 0;
    batch_at(pool, first)->count = count;
}

/* Takes an unused batch of a chunk. Returns 0 if there is none, or (*missing) no chunk. */
static uint32_t take_fresh(bide_node_pool *pool, uint32_t index, bool *missing)
{
    bide_node_chunk_ *chunk = &pool->chunks[index];
    const uint32_t all = count_of(pool, index);
    *missing = false;
    for (;;) {
        /* acquire: 5, partner is pool_finish_chunk; and 6, partner is the exchange below. */
        uint64_t fresh = bide_atomic_load(&chunk->fresh, acquire);
        uint32_t taken = taken_of(fresh);
        if (taken == all)
            return 0;
        /* acquire: 4, partner is pool_grow. */
        *missing = bide_atomic_load(&chunk->nodes, acquire) == NULL;
        if (*missing)
            return 0;
        bide_assert(taken < all);
        uint32_t count = all - taken < BIDE_NODE_BATCH ? all - taken : BIDE_NODE_BATCH;
        /* release: 6, partner is the load above. */
        if (bide_atomic_compare_exchange(&chunk->fresh, &fresh, fresh + count, release, relaxed)) {
            string_batch(pool, first_node_of(pool, index) + taken, count);
            return first_node_of(pool, index) + taken;
        }
        bide_atomic_retry();
    }
}

/* Takes a batch of the chunk that had one last. */
static uint32_t take_where_it_grows(bide_node_pool *pool)
{
    bool missing;
    return take_fresh(pool, bide_atomic_load(&pool->growing, relaxed) /* a hint */, &missing);
}

/*
 * Searches the chunks from `from` on. Returns 0 if none has a batch, up to *end: a place without a
 * chunk, or the number of places; with `all`, that number.
 */
static uint32_t find_fresh(bide_node_pool *pool, uint32_t from, bool all, uint32_t *end)
{
    for (uint32_t i = from; i < pool->chunks_count; i++) {
        bool missing;
        uint32_t first = take_fresh(pool, i, &missing);
        if (first != 0)
            bide_atomic_store(&pool->growing, i, relaxed);
        *end = i;
        if (first != 0 || (missing && !all))
            return first;
    }
    *end = pool->chunks_count;
    return 0;
}

/* Allocates the chunk, if it is missing. Returns false if there is no memory. */
static bool pool_grow(bide_node_pool *pool, uint32_t index)
{
    bide_node_chunk_ *chunk = &pool->chunks[index];
    unsigned char *none = NULL;
    unsigned char *nodes =
        (unsigned char *)pool->allocator->allocate(pool->allocator, nodes_size(pool));
    if (nodes == NULL || !ensure_links(pool, chunk))
        none = bide_atomic_load(&chunk->nodes, relaxed); /* (another thread may have succeeded) */
    /* release: 3, partner is take_fresh. */
    else if (bide_atomic_compare_exchange(&chunk->nodes, &none, nodes, release, relaxed)) {
        bide_atomic_store(&pool->growing, index, relaxed);
        return true;
    }
    if (nodes != NULL)
        pool->allocator->deallocate(pool->allocator, nodes, nodes_size(pool));
    return none != NULL;
}

/* Takes a batch. Returns 0 if there is none, or no memory. */
static uint32_t get_batch(bide_node_pool *pool)
{
    for (;;) {
        /* relaxed: 6, it is compared only. */
        uint64_t before = bide_atomic_load(&pool->shared, relaxed);
        uint32_t end, first = pop_batch(pool);
        if (first == 0)
            first = take_where_it_grows(pool);
        if (first == 0)
            first = find_fresh(pool, 0, false, &end);
        if (first != 0)
            return first;
        if (end != pool->chunks_count) {
            if (pool_grow(pool, end))
                continue;
            /* No memory. There may be chunks behind places that a trim has cleared. */
            first = find_fresh(pool, end, true, &end);
            if (first != 0)
                return first;
        }
        /* relaxed: 6, it is compared only. */
        if (bide_atomic_load(&pool->shared, relaxed) == before && (uint32_t)before == 0)
            return 0;
    }
}

/* ---- Making and destroying ---- */

int bide_node_pool_init(bide_node_pool *pool, bide_allocator *allocator, size_t node_size,
                        uint32_t chunk_nodes, uint32_t maximum)
{
    const uint32_t max = UINT32_C(1) << 31;
    const size_t align = BIDE_ALLOCATOR_ALIGN - 1;
    if (chunk_nodes < BIDE_NODE_BATCH || (chunk_nodes & (chunk_nodes - 1)) != 0 ||
        chunk_nodes > max || maximum == 0 || maximum > max || node_size == 0 ||
        node_size > (SIZE_MAX - align) / chunk_nodes - align)
        return -EINVAL;
    pool->allocator = allocator;
    pool->node_size = (node_size + align) & ~align;
    pool->shift = 0;
    while (UINT32_C(1) << pool->shift < chunk_nodes)
        pool->shift++;
    pool->maximum = maximum;
    pool->chunks_count = (maximum >> pool->shift) + 1;
    bide_atomic_init(&pool->shared, 0);
    bide_atomic_init(&pool->trimming, 0);
    bide_atomic_init(&pool->growing, 0);
    pool->chunks = (bide_node_chunk_ *)allocator->allocate(allocator, pool->chunks_count *
                                                                          sizeof *pool->chunks);
    if (pool->chunks == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < pool->chunks_count; i++) {
        bide_atomic_init(&pool->chunks[i].nodes, NULL);
        bide_atomic_init(&pool->chunks[i].links, NULL);
        bide_atomic_init(&pool->chunks[i].fresh, 0);
        pool->chunks[i].found = 0;
        pool->chunks[i].first = 0;
    }
    return 0;
}

void bide_node_pool_destroy(bide_node_pool *pool)
{
    bide_allocator *allocator = pool->allocator;
    for (uint32_t i = 0; i < pool->chunks_count; i++) {
        /* relaxed: no thread uses the pool any more, so all uses happened before. */
        unsigned char *nodes = bide_atomic_load(&pool->chunks[i].nodes, relaxed);
        bide_node_links_ *links = bide_atomic_load(&pool->chunks[i].links, relaxed);
        if (nodes != NULL)
            allocator->deallocate(allocator, nodes, nodes_size(pool));
        if (links != NULL)
            allocator->deallocate(allocator, links, links_size(pool));
    }
    allocator->deallocate(allocator, pool->chunks, pool->chunks_count * sizeof *pool->chunks);
}

size_t bide_node_pool_size(const bide_node_pool *pool)
{
    size_t size = 0;
    for (uint32_t i = 0; i < pool->chunks_count; i++)
        /* relaxed: only a number. */
        if (bide_atomic_load(&pool->chunks[i].nodes, relaxed) != NULL)
            size += count_of(pool, i);
    return size;
}

int bide_node_pool_reserve(bide_node_pool *pool, size_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < pool->chunks_count && size < count; i++) {
        /* relaxed: only whether there is one. */
        if (bide_atomic_load(&pool->chunks[i].nodes, relaxed) == NULL && !pool_grow(pool, i))
            return -ENOMEM;
        size += count_of(pool, i);
    }
    return size < count ? -ENOMEM : 0;
}

/* ---- Caches ---- */

void bide_node_cache_fill_(bide_node_cache *cache)
{
    if (cache->spare != 0) {
        cache->loaded = cache->spare;
        cache->count = BIDE_NODE_BATCH;
        cache->spare = 0;
        return;
    }
    uint32_t first = get_batch(cache->pool);
    if (first != 0) {
        cache->loaded = first;
        cache->count = batch_at(cache->pool, first)->count;
        bide_assert(cache->count != 0 && cache->count <= BIDE_NODE_BATCH);
    }
}

void bide_node_cache_spill_(bide_node_cache *cache)
{
    if (cache->spare != 0)
        push_batch(cache->pool, cache->spare, BIDE_NODE_BATCH);
    cache->spare = cache->loaded;
    cache->loaded = 0;
    cache->count = 0;
}

void bide_node_cache_flush(bide_node_cache *cache)
{
    if (cache->spare != 0)
        push_batch(cache->pool, cache->spare, BIDE_NODE_BATCH);
    if (cache->count != 0)
        push_batch(cache->pool, cache->loaded, cache->count);
    bide_node_cache_init(cache, cache->pool);
}

/* ---- Giving memory back ---- */

/* Sorts the nodes of the batches from `first` on by their chunks. */
static void sort_nodes(bide_node_pool *pool, uint32_t first)
{
    while (first != 0) {
        uint32_t next_batch = bide_atomic_load(&batch_at(pool, first)->next, relaxed); /* 2 */
        for (uint32_t node = first, next; node != 0; node = next) {
            bide_node_chunk_ *chunk = &pool->chunks[node >> pool->shift];
            next = *bide_node_next_(pool, node);
            *bide_node_next_(pool, node) = chunk->first;
            chunk->first = node;
            chunk->found++;
        }
        first = next_batch;
    }
}

/* Takes all unused nodes, if the trimmer has found all others of the chunk. */
static bool take_rest(bide_node_chunk_ *chunk, uint32_t found, uint32_t all)
{
    uint64_t fresh = bide_atomic_load(&chunk->fresh, relaxed);
    /* relaxed: all others have been acquired. */
    return taken_of(fresh) == found &&
           bide_atomic_compare_exchange(&chunk->fresh, &fresh, fresh - found + all, relaxed,
                                        relaxed);
}

/*
 * Shares the found nodes of a chunk again, or releases the chunk if they are all that were taken from
 * it. Returns the number of nodes released.
 */
static size_t pool_finish_chunk(bide_node_pool *pool, bide_node_chunk_ *chunk, uint32_t all)
{
    uint32_t found = chunk->found;
    uint32_t first = chunk->first;
    chunk->found = 0;
    chunk->first = 0;
    if (take_rest(chunk, found, all)) {
        unsigned char *nodes = bide_atomic_load(&chunk->nodes, relaxed); /* 3 */
        uint64_t life = bide_atomic_load(&chunk->fresh, relaxed) >> 32;
        bide_atomic_store(&chunk->nodes, NULL, relaxed); /* 5 */
        /* release: 5; and the links, which a taker in that life uses. Partner is `take_fresh`. */
        bide_atomic_store(&chunk->fresh, (life + 1) << 32, release);
        pool->allocator->deallocate(pool->allocator, nodes, nodes_size(pool));
        return all;
    }
    while (found != 0) {
        uint32_t count = found < BIDE_NODE_BATCH ? found : BIDE_NODE_BATCH;
        uint32_t last = first;
        for (uint32_t i = 1; i < count; i++)
            last = *bide_node_next_(pool, last);
        uint32_t next = *bide_node_next_(pool, last);
        *bide_node_next_(pool, last) = 0;
        push_batch(pool, first, count);
        first = next;
        found -= count;
    }
    return 0;
}

size_t bide_node_pool_trim(bide_node_pool *pool)
{
    size_t given_back = 0;
    /* acquire: 7. */
    if (bide_atomic_exchange(&pool->trimming, 1, acquire) != 0)
        return 0;
    uint64_t shared = bide_atomic_load(&pool->shared, relaxed);
    /* acquire: 2. */
    while (!bide_atomic_compare_exchange_weak(&pool->shared, &shared, shared_changed(shared, 0),
                                              acquire, relaxed))
        continue;
    sort_nodes(pool, (uint32_t)shared);
    /* The lowest chunk last, so that its nodes are used first, and others become free. */
    for (uint32_t i = pool->chunks_count; i-- != 0;)
        /* acquire: the memory, of which no thread may have had a node; partner is pool_grow. */
        if (bide_atomic_load(&pool->chunks[i].nodes, acquire) != NULL)
            given_back += pool_finish_chunk(pool, &pool->chunks[i], count_of(pool, i));
    shared = bide_atomic_load(&pool->shared, relaxed);
    /* release: 6; it counts, so that one that has found those chunks used up looks again. Partner
     * is pop_batch. */
    while (given_back != 0 &&
           !bide_atomic_compare_exchange_weak(
               &pool->shared, &shared, shared_changed(shared, (uint32_t)shared), release, relaxed))
        continue;
    bide_atomic_store(&pool->trimming, 0, release); /* 7 */
    return given_back;
}

#endif
