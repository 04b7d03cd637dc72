/*
 * Messages that are sent. All bytes are appended to the writer's buffer until they no longer fit.
 * Then the buffer and the caller's bytes are sent in one call.
 *
 *     NOTHING --first line--> HEAD --its end--> BODY --end--> ENDED
 *                                                 +--trailers--^
 *
 * Threads: all functions run on the loop's thread; one write or flush at a time.
 *
 * Why it is correct:
 * 1. Plain calls put the head into the buffer; they cannot wait. An exchange therefore starts with
 *    enough room, and each call leaves HTTP_OUTPUT_MARGIN for the end of the head.
 * 2. Small pieces of a body in chunks are gathered into one chunk. Its size has four digits, which
 *    are written when the chunk ends. A piece that does not fit is sent as its own chunk.
 * 3. A partial send makes the message invalid, and with it the connection (`error`). The exception is
 *    the flush of a request, or of an interim response, that is cancelled or times out: the unsent bytes stay in the
 *    buffer, and the next write or flush resumes there.
 *    The output of earlier messages is no part of this one: another coroutine may send it while the message is written
 *    (bide_http_output_send_early_). Until that has ended, the buffer's bytes keep their place, only the free part behind
 *    them is used, and a write or flush waits before its first byte.
 *    An interim response stands behind earlier responses in the buffer, and is a complete message. The same coroutine
 *    sends it (`early_sender`), for which its read is cancelled (`early_pause`), and the operation only waits. So an
 *    interim response whose operation is cancelled, times out or is destroyed is still sent, and holds no other message
 *    back. After a stop of the connection, and when the client has left, the other coroutine sends nothing more, and the
 *    operation does it itself. A cancelled early send is no error of the output: a write that no stop reaches goes on.
 *    A write counts its bytes when it begins to take them, and it takes all of them or makes the message invalid. A write
 *    that is made and never begins takes none (`is_unfinished`). The next operation, or the end of the message, finds
 *    that and makes the message invalid; only a body whose length is announced and complete stays valid.
 * 4. A chunk that is being gathered lies in the unsent part of the buffer and is not empty.
 * 5. A read that sends "100 Continue" runs beside a write of another coroutine, so it has an event of its own and does
 *    not use the write's operation. Each end of an early send sets the event, and so does a write that takes the buffer
 *    along. Without an early sender the read sends the buffer early itself (`is_sent_by_read`), unless a write or an
 *    early send is under way, whose end it awaits. The guard's end does not withdraw the read's send. If the read is
 *    cancelled, the next read sends the rest (`has_continue`).
 * 6. The watch has a deadline of a write only while it waits, also if the operation is destroyed.
 */
#include "output.h"

#include "characters.h"
#include "parse.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

enum {
    HTTP_OUTPUT_MARGIN = 96,
    HTTP_OUTPUT_CHUNK_HEAD = 6, /* "0000\r\n" */
    HTTP_OUTPUT_MAX_CHUNK = 0xffff,
    HTTP_OUTPUT_PIECE = 262144 /* the bytes that are sent before the deadline is renewed */
};

#define HTTP_OUTPUT_NO_CHUNK SIZE_MAX

size_t bide_http_print_number_(char digits[20], uint64_t number)
{
    char reversed[20];
    size_t size = 0;
    do {
        reversed[size++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    for (size_t i = 0; i < size; i++)
        digits[i] = reversed[size - 1 - i];
    return size;
}

void bide_http_output_start_(bide_http_output *output)
{
    output->head = 0;
    output->chunk = HTTP_OUTPUT_NO_CHUNK;
    output->left = 0;
    output->length = BIDE_HTTP_UNKNOWN;
    output->body = 0;
    output->state = HTTP_OUTPUT_NOTHING;
    output->framing = HTTP_FRAMING_LENGTH;
    output->is_old = false;
    output->closes = false;
    output->has_no_body = false;
    output->is_bare = false;
    output->is_sent = false;
    output->has_continue = false;
    output->error = 0;
    output->count = 0;
    output->is_unfinished = false;
}

void bide_http_output_init_(bide_http_output *output, bide_writer *writer, bide_http_watch *watch)
{
    output->writer = writer;
    output->watch = watch;
    output->is_framed = false;
    output->is_request = false;
    output->is_sending = false;
    output->is_sent_early = false;
    output->early_status = 0;
    output->early_sender = NULL;
    output->early_pause = NULL;
    output->is_sent_by_read = false;
    bide_auto_event_init(&output->returned, false);
    bide_auto_event_init(&output->continued, false);
    bide_http_output_start_(output);
}

/* ---- The buffer ---- */

/* Moves the buffered bytes to the front of the buffer. */
static void http_output_compact(bide_http_output *output)
{
    bide_writer *writer = output->writer;
    size_t buffered = bide_writer_buffered(writer);
    size_t shift = writer->begin;
    bide_assert(!output->is_sent_early && !writer->is_writing);
    bide_assert(output->chunk == HTTP_OUTPUT_NO_CHUNK || output->chunk >= shift);
    memmove(writer->buffer, writer->buffer + shift, buffered);
    writer->begin = 0;
    writer->end = buffered;
    output->head -= output->head < shift ? output->head : shift;
    if (output->chunk != HTTP_OUTPUT_NO_CHUNK)
        output->chunk -= shift;
}

/* Makes room for `size` bytes at the end of the buffer. Returns false if they cannot fit. */
static bool http_output_make_room(bide_http_output *output, size_t size)
{
    bide_writer *writer = output->writer;
    if (size <= writer->size - writer->end)
        return true;
    if (size > writer->size - bide_writer_buffered(writer) || output->is_sent_early) /* 3 */
        return false;
    http_output_compact(output);
    return true;
}

bool bide_http_output_reserve_(bide_http_output *output, size_t size)
{
    return http_output_make_room(output, size);
}

/* The caller has made room. */
static void http_output_append(bide_http_output *output, const char *data, size_t size)
{
    bide_writer *writer = output->writer;
    bide_assert(writer->begin <= writer->end && size <= writer->size - writer->end);
    if (size == 0)
        return;
    memcpy(writer->buffer + writer->end, data, size);
    writer->end += size;
}

bool bide_http_output_put_(bide_http_output *output, const char *data, size_t size)
{
    if (!http_output_make_room(output, size))
        return false;
    http_output_append(output, data, size);
    return true;
}

/* ---- The head ---- */

bool bide_http_output_start_line_(bide_http_output *output, const char *line, size_t size)
{
    if (!http_output_make_room(output, size + HTTP_OUTPUT_MARGIN))
        return false;
    bide_assert(output->state == HTTP_OUTPUT_NOTHING);
    output->head = output->writer->end;
    output->state = HTTP_OUTPUT_HEAD;
    http_output_append(output, line, size);
    return true;
}

static int http_output_add_line(bide_http_output *output, bide_slice name, bide_slice value)
{
    if (!bide_http_is_token_(name.data, name.size) || !bide_http_is_value_(value.data, value.size))
        return -EINVAL;
    if (!http_output_make_room(output, name.size + value.size + 4 + HTTP_OUTPUT_MARGIN)) /* 1 */
        return -EMSGSIZE;
    http_output_append(output, name.data, name.size);
    http_output_append(output, ": ", 2);
    http_output_append(output, value.data, value.size);
    http_output_append(output, "\r\n", 2);
    return 0;
}

bool bide_http_output_is_framing_(bide_slice name)
{
    switch (name.size) {
    case 10:
        return bide_http_is(name, "connection");
    case 14:
        return bide_http_is(name, "content-length");
    case 17:
        return bide_http_is(name, "transfer-encoding");
    default:
        return false;
    }
}

int bide_http_output_add_(bide_http_output *output, bide_slice name, bide_slice value)
{
    if (output->state != HTTP_OUTPUT_HEAD || bide_http_output_is_framing_(name))
        return -EINVAL;
    return http_output_add_line(output, name, value);
}

static void http_output_append_length(bide_http_output *output, uint64_t length)
{
    static const char name[] = "Content-Length: ";
    char digits[20];
    http_output_append(output, name, sizeof name - 1);
    http_output_append(output, digits, bide_http_print_number_(digits, length));
    http_output_append(output, "\r\n", 2);
}

int bide_http_output_end_head_(bide_http_output *output, uint64_t length)
{
    static const char chunked[] = "Transfer-Encoding: chunked\r\n";
    static const char closing[] = "Connection: close\r\n";
    static const char keeping[] = "Connection: keep-alive\r\n";
    bide_assert(output->state == HTTP_OUTPUT_HEAD);
    if (!http_output_make_room(output, HTTP_OUTPUT_MARGIN))
        return -EMSGSIZE;
    output->length = length;
    output->left = length;
    if (length != BIDE_HTTP_UNKNOWN || output->is_bare) {
        output->framing = HTTP_FRAMING_LENGTH;
    } else if (output->is_framed) {
        output->framing = HTTP_FRAMING_CARRIED;
    } else if (!output->is_old) {
        output->framing = HTTP_FRAMING_CHUNKED;
    } else {
        output->framing = HTTP_FRAMING_CLOSE;
        output->closes = true;
    }
    if (output->closes && !output->is_framed)
        http_output_append(output, closing, sizeof closing - 1);
    else if (output->is_old)
        http_output_append(output, keeping, sizeof keeping - 1);
    if (output->framing == HTTP_FRAMING_CHUNKED)
        http_output_append(output, chunked, sizeof chunked - 1);
    else if (output->framing == HTTP_FRAMING_LENGTH && !output->is_bare)
        http_output_append_length(output, length);
    http_output_append(output, "\r\n", 2);
    output->state = HTTP_OUTPUT_BODY;
    return 0;
}

/* ---- The body ---- */

static void http_output_put_digits(char *at, size_t number)
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 3; i >= 0; i--) {
        at[i] = digits[number & 15];
        number >>= 4;
    }
}

/* Ends the chunk that is being gathered, if there is one. Its room is reserved: 2 */
static void http_output_end_chunk(bide_http_output *output)
{
    bide_writer *writer = output->writer;
    if (output->chunk == HTTP_OUTPUT_NO_CHUNK || output->framing != HTTP_FRAMING_CHUNKED)
        return;
    bide_assert(output->chunk >= writer->begin && /* 4 */
                output->chunk + HTTP_OUTPUT_CHUNK_HEAD < writer->end);
    bide_assert(writer->end - output->chunk - HTTP_OUTPUT_CHUNK_HEAD <= HTTP_OUTPUT_MAX_CHUNK);
    http_output_put_digits(writer->buffer + output->chunk,
                           writer->end - output->chunk - HTTP_OUTPUT_CHUNK_HEAD);
    http_output_append(output, "\r\n", 2);
    output->chunk = HTTP_OUTPUT_NO_CHUNK;
}

/* Appends to the current chunk, or starts one. Returns false if the data does not fit. */
static bool http_output_gather(bide_http_output *output, const char *data, size_t size)
{
    bool is_new = output->chunk == HTTP_OUTPUT_NO_CHUNK;
    if (size > HTTP_OUTPUT_MAX_CHUNK ||
        !http_output_make_room(output, size + 2 + (is_new ? HTTP_OUTPUT_CHUNK_HEAD : 0)))
        return false;
    if (!is_new &&
        output->writer->end - output->chunk - HTTP_OUTPUT_CHUNK_HEAD + size > HTTP_OUTPUT_MAX_CHUNK)
        return false;
    if (is_new) {
        output->chunk = output->writer->end;
        http_output_append(output, "0000\r\n", HTTP_OUTPUT_CHUNK_HEAD);
    }
    http_output_append(output, data, size);
    return true;
}

int bide_http_output_check_(const bide_http_output *output, uint64_t size)
{
    if (output->state != HTTP_OUTPUT_BODY)
        return -EINVAL;
    return output->framing == HTTP_FRAMING_LENGTH && size > output->left ? -EMSGSIZE : 0;
}

int bide_http_output_count_(bide_http_output *output, uint64_t size)
{
    int status = bide_http_output_check_(output, size);
    if (status < 0)
        return status;
    if (output->framing == HTTP_FRAMING_LENGTH)
        output->left -= size;
    output->body += size;
    return 0;
}

int bide_http_output_settle_(bide_http_output *output)
{
    if (output->is_unfinished && output->error == 0)
        output->error = -ECANCELED;
    output->is_unfinished = false;
    return output->error;
}

/* Puts the bytes of a write into the buffer. Returns false if they do not fit. */
static bool http_output_put_body(bide_http_output *output)
{
    if (output->framing == HTTP_FRAMING_CHUNKED)
        return http_output_gather(output, output->data, output->size);
    return bide_http_output_put_(output, output->data, output->size);
}

/* Performs the operation without a wait, if that is possible. Otherwise returns -EAGAIN, and has taken nothing. */
static int http_output_attempt(bide_http_output *output)
{
    int status = output->status != -EAGAIN ? output->status : output->error;
    if (status == 0 && output->is_flush) {
        if (output->is_framed && output->state == HTTP_OUTPUT_TRAILERS)
            return 0; /* the trailers are sent with the end of the response */
        http_output_end_chunk(output);
        return bide_writer_buffered(output->writer) == 0 ? 0 : -EAGAIN;
    }
    if (status == 0 && output->size != 0) {
        status = bide_http_output_check_(output, output->size);
        if (status == 0 && !output->has_no_body && !http_output_put_body(output))
            return -EAGAIN;
        if (status == 0)
            status = bide_http_output_count_(output, output->size);
    }
    output->is_unfinished = false;
    return status;
}

static void http_output_set_vector(struct iovec *vector, const char *data, size_t size)
{
    __extension__ union {
        const void *read;
        void *write;
    } pointer = {.read = data};
    vector->iov_base = pointer.write;
    vector->iov_len = size;
}

/* Starts sending the buffer and the next piece. */
static bide_awaiter *http_output_start_piece(bide_http_output *output)
{
    size_t size = output->size - output->count;
    output->status = -ECANCELED; /* stays if the operation is destroyed */
    const char *data = size != 0 ? output->data + output->count : NULL;
    if (size > HTTP_OUTPUT_PIECE)
        size = HTTP_OUTPUT_PIECE;
    if (output->state != HTTP_OUTPUT_NOTHING)
        output->is_sent = true;
    if (output->is_flush)
        return bide_writer_flush(&output->write, output->writer);
    if (output->framing != HTTP_FRAMING_CHUNKED)
        return bide_writer_write(&output->write, output->writer, data, size);
    static const char digits[] = "0123456789abcdef";
    size_t at = sizeof output->line;
    output->line[--at] = '\n';
    output->line[--at] = '\r';
    for (size_t number = size; number != 0; number >>= 4)
        output->line[--at] = digits[number & 15];
    http_output_end_chunk(output);
    http_output_set_vector(&output->vectors[0], output->line + at, sizeof output->line - at);
    http_output_set_vector(&output->vectors[1], data, size);
    http_output_set_vector(&output->vectors[2], "\r\n", 2);
    return bide_writer_write_vectors(&output->write, output->writer, output->vectors, 3);
}

static void http_output_finish_piece(bide_http_output *output)
{
    size_t count = output->write.count;
    if (output->is_flush)
        return;
    if (output->framing == HTTP_FRAMING_CHUNKED) {
        size_t before = output->vectors[0].iov_len;
        count = count > before ? count - before : 0;
        if (count > output->vectors[1].iov_len)
            count = output->vectors[1].iov_len;
    }
    output->count += count;
    bide_assert(output->count <= output->size);
}

/* Counts the bytes of a write, before the first of them may leave. */
static void http_output_begin(bide_http_output *output)
{
    int status = output->is_flush ? 0 : bide_http_output_count_(output, output->size);
    bide_assert(status == 0); /* they were checked, and one operation counts at a time */
    (void)status;
}

static bool http_output_ready(bide_awaiter *awaiter)
{
    bide_http_output *output = bide_container_of(awaiter, bide_http_output, task.frame.awaiter);
    int status = http_output_attempt(output);
    if (status == -EAGAIN)
        return false;
    output->task.frame.error = status;
    return true;
}

static bool http_output_is_stop(int status)
{
    return status == -ECANCELED || status == -ETIMEDOUT;
}

/* 3 */
static int http_output_early_error(const bide_http_output *output)
{
    return http_output_is_stop(output->early_status) ? 0 : output->early_status;
}

/* 3 */
static bool http_output_is_resumable(const bide_http_output *output, int status)
{
    return output->is_flush && (output->is_request || output->is_interim) &&
           http_output_is_stop(status);
}

/* Has the other coroutine send, instead of read. */
static void http_output_start_early(bide_http_output *output)
{
    bide_auto_event_set(output->early_sender);
    if (output->early_pause != NULL)
        bide_stop_request(output->early_pause);
}

/* Wakes the read that waits until "100 Continue" was sent, if there is one: 5 */
static void http_output_wake_continuing(bide_http_output *output)
{
    if (output->has_continue)
        bide_auto_event_set(&output->continued);
}

static bide_next http_write_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const http_write_type_ = &bide_task_type;
static const bide_coroutine_code http_write_code = {http_write_step_, "bide_http_write", __FILE__,
                                                    &http_write_type_, NULL};
static const bide_point http_write_start =
    BIDE_POINT_START_READY(http_output_ready, &http_write_code);

/* Waits until the other coroutine has sent: 3 */
static bide_awaiter *http_output_await_return(bide_http_output *output)
{
    output->status = -ECANCELED; /* stays if the operation is destroyed */
    return bide_auto_event_wait(&output->returning, &output->returned);
}

bide_body(http_write)
{
    bide_begin(http_write, bide_http_output * self);
    self->status = http_output_attempt(self);
    if (self->status != -EAGAIN)
        bide_return(self->status);
    self->is_unfinished = true;
    while (self->is_sent_early || (self->is_interim && self->early_sender != NULL &&
                                   bide_writer_buffered(self->writer) != 0)) { /* 3 */
        http_watch_start_wait(self->watch, HTTP_WATCH_WRITE, bide_this_context());
        if (self->is_interim && self->early_sender != NULL)
            http_output_start_early(self);
        bide_await_status(self->status, http_output_await_return(self));
        http_watch_stop_wait(self->watch, HTTP_WATCH_WRITE);
        if (self->status == 0)
            self->status = http_output_early_error(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    http_output_begin(self);
    do {
        http_watch_start_wait(self->watch, HTTP_WATCH_WRITE, bide_this_context());
        self->is_sending = true;
        http_output_wake_continuing(self);
        bide_await_status(self->status, http_output_start_piece(self));
        self->is_sending = false;
        http_watch_stop_wait(self->watch, HTTP_WATCH_WRITE);
        http_output_finish_piece(self);
        if (self->status < 0)
            bide_return(self->status);
    } while (self->count != self->size);
    self->is_unfinished = false;
    bide_finally();
    http_watch_stop_wait(self->watch, HTTP_WATCH_WRITE);
    if (self->is_unfinished && !http_output_is_resumable(self, self->status))
        self->error = self->status; /* 3 */
    self->is_unfinished = false;
    self->is_sending = false;
    http_output_wake_continuing(self);
    bide_end();
}

static bide_awaiter *http_output_start(bide_http_output *output, const void *data, size_t size,
                                       bool is_flush)
{
    (void)bide_http_output_settle_(output);
    output->data = data;
    output->size = size;
    output->count = 0;
    output->is_flush = is_flush;
    output->is_interim = false;
    output->is_sending = false;
    output->is_unfinished = size != 0;
    output->status = -EAGAIN;
    return bide_task_init(&output->task, &http_write_start);
}

bide_awaiter *bide_http_output_write_(bide_http_output *output, const void *data, size_t size)
{
    return http_output_start(output, data, size, false);
}

bide_awaiter *bide_http_output_flush_(bide_http_output *output)
{
    return http_output_start(output, NULL, 0, true);
}

bide_awaiter *bide_http_output_flush_interim_(bide_http_output *output)
{
    bide_awaiter *awaiter = bide_http_output_flush_(output);
    bide_assert(output->state == HTTP_OUTPUT_NOTHING);
    output->is_interim = true;
    return awaiter;
}

/* ---- The output of earlier messages ---- */

bide_awaiter *bide_http_output_send_early_(bide_http_output *output)
{
    bide_writer *writer = output->writer;
    /* (Plain calls use the part behind the bytes. A file may be being read into that part.) */
    if (output->state < HTTP_OUTPUT_BODY || output->framing != HTTP_FRAMING_LENGTH)
        http_output_compact(output);
    writer->of_buffer = http_output_earlier(output);
    bide_assert(writer->of_buffer != 0 && !output->is_sending && !writer->is_writing);
    writer->is_writing = true;
    output->is_sent_early = true;
    return bide_stream_write(&writer->operation, writer->stream, writer->buffer + writer->begin,
                             writer->of_buffer);
}

void bide_http_output_withdraw_(bide_http_output *output)
{
    bide_writer *writer = output->writer;
    if (!output->is_sent_early || output->is_sent_by_read)
        return;
    size_t count = bide_stream_count(&writer->operation, writer->stream);
    bide_assert(writer->is_writing && count <= writer->of_buffer);
    output->is_sent_early = false;
    writer->is_writing = false;
    writer->begin += count;
    if (writer->begin == writer->end) {
        writer->begin = 0;
        writer->end = 0;
    }
}

int bide_http_output_take_back_(bide_http_output *output, int status)
{
    size_t before = bide_writer_buffered(output->writer);
    bide_http_output_withdraw_(output);
    if (status == 0 && bide_writer_buffered(output->writer) == before)
        status = -EIO; /* it would be retried forever */
    output->early_status = status;
    bide_auto_event_set(&output->returned);
    http_output_wake_continuing(output);
    return status;
}

void bide_http_output_end_early_(bide_http_output *output)
{
    output->early_sender = NULL;
    output->early_pause = NULL;
    bide_auto_event_set(&output->returned);
    http_output_wake_continuing(output);
}

/* ---- Other operations ---- */

bide_awaiter *bide_http_output_fail_(bide_http_output *output, int status)
{
    bide_awaiter *awaiter = http_output_start(output, NULL, 0, false);
    output->status = status;
    return awaiter;
}

int bide_http_output_put_continue_(bide_http_output *output)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (output->has_continue) { /* a read that was cancelled has put it */
        output->has_continue = http_output_earlier(output) != 0;
        return output->has_continue ? -EAGAIN : 0;
    }
    if (output->state != HTTP_OUTPUT_NOTHING) /* the client no longer waits for it */
        return 0;
    output->has_continue = bide_http_output_put_(output, line, sizeof line - 1);
    return output->has_continue ? -EAGAIN : -EMSGSIZE;
}

bide_awaiter *bide_http_output_send_continue_(bide_http_output *output)
{
    bide_auto_event_reset(&output->continued);
    if (output->early_sender != NULL) {
        http_output_start_early(output);
    } else if (!output->is_sent_early && !output->is_sending) { /* 5 */
        output->is_sent_by_read = true;
        return bide_http_output_send_early_(output);
    }
    return bide_auto_event_wait(&output->continuing, &output->continued);
}

int bide_http_output_continued_(bide_http_output *output, int status)
{
    if (output->is_sent_by_read) {
        output->is_sent_by_read = false;
        status = bide_http_output_take_back_(output, status);
        if (output->error == 0)
            output->error = http_output_early_error(output);
        if (http_output_is_stop(status))
            output->early_status = -ECANCELED;
    }
    if (status < 0)
        return status;
    if (output->is_sending || http_output_earlier(output) == 0) {
        output->has_continue = false;
        return 0;
    }
    if (http_output_early_error(output) < 0)
        return http_output_early_error(output);
    return output->error < 0 ? output->error : -EAGAIN;
}

void bide_http_output_leave_continue_(bide_http_output *output)
{
    if (!output->is_sent_by_read)
        return;
    output->is_sent_by_read = false;
    bide_http_output_withdraw_(output);
    output->early_status = -ECANCELED;
    bide_auto_event_set(&output->returned);
}

/* ---- The end ---- */

int bide_http_output_add_trailer_(bide_http_output *output, bide_slice name, bide_slice value)
{
    if ((output->state != HTTP_OUTPUT_BODY && output->state != HTTP_OUTPUT_TRAILERS) ||
        (output->framing != HTTP_FRAMING_CHUNKED && output->framing != HTTP_FRAMING_CARRIED) ||
        bide_http_output_is_framing_(name))
        return -EINVAL;
    if (output->has_no_body)
        return 0;
    if (output->state == HTTP_OUTPUT_BODY) {
        if (!http_output_make_room(output, name.size + value.size + 4 + HTTP_OUTPUT_MARGIN))
            return -EMSGSIZE;
        if (output->is_framed) {
            bide_assert(output->chunk == HTTP_OUTPUT_NO_CHUNK);
            output->chunk = output->writer->end; /* the trailers begin here */
        } else {
            http_output_end_chunk(output);
            http_output_append(output, "0\r\n", 3);
        }
        output->state = HTTP_OUTPUT_TRAILERS;
    }
    return http_output_add_line(output, name, value);
}

int bide_http_output_end_(bide_http_output *output)
{
    static const char last[] = "0\r\n\r\n";
    if (output->error != 0)
        return output->error;
    if (output->state == HTTP_OUTPUT_ENDED)
        return 0;
    bool has_length = output->framing == HTTP_FRAMING_LENGTH;
    bool is_complete = output->has_no_body || (has_length && output->left == 0);
    if (!is_complete && bide_http_output_settle_(output) != 0)
        return output->error;
    if (!is_complete && has_length)
        return output->error = -ENODATA;
    if (output->framing == HTTP_FRAMING_CHUNKED && !output->has_no_body) {
        if (!http_output_make_room(output, 2 + sizeof last - 1))
            return -EAGAIN;
        http_output_end_chunk(output);
        if (output->state == HTTP_OUTPUT_TRAILERS)
            http_output_append(output, "\r\n", 2);
        else
            http_output_append(output, last, sizeof last - 1);
    }
    output->state = HTTP_OUTPUT_ENDED;
    return 0;
}
