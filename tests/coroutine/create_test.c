/*
 * Frames from an allocator: a tree is walked by recursion; each frame returns to its allocator, whether its
 * coroutine ended or was destroyed; and without memory the await ends with -ENOMEM.
 */
#define _GNU_SOURCE
#include "counting.h"
#include "testing.h"

#include "bide/create.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <errno.h>

struct node {
    const struct node *left, *right;
    int value;
};

/* Suspends here until it is destroyed. */
static bide_frame *forever_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)awaiter;
    (void)frame;
    return NULL;
}

static bool forever_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static int forever_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bide_awaiter *forever(bide_awaiter *awaiter)
{
    static const bide_awaiter_ops ops = {
        .suspend = forever_suspend,
        .resume = forever_resume,
        .withdraw = forever_withdraw,
        .name = "forever",
    };
    awaiter->ops = &ops;
    return awaiter;
}

/* Adds up a tree, in order; stops at the value -1. */
struct walk {
    bide_task task;
    bide_allocator *allocator;
    const struct node *node;
    long *sum;
    bide_awaiter stop;
};

static bide_awaiter *walk(bide_allocator *allocator, const struct node *node, long *sum);

bide_coroutine(walk_body)
{
    bide_begin(walk_body, struct walk * self);
    if (self->node->left != NULL)
        bide_try(walk(self->allocator, self->node->left, self->sum));
    if (self->node->value == -1)
        bide_await(forever(&self->stop));
    *self->sum = *self->sum * 3 + self->node->value;
    if (self->node->right != NULL)
        bide_try(walk(self->allocator, self->node->right, self->sum));
    bide_end();
}

static bide_awaiter *walk(bide_allocator *allocator, const struct node *node, long *sum)
{
    struct walk *self = bide_create(sizeof *self, &walk_body, allocator);
    if (self != NULL) {
        self->allocator = allocator;
        self->node = node;
        self->sum = sum;
    }
    return bide_owned(self, &walk_body);
}

static const struct node nodes[] = {
    {&nodes[1], &nodes[2], 1}, {NULL, &nodes[3], 2}, {&nodes[4], NULL, 3},
    {NULL, NULL, 4},           {NULL, NULL, 5},
};
enum { NODES = 5, HEIGHT = 3 };

/* In order: 2 4 1 5 3. */
static const long expected = ((((2 * 3) + 4) * 3 + 1) * 3 + 5) * 3 + 3;

static void walk_tree(struct counting *counting)
{
    long sum = 0;
    assert_int_equal(bide_sync_wait(walk(&counting->allocator, nodes, &sum)), 0);
    assert_int_equal(sum, expected);
    assert_int_equal(counting->held, 0);
    assert_int_equal(counting->max_held, HEIGHT);
    assert_int_equal(counting->calls, NODES);
}

static _Alignas(16) unsigned char memory[4096];

static void a_tree_is_walked_with_frames_from_an_arena(void **state)
{
    (void)state;
    bide_arena arena;
    struct counting counting;
    bide_arena_init(&arena, memory + 1, sizeof memory - 1);
    count(&counting, &arena.allocator);
    walk_tree(&counting);
    assert_int_equal(arena.used, 0);
}

static void a_tree_is_walked_with_frames_from_a_pool(void **state)
{
    (void)state;
    bide_pool pool;
    struct counting counting;
    /* As many as needed at once. */
    size_t piece = sizeof(struct walk) + sizeof(bide_owner);
    bide_pool_init(&pool, piece, memory, HEIGHT * ((piece + 15) / 16 * 16));
    count(&counting, &pool.allocator);
    walk_tree(&counting);
}

#if TESTING_HOSTED
static void a_tree_is_walked_with_frames_from_the_heap(void **state)
{
    (void)state;
    struct counting counting;
    count(&counting, &bide_heap);
    walk_tree(&counting);
}
#endif

static void without_memory_the_await_ends_with_enomem_and_nothing_is_lost(void **state)
{
    (void)state;
    for (int n = 1; n <= NODES; n++) {
        bide_arena arena;
        struct counting counting;
        long sum = 0;
        bide_arena_init(&arena, memory, sizeof memory);
        count(&counting, &arena.allocator);
        counting.fail_at = n;
        assert_int_equal(bide_sync_wait(walk(&counting.allocator, nodes, &sum)), -ENOMEM);
        assert_int_equal(counting.held, 0);
        assert_int_equal(arena.used, 0);
    }
}

static void destroying_the_outermost_frees_all_of_them(void **state)
{
    (void)state;
    const struct node stop = {NULL, NULL, -1};
    const struct node inner = {&stop, NULL, 1};
    const struct node outer = {NULL, &inner, 2};
    bide_arena arena;
    struct counting counting;
    long sum = 0;
    bide_arena_init(&arena, memory, sizeof memory);
    count(&counting, &arena.allocator);
    struct walk self = {.allocator = &counting.allocator, .node = &outer, .sum = &sum};
    bide_start(&self.task.frame, &walk_body, &bide_default_context);
    bide_resume(&self.task.frame);
    assert_int_equal(counting.held, 2);
    bide_destroy(&self.task.frame);
    assert_true(bide_done(&self.task.frame));
    assert_int_equal(counting.held, 0);
}

/* A child that was destroyed alone still belongs to its owner. */
static void a_destroyed_child_is_freed_with_its_parent(void **state)
{
    (void)state;
    const struct node stop = {NULL, NULL, -1};
    const struct node outer = {&stop, NULL, 2};
    bide_arena arena;
    struct counting counting;
    long sum = 0;
    bide_arena_init(&arena, memory, sizeof memory);
    count(&counting, &arena.allocator);
    struct walk self = {.allocator = &counting.allocator, .node = &outer, .sum = &sum};
    bide_start(&self.task.frame, &walk_body, &bide_default_context);
    bide_resume(&self.task.frame);
    assert_int_equal(counting.held, 1);
    bide_destroy((bide_frame *)((bide_owner *)(void *)self.task.frame.awaiter.link + 1));
    assert_int_equal(counting.held, 1);
    bide_destroy(&self.task.frame);
    assert_int_equal(counting.held, 0);
}

static void a_created_frame_is_aligned_and_the_users(void **state)
{
    (void)state;
    bide_arena arena;
    bide_arena_init(&arena, memory + 3, sizeof memory - 3);
    unsigned char *one = bide_create(100, &walk_body, &arena.allocator);
    unsigned char *other = bide_create(100, &walk_body, &arena.allocator);
    assert_int_equal((uintptr_t)one % BIDE_ALLOCATOR_ALIGN, 0);
    assert_int_equal((uintptr_t)other % BIDE_ALLOCATOR_ALIGN, 0);
    memset(one, 1, 100);
    memset(other, 2, 100);
    bide_free((bide_frame *)(void *)other);
    bide_free((bide_frame *)(void *)one);
    assert_int_equal(arena.used, 0);
    assert_null(bide_create(SIZE_MAX, &walk_body, &arena.allocator));
    assert_null(bide_create(SIZE_MAX - sizeof(bide_owner) - 1, &walk_body, &arena.allocator));
}

/* Whatever the memory's address is, and whatever the size: the frame is aligned, its own, and goes back. */
static void a_created_frame_has_a_larger_alignment(void **state)
{
    (void)state;
    for (size_t alignment = 1; alignment <= 1024; alignment *= 2) {
        for (size_t skip = 0; skip < 128; skip += BIDE_ALLOCATOR_ALIGN) {
            bide_arena arena;
            struct counting counting;
            bide_arena_init(&arena, memory + skip, sizeof memory - skip);
            count(&counting, &arena.allocator);
            unsigned char *one =
                bide_create_aligned(100, alignment, &walk_body, &counting.allocator);
            unsigned char *other =
                bide_create_aligned(100, alignment, &walk_body, &counting.allocator);
            assert_int_equal((uintptr_t)one % alignment, 0);
            assert_int_equal((uintptr_t)other % alignment, 0);
            assert_int_equal(counting.held, 2);
            memset(one, 1, 100);
            memset(other, 2, 100);
            assert_true(other + 100 <= memory + skip + arena.used);
            bide_free((bide_frame *)(void *)other);
            bide_free((bide_frame *)(void *)one);
            assert_int_equal(arena.used, 0);
            assert_int_equal(counting.held, 0);
            assert_null(bide_create_aligned(SIZE_MAX - sizeof(bide_owner) - 1, alignment,
                                            &walk_body, &arena.allocator));
        }
    }
}

static void an_arena_gives_what_it_has_and_is_reset(void **state)
{
    (void)state;
    bide_arena arena;
    bide_arena_init(&arena, memory, 64);
    bide_allocator *allocator = &arena.allocator;
    void *first = allocator->allocate(allocator, 1);
    assert_ptr_equal(first, memory);
    assert_ptr_equal(allocator->allocate(allocator, 48), memory + 16);
    assert_null(allocator->allocate(allocator, 1));
    allocator->deallocate(allocator, first, 1); /* not the last: kept */
    assert_null(allocator->allocate(allocator, 1));
    bide_arena_reset(&arena);
    assert_non_null(allocator->allocate(allocator, 64));
    bide_arena_init(&arena, memory + 1, 3);
    assert_null(allocator->allocate(allocator, 1));
}

static void a_pool_gives_each_piece_once_and_again_when_it_is_back(void **state)
{
    (void)state;
    bide_pool pool;
    bide_pool_init(&pool, 40, memory, 3 * 48 + 47);
    bide_allocator *allocator = &pool.allocator;
    void *pieces[3];
    for (int i = 0; i < 3; i++) {
        pieces[i] = allocator->allocate(allocator, i == 0 ? 1 : 48);
        assert_non_null(pieces[i]);
        memset(pieces[i], i, 48);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(((unsigned char *)pieces[i])[47], i);
    assert_null(allocator->allocate(allocator, 1));
    allocator->deallocate(allocator, pieces[1], 1);
    assert_null(allocator->allocate(allocator, 49));
    assert_ptr_equal(allocator->allocate(allocator, 48), pieces[1]);
    assert_null(allocator->allocate(allocator, 1));
    bide_pool_init(&pool, SIZE_MAX, memory, sizeof memory);
    assert_null(allocator->allocate(allocator, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_walked_with_frames_from_an_arena),
        cmocka_unit_test(a_tree_is_walked_with_frames_from_a_pool),
#if TESTING_HOSTED
        cmocka_unit_test(a_tree_is_walked_with_frames_from_the_heap),
#endif
        cmocka_unit_test(without_memory_the_await_ends_with_enomem_and_nothing_is_lost),
        cmocka_unit_test(destroying_the_outermost_frees_all_of_them),
        cmocka_unit_test(a_destroyed_child_is_freed_with_its_parent),
        cmocka_unit_test(a_created_frame_is_aligned_and_the_users),
        cmocka_unit_test(a_created_frame_has_a_larger_alignment),
        cmocka_unit_test(an_arena_gives_what_it_has_and_is_reset),
        cmocka_unit_test(a_pool_gives_each_piece_once_and_again_when_it_is_back),
    };
    return cmocka_run_group_tests_name("created frames", tests, NULL, NULL);
}
