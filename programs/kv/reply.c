/*
 * Appends replies to a client's output. If memory for one is exhausted, the client is disconnected.
 */
#include "client.h"

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

/* Prints a line of a type byte and a number: NUMBER_SIZE + 3 bytes at most. */
static size_t print_line(char *text, char kind, int64_t number)
{
    size_t size;
    text[0] = kind;
    if (number >= 0 && number < 10) {
        text[1] = (char)('0' + number);
        size = 2;
    } else {
        size = 1 + number_print(text + 1, number);
    }
    text[size] = '\r';
    text[size + 1] = '\n';
    return size + 2;
}

void reply_bulk(struct client *client, struct bytes bytes)
{
    if (!reserve_reply(client, bytes.size + NUMBER_SIZE + 5))
        return;
    client->out.end += print_line(client->out.data + client->out.end, '$', (int64_t)bytes.size);
    buffer_append(&client->out, bytes.data, bytes.size);
    buffer_append(&client->out, "\r\n", 2);
}

void reply_number(struct client *client, int64_t number)
{
    if (reserve_reply(client, NUMBER_SIZE + 3))
        client->out.end += print_line(client->out.data + client->out.end, ':', number);
}

void reply_array(struct client *client, size_t count)
{
    if (reserve_reply(client, NUMBER_SIZE + 3))
        client->out.end += print_line(client->out.data + client->out.end, '*', (int64_t)count);
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
