/*
 * The start of a websocket, and its close.
 *
 * A close is sent at once, even while a receive is in progress. That receive gets the peer's close and
 * ends the websocket. So the closer waits until the websocket has ended or no receive is in progress.
 * In the latter case the closer itself receives, and drops the data.
 */
#include "websocket.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

#undef bide_websocket_init
int bide_websocket_init(bide_websocket *websocket, bide_stream stream,
                        const bide_websocket_options *options)
{
    bide_websocket_options *own = &websocket->options;
    if (options->read_buffer == NULL || options->read_buffer_size < BIDE_WEBSOCKET_BUFFER_MIN ||
        options->write_buffer == NULL || options->write_buffer_size < BIDE_WEBSOCKET_BUFFER_MIN)
        return -EINVAL;
    if (options->initial_size > options->read_buffer_size)
        return -EMSGSIZE;
    if (options->role == BIDE_WEBSOCKET_CLIENT)
        bide_stream_set_no_delay(stream);
    memset(websocket, 0, sizeof *websocket);
    *own = *options;
    if (own->max_message == 0)
        own->max_message = UINT64_C(1) << 20;
    if (own->max_frame == 0)
        own->max_frame = own->max_message;
    if (own->max_fragments == 0)
        own->max_fragments = 65536;
    if (own->patience == 0)
        own->patience = UINT64_C(5000000000);
    bide_reader_init(&websocket->reader, stream, own->read_buffer, own->read_buffer_size);
    bide_writer_init(&websocket->writer, stream, own->write_buffer, own->write_buffer_size);
    if (own->initial_size != 0)
        memmove(own->read_buffer, own->initial, own->initial_size);
    websocket->reader.end = own->initial_size;
    websocket->next_ping = own->ping_interval;
    bide_event_init(&websocket->news, false);
    bide_mutex_init(&websocket->message_turn);
    bide_mutex_init(&websocket->frame_turn);
    return 0;
}

/* ---- Closing ---- */

/* 0 if this side may send such a close, otherwise -EINVAL. */
static int websocket_check_close(int code, const char *reason)
{
    websocket_utf8 text = {0};
    size_t size = strlen(reason);
    if (code == BIDE_WEBSOCKET_NO_CODE)
        return size == 0 ? 0 : -EINVAL;
    if (code < 0 || !bide_websocket_is_code_((unsigned)code) || size > BIDE_WEBSOCKET_REASON ||
        !bide_websocket_utf8_continue_(&text, reason, size) || text.left != 0)
        return -EINVAL;
    return 0;
}

/* The status of a close, when the websocket has ended. */
static int websocket_close_status(const bide_websocket *websocket)
{
    return websocket->status == -EPIPE ? 0 : websocket->status;
}

bide_coroutine(websocket_close_body)
{
    bide_begin(websocket_close_body, bide_websocket_close_operation * self);
    self->status = websocket_check_close(self->code, self->reason);
    if (self->status < 0)
        bide_return(self->status);
    if (self->websocket->status == 0)
        bide_websocket_queue_close_(self->websocket, (unsigned)self->code, self->reason,
                                    strlen(self->reason));
    while (bide_websocket_has_answers_(self->websocket)) {
        bide_try(bide_websocket_answer_(&self->answering, self->websocket));
    }
    while (self->websocket->status == 0) {
        if (self->websocket->is_receiving) {
            bide_event_reset(&self->websocket->news);
            bide_try(bide_event_wait(&self->wait, &self->websocket->news));
            continue;
        }
        bide_await_status(self->status, bide_websocket_recv_piece(&self->receive, self->websocket));
        if (self->status < 0 && self->websocket->status == 0)
            bide_return(self->status);
    }
    bide_return(websocket_close_status(self->websocket));
    bide_end();
}

bide_awaiter *bide_websocket_close(bide_websocket_close_operation *operation,
                                   bide_websocket *websocket, int code, const char *reason)
{
    operation->websocket = websocket;
    operation->code = code;
    operation->reason = reason;
    return bide_task_init(&operation->task, &websocket_close_body);
}
