/* Commands on lists. Each runs to completion on the loop's thread. */
#include "commands.h"

static const char *const ends[] = {[FIRST] = "LEFT", [LAST] = "RIGHT"};

static bool find_list(struct client *client, size_t i, struct entry **entry)
{
    return find_value(client, client_argument(client, i), VALUE_LIST, entry);
}

static bool find_list_to_read(struct client *client, struct entry **entry)
{
    return find_to_read(client, client_argument(client, 1), VALUE_LIST, entry);
}

static size_t count_of(const struct entry *list)
{
    return list != NULL ? collection_count(entry_collection(list)) : 0;
}

/* The position of an index, which counts from the end if it is negative; SIZE_MAX if it is none. */
static size_t position_of(int64_t index, size_t count)
{
    if (index < 0)
        index += (int64_t)count;
    return index >= 0 && index < (int64_t)count ? (size_t)index : SIZE_MAX;
}

/* ---- The ends ---- */

/* The event of adding to an end of a list, or of removing from it. */
static const char *push_event(enum end end)
{
    return end == FIRST ? "lpush" : "rpush";
}

static const char *pop_event(enum end end)
{
    return end == FIRST ? "lpop" : "rpop";
}

/*
 * Adds a value to the list of a key, which has no other type, logs it and notifies of it. Returns
 * false after an error reply.
 */
static bool push_value(struct client *client, struct bytes key, struct bytes value, enum end end)
{
    struct kv *kv = client->kv;
    const struct bytes words[] = {bytes_of(end == FIRST ? "LPUSH" : "RPUSH"), key, value};
    bool is_new;
    struct collection *list = keyspace_change(&kv->keys, key, VALUE_LIST, &is_new);
    if (list != NULL && list_insert(list, end == FIRST ? 0 : collection_count(list), value)) {
        kv_log_words(kv, words, 3);
        kv_notify(kv, NOTIFY_LIST, push_event(end), key);
        return true;
    }
    if (list != NULL)
        keyspace_remove_if_empty(&kv->keys, key);
    reply_no_memory(client);
    return false;
}

/* Removes `count` items, which are there, from an end of a list, and logs it. The list may be empty then. */
static void drop_values(struct client *client, struct bytes key, size_t count, enum end end)
{
    struct kv *kv = client->kv;
    char number[NUMBER_SIZE];
    const struct bytes words[] = {bytes_of(end == FIRST ? "LPOP" : "RPOP"),
                                  key,
                                  {number, number_print(number, (int64_t)count)}};
    bool is_new;
    if (count == 0)
        return;
    struct collection *list = keyspace_change(&kv->keys, key, VALUE_LIST, &is_new);
    list_remove(list, end == FIRST ? 0 : collection_count(list) - count, count);
    kv_log_words(kv, words, 3);
}

/* The same, with the event; an empty list is removed. */
static void pop_values(struct client *client, struct bytes key, size_t count, enum end end)
{
    if (count == 0)
        return;
    drop_values(client, key, count, end);
    kv_notify_removal(client->kv, NOTIFY_LIST, pop_event(end), key);
}

static void push(struct client *client, enum end end, bool if_there)
{
    struct keyspace *keys = &client->kv->keys;
    struct bytes key = client_argument(client, 1);
    struct entry *entry;
    bool is_new;
    if (!find_list(client, 1, &entry))
        return;
    if (if_there && entry == NULL) {
        reply_number(client, 0);
        return;
    }
    struct collection *list = keyspace_change(keys, key, VALUE_LIST, &is_new);
    size_t before = list != NULL ? collection_count(list) : 0, done = 2;
    while (
        list != NULL && done < client->request.count &&
        list_insert(list, end == FIRST ? 0 : collection_count(list), client_argument(client, done)))
        done++;
    if (done == client->request.count) {
        log_request(client, end == FIRST ? "LPUSH" : "RPUSH");
        kv_notify(client->kv, NOTIFY_LIST, push_event(end), key);
        reply_number(client, (int64_t)collection_count(list));
        return;
    }
    if (list != NULL) { /* all or none of them */
        list_remove(list, end == FIRST ? 0 : before, done - 2);
        keyspace_remove_if_empty(keys, key);
    }
    reply_no_memory(client);
}

void command_lpush(struct client *client)
{
    push(client, FIRST, false);
}

void command_rpush(struct client *client)
{
    push(client, LAST, false);
}

void command_lpushx(struct client *client)
{
    push(client, FIRST, true);
}

void command_rpushx(struct client *client)
{
    push(client, LAST, true);
}

/* The item at a distance from an end. */
static struct bytes item_from(struct collection *list, size_t distance, enum end end)
{
    return list_get(list, end == FIRST ? distance : collection_count(list) - 1 - distance);
}

/* LPOP key [count] */
static void pop(struct client *client, enum end end)
{
    struct entry *list;
    bool has_count;
    int64_t count;
    if (!read_pop_count(client, &has_count, &count) || !find_list(client, 1, &list))
        return;
    size_t begin = buffer_used(&client->out), left = count_of(list);
    if (list == NULL) {
        if (has_count)
            reply_null_array(client);
        else
            reply_nothing(client);
        return;
    }
    if ((uint64_t)count < left)
        left = (size_t)count;
    if (!has_count) {
        struct bytes item = item_from(entry_collection(list), 0, end);
        if (!reply_reserve(client, item.size + BULK_EXTRA))
            return;
        reply_bulk(client, item);
        pop_values(client, client_argument(client, 1), 1, end);
        return;
    }
    reply_array(client, left);
    for (size_t i = 0; i < left && !client_refuses_reply(client); i++)
        reply_bulk(client, item_from(entry_collection(list), i, end));
    client->kv->work += left;
    if (finish_counted(client, begin))
        pop_values(client, client_argument(client, 1), left, end);
}

void command_lpop(struct client *client)
{
    pop(client, FIRST);
}

void command_rpop(struct client *client)
{
    pop(client, LAST);
}

/* Moves an item from an end of the first list to an end of the second. */
static void move_item(struct client *client, enum end from, enum end to)
{
    struct entry *source, *target;
    if (!find_list(client, 1, &source))
        return;
    if (source == NULL) {
        reply_nothing(client);
        return;
    }
    if (!find_list(client, 2, &target))
        return;
    /* (the value is copied to the reply and to the target before it is removed from the source) */
    struct bytes value = item_from(entry_collection(source), 0, from);
    bool is_same = source == target;
    if (!reply_reserve(client, value.size + BULK_EXTRA))
        return;
    if (is_same && from == to) {
        reply_bulk(client, value);
        kv_notify(client->kv, NOTIFY_LIST, push_event(to), client_argument(client, 2));
        kv_notify(client->kv, NOTIFY_LIST, pop_event(from), client_argument(client, 1));
        return;
    }
    size_t begin = buffer_used(&client->out);
    reply_bulk(client, value);
    size_t behind = buffer_used(&client->out);
    if (push_value(client, client_argument(client, 2), value, to))
        pop_values(client, client_argument(client, 1), 1, from);
    else
        reply_drop(client, begin, behind);
}

void command_lmove(struct client *client)
{
    enum end from, to;
    if (read_end(client, 3, ends, &from) && read_end(client, 4, ends, &to))
        move_item(client, from, to);
}

void command_rpoplpush(struct client *client)
{
    move_item(client, LAST, FIRST);
}

/* ---- Several lists, and waiting ---- */

/* Replies with a key and items of its list, and removes these. */
static void pop_several(struct client *client, struct bytes key, enum end end, int64_t count)
{
    struct entry *list;
    if (!find_value(client, key, VALUE_LIST, &list))
        return;
    size_t begin = buffer_used(&client->out), popped = count_of(list);
    if ((uint64_t)count < popped)
        popped = (size_t)count;
    reply_array(client, 2);
    reply_bulk(client, key);
    reply_array(client, popped);
    for (size_t i = 0; i < popped && !client_refuses_reply(client); i++)
        reply_bulk(client, item_from(entry_collection(list), i, end));
    client->kv->work += popped;
    if (finish_counted(client, begin))
        pop_values(client, key, popped, end);
}

void command_lmpop(struct client *client)
{
    struct multiple_pop pop;
    size_t key;
    if (!read_multiple_pop(client, 1, ends, &pop) ||
        !find_first_value(client, VALUE_LIST, pop.first_key, pop.keys, &key))
        return;
    if (key != 0)
        pop_several(client, client_argument(client, key), pop.end, pop.count);
    else
        reply_null_array(client);
}

static void serve_multiple_pop(struct client *client, struct bytes key)
{
    struct multiple_pop pop;
    if (read_multiple_pop(client, 2, ends, &pop)) /* (it was, before the wait) */
        pop_several(client, key, pop.end, pop.count);
}

/* BLMPOP timeout count key [key ...] LEFT|RIGHT [COUNT count] */
void command_blmpop(struct client *client)
{
    struct multiple_pop pop;
    if (read_multiple_pop(client, 2, ends, &pop))
        blocking_serve_or_wait(client, VALUE_LIST, pop.first_key, pop.keys, 1, serve_multiple_pop);
}

/* Replies with a key and an item of its list, and removes this. */
static void pop_one(struct client *client, struct bytes key, enum end end)
{
    struct entry *list;
    if (!find_value(client, key, VALUE_LIST, &list))
        return;
    struct bytes item = item_from(entry_collection(list), 0, end);
    if (!reply_reserve(client, LINE_SIZE + key.size + item.size + 2 * BULK_EXTRA))
        return;
    reply_array(client, 2);
    reply_bulk(client, key);
    reply_bulk(client, item);
    pop_values(client, key, 1, end);
}

static void serve_first(struct client *client, struct bytes key)
{
    pop_one(client, key, FIRST);
}

static void serve_last(struct client *client, struct bytes key)
{
    pop_one(client, key, LAST);
}

/* BLPOP key [key ...] timeout */
void command_blpop(struct client *client)
{
    size_t keys = client->request.count - 2;
    blocking_serve_or_wait(client, VALUE_LIST, 1, keys, keys + 1, serve_first);
}

void command_brpop(struct client *client)
{
    size_t keys = client->request.count - 2;
    blocking_serve_or_wait(client, VALUE_LIST, 1, keys, keys + 1, serve_last);
}

/* Moves an item now if there is one, or in a transaction. Otherwise waits. */
static void blocking_move(struct client *client, enum end from, enum end to, int64_t timeout,
                          blocking_serve_function *serve)
{
    struct entry *source;
    if (!find_list(client, 1, &source))
        return;
    if (source != NULL || client->transaction.is_running)
        move_item(client, from, to);
    else
        blocking_begin(client, VALUE_LIST, 1, 1, timeout, serve);
}

static void serve_move(struct client *client, struct bytes key)
{
    (void)key; /* argument 1 */
    command_lmove(client);
}

/* BLMOVE source target LEFT|RIGHT LEFT|RIGHT timeout */
void command_blmove(struct client *client)
{
    enum end from, to;
    int64_t timeout;
    if (read_end(client, 3, ends, &from) && read_end(client, 4, ends, &to) &&
        blocking_read_timeout(client, 5, &timeout))
        blocking_move(client, from, to, timeout, serve_move);
}

static void serve_rpoplpush(struct client *client, struct bytes key)
{
    (void)key; /* argument 1 */
    command_rpoplpush(client);
}

/* BRPOPLPUSH source target timeout */
void command_brpoplpush(struct client *client)
{
    int64_t timeout;
    if (blocking_read_timeout(client, 3, &timeout))
        blocking_move(client, LAST, FIRST, timeout, serve_rpoplpush);
}

/* ---- Reading ---- */

void command_llen(struct client *client)
{
    struct entry *list;
    if (find_list_to_read(client, &list))
        reply_number(client, (int64_t)count_of(list));
}

void command_lindex(struct client *client)
{
    struct entry *list;
    int64_t index;
    if (!find_list_to_read(client, &list) || !argument_number(client, 2, &index))
        return;
    size_t at = position_of(index, count_of(list));
    if (at != SIZE_MAX)
        reply_bulk(client, list_get(entry_collection(list), at));
    else
        reply_nothing(client);
}

size_t range_of(int64_t first, int64_t last, size_t count, size_t *begin)
{
    int64_t size = (int64_t)count;
    if (first < 0)
        first = first + size > 0 ? first + size : 0;
    if (last < 0)
        last += size;
    if (last >= size)
        last = size - 1;
    *begin = first <= last ? (size_t)first : 0;
    return first <= last ? (size_t)(last - first + 1) : 0;
}

void command_lrange(struct client *client)
{
    struct entry *list;
    int64_t first, last;
    size_t at;
    if (!argument_number(client, 2, &first) || !argument_number(client, 3, &last) ||
        !find_list_to_read(client, &list))
        return;
    size_t count = range_of(first, last, count_of(list), &at);
    struct collection *items = list != NULL ? entry_collection(list) : NULL;
    struct slice slice = slice_begin(client, items, count);
    if (slice.next == 0)
        reply_array(client, count);
    for (size_t i = slice.next; i < count && !client_refuses_reply(client); client->kv->work++) {
        reply_bulk(client, list_get(items, at + i));
        if (++i < count && slice_is_over(client, &slice)) {
            slice_pause(client, &slice, i);
            return;
        }
    }
    slice_finish(client, &slice);
}

/* The options of LPOS. */
struct position_options {
    int64_t rank, count,
        max; /* which match is the first, and from which end; how many; comparisons */
    bool has_count;
};

static bool read_position_options(struct client *client, struct position_options *options)
{
    *options = (struct position_options){.rank = 1, .count = 1};
    for (size_t i = 3; i < client->request.count; i += 2) {
        struct bytes word = client_argument(client, i);
        bool has_value = i + 1 < client->request.count;
        if (has_value && bytes_are(word, "RANK")) {
            if (!argument_number(client, i + 1, &options->rank))
                return false;
            if (options->rank == 0 || options->rank == INT64_MIN) {
                REPLY(client,
                      "-ERR RANK can't be zero: use 1 to start from the first match, 2 from "
                      "the second ... or use negative to start from the end of the list");
                return false;
            }
        } else if (has_value && bytes_are(word, "COUNT")) {
            options->has_count = true;
            if (!number_read(client_argument(client, i + 1), &options->count) ||
                options->count < 0) {
                REPLY(client, "-ERR COUNT can't be negative");
                return false;
            }
        } else if (has_value && bytes_are(word, "MAXLEN")) {
            if (!number_read(client_argument(client, i + 1), &options->max) || options->max < 0) {
                REPLY(client, "-ERR MAXLEN can't be negative");
                return false;
            }
        } else {
            reply_syntax_error(client);
            return false;
        }
    }
    return true;
}

/* LPOS key value [RANK rank] [COUNT count] [MAXLEN comparisons]; a count of 0 is all of them. */
void command_lpos(struct client *client)
{
    struct position_options options;
    struct entry *list;
    if (!read_position_options(client, &options) || !find_list_to_read(client, &list))
        return;
    size_t size = count_of(list), begin = buffer_used(&client->out), found = 0;
    int64_t skipped = (options.rank < 0 ? -options.rank : options.rank) - 1;
    size_t end = options.max != 0 && (uint64_t)options.max < size ? (size_t)options.max : size;
    if (options.has_count)
        begin = reply_start_array(client);
    for (size_t i = 0; i < end && !client_refuses_reply(client); i++, client->kv->work++) {
        size_t at = options.rank < 0 ? size - 1 - i : i;
        if (!bytes_equal(list_get(entry_collection(list), at), client_argument(client, 2)))
            continue;
        if (skipped-- > 0)
            continue;
        reply_number(client, (int64_t)at);
        found++;
        if (options.count != 0 && (int64_t)found == options.count)
            break;
    }
    if (options.has_count)
        finish_listing(client, begin, found);
    else if (found == 0)
        reply_nothing(client);
}

/* ---- Changes inside ---- */

/* Logs a record of a position and a value: LSET or LINSERT. */
static void log_position(struct client *client, const char *name, size_t at, struct bytes value)
{
    char number[NUMBER_SIZE];
    const struct bytes words[] = {bytes_of(name),
                                  client_argument(client, 1),
                                  {number, number_print(number, (int64_t)at)},
                                  value};
    kv_log_words(client->kv, words, 4);
}

void command_lset(struct client *client)
{
    struct entry *list;
    struct bytes value = client_argument(client, 3);
    int64_t index;
    bool is_new;
    if (!find_list(client, 1, &list))
        return;
    if (list == NULL) {
        REPLY(client, "-ERR no such key");
        return;
    }
    if (!argument_number(client, 2, &index))
        return;
    size_t at = position_of(index, count_of(list));
    if (at == SIZE_MAX) {
        REPLY(client, "-ERR index out of range");
    } else if (!list_set(keyspace_change(&client->kv->keys, client_argument(client, 1), VALUE_LIST,
                                         &is_new),
                         at, value)) {
        reply_no_memory(client);
    } else {
        log_position(client, "LSET", at, value);
        kv_notify(client->kv, NOTIFY_LIST, "lset", client_argument(client, 1));
        reply_ok(client);
    }
}

/* LINSERT key BEFORE|AFTER pivot value */
void command_linsert(struct client *client)
{
    struct entry *list;
    struct bytes pivot = client_argument(client, 3), value = client_argument(client, 4);
    bool is_behind = bytes_are(client_argument(client, 2), "AFTER"), is_new;
    if (!is_behind && !bytes_are(client_argument(client, 2), "BEFORE")) {
        reply_syntax_error(client);
        return;
    }
    if (!find_list(client, 1, &list))
        return;
    size_t count = count_of(list), at = 0;
    while (at < count && !bytes_equal(list_get(entry_collection(list), at), pivot))
        at++;
    client->kv->work += at;
    if (at == count) {
        reply_number(client, list != NULL ? -1 : 0);
        return;
    }
    at += is_behind;
    if (!list_insert(
            keyspace_change(&client->kv->keys, client_argument(client, 1), VALUE_LIST, &is_new), at,
            value)) {
        reply_no_memory(client);
        return;
    }
    log_position(client, "LINSERT", at, value);
    kv_notify(client->kv, NOTIFY_LIST, "linsert", client_argument(client, 1));
    reply_number(client, (int64_t)count + 1);
}

void command_lrem(struct client *client)
{
    struct keyspace *keys = &client->kv->keys;
    struct bytes key = client_argument(client, 1);
    struct entry *list;
    int64_t count;
    bool is_new;
    if (!argument_number(client, 2, &count) || !find_list(client, 1, &list))
        return;
    if (count == INT64_MIN) {
        REPLY(client, "-ERR value is out of range");
        return;
    }
    client->kv->work += count_of(list);
    size_t max = count != 0 ? (size_t)(count < 0 ? -count : count) : SIZE_MAX, removed = 0;
    if (list != NULL)
        removed = list_remove_equal(keyspace_change(keys, key, VALUE_LIST, &is_new),
                                    client_argument(client, 3), max, count < 0);
    if (removed > 0) {
        log_request(client, "LREM");
        kv_notify_removal(client->kv, NOTIFY_LIST, "lrem", key);
    }
    reply_number(client, (int64_t)removed);
}

void command_ltrim(struct client *client)
{
    struct entry *list;
    int64_t first, last;
    size_t at;
    if (!argument_number(client, 2, &first) || !argument_number(client, 3, &last) ||
        !find_list(client, 1, &list))
        return;
    size_t count = count_of(list), kept = range_of(first, last, count, &at);
    client->kv->work += count - kept;
    drop_values(client, client_argument(client, 1), count - kept - at, LAST);
    drop_values(client, client_argument(client, 1), at, FIRST);
    if (list != NULL)
        kv_notify_removal(client->kv, NOTIFY_LIST, "ltrim", client_argument(client, 1));
    reply_ok(client);
}
