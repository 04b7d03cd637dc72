/*
 * Multipart bodies of requests, as forms with files have: what goes before, between and behind the data of the parts, as
 * text. The caller sends it with the data, by any client, so files of any size pass through little memory. Floor: http.
 *
 *     self->parts[0] = (bide_http_form_part){.name = "title", .size = 5};
 *     self->parts[1] = (bide_http_form_part){
 *         .name = "file", .filename = "a.png", .type = "image/png", .size = (uint64_t)self->about.st_size};
 *     if ((status = bide_http_multipart_writer_init(&self->form)) < 0 ||
 *         (status = bide_http_multipart_length(&self->form, self->parts, 2, &self->length)) < 0)
 *         bide_return(status);
 *     ... a POST with "Content-Type: `form.type`"; bide_http_client_finish_head(&self->client, self->length) ...
 *     for (self->i = 0; self->i < 2; self->i++) {
 *         self->count = bide_http_multipart_begin_part(&self->form, &self->parts[self->i], self->text, sizeof self->text);
 *         if (self->count < 0)
 *             bide_return((int)self->count);
 *         bide_try(bide_http_client_write(&self->client, self->text, (size_t)self->count));
 *         ... self->parts[self->i].size bytes of data, by bide_http_client_write ...
 *     }
 *     self->count = bide_http_multipart_end(&self->form, self->text, sizeof self->text);
 *     bide_try(bide_http_client_write(&self->client, self->text, (size_t)self->count));
 *     bide_try(bide_http_client_recv(&self->client));
 *
 * If a file has become shorter meanwhile, its request cannot be completed: end it with an error, and close the connection,
 * or the request of HTTP/2. The server then sees that the body is not whole.
 *
 * The length is known beforehand if the size of each part is. Otherwise it is BIDE_HTTP_UNKNOWN, with which
 * bide_http_client_finish_head sends the body in chunks. bide_http2_request_write sends it by HTTP/2, and
 * bide_http_fetch_write by the agent of http_agent.h.
 *
 * Names are escaped as browsers do: a quote is "%22", "\r" is "%0D" and "\n" is "%0A". Other control characters are
 * refused. So is a "\" before another one or at the end of a name: some readers take it for an escape. Any other "\" stays;
 * readers that follow the grammar of quoted strings drop it. The bytes should be UTF-8, which is not checked.
 *
 * One thread at a time uses a writer. No function suspends. http_multipart.h reads such bodies in a server.
 */
#ifndef BIDE_HTTP_MULTIPART_WRITER_H
#define BIDE_HTTP_MULTIPART_WRITER_H

#include "bide/http_message.h"

BIDE_EXTERN_C_BEGIN

/* A part. Its texts stay during the call. */
typedef struct bide_http_form_part {
    const char *name;     /* of the form's field */
    const char *filename; /* NULL: it is no file */
    const char *type;     /* "Content-Type". NULL: none, or "application/octet-stream" of a file */
    uint64_t size;        /* bytes of data; BIDE_HTTP_UNKNOWN: that is found out when it ends */
} bide_http_form_part;

/* A body that is being written. The caller's memory. */
typedef struct bide_http_multipart_writer {
    char type[72]; /* the value of the request's "Content-Type" */

    /* of the library */
    char boundary[33];
    bool has_part;
} bide_http_multipart_writer;

/*
 * Begins a body. Its boundary has 128 random bits, so data contains it by chance only.
 * Threads: any. Errors: -EIO (the system has no random bytes). Progress: blocks for a moment at most.
 */
int bide_http_multipart_writer_init(bide_http_multipart_writer *writer);

/*
 * Puts the length of a body with these parts in *length. It is BIDE_HTTP_UNKNOWN if the size of a part is.
 * Threads: any. Errors: -EINVAL (a part has no name, or its texts are refused), -EFBIG (the length does not fit into
 * 64 bits). Progress: wait-free, linear in the texts.
 */
int bide_http_multipart_length(const bide_http_multipart_writer *writer,
                               const bide_http_form_part *parts, size_t count, uint64_t *length);

/*
 * Ends the part before, and writes the head of the next one into `size` bytes at `out`, without a zero. Returns its
 * size. The data of the part follows. After an error nothing has begun.
 * Threads: one at a time. Errors: -EINVAL (as bide_http_multipart_length), -EMSGSIZE (it does not fit).
 * Progress: wait-free, linear in the texts.
 */
ptrdiff_t bide_http_multipart_begin_part(bide_http_multipart_writer *writer,
                                         const bide_http_form_part *part, char *out, size_t size);

/*
 * Ends the body: writes what is behind the last part into `size` bytes at `out`, without a zero. Returns its size, at
 * most 40.
 * Threads: one at a time. Errors: -EMSGSIZE (it does not fit). Progress: wait-free.
 */
ptrdiff_t bide_http_multipart_end(const bide_http_multipart_writer *writer, char *out, size_t size);

/*
 * Why it is correct: src/http/multipart_writer.c.
 *
 * Source: RFC 7578; the HTML Standard, "multipart/form-data encoding algorithm".
 */

BIDE_EXTERN_C_END

#endif
