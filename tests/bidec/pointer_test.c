/*
 * Typed pointers at async functions: in structs, arrays, parameters, results and locals; their calls in expressions, groups,
 * wrappers and scopes; memory that runs out. Translated by bidec.
 */
#include "journal.h"
#include "testing.h"

#include "bide/async.h"
#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"

struct point {
    long x;
    char name[20];
};

typedef async_pointer(int, int, const char *) handler;

/* ---- Functions ---- */

async_created static int twice(int n, const char *text)
{
    note(text);
    return 2 * n;
}

async_created static int waits(int n, const char *text)
{
    char kept[300];
    memset(kept, n, sizeof kept);
    await bide_sleep_for(1000);
    note(text);
    return kept[299] + 1;
}

async_created static int fails(int n, const char *text)
{
    (void)text;
    await bide_sleep_for(1000);
    return n - 100;
}

async_created void says(const char *text);
async_created struct point moved(struct point point, long by);
async_created static const char *named(void)
{
    return "named";
}

async_created static double half(int n)
{
    (void)n;
    return 0.5;
}

struct route {
    const char *path;
    handler handle;
};

static const struct route routes[] = {
    {"twice", async_pointer_to(twice)},
    {"waits", async_pointer_to(waits)},
    {"fails", async_pointer_to(fails)},
};

static async_pointer(void, const char *) const speakers[2] = {NULL, async_pointer_to(says)};

async_created void says(const char *text)
{
    await bide_sleep_for(1000);
    note(text);
}

async_created struct point moved(struct point point, long by)
{
    _Alignas(64) char aligned[64] = {0};
    await bide_sleep_for(1000);
    point.x += by + (long)((uintptr_t)aligned % 64);
    return point;
}

/* A plain function that returns one. */
static handler choose(const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(routes[i].path, path) == 0)
            return routes[i].handle;
    }
    return NULL;
}

/* ---- Calls ---- */

async int give(int n)
{
    await bide_sleep_for(1000);
    return n;
}

async int apply(handler handle, int n)
{
    return await async_call(handle, n, "applied");
}

async int calls(void)
{
    int bad = 0;
    const struct route *route = &routes[1];
    async_pointer(struct point, struct point, long) move = async_pointer_to(moved);
    async_pointer(const char *) name = async_pointer_to(named);
    async_pointer(double, int) halves[] = {async_pointer_to(half)};
    struct point point = {1, "point"};
    bad |= (await async_call(routes[0].handle, 4, "a") != 8) << 0;
    bad |= (await async_call(route->handle, 4, "b") != 5) << 1;
    bad |= (await apply(choose("twice"), 7) != 14) << 2;
    await async_call(speakers[1], "c");
    point = await async_call(move, point, 10);
    bad |= (point.x != 11 || strcmp(point.name, "point") != 0) << 3;
    bad |= ((await async_call(move, point, 1)).name[4] != 't') << 4;
    bad |= (strcmp(await async_call(name), "named") != 0) << 5;
    /* from left to right, with values that are kept */
    int i = 1;
    int sum = i++ * 1000 + await async_call(choose("waits"), await give(i++) + i++, "d") * 10 + i +
              await async_call((note("e"), choose("twice")), i++, "f");
    bad |= (sum != 1000 + 6 * 10 + 4 + 8) << 6;
    long chosen = bad == 0 ? await async_call(route->handle, 1, "g") : 7;
    bad |= (chosen != 2) << 7;
    bad |= (choose("none") != NULL || choose("twice") == choose("waits")) << 8;
    bad |= (sizeof(await async_call(halves[0], 1)) != sizeof(double)) << 9;
    bad |= (await async_call(halves[0], 1) * 4 != 2) << 10;
    bad |= (await async_call((note("p"), choose("twice")), (note("q"), await give(3)), "r") != 6)
           << 11;
    note_number(i);
    return bad;
}

async int passes(handler handle)
{
    defer note("left");
    int n = try await async_call(handle, 5, "g");
    return n + 1;
}

async int in_groups(bide_event *never)
{
    int bad = 0, status;
    bide_scope scope;
    status = await all(async_call(choose("fails"), 100, ""), async_call(speakers[1], "h"),
                       (void)async_call(async_pointer_to(moved), (struct point){0, ""}, 1));
    bad |= (status != 0) << 0;
    status = await any(async_call(speakers[1], "i"), bide_event_wait(never));
    bad |= (status != 0) << 1;
    bad |= (await bide_with_timeout(BIDE_SECONDS(1000), async_call(choose("waits"), 8, "j")) != 9)
           << 2;
    bad |= (await bide_with_timeout(BIDE_SECONDS(1000), async_call(choose("fails"), 8, "")) != -92)
           << 3;
    status = await bide_with_timeout(BIDE_SECONDS(1000), async_call(speakers[1], "k"));
    bad |= (status != 0) << 4;
    bad |= (await passes(choose("twice")) != 11) << 5;
    bad |= (await passes(choose("fails")) != -95) << 6;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    for (int i = 0; i < 3; i++)
        bad |= (spawn(&scope, async_call(routes[i % 2].handle, i, "l")) != 0) << 7;
    bad |= (spawn(&scope,
                  async_call(async_pointer_to(moved), (struct point){0, ""}, await give(2))) != 0)
           << 8;
    bad |= (spawn(&scope, async_call(speakers[1], "m")) != 0) << 9;
    bad |= (await bide_scope_join(&scope) != 0) << 10;
    return bad;
}

static void they_are_called(void **state)
{
    async_frame(calls) frame;
    (void)state;
    journal[0] = 0;
    assert_int_equal(bide_sync_wait(async_calls(&frame)), 0);
    assert_int_equal(frame.result, 0);
    assert_string_equal(journal, "a b applied c d e f g p q r 5 ");
}

static void they_run_in_groups_wrappers_and_scopes(void **state)
{
    async_frame(in_groups) frame;
    bide_event never;
    (void)state;
    journal[0] = 0;
    bide_event_init(&never, false);
    assert_int_equal(bide_sync_wait(async_in_groups(&frame, &never)), 0);
    assert_int_equal(frame.result, 0);
    assert_non_null(strstr(journal, "j k g left left l l "));
}

/* ---- Memory ---- */

struct limited {
    bide_allocator allocator;
    int left, blocks;
};

static void *limited_allocate(bide_allocator *allocator, size_t size)
{
    struct limited *limited = bide_container_of(allocator, struct limited, allocator);
    if (limited->left == 0)
        return NULL;
    limited->left--;
    limited->blocks++;
    return bide_heap.allocate(&bide_heap, size);
}

static void limited_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    bide_container_of(allocator, struct limited, allocator)->blocks--;
    bide_heap.deallocate(&bide_heap, memory, size);
}

async int within(bide_allocator *memory, struct limited *limited, bide_event *never)
{
    int bad = 0, tries = 0;
    bide_scope scope;
    (void)memory; /* named by its type */
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    limited->left = 0;
    bad |= (await async_call(choose("waits"), 1, "n") != -ENOMEM) << 0;
    bad |= ((await async_call(async_pointer_to(moved), (struct point){7, "x"}, 1)).x != 0) << 1;
    bad |= (await bide_with_timeout(BIDE_SECONDS(1000), async_call(choose("waits"), 1, "n")) !=
            -ENOMEM)
           << 2;
    bad |= (limited->blocks != 0) << 3;
    for (int left = 0; left < 3; left++) { /* the branch, the frame */
        limited->left = left;
        int status = spawn(&scope, async_call(choose("waits"), (tries++, 1), "o"));
        bad |= (status != (left < 2 ? -ENOMEM : 0)) << 4;
        bad |= (limited->blocks != (left < 2 ? 0 : 2)) << 5;
    }
    bad |= (tries != 2) << 6; /* not evaluated, where there was no memory for the branch */
    bad |= (await bide_scope_join(&scope) != 0) << 7;
    bad |= (limited->blocks != 0) << 8;
    limited->left = 1;
    await any(async_call(choose("waits"), 1, "p"), bide_event_wait(never));
    bad |= (limited->blocks != 0) << 9;
    return bad;
}

static void memory_may_run_out(void **state)
{
    async_frame(within) frame;
    struct limited limited = {{limited_allocate, limited_deallocate}, 0, 0};
    bide_event never;
    (void)state;
    journal[0] = 0;
    bide_event_init(&never, false);
    assert_int_equal(bide_sync_wait(async_within(&frame, &limited.allocator, &limited, &never)), 0);
    assert_int_equal(frame.result, 0);
    assert_string_equal(journal, "o p ");
    assert_int_equal(limited.blocks, 0);
}

/* ---- Destroyed, and called by plain C ---- */

async_created static int stays(int n, const char *text)
{
    bide_event never;
    bide_event_init(&never, false);
    defer note(text);
    await bide_event_wait(&never);
    return n;
}

static void a_waiting_one_is_destroyed(void **state)
{
    async_frame(apply) frame;
    bide_spawned spawned;
    (void)state;
    journal[0] = 0;
    bide_spawn(&spawned, &bide_default_context, async_apply(&frame, async_pointer_to(stays), 1));
    assert_string_equal(journal, "");
    bide_destroy(&spawned.root.frame);
    assert_string_equal(journal, "applied ");
}

static void plain_c_calls_them(void **state)
{
    int result = 0;
    bide_async_call call = {&bide_heap, &result, NULL};
    (void)state;
    journal[0] = 0;
    assert_ptr_equal(choose("waits")(&call, 41, "q"), &result);
    assert_int_equal(bide_sync_wait(call.awaiter), 0);
    assert_int_equal(result, 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_called),
        cmocka_unit_test(they_run_in_groups_wrappers_and_scopes),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(a_waiting_one_is_destroyed),
        cmocka_unit_test(plain_c_calls_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
