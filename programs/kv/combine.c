/* Combinations of sets and of sorted sets. combine.h has the model. One thread. */
#include "combine.h"

#include "commands.h"
#include "sorted_set.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ---- Scores ---- */

/* The score of an entry of that set, times the set's weight. */
static double weighted_score(const struct combination *combination, size_t at,
                             const struct entry *entry)
{
    if (!combination->has_scores)
        return 0;
    const struct collection *set = combination->sets[at];
    double score = set->type == VALUE_SORTED_SET ? sorted_node_of(entry)->score : 1;
    if (combination->weights != NULL)
        score *= combination->weights[at];
    return isnan(score) ? 0 : score; /* (an infinity times 0) */
}

static double aggregate_scores(enum aggregate aggregate, double one, double other)
{
    if (aggregate == AGGREGATE_MIN)
        return one < other ? one : other;
    if (aggregate == AGGREGATE_MAX)
        return one > other ? one : other;
    double sum = one + other;
    return isnan(sum) ? 0 : sum; /* (of both infinities) */
}

/* Adds a member to the result. Returns 1 if it is new, 0 if not, or -ENOMEM. */
static int collect_member(struct combination *combination, struct bytes member, double score)
{
    if (!combination->has_scores)
        return set_add(combination->to, member);
    const struct sorted_node *node = sorted_set_find(combination->to, member);
    if (node != NULL)
        score = aggregate_scores(combination->aggregate, node->score, score);
    return sorted_set_put(combination->to, member, score);
}

/* ---- Visiting members ---- */

/* True if the member of combination->from is one of the combination. *score is its score there. */
static bool is_combined(const struct combination *combination, struct entry *entry, double *score)
{
    bool is_intersection = combination->operation == INTERSECTION;
    *score = weighted_score(combination, combination->from_at, entry);
    if (combination->operation == UNION)
        return true;
    for (size_t i = 0; i < combination->count; i++) {
        struct collection *set = combination->sets[i];
        if (i == combination->from_at)
            continue;
        combination->client->kv->work++;
        const struct entry *same = NULL;
        if (set == combination->from) /* (it may not be searched while it is visited) */
            same = entry;
        else if (set != NULL)
            same = hash_find(set, entry_key(entry));
        if ((same != NULL) != is_intersection)
            return false;
        if (is_intersection)
            *score = aggregate_scores(combination->aggregate, *score,
                                      weighted_score(combination, i, same));
    }
    return true;
}

static void combine_member(void *argument, struct entry *entry)
{
    struct combination *combination = argument;
    struct client *client = combination->client;
    double score;
    client->kv->work++;
    if (combination->status < 0 || combination->found >= combination->limit ||
        (combination->replies && client_refuses_reply(client)) ||
        !is_combined(combination, entry, &score))
        return;
    if (combination->to != NULL)
        combination->status = collect_member(combination, entry_key(entry), score);
    if (combination->status == 0 && combination->to != NULL)
        return; /* it was there */
    if (combination->status < 0)
        return;
    combination->found++;
    if (combination->replies)
        reply_bulk(client, entry_key(entry));
}

static void visit_set(struct combination *combination, size_t at)
{
    struct collection *set = combination->sets[at];
    size_t cursor = 0;
    combination->from = set;
    combination->from_at = at;
    if (set == NULL)
        return;
    do
        cursor = table_scan(&set->fields, cursor, combine_member, combination);
    while (cursor != 0 && combination->status >= 0 && combination->found < combination->limit &&
           !(combination->replies && client_refuses_reply(combination->client)));
}

/* The index of the smallest set, or of a key that has none: then the intersection is empty. */
static size_t smallest_set(const struct combination *combination)
{
    struct collection **sets = combination->sets;
    size_t smallest = 0;
    for (size_t i = 0; i < combination->count && sets[smallest] != NULL; i++) {
        if (sets[i] == NULL || collection_count(sets[i]) < collection_count(sets[smallest]))
            smallest = i;
    }
    return smallest;
}

static void subtract_member(void *argument, struct entry *entry)
{
    struct combination *combination = argument;
    struct bytes member = entry_key(entry);
    combination->client->kv->work++;
    combination->found -= combination->has_scores ? sorted_set_remove(combination->to, member)
                                                  : set_remove(combination->to, member);
}

static void reply_member(void *argument, struct entry *entry)
{
    struct combination *combination = argument;
    if (!client_refuses_reply(combination->client))
        reply_bulk(combination->client, entry_key(entry));
}

static void scan_set(struct collection *set, void (*visit)(void *, struct entry *), void *argument)
{
    size_t cursor = 0;
    do
        cursor = table_scan(&set->fields, cursor, visit, argument);
    while (cursor != 0);
}

/*
 * Subtracting takes a step for each member of all sets. Looking up each member of the first set in the
 * others takes as many steps as it has members, times the sets.
 */
bool combination_prefers_subtraction(const struct combination *combination)
{
    const struct collection *first = combination->sets[0];
    uint64_t all = 0;
    for (size_t i = 0; i < combination->count; i++)
        all += combination->sets[i] != NULL ? collection_count(combination->sets[i]) : 0;
    return combination->operation == DIFFERENCE && first != NULL &&
           collection_count(first) * (uint64_t)combination->count > 2 * all;
}

/* Collects the first set, and removes the members of the others. */
static void subtract_sets(struct combination *combination)
{
    bool replies = combination->replies;
    combination->operation = UNION;
    combination->replies = false;
    visit_set(combination, 0);
    for (size_t i = 1; i < combination->count && combination->status >= 0; i++) {
        if (combination->sets[i] != NULL)
            scan_set(combination->sets[i], subtract_member, combination);
    }
    if (replies && combination->status >= 0)
        scan_set(combination->to, reply_member, combination);
}

void combination_run(struct combination *combination)
{
    if (combination->operation == INTERSECTION)
        visit_set(combination, smallest_set(combination));
    else if (combination->operation == UNION)
        for (size_t i = 0; i < combination->count && combination->status >= 0; i++)
            visit_set(combination, i);
    else if (combination->to != NULL && combination_prefers_subtraction(combination))
        subtract_sets(combination);
    else
        visit_set(combination, 0);
}

/* ---- Finding the sets ---- */

static int compare_pointers(const void *a, const void *b)
{
    struct collection *one, *other;
    memcpy(&one, a, sizeof one);
    memcpy(&other, b, sizeof other);
    return ((uintptr_t)one > (uintptr_t)other) - ((uintptr_t)one < (uintptr_t)other);
}

/* Sorts the sets behind the first, and drops duplicates. */
static void drop_equal_sets(struct combination *combination)
{
    struct collection **sets = combination->sets;
    size_t kept = 2;
    if (combination->count <= 2)
        return;
    qsort(sets + 1, combination->count - 1, sizeof *sets, compare_pointers);
    for (size_t i = 2; i < combination->count; i++) {
        if (sets[i] != sets[kept - 1])
            sets[kept++] = sets[i];
    }
    combination->count = kept;
}

/* Replies with an error and returns false if too many members would be visited again. */
static bool check_repeated(struct combination *combination)
{
    size_t count = combination->count, smallest = smallest_set(combination);
    const struct collection *smallest_one = combination->sets[smallest];
    struct collection **sorted = malloc(count * sizeof *sorted);
    uint64_t repeated = 0;
    if (sorted == NULL) {
        reply_no_memory(combination->client);
        return false;
    }
    memcpy(sorted, combination->sets, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_pointers);
    for (size_t i = 1; i < count; i++) {
        if (sorted[i] != NULL && sorted[i] == sorted[i - 1])
            repeated += combination->operation == UNION ? collection_count(sorted[i])
                        : smallest_one != NULL          ? collection_count(smallest_one)
                                                        : 0;
    }
    free(sorted);
    if (repeated <= COMBINE_MAX_REPEATED)
        return true;
    reply_error(combination->client, "-ERR keys that are named again have more than %d members",
                COMBINE_MAX_REPEATED);
    return false;
}

static bool find_set(const struct combination *combination, size_t i)
{
    struct client *client = combination->client;
    struct bytes key = client_argument(client, i);
    struct entry **link = keyspace_find(&client->kv->keys, key), *entry;
    return (combination->takes_sorted && link != NULL && (*link)->type == VALUE_SORTED_SET) ||
           find_value(client, key, VALUE_SET, &entry);
}

bool combination_find(struct combination *combination, size_t first_key, size_t count)
{
    struct client *client = combination->client;
    for (size_t i = 0; i < count; i++) { /* (a key that has expired moves the others) */
        if (!find_set(combination, first_key + i))
            return false;
    }
    combination->sets = malloc(count * sizeof(struct collection *));
    if (combination->sets == NULL) {
        reply_no_memory(client);
        return false;
    }
    combination->count = count;
    for (size_t i = 0; i < count; i++) {
        struct entry **link =
            keyspace_find(&client->kv->keys, client_argument(client, first_key + i));
        combination->sets[i] = link != NULL ? entry_collection(*link) : NULL;
    }
    if (combination->has_scores && combination->operation != DIFFERENCE)
        return check_repeated(combination);
    drop_equal_sets(combination);
    return true;
}

/* ---- The result ---- */

bool combination_create_result(struct combination *combination)
{
    struct client *client = combination->client;
    combination->to = collection_create(combination->has_scores ? VALUE_SORTED_SET : VALUE_SET,
                                        client->kv->keys.keys.table.key);
    if (combination->to == NULL)
        reply_no_memory(client);
    return combination->to != NULL;
}

void combination_store(struct combination *combination)
{
    struct client *client = combination->client;
    struct keyspace *keys = &client->kv->keys;
    struct bytes key = client_argument(client, 1);
    struct entry **link = keyspace_find(keys, key);
    if (combination->found > 0 && combination->status >= 0) {
        client->kv->work += combination->found;
        if (keyspace_assign(keys, key, combination->to)) {
            kv_log_collection(client->kv, key, combination->to);
            combination->to = NULL;
            reply_number(client, (int64_t)combination->found);
            return;
        }
        combination->status = -ENOMEM;
    }
    if (combination->status < 0) {
        reply_no_memory(client);
        return;
    }
    if (link != NULL) {
        keyspace_remove(keys, link);
        kv_log_delete(client->kv, key);
    }
    reply_number(client, 0);
}

void combination_end(struct combination *combination)
{
    if (combination->to != NULL)
        keyspace_discard(&combination->client->kv->keys, combination->to);
    free(combination->sets);
    free(combination->weights);
}
