/* Combinations of sets and of sorted sets. combine.h has the model. One thread. */
#include "combine.h"

#include "commands.h"
#include "sorted_set.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

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

/* True if no more members are to be visited. */
static bool has_ended(const struct combination *combination)
{
    return combination->status < 0 || combination->found >= combination->limit ||
           (combination->replies && client_refuses_reply(combination->client));
}

static void combine_member(void *argument, struct entry *entry)
{
    struct combination *combination = argument;
    struct client *client = combination->client;
    double score;
    client->kv->work++;
    if (has_ended(combination) || !is_combined(combination, entry, &score))
        return;
    if (combination->to != NULL)
        combination->status = collect_member(combination, entry_key(entry), score);
    if (combination->status == 0 && combination->to != NULL)
        return; /* it was there */
    if (combination->status < 0)
        return;
    combination->found++;
    if (combination->replies && !combination->subtracts)
        reply_bulk(client, entry_key(entry));
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
    combination->client->kv->work++;
    if (!client_refuses_reply(combination->client))
        reply_bulk(combination->client, entry_key(entry));
}

/*
 * Subtracting takes a step for each member of all sets. Looking up each member of the first set in the
 * others takes as many steps as it has members, times the sets.
 */
static bool prefers_subtraction(const struct combination *combination)
{
    const struct collection *first = combination->sets[0];
    uint64_t all = 0;
    for (size_t i = 0; i < combination->count; i++)
        all += combination->sets[i] != NULL ? collection_count(combination->sets[i]) : 0;
    return combination->operation == DIFFERENCE && first != NULL &&
           collection_count(first) * (uint64_t)combination->count > 2 * all;
}

bool combination_must_collect(const struct combination *combination)
{
    return combination->operation == UNION || prefers_subtraction(combination);
}

/* ---- Slices ---- */

/* The version of the collection of a key; 0 if there is no such key. */
static uint64_t version_of(const struct combination *combination, size_t i)
{
    struct client *client = combination->client;
    struct entry **link =
        keyspace_find(&client->kv->keys, client_argument(client, combination->first_key + i));
    return link == NULL                    ? 0
           : (*link)->type == VALUE_STRING ? UINT64_MAX
                                           : entry_collection(*link)->version;
}

/* Chooses the sets to be visited, and decides whether that is done in slices. */
static void begin_visit(struct combination *combination)
{
    struct client *client = combination->client;
    uint64_t steps = 0;
    combination->has_begun = true;
    combination->subtracts = combination->to != NULL && prefers_subtraction(combination);
    combination->ends_at = combination->count;
    if (combination->operation == INTERSECTION)
        combination->from_at = smallest_set(combination);
    if (combination->operation != UNION && !combination->subtracts)
        combination->ends_at = combination->from_at + 1;
    if (combination->subtracts) /* from what is collected of the first set */
        combination->operation = UNION;
    for (size_t i = combination->from_at; i < combination->ends_at; i++)
        steps += combination->sets[i] != NULL ? collection_count(combination->sets[i]) : 0;
    if (combination->operation != UNION)
        steps *= combination->count;
    combination->is_sliced = steps > CLIENT_MAX_WORK / 2 && !combination->is_one_step &&
                             !client->transaction.is_running &&
                             combination->keys <= COMBINE_MAX_SLICED_KEYS;
    combination->work_limit = combination->is_sliced ? client_work_limit(client) : UINT64_MAX;
    for (size_t i = 0; combination->is_sliced && i < combination->keys; i++)
        combination->versions[i] = version_of(combination, i);
}

bool combination_resume(struct combination *combination)
{
    struct client *client = combination->client;
    struct combination *kept = client->combining;
    bool is_same = kept != NULL;
    combination->begin = buffer_used(&client->out);
    if (kept == NULL)
        return false;
    for (size_t i = 0; i < kept->keys && is_same && kept->from_at < kept->ends_at; i++)
        is_same = version_of(kept, i) == kept->versions[i];
    if (is_same) {
        *combination = *kept;
        client->kv->combined -= kept->kept;
        combination->kept = 0;
        combination->begin = buffer_used(&client->out);
        combination->work_limit = client_work_limit(client);
        client->combining = NULL;
        free(kept);
        return true;
    }
    combination_drop(client);
    listing_clear(client);
    combination->is_one_step = combination->is_repeated = true;
    return false;
}

bool combination_pause(struct combination *combination)
{
    struct client *client = combination->client;
    const struct slice slice = {.begin = combination->begin, .limit = combination->work_limit};
    size_t elements = combination->to != NULL ? collection_count(combination->to) : 0;
    if (!slice_is_over(client, &slice))
        return false;
    if (client->kv->combined == 0 || client->kv->combined + elements <= COMBINE_MAX_KEPT)
        client->combining = malloc(sizeof *combination);
    if (client->combining == NULL) {
        combination->work_limit = UINT64_MAX;
        return false;
    }
    combination->kept = elements;
    client->kv->combined += elements;
    *client->combining = *combination;
    slice_pause(client, &slice, 1);
    return true;
}

bool combination_finish_reply(struct combination *combination)
{
    return slice_finish(combination->client, &(struct slice){.begin = combination->begin});
}

/* Visits members of a set, from combination->cursor on. Returns false if the slice has ended before the last one. */
static bool visit_set(struct combination *combination, struct collection *set,
                      void (*visit)(void *, struct entry *))
{
    do {
        combination->client->kv->work += combination->is_sliced; /* (buckets may be empty) */
        combination->cursor =
            table_scan_once(&set->fields, combination->cursor, visit, combination);
        if (combination->cursor != 0 && combination_pause(combination))
            return false;
    } while (combination->cursor != 0 && !has_ended(combination));
    combination->cursor = 0;
    return true;
}

bool combination_run(struct combination *combination)
{
    if (!combination->has_begun)
        begin_visit(combination);
    for (; combination->from_at < combination->ends_at && !has_ended(combination);
         combination->from_at++) {
        size_t at = combination->from_at;
        combination->from = combination->sets[at];
        if (combination->from != NULL &&
            !visit_set(combination, combination->from,
                       combination->subtracts && at > 0 ? subtract_member : combine_member))
            return false;
    }
    return !combination->subtracts || !combination->replies || combination->status < 0 ||
           visit_set(combination, combination->to, reply_member);
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
           (combination->is_repeated ? find_value : find_to_read)(client, key, VALUE_SET, &entry);
}

bool combination_find(struct combination *combination, size_t first_key, size_t count)
{
    struct client *client = combination->client;
    combination->first_key = first_key;
    combination->keys = count;
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

void combination_store(struct combination *combination, const char *event)
{
    struct client *client = combination->client;
    enum notify class = combination->has_scores ? NOTIFY_SORTED_SET : NOTIFY_SET;
    struct keyspace *keys = &client->kv->keys;
    struct bytes key = client_argument(client, 1);
    struct entry **link = keyspace_find(keys, key);
    if (combination->found > 0 && combination->status >= 0) {
        client->kv->work += combination->found;
        if (keyspace_assign(keys, key, combination->to)) {
            kv_log_collection(client->kv, key, combination->to);
            kv_notify(client->kv, class, event, key);
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
    if (link != NULL)
        kv_delete(client->kv, link, key);
    reply_number(client, 0);
}

void combination_end(struct combination *combination)
{
    if (combination->to != NULL)
        keyspace_discard(&combination->client->kv->keys, combination->to);
    free(combination->sets);
    free(combination->weights);
}

void combination_drop(struct client *client)
{
    if (client->combining == NULL)
        return;
    client->kv->combined -= client->combining->kept;
    combination_end(client->combining);
    free(client->combining);
    client->combining = NULL;
}

/* ---- The commands ---- */

const struct combination_kind *combination_kind_of(const struct client *client)
{
    static const struct combination_kind kinds[] = {
        {"union", UNION, false, {NULL}},
        {"inter", INTERSECTION, false, {NULL}},
        {"diff", DIFFERENCE, false, {NULL}},
        {"unionstore", UNION, true, {"sunionstore", "zunionstore"}},
        {"diffstore", DIFFERENCE, true, {"sdiffstore", "zdiffstore"}},
        {"interstore", INTERSECTION, true, {"sinterstore", "zinterstore"}}};
    struct bytes name = client_argument(client, 0);
    size_t i = 0;
    while (strlen(kinds[i].name) != name.size - 1 ||
           strncasecmp(kinds[i].name, name.data + 1, name.size - 1) != 0) {
        i++;
        bide_assert(i < sizeof kinds / sizeof *kinds);
    }
    return &kinds[i];
}
