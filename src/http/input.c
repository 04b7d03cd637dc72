/*
 * The body of a message that is received: by length, in chunks, or to the end of the connection.
 *
 *     reader's buffer |===head===|.........|=======|.....|
 *                     0          base      begin   end   size
 *
 *     LENGTH --last byte--> END
 *     SIZE --line--> CHUNK --last byte--> CHUNK_END --> SIZE
 *      +--line with 0--> TRAILERS --> END
 *
 * Threads: all functions run on the loop's thread; one read at a time.
 *
 * Why it is correct:
 * 1. The head keeps its place until the exchange ends. Data is therefore read behind `base`, where
 *    at least HTTP_ROOM_BEHIND_HEAD bytes are free or buffered (bide_http_input_keep_room_).
 * 2. The size line of a chunk and the trailers are parsed once all of them are buffered. A size line
 *    longer than HTTP_INPUT_MAX_CHUNK_LINE is invalid, and trailers that do not fit behind `base` are
 *    rejected. A read therefore always finds room in the buffer.
 * 3. A read bypasses the buffer if the buffer is empty, and the caller's memory has room for many
 *    bytes or for all remaining bytes of the body or chunk. Such a read never takes bytes that follow
 *    the body or the chunk.
 * 4. An invalid body stays invalid: every later read returns the same error.
 * 5. The watch has a deadline of a read only while it waits, also if the operation is destroyed.
 */
#include "input.h"

#include "output.h"
#include "parse.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

enum { HTTP_INPUT_MAX_CHUNK_LINE = 256, HTTP_INPUT_MIN_DIRECT = 2048 };

void bide_http_input_start_(bide_http_input *input, enum http_framing framing, uint64_t length)
{
    input->base = input->reader->begin;
    input->scanned = 0;
    input->left = framing == HTTP_FRAMING_LENGTH ? length : BIDE_HTTP_UNKNOWN;
    input->taken = 0;
    input->trailer_count = 0;
    input->state = framing == HTTP_FRAMING_CHUNKED ? HTTP_INPUT_SIZE
                   : input->left == 0              ? HTTP_INPUT_END
                                                   : HTTP_INPUT_LENGTH;
    input->is_bounded = framing == HTTP_FRAMING_CLOSE;
    input->must_continue = false;
    input->error = 0;
    input->count = 0;
}

void bide_http_input_keep_room_(bide_reader *reader, size_t size)
{
    size_t buffered = bide_reader_buffered(reader);
    bide_assert(size <= buffered && size <= reader->size - HTTP_ROOM_BEHIND_HEAD);
    if (reader->size - reader->begin - size >= HTTP_ROOM_BEHIND_HEAD)
        return;
    memmove(reader->buffer, bide_reader_peek(reader), buffered);
    reader->begin = 0;
    reader->end = buffered;
}

/* ---- Buffered data ---- */

/* Counts `count` bytes of the body as read. */
static void http_input_account(bide_http_input *input, size_t count)
{
    bide_assert(input->state == HTTP_INPUT_LENGTH || input->state == HTTP_INPUT_CHUNK);
    bide_assert(count <= input->size - input->count);
    bide_assert(input->is_bounded || count <= input->left); /* 3 */
    input->taken += count;
    input->count += count;
    if (count != 0)
        input->must_continue = false; /* (the client has not waited for it) */
    bide_assert(input->taken <= input->max);
    if (input->is_bounded)
        return;
    input->left -= count;
    if (input->left == 0)
        input->state = input->state == HTTP_INPUT_LENGTH ? HTTP_INPUT_END : HTTP_INPUT_CHUNK_END;
}

/* The claims about a body between two steps: 1, and what each state says of `left`. */
static void http_input_check(const bide_http_input *input)
{
    const bide_reader *reader = input->reader;
    bide_assert(input->base <= reader->begin && reader->begin <= reader->end && /* 1 */
                reader->end <= reader->size);
    bide_assert(!input->is_bounded || input->state == HTTP_INPUT_LENGTH ||
                input->state == HTTP_INPUT_END);
    bide_assert((input->state != HTTP_INPUT_LENGTH && input->state != HTTP_INPUT_CHUNK) ||
                input->left != 0);
    bide_assert((input->state != HTTP_INPUT_CHUNK_END && input->state != HTTP_INPUT_TRAILERS) ||
                input->left == 0);
    bide_assert(input->count <= input->size);
    (void)reader;
}

/* The part of `size` bytes that belongs to the body or chunk. */
static size_t http_input_body_part(const bide_http_input *input, size_t size)
{
    return size < input->left ? size : (size_t)input->left;
}

/*
 * Copies buffered bytes, or drops them if `data` is NULL. Returns -EAGAIN if nothing is buffered.
 */
static int http_input_copy_bytes(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    size_t count = http_input_body_part(input, bide_reader_buffered(reader));
    if (count > input->size - input->count)
        count = input->size - input->count;
    if (count == 0)
        return reader->has_ended && input->is_bounded ? 0 : -EAGAIN;
    if (input->is_bounded && input->taken + count > input->max)
        return -EFBIG;
    if (input->data != NULL)
        memcpy(input->data + input->count, bide_reader_peek(reader), count);
    bide_reader_consume(reader, count);
    http_input_account(input, count);
    return 0;
}

/* Parses the line with the size of a chunk: 2 */
static int http_input_parse_size(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    const char *line = bide_reader_peek(reader);
    size_t buffered = bide_reader_buffered(reader);
    size_t max = buffered < HTTP_INPUT_MAX_CHUNK_LINE ? buffered : HTTP_INPUT_MAX_CHUNK_LINE;
    const char *end = max != 0 ? memchr(line, '\n', max) : NULL;
    if (end == NULL)
        return buffered >= HTTP_INPUT_MAX_CHUNK_LINE ? -EBADMSG : -EAGAIN;
    if (end == line || end[-1] != '\r' ||
        bide_http_parse_chunk_size_(line, (size_t)(end - line) - 1, &input->left) != 0)
        return -EBADMSG;
    if (input->left > input->max - input->taken)
        return -EFBIG;
    bide_reader_consume(reader, (size_t)(end - line) + 1);
    input->scanned = 0;
    input->state = input->left == 0 ? HTTP_INPUT_TRAILERS : HTTP_INPUT_CHUNK;
    return 0;
}

static int http_input_parse_chunk_end(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    const char *at = bide_reader_peek(reader);
    size_t buffered = bide_reader_buffered(reader);
    if ((buffered > 0 && at[0] != '\r') || (buffered > 1 && at[1] != '\n'))
        return -EBADMSG;
    if (buffered < 2)
        return -EAGAIN;
    bide_reader_consume(reader, 2);
    input->state = HTTP_INPUT_SIZE;
    return 0;
}

static int http_input_parse_trailers(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    size_t buffered = bide_reader_buffered(reader);
    ptrdiff_t size = bide_http_find_end_(bide_reader_peek(reader), buffered, &input->scanned);
    if (size == HTTP_BAD)
        return -EBADMSG;
    if (size == HTTP_MORE)
        return buffered == reader->size - input->base ? -EMSGSIZE : -EAGAIN;
    if (size > 2) {
        http_head head = {.fields = input->fields + input->field_count,
                          .max_fields = input->max_fields - input->field_count};
        int status = bide_http_parse_trailers_(&head, bide_reader_peek(reader), (size_t)size);
        if (status < 0)
            return status;
        input->trailer_count = head.field_count;
        bide_assert(input->field_count + input->trailer_count <= input->max_fields);
    }
    bide_reader_consume(reader, (size_t)size);
    input->state = HTTP_INPUT_END;
    return 0;
}

/*
 * Advances as far as buffered data allows. Returns 0 (a result), -EAGAIN (needs data), or an
 * error.
 */
static int http_input_advance(bide_http_input *input)
{
    int status = input->error;
    http_input_check(input);
    while (status == 0 && input->state != HTTP_INPUT_END) {
        size_t before = input->count;
        switch (input->state) {
        case HTTP_INPUT_SIZE:
            status = http_input_parse_size(input);
            break;
        case HTTP_INPUT_CHUNK_END:
            status = http_input_parse_chunk_end(input);
            break;
        case HTTP_INPUT_TRAILERS:
            status = http_input_parse_trailers(input);
            break;
        default:
            if (input->count == input->size)
                return 0;
            status = http_input_copy_bytes(input);
            if (status == 0 && input->count == before) /* the connection has ended */
                input->state = HTTP_INPUT_END;
            break;
        }
    }
    if (input->state == HTTP_INPUT_END)
        input->must_continue = false; /* (the same, if the body is empty) */
    if (status == -EAGAIN && input->count != 0)
        return 0;
    if (status == -EAGAIN && input->reader->has_ended)
        status = -ENODATA;
    http_input_check(input);
    if (status < 0 && status != -EAGAIN)
        input->error = status; /* 4 */
    return input->count != 0 ? 0 : status;
}

bool bide_http_input_drop_(bide_http_input *input)
{
    input->data = NULL;
    input->size = SIZE_MAX;
    input->count = 0;
    (void)http_input_advance(input);
    return input->state == HTTP_INPUT_END;
}

/* ---- Reading ---- */

bide_awaiter *bide_http_input_fill_(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    size_t buffered = bide_reader_buffered(reader);
    if (reader->begin != input->base && (buffered == 0 || reader->end == reader->size)) {
        memmove(reader->buffer + input->base, bide_reader_peek(reader), buffered);
        reader->begin = input->base;
        reader->end = input->base + buffered;
    }
    bide_assert(input->base <= reader->begin && reader->begin <= reader->end);
    bide_assert(reader->end < reader->size); /* 2 */
    input->is_direct = false;
    return bide_stream_read(&reader->operation, reader->stream, reader->buffer + reader->end,
                            reader->size - reader->end);
}

void bide_http_input_filled_(bide_http_input *input, int status)
{
    bide_reader *reader = input->reader;
    size_t count = bide_stream_count(&reader->operation, reader->stream);
    if (status == 0 && count == 0)
        reader->has_ended = true;
    bide_assert(input->is_direct || count <= reader->size - reader->end);
    if (!input->is_direct)
        reader->end += count;
    else
        http_input_account(input, count);
}

static bide_awaiter *http_input_start_read(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    size_t size = http_input_body_part(input, input->size);
    bool in_body = input->state == HTTP_INPUT_LENGTH || input->state == HTTP_INPUT_CHUNK;
    if (!in_body || input->data == NULL || input->is_bounded || bide_reader_buffered(reader) != 0 ||
        (size < HTTP_INPUT_MIN_DIRECT && size != input->left))
        return bide_http_input_fill_(input);
    bide_assert(size != 0 && size <= input->left);
    input->is_direct = true; /* 3 */
    return bide_stream_read(&reader->operation, reader->stream, input->data, size);
}

static bool http_input_ready(bide_awaiter *awaiter)
{
    bide_http_input *input = bide_container_of(awaiter, bide_http_input, task.frame.awaiter);
    int status = http_input_advance(input);
    if (status == -EAGAIN)
        return false;
    input->task.frame.error = status;
    return true;
}

static bide_next http_read_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const http_read_type_ = &bide_task_type;
static const bide_coroutine_code http_read_code = {http_read_step_, "bide_http_read", __FILE__,
                                                   &http_read_type_, NULL};
static const bide_point http_read_start = BIDE_POINT_START_READY(http_input_ready, &http_read_code);

bide_body(http_read)
{
    bide_begin(http_read, bide_http_input * self);
    for (;;) {
        self->status = http_input_advance(self);
        if (self->status != -EAGAIN)
            bide_return(self->status);
        if (self->must_continue || self->output->has_continue) {
            self->must_continue = false;
            self->status = bide_http_output_put_continue_(self->output);
            while (self->status == -EAGAIN) {
                http_watch_start_wait(self->watch, HTTP_WATCH_READ, bide_this_context());
                bide_await_status(self->status, bide_http_output_send_continue_(self->output));
                http_watch_stop_wait(self->watch, HTTP_WATCH_READ);
                self->status = bide_http_output_continued_(self->output, self->status);
            }
            if (self->status < 0)
                bide_return(self->status);
        }
        http_watch_start_wait(self->watch, HTTP_WATCH_READ, bide_this_context());
        bide_await_status(self->status, http_input_start_read(self));
        http_watch_stop_wait(self->watch, HTTP_WATCH_READ);
        bide_http_input_filled_(self, self->status);
        if (self->status < 0)
            bide_return(self->status);
        if (self->is_direct && self->count != 0)
            bide_return(0);
    }
    bide_finally();
    http_watch_stop_wait(self->watch, HTTP_WATCH_READ);
    bide_http_output_leave_continue_(self->output); /* (if the operation is being destroyed) */
    bide_end();
}

bide_awaiter *bide_http_input_read_(bide_http_input *input, void *data, size_t size)
{
    input->data = data;
    input->size = size;
    input->count = 0;
    return bide_task_init(&input->task, &http_read_start);
}
