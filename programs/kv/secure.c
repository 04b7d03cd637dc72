/* TLS, with the library's TLS. secure.h has the contract. */
#include "secure.h"

#include "kv.h"

#include <bide/tls.h>

#include <errno.h>
#include <stdlib.h>

struct secure {
    bide_tls tls;
    bide_tls_handshake handshake;
    bide_stream_operation reading, writing;
};

_Static_assert((int)TLS_CLIENTS_OPTIONAL == (int)BIDE_TLS_CLIENTS_OPTIONAL &&
                   (int)TLS_CLIENTS_REQUIRED == (int)BIDE_TLS_CLIENTS_REQUIRED,
               "the options' values are the library's");

/* Makes a configuration; an error is that of `file`. */
static struct bide_tls_config *make_config(const bide_tls_options *options, const char *file)
{
    struct bide_tls_config *config = NULL;
    const char *reason = "";
    int status = bide_tls_server_create(&config, options, &reason);
    if (status < 0) {
        kv_report("%s: %s", file, status == -EINVAL ? reason : strerror(-status));
        exit(1);
    }
    return config;
}

/* (Without the authorities first: so it is known whose error it is.) */
struct bide_tls_config *secure_load(const struct options *options)
{
    bide_tls_certificate certificate = {.chain_file = options->tls_cert,
                                        .key_file = options->tls_key};
    bide_tls_options wanted = {.certificates = &certificate, .certificate_count = 1};
    struct bide_tls_config *config = make_config(&wanted, options->tls_cert);
    if (options->tls_ca == NULL)
        return config;
    bide_tls_config_release(config);
    wanted.authorities_file = options->tls_ca;
    wanted.clients = (bide_tls_clients)options->tls_clients;
    return make_config(&wanted, options->tls_ca);
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
                            bide_descriptor *socket)
{
    return bide_tls_accept(&secure->handshake, &secure->tls, config, bide_socket_stream(socket));
}

bide_awaiter *secure_read(struct secure *secure, void *data, size_t size)
{
    return bide_stream_read(&secure->reading, bide_tls_stream(&secure->tls), data, size);
}

size_t secure_count(const struct secure *secure)
{
    return bide_stream_count(&secure->reading, bide_tls_stream((bide_tls *)&secure->tls));
}

bide_awaiter *secure_write(struct secure *secure, const void *data, size_t size)
{
    return bide_stream_write(&secure->writing, bide_tls_stream(&secure->tls), data, size);
}

bide_awaiter *secure_end(struct secure *secure)
{
    return bide_stream_shutdown_output(&secure->writing, bide_tls_stream(&secure->tls));
}

void secure_close(struct secure *secure)
{
    (void)bide_tls_close(&secure->tls);
}
