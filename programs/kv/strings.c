/* Commands on values. Each runs to completion on the loop's thread. */
#include "commands.h"

/* Sets a key's value and its expiry, `time`: 0 for none, or RECORD_KEEPS_TIME. */
static bool assign_value(struct client *client, struct bytes key, struct bytes value, int64_t time)
{
    struct kv *kv = client->kv;
    struct entry *entry = keyspace_upsert(&kv->keys, key, value.size, false);
    if (entry == NULL) {
        reply_no_memory(client);
        return false;
    }
    memcpy(entry->bytes + entry->key_size, value.data, value.size);
    if (time != RECORD_KEEPS_TIME && (time != 0 || entry->expiry != 0) &&
        !keyspace_set_expiry(&kv->keys, entry, time)) {
        time = 0; /* the key has no expiry, and the record must say so */
        reply_no_memory(client);
        kv_log_set(kv, key, value, time);
        return false;
    }
    kv_log_set(kv, key, value, time);
    return true;
}

void command_get(struct client *client)
{
    struct keyspace *keys = &client->kv->keys;
    struct entry **link = keyspace_find(keys, client_argument(client, 1));
    if (link == NULL) {
        keys->misses++;
        reply_nothing(client);
        return;
    }
    keys->hits++;
    reply_bulk(client, entry_value(*link));
}

/* ---- SET ---- */

struct set_options {
    bool if_new, if_there, keeps_time, gets;
    int64_t time;
};

/*
 * The expiry `number` units of `unit` milliseconds after `from`. Returns false if that is not a
 * valid time.
 */
static bool expiry_from(int64_t number, int64_t unit, int64_t from, int64_t *time)
{
    return number > 0 && !__builtin_mul_overflow(number, unit, &number) &&
           !__builtin_add_overflow(number, from, time);
}

static bool read_set_options(struct client *client, struct set_options *options)
{
    static const struct {
        const char *name;
        int unit;
        bool is_absolute;
    } times[] = {{"EX", 1000, false}, {"PX", 1, false}, {"EXAT", 1000, true}, {"PXAT", 1, true}};
    for (size_t i = 3; i < client->request.count; i++) {
        struct bytes word = client_argument(client, i);
        size_t unit = 0;
        int64_t number;
        while (unit < 4 && !bytes_are(word, times[unit].name))
            unit++;
        if (bytes_are(word, "NX")) {
            options->if_new = true;
        } else if (bytes_are(word, "XX")) {
            options->if_there = true;
        } else if (bytes_are(word, "GET")) {
            options->gets = true;
        } else if (bytes_are(word, "KEEPTTL")) {
            options->keeps_time = true;
        } else if (unit < 4 && ++i < client->request.count && options->time == 0) {
            if (!argument_number(client, i, &number))
                return false;
            if (!expiry_from(number, times[unit].unit,
                             times[unit].is_absolute ? 0 : client->kv->keys.now, &options->time)) {
                REPLY(client, "-ERR invalid expire time in 'set' command");
                return false;
            }
        } else {
            reply_syntax_error(client);
            return false;
        }
    }
    if ((options->if_new && options->if_there) || (options->keeps_time && options->time != 0)) {
        reply_syntax_error(client);
        return false;
    }
    return true;
}

static void set_with_options(struct client *client, struct bytes key, struct bytes value)
{
    struct set_options options = {0};
    if (!read_set_options(client, &options))
        return;
    struct entry **link = keyspace_find(&client->kv->keys, key);
    bool is_there = link != NULL, done = false;
    size_t reply = buffer_used(&client->out);
    if (options.gets && is_there)
        reply_bulk(client, entry_value(*link)); /* before the value changes */
    else if (options.gets)
        reply_nothing(client);
    if (is_there ? !options.if_new : !options.if_there) {
        size_t before = buffer_used(&client->out);
        done =
            assign_value(client, key, value, options.keeps_time ? RECORD_KEEPS_TIME : options.time);
        if (!done) { /* the reply is the error alone */
            reply_drop(client, reply, before);
            return;
        }
    }
    if (!options.gets) {
        if (done)
            reply_ok(client);
        else
            reply_nothing(client);
    }
}

void command_set(struct client *client)
{
    struct bytes key = client_argument(client, 1), value = client_argument(client, 2);
    if (client->request.count > 3)
        set_with_options(client, key, value);
    else if (assign_value(client, key, value, 0))
        reply_ok(client);
}

static void set_with_expiry(struct client *client, int64_t unit, const char *name)
{
    int64_t number, time;
    if (!argument_number(client, 2, &number))
        return;
    if (!expiry_from(number, unit, client->kv->keys.now, &time))
        reply_error(client, "-ERR invalid expire time in '%s' command", name);
    else if (assign_value(client, client_argument(client, 1), client_argument(client, 3), time))
        reply_ok(client);
}

void command_setex(struct client *client)
{
    set_with_expiry(client, 1000, "setex");
}

void command_psetex(struct client *client)
{
    set_with_expiry(client, 1, "psetex");
}

void command_setnx(struct client *client)
{
    struct bytes key = client_argument(client, 1);
    if (keyspace_find(&client->kv->keys, key) != NULL)
        reply_number(client, 0);
    else if (assign_value(client, key, client_argument(client, 2), 0))
        reply_number(client, 1);
}

void command_getset(struct client *client)
{
    struct bytes key = client_argument(client, 1);
    size_t before = buffer_used(&client->out);
    command_get(client);
    size_t behind = buffer_used(&client->out);
    if (!assign_value(client, key, client_argument(client, 2), 0))
        reply_drop(client, before, behind);
}

void command_getdel(struct client *client)
{
    struct bytes key = client_argument(client, 1);
    command_get(client);
    struct entry **link = keyspace_find(&client->kv->keys, key);
    if (link != NULL) {
        keyspace_remove(&client->kv->keys, link);
        kv_log_delete(client->kv, key);
    }
}

/*
 * The values are not copied before their sum is known: a short request may name a large value many
 * times.
 */
void command_mget(struct client *client)
{
    size_t size = 0, limit = client->kv->options.reply;
    for (size_t i = 1; i < client->request.count && size <= limit; i++) {
        struct entry **link = keyspace_find(&client->kv->keys, client_argument(client, i));
        size += link != NULL ? (*link)->value_size + NUMBER_SIZE : NUMBER_SIZE;
    }
    if (size > limit && client->request.count > 2) {
        reply_too_large(client);
        return;
    }
    reply_array(client, client->request.count - 1);
    for (size_t i = 1; i < client->request.count; i++) {
        struct entry **link = keyspace_find(&client->kv->keys, client_argument(client, i));
        if (link != NULL)
            reply_bulk(client, entry_value(*link));
        else
            reply_nothing(client);
    }
}

void command_mset(struct client *client)
{
    if (client->request.count % 2 == 0) {
        REPLY(client, "-ERR wrong number of arguments for 'mset' command");
        return;
    }
    for (size_t i = 1; i < client->request.count; i += 2) {
        if (!assign_value(client, client_argument(client, i), client_argument(client, i + 1), 0))
            return;
    }
    reply_ok(client);
}

void command_strlen(struct client *client)
{
    struct entry **link = keyspace_find(&client->kv->keys, client_argument(client, 1));
    reply_number(client, link != NULL ? (*link)->value_size : 0);
}

void command_append(struct client *client)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1), more = client_argument(client, 2);
    struct entry **link = keyspace_find(&kv->keys, key);
    size_t size = link != NULL ? (*link)->value_size : 0;
    if (size + more.size > kv->limits.bulk) {
        REPLY(client, "-ERR string exceeds maximum allowed size");
        return;
    }
    struct entry *entry = keyspace_upsert(&kv->keys, key, size + more.size, true);
    if (entry == NULL) {
        reply_no_memory(client);
        return;
    }
    memcpy(entry->bytes + entry->key_size + size, more.data, more.size);
    kv_log_append(kv, key, more);
    reply_number(client, entry->value_size);
}

/* ---- Numbers ---- */

static void add_to_number(struct client *client, int64_t number)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1);
    struct entry **link = keyspace_find(&kv->keys, key);
    int64_t value = 0;
    char text[NUMBER_SIZE];
    if (link != NULL && !number_read(entry_value(*link), &value)) {
        REPLY(client, "-ERR value is not an integer or out of range");
        return;
    }
    if (__builtin_add_overflow(value, number, &value)) {
        REPLY(client, "-ERR increment or decrement would overflow");
        return;
    }
    if (assign_value(client, key, (struct bytes){text, number_print(text, value)},
                     RECORD_KEEPS_TIME))
        reply_number(client, value);
}

void command_incr(struct client *client)
{
    add_to_number(client, 1);
}

void command_decr(struct client *client)
{
    add_to_number(client, -1);
}

void command_incrby(struct client *client)
{
    int64_t number;
    if (argument_number(client, 2, &number))
        add_to_number(client, number);
}

void command_decrby(struct client *client)
{
    int64_t number;
    if (!argument_number(client, 2, &number))
        return;
    if (number == INT64_MIN)
        REPLY(client, "-ERR decrement would overflow");
    else
        add_to_number(client, -number);
}
