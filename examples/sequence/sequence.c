/*
 * A custom coroutine type whose bodies yield numbers and cannot await: an await in one does not
 * compile. Numbers are copied, so a body may yield a number that is not in its frame, and a
 * consumer may peek at the next number without consuming it.
 */
#include <bide/bide.h>
#include <stdio.h>

/* ---- The type ---- */

/* The first member of a sequence's frame. */
struct sequence {
    bide_frame frame;
    bool has_number; /* `number` is the next */
    unsigned long number;
};

static bide_frame *sequence_yield_value(bide_frame *frame, void *value)
{
    struct sequence *sequence = bide_promise(struct sequence, frame);
    sequence->has_number = true;
    sequence->number = *(unsigned long *)value;
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

#define sequence_coroutine(name) bide_yielding_coroutine_of(sequence_type, name)

static struct sequence *sequence_init(struct sequence *sequence, const bide_point *body)
{
    sequence->has_number = false;
    bide_start(&sequence->frame, body, &bide_default_context);
    return sequence;
}

/* Returns the next number without consuming it, or NULL at the end. */
static const unsigned long *sequence_peek(struct sequence *sequence)
{
    if (!sequence->has_number && !bide_done(&sequence->frame))
        bide_resume(&sequence->frame);
    return sequence->has_number ? &sequence->number : NULL;
}

static void sequence_take(struct sequence *sequence)
{
    sequence->has_number = false;
}

/* ---- Its use ---- */

struct multiples {
    struct sequence sequence;
    unsigned long of, below;
    unsigned long i;
};

sequence_coroutine(multiples_body)
{
    bide_begin(multiples_body, struct multiples * self);
    for (self->i = 1; self->i * self->of < self->below; self->i++) {
        unsigned long multiple = self->i * self->of;
        bide_yield(&multiple);
    }
    bide_end();
}

static struct sequence *multiples(struct multiples *self, unsigned long of, unsigned long below)
{
    self->of = of;
    self->below = below;
    return sequence_init(&self->sequence, &multiples_body);
}

/* The union of two sequences, in order, without duplicates. */
struct merge {
    struct sequence sequence;
    struct sequence *a, *b;
};

sequence_coroutine(merge_body)
{
    bide_begin(merge_body, struct merge * self);
    for (;;) {
        const unsigned long *a = sequence_peek(self->a), *b = sequence_peek(self->b);
        if (a == NULL && b == NULL)
            break;
        unsigned long smallest = a != NULL ? *a : *b;
        if (b != NULL && *b < smallest)
            smallest = *b;
        if (a != NULL && *a == smallest)
            sequence_take(self->a);
        if (b != NULL && *b == smallest)
            sequence_take(self->b);
        bide_yield(&smallest);
    }
    bide_end();
}

static struct sequence *merge(struct merge *self, struct sequence *a, struct sequence *b)
{
    self->a = a;
    self->b = b;
    return sequence_init(&self->sequence, &merge_body);
}

int main(void)
{
    struct multiples threes, fives;
    struct merge merged;
    struct sequence *numbers = merge(&merged, multiples(&threes, 3, 32), multiples(&fives, 5, 32));
    for (const unsigned long *n; (n = sequence_peek(numbers)) != NULL; sequence_take(numbers))
        printf("%lu\n", *n);
}
