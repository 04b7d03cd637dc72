/*
 * The language: the values of each construct with awaits in it; deferred statements at each exit; and
 * destruction and cancellation of each function at each of its awaits. Translated by bidec.
 */
#include "testing.h"

#include "bide/async.h"
#include "bide/context_value.h"
#include "bide/deadline.h"
#include "bide/auto_event.h"
#include "bide/handle.h"
#include "bide/sleep.h"
#include "bide/stop.h"
#include "bide/stream.h"
#include "bide/sync_wait.h"
#include "bide/with_stop.h"

/* ---- The awaited operation: waits at a gate, unless the gate is open ---- */

static bide_auto_event gate;

static void set_gate(bool open)
{
    bide_auto_event_init(&gate, open);
}

/* Returns `value` when the gate is open. */
async int later(int value)
{
    int status = await bide_auto_event_wait(&gate);
    return status < 0 ? status : value;
}

static char journal[512];

static void note(const char *what)
{
    strcat(journal, what);
    strcat(journal, " ");
}

static int noted(int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    note(text);
    return value;
}

/* Starts a task, and opens the gate each time that it waits there, until it has ended. */
#define RUN(name, ...)                                              \
    ({                                                              \
        static struct async_##name frame;                           \
        memset(&frame, 0xd5, sizeof frame);                         \
        set_gate(false);                                            \
        journal[0] = 0;                                             \
        run_to_end(&frame.task, async_##name(&frame, __VA_ARGS__)); \
        frame.result;                                               \
    })

static unsigned waits;

static void run_to_end(bide_task *task, bide_awaiter *awaiter)
{
    waits = 0;
    bide_await_later(awaiter);
    bide_frame_init_in(&task->frame, bide_frame_point(&task->frame), &bide_default_context);
    bide_resume(&task->frame);
    while (!bide_done(&task->frame)) {
        waits++;
        bide_auto_event_set(&gate);
    }
}

/* ---- Expressions ---- */

struct pair {
    int first, second;
};

async struct pair pair_of(int first, int second)
{
    return (struct pair){await later(first), await later(second)};
}

static int sum_of_three(int a, int b, int c)
{
    return a * 100 + b * 10 + c;
}

async int expressions(int n)
{
    int i = 1, table[4] = {10, 20, 30, 40}, *p = table;
    struct pair pair = {1, 2};
    assert_int_equal(await later(1) + await later(2) * await later(3), 7);
    assert_int_equal(sum_of_three(noted(1), await later(noted(2)), noted(3)), 123);
    assert_string_equal(journal, "1 2 3 ");
    assert_int_equal(sum_of_three(i++, await later(i++), i++), 123);
    assert_int_equal(i, 4);
    assert_int_equal(table[await later(2)], 30);
    table[await later(1)] = await later(21);
    assert_int_equal(table[1], 21);
    *(p + await later(3)) += await later(2);
    assert_int_equal(table[3], 42);
    i = 10;
    i += await later(5);
    assert_int_equal(i, 15);
    assert_int_equal((await later(1), await later(2)), 2);
    assert_int_equal(await later(0) && await later(1), 0);
    assert_int_equal(await later(0) || await later(7), 1);
    assert_int_equal(await later(1) ? await later(5) : await later(6), 5);
    assert_int_equal(await later(0) ?: await later(6), 6);
    assert_int_equal(-await later(3), -3);
    assert_int_equal(!await later(3), 0);
    assert_int_equal((char)await later(257), 1);
    assert_int_equal((await pair_of(3, 4)).second, 4);
    pair = await pair_of(5, 6);
    assert_int_equal(pair.first * 10 + pair.second, 56);
    struct pair *where = &(struct pair){await later(7), 8};
    await later(0);
    assert_int_equal(where->first * 10 + where->second, 78);
    const char *word = (const char[]){"word"};
    await later(0);
    assert_string_equal(word, "word");
    int value = ({
        int inner = await later(3);
        inner *= 2;
        inner + await later(1);
    });
    assert_int_equal(value, 7);
    assert_int_equal(sizeof table / sizeof *table, 4);
    assert_string_equal(__func__, "expressions");
    /* operands to the left of an await keep their values */
    i = 1;
    int seen = i + ({
                   i = 100;
                   await later(5);
               });
    assert_int_equal(seen, 6);
    return n;
}

/* ---- Statements ---- */

async int statements(int n)
{
    int sum = 0;
    for (int i = await later(0); i < await later(5); i += await later(1)) {
        int sum_of_this = i;
        if (i == 1)
            continue;
        if (await later(i) == 4)
            break;
        sum += sum_of_this;
    }
    assert_int_equal(sum, 5);
    while (await later(sum) < 8)
        sum++;
    do {
        sum--;
        if (sum == 6)
            continue;
        await later(1);
    } while (await later(sum) > 5);
    assert_int_equal(sum, 5);
    for (int i = 0; i < 6; i++) {
        switch (await later(i)) {
            int in_switch;
        case 0:
            in_switch = await later(1);
            sum += in_switch;
            break;
        case 1 ... 2:
            sum += 10;
            /* fall through */
        case 3:
            sum += await later(100);
            if (i == 3)
                continue;
            break;
        default:
            sum += 1000;
        }
    }
    assert_int_equal(sum, 5 + 1 + 110 + 110 + 100 + 2000);
    int count = 0;
again:
    count += await later(1);
    if (count < 3)
        goto again;
    {
        int count = 50;
        await later(0);
        {
            int count = 60;
            await later(0);
            assert_int_equal(count, 60);
        }
        assert_int_equal(count, 50);
    }
    assert_int_equal(count, 3);
    if (await later(0))
        return -1;
    else if (await later(1))
        return n + await later(1);
    return -2;
}

/* ---- Declarations ---- */

typedef int numbers[3];

async int declarations(numbers by_pointer, const int constant, int (*call)(int, int, int))
{
    struct local {
        int a;
        struct {
            int b;
        } inner;
    } local = {1, {2}};
    enum { ONE = 1, TWO };
    typedef struct local local_type;
    local_type other = local;
    static int calls;
    const char text[] = "text", *const end = text + 4;
    char lines[][6] = {"first", "other"};
    int from[] = {[2] = 5, 6}, matrix[2][TWO] = {{1, 2}, {3, 4}};
    struct pair pairs[] = {{1, 2}, {.second = 4}};
    _Alignas(64) char aligned[8] = "aligned";
    __auto_type automatic = 5L;
    calls++;
    await later(0);
    assert_int_equal(local.a + local.inner.b + other.inner.b, 5);
    assert_int_equal(end - text, 4);
    assert_int_equal(sizeof text, 5);
    assert_string_equal(lines[1], "other");
    assert_int_equal(sizeof from / sizeof *from, 4);
    assert_int_equal(from[2] * 10 + from[3], 56);
    assert_int_equal(matrix[1][0], 3);
    assert_int_equal(pairs[1].second, 4);
    assert_int_equal((uintptr_t)aligned % 64, 0);
    assert_int_equal(sizeof automatic, sizeof(long));
    by_pointer[1] += constant;
    return call(calls, by_pointer[1], TWO);
}

async void nothing(int *counter)
{
    await later(0);
    ++*counter;
    if (*counter > 100)
        return;
    await later(0);
    ++*counter;
}

async int awaits_nothing(int n)
{
    int counter = 0;
    await nothing(&counter);
    n > 0 ? await nothing(&counter) : (void)await later(1);
    return counter;
}

static inline async long long wide(long long n)
{
    return n + await later(1);
}

async const char *pointer(const char *text)
{
    return text + await later(1);
}

async int types(int n)
{
    assert_true(await wide(1LL << 40) == (1LL << 40) + 1);
    assert_string_equal(await pointer("abc"), "bc");
    return n;
}

/* ---- Groups and operations ---- */

static const bide_context_key(int) number_key = BIDE_CONTEXT_KEY("number");

async int sees(const int *number)
{
    assert_ptr_equal(bide_context_get(bide_this_context(), &number_key), number);
    return 0;
}

async int several(int n)
{
    assert_int_equal(await bide_with_value(&number_key, &n, sees(&n)), 0);
    assert_int_equal(await sees(NULL), 0);
    bide_auto_event_waiter waiter;
    assert_int_equal(await all(later(1), later(2), (void)pair_of(1, 2)), 0);
    assert_int_equal(await any(later(1), bide_auto_event_wait(&gate)), 0);
    assert_int_equal(await bide_auto_event_wait(&waiter, &gate), 0);
    assert_int_equal(await bide_with_deadline(BIDE_FOREVER, later(1)), 1);
    bide_stop_source source;
    bide_stop_source_init(&source);
    assert_int_equal(await bide_with_stop(&source, later(1)), 1);
    return n;
}

/* ---- async_created and async_sized ---- */

async_created int odd(int n);
async_sized(192) static int in_given_room(int n);

async_created int even(int n)
{
    await later(0);
    return n == 0 ? 1 : await odd(n - 1);
}

async_created int odd(int n)
{
    return n == 0 ? 0 : await even(n - 1);
}

async_created static void visit(int depth, int *count)
{
    ++*count;
    if (depth == 0)
        return;
    await visit(depth - 1, count);
    await all(visit(depth - 1, count), visit(depth - 1, count));
}

/* Counts the allocations, and fails after `left` of them. */
typedef struct counting_allocator {
    bide_allocator allocator;
    int live, left;
} counting_allocator;

static void *counted_allocate(bide_allocator *allocator, size_t size)
{
    counting_allocator *self = (counting_allocator *)allocator;
    if (self->left-- <= 0)
        return NULL;
    self->live++;
    return malloc(size);
}

static void counted_free(bide_allocator *allocator, void *memory, size_t size)
{
    (void)size;
    ((counting_allocator *)allocator)->live--;
    free(memory);
}

static counting_allocator new_allocator(int left)
{
    return (counting_allocator){{counted_allocate, counted_free}, 0, left};
}

async int created(bide_allocator *allocator, int n)
{
    int count = 0;
    (void)allocator;
    await visit(3, &count);
    int is_even = await even(n);
    return is_even < 0 ? is_even : is_even * 1000 + count + await in_given_room(n);
}

async int in_given_room(int n)
{
    char room[64] = "given";
    int waited = await later(n);
    return waited + room[5];
}

/* The last use of a pointer is in an expression with a block that awaits. */
async int through_pointers(int value)
{
    int first = 1, second = 2, *to_first = &first, **to_to_first;
    int *to_second = &second;
    to_to_first = &to_first;
    *to_second = ({
        await later(value);
        value + 1;
    });
    **to_to_first += ({
        int *inner = &second;
        *inner += await later(1);
        value;
    });
    return first * 100 + second;
}

/* ---- Deferred statements ---- */

static void put_away(int *value)
{
    noted(*value);
    assert_int_not_equal(*value, 0);
    *value = 0;
}

#define PUT_AWAY __attribute__((cleanup(put_away), unused))

async int deferring(int way)
{
    PUT_AWAY int outer = 1;
    await later(0);
    for (int i = 0; i < 3; i++) {
        PUT_AWAY int in_loop = 20 + i;
        defer noted(30 + i);
        await later(0);
        if (way == 1 && i == 1)
            break;
        if (way == 2 && i == 1)
            continue;
        if (way == 3 && i == 1)
            goto out;
        if (way == 4 && i == 1)
            return await later(4);
        if (way == 5 && i == 1) {
            PUT_AWAY int native = 9;
            return 5;
        }
        PUT_AWAY int at_end = 40 + i;
        await later(0);
    }
    defer
    {
        note("late");
    }
    await later(0);
out:
    note("out");
    return way;
}

static void test_expressions(void **state)
{
    (void)state;
    assert_int_equal(RUN(expressions, 9), 9);
    printf("# %u waits\n", waits);
    assert_true(waits > 30);
}

static void test_blocks_in_expressions(void **state)
{
    (void)state;
    assert_int_equal(RUN(through_pointers, 5), 607);
}

static void test_statements(void **state)
{
    (void)state;
    assert_int_equal(RUN(statements, 9), 10);
}

static void test_declarations(void **state)
{
    (void)state;
    numbers list = {1, 2, 3};
    assert_int_equal(RUN(declarations, list, 5, sum_of_three), 172);
    assert_int_equal(RUN(declarations, list, 1, sum_of_three), 282);
}

static void test_results(void **state)
{
    (void)state;
    assert_int_equal(RUN(awaits_nothing, 1), 4);
    assert_int_equal(RUN(awaits_nothing, 0), 2);
    assert_int_equal(RUN(types, 3), 3);
    assert_int_equal(RUN(several, 3), 3);
}

static void test_created(void **state)
{
    (void)state;
    counting_allocator allocator = new_allocator(1000);
    assert_int_equal(RUN(created, &allocator.allocator, 10), 1000 + 40 + 10);
    assert_int_equal(allocator.live, 0);
    assert_int_equal(allocator.left, 1000 - 40 - 11);
    /* each allocation fails in turn, from the last to the first */
    for (int left = 50; left >= 40; left--) {
        allocator = new_allocator(left);
        assert_int_equal(RUN(created, &allocator.allocator, 10), -ENOMEM);
        assert_int_equal(allocator.live, 0);
    }
    /* destroyed while it waits */
    static struct async_created frame;
    for (unsigned waits_before = 0; waits_before < 5; waits_before++) {
        allocator = new_allocator(1000);
        set_gate(false);
        bide_await_later(async_created(&frame, &allocator.allocator, 10));
        frame.task.frame.context = &bide_default_context;
        bide_resume(&frame.task.frame);
        for (unsigned n = 0; n < waits_before; n++)
            bide_auto_event_set(&gate);
        assert_false(bide_done(&frame.task.frame));
        assert_true(allocator.live > 0);
        bide_destroy(&frame.task.frame);
        assert_int_equal(allocator.live, 0);
    }
}

static const char *const ways[] = {
    "40 30 20 41 31 21 42 32 22 out late 1 ",
    "40 30 20 31 21 late 1 ",
    "40 30 20 31 21 42 32 22 late 1 ",
    "40 30 20 31 21 out 1 ",
    "40 30 20 31 21 1 ",
    "40 30 20 9 31 21 1 ",
};

static void test_deferred(void **state)
{
    (void)state;
    for (int way = 0; way < 6; way++) {
        assert_int_equal(RUN(deferring, way), way);
        if (way == 1 || way == 2)
            assert_non_null(strstr(journal, "out"));
        char expected[128], seen[128] = "";
        snprintf(expected, sizeof expected, "%s", ways[way]);
        /* "out" is before the deferred statements of the function's end */
        for (char *word = strtok(journal, " "); word != NULL; word = strtok(NULL, " ")) {
            if (way == 0 || way == 3 || strcmp(word, "out") != 0) {
                strcat(seen, word);
                strcat(seen, " ");
            }
        }
        assert_string_equal(seen, expected);
    }
}

/* ---- Operations with a size_t count: the value of their await is a long ---- */

async int reads_to_the_end(bide_reader *reader)
{
    char letters[4];
    int count = 0;
    while (await bide_reader_read(reader, letters, sizeof letters) > 0)
        count++;
    assert_true(await bide_reader_read(reader, letters, sizeof letters) < 0);
    assert_true(await bide_reader_read(reader, letters, sizeof letters) + 1 < 1);
    return count;
}

static void test_counts(void **state)
{
    (void)state;
    char memory[16], buffer[16];
    bide_memory_pipe pipe;
    bide_memory_end end = {&pipe, NULL}, other = {NULL, &pipe};
    bide_stream_operation operation;
    bide_reader reader;
    bide_memory_pipe_init(&pipe, memory, sizeof memory);
    bide_sync_wait(
        bide_stream_write(&operation, bide_memory_stream(&other), "ten bytes!", 10));
    bide_memory_pipe_destroy(&pipe);
    bide_reader_init(&reader, bide_memory_stream(&end), buffer, sizeof buffer);
    assert_int_equal(RUN(reads_to_the_end, &reader), 3);
}

/* ---- Destruction and cancellation at each await ---- */

/* Runs `deferring` to its n-th suspension. False: it has fewer. */
static bool run_to_wait(struct async_deferring *frame, unsigned n, const bide_context *context)
{
    set_gate(false);
    journal[0] = 0;
    memset(frame, 0xd5, sizeof *frame);
    bide_await_later(async_deferring(frame, 0));
    bide_frame_init_in(&frame->task.frame, bide_frame_point(&frame->task.frame), context);
    bide_resume(&frame->task.frame);
    for (; n > 0 && !bide_done(&frame->task.frame); n--) {
        bide_auto_event_set(&gate);
    }
    return !bide_done(&frame->task.frame);
}

static void test_destroyed_at_each_await(void **state)
{
    (void)state;
    static struct async_deferring frame;
    static const char *const expected[] = {"1 ", "30 20 1 ", "40 30 20 1 ", "40 30 20 31 21 1 "};
    unsigned n = 0;
    for (; run_to_wait(&frame, n, &bide_default_context); n++) {
        bide_destroy(&frame.task.frame);
        if (n < sizeof expected / sizeof *expected)
            assert_string_equal(journal, expected[n]);
        assert_non_null(strstr(journal, "1 "));
    }
    assert_int_equal(n, 8);
}

static void test_stopped_at_each_await(void **state)
{
    (void)state;
    static struct async_deferring frame;
    unsigned n = 0;
    for (;; n++) {
        bide_stop_source source;
        bide_stop_source_init(&source);
        bide_context context = bide_default_context;
        context.stop = &source;
        if (!run_to_wait(&frame, n, &context))
            break;
        bide_stop_request(&source);
        /* each further wait completes at once, and the function runs to its end */
        assert_true(bide_done(&frame.task.frame));
        assert_int_equal(frame.result, 0);
        assert_non_null(strstr(journal, "42 32 22 out late 1 "));
    }
    assert_int_equal(n, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_blocks_in_expressions),
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_created),
        cmocka_unit_test(test_deferred),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_destroyed_at_each_await),
        cmocka_unit_test(test_stopped_at_each_await),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
