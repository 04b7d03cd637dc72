/*
 * Without TLS: the library was built without it.
 */
#include "secure.h"

bool secure_listen(struct reading *reading, struct listen *listen)
{
    return listen->certificates == NULL ||
           reading_fail(reading, listen->certificates->line, "this proxy was built without TLS");
}

bool secure_backend(struct reading *reading, struct backend *backend)
{
    return !backend->has_tls ||
           reading_fail(reading, backend->line, "this proxy was built without TLS");
}

void secure_release(struct bide_tls_config *config)
{
    (void)config;
}
