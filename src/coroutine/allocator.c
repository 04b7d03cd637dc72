/*
 * The allocators of the core: an arena over the caller's memory. One thread at a time uses an arena.
 * Nothing here calls malloc. allocator.h has the contract.
 */
#include "bide/allocator.h"

static size_t rounded_up(size_t size)
{
    return (size + BIDE_ALLOCATOR_ALIGN - 1) & ~(size_t)(BIDE_ALLOCATOR_ALIGN - 1);
}

/* The number of bytes from `memory` to the next aligned address. */
static size_t allocator_misaligned(const void *memory)
{
    return -(uintptr_t)memory & (BIDE_ALLOCATOR_ALIGN - 1);
}

static void *arena_allocate(bide_allocator *allocator, size_t size)
{
    bide_arena *arena = bide_container_of(allocator, bide_arena, allocator);
    size_t all = rounded_up(size);
    if (all < size || all > arena->size - arena->used)
        return NULL;
    void *memory = arena->memory + arena->used;
    arena->used += all;
    return memory;
}

/* Only the block that was allocated last can be reused. */
static void arena_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    bide_arena *arena = bide_container_of(allocator, bide_arena, allocator);
    size_t all = rounded_up(size);
    if ((unsigned char *)memory + all == arena->memory + arena->used)
        arena->used -= all;
}

void bide_arena_init(bide_arena *arena, void *memory, size_t size)
{
    size_t skipped = allocator_misaligned(memory);
    if (skipped > size)
        skipped = size;
    arena->allocator.allocate = arena_allocate;
    arena->allocator.deallocate = arena_deallocate;
    arena->memory = (unsigned char *)memory + skipped;
    arena->size = size - skipped;
    arena->used = 0;
}

static void *pool_allocate(bide_allocator *allocator, size_t size)
{
    bide_pool *pool = bide_container_of(allocator, bide_pool, allocator);
    if (size > pool->piece)
        return NULL;
    void *memory = pool->unused;
    if (memory != NULL) {
        pool->unused = *(void **)memory;
    } else if (pool->left != 0) {
        memory = pool->fresh;
        pool->fresh += pool->piece;
        pool->left--;
    }
    return memory;
}

static void pool_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    bide_pool *pool = bide_container_of(allocator, bide_pool, allocator);
    (void)size;
    *(void **)memory = pool->unused;
    pool->unused = memory;
}

void bide_pool_init(bide_pool *pool, size_t piece, void *memory, size_t size)
{
    size_t skipped = allocator_misaligned(memory);
    if (skipped > size)
        skipped = size;
    pool->allocator.allocate = pool_allocate;
    pool->allocator.deallocate = pool_deallocate;
    pool->piece = rounded_up(piece != 0 ? piece : 1);
    pool->unused = NULL;
    pool->fresh = (unsigned char *)memory + skipped;
    pool->left = pool->piece < piece ? 0 : (size - skipped) / pool->piece;
}
