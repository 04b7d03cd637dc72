/*
 * Buffers that are provided to the kernel, for buffer pools (buffer_pool.c has the states of a
 * buffer, and the argument).
 *
 * 1. A pool that is used on a ring has a buffer ring of its own, from which the kernel takes a
 *    buffer when a receive has data.
 * 2. The kernel has no more buffers than the pool's window. The window doubles when its buffers
 *    were too few for the data that arrived at once.
 */
#define _GNU_SOURCE
#include "buffer_pool.h"
#include "loop.h"

#if BIDE_HAS_LIBURING

#include "uring.h"

#include <errno.h>
#include <sys/mman.h>

enum { FIRST_WINDOW = 32 };

static unsigned buffer_ring_entries(const bide_buffer_pool *pool)
{
    unsigned entries = 1;
    while (entries < pool->count)
        entries *= 2;
    return entries;
}

/* (in the same mapping as the ring, behind it) */
static size_t buffer_records_offset(const bide_buffer_pool *pool)
{
    return buffer_ring_entries(pool) * sizeof(struct io_uring_buf);
}

static size_t buffer_ring_size(const bide_buffer_pool *pool)
{
    return buffer_records_offset(pool) + pool->count * sizeof *pool->records;
}

/* Provides free buffers to the kernel, up to the window: 2. */
static void buffer_ring_fill(bide_buffer_pool *pool)
{
    int mask = io_uring_buf_ring_mask(buffer_ring_entries(pool));
    void *data;
    int count = 0;
    while (pool->ring != NULL && pool->provided + (unsigned)count < pool->window &&
           (data = bide_buffer_pool_pop_(pool, NULL)) != NULL) {
        unsigned number = (unsigned)((size_t)((char *)data - pool->memory) / pool->size);
        bide_assert(number < pool->count);
        io_uring_buf_ring_add(pool->ring, data, (unsigned)pool->size, (unsigned short)number, mask,
                              count++);
    }
    if (count != 0)
        io_uring_buf_ring_advance(pool->ring, count);
    pool->provided += (unsigned)count;
    bide_assert(pool->provided <= pool->count);
}

static void buffer_ring_leave(bide_buffer_pool *pool, bool is_own)
{
    if (pool->ring == NULL)
        return;
    if (is_own)
        io_uring_unregister_buf_ring(&loop_of(pool->io)->uring->ring, pool->group);
    munmap(pool->ring, buffer_ring_size(pool));
    pool->ring = NULL;
}

static void uring_retry_with_buffer(bide_io *io, bide_io_operation *operation)
{
    bide_uring_try_(loop_of(io), operation);
}

static const struct bide_buffer_hooks_ uring_buffer_hooks = {uring_retry_with_buffer,
                                                             buffer_ring_fill, buffer_ring_leave};

void bide_uring_enter_pool_(bide_loop *loop, bide_buffer_pool *pool)
{
    struct loop_uring *uring = loop->uring;
    if (!bide_buffer_pool_claim_(pool, &loop->io, &uring_buffer_hooks) || !uring->has_buffers)
        return;
    size_t size = buffer_ring_size(pool);
    void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (ring == MAP_FAILED)
        return;
    struct io_uring_buf_reg wanted = {.ring_addr = (uintptr_t)ring,
                                      .ring_entries = buffer_ring_entries(pool)};
    int error;
    unsigned tries = 0;
    do {
        wanted.bgid = uring->next_group++;
        error = io_uring_register_buf_ring(&uring->ring, &wanted, 0);
    } while (error == -EEXIST && ++tries <= UINT16_MAX);
    if (error != 0) {
        munmap(ring, size);
        return;
    }
    madvise(ring, size, MADV_DONTFORK);
    pool->ring = ring;
    pool->records = (void *)((char *)ring + buffer_records_offset(pool));
    pool->group = wanted.bgid;
    pool->window = FIRST_WINDOW;
    buffer_ring_fill(pool);
}

void bide_uring_take_buffer_(bide_io_operation *operation, int result, unsigned flags)
{
    bide_buffer_pool *pool = operation->arguments.provided.pool;
    unsigned number = flags >> IORING_CQE_BUFFER_SHIFT;
    bide_assert(number < pool->count && pool->provided != 0);
    char *data = pool->memory + number * pool->size;
    pool->provided--;
    pool->in_use++;
    if (pool->provided < pool->window / 2)
        buffer_ring_fill(pool);
    if (result > 0) {
        operation->arguments.provided.data = data;
        io_written(data, (size_t)result);
    } else {
        bide_buffer_release(pool, data);
    }
}

void bide_uring_found_no_buffer_(bide_loop *loop, bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.provided.pool;
    if (pool->provided == 0 &&
        bide_buffer_pool_has_free_(pool)) { /* more arrived at once than the window has */
        if (pool->window < pool->count)
            pool->window *= 2;
        buffer_ring_fill(pool);
    }
    if (pool->provided != 0)
        bide_uring_put_(loop->uring, operation); /* a buffer was released meanwhile */
    else
        bide_buffer_pool_wait_(operation);
}

#endif
