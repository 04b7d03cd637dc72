/*
 * Creating a coroutine's frame with an allocator, for frames that are no member of another frame, as
 * in recursion. Floor: coroutine.
 *
 *     static bide_awaiter *walk(bide_allocator *allocator, const struct node *node)
 *     {
 *         struct walk *self = bide_create(sizeof *self, &walk_body, allocator);
 *         if (self != NULL)
 *             self->node = node;
 *         return bide_owned(self, &walk_body);  // frees self at the end; -ENOMEM if self is NULL
 *     }
 *
 * A header before the frame records where its memory came from, so a pointer to the frame is enough to
 * free it. Creating and freeing cost one call of the allocator each. Any thread that may use the
 * allocator may call these functions. The frame is freed on the thread that takes its result, which
 * the allocator must allow (bide_owned).
 *
 * Source: the promise's operator new that keeps its allocator, of Lewis Baker's articles on
 * coroutines.
 */
#ifndef BIDE_CREATE_H
#define BIDE_CREATE_H

#include "bide/allocator.h"
#include "bide/handle.h"

BIDE_EXTERN_C_BEGIN

/* The header of a frame that was created; the frame follows. */
typedef struct bide_owner {
    BIDE_ALIGNAS(BIDE_ALLOCATOR_ALIGN) bide_awaiter awaiter; /* of bide_owned */
    const bide_coroutine_type *type;
    void *argument;
    size_t size; /* with this header; its highest bit: see bide_aligned_size_ */
} bide_owner;

/*
 * Memory for a frame of `size` bytes, which will run `body`: from the type's hook `allocate` with
 * `argument`, or, where the type has none, from the bide_allocator that `argument` points at.
 * sizeof(bide_owner) bytes more than `size` are asked for. NULL if there is none. Not initialised,
 * and aligned to BIDE_ALLOCATOR_ALIGN.
 * Threads: any that may use the allocator. Progress: that of the allocator.
 */
void *bide_create(size_t size, const bide_point *body, void *argument);

#define bide_create(size, body, argument) \
    bide_create(size, BIDE_BODY_OF_SIZE_(body, size), argument)

/*
 * The same for a frame that is aligned to `alignment`, a power of two, as one with an alignas or a
 * vector in it is: `_Alignof(struct walk)`. Above BIDE_ALLOCATOR_ALIGN, `alignment` bytes more are
 * asked for, so that any allocator serves. async_created and spawn do this by themselves.
 * Threads: any that may use the allocator. Progress: that of the allocator.
 */
void *bide_create_aligned(size_t size, size_t alignment, const bide_point *body, void *argument);

#define bide_create_aligned(size, alignment, body, argument) \
    bide_create_aligned(size, alignment, BIDE_BODY_OF_SIZE_(body, size), argument)

/*
 * Gives a created frame back, to where it came from. Not while it is suspended: see bide_destroy.
 * Threads: any that may use the allocator. Progress: that of the allocator.
 */
void bide_free(bide_frame *frame);

/*
 * Puts a created frame at the start of `body`, and returns an awaiter that runs it as a child, ends
 * with its error and frees it; results are to be written elsewhere. With NULL, the awaiter ends
 * with -ENOMEM, or is what the type's get_return_object_on_allocation_failure returns. To be
 * awaited, once. The frame is freed where its result is taken: under bide_schedule_on that is a
 * thread of the other scheduler, which the allocator must allow.
 * Threads: any. Errors: those of the body; -ENOMEM (`frame` is NULL). Suspends: if the body does.
 * Cancel-safe: no, what the body has done stays. Progress: that of the body and of the allocator.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_owned(void *frame, const bide_point *body);

/*
 * The coroutine that is run by awaiting `awaiter`: itself if it is a frame, or the created one of
 * bide_owned; NULL if it is another operation. For hooks that look at what is awaited.
 * Threads: any. Progress: wait-free.
 */
bide_frame *bide_awaited_frame(bide_awaiter *awaiter);

BIDE_EXTERN_C_END

#endif
