/*
 * Recursive generators: the values of nested ones come in order, at any depth; errors propagate outwards, or are
 * returned; an early end runs from the innermost outwards, and releases created frames.
 */
#define _GNU_SOURCE
#include "misuse.h"

#include "bide/create.h"
#include "bide/event.h"
#include "bide/recursive_generator.h"

#include <errno.h>

/* ---- A tree, in order ---- */

struct node {
    int key;
    struct node *left, *right;
};

/* A tree of `count` nodes (at most 1000) with the keys from 0 on, of a random form. */
static struct node *tree_of(struct node *nodes, int count, int first, uint64_t *random)
{
    if (count == 0)
        return NULL;
    int left = (int)(testing_random(random) % (uint64_t)count);
    struct node *node = &nodes[left];
    node->key = first + left;
    node->left = tree_of(nodes, left, first, random);
    node->right = tree_of(nodes + left + 1, count - left - 1, first + left + 1, random);
    return node;
}

struct walk {
    bide_recursive_generator generator;
    const struct node *node;
    bide_allocator *allocator;
};

static void *walk_create(bide_allocator *allocator, const struct node *node);

bide_recursive_generator_coroutine(walk_body)
{
    bide_begin(walk_body, struct walk * self);
    if (self->node->left != NULL)
        bide_yield_from_owned(walk_create(self->allocator, self->node->left), &walk_body);
    bide_yield((void *)(uintptr_t)&self->node->key);
    if (self->node->right != NULL)
        bide_yield_from_owned(walk_create(self->allocator, self->node->right), &walk_body);
    bide_end();
}

static void *walk_create(bide_allocator *allocator, const struct node *node)
{
    struct walk *self = bide_create(sizeof *self, &walk_body, allocator);
    if (self != NULL) {
        self->node = node;
        self->allocator = allocator;
    }
    return self;
}

static bide_recursive_generator *walk(struct walk *self, const struct node *node,
                                      bide_allocator *allocator)
{
    self->node = node;
    self->allocator = allocator;
    return bide_recursive_generator_init(&self->generator, &walk_body);
}

enum { NODES = 1000 };

static BIDE_ALIGNAS(16) unsigned char memory[NODES * 160];
static struct node nodes[NODES];

/* The number of pieces of a pool in use. */
static size_t held(const bide_pool *pool, size_t all)
{
    size_t unused = pool->left;
    for (const void *piece = pool->unused; piece != NULL; piece = *(void *const *)piece)
        unused++;
    return all - unused;
}

static void a_tree_is_walked_in_order_with_created_frames(void **state)
{
    (void)state;
    uint64_t random = 7;
    bide_pool pool;
    bide_pool_init(&pool, sizeof(bide_owner) + sizeof(struct walk), memory, sizeof memory);
    size_t all = pool.left;
    for (int count = 1; count <= 300; count += 7) {
        struct walk root;
        int expected = 0;
        const struct node *tree = tree_of(nodes, count, 0, &random);
        bide_for_recursive (const int *, key, walk(&root, tree, &pool.allocator))
            assert_int_equal(*key, expected++);
        assert_int_equal(expected, count);
        assert_int_equal(bide_recursive_generator_error(&root.generator), 0);
        assert_int_equal(held(&pool, all), 0);
    }
}

static void an_early_end_gives_created_frames_back(void **state)
{
    (void)state;
    uint64_t random = 9;
    bide_pool pool;
    bide_pool_init(&pool, sizeof(bide_owner) + sizeof(struct walk), memory, sizeof memory);
    size_t all = pool.left;
    const struct node *tree = tree_of(nodes, 100, 0, &random);
    for (int stop = 0; stop < 100; stop++) {
        struct walk root;
        int expected = 0;
        bide_for_recursive (const int *, key, walk(&root, tree, &pool.allocator)) {
            assert_int_equal(*key, expected++);
            if (*key == stop)
                break;
        }
        assert_int_equal(expected, stop + 1);
        assert_true(bide_done(&root.generator.frame));
        assert_int_equal(held(&pool, all), 0);
    }
}

static void no_memory_for_a_nested_one_is_an_error_of_all(void **state)
{
    (void)state;
    bide_arena arena;
    struct walk root;
    int values = 0;
    struct node tree[3] = {{1, NULL, &tree[1]}, {2, NULL, &tree[2]}, {3, NULL, NULL}};
    bide_arena_init(&arena, memory,
                    sizeof(bide_owner) + sizeof(struct walk) + BIDE_ALLOCATOR_ALIGN);
    bide_for_recursive (const int *, key, walk(&root, &tree[0], &arena.allocator))
        values += *key;
    assert_int_equal(values, 1 + 2);
    assert_int_equal(bide_recursive_generator_error(&root.generator), -ENOMEM);
}

/* ---- Errors, and a chain to any depth ---- */

static char said[64];

struct level {
    bide_recursive_generator generator;
    int depth; /* of those below */
    int error;
    bool keeps_status;
    int status;
    int numbers[2];
    struct level *below;
};

bide_recursive_generator_coroutine(level_body)
{
    bide_begin(level_body, struct level * self);
    self->numbers[0] = 10 * self->depth;
    bide_yield(&self->numbers[0]);
    if (self->below != NULL && self->keeps_status)
        bide_yield_from_status(self->status, &self->below->generator);
    else if (self->below != NULL)
        bide_yield_from(&self->below->generator);
    self->numbers[1] = 10 * self->depth + 1;
    bide_yield(&self->numbers[1]);
    bide_return(self->error);
    bide_finally();
    size_t length = strlen(said);
    if (length + 1 < sizeof said) {
        said[length] = (char)('0' + self->depth);
        said[length + 1] = '\0';
    }
    bide_end();
}

static bide_recursive_generator *levels_init(struct level *levels, int count)
{
    said[0] = '\0';
    for (int i = 0; i < count; i++) {
        levels[i] =
            (struct level){.depth = count - 1 - i, .below = i + 1 < count ? &levels[i + 1] : NULL};
        bide_recursive_generator_init(&levels[i].generator, &level_body);
    }
    return &levels[0].generator;
}

static void nested_values_come_between_the_outer_ones(void **state)
{
    (void)state;
    struct level levels[3];
    static const int expected[] = {20, 10, 0, 1, 11, 21};
    int i = 0;
    bide_for_recursive (int *, number, levels_init(levels, 3))
        assert_int_equal(*number, expected[i++]);
    assert_int_equal(i, 6);
    assert_string_equal(said, "012");
}

static void an_error_of_a_nested_one_ends_all(void **state)
{
    (void)state;
    struct level levels[3];
    int values = 0;
    bide_recursive_generator *root = levels_init(levels, 3);
    levels[2].error = -EIO;
    bide_for_recursive (int *, number, root)
        values += *number >= 0;
    assert_int_equal(values, 4); /* 20 10 0 1 */
    assert_int_equal(bide_recursive_generator_error(root), -EIO);
    assert_int_equal(bide_recursive_generator_error(&levels[1].generator), -EIO);
    assert_string_equal(said, "012");
}

static void an_error_may_be_kept_as_a_status(void **state)
{
    (void)state;
    struct level levels[3];
    int values = 0;
    bide_recursive_generator *root = levels_init(levels, 3);
    levels[2].error = -EIO;
    levels[1].keeps_status = true;
    bide_for_recursive (int *, number, root)
        values += *number >= 0;
    assert_int_equal(values, 6);
    assert_int_equal(levels[1].status, -EIO);
    assert_int_equal(bide_recursive_generator_error(root), 0);
}

static void an_early_end_goes_from_the_innermost_outwards(void **state)
{
    (void)state;
    struct level levels[4];
    bide_for_recursive (int *, number, levels_init(levels, 4)) {
        if (*number == 0)
            break;
    }
    assert_string_equal(said, "0123");
    for (int i = 0; i < 4; i++) {
        assert_true(bide_done(&levels[i].generator.frame));
        assert_int_equal(bide_recursive_generator_error(&levels[i].generator), -ECANCELED);
    }
    assert_null(bide_recursive_generator_next(&levels[0].generator));
}

#if TESTING_HOSTED
struct awaits {
    bide_recursive_generator generator;
    bide_event event;
    bide_event_waiter wait;
};

bide_recursive_generator_coroutine(awaits_body)
{
    bide_begin(awaits_body, struct awaits * self);
    bide_await(bide_event_wait(&self->wait, &self->event));
    bide_end();
}

static void await_an_event(void)
{
    struct awaits frame;
    bide_event_init(&frame.event, false);
    bide_recursive_generator_next(bide_recursive_generator_init(&frame.generator, &awaits_body));
}

static void awaiting_what_might_suspend_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(await_an_event, "may not await", "awaits_body"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_walked_in_order_with_created_frames),
        cmocka_unit_test(an_early_end_gives_created_frames_back),
        cmocka_unit_test(no_memory_for_a_nested_one_is_an_error_of_all),
        cmocka_unit_test(nested_values_come_between_the_outer_ones),
        cmocka_unit_test(an_error_of_a_nested_one_ends_all),
        cmocka_unit_test(an_error_may_be_kept_as_a_status),
        cmocka_unit_test(an_early_end_goes_from_the_innermost_outwards),
#if TESTING_HOSTED
        cmocka_unit_test(awaiting_what_might_suspend_is_misuse),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
