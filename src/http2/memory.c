/*
 * Memory of HTTP/2: allocated by the options' allocator, counted, and limited.
 *
 * Why it is correct:
 * 1. counts.memory is the sum of all allocations. It is 0 when the last connection has ended.
 * 2. nghttp2 frees without a size, so its allocations store their size in front.
 * 3. Streams may use 7/8 of the limit. A session that gets no memory loses its connection, whereas a
 *    stream that gets none is only rejected.
 */
#include "internal.h"

#include <string.h>

void *bide_http2_allocate_(bide_http2 *http2, size_t size)
{
    bide_allocator *allocator = http2->options.allocator;
    bide_assert(http2->stats.memory <= http2->options.max_memory); /* 1 */
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
    bide_assert(size <= http2->stats.memory); /* 1 */
    http2->stats.memory -= size;
    allocator->deallocate(allocator, memory, size);
}

/* ---- Pieces of one size ---- */

void *bide_http2_take_piece_(bide_http2_spare_ *spare)
{
    void *piece = spare->first;
    bide_assert((piece == NULL) == (spare->count == 0));
    if (piece == NULL)
        return NULL;
    memcpy(&spare->first, piece, sizeof spare->first);
    spare->count--;
    return piece;
}

/* In a round of turns, each connection starts at least one request (serve.c, 7). */
static size_t http2_max_spares(const bide_http2 *http2)
{
    if (http2->sessions < HTTP2_SPARES)
        return HTTP2_SPARES;
    return http2->sessions < MAX_HTTP2_SPARES ? http2->sessions : MAX_HTTP2_SPARES;
}

void bide_http2_give_piece_(bide_http2 *http2, bide_http2_spare_ *spare, void *piece, size_t size)
{
    if (piece == NULL)
        return;
    if (spare->count >= http2_max_spares(http2)) {
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
    bide_assert(spare->count == 0);
}

/* ---- The allocator of nghttp2 ---- */

typedef union http2_block {
    size_t size; /* including this header */
    char room[BIDE_ALLOCATOR_ALIGN];
} http2_block;

static void *http2_session_allocate(size_t size, void *http2)
{
    if (size > SIZE_MAX - sizeof(http2_block))
        return NULL;
    http2_block *memory = bide_http2_allocate_(http2, size + sizeof(http2_block));
    if (memory == NULL)
        return NULL;
    memory->size = size + sizeof(http2_block);
    return memory + 1;
}

static void http2_session_free(void *memory, void *http2)
{
    if (memory == NULL)
        return;
    http2_block *it = (http2_block *)memory - 1;
    bide_http2_deallocate_(http2, it, it->size);
}

static void *http2_session_allocate_zeroed(size_t count, size_t size, void *http2)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *memory = http2_session_allocate(count * size, http2);
    if (memory != NULL)
        memset(memory, 0, count * size);
    return memory;
}

static void *http2_session_reallocate(void *memory, size_t size, void *http2)
{
    void *other = http2_session_allocate(size, http2);
    if (other == NULL || memory == NULL)
        return other;
    size_t old = ((http2_block *)memory - 1)->size - sizeof(http2_block);
    memcpy(other, memory, old < size ? old : size);
    http2_session_free(memory, http2);
    return other;
}

nghttp2_mem bide_http2_memory_(bide_http2 *http2)
{
    return (nghttp2_mem){http2, http2_session_allocate, http2_session_free,
                         http2_session_allocate_zeroed, http2_session_reallocate};
}
