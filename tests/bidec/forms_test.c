/*
 * Forms of C in async functions: alignment and memory of frames, declarations of each shape, and places that
 * awaits may have. Each function awaits something that suspends it. Translated by bidec.
 */
#include "testing.h"

#include "bide/allocator.h"
#include "bide/async.h"
#include "bide/auto_event.h"
#include "bide/sync_wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* ---- The awaited operation ---- */

static bide_auto_event gate;

/* Returns `value` when the gate is open. */
async int later(int value)
{
    int status = await bide_auto_event_wait(&gate);
    return status < 0 ? status : value;
}

struct point {
    int x, y;
};

async struct point point_later(void)
{
    return (struct point){await later(1), 2};
}

/* Starts a task, and opens the gate each time that it waits there, until it has ended. */
static void run_to_end(bide_task *task, bide_awaiter *awaiter)
{
    bide_auto_event_init(&gate, false);
    bide_await_later(awaiter);
    bide_frame_init_in(&task->frame, bide_frame_point(&task->frame), &bide_default_context);
    bide_resume(&task->frame);
    while (!bide_done(&task->frame))
        bide_auto_event_set(&gate);
}

#define RUN(name, ...)                                              \
    ({                                                              \
        static struct async_##name frame;                           \
        memset(&frame, 0xd5, sizeof frame);                         \
        run_to_end(&frame.task, async_##name(&frame, __VA_ARGS__)); \
        frame.result;                                               \
    })

/* ---- Alignment ---- */

static bool is_aligned(const void *memory, size_t alignment)
{
    return (uintptr_t)memory % alignment == 0;
}

async_created int created_deep(int depth)
{
    _Alignas(64) char wide[64];
    memset(wide, depth, sizeof wide);
    await later(0);
    int unaligned = !is_aligned(wide, 64);
    unaligned += depth > 0 ? await created_deep(depth - 1) : 0;
    return unaligned + (wide[63] != depth);
}

typedef float lanes __attribute__((vector_size(32)));

/* The compiler may use instructions that need the alignment. */
async_created int created_lanes(int n)
{
    lanes sum = {(float)n, 1, 2, 3, 4, 5, 6, 7};
    await later(0);
    sum = sum + sum;
    return (int)sum[0] + (int)sum[7];
}

async int creates(int n)
{
    int unaligned = await created_deep(n);
    for (int i = 0; i < n; i++)
        unaligned += await created_lanes(i) != 2 * i + 14;
    return unaligned;
}

static void created_frames_are_aligned(void **state)
{
    (void)state;
    assert_int_equal(RUN(creates, 5), 0);
}

static int unaligned;

async int spawned_wide(int n)
{
    _Alignas(128) char wide[128];
    memset(wide, n, sizeof wide);
    await later(0);
    unaligned += !is_aligned(wide, 128) || wide[127] != n;
    return 0;
}

/* Records that each block goes back as it was given. */
struct recording {
    bide_allocator allocator;
    void *memory[16];
    size_t sizes[16];
    unsigned given, back;
};

static void *recording_allocate(bide_allocator *allocator, size_t size)
{
    struct recording *self = (struct recording *)allocator;
    void *memory = bide_heap.allocate(&bide_heap, size);
    self->memory[self->given] = memory;
    self->sizes[self->given++] = size;
    return memory;
}

static void recording_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    struct recording *self = (struct recording *)allocator;
    for (unsigned i = 0; i < self->given; i++)
        self->back += self->memory[i] == memory && self->sizes[i] == size;
    bide_heap.deallocate(&bide_heap, memory, size);
}

async int spawns(bide_allocator *allocator, int count)
{
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    int failed = 0;
    for (int i = 0; i < count; i++)
        failed |= spawn(&scope, spawned_wide(i));
    for (int i = 0; i < count; i++)
        await later(0);
    (void)allocator;
    await bide_scope_join(&scope);
    return failed;
}

static void spawned_frames_are_aligned(void **state)
{
    (void)state;
    struct recording recording = {.allocator = {recording_allocate, recording_deallocate}};
    unaligned = 0;
    assert_int_equal(RUN(spawns, &recording.allocator, 9), 0);
    assert_int_equal(unaligned, 0);
    assert_int_equal(recording.given, 9);
    assert_int_equal(recording.back, 9);
}

/* ---- Initialisers ---- */

static int sum_of(const struct point *points, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += points[i].x * points[i].y;
    return sum;
}

typedef struct point known_as;

static struct point point_of(int x, int y)
{
    return (struct point){x, y};
}

#pragma GCC diagnostic ignored "-Wmissing-braces"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* Braces that are left out: the array is as long as C says, and no more is read. */
async int elided_braces(int n)
{
    struct point one = {n, n};
    int sum = sum_of((struct point[]){1, 2, n, 4}, 2);
    sum += sum_of((known_as[]){one, 3, n}, 2);
    sum += sum_of((known_as[]){point_of(n, 1), 3, n, [3] = {1, 1}}, 2);
    sum += sum_of((struct point[]){await later(1), 1, 2, await later(n)}, 2);
    await later(0);
    struct point named[] = {1, 2, n, 4, one, 5};
    const char *only[] = {"only"};
    char lines[][4] = {"one", "two", {'3'}};
    known_as list[] = {{1, 2}, one, 3};
    int numbers[] = {[2] = n, await later(9)};
    await later(0);
    assert_int_equal(sizeof named / sizeof *named, 4);
    assert_int_equal(named[3].x, 5);
    assert_int_equal(named[3].y, 0);
    assert_int_equal(sizeof only / sizeof *only, 1);
    assert_string_equal(only[0], "only");
    assert_int_equal(sizeof lines / sizeof *lines, 3);
    assert_string_equal(lines[1], "two");
    assert_int_equal(sizeof list / sizeof *list, 3);
    assert_int_equal(sizeof numbers / sizeof *numbers, 4);
    assert_int_equal(numbers[3], 9);
    return sum;
}

static void braces_are_left_out(void **state)
{
    (void)state;
    assert_int_equal(RUN(elided_braces, 3), 14 + 18 + 12 + 7);
}

enum { LARGE = 8 << 20 };

async_sized(LARGE + 4096) int large_zeros(int n)
{
    char all[LARGE / 2] = {0}, text[LARGE / 2] = "text";
    await later(0);
    all[n] = 1;
    return all[0] + all[n] + (int)strlen(text) + text[LARGE / 2 - 1];
}

static void *run_large(void *result)
{
    *(int *)result = RUN(large_zeros, 5);
    return NULL;
}

/* An initialiser is not built on the stack, which is far smaller here. */
static void large_variables_need_no_stack(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_attr_t attributes;
    int result = 0;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_large, &result), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(result, 5);
}

/* ---- Declarations ---- */

async int types_of_locals(int n)
{
    int numbers[7] = {n};
    struct {
        char name[9];
        union {
            int i;
            char bytes[4];
        };
        struct {
            int inner;
            struct {
                int innermost;
            };
        } in;
    } record = {.i = 1, .in = {2, {3}}};
    await later(0);
    __typeof__(numbers) copy;
    __typeof__(record) *same = &record;
    __auto_type half = 2.5;
    __auto_type where = &half;
    char whole[sizeof numbers], part[sizeof record.name + 1], few[sizeof numbers / sizeof *numbers];
    memcpy(copy, numbers, sizeof copy);
    *where += 1;
    await later(0);
    same->i++;
    record.in.innermost += record.in.inner;
    assert_int_equal(sizeof whole, 7 * sizeof(int));
    assert_int_equal(sizeof part, 10);
    assert_int_equal(sizeof few, 7);
    assert_int_equal(record.i, 2);
    assert_int_equal(record.in.innermost, 5);
    return copy[0] + (half > 3);
}

#define CONTROL_SPACE(length) (((length) + 7) / 8 * 8 + 16)

async int control_messages(int n)
{
    union {
        char bytes[CONTROL_SPACE(sizeof n)];
        long aligned;
    } message;
    await later(0);
    message.bytes[sizeof message - 1] = (char)n;
    await later(0);
    return message.bytes[23] + (int)sizeof message;
}

static void declarations_name_locals(void **state)
{
    (void)state;
    assert_int_equal(RUN(types_of_locals, 4), 5);
    assert_int_equal(RUN(control_messages, 4), 28);
}

/* A struct with a member that is const is initialised, never assigned. */
struct fixed {
    const int first;
    int second;
};

static struct fixed fixed_of(int first)
{
    return (struct fixed){first, 1};
}

static int sum_of_fixed(struct fixed fixed, int number)
{
    return fixed.first * 10 + number;
}

async int const_members(int n)
{
    struct nested {
        struct fixed fixed;
        int number;
    } one = {fixed_of(n), await later(2)};
    struct nested other = {.number = await later(3), .fixed = fixed_of(await later(4))};
    struct fixed chosen = await later(1) ? fixed_of(5) : fixed_of(await later(6));
    struct fixed from_block = ({
        await later(0);
        fixed_of(7);
    });
    await later(0);
    assert_int_equal(sum_of_fixed(fixed_of(n), await later(2)), n * 10 + 2);
    assert_int_equal(one.fixed.first * 10 + one.number, n * 10 + 2);
    assert_int_equal(other.fixed.first * 10 + other.number, 43);
    assert_int_equal(chosen.first, 5);
    return from_block.first;
}

static void members_are_const(void **state)
{
    (void)state;
    assert_int_equal(RUN(const_members, 8), 7);
}

/* ---- Parameters ---- */

static double trace_of(int n, const double matrix[n][n])
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += matrix[i][i];
    return sum;
}

/* The length of the rows is that of another parameter. */
async int rows(int n, int m, const double a[restrict n][m], double (*to)[m])
{
    to[await later(1)][await later(0)] = a[await later(1)][await later(2)] + await later(4);
    to[0][0] += a[0][1] * await later(2);
    const double *row = a[1];
    await later(0);
    assert_int_equal(sizeof *a, (size_t)m * sizeof(double));
    assert_int_equal((int)trace_of(m, a), 1 + 5 + 9);
    return (int)(to[1][0] * 100 + to[0][0] * 10 + row[n - 1]);
}

async_created int first_column(int n, int a[n][n + 1])
{
    await later(0);
    int rest = n > 1 ? await first_column(n - 1, (void *)a) : 0;
    return rest + a[n - 1][0];
}

async int parameters_with_rows(int n)
{
    double a[3][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, to[3][3] = {{5}};
    int numbers[6] = {1, 2, 3, 4, 5, 6};
    return await rows(n, 3, a, to) + await first_column(2, (void *)numbers);
}

static void parameters_have_rows_of_variable_length(void **state)
{
    (void)state;
    assert_int_equal(RUN(parameters_with_rows, 3), 1000 + 90 + 6 + 5);
}

/* ---- Places of awaits ---- */

async int bit_fields(int n)
{
    struct {
        unsigned low : 3, high : 5;
        struct {
            signed deep : 4;
        } in;
    } fields[3] = {{1, 2, {-3}}}, *first = fields;
    fields[await later(1)].high = await later(9);
    fields[await later(2)].low += await later(n);
    first[await later(0)].in.deep += await later(1);
    (first++)->low = await later(6);
    assert_int_equal(fields[1].high, 9);
    assert_int_equal(fields[2].low, n);
    assert_int_equal(fields[0].in.deep, -2);
    assert_int_equal(fields[0].low, 6);
    assert_ptr_equal(first, fields + 1);
    return fields[1].high * await later(2);
}

/* An assert names its operand twice, one of them in a sizeof, where it is not run. */
#define CHECKED(condition, failed)                      \
    ((void)sizeof((condition) ? 1 : 0), __extension__({ \
         if (condition)                                 \
             ;                                          \
         else                                           \
             (failed)++;                                \
     }))

static int runs;

async int runs_once(int value)
{
    runs++;
    return await later(value);
}

async int in_asserts_and_atomics(int n)
{
    int failed = 0;
    atomic_int number = 0;
    CHECKED(await runs_once(n) == n, failed);
    CHECKED(n + 1 == await runs_once(n), failed);
    assert_int_equal(runs, 2);
    assert_int_equal(sizeof(await runs_once(1)), sizeof(int));
    assert_int_equal(sizeof await point_later(), sizeof(struct point));
    assert_int_equal(runs, 2);
    atomic_store(&number, await later(5));
    assert_int_equal(atomic_exchange(&number, await later(6)), 5);
    atomic_store_explicit(&number, atomic_load(&number) + await later(1), memory_order_release);
    return atomic_load(&number) * 10 + failed;
}

static void awaits_stand_in_odd_places(void **state)
{
    (void)state;
    runs = 0;
    assert_int_equal(RUN(bit_fields, 3), 18);
    assert_int_equal(RUN(in_asserts_and_atomics, 3), 71);
}

/* ---- Attributes ---- */

async char *__attribute__((noinline)) behind_the_star(char *text)
{
    await later(0);
    return text + 1;
}

static async __attribute__((__returns_nonnull__, __cold__)) const char *before_the_star(char *text)
{
    await later(0);
    return text + 2;
}

async int pointers_with_attributes(int n)
{
    char text[] = "abc";
    return (*await behind_the_star(text) == 'b') + (*await before_the_star(text) == 'c') + n;
}

static void results_have_attributes(void **state)
{
    (void)state;
    assert_int_equal(RUN(pointers_with_attributes, 5), 7);
}

/* ---- Assertions ---- */

/* The size of what a pointer points to, asserted in a struct, as macros do it where an expression is wanted. */
#define SIZE_UP_TO_8(pointer)                                                \
    sizeof(struct {                                                          \
        _Static_assert(sizeof *(pointer) <= 8, "at most 8 bytes, the rest"); \
        char bytes[sizeof *(pointer)];                                       \
    })

async int sizes_are_asserted(struct point *parameter)
{
    const char *local = "a";
    int size = (int)SIZE_UP_TO_8(local) + (int)SIZE_UP_TO_8(&parameter->y);
    _Static_assert(sizeof parameter->y == sizeof(int), "a member of a parameter");
    size += await later(100);
    return size + (int)SIZE_UP_TO_8(parameter) + (int)SIZE_UP_TO_8(local);
}

static void assertions_name_variables(void **state)
{
    (void)state;
    struct point point = {0};
    assert_int_equal(RUN(sizes_are_asserted, &point), 100 + 1 + 4 + 8 + 1);
}

/* ---- Names ---- */

/* Each is a name of an async function with a word behind it that the translation has for parts of one. */
#define NAMED(suffix)                \
    async int server_##suffix(int n) \
    {                                \
        return await later(n);       \
    }

async_sized(4096) int server(int n)
{
    int more = await later(n);
    return more + await later(1);
}

NAMED(start)
NAMED(step)
NAMED(type)
NAMED(code)
NAMED(points)
NAMED(finished)
NAMED(frame)
NAMED(table)
NAMED(created)

async int generator(int n)
{
    return await server_start(n) + await server_step(n) + await server_type(n) +
           await server_code(n) + await server_points(n) + await server_finished(n) +
           await server_frame(n) + await server_table(n) + await server_created(n) +
           await server(n);
}

static void names_are_the_users(void **state)
{
    (void)state;
    assert_int_equal(RUN(generator, 2), 21);
}

/* (more tests) */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(created_frames_are_aligned),
        cmocka_unit_test(spawned_frames_are_aligned),
        cmocka_unit_test(braces_are_left_out),
        cmocka_unit_test(large_variables_need_no_stack),
        cmocka_unit_test(declarations_name_locals),
        cmocka_unit_test(members_are_const),
        cmocka_unit_test(parameters_have_rows_of_variable_length),
        cmocka_unit_test(awaits_stand_in_odd_places),
        cmocka_unit_test(results_have_attributes),
        cmocka_unit_test(assertions_name_variables),
        cmocka_unit_test(names_are_the_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
