/*
 * For scenarios of queues with nodes of a pool: each thread's cache holds nodes already, so that
 * only the queue is explored; at the end all nodes are back.
 */
#ifndef QUEUE_NODES_H
#define QUEUE_NODES_H

#include "checked_allocator.h"

#include "bide/node_pool.h"

enum { QUEUE_NODES = 32 };

typedef struct queue_nodes {
    bide_allocator allocator;
    bide_node_pool pool;
    bide_node_cache caches[BIDE_CHECK_THREADS + 1]; /* by bide_check_thread() */
} queue_nodes;

static void nodes_init_chunks(queue_nodes *nodes, size_t node_size, uint32_t chunk_nodes,
                              uint32_t maximum)
{
    checked_allocator_init(&nodes->allocator);
    bide_check_assert(
        bide_node_pool_init(&nodes->pool, &nodes->allocator, node_size, chunk_nodes, maximum) == 0);
    for (unsigned i = 0; i <= BIDE_CHECK_THREADS; i++)
        bide_node_cache_init(&nodes->caches[i], &nodes->pool);
}

static void nodes_init_pool(queue_nodes *nodes, size_t node_size, uint32_t maximum)
{
    nodes_init_chunks(nodes, node_size, QUEUE_NODES, maximum);
}

/* The setup's cache has the other nodes, if there are any. */
static inline void nodes_init(queue_nodes *nodes, size_t node_size, uint32_t each)
{
    nodes_init_pool(nodes, node_size, QUEUE_NODES - 1);
    for (unsigned i = 1; i <= BIDE_CHECK_THREADS; i++)
        for (uint32_t j = 0; j < each; j++)
            bide_node_put(&nodes->caches[i], bide_node_get(&nodes->caches[0]));
}

static bide_node_cache *nodes_cache(queue_nodes *nodes)
{
    return &nodes->caches[bide_check_thread()];
}

/* No node was lost or returned twice. */
static inline void nodes_destroy(queue_nodes *nodes)
{
    bool seen[QUEUE_NODES] = {false};
    uint32_t count = 0;
    for (unsigned i = 0; i <= BIDE_CHECK_THREADS; i++)
        for (; nodes->caches[i].count != 0; count++) {
            uint32_t index = bide_node_get(&nodes->caches[i]);
            bide_check_assert(!seen[index]);
            seen[index] = true;
        }
    bide_check_assert(count == QUEUE_NODES - 1);
    bide_node_pool_destroy(&nodes->pool);
}

#endif
