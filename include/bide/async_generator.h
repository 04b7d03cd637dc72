/*
 * An asynchronous generator: a coroutine that hands values to another coroutine, one for each
 * request, and may await between two of them. Floor: coroutine.
 *
 *     struct lines {
 *         bide_async_generator generator;     // header first
 *         ...
 *     };
 *     bide_async_generator_coroutine(lines_body)
 *     {
 *         bide_begin(lines_body, struct lines *self);
 *         for (;;) {
 *             bide_try(read_line(&self->read, self->file));
 *             bide_yield(self->read.line);
 *         }
 *         bide_end();
 *     }
 *
 * and in the consumer's body, with a bide_async_generator_next_operation `next` in its frame:
 *
 *     bide_for_await(&self->next, lines(&self->lines, file))
 *         puts(self->next.value);
 *
 * A generator has one consumer at a time, the coroutine that requests a value; the consumer may
 * change between two values. The generator runs in the context of its consumer, in turn with it.
 * Nothing here allocates.
 *
 * A request for a value cannot be a case of a select, which refuses it: if another case won, the
 * generator would be stopped in the middle of its body. Spawn a coroutine that sends the values to a
 * channel, and receive from that.
 */
#ifndef BIDE_ASYNC_GENERATOR_H
#define BIDE_ASYNC_GENERATOR_H

#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/extend/wrapper.h"

BIDE_EXTERN_C_BEGIN

/* The first member of an asynchronous generator's frame. Its continuation is the consumer. */
typedef struct bide_async_generator {
    bide_frame frame;
    void *value; /* the newest */
} bide_async_generator;

/* Asking for one value. The caller's; `value` and `generator` may be read when it has ended. */
typedef struct bide_async_generator_next_operation {
    bide_awaiter awaiter;
    bide_async_generator *generator;
    void *value; /* good until the generator is asked again; NULL: there is none */
} bide_async_generator_next_operation;

BIDE_INLINE bide_frame *bide_async_generator_yield_(bide_frame *frame, void *value)
{
    bide_promise(bide_async_generator, frame)->value = value;
    return frame->awaiter.frame;
}

/* Its end hands over to its continuation, as a task's does. */
static const bide_coroutine_type bide_async_generator_type = {"async_generator",
                                                              NULL,
                                                              NULL,
                                                              bide_async_generator_yield_,
                                                              NULL,
                                                              NULL,
                                                              NULL,
                                                              NULL,
                                                              NULL,
                                                              NULL,
                                                              NULL,
                                                              NULL,
                                                              NULL,
                                                              NULL};

/*
 * Opens the definition of an asynchronous generator's body; see bide_coroutine_of.
 * Threads: as bide_coroutine_of.
 */
#define bide_async_generator_coroutine(name) bide_coroutine_of(bide_async_generator_type, name)

/*
 * Makes `generator` an asynchronous generator at its start, to be run by `body` (the constant of a
 * bide_async_generator_coroutine). Writes the header only; returns the generator. The frame is the
 * caller's and must stay where it is until the generator has ended. Cannot fail.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bide_async_generator *bide_async_generator_init(bide_async_generator *generator,
                                                            const bide_point *body)
{
    bide_frame_init_in(&generator->frame, body, &bide_default_context);
    generator->value = NULL;
    return generator;
}

#define bide_async_generator_init(generator, body) \
    bide_async_generator_init(generator, BIDE_BODY_FOR_(body, generator))

/*
 * With what it ended: 0 or a negative errno. Only after its end.
 * Threads: one at a time. Errors: those of the body; -ECANCELED (it was stopped). Progress:
 * wait-free.
 */
BIDE_INLINE int bide_async_generator_error(const bide_async_generator *generator)
{
    return generator->frame.error;
}

/*
 * Stops it where it stands, between two values: what follows its `finally` runs. Does nothing if it
 * has ended.
 * Threads: the consumer's, or another's while there is no consumer. Suspends: never. Progress: that
 * of `finally`.
 */
BIDE_INLINE void bide_async_generator_destroy(bide_async_generator *generator)
{
    if (!bide_done(&generator->frame))
        bide_destroy(&generator->frame);
}

BIDE_INLINE bool bide_async_generator_ready_(bide_awaiter *awaiter)
{
    return bide_done(&((bide_async_generator_next_operation *)(void *)awaiter)->generator->frame);
}

BIDE_INLINE bide_frame *bide_async_generator_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_frame *generator =
        &((bide_async_generator_next_operation *)(void *)awaiter)->generator->frame;
    if (BIDE_UNLIKELY(bide_frame_point(generator)->state == BIDE_AT_AWAIT))
        return bide_frame_started_(&generator->awaiter, frame); /* it has a consumer already */
    generator->awaiter.frame = frame;
    generator->context = frame->context;
    return generator;
}

BIDE_INLINE int bide_async_generator_resume_(bide_awaiter *awaiter)
{
    bide_async_generator_next_operation *next =
        (bide_async_generator_next_operation *)(void *)awaiter;
    bool ended = bide_done(&next->generator->frame);
    next->value = ended ? NULL : next->generator->value;
    return ended ? next->generator->frame.error : 0;
}

BIDE_INLINE bide_frame *bide_async_generator_coroutine_(bide_awaiter *awaiter)
{
    return &((bide_async_generator_next_operation *)(void *)awaiter)->generator->frame;
}

/* The consumer is destroyed: so is the generator, also if it has yielded. */
BIDE_INLINE void bide_async_generator_release_(bide_awaiter *awaiter)
{
    bide_async_generator_destroy(
        ((bide_async_generator_next_operation *)(void *)awaiter)->generator);
}

/*
 * Runs the generator, in the context of the awaiting coroutine, up to its next yield; next->value
 * is then what it has yielded, and the status 0. At its end, and ever after, next->value is NULL
 * and the status is the generator's error. `next` and the generator are the caller's until the wait
 * has ended. A request to stop cancels the operation that the generator awaits. If the awaiting
 * coroutine is destroyed while it waits, so is the generator.
 * Threads: the consumer's. Errors: those of the body. Suspends: if what the generator awaits does.
 * Cancel-safe: no, what the body has done stays. Progress: that of the body.
 */
BIDE_KEY_SCOPED(value);
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_async_generator_next(bide_async_generator_next_operation *next,
                                                    bide_async_generator *generator)
{
    __extension__ static const bide_wrapper_ops ops = {
        .ops = BIDE_WRAPPER_OPS(bide_async_generator_ready_, bide_async_generator_suspend_,
                                bide_async_generator_resume_, "bide_async_generator_next"),
        .coroutine = bide_async_generator_coroutine_,
        .release = bide_async_generator_release_,
        .inner = NULL,
        .is_owner = false,
        .inner_at = 0,
        .is_ready_as_inner = false,
    };
    next->awaiter.ops = &ops.ops;
    next->generator = generator;
    return &next->awaiter;
}

/*
 * for (each value of the generator), in a body: the value is (next)->value, in the frame, because a
 * local would be lost at each await. The body of the loop follows, and may await. It may end the
 * loop by `break`, which ends the generator too. By return, bide_return or goto the generator stays
 * where it stands, to be ended in `finally`. `next`, a pointer to a
 * bide_async_generator_next_operation of the frame, is evaluated often, `generator` once. After the
 * loop bide_async_generator_error says whether the generator failed. Expands to: two nested for and
 * an await.
 * Threads: the coroutine's. Errors: none, see bide_async_generator_error. Suspends: if the
 * generator does. Cancel-safe: as bide_async_generator_next. Progress: that of the generator.
 */
#define bide_for_await(next, generator_expression) \
    BIDE_FOR_AWAIT_(next, generator_expression, BIDE_NAME_(bide_for_await_body_, __LINE__))

/* NOLINTBEGIN(bugprone-macro-parentheses): a label takes none */
#define BIDE_FOR_AWAIT_(next, generator_expression, body)                           \
    for ((next)->generator = (generator_expression); (next)->generator != NULL;     \
         bide_async_generator_destroy((next)->generator), (next)->generator = NULL) \
        for (;;)                                                                    \
            if (1) {                                                                \
                bide_await(bide_async_generator_next((next), (next)->generator));   \
                if ((next)->value == NULL)                                          \
                    break;                                                          \
                goto body;                                                          \
            } else                                                                  \
            body:
/* NOLINTEND(bugprone-macro-parentheses) */

/*
 * Why it is correct: each of the two hands over to the other by symmetric transfer, so they never run
 * at once, and the stack does not grow.
 *
 * Source: the asynchronous generator of cppcoro.
 */

BIDE_EXTERN_C_END

#endif
