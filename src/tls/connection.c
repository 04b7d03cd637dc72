/*
 * Connections: OpenSSL's state machine between the stream above and the stream below.
 *
 *     reader    attempt (SSL_read)  <-> fill   (read below)
 *     writer    encrypt (SSL_write)  -> flush  (write below)
 *
 * One coroutine may read while another writes, also on another thread. A connection may be closed
 * while they do.
 *
 * 1. The lock covers each call of OpenSSL, and the list of chunks, which reader and writer share. No
 *    coroutine suspends while it holds the lock. The reader owns the input, because OpenSSL reads
 *    only on its behalf: it does not renegotiate.
 * 2. No call of OpenSSL blocks on output (flow.c, 2). Output that reading causes stays in the list
 *    until a writer flushes it. A peer that causes more than TLS_UNASKED of it violates the protocol,
 *    and the connection fails. So the list is bounded by TLS_UNASKED and by the writer's TLS_BATCH.
 * 3. Encrypted bytes are a part of the sequence that the peer expects, so they cannot be taken back.
 *    A write counts the bytes that it has encrypted. If a write is cancelled, the next write, or the
 *    end of output, sends the rest.
 * 4. A failure is permanent: each later operation ends with it. The reader that detects it flushes
 *    the alert that OpenSSL has written. If a writer is active, the writer does that.
 * 5. A server's TLS 1.3 tickets follow the handshake, and no operation waits for them. The server's
 *    first write flushes them. So a handshake does not wait for a client that does not read yet.
 * 6. Closing frees an idle connection at once. Otherwise the last operation that leaves frees it.
 *    `roles` has the active ones, under the lock.
 */
#include "internal.h"

#include "../io/const_cast.h"
#include "../net/vectors.h"
#include "../coroutine/lock.h"

#include "bide/coroutine.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum {
    TLS_GATHER_SIZE = 4096,    /* smaller pieces are copied into one record */
    TLS_RECORD_OVERHEAD = 128, /* the maximum overhead of a record, in bytes */
};

/* An operation of the stream above. */
typedef struct tls_operation {
    bide_task task;
    bide_tls *tls;
    char *data; /* to read into */
    size_t size;
    size_t count;                /* bytes that were read or encrypted */
    const struct iovec *vectors; /* the rest to be written; `offset` bytes of the first are done */
    size_t offset;
    size_t rest;
    struct iovec only;
    int status;
    int flushed;
    uint8_t roles; /* that it is active in */
    bool is_end;   /* send close_notify afterwards */
} tls_operation;

_Static_assert(sizeof(tls_operation) <= sizeof((bide_stream_operation *)0)->room,
               "room of an operation");

static tls_operation *tls_operation_in(bide_stream_operation *operation)
{
    return (tls_operation *)(void *)operation->room;
}

/* ---- Roles ---- */

/* Frees the resources of a connection that no operation uses: 6. */
static void tls_connection_free(bide_tls *tls, SSL *ssl)
{
    bide_assert(tls->roles == 0 && !tls->is_flushing && !tls->is_filling);
    if (tls->failure == 0) /* otherwise OpenSSL would make the session not resumable */
        SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
    bide_tls_flow_free_(tls);
    OPENSSL_free(tls->name);
    tls->name = NULL;
    bide_tls_config_release(tls->config);
    tls->config = NULL;
}

/* Makes an operation active in a role. A negative errno: the operation ends with it. */
static int tls_enter(bide_tls *tls, uint8_t role)
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
        bide_platform.misuse(role == TLS_READING ? "two coroutines read at once"
                                                 : "two coroutines write at once",
                             "bide_tls", __FILE__, __LINE__);
    return status;
}

void bide_tls_leave_(bide_tls *tls, uint8_t role)
{
    SSL *unused = NULL;
    lock_take(&tls->lock);
    bide_assert((tls->roles & role) == role);
    tls->roles &= (uint8_t)~role;
    if ((role & TLS_WRITING) != 0 && !tls->is_flushing)
        bide_tls_flow_tidy_(tls);
    if (tls->is_closing && tls->roles == 0) {
        unused = tls->ssl;
        tls->ssl = NULL;
    }
    lock_free(&tls->lock);
    if (unused != NULL)
        tls_connection_free(tls, unused);
}

/* ---- Flushing ---- */

static bool tls_has_output(bide_tls *tls)
{
    lock_take(&tls->lock);
    bool has = tls->pending != 0;
    lock_free(&tls->lock);
    return has;
}

bide_awaiter *bide_tls_begin_flushing_(bide_tls *tls)
{
    lock_take(&tls->lock);
    bide_awaiter *awaiter = bide_tls_flush_begin_(tls);
    lock_free(&tls->lock);
    return awaiter;
}

void bide_tls_end_flushing_(bide_tls *tls)
{
    lock_take(&tls->lock);
    bide_tls_flush_end_(tls);
    lock_free(&tls->lock);
}

/* ---- Reading ---- */

/* Ends the operation, or cleans up if it is destroyed. The operation below has been withdrawn. */
static void tls_operation_withdraw(tls_operation *self)
{
    bide_tls *tls = self->tls;
    if ((self->roles & TLS_WRITING) != 0 && tls->is_flushing)
        bide_tls_end_flushing_(tls);
    if ((self->roles & TLS_READING) != 0 && tls->is_filling)
        bide_tls_fill_end_(tls, -ECANCELED);
    if (self->roles != 0)
        bide_tls_leave_(tls, self->roles);
}

/* True if an attempt can make progress without reading below. */
static bool tls_has_input(bide_tls *tls)
{
    lock_take(&tls->lock);
    bool has = tls->input_begin != tls->input_end || tls->has_ended || tls->failure != 0 ||
               SSL_pending(tls->ssl) > 0 ||
               (SSL_get_shutdown(tls->ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
    lock_free(&tls->lock);
    return has;
}

/* Decrypts the input that has arrived, up to the operation's size. Under the lock. */
static int tls_decrypt(tls_operation *self)
{
    bide_tls *tls = self->tls;
    do {
        size_t count = 0;
        int result =
            SSL_read_ex(tls->ssl, self->data + self->count, self->size - self->count, &count);
        int status = result == 1 ? 0 : bide_tls_status_(tls, result);
        self->count += count;
        if (status != 0)
            return status;
    } while (self->count != self->size && tls->input_begin != tls->input_end);
    return 0;
}

/* Counts the output that reading has caused since there were `pending` bytes: 2. Under the lock. */
static int tls_count_unasked(bide_tls *tls, size_t pending)
{
    tls->unasked += tls->pending - pending;
    if (tls->unasked <= TLS_UNASKED || tls->failure != 0)
        return 0;
    tls->reason = "the peer demands more replies than it reads";
    tls->failure = -EPROTO;
    return -EPROTO;
}

static int tls_attempt_read(tls_operation *self)
{
    bide_tls *tls = self->tls;
    lock_take(&tls->lock);
    size_t pending = tls->pending;
    ERR_clear_error();
    int status = tls->failure != 0 ? tls->failure : tls_decrypt(self);
    if (tls_count_unasked(tls, pending) != 0)
        status = -EPROTO;
    lock_free(&tls->lock);
    if (status == 1 || self->count != 0) /* an error is left to the next operation */
        return 0;
    return status;
}

bool bide_tls_has_input(bide_tls *tls)
{
    char byte;
    size_t count;
    int status = tls->ssl != NULL ? tls_enter(tls, TLS_READING) : -EPIPE;
    if (status != 0)
        return status != -EPIPE;
    lock_take(&tls->lock);
    size_t pending = tls->pending;
    ERR_clear_error();
    status = tls->failure;
    if (status == 0) {
        int result = SSL_peek_ex(tls->ssl, &byte, 1, &count);
        status = result == 1 ? 0 : bide_tls_status_(tls, result);
    }
    if (tls_count_unasked(tls, pending) != 0)
        status = -EPROTO;
    lock_free(&tls->lock);
    bide_tls_leave_(tls, TLS_READING);
    return status != -EAGAIN;
}

static bool tls_read_ready(bide_awaiter *awaiter)
{
    tls_operation *self = bide_container_of(awaiter, tls_operation, task.frame.awaiter);
    int status = tls_enter(self->tls, TLS_READING);
    if (status == 0) {
        status = tls_has_input(self->tls) ? tls_attempt_read(self) : -EAGAIN;
        bide_tls_leave_(self->tls, TLS_READING);
        if (status != 0 && status != -EPIPE) /* the body continues, or sends an alert */
            return false;
    }
    self->task.frame.error = status;
    return true;
}

static bide_next tls_read_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const tls_read_type_ = &bide_task_type;
static const bide_coroutine_code tls_read_code = {tls_read_step_, "tls_read", __FILE__,
                                                  &tls_read_type_, NULL};
static const bide_point tls_read_start = BIDE_POINT_START_READY(tls_read_ready, &tls_read_code);

/* True if this reader has to flush the alert: 4. It is active as a writer too, then. */
static bool tls_claim_alert(bide_tls *tls)
{
    lock_take(&tls->lock);
    bool claims = tls->failure != 0 && tls->pending != 0 && (tls->roles & TLS_WRITING) == 0;
    if (claims)
        tls->roles |= TLS_WRITING;
    lock_free(&tls->lock);
    return claims;
}

bide_body(tls_read)
{
    bide_begin(tls_read, tls_operation * self);
    self->roles = 0;
    self->status = tls_enter(self->tls, TLS_READING);
    if (self->status < 0)
        bide_return(self->status);
    self->roles = TLS_READING;
    for (;;) {
        self->status = tls_has_input(self->tls) ? tls_attempt_read(self) : -EAGAIN;
        if (self->status != -EAGAIN)
            break;
        bide_await_status(self->status, bide_tls_fill_begin_(self->tls));
        bide_tls_fill_end_(self->tls, self->status);
        if (self->status < 0)
            bide_return(self->status);
    }
    if (self->status < 0 && tls_claim_alert(self->tls)) {
        self->roles |= TLS_WRITING;
        bide_await(bide_tls_begin_flushing_(self->tls));
        bide_tls_end_flushing_(self->tls);
    }
    bide_return(self->status);
    bide_finally();
    tls_operation_withdraw(self);
    bide_end();
}

static bide_awaiter *tls_stream_read(bide_stream stream, bide_stream_operation *operation,
                                     void *data, size_t size)
{
    tls_operation *self = tls_operation_in(operation);
    self->tls = stream.object;
    self->data = data;
    self->size = size;
    self->count = 0;
    return bide_task_init(&self->task, &tls_read_start);
}

/* ---- Writing ---- */

/* Counts the next bytes as encrypted. */
static void tls_write_advance(tls_operation *self, size_t count)
{
    self->count += count;
    vectors_pass(&self->vectors, &self->offset, &self->rest, count);
}

/* The data of the next record: in place, or copied together from small pieces. */
static size_t tls_next_record(const tls_operation *self, char *copy, const char **data)
{
    const struct iovec *vector = self->vectors;
    size_t size = vector->iov_len - self->offset;
    *data = (const char *)vector->iov_base + self->offset;
    if (size >= TLS_GATHER_SIZE || size == self->rest)
        return size;
    memcpy(copy, *data, size);
    *data = copy;
    for (size_t left = self->rest - size; left != 0 && size != TLS_GATHER_SIZE;) {
        vector++;
        size_t count =
            vector->iov_len < TLS_GATHER_SIZE - size ? vector->iov_len : TLS_GATHER_SIZE - size;
        memcpy(copy + size, vector->iov_base, count);
        size += count;
        left -= count;
    }
    return size;
}

/* Encrypts the next record. Under the lock. */
static int tls_encrypt_next(tls_operation *self, size_t max)
{
    bide_tls *tls = self->tls;
    char copy[TLS_GATHER_SIZE];
    const char *data;
    size_t count = 0;
    size_t size = tls_next_record(self, copy, &data);
    int result = SSL_write_ex(tls->ssl, data, size < max ? size : max, &count);
    int status = result == 1 ? 0 : bide_tls_status_(tls, result);
    bide_assert(count <= self->rest && count <= max);
    tls_write_advance(self, count);
    return status == -EAGAIN || status == 1 ? -EPROTO : status;
}

/* Encrypts the next batch. It may be empty if much output is pending already: 2. */
static int tls_encrypt_batch(tls_operation *self)
{
    bide_tls *tls = self->tls;
    int status = 0;
    lock_take(&tls->lock);
    ERR_clear_error();
    if (tls->failure != 0)
        status = tls->failure;
    else if ((SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN) != 0)
        status = self->rest != 0 ? -EPIPE : 0;
    else if (tls->pending < TLS_GATHER_SIZE && self->rest != 0) {
        size_t max = self->rest < TLS_BATCH ? self->rest : TLS_BATCH;
        size_t until = self->count + max;
        bide_tls_flow_reserve_(tls,
                               max + TLS_RECORD_OVERHEAD * (max / SSL3_RT_MAX_PLAIN_LENGTH + 2));
        while (status == 0 && self->count != until)
            status = tls_encrypt_next(self, until - self->count);
    }
    lock_free(&tls->lock);
    return status;
}

/* Writes close_notify. */
static void tls_notify_close(bide_tls *tls)
{
    lock_take(&tls->lock);
    ERR_clear_error();
    if (tls->failure == 0 && (SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN) == 0)
        SSL_shutdown(tls->ssl);
    ERR_clear_error();
    lock_free(&tls->lock);
}

bide_coroutine(tls_write_body)
{
    bide_begin(tls_write_body, tls_operation * self);
    self->status = tls_enter(self->tls, TLS_WRITING);
    if (self->status < 0)
        bide_return(self->status);
    self->roles = TLS_WRITING;
    do {
        self->status = tls_encrypt_batch(self);
        if (self->status == 0 && self->rest == 0 && self->is_end)
            tls_notify_close(self->tls);
        while (tls_has_output(self->tls)) {
            bide_await_status(self->flushed, bide_tls_begin_flushing_(self->tls));
            bide_tls_end_flushing_(self->tls);
            if (self->flushed < 0)
                bide_return(self->flushed);
        }
    } while (self->status == 0 && self->rest != 0);
    bide_return(self->status);
    bide_finally();
    tls_operation_withdraw(self);
    bide_end();
}

static bide_awaiter *tls_start_write(tls_operation *self, bide_stream stream,
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
    tls_write_advance(self, 0);
    return bide_task_init(&self->task, &tls_write_body);
}

static bide_awaiter *tls_stream_write(bide_stream stream, bide_stream_operation *operation,
                                      const void *data, size_t size)
{
    tls_operation *self = tls_operation_in(operation);
    self->only.iov_base = io_as_data(data);
    self->only.iov_len = size;
    return tls_start_write(self, stream, &self->only, size);
}

static bide_awaiter *tls_stream_write_vectors(bide_stream stream, bide_stream_operation *operation,
                                              const struct iovec *vectors, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += vectors[i].iov_len;
    return tls_start_write(tls_operation_in(operation), stream, vectors, size);
}

static bide_awaiter *tls_stream_end_output(bide_stream stream, bide_stream_operation *operation)
{
    tls_operation *self = tls_operation_in(operation);
    bide_awaiter *awaiter = tls_start_write(self, stream, NULL, 0);
    self->is_end = true;
    return awaiter;
}

/* ---- The stream ---- */

static size_t tls_stream_count(const bide_stream_operation *operation)
{
    return ((const tls_operation *)(const void *)operation->room)->count;
}

static int tls_stream_close(bide_stream stream)
{
    return bide_tls_close(stream.object);
}

static void tls_stream_set_no_delay(bide_stream stream)
{
    bide_stream_set_no_delay(((const bide_tls *)stream.object)->below);
}

bide_stream bide_tls_stream(bide_tls *tls)
{
    static const bide_stream_table table = {
        .name = "TLS",
        .read = tls_stream_read,
        .write = tls_stream_write,
        .write_vectors = tls_stream_write_vectors,
        .count = tls_stream_count,
        .shutdown_output = tls_stream_end_output,
        .close = tls_stream_close,
        .set_no_delay = tls_stream_set_no_delay,
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
        tls_connection_free(tls, unused);
    return status;
}
