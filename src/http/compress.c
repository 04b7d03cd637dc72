/*
 * Compressed responses: which are, what becomes of their heads, and the encoder between a handler and the output.
 *
 *     NONE <--not compressed-- head --HEAD--> HEAD --all of the announced length--> COMPLETE
 *                               +------------> GZIP --all of it, and the end------------^
 *
 * Threads: all functions run on the loop's thread. An exchange has one write at a time.
 *
 * Why it is correct:
 * 1. The head is edited in the writer's buffer before it ends. Nothing of it has been sent (exchange.c, 1), and the
 *    room for all edits is checked before the first.
 * 2. The announced length counts bytes of the handler's, before compression. With its last byte the end of the
 *    compressed body is written too, in the same operation. So a response whose length is known is complete when the
 *    handler's call ends, and a later error does not replace it. Without a length, the end is written when the handler
 *    has ended with 0.
 * 3. A write that ends in the middle leaves the compressed text cut off. The output then has an error, so the
 *    connection ends without an end of the body, and the client detects that.
 * 4. An encoder belongs to one exchange, from its head until the coroutine around the handler ends or is destroyed. So
 *    no encoder is lost, and the handler, a child of this coroutine, has no operation in it at that time.
 * 5. Between two pieces of CPU time of about a millisecond, other coroutines of the loop run.
 */
#define _GNU_SOURCE
#include "compress.h"

#include "characters.h"
#include "conditions.h"
#include "output.h"

#include "../io/operation.h"

#include "bide/coroutine.h"
#include "bide/file.h"
#include "bide/schedule.h"

#include <errno.h>
#include <string.h>

#if BIDE_HAS_ZLIB
#define ZLIB_CONST
#include <zlib.h>

enum {
    COMPRESS_LEVEL = 4,
    COMPRESS_MIN = 1024,
    COMPRESS_ACTIVE = 32,
    COMPRESS_IDLE = 4,
    COMPRESS_WINDOW = 15 + 16, /* that of zlib, and a gzip wrapper */
    COMPRESS_MEMORY = 8,
    COMPRESS_INPUT = 16384, /* at a time */
    COMPRESS_OUTPUT = 8192,
    COMPRESS_TURN = 65536,  /* bytes between two turns of other coroutines: 5 */
    COMPRESS_ROOM = 96 + 64 /* in the buffer, for the edits of a head */
};

/* An encoder, and the operation that uses it. */
typedef struct bide_http_encoder_ {
    bide_task task;
    struct bide_http_encoder_ *next;
    bide_http_compression *owner;
    bide_http_connection *connection;
    z_stream stream;

    /* of the operation */
    const char *data;
    uint64_t left; /* bytes of `data`, or of the file */
    int flush;     /* zlib's */
    bool is_flush; /* the output is flushed at the end */
    bool has_ended;
    int status;
    size_t turn;
    bide_descriptor *file; /* or NULL */
    uint64_t offset;
    bide_file_operation read;
    bide_schedule_operation way;
    char in[COMPRESS_INPUT];
    char out[COMPRESS_OUTPUT];
} http_encoder;

/* ---- Encoders ---- */

/* The size of an allocation stands before it. */
static void *compress_allocate(void *opaque, uInt count, uInt size)
{
    bide_allocator *allocator = opaque;
    size_t whole = (size_t)count * size + BIDE_ALLOCATOR_ALIGN;
    char *memory = allocator->allocate(allocator, whole);
    if (memory == NULL)
        return Z_NULL;
    memset(memory, 0, whole);
    memcpy(memory, &whole, sizeof whole);
    return memory + BIDE_ALLOCATOR_ALIGN;
}

static void compress_deallocate(void *opaque, void *address)
{
    bide_allocator *allocator = opaque;
    char *memory = (char *)address - BIDE_ALLOCATOR_ALIGN;
    size_t whole;
    memcpy(&whole, memory, sizeof whole);
    allocator->deallocate(allocator, memory, whole);
}

static http_encoder *compress_make_encoder(bide_http_compression *compression)
{
    bide_allocator *allocator = compression->options.allocator;
    http_encoder *encoder = allocator->allocate(allocator, sizeof *encoder);
    if (encoder == NULL)
        return NULL;
    memset(encoder, 0, sizeof *encoder);
    encoder->owner = compression;
    encoder->stream.zalloc = compress_allocate;
    encoder->stream.zfree = compress_deallocate;
    encoder->stream.opaque = allocator;
    if (deflateInit2(&encoder->stream, compression->options.level, Z_DEFLATED, COMPRESS_WINDOW,
                     COMPRESS_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK)
        return encoder;
    allocator->deallocate(allocator, encoder, sizeof *encoder);
    return NULL;
}

static void compress_free_encoder(http_encoder *encoder)
{
    bide_allocator *allocator = encoder->owner->options.allocator;
    (void)deflateEnd(&encoder->stream);
    allocator->deallocate(allocator, encoder, sizeof *encoder);
}

/* Returns NULL if there are too many, or no memory. */
static http_encoder *compress_take_encoder(bide_http_compression *compression)
{
    http_encoder *encoder = compression->idle;
    if (compression->active >= compression->options.max_active)
        return NULL;
    if (encoder != NULL) {
        compression->idle = encoder->next;
        compression->idle_count--;
    } else {
        encoder = compress_make_encoder(compression);
    }
    compression->active += encoder != NULL;
    return encoder;
}

static void compress_give_encoder(http_encoder *encoder)
{
    bide_http_compression *compression = encoder->owner;
    bide_assert(compression->active != 0);
    compression->active--;
    if (compression->idle_count >= compression->options.max_idle ||
        deflateReset(&encoder->stream) != Z_OK) {
        compress_free_encoder(encoder);
        return;
    }
    encoder->next = compression->idle;
    compression->idle = encoder;
    compression->idle_count++;
}

/* ---- Heads: 1 ---- */

/* What the head in the buffer says. */
typedef struct compress_head {
    bide_slice type;
    size_t tag;     /* where the value of "ETag" begins; 0: there is none */
    size_t accepts; /* where the line of "Accept-Ranges" begins; 0: there is none */
    size_t accepts_size;
    bool is_exempt; /* a field forbids compression */
    bool varies;    /* "Vary" names the encoding already */
} compress_head;

static void compress_read_line(compress_head *head, size_t at, bide_slice line)
{
    const char *colon = memchr(line.data, ':', line.size);
    if (colon == NULL)
        return;
    bide_slice name = {line.data, (size_t)(colon - line.data)};
    size_t skipped = name.size + 2; /* ": " */
    bide_slice value = {line.data + skipped, line.size - skipped};
    switch (name.size) {
    case 4:
        if (bide_http_is(name, "etag"))
            head->tag = at + skipped;
        else if (bide_http_is(name, "vary"))
            head->varies = head->varies || bide_http_has_token(value, "accept-encoding") ||
                           bide_http_has_token(value, "*");
        break;
    case 7:
        head->is_exempt = head->is_exempt || bide_http_is(name, "trailer");
        break;
    case 12:
        if (bide_http_is(name, "content-type"))
            head->type = value;
        break;
    case 13:
        if (bide_http_is(name, "accept-ranges")) {
            head->accepts = at;
            head->accepts_size = line.size + 2;
        } else if (bide_http_is(name, "content-range")) {
            head->is_exempt = true;
        } else if (bide_http_is(name, "cache-control") &&
                   bide_http_has_token(value, "no-transform")) {
            head->is_exempt = true;
        }
        break;
    case 16:
        head->is_exempt = head->is_exempt || bide_http_is(name, "content-encoding");
        break;
    default:
        break;
    }
}

static compress_head compress_read_head(const bide_http_output *output)
{
    compress_head head = {.type = {NULL, 0}};
    const char *begin = output->writer->buffer + output->head;
    size_t size = output->writer->end - output->head;
    for (size_t at = 0; at < size;) {
        const char *end = memmem(begin + at, size - at, "\r\n", 2);
        bide_assert(end != NULL);
        size_t line = (size_t)(end - begin) - at;
        compress_read_line(&head, at, (bide_slice){begin + at, line});
        at += line + 2;
    }
    return head;
}

/* The first part of a type, without its parameters. */
static bide_slice compress_bare_type(bide_slice type)
{
    size_t size = 0;
    while (size < type.size && type.data[size] != ';' && type.data[size] != ' ' &&
           type.data[size] != '\t')
        size++;
    return (bide_slice){type.data, size};
}

static bool compress_same(bide_slice a, const char *b, size_t size)
{
    if (a.size != size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (http_lower(a.data[i]) != http_lower(b[i]))
            return false;
    return true;
}

/* The list of the options names the type. */
static bool compress_is_listed(const char *types, bide_slice type)
{
    bool is_stream = bide_http_is(type, "text/event-stream");
    for (const char *at = types;;) {
        at += strspn(at, " \t,");
        size_t size = strcspn(at, " \t,");
        if (size == 0)
            return false;
        if (at[size - 1] != '*'
                ? compress_same(type, at, size)
                : !is_stream && type.size >= size - 1 &&
                      compress_same((bide_slice){type.data, size - 1}, at, size - 1))
            return true;
        at += size;
    }
}

/* Inserts "W/" before a strong tag. There is room. */
static void compress_weaken_tag(bide_http_output *output, compress_head *head)
{
    char *tag = output->writer->buffer + output->head + head->tag;
    if (head->tag == 0 || *tag != '"')
        return;
    size_t rest = (size_t)(output->writer->buffer + output->writer->end - tag);
    memmove(tag + 2, tag, rest);
    memcpy(tag, "W/", 2);
    output->writer->end += 2;
    if (head->accepts > head->tag)
        head->accepts += 2;
}

static void compress_remove_ranges(bide_http_output *output, const compress_head *head)
{
    if (head->accepts == 0)
        return;
    char *line = output->writer->buffer + output->head + head->accepts;
    size_t rest =
        (size_t)(output->writer->buffer + output->writer->end - line) - head->accepts_size;
    memmove(line, line + head->accepts_size, rest);
    output->writer->end -= head->accepts_size;
}

static void compress_put(bide_http_output *output, const char *line)
{
    bool fits = bide_http_output_put_(output, line, strlen(line));
    bide_assert(fits);
    (void)fits;
}

/* The client has the compressed response, and asks whether it has changed. */
static bool compress_has_weak_tag(const bide_http_exchange *exchange,
                                  const bide_http_output *output, const compress_head *head)
{
    const char *tag = output->writer->buffer + output->head + head->tag;
    const bide_http_request *request = &exchange->request;
    if (head->tag == 0 || *tag != '"')
        return false;
    const char *end =
        memchr(tag + 1, '"', (size_t)(output->writer->buffer + output->writer->end - tag - 1));
    if (end == NULL)
        return false;
    size_t size = (size_t)(end + 1 - tag);
    for (size_t i = 0; i < request->field_count; i++) {
        bide_slice value = request->fields[i].value;
        const char *at =
            bide_http_is(request->fields[i].name, "if-none-match") && value.size >= size
                ? memmem(value.data, value.size, tag, size)
                : NULL;
        if (at != NULL && at - value.data >= 2 && memcmp(at - 2, "W/", 2) == 0)
            return true;
    }
    return false;
}

void bide_http_compress_start_(bide_http_connection *connection)
{
    const bide_http_compression *compression = connection->server->options.compression;
    bide_assert(connection->encoder == NULL);
    connection->encoding = HTTP_ENCODING_NONE;
    connection->may_compress = compression != NULL && !compression->options.only_if_asked;
}

uint64_t bide_http_compress_head_(bide_http_exchange *exchange, uint64_t length)
{
    bide_http_connection *connection = exchange->connection;
    bide_http_compression *compression = exchange->server->options.compression;
    bide_http_output *output = &connection->output;
    int status = exchange->status;
    if (!connection->may_compress || status == 204 || status == 206 ||
        exchange->request.method == BIDE_HTTP_CONNECT || output->is_old ||
        !bide_http_output_reserve_(output, COMPRESS_ROOM)) /* 1 */
        return length;
    compress_head head = compress_read_head(output);
    if (status == 304) {
        if (compress_has_weak_tag(exchange, output, &head))
            compress_weaken_tag(output, &head);
        if (head.tag != 0 && !head.varies)
            compress_put(output, "Vary: Accept-Encoding\r\n");
        return length;
    }
    if (head.is_exempt || length < compression->options.min_length ||
        !compress_is_listed(compression->options.types, compress_bare_type(head.type)))
        return length;
    bool is_wanted = (bide_http_accepts_(exchange) & HTTP_GZIP) != 0;
    if (is_wanted && !output->has_no_body) {
        connection->encoder = compress_take_encoder(compression);
        is_wanted = connection->encoder != NULL;
        compression->stats.responses += is_wanted;
        compression->stats.skipped += !is_wanted;
    }
    if (is_wanted) {
        connection->encoding = output->has_no_body ? HTTP_ENCODING_HEAD : HTTP_ENCODING_GZIP;
        connection->unencoded = length;
        compress_weaken_tag(output, &head);
        compress_remove_ranges(output, &head);
        compress_put(output, "Content-Encoding: gzip\r\n");
        if (connection->encoder != NULL)
            connection->encoder->connection = connection;
    }
    if (!head.varies)
        compress_put(output, "Vary: Accept-Encoding\r\n");
    return is_wanted ? BIDE_HTTP_UNKNOWN : length;
}

/* ---- Bodies ---- */

/* Reads the next piece of the file, from the page cache if possible. */
static bide_awaiter *compress_read_file(http_encoder *self)
{
    size_t size = self->left < sizeof self->in ? (size_t)self->left : sizeof self->in;
    return bide_read_at(&self->read, self->file, self->in, size, (int64_t)self->offset);
}

static void compress_set_input(http_encoder *self, const char *data, size_t size)
{
    self->stream.next_in = (const Bytef *)data;
    self->stream.avail_in = (uInt)size;
    self->left -= size;
    self->turn += size;
}

/*
 * Compresses until the input is used up or the output is full. Returns the bytes of output. (zlib's own totals have
 * 32 bits on some machines.)
 */
static size_t compress_advance(http_encoder *self)
{
    bide_http_compression_stats *stats = &self->owner->stats;
    uInt before = self->stream.avail_in;
    int flush = self->left == 0 ? self->flush : Z_NO_FLUSH;
    self->stream.next_out = (Bytef *)self->out;
    self->stream.avail_out = sizeof self->out;
    int result = deflate(&self->stream, flush);
    bide_assert(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR);
    size_t count = sizeof self->out - self->stream.avail_out;
    io_written(self->out, count);
    stats->in += before - self->stream.avail_in;
    stats->out += count;
    if (result == Z_STREAM_END)
        self->has_ended = true;
    return count;
}

static bool compress_gives_way(http_encoder *self, const bide_context *context)
{
    if (self->turn < COMPRESS_TURN || context->scheduler == NULL)
        return false;
    self->turn = 0;
    return true;
}

bide_coroutine(http_compress_body)
{
    bide_begin(http_compress_body, http_encoder * self);
    bide_assert(self->connection != NULL);
    self->connection->output.is_unfinished = false;
    do {
        if (compress_gives_way(self, bide_this_context())) /* 5 */
            bide_try(bide_schedule(&self->way, bide_this_context()->scheduler));
        if (self->file != NULL && self->left != 0) {
            bide_await_status(self->status, compress_read_file(self));
            if (self->status == 0 && self->read.operation.count == 0)
                self->status = -ENODATA;
            if (self->status < 0)
                bide_return(self->status);
            self->status = -ECANCELED;
            self->offset += self->read.operation.count;
            compress_set_input(self, self->in, self->read.operation.count);
        } else if (self->left != 0) {
            size_t size = self->left < COMPRESS_INPUT ? (size_t)self->left : COMPRESS_INPUT;
            compress_set_input(self, self->data, size);
            self->data += size;
        }
        do {
            size_t count = compress_advance(self);
            if (count != 0)
                bide_try(bide_http_output_write_(&self->connection->output, self->out, count));
        } while (self->stream.avail_out == 0);
    } while (self->left != 0);
    if (self->is_flush)
        bide_try(bide_http_output_flush_(&self->connection->output));
    if (self->has_ended)
        self->connection->encoding = HTTP_ENCODING_COMPLETE;
    self->status = 0;
    bide_finally();
    if (self->status != 0 && self->connection->output.error == 0)
        self->connection->output.error = self->status; /* 3 */
    bide_end();
}

static bide_awaiter *compress_start(bide_http_connection *connection, const void *data,
                                    uint64_t size, int flush, bide_descriptor *file,
                                    uint64_t offset)
{
    http_encoder *self = connection->encoder;
    if (bide_http_output_settle_(&connection->output) != 0)
        return bide_http_output_fail_(&connection->output, connection->output.error);
    connection->output.is_unfinished = size != 0;
    self->data = data;
    self->left = size;
    self->flush = flush;
    self->is_flush = flush == Z_SYNC_FLUSH;
    self->has_ended = false;
    self->status = -ECANCELED;
    self->file = file;
    self->offset = offset;
    return bide_task_init(&self->task, &http_compress_body);
}

/* Counts bytes of the handler's against the announced length. Returns 0 or an error. */
static int compress_count(bide_http_connection *connection, uint64_t size)
{
    if (connection->encoding == HTTP_ENCODING_COMPLETE)
        return size != 0 ? -EMSGSIZE : 0;
    if (connection->unencoded == BIDE_HTTP_UNKNOWN)
        return 0;
    if (size > connection->unencoded)
        return -EMSGSIZE;
    connection->unencoded -= size;
    return 0;
}

/* Writes `size` bytes of memory or of a file. */
static bide_awaiter *compress_write(bide_http_connection *connection, const void *data,
                                    uint64_t size, bide_descriptor *file, uint64_t offset)
{
    bide_http_output *output = &connection->output;
    int status = bide_http_output_settle_(output);
    if (status == 0)
        status = compress_count(connection, size);
    if (status == 0 && connection->encoding == HTTP_ENCODING_HEAD) {
        status = bide_http_output_count_(output, size);
        if (connection->unencoded == 0)
            connection->encoding = HTTP_ENCODING_COMPLETE;
    }
    if (status < 0 || size == 0 || connection->encoding != HTTP_ENCODING_GZIP)
        return bide_http_output_fail_(output, status);
    return compress_start(connection, data, size,
                          connection->unencoded == 0 ? Z_FINISH : Z_NO_FLUSH, /* 2 */
                          file, offset);
}

bide_awaiter *bide_http_compress_write_(bide_http_connection *connection, const void *data,
                                        size_t size)
{
    return compress_write(connection, data, size, NULL, 0);
}

bide_awaiter *bide_http_compress_file_(bide_http_connection *connection, bide_descriptor *file,
                                       uint64_t offset, uint64_t length)
{
    if (connection->unencoded == BIDE_HTTP_UNKNOWN)
        return bide_http_output_fail_(&connection->output, -EINVAL);
    return compress_write(connection, NULL, length, file, offset);
}

bide_awaiter *bide_http_compress_flush_(bide_http_connection *connection)
{
    if (connection->encoding != HTTP_ENCODING_GZIP || connection->output.error != 0)
        return bide_http_output_flush_(&connection->output);
    return compress_start(connection, NULL, 0, Z_SYNC_FLUSH, NULL, 0);
}

/* ---- Around the handler: 4 ---- */

/* The handler has ended with 0, and the end of the body is missing. */
static bool compress_must_end(const bide_http_connection *connection)
{
    return connection->around.status >= 0 && connection->encoding == HTTP_ENCODING_GZIP &&
           connection->output.error == 0;
}

static bide_awaiter *compress_end(bide_http_connection *connection)
{
    if (connection->unencoded == BIDE_HTTP_UNKNOWN)
        return compress_start(connection, NULL, 0, Z_FINISH, NULL, 0);
    if (bide_http_output_settle_(&connection->output) == 0)
        connection->output.error = -ENODATA; /* the body is shorter than announced */
    return bide_http_output_fail_(&connection->output, connection->output.error);
}

bide_coroutine(http_compress_around_body)
{
    bide_begin(http_compress_around_body, bide_http_around_ * self);
    bide_await_status(self->status, self->handler);
    if (compress_must_end(self->connection))
        bide_await_status(self->status, compress_end(self->connection));
    bide_return(self->status);
    bide_finally();
    if (self->connection->encoder != NULL)
        compress_give_encoder(self->connection->encoder);
    self->connection->encoder = NULL;
    bide_end();
}

bide_awaiter *bide_http_compress_run_(bide_http_connection *connection, bide_awaiter *handler)
{
    connection->around.connection = connection;
    connection->around.handler = handler;
    return bide_task_init(&connection->around.task, &http_compress_around_body);
}

/* ---- The options ---- */

int bide_http_compression_init(bide_http_compression *compression,
                               const bide_http_compression_options *options)
{
    static const char types[] =
        "text/*, application/json, application/javascript, application/xml, application/xhtml+xml, "
        "application/manifest+json, application/ld+json, application/problem+json, "
        "application/rss+xml, application/atom+xml, application/wasm, image/svg+xml, image/bmp, "
        "font/ttf, font/otf";
    memset(compression, 0, sizeof *compression);
    if (options != NULL)
        compression->options = *options;
    bide_http_compression_options *own = &compression->options;
    if (own->level < 0 || own->level > 9)
        return -EINVAL;
    if (own->level == 0)
        own->level = COMPRESS_LEVEL;
    if (own->min_length == 0)
        own->min_length = COMPRESS_MIN;
    if (own->types == NULL)
        own->types = types;
    if (own->max_active == 0)
        own->max_active = COMPRESS_ACTIVE;
    if (own->max_idle == 0)
        own->max_idle = COMPRESS_IDLE;
    if (own->allocator == NULL)
        own->allocator = &bide_heap;
    return 0;
}

void bide_http_compression_destroy(bide_http_compression *compression)
{
    bide_assert(compression->active == 0);
    while (compression->idle != NULL) {
        http_encoder *encoder = compression->idle;
        compression->idle = encoder->next;
        compress_free_encoder(encoder);
    }
    compression->idle_count = 0;
}

#else

/* (bide_http_compression_init fails, so no response is compressed) */

void bide_http_compress_start_(bide_http_connection *connection)
{
    connection->encoding = HTTP_ENCODING_NONE;
    connection->may_compress = false;
}

uint64_t bide_http_compress_head_(bide_http_exchange *exchange, uint64_t length)
{
    (void)exchange;
    return length;
}

bide_awaiter *bide_http_compress_write_(bide_http_connection *connection, const void *data,
                                        size_t size)
{
    return bide_http_output_write_(&connection->output, data, size);
}

bide_awaiter *bide_http_compress_flush_(bide_http_connection *connection)
{
    return bide_http_output_flush_(&connection->output);
}

bide_awaiter *bide_http_compress_file_(bide_http_connection *connection, bide_descriptor *file,
                                       uint64_t offset, uint64_t length)
{
    (void)file;
    (void)offset;
    (void)length;
    return bide_http_output_fail_(&connection->output, -ENOTSUP);
}

bide_awaiter *bide_http_compress_run_(bide_http_connection *connection, bide_awaiter *handler)
{
    (void)connection;
    return handler;
}

int bide_http_compression_init(bide_http_compression *compression,
                               const bide_http_compression_options *options)
{
    (void)options;
    memset(compression, 0, sizeof *compression);
    return -ENOTSUP;
}

void bide_http_compression_destroy(bide_http_compression *compression)
{
    (void)compression;
}

#endif

void bide_http_set_compression(bide_http_exchange *exchange, bool is_allowed)
{
    exchange->connection->may_compress =
        is_allowed && exchange->server->options.compression != NULL;
}
