/*
 * TLS, of listeners and backends. Where the library was built without it, a configuration that asks
 * for it is refused (secure_none.c), and the rest is never called.
 */
#ifndef PROXY_SECURE_H
#define PROXY_SECURE_H

#include "reading.h"

#include <bide/stream.h>

/* One connection, over a stream. */
struct secure;

/* Reads the files that a section names. False: one is no good, which is noted. */
bool secure_listen(struct reading *reading, struct listen *listen);
bool secure_backend(struct reading *reading, struct backend *backend);

/* NULL is left as it is. */
void secure_release(struct bide_tls_config *config);

/* NULL: there is no memory. */
struct secure *secure_create(void);

/* Closes it, with what it is over, and frees it; NULL is left as it is. */
void secure_destroy(struct secure *secure);

/* To be awaited: the handshake, as a server and as a client. */
bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_stream below);
bide_awaiter *secure_connect(struct secure *secure, struct bide_tls_config *config,
                             bide_stream below, const char *name);

/* After the handshake. */
bide_stream secure_stream(struct secure *secure);

/* What the last error was, in words. */
const char *secure_reason(const struct secure *secure);

#endif
