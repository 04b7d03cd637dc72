/*
 * Memory of HTTP/2: from the options' allocator, counted, and no more than the options say. nghttp2
 * frees without a size, so what it has stands behind one. An eighth is kept from streams, since a
 * connection whose session has no memory is lost, and a stream that has none is only refused.
 */
#include "internal.h"

#include <string.h>

void *bide_http2_allocate_(bide_http2 *http2, size_t size)
{
    bide_allocator *allocator = http2->options.allocator;
    if (size > http2->options.max_memory - http2->stats.memory)
        return NULL;
    void *memory = allocator->allocate(allocator, size);
    if (memory != NULL)
        http2->stats.memory += size;
    return memory;
}

void *bide_http2_allocate_for_stream_(bide_http2 *http2, size_t size)
{
    size_t max = http2->options.max_memory - http2->options.max_memory / 8;
    if (http2->stats.memory > max || size > max - http2->stats.memory)
        return NULL;
    return bide_http2_allocate_(http2, size);
}

void bide_http2_deallocate_(bide_http2 *http2, void *memory, size_t size)
{
    bide_allocator *allocator = http2->options.allocator;
    if (memory == NULL)
        return;
    http2->stats.memory -= size;
    allocator->deallocate(allocator, memory, size);
}

/* ---- Pieces of one size ---- */

void *bide_http2_take_piece_(bide_http2_spare_ *spare)
{
    void *piece = spare->first;
    if (piece == NULL)
        return NULL;
    memcpy(&spare->first, piece, sizeof spare->first);
    spare->count--;
    return piece;
}

/* A round of all connections has one request of each (serve.c, 7). */
static size_t max_spares(const bide_http2 *http2)
{
    if (http2->sessions < HTTP2_SPARES)
        return HTTP2_SPARES;
    return http2->sessions < MAX_HTTP2_SPARES ? http2->sessions : MAX_HTTP2_SPARES;
}

void bide_http2_give_piece_(bide_http2 *http2, bide_http2_spare_ *spare, void *piece, size_t size)
{
    if (piece == NULL)
        return;
    if (spare->count >= max_spares(http2)) {
        bide_http2_deallocate_(http2, piece, size);
        return;
    }
    memcpy(piece, &spare->first, sizeof spare->first);
    spare->first = piece;
    spare->count++;
}

void bide_http2_free_pieces_(bide_http2 *http2, bide_http2_spare_ *spare, size_t size)
{
    while (spare->first != NULL)
        bide_http2_deallocate_(http2, bide_http2_take_piece_(spare), size);
}

/* ---- nghttp2's ---- */

typedef union block {
    size_t size; /* of all */
    char room[BIDE_ALLOCATOR_ALIGN];
} block;

static void *allocate(size_t size, void *http2)
{
    if (size > SIZE_MAX - sizeof(block))
        return NULL;
    block *memory = bide_http2_allocate_(http2, size + sizeof(block));
    if (memory == NULL)
        return NULL;
    memory->size = size + sizeof(block);
    return memory + 1;
}

static void release(void *memory, void *http2)
{
    if (memory == NULL)
        return;
    block *it = (block *)memory - 1;
    bide_http2_deallocate_(http2, it, it->size);
}

static void *allocate_zeroed(size_t count, size_t size, void *http2)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *memory = allocate(count * size, http2);
    if (memory != NULL)
        memset(memory, 0, count * size);
    return memory;
}

static void *reallocate(void *memory, size_t size, void *http2)
{
    void *other = allocate(size, http2);
    if (other == NULL || memory == NULL)
        return other;
    size_t old = ((block *)memory - 1)->size - sizeof(block);
    memcpy(other, memory, old < size ? old : size);
    release(memory, http2);
    return other;
}

nghttp2_mem bide_http2_memory_(bide_http2 *http2)
{
    return (nghttp2_mem){http2, allocate, release, allocate_zeroed, reallocate};
}
