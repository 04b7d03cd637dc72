/*
 * The PROXY protocol, versions 1 and 2: what a proxy says about the client before the client's own
 * bytes come. Reading it takes no byte behind it.
 *
 * Source: Willy Tarreau, "The PROXY protocol", versions 1 and 2.
 */
#ifndef PROXY_PROXY_HEADER_H
#define PROXY_PROXY_HEADER_H

#include <bide/address.h>

#include <stdbool.h>

enum {
    MAX_PROXY_HEADER_V1 = 107,       /* bytes of a line */
    MAX_PROXY_HEADER = 16 + 216,     /* of what is written */
    MAX_PROXY_HEADER_READ = 16 + 4096 /* of what is read, with its additions */
};

/* A header that comes in, byte by byte or in pieces. */
struct proxy_header {
    bide_address source, destination; /* once it is whole, if `is_known` */
    bool is_known;                    /* it says who the client is */
    size_t size;                      /* bytes that are there */
    unsigned char bytes[MAX_PROXY_HEADER_READ];
};

/*
 * Looks at `size` bytes that have come, behind those that are there already. Returns how many of
 * them belong to the header and were taken, at least one; 0: it was whole before, and is read;
 * -EPROTO: it is no such header.
 */
int proxy_header_take(struct proxy_header *header, const void *data, size_t size);

/* Is it whole? Then source and destination are there. -EPROTO: it is spoilt. */
int proxy_header_is_whole(struct proxy_header *header);

/* Writes one of `version`, 1 or 2, into `data`, of MAX_PROXY_HEADER bytes. Returns its size. */
size_t proxy_header_print(unsigned char *data, unsigned version, const bide_address *source,
                          const bide_address *destination);

#endif
