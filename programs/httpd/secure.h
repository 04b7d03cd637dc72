/*
 * TLS. Where the library was built without it, certificates are refused (secure_none.c), and the rest is
 * never called.
 */
#ifndef HTTPD_SECURE_H
#define HTTPD_SECURE_H

#include "options.h"

#include <bide/stream.h>

struct bide_tls_config;

/* One connection, over a stream. */
struct secure;

/*
 * Reads the certificates; NULL: one is no good, which is told on standard error. Sessions that began with
 * `old`, if it is not NULL, can be resumed.
 */
struct bide_tls_config *secure_read(const struct options *options, struct bide_tls_config *old);

/* NULL is left as it is. */
void secure_keep(struct bide_tls_config *config);
void secure_release(struct bide_tls_config *config);

/* What a connection needs; aligned as malloc's memory. It is closed at first. */
size_t secure_size(void);
void secure_init(struct secure *secure);

/* To be awaited: the handshake. */
bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_stream below);

/* After it; and what was agreed on by ALPN, or NULL. */
bide_stream secure_stream(struct secure *secure);
const char *secure_protocol(const struct secure *secure);

/* With what it is over. */
void secure_close(struct secure *secure);

#endif
