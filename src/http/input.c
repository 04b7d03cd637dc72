/*
 * Bodies that come in: by a length, in chunks, or to the end of the connection.
 *
 *     reader's buffer |===head===|.........|=======|.....|
 *                     0          base      begin   end   size
 *
 * 1. The head stays where it is while its exchange lasts, so what is read goes behind `base`.
 * 2. A line of a chunk, and the trailers, are looked at when they are there as a whole. They are
 *    bounded, so they fit behind `base`.
 * 3. Bytes of the body are read past the buffer if it is empty and the caller's memory has room for
 *    many of them, or for all that are left of the body or the chunk. So none that belong to what
 *    follows are read there.
 * 4. A body that is spoilt stays so.
 */
#include "input.h"

#include "output.h"
#include "parse.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

enum { CHUNK_LINE = 256, DIRECT = 2048 };

void bide_http_input_begin_(bide_http_input *input, enum http_framing framing, uint64_t length)
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

/* ---- What is buffered ---- */

/* `count` bytes of the body were taken. */
static void take(bide_http_input *input, size_t count)
{
    input->taken += count;
    input->count += count;
    if (input->is_bounded)
        return;
    input->left -= count;
    if (input->left == 0)
        input->state = input->state == HTTP_INPUT_LENGTH ? HTTP_INPUT_END : HTTP_INPUT_CHUNK_END;
}

/* How many bytes of the body may be taken now, of those that there are. */
static size_t of_body(const bide_http_input *input, size_t size)
{
    return size < input->left ? size : (size_t)input->left;
}

/* -EAGAIN: more is needed. `data` may be NULL: it is dropped. */
static int take_bytes(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    size_t count = of_body(input, bide_reader_buffered(reader));
    if (count > input->size - input->count)
        count = input->size - input->count;
    if (count == 0)
        return reader->has_ended && input->is_bounded ? 0 : -EAGAIN;
    if (input->is_bounded && input->taken + count > input->max)
        return -EFBIG;
    if (input->data != NULL)
        memcpy(input->data + input->count, bide_reader_peek(reader), count);
    bide_reader_consume(reader, count);
    take(input, count);
    return 0;
}

/* The line with the size of a chunk: 2 */
static int take_size(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    const char *line = bide_reader_peek(reader);
    size_t buffered = bide_reader_buffered(reader);
    size_t max = buffered < CHUNK_LINE ? buffered : CHUNK_LINE;
    const char *end = max != 0 ? memchr(line, '\n', max) : NULL;
    if (end == NULL)
        return buffered >= CHUNK_LINE ? -EBADMSG : -EAGAIN;
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

static int take_chunk_end(bide_http_input *input)
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

static int take_trailers(bide_http_input *input)
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
    }
    bide_reader_consume(reader, (size_t)size);
    input->state = HTTP_INPUT_END;
    return 0;
}

/* Goes on as far as what is buffered lets it: 0 if there is a result, -EAGAIN, or an error. */
static int attempt(bide_http_input *input)
{
    int status = input->error;
    while (status == 0 && input->state != HTTP_INPUT_END) {
        size_t before = input->count;
        switch (input->state) {
        case HTTP_INPUT_SIZE:
            status = take_size(input);
            break;
        case HTTP_INPUT_CHUNK_END:
            status = take_chunk_end(input);
            break;
        case HTTP_INPUT_TRAILERS:
            status = take_trailers(input);
            break;
        default:
            if (input->count == input->size)
                return 0;
            status = take_bytes(input);
            if (status == 0 && input->count == before) /* the end of the connection */
                input->state = HTTP_INPUT_END;
            break;
        }
    }
    if (status == -EAGAIN && input->count != 0)
        return 0;
    if (status == -EAGAIN && input->reader->has_ended)
        status = -ENODATA;
    if (status < 0 && status != -EAGAIN)
        input->error = status; /* 4 */
    return input->count != 0 ? 0 : status;
}

bool bide_http_input_drop_(bide_http_input *input)
{
    input->data = NULL;
    input->size = SIZE_MAX;
    input->count = 0;
    (void)attempt(input);
    return input->state == HTTP_INPUT_END;
}

/* ---- More ---- */

bide_awaiter *bide_http_input_fill_(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    size_t buffered = bide_reader_buffered(reader);
    if (reader->begin != input->base && (buffered == 0 || reader->end == reader->size)) {
        memmove(reader->buffer + input->base, bide_reader_peek(reader), buffered);
        reader->begin = input->base;
        reader->end = input->base + buffered;
    }
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
    if (!input->is_direct)
        reader->end += count;
    else
        take(input, count);
}

static bide_awaiter *begin_reading(bide_http_input *input)
{
    bide_reader *reader = input->reader;
    size_t size = of_body(input, input->size);
    bool in_body = input->state == HTTP_INPUT_LENGTH || input->state == HTTP_INPUT_CHUNK;
    if (!in_body || input->data == NULL || input->is_bounded || bide_reader_buffered(reader) != 0 ||
        (size < DIRECT && size != input->left))
        return bide_http_input_fill_(input);
    input->is_direct = true; /* 3 */
    return bide_stream_read(&reader->operation, reader->stream, input->data, size);
}

static bool input_ready(bide_awaiter *awaiter)
{
    bide_http_input *input = bide_container_of(awaiter, bide_http_input, task.frame.awaiter);
    int status = attempt(input);
    if (status == -EAGAIN)
        return false;
    input->task.frame.error = status;
    return true;
}

static bide_next http_read_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const http_read_type_ = &bide_task_type;
static const bide_coroutine_code http_read_code = {http_read_step_, "bide_http_read", __FILE__,
                                                   &http_read_type_, NULL};
static const bide_point http_read_start = BIDE_POINT_START_READY(input_ready, &http_read_code);

bide_body(http_read)
{
    bide_begin(http_read, bide_http_input * self);
    for (;;) {
        self->status = attempt(self);
        if (self->status != -EAGAIN)
            bide_return(self->status);
        if (self->must_continue) {
            self->must_continue = false;
            http_watch_wait(self->watch, bide_this_context());
            bide_try(bide_http_output_continue_(self->output));
        }
        http_watch_wait(self->watch, bide_this_context());
        bide_await_status(self->status, begin_reading(self));
        http_watch_go_on(self->watch);
        bide_http_input_filled_(self, self->status);
        if (self->status < 0)
            bide_return(self->status);
        if (self->is_direct && self->count != 0)
            bide_return(0);
    }
    bide_end();
}

bide_awaiter *bide_http_input_read_(bide_http_input *input, void *data, size_t size)
{
    input->data = data;
    input->size = size;
    input->count = 0;
    return bide_task_init(&input->task, &http_read_start);
}
