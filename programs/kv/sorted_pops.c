/* Commands that take members from an end of a sorted set, and wait for some. Each runs on the loop's thread. */
#include "sorted.h"

static const char *const ends[] = {[FIRST] = "MIN", [LAST] = "MAX"};

/* How members are replied. */
enum form {
    FLAT,        /* member, score, ... */
    PAIRS,       /* an array of pairs */
    KEY_AND_ONE, /* the key, a member, its score */
    KEY_AND_PAIRS
};

static void start_pop(struct client *client, struct bytes key, size_t count, enum form form)
{
    if (form == KEY_AND_ONE || form == KEY_AND_PAIRS) {
        reply_array(client, form == KEY_AND_ONE ? 3 : 2);
        reply_bulk(client, key);
    }
    if (form != KEY_AND_ONE)
        reply_array(client, form == FLAT ? 2 * count : count);
}

/*
 * Replies with members at an end of the key's set, which is there, and removes these. One alone has no limit, as with
 * LPOP: it could never be popped.
 */
static void pop_members(struct client *client, struct bytes key, enum end end, int64_t count,
                        enum form form)
{
    struct entry *entry;
    if (!find_value(client, key, VALUE_SORTED_SET, &entry))
        return;
    size_t begin = buffer_used(&client->out), all = sorted_count(entry), popped = all;
    if ((uint64_t)count < popped)
        popped = (size_t)count;
    const struct sorted_node *node =
        sorted_set_at(entry_collection(entry), end == FIRST ? 0 : all - 1);
    if (popped == 1 && !reply_reserve(client, 3 * LINE_SIZE + key.size + node->entry->key_size +
                                                  SCORE_SIZE + 3 * BULK_EXTRA))
        return;
    start_pop(client, key, popped, form);
    for (size_t i = 0; i < popped && (popped == 1 || !client_refuses_reply(client)); i++) {
        if (form == PAIRS || form == KEY_AND_PAIRS)
            reply_array(client, 2);
        reply_bulk(client, entry_key(node->entry));
        reply_double(client, node->score);
        node = sorted_set_next(node, end == LAST);
    }
    if (popped == 1 || finish_counted(client, begin))
        sorted_remove_range(client, key, end == FIRST ? 0 : all - popped, popped,
                            end == FIRST ? "zpopmin" : "zpopmax");
}

/* ZPOPMIN key [count] */
static void pop(struct client *client, enum end end)
{
    struct entry *set;
    bool has_count;
    int64_t count;
    if (!read_pop_count(client, &has_count, &count) || !find_sorted_set(client, 1, &set))
        return;
    if (set == NULL || count == 0)
        reply_array(client, 0);
    else
        pop_members(client, client_argument(client, 1), end, count,
                    has_count && client->protocol == 3 ? PAIRS : FLAT);
}

void command_zpopmin(struct client *client)
{
    pop(client, FIRST);
}

void command_zpopmax(struct client *client)
{
    pop(client, LAST);
}

/* ---- Several keys, and waiting ---- */

/* ZMPOP count key [key ...] MIN|MAX [COUNT count] */
void command_zmpop(struct client *client)
{
    struct multiple_pop pop;
    size_t key;
    if (!read_multiple_pop(client, 1, ends, &pop) ||
        !find_first_value(client, VALUE_SORTED_SET, pop.first_key, pop.keys, &key))
        return;
    if (key != 0)
        pop_members(client, client_argument(client, key), pop.end, pop.count, KEY_AND_PAIRS);
    else
        reply_null_array(client);
}

static void serve_multiple_pop(struct client *client, struct bytes key)
{
    struct multiple_pop pop;
    if (read_multiple_pop(client, 2, ends, &pop)) /* (it was, before the wait) */
        pop_members(client, key, pop.end, pop.count, KEY_AND_PAIRS);
}

/* BZMPOP timeout count key [key ...] MIN|MAX [COUNT count] */
void command_bzmpop(struct client *client)
{
    struct multiple_pop pop;
    if (read_multiple_pop(client, 2, ends, &pop))
        blocking_serve_or_wait(client, VALUE_SORTED_SET, pop.first_key, pop.keys, 1,
                               serve_multiple_pop);
}

static void serve_min(struct client *client, struct bytes key)
{
    pop_members(client, key, FIRST, 1, KEY_AND_ONE);
}

static void serve_max(struct client *client, struct bytes key)
{
    pop_members(client, key, LAST, 1, KEY_AND_ONE);
}

/* BZPOPMIN key [key ...] timeout */
void command_bzpopmin(struct client *client)
{
    size_t keys = client->request.count - 2;
    blocking_serve_or_wait(client, VALUE_SORTED_SET, 1, keys, keys + 1, serve_min);
}

void command_bzpopmax(struct client *client)
{
    size_t keys = client->request.count - 2;
    blocking_serve_or_wait(client, VALUE_SORTED_SET, 1, keys, keys + 1, serve_max);
}
