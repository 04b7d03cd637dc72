/*
 * TLS of a server's connections, with the library's TLS. If the library was built without TLS (secure_none.c), the server
 * rejects its options of TLS, and the functions of a connection are never called. A connection belongs to one thread; threads
 * share a configuration.
 */
#ifndef COMMON_SECURE_H
#define COMMON_SECURE_H

#include <bide/stream.h>

struct bide_tls_config;

/* One TLS connection, over a stream. */
struct secure;

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
