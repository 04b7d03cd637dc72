/* Messages as lines of text: lines.h has the format. */
#include "lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_NAME_MAX = 255, LINE_ESCAPE = 4 /* the most bytes of an escape */ };

/* ---- Writing ---- */

static int line_reserve(struct log_text *text, size_t size)
{
    if (size <= text->capacity - text->size)
        return 0;
    if (size > SIZE_MAX / 2 - text->size)
        return -ENOMEM;
    size_t capacity = 2 * (text->size + size);
    uint8_t *bytes = realloc(text->bytes, capacity);
    if (bytes == NULL)
        return -ENOMEM;
    text->bytes = bytes;
    text->capacity = capacity;
    return 0;
}

/* The letter after the backslash; 0: the byte has none. */
static char line_escape_letter(unsigned char byte)
{
    return byte == '\n'   ? 'n'
           : byte == '\r' ? 'r'
           : byte == '\t' ? 't'
           : byte == '\\' ? '\\'
                          : '\0';
}

/* Appends bytes, escaped, and those of `extra` escaped too. */
static int line_escape(struct log_text *text, const void *bytes, size_t size, const char *extra)
{
    static const char digits[] = "0123456789abcdef";
    if (size == 0)
        return 0;
    if (size > SIZE_MAX / LINE_ESCAPE || line_reserve(text, size * LINE_ESCAPE) < 0)
        return -ENOMEM;
    uint8_t *out = text->bytes + text->size;
    for (const unsigned char *at = bytes; size != 0; at++, size--) {
        char letter = line_escape_letter(*at);
        if (letter != '\0') {
            *out++ = '\\';
            *out++ = (uint8_t)letter;
        } else if (*at < 0x20 || *at == 0x7f || strchr(extra, *at) != NULL) {
            *out++ = '\\';
            *out++ = 'x';
            *out++ = (uint8_t)digits[*at >> 4];
            *out++ = (uint8_t)digits[*at & 15];
        } else {
            *out++ = *at;
        }
    }
    text->size = (size_t)(out - text->bytes);
    return 0;
}

static int line_put(struct log_text *text, const char *bytes)
{
    size_t size = strlen(bytes);
    if (line_reserve(text, size) < 0)
        return -ENOMEM;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    return 0;
}

static int line_put_header(struct log_text *text, const bide_log_header *header)
{
    if (line_escape(text, header->name, header->name_size, "=:") < 0 || line_put(text, "=") < 0 ||
        line_escape(text, header->value, header->value_size, "") < 0)
        return -ENOMEM;
    return line_put(text, "\t");
}

static int line_write(struct log_text *text, const bide_log_message *message)
{
    bide_log_header header;
    size_t at = 0;
    if (message->key != NULL && message->key_size != 0 &&
        (line_put(text, "key:") < 0 || line_escape(text, message->key, message->key_size, "") < 0 ||
         line_put(text, "\t") < 0))
        return -ENOMEM;
    for (size_t i = 0; i < message->header_count; i++) {
        if (line_put_header(text, &message->headers[i]) < 0)
            return -ENOMEM;
    }
    while (bide_log_next_header(message, &at, &header)) {
        if (line_put_header(text, &header) < 0)
            return -ENOMEM;
    }
    if (line_escape(text, message->data, message->size, "") < 0)
        return -ENOMEM;
    return line_put(text, "\n");
}

int bide_log_line_append_(struct log_text *text, const bide_log_message *message)
{
    size_t before = text->size;
    int status = line_write(text, message);
    if (status < 0)
        text->size = before;
    return status;
}

/* ---- Reading ---- */

static const char line_no_escape[] = "an escape is none of \\\\ \\n \\r \\t \\xHH";

size_t bide_log_line_max_(uint32_t size)
{
    const size_t key = 5; /* "key:" and its tab: a size has no part for them */
    return size <= (SIZE_MAX - key) / LINE_ESCAPE ? size * (size_t)LINE_ESCAPE + key : SIZE_MAX;
}

static int line_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Replaces the escapes of a field in place. Returns false if one is none. */
static bool line_unescape(char *field, size_t *size)
{
    size_t out = 0;
    for (size_t i = 0; i < *size; i++) {
        char c = field[i];
        if (c == '\\') {
            char which = ++i < *size ? field[i] : '\0';
            int high = which == 'x' && *size - i > 2 ? line_digit(field[i + 1]) : -1;
            int low = high >= 0 ? line_digit(field[i + 2]) : -1;
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

size_t bide_log_line_fields_(const char *line, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += line[i] == '\t';
    return count;
}

static bool line_parse_header(char *field, size_t size, bide_log_header *header, const char **why)
{
    char *equals = memchr(field, '=', size);
    *why = "a field before the data is not NAME=VALUE, or a tab of the data is not escaped";
    if (equals == NULL)
        return false;
    size_t name_size = (size_t)(equals - field), value_size = size - name_size - 1;
    if (memchr(field, ':', name_size) != NULL) /* (such as a second key) */
        return false;
    *why = line_no_escape;
    if (!line_unescape(field, &name_size) || !line_unescape(equals + 1, &value_size))
        return false;
    *why = "a header's name has 1 to 255 bytes";
    *header = (bide_log_header){field, name_size, equals + 1, value_size};
    return name_size >= 1 && name_size <= LINE_NAME_MAX;
}

const char *bide_log_line_parse_(char *line, size_t size, bide_log_header *headers,
                                 bide_log_message *message)
{
    char *field = line, *end;
    const char *why;
    *message = (bide_log_message){.headers = headers};
    while ((end = memchr(field, '\t', size)) != NULL) {
        size_t length = (size_t)(end - field);
        if (field == line && length >= 4 && memcmp(field, "key:", 4) == 0) {
            message->key = field + 4;
            message->key_size = length - 4;
        } else if (!line_parse_header(field, length, &headers[message->header_count++], &why)) {
            return why;
        }
        size -= length + 1;
        field = end + 1;
    }
    if (!line_unescape(field, &size) ||
        (message->key != NULL &&
         !line_unescape((char *)(uintptr_t)message->key, &message->key_size)))
        return line_no_escape;
    message->data = field;
    message->size = size;
    return NULL;
}
