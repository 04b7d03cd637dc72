/* Sorted sets: a table of members, and a treap of nodes. sorted_set.h has the model. */
#include "sorted_set.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The order ---- */

static int compare_members(struct bytes a, struct bytes b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static bool is_before(const struct sorted_node *a, const struct sorted_node *b)
{
    if (a->score != b->score)
        return a->score < b->score;
    return compare_members(entry_key(a->entry), entry_key(b->entry)) < 0;
}

/* ---- The tree ---- */

static size_t count_of(const struct sorted_node *node)
{
    return node != NULL ? node->count : 0;
}

/* The place of the pointer to the node. */
static struct sorted_node **link_of(struct collection *set, const struct sorted_node *node)
{
    struct sorted_node *parent = node->parent;
    return parent == NULL ? &set->root : parent->left == node ? &parent->left : &parent->right;
}

static void set_child(struct sorted_node *parent, struct sorted_node **link,
                      struct sorted_node *child)
{
    *link = child;
    if (child != NULL)
        child->parent = parent;
}

/* The node takes its parent's place, and the parent becomes its child. */
static void rotate_up(struct collection *set, struct sorted_node *node)
{
    struct sorted_node *parent = node->parent;
    *link_of(set, parent) = node;
    node->parent = parent->parent;
    if (parent->left == node) {
        set_child(parent, &parent->left, node->right);
        set_child(node, &node->right, parent);
    } else {
        set_child(parent, &parent->right, node->left);
        set_child(node, &node->left, parent);
    }
    node->count = parent->count;
    parent->count = 1 + count_of(parent->left) + count_of(parent->right);
}

static void insert_node(struct collection *set, struct sorted_node *node)
{
    struct sorted_node *parent = NULL, **link = &set->root;
    while (*link != NULL) {
        parent = *link;
        parent->count++;
        link = is_before(node, parent) ? &parent->left : &parent->right;
    }
    *link = node;
    node->parent = parent;
    node->left = node->right = NULL;
    node->count = 1;
    while (node->parent != NULL && node->priority < node->parent->priority)
        rotate_up(set, node);
}

/* The node becomes a leaf, and then leaves. */
static void remove_node(struct collection *set, struct sorted_node *node)
{
    while (node->left != NULL || node->right != NULL) {
        bool is_left = node->right == NULL ||
                       (node->left != NULL && node->left->priority <= node->right->priority);
        rotate_up(set, is_left ? node->left : node->right);
    }
    *link_of(set, node) = NULL;
    for (struct sorted_node *above = node->parent; above != NULL; above = above->parent)
        above->count--;
}

/* ---- Members ---- */

void sorted_set_free_node(void *argument, struct entry *entry)
{
    (void)argument;
    memory_free(sorted_node_of(entry));
}

int sorted_set_put(struct collection *set, struct bytes member, double score)
{
    struct sorted_node *node = sorted_set_find(set, member);
    struct table *table = &set->fields;
    if (node != NULL) {
        if (node->score != score) {
            remove_node(set, node);
            node->score = score;
            insert_node(set, node);
        }
        return 0;
    }
    node = memory_allocate(sizeof *node);
    uint64_t hash = bytes_hash(member, table->key);
    struct entry *entry =
        node != NULL ? table_add(table, member, (uint32_t)hash, sizeof node) : NULL;
    if (entry == NULL) {
        memory_free(node);
        return -ENOMEM;
    }
    memcpy(entry->bytes + entry->key_size, &node, sizeof node);
    entry->value_size = sizeof node;
    node->entry = entry;
    node->score = score;
    node->priority = (uint32_t)(hash >> 32);
    insert_node(set, node);
    return 1;
}

bool sorted_set_remove(struct collection *set, struct bytes member)
{
    struct sorted_node *node = sorted_set_find(set, member);
    if (node == NULL)
        return false;
    remove_node(set, node);
    memory_free(node);
    return hash_delete(set, member);
}

void sorted_set_remove_range(struct collection *set, size_t first, size_t count)
{
    const struct sorted_node *next = count > 0 ? sorted_set_at(set, first) : NULL;
    for (; count > 0; count--) {
        struct bytes member = entry_key(next->entry);
        next = sorted_set_next(next, false);
        sorted_set_remove(set, member);
    }
}

/* ---- Ranks ---- */

size_t sorted_set_rank(const struct sorted_node *node)
{
    size_t rank = count_of(node->left);
    for (; node->parent != NULL; node = node->parent) {
        if (node == node->parent->right)
            rank += 1 + count_of(node->parent->left);
    }
    return rank;
}

struct sorted_node *sorted_set_at(const struct collection *set, size_t rank)
{
    struct sorted_node *node = set->root;
    bide_assert(rank < count_of(node));
    while (rank != count_of(node->left)) {
        if (rank < count_of(node->left)) {
            node = node->left;
        } else {
            rank -= count_of(node->left) + 1;
            node = node->right;
        }
    }
    return node;
}

struct sorted_node *sorted_set_next(const struct sorted_node *node, bool backward)
{
    struct sorted_node *next = backward ? node->left : node->right;
    if (next != NULL) {
        for (struct sorted_node *below; (below = backward ? next->right : next->left) != NULL;)
            next = below;
        return next;
    }
    for (next = node->parent; next != NULL && node == (backward ? next->left : next->right);
         next = next->parent)
        node = next;
    return next;
}

size_t sorted_set_rank_of_score(const struct collection *set, double score, bool behind)
{
    size_t rank = 0;
    for (const struct sorted_node *node = set->root; node != NULL;) {
        bool is_counted = node->score < score || (behind && node->score == score);
        rank += is_counted ? 1 + count_of(node->left) : 0;
        node = is_counted ? node->right : node->left;
    }
    return rank;
}

size_t sorted_set_rank_of_member(const struct collection *set, struct bytes member, bool behind)
{
    size_t rank = 0;
    for (const struct sorted_node *node = set->root; node != NULL;) {
        bool is_counted = compare_members(entry_key(node->entry), member) < (behind ? 1 : 0);
        rank += is_counted ? 1 + count_of(node->left) : 0;
        node = is_counted ? node->right : node->left;
    }
    return rank;
}

/* ---- Scores as texts ---- */

/* Sets errno to ERANGE if the number is too large or too small. */
bool score_read_bound(struct bytes text, double *score)
{
    char copy[512], *end;
    if (text.size >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    errno = 0;
    *score = strtod(copy, &end);
    return (end == copy + text.size || text.size == 0) && !isnan(*score);
}

bool score_read(struct bytes text, double *score)
{
    if (text.size == 0 || isspace((unsigned char)text.data[0]) || !score_read_bound(text, score))
        return false;
    return errno != ERANGE || (!isinf(*score) && *score != 0);
}

size_t score_print(char text[SCORE_SIZE], double score)
{
    if (isinf(score))
        return (size_t)snprintf(text, SCORE_SIZE, "%s", score > 0 ? "inf" : "-inf");
    return (size_t)snprintf(text, SCORE_SIZE, "%.17g", score);
}
