/* Appends records of changes, in the form of requests, to a buffer. One thread for each buffer. */
#include "record.h"

static void append_bulk(struct buffer *buffer, struct bytes bytes)
{
    char head[NUMBER_SIZE + 3];
    size_t size = 0;
    head[size++] = '$';
    size += number_print(head + size, (int64_t)bytes.size);
    head[size++] = '\r';
    head[size++] = '\n';
    buffer_append(buffer, head, size);
    buffer_append(buffer, bytes.data, bytes.size);
    buffer_append(buffer, "\r\n", 2);
}

/* Appends a record of `count` words, 9 at most. */
static bool append_record(struct buffer *buffer, const struct bytes *words, int count)
{
    char head[] = "*0\r\n";
    size_t size = sizeof head;
    bide_assert(count > 0 && count <= 9);
    for (int i = 0; i < count; i++)
        size += words[i].size + NUMBER_SIZE + sizeof "$\r\n\r\n";
    if (!buffer_reserve(buffer, size))
        return false;
    head[1] = (char)('0' + count);
    buffer_append(buffer, head, sizeof head - 1);
    for (int i = 0; i < count; i++)
        append_bulk(buffer, words[i]);
    return true;
}

bool record_set(struct buffer *buffer, struct bytes key, struct bytes value, int64_t time)
{
    char number[NUMBER_SIZE];
    struct bytes words[] = {bytes_of("SET"), key, value, {NULL, 0}, {number, 0}};
    if (time == RECORD_STAYS)
        return append_record(buffer, words, 3);
    words[3] = bytes_of(time == RECORD_KEEPS_TIME ? "KEEPTTL" : "PXAT");
    if (time == RECORD_KEEPS_TIME)
        return append_record(buffer, words, 4);
    words[4].size = number_print(number, time);
    return append_record(buffer, words, 5);
}

bool record_append(struct buffer *buffer, struct bytes key, struct bytes value)
{
    return append_record(buffer, (struct bytes[]){bytes_of("APPEND"), key, value}, 3);
}

bool record_delete(struct buffer *buffer, struct bytes key)
{
    return append_record(buffer, (struct bytes[]){bytes_of("DEL"), key}, 2);
}

bool record_expire(struct buffer *buffer, struct bytes key, int64_t time)
{
    char number[NUMBER_SIZE];
    size_t size = number_print(number, time);
    return append_record(buffer, (struct bytes[]){bytes_of("PEXPIREAT"), key, {number, size}}, 3);
}

bool record_persist(struct buffer *buffer, struct bytes key)
{
    return append_record(buffer, (struct bytes[]){bytes_of("PERSIST"), key}, 2);
}

bool record_flush(struct buffer *buffer)
{
    return append_record(buffer, (struct bytes[]){bytes_of("FLUSHALL")}, 1);
}
