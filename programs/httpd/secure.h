/*
 * TLS. If the library was built without TLS, certificates are rejected (secure_none.c), and the
 * other functions are never called.
 */
#ifndef HTTPD_SECURE_H
#define HTTPD_SECURE_H

#include "options.h"

#include <bide/stream.h>

struct bide_tls_config;

/* One TLS connection, over a stream. */
struct secure;

/*
 * Loads the certificates. Returns NULL after an error, which is reported on stderr. Sessions of
 * `old`, which may be NULL, can be resumed.
 */
struct bide_tls_config *secure_load(const struct options *options, struct bide_tls_config *old);

/* NULL is allowed. */
void secure_retain(struct bide_tls_config *config);
void secure_release(struct bide_tls_config *config);

/* The size of a connection, which needs malloc's alignment; initially it is closed. */
size_t secure_size(void);
void secure_init(struct secure *secure);

/* An awaiter for the handshake. */
bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_stream below);

/* A text for the failure of a handshake. */
const char *secure_reason(const struct secure *secure);

/* The stream and the ALPN protocol, or NULL, after the handshake. */
bide_stream secure_stream(struct secure *secure);
const char *secure_protocol(const struct secure *secure);

/* Closes the connection and the stream below it. */
void secure_close(struct secure *secure);

#endif
