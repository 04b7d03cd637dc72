/* Byte strings: comparison, numbers, glob matching, growing buffers and the hash. No state, any thread. */
#include "bytes.h"

#include <endian.h>
#include <stdlib.h>

bool bytes_are(struct bytes bytes, const char *word)
{
    for (size_t i = 0; i < bytes.size; i++) {
        char c = bytes.data[i];
        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (c != word[i] || c == 0)
            return false;
    }
    return word[bytes.size] == 0;
}

size_t number_print(char *text, int64_t number)
{
    char digits[NUMBER_SIZE];
    size_t count = 0, size = 0;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (number < 0)
        text[size++] = '-';
    while (count > 0)
        text[size++] = digits[--count];
    return size;
}

bool number_read(struct bytes text, int64_t *number)
{
    const char *at = text.data, *end = at + text.size;
    bool negative = at < end && *at == '-';
    uint64_t value = 0;
    at += negative;
    if (at == end || end - at > 19 || (*at == '0' && (end - at > 1 || negative)))
        return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        value = value * 10 + (uint64_t)(*at - '0');
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *number = (int64_t)(negative ? -value : value);
    return true;
}

/* ---- Patterns ---- */

/*
 * Matches one character against the element at *at, which is not a *, and moves *at behind that
 * element.
 */
static bool match_character(char c, struct bytes pattern, size_t *at)
{
    size_t i = *at;
    bool is_not, found = false;
    switch (pattern.data[i]) {
    case '?':
        *at = i + 1;
        return true;
    case '[':
        is_not = ++i < pattern.size && pattern.data[i] == '^';
        i += is_not;
        while (i < pattern.size && pattern.data[i] != ']') {
            if (pattern.data[i] == '\\' && i + 1 < pattern.size)
                i++;
            unsigned char low = (unsigned char)pattern.data[i++], high = low;
            if (i + 1 < pattern.size && pattern.data[i] == '-' && pattern.data[i + 1] != ']') {
                high = (unsigned char)pattern.data[i + 1];
                i += 2;
            }
            if (low > high) {
                unsigned char other = low;
                low = high;
                high = other;
            }
            found |= (unsigned char)c >= low && (unsigned char)c <= high;
        }
        *at = i < pattern.size ? i + 1 : i;
        return found != is_not;
    case '\\':
        i += i + 1 < pattern.size;
        break;
    default:
        break;
    }
    *at = i + 1;
    return pattern.data[i] == c;
}

/*
 * Backtracking: after a mismatch behind a *, that * takes one more character. Going back to the
 * last * is enough. *steps are left.
 */
static bool match_in_steps(struct bytes bytes, struct bytes pattern, uint64_t *steps)
{
    size_t i = 0, at = 0, star = SIZE_MAX, from = 0;
    while (i < bytes.size) {
        size_t before = at;
        bool is_star = at < pattern.size && pattern.data[at] == '*';
        bool matches =
            !is_star && at < pattern.size && match_character(bytes.data[i], pattern, &at);
        size_t taken = at > before ? at - before : 1;
        if (*steps < taken) {
            *steps = 0;
            return false;
        }
        *steps -= taken;
        if (is_star) {
            star = ++at;
            from = i;
            if (at == pattern.size)
                return true;
        } else if (matches) {
            i++;
        } else if (star != SIZE_MAX) {
            at = star;
            i = ++from;
        } else {
            return false;
        }
    }
    for (; at < pattern.size && pattern.data[at] == '*'; at++)
        *steps -= *steps > 0;
    return at == pattern.size;
}

bool bytes_match(struct bytes bytes, struct bytes pattern, uint64_t *work)
{
    const uint64_t all = (uint64_t)MATCH_STEPS * (bytes.size + pattern.size);
    uint64_t left = all;
    bool matches = match_in_steps(bytes, pattern, &left);
    *work += (all - left) / MATCH_WORK_STEPS;
    return matches;
}

/* ---- Growing buffers ---- */

bool buffer_grow(struct buffer *buffer, size_t space)
{
    enum { MIN_CAPACITY = 4096 };
    size_t used = buffer_used(buffer), capacity = buffer->capacity;
    bide_assert(buffer->begin <= buffer->end && buffer->end <= capacity);
    if (used > 0 && buffer->begin > 0)
        memmove(buffer->data, buffer->data + buffer->begin, used);
    buffer->begin = 0;
    buffer->end = used;
    if (capacity - used >= space)
        return true;
    capacity = capacity < MIN_CAPACITY ? MIN_CAPACITY : capacity * 2;
    if (capacity < used + space)
        capacity = used + space;
    char *data = realloc(buffer->data, capacity);
    if (data == NULL)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void buffer_clear(struct buffer *buffer, size_t max_capacity)
{
    if (buffer->capacity > max_capacity)
        buffer_free(buffer);
    buffer->begin = buffer->end = 0;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}

/* ---- Lines and bulk strings of the protocol ---- */

void buffer_append_line(struct buffer *buffer, char type, int64_t number)
{
    char *text = buffer->data + buffer->end;
    size_t size = 2;
    bide_assert(buffer->capacity - buffer->end >= LINE_SIZE);
    text[0] = type;
    if (number >= 0 && number < 10)
        text[1] = (char)('0' + number);
    else
        size = 1 + number_print(text + 1, number);
    text[size] = '\r';
    text[size + 1] = '\n';
    buffer->end += size + 2;
}

void buffer_append_bulk(struct buffer *buffer, struct bytes bytes)
{
    buffer_append_line(buffer, '$', (int64_t)bytes.size);
    buffer_append(buffer, bytes.data, bytes.size);
    buffer_append(buffer, "\r\n", 2);
}

/* ---- A hash ---- */

static uint64_t rotate_left(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

static uint64_t load_word(const char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return le64toh(word);
}

uint64_t bytes_hash(struct bytes bytes, const uint64_t key[2])
{
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    const char *data = bytes.data;
    uint64_t last = (uint64_t)bytes.size << 56;
    size_t left = bytes.size;
    for (; left >= 8; left -= 8, data += 8) {
        uint64_t word = load_word(data);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)(unsigned char)data[i] << (8 * i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
