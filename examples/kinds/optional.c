/*
 * A kind of coroutine that stops at the first empty value: ../optional/optional.c in async and await. Its
 * await_transform lets present values pass, and ends the function at the first empty one. Resources are
 * still released: deferred statements run.
 */
#include <bide/async.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The kind ---- */

/* The promise: a number, or none. */
typedef struct optional {
    bide_frame frame;
    bool has_value;
    long value;
} optional;
typedef long optional_result;

/* An awaitable that may be empty. */
typedef struct maybe {
    bide_awaiter awaiter;
    bool has_value;
    long value;
} maybe;
BIDE_AWAIT_VALUE(maybe, long, value);

static bool maybe_ready(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, maybe, awaiter)->has_value;
}

static int maybe_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static const bide_awaiter_ops maybe_ops = {
    .ready = maybe_ready, .resume = maybe_resume, .name = "maybe"};

/* An empty value destroys the waiting frame where it is suspended, and resumes its awaiter, if any. */
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
    if (awaiter->ops == &maybe_ops && !maybe_ready(awaiter))
        awaiter->ops = &empty_ops;
    return awaiter;
}

static void optional_return_value(bide_frame *frame, void *value)
{
    optional *promise = bide_promise(optional, frame);
    promise->has_value = true;
    promise->value = *(optional_result *)value;
}

static bide_frame *optional_initial_suspend(bide_frame *frame)
{
    return frame; /* it runs at once */
}

static const bide_coroutine_type optional_type = {
    .name = "optional",
    .initial_suspend = optional_initial_suspend,
    .return_value = optional_return_value,
    .await_transform = optional_await_transform,
};

/* ---- Its use ---- */

/* Parses a decimal number; empty if the word is none. */
static bide_awaiter *parse(maybe *self, const char *word)
{
    char *end;
    self->awaiter.ops = &maybe_ops;
    self->value = strtol(word, &end, 10);
    self->has_value = end != word && *end == '\0';
    return &self->awaiter;
}

async_kind(optional) long sum(const char *const *words)
{
    long total = 0;
    printf("opened, ");
    defer printf("closed: ");
    for (; *words != NULL; words++)
        total += await parse(*words);
    return total;
}

static void print_sum(const char *const *words)
{
    async_frame(sum) frame;
    optional *result = bide_start_async(async_sum(&frame, words), &bide_default_context);
    if (result->has_value)
        printf("%ld\n", result->value);
    else
        printf("nothing\n");
}

int main(void)
{
    print_sum((const char *const[]){"1", "20", "300", NULL});
    print_sum((const char *const[]){"1", "two", "300", NULL});
    print_sum((const char *const[]){NULL});
}
