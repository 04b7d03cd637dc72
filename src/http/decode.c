/*
 * Decoding of bodies, each by the library of its coding. That of "br" is brotli (RFC 7932):
 *
 *     FRESH --first bytes--> INSIDE --end of the stream--> WHOLE --more bytes--> FAILED
 *                              +--spoilt--> FAILED
 *
 * 1. Memory is bounded: a stream of brotli has a window of at most 16 MB, which is allocated as far as it is used. The
 *    caller bounds the number of bytes.
 * 2. Each run makes progress: it takes input, or gives output, or changes to a state in which it does.
 */
#define _GNU_SOURCE
#include "decode.h"

#include "../io/operation.h"

#include <errno.h>
#include <stdlib.h>

#if BIDE_HAS_BROTLI
#include <brotli/decode.h>
#endif

#if BIDE_HAS_ZLIB && BIDE_HAS_BROTLI
const char *const bide_http_codings_ = "gzip, deflate, br";
#elif BIDE_HAS_ZLIB
const char *const bide_http_codings_ = "gzip, deflate";
#elif BIDE_HAS_BROTLI
const char *const bide_http_codings_ = "br";
#else
const char *const bide_http_codings_ = NULL;
#endif

enum { HTTP_BROTLI_FRESH, HTTP_BROTLI_INSIDE, HTTP_BROTLI_WHOLE, HTTP_BROTLI_FAILED };

struct bide_http_decoder_ {
    http_inflate *inflate; /* or NULL: brotli */
    struct BrotliDecoderStateStruct *brotli;
    int state; /* of brotli */
    int error;
};

bool bide_http_decodes_(http_coding coding)
{
    return coding == HTTP_CODING_BROTLI ? BIDE_HAS_BROTLI
                                        : coding != HTTP_CODING_OTHER && BIDE_HAS_ZLIB;
}

#if BIDE_HAS_BROTLI

static int http_brotli_open(http_decoder *decoder)
{
    decoder->brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    return decoder->brotli != NULL ? 0 : -ENOMEM;
}

static void http_brotli_close(http_decoder *decoder)
{
    BrotliDecoderDestroyInstance(decoder->brotli);
}

static int http_brotli_fail(http_decoder *decoder, int error)
{
    decoder->state = HTTP_BROTLI_FAILED;
    decoder->error = error;
    return error;
}

/* (the codes of allocations that have failed are adjacent) */
static int http_brotli_error(const http_decoder *decoder)
{
    int code = BrotliDecoderGetErrorCode(decoder->brotli);
    return code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES &&
                   code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES
               ? -ENOMEM
               : -EBADMSG;
}

static ptrdiff_t http_brotli_run(http_decoder *decoder, bide_slice *input, char *out, size_t size)
{
    if (decoder->state == HTTP_BROTLI_FAILED)
        return decoder->error;
    if (input->size == 0 && decoder->state != HTTP_BROTLI_INSIDE)
        return 0;
    if (decoder->state == HTTP_BROTLI_WHOLE)
        return http_brotli_fail(decoder, -EBADMSG);
    const uint8_t *in = (const uint8_t *)input->data;
    uint8_t *at = (uint8_t *)out;
    size_t left = input->size, room = size;
    BrotliDecoderResult result =
        BrotliDecoderDecompressStream(decoder->brotli, &left, &in, &room, &at, NULL);
    io_written(out, size - room);
    if (result == BROTLI_DECODER_RESULT_ERROR)
        return http_brotli_fail(decoder, http_brotli_error(decoder));
    input->data = (const char *)in;
    input->size = left;
    decoder->state =
        result == BROTLI_DECODER_RESULT_SUCCESS ? HTTP_BROTLI_WHOLE : HTTP_BROTLI_INSIDE;
    if (room == size && left != 0) /* (the stream has ended without output, and more came) */
        return http_brotli_fail(decoder, -EBADMSG);
    return (ptrdiff_t)(size - room);
}

#else

static int http_brotli_open(http_decoder *decoder)
{
    (void)decoder;
    return -ENOTSUP;
}

static void http_brotli_close(http_decoder *decoder)
{
    (void)decoder;
}

static ptrdiff_t http_brotli_run(http_decoder *decoder, bide_slice *input, char *out, size_t size)
{
    (void)decoder, (void)input, (void)out, (void)size;
    return -ENOTSUP;
}

#endif

int bide_http_decoder_create_(http_decoder **decoder, http_coding coding)
{
    http_decoder *self = calloc(1, sizeof *self);
    if (self == NULL)
        return -ENOMEM;
    int status = coding == HTTP_CODING_BROTLI ? http_brotli_open(self)
                                              : bide_http_inflate_create_(&self->inflate, coding);
    if (status < 0)
        free(self);
    else
        *decoder = self;
    return status;
}

void bide_http_decoder_destroy_(http_decoder *decoder)
{
    if (decoder == NULL)
        return;
    bide_http_inflate_destroy_(decoder->inflate);
    if (decoder->inflate == NULL)
        http_brotli_close(decoder);
    free(decoder);
}

ptrdiff_t bide_http_decoder_run_(http_decoder *decoder, bide_slice *input, char *out, size_t size)
{
    return decoder->inflate != NULL ? bide_http_inflate_run_(decoder->inflate, input, out, size)
                                    : http_brotli_run(decoder, input, out, size);
}

bool bide_http_decoder_is_whole_(const http_decoder *decoder)
{
    return decoder->inflate != NULL
               ? bide_http_inflate_is_whole_(decoder->inflate)
               : decoder->state == HTTP_BROTLI_FRESH || decoder->state == HTTP_BROTLI_WHOLE;
}
