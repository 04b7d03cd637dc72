/* The parser of requests: RESP arrays, and inline commands with quoted words. No state but the request's. */
#include "request.h"

#include <stdlib.h>

void request_clear(struct request *request)
{
    enum { RETAINED_ARGUMENTS = 1024 };
    struct argument *more = request->more;
    if (more != NULL && request->capacity > RETAINED_ARGUMENTS) {
        free(more);
        request->more = NULL;
        request->capacity = 0;
    }
    request->size = request->wanted = request->count = 0;
    request->has_bulk = false;
    request->error = NULL;
}

static enum request_state reject_request(struct request *request, const char *error)
{
    request->error = error;
    return REQUEST_WRONG;
}

/* The byte is shown unless it would break the line of the reply. */
static enum request_state reject_byte(struct request *request, char byte)
{
    request->got = byte > ' ' && byte <= '~' ? byte : ' ';
    return reject_request(request, "expected '$'");
}

static bool add_argument(struct request *request, size_t offset, size_t size)
{
    if (request->more == NULL && request->count < REQUEST_ARGUMENTS) {
        request->inline_arguments[request->count++] = (struct argument){offset, size};
        return true;
    }
    if (request->count >= request->capacity) {
        size_t capacity = request->count * 2;
        struct argument *more = realloc(request->more, capacity * sizeof *more);
        if (more == NULL)
            return false;
        if (request->more == NULL)
            memcpy(more, request->inline_arguments, sizeof request->inline_arguments);
        request->more = more;
        request->capacity = capacity;
    }
    request->more[request->count++] = (struct argument){offset, size};
    return true;
}

/* ---- A line of words ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* Parses the escape behind a backslash in double quotes, and returns its length. */
static size_t read_escape(const char *at, size_t left, char *c)
{
    if (left >= 3 && at[0] == 'x' && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
        *c = (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]));
        return 3;
    }
    *c = at[0] == 'n'   ? '\n'
         : at[0] == 'r' ? '\r'
         : at[0] == 't' ? '\t'
         : at[0] == 'b' ? '\b'
         : at[0] == 'a' ? '\a'
                        : at[0];
    return 1;
}

/*
 * Parses a word from *at on, and writes it there without its quotes. Returns false if a quote is
 * not closed.
 */
static bool read_word(struct request *request, char *line, size_t *at, size_t end)
{
    size_t from = *at, to = *at, i = *at;
    char quote = 0;
    for (; i < end && (quote != 0 || (line[i] != ' ' && line[i] != '\t')); i++) {
        char c = line[i];
        if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (quote != 0 && c == quote) {
            quote = 0;
            if (i + 1 < end && line[i + 1] != ' ' && line[i + 1] != '\t')
                return false;
        } else {
            if (quote == '"' && c == '\\' && i + 1 < end)
                i += read_escape(line + i + 1, end - i - 1, &c);
            else if (quote == '\'' && c == '\\' && i + 1 < end && line[i + 1] == '\'')
                c = line[++i];
            line[to++] = c;
        }
    }
    *at = i;
    return quote == 0 && add_argument(request, from, to - from);
}

static enum request_state read_words(struct request *request, char *data, size_t size)
{
    char *newline = memchr(data + request->size, '\n', size - request->size);
    size_t at = request->size, end;
    if (newline == NULL)
        return size - request->size > REQUEST_LINE
                   ? reject_request(request, "too big inline request")
                   : REQUEST_INCOMPLETE;
    end = (size_t)(newline - data);
    size_t behind = end + 1;
    if (behind - at > REQUEST_LINE)
        return reject_request(request, "too big inline request");
    if (end > at && data[end - 1] == '\r')
        end--;
    while (at < end) {
        if (data[at] == ' ' || data[at] == '\t')
            at++;
        else if (!read_word(request, data, &at, end))
            return reject_request(request, "unbalanced quotes in request");
    }
    request->size = behind;
    return REQUEST_COMPLETE;
}

/* ---- An array ---- */

/*
 * Parses the number of a line, behind the line's first byte. Returns 1 if it is complete, and
 * request->size is behind the line; 0 if the line is incomplete; -1 if it is malformed.
 */
static int read_number(struct request *request, const char *data, size_t size, int64_t *number)
{
    enum { DIGITS = 10 };
    size_t at = request->size + 1, first;
    int64_t value = 0;
    bool negative = at < size && data[at] == '-';
    at += negative;
    for (first = at; at < size && data[at] >= '0' && data[at] <= '9'; at++) {
        if (at - first == DIGITS)
            return -1;
        value = value * 10 + (data[at] - '0');
    }
    if (at == size)
        return 0;
    if (at == first || data[at] != '\r')
        return -1;
    if (at + 1 == size)
        return 0;
    if (data[at + 1] != '\n')
        return -1;
    request->size = at + 2;
    *number = negative ? -value : value;
    return 1;
}

static enum request_state read_bulks(struct request *request, const char *data, size_t size,
                                     const struct request_limits *limits)
{
    while (request->count < request->wanted) {
        if (!request->has_bulk) {
            int64_t number;
            if (request->size == size)
                return REQUEST_INCOMPLETE;
            if (data[request->size] != '$')
                return reject_byte(request, data[request->size]);
            int found = read_number(request, data, size, &number);
            if (found == 0)
                return REQUEST_INCOMPLETE;
            if (found < 0 || number < 0 || (uint64_t)number > limits->bulk)
                return reject_request(request, "invalid bulk length");
            if (request->size + (uint64_t)number > limits->total)
                return reject_request(request, "too big request");
            request->bulk = (size_t)number;
            request->has_bulk = true;
        }
        if (size - request->size < request->bulk + 2)
            return REQUEST_INCOMPLETE;
        const char *behind = data + request->size + request->bulk;
        if (behind[0] != '\r' || behind[1] != '\n')
            return reject_request(request, "expected CRLF after a bulk string");
        if (!add_argument(request, request->size, request->bulk))
            return reject_request(request, "out of memory");
        request->size += request->bulk + 2;
        request->has_bulk = false;
    }
    return REQUEST_COMPLETE;
}

enum request_state request_read(struct request *request, char *data, size_t size,
                                const struct request_limits *limits)
{
    for (;;) {
        if (request->wanted == 0) {
            int64_t number;
            if (request->size == size)
                return REQUEST_INCOMPLETE;
            if (data[request->size] != '*') {
                enum request_state state = read_words(request, data, size);
                if (state != REQUEST_COMPLETE || request->count > 0)
                    return state;
                continue; /* an empty line */
            }
            int found = read_number(request, data, size, &number);
            if (found == 0)
                return REQUEST_INCOMPLETE;
            if (found < 0 || number > (int64_t)limits->arguments)
                return reject_request(request, "invalid multibulk length");
            if (number <= 0)
                continue; /* an empty array */
            request->wanted = (size_t)number;
        }
        return read_bulks(request, data, size, limits);
    }
}
