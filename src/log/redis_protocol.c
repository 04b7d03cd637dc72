/*
 * The protocol of a Redis server (RESP2): redis.h. A reply is read piece by piece, so no reply is held as
 * a whole. Any error but the server's own closes the connection.
 */
#include "redis.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REDIS_DEPTH = 8 /* of arrays in arrays */ };

/* ---- Writing ---- */

void bide_redis_raw_(struct redis_link *link, const void *bytes, size_t size)
{
    if (size > link->out_capacity - link->out_size) {
        size_t capacity = link->out_size + size < 2048 ? 4096 : (link->out_size + size) * 2;
        uint8_t *grown = link->out_of_memory ? NULL : realloc(link->out, capacity);
        if (grown == NULL) {
            link->out_of_memory = true;
            return;
        }
        link->out = grown;
        link->out_capacity = capacity;
    }
    if (size != 0)
        memcpy(link->out + link->out_size, bytes, size);
    link->out_size += size;
}

static void redis_head(struct redis_link *link, char type, size_t value)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%c%zu\r\n", type, value);
    bide_redis_raw_(link, text, (size_t)length);
}

void bide_redis_array_(struct redis_link *link, size_t count)
{
    redis_head(link, '*', count);
}

void bide_redis_bulk_(struct redis_link *link, const void *bytes, size_t size)
{
    redis_head(link, '$', size);
    bide_redis_raw_(link, bytes, size);
    bide_redis_raw_(link, "\r\n", 2);
}

void bide_redis_text_(struct redis_link *link, const char *text)
{
    bide_redis_bulk_(link, text, strlen(text));
}

void bide_redis_number_(struct redis_link *link, uint64_t number)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%" PRIu64, number);
    bide_redis_bulk_(link, text, (size_t)length);
}

void bide_redis_id_(struct redis_link *link, bide_log_position id)
{
    char text[BIDE_LOG_POSITION_TEXT];
    (void)bide_log_position_print(id, text, sizeof text);
    bide_redis_text_(link, text);
}

void bide_redis_command_(struct redis_link *link, unsigned count, ...)
{
    va_list texts;
    va_start(texts, count);
    bide_redis_array_(link, count);
    for (unsigned i = 0; i < count; i++)
        bide_redis_text_(link, va_arg(texts, const char *));
    va_end(texts);
}

/* ---- Reading ---- */

/* A line, without its end. A text that is too long is cut. */
static int redis_line(struct redis_link *link, char *text, size_t size)
{
    size_t length = 0;
    for (char before = '\0';;) {
        int status = bide_redis_fill_(link);
        if (status < 0)
            return status;
        char c = (char)link->in[link->begin++];
        if (before == '\r' && c == '\n')
            break;
        if (before == '\r' || c == '\n')
            return bide_redis_lost_(link, -EPROTO);
        if (c != '\r' && length + 1 < size)
            text[length++] = c;
        before = c;
    }
    text[length] = '\0';
    return 0;
}

static bool redis_integer(const char *text, int64_t *value)
{
    char *end = NULL;
    errno = 0;
    long long read = strtoll(text, &end, 10);
    *value = read;
    return errno == 0 && end != text && *end == '\0';
}

int bide_redis_read_(struct redis_link *link, struct redis_token *token)
{
    char line[sizeof link->text];
    int status = redis_line(link, line, sizeof line);
    if (status < 0)
        return status;
    token->type = line[0];
    token->value = 0;
    if (line[0] == '+' || line[0] == '-') {
        memcpy(link->text, line + 1, sizeof link->text - 1);
        return 0;
    }
    if ((line[0] != ':' && line[0] != '$' && line[0] != '*') ||
        !redis_integer(line + 1, &token->value) ||
        (line[0] != ':' && (token->value < -1 || token->value > BIDE_LOG_SIZE_MAX)))
        return bide_redis_lost_(link, -EPROTO);
    return 0;
}

int bide_redis_read_bytes_(struct redis_link *link, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    for (size_t left = size; left != 0;) {
        int status = bide_redis_fill_(link);
        if (status < 0)
            return status;
        size_t count = link->end - link->begin < left ? link->end - link->begin : left;
        if (to != NULL) {
            memcpy(to, link->in + link->begin, count);
            to += count;
        }
        link->begin += count;
        left -= count;
    }
    char end[2];
    int status = redis_line(link, end, sizeof end);
    return status == 0 && end[0] != '\0' ? bide_redis_lost_(link, -EPROTO) : status;
}

int bide_redis_error_(const struct redis_link *link)
{
    static const struct {
        const char *code;
        int status;
    } codes[] = {
        {"OOM", -ENOSPC},
        {"WRONGTYPE", -EEXIST},
        {"NOAUTH", -EACCES},
        {"WRONGPASS", -EACCES},
        {"NOPERM", -EACCES},
        {"NOGROUP", -ENOENT},
        {"BUSYGROUP", -EEXIST},
        {"LOADING", -EAGAIN},
        {"READONLY", -EROFS},
        {"MASTERDOWN", -EAGAIN},
        {"MISCONF", -EIO},
        {"NOREPLICAS", -ENOTCONN},
        {"BUSY", -EAGAIN},
        {"TRYAGAIN", -EAGAIN},
        {"CLUSTERDOWN", -EAGAIN},
        {"MOVED", -EREMCHG},
        {"ERR invalid password", -EACCES},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        size_t length = strlen(codes[i].code);
        if (strncmp(link->text, codes[i].code, length) == 0 &&
            (link->text[length] == ' ' || link->text[length] == '\0'))
            return codes[i].status;
    }
    return -EREMOTEIO;
}

/* Passes over the rest of a reply, whose head was read. */
static int redis_skip_rest(struct redis_link *link, struct redis_token token, unsigned depth)
{
    if (token.type == '$' && token.value >= 0)
        return bide_redis_read_bytes_(link, NULL, (size_t)token.value);
    if (token.type != '*')
        return 0;
    if (depth == REDIS_DEPTH)
        return bide_redis_lost_(link, -EPROTO);
    for (int64_t i = 0; i < token.value; i++) {
        struct redis_token each;
        int status = bide_redis_read_(link, &each);
        if (status == 0)
            status = redis_skip_rest(link, each, depth + 1);
        if (status < 0)
            return status;
    }
    return 0;
}

int bide_redis_skip_(struct redis_link *link)
{
    struct redis_token token;
    int status = bide_redis_read_(link, &token);
    return status < 0 ? status : redis_skip_rest(link, token, 0);
}

int bide_redis_read_ok_(struct redis_link *link)
{
    struct redis_token token;
    int status = bide_redis_read_(link, &token);
    if (status == 0 && token.type == '-')
        return bide_redis_error_(link);
    return status < 0 ? status : redis_skip_rest(link, token, 0);
}

/* A head of that type; the server's error is its errno, and another type is no answer. */
static int redis_read_head(struct redis_link *link, char type, int64_t *value)
{
    struct redis_token token;
    int status = bide_redis_read_(link, &token);
    if (status < 0)
        return status;
    if (token.type == '-')
        return bide_redis_error_(link);
    if (token.type != type)
        return bide_redis_lost_(link, -EPROTO);
    *value = token.value;
    return 0;
}

int bide_redis_read_array_(struct redis_link *link, int64_t *count)
{
    int status = redis_read_head(link, '*', count);
    if (status == 0 && *count < 0)
        *count = 0;
    return status;
}

int bide_redis_read_number_(struct redis_link *link, int64_t *number)
{
    return redis_read_head(link, ':', number);
}

int bide_redis_read_text_(struct redis_link *link, char *text, size_t size, bool *is_nil)
{
    struct redis_token token;
    int status = bide_redis_read_(link, &token);
    text[0] = '\0';
    *is_nil = false;
    if (status < 0)
        return status;
    if (token.type == '-')
        return bide_redis_error_(link);
    if (token.type == '+') {
        snprintf(text, size, "%s", link->text);
        return 0;
    }
    *is_nil = token.value < 0;
    if (*is_nil)
        return 0;
    if (token.type != '$')
        return bide_redis_lost_(link, -EPROTO);
    if ((size_t)token.value >= size)
        return bide_redis_read_bytes_(link, NULL, (size_t)token.value);
    text[token.value] = '\0';
    return bide_redis_read_bytes_(link, text, (size_t)token.value);
}

int bide_redis_read_id_(struct redis_link *link, bide_log_position *id, bool *is_nil)
{
    char text[BIDE_LOG_POSITION_TEXT];
    int status = bide_redis_read_text_(link, text, sizeof text, is_nil);
    if (status < 0 || *is_nil)
        return status;
    return bide_log_position_parse(id, text) < 0 ? bide_redis_lost_(link, -EPROTO) : 0;
}
