/*
 * Commands on keys: existence, expiry, and listing. Each runs to completion on the loop's thread.
 */
#include "commands.h"

#include "sorted_set.h"

void command_del(struct client *client)
{
    struct kv *kv = client->kv;
    int64_t count = 0;
    for (size_t i = 1; i < client->request.count; i++) {
        struct bytes key = client_argument(client, i);
        struct entry **link = keyspace_find(&kv->keys, key);
        if (link == NULL)
            continue;
        kv_delete(kv, link, key);
        count++;
    }
    reply_number(client, count);
}

/* EXISTS, and TOUCH, after which the keys count as used. */
void command_exists(struct client *client)
{
    bool touches = bytes_are(client_argument(client, 0), "TOUCH");
    struct entry **(*find)(struct keyspace *, struct bytes) =
        touches ? keyspace_find : keyspace_peek;
    int64_t count = 0;
    for (size_t i = 1; i < client->request.count; i++) {
        struct bytes key = client_argument(client, i);
        if (find(&client->kv->keys, key) != NULL)
            count++;
        else
            kv_note_miss(client->kv, key);
    }
    reply_number(client, count);
}

static const char *const type_names[] = {
    [VALUE_STRING] = "string", [VALUE_HASH] = "hash",       [VALUE_LIST] = "list",
    [VALUE_SET] = "set",       [VALUE_SORTED_SET] = "zset",
};

static struct entry **peek_to_read(struct client *client, size_t i)
{
    struct bytes key = client_argument(client, i);
    struct entry **link = keyspace_peek(&client->kv->keys, key);
    if (link == NULL)
        kv_note_miss(client->kv, key);
    return link;
}

void command_type(struct client *client)
{
    struct entry **link = peek_to_read(client, 1);
    reply_simple(client, link != NULL ? type_names[(*link)->type] : "none");
}

/* The names that redis has for such values; here each type is stored in one way. */
static const char *encoding_of(const struct entry *entry)
{
    enum { SHORT = 44, FEW = 128 };
    int64_t number;
    if (entry->type == VALUE_SET)
        return "hashtable";
    if (entry->type != VALUE_STRING && collection_count(entry_collection(entry)) <= FEW)
        return "listpack";
    if (entry->type != VALUE_STRING)
        return entry->type == VALUE_HASH   ? "hashtable"
               : entry->type == VALUE_LIST ? "quicklist"
                                           : "skiplist";
    return number_read(entry_value(entry), &number) ? "int"
           : entry->value_size <= SHORT             ? "embstr"
                                                    : "raw";
}

/* The policy of eviction decides which of the two there is. */
static void reply_uses(struct client *client, const struct entry *entry, bool wants_frequency)
{
    struct keyspace *keys = &client->kv->keys;
    if (wants_frequency && keys->uses.are_counted)
        reply_number(client, keyspace_frequency(keys, entry));
    else if (!wants_frequency && !keys->uses.are_counted)
        reply_number(client, keyspace_idle_time(keys, entry) / 1000);
    else
        reply_error(client,
                    "-ERR An LFU maxmemory policy is %s not tracked. Please note that when "
                    "switching between policies at runtime LRU and LFU data will take some time to "
                    "adjust.",
                    wants_frequency ? "not selected, access frequency" : "selected, idle time");
}

/* OBJECT ENCODING|REFCOUNT|IDLETIME|FREQ key */
void command_object(struct client *client)
{
    struct bytes word = client_argument(client, 1);
    struct entry **link = keyspace_peek(&client->kv->keys, client_argument(client, 2));
    if (!bytes_are(word, "ENCODING") && !bytes_are(word, "REFCOUNT") &&
        !bytes_are(word, "IDLETIME") && !bytes_are(word, "FREQ"))
        REPLY(client, "-ERR unknown subcommand or wrong number of arguments for 'object'");
    else if (link == NULL)
        reply_nothing(client);
    else if (bytes_are(word, "ENCODING"))
        reply_bulk(client, bytes_of(encoding_of(*link)));
    else if (bytes_are(word, "REFCOUNT"))
        reply_number(client, 1);
    else
        reply_uses(client, *link, bytes_are(word, "FREQ"));
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

/* Conditions of EXPIRE; a key without an expiry is as one that never ends. */
struct expiry_conditions {
    bool if_none, if_any, if_later, if_earlier;
};

static bool read_expiry_conditions(struct client *client, struct expiry_conditions *conditions)
{
    for (size_t i = 3; i < client->request.count; i++) {
        struct bytes word = client_argument(client, i);
        if (bytes_are(word, "NX"))
            conditions->if_none = true;
        else if (bytes_are(word, "XX"))
            conditions->if_any = true;
        else if (bytes_are(word, "GT"))
            conditions->if_later = true;
        else if (bytes_are(word, "LT"))
            conditions->if_earlier = true;
        else {
            reply_error(client, "-ERR Unsupported option %.*s",
                        word.size < 128 ? (int)word.size : 128, word.data);
            return false;
        }
    }
    if (conditions->if_none &&
        (conditions->if_any || conditions->if_later || conditions->if_earlier))
        REPLY(client, "-ERR NX and XX, GT or LT options at the same time are not compatible");
    else if (conditions->if_later && conditions->if_earlier)
        REPLY(client, "-ERR GT and LT options at the same time are not compatible");
    else
        return true;
    return false;
}

static bool are_met(const struct expiry_conditions *conditions, int64_t present, int64_t time)
{
    return (!conditions->if_none || present == 0) && (!conditions->if_any || present != 0) &&
           (!conditions->if_later || (present != 0 && time > present)) &&
           (!conditions->if_earlier || present == 0 || time < present);
}

static void set_expiry(struct client *client, int64_t unit, int64_t from, const char *name)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1);
    struct expiry_conditions conditions = {0};
    int64_t time;
    if (!argument_number(client, 2, &time) || !read_expiry_conditions(client, &conditions))
        return;
    if (__builtin_mul_overflow(time, unit, &time) || __builtin_add_overflow(time, from, &time)) {
        reply_error(client, "-ERR invalid expire time in '%s' command", name);
        return;
    }
    struct entry **link = keyspace_find(&kv->keys, key);
    if (link == NULL || !are_met(&conditions, keyspace_expiry(&kv->keys, *link), time)) {
        reply_number(client, 0);
    } else if (time <= kv->keys.now) {
        kv_delete(kv, link, key);
        reply_number(client, 1);
    } else if (!keyspace_set_expiry(&kv->keys, *link, time)) {
        reply_no_memory(client);
    } else {
        kv_log_expiry(kv, key, time);
        kv_notify(kv, NOTIFY_GENERIC, "expire", key);
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

/* Replies with the expiry after `from`, in units of so many milliseconds. */
static void reply_expiry(struct client *client, int64_t unit, int64_t from)
{
    struct keyspace *keys = &client->kv->keys;
    struct entry **link = peek_to_read(client, 1);
    int64_t time = link != NULL ? keyspace_expiry(keys, *link) : 0;
    if (link == NULL)
        reply_number(client, -2);
    else if (time == 0)
        reply_number(client, -1);
    else
        reply_number(client, (time - from + unit / 2) / unit);
}

void command_ttl(struct client *client)
{
    reply_expiry(client, 1000, client->kv->keys.now);
}

void command_pttl(struct client *client)
{
    reply_expiry(client, 1, client->kv->keys.now);
}

void command_expiretime(struct client *client)
{
    reply_expiry(client, 1000, 0);
}

void command_pexpiretime(struct client *client)
{
    reply_expiry(client, 1, 0);
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
    kv_notify(kv, NOTIFY_GENERIC, "persist", key);
    reply_number(client, 1);
}

/* ---- Names ---- */

/* Copies or moves the value of the first argument to the second. Returns false after an error reply. */
static bool copy_value(struct client *client, bool moves)
{
    struct kv *kv = client->kv;
    struct bytes from = client_argument(client, 1), to = client_argument(client, 2);
    if (bytes_equal(from, to))
        return true;
    bool was_there = keyspace_peek(&kv->keys, to) != NULL;
    struct entry **source = keyspace_peek(&kv->keys, from);
    if (!moves && source != NULL && (*source)->type != VALUE_STRING)
        kv->work += collection_count(entry_collection(*source));
    if (keyspace_copy(&kv->keys, from, to, moves)) {
        kv_log_copy(kv, from, to, moves);
        if (was_there) /* (in redis the key is another one) */
            kv_notify(kv, NOTIFY_NEW, "new", to);
        if (moves)
            kv_notify(kv, NOTIFY_GENERIC, "rename_from", from);
        kv_notify(kv, NOTIFY_GENERIC, moves ? "rename_to" : "copy_to", to);
        return true;
    }
    if (was_there) {
        kv_log_delete(kv, to);
        kv_notify(kv, NOTIFY_GENERIC, "del", to);
    }
    reply_no_memory(client);
    return false;
}

static bool exists(struct client *client, size_t i)
{
    return keyspace_find(&client->kv->keys, client_argument(client, i)) != NULL;
}

void command_rename(struct client *client)
{
    if (!exists(client, 1))
        REPLY(client, "-ERR no such key");
    else if (copy_value(client, true))
        reply_ok(client);
}

void command_renamenx(struct client *client)
{
    if (!exists(client, 1))
        REPLY(client, "-ERR no such key");
    else if (exists(client, 2))
        reply_number(client, 0);
    else if (copy_value(client, true))
        reply_number(client, 1);
}

/* COPY source destination [DB 0] [REPLACE] */
void command_copy(struct client *client)
{
    bool replaces = false;
    for (size_t i = 3; i < client->request.count; i++) {
        int64_t number;
        if (bytes_are(client_argument(client, i), "REPLACE")) {
            replaces = true;
        } else if (bytes_are(client_argument(client, i), "DB") && i + 1 < client->request.count) {
            if (!argument_number(client, ++i, &number))
                return;
            if (number != 0) {
                REPLY(client, "-ERR DB index is out of range");
                return;
            }
        } else {
            reply_syntax_error(client);
            return;
        }
    }
    if (bytes_equal(client_argument(client, 1), client_argument(client, 2)))
        REPLY(client, "-ERR source and destination objects are the same");
    else if (!exists(client, 1)) {
        kv_note_miss(client->kv, client_argument(client, 1));
        reply_number(client, 0);
    } else if (exists(client, 2) && !replaces)
        reply_number(client, 0);
    else if (copy_value(client, false))
        reply_number(client, 1);
}

uint64_t kv_draw(void *argument)
{
    struct kv *kv = argument;
    const uint64_t turn[] = {++kv->draws, (uint64_t)kv->keys.now};
    return bytes_hash((struct bytes){(const char *)turn, sizeof turn}, kv->keys.keys.table.key);
}

/* One of some keys, drawn by counting; NULL if there are too few of them. */
struct draw {
    const struct keyspace *keys;
    size_t left;
    struct entry *found;
};

static void draw_key(void *argument, struct entry *entry)
{
    struct draw *draw = argument;
    if (entry->expiry != 0 && keyspace_expiry(draw->keys, entry) <= draw->keys->now)
        return;
    if (draw->found == NULL || draw->left-- > 0)
        draw->found = entry;
}

/* A key near a position that is drawn. (A table is never so sparse that it takes long.) */
void command_randomkey(struct client *client)
{
    enum { MAX_POSITIONS = 4096 };
    struct keyspace *keys = &client->kv->keys;
    uint64_t number = kv_draw(client->kv);
    struct draw draw = {keys, (size_t)(number >> 60), NULL};
    size_t cursor = (size_t)number;
    for (int i = 0; i < MAX_POSITIONS && draw.found == NULL; i++, client->kv->work++)
        cursor = table_scan(&client->kv->keys.keys.table, cursor, draw_key, &draw);
    if (draw.found != NULL)
        reply_bulk(client, entry_key(draw.found));
    else
        reply_nothing(client);
}

/* ---- Searches: SCAN, HSCAN, SSCAN and ZSCAN ---- */

struct search {
    struct client *client;
    struct bytes pattern;        /* NULL matches all */
    const struct keyspace *keys; /* NULL: the entries are fields or members */
    enum value_type
        of; /* the collection's; a hash's fields have values, a sorted set's members scores */
    const char *type; /* of values; NULL: any */
    int64_t count;    /* about as many at a time */
    size_t found;     /* elements of the reply */
};

static bool is_type(const struct entry *entry, const char *type)
{
    return strcmp(type_names[entry->type], type) == 0;
}

static void reply_matching_entry(void *argument, struct entry *entry)
{
    struct search *search = argument;
    char text[SCORE_SIZE];
    search->client->kv->work++;
    if (client_refuses_reply(search->client))
        return;
    if (search->keys != NULL && entry->expiry != 0 &&
        keyspace_expiry(search->keys, entry) <= search->keys->now)
        return;
    if (search->type != NULL && !is_type(entry, search->type))
        return;
    if (search->pattern.data != NULL &&
        !bytes_match(entry_key(entry), search->pattern, &search->client->kv->work))
        return;
    reply_bulk(search->client, entry_key(entry));
    search->found++;
    if (search->of == VALUE_HASH)
        reply_bulk(search->client, entry_value(entry));
    else if (search->of == VALUE_SORTED_SET)
        reply_bulk(search->client,
                   (struct bytes){text, score_print(text, sorted_node_of(entry)->score)});
    else
        return;
    search->found++;
}

/* The type of that name; if there is none, one that no value has. */
static const char *find_type(struct bytes name)
{
    static const char *const known[][2] = {
        {"STRING", "string"}, {"HASH", "hash"}, {"LIST", "list"}, {"SET", "set"}, {"ZSET", "zset"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (bytes_are(name, known[i][0]))
            return known[i][1];
    }
    return "none";
}

/* Parses a cursor and the options behind it. Returns false after an error reply. */
static bool read_search(struct client *client, size_t i, struct search *search, int64_t *cursor)
{
    search->count = 10;
    if (!number_read(client_argument(client, i), cursor) || *cursor < 0) {
        REPLY(client, "-ERR invalid cursor");
        return false;
    }
    for (i++; i < client->request.count; i += 2) {
        struct bytes word = client_argument(client, i);
        bool has_more = i + 1 < client->request.count;
        if (has_more && bytes_are(word, "MATCH")) {
            search->pattern = client_argument(client, i + 1);
        } else if (has_more && bytes_are(word, "COUNT")) {
            if (!argument_number(client, i + 1, &search->count))
                return false;
        } else if (has_more && search->keys != NULL && bytes_are(word, "TYPE")) {
            search->type = find_type(client_argument(client, i + 1));
        } else {
            search->count = 0;
        }
        if (search->count < 1) {
            reply_syntax_error(client);
            return false;
        }
    }
    return true;
}

/*
 * Replies with a part of the table. The cursor precedes the entries in the reply and is known last, so
 * the entries are moved behind it.
 */
static void scan_table(struct client *client, struct table *table, struct search *search,
                       int64_t number)
{
    char text[NUMBER_SIZE];
    size_t begin = reply_start_array(client), cursor = (size_t)number;
    int64_t buckets = search->count < INT32_MAX ? 10 * search->count : INT64_MAX;
    uint64_t limit = client->kv->work + CLIENT_MAX_WORK; /* (a count is a hint) */
    do
        cursor = table != NULL ? table_scan(table, cursor, reply_matching_entry, search) : 0;
    while (cursor != 0 && (int64_t)search->found < search->count && --buckets > 0 &&
           client->kv->work < limit && !client_refuses_reply(client));
    if (!finish_listing(client, begin, search->found))
        return;
    struct buffer found = {0};
    size_t size = buffer_used(&client->out) - begin;
    if (client->is_broken || !buffer_reserve(&found, size)) {
        client->is_broken = true;
        return;
    }
    buffer_append(&found, client->out.data + client->out.begin + begin, size);
    client->out.end -= size;
    reply_array(client, 2);
    reply_bulk(client, (struct bytes){text, number_print(text, (int64_t)cursor)});
    reply_raw(client, found.data, size);
    buffer_free(&found);
}

void command_scan(struct client *client)
{
    struct search search = {.client = client, .keys = &client->kv->keys};
    int64_t cursor;
    if (read_search(client, 1, &search, &cursor))
        scan_table(client, &client->kv->keys.keys.table, &search, cursor);
}

static void scan_collection(struct client *client, enum value_type type)
{
    struct search search = {.client = client, .of = type};
    struct entry *entry;
    int64_t cursor;
    if (read_search(client, 2, &search, &cursor) &&
        find_to_read(client, client_argument(client, 1), type, &entry))
        scan_table(client, entry != NULL ? &entry_collection(entry)->fields : NULL, &search,
                   cursor);
}

void command_hscan(struct client *client)
{
    scan_collection(client, VALUE_HASH);
}

void command_sscan(struct client *client)
{
    scan_collection(client, VALUE_SET);
}

void command_zscan(struct client *client)
{
    scan_collection(client, VALUE_SORTED_SET);
}
