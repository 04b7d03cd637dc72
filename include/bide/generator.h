/*
 * A generator: a coroutine that hands values to a loop on the same thread, one for each request. It
 * does not await. Floor: coroutine.
 *
 *     struct count {
 *         bide_generator generator;       // header first
 *         int i, n;                       // parameters, and state that outlives a yield
 *     };
 *     bide_generator_coroutine(count_body)
 *     {
 *         bide_begin(count_body, struct count *self);
 *         for (self->i = 0; self->i < self->n; self->i++)
 *             bide_yield(&self->i);
 *         bide_end();
 *     }
 *     static inline bide_generator *count(struct count *self, int n)
 *     {
 *         self->n = n;
 *         return bide_generator_init(&self->generator, &count_body);
 *     }
 *
 *     bide_for(int *, number, count(&frame, 10))
 *         printf("%d\n", *number);
 *
 * One thread at a time uses a generator; it may pass to another thread between two values. Nothing
 * here suspends the caller, allocates, or waits. If the compiler sees both the loop and the body,
 * as here, it inlines one into the other. Otherwise a value costs a call through a pointer and a
 * switch.
 *
 * Source: the generator of Lewis Baker's articles on coroutines, whose await_transform forbids
 * awaits.
 */
#ifndef BIDE_GENERATOR_H
#define BIDE_GENERATOR_H

#include "bide/coroutine.h"
#include "bide/handle.h"

BIDE_EXTERN_C_BEGIN

/* The first member of a generator's frame. */
typedef struct bide_generator {
    bide_frame frame;
    void *value; /* the newest; NULL: it has ended */
} bide_generator;

BIDE_INLINE bide_frame *bide_generator_yield_(bide_frame *frame, void *value)
{
    bide_promise(bide_generator, frame)->value = value;
    return NULL;
}

/* Reports to the consumer that there is no value. Errors are for bide_generator_error. */
BIDE_INLINE bide_frame *bide_generator_final_(bide_frame *frame, const bide_context *context)
{
    (void)context;
    bide_promise(bide_generator, frame)->value = NULL;
    return NULL;
}

static const bide_coroutine_type bide_generator_type = {"generator",
                                                        NULL,
                                                        NULL,
                                                        bide_generator_yield_,
                                                        NULL,
                                                        NULL,
                                                        NULL,
                                                        bide_generator_final_,
                                                        bide_await_forbidden,
                                                        NULL,
                                                        NULL,
                                                        NULL,
                                                        NULL,
                                                        NULL};

/*
 * Opens the definition of a generator's body; see bide_coroutine_of.
 * Threads: as bide_coroutine_of.
 */
#define bide_generator_coroutine(name) bide_yielding_coroutine_of(bide_generator_type, name)

/*
 * Makes `generator` a generator at its start, to be run by `body` (the constant of a
 * bide_generator_coroutine). Writes the header only; returns the generator. The frame is the
 * caller's and must stay where it is until the generator has ended. Cannot fail.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bide_generator *bide_generator_init(bide_generator *generator, const bide_point *body)
{
    bide_frame_init_in(&generator->frame, body, &bide_default_context);
    generator->value = NULL;
    return generator;
}

#define bide_generator_init(generator, body) \
    bide_generator_init(generator, BIDE_BODY_FOR_(body, generator))

/*
 * Runs the generator up to its next yield. Returns what it has yielded, which is good until it is
 * run again; or NULL: it has ended, now or before.
 * Threads: one at a time. Suspends: never. Progress: that of the body.
 */
BIDE_INLINE void *bide_generator_next(bide_generator *generator)
{
    if (BIDE_UNLIKELY(bide_done(&generator->frame)))
        return NULL;
    bide_frame_step(&generator->frame, 0);
    return generator->value;
}

/*
 * With what it ended: 0 or a negative errno. Only after its end.
 * Threads: one at a time. Errors: those of the body; -ECANCELED (bide_generator_destroy stopped it).
 * Progress: wait-free.
 */
BIDE_INLINE int bide_generator_error(const bide_generator *generator)
{
    return generator->frame.error;
}

/*
 * Stops it where it stands: what follows its `finally` runs. Does nothing if it has ended.
 * Threads: one at a time. Suspends: never. Progress: that of `finally`.
 */
BIDE_INLINE void bide_generator_destroy(bide_generator *generator)
{
    if (!bide_done(&generator->frame))
        bide_destroy(&generator->frame);
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none */
/*
 * for (each value of the generator): `name` is a `type` that points at it. The body of the loop
 * follows. It may end the loop by `break`, which ends the generator too, so that its `finally`
 * runs. By `return` or `goto` the loop is left with the generator where it stands:
 * bide_generator_destroy it, or go on with it by another bide_for. `generator` is evaluated once. Not
 * in a coroutine that awaits in the loop: there, call bide_generator_next. Expands to: two nested
 * for, of which the outer runs once.
 * Threads: one at a time. Suspends: never. Progress: that of the body.
 */
#define bide_for(type, name, generator)                                             \
    for (bide_generator_loop_ name##_loop_ = bide_generator_loop_begin_(generator); \
         !name##_loop_.ended; bide_generator_loop_end_(&name##_loop_))              \
        for (type name;                                                             \
             (name = BIDE_ANY_POINTER_(bide_generator_loop_next_(&name##_loop_))) != NULL;)
/* NOLINTEND(bugprone-macro-parentheses) */

/*
 * A frame's step function is the same at all of its points, so it is read once. Where the compiler
 * sees the start, what is read there is a constant.
 */
typedef struct bide_generator_loop_ {
    bide_generator *generator;
    bide_step *step;
    bool ended;
} bide_generator_loop_;

BIDE_INLINE bide_generator_loop_ bide_generator_loop_begin_(bide_generator *generator)
{
    bool ended = bide_done(&generator->frame);
    bide_generator_loop_ loop = {
        generator, ended ? NULL : bide_frame_point(&generator->frame)->code->step, ended};
    return loop;
}

BIDE_INLINE void *bide_generator_loop_next_(const bide_generator_loop_ *loop)
{
    loop->step(&loop->generator->frame, 0);
    return loop->generator->value;
}

BIDE_INLINE void bide_generator_loop_end_(bide_generator_loop_ *loop)
{
    bide_generator_destroy(loop->generator);
    loop->ended = true;
}

BIDE_EXTERN_C_END

#endif
