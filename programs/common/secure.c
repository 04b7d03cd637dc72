/* TLS, with the library's TLS. secure.h has the contract. */
#include "secure.h"

#include <bide/tls.h>

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

bide_awaiter *secure_accept(struct secure *secure, struct bide_tls_config *config,
                            bide_stream below)
{
    return bide_tls_accept(&secure->handshake, &secure->tls, config, below);
}

const char *secure_reason(const struct secure *secure)
{
    return bide_tls_reason(&secure->tls);
}

bide_stream secure_stream(struct secure *secure)
{
    return bide_tls_stream(&secure->tls);
}

const char *secure_protocol(const struct secure *secure)
{
    return bide_tls_protocol(&secure->tls);
}

void secure_close(struct secure *secure)
{
    (void)bide_tls_close(&secure->tls);
}
