/*
 * Async blocks: what they capture and when, how they end, and what may stand in them and around them. Each run is
 * made twice: where nothing suspends, and where each turn does. Translated by bidec, as a debug build and as a
 * release.
 */
#include "journal.h"
#include "testing.h"

#include "bide/async.h"
#include "bide/auto_event.h"
#include "bide/channel.h"
#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/handle.h"

#include <errno.h>

static bide_auto_event gate;
static bool waits;

/* Waits in every other run. */
async void turn(void)
{
    if (waits)
        await bide_auto_event_wait(&gate);
}

async int later(int n)
{
    await turn();
    return n;
}

typedef bide_channel(int) numbers;

struct aligned {
    _Alignas(16) char byte;
    unsigned bits : 5;
};

typedef struct pair {
    int one;
    const int other;
    int more[3];
} pair;

/* ---- Captures ---- */

/* Of each kind; the copies are the block's own, and those that are the same name as what they copy. */
async int captures(int n)
{
    pair two = {n, 2, {3, 4, 5}};
    struct aligned wide = {'a', 7};
    unsigned char small = 250;
    const char *text = "text";
    int (*function)(const char *, const char *) = strcmp;
    static int shared = 100;
    int sum = await async_block({
        async_capture pair copy = two, *same = &two;
        async_capture struct aligned wide = wide;
        async_capture unsigned char small = small;
        async_capture const char *const text = text;
        async_capture int (*compare)(const char *, const char *) = function;
        async_capture const long long large = (long long)n << 33;
        async_capture int *static_one = &shared;
        await turn();
        small += 10;
        copy.one++;
        same->one += 50;
        assert_int_equal(copy.other + copy.more[2], 7);
        assert_int_equal((uintptr_t)&wide % 16, 0);
        wide.bits = 30;
        await turn();
        assert_int_equal(wide.byte + wide.bits, 'a' + 30);
        assert_int_equal(compare(text, "text"), 0);
        assert_int_equal(large >> 33, 3);
        *static_one += 1;
        return small + copy.one;
    });
    assert_int_equal(small, 250);
    assert_int_equal(two.one, n + 50);
    assert_int_equal(wide.bits, 7);
    assert_int_equal(shared % 100, (shared / 100 == 1) ? 1 + waits : -1);
    return sum;
}

/* The values are taken from left to right before the block begins, and once. */
async int order(int n)
{
    int i = n;
    return await async_block({
        async_capture int a = i++, b = await later(i++) * 10, c = i++ * 100;
        async_capture int d = i * 1000;
        await turn();
        return a + b + c + d;
    }) + i * 10000;
}

/* Names of the block's own that are names of the function too, members, labels, tags. */
async int names(int n)
{
    int one = n, label = 5, i = 6;
    struct other {
        int one;
    } other = {7};
    int block = await async_block({
        struct own {
            int one, label;
        };
        struct own own = {.one = 1, .label = 2};
        int i = 3;
        enum { label_count = 4 };
        await turn();
        if (own.one == 1)
            goto label;
        i = 100;
    label:
        for (int one = 0; one < 2; one++)
            i += await later(one + label_count);
        pair p = {.one = 1, .other = 0};
        return own.one + own.label + i + p.one;
    });
    return block * 1000 + one + label + i + other.one;
}

/* ---- Ends ---- */

async int ends(int n)
{
    return await async_block({
        async_capture int n = n;
        defer note("block");
        if (n == 0)
            return 5;
        await turn();
        try await later(n == 1 ? -EDOM : 0);
        if (n == 2) {
            defer note_number(n);
            return await later(6);
        }
        note("end");
    });
}

async int passes_on(int n)
{
    defer note("function");
    int value = try await async_block({
        async_capture int n = n;
        defer note("block");
        return try await later(n);
    });
    return value + 1;
}

/* ---- Blocks in blocks, loops, statement expressions ---- */

async int nested(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += await async_block({
            async_capture int outer = i;
            int product = 1;
            for (int k = 0; k <= outer; k++)
                product *= 1 + await async_block({
                                   async_capture int inner = k, *outer = &outer;
                                   await turn();
                                   return ({ int x = await later(inner); x + *outer; });
                               });
            return product;
        });
        if (i == 3)
            continue;
        sum += ({ int y = await async_block({ async_capture int m = i; return m; }); y * 10; });
    }
    return sum;
}

async int choices(int n)
{
    return (n > 1 ? await async_block({ return 1; }) : await async_block({ return 2; })) +
           (n > 0 && await async_block({ async_capture int n = n; return await later(n) == 2; })) * 10;
}

/* ---- Beside each other ---- */

async int together(int n)
{
    int sum = 0;
    int status = await all(async_block({
                               async_capture int *to = &sum, n = n;
                               for (int i = 0; i < n; i++)
                                   *to += await later(1);
                           }),
                           (void)async_block({
                               async_capture int *to = &sum;
                               *to += await later(100);
                               return -EDOM;
                           }),
                           async_block({ return 0; }));
    assert_int_equal(status, n > 3 ? -EDOM : -EDOM);
    return sum;
}

static int live;

/* In a scope, whose coroutines outlive the turns of the loop; the order is that of their turns. */
async int spawned(int n)
{
    int sum = 0;
    pair two = {1, 2, {3, 4, 5}};
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    for (int i = 0; i < n; i++) {
        int of_this = i * 10;
        if (spawn(&scope, async_block({
                async_capture int number = of_this, *to = &sum;
                async_capture pair two = two;
                live++;
                defer live--;
                *to += await later(number);
                try await later(number == 40 ? -EDOM : 0);
                await turn();
                *to += two.one;
            })) < 0)
            return -ENOMEM;
        two.one++;
    }
    int status = await bide_scope_join(&scope);
    assert_int_equal(live, 0);
    return status < 0 ? status : sum;
}

/* Destroyed while blocks wait: what they deferred runs, before what the function has deferred. */
async int destroyed(bide_event *never)
{
    bide_scope scope;
    defer note("function");
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    spawn(&scope, async_block({
              async_capture bide_event *never = never;
              defer note("spawned");
              await bide_event_wait(never);
              note("never");
          }));
    return await async_block({
        async_capture bide_event *never = never;
        defer note("awaited");
        await bide_event_wait(never);
        return 0;
    });
}

/* ---- With other words ---- */

async_generator(long) int multiples(int n)
{
    for (int i = 0; i < 3; i++)
        yield await async_block({
            async_capture int i = i, n = n;
            await turn();
            return i * n;
        });
    return await async_block({ return -EDOM; });
}

async int words(int n)
{
    bide_channel_slot(int) memory[4];
    numbers channel;
    bide_event stop;
    bide_channel_init(&channel, memory, 4);
    bide_event_init(&stop, false);
    for (int i = 1; i < 4; i++)
        bide_channel_try_send(&channel, &i);
    return await async_block({
        async_capture numbers *channel = &channel;
        async_capture bide_event *stop = &stop;
        async_capture int n = n;
        int number, sum = 0, status = 0;
        async_for (long m, multiples(n), status) {
            if (m == n * 2)
                continue;
            sum += (int)m;
        }
        assert_int_equal(status, -EDOM);
        for (;;) {
            defer sum += 1000;
            try async_select () {
                when (bide_channel_recv(channel, &number)) {
                    if (number == 3)
                        bide_event_set(stop);
                    else
                        await turn();
                    sum += number * 10;
                }
                when (bide_event_wait(stop))
                    return sum;
            }
        }
    });
}

async int within(int n)
{
    uint64_t soon = bide_platform.now() + BIDE_SECONDS(1000);
    int sum = await bide_with_deadline(soon, async_block({
                                           async_capture int n = n;
                                           return await later(n) * 2;
                                       }));
    int which = await any(async_block({ return await later(0); }), async_block({ return await later(1) - 1; }));
    return sum * 10 + (which == 0);
}

/* ---- Around them: created functions, functions without a result, a plain reading of their own ---- */

async_created int fold(int n)
{
    if (n == 0)
        return 0;
    return await async_block({
        async_capture int n = n;
        int below = await fold(n - 1);
        return below * 2 + 1;
    });
}

static async void without_result(int *to)
{
    await async_block({ async_capture int *to = to; *to = await later(8); });
}

async int around(int n)
{
    int value = 0;
    await without_result(&value);
    return await fold(n) * 10 + value;
}

/* The words are names elsewhere. */
async int names_elsewhere(int async_block)
{
    int async_capture = async_block;
    return async_capture + async_block;
}

/* ---- Tests ---- */

#define RESULT(name, ...) (run(async_##name(&frames.name, __VA_ARGS__), &frames.name.task.frame), frames.name.result)

static union {
    struct async_captures captures;
    struct async_order order;
    struct async_names names;
    struct async_ends ends;
    struct async_passes_on passes_on;
    struct async_nested nested;
    struct async_choices choices;
    struct async_together together;
    struct async_spawned spawned;
    struct async_destroyed destroyed;
    struct async_words words;
    struct async_within within;
    struct async_around around;
    struct async_names_elsewhere names_elsewhere;
} frames;

static void start(bide_awaiter *awaiter, bide_frame *frame)
{
    journal[0] = 0;
    bide_await_later(awaiter);
    bide_frame_init_in(frame, bide_frame_point(frame), &bide_default_context);
    bide_auto_event_init(&gate, false);
    bide_resume(frame);
}

static void run(bide_awaiter *awaiter, bide_frame *frame)
{
    start(awaiter, frame);
    while (!bide_done(frame))
        bide_auto_event_set(&gate);
}

#define EACH_WAY for (int way = 0; way < 2 && (waits = way != 0, true); way++)

static void test_captures(void **state)
{
    (void)state;
    EACH_WAY
    {
        assert_int_equal(RESULT(captures, 3), 4 + 4);
        assert_int_equal(RESULT(order, 1), 1 + 20 + 300 + 4000 + 40000);
        assert_int_equal(RESULT(names, 4), (1 + 2 + 3 + 4 + 5 + 1) * 1000 + 4 + 5 + 6 + 7);
    }
}

static void test_ends(void **state)
{
    static const int results[] = {5, -EDOM, 6, 0};
    static const char *const journals[] = {"block ", "block ", "2 block ", "end block "};
    (void)state;
    EACH_WAY
    {
        for (int n = 0; n < 4; n++) {
            assert_int_equal(RESULT(ends, n), results[n]);
            assert_string_equal(journal, journals[n]);
        }
        assert_int_equal(RESULT(passes_on, 3), 4);
        assert_int_equal(RESULT(passes_on, -ERANGE), -ERANGE);
        assert_string_equal(journal, "block function ");
    }
}

static void test_nested(void **state)
{
    int sum = 0;
    (void)state;
    for (int i = 0; i < 5; i++) {
        int product = 1;
        for (int k = 0; k <= i; k++)
            product *= 1 + k + i;
        sum += product + (i == 3 ? 0 : i * 10);
    }
    EACH_WAY
    {
        assert_int_equal(RESULT(nested, 5), sum);
        assert_int_equal(RESULT(choices, 0), 2);
        assert_int_equal(RESULT(choices, 1), 2);
        assert_int_equal(RESULT(choices, 2), 11);
    }
}

static void test_beside(void **state)
{
    (void)state;
    EACH_WAY
    {
        assert_int_equal(RESULT(together, 3), 103);
        assert_int_equal(RESULT(spawned, 4), 0 + 10 + 20 + 30 + 1 + 2 + 3 + 4);
        assert_int_equal(RESULT(spawned, 5), -EDOM);
        assert_int_equal(live, 0);
        assert_int_equal(RESULT(within, 3), 61);
    }
}

static void test_destroyed(void **state)
{
    bide_event never;
    (void)state;
    bide_event_init(&never, false);
    start(async_destroyed(&frames.destroyed, &never), &frames.destroyed.task.frame);
    assert_string_equal(journal, "");
    bide_destroy(&frames.destroyed.task.frame);
    assert_string_equal(journal, "awaited spawned function ");
}

static void test_words(void **state)
{
    (void)state;
    EACH_WAY
    {
        assert_int_equal(RESULT(words, 5), 5 + 60 + 3000);
        assert_int_equal(RESULT(around, 4), 158);
        assert_int_equal(RESULT(names_elsewhere, 4), 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_captures), cmocka_unit_test(test_ends),      cmocka_unit_test(test_nested),
        cmocka_unit_test(test_beside),   cmocka_unit_test(test_destroyed), cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
