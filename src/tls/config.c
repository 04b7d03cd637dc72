/*
 * Configs: an SSL_CTX that is made once and does not change afterwards, with a count of references.
 *
 * 1. The count is relaxed where a reference is added, by one who has one. To give one up releases, and
 *    whoever gives up the last acquires: so what all others did comes before it is freed.
 * 2. A server keeps no sessions: they are in the tickets that clients bring. What is asked of clients,
 *    and of which authorities, is in the context of sessions. So a session that began where less was
 *    asked is not resumed where more is, even if the keys of tickets are the same.
 */
#include "internal.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <errno.h>
#include <string.h>

enum { SESSIONS = 100, TICKET_KEYS = 80 };

/* ---- What OpenSSL asks ---- */

/* A server takes the first protocol of its own that the client has too. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *size,
                           const unsigned char *offered, unsigned offered_size, void *argument)
{
    const bide_tls_config *config = argument;
    unsigned char *found;
    (void)ssl;
    if (SSL_select_next_proto(&found, size, config->wire, (unsigned)config->wire_size, offered,
                              offered_size) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

static int choose_certificate(SSL *ssl, void *argument)
{
    const bide_tls_config *config = argument;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    return name == NULL || bide_tls_identities_use_(&config->proofs, ssl, name) >= 0;
}

static int note_name(SSL *ssl, int *alert, void *argument)
{
    const bide_tls_config *config = argument;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert;
    return name != NULL && bide_tls_identities_have_(&config->proofs, name) ? SSL_TLSEXT_ERR_OK
                                                                  : SSL_TLSEXT_ERR_NOACK;
}

/* A client has got a session: 1, it is kept. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    const bide_tls *tls = SSL_get_app_data(ssl);
    return tls->name != NULL && bide_tls_sessions_put_(&tls->config->sessions, tls->name, session);
}

/* ---- Making one ---- */

static int out_of_memory(const char **reason)
{
    ERR_clear_error();
    *reason = "out of memory";
    return -ENOMEM;
}

static int invalid(const char *why, const char **reason)
{
    ERR_clear_error();
    *reason = why;
    return -EINVAL;
}

/* Protocols as they are given back, and as they are sent: each after its length. */
static int copy_protocols(bide_tls_config *config, const char *const *protocols,
                          const char **reason)
{
    size_t count = 0;
    size_t size = 0;
    for (; protocols[count] != NULL; count++) {
        size_t length = strlen(protocols[count]);
        if (length == 0 || length > 255)
            return invalid("a protocol's name is empty or too long", reason);
        size += 1 + length;
    }
    if (size == 0)
        return 0;
    if (size > UINT16_MAX)
        return invalid("too many protocols", reason);
    config->protocols = OPENSSL_zalloc((count + 1) * sizeof *config->protocols);
    config->wire = OPENSSL_malloc(size);
    if (config->protocols == NULL || config->wire == NULL)
        return out_of_memory(reason);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(protocols[i]);
        config->protocols[i] = OPENSSL_strdup(protocols[i]);
        if (config->protocols[i] == NULL)
            return out_of_memory(reason);
        config->wire[config->wire_size++] = (unsigned char)length;
        memcpy(config->wire + config->wire_size, protocols[i], length);
        config->wire_size += length;
    }
    if (config->is_server)
        SSL_CTX_set_alpn_select_cb(config->context, choose_protocol, config);
    else if (SSL_CTX_set_alpn_protos(config->context, config->wire, (unsigned)config->wire_size) !=
             0)
        return out_of_memory(reason);
    return 0;
}

/* What both sides have. */
static int set_up(bide_tls_config *config, const bide_tls_options *options, const char **reason)
{
    SSL_CTX *context = config->context;
    int status = bide_tls_identities_read_(&config->proofs, options, reason);
    if (status != 0)
        return status;
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    if (SSL_CTX_set_min_proto_version(context, options->min_version == BIDE_TLS_MIN_1_3
                                                   ? TLS1_3_VERSION
                                                   : TLS1_2_VERSION) != 1)
        return invalid("no such version", reason);
    if (config->proofs.count != 0) {
        const tls_proof *first = &config->proofs.all[0];
        if (SSL_CTX_use_cert_and_key(context, first->leaf, first->key, first->chain, 1) != 1)
            return invalid("the certificate cannot be used, such as for a key that is too short",
                           reason);
    }
    if (options->protocols != NULL)
        status = copy_protocols(config, options->protocols, reason);
    return status != 0 ? status : bide_tls_trust_(context, options, reason);
}

static bool names_authorities(const bide_tls_options *options)
{
    return options->authorities_file != NULL || options->authorities_directory != NULL ||
           options->authorities != NULL;
}

static int set_up_client(bide_tls_config *config, const bide_tls_options *options,
                         const char **reason)
{
    SSL_CTX *context = config->context;
    if (options->clients != BIDE_TLS_CLIENTS_ANONYMOUS || options->resumes != NULL ||
        options->certificate_count > 1)
        return invalid("options of a server, for a client", reason);
    if (!names_authorities(options) && SSL_CTX_set_default_verify_paths(context) != 1)
        return out_of_memory(reason);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    config->verifies = true;
    config->sessions.max = options->max_sessions != 0 ? options->max_sessions : SESSIONS;
    SSL_CTX_set_session_cache_mode(
        context, options->keeps_no_sessions ? SSL_SESS_CACHE_OFF
                                            : SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    if (!options->keeps_no_sessions)
        SSL_CTX_sess_set_new_cb(context, keep_session);
    return 0;
}

/* What is asked of clients, as 32 bytes: 2. */
static bool digest_demands(const bide_tls_config *config, const bide_tls_options *options,
                           unsigned char digest[static EVP_MAX_MD_SIZE], unsigned *size)
{
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    unsigned char clients = (unsigned char)options->clients;
    const char *folder = options->authorities_directory != NULL ? options->authorities_directory : "";
    bool done = sum != NULL && EVP_DigestInit_ex(sum, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(sum, &clients, 1) == 1 &&
                EVP_DigestUpdate(sum, folder, strlen(folder) + 1) == 1;
    STACK_OF(X509_OBJECT) *trusted =
        X509_STORE_get0_objects(SSL_CTX_get_cert_store(config->context));
    for (int i = 0; done && i < sk_X509_OBJECT_num(trusted); i++) {
        X509 *authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, i));
        unsigned its_size;
        if (authority != NULL) {
            unsigned char its[EVP_MAX_MD_SIZE];
            done = X509_digest(authority, EVP_sha256(), its, &its_size) == 1 &&
                   EVP_DigestUpdate(sum, its, its_size) == 1;
        }
    }
    done = done && EVP_DigestFinal_ex(sum, digest, size) == 1;
    EVP_MD_CTX_free(sum);
    return done;
}

/* Tickets of the one are good for the other. */
static bool share_tickets(SSL_CTX *context, SSL_CTX *with)
{
    unsigned char keys[TICKET_KEYS];
    bool done = SSL_CTX_get_tlsext_ticket_keys(with, keys, sizeof keys) == 1 &&
                SSL_CTX_set_tlsext_ticket_keys(context, keys, sizeof keys) == 1;
    OPENSSL_cleanse(keys, sizeof keys);
    return done;
}

static int set_up_server(bide_tls_config *config, const bide_tls_options *options,
                         const char **reason)
{
    static const int modes[] = {
        [BIDE_TLS_CLIENTS_ANONYMOUS] = SSL_VERIFY_NONE,
        [BIDE_TLS_CLIENTS_OPTIONAL] = SSL_VERIFY_PEER,
        [BIDE_TLS_CLIENTS_REQUIRED] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
    };
    SSL_CTX *context = config->context;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size;
    if (options->certificate_count == 0)
        return invalid("a server without a certificate", reason);
    if (options->clients > BIDE_TLS_CLIENTS_REQUIRED ||
        (options->clients != BIDE_TLS_CLIENTS_ANONYMOUS && !names_authorities(options)))
        return invalid("clients are to prove themselves, and no authority is named", reason);
    if (options->resumes != NULL && !options->resumes->is_server)
        return invalid("sessions of a client's config, for a server", reason);
    SSL_CTX_set_verify(context, modes[options->clients], NULL);
    config->verifies = options->clients != BIDE_TLS_CLIENTS_ANONYMOUS;
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 1); /* (a second would be a part of what idle ones keep) */
    SSL_CTX_set_cert_cb(context, choose_certificate, config);
    SSL_CTX_set_tlsext_servername_callback(context, note_name);
    SSL_CTX_set_tlsext_servername_arg(context, config);
    if (!digest_demands(config, options, digest, &size) ||
        SSL_CTX_set_session_id_context(context, digest, size) != 1 ||
        (options->resumes != NULL && !share_tickets(context, options->resumes->context)))
        return out_of_memory(reason);
    return 0;
}

static int create(bide_tls_config **made, const bide_tls_options *options, bool is_server,
                  const char **reason)
{
    static const bide_tls_options none;
    const char *nobody_asks;
    if (options == NULL)
        options = &none;
    if (reason == NULL)
        reason = &nobody_asks;
    ERR_clear_error();
    bide_tls_config *config = OPENSSL_zalloc(sizeof *config);
    if (config == NULL)
        return out_of_memory(reason);
    bide_atomic_init(&config->references, 1);
    bide_atomic_init(&config->sessions.lock, 0);
    config->is_server = is_server;
    config->context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    int status = config->context == NULL ? out_of_memory(reason) : set_up(config, options, reason);
    if (status == 0)
        status = is_server ? set_up_server(config, options, reason)
                           : set_up_client(config, options, reason);
    if (status != 0) {
        bide_tls_config_release(config);
        return status;
    }
    *made = config;
    return 0;
}

int bide_tls_client_create(bide_tls_config **config, const bide_tls_options *options,
                           const char **reason)
{
    return create(config, options, false, reason);
}

int bide_tls_server_create(bide_tls_config **config, const bide_tls_options *options,
                           const char **reason)
{
    return create(config, options, true, reason);
}

void bide_tls_dangerously_verify_nothing(bide_tls_config *config)
{
    if (config->is_server)
        bide_misuse_("a server's config verifies what its options say", __func__, __FILE__,
                     __LINE__);
    SSL_CTX_set_verify(config->context, SSL_VERIFY_NONE, NULL);
    config->verifies = false;
}

/* ---- References ---- */

void bide_tls_config_retain(bide_tls_config *config)
{
    bide_atomic_fetch_add(&config->references, 1, relaxed); /* 1 */
}

void bide_tls_config_release(bide_tls_config *config)
{
    /* acq_rel: 1, partners are the others' */
    if (config == NULL || bide_atomic_fetch_sub(&config->references, 1, acq_rel) != 1)
        return;
    bide_tls_sessions_free_(&config->sessions);
    SSL_CTX_free(config->context);
    bide_tls_identities_free_(&config->proofs);
    for (char **protocol = config->protocols; protocol != NULL && *protocol != NULL; protocol++)
        OPENSSL_free(*protocol);
    OPENSSL_free(config->protocols);
    OPENSSL_free(config->wire);
    OPENSSL_free(config);
}
