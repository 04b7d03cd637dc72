/*
 * Coroutine types: the hooks that a body calls when it starts, awaits, yields and ends. For authors
 * of new kinds of coroutines, such as generators. Floor: coroutine.
 *
 *     typedef struct bide_generator {                     // the promise
 *         bide_frame frame;                               // first
 *         void *value;
 *     } bide_generator;
 *     static inline bide_frame *yielded(bide_frame *frame, void *value)
 *     {
 *         bide_promise(bide_generator, frame)->value = value;
 *         return NULL;                                    // back to the consumer
 *     }
 *     static const bide_coroutine_type generator_type = {.name = "generator", .yield_value = yielded};
 *
 *     bide_coroutine_of(generator_type, count_body) { ... }
 *
 * A type is a `static const bide_coroutine_type` and a struct, the promise, which is the head
 * of the user's frame. The compiler of a body sees the hooks as constants: a NULL hook costs nothing,
 * and a `static inline` hook is inlined. A hook runs on the thread that makes the call:
 *
 *     bide_start:   get_return_object, initial_suspend
 *     the body:     await_transform before each await, yield_value for each bide_yield
 *     its end:      return_value or return_void, or unhandled_error; `finally`; final_suspend
 *     bide_create:  allocate, get_return_object_on_allocation_failure
 *     bide_free:    deallocate
 *     bide_destroy: destroyed; `finally`; deallocate
 *
 * Source: the promise type of Lewis Baker's articles on coroutines.
 */
#ifndef BIDE_EXTEND_COROUTINE_TYPE_H
#define BIDE_EXTEND_COROUTINE_TYPE_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

struct bide_coroutine_type {
    const char *name;

    /*
     * Gives the result of bide_start; called before anything of the body runs, because after that
     * the frame may be gone. NULL: the frame.
     */
    void *(*get_return_object)(bide_frame *frame);

    /*
     * For bide_start, at the body's start: returns the frame that runs next. NULL: none, it stays
     * suspended (lazy); `frame`: the body runs up to where it first suspends (eager); or the hook
     * hands the frame to a scheduler and returns NULL. The hook itself NULL: lazy.
     */
    bide_frame *(*initial_suspend)(bide_frame *frame);

    /*
     * For bide_yield: the body is suspended. Keeps or passes on `value`, which is what bide_yield
     * was given, and the body's until it is resumed. Returns the frame that runs next, as an
     * awaiter's suspend does. NULL: such a coroutine does not yield.
     */
    bide_frame *(*yield_value)(bide_frame *frame, void *value);

    /*
     * For bide_return_value: takes what the pointer points at, before `finally`. NULL: no values.
     */
    void (*return_value)(bide_frame *frame, void *value);

    /* For bide_return(0) and for the body's end, before `finally`. NULL: nothing. */
    void (*return_void)(bide_frame *frame);

    /*
     * For a return with a negative errno, before `finally`: returns what the coroutine ends with
     * instead. NULL: with `error`.
     */
    int (*unhandled_error)(bide_frame *frame, int error);

    /*
     * The coroutine has ended, with frame->error; it ran in `context`. Returns the frame that runs
     * next. The hook may free the frame. NULL: its continuation runs next.
     */
    bide_frame *(*final_suspend)(bide_frame *frame, const bide_context *context);

    /*
     * For each await: what is awaited in place of `awaiter`. NULL: `awaiter`. bide_await_forbidden:
     * there may be no await in the body.
     */
    bide_awaiter *(*await_transform)(bide_frame *frame, bide_awaiter *awaiter);

    /*
     * For bide_create: memory, aligned to BIDE_ALLOCATOR_ALIGN, or NULL. `argument` is that of
     * bide_create.
     * NULL: the argument is a bide_allocator, which is asked. Both or none.
     */
    void *(*allocate)(size_t size, void *argument);
    void (*deallocate)(void *memory, size_t size);

    /*
     * Gives the result of bide_start and bide_owned when there is no memory. NULL: an awaiter that
     * ends with -ENOMEM.
     */
    void *(*get_return_object_on_allocation_failure)(void);

    /*
     * The coroutine has ended with 0, or was ready at its start, and the coroutine that awaits it
     * is destroyed before it has learnt of that, behind a wrapper: gives back what this one had for
     * it. NULL: nothing.
     */
    void (*release)(bide_frame *frame);

    /*
     * The coroutine has begun and is destroyed; called before `finally`, when it waits for nothing
     * any more. Mainly for reports of misuse. NULL: nothing.
     */
    void (*destroyed)(bide_frame *frame);
};

/*
 * An await_transform that refuses: an await in the body does not compile when optimised (gcc,
 * clang), and is caught as misuse when run otherwise.
 * Threads: the coroutine's.
 */
bide_awaiter *bide_await_forbidden(bide_frame *frame, bide_awaiter *awaiter);

/*
 * The promise of a frame, and back: `type` has a first member `frame`.
 * Threads: any. Progress: wait-free.
 */
#define bide_promise(type, handle) bide_container_of(handle, type, frame)
#define bide_from_promise(promise) (&(promise)->frame)

BIDE_EXTERN_C_END

#endif
