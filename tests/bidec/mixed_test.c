/*
 * Words beside each other: `try` of what is called as a plain function, selects and generators behind a block
 * whose locals are dead, places that are parameters. Translated by bidec, as a debug build and as a release.
 */
#include "testing.h"

#include "bide/async.h"
#include "bide/auto_event.h"
#include "bide/channel.h"
#include "bide/handle.h"

#include <errno.h>
#include <string.h>

static bide_auto_event gate;
static bool waits;

/* Waits in every other run. */
async void turn(void)
{
    if (waits)
        await bide_auto_event_wait(&gate);
}

/* ---- try of children that are called ---- */

typedef struct pair {
    int one, other;
} pair;

async int number(int n)
{
    await turn();
    return n;
}

async pair two(int n)
{
    if (n > 3)
        try await number(-EDOM);
    await turn();
    return (pair){n, n + 1};
}

async void nothing(int n)
{
    if (n > 3)
        try await number(-ERANGE);
}

async int all_of_them(int n)
{
    int sum = try await number(n);
    pair p = try await two(n - 1);
    sum = sum * 10 + p.one * 10 + p.other;
    try await nothing(n - 2);
    for (int i = 0; i < 3; i++) {
        int next = try await number(n - 1 - i);
        sum = sum * 2 + next;
    }
    return sum;
}

static int sum_of(int n)
{
    if (n < 0)
        return n;
    if (n - 1 > 3)
        return -EDOM;
    int sum = n * 10 + (n - 1) * 10 + n;
    for (int i = 0; i < 3; i++) {
        if (n - 1 - i < 0 && n - 1 - i >= -4095)
            return n - 1 - i;
        sum = sum * 2 + n - 1 - i;
    }
    return sum;
}

/* ---- Behind a block whose locals are dead ---- */

typedef bide_channel(int) numbers;

async int select_behind_a_block(numbers *from, int n)
{
    int x = 0, status;
    {
        int many[100];
        many[99] = n;
        x += await number(many[99]);
    }
    async_select(status)
    {
        when(bide_channel_recv(from, &x)) x += status + n;
    }
    return x;
}

async_created recursive_generator(int) int walk(int n)
{
    {
        int many[20];
        many[19] = n;
        yield many[19];
    }
    if (n > 0)
        yield_from walk(n - 1);
    yield n;
    return 0;
}

async int digits(int n)
{
    int sum = 0;
    async_for (int k, walk(n)) {
        int before = sum;
        await turn();
        sum = before * 3 + k;
    }
    return sum;
}

/* ---- A place that is a parameter ---- */

async_generator(int) int one_and_an_error(void)
{
    yield 1;
    return -7;
}

async int error_in_a_parameter(int status)
{
    int sum = 0;
    async_for (int value, one_and_an_error(), status)
        sum += value;
    await turn();
    return status * 10 - sum;
}

/* ---- */

/* (memory of another use, which is not zero) */
#define RESULT(name, ...)                                             \
    (memset(&frames.name, 0xd5, sizeof frames.name),                  \
     run(async_##name(&frames.name, __VA_ARGS__), &frames.name.task.frame), frames.name.result)

static union {
    struct async_all_of_them all_of_them;
    struct async_select_behind_a_block select_behind_a_block;
    struct async_digits digits;
    struct async_error_in_a_parameter error_in_a_parameter;
} frames;

static void run(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_await_later(awaiter);
    bide_frame_init_in(frame, bide_frame_point(frame), &bide_default_context);
    bide_auto_event_init(&gate, false);
    bide_resume(frame);
    while (!bide_done(frame))
        bide_auto_event_set(&gate);
}

static void test_try(void **state)
{
    (void)state;
    for (int w = 0; w < 2; w++) {
        waits = w != 0;
        for (int n = -2; n < 7; n++)
            assert_int_equal(RESULT(all_of_them, n), sum_of(n));
    }
}

static void test_behind_a_block(void **state)
{
    bide_channel_slot(int) memory[8];
    numbers channel;
    (void)state;
    for (int w = 0; w < 2; w++) {
        waits = w != 0;
        bide_channel_init(&channel, memory, 8);
        bide_channel_try_send(&channel, &(int){4});
        assert_int_equal(RESULT(select_behind_a_block, &channel, 30), 34);
        assert_int_equal(RESULT(digits, 2), ((((2 * 3 + 1) * 3 + 0) * 3 + 0) * 3 + 1) * 3 + 2);
    }
}

static void test_places(void **state)
{
    (void)state;
    for (int w = 0; w < 2; w++) {
        waits = w != 0;
        assert_int_equal(RESULT(error_in_a_parameter, 3), -71);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_try),
        cmocka_unit_test(test_behind_a_block),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
