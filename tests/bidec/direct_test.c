/*
 * Awaited functions that are called as plain functions until one of them suspends: chains longer than the depth of
 * calls, which suspend at none, each, or some of their awaits; are destroyed and stopped there; spend their budget; and
 * move to another thread. Translated by bidec, in a debug and in a release build.
 */
#include "testing.h"

#include "bide/async.h"
#include "bide/auto_event.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/thread_pool.h"

static bide_auto_event gate;
static unsigned begun, ended;

/* Waits before its child if the bit 2 * level of `plan` is set, and after it if the next bit is. */
async static long level_0(uint64_t plan, long a)
{
    long b = a * 3;
    begun++;
    defer ended++;
    if (plan & 1 && await bide_auto_event_wait(&gate) < 0)
        return -ECANCELED;
    b ^= a;
    if (plan & 2 && await bide_auto_event_wait(&gate) < 0)
        return -ECANCELED;
    return b & 0xffff;
}

#define LEVEL(level, below)                                                 \
    async static long level_##level(uint64_t plan, long a)                  \
    {                                                                       \
        char text[4] = {(char)(a + level), 0, 0, level};                    \
        long b = a * 5 + level;                                             \
        begun++;                                                            \
        defer ended++;                                                      \
        if (plan >> 2 * level & 1 && await bide_auto_event_wait(&gate) < 0) \
            return -ECANCELED;                                              \
        long inner = await level_##below(plan, b & 0xffff);                 \
        if (inner < 0)                                                      \
            return inner;                                                   \
        b ^= inner + text[0];                                               \
        if (plan >> 2 * level & 2 && await bide_auto_event_wait(&gate) < 0) \
            return -ECANCELED;                                              \
        return (b * 7 + text[3] + a) & 0xffff;                              \
    }

LEVEL(1, 0)
LEVEL(2, 1)
LEVEL(3, 2)
LEVEL(4, 3)
LEVEL(5, 4)
LEVEL(6, 5)
LEVEL(7, 6)
LEVEL(8, 7)
LEVEL(9, 8)
LEVEL(10, 9)
LEVEL(11, 10)
LEVEL(12, 11)
LEVEL(13, 12)
LEVEL(14, 13)
LEVEL(15, 14)
LEVEL(16, 15)
LEVEL(17, 16)
LEVEL(18, 17)
LEVEL(19, 18)

enum { LEVELS = 20 };

static long expected(int level, long a)
{
    if (level == 0)
        return (a * 3 ^ a) & 0xffff;
    long b = a * 5 + level;
    b ^= expected(level - 1, b & 0xffff) + (char)(a + level);
    return (b * 7 + level + a) & 0xffff;
}

static unsigned bits(uint64_t plan)
{
    return (unsigned)__builtin_popcountll(plan);
}

static struct async_level_19 frame;

/* Begins the chain, and opens the gate `turns` times. Returns true if it has not ended. */
static bool run(uint64_t plan, long a, unsigned turns, const bide_context *context)
{
    begun = ended = 0;
    memset(&frame, 0xd5, sizeof frame);
    bide_auto_event_init(&gate, false);
    bide_await_later(async_level_19(&frame, plan, a));
    bide_frame_init_in(&frame.task.frame, bide_frame_point(&frame.task.frame), context);
    bide_resume(&frame.task.frame);
    for (unsigned n = 0; n < turns && !bide_done(&frame.task.frame); n++)
        bide_auto_event_set(&gate);
    return !bide_done(&frame.task.frame);
}

static void expect_whole(uint64_t plan, long a)
{
    unsigned waits = bits(plan);
    if (waits > 0)
        assert_true(run(plan, a, waits - 1, &bide_default_context));
    else
        run(plan, a, 0, &bide_default_context);
    if (waits > 0)
        bide_auto_event_set(&gate);
    assert_true(bide_done(&frame.task.frame));
    assert_int_equal(frame.result, expected(LEVELS - 1, a));
    assert_int_equal(begun, LEVELS);
    assert_int_equal(ended, LEVELS);
}

static const uint64_t every = (UINT64_C(1) << 2 * LEVELS) - 1;

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20 & every;
}

static void suspends_at_none_each_and_some_awaits(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    expect_whole(0, 5);
    expect_whole(every, 6);
    for (int bit = 0; bit < 2 * LEVELS; bit++)
        expect_whole(UINT64_C(1) << bit, bit);
    for (int n = 0; n < 300; n++)
        expect_whole(draw(&random) & draw(&random), n);
}

static void destroyed_at_each_await(void **state)
{
    (void)state;
    for (int bit = 0; bit < 2 * LEVELS; bit++) {
        assert_true(run(UINT64_C(1) << bit, bit, 0, &bide_default_context));
        bide_destroy(&frame.task.frame);
        assert_int_equal(begun, bit % 2 == 0 ? LEVELS - bit / 2 : LEVELS);
        assert_int_equal(ended, begun);
    }
}

static void stopped_at_each_await(void **state)
{
    (void)state;
    for (int bit = 0; bit < 2 * LEVELS; bit++) {
        bide_stop_source source;
        bide_stop_source_init(&source);
        bide_context context = bide_default_context;
        context.stop = &source;
        assert_true(run(UINT64_C(1) << bit, bit, 0, &context));
        bide_stop_request(&source);
        assert_true(bide_done(&frame.task.frame));
        assert_int_equal(frame.result, -ECANCELED);
        assert_int_equal(frame.task.frame.error, -ECANCELED);
        assert_int_equal(ended, begun);
    }
}

/* ---- The budget ---- */

static bide_event set;
static bool other_ran;
static unsigned long rounds;

async static int leaf(void)
{
    return await bide_event_wait(&set);
}

async static int middle(long n)
{
    long kept = n * 3;
    int status = await leaf();
    return status < 0 ? status : (int)(kept - 2 * n);
}

/* Its operations are always ready; it goes on until the other one has run. */
async static int busy(void)
{
    for (long n = 0; !other_ran && n < 1000000; n++) {
        int value = await middle(n & 0xff);
        if (value != (n & 0xff))
            return value < 0 ? value : -EPROTO;
        rounds++;
    }
    return 0;
}

async static int other(void)
{
    other_ran = true;
    return 0;
}

async static int both(void)
{
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    if (spawn(&scope, busy()) < 0 || spawn(&scope, other()) < 0)
        return -ENOMEM;
    return await bide_scope_join(&scope);
}

static void a_spent_budget_gives_way_below_calls(void **state)
{
    (void)state;
    bide_run_loop loop;
    struct async_both both_frame;
    other_ran = false;
    rounds = 0;
    bide_event_init(&set, true);
    bide_run_loop_init(&loop);
    assert_int_equal(bide_run_loop_wait(&loop, async_both(&both_frame)), 0);
    bide_run_loop_destroy(&loop);
    assert_true(other_ran);
    assert_true(rounds < 1000000);
}

/* ---- Threads ---- */

enum { TASKS = 16 };

static bide_scheduler *pool_scheduler;

async static long move(long value)
{
    int status = await bide_schedule(pool_scheduler);
    return status < 0 ? status : value + 1;
}

async static long move_often(long value, long seed)
{
    long kept = value ^ seed;
    for (int n = 0; n < 3; n++) {
        if ((seed >> n & 1) == 0)
            continue;
        long moved = await move(kept);
        if (moved < 0)
            return moved;
        kept = moved;
    }
    return kept;
}

async static long call_often(long seed, long turns)
{
    long sum = 0;
    for (long n = 0; n < turns; n++) {
        long moved = await move_often(n, seed + n);
        if (moved < 0)
            return moved;
        sum += moved;
    }
    return sum;
}

async static void call_for(long seed, long turns, long *result)
{
    *result = await call_often(seed, turns);
}

async static int tasks(long seed, long turns, long *results)
{
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    int status = 0;
    for (int i = 0; i < TASKS && status == 0; i++)
        status = spawn(&scope, call_for(seed + i, turns, &results[i]));
    int joined = await bide_scope_join(&scope);
    return status < 0 ? status : joined;
}

static void moves_to_other_threads_below_calls(void **state)
{
    (void)state;
    long seed = (long)(testing_seed() & 0xffff), turns = 400;
    long results[TASKS] = {0};
    bide_thread_pool *pool;
    struct async_tasks tasks_frame;
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    pool_scheduler = bide_thread_pool_scheduler(pool);
    bide_context context = {.scheduler = pool_scheduler};
    assert_int_equal(bide_sync_wait_in(&context, async_tasks(&tasks_frame, seed, turns, results)),
                     0);
    bide_thread_pool_destroy(pool);
    for (int i = 0; i < TASKS; i++) {
        long sum = 0;
        for (long n = 0; n < turns; n++)
            sum += (n ^ (seed + i + n)) + __builtin_popcountl((seed + i + n) & 7);
        assert_int_equal(results[i], sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suspends_at_none_each_and_some_awaits),
        cmocka_unit_test(destroyed_at_each_await),
        cmocka_unit_test(stopped_at_each_await),
        cmocka_unit_test(a_spent_budget_gives_way_below_calls),
        cmocka_unit_test(moves_to_other_threads_below_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
