/*
 * What goes between OpenSSL and the stream below: a BIO that never waits.
 *
 *     below --fill--> input |  begin====end   | --BIO_read--> OpenSSL
 *     below <--flush-- chunk <- chunk <- chunk <--BIO_write-- OpenSSL
 *
 * 1. BIO_read has what is there, or says "again": then OpenSSL wants more, and the reader fills.
 * 2. BIO_write takes everything. So OpenSSL never has a write that is half done, and a read of its own
 *    never depends on one. How much it is given is bounded by who gives it (connection.c).
 * 3. Who waits for input that may never come waits with the `room` of the connection's struct. Only
 *    in the middle of a record, or after all of the memory was filled, does it wait with `more`,
 *    which is freed otherwise. So what is idle has none.
 * 4. A chunk's bytes stay where they are: those that are being written below, from `begin` on, are not
 *    touched by who adds others after `end`.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

enum { MIN_CHUNK = 128, MAX_MOVED = 4096 };

/* ---- The BIO ---- */

static int flow_read(BIO *bio, char *data, int size)
{
    bide_tls *tls = BIO_get_data(bio);
    size_t there = tls->input_end - tls->input_begin;
    size_t count = there < (size_t)size ? there : (size_t)size;
    BIO_clear_retry_flags(bio);
    if (count == 0) { /* 1 */
        tls->wanted = (size_t)size;
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(data, tls->input + tls->input_begin, count);
    tls->input_begin += count;
    tls->wanted = 0;
    return (int)count;
}

/* A chunk at the end of the list. */
static bide_tls_chunk_ *append(bide_tls *tls, size_t size)
{
    bide_tls_chunk_ *chunk = OPENSSL_malloc(sizeof *chunk + size);
    if (chunk == NULL)
        return NULL;
    chunk->next = NULL;
    chunk->size = size;
    chunk->begin = 0;
    chunk->end = 0;
    if (tls->last != NULL)
        tls->last->next = chunk;
    else
        tls->first = chunk;
    tls->last = chunk;
    return chunk;
}

static int flow_write(BIO *bio, const char *data, int size)
{
    bide_tls *tls = BIO_get_data(bio);
    bide_tls_chunk_ *chunk = tls->last;
    size_t count = (size_t)size;
    BIO_clear_retry_flags(bio);
    if (size <= 0)
        return 0;
    if (chunk == NULL || chunk->size - chunk->end < count)
        chunk = append(tls, count > MIN_CHUNK ? count : MIN_CHUNK);
    if (chunk == NULL) {
        tls->failure = -ENOMEM; /* what was to be written is lost */
        tls->reason = "out of memory";
        return -1;
    }
    memcpy(chunk->data + chunk->end, data, count); /* 4 */
    chunk->end += count;
    tls->pending += count;
    return size;
}

static long flow_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int flow_init(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *method;
static CRYPTO_ONCE method_once = CRYPTO_ONCE_STATIC_INIT;

static void method_free(void)
{
    BIO_meth_free(method);
    method = NULL;
}

static void method_make(void)
{
    BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bide stream");
    if (made == NULL)
        return;
    BIO_meth_set_create(made, flow_init);
    BIO_meth_set_read(made, flow_read);
    BIO_meth_set_write(made, flow_write);
    BIO_meth_set_ctrl(made, flow_control);
    method = made;
    OPENSSL_atexit(method_free);
}

BIO *bide_tls_flow_create_(bide_tls *tls)
{
    if (!CRYPTO_THREAD_run_once(&method_once, method_make) || method == NULL)
        return NULL;
    BIO *bio = BIO_new(method);
    if (bio != NULL)
        BIO_set_data(bio, tls);
    return bio;
}

/* ---- Out ---- */

void bide_tls_flow_reserve_(bide_tls *tls, size_t size)
{
    bide_tls_chunk_ *old = tls->first;
    bide_tls_chunk_ *last = tls->last;
    if (last != NULL && last->size - last->end >= size)
        return;
    bool moves = tls->pending <= MAX_MOVED;
    bide_tls_chunk_ *chunk = append(tls, size + (moves ? tls->pending : 0));
    if (chunk == NULL || old == NULL || !moves)
        return;
    while (old != chunk) {
        bide_tls_chunk_ *next = old->next;
        memcpy(chunk->data + chunk->end, old->data + old->begin, old->end - old->begin);
        chunk->end += old->end - old->begin;
        OPENSSL_free(old);
        old = next;
    }
    tls->first = chunk;
}

bide_awaiter *bide_tls_flush_begin_(bide_tls *tls)
{
    const bide_tls_chunk_ *chunk = tls->first;
    tls->is_flushing = true;
    return bide_stream_write(&tls->flush, tls->below, chunk->data + chunk->begin,
                             chunk->end - chunk->begin);
}

void bide_tls_flush_end_(bide_tls *tls)
{
    bide_tls_chunk_ *chunk = tls->first;
    size_t count = bide_stream_count(&tls->flush, tls->below);
    tls->is_flushing = false;
    chunk->begin += count;
    tls->pending -= count;
    if (tls->pending == 0)
        tls->unasked = 0;
    if (chunk->begin != chunk->end)
        return;
    if (chunk->next == NULL) { /* it is used again, or freed by bide_tls_flow_tidy_ */
        chunk->begin = 0;
        chunk->end = 0;
        return;
    }
    tls->first = chunk->next;
    OPENSSL_free(chunk);
}

void bide_tls_flow_tidy_(bide_tls *tls)
{
    if (tls->pending == 0 && tls->first != NULL) {
        OPENSSL_free(tls->first);
        tls->first = NULL;
        tls->last = NULL;
    }
}

void bide_tls_flow_free_(bide_tls *tls)
{
    while (tls->first != NULL) {
        bide_tls_chunk_ *chunk = tls->first;
        tls->first = chunk->next;
        OPENSSL_free(chunk);
    }
    tls->last = NULL;
    tls->pending = 0;
    OPENSSL_free(tls->more);
    tls->more = NULL;
}

/* ---- In ---- */

/* Where to read to: 3. */
static void choose_memory(bide_tls *tls)
{
    bool was_filled = tls->input_end == tls->input_size;
    if (!was_filled && tls->wanted <= BIDE_TLS_ROOM_) {
        OPENSSL_free(tls->more);
        tls->more = NULL;
    } else if (tls->more == NULL) {
        tls->more = OPENSSL_malloc(TLS_MORE); /* (if there is none, it goes on with less) */
    }
    tls->input = tls->more != NULL ? tls->more : tls->room;
    tls->input_size = tls->more != NULL ? TLS_MORE : BIDE_TLS_ROOM_;
    tls->input_begin = 0;
    tls->input_end = 0;
}

bide_awaiter *bide_tls_fill_begin_(bide_tls *tls)
{
    choose_memory(tls);
    tls->is_filling = true;
    return bide_stream_read(&tls->fill, tls->below, tls->input, tls->input_size);
}

void bide_tls_fill_end_(bide_tls *tls, int status)
{
    size_t count = bide_stream_count(&tls->fill, tls->below);
    tls->is_filling = false;
    tls->input_end = count;
    if (status == 0 && count == 0)
        tls->has_ended = true;
}
