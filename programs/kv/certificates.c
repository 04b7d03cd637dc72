/* Loads the certificates, with the library's TLS. certificates.h has the contract. */
#include "certificates.h"

#include "kv.h"

#include <bide/tls.h>

#include <errno.h>
#include <stdlib.h>

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
struct bide_tls_config *certificates_load(const struct options *options)
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
