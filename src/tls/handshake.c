/* The handshake of a connection, and the results of it. connection.c has the argument. */
#include "internal.h"

#include "../coroutine/lock.h"

#include "bide/coroutine.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

/* ---- The handshake ---- */

static int tls_set_name(bide_tls *tls, const char *name)
{
    X509_VERIFY_PARAM *parameters = SSL_get0_param(tls->ssl);
    size_t size = strlen(name);
    if (size > 1 && name[size - 1] == '.') /* the root's dot, which certificates omit */
        size--;
    tls->name = OPENSSL_strndup(name, size);
    if (tls->name == NULL)
        return -ENOMEM;
    if (X509_VERIFY_PARAM_set1_ip_asc(parameters, tls->name) == 1)
        return 0;
    ERR_clear_error();
    X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_host(parameters, tls->name, size) != 1 ||
        SSL_set_tlsext_host_name(tls->ssl, tls->name) != 1)
        return -ENOMEM;
    return 0;
}

/* Offers one protocol of the config's in place of all. */
static int tls_set_protocol(bide_tls *tls, const char *protocol)
{
    unsigned char wire[1 + UCHAR_MAX];
    char **own = tls->config->protocols;
    while (own != NULL && *own != NULL && strcmp(*own, protocol) != 0)
        own++;
    if (own == NULL || *own == NULL) {
        tls->reason = "the protocol to be offered is not one of the config's";
        return -EPROTONOSUPPORT;
    }
    size_t size = strlen(protocol); /* (1 to 255, as the config has it) */
    wire[0] = (unsigned char)size;
    memcpy(wire + 1, protocol, size);
    return SSL_set_alpn_protos(tls->ssl, wire, (unsigned)size + 1) == 0 ? 0 : -ENOMEM;
}

static int tls_open_client(bide_tls *tls, const char *name, const char *protocol)
{
    SSL_set_connect_state(tls->ssl);
    int offered = protocol != NULL ? tls_set_protocol(tls, protocol) : 0;
    if (offered < 0)
        return offered;
    if (name == NULL || name[0] == '\0') {
        tls->reason = "no name to verify";
        return tls->config->verifies ? -EINVAL : 0;
    }
    int status = tls_set_name(tls, name);
    SSL_SESSION *session =
        status == 0 ? bide_tls_sessions_take_(&tls->config->sessions, tls->name) : NULL;
    if (session != NULL) {
        SSL_set_session(tls->ssl, session); /* OpenSSL ignores one that has expired */
        SSL_SESSION_free(session);
    }
    return status;
}

static int tls_open_ssl(bide_tls *tls, const bide_tls_handshake *handshake)
{
    BIO *flow = bide_tls_flow_create_(tls);
    tls->ssl = SSL_new(tls->config->context);
    if (flow == NULL || tls->ssl == NULL || SSL_set_app_data(tls->ssl, tls) != 1) {
        BIO_free(flow);
        return -ENOMEM;
    }
    SSL_set_bio(tls->ssl, flow, flow);
    if (tls->is_server) {
        SSL_set_accept_state(tls->ssl);
        return 0;
    }
    return tls_open_client(tls, handshake->name, handshake->protocol);
}

/* Creates OpenSSL's connection. */
static int tls_open_connection(const bide_tls_handshake *handshake)
{
    bide_tls *tls = handshake->tls;
    bide_tls_config *config = handshake->config;
    if (config->is_server != tls->is_server) {
        tls->reason = "a client's config is used for a server, or a server's for a client";
        return -EINVAL;
    }
    ERR_clear_error();
    bide_tls_config_retain(config);
    tls->config = config;
    int status = tls_open_ssl(tls, handshake);
    ERR_clear_error();
    if (status == -ENOMEM)
        tls->reason = "out of memory";
    if (tls->ssl == NULL) { /* bide_tls_close would have nothing to free */
        bide_tls_config_release(config);
        tls->config = NULL;
        return status;
    }
    tls->failure = status;
    tls->roles = TLS_READING | TLS_WRITING;
    return status;
}

/* One step of the handshake: 0 if it is complete, -EAGAIN if it has to read. */
static int tls_handshake_attempt(bide_tls *tls)
{
    lock_take(&tls->lock);
    bide_tls_flow_tidy_(tls); /* so that a ticket does not retain the chunk of a certificate */
    ERR_clear_error();
    int result = SSL_do_handshake(tls->ssl);
    int status = result == 1 ? 0 : bide_tls_status_(tls, result);
    if (status == 1) { /* close_notify during the handshake */
        tls->reason = "the peer closed the connection during the handshake";
        status = -ECONNABORTED;
    }
    if (status == 0 && tls->failure != 0)
        status = tls->failure;
    if (status != 0 && status != -EAGAIN) {
        tls->failure = status;
        if (tls->name != NULL)
            bide_tls_sessions_drop_(&tls->config->sessions, tls->name);
    }
    lock_free(&tls->lock);
    return status;
}

/* True if output has to be flushed before the handshake continues. Tickets do not: 5. */
static bool tls_handshake_must_flush(const bide_tls_handshake *self)
{
    const bide_tls *tls = self->tls;
    bool is_ticket = self->status == 0 && tls->is_server && SSL_version(tls->ssl) == TLS1_3_VERSION;
    return tls->pending != 0 && !is_ticket;
}

bide_coroutine(tls_handshake_body)
{
    bide_begin(tls_handshake_body, bide_tls_handshake * self);
    if (!self->tls
             ->is_server) /* the first request would wait for the acknowledgement of Finished */
        bide_stream_set_no_delay(self->tls->below);
    self->status = tls_open_connection(self);
    if (self->status < 0)
        bide_return(self->status);
    for (;;) {
        self->status = tls_handshake_attempt(self->tls);
        self->flushed = 0;
        while (self->flushed == 0 && tls_handshake_must_flush(self)) {
            bide_await_status(self->flushed, bide_tls_begin_flushing_(self->tls));
            bide_tls_end_flushing_(self->tls);
        }
        if (self->status != -EAGAIN && self->status != 0)
            bide_return(self->status);
        if (self->flushed < 0 || self->status == 0)
            bide_return(self->flushed);
        bide_await_status(self->flushed, bide_tls_fill_begin_(self->tls));
        bide_tls_fill_end_(self->tls, self->flushed);
        if (self->flushed < 0)
            bide_return(self->flushed);
    }
    bide_finally();
    if (self->tls->is_flushing)
        bide_tls_end_flushing_(self->tls);
    if (self->tls->is_filling)
        bide_tls_fill_end_(self->tls, -ECANCELED);
    if (self->tls->ssl != NULL)
        bide_tls_leave_(self->tls, TLS_READING | TLS_WRITING);
    bide_end();
}

static bide_awaiter *tls_start_handshake(bide_tls_handshake *handshake, bide_tls *tls,
                                         bide_tls_config *config, bide_stream below, bool is_server)
{
    memset(tls, 0, offsetof(bide_tls, room));
    tls->below = below;
    tls->is_server = is_server;
    tls->input = tls->room;
    tls->input_size = BIDE_TLS_ROOM_;
    bide_atomic_init(&tls->lock, LOCK_FREE);
    handshake->tls = tls;
    handshake->config = config;
    handshake->protocol = NULL;
    return bide_task_init(&handshake->task, &tls_handshake_body);
}

bide_awaiter *bide_tls_connect(bide_tls_handshake *handshake, bide_tls *tls,
                               bide_tls_config *config, bide_stream below, const char *name)
{
    handshake->name = name;
    return tls_start_handshake(handshake, tls, config, below, false);
}

bide_awaiter *bide_tls_accept(bide_tls_handshake *handshake, bide_tls *tls, bide_tls_config *config,
                              bide_stream below)
{
    handshake->name = NULL;
    return tls_start_handshake(handshake, tls, config, below, true);
}

/* ---- Negotiated parameters ---- */

const char *bide_tls_protocol(const bide_tls *tls)
{
    const unsigned char *chosen = NULL;
    unsigned size = 0;
    if (tls->ssl == NULL || tls->config->protocols == NULL)
        return NULL;
    SSL_get0_alpn_selected(tls->ssl, &chosen, &size);
    for (char **protocol = tls->config->protocols; *protocol != NULL; protocol++) {
        if (size == strlen(*protocol) && memcmp(*protocol, chosen, size) == 0)
            return *protocol;
    }
    return NULL;
}

const char *bide_tls_server_name(const bide_tls *tls)
{
    return tls->ssl != NULL ? SSL_get_servername(tls->ssl, TLSEXT_NAMETYPE_host_name) : NULL;
}

const char *bide_tls_version(const bide_tls *tls)
{
    return tls->ssl != NULL ? SSL_get_version(tls->ssl) : "";
}

bool bide_tls_was_resumed(const bide_tls *tls)
{
    return tls->ssl != NULL && SSL_session_reused(tls->ssl) == 1;
}

bool bide_tls_peer(const bide_tls *tls, char *text, size_t size)
{
    X509 *certificate = tls->ssl != NULL ? SSL_get0_peer_certificate(tls->ssl) : NULL;
    BIO *memory = certificate != NULL ? BIO_new(BIO_s_mem()) : NULL;
    int count = 0;
    if (memory != NULL && size > 1 &&
        X509_NAME_print_ex(memory, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0)
        count = BIO_read(memory, text, (int)(size < INT32_MAX ? size - 1 : INT32_MAX));
    BIO_free(memory);
    if (size != 0)
        text[count > 0 ? count : 0] = '\0';
    return certificate != NULL;
}
