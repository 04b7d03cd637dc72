/*
 * The PROXY protocol, versions 1 and 2: the client's address, sent by a proxy ahead of the client's
 * own bytes. Reading it consumes no byte behind it.
 *
 * Source: Willy Tarreau, "The PROXY protocol", versions 1 and 2.
 */
#ifndef PROXY_PROXY_HEADER_H
#define PROXY_PROXY_HEADER_H

#include <bide/address.h>
#include <bide/platform.h>

#include <stdbool.h>

enum {
    PROXY_HEADER_MAX_V1 = 107,           /* the longest line */
    PROXY_HEADER_MAX_WRITTEN = 16 + 216, /* the longest header that is written */
    PROXY_HEADER_MAX_READ = 16 + 4096    /* the longest that is read, with extensions */
};

/* A header that is being received, in pieces of any size. */
struct proxy_header {
    bide_address source, destination; /* once it is parsed, if `is_known` */
    bool is_known;                    /* it has the client's address */
    size_t size;                      /* bytes received */
    unsigned char bytes[PROXY_HEADER_MAX_READ];
};

/*
 * Takes bytes that belong to the header from `size` received bytes. Returns how many were taken, at
 * least one; 0 if the header was complete already; -EPROTO if it is not a valid header.
 */
int proxy_header_feed(struct proxy_header *header, const void *data, size_t size);

/*
 * Parses the header if it is complete. Returns 1 if it is, and sets `source` and `destination`; 0
 * if it is incomplete; -EPROTO if it is invalid.
 */
int proxy_header_parse(struct proxy_header *header);

/*
 * Writes a header of `version`, 1 or 2, into PROXY_HEADER_MAX_WRITTEN bytes at `data`. Returns its
 * size.
 */
size_t proxy_header_print(unsigned char *data, unsigned version, const bide_address *source,
                          const bide_address *destination);

/* The same for a connection of the proxy's own, such as a check: it has no client. */
size_t proxy_header_print_own(unsigned char *data, unsigned version);

#endif
