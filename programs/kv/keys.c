/*
 * Commands on keys: existence, expiry, and listing. Each runs to completion on the loop's thread.
 */
#include "commands.h"

void command_del(struct client *client)
{
    struct kv *kv = client->kv;
    int64_t count = 0;
    for (size_t i = 1; i < client->request.count; i++) {
        struct bytes key = client_argument(client, i);
        struct entry **link = keyspace_find(&kv->keys, key);
        if (link == NULL)
            continue;
        keyspace_remove(&kv->keys, link);
        kv_log_delete(kv, key);
        count++;
    }
    reply_number(client, count);
}

void command_exists(struct client *client)
{
    int64_t count = 0;
    for (size_t i = 1; i < client->request.count; i++)
        count += keyspace_find(&client->kv->keys, client_argument(client, i)) != NULL;
    reply_number(client, count);
}

void command_type(struct client *client)
{
    if (keyspace_find(&client->kv->keys, client_argument(client, 1)) != NULL)
        REPLY(client, "+string");
    else
        REPLY(client, "+none");
}

void command_dbsize(struct client *client)
{
    reply_number(client, (int64_t)client->kv->keys.keys.table.count);
}

void command_flush(struct client *client)
{
    struct kv *kv = client->kv;
    if (client->request.count == 2 && !bytes_are(client_argument(client, 1), "ASYNC") &&
        !bytes_are(client_argument(client, 1), "SYNC")) {
        reply_syntax_error(client);
        return;
    }
    keyspace_remove_all(&kv->keys);
    kv_log_flush(kv);
    reply_ok(client);
}

/* ---- Expiry ---- */

static void set_expiry(struct client *client, int64_t unit, int64_t from, const char *name)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1);
    int64_t time;
    if (!argument_number(client, 2, &time))
        return;
    if (__builtin_mul_overflow(time, unit, &time) || __builtin_add_overflow(time, from, &time)) {
        reply_error(client, "-ERR invalid expire time in '%s' command", name);
        return;
    }
    struct entry **link = keyspace_find(&kv->keys, key);
    if (link == NULL) {
        reply_number(client, 0);
    } else if (time <= kv->keys.now) {
        keyspace_remove(&kv->keys, link);
        kv_log_delete(kv, key);
        reply_number(client, 1);
    } else if (!keyspace_set_expiry(&kv->keys, *link, time)) {
        reply_no_memory(client);
    } else {
        kv_log_expiry(kv, key, time);
        reply_number(client, 1);
    }
}

void command_expire(struct client *client)
{
    set_expiry(client, 1000, client->kv->keys.now, "expire");
}

void command_pexpire(struct client *client)
{
    set_expiry(client, 1, client->kv->keys.now, "pexpire");
}

void command_expireat(struct client *client)
{
    set_expiry(client, 1000, 0, "expireat");
}

void command_pexpireat(struct client *client)
{
    set_expiry(client, 1, 0, "pexpireat");
}

static void reply_time_left(struct client *client, int64_t unit)
{
    struct keyspace *keys = &client->kv->keys;
    struct entry **link = keyspace_find(keys, client_argument(client, 1));
    int64_t time = link != NULL ? keyspace_expiry(keys, *link) : 0;
    if (link == NULL)
        reply_number(client, -2);
    else if (time == 0)
        reply_number(client, -1);
    else
        reply_number(client, (time - keys->now + unit / 2) / unit);
}

void command_ttl(struct client *client)
{
    reply_time_left(client, 1000);
}

void command_pttl(struct client *client)
{
    reply_time_left(client, 1);
}

void command_persist(struct client *client)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1);
    struct entry **link = keyspace_find(&kv->keys, key);
    if (link == NULL || (*link)->expiry == 0) {
        reply_number(client, 0);
        return;
    }
    keyspace_set_expiry(&kv->keys, *link, 0);
    kv_log_expiry(kv, key, 0);
    reply_number(client, 1);
}

/* ---- KEYS and SCAN ---- */

struct search {
    struct client *client;
    struct bytes pattern; /* NULL matches all */
    size_t count;
};

static void reply_matching_key(void *argument, struct entry *entry)
{
    struct search *search = argument;
    struct keyspace *keys = &search->client->kv->keys;
    search->client->kv->work++;
    if (client_refuses_reply(search->client))
        return;
    if (entry->expiry != 0 && keyspace_expiry(keys, entry) <= keys->now)
        return;
    if (search->pattern.data != NULL && !bytes_match(entry_key(entry), search->pattern))
        return;
    reply_bulk(search->client, entry_key(entry));
    search->count++;
}

void command_keys(struct client *client)
{
    struct search search = {client, client_argument(client, 1), 0};
    size_t begin = reply_start_array(client), cursor = 0;
    if (bytes_are(search.pattern, "*"))
        search.pattern.data = NULL;
    do
        cursor = table_scan(&client->kv->keys.keys.table, cursor, reply_matching_key, &search);
    while (cursor != 0 && !client_refuses_reply(client));
    finish_listing(client, begin, search.count);
}

void command_scan(struct client *client)
{
    struct search search = {client, {NULL, 0}, 0};
    int64_t number, count = 10;
    char text[NUMBER_SIZE];
    if (!argument_number(client, 1, &number) || number < 0) {
        if (number < 0)
            REPLY(client, "-ERR invalid cursor");
        return;
    }
    for (size_t i = 2; i < client->request.count; i += 2) {
        bool has_more = i + 1 < client->request.count;
        if (has_more && bytes_are(client_argument(client, i), "MATCH"))
            search.pattern = client_argument(client, i + 1);
        else if (has_more && bytes_are(client_argument(client, i), "COUNT")) {
            if (!argument_number(client, i + 1, &count))
                return;
        } else if (!has_more || !bytes_are(client_argument(client, i), "TYPE"))
            count = 0;
        else if (!bytes_are(client_argument(client, i + 1), "STRING"))
            search.pattern = (struct bytes){"", 0}; /* no key has another type */
        if (count < 1) {
            reply_syntax_error(client);
            return;
        }
    }
    /*
     * The cursor precedes the keys in the reply and is known last, so the keys are moved behind it.
     */
    size_t begin = reply_start_array(client), cursor = (size_t)number;
    int64_t buckets = count < INT32_MAX ? 10 * count : INT64_MAX;
    do
        cursor = table_scan(&client->kv->keys.keys.table, cursor, reply_matching_key, &search);
    while (cursor != 0 && (int64_t)search.count < count && --buckets > 0 &&
           !client_refuses_reply(client));
    if (!finish_listing(client, begin, search.count))
        return;
    struct buffer keys = {0};
    size_t size = buffer_used(&client->out) - begin;
    if (client->is_broken || !buffer_reserve(&keys, size)) {
        client->is_broken = true;
        return;
    }
    buffer_append(&keys, client->out.data + client->out.begin + begin, size);
    client->out.end -= size;
    reply_array(client, 2);
    reply_bulk(client, (struct bytes){text, number_print(text, (int64_t)cursor)});
    reply_raw(client, keys.data, size);
    buffer_free(&keys);
}
