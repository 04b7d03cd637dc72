/* What the back ends and a pool of buffers ask of each other. */
#ifndef BIDE_IO_BUFFER_POOL_H
#define BIDE_IO_BUFFER_POOL_H

#include "bide/buffer_pool.h"

/* Of a back end. */
struct bide_buffer_hooks_ {
    /* An operation that waited for a buffer is tried again: it may take one. */
    void (*retry)(bide_io *io, bide_io_operation *operation);

    /* Buffers are free, and nobody waits for one. NULL: they stay. */
    void (*provide)(bide_buffer_pool *pool);

    /* The pool is ended. `is_own`: in the process whose it is. NULL: nothing is to be done. */
    void (*leave)(bide_buffer_pool *pool, bool is_own);
};

/* True: the pool belongs to the io from now on, and did to none before. */
bool bide_io_pool_enter_(bide_buffer_pool *pool, bide_io *io, const struct bide_buffer_hooks_ *hooks);

/* Is one free? */
BIDE_INLINE bool io_pool_has(const bide_buffer_pool *pool)
{
    return pool->free != NULL || pool->fresh != pool->count;
}

/* A free one; NULL: none is, or others wait for it. */
void *bide_io_pool_take_(bide_buffer_pool *pool, const bide_io_operation *operation);

/* It is free, and nobody is told. */
void bide_io_pool_put_(bide_buffer_pool *pool, void *data);

/* The operation waits for one, if it does not already; waits no more. */
void bide_io_pool_wait_(bide_io_operation *operation);
void bide_io_pool_leave_(bide_io_operation *operation);

/* Does it wait for a buffer? Then what it is lent is the pool itself. */
BIDE_INLINE bool io_waits_for_buffer(const bide_io_operation *operation)
{
    return operation->code == BIDE_IO_RECV_PROVIDED && operation->arguments.lent.data != NULL &&
           operation->arguments.lent.data == operation->arguments.lent.pool;
}

#endif
