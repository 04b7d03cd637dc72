/* kv's sorted sets beside a sorted array, and scores as texts. */
#include "../../../programs/kv/sorted_set.h"

#include "testing.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAMES = 400, NAME_SIZE = 8 };

/* The model: members in the order of their scores and names. */
struct member {
    double score;
    char name[NAME_SIZE];
};

struct model {
    struct member members[NAMES];
    size_t count;
};

static struct bytes name_of(const struct member *member)
{
    return (struct bytes){member->name, strlen(member->name)};
}

static int compare(const void *a, const void *b)
{
    const struct member *one = a, *other = b;
    if (one->score != other->score)
        return one->score < other->score ? -1 : 1;
    return strcmp(one->name, other->name);
}

static size_t find(const struct model *model, const char *name)
{
    size_t i = 0;
    while (i < model->count && strcmp(model->members[i].name, name) != 0)
        i++;
    return i;
}

/* Few scores, so that many are equal; sometimes an infinity. */
static double some_score(uint64_t *random)
{
    uint64_t number = testing_random(random) % 40;
    return number == 0 ? INFINITY : number == 1 ? -INFINITY : ((double)number - 20) / 4;
}

static void change(struct collection *set, struct model *model, uint64_t *random, bool grows)
{
    struct member member = {some_score(random), ""};
    (void)snprintf(member.name, sizeof member.name, "%u",
                   (unsigned)(testing_random(random) % NAMES));
    size_t at = find(model, member.name);
    bool is_there = at < model->count;
    if (testing_random(random) % 8 < (grows ? 6 : 2)) {
        assert_int_equal(sorted_set_put(set, name_of(&member), member.score), !is_there);
        model->members[at] = member;
        model->count += !is_there;
    } else {
        assert_int_equal(sorted_set_remove(set, name_of(&member)), is_there);
        if (is_there)
            model->members[at] = model->members[--model->count];
    }
    qsort(model->members, model->count, sizeof member, compare);
}

/* Checks the links, the counts and the priorities. Returns the depth. */
static size_t check_tree(const struct sorted_node *node, const struct sorted_node *parent)
{
    if (node == NULL)
        return 0;
    assert_ptr_equal(node->parent, parent);
    assert_true(parent == NULL || parent->priority <= node->priority);
    size_t left = check_tree(node->left, node), right = check_tree(node->right, node);
    size_t count = 1 + (node->left != NULL ? node->left->count : 0) +
                   (node->right != NULL ? node->right->count : 0);
    assert_int_equal(node->count, count);
    return 1 + (left > right ? left : right);
}

static void check_order(const struct collection *set, const struct model *model)
{
    const struct sorted_node *before = NULL, *node = NULL;
    for (size_t i = 0; i < model->count; i++, before = node) {
        node = i == 0 ? sorted_set_at(set, 0) : sorted_set_next(before, false);
        assert_non_null(node);
        assert_true(bytes_equal(entry_key(node->entry), name_of(&model->members[i])));
        assert_true(node->score == model->members[i].score);
        assert_int_equal(sorted_set_rank(node), i);
        assert_ptr_equal(sorted_set_at(set, i), node);
        assert_ptr_equal(sorted_set_next(node, true), before);
    }
    if (node != NULL)
        assert_null(sorted_set_next(node, false));
}

static void check_bounds(const struct collection *set, const struct model *model, uint64_t *random)
{
    double score = some_score(random);
    size_t before = 0, equal = 0;
    for (size_t i = 0; i < model->count; i++) {
        before += model->members[i].score < score;
        equal += model->members[i].score == score;
    }
    assert_int_equal(sorted_set_rank_of_score(set, score, false), before);
    assert_int_equal(sorted_set_rank_of_score(set, score, true), before + equal);
}

static struct collection *create_set(uint64_t *random)
{
    const uint64_t key[2] = {testing_random(random), testing_random(random)};
    struct collection *set = collection_create(VALUE_SORTED_SET, key);
    assert_non_null(set);
    return set;
}

static void free_set(struct collection *set)
{
    while (!collection_free_some(set, 3))
        continue;
}

static void a_set_is_as_a_sorted_array(void **state)
{
    enum { SETS = 8, CHANGES = 1500, MAX_DEPTH = 60 };
    static struct model model;
    uint64_t random = testing_seed();
    (void)state;
    for (int i = 0; i < SETS; i++) {
        struct collection *set = create_set(&random);
        model.count = 0;
        for (int j = 0; j < CHANGES; j++) {
            change(set, &model, &random, j < CHANGES / 2);
            assert_int_equal(collection_count(set), model.count);
            check_bounds(set, &model, &random);
            if (j % 50 == 0) {
                assert_true(check_tree(set->root, NULL) <= MAX_DEPTH);
                check_order(set, &model);
            }
        }
        struct collection *copy = collection_copy(set);
        assert_non_null(copy);
        free_set(set);
        check_order(copy, &model);
        free_set(copy);
    }
}

/* In random order, less than one of a billion trees with so many nodes is deeper: four times the logarithm, and some. */
static size_t depth_of(size_t count)
{
    size_t bits = 0;
    while (count >> bits != 0)
        bits++;
    return 4 * bits + 12;
}

/*
 * Orders in which a tree without priorities becomes a list: scores that rise or fall, equal scores with members that do, both
 * ends in turn; and the removal of what keeps others apart.
 */
static void no_order_makes_a_set_deep(void **state)
{
    enum { COUNT = 4000 };
    uint64_t random = testing_seed();
    (void)state;
    for (int order = 0; order < 5; order++) {
        struct collection *set = create_set(&random);
        char name[16];
        for (int i = 0; i < COUNT; i++) {
            int place = order == 1 || order == 3 ? COUNT - i : order == 4 ? (i % 2 ? i : -i) : i;
            (void)snprintf(name, sizeof name, "%08d", place);
            assert_int_equal(
                sorted_set_put(set, bytes_of(name), order == 2 || order == 3 ? 7 : place), 1);
            if ((i & (i - 1)) == 0)
                assert_true(check_tree(set->root, NULL) <= depth_of((size_t)i + 1));
        }
        assert_true(check_tree(set->root, NULL) <= depth_of(COUNT));
        for (int round = 0; round < 3; round++) { /* each second one, and a range from within */
            for (size_t rank = 0; rank < collection_count(set); rank++)
                assert_true(sorted_set_remove(set, entry_key(sorted_set_at(set, rank)->entry)));
            sorted_set_remove_range(set, collection_count(set) / 3, collection_count(set) / 4);
            assert_true(check_tree(set->root, NULL) <= depth_of(collection_count(set)));
        }
        for (int i = 0; i < COUNT; i++) { /* all scores move, one behind the other */
            (void)snprintf(name, sizeof name, "%08d", i);
            sorted_set_put(set, bytes_of(name), (double)COUNT + i);
        }
        assert_true(check_tree(set->root, NULL) <= depth_of(collection_count(set)));
        free_set(set);
    }
}

static void members_of_one_score_are_in_the_order_of_their_bytes(void **state)
{
    static const char *const names[] = {"", "a", "aa", "ab", "b", "\xff"};
    enum { COUNT = sizeof names / sizeof *names };
    uint64_t random = testing_seed();
    struct collection *set = create_set(&random);
    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(sorted_set_put(set, bytes_of(names[COUNT - 1 - i]), 0), 1);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(sorted_set_rank(sorted_set_find(set, bytes_of(names[i]))), i);
        assert_int_equal(sorted_set_rank_of_member(set, bytes_of(names[i]), false), i);
        assert_int_equal(sorted_set_rank_of_member(set, bytes_of(names[i]), true), i + 1);
    }
    assert_int_equal(sorted_set_rank_of_member(set, bytes_of("aaa"), false), 3);
    free_set(set);
}

static void scores_are_read_as_they_were_printed(void **state)
{
    uint64_t random = testing_seed();
    char text[SCORE_SIZE];
    double read, some[] = {0.0, -0.0, 0.1, DBL_MAX, -DBL_MAX, DBL_MIN, INFINITY, -INFINITY, 1e17};
    (void)state;
    for (int i = 0; i < 3000; i++) {
        uint64_t bits = testing_random(&random);
        double score;
        memcpy(&score, &bits, sizeof score);
        if ((size_t)i < sizeof some / sizeof *some)
            score = some[i];
        if (isnan(score) || (score != 0 && !isinf(score) && fabs(score) < DBL_MIN))
            continue;
        size_t size = score_print(text, score);
        assert_true(score_read((struct bytes){text, size}, &read));
        assert_int_equal(memcmp(&read, &score, sizeof read), 0);
    }
    static const char *const wrong[] = {"",    " 1",   "1 ",      "x",      "1x",
                                        "-",   "+",    "1e999",   "-1e999", "1e-999",
                                        "nan", "-nan", "infinit", "(1",     "0x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(score_read(bytes_of(wrong[i]), &read));
    assert_false(score_read((struct bytes){"1\0", 2}, &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_as_a_sorted_array),
        cmocka_unit_test(no_order_makes_a_set_deep),
        cmocka_unit_test(members_of_one_score_are_in_the_order_of_their_bytes),
        cmocka_unit_test(scores_are_read_as_they_were_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
