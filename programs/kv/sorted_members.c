/* Commands on members of sorted sets: adding, removing, scores, ranks. Each runs to completion on the loop's thread. */
#include "sorted.h"

#include <errno.h>
#include <math.h>

enum { RECORD_WORDS = 2 + 64 }; /* of a record of members */

/* ---- Adding ---- */

/* The options of ZADD. */
struct addition {
    bool if_new, if_there, if_greater, if_less; /* NX, XX, GT, LT */
    bool counts_changes, increments;            /* CH, INCR */
    size_t first;                               /* argument of a score and a member */
};

/* The effect of an addition on a member. */
enum outcome { SKIPPED, UNCHANGED, CHANGED, ADDED };

/*
 * Adds a member or changes its score, if the options permit that. *score becomes the new one. Returns an outcome, or
 * -ENOMEM, or -EDOM if the sum is no number.
 */
static int put_member(struct collection *set, const struct addition *addition, struct bytes member,
                      double *score)
{
    const struct sorted_node *node = sorted_set_find(set, member);
    if (node == NULL ? addition->if_there : addition->if_new)
        return SKIPPED;
    if (node == NULL)
        return sorted_set_put(set, member, *score) < 0 ? -ENOMEM : ADDED;
    double present = node->score;
    if (addition->increments)
        *score += present;
    if (isnan(*score))
        return -EDOM;
    if ((addition->if_greater && *score <= present) || (addition->if_less && *score >= present))
        return SKIPPED;
    sorted_set_put(set, member, *score);
    return *score != present ? CHANGED : UNCHANGED;
}

/* Adds all members of the arguments, which have been checked, and replies. */
static void add_members(struct client *client, const struct addition *addition)
{
    struct kv *kv = client->kv;
    struct bytes words[RECORD_WORDS] = {bytes_of("ZADD"), client_argument(client, 1)};
    size_t used = 2, added = 0, changed = 0;
    char text[SCORE_SIZE];
    double score = 0;
    bool is_new;
    struct collection *set = keyspace_change(&kv->keys, words[1], VALUE_SORTED_SET, &is_new);
    int status = set != NULL ? SKIPPED : -ENOMEM;
    for (size_t i = addition->first; status >= 0 && i < client->request.count; i += 2) {
        struct bytes member = client_argument(client, i + 1), number = client_argument(client, i);
        score_read(number, &score);
        status = put_member(set, addition, member, &score);
        added += status == ADDED;
        changed += status == CHANGED;
        if (status == ADDED || status == CHANGED) {
            if (addition->increments)
                number = (struct bytes){text, score_print(text, score)};
            words[used++] = number;
            words[used++] = member;
        }
        if (used == RECORD_WORDS) {
            kv_log_words(kv, words, used);
            used = 2;
        }
    }
    if (used > 2) /* (without memory, members that were added stay) */
        kv_log_words(kv, words, used);
    if (added + changed > 0)
        kv_notify(kv, NOTIFY_SORTED_SET, addition->increments ? "zincr" : "zadd", words[1]);
    if (set != NULL)
        keyspace_remove_if_empty(&kv->keys, words[1]);
    if (status == -ENOMEM)
        reply_no_memory(client);
    else if (status == -EDOM)
        REPLY(client, "-ERR resulting score is not a number (NaN)");
    else if (!addition->increments)
        reply_number(client, (int64_t)(addition->counts_changes ? added + changed : added));
    else if (status == SKIPPED)
        reply_nothing(client);
    else
        reply_double(client, score);
}

/* Checks the scores and the key, and adds the members unless XX is given and there is no such key. */
static void run_addition(struct client *client, const struct addition *addition)
{
    struct entry *entry;
    double score;
    for (size_t i = addition->first; i < client->request.count; i += 2) {
        if (!score_read(client_argument(client, i), &score)) {
            REPLY(client, "-ERR value is not a valid float");
            return;
        }
    }
    if (!find_sorted_set(client, 1, &entry))
        return;
    if (entry != NULL || !addition->if_there)
        add_members(client, addition);
    else if (addition->increments)
        reply_nothing(client);
    else
        reply_number(client, 0);
}

/* Parses the options of ZADD. Returns false after an error reply. */
static bool read_addition(struct client *client, struct addition *addition)
{
    size_t i = 2, count = client->request.count;
    for (; i < count; i++) {
        struct bytes word = client_argument(client, i);
        if (bytes_are(word, "NX"))
            addition->if_new = true;
        else if (bytes_are(word, "XX"))
            addition->if_there = true;
        else if (bytes_are(word, "GT"))
            addition->if_greater = true;
        else if (bytes_are(word, "LT"))
            addition->if_less = true;
        else if (bytes_are(word, "CH"))
            addition->counts_changes = true;
        else if (bytes_are(word, "INCR"))
            addition->increments = true;
        else
            break;
    }
    addition->first = i;
    if (i == count || (count - i) % 2 != 0)
        reply_syntax_error(client);
    else if (addition->if_new && addition->if_there)
        REPLY(client, "-ERR XX and NX options at the same time are not compatible");
    else if ((addition->if_new && (addition->if_greater || addition->if_less)) ||
             (addition->if_greater && addition->if_less))
        REPLY(client, "-ERR GT, LT, and/or NX options at the same time are not compatible");
    else if (addition->increments && count - i > 2)
        REPLY(client, "-ERR INCR option supports a single increment-element pair");
    else
        return true;
    return false;
}

/* ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...] */
void command_zadd(struct client *client)
{
    struct addition addition = {.first = 0};
    if (read_addition(client, &addition))
        run_addition(client, &addition);
}

/* ZINCRBY key number member */
void command_zincrby(struct client *client)
{
    const struct addition addition = {.increments = true, .first = 2};
    run_addition(client, &addition);
}

/* ---- Removing ---- */

void command_zrem(struct client *client)
{
    remove_named(client, VALUE_SORTED_SET, "ZREM", NOTIFY_SORTED_SET, "zrem", sorted_set_remove);
}

void sorted_remove_range(struct client *client, struct bytes key, size_t first, size_t count,
                         const char *event)
{
    struct kv *kv = client->kv;
    char texts[2][NUMBER_SIZE];
    bool is_new;
    if (count == 0)
        return;
    kv->work += count;
    struct collection *set = keyspace_change(&kv->keys, key, VALUE_SORTED_SET, &is_new);
    if (count == collection_count(set)) {
        kv_notify(kv, NOTIFY_SORTED_SET, event, key);
        kv_delete(kv, keyspace_find(&kv->keys, key), key);
        return;
    }
    const struct bytes words[] = {bytes_of("ZREMRANGEBYRANK"),
                                  key,
                                  {texts[0], number_print(texts[0], (int64_t)first)},
                                  {texts[1], number_print(texts[1], (int64_t)(first + count - 1))}};
    kv_log_words(kv, words, 4);
    sorted_set_remove_range(set, first, count);
    kv_notify(kv, NOTIFY_SORTED_SET, event, key);
}

/* ---- Scores and ranks ---- */

static const struct sorted_node *node_of(const struct entry *set, struct bytes member)
{
    return set != NULL ? sorted_set_find(entry_collection(set), member) : NULL;
}

static void reply_score(struct client *client, const struct sorted_node *node)
{
    if (node != NULL)
        reply_double(client, node->score);
    else
        reply_nothing(client);
}

void command_zcard(struct client *client)
{
    struct entry *set;
    if (find_sorted_to_read(client, 1, &set))
        reply_number(client, (int64_t)sorted_count(set));
}

void command_zscore(struct client *client)
{
    struct entry *set;
    if (find_sorted_to_read(client, 1, &set))
        reply_score(client, node_of(set, client_argument(client, 2)));
}

void command_zmscore(struct client *client)
{
    struct entry *set;
    if (!find_sorted_to_read(client, 1, &set))
        return;
    size_t begin = buffer_used(&client->out);
    reply_array(client, client->request.count - 2);
    for (size_t i = 2; i < client->request.count && !client_refuses_reply(client); i++)
        reply_score(client, node_of(set, client_argument(client, i)));
    finish_counted(client, begin);
}

static void reply_rank(struct client *client, bool backward)
{
    struct entry *set;
    if (!find_sorted_to_read(client, 1, &set))
        return;
    const struct sorted_node *node = node_of(set, client_argument(client, 2));
    if (node == NULL) {
        reply_nothing(client);
        return;
    }
    size_t rank = sorted_set_rank(node);
    reply_number(client, (int64_t)(backward ? sorted_count(set) - 1 - rank : rank));
}

void command_zrank(struct client *client)
{
    reply_rank(client, false);
}

void command_zrevrank(struct client *client)
{
    reply_rank(client, true);
}

/* ---- Replies of several members ---- */

void reply_members(struct client *client, size_t count, bool has_scores)
{
    reply_array(client, has_scores && client->protocol == 2 ? 2 * count : count);
}

void reply_ranked_member(struct client *client, const struct sorted_node *node, bool has_scores)
{
    if (has_scores && client->protocol == 3)
        reply_array(client, 2);
    reply_bulk(client, entry_key(node->entry));
    if (has_scores)
        reply_double(client, node->score);
}

static void reply_drawn_member(struct client *client, const struct entry *member, bool has_score)
{
    reply_ranked_member(client, sorted_node_of(member), has_score);
}

/* ZRANDMEMBER key [count [WITHSCORES]] */
void command_zrandmember(struct client *client)
{
    struct entry *set;
    bool has_count = client->request.count > 2, has_scores = client->request.count == 4;
    int64_t count = 1;
    if (client->request.count > 4)
        reply_syntax_error(client);
    else if ((!has_count || argument_draws(client, "WITHSCORES", &count)) &&
             find_sorted_to_read(client, 1, &set))
        reply_drawn(client, set != NULL ? &entry_collection(set)->fields : NULL, has_count, count,
                    has_scores, reply_drawn_member);
}
