/*
 * Multipart bodies of requests, as forms with files have, one part after the other. Floor: http.
 *
 *     bide_http_multipart_init(&self->parts, &self->exchange, self->memory, sizeof self->memory, NULL);
 *     for (;;) {
 *         bide_try(bide_http_next_part(&self->parts));
 *         if (!self->parts.has_part)
 *             break;
 *         ... self->parts.name, self->parts.filename, self->parts.type ...
 *         for (;;) {
 *             bide_try(bide_http_read_part(&self->parts, self->data, sizeof self->data));
 *             if (self->parts.count == 0)
 *                 break;
 *             ... self->parts.count bytes ...
 *         }
 *     }
 *
 * The body is never in memory as a whole: the memory holds the head of a part, and a window of the data behind it.
 * A part that is not read is skipped. The body as a whole has at most bide_http_options.max_body bytes.
 *
 * Malformed bodies are errors: a missing end, a line of a head that does not end with "\r\n", a folded line, a
 * boundary with something else than spaces behind it, and, of "multipart/form-data", a part without a name or with two. A
 * handler that ends with such an error of these functions is answered 400, 413 or 431, as with bide_http_read.
 *
 * Security: a file name is whatever the client has sent. It may be "../../etc/passwd", or contain NUL.
 */
#ifndef BIDE_HTTP_MULTIPART_H
#define BIDE_HTTP_MULTIPART_H

#include "bide/http_server.h"

BIDE_EXTERN_C_BEGIN

enum {
    BIDE_HTTP_BOUNDARY = 70,        /* bytes that a boundary may have */
    BIDE_HTTP_PART_FIELDS = 8,       /* fields that a part may have */
    BIDE_HTTP_MULTIPART_MEMORY = 512 /* bytes that the memory must have at least */
};

/* Bounds. The comment of a member says what 0 means. */
typedef struct bide_http_multipart_options {
    size_t max_parts;  /* of a body. 0: 1000 */
    size_t max_head;   /* bytes of a part's head. 0: the memory less 256, which is the most */
    uint64_t max_part; /* bytes of a part's data. 0: as the whole body */
} bide_http_multipart_options;

/* A body that is being read. The caller's memory until it has ended. */
typedef struct bide_http_multipart {
    bide_task task; /* of the library */

    /* the part at hand; texts stay until the next bide_http_next_part */
    bool has_part;
    bide_slice name;     /* of the form's field, of "Content-Disposition"; data is NULL: none */
    bide_slice filename; /* likewise; data is NULL: it is no file */
    bide_slice type;     /* "Content-Type"; data is NULL: none */
    bide_http_field fields[BIDE_HTTP_PART_FIELDS]; /* (of quoted names, escapes were removed in place) */
    size_t field_count;
    size_t count; /* bytes that the last bide_http_read_part has read; 0: the part has ended */

    /* of the library */
    bide_http_exchange *exchange;
    bide_http_multipart_options options;
    char *memory;
    size_t size;
    size_t base;  /* where the window begins: behind the head of the part */
    size_t begin; /* what has come and was not taken */
    size_t end;
    size_t parts;
    uint64_t taken; /* bytes of the part */
    int error;      /* that it has ended with; or 0 */
    uint8_t state;
    bool is_form;
    bool input_ended;
    char *data; /* of bide_http_read_part */
    size_t data_size;
    uint8_t delimiter_size;
    char delimiter[4 + BIDE_HTTP_BOUNDARY]; /* "\r\n--" and the boundary */
} bide_http_multipart;

/*
 * Starts to read the request's body, of which nothing was read. `memory` of `size` bytes stays until it has ended;
 * `options` is copied; NULL: all 0.
 * Threads: the loop's. Errors: -EINVAL (the request is not multipart, or has no valid boundary; or `size` is too small).
 * Progress: wait-free.
 */
int bide_http_multipart_init(bide_http_multipart *multipart, bide_http_exchange *exchange,
                             void *memory, size_t size, const bide_http_multipart_options *options);

/*
 * Skips what was not read of the current part, and reads the head of the next one. At the end of the body has_part is
 * false, and all of the body was read.
 * Threads: the loop's. Errors: -EBADMSG (the body is malformed), -EMSGSIZE (the part's head is too long or has too many
 * fields), -EFBIG (too many parts, or a part is too long), those of bide_http_read. After an error it goes no further:
 * the next call ends with the same. Suspends: if not enough is buffered. Cancel-safe: yes, the next call continues.
 * Progress: that of the stream.
 */
BIDE_KEY_SCOPED(has_part);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_next_part(bide_http_multipart *multipart);

/*
 * Reads data of the current part: at least one byte and at most `size`, 1 or more. multipart->count says how many, 0 at
 * the end of the part.
 * Threads: the loop's. Errors: as bide_http_next_part. Suspends: if nothing is buffered. Cancel-safe: yes, nothing was
 * read. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(count);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_read_part(bide_http_multipart *multipart, void *data, size_t size);

/*
 * Why it is correct: src/http/multipart.c.
 *
 * Source: RFC 2046, 5.1.1; RFC 7578.
 */

BIDE_EXTERN_C_END

#endif
