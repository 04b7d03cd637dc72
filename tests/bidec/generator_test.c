/*
 * Generators: their values; each exit from a loop over a generator; destruction and cancellation of
 * generator and consumer at each await. Translated by bidec.
 */
#include "journal.h"
#include "testing.h"

#include "bide/async.h"
#include "bide/auto_event.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"

static bide_auto_event gate;
async int later(int value)
{
    int status = await bide_auto_event_wait(&gate);
    return status < 0 ? status : value;
}

/* ---- Generators ---- */

/* Yields the squares below count, and fails at `bad`. Awaits before each value if `awaits` is set. */
async_generator(long) int squares(int count, int bad, bool waits)
{
    defer note("end");
    for (int i = 0; i < count; i++) {
        if (i == bad)
            return -EIO;
        if (waits) {
            int status = await later(i);
            if (status < 0)
                return status;
        }
        yield (long)i * i;
    }
    return 0;
}

struct item {
    const int number;
    const char *name;
    char more[20];
};

async_generator(struct item) void items(int count)
{
    struct item last = {-1, "last", "of all"};
    while (count-- > 0)
        yield (struct item){count, "item", {(char)('a' + count)}};
    yield last;
}

/* A generator that consumes other generators. */
async_generator(int) void sums(void)
{
    async_for (const struct item item, items(await later(2))) {
        long sum = 0;
        async_for (long square, squares(item.number + 3, -1, true))
            sum += square;
        yield await later((int)sum) + item.number * 1000;
    }
}

/* Loops over generators of other files. */
async_sized(256) async_generator(const char *) int words(const char *text);

async_generator(const char *) int words(const char *text)
{
    static char word[16];
    size_t length = 0;
    for (;; text++) {
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

/* ---- Consumers ---- */

enum way { TO_THE_END, BREAK, RETURN, GOTO, CONTINUE, FAILURE, WAYS };

async int consume(enum way way, bool waits)
{
    int status = 7;
    long sum = 0;
    defer note("consumed");
    async_for (long square, squares(5, way == FAILURE ? 3 : -1, waits), status) {
        defer note("turn");
        if (square == 4) {
            if (way == BREAK)
                break;
            if (way == RETURN)
                return -200;
            if (way == GOTO)
                goto out;
            if (way == CONTINUE)
                continue;
        }
        int same = await later((int)square);
        if (same < 0)
            return same;
        sum += same;
        note_number(square);
    }
    note("after");
out:
    return status < 0 ? status : (int)sum * 10 + status;
}

async int other_loops(void)
{
    int sum = 0;
    switch (sum) {
    case 0:
        async_for (int value, sums())
            sum = sum * 10 + value;
    }
    async_for (const char *word, words(" ab  c def"))
        note(word);
    do
        async_for (long square, squares(3, -1, false))
            if (square == 1)
                break;
            else
                sum += 1;
    while (sum < 4);
    return sum;
}

/* A generator whose frame is provided by the caller, and a handwritten generator. */
struct by_hand {
    bide_async_generator generator;
    int value;
};

bide_async_generator_coroutine(by_hand_body)
{
    bide_begin(by_hand_body, struct by_hand *self);
    for (self->value = 10; self->value < 13; self->value++)
        bide_yield(&self->value);
    bide_return(-EPROTO);
    bide_end();
}

async int by_pointer(void)
{
    struct async_squares mine;
    struct by_hand hand;
    int sum = 0;
    async_for (long *square, async_squares(&mine, 4, 3, true))
        sum += (int)*square;
    assert_int_equal(bide_async_generator_error(&mine.generator), -EIO);
    assert_int_equal(mine.result, -EIO);
    async_for (const int *value, bide_async_generator_init(&hand.generator, &by_hand_body))
        sum += *value;
    return sum * 10 + (bide_async_generator_error(&hand.generator) == -EPROTO);
}

/* A handwritten consumer. */
struct hand_consumer {
    bide_task task;
    bide_async_generator_next_operation next;
    struct async_squares squares;
    long sum;
};

bide_coroutine(hand_consumer_body)
{
    bide_begin(hand_consumer_body, struct hand_consumer *self);
    self->sum = 0;
    bide_for_await(&self->next, async_squares(&self->squares, 4, -1, true))
    {
        self->sum += *(long *)self->next.value;
    }
    bide_end();
}

/* ---- Tests ---- */

static unsigned run(bide_awaiter *awaiter, bide_frame *frame)
{
    unsigned waits = 0;
    bide_await_later(awaiter);
    bide_frame_init_in(frame, bide_frame_point(frame), &bide_default_context);
    bide_auto_event_init(&gate, false);
    journal[0] = 0;
    for (bide_resume(frame); !bide_done(frame); bide_auto_event_set(&gate))
        waits++;
    return waits;
}

#define RUN(name, ...)                                             \
    ({                                                             \
        static struct async_##name frame;                          \
        memset(&frame, 0xd5, sizeof frame);                        \
        run(async_##name(&frame, ##__VA_ARGS__), &frame.task.frame); \
        frame.result;                                              \
    })

static const struct {
    int result;
    const char *journal;
} ways[WAYS] = {
    [TO_THE_END] = {300, "0 turn 1 turn 4 turn 9 turn 16 turn end after consumed "},
    [BREAK] = {17, "0 turn 1 turn turn end after consumed "},
    [RETURN] = {-200, "0 turn 1 turn turn end consumed "},
    [GOTO] = {17, "0 turn 1 turn turn end consumed "},
    [CONTINUE] = {260, "0 turn 1 turn turn 9 turn 16 turn end after consumed "},
    [FAILURE] = {-EIO, "0 turn 1 turn 4 turn end after consumed "},
};

static void test_each_way_out(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        for (int way = 0; way < WAYS; way++) {
            assert_int_equal(RUN(consume, (enum way)way, waits), ways[way].result);
            assert_string_equal(journal, ways[way].journal);
        }
    }
}

static void test_other_loops(void **state)
{
    (void)state;
    assert_int_equal(RUN(other_loops), ((1000 + 14) * 10 + 5) * 10 + (-1000 + 1) + 1);
    assert_non_null(strstr(journal, "ab c def"));
}

static void test_by_pointer(void **state)
{
    (void)state;
    assert_int_equal(RUN(by_pointer), (0 + 1 + 4 + 10 + 11 + 12) * 10 + 1);
}

static void test_consumer_by_hand(void **state)
{
    (void)state;
    static struct hand_consumer consumer;
    assert_int_equal(run(bide_task_init(&consumer.task, &hand_consumer_body), &consumer.task.frame), 4);
    assert_int_equal(consumer.sum, 14);
}

/* Runs `consume` to its n-th suspension. False: it has fewer. */
static bool run_to_wait(struct async_consume *frame, unsigned n, const bide_context *context)
{
    bide_auto_event_init(&gate, false);
    journal[0] = 0;
    memset(frame, 0xd5, sizeof *frame);
    bide_await_later(async_consume(frame, TO_THE_END, true));
    bide_frame_init_in(&frame->task.frame, bide_frame_point(&frame->task.frame), context);
    for (bide_resume(&frame->task.frame); n > 0 && !bide_done(&frame->task.frame); n--)
        bide_auto_event_set(&gate);
    return !bide_done(&frame->task.frame);
}

static unsigned count(const char *word)
{
    unsigned found = 0;
    for (const char *p = journal; (p = strstr(p, word)) != NULL; p++)
        found++;
    return found;
}

static void test_destroyed_at_each_await(void **state)
{
    (void)state;
    static struct async_consume frame;
    unsigned n = 0;
    for (; run_to_wait(&frame, n, &bide_default_context); n++) {
        bide_destroy(&frame.task.frame);
        assert_int_equal(count("end "), 1);
        assert_int_equal(count("consumed "), 1);
        assert_int_equal(count("turn "), (n + 1) / 2);
        memset(&frame, 0xd5, sizeof frame);
        bide_auto_event_set(&gate);
    }
    assert_int_equal(n, 10);
}

static void test_stopped_at_each_await(void **state)
{
    (void)state;
    static struct async_consume frame;
    for (unsigned n = 0; n < 10; n++) {
        bide_stop_source source;
        bide_stop_source_init(&source);
        bide_context context = bide_default_context;
        context.stop = &source;
        assert_true(run_to_wait(&frame, n, &context));
        bide_stop_request(&source);
        assert_true(bide_done(&frame.task.frame));
        assert_int_equal(frame.result, -ECANCELED);
        assert_int_equal(count("end "), 1);
        assert_int_equal(count("consumed "), 1);
    }
}

static void test_generator_that_is_never_asked(void **state)
{
    (void)state;
    struct async_squares frame;
    memset(&frame, 0xd5, sizeof frame);
    journal[0] = 0;
    bide_async_generator_destroy(async_squares(&frame, 3, -1, false));
    assert_string_equal(journal, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_way_out),
        cmocka_unit_test(test_other_loops),
        cmocka_unit_test(test_by_pointer),
        cmocka_unit_test(test_consumer_by_hand),
        cmocka_unit_test(test_destroyed_at_each_await),
        cmocka_unit_test(test_stopped_at_each_await),
        cmocka_unit_test(test_generator_that_is_never_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
