/* Messages as lines of text: lines.h has the format. */
#include "lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER_NAME = 255, ESCAPED = 4 /* the most bytes of an escape */ };

/* ---- Writing ---- */

static int text_reserve(struct text *text, size_t size)
{
    if (size <= text->capacity - text->size)
        return 0;
    if (size > SIZE_MAX / 2 - text->size)
        return -ENOMEM;
    size_t capacity = 2 * (text->size + size);
    char *bytes = realloc(text->bytes, capacity);
    if (bytes == NULL)
        return -ENOMEM;
    text->bytes = bytes;
    text->capacity = capacity;
    return 0;
}

/* The letter after the backslash; 0: the byte has none. */
static char escape_letter(unsigned char byte)
{
    return byte == '\n'   ? 'n'
           : byte == '\r' ? 'r'
           : byte == '\t' ? 't'
           : byte == '\\' ? '\\'
                          : '\0';
}

/* Appends bytes, escaped, and those of `extra` escaped too. */
static int text_escape(struct text *text, const void *bytes, size_t size, const char *extra)
{
    static const char digits[] = "0123456789abcdef";
    if (size == 0)
        return 0;
    if (size > SIZE_MAX / ESCAPED || text_reserve(text, size * ESCAPED) < 0)
        return -ENOMEM;
    char *out = text->bytes + text->size;
    for (const unsigned char *at = bytes; size != 0; at++, size--) {
        char letter = escape_letter(*at);
        if (letter != '\0') {
            *out++ = '\\';
            *out++ = letter;
        } else if (*at < 0x20 || *at == 0x7f || strchr(extra, *at) != NULL) {
            *out++ = '\\';
            *out++ = 'x';
            *out++ = digits[*at >> 4];
            *out++ = digits[*at & 15];
        } else {
            *out++ = (char)*at;
        }
    }
    text->size = (size_t)(out - text->bytes);
    return 0;
}

int text_append(struct text *text, const void *bytes, size_t size)
{
    if (text_reserve(text, size) < 0)
        return -ENOMEM;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    return 0;
}

static int text_put(struct text *text, const char *bytes)
{
    return text_append(text, bytes, strlen(bytes));
}

static int text_put_header(struct text *text, const bide_log_header *header)
{
    if (text_escape(text, header->name, header->name_size, "=:") < 0 || text_put(text, "=") < 0 ||
        text_escape(text, header->value, header->value_size, "") < 0)
        return -ENOMEM;
    return text_put(text, "\t");
}

static int line_write(struct text *text, const bide_log_message *message)
{
    bide_log_header header;
    size_t at = 0;
    if (message->key != NULL && message->key_size != 0 &&
        (text_put(text, "key:") < 0 || text_escape(text, message->key, message->key_size, "") < 0 ||
         text_put(text, "\t") < 0))
        return -ENOMEM;
    for (size_t i = 0; i < message->header_count; i++) {
        if (text_put_header(text, &message->headers[i]) < 0)
            return -ENOMEM;
    }
    while (bide_log_next_header(message, &at, &header)) {
        if (text_put_header(text, &header) < 0)
            return -ENOMEM;
    }
    if (text_escape(text, message->data, message->size, "") < 0)
        return -ENOMEM;
    return text_put(text, "\n");
}

int line_append(struct text *text, const bide_log_message *message)
{
    size_t before = text->size;
    int status = line_write(text, message);
    if (status < 0)
        text->size = before;
    return status;
}

/* ---- Reading ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Replaces the escapes of a field in place. Returns false if one is none. */
static bool unescape(char *field, size_t *size)
{
    size_t out = 0;
    for (size_t i = 0; i < *size; i++) {
        char c = field[i];
        if (c == '\\') {
            char which = ++i < *size ? field[i] : '\0';
            int high = which == 'x' && *size - i > 2 ? hex_digit(field[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(field[i + 2]) : -1;
            if (which == 'x' && low < 0)
                return false;
            if (which == 'x')
                i += 2;
            else if (which != '\\' && which != 'n' && which != 'r' && which != 't')
                return false;
            c = which == 'x'   ? (char)(high * 16 + low)
                : which == 'n' ? '\n'
                : which == 'r' ? '\r'
                : which == 't' ? '\t'
                               : '\\';
        }
        field[out++] = c;
    }
    *size = out;
    return true;
}

size_t line_fields(const char *line, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += line[i] == '\t';
    return count;
}

static bool parse_header(char *field, size_t size, bide_log_header *header, const char **why)
{
    char *equals = memchr(field, '=', size);
    *why = "a field before the data is not NAME=VALUE, or a tab of the data is not escaped";
    if (equals == NULL)
        return false;
    size_t name_size = (size_t)(equals - field), value_size = size - name_size - 1;
    if (memchr(field, ':', name_size) != NULL) /* (such as a second key) */
        return false;
    *why = "an escape is none of \\\\ \\n \\r \\t \\xHH";
    if (!unescape(field, &name_size) || !unescape(equals + 1, &value_size))
        return false;
    *why = "a header's name has 1 to 255 bytes";
    *header = (bide_log_header){field, name_size, equals + 1, value_size};
    return name_size >= 1 && name_size <= MAX_HEADER_NAME;
}

int line_parse(char *line, size_t size, bide_log_header *headers, bide_log_message *message,
               const char **why)
{
    char *field = line, *end;
    *message = (bide_log_message){.headers = headers};
    while ((end = memchr(field, '\t', size)) != NULL) {
        size_t length = (size_t)(end - field);
        if (field == line && length >= 4 && memcmp(field, "key:", 4) == 0) {
            message->key = field + 4;
            message->key_size = length - 4;
        } else if (!parse_header(field, length, &headers[message->header_count++], why)) {
            return -EINVAL;
        }
        size -= length + 1;
        field = end + 1;
    }
    *why = "an escape is none of \\\\ \\n \\r \\t \\xHH";
    if (!unescape(field, &size) ||
        (message->key != NULL && !unescape((char *)(uintptr_t)message->key, &message->key_size)))
        return -EINVAL;
    message->data = field;
    message->size = size;
    return 0;
}
