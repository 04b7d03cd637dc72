/* Bodies that are compressed: decoding, by zlib (inflate.h) and brotli. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_DECODE_H
#define BIDE_SRC_HTTP_DECODE_H

#include "inflate.h"

typedef struct bide_http_decoder_ http_decoder;

/* The value of "Accept-Encoding" that asks for all codings that can be decoded; NULL: there are none. */
extern const char *const bide_http_codings_;

/* Whether the library was built with what the coding needs. */
bool bide_http_decodes_(http_coding coding);

/* Makes a decoder of a coding that can be decoded. Errors: -ENOMEM, -ENOTSUP. */
int bide_http_decoder_create_(http_decoder **decoder, http_coding coding);

/* NULL: nothing. */
void bide_http_decoder_destroy_(http_decoder *decoder);

/* As bide_http_inflate_run_. */
ptrdiff_t bide_http_decoder_run_(http_decoder *decoder, bide_slice *input, char *out, size_t size);

/* All that came was whole: nothing, or complete streams. */
bool bide_http_decoder_is_whole_(const http_decoder *decoder);

#endif
