/* Bytes of a known number, memory that grows with them, numbers as text, patterns. */
#ifndef KV_BYTES_H
#define KV_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Somebody else's; not ended by a zero. */
struct bytes {
    const char *data;
    size_t size;
};

static inline struct bytes bytes_of(const char *text)
{
    return (struct bytes){text, strlen(text)};
}

/* Are they this word, in capitals or not? `word` is in capitals. */
bool bytes_are(struct bytes bytes, const char *word);

/* What a number looks like at most, with its sign. */
enum { NUMBER_SIZE = 20 };

/* Prints a number, and returns how many bytes that took: NUMBER_SIZE at most. */
size_t number_print(char *text, int64_t number);

/* False: it is not a number of 64 bits as number_print prints it. */
bool number_read(struct bytes text, int64_t *number);

/* Do they match a pattern of *, ?, [a-z], [^a-z] and \c? */
bool bytes_match(struct bytes bytes, struct bytes pattern);

/* ---- Memory that grows ---- */

/* What is in it begins at `begin` and ends at `end`. All zero is an empty one. */
struct buffer {
    char *data;
    size_t begin, end, capacity;
};

static inline size_t buffer_used(const struct buffer *buffer)
{
    return buffer->end - buffer->begin;
}

/* Out of line: moves what is there to the front, and gets more memory if that is not enough. */
bool buffer_grow(struct buffer *buffer, size_t room);

/* Room for so many bytes behind `end`. False: there is no memory. */
static inline bool buffer_reserve(struct buffer *buffer, size_t room)
{
    return buffer->capacity - buffer->end >= room || buffer_grow(buffer, room);
}

/* Of no bytes: neither the data nor the buffer's memory need be there. */
static inline void buffer_put(struct buffer *buffer, const void *data, size_t size)
{
    if (size == 0)
        return;
    memcpy(buffer->data + buffer->end, data, size);
    buffer->end += size;
}

/* It is empty; memory of more than `max` bytes is given back. */
void buffer_clear(struct buffer *buffer, size_t max);

void buffer_free(struct buffer *buffer);

/* ---- A hash ---- */

/* SipHash-1-3: who does not know the key cannot make many that collide. */
uint64_t bytes_hash(struct bytes bytes, const uint64_t key[2]);

#endif
