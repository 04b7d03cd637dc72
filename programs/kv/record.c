/* Appends records of changes, in the form of requests, to a buffer. One thread for each buffer. */
#include "record.h"

#include "sorted_set.h"

bool record_words(struct buffer *buffer, const struct bytes *words, size_t count)
{
    size_t size = LINE_SIZE;
    for (size_t i = 0; i < count; i++)
        size += words[i].size + BULK_EXTRA;
    if (!buffer_reserve(buffer, size))
        return false;
    buffer_append_line(buffer, '*', (int64_t)count);
    for (size_t i = 0; i < count; i++)
        buffer_append_bulk(buffer, words[i]);
    return true;
}

bool record_set(struct buffer *buffer, struct bytes key, struct bytes value, int64_t time)
{
    char number[NUMBER_SIZE];
    struct bytes words[] = {bytes_of("SET"), key, value, {NULL, 0}, {number, 0}};
    if (time == RECORD_STAYS)
        return record_words(buffer, words, 3);
    words[3] = bytes_of(time == RECORD_KEEPS_TIME ? "KEEPTTL" : "PXAT");
    if (time == RECORD_KEEPS_TIME)
        return record_words(buffer, words, 4);
    words[4].size = number_print(number, time);
    return record_words(buffer, words, 5);
}

bool record_append(struct buffer *buffer, struct bytes key, struct bytes value)
{
    return record_words(buffer, (struct bytes[]){bytes_of("APPEND"), key, value}, 3);
}

bool record_set_range(struct buffer *buffer, struct bytes key, size_t offset, struct bytes part)
{
    char number[NUMBER_SIZE];
    size_t size = number_print(number, (int64_t)offset);
    return record_words(buffer, (struct bytes[]){bytes_of("SETRANGE"), key, {number, size}, part},
                        4);
}

bool record_copy(struct buffer *buffer, struct bytes from, struct bytes to, bool moves)
{
    return record_words(buffer, (struct bytes[]){bytes_of(moves ? "RENAME" : "COPY"), from, to}, 3);
}

bool record_delete(struct buffer *buffer, struct bytes key)
{
    return record_words(buffer, (struct bytes[]){bytes_of("DEL"), key}, 2);
}

bool record_expire(struct buffer *buffer, struct bytes key, int64_t time)
{
    char number[NUMBER_SIZE];
    size_t size = number_print(number, time);
    return record_words(buffer, (struct bytes[]){bytes_of("PEXPIREAT"), key, {number, size}}, 3);
}

bool record_persist(struct buffer *buffer, struct bytes key)
{
    return record_words(buffer, (struct bytes[]){bytes_of("PERSIST"), key}, 2);
}

bool record_flush(struct buffer *buffer)
{
    return record_words(buffer, (struct bytes[]){bytes_of("FLUSHALL")}, 1);
}

/* ---- Collections ---- */

enum { MAX_WORDS = 2 + 2 * 32 }; /* of a record that is made of elements */

/* A record that grows, and is appended when it is full. */
struct elements {
    struct buffer *buffer;
    struct bytes words[MAX_WORDS];
    size_t count;
    char scores[MAX_WORDS / 2][SCORE_SIZE]; /* as texts */
    enum value_type type;
    bool failed;
};

static void append_elements(struct elements *elements)
{
    if (elements->count > 2 && !elements->failed)
        elements->failed = !record_words(elements->buffer, elements->words, elements->count);
    elements->count = 2;
}

static void add_field(void *argument, struct entry *entry)
{
    struct elements *elements = argument;
    if (elements->type == VALUE_SORTED_SET) {
        char *text = elements->scores[elements->count / 2 - 1];
        size_t size = score_print(text, sorted_node_of(entry)->score);
        elements->words[elements->count++] = (struct bytes){text, size};
    }
    elements->words[elements->count++] = entry_key(entry);
    if (elements->type == VALUE_HASH)
        elements->words[elements->count++] = entry_value(entry);
    if (elements->count == MAX_WORDS)
        append_elements(elements);
}

bool record_collection(struct buffer *buffer, struct bytes key, struct collection *collection)
{
    static const char *const names[] = {[VALUE_HASH] = "HSET",
                                        [VALUE_LIST] = "RPUSH",
                                        [VALUE_SET] = "SADD",
                                        [VALUE_SORTED_SET] = "ZADD"};
    struct elements elements;
    elements.buffer = buffer;
    elements.count = 2;
    elements.type = collection->type;
    elements.failed = false;
    bool has_table = collection_has_table(collection);
    elements.words[0] = bytes_of(names[collection->type]);
    elements.words[1] = key;
    if (has_table) {
        size_t cursor = 0;
        do
            cursor = table_scan(&collection->fields, cursor, add_field, &elements);
        while (cursor != 0);
    }
    for (size_t i = 0; !has_table && i < collection->list.count; i++) {
        elements.words[elements.count++] = list_get(collection, i);
        if (elements.count == MAX_WORDS)
            append_elements(&elements);
    }
    append_elements(&elements);
    return !elements.failed;
}
