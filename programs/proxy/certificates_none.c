/* The replacement for certificates.c if the library was built without TLS. */
#include "certificates.h"

bool certificates_load_for_listen(struct reading *reading, struct listen *listen)
{
    return listen->certificates == NULL ||
           reading_fail(reading, listen->certificates->line, "this proxy was built without TLS");
}

bool certificates_load_for_backend(struct reading *reading, struct backend *backend)
{
    return !backend->has_tls ||
           reading_fail(reading, backend->line, "this proxy was built without TLS");
}
