/*
 * Sending.
 *
 *     message_turn   a mutex, held from the first frame of a message to the last
 *     frame_turn     a mutex, held for a frame and the answers before it; its holder uses the writer
 *
 * One thread uses a websocket at a time: a loop's, or a strand's on a pool. Several coroutines may
 * send; they queue for the mutexes.
 *
 * 1. The receiver queues the answers, one of each type: of several pings it answers the last, as the
 *    RFC permits. The next holder of the frame turn puts them into the writer's buffer: a sender
 *    before its frame, or an answering.
 * 2. The buffer has room for all answers at once. So they fit after a flush.
 * 3. A frame that fits into the buffer waits for room and is put there at once. It is sent whole, even
 *    if its sender is cancelled while it flushes: the bytes stay in the buffer until the next flush
 *    (stream.h), and `must_flush` makes the receiver flush.
 * 4. For a larger frame, `done` counts the bytes that the writer has taken. If the send is cancelled at
 *    0, nothing was sent. If it is cancelled within the frame, no other sender can send the rest, and
 *    the peer would take the next frame for it. So nothing is sent any more.
 * 5. A queued close closes the message turn, so the messages that wait for it fail. The holder of the
 *    turn finds `is_closing` and sends nothing either. So the close is the last frame.
 */
#define _GNU_SOURCE
#include "websocket.h"

#include "../io/const_cast.h"
#include "../system/portable.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

/* ---- Masks ---- */

enum { WEBSOCKET_RANDOM_MAX = 256 }; /* of a call */

int bide_websocket_random_(const bide_websocket *websocket, void *data, size_t size)
{
    if (websocket->options.random != NULL)
        return websocket->options.random(data, size);
    char *at = data;
    while (size != 0) {
        size_t count = size < WEBSOCKET_RANDOM_MAX ? size : WEBSOCKET_RANDOM_MAX;
        if (portable_random(at, count) == 0) {
            at += count;
            size -= count;
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

/* Gets the key of the next frame. *key is NULL if frames are not masked. */
static int websocket_next_key(bide_websocket *websocket, const uint8_t **key)
{
    *key = NULL;
    if (websocket->options.role == BIDE_WEBSOCKET_SERVER)
        return 0;
    if (websocket->unused_keys == 0) {
        int status = bide_websocket_random_(websocket, websocket->keys, sizeof websocket->keys);
        if (status < 0)
            return status;
        websocket->unused_keys = sizeof websocket->keys / 4;
    }
    *key = websocket->keys + 4 * (size_t)--websocket->unused_keys;
    return 0;
}

/* ---- The writer's buffer; the caller holds the frame turn ---- */

/* The room in the buffer, after the buffered bytes were moved to its beginning. */
static size_t websocket_output_room(bide_writer *writer)
{
    size_t buffered = bide_writer_buffered(writer);
    bide_assert(!writer->is_writing);
    if (writer->begin != 0) {
        memmove(writer->buffer, writer->buffer + writer->begin, buffered);
        writer->begin = 0;
        writer->end = buffered;
    }
    return writer->size - writer->end;
}

static void websocket_append(bide_writer *writer, const void *data, size_t size)
{
    bide_assert(size <= writer->size - writer->end);
    if (size != 0)
        memcpy(writer->buffer + writer->end, data, size);
    writer->end += size;
}

static void websocket_append_masked(bide_writer *writer, const char *data, size_t size,
                                    const uint8_t *key, size_t phase)
{
    bide_assert(size <= writer->size - writer->end);
    bide_websocket_mask_(writer->buffer + writer->end, data, size, key, phase);
    writer->end += size;
}

/* ---- Answers ---- */

enum { WEBSOCKET_CONTROL_FRAME_MAX = 6 + BIDE_WEBSOCKET_CONTROL };

bool bide_websocket_has_answers_(const bide_websocket *websocket)
{
    if (websocket->send_status != 0)
        return false;
    return websocket->must_flush || websocket->close.is_pending ||
           (websocket->end.sent == 0 && (websocket->has_ping || websocket->pong.is_pending));
}

static int websocket_append_control(bide_websocket *websocket, uint8_t opcode, const char *data,
                                    size_t size)
{
    uint8_t header[14];
    const uint8_t *key = NULL;
    bide_writer *writer = &websocket->writer;
    if (websocket_output_room(writer) < WEBSOCKET_CONTROL_FRAME_MAX) /* 2 */
        return -EAGAIN;
    int status = websocket_next_key(websocket, &key);
    if (status < 0)
        return status;
    size_t header_size = bide_websocket_write_header_(header, opcode, true, size, key);
    websocket_append(writer, header, header_size);
    if (key != NULL)
        websocket_append_masked(writer, data, size, key, 0);
    else
        websocket_append(writer, data, size);
    websocket->must_flush = true;
    return 0;
}

/* Puts the close into the buffer. No frame follows it. */
static int websocket_append_close(bide_websocket *websocket)
{
    bide_websocket_control_ *close = &websocket->close;
    bide_assert(close->is_pending && websocket->is_closing && websocket->end.sent == 0);
    int status = websocket_append_control(websocket, WEBSOCKET_CLOSE, close->data, close->size);
    if (status < 0)
        return status;
    close->is_pending = false;
    websocket->has_ping = false;
    websocket->pong.is_pending = false;
    websocket->end.sent = close->size < 2
                              ? BIDE_WEBSOCKET_NO_CODE
                              : (uint16_t)((uint8_t)close->data[0] << 8 | (uint8_t)close->data[1]);
    websocket->end.is_clean = websocket->status == -EPIPE;
    return 0;
}

/* Puts all answers into the buffer. 0; -EAGAIN: the buffer has to be flushed first; or an error. */
static int websocket_append_answers(bide_websocket *websocket)
{
    int status = 0;
    if (websocket->pong.is_pending && websocket->end.sent == 0) {
        status = websocket_append_control(websocket, WEBSOCKET_PONG, websocket->pong.data,
                                          websocket->pong.size);
        if (status < 0)
            return status;
        websocket->pong.is_pending = false;
    }
    if (websocket->has_ping && websocket->end.sent == 0) {
        status = websocket_append_control(websocket, WEBSOCKET_PING, "", 0);
        if (status < 0)
            return status;
        websocket->has_ping = false;
    }
    return websocket->close.is_pending ? websocket_append_close(websocket) : 0;
}

void bide_websocket_queue_close_(bide_websocket *websocket, unsigned code, const char *reason,
                                 size_t size)
{
    bide_websocket_control_ *close = &websocket->close;
    if (websocket->is_closing)
        return;
    websocket->is_closing = true;
    close->is_pending = true;
    bide_assert(size <= BIDE_WEBSOCKET_REASON);
    close->size = 0;
    if (code != BIDE_WEBSOCKET_NO_CODE) {
        close->data[0] = (char)(code >> 8);
        close->data[1] = (char)code;
        if (size != 0)
            memcpy(close->data + 2, reason, size);
        close->size = (uint8_t)(2 + size);
    }
    bide_mutex_close(&websocket->message_turn); /* 5 */
}

/* A flush or a write has ended with `status`. */
static void websocket_note_sent(bide_websocket *websocket, int status)
{
    if (status < 0 && !websocket_was_cancelled(status) && websocket->send_status == 0)
        websocket->send_status = status;
    if (bide_writer_buffered(&websocket->writer) == 0)
        websocket->must_flush = false;
}

bide_coroutine(websocket_answering_body)
{
    bide_begin(websocket_answering_body, bide_websocket_answering_ * self);
    int status;
    bide_try(bide_mutex_lock(&self->turn, &self->websocket->frame_turn));
    self->has_turn = true;
    while (self->websocket->send_status == 0) {
        status = websocket_append_answers(self->websocket);
        if (status < 0 && status != -EAGAIN)
            bide_return(status);
        bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
        websocket_note_sent(self->websocket, status);
        if (status < 0)
            bide_return(status);
        if (!bide_websocket_has_answers_(self->websocket))
            break;
    }
    bide_finally();
    if (self->has_turn)
        bide_mutex_unlock(&self->turn);
    bide_end();
}

bide_awaiter *bide_websocket_answer_(bide_websocket_answering_ *answering,
                                     bide_websocket *websocket)
{
    answering->websocket = websocket;
    answering->has_turn = false;
    return bide_task_init(&answering->task, &websocket_answering_body);
}

/* ---- Frames ---- */

/* 0 if a frame may be sent now, otherwise the status of the send. */
static int websocket_check_send(const bide_websocket *websocket)
{
    if (websocket->send_status != 0)
        return websocket->send_status;
    return websocket->is_closing || websocket->status != 0 ? -EPIPE : 0;
}

/* The room that a frame needs to start: for all of it if the buffer is large enough, else its header. */
static size_t websocket_needed_room(const bide_websocket_send_operation *send)
{
    size_t max = send->websocket->writer.size - sizeof send->header;
    return sizeof send->header + (send->size <= max ? send->size : 0);
}

/* Puts the answers into the buffer, and creates the header. 0, -EAGAIN, or another error. */
static int websocket_start_send(bide_websocket_send_operation *send)
{
    bide_websocket *websocket = send->websocket;
    const uint8_t *key = NULL;
    int status = websocket->send_status == 0 ? websocket_append_answers(websocket) : 0;
    if (status == 0)
        status = websocket_check_send(websocket);
    if (status == 0 && websocket_output_room(&websocket->writer) < websocket_needed_room(send))
        status = -EAGAIN;
    if (status == 0)
        status = websocket_next_key(websocket, &key);
    if (status < 0)
        return status;
    uint8_t opcode = (uint8_t)(send->opcode | (send->is_compressed ? WEBSOCKET_COMPRESSED : 0));
    if (key != NULL)
        memcpy(send->key, key, sizeof send->key);
    send->header_size =
        (uint8_t)bide_websocket_write_header_(send->header, opcode, send->is_last, send->size, key);
    return 0;
}

/* Masks the next bytes into the buffer, after the header, as many as there is room for. */
static void websocket_append_part(bide_websocket_send_operation *send)
{
    bide_writer *writer = &send->websocket->writer;
    if (send->done == 0) {
        websocket_append(writer, send->header, send->header_size);
        send->done = send->header_size;
    }
    size_t size = websocket_min(send->size - send->count, websocket_output_room(writer));
    websocket_append_masked(writer, send->data + send->count, size, send->key, send->count);
    send->count += size;
    send->done += size;
}

/* Starts a write of the frame, from the caller's memory if it is large. */
static bide_awaiter *websocket_start_write(bide_websocket_send_operation *send)
{
    send->vectors[0].iov_base = send->header;
    send->vectors[0].iov_len = send->header_size;
    send->vectors[1].iov_base = io_as_data(send->data);
    send->vectors[1].iov_len = send->size;
    send->is_writing = true;
    return bide_writer_write_vectors(&send->write, &send->websocket->writer, send->vectors,
                                     send->size != 0 ? 2 : 1);
}

static void websocket_finish_write(bide_websocket_send_operation *send)
{
    send->is_writing = false;
    send->done = send->write.count;
    send->count = send->done > send->header_size ? send->done - send->header_size : 0;
}

/* The send ends, or its coroutine is destroyed: 3, 4. */
static void websocket_finish_send(bide_websocket_send_operation *send)
{
    bide_websocket *websocket = send->websocket;
    if (send->is_writing)
        websocket_finish_write(send);
    bide_assert(send->done <= send->header_size + send->size && send->count <= send->size);
    bool is_sent = send->header_size != 0 && send->done == send->header_size + send->size;
    if (send->done != 0 && !is_sent && websocket->send_status == 0)
        websocket->send_status = -ECONNABORTED;
    if (is_sent && !send->stays && bide_writer_buffered(&websocket->writer) != 0)
        websocket->must_flush = true;
    if (send->has_frame_turn)
        bide_mutex_unlock(&send->frame_turn);
    if (!send->has_message_turn)
        return;
    bool continues = is_sent ? !send->is_last : websocket->in_fragments == send;
    if (continues && websocket_check_send(websocket) == 0) {
        websocket->in_fragments = send;
        return;
    }
    websocket->in_fragments = NULL;
    bide_mutex_unlock(&send->message_turn);
}

bide_coroutine(websocket_send_body)
{
    bide_begin(websocket_send_body, bide_websocket_send_operation * self);
    int status;
    if (!self->is_control && !self->has_message_turn) {
        bide_try(bide_mutex_lock(&self->message_turn, &self->websocket->message_turn));
        self->has_message_turn = true;
    }
    bide_try(bide_mutex_lock(&self->frame_turn, &self->websocket->frame_turn));
    self->has_frame_turn = true;
    while ((status = websocket_start_send(self)) == -EAGAIN) {
        bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
        websocket_note_sent(self->websocket, status);
        if (status < 0)
            bide_return(status);
    }
    if (status < 0)
        bide_return(status);
    if (self->websocket->options.role == BIDE_WEBSOCKET_SERVER) {
        bide_await_status(status, websocket_start_write(self));
        websocket_finish_write(self);
        websocket_note_sent(self->websocket, status);
        if (status < 0)
            bide_return(status);
    } else {
        for (websocket_append_part(self); self->count != self->size; websocket_append_part(self)) {
            bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
            websocket_note_sent(self->websocket, status);
            if (status < 0)
                bide_return(status);
        }
    }
    if (!self->stays) {
        bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
        websocket_note_sent(self->websocket, status);
        bide_return(status);
    }
    bide_finally();
    websocket_finish_send(self);
    bide_end();
}

static bide_awaiter *websocket_send_init(bide_websocket_send_operation *send,
                                         bide_websocket *websocket, uint8_t opcode,
                                         const void *data, size_t size)
{
    send->websocket = websocket;
    send->data = data;
    send->size = size;
    send->count = 0;
    send->opcode = opcode;
    send->is_last = true;
    send->is_control = opcode >= WEBSOCKET_CLOSE;
    send->stays = false;
    send->is_compressed = false;
    send->has_message_turn = false;
    send->has_frame_turn = false;
    send->is_writing = false;
    send->status = 0;
    send->done = 0;
    send->header_size = 0;
    return bide_task_init(&send->task, &websocket_send_body);
}

/* An operation that ends at once with an error. */
bide_coroutine(websocket_rejected_body)
{
    bide_begin(websocket_rejected_body, bide_websocket_send_operation * self);
    bide_return(self->status);
    bide_end();
}

static bide_awaiter *websocket_reject(bide_websocket_send_operation *send, int status)
{
    send->count = 0;
    send->status = status;
    return bide_task_init(&send->task, &websocket_rejected_body);
}

bide_awaiter *bide_websocket_send(bide_websocket_send_operation *operation,
                                  bide_websocket *websocket, bide_websocket_kind kind,
                                  const void *data, size_t size)
{
    bide_awaiter *awaiter = websocket_send_init(operation, websocket, (uint8_t)kind, data, size);
    return kind == BIDE_WEBSOCKET_CONTINUATION ? websocket_reject(operation, -EINVAL) : awaiter;
}

bide_awaiter *bide_websocket_put(bide_websocket_send_operation *operation,
                                 bide_websocket *websocket, bide_websocket_kind kind,
                                 const void *data, size_t size)
{
    bide_awaiter *awaiter = bide_websocket_send(operation, websocket, kind, data, size);
    operation->stays = true;
    return awaiter;
}

bide_awaiter *bide_websocket_send_fragment(bide_websocket_send_operation *operation,
                                           bide_websocket *websocket, bide_websocket_kind kind,
                                           const void *data, size_t size, bool is_last)
{
    bool continues = kind == BIDE_WEBSOCKET_CONTINUATION;
    if (continues != (websocket->in_fragments == operation))
        return websocket_reject(operation, websocket_check_send(websocket) != 0
                                               ? websocket_check_send(websocket)
                                               : -EINVAL);
    bide_awaiter *awaiter = websocket_send_init(operation, websocket, (uint8_t)kind, data, size);
    operation->has_message_turn = continues;
    operation->is_last = is_last;
    return awaiter;
}

bide_awaiter *bide_websocket_send_ping(bide_websocket_send_operation *operation,
                                       bide_websocket *websocket, const void *data, size_t size)
{
    bide_awaiter *awaiter = websocket_send_init(operation, websocket, WEBSOCKET_PING, data, size);
    return size > BIDE_WEBSOCKET_CONTROL ? websocket_reject(operation, -EMSGSIZE) : awaiter;
}

/* ---- Flushing ---- */

bide_coroutine(websocket_flush_body)
{
    bide_begin(websocket_flush_body, bide_websocket_send_operation * self);
    int status;
    bide_try(bide_mutex_lock(&self->frame_turn, &self->websocket->frame_turn));
    self->has_frame_turn = true;
    if (self->websocket->send_status != 0)
        bide_return(self->websocket->send_status);
    bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
    websocket_note_sent(self->websocket, status);
    bide_return(status);
    bide_finally();
    if (self->has_frame_turn)
        bide_mutex_unlock(&self->frame_turn);
    bide_end();
}

bide_awaiter *bide_websocket_flush(bide_websocket_send_operation *operation,
                                   bide_websocket *websocket)
{
    operation->websocket = websocket;
    operation->has_frame_turn = false;
    return bide_task_init(&operation->task, &websocket_flush_body);
}
