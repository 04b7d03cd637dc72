/* The certificates. */
#ifndef HTTPD_CERTIFICATES_H
#define HTTPD_CERTIFICATES_H

#include "options.h"

struct bide_tls_config;

/*
 * Loads the certificates. Returns NULL after an error, which is reported on stderr; without TLS in the library that is always so
 * (certificates_none.c). Sessions of `old`, which may be NULL, can be resumed.
 */
struct bide_tls_config *certificates_load(const struct options *options,
                                          struct bide_tls_config *old);

#endif
