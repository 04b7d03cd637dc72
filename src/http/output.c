/*
 * Messages that go out. All is put into the writer's buffer until it does not fit; then what is in
 * the buffer and the bytes at hand are sent in one call.
 *
 *     NOTHING --first line--> HEAD --its end--> BODY --end--> ENDED
 *                                                 +--trailers--^
 *
 * 1. What is in a head is put there by plain calls, and cannot wait. So there must be room when an
 *    exchange begins; MARGIN is kept for what ends a head.
 * 2. Small pieces of a body in chunks are gathered into one chunk, whose size has four digits that are
 *    written when it ends. What does not fit goes out as a chunk of its own.
 * 3. What is sent by halves spoils the message, and with it the connection (`error`). But a flush of a
 *    request that is cut short leaves the rest in the buffer, and may be followed by another.
 */
#include "output.h"

#include "characters.h"
#include "parse.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

enum {
    MARGIN = 96,
    CHUNK_HEAD = 6, /* "0000\r\n" */
    MAX_GATHERED = 0xffff,
    PIECE = 262144 /* that is sent between two looks at the clock */
};

#define NO_CHUNK SIZE_MAX

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

void bide_http_output_begin_(bide_http_output *output)
{
    output->head = 0;
    output->chunk = NO_CHUNK;
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
    output->error = 0;
    output->count = 0;
}

/* ---- The buffer ---- */

/* Makes room for `size` bytes at its end. False: there is none. */
static bool make_room(bide_http_output *output, size_t size)
{
    bide_writer *writer = output->writer;
    if (size <= writer->size - writer->end)
        return true;
    size_t buffered = bide_writer_buffered(writer);
    if (size > writer->size - buffered)
        return false;
    size_t shift = writer->begin;
    memmove(writer->buffer, writer->buffer + shift, buffered);
    writer->begin = 0;
    writer->end = buffered;
    output->head -= output->head < shift ? output->head : shift;
    if (output->chunk != NO_CHUNK)
        output->chunk -= shift;
    return true;
}

/* There is room. */
static void append(bide_http_output *output, const char *data, size_t size)
{
    bide_writer *writer = output->writer;
    if (size == 0)
        return;
    memcpy(writer->buffer + writer->end, data, size);
    writer->end += size;
}

bool bide_http_output_put_(bide_http_output *output, const char *data, size_t size)
{
    if (!make_room(output, size))
        return false;
    append(output, data, size);
    return true;
}

/* ---- The head ---- */

bool bide_http_output_start_line_(bide_http_output *output, const char *line, size_t size)
{
    if (!make_room(output, size + MARGIN))
        return false;
    output->head = output->writer->end;
    output->state = HTTP_OUTPUT_HEAD;
    append(output, line, size);
    return true;
}

static int add_line(bide_http_output *output, bide_slice name, bide_slice value)
{
    if (!bide_http_is_token_(name.data, name.size) || !bide_http_is_value_(value.data, value.size))
        return -EINVAL;
    if (!make_room(output, name.size + value.size + 4 + MARGIN)) /* 1 */
        return -EMSGSIZE;
    append(output, name.data, name.size);
    append(output, ": ", 2);
    append(output, value.data, value.size);
    append(output, "\r\n", 2);
    return 0;
}

/* What the library says itself. */
static bool is_framing(bide_slice name)
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
    if (output->state != HTTP_OUTPUT_HEAD || is_framing(name))
        return -EINVAL;
    return add_line(output, name, value);
}

static void append_length(bide_http_output *output, uint64_t length)
{
    static const char name[] = "Content-Length: ";
    char digits[20];
    append(output, name, sizeof name - 1);
    append(output, digits, bide_http_print_number_(digits, length));
    append(output, "\r\n", 2);
}

int bide_http_output_end_head_(bide_http_output *output, uint64_t length)
{
    static const char chunked[] = "Transfer-Encoding: chunked\r\n";
    static const char closing[] = "Connection: close\r\n";
    static const char keeping[] = "Connection: keep-alive\r\n";
    if (!make_room(output, MARGIN))
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
        append(output, closing, sizeof closing - 1);
    else if (output->is_old)
        append(output, keeping, sizeof keeping - 1);
    if (output->framing == HTTP_FRAMING_CHUNKED)
        append(output, chunked, sizeof chunked - 1);
    else if (output->framing == HTTP_FRAMING_LENGTH && !output->is_bare)
        append_length(output, length);
    append(output, "\r\n", 2);
    output->state = HTTP_OUTPUT_BODY;
    return 0;
}

/* ---- The body ---- */

static void put_digits(char *at, size_t number)
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 3; i >= 0; i--) {
        at[i] = digits[number & 15];
        number >>= 4;
    }
}

/* Ends the chunk that is gathered, if there is one; its room was kept. 2 */
static void end_chunk(bide_http_output *output)
{
    bide_writer *writer = output->writer;
    if (output->chunk == NO_CHUNK || output->framing != HTTP_FRAMING_CHUNKED)
        return;
    put_digits(writer->buffer + output->chunk, writer->end - output->chunk - CHUNK_HEAD);
    append(output, "\r\n", 2);
    output->chunk = NO_CHUNK;
}

/* Into the chunk that is gathered, or a new one. False: it does not fit. */
static bool gather(bide_http_output *output, const char *data, size_t size)
{
    bool is_new = output->chunk == NO_CHUNK;
    if (size > MAX_GATHERED || !make_room(output, size + 2 + (is_new ? CHUNK_HEAD : 0)))
        return false;
    if (!is_new && output->writer->end - output->chunk - CHUNK_HEAD + size > MAX_GATHERED)
        return false;
    if (is_new) {
        output->chunk = output->writer->end;
        append(output, "0000\r\n", CHUNK_HEAD);
    }
    append(output, data, size);
    return true;
}

int bide_http_output_count_(bide_http_output *output, uint64_t size)
{
    if (output->state != HTTP_OUTPUT_BODY)
        return -EINVAL;
    if (output->framing == HTTP_FRAMING_LENGTH && size > output->left)
        return -EMSGSIZE;
    if (output->framing == HTTP_FRAMING_LENGTH)
        output->left -= size;
    output->body += size;
    return 0;
}

/* The operation without a wait: 0, -EAGAIN, or what it ends with. Once. */
static int attempt(bide_http_output *output)
{
    if (output->error != 0)
        return output->error;
    if (output->is_flush) {
        if (output->is_framed && output->state == HTTP_OUTPUT_TRAILERS)
            return 0; /* they go with the end */
        end_chunk(output);
        return bide_writer_buffered(output->writer) == 0 ? 0 : -EAGAIN;
    }
    if (output->size == 0)
        return 0;
    int status = bide_http_output_count_(output, output->size);
    if (status != 0)
        return status;
    if (output->has_no_body) {
        output->count = output->size;
        return 0;
    }
    bool fits;
    if (output->framing == HTTP_FRAMING_CHUNKED)
        fits = gather(output, output->data, output->size);
    else
        fits = bide_http_output_put_(output, output->data, output->size);
    if (fits)
        output->count = output->size;
    return fits ? 0 : -EAGAIN;
}

static void point_at(struct iovec *vector, const char *data, size_t size)
{
    __extension__ union {
        const void *read;
        void *write;
    } pointer = {.read = data};
    vector->iov_base = pointer.write;
    vector->iov_len = size;
}

/* Begins to send the next piece, with what is buffered. */
static bide_awaiter *begin_piece(bide_http_output *output)
{
    size_t size = output->size - output->count;
    const char *data = size != 0 ? output->data + output->count : NULL;
    if (size > PIECE)
        size = PIECE;
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
    end_chunk(output);
    point_at(&output->vectors[0], output->line + at, sizeof output->line - at);
    point_at(&output->vectors[1], data, size);
    point_at(&output->vectors[2], "\r\n", 2);
    return bide_writer_write_vectors(&output->write, output->writer, output->vectors, 3);
}

/* It has ended. */
static void end_piece(bide_http_output *output)
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
}

static bool output_ready(bide_awaiter *awaiter)
{
    bide_http_output *output = bide_container_of(awaiter, bide_http_output, task.frame.awaiter);
    if (output->status == -EAGAIN)
        return false;
    output->task.frame.error = output->status;
    return true;
}

/* 3 */
static bool is_kept(const bide_http_output *output, int status)
{
    return output->is_flush && output->is_request &&
           (status == -ECANCELED || status == -ETIMEDOUT);
}

static bide_next http_write_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const http_write_type_ = &bide_task_type;
static const bide_coroutine_code http_write_code = {http_write_step_, "bide_http_write", __FILE__,
                                                    &http_write_type_, NULL};
static const bide_point http_write_start = BIDE_POINT_START_READY(output_ready, &http_write_code);

bide_body(http_write)
{
    bide_begin(http_write, bide_http_output * self);
    if (self->status != -EAGAIN)
        bide_return(self->status);
    do {
        http_watch_wait(self->watch, bide_this_context());
        self->is_sending = true;
        bide_await_status(self->status, begin_piece(self));
        self->is_sending = false;
        http_watch_go_on(self->watch);
        end_piece(self);
        if (self->status < 0) {
            if (!is_kept(self, self->status))
                self->error = self->status; /* 3 */
            bide_return(self->status);
        }
    } while (self->count != self->size);
    bide_finally();
    if (self->is_sending && !is_kept(self, -ECANCELED)) /* it is destroyed: 3 */
        self->error = -ECANCELED;
    bide_end();
}

static bide_awaiter *begin(bide_http_output *output, const void *data, size_t size, bool is_flush)
{
    output->data = data;
    output->size = size;
    output->count = 0;
    output->is_flush = is_flush;
    output->is_sending = false;
    output->status = attempt(output);
    return bide_task_init(&output->task, &http_write_start);
}

bide_awaiter *bide_http_output_write_(bide_http_output *output, const void *data, size_t size)
{
    return begin(output, data, size, false);
}

bide_awaiter *bide_http_output_flush_(bide_http_output *output)
{
    return begin(output, NULL, 0, true);
}

bide_awaiter *bide_http_output_fail_(bide_http_output *output, int status)
{
    bide_awaiter *awaiter = begin(output, NULL, 0, false);
    output->status = status;
    return awaiter;
}

bide_awaiter *bide_http_output_continue_(bide_http_output *output)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (output->state != HTTP_OUTPUT_NOTHING) /* it has answered; the other side goes by that */
        return bide_http_output_fail_(output, 0);
    if (!bide_http_output_put_(output, line, sizeof line - 1))
        return bide_http_output_fail_(output, -EMSGSIZE);
    return bide_http_output_flush_(output);
}

/* ---- The end ---- */

int bide_http_output_add_trailer_(bide_http_output *output, bide_slice name, bide_slice value)
{
    if ((output->state != HTTP_OUTPUT_BODY && output->state != HTTP_OUTPUT_TRAILERS) ||
        (output->framing != HTTP_FRAMING_CHUNKED && output->framing != HTTP_FRAMING_CARRIED) || is_framing(name))
        return -EINVAL;
    if (output->has_no_body)
        return 0;
    if (output->state == HTTP_OUTPUT_BODY) {
        if (!make_room(output, name.size + value.size + 4 + MARGIN))
            return -EMSGSIZE;
        if (output->is_framed) {
            output->chunk = output->writer->end; /* where they begin */
        } else {
            end_chunk(output);
            append(output, "0\r\n", 3);
        }
        output->state = HTTP_OUTPUT_TRAILERS;
    }
    return add_line(output, name, value);
}

int bide_http_output_end_(bide_http_output *output)
{
    static const char last[] = "0\r\n\r\n";
    if (output->error != 0)
        return output->error;
    if (output->state == HTTP_OUTPUT_ENDED)
        return 0;
    if (output->framing == HTTP_FRAMING_LENGTH && output->left != 0 && !output->has_no_body)
        return output->error = -ENODATA;
    if (output->framing == HTTP_FRAMING_CHUNKED && !output->has_no_body) {
        if (!make_room(output, 2 + sizeof last - 1))
            return -EAGAIN;
        end_chunk(output);
        if (output->state == HTTP_OUTPUT_TRAILERS)
            append(output, "\r\n", 2);
        else
            append(output, last, sizeof last - 1);
    }
    output->state = HTTP_OUTPUT_ENDED;
    return 0;
}
