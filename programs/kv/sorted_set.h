/*
 * Sorted sets: members with scores, in the order of their scores, and of their bytes if scores are equal. They are
 * collections (collection.h). One thread.
 *
 * The table has the members. The value of an entry is a pointer to its node in a tree. The tree is in the order of the
 * set, and each node counts its subtree. So a member is found by its name in one step, and by its rank, or at an end
 * of a range, in as many steps as the tree is deep.
 *
 * The tree is a treap: no node has a smaller priority than its parent. The priority is the upper half of the member's hash, whose
 * key no client knows. The lower half chooses the bucket, whose order SCAN shows; the upper half shows nowhere but in the time
 * that commands take. So the tree is as deep as one with nodes in random order: on average less than three times the logarithm.
 *
 * A node keeps its address until the member is removed. No score is NaN.
 */
#ifndef KV_SORTED_SET_H
#define KV_SORTED_SET_H

#include "collection.h"

struct sorted_node {
    struct sorted_node *left, *right, *parent;
    struct entry *entry;
    double score;
    size_t count; /* nodes of the subtree */
    uint32_t priority;
};

/* For collection_create: frees the node of an entry that is freed with the table. */
void sorted_set_free_node(void *argument, struct entry *entry);

/* The node of a member's entry. */
static inline struct sorted_node *sorted_node_of(const struct entry *entry)
{
    struct sorted_node *node;
    memcpy(&node, entry->bytes + entry->key_size, sizeof node);
    return node;
}

/* The node of a member, or NULL. */
static inline struct sorted_node *sorted_set_find(struct collection *set, struct bytes member)
{
    const struct entry *entry = hash_find(set, member);
    return entry != NULL ? sorted_node_of(entry) : NULL;
}

/* Adds a member, or changes its score. Returns 1 if it is new, 0 if not, or -ENOMEM, then nothing has changed. */
int sorted_set_put(struct collection *set, struct bytes member, double score);

/* Returns false if there is no such member. `member` may be in the set's memory. */
bool sorted_set_remove(struct collection *set, struct bytes member);

/* Removes `count` members from that rank on, which are there. */
void sorted_set_remove_range(struct collection *set, size_t first, size_t count);

/* The number of members before this one. */
size_t sorted_set_rank(const struct sorted_node *node);

/* The node of that rank, which is less than the number of members. */
struct sorted_node *sorted_set_at(const struct collection *set, size_t rank);

/* The node behind this one, or with `backward` before it; or NULL. */
struct sorted_node *sorted_set_next(const struct sorted_node *node, bool backward);

/* The number of members with smaller scores; with `behind`, those with this score count too. */
size_t sorted_set_rank_of_score(const struct collection *set, double score, bool behind);

/* If all scores are equal: the number of members that are smaller; with `behind`, this one counts too. */
size_t sorted_set_rank_of_member(const struct collection *set, struct bytes member, bool behind);

/* ---- Scores as texts ---- */

enum { SCORE_SIZE = 32 };

/* Parses the whole text as a number or an infinity. Returns false if it is none, or out of range. */
bool score_read(struct bytes text, double *score);

/*
 * Parses a bound of a range, as redis does: with strtod alone. So a number that is too large is an infinity, spaces may
 * be before it, and no text is 0. Returns false if it is NaN, or there is text behind it.
 */
bool score_read_bound(struct bytes text, double *score);

/* Prints a score so that score_read has the same again. Returns the size. */
size_t score_print(char text[SCORE_SIZE], double score);

#endif
