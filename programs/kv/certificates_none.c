/* The replacement for certificates.c if the library was built without TLS. */
#include "certificates.h"

#include "kv.h"

#include <stdlib.h>

struct bide_tls_config *certificates_load(const struct options *options)
{
    kv_report("--tls-port %u: this kv was built without TLS", options->tls_port);
    exit(1);
}
