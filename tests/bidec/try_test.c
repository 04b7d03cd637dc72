/*
 * try await: values pass, errors end the function, whatever its result is and wherever the await
 * stands. Each function of BODIES is compared with the same text as plain C. Translated by bidec.
 */
#include "journal.h"
#include "testing.h"

#include "bide/async.h"
#include "bide/auto_event.h"
#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"

#include <sys/types.h>

static bide_auto_event gate;
static bool waits;

static void note_end(int *number)
{
    note("end");
    note_number(*number);
}

/* ---- The same text as plain C and as async functions ---- */

static long plain_get(long value)
{
    note_number(value);
    return value;
}

async long get(long value)
{
    note_number(value);
    if (waits)
        (void)await bide_auto_event_wait(&gate);
    return value;
}

struct pair {
    long first, second;
};

/* GET(n) is n, or the end of the function with the error n. */
#define BODIES(PLAIN_OR_ASYNC, GET, NAME)                                   \
    PLAIN_OR_ASYNC int NAME(alone)(int a, int b)                            \
    {                                                                       \
        (void)b;                                                            \
        (void)GET(a);                                                       \
        note("after");                                                      \
        return 1;                                                           \
    }                                                                       \
    PLAIN_OR_ASYNC long NAME(sum)(int a, int b)                             \
    {                                                                       \
        long sum = GET(a) + GET(b) * 10;                                    \
        return sum;                                                         \
    }                                                                       \
    PLAIN_OR_ASYNC long long NAME(arguments)(int a, int b)                  \
    {                                                                       \
        struct pair pair = {GET(a), 5 + GET(b)};                            \
        return plain_get(pair.first) + plain_get(GET(pair.second));         \
    }                                                                       \
    PLAIN_OR_ASYNC int NAME(choices)(int a, int b)                          \
    {                                                                       \
        int n = GET(a) > 3 && GET(b) > 3 ? (int)GET(a + b) : (int)-GET(-a); \
        if (GET(n) || GET(b))                                               \
            n++;                                                            \
        return n;                                                           \
    }                                                                       \
    PLAIN_OR_ASYNC int NAME(blocks)(int a, int b)                           \
    {                                                                       \
        int outer __attribute__((cleanup(note_end))) = 1;                   \
        for (int i = 0; i < 3; i++) {                                       \
            int turn __attribute__((cleanup(note_end))) = 10 + i;           \
            if (i == 2)                                                     \
                return (int)GET(b);                                         \
            switch (GET(a - i)) {                                           \
            case 1: {                                                       \
                int inner __attribute__((cleanup(note_end))) = 100;         \
                outer += (int)({                                            \
                    long more = GET(b);                                     \
                    more + GET(b - 1);                                      \
                });                                                         \
                (void)inner;                                                \
                break;                                                      \
            }                                                               \
            default:                                                        \
                outer = (int)(GET(a) - 1);                                  \
            }                                                               \
            (void)turn;                                                     \
        }                                                                   \
        return outer;                                                       \
    }                                                                       \
    PLAIN_OR_ASYNC int NAME(loops)(int a, int b)                            \
    {                                                                       \
        int turns = 0;                                                      \
        while (GET(a--))                                                    \
            if (++turns > 4)                                                \
                break;                                                      \
        do                                                                  \
            turns++;                                                        \
        while (GET(b++) < 2);                                               \
        for (int i = (int)GET(a); i < GET(b); i += (int)GET(2))             \
            turns++;                                                        \
        return turns;                                                       \
    }

#define PLAIN_GET(value)                                        \
    ({                                                          \
        __typeof__(plain_get(value)) value_ = plain_get(value); \
        if (value_ < 0 && value_ >= -4095)                      \
            return (int)value_;                                 \
        value_;                                                 \
    })
#define PLAIN_NAME(name) plain_##name
#define ASYNC_GET(value) try await get(value)
#define ASYNC_NAME(name) name

BODIES(static, PLAIN_GET, PLAIN_NAME)
BODIES(async, ASYNC_GET, ASYNC_NAME)

/* ---- Results of other types: they are zeros, and the frame has the error ---- */

async void nothing(int value)
{
    defer note("nothing");
    try await get(value);
    note("after");
}

async struct pair two(int value)
{
    long first = try await get(value);
    return (struct pair){first, 1};
}

async const char *text_of(int value)
{
    return try await get(value) != 0 ? "text" : NULL;
}

async double number(int value)
{
    try await nothing(value);
    return 0.5;
}

async short narrow(int value)
{
    return (short)try await get(value);
}

async ssize_t wide(int value)
{
    struct pair pair = try await two(value);
    const char *text = try await text_of(value);
    note(text);
    return (ssize_t)(pair.first + pair.second) + (try await number(value) == 0.5) +
           try await narrow(value);
}

async int of_narrow(int value)
{
    int result = try await narrow(value);
    note("after");
    return result;
}

async_created struct pair created(int depth, int value)
{
    defer note_number(depth);
    if (depth == 0)
        return try await two(value);
    struct pair pair = try await created(depth - 1, value);
    pair.second++;
    return pair;
}

async_sized(256) void opaque(int value);

async int of_opaque(int value)
{
    try await opaque(value);
    return 3;
}

async_sized(256) void opaque(int value)
{
    (void)await nothing(value); /* the error is dropped */
    note("dropped");
    try await nothing(value);
}

async int of_created(bide_allocator *allocator, int depth, int value)
{
    (void)allocator; /* named by its type */
    return (int)(try await created(depth, value)).second;
}

/* ---- Operations, groups and wrappers ---- */

async int operation(bide_event *event)
{
    defer note("left");
    int status = try await bide_event_wait(event);
    note("after");
    return status + 1;
}

async long with_deadline(uint64_t end, bide_event *event, int value)
{
    struct pair pair = try await bide_with_deadline(end, two(value));
    note_number(pair.first);
    return 10 * (try await bide_with_deadline(end, operation(event)));
}

async int together(int a, int b)
{
    try await all(nothing(a), (void)two(b));
    note("all");
    return 1;
}

async int select_one(bide_event *first, bide_event *second, size_t *which)
{
    int status = try await select_any(which, bide_event_wait(first), bide_event_wait(second));
    note("after");
    return status + 1;
}

/* ---- Generators ---- */

async_generator(long) void counted(int count, int value)
{
    defer note("counted");
    for (int i = 0; i < count; i++)
        yield i;
    try await nothing(value);
}

async long add_up(int count, int value)
{
    long sum = 0;
    int status = 1;
    defer note("added");
    try async_for(long one, counted(count, value), status) sum += one;
    note_number(status);
    try async_for(long one, counted(2, 7))
    {
        if (one == 1)
            break;
    }
    return sum;
}

/* ---- Names ---- */

async int names(int value)
{
    int try = value, sum = 0;
    struct {
        int try;
    } it = {try + 1};
    sum += try + it.try;
    goto end;
end:
    return sum + await narrow(1);
}

async int names_of_members(int value)
{
    struct {
        int try;
    } it = {value};
    goto try;
    try : it
        .try += (int)try await get(1), note("try");
    return it.try + (int)sizeof(try await get(1));
}

/* ---- Tests ---- */

static void run(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_await_later(awaiter);
    bide_frame_init_in(frame, bide_frame_point(frame), &bide_default_context);
    bide_auto_event_init(&gate, false);
    journal[0] = 0;
    for (bide_resume(frame); !bide_done(frame);)
        bide_auto_event_set(&gate);
}

#define START(name, ...)                \
    static struct async_##name frame;   \
    memset(&frame, 0xd5, sizeof frame); \
    run(async_##name(&frame, ##__VA_ARGS__), &frame.task.frame)

#define COMPARE(name)                                                              \
    do {                                                                           \
        for (int a = -2; a < 7; a++) {                                             \
            for (int b = -2; b < 7; b++) {                                         \
                char expected[sizeof journal];                                     \
                journal[0] = 0;                                                    \
                long long result = plain_##name(a, b);                             \
                strcpy(expected, journal);                                         \
                START(name, a, b);                                                 \
                assert_int_equal(frame.result, result);                            \
                assert_string_equal(journal, expected);                            \
                assert_int_equal(frame.task.frame.error, result < 0 ? result : 0); \
            }                                                                      \
        }                                                                          \
    } while (0)

static void test_like_plain_text(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        waits = i == 1;
        COMPARE(alone);
        COMPARE(sum);
        COMPARE(arguments);
        COMPARE(choices);
        COMPARE(blocks);
        COMPARE(loops);
    }
    waits = false;
}

static void test_errors_are_those_of_the_system(void **state)
{
    (void)state;
    static const struct {
        int value, error;
    } cases[] = {{-1, -1}, {-4095, -4095}, {-4096, 0}, {INT_MIN, 0}, {0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        START(alone, cases[i].value, 0);
        assert_int_equal(frame.result, cases[i].error != 0 ? cases[i].error : 1);
        assert_int_equal(frame.task.frame.error, cases[i].error);
    }
}

static void test_results_of_other_types(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        waits = i == 1;
        {
            START(nothing, -EIO);
            assert_int_equal(frame.task.frame.error, -EIO);
            assert_string_equal(journal, "-5 nothing ");
        }
        {
            START(nothing, 5);
            assert_int_equal(frame.task.frame.error, 0);
            assert_string_equal(journal, "5 after nothing ");
        }
        {
            START(two, -EIO);
            assert_int_equal(frame.task.frame.error, -EIO);
            assert_int_equal(frame.result.first, 0);
            assert_int_equal(frame.result.second, 0);
        }
        {
            START(text_of, -EIO);
            assert_int_equal(frame.task.frame.error, -EIO);
            assert_null(frame.result);
        }
        {
            START(number, -EIO);
            assert_int_equal(frame.task.frame.error, -EIO);
            assert_true(frame.result == 0);
        }
        {
            START(wide, -EIO);
            assert_int_equal(frame.result, -EIO);
            assert_int_equal(frame.task.frame.error, -EIO);
            assert_string_equal(journal, "-5 ");
        }
        {
            START(wide, 7);
            assert_int_equal(frame.result, 16);
            assert_string_equal(journal, "7 7 text 7 after nothing 7 ");
        }
        {
            START(of_narrow, -7);
            assert_int_equal(frame.result, -7);
            assert_string_equal(journal, "-7 ");
        }
        {
            START(of_opaque, -EIO);
            assert_int_equal(frame.result, -EIO);
            assert_string_equal(journal, "-5 nothing dropped -5 nothing ");
        }
    }
    waits = false;
}

static void test_created_frames(void **state)
{
    (void)state;
    static BIDE_ALIGNAS(16) char memory[4096];
    bide_arena arena;
    {
        bide_arena_init(&arena, memory, sizeof memory);
        START(of_created, &arena.allocator, 3, 4);
        assert_int_equal(frame.result, 4);
        assert_string_equal(journal, "4 0 1 2 3 ");
    }
    {
        bide_arena_init(&arena, memory, sizeof memory);
        START(of_created, &arena.allocator, 3, -EIO);
        assert_int_equal(frame.result, -EIO);
        assert_string_equal(journal, "-5 0 1 2 3 ");
    }
    {
        bide_arena_init(&arena, memory, sizeof memory);
        START(of_created, &arena.allocator, 1000, 1);
        assert_int_equal(frame.result, -ENOMEM);
        assert_int_equal(frame.task.frame.error, -ENOMEM);
    }
}

static void test_operations(void **state)
{
    (void)state;
    bide_event event;
    bide_event_init(&event, true);
    {
        START(operation, &event);
        assert_int_equal(frame.result, 1);
        assert_string_equal(journal, "after left ");
    }
    {
        START(with_deadline, UINT64_MAX, &event, 4);
        assert_int_equal(frame.result, 10);
        assert_string_equal(journal, "4 4 after left ");
    }
    {
        START(with_deadline, UINT64_MAX, &event, -EIO);
        assert_int_equal(frame.result, -EIO);
        assert_string_equal(journal, "-5 ");
    }
    {
        START(together, 1, 2);
        assert_int_equal(frame.result, 1);
    }
    {
        START(together, 1, -EIO);
        assert_int_equal(frame.result, -EIO);
        assert_null(strstr(journal, "all"));
    }
    {
        START(together, -EIO, 1);
        assert_int_equal(frame.result, -EIO);
    }
}

/* Stops, or destroys, a function that waits. */
static void test_stopped_and_destroyed(void **state)
{
    (void)state;
    bide_event first, second;
    bide_event_init(&first, false);
    bide_event_init(&second, false);
    for (int destroys = 0; destroys < 2; destroys++) {
        bide_stop_source source;
        bide_stop_source_init(&source);
        bide_context context = bide_default_context;
        context.stop = &source;
        struct async_operation waiting;
        struct async_select_one selecting;
        size_t which = 7;
        journal[0] = 0;
        bide_await_later(async_operation(&waiting, &first));
        bide_await_later(async_select_one(&selecting, &first, &second, &which));
        bide_frame *frames[] = {&waiting.task.frame, &selecting.task.frame};
        for (size_t i = 0; i < 2; i++) {
            bide_frame_init_in(frames[i], bide_frame_point(frames[i]), &context);
            bide_resume(frames[i]);
            assert_false(bide_done(frames[i]));
            if (destroys)
                bide_destroy(frames[i]);
        }
        bide_stop_request(&source);
        assert_string_equal(journal, "left ");
        if (destroys)
            continue;
        assert_int_equal(waiting.result, -ECANCELED);
        assert_int_equal(selecting.result, -ECANCELED);
        assert_int_equal(which, 2);
    }
    bide_event_set(&second);
    size_t which = 7;
    START(select_one, &first, &second, &which);
    assert_int_equal(frame.result, 1);
    assert_int_equal(which, 1);
}

static void test_generators(void **state)
{
    (void)state;
    {
        START(add_up, 4, 7);
        assert_int_equal(frame.result, 6);
        assert_string_equal(journal, "7 after nothing counted 0 counted added ");
    }
    {
        START(add_up, 4, -EIO);
        assert_int_equal(frame.result, -EIO);
        assert_string_equal(journal, "-5 nothing counted added ");
    }
}

static void test_names(void **state)
{
    (void)state;
    {
        START(names, 4);
        assert_int_equal(frame.result, 10);
    }
    {
        START(names_of_members, 4);
        assert_int_equal(frame.result, 5 + (int)sizeof(long));
        assert_string_equal(journal, "1 try ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_plain_text),
        cmocka_unit_test(test_errors_are_those_of_the_system),
        cmocka_unit_test(test_results_of_other_types),
        cmocka_unit_test(test_created_frames),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_stopped_and_destroyed),
        cmocka_unit_test(test_generators),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
