/*
 * Compressed responses of an HTTP server, by gzip. Floor: http.
 *
 *     bide_http_compression_init(&compression, NULL);
 *     bide_http_server_init(&http, &(bide_http_options){
 *         .handler = {&hello_body, sizeof(struct hello)}, .compression = &compression});
 *     ...
 *     bide_http_compression_destroy(&compression);     // when the server has ended
 *
 * Handlers need no change: the bodies of bide_http_respond, bide_http_write and bide_http_write_file are compressed
 * on the way to the client, by HTTP/1.1 and HTTP/2. A response is compressed if all of this holds:
 *
 *     - the request's "Accept-Encoding" accepts gzip, and does not prefer "identity" to it
 *     - the response's "Content-Type" is one of options.types, and its body is not known to be shorter than
 *       options.min_length
 *     - the handler has not set "Content-Encoding", "Content-Range", "Trailer", or "Cache-Control: no-transform"
 *     - the status is not 204, 206 or 304, and the request is not of HTTP/1.0
 *     - fewer than options.max_active responses are being compressed, and there is memory
 *
 * Such a response has "Content-Encoding: gzip" and no "Content-Length". Its "ETag" becomes a weak one, because the
 * handler's tag names other bytes, and "Accept-Ranges" is removed. Every response whose type could be
 * compressed has "Vary: Accept-Encoding". The response to HEAD has the same fields as that to GET.
 *
 * bide_http_flush sends all that was written, so a client can decompress it. bide_http_written counts compressed
 * bytes. Trailers cannot be added to a compressed response, unless its head names them in "Trailer".
 *
 * Security: the length of a compressed response depends on its text. If a response contains a secret, and text of an
 * attacker's choice beside it, repeated requests can reveal the secret (the BREACH attack). Exempt such responses by
 * bide_http_set_compression.
 *
 * Needs zlib; without it bide_http_compression_init returns -ENOTSUP.
 */
#ifndef BIDE_HTTP_COMPRESSION_H
#define BIDE_HTTP_COMPRESSION_H

#include "bide/http_server.h"

BIDE_EXTERN_C_BEGIN

struct bide_http_encoder_;

/* Options of compression. 0 and NULL are the defaults. */
typedef struct bide_http_compression_options {
    int level;           /* 1, the fastest, to 9, the smallest. 0: 4 */
    uint64_t min_length; /* shorter bodies of known length stay as they are. 0: 1024 */

    /*
     * Types with commas between: "text/css, application/json", and "text/" with an asterisk for all that begin so.
     * NULL: text, JSON, JavaScript, XML, SVG, WebAssembly, and uncompressed fonts and bitmaps. "text/event-stream"
     * must be named in full.
     */
    const char *types;

    unsigned max_active; /* responses at a time; each takes about 300 KB. 0: 32 */
    unsigned max_idle;   /* states that are kept for later responses. 0: 4 */
    bool only_if_asked;  /* only responses of handlers that call bide_http_set_compression */

    bide_allocator *allocator; /* NULL: the heap */
} bide_http_compression_options;

/* Statistics of compression. */
typedef struct bide_http_compression_stats {
    uint64_t responses;
    uint64_t skipped; /* responses that exceeded max_active, or for which there was no memory */
    uint64_t in;      /* bytes before compression */
    uint64_t out;     /* and after it */
} bide_http_compression_stats;

/* The caller's memory until its server has ended. Servers of one loop may share it. */
typedef struct bide_http_compression {
    bide_http_compression_options options;
    bide_http_compression_stats stats;
    struct bide_http_encoder_ *idle;
    unsigned idle_count;
    unsigned active;
} bide_http_compression;

/*
 * Makes it ready for a server's options. `options` is copied; NULL: all 0.
 * Threads: before it is shared. Errors: -EINVAL (the level is not 0 to 9), -ENOTSUP (the library was built without
 * zlib). Progress: wait-free.
 */
int bide_http_compression_init(bide_http_compression *compression,
                               const bide_http_compression_options *options);

/*
 * Frees its memory. No connection of its servers exists any more.
 * Threads: the loop's. Progress: that of the allocator.
 */
void bide_http_compression_destroy(bide_http_compression *compression);

/*
 * Sets whether this response may be compressed, in place of options.only_if_asked. Before its head ends. Has no effect
 * if the server has no compression.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_http_set_compression(bide_http_exchange *exchange, bool is_allowed);

/*
 * Why it is correct: src/http/compress.c.
 *
 * Source: RFC 9110, 8.4, 8.8.1 and 12.5.3; RFC 1952.
 */

BIDE_EXTERN_C_END

#endif
