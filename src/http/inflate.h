/* Bodies that are compressed with gzip or deflate: decoding, by zlib. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_INFLATE_H
#define BIDE_SRC_HTTP_INFLATE_H

#include "bide/http_message.h"

typedef struct bide_http_inflate_ http_inflate;

typedef enum http_coding {
    HTTP_CODING_OTHER,
    HTTP_CODING_GZIP,
    HTTP_CODING_DEFLATE,
    HTTP_CODING_BROTLI /* decode.h */
} http_coding;

/* Whether the library was built with zlib. */
extern const bool bide_http_has_inflate_;

/* The coding that a "Content-Encoding" names, alone. */
http_coding bide_http_coding_of_(bide_slice name);

/* Makes a decoder of GZIP or DEFLATE. Errors: -ENOMEM, -ENOTSUP. */
int bide_http_inflate_create_(http_inflate **inflate, http_coding coding);

/* NULL: nothing. */
void bide_http_inflate_destroy_(http_inflate *inflate);

/*
 * Decodes bytes from the front of *input, which it removes, into `out`, at most `size` of them, 1 or more.
 * Returns how many, or an error. 0: all of the input is used, and more is needed. Errors: -EBADMSG
 * (the data is spoilt, or does not end where it says), -ENOMEM. After an error it returns that error again.
 */
ptrdiff_t bide_http_inflate_run_(http_inflate *inflate, bide_slice *input, char *out, size_t size);

/* All that came was whole: nothing, or complete streams. */
bool bide_http_inflate_is_whole_(const http_inflate *inflate);

#endif
