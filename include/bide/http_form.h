/*
 * Forms and queries: pairs of names and values in "application/x-www-form-urlencoded", and whole request bodies in
 * memory. Forms with files are multipart: http_multipart.h. Floor: http.
 *
 *     bide_http_pairs pairs = {self->exchange.request.query};
 *     bide_http_pair pair;
 *     while (bide_http_next_pair(&pairs, self->memory, sizeof self->memory, &pair) > 0)
 *         ... pair.name, pair.value ...
 *
 *     bide_try(bide_http_read_body(&self->body, &self->exchange, self->text, sizeof self->text));
 *     ptrdiff_t size = bide_http_find_pair((bide_slice){self->text, self->body.count}, "email", email, sizeof email);
 *
 * Pairs are separated by "&", and a name ends at its first "=". "+" is a space, and "%41" a byte. Names and values are
 * bytes, which may contain NUL and need not be UTF-8. A name may occur several times.
 */
#ifndef BIDE_HTTP_FORM_H
#define BIDE_HTTP_FORM_H

#include "bide/http_server.h"

BIDE_EXTERN_C_BEGIN

/* A name and its value, decoded. */
typedef struct bide_http_pair {
    bide_slice name;
    bide_slice value; /* data is NULL: there is no "=" */
} bide_http_pair;

/* The pairs of a text, which stays. */
typedef struct bide_http_pairs {
    bide_slice rest; /* at first the text: a query, or a body */
} bide_http_pairs;

/*
 * Decodes the next pair into `size` bytes of memory, to which its texts point. Empty pairs, as in "a=1&&b=2", are
 * skipped. Returns 1, or 0 at the end. After an error the next call continues with the pair behind.
 * Threads: any. Errors: -EINVAL (a "%" without two digits), -EMSGSIZE (it does not fit). Progress: wait-free, linear in
 * the pair.
 */
int bide_http_next_pair(bide_http_pairs *pairs, void *memory, size_t size, bide_http_pair *pair);

/*
 * Decodes the value of the first pair of that name into `size` bytes at `out`. Returns its size.
 * Threads: any. Errors: -ENOENT (there is none), -EINVAL (the value has a "%" without two digits), -EMSGSIZE (it does
 * not fit). Progress: wait-free, linear in the text.
 */
ptrdiff_t bide_http_find_pair(bide_slice text, const char *name, char *out, size_t size);

/*
 * Appends a pair to the `used` bytes at `out`, whose room is `size` bytes, with a "&" before it unless it is the first.
 * Returns how many bytes there are then. A value whose data is NULL is left out, with its "=".
 * Threads: any. Errors: -EMSGSIZE (it does not fit; nothing was appended). Progress: wait-free, linear in the pair.
 */
ptrdiff_t bide_http_append_pair(char *out, size_t size, size_t used, bide_slice name,
                                bide_slice value);

/*
 * Whether the body of this request is a form, by its "Content-Type".
 * Threads: the loop's. Progress: wait-free.
 */
bool bide_http_is_form(const bide_http_exchange *exchange);

/* One of these. The caller's memory until it has ended. */
typedef struct bide_http_body_operation {
    bide_task task;
    bide_http_exchange *exchange;
    char *data;
    size_t size;
    size_t count; /* bytes of the body */
    char more; /* a byte too many */
} bide_http_body_operation;

/*
 * Reads the whole body of the request into `size` bytes at `data`. operation->count says how many bytes it has. If the
 * handler ends with the error, the response is 413 for -EFBIG, as for bide_http_read.
 * Threads: the loop's. Errors: -EFBIG (it does not fit), those of bide_http_read. Suspends: if not all of it is
 * buffered. Cancel-safe: no, a part of it is lost. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(count);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_read_body(bide_http_body_operation *operation, bide_http_exchange *exchange,
                                  void *data, size_t size);

/*
 * Why it is correct: src/http/form.c.
 *
 * Source: the URL Standard, "application/x-www-form-urlencoded" (a malformed "%" is an error here).
 */

BIDE_EXTERN_C_END

#endif
