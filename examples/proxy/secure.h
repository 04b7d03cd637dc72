/*
 * TLS of listeners and backends: what their certificates and authorities make of them.
 */
#ifndef PROXY_SECURE_H
#define PROXY_SECURE_H

#include "reading.h"

/* Reads the files that a section names. False: one is no good, which is noted. */
bool secure_listen(struct reading *reading, struct listen *listen);
bool secure_backend(struct reading *reading, struct backend *backend);

/* NULL is left as it is. */
void secure_release(struct bide_tls_config *config);

#endif
