/*
 * How long an operation stays where it is, and whose result an await has. Each operation is awaited without its
 * struct before a large await that takes over the memory of awaits, and with a struct of its own in a function
 * whose result takes over the memory of its variables. Translated by bidec.
 */
#include "operations.h"

#include "bide/bide.h"
#include "bide/extend/wrapper.h"

#include <sys/socket.h>

/* ---- Operations that stay until their await has ended ---- */

static struct {
    bide_event event;
    bide_auto_event auto_event;
    bide_single_consumer_event single;
    bide_notify notify;
    bide_semaphore semaphore;
    bide_latch latch;
    bide_cyclic_barrier barrier;
    bide_wait_group group;
    bide_channel(int) channel;
    bide_channel_slot(int) slots[2];
    bide_spsc_channel(int) spsc;
    int spsc_slots[2];
    bide_rendezvous(int) rendezvous;
    bide_interval interval;
    bide_once once;
    bide_stop_source stop;
    bide_descriptor ends[2];
    int number;
    char bytes[8];
} objects;

static bide_scheduler *elsewhere; /* a pool with one thread */

static const bide_context_key(int) number_key = BIDE_CONTEXT_KEY("number");

async int seven(void)
{
    await bide_sleep_for(1);
    return objects.number == 7 ? 0 : -EIO;
}

static int passes_on(void *argument, int status)
{
    return argument == &objects ? status : -EIO;
}

/* X(name, type of the struct, operation, arguments): a batch is run as a whole, by partners of its own. */
#define OPERATIONS(X)                                                                        \
    X(event, bide_event_waiter, bide_event_wait, &objects.event)                             \
    X(auto_event, bide_auto_event_waiter, bide_auto_event_wait, &objects.auto_event)         \
    X(single, bide_single_consumer_event_waiter, bide_single_consumer_event_wait,            \
      &objects.single)                                                                       \
    X(notify, bide_notify_waiter, bide_notify_wait, &objects.notify)                         \
    X(permit, bide_semaphore_waiter, bide_semaphore_acquire, &objects.semaphore)             \
    X(permits, bide_semaphore_waiter, bide_semaphore_acquire_many, &objects.semaphore, 2)    \
    X(latch, bide_latch_waiter, bide_latch_wait, &objects.latch)                             \
    X(latch_arrives, bide_latch_waiter, bide_latch_arrive_and_wait, &objects.latch)          \
    X(barrier, bide_cyclic_barrier_waiter, bide_cyclic_barrier_arrive_and_wait,              \
      &objects.barrier)                                                                      \
    X(group, bide_wait_group_waiter, bide_wait_group_wait, &objects.group)                   \
    X(channel, bide_channel_waiter, bide_channel_recv, &objects.channel, &objects.number)    \
    X(spsc, bide_spsc_channel_waiter, bide_spsc_channel_recv, &objects.spsc, &objects.number) \
    X(rendezvous, bide_rendezvous_receiver, bide_rendezvous_recv, &objects.rendezvous,       \
      &objects.number)                                                                       \
    X(sleep_for, bide_sleep, bide_sleep_for, 1000)                                           \
    X(sleep_until, bide_sleep, bide_sleep_until, 1)                                          \
    X(once, bide_once_operation, bide_once_run, &objects.once, seven())                      \
    X(deadline, bide_with_deadline_operation, bide_with_deadline, BIDE_FOREVER, seven())     \
    X(timeout, bide_with_deadline_operation, bide_with_timeout, BIDE_FOREVER, seven())       \
    X(stop, bide_with_stop_operation, bide_with_stop, &objects.stop, seven())                \
    X(value, bide_with_value_operation, bide_with_value, &number_key, &objects.number,       \
      seven())                                                                               \
    X(then, bide_then_operation, bide_then, seven(), passes_on, &objects)                    \
    X(there, bide_schedule_on_operation, bide_schedule_on, elsewhere, seven())         \
    X(moves, bide_schedule_operation, bide_schedule, elsewhere)                        \
    X(resumes, bide_resume_on_operation, bide_resume_on, elsewhere, seven())           \
    X(received, bide_io_operation, bide_recv, &objects.ends[0], objects.bytes, 1)            \
    X(sent, bide_io_operation, bide_send, &objects.ends[1], objects.bytes, 1)
static bide_auto_event begun;

#define DEFINE_HIDDEN_AND_NAMED(name, type, operation, ...) \
    async long hidden_##name(void)                          \
    {                                                       \
        long before = 41;                                   \
        bide_auto_event_set(&begun);                        \
        long status = await operation(__VA_ARGS__);         \
        await large();                                      \
        return status < 0 ? status : before + 1;            \
    }                                                       \
                                                            \
    async struct big named_##name(void)                     \
    {                                                       \
        type own;                                           \
        struct big big;                                     \
        bide_auto_event_set(&begun);                        \
        int status = await operation(&own, __VA_ARGS__);    \
        await large();                                      \
        big = filled(status);                                 \
        return big;                                         \
    }
OPERATIONS(DEFINE_HIDDEN_AND_NAMED)

/* Lets one wait of each kind end. */
async void partner(void)
{
    int seven = 7;
    char byte = 7;
    await bide_auto_event_wait(&begun);
    await bide_sleep_for(1);
    bide_event_set(&objects.event);
    bide_auto_event_set(&objects.auto_event);
    bide_single_consumer_event_set(&objects.single);
    bide_notify_one(&objects.notify);
    bide_semaphore_release(&objects.semaphore, 2);
    if (!bide_latch_try_wait(&objects.latch))
        bide_latch_count_down(&objects.latch);
    bide_wait_group_done(&objects.group);
    (void)bide_channel_try_send(&objects.channel, &seven);
    (void)bide_spsc_channel_try_send(&objects.spsc, &seven);
    (void)bide_rendezvous_try_send(&objects.rendezvous, &seven);
    await bide_send(&objects.ends[1], &byte, 1);
}

static void set_up(void)
{
    int pair[2];
    memset(&objects, 0, sizeof objects);
    objects.number = 7;
    bide_event_init(&objects.event, false);
    bide_auto_event_init(&objects.auto_event, false);
    bide_single_consumer_event_init(&objects.single, false);
    bide_notify_init(&objects.notify);
    bide_semaphore_init(&objects.semaphore, 0);
    bide_latch_init(&objects.latch, 1);
    bide_cyclic_barrier_init(&objects.barrier, 1);
    bide_wait_group_init(&objects.group);
    bide_wait_group_add(&objects.group, 1);
    bide_channel_init(&objects.channel, objects.slots, 2);
    bide_spsc_channel_init(&objects.spsc, objects.spsc_slots, 2);
    bide_rendezvous_init(&objects.rendezvous);
    bide_once_init(&objects.once);
    bide_stop_source_init(&objects.stop);
    bide_auto_event_init(&begun, false);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    for (int i = 0; i < 2; i++)
        bide_descriptor_init(&objects.ends[i], pair[i]);
}

static void tear_down(void)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(bide_close(&objects.ends[i]), 0);
}

/* Status 0, or a count of one byte; the named struct of an operation gives its status. */
#define DEFINE_BOTH(name, type, operation, ...)                               \
    async int both_##name(void)                                               \
    {                                                                         \
        async_frame(hidden_##name) hidden;                                    \
        async_frame(named_##name) named;                                      \
        set_up();                                                             \
        assert_int_equal(await all(async_hidden_##name(&hidden), partner()), 0); \
        assert_int_equal(hidden.result, 42);                                  \
        tear_down();                                                          \
        set_up();                                                             \
        assert_int_equal(await all(async_named_##name(&named), partner()), 0); \
        check_filled(&named.result, 0);                                       \
        tear_down();                                                          \
        return 1;                                                             \
    }
OPERATIONS(DEFINE_BOTH)

static bide_loop *loop;
static bide_thread_pool *pool;

static int set_up_threads(void **state)
{
    (void)state;
    if (bide_loop_create(&loop, NULL) < 0 || bide_thread_pool_create(&pool, 1) < 0)
        return -1;
    elsewhere = bide_thread_pool_scheduler(pool);
    return 0;
}

static int tear_down_threads(void **state)
{
    (void)state;
    bide_thread_pool_destroy(pool);
    bide_loop_destroy(loop);
    return 0;
}

/* The result of an async function that runs on the loop. */
#define RUN(name, ...)                                                       \
    ({                                                                       \
        static async_frame(name) frame;                                      \
        memset(&frame, 0xd5, sizeof frame);                                  \
        assert_int_equal(bide_loop_wait(loop, async_##name(&frame __VA_ARGS__)), 0); \
        frame.result;                                                        \
    })

#define RUN_BOTH(name, type, operation, ...) assert_int_equal(RUN(both_##name), 1);

static void test_await_scoped(void **state)
{
    (void)state;
    OPERATIONS(RUN_BOTH)
}

/* ---- Operations that stay until the function has ended ---- */

static BIDE_THREAD_LOCAL bool is_main;

/* Moves, and awaits something large before and after each move. */
async struct big moves(bide_scheduler *home)
{
    struct big big;
    big = filled(5);
    await large();
    await bide_schedule(elsewhere);
    assert_false(is_main);
    await large();
    check_filled(&big, 5);
    await bide_resume_on(home, large());
    assert_true(is_main);
    await large();
    await bide_schedule(elsewhere);
    await large();
    assert_false(is_main);
    return big;
}

/* The structs are variables: of an inner block, members, and elements that are used in turn. */
async struct big moves_by_name(bide_scheduler *home)
{
    struct big big;
    big = filled(6);
    if (!is_main)
        return big;
    {
        bide_schedule_operation inner;
        await bide_schedule(&inner, elsewhere);
    }
    {
        struct big other;
        other = filled(7);
        await large();
        check_filled(&other, 7);
    }
    struct {
        int before;
        bide_schedule_operation move;
    } both = {1, {.scheduler = NULL}};
    await bide_schedule(&both.move, home);
    assert_true(is_main);
    for (int i = 0; i < 4; i++) {
        bide_schedule_operation turns[2];
        await bide_schedule(&turns[i % 2], i % 2 == 0 ? elsewhere : home);
        assert_int_equal(is_main, i % 2 == 1);
        await large();
    }
    bide_resume_on_operation resume;
    await bide_resume_on(&resume, elsewhere, large());
    assert_false(is_main);
    return big;
}

async_created struct big moves_created(int depth)
{
    await bide_schedule(elsewhere);
    await large();
    if (depth > 0)
        return await moves_created(depth - 1);
    struct big big;
    big = filled(8);
    return big;
}

async_sized(4000) struct big moves_sized(void);

async_sized(4000) struct big moves_sized(void)
{
    struct big big;
    await bide_schedule(elsewhere);
    await large();
    big = filled(9);
    return big;
}

async_generator(int) int numbers(int count)
{
    await bide_schedule(elsewhere);
    for (int i = 0; i < count; i++) {
        await large();
        yield i;
    }
    return 0;
}

async int move_in_all_ways(bide_scheduler *home)
{
    struct big big = await moves(home);
    assert_true(is_main);
    check_filled(&big, 5);
    big = await moves_by_name(home);
    assert_true(is_main);
    check_filled(&big, 6);
    big = await moves_created(2);
    assert_true(is_main);
    check_filled(&big, 8);
    big = await moves_sized();
    assert_true(is_main);
    check_filled(&big, 9);
    assert_int_equal(await all((void)moves(home), (void)moves_by_name(home)), 0);
    assert_true(is_main);
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    assert_int_equal(spawn(&scope, moves(home)), 0);
    assert_int_equal(await bide_scope_join(&scope), 0);
    assert_true(is_main);
    return 1;
}

static void test_coroutine_scoped(void **state)
{
    (void)state;
    is_main = true;
    assert_int_equal(RUN(move_in_all_ways, , bide_loop_context(loop)->scheduler), 1);
}

/* ---- Results that pass through what runs a function ---- */

/* A wrapper that does not begin what it is given. */
struct refused {
    bide_awaiter awaiter;
    bide_awaiter *inner;
};

static bool refused_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static int refused_resume(bide_awaiter *awaiter)
{
    bide_wrapper_abandon(&((struct refused *)(void *)awaiter)->inner);
    return -EIO;
}

BIDE_PASSES_RESULT
BIDE_MUST_AWAIT
static inline bide_awaiter *refuse(struct refused *refused, bide_awaiter *inner)
{
    static const bide_awaiter_ops ops = {
        .ready = refused_ready, .resume = refused_resume, .name = "refuse"};
    refused->awaiter.ops = &ops;
    refused->inner = inner;
    return &refused->awaiter;
}

struct pair {
    int a;
    const char *b;
};

async int small(int value)
{
    await large();
    return value;
}

async long number(long value)
{
    await large();
    return value;
}

async long long longer(long long value)
{
    return value;
}

async double real(double value)
{
    await bide_sleep_for(1);
    return value;
}

async struct pair pair(int a, const char *b)
{
    await bide_sleep_for(1);
    return (struct pair){a, b};
}

async const char *text(const char *what)
{
    await bide_sleep_for(1);
    return what;
}

async void nothing(void)
{
    await large();
}

async_created long factorial(int n)
{
    return n < 2 ? 1 : n * await bide_with_timeout(BIDE_FOREVER, factorial(n - 1));
}

async int pass_results(bide_scheduler *home)
{
    int number_of_two = 2;
    bide_stop_source token;
    bide_stop_source_init(&token);
    assert_int_equal(await bide_with_deadline(BIDE_FOREVER, number(40)) + number_of_two, 42);
    assert_int_equal(await bide_with_timeout(BIDE_FOREVER, small(1)), 1);
    long long long_long = await bide_with_stop(&token, longer(1LL << 40));
    assert_true(long_long == 1LL << 40);
    assert_true(await bide_schedule_on(elsewhere, real(1.5)) == 1.5);
    struct pair both = await bide_resume_on(home, pair(3, "three"));
    assert_int_equal(both.a, 3);
    assert_string_equal(both.b, "three");
    assert_string_equal(await bide_with_value(&number_key, &objects.number, text("here")), "here");
    assert_string_equal(await bide_with_stop(&token, bide_with_timeout(BIDE_FOREVER,
                                                                       bide_schedule_on(elsewhere, text("in three")))),
                        "in three");
    assert_int_equal(await bide_with_stop(&token, nothing()), 0);
    assert_int_equal(await factorial(5) + await bide_with_stop(&token, factorial(4)), 144);
    /* negative results are results, whether they are errors or not */
    assert_int_equal(await bide_with_stop(&token, number(-5)), -5);
    assert_int_equal(await bide_with_stop(&token, number(-100000)), -100000);
    /* the count of an operation, and the case of a select */
    char bytes[4];
    set_up();
    assert_int_equal(await bide_with_timeout(BIDE_FOREVER, bide_send(&objects.ends[1], "abc", 3)), 3);
    assert_int_equal(await bide_with_timeout(BIDE_FOREVER, bide_recv(&objects.ends[0], bytes, 4)), 3);
    size_t which = 9;
    bide_event_set(&objects.event);
    assert_int_equal(await bide_with_timeout(BIDE_FOREVER, select_any(&which, bide_auto_event_wait(&objects.auto_event),
                                                                      bide_event_wait(&objects.event))), 0);
    assert_int_equal(which, 1);
    /* what was not begun has the error, or zeros */
    assert_int_equal(await refuse(number(40)), -EIO);
    assert_int_equal(await refuse(small(40)), -EIO);
    assert_true(await refuse(longer(40)) == -EIO);
    assert_true(await refuse(real(40)) == 0);
    both = await refuse(pair(3, "three"));
    assert_true(both.a == 0 && both.b == NULL);
    assert_int_equal(await refuse(nothing()), -EIO);
    assert_int_equal(await refuse(factorial(3)), -EIO);
    assert_int_equal(await refuse(bide_recv(&objects.ends[0], bytes, 4)), -EIO);
    tear_down();
    return 1;
}

static void test_results_pass(void **state)
{
    (void)state;
    assert_int_equal(RUN(pass_results, , bide_loop_context(loop)->scheduler), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_await_scoped),
        cmocka_unit_test(test_coroutine_scoped),
        cmocka_unit_test(test_results_pass),
    };
    return cmocka_run_group_tests(tests, set_up_threads, tear_down_threads);
}
