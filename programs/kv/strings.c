/* Commands on values. Each runs to completion on the loop's thread. */
#include "commands.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool assign_value(struct client *client, struct bytes key, struct bytes value, int64_t time,
                  const char *event)
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
        kv_notify(kv, NOTIFY_STRING, event, key);
        return false;
    }
    kv_log_set(kv, key, value, time);
    kv_notify(kv, NOTIFY_STRING, event, key);
    if (time != 0 && time != RECORD_KEEPS_TIME)
        kv_notify(kv, NOTIFY_GENERIC, "expire", key);
    return true;
}

static void reply_value(struct client *client, const struct entry *entry)
{
    struct keyspace *keys = &client->kv->keys;
    if (entry != NULL) {
        keys->hits++;
        reply_bulk(client, entry_value(entry));
    } else {
        keys->misses++;
        reply_nothing(client);
    }
}

void command_get(struct client *client)
{
    struct entry *entry;
    if (find_to_read(client, client_argument(client, 1), VALUE_STRING, &entry))
        reply_value(client, entry);
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

/*
 * Parses EX, PX, EXAT or PXAT and the number behind it, from argument *i on. Returns 1 and moves *i to
 * the number, 0 if the argument is another word, or -1 after an error reply.
 */
static int read_time_option(struct client *client, size_t *i, const char *name, int64_t *time)
{
    static const struct {
        const char *name;
        int unit;
        bool is_absolute;
    } times[] = {{"EX", 1000, false}, {"PX", 1, false}, {"EXAT", 1000, true}, {"PXAT", 1, true}};
    size_t unit = 0;
    int64_t number;
    while (unit < 4 && !bytes_are(client_argument(client, *i), times[unit].name))
        unit++;
    if (unit == 4 || ++*i == client->request.count || *time != 0)
        return 0;
    if (!argument_number(client, *i, &number))
        return -1;
    if (expiry_from(number, times[unit].unit, times[unit].is_absolute ? 0 : client->kv->keys.now,
                    time))
        return 1;
    reply_error(client, "-ERR invalid expire time in '%s' command", name);
    return -1;
}

static bool read_set_options(struct client *client, struct set_options *options)
{
    for (size_t i = 3; i < client->request.count; i++) {
        struct bytes word = client_argument(client, i);
        int status = 1;
        if (bytes_are(word, "NX"))
            options->if_new = true;
        else if (bytes_are(word, "XX"))
            options->if_there = true;
        else if (bytes_are(word, "GET"))
            options->gets = true;
        else if (bytes_are(word, "KEEPTTL"))
            options->keeps_time = true;
        else
            status = read_time_option(client, &i, "set", &options->time);
        if (status < 0)
            return false;
        if (status == 0) {
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

/* Reserves the memory for the reply with a value that may be replaced or removed, as reply_reserve. */
static bool reserve_value(struct client *client, const struct entry *entry)
{
    return entry == NULL || reply_reserve(client, entry->value_size + BULK_EXTRA);
}

static void set_with_options(struct client *client, struct bytes key, struct bytes value)
{
    struct set_options options = {0};
    if (!read_set_options(client, &options))
        return;
    struct entry **link = keyspace_find(&client->kv->keys, key), *old;
    bool is_there = link != NULL, done = false;
    size_t reply = buffer_used(&client->out);
    if (options.gets &&
        (!find_to_read(client, key, VALUE_STRING, &old) || !reserve_value(client, old)))
        return;
    if (options.gets && is_there)
        reply_bulk(client, entry_value(old)); /* before the value changes */
    else if (options.gets)
        reply_nothing(client);
    if (is_there ? !options.if_new : !options.if_there) {
        size_t before = buffer_used(&client->out);
        done = assign_value(client, key, value,
                            options.keeps_time ? RECORD_KEEPS_TIME : options.time, "set");
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
    else if (assign_value(client, key, value, 0, "set"))
        reply_ok(client);
}

static void set_with_expiry(struct client *client, int64_t unit, const char *name)
{
    int64_t number, time;
    if (!argument_number(client, 2, &number))
        return;
    if (!expiry_from(number, unit, client->kv->keys.now, &time))
        reply_error(client, "-ERR invalid expire time in '%s' command", name);
    else if (assign_value(client, client_argument(client, 1), client_argument(client, 3), time,
                          "set"))
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
    else if (assign_value(client, key, client_argument(client, 2), 0, "set"))
        reply_number(client, 1);
}

void command_getset(struct client *client)
{
    struct bytes key = client_argument(client, 1);
    size_t before = buffer_used(&client->out);
    struct entry *old;
    if (!find_to_read(client, key, VALUE_STRING, &old) || !reserve_value(client, old))
        return;
    reply_value(client, old);
    size_t behind = buffer_used(&client->out);
    if (!assign_value(client, key, client_argument(client, 2), 0, "set"))
        reply_drop(client, before, behind);
}

void command_getdel(struct client *client)
{
    struct bytes key = client_argument(client, 1);
    struct entry *old;
    if (!find_to_read(client, key, VALUE_STRING, &old) || !reserve_value(client, old))
        return;
    reply_value(client, old);
    struct entry **link = keyspace_find(&client->kv->keys, key);
    if (link != NULL)
        kv_delete(client->kv, link, key);
}

/* GETEX key [PERSIST | EX seconds | PX milliseconds | EXAT time | PXAT time] */
void command_getex(struct client *client)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1);
    bool persists = false;
    int64_t time = 0;
    for (size_t i = 2; i < client->request.count; i++) {
        int status = read_time_option(client, &i, "getex", &time);
        if (status < 0)
            return;
        if (status == 0 && (i == client->request.count || persists ||
                            !bytes_are(client_argument(client, i), "PERSIST"))) {
            reply_syntax_error(client);
            return;
        }
        persists |= status == 0;
    }
    if (persists && time != 0) {
        reply_syntax_error(client);
        return;
    }
    struct entry *old;
    if (!find_to_read(client, key, VALUE_STRING, &old) || !reserve_value(client, old))
        return;
    size_t before = buffer_used(&client->out);
    reply_value(client, old);
    size_t behind = buffer_used(&client->out);
    struct entry **link = keyspace_find(&kv->keys, key);
    if (link == NULL || (time == 0 && (!persists || (*link)->expiry == 0)))
        return;
    if (time != 0 && time <= kv->keys.now) {
        kv_delete(kv, link, key);
    } else if (keyspace_set_expiry(&kv->keys, *link, time)) {
        kv_log_expiry(kv, key, time);
        kv_notify(kv, NOTIFY_GENERIC, time != 0 ? "expire" : "persist", key);
    } else { /* no expiry is left */
        reply_no_memory(client);
        reply_drop(client, before, behind);
        kv_log_expiry(kv, key, 0);
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
        struct bytes key = client_argument(client, i);
        struct entry **link = keyspace_find(&client->kv->keys, key);
        if (link == NULL)
            kv_note_miss(client->kv, key);
        if (link != NULL && (*link)->type == VALUE_STRING)
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
        if (!assign_value(client, client_argument(client, i), client_argument(client, i + 1), 0,
                          "set"))
            return;
    }
    reply_ok(client);
}

/* All keys are set, or none if one of them is there. */
void command_msetnx(struct client *client)
{
    if (client->request.count % 2 == 0) {
        REPLY(client, "-ERR wrong number of arguments for 'msetnx' command");
        return;
    }
    for (size_t i = 1; i < client->request.count; i += 2) {
        if (keyspace_find(&client->kv->keys, client_argument(client, i)) != NULL) {
            reply_number(client, 0);
            return;
        }
    }
    for (size_t i = 1; i < client->request.count; i += 2) {
        if (!assign_value(client, client_argument(client, i), client_argument(client, i + 1), 0,
                          "set"))
            return;
    }
    reply_number(client, 1);
}

/* The part from `first` to `last`, both included; negative numbers count from the end. */
static struct bytes part_of(struct bytes value, int64_t first, int64_t last)
{
    int64_t size = (int64_t)value.size;
    if (first < 0)
        first = first + size > 0 ? first + size : 0;
    if (last < 0)
        last += size;
    if (last >= size)
        last = size - 1;
    if (first > last)
        return (struct bytes){"", 0};
    return (struct bytes){value.data + first, (size_t)(last - first + 1)};
}

void command_getrange(struct client *client)
{
    int64_t first, last;
    if (!argument_number(client, 2, &first) || !argument_number(client, 3, &last))
        return;
    struct entry *entry;
    if (!find_to_read(client, client_argument(client, 1), VALUE_STRING, &entry))
        return;
    struct bytes value = entry != NULL ? entry_value(entry) : (struct bytes){"", 0};
    reply_bulk(client, part_of(value, first, last));
}

void command_setrange(struct client *client)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1), part = client_argument(client, 3);
    int64_t offset;
    if (!argument_number(client, 2, &offset))
        return;
    struct entry *entry, *old;
    if (!find_value(client, key, VALUE_STRING, &old))
        return;
    if (offset < 0) {
        REPLY(client, "-ERR offset is out of range");
    } else if (part.size == 0) {
        reply_number(client, old != NULL ? old->value_size : 0);
    } else if ((uint64_t)offset > kv->limits.bulk || (size_t)offset + part.size > kv->limits.bulk) {
        REPLY(client, "-ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    } else if ((entry = keyspace_set_range(&kv->keys, key, (size_t)offset, part)) == NULL) {
        reply_no_memory(client);
    } else {
        kv_log_set_range(kv, key, (size_t)offset, part);
        kv_notify(kv, NOTIFY_STRING, "setrange", key);
        reply_number(client, entry->value_size);
    }
}

void command_strlen(struct client *client)
{
    struct entry *entry;
    if (find_to_read(client, client_argument(client, 1), VALUE_STRING, &entry))
        reply_number(client, entry != NULL ? entry->value_size : 0);
}

void command_append(struct client *client)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1), more = client_argument(client, 2);
    struct entry *old;
    if (!find_value(client, key, VALUE_STRING, &old))
        return;
    size_t size = old != NULL ? old->value_size : 0;
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
    kv_notify(kv, NOTIFY_STRING, "append", key);
    reply_number(client, entry->value_size);
}

/* ---- Numbers ---- */

static void add_to_number(struct client *client, int64_t number)
{
    struct bytes key = client_argument(client, 1);
    struct entry *old;
    int64_t value = 0;
    char text[NUMBER_SIZE];
    if (!find_value(client, key, VALUE_STRING, &old))
        return;
    if (old != NULL && !number_read(entry_value(old), &value)) {
        REPLY(client, "-ERR value is not an integer or out of range");
        return;
    }
    if (__builtin_add_overflow(value, number, &value)) {
        REPLY(client, "-ERR increment or decrement would overflow");
        return;
    }
    if (assign_value(client, key, (struct bytes){text, number_print(text, value)},
                     RECORD_KEEPS_TIME, "incrby"))
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

/* ---- Fractions ---- */

bool fraction_read(struct bytes text, long double *number)
{
    char copy[256], *end;
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, 0, text.size) != NULL ||
        isspace((unsigned char)text.data[0]))
        return false;
    bool is_signed = text.data[0] == '+' || text.data[0] == '-';
    struct bytes word = {text.data + is_signed, text.size - is_signed};
    if (bytes_are(word, "INF") ||
        bytes_are(word, "INFINITY")) { /* (strtold differs in emulators) */
        *number = text.data[0] == '-' ? -INFINITY : INFINITY;
        return true;
    }
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    *number = strtold(copy, &end);
    return end == copy + text.size && !isnan((double)*number);
}

struct bytes fraction_add(char text[FRACTION_SIZE], long double a, long double b)
{
    long double sum = a + b;
    if (!isfinite((double)sum)) /* (emulators have no larger range) */
        return (struct bytes){text, 0};
    int size = snprintf(text, FRACTION_SIZE, "%.17Lf", sum);
    bide_assert(size > 0 && size < FRACTION_SIZE);
    while (text[size - 1] == '0')
        size--;
    size -= text[size - 1] == '.';
    if (size == 2 && memcmp(text, "-0", 2) == 0) {
        text[0] = '0';
        size = 1;
    }
    return (struct bytes){text, (size_t)size};
}

void command_incrbyfloat(struct client *client)
{
    struct bytes key = client_argument(client, 1);
    struct entry *old;
    long double value = 0, more = 0;
    char text[FRACTION_SIZE];
    if (!find_value(client, key, VALUE_STRING, &old))
        return;
    if ((old != NULL && !fraction_read(entry_value(old), &value)) ||
        !fraction_read(client_argument(client, 2), &more)) {
        REPLY(client, "-ERR value is not a valid float");
        return;
    }
    struct bytes sum = fraction_add(text, value, more);
    if (sum.size == 0)
        REPLY(client, "-ERR increment would produce NaN or Infinity");
    else if (assign_value(client, key, sum, RECORD_KEEPS_TIME, "incrbyfloat"))
        reply_bulk(client, sum);
}
