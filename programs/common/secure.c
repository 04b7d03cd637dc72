/* TLS, with the library's TLS. secure.h has the contract. */
#include "secure.h"

#include <bide/tls.h>

#include <stdlib.h>

struct secure {
    bide_tls tls;
    bide_tls_handshake handshake;
};

void secure_retain(struct bide_tls_config *config)
{
    if (config != NULL)
        bide_tls_config_retain(config);
}

void secure_release(struct bide_tls_config *config)
{
    bide_tls_config_release(config);
}

size_t secure_size(void)
{
    return sizeof(struct secure);
}

void secure_init(struct secure *secure)
{
    bide_tls_init_closed(&secure->tls);
}

void secure_close(struct secure *secure)
{
    (void)bide_tls_close(&secure->tls);
}

struct secure *secure_create(void)
{
    struct secure *secure = malloc(sizeof *secure);
    if (secure != NULL)
        secure_init(secure);
    return secure;
}

void secure_destroy(struct secure *secure)
{
    if (secure != NULL)
        secure_close(secure);
    free(secure);
}

bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_stream below)
{
    return bide_tls_accept(&secure->handshake, &secure->tls, config, below);
}

bide_awaiter *secure_connect(struct secure *secure, struct bide_tls_config *config,
                             bide_stream below, const char *name)
{
    return bide_tls_connect(&secure->handshake, &secure->tls, config, below, name);
}

const char *secure_reason(const struct secure *secure)
{
    return secure != NULL ? bide_tls_reason(&secure->tls) : "";
}

bide_stream secure_stream(struct secure *secure)
{
    return bide_tls_stream(&secure->tls);
}

const char *secure_protocol(const struct secure *secure)
{
    return bide_tls_protocol(&secure->tls);
}

bool secure_has_input(struct secure *secure)
{
    return secure != NULL && bide_tls_has_input(&secure->tls);
}
