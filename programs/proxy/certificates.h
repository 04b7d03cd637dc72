/*
 * The files of TLS that a configuration names: certificates of listeners, authorities of backends. Without TLS in the library, a
 * configuration that uses it is rejected (certificates_none.c).
 */
#ifndef PROXY_CERTIFICATES_H
#define PROXY_CERTIFICATES_H

#include "reading.h"

/* Loads the files that a section names. Returns false after an error, which is recorded. */
bool certificates_load_for_listen(struct reading *reading, struct listen *listen);
bool certificates_load_for_backend(struct reading *reading, struct backend *backend);

#endif
