/*
 * The data flow between OpenSSL and the stream below: a BIO that never blocks.
 *
 *     below --fill--> input |  begin====end   | --BIO_read--> OpenSSL
 *     below <--flush-- chunk <- chunk <- chunk <--BIO_write-- OpenSSL
 *
 * The BIO and the list of chunks are used under the connection's lock; the input is the reader's.
 *
 * 1. BIO_read returns the input that has arrived, or reports "retry". Then OpenSSL wants more, and the
 *    reader fills.
 * 2. BIO_write accepts everything. So OpenSSL never has a half-finished write, and a read never
 *    depends on one. The caller bounds the amount (connection.c).
 * 3. An idle connection waits for input with the `room` of its struct. It uses `more`, which is
 *    allocated, only within a record or after a read that filled all the memory. Otherwise `more` is
 *    freed. So idle connections have none.
 * 4. Chunks do not move during a flush. A flush reads from `begin` to the `end` at its start. Bytes that
 *    are added after that `end` do not affect it.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

enum { TLS_CHUNK_MIN = 128, TLS_MOVED_MAX = 4096 };

/* ---- The BIO ---- */

static int tls_flow_read(BIO *bio, char *data, int size)
{
    bide_tls *tls = BIO_get_data(bio);
    bide_assert(tls->input_begin <= tls->input_end && tls->input_end <= tls->input_size);
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

/* Adds an empty chunk to the end of the list. */
static bide_tls_chunk_ *tls_flow_append(bide_tls *tls, size_t size)
{
    bide_assert((tls->first == NULL) == (tls->last == NULL));
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

static int tls_flow_write(BIO *bio, const char *data, int size)
{
    bide_tls *tls = BIO_get_data(bio);
    bide_tls_chunk_ *chunk = tls->last;
    size_t count = (size_t)size;
    BIO_clear_retry_flags(bio);
    if (size <= 0)
        return 0;
    if (chunk == NULL || chunk->size - chunk->end < count)
        chunk = tls_flow_append(tls, count > TLS_CHUNK_MIN ? count : TLS_CHUNK_MIN);
    if (chunk == NULL) {
        tls->failure = -ENOMEM; /* the output is lost, so the connection cannot continue */
        tls->reason = "out of memory";
        return -1;
    }
    bide_assert(chunk->begin <= chunk->end && chunk->size - chunk->end >= count);
    memcpy(chunk->data + chunk->end, data, count); /* 4 */
    chunk->end += count;
    tls->pending += count;
    return size;
}

static long tls_flow_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int tls_flow_init(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

/*
 * Made for the first connection, and if that fails for lack of memory, for a later one. Release and acquire: a
 * thread that loads it sees its functions.
 */
static bide_atomic(BIO_METHOD *) tls_flow_method;

static void tls_flow_free_method(void)
{
    BIO_meth_free(bide_atomic_load(&tls_flow_method, relaxed));
    bide_atomic_store(&tls_flow_method, NULL, relaxed);
}

/* (Its type has no index of its own, of which OpenSSL has few: nothing looks for it.) */
static BIO_METHOD *tls_flow_make_method(void)
{
    BIO_METHOD *made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "bide stream"), *other = NULL;
    if (made == NULL)
        return NULL;
    BIO_meth_set_create(made, tls_flow_init);
    BIO_meth_set_read(made, tls_flow_read);
    BIO_meth_set_write(made, tls_flow_write);
    BIO_meth_set_ctrl(made, tls_flow_control);
    if (!bide_atomic_compare_exchange(&tls_flow_method, &other, made, acq_rel, acquire)) {
        BIO_meth_free(made);
        return other;
    }
    OPENSSL_atexit(tls_flow_free_method);
    return made;
}

BIO *bide_tls_flow_create_(bide_tls *tls)
{
    BIO_METHOD *method = bide_atomic_load(&tls_flow_method, acquire);
    if (method == NULL && (method = tls_flow_make_method()) == NULL)
        return NULL;
    BIO *bio = BIO_new(method);
    if (bio != NULL)
        BIO_set_data(bio, tls);
    return bio;
}

/* ---- Output ---- */

void bide_tls_flow_reserve_(bide_tls *tls, size_t size)
{
    bide_tls_chunk_ *old = tls->first;
    bide_tls_chunk_ *last = tls->last;
    if (last != NULL && last->size - last->end >= size)
        return;
    bide_assert(!tls->is_flushing); /* chunks may move */
    bool moves = tls->pending <= TLS_MOVED_MAX;
    bide_tls_chunk_ *chunk = tls_flow_append(tls, size + (moves ? tls->pending : 0));
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
    bide_assert(!tls->is_flushing && chunk != NULL && chunk->begin < chunk->end);
    bide_assert(chunk->end - chunk->begin <= tls->pending);
    tls->is_flushing = true;
    return bide_stream_write(&tls->flush, tls->below, chunk->data + chunk->begin,
                             chunk->end - chunk->begin);
}

void bide_tls_flush_end_(bide_tls *tls)
{
    bide_tls_chunk_ *chunk = tls->first;
    size_t count = bide_stream_count(&tls->flush, tls->below);
    bide_assert(tls->is_flushing && count <= chunk->end - chunk->begin && count <= tls->pending);
    tls->is_flushing = false;
    chunk->begin += count;
    tls->pending -= count;
    if (tls->pending == 0)
        tls->unasked = 0;
    if (chunk->begin != chunk->end)
        return;
    if (chunk->next == NULL) { /* it is reused, or freed by bide_tls_flow_tidy_ */
        bide_assert(tls->pending == 0);
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
        bide_assert(tls->first->next == NULL && tls->first->begin == tls->first->end);
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

/* ---- Input ---- */

/* Selects the memory for the next read: 3. */
static void tls_flow_choose_memory(bide_tls *tls)
{
    bool was_filled = tls->input_end == tls->input_size;
    if (!was_filled && tls->wanted <= BIDE_TLS_ROOM_) {
        OPENSSL_free(tls->more);
        tls->more = NULL;
    } else if (tls->more == NULL) {
        tls->more = OPENSSL_malloc(TLS_MORE); /* without it, the smaller room is used */
    }
    tls->input = tls->more != NULL ? tls->more : tls->room;
    tls->input_size = tls->more != NULL ? TLS_MORE : BIDE_TLS_ROOM_;
    tls->input_begin = 0;
    tls->input_end = 0;
}

bide_awaiter *bide_tls_fill_begin_(bide_tls *tls)
{
    bide_assert(!tls->is_filling && tls->input_begin == tls->input_end);
    tls_flow_choose_memory(tls);
    tls->is_filling = true;
    return bide_stream_read(&tls->fill, tls->below, tls->input, tls->input_size);
}

void bide_tls_fill_end_(bide_tls *tls, int status)
{
    size_t count = bide_stream_count(&tls->fill, tls->below);
    bide_assert(tls->is_filling && count <= tls->input_size);
    tls->is_filling = false;
    tls->input_end = count;
    if (status == 0 && count == 0)
        tls->has_ended = true;
}
