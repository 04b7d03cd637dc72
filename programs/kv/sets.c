/* Commands on sets, and what draws elements of tables. Each runs to completion on the loop's thread. */
#include "commands.h"

#include "combine.h"
#include "drawing.h"

#include <errno.h>

static bool find_set(struct client *client, size_t i, struct entry **entry)
{
    return find_value(client, client_argument(client, i), VALUE_SET, entry);
}

static bool find_set_to_read(struct client *client, struct entry **entry)
{
    return find_to_read(client, client_argument(client, 1), VALUE_SET, entry);
}

static size_t count_of(const struct entry *set)
{
    return set != NULL ? collection_count(entry_collection(set)) : 0;
}

static bool has_member(const struct entry *set, struct bytes member)
{
    return set != NULL && set_has(entry_collection(set), member);
}

/* ---- Members ---- */

void command_sadd(struct client *client)
{
    struct keyspace *keys = &client->kv->keys;
    struct bytes key = client_argument(client, 1);
    struct entry *entry;
    int64_t added = 0;
    bool is_new;
    if (!find_set(client, 1, &entry))
        return;
    struct collection *set = keyspace_change(keys, key, VALUE_SET, &is_new);
    int status = set != NULL ? 0 : -ENOMEM;
    size_t i = 2;
    for (; status >= 0 && i < client->request.count; i++) {
        status = set_add(set, client_argument(client, i));
        added += status > 0;
    }
    if (status >= 0) {
        if (added > 0) {
            log_request(client, "SADD");
            kv_notify(client->kv, NOTIFY_SET, "sadd", key);
        }
        reply_number(client, added);
        return;
    }
    for (size_t done = 2; done + 1 < i; done++) { /* without memory, members that were added stay */
        const struct bytes words[] = {bytes_of("SADD"), key, client_argument(client, done)};
        kv_log_words(client->kv, words, 3);
    }
    if (added > 0)
        kv_notify(client->kv, NOTIFY_SET, "sadd", key);
    if (set != NULL)
        keyspace_remove_if_empty(keys, key);
    reply_no_memory(client);
}

void command_srem(struct client *client)
{
    remove_named(client, VALUE_SET, "SREM", NOTIFY_SET, "srem", set_remove);
}

/* Removes a member, which is there, logs it and notifies of the event. */
static void remove_member(struct client *client, struct bytes key, struct bytes member,
                          const char *event)
{
    const struct bytes words[] = {bytes_of("SREM"), key, member};
    bool is_new;
    kv_log_words(client->kv, words, 3); /* (`member` may be in the set's memory) */
    set_remove(keyspace_change(&client->kv->keys, key, VALUE_SET, &is_new), member);
    kv_notify_removal(client->kv, NOTIFY_SET, event, key);
}

/* SMOVE source target member: the target is changed first, because that needs memory; its events are the last, as in redis. */
void command_smove(struct client *client)
{
    struct kv *kv = client->kv;
    struct keyspace *keys = &kv->keys;
    struct bytes to = client_argument(client, 2), member = client_argument(client, 3);
    const struct bytes words[] = {bytes_of("SADD"), to, member};
    struct entry *source, *target;
    bool is_new;
    if (!find_set(client, 1, &source) || (source != NULL && !find_set(client, 2, &target)))
        return;
    if (!has_member(source, member)) {
        reply_number(client, 0);
        return;
    }
    if (source != target) {
        keys->added = NULL;
        struct collection *set = keyspace_change(keys, to, VALUE_SET, &is_new);
        notify_classes_changed(kv);
        int status = set != NULL ? set_add(set, member) : -ENOMEM;
        if (status < 0) {
            if (set != NULL)
                keyspace_remove_if_empty(keys, to);
            reply_no_memory(client);
            return;
        }
        if (status > 0)
            kv_log_words(kv, words, 3);
        remove_member(client, client_argument(client, 1), member, "srem");
        if (is_new)
            kv_notify(kv, NOTIFY_NEW, "new", to);
        if (status > 0)
            kv_notify(kv, NOTIFY_SET, "sadd", to);
    }
    reply_number(client, 1);
}

void command_sismember(struct client *client)
{
    struct entry *set;
    if (find_set_to_read(client, &set))
        reply_number(client, has_member(set, client_argument(client, 2)));
}

void command_smismember(struct client *client)
{
    struct entry *set;
    if (!find_set_to_read(client, &set))
        return;
    reply_array(client, client->request.count - 2);
    for (size_t i = 2; i < client->request.count; i++)
        reply_number(client, has_member(set, client_argument(client, i)));
}

void command_scard(struct client *client)
{
    struct entry *set;
    if (find_set_to_read(client, &set))
        reply_number(client, (int64_t)count_of(set));
}

/* ---- Combinations ---- */

/* Replies with the members. Returns false if that is to be continued, and the combination has been moved. */
static bool reply_combination(struct client *client, struct combination *combination)
{
    size_t begin = combination->begin;
    if (!combination->has_begun)
        reply_start_array(client);
    if (!combination_run(combination))
        return false;
    if (combination->status < 0) {
        reply_drop(client, begin, buffer_used(&client->out));
        reply_no_memory(client);
    } else if (combination_finish_reply(combination)) {
        reply_finish_set(client, begin, combination->found);
    }
    return true;
}

/* SUNION key [key ...], SUNIONSTORE target key [key ...] */
void command_combine_sets(struct client *client)
{
    const struct combination_kind *kind = combination_kind_of(client);
    struct combination combination = {.client = client,
                                      .operation = kind->operation,
                                      .replies = !kind->stores,
                                      .limit = SIZE_MAX};
    size_t first = kind->stores ? 2 : 1;
    if (combination_resume(&combination) ||
        (combination_find(&combination, first, client->request.count - first) &&
         ((!kind->stores && !combination_must_collect(&combination)) ||
          combination_create_result(&combination)))) {
        if (kind->stores ? !combination_run(&combination)
                         : !reply_combination(client, &combination))
            return;
        if (kind->stores)
            combination_store(&combination, kind->events[0]);
    }
    combination_end(&combination);
}

/* SMEMBERS key: in one step, if not in slices of its own */
void command_smembers(struct client *client)
{
    struct combination combination = {.client = client,
                                      .operation = INTERSECTION,
                                      .replies = true,
                                      .is_one_step = true,
                                      .limit = SIZE_MAX};
    if (list_in_slices(client, VALUE_SET, true, false, reply_finish_set))
        return;
    combination.begin = buffer_used(&client->out);
    if (combination_find(&combination, 1, 1))
        reply_combination(client, &combination);
    combination_end(&combination);
}

/* SINTERCARD count key [key ...] [LIMIT limit] */
void command_sintercard(struct client *client)
{
    struct combination combination = {
        .client = client, .operation = INTERSECTION, .limit = SIZE_MAX};
    size_t arguments = client->request.count;
    int64_t keys, limit = 0;
    if (!number_read(client_argument(client, 1), &keys) || keys < 1) {
        REPLY(client, "-ERR numkeys should be greater than 0");
        return;
    }
    if ((uint64_t)keys > arguments - 2) {
        REPLY(client, "-ERR Number of keys can't be greater than number of args");
        return;
    }
    for (size_t i = 2 + (size_t)keys; i < arguments; i += 2) {
        if (i + 1 == arguments || !bytes_are(client_argument(client, i), "LIMIT")) {
            reply_syntax_error(client);
            return;
        }
        if (!number_read(client_argument(client, i + 1), &limit) || limit < 0) {
            REPLY(client, "-ERR LIMIT can't be negative");
            return;
        }
    }
    if (limit > 0 && (uint64_t)limit < SIZE_MAX)
        combination.limit = (size_t)limit;
    if (combination_resume(&combination) || combination_find(&combination, 2, (size_t)keys)) {
        if (!combination_run(&combination))
            return;
        reply_number(client, (int64_t)combination.found);
    }
    combination_end(&combination);
}

/* ---- Drawing ---- */

bool argument_draws(struct client *client, const char *option, int64_t *count)
{
    const int64_t max = INT64_MAX;
    if (!argument_number(client, 2, count))
        return false;
    if (*count < -max)
        reply_error(client, "-ERR value is out of range, value must between %lld and %lld",
                    (long long)-max, (long long)max);
    else if (client->request.count > 3 && !bytes_are(client_argument(client, 3), option))
        reply_syntax_error(client);
    else if (client->request.count > 3 && (*count < -max / 2 || *count > max / 2))
        REPLY(client, "-ERR value is out of range");
    else
        return true;
    return false;
}

/* Replies with so many entries, unless such a reply is too large however small they are. */
static void reply_draws(struct client *client, struct table *table, uint64_t draws, bool differ,
                        bool has_values, reply_drawn_function *reply)
{
    enum { MIN_BULK = sizeof "$0\r\n\r\n" - 1 };
    struct kv *kv = client->kv;
    struct drawing drawing;
    size_t begin = buffer_used(&client->out);
    uint64_t elements = has_values && client->protocol == 2 ? 2 * draws : draws;
    if (draws > (kv->options.reply + CLIENT_MAX_REPLIES) / MIN_BULK) {
        reply_too_large(client);
        return;
    }
    if (!drawing_begin(&drawing, table, draws, differ, kv_draw, kv)) {
        drawing_end(&drawing);
        reply_no_memory(client);
        return;
    }
    reply_array(client, (size_t)elements);
    for (uint64_t i = 0; i < draws && !client_refuses_reply(client); i++)
        reply(client, drawing_next(&drawing), has_values);
    finish_counted(client, begin);
    kv->work += drawing.steps;
    drawing_end(&drawing);
}

void reply_drawn(struct client *client, struct table *table, bool has_count, int64_t count,
                 bool has_values, reply_drawn_function *reply)
{
    struct kv *kv = client->kv;
    uint64_t draws = count < 0 ? -(uint64_t)count : (uint64_t)count;
    if (count >= 0 && table != NULL && draws > table->count)
        draws = table->count;
    if (has_count && (table == NULL || draws == 0))
        reply_array(client, 0);
    else if (has_count)
        reply_draws(client, table, draws, count > 0, has_values, reply);
    else if (table == NULL)
        reply_nothing(client);
    else
        reply_bulk(client, entry_key(table_draw(table, kv_draw, kv, &kv->work)));
}

/* Removes members, which are there, and logs them. */
static void remove_members(struct client *client, struct bytes key, struct entry **members,
                           size_t count)
{
    enum { MAX_WORDS = 2 + 64 };
    struct bytes words[MAX_WORDS] = {bytes_of("SREM"), key};
    size_t used = 2;
    bool is_new;
    struct collection *set = keyspace_change(&client->kv->keys, key, VALUE_SET, &is_new);
    for (size_t i = 0; i < count; i++) {
        words[used++] = entry_key(members[i]);
        if (used == MAX_WORDS || i + 1 == count) {
            kv_log_words(client->kv, words, used);
            used = 2;
        }
    }
    for (size_t i = 0; i < count; i++)
        set_remove(set, entry_key(members[i]));
}

/* SPOP key: the reply's memory is reserved before the member is removed. */
static void pop_member(struct client *client, struct entry *set)
{
    struct kv *kv = client->kv;
    if (set == NULL) {
        reply_nothing(client);
        return;
    }
    struct entry *drawn = table_draw(&entry_collection(set)->fields, kv_draw, kv, &kv->work);
    if (!reply_reserve(client, drawn->key_size + BULK_EXTRA))
        return;
    reply_bulk(client, entry_key(drawn));
    remove_member(client, client_argument(client, 1), entry_key(drawn), "spop");
}

/* SPOP key count, of which the set has as many. */
static void pop_members(struct client *client, struct entry *set, size_t count)
{
    struct kv *kv = client->kv;
    struct bytes key = client_argument(client, 1);
    size_t begin = buffer_used(&client->out);
    struct drawing drawing;
    if (drawing_begin(&drawing, &entry_collection(set)->fields, count, true, kv_draw, kv)) {
        reply_set(client, count);
        for (size_t i = 0; i < count && !client_refuses_reply(client); i++)
            reply_bulk(client, entry_key(drawing_next(&drawing)));
        kv->work += drawing.steps;
        if (!finish_counted(client, begin)) {
            ; /* the members stay */
        } else if (count == count_of(set)) {
            kv_notify(kv, NOTIFY_SET, "spop", key);
            kv_delete(kv, keyspace_find(&kv->keys, key), key);
        } else {
            remove_members(client, key, drawing.entries, count);
            kv_notify(kv, NOTIFY_SET, "spop", key);
        }
    } else {
        reply_no_memory(client);
    }
    drawing_end(&drawing);
}

/* SPOP key [count] */
void command_spop(struct client *client)
{
    struct entry *set;
    bool has_count;
    int64_t wanted;
    if (!read_pop_count(client, &has_count, &wanted) || !find_set(client, 1, &set))
        return;
    size_t count = count_of(set);
    count = (uint64_t)wanted < count ? (size_t)wanted : count;
    if (!has_count)
        pop_member(client, set);
    else if (count == 0)
        reply_set(client, 0);
    else
        pop_members(client, set, count);
}

static void reply_drawn_member(struct client *client, const struct entry *member, bool has_value)
{
    (void)has_value; /* (members have none) */
    reply_bulk(client, entry_key(member));
}

/* SRANDMEMBER key [count] */
void command_srandmember(struct client *client)
{
    struct entry *set;
    bool has_count = client->request.count == 3;
    int64_t count = 1;
    if (client->request.count > 3)
        reply_syntax_error(client);
    else if ((!has_count || argument_draws(client, "", &count)) && find_set_to_read(client, &set))
        reply_drawn(client, set != NULL ? &entry_collection(set)->fields : NULL, has_count, count,
                    false, reply_drawn_member);
}
