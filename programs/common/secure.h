/*
 * TLS connections of a program, with the library's TLS. If the library was built without TLS (secure_none.c), the program rejects
 * its options of TLS, and there is no connection. A connection belongs to one thread; threads share a configuration.
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

/* Closes the connection and the stream below it. */
void secure_close(struct secure *secure);

/* A connection in memory of its own, initially closed; NULL if memory is exhausted. secure_destroy closes it, and allows NULL. */
struct secure *secure_create(void);
void secure_destroy(struct secure *secure);

/* Awaiters for the handshake, as server, and as client of the server with this name. */
bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_stream below);
bide_awaiter *secure_connect(struct secure *secure, struct bide_tls_config *config,
                             bide_stream below, const char *name);

/* The last error as text, such as why the handshake has failed. NULL is allowed, and has none. */
const char *secure_reason(const struct secure *secure);

/* The stream and the ALPN protocol, or NULL, after the handshake. */
bide_stream secure_stream(struct secure *secure);
const char *secure_protocol(const struct secure *secure);

/* True if bytes, or the end, have come and were not read. NULL is allowed, and has none. */
bool secure_has_input(struct secure *secure);

#endif
