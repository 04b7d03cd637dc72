/*
 * TLS of the clients of --tls-port. If the library was built without TLS, that option is rejected (secure_none.c), and the
 * other functions are never called. A client's reading and writing may be under way at once. One thread.
 */
#ifndef KV_SECURE_H
#define KV_SECURE_H

#include "options.h"

#include <bide/socket.h>

struct bide_tls_config;

/* A client's connection. */
struct secure;

/* Loads the certificate and the authorities. An error is reported, and ends the process. */
struct bide_tls_config *secure_load(const struct options *options);

/* NULL is allowed. */
void secure_release(struct bide_tls_config *config);

/* The size of a connection, which needs malloc's alignment; initially it is closed. */
size_t secure_size(void);
void secure_init(struct secure *secure);

/* The handshake, and then reading and writing as of a socket. All of them return awaiters. */
bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_descriptor *socket);
bide_awaiter *secure_read(struct secure *secure, void *data, size_t size);
bide_awaiter *secure_write(struct secure *secure, const void *data, size_t size);

/* How many bytes the last read has had: 0 is the end. */
size_t secure_count(const struct secure *secure);

/* Tells the client that nothing more will come. */
bide_awaiter *secure_end(struct secure *secure);

/* Closes the connection and the socket. */
void secure_close(struct secure *secure);

#endif
