/* The replacement for secure.c if the library was built without TLS. */
#include "secure.h"

#include <errno.h>
#include <stdlib.h>

bool secure_configure_listen(struct reading *reading, struct listen *listen)
{
    return listen->certificates == NULL ||
           reading_fail(reading, listen->certificates->line, "this proxy was built without TLS");
}

bool secure_configure_backend(struct reading *reading, struct backend *backend)
{
    return !backend->has_tls ||
           reading_fail(reading, backend->line, "this proxy was built without TLS");
}

void secure_release(struct bide_tls_config *config)
{
    (void)config;
}

struct secure *secure_create(void)
{
    return NULL;
}

void secure_destroy(struct secure *secure)
{
    (void)secure;
}

bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_stream below)
{
    (void)secure, (void)config, (void)below;
    abort(); /* unreachable: such a configuration is rejected */
}

bide_awaiter *secure_connect(struct secure *secure, struct bide_tls_config *config,
                             bide_stream below, const char *name)
{
    (void)secure, (void)config, (void)below, (void)name;
    abort();
}

bide_stream secure_stream(struct secure *secure)
{
    (void)secure;
    abort();
}

const char *secure_protocol(const struct secure *secure)
{
    (void)secure;
    return NULL;
}

bool secure_has_input(struct secure *secure)
{
    (void)secure;
    return false;
}

const char *secure_reason(const struct secure *secure)
{
    (void)secure;
    return "";
}
