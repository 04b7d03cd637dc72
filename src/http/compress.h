/* Compressed responses. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_COMPRESS_H
#define BIDE_SRC_HTTP_COMPRESS_H

#include "bide/http_compression.h"

/* How the body of a response is encoded. */
enum {
    HTTP_ENCODING_NONE,    /* as the handler writes it */
    HTTP_ENCODING_HEAD,    /* compressed, but the body is dropped: a response to HEAD */
    HTTP_ENCODING_GZIP,    /* compressed */
    HTTP_ENCODING_COMPLETE /* all of its announced length was compressed and written, or dropped */
};

/* An exchange starts. */
void bide_http_compress_start_(bide_http_connection *connection);

/*
 * The head is about to end, with a body of `length` bytes. Returns the length that it announces: BIDE_HTTP_UNKNOWN
 * if the body is compressed.
 */
uint64_t bide_http_compress_head_(bide_http_exchange *exchange, uint64_t length);

/* Writes bytes of a body whose encoding is not NONE. */
bide_awaiter *bide_http_compress_write_(bide_http_connection *connection, const void *data,
                                        size_t size);

/* Flushes such a body. */
bide_awaiter *bide_http_compress_flush_(bide_http_connection *connection);

/* Writes a part of a file to such a body. */
bide_awaiter *bide_http_compress_file_(bide_http_connection *connection, bide_descriptor *file,
                                       uint64_t offset, uint64_t length);

/* Runs a handler, then writes the end of the compressed body. */
bide_awaiter *bide_http_compress_run_(bide_http_connection *connection, bide_awaiter *handler);

#endif
