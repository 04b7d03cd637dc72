/*
 * TLS of listeners and backends. If the library was built without TLS, a configuration that uses it
 * is rejected (secure_none.c), and the other functions are never called.
 */
#ifndef PROXY_SECURE_H
#define PROXY_SECURE_H

#include "reading.h"

#include <bide/stream.h>

/* One TLS connection, over a stream. */
struct secure;

/* Loads the files that a section names. Returns false after an error, which is recorded. */
bool secure_configure_listen(struct reading *reading, struct listen *listen);
bool secure_configure_backend(struct reading *reading, struct backend *backend);

/* NULL is allowed. */
void secure_release(struct bide_tls_config *config);

/* Returns NULL if memory is exhausted. */
struct secure *secure_create(void);

/* Closes the connection and the stream below it, and frees it. NULL is allowed. */
void secure_destroy(struct secure *secure);

/* Awaiters for the handshake, as server and as client. */
bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_stream below);
bide_awaiter *secure_connect(struct secure *secure, struct bide_tls_config *config,
                             bide_stream below, const char *name);

/* The stream, after the handshake. */
bide_stream secure_stream(struct secure *secure);

/* The protocol that the handshake has negotiated; NULL: none. */
const char *secure_protocol(const struct secure *secure);

/* Bytes or the end have come and were not read. NULL is allowed, and has none. */
bool secure_has_input(struct secure *secure);

/* The last error as text. */
const char *secure_reason(const struct secure *secure);

#endif
