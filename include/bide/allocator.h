/*
 * Allocators: the source of memory for created frames (create.h) and for other structures that
 * allocate. Floor: coroutine.
 *
 *     static unsigned char memory[4096];
 *     bide_arena arena;
 *     bide_arena_init(&arena, memory, sizeof memory);
 *     walk = bide_create(sizeof *walk, &walk_body, &arena.allocator);
 *
 *     bide_arena   takes pieces from the caller's memory; bide_arena_reset frees all of them
 *     bide_pool    has pieces of one size, in the caller's memory, and reuses freed ones
 *     bide_heap    malloc and free (not in the freestanding core)
 *
 * One thread at a time uses an arena or a pool; both take constant time and no system call. Any thread
 * may use bide_heap. An allocator of your own is a struct with a bide_allocator as first member. It
 * aligns to BIDE_ALLOCATOR_ALIGN; for a frame that is aligned to more, it is asked for as many bytes
 * more as that alignment.
 */
#ifndef BIDE_ALLOCATOR_H
#define BIDE_ALLOCATOR_H

#include "bide/compiler.h"

BIDE_EXTERN_C_BEGIN

/* The alignment of every allocation. */
#define BIDE_ALLOCATOR_ALIGN 16

typedef struct bide_allocator bide_allocator;

struct bide_allocator {
    /* `size` bytes aligned to BIDE_ALLOCATOR_ALIGN, or NULL. */
    void *(*allocate)(bide_allocator *allocator, size_t size);

    /* Takes back what `allocate` gave for `size`. */
    void (*deallocate)(bide_allocator *allocator, void *memory, size_t size);
};

/* Memory that is cut from one end. One thread at a time. */
typedef struct bide_arena {
    bide_allocator allocator;
    unsigned char *memory;
    size_t size;
    size_t used; /* bytes, from the start */
} bide_arena;

/*
 * Makes an arena of `size` bytes at `memory`, which is the caller's.
 * Threads: one at a time. Progress: wait-free.
 */
void bide_arena_init(bide_arena *arena, void *memory, size_t size);

/*
 * All of it is free again, whatever was not given back.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_arena_reset(bide_arena *arena)
{
    arena->used = 0;
}

/*
 * Pieces of one size. The piece that was given back last is handed out first. One thread at a time;
 * constant time. Coroutines that await each other in frames of about one size give back the frame
 * that the next one takes.
 */
typedef struct bide_pool {
    bide_allocator allocator;
    size_t piece; /* bytes */
    void *unused; /* the first, which points at the next */
    unsigned char *fresh;
    size_t left; /* fresh pieces, which never were given out */
} bide_pool;

/*
 * Makes a pool of as many pieces of `piece` bytes (rounded up to BIDE_ALLOCATOR_ALIGN) as there is
 * room for in `size` bytes at `memory`, which is the caller's. Asked for more than a piece it has
 * none.
 * Threads: one at a time. Progress: wait-free.
 */
void bide_pool_init(bide_pool *pool, size_t piece, void *memory, size_t size);

/* malloc and free. Any thread. Not in the freestanding core. */
extern bide_allocator bide_heap;

/* ---- More than BIDE_ALLOCATOR_ALIGN, from any allocator ---- */

/*
 * A block with a larger alignment is asked for with as many bytes more, and marked by the highest bit
 * of its recorded size. The word before it has its distance from the start of the memory.
 */
#define BIDE_MARKED_SIZE_ (~(SIZE_MAX >> 1))

/* The size to ask for, for `before` bytes and then `size` aligned ones; 0 if it is too large. */
BIDE_INLINE size_t bide_aligned_size_(size_t before, size_t size, size_t alignment)
{
    size_t more = before;
    if (alignment > BIDE_ALLOCATOR_ALIGN)
        more += alignment;
    return size < BIDE_MARKED_SIZE_ - more ? more + size : 0;
}

/* In `memory` of that size: where the `before` bytes begin. The size becomes the one to record. */
BIDE_INLINE void *bide_aligned_begin_(void *memory, size_t before, size_t *size, size_t alignment)
{
    if (alignment <= BIDE_ALLOCATOR_ALIGN || memory == NULL)
        return memory;
    uintptr_t lowest = (uintptr_t)memory + BIDE_ALLOCATOR_ALIGN + before;
    uintptr_t to = (lowest + alignment - 1) & ~(uintptr_t)(alignment - 1);
    unsigned char *begin = (unsigned char *)memory + (to - before - (uintptr_t)memory);
    *((size_t *)(void *)begin - 1) = (size_t)(begin - (unsigned char *)memory);
    *size |= BIDE_MARKED_SIZE_;
    return begin;
}

/* The memory, from where the block begins and the recorded size, which becomes that of the memory. */
BIDE_INLINE void *bide_aligned_memory_(void *begin, size_t *size)
{
    if (BIDE_LIKELY((*size & BIDE_MARKED_SIZE_) == 0))
        return begin;
    *size &= ~BIDE_MARKED_SIZE_;
    return (unsigned char *)begin - *((size_t *)begin - 1);
}

BIDE_EXTERN_C_END

#endif
