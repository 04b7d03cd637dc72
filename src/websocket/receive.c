/*
 * Receiving, and how a websocket ends.
 *
 *     attempt     goes through what is buffered, frame by frame, until the operation has what it wants,
 *                 or more is needed. It is all that is done when everything is there already.
 *     wait        has the reader buffer more, or read a large frame into the caller's memory, under
 *                 the deadline of the next ping. Beside that it sends answers, if there are any.
 *
 * 1. All that is known of the frame and the message at hand is the websocket's, and is changed when
 *    bytes leave the reader. So an operation that ends early, or is destroyed, leaves nothing behind
 *    but the bytes in the caller's memory, of which there are `kept`.
 * 2. A piece is lent from where the reader has it, and leaves the reader when the next receive
 *    begins. If its operation is destroyed before it was told, the next has it again (`give_back`).
 *    The same holds for a message in whole, by `is_whole`.
 * 3. Reading and answering are the two branches of one wait, and the first that ends cuts the other
 *    short. Neither loses anything by that: what was read is in the reader, or counted, and what was
 *    not sent is in the writer. So a side that can send nothing, because the other takes nothing,
 *    still receives.
 * 4. `status` is set once, with how it has ended. Every receive from then on ends with it.
 */
#include "websocket.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include <errno.h>
#include <string.h>

enum { SLICE = 65536 }; /* of a frame that is read into the caller's memory */

static bool was_cut(int status)
{
    return status == -ECANCELED || status == -ETIMEDOUT;
}

static size_t min(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

/* ---- The end ---- */

/* It ends with an error of the other side, which is told. */
static int fail(bide_websocket *websocket, int status, unsigned code)
{
    websocket->status = status;
    websocket->end.code = BIDE_WEBSOCKET_ABNORMAL;
    bide_websocket_queue_close_(websocket, code, "", 0);
    return status;
}

/* It ends, and there is nobody to be told. */
static void end_abnormally(bide_websocket *websocket, int status)
{
    websocket->status = status;
    websocket->end.code = BIDE_WEBSOCKET_ABNORMAL;
    websocket->is_closing = true;
    websocket->close.is_pending = false;
    websocket->pong.is_pending = false;
    websocket->has_ping = false;
    bide_mutex_close(&websocket->message_turn);
}

static int take_close(bide_websocket *websocket, const char *data, size_t size)
{
    bide_websocket_destroy *end = &websocket->end;
    websocket_utf8 text = {0};
    unsigned code = BIDE_WEBSOCKET_NO_CODE;
    if (size == 1)
        return fail(websocket, -EPROTO, BIDE_WEBSOCKET_PROTOCOL_ERROR);
    if (size >= 2) {
        code = (unsigned)(uint8_t)data[0] << 8 | (uint8_t)data[1];
        if (!bide_websocket_is_code_(code))
            return fail(websocket, -EPROTO, BIDE_WEBSOCKET_PROTOCOL_ERROR);
        if (!bide_websocket_utf8_continue_(&text, data + 2, size - 2) || text.left != 0)
            return fail(websocket, -EILSEQ, BIDE_WEBSOCKET_NOT_UTF8);
        memcpy(end->reason, data + 2, size - 2);
        end->size = (uint8_t)(size - 2);
    }
    end->reason[end->size] = '\0';
    end->code = (uint16_t)code;
    end->is_clean = end->sent != 0;
    websocket->status = -EPIPE;
    bide_websocket_queue_close_(websocket, code, "", 0);
    return -EPIPE;
}

/* ---- Frames ---- */

static bool is_control(const bide_websocket *websocket)
{
    return websocket->opcode >= WEBSOCKET_CLOSE;
}

/* A frame begins a message, or goes on with it. 0, or with what it ends. */
static int begin_data(bide_websocket *websocket, const websocket_header *header, uint64_t max)
{
    bool goes_on = header->opcode == WEBSOCKET_CONTINUATION;
    if (goes_on != websocket->is_in_message)
        return fail(websocket, -EPROTO, BIDE_WEBSOCKET_PROTOCOL_ERROR);
    if (!goes_on) {
        websocket->is_in_message = true;
        websocket->kind = header->opcode;
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
        return fail(websocket, -EMSGSIZE, BIDE_WEBSOCKET_TOO_BIG);
    websocket->total += header->size;
    return 0;
}

/* Takes the next header: 0, -EAGAIN, or with what it ends. The message may have `max` bytes. */
static int begin_frame(bide_websocket *websocket, uint64_t max)
{
    bide_reader *reader = &websocket->reader;
    websocket_header header;
    bool is_server = websocket->options.role == BIDE_WEBSOCKET_SERVER;
    int size = bide_websocket_parse_header_(&header, bide_reader_peek(reader),
                                      bide_reader_buffered(reader), &websocket->wanted);
    if (size == WEBSOCKET_INCOMPLETE && websocket->wanted == 2)
        return -EAGAIN;
    /* what is wrong already in the first two bytes is told at once */
    bool is_close = header.opcode >= WEBSOCKET_CLOSE;
    if (header.reserved != 0 || header.is_masked != is_server || header.opcode > WEBSOCKET_PONG ||
        (header.opcode > WEBSOCKET_BINARY && !is_close) ||
        (is_close &&
         (!header.is_final || (bide_reader_peek(reader)[1] & 0x7f) > BIDE_WEBSOCKET_CONTROL)) ||
        size == WEBSOCKET_NOT_MINIMAL)
        return fail(websocket, -EPROTO, BIDE_WEBSOCKET_PROTOCOL_ERROR);
    if (size == WEBSOCKET_INCOMPLETE)
        return -EAGAIN;
    if (!is_close) {
        int status = begin_data(websocket, &header, max);
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

/* A control frame, once all of it is there. */
static int take_control(bide_websocket *websocket)
{
    char data[BIDE_WEBSOCKET_CONTROL];
    bide_reader *reader = &websocket->reader;
    size_t size = (size_t)websocket->left;
    websocket->wanted = size;
    if (bide_reader_buffered(reader) < size)
        return -EAGAIN;
    bide_websocket_mask_(data, bide_reader_peek(reader), size, websocket->key, 0);
    bide_reader_consume(reader, size);
    websocket->is_in_frame = false;
    if (websocket->opcode == WEBSOCKET_CLOSE)
        return take_close(websocket, data, size);
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

/* `size` bytes of the message have come, and stand there unmasked. 0, or with what it ends. */
static int take_data(bide_websocket *websocket, const char *data, size_t size)
{
    websocket_utf8 text = {websocket->text_left, websocket->text_low, websocket->text_high};
    websocket->left -= size;
    websocket->phase = (uint8_t)((websocket->phase + size) % 4);
    bool is_end = websocket->left == 0 && websocket->is_final;
    if (websocket->kind != WEBSOCKET_TEXT)
        return 0;
    if (!bide_websocket_utf8_continue_(&text, data, size) || (is_end && text.left != 0))
        return fail(websocket, -EILSEQ, BIDE_WEBSOCKET_NOT_UTF8);
    websocket->text_left = text.left;
    websocket->text_low = text.low;
    websocket->text_high = text.high;
    return 0;
}

/* ---- What a receive gets ---- */

typedef bide_websocket_recv_operation receiving;

static int have_piece(receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    receive->data = websocket->reader.buffer + websocket->reader.begin;
    receive->count = websocket->lent;
    receive->kind = (bide_websocket_kind)websocket->kind;
    receive->is_first = websocket->is_lent_first;
    receive->is_last = websocket->is_lent_last;
    return 0;
}

static int have_message(receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    receive->count = websocket->kept;
    receive->kind = (bide_websocket_kind)websocket->kind;
    receive->is_first = true;
    receive->is_last = true;
    return 0;
}

/* 2: what the one before was lent, or not told. 0: this has it; or -EAGAIN. */
static int settle(receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    bide_reader *reader = &websocket->reader;
    bool was_not_told = websocket->was_not_told;
    receive->has_begun = true;
    websocket->was_not_told = false;
    if (was_not_told && receive->is_piece)
        return have_piece(receive);
    if (was_not_told && websocket->lent <= receive->size - min(websocket->kept, receive->size)) {
        memcpy(receive->data + websocket->kept, bide_reader_peek(reader), websocket->lent);
        websocket->kept += websocket->lent;
    }
    bide_reader_consume(reader, websocket->lent);
    websocket->lent = 0;
    if (was_not_told && websocket->is_lent_last)
        return have_message(receive);
    bool is_whole = websocket->is_whole;
    websocket->is_whole = false;
    return is_whole && !receive->is_piece ? have_message(receive) : -EAGAIN;
}

/* Of a data frame: 0, it has what it wants; -EAGAIN; 1: go on; or with what it ends. */
static int take_piece(receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    bide_reader *reader = &websocket->reader;
    char *data = reader->buffer + reader->begin;
    size_t size = min(bide_reader_buffered(reader), websocket->left);
    websocket->wanted = 1;
    if (size == 0 && websocket->left != 0)
        return -EAGAIN;
    bide_websocket_mask_(data, data, size, websocket->key, websocket->phase);
    int status = take_data(websocket, data, size);
    if (status < 0)
        return status;
    websocket->is_in_frame = websocket->left != 0;
    websocket->lent = size;
    websocket->is_lent_last = websocket->left == 0 && websocket->is_final;
    if (size == 0 && !websocket->is_lent_last)
        return 1;
    websocket->is_lent_first = websocket->is_first;
    websocket->is_first = false;
    if (websocket->is_lent_last)
        websocket->is_in_message = false;
    return have_piece(receive);
}

static int take_whole(receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    bide_reader *reader = &websocket->reader;
    size_t size = min(bide_reader_buffered(reader), websocket->left);
    char *data = receive->data + websocket->kept;
    if (size != 0 || websocket->left == 0) {
        /* (it cannot be more than fits: begin_data has looked, unless the memory is another) */
        if (size > receive->size - min(websocket->kept, receive->size))
            return fail(websocket, -EMSGSIZE, BIDE_WEBSOCKET_TOO_BIG);
        bide_websocket_mask_(data, bide_reader_peek(reader), size, websocket->key, websocket->phase);
        bide_reader_consume(reader, size);
        websocket->kept += size;
        int status = take_data(websocket, data, size);
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
    return have_message(receive);
}

/* On what is buffered alone: 0, -EAGAIN, or with what it ends. */
static int attempt(receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    int status = receive->has_begun ? -EAGAIN : settle(receive);
    if (status == 0)
        return 0;
    for (;;) {
        if (websocket->status != 0)
            return websocket->status;
        if (websocket->is_in_frame && !is_control(websocket)) {
            status = receive->is_piece ? take_piece(receive) : take_whole(receive);
            if (status <= 0)
                return status;
            continue;
        }
        status = websocket->is_in_frame
                     ? take_control(websocket)
                     : begin_frame(websocket, receive->is_piece ? UINT64_MAX : receive->size);
        if (status < 0)
            return status;
    }
}

/* ---- Waiting for more ---- */

static bide_awaiter *begin_reading(receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    bide_reader *reader = &websocket->reader;
    size_t slice = min(websocket->left, SLICE);
    receive->buffered = bide_reader_buffered(reader);
    receive->is_direct = !receive->is_piece && websocket->is_in_frame && !is_control(websocket) &&
                         receive->buffered == 0 && slice > reader->size &&
                         slice <= receive->size - min(websocket->kept, receive->size);
    if (receive->is_direct)
        return bide_reader_read_exact(&receive->read, reader, receive->data + websocket->kept,
                                      slice);
    return bide_reader_fill(&receive->read, reader, websocket->wanted);
}

/* For how long it may have been silent when something is to be done about it. */
static uint64_t next_mark(const bide_websocket *websocket)
{
    const bide_websocket_options *options = &websocket->options;
    uint64_t mark = options->silence != 0 ? options->silence : UINT64_MAX;
    if (options->ping_interval != 0 && websocket->next_ping < mark)
        mark = websocket->next_ping;
    return mark;
}

static bide_awaiter *begin_waiting(receiving *receive, const bide_context *context)
{
    bide_websocket *websocket = receive->websocket;
    bide_awaiter *awaiter = begin_reading(receive);
    if (BIDE_UNLIKELY(websocket->is_receiving))
        bide_platform.misuse("two receives of a websocket are under way at once", "bide_websocket",
                             __FILE__, __LINE__);
    websocket->is_receiving = true;
    receive->waits = true;
    receive->status = -ECANCELED; /* if it is destroyed */
    receive->is_both = bide_websocket_has_answers_(websocket);
    if (receive->is_both)
        awaiter = bide_when_any_of(&receive->both, awaiter,
                                   bide_websocket_answer_(&receive->answering, websocket));
    receive->is_timed = websocket->options.ping_interval != 0 || websocket->options.silence != 0;
    if (!receive->is_timed)
        return awaiter;
    receive->began = bide_now(context);
    receive->due = receive->began + (next_mark(websocket) - websocket->silent_for);
    return bide_with_deadline(&receive->limited, receive->due, awaiter);
}

/* What has come, whatever the wait has ended with: 1, 3. False: nothing. */
static bool take_what_came(receiving *receive)
{
    bide_websocket *websocket = receive->websocket;
    size_t count = receive->read.count;
    receive->waits = false;
    websocket->is_receiving = false;
    bide_event_set(&websocket->news);
    if (!receive->is_direct)
        return bide_reader_buffered(&websocket->reader) > receive->buffered;
    char *data = receive->data + websocket->kept;
    bide_websocket_mask_(data, data, count, websocket->key, websocket->phase);
    websocket->kept += count;
    take_data(websocket, data, count);
    return count != 0;
}

/* Nothing has come, or something has: is a ping due, or the end? */
static void judge_silence(receiving *receive, bool came, uint64_t now)
{
    bide_websocket *websocket = receive->websocket;
    const bide_websocket_options *options = &websocket->options;
    if (came) {
        websocket->silent_for = 0;
        websocket->next_ping = options->ping_interval;
        return;
    }
    /* (a thread that was late does not make the other side silent) */
    websocket->silent_for += (now < receive->due ? now : receive->due) - receive->began;
    if (options->silence != 0 && websocket->silent_for >= options->silence) {
        end_abnormally(websocket, -EHOSTDOWN);
    } else if (options->ping_interval != 0 && websocket->silent_for >= websocket->next_ping) {
        websocket->has_ping = true;
        websocket->next_ping = websocket->silent_for + options->ping_interval;
    }
}

/* The wait has ended: 0, attempt again; or with what the receive ends. */
static int end_waiting(receiving *receive, const bide_context *context)
{
    bide_websocket *websocket = receive->websocket;
    if (receive->is_timed && receive->status == -ENOTSUP)
        receive->read.count = 0; /* it was not begun */
    bool came = take_what_came(receive);
    int status = receive->is_both && receive->status != -ENOTSUP ? receive->both.branches[0].status
                                                                 : receive->status;
    if (receive->is_timed && receive->status != -ENOTSUP) {
        uint64_t now = bide_now(context);
        judge_silence(receive, came, now);
        if (was_cut(receive->status) && now >= receive->due)
            return 0;
    }
    if (status == 0 || websocket->status != 0)
        return 0;
    if (receive->is_both && bide_when_winner(&receive->both.when) == 1 &&
        !was_cut(receive->both.branches[1].status) && was_cut(status))
        return 0; /* it has answered */
    if (was_cut(status) || status == -ENOTSUP)
        return status;
    end_abnormally(websocket, status == -EPIPE ? -ENODATA : status);
    return 0;
}

/* The other side is to be told, and was not. */
static bool has_to_tell(const bide_websocket *websocket)
{
    return websocket->status != 0 && !websocket->has_told && bide_websocket_has_answers_(websocket);
}

/* ---- The operation ---- */

/* The result will have no user: 2. */
static void receive_give_back(bide_frame *frame)
{
    receiving *receive = bide_container_of(frame, receiving, task.frame);
    if (receive->is_piece)
        receive->websocket->was_not_told = true;
    else
        receive->websocket->is_whole = true;
}

static bool receive_ready(bide_awaiter *awaiter)
{
    receiving *receive = bide_container_of(awaiter, receiving, task.frame.awaiter);
    int status = attempt(receive);
    if (status == -EAGAIN || (status < 0 && has_to_tell(receive->websocket)))
        return false;
    receive->task.frame.error = status;
    return true;
}

static bide_next receive_operation_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type receive_type = {.name = "task", .release = receive_give_back};
static const bide_coroutine_type *const receive_operation_type_ = &receive_type;
static const bide_coroutine_code receive_operation_code = {
    receive_operation_step_, "receive_operation", __FILE__, &receive_operation_type_, NULL};
static const bide_point receive_operation_start =
    BIDE_POINT_START_READY(receive_ready, &receive_operation_code);

bide_body(receive_operation)
{
    bide_begin(receive_operation, receiving * self);
    for (;;) {
        int status = attempt(self);
        if (status == 0)
            bide_return(0);
        if (status != -EAGAIN)
            break;
        bide_await_status(self->status, begin_waiting(self, bide_this_context()));
        status = end_waiting(self, bide_this_context());
        if (status < 0) {
            self->count = self->websocket->kept;
            bide_return(status);
        }
    }
    if (has_to_tell(self->websocket)) {
        bide_await_status(
            self->status,
            bide_with_deadline(&self->limited,
                               bide_now(bide_this_context()) + self->websocket->options.patience,
                               bide_websocket_answer_(&self->answering, self->websocket)));
        if (self->status == -ENOTSUP)
            bide_await_status(self->status, bide_websocket_answer_(&self->answering, self->websocket));
        self->websocket->has_told = true;
    }
    bide_return(self->websocket->status);
    bide_finally();
    if (self->waits)
        take_what_came(self);
    bide_end();
}

static bide_awaiter *begin(receiving *receive, bide_websocket *websocket, void *data, size_t size)
{
    receive->websocket = websocket;
    receive->data = data;
    receive->size = size;
    receive->count = 0;
    receive->has_begun = false;
    receive->waits = false;
    return bide_task_init(&receive->task, &receive_operation_start);
}

bide_awaiter *bide_websocket_recv(receiving *operation, bide_websocket *websocket, void *data,
                                     size_t size)
{
    operation->is_piece = false;
    return begin(operation, websocket, data, size);
}

bide_awaiter *bide_websocket_recv_piece(receiving *operation, bide_websocket *websocket)
{
    operation->is_piece = true;
    return begin(operation, websocket, NULL, 0);
}
