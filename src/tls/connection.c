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
    bide_tls_flow_free_(tls);
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
        bide_platform.misuse(role == TLS_READING ? "two coroutines read at once"
                                                 : "two coroutines write at once",
                             "bide_tls", __FILE__, __LINE__);
    return status;
}

void bide_tls_leave_(bide_tls *tls, uint8_t role)
{
    SSL *unused = NULL;
    lock_take(&tls->lock);
    tls->roles &= (uint8_t)~role;
    if ((role & TLS_WRITING) != 0 && !tls->is_flushing)
        bide_tls_flow_tidy_(tls);
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

/* The operation has ended, or is destroyed: what it has begun below was withdrawn. */
static void withdraw(tls_operation *self)
{
    bide_tls *tls = self->tls;
    if ((self->roles & TLS_WRITING) != 0 && tls->is_flushing)
        bide_tls_end_flushing_(tls);
    if ((self->roles & TLS_READING) != 0 && tls->is_filling)
        bide_tls_fill_end_(tls, -ECANCELED);
    if (self->roles != 0)
        bide_tls_leave_(tls, self->roles);
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
        int status = result == 1 ? 0 : bide_tls_status_(tls, result);
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
    int status = enter(self->tls, TLS_READING);
    if (status == 0) {
        status = has_input(self->tls) ? attempt_read(self) : -EAGAIN;
        bide_tls_leave_(self->tls, TLS_READING);
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
    bool takes = tls->failure != 0 && tls->pending != 0 && (tls->roles & TLS_WRITING) == 0;
    if (takes)
        tls->roles |= TLS_WRITING;
    lock_free(&tls->lock);
    return takes;
}

bide_body(read_operation)
{
    bide_begin(read_operation, tls_operation * self);
    self->roles = 0;
    self->status = enter(self->tls, TLS_READING);
    if (self->status < 0)
        bide_return(self->status);
    self->roles = TLS_READING;
    for (;;) {
        self->status = has_input(self->tls) ? attempt_read(self) : -EAGAIN;
        if (self->status != -EAGAIN)
            break;
        bide_await_status(self->status, bide_tls_fill_begin_(self->tls));
        bide_tls_fill_end_(self->tls, self->status);
        if (self->status < 0)
            bide_return(self->status);
    }
    if (self->status < 0 && takes_alert(self->tls)) {
        self->roles |= TLS_WRITING;
        bide_await(bide_tls_begin_flushing_(self->tls));
        bide_tls_end_flushing_(self->tls);
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
    vectors_pass(&self->vectors, &self->offset, &self->rest, count);
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
static int encrypt_next(tls_operation *self, size_t max)
{
    bide_tls *tls = self->tls;
    char copy[GATHERED];
    const char *data;
    size_t count = 0;
    size_t size = next_record(self, copy, &data);
    int result = SSL_write_ex(tls->ssl, data, size < max ? size : max, &count);
    int status = result == 1 ? 0 : bide_tls_status_(tls, result);
    advance(self, count);
    return status == -EAGAIN || status == 1 ? -EPROTO : status;
}

/* Encrypts as much as is to go out at once, which may be nothing while there is much already. 2 */
static int encrypt_batch(tls_operation *self)
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
        size_t max = self->rest < TLS_BATCH ? self->rest : TLS_BATCH;
        size_t until = self->count + max;
        bide_tls_flow_reserve_(tls, max + RECORD_MORE * (max / SSL3_RT_MAX_PLAIN_LENGTH + 2));
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
    self->status = enter(self->tls, TLS_WRITING);
    if (self->status < 0)
        bide_return(self->status);
    self->roles = TLS_WRITING;
    do {
        self->status = encrypt_batch(self);
        if (self->status == 0 && self->rest == 0 && self->is_end)
            notify_close(self->tls);
        while (has_output(self->tls)) {
            bide_await_status(self->flushed, bide_tls_begin_flushing_(self->tls));
            bide_tls_end_flushing_(self->tls);
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

bide_stream bide_tls_stream(bide_tls *tls)
{
    static const bide_stream_table table = {
        .name = "TLS",
        .read = stream_read,
        .write = stream_write,
        .write_vectors = stream_write_vectors,
        .count = stream_count,
        .shutdown_output = stream_end_output,
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
