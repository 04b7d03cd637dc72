/* Configurations of the library's TLS. */
#include "certificates.h"

#include <bide/tls.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool report_tls_error(struct reading *reading, unsigned line, const char *file, int status,
                             const char *reason)
{
    return reading_fail(reading, line, "%s: %s", file,
                        reason != NULL && *reason != '\0' ? reason : strerror(-status));
}

/* Loads each certificate alone first, so that an error is reported with its line. */
static bool check_certificate(struct reading *reading, const struct certificate *certificate,
                              const bide_tls_certificate *one)
{
    bide_tls_config *config = NULL;
    const char *reason = NULL;
    bide_tls_options options = {.certificates = one, .certificate_count = 1};
    int status = bide_tls_server_create(&config, &options, &reason);
    if (status != 0)
        return report_tls_error(reading, certificate->line, certificate->chain, status, reason);
    bide_tls_config_release(config);
    return true;
}

/* The configuration whose sessions can be resumed; NULL: none. */
static bide_tls_config *previous_config(const struct reading *reading, const struct listen *listen)
{
    const struct listen *previous =
        reading->previous != NULL ? configuration_listen(reading->previous, listen->name) : NULL;
    return previous != NULL ? previous->tls : NULL;
}

bool certificates_load_for_listen(struct reading *reading, struct listen *listen)
{
    static const char *const both[] = {"h2", "http/1.1", NULL};
    const char *const *http = both + (PROXY_HAS_HTTP2 && !listen->has_no_http2 ? 0 : 1);
    size_t count = 0;
    for (const struct certificate *at = listen->certificates; at != NULL; at = at->next)
        count++;
    if (count == 0)
        return true;
    bide_tls_certificate *all = reading_allocate(count * sizeof *all);
    size_t index = 0;
    bool is_good = true;
    for (const struct certificate *at = listen->certificates; at != NULL && is_good;
         at = at->next) {
        all[index].chain_file = at->chain;
        all[index].key_file = at->key;
        all[index].ocsp_file = at->status;
        is_good = check_certificate(reading, at, &all[index++]);
    }
    if (is_good) {
        const char *reason = NULL;
        bide_tls_options options = {.certificates = all,
                                    .certificate_count = count,
                                    .protocols = listen->mode == MODE_HTTP ? http : NULL,
                                    .key_log_file = listen->key_log,
                                    .resumes = previous_config(reading, listen)};
        int status = bide_tls_server_create(&listen->tls, &options, &reason);
        is_good =
            status == 0 || report_tls_error(reading, listen->line, listen->name, status, reason);
    }
    free(all);
    return is_good;
}

bool certificates_load_for_backend(struct reading *reading, struct backend *backend)
{
    if (!backend->has_tls)
        return true;
    const char *reason = NULL;
    bide_tls_options options = {.authorities_file = backend->authorities};
    int status = bide_tls_client_create(&backend->tls, &options, &reason);
    if (status != 0)
        return report_tls_error(reading, backend->line,
                                backend->authorities != NULL ? backend->authorities : "tls", status,
                                reason);
    if (!backend->verifies)
        bide_tls_dangerously_verify_nothing(backend->tls);
    return true;
}
