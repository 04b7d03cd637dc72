/* Conditions, ranges and encodings of requests for files. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_CONDITIONS_H
#define BIDE_SRC_HTTP_CONDITIONS_H

#include "bide/http_files.h"

enum {
    HTTP_IDENTITY = 0,
    HTTP_GZIP = 1,
    HTTP_BROTLI = 2,
    HTTP_GZIP_FIRST = 4 /* the client prefers gzip */
};

/*
 * The encodings that the client accepts, and does not like less than none: a set of HTTP_GZIP, HTTP_BROTLI and
 * HTTP_GZIP_FIRST.
 */
int bide_http_accepts_(const bide_http_exchange *exchange);

/*
 * Evaluates the conditions for a file with that tag and modification time. Returns 0 (send the file)
 * or the status of the response, 304 or 412.
 */
int bide_http_conditions_(const bide_http_exchange *exchange, const char *tag, int64_t modified);

/*
 * Parses the requested ranges of a file of `size` bytes. Returns their number, 0 (send the whole
 * file), or -1 (no range is within the file).
 */
int bide_http_ranges_(const bide_http_exchange *exchange, const char *tag, int64_t modified,
                uint64_t size, bide_http_range ranges[BIDE_HTTP_RANGES]);

/*
 * Opens found->path. found->error is -EAGAIN if only_cached is set and the path is not in the kernel's
 * cache.
 */
void bide_http_find_file_(void *found);

#endif
