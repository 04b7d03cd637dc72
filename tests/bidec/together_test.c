/*
 * spawn, select_any, and operations that are macros and are called without their waiter. Translated by
 * bidec.
 */
#include "testing.h"

#include "bide/async.h"
#include "bide/auto_event.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"

/* ---- An allocator that counts, and that fails on request ---- */

struct counting {
    bide_allocator allocator;
    int live, given, fail_at; /* fail_at: the n-th request fails; 0: none does */
};

static void *counting_allocate(bide_allocator *allocator, size_t size)
{
    struct counting *self = (struct counting *)(void *)allocator;
    if (++self->given == self->fail_at)
        return NULL;
    self->live++;
    return malloc(size);
}

static void counting_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    memset(memory, 0xd5, size);
    free(memory);
    ((struct counting *)(void *)allocator)->live--;
}

static struct counting memory;

static void reset_memory(int fail_at)
{
    memory = (struct counting){{counting_allocate, counting_deallocate}, 0, 0, fail_at};
}

/* ---- spawn ---- */

static bide_auto_event gate;
static int begun, ended;

async int branch(int value)
{
    begun++;
    defer ended++;
    int status = await bide_auto_event_wait(&gate);
    return status < 0 ? status : value;
}

async_sized(256) void far_away(int *count, const char *what);

/* spawn is an expression, whose arguments may await. */
async int owner(bide_allocator *allocator, int count, int bad)
{
    bide_scope scope;
    int far_count = 0, failed = 0;
    (void)allocator;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    for (int i = 0; i < count; i++)
        failed += spawn(&scope, branch(i == bad ? -EDOM : await branch(i))) < 0;
    if (failed == 0 && count > 100)
        return -E2BIG; /* without a join */
    spawn(&scope, far_away(&far_count, "away"));
    int status = await bide_scope_join(&scope);
    return status < 0 ? status : far_count * 100 + count - failed;
}

async void far_away(int *count, const char *what)
{
    await bide_auto_event_wait(&gate);
    *count += (int)strlen(what);
}

async_created int tree(int depth)
{
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    begun++;
    if (depth > 0 &&
        (spawn(&scope, tree(depth - 1)) < 0 || spawn(&scope, tree(depth - 1)) < 0))
        return -ENOMEM;
    return await bide_scope_join(&scope);
}

async int grow(bide_allocator *allocator, int depth)
{
    (void)allocator;
    return await tree(depth);
}

static bide_frame *start(bide_awaiter *awaiter, bide_frame *frame, const bide_context *context)
{
    bide_await_later(awaiter);
    bide_frame_init_in(frame, bide_frame_point(frame), context);
    bide_auto_event_init(&gate, false);
    begun = ended = 0;
    bide_resume(frame);
    return frame;
}

static unsigned run_to_end(bide_frame *frame)
{
    unsigned waits = 0;
    for (; !bide_done(frame); waits++)
        bide_auto_event_set(&gate);
    return waits;
}

#define START(name, ...)                                                              \
    (memset(&frame, 0xd5, sizeof frame), start(async_##name(&frame, __VA_ARGS__),     \
                                               &frame.task.frame, &bide_default_context))

static void test_spawned(void **state)
{
    (void)state;
    static struct async_owner frame;
    reset_memory(0);
    assert_int_equal(run_to_end(START(owner, &memory.allocator, 3, -1)), 7);
    assert_int_equal(frame.result, 403);
    assert_int_equal(begun, 6);
    assert_int_equal(ended, 6);
    assert_int_equal(memory.live, 0);
    assert_int_equal(memory.given, 4);

    /* one child fails, so the others are cancelled */
    reset_memory(0);
    run_to_end(START(owner, &memory.allocator, 3, 2));
    assert_int_equal(frame.result, -EDOM);
    assert_int_equal(memory.live, 0);

    /* the scope is not joined */
    reset_memory(0);
    run_to_end(START(owner, &memory.allocator, 101, -1));
    assert_int_equal(frame.result, -E2BIG);
    assert_int_equal(begun, ended);
    assert_int_equal(memory.live, 0);
}

static void test_spawned_without_memory(void **state)
{
    (void)state;
    static struct async_owner frame;
    for (int n = 1; n <= 4; n++) {
        reset_memory(n);
        run_to_end(START(owner, &memory.allocator, 3, -1));
        assert_int_equal(frame.result, n == 4 ? 3 : 402);
        assert_int_equal(begun, n == 4 ? 6 : 5);
        assert_int_equal(memory.live, 0);
    }
}

static void test_spawned_and_destroyed(void **state)
{
    (void)state;
    static struct async_owner frame;
    for (unsigned n = 0; n < 7; n++) {
        reset_memory(0);
        START(owner, &memory.allocator, 3, -1);
        for (unsigned i = 0; i < n; i++)
            bide_auto_event_set(&gate);
        assert_false(bide_done(&frame.task.frame));
        bide_destroy(&frame.task.frame);
        assert_int_equal(memory.live, 0);
        assert_int_equal(begun, ended);
        memset(&frame, 0xd5, sizeof frame);
        bide_auto_event_set(&gate);
    }
}

static void test_spawned_and_stopped(void **state)
{
    (void)state;
    static struct async_owner frame;
    for (unsigned n = 0; n < 7; n++) {
        bide_stop_source source;
        bide_stop_source_init(&source);
        bide_context context = bide_default_context;
        context.stop = &source;
        reset_memory(0);
        memset(&frame, 0xd5, sizeof frame);
        start(async_owner(&frame, &memory.allocator, 3, -1), &frame.task.frame, &context);
        for (unsigned i = 0; i < n; i++)
            bide_auto_event_set(&gate);
        bide_stop_request(&source);
        assert_true(bide_done(&frame.task.frame));
        assert_int_equal(memory.live, 0);
        assert_int_equal(begun, ended);
    }
}

static void test_trees(void **state)
{
    (void)state;
    static struct async_grow frame;
    for (int n = 0; n <= 16; n++) {
        reset_memory(n);
        run_to_end(START(grow, &memory.allocator, 3));
        assert_int_equal(frame.result, n == 0 || n == 16 ? 0 : -ENOMEM);
        assert_int_equal(memory.live, 0);
        if (n == 0)
            assert_int_equal(memory.given, 15);
    }
}

/* ---- select_any, and operations that are macros ---- */

typedef bide_channel(int) ints;
typedef bide_channel_slot(int) ints_slot;

async int choose(ints *first, ints *second, bide_event *event, unsigned *choices)
{
    for (;;) {
        int from_first, to_second = 7;
        size_t which = 99;
        int status = await select_any(&which, bide_channel_recv(first, &from_first),
                                      bide_channel_send(second, &to_second),
                                      bide_event_wait(event));
        if (status < 0)
            return which == 0 ? 1000 + status : status;
        assert_true(which < 3);
        choices[which]++;
        if (which == 0)
            assert_int_equal(from_first, 5);
        if (which == 2)
            bide_event_reset(event);
    }
}

async int send_and_close(ints *channel, int count)
{
    for (int i = 0, five = 5; i < count; i++) {
        int status = await bide_channel_send(channel, &five);
        if (status < 0)
            return status;
    }
    bide_channel_close(channel);
    return 0;
}

async int take_some(ints *channel, bide_event *event, int count)
{
    int value, sum = 0;
    for (int i = 0; i < count; i++) {
        int status = await bide_channel_recv(channel, &value);
        if (status < 0)
            return status;
        sum += value;
        if (i == 1)
            bide_event_set(event);
    }
    return sum == 7 * count ? 0 : -EDOM;
}

async int selecting(unsigned *choices)
{
    ints_slot first_slots[1], second_slots[1];
    ints first, second;
    bide_event event;
    int result = 0;
    bide_channel_init(&first, first_slots, 1);
    bide_channel_init(&second, second_slots, 1);
    bide_event_init(&event, false);
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    result += spawn(&scope, send_and_close(&first, 4));
    result += spawn(&scope, take_some(&second, &event, 3));
    int ended_with = await choose(&first, &second, &event, choices);
    await bide_scope_join(&scope);
    return result < 0 ? result : ended_with;
}

static void test_select(void **state)
{
    (void)state;
    static struct async_selecting frame;
    unsigned choices[3] = {0, 0, 0};
    memset(&frame, 0xd5, sizeof frame);
    run_to_end(START(selecting, choices));
    assert_int_equal(frame.result, 1000 - EPIPE);
    assert_int_equal(choices[0], 4);
    assert_true(choices[1] >= 1);
}

/* Of what can be had, always the first. */
async int in_order(unsigned *choices)
{
    ints_slot slots[4];
    ints channel;
    bide_event event;
    int value, status;
    size_t which;
    bide_channel_init(&channel, slots, 4);
    bide_event_init(&event, true);
    for (value = 0; value < 3; value++) {
        status = bide_channel_try_send(&channel, &value);
        if (status < 0)
            return status;
    }
    for (int i = 0; i < 4; i++) {
        status = await select_in_order(&which, bide_channel_recv(&channel, &value), bide_event_wait(&event));
        if (status < 0)
            return status;
        choices[which]++;
        assert_int_equal(which, i < 3 ? 0 : 1);
    }
    return 0;
}

static void test_select_in_order(void **state)
{
    (void)state;
    static struct async_in_order frame;
    unsigned choices[2] = {0, 0};
    memset(&frame, 0xd5, sizeof frame);
    run_to_end(START(in_order, choices));
    assert_int_equal(frame.result, 0);
    assert_int_equal(choices[0], 3);
    assert_int_equal(choices[1], 1);
}

/* Operations that are macros of five and six arguments, without their waiters. */
async int permits_and_many(ints *channel)
{
    bide_channel_permit permit, permits[2];
    int two = 2, values[2] = {0, 0};
    size_t count = 0;
    int status = await bide_channel_reserve_many(channel, permits, 2, &count);
    if (status < 0)
        return status;
    bide_channel_permit_release(&permits[0]);
    if (count != 1)
        return -ERANGE;
    status = await bide_channel_reserve(channel, &permit);
    if (status < 0)
        return status;
    bide_channel_permit_send(channel, &permit, &two);
    status = await bide_channel_recv_many(channel, values, 2, &count);
    if (status < 0)
        return status;
    return count == 1 && values[0] == 2 ? 0 : -EDOM;
}

static void test_permits_and_many(void **state)
{
    (void)state;
    static struct async_permits_and_many frame;
    ints_slot slots[1];
    ints channel;
    bide_channel_init(&channel, slots, 1);
    memset(&frame, 0xd5, sizeof frame);
    run_to_end(START(permits_and_many, &channel));
    assert_int_equal(frame.result, 0);
    bide_channel_destroy(&channel);
}

typedef bide_unbounded_channel(int) unbounded_ints;

async int many_of_the_others(unbounded_ints *unbounded)
{
    int memory[2], values[2] = {0, 0}, three = 3;
    size_t count = 0;
    bide_spsc_channel(int) spsc;
    bide_spsc_channel_init(&spsc, memory, 2);
    int status = await bide_spsc_channel_send(&spsc, &three);
    if (status < 0)
        return status;
    status = await bide_spsc_channel_recv_many(&spsc, values, 2, &count);
    if (status < 0 || count != 1 || values[0] != 3)
        return -EDOM;
    if (bide_unbounded_channel_send(unbounded, NULL, &three) != 0)
        return -EDOM;
    status = await bide_unbounded_channel_recv_many(unbounded, NULL, values, 2, &count);
    return status < 0 ? status : count == 1 ? 0 : -EDOM;
}

static void test_many_of_the_others(void **state)
{
    (void)state;
    static struct async_many_of_the_others frame;
    unbounded_ints unbounded;
    assert_int_equal(bide_unbounded_channel_init_own(&unbounded, &bide_heap, 4), 0);
    memset(&frame, 0xd5, sizeof frame);
    run_to_end(START(many_of_the_others, &unbounded));
    assert_int_equal(frame.result, 0);
    bide_unbounded_channel_destroy(&unbounded);
}

typedef bide_spsc_channel(int) spsc_ints;
typedef bide_rendezvous(int) rendezvous_ints;
typedef bide_oneshot(int) oneshot_int;
typedef bide_watch(int) watch_int;
typedef bide_watch_receiver(int) watch_int_receiver;

static struct {
    bide_latch latch;
    bide_mutex mutex;
    bide_condition condition;
    spsc_ints spsc;
    rendezvous_ints rendezvous;
    oneshot_int oneshot;
    watch_int watch;
    watch_int_receiver receiver;
    bool flag;
} all_kinds;

static bool is_above(const void *value, void *argument)
{
    return *(const int *)value > *(const int *)argument;
}

static bool add_one(void *value, void *argument)
{
    (void)argument;
    ++*(int *)value;
    return true;
}

async int one_side(void)
{
    int value = 1, status;
    status = await bide_latch_arrive_and_wait(&all_kinds.latch);
    status |= await bide_spsc_channel_send(&all_kinds.spsc, &value);
    value = 2;
    status |= await bide_rendezvous_send(&all_kinds.rendezvous, &value);
    value = 3;
    status |= bide_oneshot_send(&all_kinds.oneshot, &value);
    bide_mutex_waiter lock;
    status |= await bide_mutex_lock(&lock, &all_kinds.mutex);
    while (!all_kinds.flag)
        status |= await bide_condition_wait(&all_kinds.condition, &lock);
    bide_mutex_unlock(&lock);
    for (int i = 0; i < 3; i++)
        status |= bide_watch_send_if_modified(&all_kinds.watch, &value, add_one, NULL) != 1;
    return status;
}

async int other_side(int *sum)
{
    int value = 0, status;
    status = await bide_latch_arrive_and_wait(&all_kinds.latch);
    status |= await bide_spsc_channel_recv(&all_kinds.spsc, &value);
    *sum = value;
    status |= await bide_rendezvous_recv(&all_kinds.rendezvous, &value);
    *sum = *sum * 10 + value;
    status |= await bide_oneshot_recv(&all_kinds.oneshot, &value);
    *sum = *sum * 10 + value;
    bide_mutex_waiter lock;
    status |= await bide_mutex_lock(&lock, &all_kinds.mutex);
    all_kinds.flag = true;
    bide_condition_notify_one(&all_kinds.condition);
    bide_mutex_unlock(&lock);
    int bound = 2;
    status |= await bide_watch_wait_for(&all_kinds.receiver, is_above, &bound, &value);
    *sum = *sum * 10 + value;
    return status;
}

async int both_sides(int *sum)
{
    int status = await all(one_side(), other_side(sum));
    bide_broadcast_waiter *unused = NULL; /* an explicit waiter is still possible */
    (void)unused;
    return status;
}

static void test_operations_that_are_macros(void **state)
{
    (void)state;
    static struct async_both_sides frame;
    static int slots[2];
    int sum = 0;
    memset(&all_kinds, 0, sizeof all_kinds);
    bide_latch_init(&all_kinds.latch, 2);
    bide_mutex_init(&all_kinds.mutex);
    bide_condition_init(&all_kinds.condition);
    bide_spsc_channel_init(&all_kinds.spsc, slots, 2);
    bide_rendezvous_init(&all_kinds.rendezvous);
    bide_oneshot_init(&all_kinds.oneshot);
    int first = 1;
    bide_watch_init(&all_kinds.watch, &first);
    bide_watch_receiver_init(&all_kinds.receiver, &all_kinds.watch);
    run_to_end(START(both_sides, &sum));
    assert_int_equal(frame.result, 0);
    assert_int_equal(sum, 1234);
}

/* ---- Names that look like generated ones, and a type that is void ---- */

typedef void nothing;
typedef nothing still_nothing;

async int server(int n)
{
    await bide_auto_event_wait(&gate);
    return n;
}

#define SIMILAR(name)                \
    async int server_##name(int n)   \
    {                                \
        return await server(n) + 1;  \
    }
SIMILAR(start)
SIMILAR(step)
SIMILAR(type)
SIMILAR(code)
SIMILAR(points)
SIMILAR(finished)
SIMILAR(frame)

async still_nothing store(int *to, int value)
{
    *to = await server_start(await server_step(value));
}

/* The yielded type is a pointer to void; the result is not void. */
async_generator(void *) int pointers(int *to)
{
    yield to;
    return 0;
}

async int use_names(int n)
{
    int stored;
    await store(&stored, n);
    async_for (void *to, pointers(&stored))
        ++*(int *)to;
    stored += await server_type(0) + await server_code(0) + await server_points(0) +
              await server_finished(0) + await server_frame(0);
    return stored;
}

static void test_names(void **state)
{
    (void)state;
    static struct async_use_names frame;
    run_to_end(START(use_names, 10));
    assert_int_equal(frame.result, 10 + 2 + 1 + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_spawned),
        cmocka_unit_test(test_spawned_without_memory),
        cmocka_unit_test(test_spawned_and_destroyed),
        cmocka_unit_test(test_spawned_and_stopped),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_select_in_order),
        cmocka_unit_test(test_permits_and_many),
        cmocka_unit_test(test_many_of_the_others),
        cmocka_unit_test(test_operations_that_are_macros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
