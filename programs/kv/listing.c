/*
 * Replies of all entries of a table, collected in slices: KEYS, and of large collections SMEMBERS, HGETALL, HKEYS and
 * HVALS. Others have their turn between slices. In a transaction there is one slice.
 *
 * KEYS lists each key that is there all the time, and none twice. The others are of one moment: if the collection
 * changes between slices, its entries are listed anew in one step.
 */
#include "commands.h"

/* Bytes of a name and a pattern whose comparison is as much work as a visit. */
enum { WORK_BYTES = 32 };

/* The entries that are listed, and how. */
struct listed {
    struct client *client;
    struct bytes pattern;        /* NULL matches all */
    const struct keyspace *keys; /* NULL: the entries are fields or members */
    bool has_names, has_values;
};

/* True if it can only end with an error: it is too large, or memory is exhausted. */
static bool has_listing_failed(const struct client *client)
{
    return client->is_broken || buffer_used(&client->out) + buffer_used(&client->listing.names) >
                                    client->kv->options.reply + CLIENT_MAX_REPLIES;
}

static void list_bytes(struct client *client, struct bytes bytes)
{
    struct buffer *names = &client->listing.names;
    if (buffer_reserve(names, bytes.size + BULK_EXTRA))
        buffer_append_bulk(names, bytes);
    else
        client->is_broken = true;
}

static void list_entry(void *argument, struct entry *entry)
{
    struct listed *listed = argument;
    struct client *client = listed->client;
    struct bytes name = entry_key(entry);
    client->kv->work++;
    if (has_listing_failed(client) || (listed->keys != NULL && entry->expiry != 0 &&
                                       keyspace_expiry(listed->keys, entry) <= listed->keys->now))
        return;
    if (listed->pattern.data != NULL) {
        client->kv->work += (listed->pattern.size + name.size) / WORK_BYTES;
        if (!bytes_match(name, listed->pattern))
            return;
    }
    if (listed->has_names)
        list_bytes(client, name);
    if (listed->has_values)
        list_bytes(client, entry_value(entry));
    client->listing.count++;
}

/* Collects entries until all have been visited. Returns false if the work is CLIENT_MAX_WORK before. */
static bool collect_entries(struct client *client, struct table *table, struct listed *listed)
{
    struct kv *kv = client->kv;
    struct key_listing *listing = &client->listing;
    uint64_t limit = client->work < CLIENT_MAX_WORK ? kv->work + CLIENT_MAX_WORK - client->work : 0;
    do {
        kv->work += !client->transaction.is_running; /* (buckets may be empty) */
        listing->cursor = table_scan_once(table, listing->cursor, list_entry, listed);
        if (listing->cursor == 0 || has_listing_failed(client))
            return true;
    } while (client->transaction.is_running || kv->work < limit);
    return false;
}

static void clear_listing(struct client *client)
{
    buffer_free(&client->listing.names);
    client->listing = (struct key_listing){.count = 0};
}

/* Makes the entries the reply, without a copy if there are no others to be sent. */
static void reply_listing(struct client *client, finish_function *finish)
{
    struct buffer *names = &client->listing.names;
    size_t begin = buffer_used(&client->out);
    if (begin > 0) {
        reply_raw(client, names->data + names->begin, buffer_used(names));
    } else {
        buffer_free(&client->out);
        client->out = *names;
        *names = (struct buffer){0};
    }
    finish(client, begin, client->listing.count);
}

/* Lists entries of a table until the work is CLIENT_MAX_WORK, and continues in the next turn. Replies at the end. */
static void run_listing(struct client *client, struct table *table, struct listed *listed,
                        finish_function *finish)
{
    struct key_listing *listing = &client->listing;
    if (listing->cursor == 0 && !buffer_append_head_space(&listing->names)) {
        reply_no_memory(client);
        return;
    }
    if (!collect_entries(client, table, listed)) {
        client_repeat_request(client);
        return;
    }
    if (!has_listing_failed(client))
        reply_listing(client, finish);
    else if (!client->is_broken)
        reply_too_large(client);
    clear_listing(client);
}

void command_keys(struct client *client)
{
    struct keyspace *keys = &client->kv->keys;
    struct listed listed = {
        .client = client, .pattern = client_argument(client, 1), .keys = keys, .has_names = true};
    if (bytes_are(listed.pattern, "*"))
        listed.pattern.data = NULL;
    run_listing(client, &keys->keys.table, &listed, reply_finish_array);
}

bool list_in_slices(struct client *client, enum value_type type, bool has_names, bool has_values,
                    finish_function *finish)
{
    struct listed listed = {.client = client, .has_names = has_names, .has_values = has_values};
    struct key_listing *listing = &client->listing;
    struct entry **link = keyspace_find(&client->kv->keys, client_argument(client, 1));
    struct collection *collection =
        link != NULL && (*link)->type == type ? entry_collection(*link) : NULL;
    bool is_large = collection != NULL && collection_count(collection) > CLIENT_MAX_WORK / 2;
    if (listing->cursor != 0 && (!is_large || collection->version != listing->version)) {
        clear_listing(client);
        return false;
    }
    if (!is_large || client->transaction.is_running)
        return false;
    listing->version = collection->version;
    run_listing(client, &collection->fields, &listed, finish);
    return true;
}
