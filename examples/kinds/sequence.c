/*
 * A kind of coroutine whose functions yield numbers and cannot await: ../sequence in async and await. An
 * await in one does not compile. Numbers are copied, so a consumer may peek at the next number without
 * consuming it.
 */
#include <bide/async.h>
#include <stdio.h>

/* ---- The kind ---- */

typedef struct sequence {
    bide_frame frame;
    bool has_number; /* `number` is the next */
    unsigned long number;
} sequence;
typedef unsigned long sequence_value;

static bide_frame *sequence_yield_value(bide_frame *frame, void *value)
{
    sequence *promise = bide_promise(sequence, frame);
    promise->has_number = true;
    promise->number = *(sequence_value *)value;
    return NULL;
}

/* (the body has ended: its consumer continues) */
static bide_frame *sequence_final_suspend(bide_frame *frame, const bide_context *context)
{
    (void)frame, (void)context;
    return NULL;
}

static const bide_coroutine_type sequence_type = {
    .name = "sequence",
    .yield_value = sequence_yield_value,
    .final_suspend = sequence_final_suspend,
    .await_transform = bide_await_forbidden,
};

static sequence *sequence_start(bide_awaiter *function)
{
    return bide_promise(sequence, bide_start_async(function, &bide_default_context));
}

/* Returns the next number without consuming it, or NULL at the end. */
static const unsigned long *sequence_peek(sequence *promise)
{
    if (!promise->has_number && !bide_done(&promise->frame))
        bide_resume(&promise->frame);
    return promise->has_number ? &promise->number : NULL;
}

static void sequence_take(sequence *promise)
{
    promise->has_number = false;
}

/* ---- Its use ---- */

async_kind(sequence) void multiples(unsigned long of, unsigned long below)
{
    for (unsigned long i = 1; i * of < below; i++)
        yield i * of;
}

/* The union of two sequences, in order, without duplicates. */
async_kind(sequence) void merge(sequence *left, sequence *right)
{
    for (;;) {
        const unsigned long *a = sequence_peek(left), *b = sequence_peek(right);
        if (a == NULL && b == NULL)
            break;
        unsigned long smallest = a != NULL ? *a : *b;
        if (b != NULL && *b < smallest)
            smallest = *b;
        if (a != NULL && *a == smallest)
            sequence_take(left);
        if (b != NULL && *b == smallest)
            sequence_take(right);
        yield smallest;
    }
}

int main(void)
{
    async_frame(multiples) threes, fives;
    async_frame(merge) merged;
    sequence *numbers = sequence_start(
        async_merge(&merged, sequence_start(async_multiples(&threes, 3, 32)),
                    sequence_start(async_multiples(&fives, 5, 32))));
    for (const unsigned long *n; (n = sequence_peek(numbers)) != NULL; sequence_take(numbers))
        printf("%lu\n", *n);
}
