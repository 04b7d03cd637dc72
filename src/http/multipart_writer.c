/*
 * Heads of multipart bodies.
 *
 * 1. The length of a body is counted by the functions that write it, without memory, so it is that of the body.
 * 2. A text that could end its quotes or its line is escaped or refused before anything of it is written.
 */
#define _GNU_SOURCE
#include "bide/http_multipart_writer.h"

#include "../system/portable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Where a text goes. It is counted also if it does not fit. */
typedef struct multipart_out {
    char *data;
    size_t size; /* of the memory */
    size_t used; /* may be more than `size` */
} multipart_out;

static void multipart_put(multipart_out *out, const char *text, size_t size)
{
    if (out->used <= out->size && size <= out->size - out->used && size != 0)
        memcpy(out->data + out->used, text, size);
    out->used += size;
}

static void multipart_put_text(multipart_out *out, const char *text)
{
    multipart_put(out, text, strlen(text));
}

static void multipart_put_quoted(multipart_out *out, const char *text)
{
    multipart_put_text(out, "\"");
    for (; *text != '\0'; text++)
        if (*text == '"')
            multipart_put_text(out, "%22");
        else if (*text == '\r')
            multipart_put_text(out, "%0D");
        else if (*text == '\n')
            multipart_put_text(out, "%0A");
        else
            multipart_put(out, text, 1);
    multipart_put_text(out, "\"");
}

static bool multipart_is_control(char byte)
{
    return ((unsigned char)byte < ' ' && byte != '\t') || byte == 127;
}

static bool multipart_is_name(const char *text)
{
    for (; *text != '\0'; text++) {
        if (multipart_is_control(*text) && *text != '\r' && *text != '\n')
            return false;
        if (*text == '\\' && (text[1] == '\\' || text[1] == '\0'))
            return false;
    }
    return true;
}

static bool multipart_is_valid(const bide_http_form_part *part)
{
    if (part->name == NULL || !multipart_is_name(part->name) ||
        (part->filename != NULL && !multipart_is_name(part->filename)))
        return false;
    for (const char *at = part->type; at != NULL && *at != '\0'; at++)
        if (multipart_is_control(*at))
            return false;
    return true;
}

static void multipart_put_head(multipart_out *out, const bide_http_multipart_writer *writer,
                               const bide_http_form_part *part, bool is_first)
{
    const char *type = part->type;
    if (type == NULL && part->filename != NULL)
        type = "application/octet-stream";
    multipart_put_text(out, is_first ? "--" : "\r\n--");
    multipart_put_text(out, writer->boundary);
    multipart_put_text(out, "\r\nContent-Disposition: form-data; name=");
    multipart_put_quoted(out, part->name);
    if (part->filename != NULL) {
        multipart_put_text(out, "; filename=");
        multipart_put_quoted(out, part->filename);
    }
    if (type != NULL) {
        multipart_put_text(out, "\r\nContent-Type: ");
        multipart_put_text(out, type);
    }
    multipart_put_text(out, "\r\n\r\n");
}

static void multipart_put_end(multipart_out *out, const bide_http_multipart_writer *writer,
                              bool is_first)
{
    multipart_put_text(out, is_first ? "--" : "\r\n--");
    multipart_put_text(out, writer->boundary);
    multipart_put_text(out, "--\r\n");
}

int bide_http_multipart_writer_init(bide_http_multipart_writer *writer)
{
    uint64_t random[2];
    if (portable_random(random, sizeof random) != 0)
        return -EIO;
    writer->has_part = false;
    snprintf(writer->boundary, sizeof writer->boundary, "%016llx%016llx",
             (unsigned long long)random[0], (unsigned long long)random[1]);
    snprintf(writer->type, sizeof writer->type, "multipart/form-data; boundary=%s",
             writer->boundary);
    return 0;
}

int bide_http_multipart_length(const bide_http_multipart_writer *writer,
                               const bide_http_form_part *parts, size_t count, uint64_t *length)
{
    multipart_out out = {NULL, 0, 0}; /* 1 */
    uint64_t total = 0;
    bool is_known = true;
    for (size_t i = 0; i < count; i++) {
        if (!multipart_is_valid(&parts[i]))
            return -EINVAL;
        multipart_put_head(&out, writer, &parts[i], i == 0);
        if (parts[i].size == BIDE_HTTP_UNKNOWN)
            is_known = false;
        else if (__builtin_add_overflow(total, parts[i].size, &total))
            return -EFBIG;
    }
    multipart_put_end(&out, writer, count == 0);
    if (__builtin_add_overflow(total, out.used, &total) || total == BIDE_HTTP_UNKNOWN)
        return -EFBIG;
    *length = is_known ? total : BIDE_HTTP_UNKNOWN;
    return 0;
}

ptrdiff_t bide_http_multipart_begin_part(bide_http_multipart_writer *writer,
                                         const bide_http_form_part *part, char *out, size_t size)
{
    multipart_out to = {out, size, 0};
    if (!multipart_is_valid(part)) /* 2 */
        return -EINVAL;
    multipart_put_head(&to, writer, part, !writer->has_part);
    if (to.used > size)
        return -EMSGSIZE;
    writer->has_part = true;
    return (ptrdiff_t)to.used;
}

ptrdiff_t bide_http_multipart_end(const bide_http_multipart_writer *writer, char *out, size_t size)
{
    multipart_out to = {out, size, 0};
    multipart_put_end(&to, writer, !writer->has_part);
    return to.used <= size ? (ptrdiff_t)to.used : -EMSGSIZE;
}
