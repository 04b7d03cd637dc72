/*
 * Decoding of "gzip" and "deflate", by zlib.
 *
 *     FRESH --first bytes--> INSIDE --end of the stream--> BETWEEN --more bytes, of gzip--> INSIDE
 *                              +--spoilt--> FAILED            +--more bytes, of deflate--> FAILED
 *
 * 1. Memory is bounded: zlib's window, and the caller's buffers. The caller bounds the number of bytes.
 * 2. Each run makes progress: it takes input, or gives output, or changes to a state in which it does.
 * 3. "deflate" means zlib's format (RFC 9110, 8.4.1.2), but some servers send bare deflate data. The first
 *    two bytes distinguish them: zlib's header has method 8 and is a multiple of 31. Bare data that begins
 *    with method 8 would begin with a stored block, whose padding and length the header contradicts.
 *    If the first byte comes alone, it is held until the second comes. It gives no output by itself, because
 *    the shortest code of a block is longer.
 * 4. A gzip body may have several members (RFC 1952, 2.2).
 */
#define _GNU_SOURCE
#include "inflate.h"

#include "../io/operation.h"

#include <errno.h>
#include <stdlib.h>

#if BIDE_HAS_ZLIB
#include <zlib.h>
#endif

http_coding bide_http_coding_of_(bide_slice name)
{
    if (bide_http_is(name, "gzip") || bide_http_is(name, "x-gzip"))
        return HTTP_CODING_GZIP;
    if (bide_http_is(name, "br"))
        return HTTP_CODING_BROTLI;
    return bide_http_is(name, "deflate") ? HTTP_CODING_DEFLATE : HTTP_CODING_OTHER;
}

#if BIDE_HAS_ZLIB

const bool bide_http_has_inflate_ = true;

enum { HTTP_INFLATE_FRESH, HTTP_INFLATE_INSIDE, HTTP_INFLATE_BETWEEN, HTTP_INFLATE_FAILED };
enum { HTTP_INFLATE_GZIP_BITS = 16 + MAX_WBITS, HTTP_INFLATE_MAX_PIECE = 1 << 30 };

struct bide_http_inflate_ {
    z_stream zlib;
    http_coding coding;
    int state;
    int error;
    bool is_open; /* zlib has memory */
    bool is_held; /* `first` is the first byte of the body: 3 */
    char first;
};

int bide_http_inflate_create_(http_inflate **inflate, http_coding coding)
{
    http_inflate *self = calloc(1, sizeof *self);
    if (self == NULL)
        return -ENOMEM;
    self->coding = coding;
    self->state = HTTP_INFLATE_FRESH;
    *inflate = self;
    return 0;
}

void bide_http_inflate_destroy_(http_inflate *self)
{
    if (self == NULL)
        return;
    if (self->is_open)
        (void)inflateEnd(&self->zlib);
    free(self);
}

bool bide_http_inflate_is_whole_(const http_inflate *self)
{
    return (self->state == HTTP_INFLATE_FRESH && !self->is_held) ||
           self->state == HTTP_INFLATE_BETWEEN;
}

static int http_inflate_fail(http_inflate *self, int error)
{
    self->state = HTTP_INFLATE_FAILED;
    self->error = error;
    return error;
}

static void http_inflate_take(bide_slice *input, size_t size)
{
    input->data += size;
    input->size -= size;
}

/* Runs zlib once. Returns the number of bytes that it has written, or an error. */
static ptrdiff_t http_inflate_step(http_inflate *self, bide_slice *input, char *out, size_t size)
{
    size_t given = input->size < HTTP_INFLATE_MAX_PIECE ? input->size : HTTP_INFLATE_MAX_PIECE;
    size_t room = size < HTTP_INFLATE_MAX_PIECE ? size : HTTP_INFLATE_MAX_PIECE;
    self->zlib.next_in = (Bytef *)(uintptr_t)input->data;
    self->zlib.avail_in = (uInt)given;
    self->zlib.next_out = (Bytef *)out;
    self->zlib.avail_out = (uInt)room;
    int result = inflate(&self->zlib, Z_NO_FLUSH);
    size_t taken = given - self->zlib.avail_in, made = room - self->zlib.avail_out;
    http_inflate_take(input, taken);
    io_written(out, made);
    if (result == Z_STREAM_END)
        self->state = HTTP_INFLATE_BETWEEN;
    else if (result == Z_MEM_ERROR)
        return http_inflate_fail(self, -ENOMEM);
    else if ((result != Z_OK && result != Z_BUF_ERROR) || (given != 0 && taken == 0 && made == 0))
        return http_inflate_fail(self, -EBADMSG); /* 2 */
    return (ptrdiff_t)made;
}

static int http_inflate_open(http_inflate *self, int bits)
{
    if (inflateInit2(&self->zlib, bits) != Z_OK)
        return http_inflate_fail(self, -ENOMEM);
    self->is_open = true;
    self->state = HTTP_INFLATE_INSIDE;
    return 0;
}

/* Begins a body of "deflate": 3. The input is not empty. */
static ptrdiff_t http_inflate_begin_deflate(http_inflate *self, bide_slice *input, char *out,
                                            size_t size)
{
    if (!self->is_held && input->size == 1) {
        self->is_held = true;
        self->first = *input->data;
        http_inflate_take(input, 1);
        return 0;
    }
    unsigned first = (unsigned char)(self->is_held ? self->first : input->data[0]);
    unsigned second = (unsigned char)input->data[self->is_held ? 0 : 1];
    bool is_wrapped = (first & 15) == Z_DEFLATED && (first * 256 + second) % 31 == 0;
    int status = http_inflate_open(self, is_wrapped ? MAX_WBITS : -MAX_WBITS);
    if (status < 0 || !self->is_held)
        return status;
    bide_slice held = {&self->first, 1};
    return http_inflate_step(self, &held, out, size);
}

ptrdiff_t bide_http_inflate_run_(http_inflate *self, bide_slice *input, char *out, size_t size)
{
    for (;;) {
        ptrdiff_t count = 0;
        if (self->state == HTTP_INFLATE_FAILED)
            return self->error;
        if (input->size == 0 && self->state != HTTP_INFLATE_INSIDE)
            return 0;
        if (self->state == HTTP_INFLATE_FRESH && self->coding == HTTP_CODING_GZIP)
            count = http_inflate_open(self, HTTP_INFLATE_GZIP_BITS);
        else if (self->state == HTTP_INFLATE_FRESH)
            count = http_inflate_begin_deflate(self, input, out, size);
        else if (self->state == HTTP_INFLATE_INSIDE) /* it may have more output without input */
            count = http_inflate_step(self, input, out, size);
        else if (self->coding == HTTP_CODING_GZIP && inflateReset(&self->zlib) == Z_OK) /* 4 */
            self->state = HTTP_INFLATE_INSIDE;
        else
            return http_inflate_fail(self, -EBADMSG);
        if (count != 0 || (input->size == 0 && self->state == HTTP_INFLATE_INSIDE))
            return count;
    }
}

#else

const bool bide_http_has_inflate_ = false;

int bide_http_inflate_create_(http_inflate **inflate, http_coding coding)
{
    (void)inflate, (void)coding;
    return -ENOTSUP;
}

void bide_http_inflate_destroy_(http_inflate *inflate)
{
    (void)inflate;
}

bool bide_http_inflate_is_whole_(const http_inflate *inflate)
{
    (void)inflate;
    return true;
}

ptrdiff_t bide_http_inflate_run_(http_inflate *inflate, bide_slice *input, char *out, size_t size)
{
    (void)inflate, (void)input, (void)out, (void)size;
    return -ENOTSUP;
}

#endif
