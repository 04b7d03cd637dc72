/*
 * generator and recursive_generator: their values are those of the same loops in plain C; each exit
 * from a loop over them; errors, frames that are created, consumers in plain C. Translated by bidec.
 */
#include "journal.h"
#include "testing.h"

#include "bide/async.h"
#include "bide/auto_event.h"
#include "bide/handle.h"
#include "bide/sync_wait.h"

/* ---- Generators ---- */

generator(long) int fibonacci(int count)
{
    long a = 0, b = 1;
    defer note("end");
    for (int i = 0; i < count; i++) {
        if (i == 80)
            return -ERANGE;
        yield a;
        long next = a + b;
        a = b;
        b = next;
    }
    return 0;
}

struct item {
    const int number;
    char name[12];
};

static generator(struct item) void items(int count)
{
    struct item item = {7, "seven"};
    for (; count > 1; count--)
        yield(struct item){count, {(char)('a' + count)}};
    yield item;
}

/* A generator that consumes others. */
generator(double) void sums(int count)
{
    async_for(const struct item item, items(count))
    {
        double sum = 0;
        async_for(long one, fibonacci(item.number)) sum += (double)one;
        yield sum + 0.5;
    }
}

/* One that only fails, and one whose loop passes an error on. */
generator(int) void fails(int error)
{
    if (error != 0)
        try async_for(long one, fibonacci(100))(void) one;
    yield 1;
}

async_sized(256) generator(const char *) int words(const char *text);

/* ---- Recursive generators ---- */

struct node {
    struct node *left, *right;
    int key;
};

async_created recursive_generator(int) int walk(const struct node *node, int bad)
{
    if (node == NULL)
        return 0;
    defer note_number(node->key);
    yield_from walk(node->left, bad);
    if (node->key == bad)
        return -EIO;
    yield node->key;
    yield_from walk(node->right, bad);
    return 0;
}

recursive_generator(int) void counts(int first, int count)
{
    while (count-- > 0)
        yield first++;
}

recursive_generator(int) void both(int n)
{
    yield - 1;
    yield_from counts(n, 2);
    for (int i = 0; i < 2; i++) {
        yield_from counts(10 * n, i);
        yield_from counts(100 * n, 1);
    }
    yield - 2;
}

recursive_generator(int) void by_pointer(bide_recursive_generator *other)
{
    yield_from other;
    yield 5;
}

/* ---- Consumers ---- */

static long plain_sum(int count)
{
    long sum = 0;
    async_frame(fibonacci) frame;
    bide_for (long *, one, async_fibonacci(&frame, count))
        sum += *one;
    return bide_generator_error(&frame.generator) < 0 ? bide_generator_error(&frame.generator)
                                                      : sum;
}

async long sum_of(int count, bide_auto_event *gate)
{
    long sum = 0;
    int status = 1;
    async_for(long one, fibonacci(count), status)
    {
        sum += one;
        if (gate != NULL)
            await bide_auto_event_wait(gate);
    }
    return status < 0 ? status : sum;
}

enum way { TO_THE_END, BREAK, RETURN, GOTO, CONTINUE, WAYS };

async int leave(enum way way)
{
    int sum = 0;
    defer note("left");
    async_for(long one, fibonacci(6))
    {
        defer note("turn");
        if (one == 2) {
            if (way == BREAK)
                break;
            if (way == RETURN)
                return -200;
            if (way == GOTO)
                goto out;
            if (way == CONTINUE)
                continue;
        }
        sum += (int)one;
    }
    note("after");
out:
    return sum;
}

async int number_of(int count)
{
    double sum = 0;
    async_for(double one, sums(count)) sum += one;
    return (int)(sum * 10);
}

async int failing(int error)
{
    int status = 1, count = 0;
    async_for(int one, fails(error), status) count += one;
    return status < 0 ? status : count;
}

async int in_order(bide_allocator *allocator, const struct node *root, int bad, int most)
{
    int status = 0, digits = 0;
    (void)allocator; /* named by its type */
    async_for(int key, walk(root, bad), status)
    {
        digits = digits * 10 + key;
        if (--most == 0)
            break;
    }
    return status < 0 ? status : digits;
}

async int nested(void)
{
    int sum = 0;
    async_for(int one, both(3))
    {
        note_number(one);
        sum += one;
    }
    return sum;
}

async_generator(int) void through(int n)
{
    async_for(int one, both(n)) yield one;
}

async int through_async(void)
{
    int sum = 0;
    async_for(int one, through(3)) sum += one;
    async_for(const char *word, words("a bc def")) note(word);
    return sum;
}

generator(const char *) int words(const char *text)
{
    static char word[16];
    for (size_t length = 0;; text++) {
        if (*text != ' ' && *text != 0) {
            word[length++] = *text;
            continue;
        }
        word[length] = 0;
        if (length > 0)
            yield word;
        length = 0;
        if (*text == 0)
            return 0;
    }
}

/* The words are names elsewhere. */
typedef struct {
    int generator, yield_from;
} names;

static int generator_of(const names *names)
{
    int generator = names->generator, yield_from = names->yield_from;
    return generator * 10 + yield_from;
}

/* ---- Tests ---- */

#define RUN(name, ...)                                             \
    ({                                                             \
        static struct async_##name frame;                          \
        memset(&frame, 0xd5, sizeof frame);                        \
        journal[0] = 0;                                            \
        (void)bide_sync_wait(async_##name(&frame, ##__VA_ARGS__)); \
        frame.result;                                              \
    })

static long sum_to(int count)
{
    long a = 0, b = 1, sum = 0;
    for (int i = 0; i < count; i++) {
        if (i == 80)
            return -ERANGE;
        sum += a;
        long next = a + b;
        a = b;
        b = next;
    }
    return sum;
}

static void test_values(void **state)
{
    (void)state;
    static const int counts_of[] = {0, 1, 2, 3, 10, 40};
    for (size_t i = 0; i < sizeof counts_of / sizeof *counts_of; i++) {
        assert_int_equal(plain_sum(counts_of[i]), sum_to(counts_of[i]));
        assert_int_equal(RUN(sum_of, counts_of[i], NULL), sum_to(counts_of[i]));
    }
    assert_int_equal(RUN(number_of, 4), (int)((4 + 0.5 + 2 + 0.5 + 1 + 0.5 + 20 + 0.5) * 10));
    assert_int_equal(generator_of(&(names){1, 2}), 12);
}

static void test_errors(void **state)
{
    (void)state;
    assert_int_equal(RUN(failing, 0), 1);
    assert_string_equal(journal, "");
    assert_int_equal(RUN(failing, 1), -ERANGE);
    assert_string_equal(journal, "end ");
    async_frame(fibonacci) frame;
    unsigned count = 0;
    bide_for (long *, one, async_fibonacci(&frame, 100))
        count += *one >= 0;
    assert_int_equal(count, 80);
    assert_int_equal(bide_generator_error(&frame.generator), -ERANGE);
    assert_int_equal(frame.result, -ERANGE);
}

static void test_each_way_out(void **state)
{
    (void)state;
    static const struct {
        int result;
        const char *journal;
    } ways[WAYS] = {
        [TO_THE_END] = {12, "turn turn turn turn turn turn end after left "},
        [BREAK] = {2, "turn turn turn turn end after left "},
        [RETURN] = {-200, "turn turn turn turn end left "},
        [GOTO] = {2, "turn turn turn turn end left "},
        [CONTINUE] = {10, "turn turn turn turn turn turn end after left "},
    };
    for (int way = 0; way < WAYS; way++) {
        assert_int_equal(RUN(leave, (enum way)way), ways[way].result);
        assert_string_equal(journal, ways[way].journal);
    }
}

static void test_consumer_that_waits(void **state)
{
    (void)state;
    static struct async_sum_of frame;
    bide_auto_event gate;
    for (int destroyed = 0; destroyed < 4; destroyed++) {
        bide_auto_event_init(&gate, false);
        journal[0] = 0;
        memset(&frame, 0xd5, sizeof frame);
        bide_await_later(async_sum_of(&frame, 5, &gate));
        bide_frame *of = &frame.task.frame;
        bide_frame_init_in(of, bide_frame_point(of), &bide_default_context);
        bide_resume(of);
        for (int i = 0; i < destroyed; i++)
            bide_auto_event_set(&gate);
        assert_string_equal(journal, "");
        bide_destroy(of);
        assert_string_equal(journal, "end ");
    }
    bide_auto_event_init(&gate, false);
    bide_await_later(async_sum_of(&frame, 5, &gate));
    bide_frame *of = &frame.task.frame;
    bide_frame_init_in(of, bide_frame_point(of), &bide_default_context);
    for (bide_resume(of); !bide_done(of);)
        bide_auto_event_set(&gate);
    assert_int_equal(frame.result, 7);
}

static void test_recursion(void **state)
{
    (void)state;
    static BIDE_ALIGNAS(16) char memory[8192];
    struct node one = {NULL, NULL, 1}, three = {NULL, NULL, 3}, two = {&one, &three, 2},
                five = {NULL, NULL, 5}, four = {&two, &five, 4};
    bide_arena arena;
    bide_arena_init(&arena, memory, sizeof memory);
    assert_int_equal(RUN(in_order, &arena.allocator, &four, 0, 0), 12345);
    assert_string_equal(journal, "1 3 2 5 4 ");
    assert_int_equal(RUN(in_order, &arena.allocator, &four, 3, 0), -EIO);
    assert_string_equal(journal, "1 3 2 4 ");
    assert_int_equal(RUN(in_order, &arena.allocator, &four, 0, 3), 123);
    assert_string_equal(journal, "1 3 2 4 "); /* destroyed from the inside */
    bide_arena_init(&arena, memory, 16);
    assert_int_equal(RUN(in_order, &arena.allocator, &four, 0, 0), -ENOMEM);
    async_frame(walk) frame;
    int digits = 0;
    bide_for_recursive (int *, key, async_walk(&frame, &four, 0))
        digits = digits * 10 + *key;
    assert_int_equal(digits, 12345);
}

static void test_nested(void **state)
{
    (void)state;
    assert_int_equal(RUN(nested), -1 + 3 + 4 + 300 + 30 + 300 - 2);
    assert_string_equal(journal, "-1 3 4 300 30 300 -2 ");
    async_frame(by_pointer) outer;
    async_frame(counts) inner;
    int digits = 0;
    bide_for_recursive (int *, one, async_by_pointer(&outer, async_counts(&inner, 1, 3)))
        digits = digits * 10 + *one;
    assert_int_equal(digits, 1235);
    assert_int_equal(RUN(through_async), -1 + 3 + 4 + 300 + 30 + 300 - 2);
    assert_string_equal(journal, "a bc def ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),       cmocka_unit_test(test_errors),
        cmocka_unit_test(test_each_way_out), cmocka_unit_test(test_consumer_that_waits),
        cmocka_unit_test(test_recursion),    cmocka_unit_test(test_nested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
