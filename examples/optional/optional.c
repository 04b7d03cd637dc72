/*
 * A custom coroutine type that stops at the first empty value. Its bodies await values that may be
 * empty. await_transform lets present values pass, and ends the coroutine at the first empty one.
 * Resources are still released: `finally` runs.
 */
#include <bide/bide.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The type ---- */

/* The first member of an optional coroutine's frame: a number, or none. */
struct optional {
    bide_frame frame;
    bool has_value;
    long value;
};

/* An awaitable that may be empty. */
struct maybe {
    bide_awaiter awaiter;
    bool has_value;
    long value;
};

static bool maybe_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static int maybe_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static const bide_awaiter_ops maybe_ops = {
    .ready = maybe_ready, .resume = maybe_resume, .name = "maybe"};

/*
 * The suspend function of an empty value: destroys the waiting frame where it is suspended, and
 * resumes its awaiter, if any.
 */
static bide_frame *empty_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_frame *continuation = frame->awaiter.frame;
    (void)awaiter;
    bide_destroy(frame);
    return continuation;
}

static bool empty_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true; /* it is in no list */
}

static const bide_awaiter_ops empty_ops = {
    .suspend = empty_suspend, .withdraw = empty_withdraw, .name = "empty"};

static bide_awaiter *optional_await_transform(bide_frame *frame, bide_awaiter *awaiter)
{
    (void)frame;
    if (awaiter->ops == &maybe_ops && !bide_container_of(awaiter, struct maybe, awaiter)->has_value)
        awaiter->ops = &empty_ops;
    return awaiter;
}

static void optional_return_value(bide_frame *frame, void *value)
{
    struct optional *optional = bide_promise(struct optional, frame);
    optional->has_value = true;
    optional->value = *(long *)value;
}

static void *optional_get_return_object(bide_frame *frame)
{
    struct optional *optional = bide_promise(struct optional, frame);
    optional->has_value = false;
    return optional;
}

static bide_frame *optional_initial_suspend(bide_frame *frame)
{
    return frame; /* it runs at once */
}

static const bide_coroutine_type optional_type = {
    .name = "optional",
    .get_return_object = optional_get_return_object,
    .initial_suspend = optional_initial_suspend,
    .return_value = optional_return_value,
    .await_transform = optional_await_transform,
};

/* ---- Its use ---- */

/* Parses a decimal number; empty if the word is none. */
static bide_awaiter *parse(struct maybe *self, const char *word)
{
    char *end;
    self->awaiter.ops = &maybe_ops;
    self->value = strtol(word, &end, 10);
    self->has_value = end != word && *end == '\0';
    return &self->awaiter;
}

struct sum {
    struct optional optional;
    const char *const *words; /* terminated by NULL */
    struct maybe number;
    long total;
};

bide_coroutine_of(optional_type, sum_body)
{
    bide_begin(sum_body, struct sum * self);
    printf("opened, ");
    for (self->total = 0; *self->words != NULL; self->words++) {
        bide_await(parse(&self->number, *self->words));
        self->total += self->number.value;
    }
    bide_return_value(&self->total);
    bide_finally();
    printf("closed: ");
    bide_end();
}

static void print_sum(const char *const *words)
{
    struct sum frame = {.words = words};
    struct optional *sum = bide_start(&frame.optional.frame, &sum_body, &bide_default_context);
    if (sum->has_value)
        printf("%ld\n", sum->value);
    else
        printf("nothing\n");
}

int main(void)
{
    print_sum((const char *const[]){"1", "20", "300", NULL});
    print_sum((const char *const[]){"1", "two", "300", NULL});
    print_sum((const char *const[]){NULL});
}
