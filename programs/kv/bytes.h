/* Byte strings of known length, growing buffers, numbers as text, and glob patterns. */
#ifndef KV_BYTES_H
#define KV_BYTES_H

#include <bide/platform.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A view of memory that another object owns; not terminated by a zero byte. */
struct bytes {
    const char *data;
    size_t size;
};

static inline struct bytes bytes_of(const char *text)
{
    return (struct bytes){text, strlen(text)};
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Compares with a word, ignoring case. `word` is in capitals. */
bool bytes_are(struct bytes bytes, const char *word);

/* The longest text of a number, with its sign. */
enum { NUMBER_SIZE = 20 };

/* Prints a number and returns the length of its text: NUMBER_SIZE at most. */
size_t number_print(char *text, int64_t number);

/*
 * Parses a 64-bit number in the form that number_print prints. Returns false if the text is
 * anything else.
 */
bool number_read(struct bytes text, int64_t *number);

/*
 * Matches a glob pattern of *, ?, [a-z], [^a-z] and \c. If it takes more than MATCH_STEPS steps for
 * each byte of the text and the pattern, it does not match. A pattern of up to half as many bytes
 * never does. Adds the work to *work: 1 for MATCH_WORK_STEPS steps.
 */
enum { MATCH_STEPS = 128, MATCH_WORK_STEPS = 32 };
bool bytes_match(struct bytes bytes, struct bytes pattern, uint64_t *work);

/* ---- Growing buffers ---- */

/* A growing buffer. Its content is data[begin] to data[end - 1]. All zero is an empty buffer. */
struct buffer {
    char *data;
    size_t begin, end, capacity;
};

static inline size_t buffer_used(const struct buffer *buffer)
{
    return buffer->end - buffer->begin;
}

/*
 * The slow path of buffer_reserve: moves the content to the front, and allocates if that is not
 * enough.
 */
bool buffer_grow(struct buffer *buffer, size_t space);

/* Makes space for `space` bytes behind `end`. Returns false if memory is exhausted. */
static inline bool buffer_reserve(struct buffer *buffer, size_t space)
{
    return buffer->capacity - buffer->end >= space || buffer_grow(buffer, space);
}

/*
 * Appends bytes to reserved space. If size is 0, both `data` and the buffer's memory may be NULL.
 */
static inline void buffer_append(struct buffer *buffer, const void *data, size_t size)
{
    if (size == 0)
        return;
    bide_assert(buffer->begin <= buffer->end && size <= buffer->capacity - buffer->end);
    memcpy(buffer->data + buffer->end, data, size);
    buffer->end += size;
}

/* Empties the buffer, and frees its memory if that is more than `max_capacity` bytes. */
void buffer_clear(struct buffer *buffer, size_t max_capacity);

void buffer_free(struct buffer *buffer);

/* ---- Lines and bulk strings of the protocol ---- */

/* The longest line, and the most that a bulk string has besides its bytes. */
enum { LINE_SIZE = NUMBER_SIZE + 3, BULK_EXTRA = LINE_SIZE + 2 };

/* Appends a type byte, a number and a newline to reserved space: LINE_SIZE bytes at most. */
void buffer_append_line(struct buffer *buffer, char type, int64_t number);

/* Appends a bulk string to reserved space: its size and BULK_EXTRA bytes at most. */
void buffer_append_bulk(struct buffer *buffer, struct bytes bytes);

/* ---- A hash ---- */

/* SipHash-1-3: without the key, nobody can construct many strings that collide. */
uint64_t bytes_hash(struct bytes bytes, const uint64_t key[2]);

#endif
