/*
 * Connections: OpenSSL's state machine between the stream above and the stream below.
 *
 *     reader    attempt (SSL_read)  <-> fill   (read below)
 *     writer    encrypt (SSL_write)  -> flush  (write below)
 *
 * 1. One coroutine reads and one writes, perhaps on two threads. The lock covers each call of OpenSSL
 *    and the list of chunks, which both have in common; nobody waits while it is held. The input is the
 *    reader's alone, because OpenSSL reads for nobody else: it does not renegotiate.
 * 2. No call of OpenSSL waits for output (flow.c, 2). What reading has to send stays in the list until
 *    the writer comes by. More than TLS_UNASKED of that is the other side's fault, for which the
 *    connection fails: so the list is bounded, by that and what the writer has encrypted, TLS_BATCH.
 * 3. What has been encrypted is a part of what the other side gets, in this order: it cannot be taken
 *    back. So a write counts what it has encrypted, and what was not sent when it was cut short is sent
 *    by the next write, or by the end of output.
 * 4. A failure stays: each later operation ends with it. The reader that finds it sends the alert which
 *    OpenSSL has written, unless a writer is at work, which does it then.
 * 5. A server's tickets of TLS 1.3 come after the handshake, and nobody waits for them. They go with its
 *    first write. So a handshake does not wait for a client that does not read yet.
 * 6. Closing frees at once what nobody uses; otherwise whoever leaves last does. `roles` says who is at
 *    work, under the lock.
 */
#include "inside.h"

#include "../as_data.h"
#include "../../coroutine/lock.h"

#include "bide/coroutine.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum {
    READING = 1,
    WRITING = 2,

    GATHERED = 4096,   /* smaller pieces are copied into one record */
    RECORD_MORE = 128, /* bytes that a record has besides, at most */
};

/* An operation of the stream above. */
typedef struct tls_operation {
    bide_task task;
    bide_tls *tls;
    char *data; /* to read into */
    size_t size;
    size_t count; /* of bytes that were read, or encrypted */
    const struct iovec
        *vectors; /* what is left to be written; of the first without `offset` bytes */
    size_t offset;
    size_t rest;
    struct iovec only;
    int status;
    int flushed;
    uint8_t roles; /* in which it is at work */
    bool is_end;   /* and then comes close_notify */
} tls_operation;

_Static_assert(sizeof(tls_operation) <= sizeof(bide_stream_operation), "room of an operation");

static tls_operation *operation_in(bide_stream_operation *operation)
{
    return (tls_operation *)(void *)operation->room;
}

/* ---- Who is at work ---- */

/* Frees what a connection has, which nobody uses any more. 6 */
static void free_rest(bide_tls *tls, SSL *ssl)
{
    if (tls->failure == 0) /* otherwise OpenSSL would have its session resumed no more */
        SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
    tls_flow_free(tls);
    OPENSSL_free(tls->name);
    tls->name = NULL;
    bide_tls_config_release(tls->config);
    tls->config = NULL;
}

/* 0: it is at work now; or what the operation ends with. */
static int enter(bide_tls *tls, uint8_t role)
{
    int status = 0;
    lock_take(&tls->lock);
    if (tls->ssl == NULL || tls->is_closing)
        status = -EPIPE;
    else if ((tls->roles & role) == 0)
        tls->roles |= role;
    else
        status = tls->failure != 0 ? tls->failure : -EBUSY; /* 4 */
    lock_free(&tls->lock);
    if (BIDE_UNLIKELY(status == -EBUSY))
        bide_platform.misuse(role == READING ? "two coroutines read at once"
                                             : "two coroutines write at once",
                             "bide_tls", __FILE__, __LINE__);
    return status;
}

static void leave(bide_tls *tls, uint8_t role)
{
    SSL *unused = NULL;
    lock_take(&tls->lock);
    tls->roles &= (uint8_t)~role;
    if ((role & WRITING) != 0 && !tls->is_flushing)
        tls_flow_tidy(tls);
    if (tls->is_closing && tls->roles == 0) {
        unused = tls->ssl;
        tls->ssl = NULL;
    }
    lock_free(&tls->lock);
    if (unused != NULL)
        free_rest(tls, unused);
}

/* ---- Sending what OpenSSL has written ---- */

static bool has_output(bide_tls *tls)
{
    lock_take(&tls->lock);
    bool has = tls->pending != 0;
    lock_free(&tls->lock);
    return has;
}

static bide_awaiter *begin_flushing(bide_tls *tls)
{
    lock_take(&tls->lock);
    bide_awaiter *awaiter = tls_flush_begin(tls);
    lock_free(&tls->lock);
    return awaiter;
}

static void end_flushing(bide_tls *tls)
{
    lock_take(&tls->lock);
    tls_flush_end(tls);
    lock_free(&tls->lock);
}

/* ---- The handshake ---- */

static int set_name(bide_tls *tls, const char *name)
{
    X509_VERIFY_PARAM *parameters = SSL_get0_param(tls->ssl);
    size_t size = strlen(name);
    if (size > 1 && name[size - 1] == '.') /* the root, which is in no certificate */
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

static int open_client(bide_tls *tls, const char *name)
{
    SSL_set_connect_state(tls->ssl);
    if (name == NULL || name[0] == '\0') {
        tls->reason = "no name to verify";
        return tls->config->verifies ? -EINVAL : 0;
    }
    int status = set_name(tls, name);
    SSL_SESSION *session =
        status == 0 ? tls_sessions_take(&tls->config->sessions, tls->name) : NULL;
    if (session != NULL) {
        SSL_set_session(tls->ssl, session); /* (one that is too old is not used) */
        SSL_SESSION_free(session);
    }
    return status;
}

static int open_ssl(bide_tls *tls, const char *name)
{
    BIO *flow = tls_flow_create(tls);
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
    return open_client(tls, name);
}

/* Makes the connection. */
static int open_connection(bide_tls *tls, bide_tls_config *config, const char *name)
{
    if (config->is_server != tls->is_server) {
        tls->reason = "a client's config for a server, or the other way about";
        return -EINVAL;
    }
    ERR_clear_error();
    bide_tls_config_keep(config);
    tls->config = config;
    int status = open_ssl(tls, name);
    ERR_clear_error();
    if (status == -ENOMEM)
        tls->reason = "out of memory";
    if (tls->ssl == NULL) { /* there is nothing that closing would free */
        bide_tls_config_release(config);
        tls->config = NULL;
        return status;
    }
    tls->failure = status;
    tls->roles = READING | WRITING;
    return status;
}

/* One step: 0 if it is done, -EAGAIN if it has to read. */
static int shake_hands(bide_tls *tls)
{
    lock_take(&tls->lock);
    tls_flow_tidy(tls); /* (so that a ticket does not keep what a certificate needed) */
    ERR_clear_error();
    int result = SSL_do_handshake(tls->ssl);
    int status = result == 1 ? 0 : tls_status(tls, result);
    if (status == 1) { /* close_notify, in the middle of it */
        tls->reason = "the other side has closed in the handshake";
        status = -ECONNABORTED;
    }
    if (status == 0 && tls->failure != 0)
        status = tls->failure;
    if (status != 0 && status != -EAGAIN) {
        tls->failure = status;
        if (tls->name != NULL)
            tls_sessions_drop(&tls->config->sessions, tls->name);
    }
    lock_free(&tls->lock);
    return status;
}

/* Is there something that has to go out before the handshake goes on? 5 */
static bool has_to_flush(const bide_tls_handshake *self)
{
    const bide_tls *tls = self->tls;
    bool is_ticket = self->status == 0 && tls->is_server && SSL_version(tls->ssl) == TLS1_3_VERSION;
    return tls->pending != 0 && !is_ticket;
}

bide_coroutine(handshake_body)
{
    bide_begin(handshake_body, bide_tls_handshake * self);
    self->status = open_connection(self->tls, self->config, self->name);
    if (self->status < 0)
        bide_return(self->status);
    for (;;) {
        self->status = shake_hands(self->tls);
        self->flushed = 0;
        while (self->flushed == 0 && has_to_flush(self)) {
            bide_await_status(self->flushed, begin_flushing(self->tls));
            end_flushing(self->tls);
        }
        if (self->status != -EAGAIN && self->status != 0)
            bide_return(self->status);
        if (self->flushed < 0 || self->status == 0)
            bide_return(self->flushed);
        bide_await_status(self->flushed, tls_fill_begin(self->tls));
        tls_fill_end(self->tls, self->flushed);
        if (self->flushed < 0)
            bide_return(self->flushed);
    }
    bide_finally();
    if (self->tls->is_flushing)
        end_flushing(self->tls);
    if (self->tls->is_filling)
        tls_fill_end(self->tls, -ECANCELED);
    if (self->tls->ssl != NULL)
        leave(self->tls, READING | WRITING);
    bide_end();
}

static bide_awaiter *begin_handshake(bide_tls_handshake *handshake, bide_tls *tls,
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
    return bide_task_init(&handshake->task, &handshake_body);
}

bide_awaiter *bide_tls_connect(bide_tls_handshake *handshake, bide_tls *tls,
                               bide_tls_config *config, bide_stream below, const char *name)
{
    handshake->name = name;
    return begin_handshake(handshake, tls, config, below, false);
}

bide_awaiter *bide_tls_accept(bide_tls_handshake *handshake, bide_tls *tls, bide_tls_config *config,
                              bide_stream below)
{
    handshake->name = NULL;
    return begin_handshake(handshake, tls, config, below, true);
}

/* ---- Reading ---- */

/* The operation has ended, or is destroyed: what it has begun below was withdrawn. */
static void withdraw(tls_operation *self)
{
    bide_tls *tls = self->tls;
    if ((self->roles & WRITING) != 0 && tls->is_flushing)
        end_flushing(tls);
    if ((self->roles & READING) != 0 && tls->is_filling)
        tls_fill_end(tls, -ECANCELED);
    if (self->roles != 0)
        leave(tls, self->roles);
}

/* Is there anything to be had without reading below? */
static bool has_input(bide_tls *tls)
{
    lock_take(&tls->lock);
    bool has = tls->input_begin != tls->input_end || tls->has_ended || tls->failure != 0 ||
               SSL_pending(tls->ssl) > 0 ||
               (SSL_get_shutdown(tls->ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
    lock_free(&tls->lock);
    return has;
}

/* Decrypts what there is, up to the size. Under the lock. */
static int decrypt(tls_operation *self)
{
    bide_tls *tls = self->tls;
    do {
        size_t count = 0;
        int result =
            SSL_read_ex(tls->ssl, self->data + self->count, self->size - self->count, &count);
        int status = result == 1 ? 0 : tls_status(tls, result);
        self->count += count;
        if (status != 0)
            return status;
    } while (self->count != self->size && tls->input_begin != tls->input_end);
    return 0;
}

static int attempt_read(tls_operation *self)
{
    bide_tls *tls = self->tls;
    lock_take(&tls->lock);
    size_t pending = tls->pending;
    ERR_clear_error();
    int status = tls->failure != 0 ? tls->failure : decrypt(self);
    tls->unasked += tls->pending - pending;
    if (tls->unasked > TLS_UNASKED && tls->failure == 0) { /* 2 */
        tls->reason = "the other side asks for more than it reads";
        tls->failure = -EPROTO;
        status = self->count != 0 ? 0 : -EPROTO;
    }
    lock_free(&tls->lock);
    if (status == 1 || self->count != 0) /* what else there is comes with the next */
        return 0;
    return status;
}

static bool read_ready(bide_awaiter *awaiter)
{
    tls_operation *self = bide_container_of(awaiter, tls_operation, task.frame.awaiter);
    int status = enter(self->tls, READING);
    if (status == 0) {
        status = has_input(self->tls) ? attempt_read(self) : -EAGAIN;
        leave(self->tls, READING);
        if (status != 0 && status != -EPIPE) /* the body goes on, or sends an alert */
            return false;
    }
    self->task.frame.error = status;
    return true;
}

static bide_next read_operation_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const read_operation_type_ = &bide_task_type;
static const bide_coroutine_code read_operation_code = {read_operation_step_, "tls_read", __FILE__,
                                                        &read_operation_type_, NULL};
static const bide_point read_operation_start =
    BIDE_POINT_START_READY(read_ready, &read_operation_code);

/* The alert is to be sent by this reader: it writes as well, then. 4 */
static bool takes_alert(bide_tls *tls)
{
    lock_take(&tls->lock);
    bool takes = tls->failure != 0 && tls->pending != 0 && (tls->roles & WRITING) == 0;
    if (takes)
        tls->roles |= WRITING;
    lock_free(&tls->lock);
    return takes;
}

bide_body(read_operation)
{
    bide_begin(read_operation, tls_operation * self);
    self->roles = 0;
    self->status = enter(self->tls, READING);
    if (self->status < 0)
        bide_return(self->status);
    self->roles = READING;
    for (;;) {
        self->status = has_input(self->tls) ? attempt_read(self) : -EAGAIN;
        if (self->status != -EAGAIN)
            break;
        bide_await_status(self->status, tls_fill_begin(self->tls));
        tls_fill_end(self->tls, self->status);
        if (self->status < 0)
            bide_return(self->status);
    }
    if (self->status < 0 && takes_alert(self->tls)) {
        self->roles |= WRITING;
        bide_await(begin_flushing(self->tls));
        end_flushing(self->tls);
    }
    bide_return(self->status);
    bide_finally();
    withdraw(self);
    bide_end();
}

static bide_awaiter *stream_read(bide_stream stream, bide_stream_operation *operation, void *data,
                                 size_t size)
{
    tls_operation *self = operation_in(operation);
    self->tls = stream.object;
    self->data = data;
    self->size = size;
    self->count = 0;
    return bide_task_init(&self->task, &read_operation_start);
}

/* ---- Writing ---- */

/* Leaves behind what was encrypted. */
static void advance(tls_operation *self, size_t count)
{
    self->count += count;
    self->rest -= count;
    self->offset += count;
    while (self->rest != 0 && self->offset >= self->vectors->iov_len) {
        self->offset -= self->vectors->iov_len;
        self->vectors++;
    }
}

/* What comes next as one record: where it stands, or copied together from small pieces. */
static size_t next_record(const tls_operation *self, char *copy, const char **data)
{
    const struct iovec *vector = self->vectors;
    size_t size = vector->iov_len - self->offset;
    *data = (const char *)vector->iov_base + self->offset;
    if (size >= GATHERED || size == self->rest)
        return size;
    memcpy(copy, *data, size);
    *data = copy;
    for (size_t left = self->rest - size; left != 0 && size != GATHERED;) {
        vector++;
        size_t count = vector->iov_len < GATHERED - size ? vector->iov_len : GATHERED - size;
        memcpy(copy + size, vector->iov_base, count);
        size += count;
        left -= count;
    }
    return size;
}

/* Encrypts the next of what is to be written. Under the lock. */
static int encrypt_next(tls_operation *self, size_t most)
{
    bide_tls *tls = self->tls;
    char copy[GATHERED];
    const char *data;
    size_t count = 0;
    size_t size = next_record(self, copy, &data);
    int result = SSL_write_ex(tls->ssl, data, size < most ? size : most, &count);
    int status = result == 1 ? 0 : tls_status(tls, result);
    advance(self, count);
    return status == -EAGAIN || status == 1 ? -EPROTO : status;
}

/* Encrypts as much as is to go out at once, which may be nothing while there is much already. 2 */
static int encrypt(tls_operation *self)
{
    bide_tls *tls = self->tls;
    int status = 0;
    lock_take(&tls->lock);
    ERR_clear_error();
    if (tls->failure != 0)
        status = tls->failure;
    else if ((SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN) != 0)
        status = self->rest != 0 ? -EPIPE : 0;
    else if (tls->pending < GATHERED && self->rest != 0) {
        size_t most = self->rest < TLS_BATCH ? self->rest : TLS_BATCH;
        size_t until = self->count + most;
        tls_flow_reserve(tls, most + RECORD_MORE * (most / SSL3_RT_MAX_PLAIN_LENGTH + 2));
        while (status == 0 && self->count != until)
            status = encrypt_next(self, until - self->count);
    }
    lock_free(&tls->lock);
    return status;
}

/* Says that this was all. */
static void notify_close(bide_tls *tls)
{
    lock_take(&tls->lock);
    ERR_clear_error();
    if (tls->failure == 0 && (SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN) == 0)
        SSL_shutdown(tls->ssl);
    ERR_clear_error();
    lock_free(&tls->lock);
}

bide_coroutine(write_body)
{
    bide_begin(write_body, tls_operation * self);
    self->status = enter(self->tls, WRITING);
    if (self->status < 0)
        bide_return(self->status);
    self->roles = WRITING;
    do {
        self->status = encrypt(self);
        if (self->status == 0 && self->rest == 0 && self->is_end)
            notify_close(self->tls);
        while (has_output(self->tls)) {
            bide_await_status(self->flushed, begin_flushing(self->tls));
            end_flushing(self->tls);
            if (self->flushed < 0)
                bide_return(self->flushed);
        }
    } while (self->status == 0 && self->rest != 0);
    bide_return(self->status);
    bide_finally();
    withdraw(self);
    bide_end();
}

static bide_awaiter *begin_write(tls_operation *self, bide_stream stream,
                                 const struct iovec *vectors, size_t size)
{
    self->tls = stream.object;
    self->vectors = vectors;
    self->offset = 0;
    self->rest = 0;
    self->count = 0;
    self->roles = 0;
    self->is_end = false;
    self->rest = size;
    advance(self, 0);
    return bide_task_init(&self->task, &write_body);
}

static bide_awaiter *stream_write(bide_stream stream, bide_stream_operation *operation,
                                  const void *data, size_t size)
{
    tls_operation *self = operation_in(operation);
    self->only.iov_base = io_as_data(data);
    self->only.iov_len = size;
    return begin_write(self, stream, &self->only, size);
}

static bide_awaiter *stream_write_vectors(bide_stream stream, bide_stream_operation *operation,
                                          const struct iovec *vectors, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += vectors[i].iov_len;
    return begin_write(operation_in(operation), stream, vectors, size);
}

static bide_awaiter *stream_end_output(bide_stream stream, bide_stream_operation *operation)
{
    tls_operation *self = operation_in(operation);
    bide_awaiter *awaiter = begin_write(self, stream, NULL, 0);
    self->is_end = true;
    return awaiter;
}

/* ---- The stream ---- */

static size_t stream_count(const bide_stream_operation *operation)
{
    return ((const tls_operation *)(const void *)operation->room)->count;
}

static int stream_close(bide_stream stream)
{
    return bide_tls_close(stream.object);
}

bide_stream bide_stream_of_tls(bide_tls *tls)
{
    static const bide_stream_table table = {
        .name = "TLS",
        .read = stream_read,
        .write = stream_write,
        .write_vectors = stream_write_vectors,
        .count = stream_count,
        .end_output = stream_end_output,
        .close = stream_close,
    };
    bide_stream stream = {&table, tls};
    return stream;
}

int bide_tls_close(bide_tls *tls)
{
    SSL *unused = NULL;
    if (tls->ssl == NULL)
        return -EBADF;
    lock_take(&tls->lock);
    bool was_closing = tls->is_closing;
    tls->is_closing = true;
    if (tls->roles == 0) {
        unused = tls->ssl;
        tls->ssl = NULL;
    }
    lock_free(&tls->lock);
    if (was_closing)
        return -EBADF;
    int status = bide_stream_close(tls->below);
    if (unused != NULL)
        free_rest(tls, unused);
    return status;
}

/* ---- What was agreed on ---- */

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
