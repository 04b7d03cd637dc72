/*
 * Replies of many elements, made in slices: KEYS, channels, and of large collections SMEMBERS, HGETALL, HKEYS and HVALS, which list
 * all entries of a table; and ranges of lists and of sorted sets. Others have their turn between slices. In a transaction there
 * is one slice.
 *
 * KEYS lists each key that is there all the time, and none twice. The others are of one moment: if the collection
 * changes between slices, its entries are listed anew in one step.
 */
#include "commands.h"

/* The entries that are listed, and how. */
struct listed {
    struct client *client;
    struct bytes pattern;        /* NULL matches all */
    const struct keyspace *keys; /* whose keys the entries are; or NULL */
    bool has_names, has_values;
};

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
    if (client_refuses_reply(client) || (listed->keys != NULL && entry->expiry != 0 &&
                                         keyspace_expiry(listed->keys, entry) <= listed->keys->now))
        return;
    if (listed->pattern.data != NULL && !bytes_match(name, listed->pattern, &client->kv->work))
        return;
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
    uint64_t limit = client_work_limit(client);
    do {
        kv->work += !client->transaction.is_running; /* (buckets may be empty) */
        listing->cursor = table_scan_once(table, listing->cursor, list_entry, listed);
        if (listing->cursor == 0 || client_refuses_reply(client))
            return true;
    } while (client->transaction.is_running || kv->work < limit);
    return false;
}

void listing_clear(struct client *client)
{
    buffer_free(&client->listing.names);
    client->listing = (struct key_listing){.count = 0};
}

/* Makes the collected elements the reply, without a copy if there are no others to be sent. */
static void reply_collected(struct client *client)
{
    struct buffer *names = &client->listing.names;
    if (buffer_used(&client->out) > 0) {
        reply_raw(client, names->data + names->begin, buffer_used(names));
    } else {
        buffer_free(&client->out);
        client->out = *names;
        *names = (struct buffer){0};
    }
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
    if (!client_refuses_reply(client)) {
        size_t begin = buffer_used(&client->out);
        reply_collected(client);
        finish(client, begin, listing->count);
    } else if (!client->is_broken) {
        reply_too_large(client);
    }
    listing_clear(client);
}

void list_names(struct client *client, struct table *table, struct bytes pattern,
                const struct keyspace *keys)
{
    struct listed listed = {.client = client, .pattern = pattern, .keys = keys, .has_names = true};
    run_listing(client, table, &listed, reply_finish_array);
}

void command_keys(struct client *client)
{
    struct keyspace *keys = &client->kv->keys;
    struct bytes pattern = client_argument(client, 1);
    if (bytes_are(pattern, "*"))
        pattern.data = NULL;
    list_names(client, &keys->keys.table, pattern, keys);
}

/* ---- Slices ---- */

struct slice slice_begin(struct client *client, const struct collection *collection, size_t count)
{
    struct key_listing *listing = &client->listing;
    bool is_large =
        collection != NULL && count > CLIENT_MAX_WORK / 2 && !client->transaction.is_running;
    bool is_single = !is_large;
    if (listing->cursor != 0 && (!is_large || collection->version != listing->version)) {
        listing_clear(client);
        is_single = true;
    }
    listing->version = is_large ? collection->version : 0;
    return (struct slice){.begin = buffer_used(&client->out),
                          .next = listing->cursor,
                          .limit = is_single ? UINT64_MAX : client_work_limit(client)};
}

/* Moves replies from the end of client->out to the collected elements. */
static void collect_replies(struct client *client, size_t begin)
{
    struct buffer *names = &client->listing.names;
    size_t size = buffer_used(&client->out) - begin;
    if (client->is_broken || size == 0)
        return;
    if (!buffer_reserve(names, size)) {
        client->is_broken = true;
        return;
    }
    buffer_append(names, client->out.data + client->out.begin + begin, size);
    client->out.end -= size;
}

void slice_pause(struct client *client, const struct slice *slice, size_t next)
{
    collect_replies(client, slice->begin);
    client->listing.cursor = next;
    client_end_turn(client);
}

bool slice_finish(struct client *client, const struct slice *slice)
{
    bool fits = finish_counted(client, slice->begin);
    if (fits && buffer_used(&client->listing.names) > 0) {
        collect_replies(client, slice->begin);
        reply_collected(client);
    }
    listing_clear(client);
    return fits;
}

bool list_in_slices(struct client *client, enum value_type type, bool has_names, bool has_values,
                    finish_function *finish)
{
    struct listed listed = {.client = client, .has_names = has_names, .has_values = has_values};
    struct entry **link = keyspace_find(&client->kv->keys, client_argument(client, 1));
    struct collection *collection =
        link != NULL && (*link)->type == type ? entry_collection(*link) : NULL;
    struct slice slice =
        slice_begin(client, collection, collection != NULL ? collection_count(collection) : 0);
    if (slice.limit == UINT64_MAX)
        return false;
    run_listing(client, &collection->fields, &listed, finish);
    return true;
}
