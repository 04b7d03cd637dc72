/* Helpers of several commands: keys, arguments, and replies of several values. One thread. */
#include "commands.h"

bool find_value(struct client *client, struct bytes key, enum value_type type, struct entry **entry)
{
    struct entry **link = keyspace_find(&client->kv->keys, key);
    *entry = link != NULL ? *link : NULL;
    if (*entry == NULL || (*entry)->type == type)
        return true;
    REPLY(client, "-WRONGTYPE Operation against a key holding the wrong kind of value");
    return false;
}

bool find_to_read(struct client *client, struct bytes key, enum value_type type,
                  struct entry **entry)
{
    bool done = find_value(client, key, type, entry);
    if (*entry == NULL)
        kv_note_miss(client->kv, key);
    return done;
}

bool find_first_value(struct client *client, enum value_type type, size_t first_key, size_t keys,
                      size_t *found)
{
    struct entry *entry;
    *found = 0;
    for (size_t i = first_key; i < first_key + keys && *found == 0; i++) {
        if (!find_value(client, client_argument(client, i), type, &entry))
            return false;
        if (entry != NULL)
            *found = i;
    }
    return true;
}

void remove_named(struct client *client, enum value_type type, const char *name, enum notify class,
                  const char *event,
                  bool (*remove)(struct collection *collection, struct bytes element))
{
    struct keyspace *keys = &client->kv->keys;
    struct bytes key = client_argument(client, 1);
    struct entry *entry;
    int64_t removed = 0;
    bool is_new;
    if (!find_value(client, key, type, &entry))
        return;
    if (entry != NULL) {
        struct collection *collection = keyspace_change(keys, key, type, &is_new);
        for (size_t i = 2; i < client->request.count; i++)
            removed += remove(collection, client_argument(client, i));
    }
    if (removed > 0) {
        log_request(client, name);
        kv_notify_removal(client->kv, class, event, key);
    }
    reply_number(client, removed);
}

bool read_pop_count(struct client *client, bool *has_count, int64_t *count)
{
    *has_count = client->request.count == 3;
    *count = 1;
    if (client->request.count <= 3)
        return !*has_count || argument_count(client, 2, count);
    reply_syntax_error(client);
    return false;
}

bool read_end(struct client *client, size_t i, const char *const ends[2], enum end *end)
{
    *end = bytes_are(client_argument(client, i), ends[FIRST]) ? FIRST : LAST;
    if (*end == FIRST || bytes_are(client_argument(client, i), ends[LAST]))
        return true;
    reply_syntax_error(client);
    return false;
}

bool read_multiple_pop(struct client *client, size_t i, const char *const ends[2],
                       struct multiple_pop *pop)
{
    size_t arguments = client->request.count;
    int64_t keys;
    if (!number_read(client_argument(client, i), &keys) || keys < 1) {
        REPLY(client, "-ERR numkeys should be greater than 0");
        return false;
    }
    if ((uint64_t)keys >= arguments - i - 1) {
        reply_syntax_error(client);
        return false;
    }
    *pop = (struct multiple_pop){.first_key = i + 1, .keys = (size_t)keys, .count = 1};
    i += (size_t)keys + 1;
    if (!read_end(client, i, ends, &pop->end))
        return false;
    if (i + 1 == arguments)
        return true;
    if (i + 3 != arguments || !bytes_are(client_argument(client, i + 1), "COUNT")) {
        reply_syntax_error(client);
        return false;
    }
    if (!number_read(client_argument(client, i + 2), &pop->count) || pop->count < 1) {
        REPLY(client, "-ERR count should be greater than 0");
        return false;
    }
    return true;
}

bool request_append(struct buffer *buffer, const struct client *client, struct bytes name)
{
    size_t size = LINE_SIZE + BULK_EXTRA + name.size;
    for (size_t i = 1; i < client->request.count; i++)
        size += client_argument(client, i).size + BULK_EXTRA;
    if (!buffer_reserve(buffer, size))
        return false;
    buffer_append_line(buffer, '*', (int64_t)client->request.count);
    buffer_append_bulk(buffer, name);
    for (size_t i = 1; i < client->request.count; i++)
        buffer_append_bulk(buffer, client_argument(client, i));
    return true;
}

void log_request(struct client *client, const char *name)
{
    struct kv *kv = client->kv;
    kv_note_change(kv, client_argument(client, 1));
    if (kv->journal.is_on)
        journal_check_append(&kv->journal,
                             request_append(&kv->journal.filling, client, bytes_of(name)));
}

bool argument_number(struct client *client, size_t i, int64_t *number)
{
    *number = 0;
    if (number_read(client_argument(client, i), number))
        return true;
    REPLY(client, "-ERR value is not an integer or out of range");
    return false;
}

bool argument_count(struct client *client, size_t i, int64_t *count)
{
    if (!argument_number(client, i, count))
        return false;
    if (*count >= 0)
        return true;
    REPLY(client, "-ERR value is out of range, must be positive");
    return false;
}

void reply_drop(struct client *client, size_t from, size_t to)
{
    char *at = client->out.data + client->out.begin;
    size_t size = buffer_used(&client->out) - to;
    if (client->is_broken)
        return;
    memmove(at + from, at + to, size);
    client->out.end = client->out.begin + from + size;
}

bool buffer_append_head_space(struct buffer *buffer)
{
    static const char space[LINE_SIZE];
    if (!buffer_reserve(buffer, sizeof space))
        return false;
    buffer_append(buffer, space, sizeof space);
    return true;
}

size_t reply_start_array(struct client *client)
{
    size_t begin = buffer_used(&client->out);
    if (!buffer_append_head_space(&client->out))
        client->is_broken = true;
    return begin;
}

/*
 * Moves the head, which was appended at the end, from there to the end of the space for it. Nothing else moves if
 * the array is the first reply.
 */
static void move_head(struct client *client, size_t begin, size_t before)
{
    struct buffer *out = &client->out;
    if (client->is_broken)
        return;
    char *at = out->data + out->begin;
    size_t size = buffer_used(out) - before, unused = LINE_SIZE - size;
    memcpy(at + begin + unused, at + before, size);
    out->end -= size;
    if (begin == 0)
        out->begin += unused;
    else
        reply_drop(client, begin, begin + unused);
}

void reply_finish_array(struct client *client, size_t begin, size_t count)
{
    size_t before = buffer_used(&client->out);
    reply_array(client, count);
    move_head(client, begin, before);
}

void reply_finish_map(struct client *client, size_t begin, size_t pairs)
{
    size_t before = buffer_used(&client->out);
    reply_map(client, pairs);
    move_head(client, begin, before);
}

void reply_finish_set(struct client *client, size_t begin, size_t count)
{
    size_t before = buffer_used(&client->out);
    reply_set(client, count);
    move_head(client, begin, before);
}

void reply_too_large(struct client *client)
{
    reply_error(client, "-ERR the reply would be larger than %zu bytes", client->kv->options.reply);
}

bool finish_counted(struct client *client, size_t begin)
{
    if (!client_refuses_reply(client))
        return true;
    reply_drop(client, begin, buffer_used(&client->out));
    reply_too_large(client);
    return false;
}

bool finish_listing(struct client *client, size_t begin, size_t count)
{
    if (client_refuses_reply(client)) {
        reply_drop(client, begin, buffer_used(&client->out));
        reply_too_large(client);
        return false;
    }
    reply_finish_array(client, begin, count);
    return true;
}
