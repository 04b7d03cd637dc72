/*
 * URLs of "http" and "https": parsing, and resolving a reference against a base, as for redirects.
 * Floor: http.
 *
 *     int status = bide_http_url_parse(&url, text, strlen(text));    // "http://example.org:8080/a?b"
 *     ... url.host, url.port, url.target ...
 *     bide_http_url_authority(&url, host, sizeof host);        // for bide_http_client_start_request
 *
 * Text that does not match the grammar is rejected, including spaces, control characters and bytes
 * past ASCII. Nothing is decoded. Texts point into the parsed string. Any thread.
 *
 * Source: RFC 3986.
 */
#ifndef BIDE_HTTP_URL_H
#define BIDE_HTTP_URL_H

#include "bide/http_message.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_http_url {
    bool is_secure;      /* "https" */
    bool has_port;       /* it is said */
    uint16_t port;       /* that, or 80 or 443 */
    bide_slice user; /* before "@"; data is NULL: there is none */
    bide_slice host; /* without the brackets of IPv6 */
    bool is_literal;     /* it had brackets */
    bide_slice
        target; /* path and query, for a request; if there is no path it is empty, or a query */
    bide_slice path;     /* may be empty */
    bide_slice query;    /* behind "?"; data is NULL: there is none */
    bide_slice fragment; /* behind "#"; likewise */
} bide_http_url;

/*
 * Takes a URL apart.
 * Threads: any. Errors: -EINVAL (it is none, or has another scheme). Progress: wait-free.
 */
int bide_http_url_parse(bide_http_url *url, const char *text, size_t size);

/*
 * Writes what is asked of the server: the target, with a "/" before it if it has no path, and a zero at
 * its end.
 * Threads: any. Errors: -EMSGSIZE (it does not fit). Progress: wait-free.
 */
int bide_http_url_target(const bide_http_url *url, char *out, size_t size);

/*
 * Writes the value of "Host": the host, and its port if that is another than the scheme's; and a zero.
 * Threads: any. Errors: -EMSGSIZE (it does not fit). Progress: wait-free.
 */
int bide_http_url_authority(const bide_http_url *url, char *out, size_t size);

/*
 * Writes the URL that `reference` means where `base` is the page: of a "Location", for instance. Without
 * its fragment, without "." and ".." in its path, and with a zero.
 * Threads: any. Errors: -EINVAL (that is no URL of these schemes), -EMSGSIZE (it does not fit).
 * Progress: wait-free.
 */
int bide_http_url_resolve(const bide_http_url *base, bide_slice reference, char *out,
                          size_t size);

BIDE_EXTERN_C_END

#endif
