/*
 * async_kind: functions of kinds of one's own, beside bodies by hand of the same kind, which leave the same journal; and the
 * kinds in awaits, groups, wrappers, scopes and async_for. Translated by bidec.
 */
#include "journal.h"
#include "testing.h"

#include "bide/async.h"
#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"

#include <stdlib.h>

/* ---- A kind with all hooks, each of which notes that it is called ---- */

typedef struct noting {
    bide_frame frame;
    bool is_eager;
    int add; /* to an error */
    const char *name;
    long taken[3];
} noting;
typedef long noting_result;
typedef short noting_value;

static void *noting_get_return_object(bide_frame *frame)
{
    note("object");
    return bide_promise(noting, frame);
}

static bide_frame *noting_initial_suspend(bide_frame *frame)
{
    note("initial");
    return bide_promise(noting, frame)->is_eager ? frame : NULL;
}

static bide_frame *noting_yield_value(bide_frame *frame, void *value)
{
    (void)frame;
    note("yield");
    note_number(*(noting_value *)value);
    return NULL;
}

static void noting_return_value(bide_frame *frame, void *value)
{
    note("value");
    memcpy(&bide_promise(noting, frame)->taken[1], value, sizeof(long));
}

static void noting_return_void(bide_frame *frame)
{
    (void)frame;
    note("void");
}

static int noting_unhandled_error(bide_frame *frame, int error)
{
    note("error");
    note_number(error);
    return error + bide_promise(noting, frame)->add;
}

static bide_frame *noting_final_suspend(bide_frame *frame, const bide_context *context)
{
    (void)context;
    note("final");
    note_number(frame->error);
    return frame->awaiter.frame;
}

static bide_awaiter *noting_await_transform(bide_frame *frame, bide_awaiter *awaiter)
{
    (void)frame;
    note("await");
    return awaiter;
}

static void noting_destroyed(bide_frame *frame)
{
    (void)frame;
    note("destroyed");
}

static const bide_coroutine_type noting_type = {
    .name = "noting",
    .get_return_object = noting_get_return_object,
    .initial_suspend = noting_initial_suspend,
    .yield_value = noting_yield_value,
    .return_value = noting_return_value,
    .return_void = noting_return_void,
    .unhandled_error = noting_unhandled_error,
    .final_suspend = noting_final_suspend,
    .await_transform = noting_await_transform,
    .destroyed = noting_destroyed,
};
BIDE_AWAITED(noting);

/* An operation with a status and a value. */
typedef struct given {
    bide_awaiter awaiter;
    int status;
    int value;
} given;
BIDE_AWAIT_VALUE(given, long, value);

static bool given_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static int given_resume(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, given, awaiter)->status;
}

static bide_awaiter *give(given *self, int status, int value)
{
    static const bide_awaiter_ops ops = {
        .ready = given_ready, .resume = given_resume, .name = "give"};
    self->awaiter.ops = &ops;
    self->status = status;
    self->value = value;
    return &self->awaiter;
}

async_kind(noting, .is_eager = is_eager, .add = add,
           .taken = {7, 8, 9}) static long noted(bool is_eager, int add, bide_event *event,
                                                 int status)
{
    short small = 5;
    note("begins");
    defer note("left");
    yield small + 100000; /* as a short */
    try await bide_event_wait(event);
    long value = try await give(status, 30);
    if (small != 5)
        return -1;
    return value == 30 ? -30 : value; /* a value, and no error */
}

struct noted_by_hand {
    noting noting;
    bide_event *event;
    int status;
    bide_event_waiter wait;
    given given;
    short value;
    long result;
};

bide_coroutine_of(noting_type, noted_body)
{
    bide_begin(noted_body, struct noted_by_hand * self);
    note("begins");
    self->value = (short)(5 + 100000);
    bide_yield(&self->value);
    bide_try(bide_event_wait(&self->wait, self->event));
    bide_try(give(&self->given, self->status, 30));
    self->result = -30;
    bide_return_value(&self->result);
    bide_finally();
    note("left");
    bide_end();
}

/* Runs one of the two in all ways: a value, an error, an error that is changed, destroyed at both suspensions. */
static void run_noted(bool by_hand)
{
    static const struct {
        int is_eager, add, status;
        bool destroyed_at_yield, destroyed_at_await;
    } runs[] = {
        {false, 0, 0, false, false}, {true, 0, 0, false, false},   {true, 0, -5, false, false},
        {true, 5, -5, false, false}, {true, -2, -5, false, false}, {true, 0, 0, true, false},
        {true, 0, 0, false, true},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        bide_event event;
        struct noted_by_hand hand = {.event = &event, .status = runs[i].status};
        async_frame(noted) frame;
        noting *promise;
        bide_event_init(&event, false);
        hand.noting.is_eager = runs[i].is_eager;
        hand.noting.add = runs[i].add;
        if (by_hand)
            promise = bide_start(&hand.noting.frame, &noted_body, &bide_default_context);
        else
            promise = bide_start_async(
                async_noted(&frame, runs[i].is_eager, runs[i].add, &event, runs[i].status),
                &bide_default_context);
        assert_ptr_equal(promise, by_hand ? (void *)&hand : (void *)&frame);
        assert_int_equal(promise->taken[0], by_hand ? 0 : 7);
        note("started");
        if (!runs[i].is_eager)
            bide_resume(&promise->frame);
        if (!runs[i].destroyed_at_yield)
            bide_resume(&promise->frame);
        note("waits");
        if (!runs[i].destroyed_at_yield && !runs[i].destroyed_at_await)
            bide_event_set(&event);
        else
            bide_destroy(&promise->frame);
        assert_true(bide_done(&promise->frame));
        note_number(promise->frame.error);
        assert_int_equal(promise->taken[1], runs[i].status == 0 && !runs[i].destroyed_at_yield &&
                                                    !runs[i].destroyed_at_await
                                                ? -30
                                            : by_hand ? 0
                                                      : 8);
        note("|");
    }
}

static void hooks_are_called_as_in_a_body(void **state)
{
    static char expected[sizeof journal];
    (void)state;
    journal[0] = 0;
    run_noted(true);
    memcpy(expected, journal, sizeof journal);
    journal[0] = 0;
    run_noted(false);
    assert_string_equal(journal, expected);
    assert_true(strlen(journal) < sizeof journal - 100); /* nothing was cut off */
    assert_non_null(strstr(journal, "object initial started begins yield -31067 await waits "));
}

/* ---- Awaited ---- */

async long awaits_noted(bide_event *event, int status)
{
    long sum = await noted(true, 0, event, status);
    note_number(sum);
    sum += await noted(false, 0, event, status) * 1000;
    return sum;
}

/* (a yield in a function that is awaited returns to the resume loop, which the test plays) */
static void awaited_ones_give_their_values(void **state)
{
    (void)state;
    for (int status = 0; status >= -5; status -= 5) {
        bide_event event;
        bide_spawned spawned;
        async_frame(awaits_noted) frame;
        bide_event_init(&event, true);
        journal[0] = 0;
        bide_spawn(&spawned, &bide_default_context, async_awaits_noted(&frame, &event, status));
        for (int i = 0; i < 2; i++)
            bide_resume((bide_frame *)(void *)bide_awaited_frame(frame.task.frame.awaiter.link));
        assert_true(bide_done(&frame.task.frame));
        assert_int_equal(frame.result, status == 0 ? -30030 : -5005);
        assert_null(strstr(journal, "object"));
        assert_null(strstr(journal, "initial"));
    }
}

/* ---- Empty values: the waiting function is destroyed ---- */

typedef struct optional {
    bide_frame frame;
    bool has_value;
} optional;
typedef int optional_result;

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
    return true;
}

static bide_awaiter *optional_await_transform(bide_frame *frame, bide_awaiter *awaiter)
{
    static const bide_awaiter_ops empty = {
        .suspend = empty_suspend, .withdraw = empty_withdraw, .name = "empty"};
    (void)frame;
    if (awaiter->ops->ready == given_ready && given_resume(awaiter) == -ENOENT)
        awaiter->ops = &empty;
    return awaiter;
}

static void optional_return_value(bide_frame *frame, void *value)
{
    (void)value;
    bide_promise(optional, frame)->has_value = true;
}

static const bide_coroutine_type optional_type = {
    .name = "optional",
    .return_value = optional_return_value,
    .await_transform = optional_await_transform,
};

async_kind(optional) int sum(const int *values, int count)
{
    int total = 0;
    defer note("closed");
    for (int i = 0; i < count; i++)
        total += (int)await give(values[i] < 0 ? -ENOENT : 0, values[i]);
    return total;
}

static const int values[] = {1, 20, -1, 300};

async int twice(int first, int second)
{
    return await sum(values, first) * 1000 + await sum(values, second);
}

static int run_twice(int first, int second)
{
    async_frame(twice) frame;
    bide_sync_wait(async_twice(&frame, first, second));
    return frame.result;
}

static void a_destroyed_one_gives_its_error(void **state)
{
    (void)state;
    journal[0] = 0;
    assert_int_equal(run_twice(1, 2), 1021);
    assert_int_equal(run_twice(2, 3), 21000 - ECANCELED);
    assert_int_equal(run_twice(4, 1), -1000 * ECANCELED + 1);
    assert_string_equal(journal, "closed closed closed closed closed closed ");
}

async int passes(int count)
{
    int total = try await sum(values, count);
    return total + 1;
}

async int in_groups(bide_event *never)
{
    int bad = 0, status;
    status = await all((void)sum(values, 1), (void)sum(values, 2));
    bad |= (status != 0) << 0;
    status = await all(sum(values, 1), sum(values, 3), bide_event_wait(never));
    bad |= (status != -ECANCELED) << 1;
    status = await any(sum(values, 2), bide_event_wait(never));
    bad |= (status != 0) << 2;
    bad |= (await bide_with_timeout(BIDE_SECONDS(1000), sum(values, 2)) != 21) << 3;
    bad |= (await bide_with_timeout(BIDE_SECONDS(1000), sum(values, 3)) != -ECANCELED) << 4;
    bad |= (await passes(2) != 22) << 5;
    bad |= (await passes(3) != -ECANCELED) << 6;
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    bad |= (spawn(&scope, sum(values, 2)) != 0) << 7;
    bad |= (await bide_scope_join(&scope) != 0) << 8;
    return bad;
}

static void they_run_in_groups_wrappers_and_scopes(void **state)
{
    async_frame(in_groups) frame;
    bide_event never;
    (void)state;
    bide_event_init(&never, false);
    assert_int_equal(bide_sync_wait(async_in_groups(&frame, &never)), 0);
    assert_int_equal(frame.result, 0);
}

/* ---- An await_transform sees each await ---- */

typedef struct counting {
    bide_frame frame;
    int awaits;
    int refuse; /* the number of the await that fails in place of what it awaits; 0: none */
    given given;
} counting;

static bide_awaiter *counting_await_transform(bide_frame *frame, bide_awaiter *awaiter)
{
    counting *promise = bide_promise(counting, frame);
    if (++promise->awaits != promise->refuse)
        return awaiter;
    return give(&promise->given, -EPERM, 0);
}

static void counting_return_void(bide_frame *frame)
{
    note_number(bide_promise(counting, frame)->awaits);
}

static const bide_coroutine_type counting_type = {
    .name = "counting",
    .return_void = counting_return_void,
    .await_transform = counting_await_transform,
};

struct pair {
    long a;
    char text[20];
};

async struct pair make_pair(bide_event *event)
{
    struct pair pair = {11, "text"};
    await bide_event_wait(event);
    return pair;
}

async_created int created(int n)
{
    return n;
}

async int nothing_waits(int n)
{
    return n + 1;
}

async_generator(int) int numbers(int count)
{
    for (int i = 1; i <= count; i++)
        yield i;
    return 0;
}

async_kind(counting, .refuse = refuse) int counted(int refuse, bide_event *event)
{
    int sum = await nothing_waits(1);                        /* 1 */
    struct pair pair = await make_pair(event);               /* 2 */
    sum += (int)pair.a + pair.text[1] + await created(4000); /* 3 */
    int status = 0;
    async_for (int n, numbers(2), status) /* 4, 5, 6 */
        sum += n * 10000;
    sum += status;
    async_select(status)
    { /* 7 */
        when(bide_event_wait(event)) sum += 100000;
    }
    sum += await all(nothing_waits(-1), nothing_waits(-1)); /* 8 */
    sum += status;
    return sum;
}

static int run_counted(int refuse)
{
    bide_event event;
    async_frame(counted) frame;
    memset(&frame, 0x55, sizeof frame); /* nothing is read before it is written */
    bide_event_init(&event, true);
    bide_sync_wait(async_counted(&frame, refuse, &event));
    return frame.result;
}

static void each_await_is_transformed(void **state)
{
    const int whole = 2 + 11 + 'e' + 4000 + 30000 + 100000;
    (void)state;
    journal[0] = 0;
    assert_int_equal(run_counted(0), whole);
    assert_int_equal(run_counted(1), whole - 2 - EPERM);
    assert_int_equal(run_counted(2), whole - 11 - 'e');
    assert_int_equal(run_counted(4), whole - 30000 - EPERM);
    assert_int_equal(run_counted(7), whole - 100000 - EPERM);
    assert_int_equal(run_counted(8), whole - EPERM);
    assert_string_equal(journal, "8 8 8 6 8 8 ");
}

/* ---- Memory ---- */

static int blocks;

static void *own_allocate(size_t size, void *argument)
{
    int *left = argument;
    if (*left == 0)
        return NULL;
    --*left;
    blocks++;
    return malloc(size);
}

static void own_deallocate(void *memory, size_t size)
{
    (void)size;
    blocks--;
    free(memory);
}

typedef struct detached {
    bide_frame frame;
} detached;

static bide_frame *detached_initial_suspend(bide_frame *frame)
{
    return frame;
}

static bide_frame *detached_final_suspend(bide_frame *frame, const bide_context *context)
{
    (void)context;
    bide_free(frame);
    return NULL;
}

static const bide_coroutine_type detached_type = {"detached",
                                                  NULL,
                                                  detached_initial_suspend,
                                                  0,
                                                  NULL,
                                                  NULL,
                                                  NULL,
                                                  detached_final_suspend,
                                                  NULL,
                                                  own_allocate,
                                                  own_deallocate,
                                                  NULL,
                                                  NULL,
                                                  NULL};

async_kind(detached) static void tells(bide_event *event, const char *what)
{
    _Alignas(64) char aligned[64] = "x";
    note("begins");
    await bide_event_wait(event);
    note(what);
    note_number((long)((uintptr_t)aligned % 64));
}

static void created_ones_free_themselves(void **state)
{
    bide_event event;
    int left = 2;
    (void)state;
    bide_event_init(&event, false);
    journal[0] = 0;
    for (int i = 0; i < 3; i++) {
        async_frame(tells) *frame = async_create(tells, (void *)&left);
        assert_int_equal(frame == NULL, i == 2);
        if (frame != NULL)
            bide_start_async(async_tells(frame, &event, i == 0 ? "one" : "two"),
                             &bide_default_context);
    }
    assert_int_equal(blocks, 2);
    bide_event_set(&event);
    assert_int_equal(blocks, 0);
    assert_string_equal(journal, "begins begins one 0 two 0 ");
}

static void a_plain_function_is_created_too(void **state)
{
    (void)state;
    async_frame(nothing_waits) *frame = async_create(nothing_waits, &bide_heap);
    assert_non_null(frame);
    assert_int_equal(bide_sync_wait(async_nothing_waits(frame, 4)), 0);
    assert_int_equal(frame->result, 5);
    bide_free(&frame->task.frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_are_called_as_in_a_body),
        cmocka_unit_test(awaited_ones_give_their_values),
        cmocka_unit_test(a_destroyed_one_gives_its_error),
        cmocka_unit_test(they_run_in_groups_wrappers_and_scopes),
        cmocka_unit_test(each_await_is_transformed),
        cmocka_unit_test(created_ones_free_themselves),
        cmocka_unit_test(a_plain_function_is_created_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
