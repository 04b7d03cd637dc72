/*
 * Appends replies to a client's output. If memory for one is exhausted, the client is disconnected.
 */
#include "client.h"

#include "sorted_set.h"

#include <stdarg.h>
#include <stdio.h>

static bool reserve_reply(struct client *client, size_t size)
{
    if (buffer_reserve(&client->out, size))
        return true;
    client->is_broken = true;
    return false;
}

void reply_raw(struct client *client, const char *data, size_t size)
{
    if (reserve_reply(client, size))
        buffer_append(&client->out, data, size);
}

static void reply_line(struct client *client, char type, int64_t number)
{
    if (reserve_reply(client, LINE_SIZE))
        buffer_append_line(&client->out, type, number);
}

void reply_simple(struct client *client, const char *text)
{
    reply_raw(client, "+", 1);
    reply_raw(client, text, strlen(text));
    REPLY(client, "");
}

void reply_bulk(struct client *client, struct bytes bytes)
{
    if (reserve_reply(client, bytes.size + BULK_EXTRA))
        buffer_append_bulk(&client->out, bytes);
}

void reply_number(struct client *client, int64_t number)
{
    reply_line(client, ':', number);
}

void reply_double(struct client *client, double number)
{
    char text[SCORE_SIZE];
    size_t size = score_print(text, number);
    if (client->protocol != 3) {
        reply_bulk(client, (struct bytes){text, size});
        return;
    }
    reply_raw(client, ",", 1);
    reply_raw(client, text, size);
    REPLY(client, "");
}

void reply_array(struct client *client, size_t count)
{
    reply_line(client, '*', (int64_t)count);
}

void reply_null_array(struct client *client)
{
    if (client->protocol == 3)
        REPLY(client, "_");
    else
        REPLY(client, "*-1");
}

void reply_map(struct client *client, size_t pairs)
{
    if (client->protocol == 3)
        reply_line(client, '%', (int64_t)pairs);
    else
        reply_line(client, '*', 2 * (int64_t)pairs);
}

void reply_set(struct client *client, size_t count)
{
    reply_line(client, client->protocol == 3 ? '~' : '*', (int64_t)count);
}

void reply_push(struct client *client, size_t count)
{
    reply_line(client, client->protocol == 3 ? '>' : '*', (int64_t)count);
}

void reply_text(struct client *client, struct bytes text)
{
    static const char format[] = "txt:";
    if (client->protocol != 3) {
        reply_bulk(client, text);
        return;
    }
    reply_line(client, '=', (int64_t)(text.size + sizeof format - 1));
    reply_raw(client, format, sizeof format - 1);
    reply_raw(client, text.data, text.size);
    REPLY(client, "");
}

void reply_hide(struct client *client, size_t begin)
{
    size_t from = client->pushed > begin ? client->pushed : begin;
    if (client->is_silent && from < buffer_used(&client->out))
        client->out.end = client->out.begin + from;
}

void reply_deferred(struct client *client)
{
    struct buffer *deferred = &client->deferred;
    if (buffer_used(deferred) == 0)
        return;
    reply_raw(client, deferred->data + deferred->begin, buffer_used(deferred));
    buffer_free(deferred);
}

void reply_no_memory(struct client *client)
{
    REPLY(client, "-OOM out of memory");
}

bool reply_reserve(struct client *client, size_t size)
{
    if (buffer_reserve(&client->out, size))
        return true;
    reply_no_memory(client); /* (there may still be room for this) */
    return false;
}

bool reply_reserve_change(struct client *client)
{
    if (buffer_reserve(&client->changes, sizeof(struct reply_range)))
        return true;
    reply_no_memory(client);
    return false;
}

void reply_note_change(struct client *client, size_t begin)
{
    const struct reply_range range = {begin, buffer_used(&client->out)};
    if (range.begin != range.end) /* (or the request waits, or runs again: its reply comes later) */
        buffer_append(&client->changes, &range, sizeof range);
}

enum { REFUSED_SIZE = 160 };

/* The line for clients, as redis has it. Returns its size. */
static size_t print_refused(char text[REFUSED_SIZE], int error)
{
    int size = snprintf(text, REFUSED_SIZE, "-MISCONF Errors writing to the AOF file: %.80s\r\n",
                        strerror(-error));
    bide_assert(size > 0 && size < REFUSED_SIZE);
    return (size_t)size;
}

void reply_refused(struct client *client, int error)
{
    char text[REFUSED_SIZE];
    reply_raw(client, text, print_refused(text, error));
}

bool replies_refuse_changes(struct buffer *out, const struct buffer *changes, int error)
{
    char text[REFUSED_SIZE];
    size_t size = print_refused(text, error), at = 0;
    size_t count = buffer_used(changes) / sizeof(struct reply_range);
    struct buffer refused = {0};
    if (!buffer_reserve(&refused, buffer_used(out) + count * size))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct reply_range range;
        memcpy(&range, changes->data + changes->begin + i * sizeof range, sizeof range);
        buffer_append(&refused, out->data + out->begin + at, range.begin - at);
        buffer_append(&refused, text, size);
        at = range.end;
    }
    buffer_append(&refused, out->data + out->begin + at, buffer_used(out) - at);
    buffer_free(out);
    *out = refused;
    return true;
}

/* Text from the client may contain newlines, which would break the protocol: they become spaces. */
void reply_error(struct client *client, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text - 2, format, arguments);
    va_end(arguments);
    size_t size = length < (int)sizeof text - 2 ? (size_t)length : sizeof text - 3;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\r' || text[i] == '\n')
            text[i] = ' ';
    }
    memcpy(text + size, "\r\n", 2);
    reply_raw(client, text, size + 2);
}
