/*
 * Configs: an SSL_CTX with a reference count. Many connections share a config, on any threads. It does
 * not change once it is shared; only the list of its sessions does, under a lock.
 *
 * 1. Adding a reference is relaxed, because the caller already has one. Releasing a reference is
 *    acq_rel. So all uses of the config happen before the holder of the last reference frees it.
 * 2. A server stores no sessions: clients present them in tickets. The session's context includes what
 *    the server demands of clients, and of which authorities. So a session that was established with
 *    weaker demands is not resumed with stronger ones, even if the keys of the tickets are the same.
 */
#define _GNU_SOURCE
#include "internal.h"

#include "../io/const_cast.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { TLS_DEFAULT_SESSIONS = 100, TLS_TICKET_KEYS_SIZE = 80 };

/* ---- Callbacks of OpenSSL ---- */

/* A server selects the first of its own protocols that the client offers. */
static int tls_select_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *size,
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

static int tls_select_certificate(SSL *ssl, void *argument)
{
    const bide_tls_config *config = argument;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    return name == NULL || bide_tls_identities_use_(&config->proofs, ssl, name) >= 0;
}

static int tls_check_server_name(SSL *ssl, int *alert, void *argument)
{
    const bide_tls_config *config = argument;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert;
    return name != NULL && bide_tls_identities_have_(&config->proofs, name) ? SSL_TLSEXT_ERR_OK
                                                                            : SSL_TLSEXT_ERR_NOACK;
}

/* A client has received a session. Returns 1 if it keeps the session's reference. */
static int tls_keep_session(SSL *ssl, SSL_SESSION *session)
{
    const bide_tls *tls = SSL_get_app_data(ssl);
    return tls->name != NULL && bide_tls_sessions_put_(&tls->config->sessions, tls->name, session);
}

/* One line in one write, so that lines of other connections and programs do not mix with it. */
static void tls_log_key(const SSL *ssl, const char *line)
{
    const bide_tls *tls = SSL_get_app_data(ssl);
    char end[] = "\n";
    struct iovec parts[2] = {{.iov_base = io_as_data(line), .iov_len = strlen(line)},
                             {.iov_base = end, .iov_len = 1}};
    ssize_t written = writev(tls->config->key_log, parts, 2);
    (void)written; /* a log that cannot be written changes no connection */
}

/* ---- Creation ---- */

static int tls_config_out_of_memory(const char **reason)
{
    ERR_clear_error();
    *reason = "out of memory";
    return -ENOMEM;
}

static int tls_config_invalid(const char *why, const char **reason)
{
    ERR_clear_error();
    *reason = why;
    return -EINVAL;
}

/* Copies the protocols, as strings, and in ALPN's form, each after its length. */
static int tls_config_copy_protocols(bide_tls_config *config, const char *const *protocols,
                                     const char **reason)
{
    size_t count = 0;
    size_t size = 0;
    for (; protocols[count] != NULL; count++) {
        size_t length = strlen(protocols[count]);
        if (length == 0 || length > 255)
            return tls_config_invalid("a protocol's name is empty or too long", reason);
        size += 1 + length;
    }
    if (size == 0)
        return 0;
    if (size > UINT16_MAX)
        return tls_config_invalid("too many protocols", reason);
    config->protocols = OPENSSL_zalloc((count + 1) * sizeof *config->protocols);
    config->wire = OPENSSL_malloc(size);
    if (config->protocols == NULL || config->wire == NULL)
        return tls_config_out_of_memory(reason);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(protocols[i]);
        config->protocols[i] = OPENSSL_strdup(protocols[i]);
        if (config->protocols[i] == NULL)
            return tls_config_out_of_memory(reason);
        config->wire[config->wire_size++] = (unsigned char)length;
        memcpy(config->wire + config->wire_size, protocols[i], length);
        config->wire_size += length;
    }
    if (config->is_server)
        SSL_CTX_set_alpn_select_cb(config->context, tls_select_protocol, config);
    else if (SSL_CTX_set_alpn_protos(config->context, config->wire, (unsigned)config->wire_size) !=
             0)
        return tls_config_out_of_memory(reason);
    return 0;
}

static int tls_config_log_keys(bide_tls_config *config, const char *file, const char **reason)
{
    config->key_log = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (config->key_log < 0) {
        *reason = "the log of keys cannot be opened";
        return -errno;
    }
    SSL_CTX_set_keylog_callback(config->context, tls_log_key);
    return 0;
}

/* Sets up what clients and servers share. */
static int tls_config_set_up(bide_tls_config *config, const bide_tls_options *options,
                             const char **reason)
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
        return tls_config_invalid("the version is not supported", reason);
    if (config->proofs.count != 0) {
        const tls_proof *first = &config->proofs.all[0];
        if (SSL_CTX_use_cert_and_key(context, first->leaf, first->key, first->chain, 1) != 1)
            return tls_config_invalid(
                "the certificate cannot be used, such as for a key that is too short", reason);
    }
    if (options->protocols != NULL)
        status = tls_config_copy_protocols(config, options->protocols, reason);
    if (status == 0 && options->key_log_file != NULL)
        status = tls_config_log_keys(config, options->key_log_file, reason);
    return status != 0 ? status : bide_tls_trust_(context, options, reason);
}

static bool tls_options_have_authorities(const bide_tls_options *options)
{
    return options->authorities_file != NULL || options->authorities_directory != NULL ||
           options->authorities != NULL;
}

static int tls_config_set_up_client(bide_tls_config *config, const bide_tls_options *options,
                                    const char **reason)
{
    SSL_CTX *context = config->context;
    if (options->clients != BIDE_TLS_CLIENTS_ANONYMOUS || options->resumes != NULL ||
        options->certificate_count > 1 ||
        (options->certificate_count == 1 && config->proofs.all[0].status != NULL))
        return tls_config_invalid("an option for servers is set for a client", reason);
    if ((unsigned)options->stapling > BIDE_TLS_STAPLING_REQUIRED)
        return tls_config_invalid("the option for stapling is none of its values", reason);
    if (!bide_tls_status_ask_(config, options->stapling))
        return tls_config_out_of_memory(reason);
    if (!tls_options_have_authorities(options) && SSL_CTX_set_default_verify_paths(context) != 1)
        return tls_config_out_of_memory(reason);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    config->verifies = true;
    config->sessions.max =
        options->max_sessions != 0 ? options->max_sessions : TLS_DEFAULT_SESSIONS;
    SSL_CTX_set_session_cache_mode(
        context, options->keeps_no_sessions ? SSL_SESS_CACHE_OFF
                                            : SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    if (!options->keeps_no_sessions)
        SSL_CTX_sess_set_new_cb(context, tls_keep_session);
    return 0;
}

/* A digest of the demands on clients: 2. */
static bool tls_config_digest_demands(const bide_tls_config *config,
                                      const bide_tls_options *options,
                                      unsigned char digest[static EVP_MAX_MD_SIZE], unsigned *size)
{
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    unsigned char clients = (unsigned char)options->clients;
    const char *directory =
        options->authorities_directory != NULL ? options->authorities_directory : "";
    bool done = sum != NULL && EVP_DigestInit_ex(sum, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(sum, &clients, 1) == 1 &&
                EVP_DigestUpdate(sum, directory, strlen(directory) + 1) == 1;
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

/* Makes the tickets of one context valid for the other. */
static bool tls_config_share_tickets(SSL_CTX *context, SSL_CTX *with)
{
    unsigned char keys[TLS_TICKET_KEYS_SIZE];
    bool done = SSL_CTX_get_tlsext_ticket_keys(with, keys, sizeof keys) == 1 &&
                SSL_CTX_set_tlsext_ticket_keys(context, keys, sizeof keys) == 1;
    OPENSSL_cleanse(keys, sizeof keys);
    return done;
}

static int tls_config_set_up_server(bide_tls_config *config, const bide_tls_options *options,
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
        return tls_config_invalid("a server without a certificate", reason);
    if (options->stapling != BIDE_TLS_STAPLING_NONE)
        return tls_config_invalid("an option for clients is set for a server", reason);
    if (options->clients > BIDE_TLS_CLIENTS_REQUIRED ||
        (options->clients != BIDE_TLS_CLIENTS_ANONYMOUS && !tls_options_have_authorities(options)))
        return tls_config_invalid(
            "clients must present a certificate, but no authority is configured", reason);
    if (options->resumes != NULL && !options->resumes->is_server)
        return tls_config_invalid("a server cannot resume the sessions of a client's config",
                                  reason);
    SSL_CTX_set_verify(context, modes[options->clients], NULL);
    config->verifies = options->clients != BIDE_TLS_CLIENTS_ANONYMOUS;
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 1); /* a second would add to the memory of idle connections */
    SSL_CTX_set_cert_cb(context, tls_select_certificate, config);
    bide_tls_status_serve_(config);
    SSL_CTX_set_tlsext_servername_callback(context, tls_check_server_name);
    SSL_CTX_set_tlsext_servername_arg(context, config);
    if (!tls_config_digest_demands(config, options, digest, &size) ||
        SSL_CTX_set_session_id_context(context, digest, size) != 1 ||
        (options->resumes != NULL && !tls_config_share_tickets(context, options->resumes->context)))
        return tls_config_out_of_memory(reason);
    return 0;
}

/*
 * Looks up functions that OpenSSL would otherwise look up for the first connection. Its first look-up of each kind finds all functions of
 * that kind; if memory is short then, it finds none for as long as the process runs. So the config fails, and not each connection.
 */
static bool tls_find_functions(void)
{
    EVP_KDF *derivation = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
    EVP_MAC *code = EVP_MAC_fetch(NULL, "HMAC", NULL);
    bool done = derivation != NULL && code != NULL;
    EVP_KDF_free(derivation);
    EVP_MAC_free(code);
    return done;
}

static int tls_config_create(bide_tls_config **made, const bide_tls_options *options,
                             bool is_server, const char **reason)
{
    static const bide_tls_options none;
    const char *ignored;
    if (options == NULL)
        options = &none;
    if (reason == NULL)
        reason = &ignored;
    ERR_clear_error();
    bide_tls_config *config = OPENSSL_zalloc(sizeof *config);
    if (config == NULL)
        return tls_config_out_of_memory(reason);
    bide_atomic_init(&config->references, 1);
    bide_atomic_init(&config->sessions.lock, 0);
    config->is_server = is_server;
    config->key_log = -1;
    config->context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    int status = config->context == NULL || !tls_find_functions()
                     ? tls_config_out_of_memory(reason)
                     : tls_config_set_up(config, options, reason);
    if (status == 0)
        status = is_server ? tls_config_set_up_server(config, options, reason)
                           : tls_config_set_up_client(config, options, reason);
    if (status != 0) {
        bide_tls_config_release(config);
        return status;
    }
    *made = config;
    return 0;
}

const char bide_link_with_lbide_tls_ = 0;

#undef bide_tls_client_create
#undef bide_tls_server_create

int bide_tls_client_create(bide_tls_config **config, const bide_tls_options *options,
                           const char **reason)
{
    return tls_config_create(config, options, false, reason);
}

int bide_tls_server_create(bide_tls_config **config, const bide_tls_options *options,
                           const char **reason)
{
    return tls_config_create(config, options, true, reason);
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
    /* acq_rel: 1, partners are the releases of the other references */
    size_t before = config != NULL ? bide_atomic_fetch_sub(&config->references, 1, acq_rel) : 0;
    bide_assert(config == NULL || before != 0);
    if (before != 1)
        return;
    bide_tls_sessions_free_(&config->sessions);
    SSL_CTX_free(config->context);
    if (config->key_log >= 0)
        close(config->key_log);
    bide_tls_identities_free_(&config->proofs);
    for (char **protocol = config->protocols; protocol != NULL && *protocol != NULL; protocol++)
        OPENSSL_free(*protocol);
    OPENSSL_free(config->protocols);
    OPENSSL_free(config->wire);
    OPENSSL_free(config);
}
