/* What the fields of a request say about a file: conditions, ranges, encodings. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_CONDITIONS_H
#define BIDE_SRC_HTTP_CONDITIONS_H

#include "bide/http_files.h"

enum { HTTP_IDENTITY = 0, HTTP_GZIP = 1, HTTP_BROTLI = 2 };

/* The encodings that the client accepts, of those two, as bits. */
int bide_http_accepts_(const bide_http_exchange *exchange);

/*
 * What the conditions come to, for a file of that tag and time: 0: it is sent; or the status to be
 * sent in its place, 304 or 412.
 */
int bide_http_conditions_(const bide_http_exchange *exchange, const char *tag, int64_t modified);

/*
 * The ranges that are asked for of a file of `size` bytes: how many; 0: all of it; -1: none of them is
 * there.
 */
int bide_http_ranges_(const bide_http_exchange *exchange, const char *tag, int64_t modified, uint64_t size,
                bide_http_range ranges[BIDE_HTTP_RANGES]);

/* Looks for found->path. -EAGAIN: it is not in the kernel's cache, and only_cached is set. */
void bide_http_find_file_(void *found);

#endif
