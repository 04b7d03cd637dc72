/* Commands on hashes. Each runs to completion on the loop's thread. */
#include "commands.h"

#include <math.h>

static bool find_hash(struct client *client, struct entry **entry)
{
    return find_value(client, client_argument(client, 1), VALUE_HASH, entry);
}

static bool find_hash_to_read(struct client *client, struct entry **entry)
{
    return find_to_read(client, client_argument(client, 1), VALUE_HASH, entry);
}

static struct entry *field_of(const struct entry *hash, struct bytes field)
{
    return hash != NULL ? hash_find(entry_collection(hash), field) : NULL;
}

static void reply_field(struct client *client, const struct entry *field)
{
    if (field != NULL)
        reply_bulk(client, entry_value(field));
    else
        reply_nothing(client);
}

/* ---- Changes ---- */

/*
 * Sets a field of the key of argument 1, which has no other type, logs it and notifies of the event.
 * Returns 1 if it is new, 0 if not, or a negative number after an error reply.
 */
static int set_field(struct client *client, struct bytes field, struct bytes value,
                     const char *event)
{
    struct kv *kv = client->kv;
    const struct bytes words[] = {bytes_of("HSET"), client_argument(client, 1), field, value};
    bool is_new;
    struct collection *hash = keyspace_change(&kv->keys, words[1], VALUE_HASH, &is_new);
    int status = hash != NULL ? hash_set(hash, field, value) : -1;
    if (status >= 0) {
        kv_log_words(kv, words, 4);
        kv_notify(kv, NOTIFY_HASH, event, words[1]);
        return status;
    }
    if (hash != NULL)
        keyspace_remove_if_empty(&kv->keys, words[1]);
    reply_no_memory(client);
    return status;
}

/*
 * Sets all fields of the arguments. Returns the number of new ones, or -1 after an error reply. The
 * request is one record, so a long key is not logged for each field.
 */
static int64_t set_fields(struct client *client, const char *name)
{
    struct keyspace *keys = &client->kv->keys;
    struct bytes key = client_argument(client, 1);
    struct entry *entry;
    int64_t added = 0;
    int status = 0;
    bool is_new;
    if (client->request.count % 2 != 0) {
        reply_error(client, "-ERR wrong number of arguments for '%s' command", name);
        return -1;
    }
    if (!find_hash(client, &entry))
        return -1;
    struct collection *hash = keyspace_change(keys, key, VALUE_HASH, &is_new);
    size_t i = 2;
    for (; hash != NULL && i < client->request.count; i += 2) {
        status = hash_set(hash, client_argument(client, i), client_argument(client, i + 1));
        if (status < 0)
            break;
        added += status;
    }
    if (hash != NULL && status >= 0) {
        log_request(client, "HSET");
        kv_notify(client->kv, NOTIFY_HASH, "hset", key);
        return added;
    }
    for (size_t set = 2; set < i; set += 2) { /* without memory, those that were set stay */
        const struct bytes words[] = {bytes_of("HSET"), key, client_argument(client, set),
                                      client_argument(client, set + 1)};
        kv_log_words(client->kv, words, 4);
    }
    if (i > 2)
        kv_notify(client->kv, NOTIFY_HASH, "hset", key);
    if (hash != NULL)
        keyspace_remove_if_empty(keys, key);
    reply_no_memory(client);
    return -1;
}

void command_hset(struct client *client)
{
    int64_t added = set_fields(client, "hset");
    if (added >= 0)
        reply_number(client, added);
}

void command_hmset(struct client *client)
{
    if (set_fields(client, "hmset") >= 0)
        reply_ok(client);
}

void command_hsetnx(struct client *client)
{
    struct entry *hash;
    struct bytes field = client_argument(client, 2);
    if (!find_hash(client, &hash))
        return;
    if (field_of(hash, field) != NULL)
        reply_number(client, 0);
    else if (set_field(client, field, client_argument(client, 3), "hset") >= 0)
        reply_number(client, 1);
}

void command_hdel(struct client *client)
{
    remove_named(client, VALUE_HASH, "HDEL", NOTIFY_HASH, "hdel", hash_delete);
}

void command_hincrby(struct client *client)
{
    struct bytes name = client_argument(client, 2);
    struct entry *hash;
    int64_t value = 0, number;
    char text[NUMBER_SIZE];
    if (!argument_number(client, 3, &number) || !find_hash(client, &hash))
        return;
    const struct entry *field = field_of(hash, name);
    if (field != NULL && !number_read(entry_value(field), &value)) {
        REPLY(client, "-ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(value, number, &value)) {
        REPLY(client, "-ERR increment or decrement would overflow");
        return;
    }
    if (set_field(client, name, (struct bytes){text, number_print(text, value)}, "hincrby") >= 0)
        reply_number(client, value);
}

void command_hincrbyfloat(struct client *client)
{
    struct bytes name = client_argument(client, 2);
    struct entry *hash;
    long double value = 0, more = 0;
    char text[FRACTION_SIZE];
    if (!fraction_read(client_argument(client, 3), &more)) {
        REPLY(client, "-ERR value is not a valid float");
        return;
    }
    if (isinf((double)more)) {
        REPLY(client, "-ERR value is NaN or Infinity");
        return;
    }
    if (!find_hash(client, &hash))
        return;
    const struct entry *field = field_of(hash, name);
    if (field != NULL && !fraction_read(entry_value(field), &value)) {
        REPLY(client, "-ERR hash value is not a float");
        return;
    }
    struct bytes sum = fraction_add(text, value, more);
    if (sum.size == 0)
        REPLY(client, "-ERR increment would produce NaN or Infinity");
    else if (set_field(client, name, sum, "hincrbyfloat") >= 0)
        reply_bulk(client, sum);
}

/* ---- One field, or several ---- */

void command_hget(struct client *client)
{
    struct entry *hash;
    if (find_hash_to_read(client, &hash))
        reply_field(client, field_of(hash, client_argument(client, 2)));
}

void command_hstrlen(struct client *client)
{
    struct entry *hash;
    if (!find_hash_to_read(client, &hash))
        return;
    const struct entry *field = field_of(hash, client_argument(client, 2));
    reply_number(client, field != NULL ? field->value_size : 0);
}

void command_hexists(struct client *client)
{
    struct entry *hash;
    if (find_hash_to_read(client, &hash))
        reply_number(client, field_of(hash, client_argument(client, 2)) != NULL);
}

void command_hlen(struct client *client)
{
    struct entry *hash;
    if (find_hash_to_read(client, &hash))
        reply_number(client, hash != NULL ? (int64_t)collection_count(entry_collection(hash)) : 0);
}

void command_hmget(struct client *client)
{
    struct entry *hash;
    if (!find_hash_to_read(client, &hash))
        return;
    size_t begin = buffer_used(&client->out);
    reply_array(client, client->request.count - 2);
    for (size_t i = 2; i < client->request.count && !client_refuses_reply(client); i++)
        reply_field(client, field_of(hash, client_argument(client, i)));
    finish_counted(client, begin);
}

/* ---- All fields ---- */

struct listing {
    struct client *client;
    bool has_fields, has_values;
};

static void reply_listed_field(void *argument, struct entry *field)
{
    struct listing *listing = argument;
    listing->client->kv->work++;
    if (client_refuses_reply(listing->client))
        return;
    if (listing->has_fields)
        reply_bulk(listing->client, entry_key(field));
    if (listing->has_values)
        reply_bulk(listing->client, entry_value(field));
}

static void list_fields(struct client *client, bool has_fields, bool has_values)
{
    struct listing listing = {client, has_fields, has_values};
    struct entry *hash;
    size_t begin = buffer_used(&client->out), cursor = 0;
    if (list_in_slices(client, VALUE_HASH, has_fields, has_values,
                       has_fields && has_values ? reply_finish_map : reply_finish_array) ||
        !find_hash_to_read(client, &hash))
        return;
    struct collection *fields = hash != NULL ? entry_collection(hash) : NULL;
    size_t count = hash != NULL ? collection_count(fields) : 0;
    if (has_fields && has_values)
        reply_map(client, count);
    else
        reply_array(client, count);
    do
        cursor =
            hash != NULL ? table_scan(&fields->fields, cursor, reply_listed_field, &listing) : 0;
    while (cursor != 0 && !client_refuses_reply(client));
    finish_counted(client, begin);
}

void command_hgetall(struct client *client)
{
    list_fields(client, true, true);
}

void command_hkeys(struct client *client)
{
    list_fields(client, true, false);
}

void command_hvals(struct client *client)
{
    list_fields(client, false, true);
}

/* ---- Drawing ---- */

static void reply_drawn_field(struct client *client, const struct entry *field, bool has_value)
{
    if (has_value && client->protocol == 3)
        reply_array(client, 2);
    reply_bulk(client, entry_key(field));
    if (has_value)
        reply_bulk(client, entry_value(field));
}

/* HRANDFIELD key [count [WITHVALUES]] */
void command_hrandfield(struct client *client)
{
    struct entry *hash;
    bool has_count = client->request.count > 2, has_values = client->request.count == 4;
    int64_t count = 1;
    if (client->request.count > 4)
        reply_syntax_error(client);
    else if ((!has_count || argument_draws(client, "WITHVALUES", &count)) &&
             find_hash_to_read(client, &hash))
        reply_drawn(client, hash != NULL ? &entry_collection(hash)->fields : NULL, has_count, count,
                    has_values, reply_drawn_field);
}
