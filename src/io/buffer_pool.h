/* The interface between pools of buffers and back ends. All of it runs on the io's thread. */
#ifndef BIDE_IO_BUFFER_POOL_H
#define BIDE_IO_BUFFER_POOL_H

#include "bide/buffer_pool.h"

/* A buffer that a receiver keeps (receiver.c). */
struct bide_buffer_record_ {
    uint32_t size; /* of what it has received */
    uint32_t next; /* the number of the buffer behind it */
};

/* The functions of a back end. */
struct bide_buffer_hooks_ {
    /* Retries an operation that waited for a buffer: it may take one. */
    void (*retry)(bide_io *io, bide_io_operation *operation);

    /* Buffers are free, and no operation waits for one. NULL: they stay free. */
    void (*provide)(bide_buffer_pool *pool);

    /* The pool ends. `is_own`: in the process that created it. NULL: nothing. */
    void (*leave)(bide_buffer_pool *pool, bool is_own);
};

/* True: the pool belongs to the io from now on, and belonged to none before. */
bool bide_buffer_pool_claim_(bide_buffer_pool *pool, bide_io *io,
                             const struct bide_buffer_hooks_ *hooks);

/* Whether a buffer is free. */
BIDE_INLINE bool bide_buffer_pool_has_free_(const bide_buffer_pool *pool)
{
    return pool->free != NULL || pool->fresh != pool->count;
}

/* Takes a free buffer; NULL: none is free, or other operations wait for it. */
void *bide_buffer_pool_pop_(bide_buffer_pool *pool, const bide_io_operation *operation);

/* The buffer is free again. No waiting operation is retried. */
void bide_buffer_pool_push_(bide_buffer_pool *pool, void *data);

/* The operation starts to wait for a buffer, if it does not already; stops waiting. */
void bide_buffer_pool_wait_(bide_io_operation *operation);
void bide_buffer_pool_stop_waiting_(bide_io_operation *operation);

/* Whether it waits for a buffer. Then `data` is the pool itself. */
BIDE_INLINE bool io_waits_for_buffer(const bide_io_operation *operation)
{
    return (operation->code == BIDE_IO_RECV_PROVIDED || operation->code == BIDE_IO_RECV_NEXT) &&
           operation->arguments.provided.data != NULL &&
           operation->arguments.provided.data == operation->arguments.provided.pool;
}

#endif
