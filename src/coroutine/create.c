/*
 * A created frame:
 *
 *     | awaiter, type, argument, size |  frame ...
 *       the owner, in front              what the user sees
 *
 * In front of a frame that is aligned to more than the allocator gives stands padding, and in its last
 * word how much.
 *
 * Awaiting the owner runs the frame. The frame's continuation is the awaiting coroutine, so
 * its end costs nothing more, and the owner's resume takes the error and frees. The owner is used
 * by one thread at a time, as the frame.
 */
#include "bide/create.h"

#include "bide/errors.h"
#include "bide/extend/wrapper.h"

static bide_owner *owner_of(bide_frame *frame)
{
    return (bide_owner *)(void *)frame - 1;
}

static bide_frame *frame_of(bide_awaiter *awaiter)
{
    return (bide_frame *)(void *)(bide_container_of(awaiter, bide_owner, awaiter) + 1);
}

static inline void *create_frame(size_t size, size_t alignment, const bide_point *body,
                                 void *argument)
{
    const bide_coroutine_type *type = *body->code->type;
    size_t all = bide_aligned_size_(sizeof(bide_owner), size, alignment);
    if (all == 0)
        return NULL;
    bide_allocator *allocator = argument;
    void *memory = type->allocate != NULL ? type->allocate(all, argument)
                                          : allocator->allocate(allocator, all);
    bide_owner *owner = bide_aligned_begin_(memory, sizeof(bide_owner), &all, alignment);
    if (owner == NULL)
        return NULL;
    owner->type = type;
    owner->argument = argument;
    owner->size = all;
    return owner + 1;
}

void *(bide_create)(size_t size, const bide_point *body, void *argument)
{
    return create_frame(size, BIDE_ALLOCATOR_ALIGN, body, argument);
}

void *(bide_create_aligned)(size_t size, size_t alignment, const bide_point *body, void *argument)
{
    return create_frame(size, alignment, body, argument);
}

void bide_free(bide_frame *frame)
{
    bide_owner *owner = owner_of(frame);
    const bide_coroutine_type *type = owner->type;
    bide_allocator *allocator = owner->argument;
    size_t size = owner->size;
    void *memory = bide_aligned_memory_(owner, &size);
    if (type->deallocate != NULL)
        type->deallocate(memory, size);
    else
        allocator->deallocate(allocator, memory, size);
}

static bide_frame *owner_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_frame *child = frame_of(awaiter);
    child->awaiter.frame = frame;
    child->context = frame->context;
    return child;
}

static int owner_resume(bide_awaiter *awaiter)
{
    bide_frame *child = frame_of(awaiter);
    int error = child->error;
    bide_free(child);
    return error;
}

static bide_frame *owner_coroutine(bide_awaiter *awaiter)
{
    return frame_of(awaiter);
}

static void owner_free(bide_awaiter *awaiter)
{
    bide_free(frame_of(awaiter));
}

const bide_wrapper_ops bide_owned_ops_ = {
    .ops = BIDE_WRAPPER_OPS(NULL, owner_suspend, owner_resume, "bide_owned"),
    .coroutine = owner_coroutine,
    .release = owner_free,
    .is_owner = true,
};

/* The allocation failed: the operation ends at once, and is never written to. */
static bool created_ended(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static int no_memory(bide_awaiter *awaiter)
{
    (void)awaiter;
    return -ENOMEM;
}

static const bide_awaiter_ops no_memory_ops = {
    .ready = created_ended,
    .resume = no_memory,
    .name = "(no memory)",
};
static const bide_awaiter no_memory_awaiter = {&no_memory_ops, NULL, NULL};

bide_awaiter *bide_owned(void *frame, const bide_point *body)
{
    if (frame == NULL) {
        const bide_coroutine_type *type = *body->code->type;
        return type->get_return_object_on_allocation_failure != NULL
                   ? type->get_return_object_on_allocation_failure()
                   : (bide_awaiter *)(uintptr_t)&no_memory_awaiter;
    }
#if BIDE_DEBUG
    bide_check_frame_size_(body, (owner_of(frame)->size & ~BIDE_MARKED_SIZE_) - sizeof(bide_owner),
                           "bide_owned", body->code->file, body->line);
#endif
    bide_await_later(bide_frame_init(frame, body));
    bide_awaiter *awaiter = &owner_of(frame)->awaiter;
    awaiter->ops = &bide_owned_ops_.ops;
    return awaiter;
}

bide_frame *bide_awaited_frame(bide_awaiter *awaiter)
{
    if (awaiter == NULL)
        return NULL;
    if (awaiter->ops == &bide_owned_ops_.ops)
        return frame_of(awaiter);
    return bide_awaiter_is_frame(awaiter) ? (bide_frame *)(void *)awaiter : NULL;
}
