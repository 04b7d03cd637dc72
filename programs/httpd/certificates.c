/* Loads the certificates, with the library's TLS. Workers share a configuration. */
#include "certificates.h"

#if HTTPD_HAS_HTTP2
#include <bide/http2.h>
#endif
#include <bide/tls.h>

#include <stdio.h>
#include <string.h>

#if HTTPD_HAS_HTTP2
#define PROTOCOLS bide_http2_protocols
#else
static const char *const http1[] = {"http/1.1", NULL};
#define PROTOCOLS http1
#endif

static void report_tls_error(const char *file, int status, const char *reason)
{
    fprintf(stderr, "httpd: %s: %s\n", file,
            reason != NULL && *reason != '\0' ? reason : strerror(-status));
}

/* Reports the bad certificate: each one is loaded alone. */
static void report_bad_certificate(const bide_tls_certificate *certificates, unsigned count,
                                   int status, const char *reason)
{
    for (unsigned i = 0; i < count && count > 1; i++) {
        bide_tls_config *config;
        const char *why = NULL;
        bide_tls_options one = {.certificates = &certificates[i], .certificate_count = 1};
        int error = bide_tls_server_create(&config, &one, &why);
        if (error != 0) {
            report_tls_error(certificates[i].chain_file, error, why);
            return;
        }
        bide_tls_config_release(config);
    }
    report_tls_error(certificates[0].chain_file, status, reason);
}

struct bide_tls_config *certificates_load(const struct options *options,
                                          struct bide_tls_config *old)
{
    bide_tls_certificate certificates[MAX_CERTIFICATES];
    bide_tls_config *config = NULL;
    const char *reason = NULL;
    memset(certificates, 0, sizeof certificates);
    for (unsigned i = 0; i < options->certificate_count; i++) {
        certificates[i].chain_file = options->certificates[i];
        certificates[i].key_file = options->keys[i];
        certificates[i].ocsp_file = options->statuses[i];
    }
    bide_tls_options wanted = {.certificates = certificates,
                               .certificate_count = options->certificate_count,
                               .protocols = PROTOCOLS,
                               .key_log_file = options->key_log,
                               .resumes = old};
    int status = bide_tls_server_create(&config, &wanted, &reason);
    if (status != 0) {
        report_bad_certificate(certificates, options->certificate_count, status, reason);
        return NULL;
    }
    return config;
}
