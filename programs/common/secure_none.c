/* The replacement for secure.c if the library was built without TLS. */
#include "secure.h"

#include <stdlib.h>

void secure_retain(struct bide_tls_config *config)
{
    (void)config;
}

void secure_release(struct bide_tls_config *config)
{
    (void)config;
}

size_t secure_size(void)
{
    return 0;
}

void secure_init(struct secure *secure)
{
    (void)secure;
}

void secure_close(struct secure *secure)
{
    (void)secure;
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
    abort(); /* unreachable: the options are rejected */
}

bide_awaiter *secure_connect(struct secure *secure, struct bide_tls_config *config,
                             bide_stream below, const char *name)
{
    (void)secure, (void)config, (void)below, (void)name;
    abort();
}

const char *secure_reason(const struct secure *secure)
{
    (void)secure;
    return "";
}

bide_stream secure_stream(struct secure *secure)
{
    (void)secure;
    abort();
}

const char *secure_protocol(const struct secure *secure)
{
    (void)secure;
    abort();
}

bool secure_has_input(struct secure *secure)
{
    (void)secure;
    return false;
}
