/* The replacement for secure.c if the library was built without TLS. */
#include "secure.h"

#include "kv.h"

#include <stdlib.h>

struct bide_tls_config *secure_load(const struct options *options)
{
    kv_report("--tls-port %u: this kv was built without TLS", options->tls_port);
    exit(1);
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

bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_descriptor *socket)
{
    (void)secure, (void)config, (void)socket;
    abort(); /* unreachable: the option is rejected */
}

bide_awaiter *secure_read(struct secure *secure, void *data, size_t size)
{
    (void)secure, (void)data, (void)size;
    abort();
}

size_t secure_count(const struct secure *secure)
{
    (void)secure;
    abort();
}

bide_awaiter *secure_write(struct secure *secure, const void *data, size_t size)
{
    (void)secure, (void)data, (void)size;
    abort();
}

bide_awaiter *secure_end(struct secure *secure)
{
    (void)secure;
    abort();
}

void secure_close(struct secure *secure)
{
    (void)secure;
}
