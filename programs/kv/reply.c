/* Replies are put behind each other; without memory for one the client is cut off. */
#include "client.h"

#include <stdarg.h>
#include <stdio.h>

static bool reserve(struct client *client, size_t size)
{
    if (buffer_reserve(&client->out, size))
        return true;
    client->is_broken = true;
    return false;
}

void reply_raw(struct client *client, const char *data, size_t size)
{
    if (reserve(client, size))
        buffer_put(&client->out, data, size);
}

/* A line of a kind and a number: NUMBER_SIZE + 3 bytes at most. */
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
    if (!reserve(client, bytes.size + NUMBER_SIZE + 5))
        return;
    client->out.end += print_line(client->out.data + client->out.end, '$', (int64_t)bytes.size);
    buffer_put(&client->out, bytes.data, bytes.size);
    buffer_put(&client->out, "\r\n", 2);
}

void reply_number(struct client *client, int64_t number)
{
    if (reserve(client, NUMBER_SIZE + 3))
        client->out.end += print_line(client->out.data + client->out.end, ':', number);
}

void reply_array(struct client *client, size_t count)
{
    if (reserve(client, NUMBER_SIZE + 3))
        client->out.end += print_line(client->out.data + client->out.end, '*', (int64_t)count);
}

/* What comes of a client and goes into the message may have line ends, which it must not have. */
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
