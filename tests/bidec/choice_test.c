/*
 * async_select: the statement of the operation that could be had runs, and no other one; exits from
 * the statements; waits that end without a winner. Translated by bidec.
 */
#include "journal.h"
#include "testing.h"

#include "bide/async.h"
#include "bide/channel.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/mutex.h"
#include "bide/stop.h"

typedef bide_channel(int) numbers;

/* Adds up what comes from two channels, until the event is set; the statements leave in all ways. */
async int add_up(numbers *plus, numbers *minus, bide_event *stop)
{
    int number, sum = 0, status = 7;
    defer note("left");
    for (;;) {
        defer note("turn");
        async_select(status)
        {
            when(bide_channel_recv(plus, &number))
            {
                defer note_number(number);
                if (number == 100)
                    continue;
                if (number == 101)
                    break;
                if (number == 102)
                    return -102;
                if (number == 103)
                    goto out;
                sum += number;
            }
            when(bide_channel_recv(minus, &number)) sum -= number;
            when(bide_event_wait(stop)) break;
        }
        if (status < 0) {
            note_number(status);
            return sum;
        }
    }
    note("after");
out:
    return sum;
}

/* Awaits in the statements, and a select in a select. */
async int nested(bide_event *outer, bide_event *inner, bide_event *other)
{
    int status = 0, result = 0;
    if (outer != NULL)
        async_select(status)
        {
            when(bide_event_wait(outer)) async_select(status)
            {
                when(bide_event_wait(inner))
                {
                    long kept = 5;
                    await bide_event_wait(other);
                    result += (int)kept;
                }
                when(bide_event_wait(other)) result += 10;
            }
            when(bide_event_wait(other)) result += 100;
        }
    else
        result = 1;
    return result + status * 1000;
}

/* The status passed on. */
async int passes_on(numbers *from, bide_event *stop)
{
    int number;
    defer note("left");
    for (;;) {
        try async_select()
        {
            when(bide_event_wait(stop)) return 1;
            when(bide_channel_recv(from, &number)) note_number(number);
        }
    }
}

/* All statements return: with a try nothing follows. */
async int returns(bide_event *first, bide_event *second)
{
    try async_select()
    {
        when(bide_event_wait(first)) return 1;
        when(bide_event_wait(second)) return 2;
    }
}

/* Key and place of an operation of one's own. */
async int locks(bide_mutex *mutex, bide_event *stop)
{
    struct {
        int status[2];
    } all = {{0, 0}};
    int i = 1;
    bide_mutex_waiter key;
    async_select(all.status[i])
    {
        when(bide_mutex_lock(&key, mutex))
        {
            note("locked");
            bide_mutex_unlock(&key);
        }
        when(bide_event_wait(stop)) note("stopped");
    }
    return all.status[0] * 10 + all.status[1];
}

/* The words are names elsewhere. */
async int names(int when)
{
    int async_select = when;
    return async_select + when;
}

/* ---- Tests ---- */

static void start_in(bide_awaiter *awaiter, bide_frame *frame, const bide_context *context)
{
    journal[0] = 0;
    bide_await_later(awaiter);
    bide_frame_init_in(frame, bide_frame_point(frame), context);
    bide_resume(frame);
}

#define START(name, ...)              \
    memset(&name, 0xd5, sizeof name); \
    start_in(async_##name(&name, ##__VA_ARGS__), &name.task.frame, &bide_default_context)

struct channels {
    numbers plus, minus;
    bide_channel_slot(int) memory[2][4];
    bide_event stop;
};

static void make(struct channels *c)
{
    bide_channel_init(&c->plus, c->memory[0], 4);
    bide_channel_init(&c->minus, c->memory[1], 4);
    bide_event_init(&c->stop, false);
}

static void give(numbers *to, int number)
{
    assert_int_equal(bide_channel_try_send(to, &number), 0);
}

static void test_one_statement_runs(void **state)
{
    (void)state;
    struct channels c;
    struct async_add_up add_up;
    make(&c);
    START(add_up, &c.plus, &c.minus, &c.stop);
    assert_string_equal(journal, "");
    give(&c.plus, 5);
    assert_string_equal(journal, "5 turn ");
    give(&c.minus, 2);
    assert_string_equal(journal, "5 turn turn ");
    give(&c.plus, 100);
    give(&c.plus, 10);
    assert_string_equal(journal, "5 turn turn 100 turn 10 turn ");
    assert_false(bide_done(&add_up.task.frame));
    bide_event_set(&c.stop);
    assert_true(bide_done(&add_up.task.frame));
    assert_int_equal(add_up.result, 13);
    assert_string_equal(journal, "5 turn turn 100 turn 10 turn turn after left ");
}

static void test_exits(void **state)
{
    (void)state;
    static const struct {
        int number, result;
        const char *journal;
    } exits[] = {
        {101, 3, "3 turn 101 turn after left "},
        {102, -102, "3 turn 102 turn left "},
        {103, 3, "3 turn 103 turn left "},
    };
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++) {
        struct channels c;
        struct async_add_up add_up;
        make(&c);
        give(&c.plus, 3);
        START(add_up, &c.plus, &c.minus, &c.stop);
        give(&c.plus, exits[i].number);
        assert_true(bide_done(&add_up.task.frame));
        assert_int_equal(add_up.result, exits[i].result);
        assert_string_equal(journal, exits[i].journal);
    }
}

/* The operation of a closed channel can be had: its statement runs, with the status. */
static void test_closed(void **state)
{
    (void)state;
    struct channels c;
    struct async_passes_on passes_on;
    make(&c);
    START(passes_on, &c.plus, &c.stop);
    give(&c.plus, 6);
    bide_channel_close(&c.plus);
    assert_true(bide_done(&passes_on.task.frame));
    assert_int_equal(passes_on.result, -EPIPE);
    assert_int_equal(passes_on.task.frame.error, -EPIPE);
    assert_string_equal(journal, "6 left ");
}

static void test_stopped(void **state)
{
    (void)state;
    for (int destroys = 0; destroys < 2; destroys++) {
        struct channels c;
        struct async_add_up add_up;
        struct async_passes_on passes_on;
        bide_stop_source source;
        make(&c);
        bide_stop_source_init(&source);
        bide_context context = bide_default_context;
        context.stop = &source;
        start_in(async_passes_on(&passes_on, &c.plus, &c.stop), &passes_on.task.frame, &context);
        start_in(async_add_up(&add_up, &c.plus, &c.minus, &c.stop), &add_up.task.frame, &context);
        if (destroys) {
            bide_destroy(&add_up.task.frame);
            bide_destroy(&passes_on.task.frame);
            assert_string_equal(journal, "turn left left ");
            give(&c.plus, 1);
            bide_event_set(&c.stop);
            continue;
        }
        bide_stop_request(&source);
        assert_true(bide_done(&add_up.task.frame));
        assert_true(bide_done(&passes_on.task.frame));
        assert_int_equal(add_up.result, 0);
        assert_int_equal(passes_on.result, -ECANCELED);
        char cancelled[16];
        snprintf(cancelled, sizeof cancelled, "%d ", -ECANCELED);
        assert_non_null(strstr(journal, cancelled));
    }
}

static void test_nested(void **state)
{
    (void)state;
    static const struct {
        const char *order;
        int result;
    } cases[] = {{"oix", 5}, {"ox", 10}, {"x", 100}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bide_event outer, inner, other;
        struct async_nested nested;
        bide_event_init(&outer, false);
        bide_event_init(&inner, false);
        bide_event_init(&other, false);
        START(nested, &outer, &inner, &other);
        for (const char *p = cases[i].order; *p != 0; p++) {
            assert_false(bide_done(&nested.task.frame));
            bide_event_set(*p == 'o' ? &outer : *p == 'i' ? &inner : &other);
        }
        assert_true(bide_done(&nested.task.frame));
        assert_int_equal(nested.result, cases[i].result);
    }
}

static void test_each_of_two(void **state)
{
    (void)state;
    for (int second = 0; second < 2; second++) {
        bide_event events[2];
        struct async_returns returns;
        bide_event_init(&events[0], second == 0);
        bide_event_init(&events[1], second == 1);
        START(returns, &events[0], &events[1]);
        assert_true(bide_done(&returns.task.frame));
        assert_int_equal(returns.result, 1 + second);
    }
}

static void test_places_and_names(void **state)
{
    (void)state;
    bide_mutex mutex;
    bide_event stop;
    struct async_locks locks;
    struct async_names names;
    bide_mutex_init(&mutex);
    bide_event_init(&stop, false);
    START(locks, &mutex, &stop);
    assert_true(bide_done(&locks.task.frame));
    assert_int_equal(locks.result, 0);
    assert_string_equal(journal, "locked ");
    START(names, 4);
    assert_int_equal(names.result, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_statement_runs),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_each_of_two),
        cmocka_unit_test(test_places_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
