/*
 * A recursive generator: a generator that may also yield all values of another, to any depth.
 * Floor: coroutine.
 *
 *     struct walk {
 *         bide_recursive_generator generator;     // header first
 *         const struct node *node;
 *         struct walk *nested;                    // or created: bide_yield_from_owned
 *     };
 *     bide_recursive_generator_coroutine(walk_body)
 *     {
 *         bide_begin(walk_body, struct walk *self);
 *         if (self->node->left != NULL)
 *             bide_yield_from(walk(self->nested, self->node->left));
 *         bide_yield(&self->node->key);
 *         ...
 *         bide_end();
 *     }
 *
 * One thread at a time uses a generator and those nested in it. Nothing here suspends the caller,
 * allocates, or waits. A value costs the same at any depth.
 */
#ifndef BIDE_RECURSIVE_GENERATOR_H
#define BIDE_RECURSIVE_GENERATOR_H

#include "bide/coroutine.h"
#include "bide/create.h"
#include "bide/handle.h"

BIDE_EXTERN_C_BEGIN

/* The first member of a recursive generator's frame. */
typedef struct bide_recursive_generator bide_recursive_generator;
struct bide_recursive_generator {
    bide_frame frame;
    bide_recursive_generator *root; /* itself, if it is the outermost */
    bide_frame *leaf;               /* of the root: runs for the next value */
    void *value;                    /* of the root: the newest; NULL: it has ended */
};

BIDE_INLINE bide_frame *bide_recursive_generator_yield_(bide_frame *frame, void *value)
{
    bide_recursive_generator *root = bide_promise(bide_recursive_generator, frame)->root;
    root->value = value;
    root->leaf = frame;
    return NULL;
}

/* Reports the root's end to the consumer, another's end to the generator that yields from it. */
BIDE_INLINE bide_frame *bide_recursive_generator_final_(bide_frame *frame,
                                                        const bide_context *context)
{
    (void)context;
    bide_promise(bide_recursive_generator, frame)->value = NULL;
    return frame->awaiter.frame;
}

/* Lets a nested recursive generator know its root; what else is awaited must have ended already. */
bide_awaiter *bide_recursive_generator_transform_(bide_frame *frame, bide_awaiter *awaiter);

static const bide_coroutine_type bide_recursive_generator_type = {
    "recursive_generator",
    NULL,
    NULL,
    bide_recursive_generator_yield_,
    NULL,
    NULL,
    NULL,
    bide_recursive_generator_final_,
    bide_recursive_generator_transform_,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL};

/*
 * Opens the definition of a recursive generator's body; see bide_coroutine_of.
 * Threads: as bide_coroutine_of.
 */
#define bide_recursive_generator_coroutine(name) \
    bide_coroutine_of(bide_recursive_generator_type, name)

/*
 * Makes `generator` a recursive generator at its start, to be run by `body` (the constant of a
 * bide_recursive_generator_coroutine), either as a root or by bide_yield_from. Writes the header
 * only; returns the generator. The frame is the caller's and must stay where it is until the
 * generator has ended. Cannot fail.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bide_recursive_generator *
bide_recursive_generator_init(bide_recursive_generator *generator, const bide_point *body)
{
    bide_frame_init_in(&generator->frame, body, &bide_default_context);
    generator->root = generator;
    generator->leaf = &generator->frame;
    generator->value = NULL;
    return generator;
}

#define bide_recursive_generator_init(generator, body) \
    bide_recursive_generator_init(generator, BIDE_BODY_FOR_(body, generator))

/*
 * Runs it, or rather the innermost, up to the next yield. Returns what was yielded, which is good
 * until it is run again; or NULL: it has ended, now or before. Only on a root.
 * Threads: one at a time. Suspends: never. Progress: that of the bodies.
 */
BIDE_INLINE void *bide_recursive_generator_next(bide_recursive_generator *generator)
{
    if (BIDE_UNLIKELY(bide_done(&generator->frame)))
        return NULL;
    bide_frame *frame = generator->leaf;
    do
        frame = bide_frame_step(frame, BIDE_DIRECT_DEPTH);
    while (frame != NULL);
    return generator->value;
}

/*
 * With what it ended: 0 or a negative errno. Only after its end.
 * Threads: one at a time. Errors: those of the body; -ECANCELED (it was stopped). Progress:
 * wait-free.
 */
BIDE_INLINE int bide_recursive_generator_error(const bide_recursive_generator *generator)
{
    return generator->frame.error;
}

/*
 * Stops all of them where they stand: the `finally` of the innermost runs first. Does nothing if it
 * has ended. Only on a root.
 * Threads: one at a time. Suspends: never. Progress: that of each `finally`; linear in the depth.
 */
BIDE_INLINE void bide_recursive_generator_destroy(bide_recursive_generator *generator)
{
    if (!bide_done(&generator->frame))
        bide_destroy(&generator->frame);
}

/*
 * In the body of a recursive generator: yields all that `nested`, a bide_recursive_generator * at
 * its start, yields; if it ends with an error, so does this one. A statement. Stands where an await
 * may.
 * Threads: the coroutine's. Errors: those of `nested` end the coroutine. Suspends: if it yields, at
 * each value.
 */
#define bide_yield_from(nested) bide_try(&(nested)->frame.awaiter)

/*
 * The same, but its error, or 0, goes to `status`; see bide_await_status.
 * Threads: the coroutine's. Errors: those of `nested`, in `status`. Suspends: if it yields, at each
 * value.
 */
#define bide_yield_from_status(status, nested) bide_await_status(status, &(nested)->frame.awaiter)

/*
 * The same as bide_yield_from for one that was created, with the constant of its body; it is freed
 * at its end.
 * Threads: the coroutine's. Errors: -ENOMEM (`frame` is NULL), and those of the body end the
 * coroutine. Suspends: if it yields, at each value.
 */
#define bide_yield_from_owned(frame, body) bide_try(bide_owned(frame, body))

/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none */
/*
 * for (each value): as bide_for of generator.h, for a root. `break` ends it, and all that it yields
 * from; by return or goto it is left where it stands.
 * Threads: one at a time. Suspends: never. Progress: that of the bodies.
 */
#define bide_for_recursive(type, name, generator)                                    \
    for (bide_recursive_generator *name##_loop_ = (generator); name##_loop_ != NULL; \
         bide_recursive_generator_destroy(name##_loop_), name##_loop_ = NULL)        \
        for (type name;                                                              \
             (name = BIDE_ANY_POINTER_(bide_recursive_generator_next(name##_loop_))) != NULL;)
/* NOLINTEND(bugprone-macro-parentheses) */

/*
 * Why it is correct:
 *
 *     root --leaf--> innermost --continuation--> its parent --> ... --> root
 *     root of each: the root
 *
 * The outermost, the root, knows the innermost, the leaf, which is resumed directly. To yield from
 * another is to await it: the nested one is the leaf until it ends, and is then left by symmetric
 * transfer. So the stack does not grow with the depth, neither by running nor by destroying.
 *
 * Source: the recursive generator of cppcoro.
 */

BIDE_EXTERN_C_END

#endif
