/*
 * Buffers that are lent.
 *
 *     a buffer   FREE --> LENT --give_back--> FREE
 *                FREE, or PROVIDED: in the ring from which the kernel takes (uring.c)
 *
 * 1. An operation waits for a buffer only if none was free, and none was provided, when its data had
 *    come: so all are lent, and one of those is given back at some time, which looks for who waits.
 * 2. While operations wait for a buffer, none that comes later takes one (bide_io_pool_take_), and none is
 *    provided to the kernel, which knows no order. The one in front is tried with each buffer that is
 *    given back. If its data are gone, which happens if another descriptor of the socket took them,
 *    it waits for data again, and the next in line is tried.
 *    The kernel has no more of them than a window, which grows when they were too few for what came at
 *    once: it takes them in turn, and would go through all the memory that there is, which is cold.
 * 3. An operation that waits for a buffer is in its descriptor's line too, in front, and leaves both
 *    when it ends, whatever it ends with (bide_io_remove).
 */
#define _GNU_SOURCE
#include "buffer_pool.h"

#include "operation.h"

#include "../system/fork.h"

#include <string.h>

void bide_io_pool_put_(bide_buffer_pool *pool, void *data)
{
    memcpy(data, &pool->free, sizeof pool->free); /* (it need not be aligned) */
    pool->free = data;
}

void *bide_io_pool_take_(bide_buffer_pool *pool, const bide_io_operation *operation)
{
    void *data = pool->free;
    if (!io_pool_has(pool) || (pool->first != NULL && pool->served != operation)) /* 2 */
        return NULL;
    if (data == NULL)
        return pool->memory + pool->fresh++ * pool->size;
    memcpy(&pool->free, data, sizeof pool->free);
    return data;
}

void bide_io_pool_wait_(bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.lent.pool;
    if (io_waits_for_buffer(operation))
        return;
    operation->arguments.lent.data = pool;
    operation->arguments.lent.next = NULL;
    operation->arguments.lent.previous = pool->last;
    if (pool->last != NULL)
        pool->last->arguments.lent.next = operation;
    else
        pool->first = operation;
    pool->last = operation;
}

void bide_io_pool_leave_(bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.lent.pool;
    bide_io_operation *next = operation->arguments.lent.next;
    bide_io_operation *previous = operation->arguments.lent.previous;
    operation->arguments.lent.data = NULL;
    if (previous != NULL)
        previous->arguments.lent.next = next;
    else
        pool->first = next;
    if (next != NULL)
        next->arguments.lent.previous = previous;
    else
        pool->last = previous;
}

bool bide_io_pool_enter_(bide_buffer_pool *pool, bide_io *io, const struct bide_buffer_hooks_ *hooks)
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

void bide_buffer_pool_init(bide_buffer_pool *pool, void *memory, size_t size, unsigned count)
{
    memset(pool, 0, sizeof *pool);
    pool->memory = memory;
    pool->size = size;
    pool->count = count;
}

void bide_buffer_pool_destroy(bide_buffer_pool *pool)
{
    if (pool->lent != 0 || pool->first != NULL)
        bide_platform.misuse("a pool of buffers is ended while it is in use",
                             "bide_buffer_pool_destroy", __FILE__, __LINE__);
    if (pool->io != NULL && pool->hooks->leave != NULL)
        pool->hooks->leave(pool, pool->io->generation == bide_generation_);
    pool->io = NULL;
}

bide_awaiter *bide_recv_provided(bide_io_operation *operation, bide_descriptor *socket,
                                bide_buffer_pool *pool)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_recv_provided");
    bide_io_operation_init(operation, &ops, BIDE_IO_RECV_PROVIDED, socket);
    operation->arguments.lent.pool = pool;
    operation->arguments.lent.data = NULL;
    return &operation->awaiter;
}

void bide_buffer_release(bide_buffer_pool *pool, void *data)
{
    if (data == NULL)
        return;
    pool->lent--;
    bide_io_pool_put_(pool, data);
    while (pool->first != NULL && pool->free != NULL) { /* 2 */
        bide_io_operation *operation = pool->first;
        bide_io_pool_leave_(operation);
        pool->served = operation;
        pool->hooks->retry(pool->io, operation);
        pool->served = NULL;
    }
    if (pool->free != NULL && pool->hooks->provide != NULL)
        pool->hooks->provide(pool);
}
