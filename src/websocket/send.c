/*
 * Sending.
 *
 *     message_turn   from the first frame of a message to the last; messages queue for it
 *     frame_turn     for a frame, with all answers that wait before it; the writer is its holder's
 *
 * 1. What is to be answered is queued by the receiver, one of each kind: of several pings the last is
 *    answered, which is all that the RFC wants. It is put into the writer's buffer by whoever has the
 *    frame turn next: a sender before its frame, or an answering.
 * 2. The buffer has room for all answers at once. So after a flush they fit.
 * 3. A frame that fits into the buffer waits for room, and is put there in one go. It goes out whole,
 *    also when its sender is cut short while it flushes: what is buffered stays until somebody
 *    flushes (stream.h), and `must_flush` has the receiver do so.
 * 4. A larger one is counted in `done` by the bytes that the writer has taken. If it is cut short at
 *    0 nothing has happened. In between nobody could send the rest, and the other side would take the
 *    next frame for it: so nothing is sent any more.
 * 5. A queued close closes the message turn: those in line end, and their messages with them. Whoever
 *    has the turn finds it closing, and sends nothing either. So the close is the last frame.
 */
#include "websocket.h"

#include "../io/const_cast.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static size_t min(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

static bool was_cut(int status)
{
    return status == -ECANCELED || status == -ETIMEDOUT;
}

/* ---- Masks ---- */

int bide_websocket_random_(const bide_websocket *websocket, void *data, size_t size)
{
    if (websocket->options.random != NULL)
        return websocket->options.random(data, size);
    char *at = data;
    while (size != 0) {
        ssize_t count = getrandom(at, size, 0);
        if (count < 0 && errno != EINTR)
            return -errno;
        if (count > 0) {
            at += count;
            size -= (size_t)count;
        }
    }
    return 0;
}

/* The key of the next frame: *key is NULL if it has none. */
static int next_key(bide_websocket *websocket, const uint8_t **key)
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

/* ---- The buffer: its user has the frame turn ---- */

static size_t room(bide_writer *writer)
{
    size_t buffered = bide_writer_buffered(writer);
    if (writer->begin != 0) {
        memmove(writer->buffer, writer->buffer + writer->begin, buffered);
        writer->begin = 0;
        writer->end = buffered;
    }
    return writer->size - writer->end;
}

static void put(bide_writer *writer, const void *data, size_t size)
{
    if (size != 0)
        memcpy(writer->buffer + writer->end, data, size);
    writer->end += size;
}

static void put_masked(bide_writer *writer, const char *data, size_t size, const uint8_t *key,
                       size_t phase)
{
    bide_websocket_mask_(writer->buffer + writer->end, data, size, key, phase);
    writer->end += size;
}

/* ---- Answers ---- */

enum { MAX_CONTROL = 6 + BIDE_WEBSOCKET_CONTROL };

bool bide_websocket_has_answers_(const bide_websocket *websocket)
{
    if (websocket->send_status != 0)
        return false;
    return websocket->must_flush || websocket->close.is_pending ||
           (websocket->end.sent == 0 && (websocket->has_ping || websocket->pong.is_pending));
}

static int put_control(bide_websocket *websocket, uint8_t opcode, const char *data, size_t size)
{
    uint8_t header[14];
    const uint8_t *key = NULL;
    bide_writer *writer = &websocket->writer;
    if (room(writer) < MAX_CONTROL) /* 2 */
        return -EAGAIN;
    int status = next_key(websocket, &key);
    if (status < 0)
        return status;
    size_t header_size = bide_websocket_write_header_(header, opcode, true, size, key);
    put(writer, header, header_size);
    if (key != NULL)
        put_masked(writer, data, size, key, 0);
    else
        put(writer, data, size);
    websocket->must_flush = true;
    return 0;
}

/* The close goes into the buffer: nothing follows it. */
static int put_close(bide_websocket *websocket)
{
    bide_websocket_control_ *close = &websocket->close;
    int status = put_control(websocket, WEBSOCKET_CLOSE, close->data, close->size);
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

/* All that is to be answered goes into the buffer: 0; -EAGAIN: that is to be flushed first; 1 */
static int put_answers(bide_websocket *websocket)
{
    int status = 0;
    if (websocket->pong.is_pending && websocket->end.sent == 0) {
        status = put_control(websocket, WEBSOCKET_PONG, websocket->pong.data, websocket->pong.size);
        if (status < 0)
            return status;
        websocket->pong.is_pending = false;
    }
    if (websocket->has_ping && websocket->end.sent == 0) {
        status = put_control(websocket, WEBSOCKET_PING, "", 0);
        if (status < 0)
            return status;
        websocket->has_ping = false;
    }
    return websocket->close.is_pending ? put_close(websocket) : 0;
}

void bide_websocket_queue_close_(bide_websocket *websocket, unsigned code, const char *reason,
                           size_t size)
{
    bide_websocket_control_ *close = &websocket->close;
    if (websocket->is_closing)
        return;
    websocket->is_closing = true;
    close->is_pending = true;
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

/* A flush, or a write, has ended so. */
static void note_sent(bide_websocket *websocket, int status)
{
    if (status < 0 && !was_cut(status) && websocket->send_status == 0)
        websocket->send_status = status;
    if (bide_writer_buffered(&websocket->writer) == 0)
        websocket->must_flush = false;
}

bide_coroutine(answering_body)
{
    bide_begin(answering_body, bide_websocket_answering_ * self);
    int status;
    bide_try(bide_mutex_lock(&self->turn, &self->websocket->frame_turn));
    self->has_turn = true;
    while (self->websocket->send_status == 0) {
        status = put_answers(self->websocket);
        if (status < 0 && status != -EAGAIN)
            bide_return(status);
        bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
        note_sent(self->websocket, status);
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

bide_awaiter *bide_websocket_answer_(bide_websocket_answering_ *answering, bide_websocket *websocket)
{
    answering->websocket = websocket;
    answering->has_turn = false;
    return bide_task_init(&answering->task, &answering_body);
}

/* ---- Frames ---- */

/* May a frame be sent now? */
static int may_send(const bide_websocket *websocket)
{
    if (websocket->send_status != 0)
        return websocket->send_status;
    return websocket->is_closing || websocket->status != 0 ? -EPIPE : 0;
}

/* For all of the frame, if that can be: 3; or for its header. */
static size_t min_room(const bide_websocket_send_operation *send)
{
    size_t max = send->websocket->writer.size - sizeof send->header;
    return sizeof send->header + (send->size <= max ? send->size : 0);
}

/* Makes the header, and puts the answers that are before it: 0, -EAGAIN, or another error. */
static int begin_frame(bide_websocket_send_operation *send)
{
    bide_websocket *websocket = send->websocket;
    const uint8_t *key = NULL;
    int status = websocket->send_status == 0 ? put_answers(websocket) : 0;
    if (status == 0)
        status = may_send(websocket);
    if (status == 0 && room(&websocket->writer) < min_room(send))
        status = -EAGAIN;
    if (status == 0)
        status = next_key(websocket, &key);
    if (status < 0)
        return status;
    if (key != NULL)
        memcpy(send->key, key, sizeof send->key);
    send->header_size =
        (uint8_t)bide_websocket_write_header_(send->header, send->opcode, send->is_last, send->size, key);
    return 0;
}

/* Masks as much as there is room for into the buffer, behind the header. */
static void put_some(bide_websocket_send_operation *send)
{
    bide_writer *writer = &send->websocket->writer;
    if (send->done == 0) {
        put(writer, send->header, send->header_size);
        send->done = send->header_size;
    }
    size_t size = min(send->size - send->count, room(writer));
    put_masked(writer, send->data + send->count, size, send->key, send->count);
    send->count += size;
    send->done += size;
}

/* Begins to write the frame, from the caller's memory if it is large. */
static bide_awaiter *begin_writing(bide_websocket_send_operation *send)
{
    send->vectors[0].iov_base = send->header;
    send->vectors[0].iov_len = send->header_size;
    send->vectors[1].iov_base = io_as_data(send->data);
    send->vectors[1].iov_len = send->size;
    send->is_writing = true;
    return bide_writer_write_vectors(&send->write, &send->websocket->writer, send->vectors,
                                     send->size != 0 ? 2 : 1);
}

static void end_writing(bide_websocket_send_operation *send)
{
    send->is_writing = false;
    send->done = send->write.count;
    send->count = send->done > send->header_size ? send->done - send->header_size : 0;
}

/* It ends: 3, 4. */
static void let_go(bide_websocket_send_operation *send)
{
    bide_websocket *websocket = send->websocket;
    if (send->is_writing)
        end_writing(send);
    bool is_sent = send->header_size != 0 && send->done == send->header_size + send->size;
    if (send->done != 0 && !is_sent && websocket->send_status == 0)
        websocket->send_status = -ECONNABORTED;
    if (is_sent && !send->stays && bide_writer_buffered(&websocket->writer) != 0)
        websocket->must_flush = true;
    if (send->has_frame_turn)
        bide_mutex_unlock(&send->frame_turn);
    if (!send->has_message_turn)
        return;
    bool goes_on = is_sent ? !send->is_last : websocket->in_fragments == send;
    if (goes_on && may_send(websocket) == 0) {
        websocket->in_fragments = send;
        return;
    }
    websocket->in_fragments = NULL;
    bide_mutex_unlock(&send->message_turn);
}

bide_coroutine(send_body)
{
    bide_begin(send_body, bide_websocket_send_operation * self);
    int status;
    if (!self->is_control && !self->has_message_turn) {
        bide_try(bide_mutex_lock(&self->message_turn, &self->websocket->message_turn));
        self->has_message_turn = true;
    }
    bide_try(bide_mutex_lock(&self->frame_turn, &self->websocket->frame_turn));
    self->has_frame_turn = true;
    while ((status = begin_frame(self)) == -EAGAIN) {
        bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
        note_sent(self->websocket, status);
        if (status < 0)
            bide_return(status);
    }
    if (status < 0)
        bide_return(status);
    if (self->websocket->options.role == BIDE_WEBSOCKET_SERVER) {
        bide_await_status(status, begin_writing(self));
        end_writing(self);
        note_sent(self->websocket, status);
        if (status < 0)
            bide_return(status);
    } else {
        for (put_some(self); self->count != self->size; put_some(self)) {
            bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
            note_sent(self->websocket, status);
            if (status < 0)
                bide_return(status);
        }
    }
    if (!self->stays) {
        bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
        note_sent(self->websocket, status);
        bide_return(status);
    }
    bide_finally();
    let_go(self);
    bide_end();
}

static bide_awaiter *begin(bide_websocket_send_operation *send, bide_websocket *websocket,
                           uint8_t opcode, const void *data, size_t size)
{
    send->websocket = websocket;
    send->data = data;
    send->size = size;
    send->count = 0;
    send->opcode = opcode;
    send->is_last = true;
    send->is_control = opcode >= WEBSOCKET_CLOSE;
    send->stays = false;
    send->has_message_turn = false;
    send->has_frame_turn = false;
    send->is_writing = false;
    send->status = 0;
    send->done = 0;
    send->header_size = 0;
    return bide_task_init(&send->task, &send_body);
}

/* An operation that ends at once. */
bide_coroutine(refused_body)
{
    bide_begin(refused_body, bide_websocket_send_operation * self);
    bide_return(self->status);
    bide_end();
}

static bide_awaiter *refuse(bide_websocket_send_operation *send, int status)
{
    send->count = 0;
    send->status = status;
    return bide_task_init(&send->task, &refused_body);
}

bide_awaiter *bide_websocket_send(bide_websocket_send_operation *operation,
                                  bide_websocket *websocket, bide_websocket_kind kind,
                                  const void *data, size_t size)
{
    bide_awaiter *awaiter = begin(operation, websocket, (uint8_t)kind, data, size);
    return kind == BIDE_WEBSOCKET_CONTINUATION ? refuse(operation, -EINVAL) : awaiter;
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
    bool goes_on = kind == BIDE_WEBSOCKET_CONTINUATION;
    if (goes_on != (websocket->in_fragments == operation))
        return refuse(operation, may_send(websocket) != 0 ? may_send(websocket) : -EINVAL);
    bide_awaiter *awaiter = begin(operation, websocket, (uint8_t)kind, data, size);
    operation->has_message_turn = goes_on;
    operation->is_last = is_last;
    return awaiter;
}

bide_awaiter *bide_websocket_send_ping(bide_websocket_send_operation *operation,
                                       bide_websocket *websocket, const void *data, size_t size)
{
    bide_awaiter *awaiter = begin(operation, websocket, WEBSOCKET_PING, data, size);
    return size > BIDE_WEBSOCKET_CONTROL ? refuse(operation, -EMSGSIZE) : awaiter;
}

/* ---- Flushing ---- */

bide_coroutine(flush_body)
{
    bide_begin(flush_body, bide_websocket_send_operation * self);
    int status;
    bide_try(bide_mutex_lock(&self->frame_turn, &self->websocket->frame_turn));
    self->has_frame_turn = true;
    if (self->websocket->send_status != 0)
        bide_return(self->websocket->send_status);
    bide_await_status(status, bide_writer_flush(&self->write, &self->websocket->writer));
    note_sent(self->websocket, status);
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
    return bide_task_init(&operation->task, &flush_body);
}
