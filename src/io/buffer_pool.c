/*
 * Pools of buffers: a receive gets a buffer when its data have arrived, and its user releases the
 * buffer.
 *
 *     a buffer   FREE --receive--> LENT --bide_buffer_release--> FREE
 *                FREE <--> PROVIDED: the kernel may take it (uring_buffers.c)
 *
 * Threads: all of it runs on the thread of the io that uses the pool first.
 *
 * 1. A receive waits for a buffer only if none was free, and none was provided, when its data
 *    arrived. So all buffers are lent, and the release of one retries the waiting receives.
 * 2. While receives wait for a buffer, no later receive takes one (bide_buffer_pool_pop_), and none is
 *    provided to the kernel, which knows no order. Each buffer that is released is tried with the
 *    first receive of the line. If its data are gone, because another descriptor of the socket took
 *    them, it waits for data again, and the next receive is tried. The kernel has no more buffers
 *    than a window, which grows if they were too few for the data that arrived at once. The kernel
 *    takes buffers in turn, so without a window it would go through the whole memory of the pool,
 *    which is cold.
 * 3. A receive that waits for a buffer is also in its descriptor's line, in front. It leaves both
 *    when it ends, whatever its outcome (bide_io_remove).
 */
#define _GNU_SOURCE
#include "buffer_pool.h"

#include "operation.h"

#include "../system/fork.h"

#include <string.h>

void bide_buffer_pool_push_(bide_buffer_pool *pool, void *data)
{
    memcpy(data, &pool->free, sizeof pool->free); /* (it need not be aligned) */
    pool->free = data;
}

void *bide_buffer_pool_pop_(bide_buffer_pool *pool, const bide_io_operation *operation)
{
    void *data = pool->free;
    bide_assert(pool->fresh <= pool->count);
    if (!bide_buffer_pool_has_free_(pool) ||
        (pool->first != NULL && pool->served != operation)) /* 2 */
        return NULL;
    if (data == NULL)
        return pool->memory + pool->fresh++ * pool->size;
    memcpy(&pool->free, data, sizeof pool->free);
    return data;
}

void bide_buffer_pool_wait_(bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.provided.pool;
    if (io_waits_for_buffer(operation))
        return;
    operation->arguments.provided.data = pool;
    operation->arguments.provided.next = NULL;
    operation->arguments.provided.previous = pool->last;
    if (pool->last != NULL)
        pool->last->arguments.provided.next = operation;
    else
        pool->first = operation;
    pool->last = operation;
}

void bide_buffer_pool_stop_waiting_(bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.provided.pool;
    bide_assert(io_waits_for_buffer(operation));
    bide_io_operation *next = operation->arguments.provided.next;
    bide_io_operation *previous = operation->arguments.provided.previous;
    operation->arguments.provided.data = NULL;
    if (previous != NULL)
        previous->arguments.provided.next = next;
    else
        pool->first = next;
    if (next != NULL)
        next->arguments.provided.previous = previous;
    else
        pool->last = previous;
}

bool bide_buffer_pool_claim_(bide_buffer_pool *pool, bide_io *io,
                             const struct bide_buffer_hooks_ *hooks)
{
    if (pool->io == NULL) {
        pool->io = io;
        pool->hooks = hooks;
        return true;
    }
    if (pool->io != io)
        bide_platform.misuse("a pool of buffers is used on two loops", "bide_recv_provided",
                             __FILE__, __LINE__);
    return false;
}

void(bide_buffer_pool_init)(bide_buffer_pool *pool, void *memory, size_t size, unsigned count)
{
    memset(pool, 0, sizeof *pool);
    pool->memory = memory;
    pool->size = size;
    pool->count = count;
}

void bide_buffer_pool_destroy(bide_buffer_pool *pool)
{
    if (pool->in_use != 0 || pool->first != NULL)
        bide_platform.misuse("a pool of buffers is ended while it is in use",
                             "bide_buffer_pool_destroy", __FILE__, __LINE__);
    if (pool->io != NULL && pool->hooks->leave != NULL)
        pool->hooks->leave(pool, !bide_is_inherited_(pool->io->generation));
    pool->io = NULL;
}

bide_awaiter *bide_recv_provided(bide_io_operation *operation, bide_descriptor *socket,
                                 bide_buffer_pool *pool)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_recv_provided");
    bide_io_operation_init(operation, &ops, BIDE_IO_RECV_PROVIDED, socket);
    operation->arguments.provided.pool = pool;
    operation->arguments.provided.data = NULL;
    return &operation->awaiter;
}

void bide_buffer_release(bide_buffer_pool *pool, void *data)
{
    if (data == NULL)
        return;
    bide_assert(pool->in_use != 0);
    pool->in_use--;
    bide_buffer_pool_push_(pool, data);
    while (pool->first != NULL && pool->free != NULL) { /* 2 */
        bide_io_operation *operation = pool->first;
        bide_buffer_pool_stop_waiting_(operation);
        pool->served = operation;
        pool->hooks->retry(pool->io, operation);
        pool->served = NULL;
    }
    if (pool->free != NULL && pool->hooks->provide != NULL)
        pool->hooks->provide(pool);
}
