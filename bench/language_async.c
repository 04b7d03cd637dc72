/*
 * The async functions of the benchmark `language`. Translated by bidec.
 */
#include "language.h"

#include "bide/async.h"
#include "bide/handle.h"
#include "bide/sync_wait.h"

static long result;

async static long child(long argument)
{
    return argument & 0xff;
}

async static long children(long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += await child(i);
    return sum;
}

async static long inner(long argument)
{
    return argument & 0xff;
}

async static long middle(long argument)
{
    return await inner(argument) + 1;
}

async static long outer(long argument)
{
    return await middle(argument) ^ 3;
}

async static long nested(long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += await outer(i);
    return sum;
}

async static long events(long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += await bide_event_wait(&language_set);
    return sum;
}

async static long pings(long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += await bide_auto_event_wait(&language_ping);
    return sum;
}

async static long work(long count)
{
    long a = 0, b = 1, c = 2, d = 3;
    for (long i = 0; i < count; i++) {
        for (int n = 0; n < 4; n++) {
            a += b ^ i;
            b += c ^ n;
            c += d;
            d += a;
        }
        a += await child(i);
    }
    return a + b + c + d;
}

async_generator(long) static void numbers(long count)
{
    for (long i = 0; i < count; i++)
        yield i;
}

async static long generated(long count)
{
    long sum = 0;
    async_for(long number, numbers(count)) sum += number;
    return sum;
}

async_created static long walk(const struct language_tree *tree)
{
    if (tree == NULL)
        return 0;
    return await walk(tree->left) + tree->value + await walk(tree->right);
}

async static long walks(bide_allocator *allocator, const struct language_tree *tree)
{
    (void)allocator;
    return await walk(tree);
}

static uint64_t run_children(void)
{
    struct async_children frame;
    bide_sync_wait(async_children(&frame, language_turns));
    result += frame.result;
    return (uint64_t)language_turns;
}

static uint64_t run_nested(void)
{
    struct async_nested frame;
    bide_sync_wait(async_nested(&frame, language_turns));
    result += frame.result;
    return (uint64_t)language_turns;
}

static uint64_t run_events(void)
{
    struct async_events frame;
    bide_sync_wait(async_events(&frame, language_turns));
    result += frame.result;
    return (uint64_t)language_turns;
}

static uint64_t run_pings(void)
{
    struct async_pings frame;
    bide_await_later(async_pings(&frame, language_turns));
    bide_frame_init_in(&frame.task.frame, bide_frame_point(&frame.task.frame),
                       &bide_default_context);
    for (bide_resume(&frame.task.frame); !bide_done(&frame.task.frame);)
        bide_auto_event_set(&language_ping);
    result += frame.result;
    return (uint64_t)language_turns;
}

static uint64_t run_work(void)
{
    struct async_work frame;
    bide_sync_wait(async_work(&frame, language_turns));
    result += frame.result;
    return (uint64_t)language_turns;
}

static uint64_t run_generated(void)
{
    struct async_generated frame;
    bide_sync_wait(async_generated(&frame, language_turns));
    result += frame.result;
    return (uint64_t)language_turns;
}

static uint64_t run_walks(void)
{
    struct async_walks frame;
    bide_sync_wait(async_walks(&frame, language_allocator, language_tree));
    result += frame.result;
    return language_nodes;
}

const struct language_subject language_translated[LANGUAGE_SUBJECTS] = {
    [LANGUAGE_CHILD] = {"child", run_children, sizeof(struct async_children)},
    [LANGUAGE_NESTED] = {"nested", run_nested, sizeof(struct async_nested)},
    [LANGUAGE_READY] = {"ready", run_events, sizeof(struct async_events)},
    [LANGUAGE_WAITS] = {"waits", run_pings, sizeof(struct async_pings)},
    [LANGUAGE_BETWEEN] = {"between", run_work, sizeof(struct async_work)},
    [LANGUAGE_GENERATOR] = {"generator", run_generated, sizeof(struct async_generated)},
    [LANGUAGE_TREE] = {"tree", run_walks, sizeof(struct async_walk)},
};
