/*
 * Receiving, and how a websocket ends.
 *
 *     attempt     parses the buffered bytes, frame by frame, until the operation is complete or more
 *                 bytes are needed. If all bytes are buffered, nothing else is done.
 *     wait        fills the reader's buffer, or reads a large frame into the caller's memory, until
 *                 the deadline of the next ping. At the same time it sends answers, if there are any.
 *
 * One thread uses a websocket at a time: a loop's, or a strand's on a pool. One receive is in progress
 * at a time.
 *
 * 1. The state of the current frame and message is in the websocket. It changes when bytes leave the
 *    reader. So an operation that is cancelled or destroyed leaves only the `kept` bytes of the message
 *    in the caller's memory.
 * 2. A piece is in the reader's buffer, and leaves it when the next receive starts. If its operation is
 *    destroyed before it resumes with the piece, the next receive gets the piece again
 *    (websocket_receive_release). `is_whole` does the same for a whole message.
 * 3. Reading and answering are two branches of one wait. The first that ends cancels the other, and
 *    neither loses anything: received bytes are in the reader or counted, and unsent bytes are in the
 *    writer. So a side still receives if it cannot send because its peer does not receive.
 * 4. `status` is set once, when the websocket ends. From then on every receive ends with it.
 */
#include "websocket.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include <errno.h>
#include <string.h>

enum { WEBSOCKET_SLICE = 65536 }; /* the maximum that is read at once into the caller's memory */

/* ---- The end ---- */

int bide_websocket_fail_(bide_websocket *websocket, int status, unsigned code)
{
    bide_assert(websocket->status == 0 && status != 0); /* 4 */
    websocket->status = status;
    websocket->end.code = BIDE_WEBSOCKET_ABNORMAL;
    bide_websocket_queue_close_(websocket, code, "", 0);
    return status;
}

/* Ends the websocket without a close: the connection is lost. */
static void websocket_end_abnormally(bide_websocket *websocket, int status)
{
    bide_assert(websocket->status == 0 && status != 0); /* 4 */
    websocket->status = status;
    websocket->end.code = BIDE_WEBSOCKET_ABNORMAL;
    websocket->is_closing = true;
    websocket->close.is_pending = false;
    websocket->pong.is_pending = false;
    websocket->has_ping = false;
    bide_mutex_close(&websocket->message_turn);
}

static int websocket_parse_close(bide_websocket *websocket, const char *data, size_t size)
{
    bide_websocket_destroy *end = &websocket->end;
    websocket_utf8 text = {0};
    unsigned code = BIDE_WEBSOCKET_NO_CODE;
    if (size == 1)
        return bide_websocket_fail_(websocket, -EPROTO, BIDE_WEBSOCKET_PROTOCOL_ERROR);
    if (size >= 2) {
        code = (unsigned)(uint8_t)data[0] << 8 | (uint8_t)data[1];
        if (!bide_websocket_is_code_(code))
            return bide_websocket_fail_(websocket, -EPROTO, BIDE_WEBSOCKET_PROTOCOL_ERROR);
        if (!bide_websocket_utf8_continue_(&text, data + 2, size - 2) || text.left != 0)
            return bide_websocket_fail_(websocket, -EILSEQ, BIDE_WEBSOCKET_NOT_UTF8);
        bide_assert(size - 2 <= BIDE_WEBSOCKET_REASON);
        memcpy(end->reason, data + 2, size - 2);
        end->size = (uint8_t)(size - 2);
    }
    end->reason[end->size] = '\0';
    end->code = (uint16_t)code;
    end->is_clean = end->sent != 0;
    bide_assert(websocket->status == 0); /* 4 */
    websocket->status = -EPIPE;
    bide_websocket_queue_close_(websocket, code, "", 0);
    return -EPIPE;
}

/* ---- Frames ---- */

static bool websocket_is_in_control(const bide_websocket *websocket)
{
    return websocket->opcode >= WEBSOCKET_CLOSE;
}

/* A data frame starts a message or continues one. 0, or the status that the websocket ends with. */
static int websocket_start_data(bide_websocket *websocket, const websocket_header *header,
                                uint64_t max)
{
    bool continues = header->opcode == WEBSOCKET_CONTINUATION;
    if (continues != websocket->is_in_message)
        return bide_websocket_fail_(websocket, -EPROTO, BIDE_WEBSOCKET_PROTOCOL_ERROR);
    if (!continues) {
        websocket->is_in_message = true;
        websocket->kind = header->opcode;
        websocket->is_compressed = header->reserved != 0;
        websocket->is_first = true;
        websocket->kept = 0;
        websocket->total = 0;
        websocket->fragments = 0;
        websocket->text_left = 0;
    }
    if (max > websocket->options.max_message)
        max = websocket->options.max_message;
    if (header->size > websocket->options.max_frame || header->size > max ||
        websocket->total > max - header->size ||
        ++websocket->fragments > websocket->options.max_fragments)
        return bide_websocket_fail_(websocket, -EMSGSIZE, BIDE_WEBSOCKET_TOO_BIG);
    websocket->total += header->size;
    return 0;
}

/*
 * Parses the next header: 0, -EAGAIN, or the status that the websocket ends with. The message may have
 * `max` bytes.
 */
static int websocket_parse_frame(bide_websocket *websocket, uint64_t max)
{
    bide_reader *reader = &websocket->reader;
    websocket_header header;
    bool is_server = websocket->options.role == BIDE_WEBSOCKET_SERVER;
    int size = bide_websocket_parse_header_(&header, bide_reader_peek(reader),
                                            bide_reader_buffered(reader), &websocket->wanted);
    if (size == WEBSOCKET_INCOMPLETE && websocket->wanted == 2)
        return -EAGAIN;
    /* errors in the first two bytes are reported at once */
    bool is_close = header.opcode >= WEBSOCKET_CLOSE;
    bool may_be_compressed = websocket->takes_compressed &&
                             (header.opcode == WEBSOCKET_TEXT || header.opcode == WEBSOCKET_BINARY);
    if ((header.reserved & (may_be_compressed ? ~WEBSOCKET_COMPRESSED : ~0)) != 0 ||
        header.is_masked != is_server || header.opcode > WEBSOCKET_PONG ||
        (header.opcode > WEBSOCKET_BINARY && !is_close) ||
        (is_close &&
         (!header.is_final || (bide_reader_peek(reader)[1] & 0x7f) > BIDE_WEBSOCKET_CONTROL)) ||
        size == WEBSOCKET_NOT_MINIMAL)
        return bide_websocket_fail_(websocket, -EPROTO, BIDE_WEBSOCKET_PROTOCOL_ERROR);
    if (size == WEBSOCKET_INCOMPLETE)
        return -EAGAIN;
    if (!is_close) {
        int status = websocket_start_data(websocket, &header, max);
        if (status < 0)
            return status;
    }
    websocket->opcode = header.opcode;
    websocket->is_final = header.is_final;
    websocket->left = header.size;
    websocket->phase = 0;
    memset(websocket->key, 0, sizeof websocket->key);
    if (header.is_masked)
        memcpy(websocket->key, header.key, sizeof websocket->key);
    websocket->is_in_frame = true;
    bide_reader_consume(reader, (size_t)size);
    return 0;
}

/* Parses a control frame when it is complete. */
static int websocket_parse_control(bide_websocket *websocket)
{
    char data[BIDE_WEBSOCKET_CONTROL];
    bide_reader *reader = &websocket->reader;
    size_t size = (size_t)websocket->left;
    bide_assert(size <= BIDE_WEBSOCKET_CONTROL);
    websocket->wanted = size;
    if (bide_reader_buffered(reader) < size)
        return -EAGAIN;
    bide_websocket_mask_(data, bide_reader_peek(reader), size, websocket->key, 0);
    bide_reader_consume(reader, size);
    websocket->is_in_frame = false;
    if (websocket->opcode == WEBSOCKET_CLOSE)
        return websocket_parse_close(websocket, data, size);
    if (websocket->opcode == WEBSOCKET_PONG) {
        websocket->pongs++;
        return 0;
    }
    websocket->pings++;
    websocket->pong.is_pending = true;
    websocket->pong.size = (uint8_t)size;
    memcpy(websocket->pong.data, data, size);
    return 0;
}

/* Counts and checks `size` unmasked bytes of the message. 0, or the status that the websocket ends with. */
static int websocket_check_data(bide_websocket *websocket, const char *data, size_t size)
{
    websocket_utf8 text = {websocket->text_left, websocket->text_low, websocket->text_high};
    bide_assert(size <= websocket->left && websocket->phase < 4);
    websocket->left -= size;
    websocket->phase = (uint8_t)((websocket->phase + size) % 4);
    bool is_end = websocket->left == 0 && websocket->is_final;
    if (websocket->kind != WEBSOCKET_TEXT || websocket->is_compressed)
        return 0;
    if (!bide_websocket_utf8_continue_(&text, data, size) || (is_end && text.left != 0))
        return bide_websocket_fail_(websocket, -EILSEQ, BIDE_WEBSOCKET_NOT_UTF8);
    websocket->text_left = text.left;
    websocket->text_low = text.low;
    websocket->text_high = text.high;
    return 0;
}

/* ---- Results ---- */

typedef bide_websocket_recv_operation websocket_receiving;

static int websocket_return_piece(websocket_receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    receive->data = websocket->reader.buffer + websocket->reader.begin;
    receive->count = websocket->provided;
    bide_assert(websocket->provided <= bide_reader_buffered(&websocket->reader));
    receive->kind = (bide_websocket_kind)websocket->kind;
    receive->is_compressed = websocket->is_compressed;
    receive->is_first = websocket->is_provided_first;
    receive->is_last = websocket->is_provided_last;
    return 0;
}

static int websocket_return_message(websocket_receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    receive->count = websocket->kept;
    receive->kind = (bide_websocket_kind)websocket->kind;
    receive->is_compressed = websocket->is_compressed;
    receive->is_first = true;
    receive->is_last = true;
    return 0;
}

/*
 * Completes the previous receive: 2. Its piece leaves the reader, unless this operation gets it again.
 * 0: this operation is complete; or -EAGAIN.
 */
static int websocket_finish_previous(websocket_receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    bide_reader *reader = &websocket->reader;
    bool was_not_reported = websocket->was_not_reported;
    bide_assert(websocket->provided <= bide_reader_buffered(reader));
    receive->has_begun = true;
    websocket->was_not_reported = false;
    if (was_not_reported && receive->is_piece)
        return websocket_return_piece(receive);
    if (was_not_reported &&
        websocket->provided <= receive->size - websocket_min(websocket->kept, receive->size)) {
        memcpy(receive->data + websocket->kept, bide_reader_peek(reader), websocket->provided);
        websocket->kept += websocket->provided;
    }
    bide_reader_consume(reader, websocket->provided);
    websocket->provided = 0;
    if (was_not_reported && websocket->is_provided_last)
        return websocket_return_message(receive);
    bool is_whole = websocket->is_whole;
    websocket->is_whole = false;
    return is_whole && !receive->is_piece ? websocket_return_message(receive) : -EAGAIN;
}

/* The next piece of a data frame: 0 (complete), -EAGAIN, 1 (continue), or the status of the end. */
static int websocket_next_piece(websocket_receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    bide_reader *reader = &websocket->reader;
    char *data = reader->buffer + reader->begin;
    size_t size = websocket_min(bide_reader_buffered(reader), websocket->left);
    websocket->wanted = 1;
    if (size == 0 && websocket->left != 0)
        return -EAGAIN;
    bide_websocket_mask_(data, data, size, websocket->key, websocket->phase);
    int status = websocket_check_data(websocket, data, size);
    if (status < 0)
        return status;
    websocket->is_in_frame = websocket->left != 0;
    websocket->provided = size;
    websocket->is_provided_last = websocket->left == 0 && websocket->is_final;
    if (size == 0 && !websocket->is_provided_last)
        return 1;
    websocket->is_provided_first = websocket->is_first;
    websocket->is_first = false;
    if (websocket->is_provided_last)
        websocket->is_in_message = false;
    return websocket_return_piece(receive);
}

static int websocket_next_part(websocket_receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    bide_reader *reader = &websocket->reader;
    size_t size = websocket_min(bide_reader_buffered(reader), websocket->left);
    char *data = receive->data + websocket->kept;
    if (size != 0 || websocket->left == 0) {
        /* websocket_start_data has checked the size, but not if this operation has other memory */
        if (size > receive->size - websocket_min(websocket->kept, receive->size))
            return bide_websocket_fail_(websocket, -EMSGSIZE, BIDE_WEBSOCKET_TOO_BIG);
        bide_websocket_mask_(data, bide_reader_peek(reader), size, websocket->key,
                             websocket->phase);
        bide_reader_consume(reader, size);
        websocket->kept += size;
        int status = websocket_check_data(websocket, data, size);
        if (status < 0)
            return status;
    }
    websocket->wanted = 1;
    if (websocket->left != 0)
        return -EAGAIN;
    websocket->is_in_frame = false;
    if (!websocket->is_final)
        return 1;
    websocket->is_in_message = false;
    return websocket_return_message(receive);
}

/* Attempts the receive on the buffer alone: 0, -EAGAIN, or the status of the end. */
static int websocket_attempt_receive(websocket_receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    int status = receive->has_begun ? -EAGAIN : websocket_finish_previous(receive);
    if (status == 0)
        return 0;
    for (;;) {
        if (websocket->status != 0)
            return websocket->status;
        if (websocket->is_in_frame && !websocket_is_in_control(websocket)) {
            status =
                receive->is_piece ? websocket_next_piece(receive) : websocket_next_part(receive);
            if (status <= 0)
                return status;
            continue;
        }
        status =
            websocket->is_in_frame
                ? websocket_parse_control(websocket)
                : websocket_parse_frame(websocket, receive->is_piece ? UINT64_MAX : receive->size);
        if (status < 0)
            return status;
    }
}

/* ---- Waiting for more ---- */

static bide_awaiter *websocket_start_read(websocket_receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    bide_reader *reader = &websocket->reader;
    size_t slice = websocket_min(websocket->left, WEBSOCKET_SLICE);
    receive->buffered = bide_reader_buffered(reader);
    receive->is_direct = !receive->is_piece && websocket->is_in_frame &&
                         !websocket_is_in_control(websocket) && receive->buffered == 0 &&
                         slice > reader->size &&
                         slice <= receive->size - websocket_min(websocket->kept, receive->size);
    if (receive->is_direct)
        return bide_reader_read_exact(&receive->read, reader, receive->data + websocket->kept,
                                      slice);
    return bide_reader_fill(&receive->read, reader, websocket->wanted);
}

/* The duration of silence after which a ping is due, or the end. */
static uint64_t websocket_next_mark(const bide_websocket *websocket)
{
    const bide_websocket_options *options = &websocket->options;
    uint64_t mark = options->silence != 0 ? options->silence : UINT64_MAX;
    if (options->ping_interval != 0 && websocket->next_ping < mark)
        mark = websocket->next_ping;
    return mark;
}

static bide_awaiter *websocket_start_wait(websocket_receiving *receive, const bide_context *context)
{
    bide_websocket *websocket = receive->websocket;
    bide_awaiter *awaiter = websocket_start_read(receive);
    if (BIDE_UNLIKELY(websocket->is_receiving))
        bide_platform.misuse("two receives of a websocket are under way at once", "bide_websocket",
                             __FILE__, __LINE__);
    websocket->is_receiving = true;
    receive->waits = true;
    receive->status = -ECANCELED; /* stays if the coroutine is destroyed */
    receive->is_both = bide_websocket_has_answers_(websocket);
    if (receive->is_both)
        awaiter = bide_when_any_of(&receive->both, awaiter,
                                   bide_websocket_answer_(&receive->answering, websocket));
    receive->is_timed = websocket->options.ping_interval != 0 || websocket->options.silence != 0;
    if (!receive->is_timed)
        return awaiter;
    receive->began = bide_now(context);
    receive->due = receive->began + (websocket_next_mark(websocket) - websocket->silent_for);
    return bide_with_deadline(&receive->limited, receive->due, awaiter);
}

/* Counts the bytes that the wait has received, whatever its status: 1, 3. False: there are none. */
static bool websocket_count_received(websocket_receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    size_t count = receive->read.count;
    bide_assert(receive->waits && websocket->is_receiving);
    receive->waits = false;
    websocket->is_receiving = false;
    bide_event_set(&websocket->news);
    if (!receive->is_direct)
        return bide_reader_buffered(&websocket->reader) > receive->buffered;
    char *data = receive->data + websocket->kept;
    bide_websocket_mask_(data, data, count, websocket->key, websocket->phase);
    websocket->kept += count;
    websocket_check_data(websocket, data, count);
    return count != 0;
}

/* Resets the silence if bytes arrived. Otherwise requests a ping that is due, or ends the websocket. */
static void websocket_check_silence(websocket_receiving *receive, bool came, uint64_t now)
{
    bide_websocket *websocket = receive->websocket;
    const bide_websocket_options *options = &websocket->options;
    if (came) {
        websocket->silent_for = 0;
        websocket->next_ping = options->ping_interval;
        return;
    }
    /* time after the deadline does not count, because this thread was late */
    websocket->silent_for += (now < receive->due ? now : receive->due) - receive->began;
    if (options->silence != 0 && websocket->silent_for >= options->silence) {
        websocket_end_abnormally(websocket, -EHOSTDOWN);
    } else if (options->ping_interval != 0 && websocket->silent_for >= websocket->next_ping) {
        websocket->has_ping = true;
        websocket->next_ping = websocket->silent_for + options->ping_interval;
    }
}

/* The wait has ended: 0 (attempt again), or the status of the receive. */
static int websocket_finish_wait(websocket_receiving *receive, const bide_context *context)
{
    bide_websocket *websocket = receive->websocket;
    if (receive->is_timed && receive->status == -ENOTSUP)
        receive->read.count = 0; /* the read was not started */
    bool came = websocket_count_received(receive);
    int status = receive->is_both && receive->status != -ENOTSUP ? receive->both.branches[0].status
                                                                 : receive->status;
    if (receive->is_timed && receive->status != -ENOTSUP) {
        uint64_t now = bide_now(context);
        websocket_check_silence(receive, came, now);
        if (websocket_was_cancelled(receive->status) && now >= receive->due)
            return 0;
    }
    if (status == 0 || websocket->status != 0)
        return 0;
    if (receive->is_both && bide_when_winner(&receive->both.when) == 1 &&
        !websocket_was_cancelled(receive->both.branches[1].status) &&
        websocket_was_cancelled(status))
        return 0; /* the answers were sent */
    if (websocket_was_cancelled(status) || status == -ENOTSUP)
        return status;
    websocket_end_abnormally(websocket, status == -EPIPE ? -ENODATA : status);
    return 0;
}

/* True if the reason of the end has not been sent to the peer yet, and can be. */
static bool websocket_must_report(const bide_websocket *websocket)
{
    return websocket->status != 0 && !websocket->has_reported &&
           bide_websocket_has_answers_(websocket);
}

/* ---- The operation ---- */

/* The coroutine is destroyed before it resumes with the result: 2. */
static void websocket_receive_release(bide_frame *frame)
{
    websocket_receiving *receive = bide_container_of(frame, websocket_receiving, task.frame);
    if (receive->is_piece)
        receive->websocket->was_not_reported = true;
    else
        receive->websocket->is_whole = true;
}

static bool websocket_receive_ready(bide_awaiter *awaiter)
{
    websocket_receiving *receive =
        bide_container_of(awaiter, websocket_receiving, task.frame.awaiter);
    int status = websocket_attempt_receive(receive);
    if (status == -EAGAIN || (status < 0 && websocket_must_report(receive->websocket)))
        return false;
    receive->task.frame.error = status;
    return true;
}

static bide_next websocket_receive_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type websocket_receive_task_type = {
    .name = "task", .release = websocket_receive_release};
static const bide_coroutine_type *const websocket_receive_type_ = &websocket_receive_task_type;
static const bide_coroutine_code websocket_receive_code = {
    websocket_receive_step_, "websocket_receive", __FILE__, &websocket_receive_type_, NULL};
static const bide_point websocket_receive_start =
    BIDE_POINT_START_READY(websocket_receive_ready, &websocket_receive_code);

bide_body(websocket_receive)
{
    bide_begin(websocket_receive, websocket_receiving * self);
    for (;;) {
        int status = websocket_attempt_receive(self);
        if (status == 0)
            bide_return(0);
        if (status != -EAGAIN)
            break;
        bide_await_status(self->status, websocket_start_wait(self, bide_this_context()));
        status = websocket_finish_wait(self, bide_this_context());
        if (status < 0) {
            self->count = self->websocket->kept;
            bide_return(status);
        }
    }
    if (websocket_must_report(self->websocket)) {
        bide_await_status(
            self->status,
            bide_with_deadline(&self->limited,
                               bide_now(bide_this_context()) + self->websocket->options.patience,
                               bide_websocket_answer_(&self->answering, self->websocket)));
        if (self->status == -ENOTSUP)
            bide_await_status(self->status,
                              bide_websocket_answer_(&self->answering, self->websocket));
        self->websocket->has_reported = true;
    }
    bide_return(self->websocket->status);
    bide_finally();
    if (self->waits)
        websocket_count_received(self);
    bide_end();
}

static bide_awaiter *websocket_receive_init(websocket_receiving *receive, bide_websocket *websocket,
                                            void *data, size_t size)
{
    receive->websocket = websocket;
    receive->data = data;
    receive->size = size;
    receive->count = 0;
    receive->has_begun = false;
    receive->waits = false;
    return bide_task_init(&receive->task, &websocket_receive_start);
}

bide_awaiter *bide_websocket_recv(websocket_receiving *operation, bide_websocket *websocket,
                                  void *data, size_t size)
{
    operation->is_piece = false;
    return websocket_receive_init(operation, websocket, data, size);
}

bide_awaiter *bide_websocket_recv_piece(websocket_receiving *operation, bide_websocket *websocket)
{
    operation->is_piece = true;
    return websocket_receive_init(operation, websocket, NULL, 0);
}
