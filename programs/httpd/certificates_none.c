/* The replacement for certificates.c if the library was built without TLS. */
#include "certificates.h"

#include <stdio.h>

struct bide_tls_config *certificates_load(const struct options *options,
                                          struct bide_tls_config *old)
{
    (void)old;
    fprintf(stderr, "httpd: %s: this httpd was built without TLS\n", options->certificates[0]);
    return NULL;
}
