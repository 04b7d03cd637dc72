/* The certificates of --tls-port. */
#ifndef KV_CERTIFICATES_H
#define KV_CERTIFICATES_H

#include "options.h"

struct bide_tls_config;

/*
 * Loads the certificate and the authorities. An error is reported, and ends the process; so does the option, if the library was
 * built without TLS (certificates_none.c).
 */
struct bide_tls_config *certificates_load(const struct options *options);

#endif
