/*
 * permessage-deflate: its negotiation, and messages.
 *
 * Threads: one thread uses a websocket at a time.
 *
 * Why it is correct:
 * 1. The peer decompresses messages in the order in which they were compressed. A sender has `turn` from the start of
 *    its compression to the end of its send, so the orders are equal. Uncompressed messages leave the contexts alone, and
 *    may go between.
 * 2. If a compressed message is not sent, the peer's context lacks it. From then on nothing is compressed (`is_spoilt`),
 *    which the RFC allows for every message.
 * 3. A message ends with an empty block, 00 00 ff ff, which is not sent: the receiver puts it back.
 * 4. A receive takes pieces, which the websocket lends. What was decompressed is in the caller's memory, and its size in
 *    the struct. Between two pieces nothing is half done, so a cancelled receive is continued by the next.
 * 5. No more than the caller's room is decompressed, and then one byte, to tell whether there is more.
 * 6. The peer may end its stream of blocks anywhere; the next block continues with the same window. zlib has to be
 *    reset then, and is given the window again.
 */
#include "bide/websocket_deflate.h"

#include "websocket.h"

#include "../io/operation.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Negotiation ---- */

/* The parameters of an offer or an answer; 0 or false: it does not name them. */
typedef struct deflate_parameters {
    bool server_no_context, client_no_context;
    int server_bits, client_bits;
    bool has_client_bits; /* with or without a value */
} deflate_parameters;

static bool deflate_is_space(char byte)
{
    return byte == ' ' || byte == '\t';
}

static bide_websocket_value deflate_trim(bide_websocket_value text)
{
    while (text.size != 0 && deflate_is_space(*text.data)) {
        text.data++;
        text.size--;
    }
    while (text.size != 0 && deflate_is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Returns the trimmed text before the first `end`. *rest becomes the text after it. */
static bide_websocket_value deflate_split(bide_websocket_value *rest, char end)
{
    const char *at = rest->size != 0 ? memchr(rest->data, end, rest->size) : NULL;
    bide_websocket_value part = {rest->data, at != NULL ? (size_t)(at - rest->data) : rest->size};
    size_t gone = part.size + (at != NULL);
    if (gone != 0)
        rest->data += gone;
    rest->size -= gone;
    return deflate_trim(part);
}

static bool deflate_is(bide_websocket_value text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* Parses 8 to 15, which may be quoted. Returns 0 for everything else. */
static int deflate_parse_bits(bide_websocket_value text)
{
    if (text.size >= 2 && *text.data == '"' && text.data[text.size - 1] == '"') {
        text.data++;
        text.size -= 2;
    }
    if (text.size == 1 && (*text.data == '8' || *text.data == '9'))
        return *text.data - '0';
    return text.size == 2 && text.data[0] == '1' && text.data[1] >= '0' && text.data[1] <= '5'
               ? 10 + text.data[1] - '0'
               : 0;
}

/* Parses one extension. Returns false if it is another one, or malformed. */
static bool deflate_parse(bide_websocket_value text, deflate_parameters *parameters)
{
    memset(parameters, 0, sizeof *parameters);
    if (!deflate_is(deflate_split(&text, ';'), "permessage-deflate"))
        return false;
    while (text.size != 0) {
        bide_websocket_value value = deflate_split(&text, ';');
        bool has_value = value.size != 0 && memchr(value.data, '=', value.size) != NULL;
        bide_websocket_value name = deflate_split(&value, '=');
        bool is_known;
        value = deflate_trim(value);
        if (deflate_is(name, "server_no_context_takeover")) {
            is_known = !has_value && !parameters->server_no_context;
            parameters->server_no_context = true;
        } else if (deflate_is(name, "client_no_context_takeover")) {
            is_known = !has_value && !parameters->client_no_context;
            parameters->client_no_context = true;
        } else if (deflate_is(name, "server_max_window_bits")) {
            is_known = parameters->server_bits == 0 && deflate_parse_bits(value) != 0;
            parameters->server_bits = deflate_parse_bits(value);
        } else if (deflate_is(name, "client_max_window_bits")) {
            is_known =
                !parameters->has_client_bits && (!has_value || deflate_parse_bits(value) != 0);
            parameters->has_client_bits = true;
            parameters->client_bits = has_value ? deflate_parse_bits(value) : 0;
        } else {
            is_known = false;
        }
        if (!is_known)
            return false;
    }
    return true;
}

static void deflate_print(char *out, const char *text)
{
    size_t used = strlen(out);
    bide_assert(used + strlen(text) < BIDE_WEBSOCKET_EXTENSION);
    memcpy(out + used, text, strlen(text) + 1);
}

static void deflate_print_bits(char *out, const char *name, int bits)
{
    char text[48];
    snprintf(text, sizeof text, "; %s=%d", name, bits);
    deflate_print(out, text);
}

static int deflate_smaller(int a, int b)
{
    return a < b ? a : b;
}

enum { DEFLATE_MIN_BITS = 9, DEFLATE_MAX_BITS = 15 };

int bide_websocket_deflate_accept(bide_websocket_deflate *deflate, bide_websocket_value offers,
                                  char answer[BIDE_WEBSOCKET_EXTENSION])
{
    bide_websocket_deflate_options *own = &deflate->options;
    deflate_parameters offer;
    while (offers.size != 0) {
        if (!deflate_parse(deflate_split(&offers, ','), &offer))
            continue;
        if (offer.server_bits != 0 && offer.server_bits < DEFLATE_MIN_BITS) /* (zlib cannot) */
            continue;
        own->no_context = own->no_context || offer.server_no_context;
        own->no_peer_context = own->no_peer_context || offer.client_no_context;
        if (offer.server_bits != 0)
            own->window_bits = deflate_smaller(own->window_bits, offer.server_bits);
        *answer = '\0';
        deflate_print(answer, "permessage-deflate");
        if (own->no_context)
            deflate_print(answer, "; server_no_context_takeover");
        if (own->no_peer_context)
            deflate_print(answer, "; client_no_context_takeover");
        if (own->window_bits < DEFLATE_MAX_BITS)
            deflate_print_bits(answer, "server_max_window_bits", own->window_bits);
        if (offer.has_client_bits && own->max_peer_window_bits < DEFLATE_MAX_BITS)
            deflate_print_bits(answer, "client_max_window_bits",
                               offer.client_bits != 0
                                   ? deflate_smaller(offer.client_bits, own->max_peer_window_bits)
                                   : own->max_peer_window_bits);
        deflate->is_agreed = true;
        return 1;
    }
    return 0;
}

void bide_websocket_deflate_offer(const bide_websocket_deflate *deflate,
                                  char offer[BIDE_WEBSOCKET_EXTENSION])
{
    const bide_websocket_deflate_options *own = &deflate->options;
    *offer = '\0';
    deflate_print(offer, "permessage-deflate");
    if (own->no_context)
        deflate_print(offer, "; client_no_context_takeover");
    if (own->no_peer_context)
        deflate_print(offer, "; server_no_context_takeover");
    if (own->max_peer_window_bits < DEFLATE_MAX_BITS)
        deflate_print_bits(offer, "server_max_window_bits", own->max_peer_window_bits);
    if (own->window_bits < DEFLATE_MAX_BITS)
        deflate_print_bits(offer, "client_max_window_bits", own->window_bits);
}

int bide_websocket_deflate_check(bide_websocket_deflate *deflate, bide_websocket_value answer)
{
    bide_websocket_deflate_options *own = &deflate->options;
    deflate_parameters agreed;
    answer = deflate_trim(answer);
    if (answer.size == 0)
        return 0;
    if (!deflate_parse(answer, &agreed) || (own->no_peer_context && !agreed.server_no_context))
        return -EPROTO;
    if (own->max_peer_window_bits < DEFLATE_MAX_BITS &&
        (agreed.server_bits == 0 || agreed.server_bits > own->max_peer_window_bits))
        return -EPROTO;
    if (agreed.has_client_bits &&
        (own->window_bits == DEFLATE_MAX_BITS || agreed.client_bits < DEFLATE_MIN_BITS))
        return -EPROTO; /* it was not offered, or zlib cannot */
    if (agreed.has_client_bits)
        own->window_bits = deflate_smaller(own->window_bits, agreed.client_bits);
    own->no_context = own->no_context || agreed.client_no_context;
    own->no_peer_context = agreed.server_no_context;
    deflate->is_agreed = true;
    return 0;
}

/* ---- The codec ---- */

#if BIDE_HAS_ZLIB
#define ZLIB_CONST
#include <zlib.h>

enum { DEFLATE_LEVEL = 4, DEFLATE_MEMORY = 8, DEFLATE_WINDOW = 32768 };
enum { DEFLATE_PART = 65536 }; /* bytes that zlib gets at once: it counts them in 32 bits */

static const unsigned char deflate_tail[4] = {0, 0, 0xff, 0xff}; /* 3 */

struct bide_websocket_codec_ {
    z_stream out;
    z_stream in;
    unsigned char window[DEFLATE_WINDOW]; /* 6 */
};

/* The size of an allocation stands before it. */
static void *deflate_allocate(void *opaque, uInt count, uInt size)
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

static void deflate_deallocate(void *opaque, void *address)
{
    bide_allocator *allocator = opaque;
    char *memory = (char *)address - BIDE_ALLOCATOR_ALIGN;
    size_t whole;
    memcpy(&whole, memory, sizeof whole);
    allocator->deallocate(allocator, memory, whole);
}

int bide_websocket_deflate_init(bide_websocket_deflate *deflate,
                                const bide_websocket_deflate_options *options)
{
    bide_websocket_deflate_options *own = &deflate->options;
    memset(deflate, 0, sizeof *deflate);
    if (options != NULL)
        *own = *options;
    if (own->level == 0)
        own->level = DEFLATE_LEVEL;
    if (own->window_bits == 0)
        own->window_bits = DEFLATE_MAX_BITS;
    if (own->max_peer_window_bits == 0)
        own->max_peer_window_bits = DEFLATE_MAX_BITS;
    if (own->min_size == 0)
        own->min_size = 64;
    if (own->max_size == 0)
        own->max_size = 1048576;
    if (own->allocator == NULL)
        own->allocator = &bide_heap;
    bide_mutex_init(&deflate->turn);
    return own->level < 1 || own->level > 9 || own->window_bits < DEFLATE_MIN_BITS ||
                   own->window_bits > DEFLATE_MAX_BITS || own->max_peer_window_bits < 8 ||
                   own->max_peer_window_bits > DEFLATE_MAX_BITS
               ? -EINVAL
               : 0;
}

static void deflate_free_codec(bide_websocket_deflate *deflate)
{
    bide_allocator *allocator = deflate->options.allocator;
    allocator->deallocate(allocator, deflate->codec, sizeof *deflate->codec);
    deflate->codec = NULL;
}

int bide_websocket_deflate_start(bide_websocket_deflate *deflate, bide_websocket *websocket)
{
    bide_allocator *allocator = deflate->options.allocator;
    deflate->websocket = websocket;
    if (!deflate->is_agreed)
        return 0;
    deflate->codec = allocator->allocate(allocator, sizeof *deflate->codec);
    if (deflate->codec == NULL)
        return -ENOMEM;
    memset(deflate->codec, 0, sizeof *deflate->codec);
    z_stream *out = &deflate->codec->out, *in = &deflate->codec->in;
    out->zalloc = in->zalloc = deflate_allocate;
    out->zfree = in->zfree = deflate_deallocate;
    out->opaque = in->opaque = allocator;
    if (deflateInit2(out, deflate->options.level, Z_DEFLATED, -deflate->options.window_bits,
                     DEFLATE_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
        deflate_free_codec(deflate);
        return -ENOMEM;
    }
    if (inflateInit2(in, -DEFLATE_MAX_BITS) != Z_OK) {
        (void)deflateEnd(out);
        deflate_free_codec(deflate);
        return -ENOMEM;
    }
    websocket->takes_compressed = true;
    return 0;
}

void bide_websocket_deflate_destroy(bide_websocket_deflate *deflate)
{
    if (deflate->codec == NULL)
        return;
    (void)deflateEnd(&deflate->codec->out);
    (void)inflateEnd(&deflate->codec->in);
    deflate_free_codec(deflate);
}

/* Frees the compressed text of a send. */
static void deflate_free_text(bide_websocket_deflate_send_operation *send)
{
    bide_allocator *allocator = send->deflate->options.allocator;
    if (send->text != NULL)
        allocator->deallocate(allocator, send->text, send->room);
    send->text = NULL;
}

static uInt deflate_part(size_t size)
{
    return (uInt)(size < DEFLATE_PART ? size : DEFLATE_PART);
}

/* Compresses `size` bytes, of which `data` is the next part, and adds the result to the text. */
static void deflate_compress_part(bide_websocket_deflate_send_operation *send, const char *data,
                                  size_t size, int flush)
{
    z_stream *out = &send->deflate->codec->out;
    uInt room;
    out->next_in = (const Bytef *)data;
    out->avail_in = (uInt)size;
    do {
        room = deflate_part(send->room - send->text_size);
        out->next_out = (Bytef *)send->text + send->text_size;
        out->avail_out = room;
        int result = deflate(out, flush);
        bide_assert(result == Z_OK || result == Z_BUF_ERROR);
        (void)result;
        io_written(send->text + send->text_size, room - out->avail_out);
        send->text_size += room - out->avail_out;
    } while (out->avail_out == 0 && room != 0);
    bide_assert(out->avail_in == 0 && room != 0);
}

/* Compresses the message. Returns false if there is no memory. */
static bool deflate_compress(bide_websocket_deflate_send_operation *send)
{
    bide_websocket_deflate *owner = send->deflate;
    bide_allocator *allocator = owner->options.allocator;
    z_stream *out = &owner->codec->out;
    send->room = deflateBound(out, (uLong)send->size) + 32; /* (also for a second empty block) */
    send->text = allocator->allocate(allocator, send->room);
    if (send->text == NULL)
        return false;
    if (owner->options.no_context)
        (void)deflateReset(out);
    send->text_size = 0;
    for (size_t done = 0; done != send->size;) {
        size_t size = deflate_part(send->size - done);
        deflate_compress_part(send, send->data + done, size,
                              done + size == send->size ? Z_SYNC_FLUSH : Z_NO_FLUSH);
        done += size;
    }
    bide_assert(send->text_size > sizeof deflate_tail);
    send->text_size -= sizeof deflate_tail;
    bide_assert(memcmp(send->text + send->text_size, deflate_tail, sizeof deflate_tail) ==
                0); /* 3 */
    return true;
}

/*
 * Decompresses `size` bytes to `room` bytes at `data`. Returns the bytes that were written, -EMSGSIZE (there are more), or
 * -EPROTO.
 */
static ptrdiff_t deflate_decompress(bide_websocket_deflate *deflate, const void *text, size_t size,
                                    char *data, size_t room)
{
    z_stream *in = &deflate->codec->in;
    unsigned char more;
    size_t written = 0;
    in->next_in = text;
    in->avail_in = 0;
    for (;;) {
        if (in->avail_in == 0) {
            in->avail_in = deflate_part(size);
            size -= in->avail_in;
        }
        bool is_full = written == room; /* 5 */
        uInt part = is_full ? 1 : deflate_part(room - written);
        in->next_out = is_full ? &more : (Bytef *)data + written;
        in->avail_out = part;
        int result = inflate(in, Z_SYNC_FLUSH);
        size_t count = part - in->avail_out;
        if (is_full && count != 0)
            return -EMSGSIZE;
        io_written(data + written, is_full ? 0 : count);
        written += count;
        if (result == Z_STREAM_END) { /* 6 */
            uInt window = 0;
            (void)inflateGetDictionary(in, deflate->codec->window, &window);
            if (inflateReset(in) != Z_OK ||
                (window != 0 && inflateSetDictionary(in, deflate->codec->window, window) != Z_OK))
                return -EPROTO;
            if (in->avail_in == 0 && size == 0)
                return (ptrdiff_t)written;
            continue;
        }
        if (result != Z_OK && result != Z_BUF_ERROR)
            return -EPROTO;
        if (in->avail_out == 0 && (result != Z_BUF_ERROR || count != 0))
            continue;
        if (in->avail_in != 0)
            return -EPROTO;
        if (size == 0)
            return (ptrdiff_t)written;
    }
}

/* ---- Receiving: 4 ---- */

/* Checks decompressed bytes of a text. */
static bool deflate_check_text(bide_websocket_deflate *deflate, const char *data, size_t size,
                               bool is_last)
{
    websocket_utf8 text = {deflate->text_left, deflate->text_low, deflate->text_high};
    if (!bide_websocket_utf8_continue_(&text, data, size) || (is_last && text.left != 0))
        return false;
    deflate->text_left = text.left;
    deflate->text_low = text.low;
    deflate->text_high = text.high;
    return true;
}

/* The websocket ends. Its next receive reports that to the peer and returns `status`. */
static bool deflate_fail(bide_websocket_deflate *deflate, int status, unsigned code)
{
    bide_websocket_fail_(deflate->websocket, status, code);
    return false;
}

/* Takes a piece of the message. Returns true at its end. */
static bool deflate_take_piece(bide_websocket_deflate_recv_operation *self)
{
    bide_websocket_deflate *deflate = self->deflate;
    const bide_websocket_recv_operation *piece = &self->piece;
    if (piece->is_first) {
        deflate->kept = 0;
        deflate->text_left = 0;
    }
    size_t room = websocket_min(deflate->websocket->options.max_message, self->size);
    room -= websocket_min(deflate->kept, room);
    char *data = self->data + deflate->kept;
    if (!piece->is_compressed) {
        if (piece->count > room)
            return deflate_fail(deflate, -EMSGSIZE, BIDE_WEBSOCKET_TOO_BIG);
        if (piece->count != 0)
            memcpy(data, piece->data, piece->count);
        deflate->kept += piece->count;
        return piece->is_last;
    }
    ptrdiff_t count = deflate_decompress(deflate, piece->data, piece->count, data, room);
    ptrdiff_t rest = 0;
    if (count >= 0 && piece->is_last) {
        rest = deflate_decompress(deflate, deflate_tail, sizeof deflate_tail, data + count,
                                  room - (size_t)count);
        deflate->received++;
        if (deflate->options.no_peer_context)
            (void)inflateReset(&deflate->codec->in);
    }
    if (count == -EMSGSIZE || rest == -EMSGSIZE)
        return deflate_fail(deflate, -EMSGSIZE, BIDE_WEBSOCKET_TOO_BIG);
    if (count < 0 || rest < 0)
        return deflate_fail(deflate, -EPROTO, BIDE_WEBSOCKET_PROTOCOL_ERROR);
    if (piece->kind == BIDE_WEBSOCKET_TEXT &&
        !deflate_check_text(deflate, data, (size_t)(count + rest), piece->is_last))
        return deflate_fail(deflate, -EILSEQ, BIDE_WEBSOCKET_NOT_UTF8);
    deflate->kept += (size_t)(count + rest);
    return piece->is_last;
}

#else

int bide_websocket_deflate_init(bide_websocket_deflate *deflate,
                                const bide_websocket_deflate_options *options)
{
    (void)options;
    memset(deflate, 0, sizeof *deflate);
    return -ENOTSUP;
}

int bide_websocket_deflate_start(bide_websocket_deflate *deflate, bide_websocket *websocket)
{
    deflate->websocket = websocket;
    return 0;
}

void bide_websocket_deflate_destroy(bide_websocket_deflate *deflate)
{
    (void)deflate;
}

static void deflate_free_text(bide_websocket_deflate_send_operation *send)
{
    (void)send;
}

static bool deflate_compress(bide_websocket_deflate_send_operation *send)
{
    (void)send;
    return false;
}

static bool deflate_take_piece(bide_websocket_deflate_recv_operation *self)
{
    (void)self;
    return true;
}

#endif

bide_coroutine(websocket_deflate_recv_body)
{
    bide_begin(websocket_deflate_recv_body, bide_websocket_deflate_recv_operation * self);
    do {
        bide_await_status(self->status,
                          bide_websocket_recv_piece(&self->piece, self->deflate->websocket));
        if (self->status < 0) {
            self->count = self->deflate->kept;
            bide_return(self->status);
        }
    } while (!deflate_take_piece(self));
    self->kind = self->piece.kind;
    self->count = self->deflate->kept;
    bide_end();
}

bide_awaiter *bide_websocket_deflate_recv(bide_websocket_deflate_recv_operation *operation,
                                          bide_websocket_deflate *deflate, void *data, size_t size)
{
    operation->deflate = deflate;
    operation->data = data;
    operation->size = size;
    operation->count = 0;
    return bide_task_init(&operation->task, &websocket_deflate_recv_body);
}

/* ---- Sending: 1, 2 ---- */

static bool deflate_is_wanted(const bide_websocket_deflate_send_operation *send)
{
    const bide_websocket_deflate *deflate = send->deflate;
    return deflate->codec != NULL && !deflate->is_spoilt &&
           send->size >= deflate->options.min_size && send->size <= deflate->options.max_size;
}

static bide_awaiter *deflate_start_send(bide_websocket_deflate_send_operation *self)
{
    bide_websocket *websocket = self->deflate->websocket;
    if (self->text == NULL)
        return bide_websocket_send(&self->send, websocket, self->kind, self->data, self->size);
    bide_awaiter *awaiter =
        bide_websocket_send(&self->send, websocket, self->kind, self->text, self->text_size);
    self->send.is_compressed = true;
    return awaiter;
}

bide_coroutine(websocket_deflate_send_body)
{
    bide_begin(websocket_deflate_send_body, bide_websocket_deflate_send_operation * self);
    if (deflate_is_wanted(self)) {
        bide_try(bide_mutex_lock(&self->turn, &self->deflate->turn));
        self->has_turn = true;
        self->is_compressing = deflate_is_wanted(self) && deflate_compress(self);
    }
    bide_await_status(self->status, deflate_start_send(self));
    if (self->status == 0) {
        self->deflate->sent += self->is_compressing;
        self->is_compressing = false;
    }
    bide_return(self->status);
    bide_finally();
    if (self->is_compressing)
        self->deflate->is_spoilt = true; /* 2 */
    deflate_free_text(self);
    if (self->has_turn)
        bide_mutex_unlock(&self->turn);
    bide_end();
}

bide_awaiter *bide_websocket_deflate_send(bide_websocket_deflate_send_operation *operation,
                                          bide_websocket_deflate *deflate, bide_websocket_kind kind,
                                          const void *data, size_t size)
{
    operation->deflate = deflate;
    operation->kind = kind;
    operation->data = data;
    operation->size = size;
    operation->has_turn = false;
    operation->is_compressing = false;
    operation->text = NULL;
    return bide_task_init(&operation->task, &websocket_deflate_send_body);
}
