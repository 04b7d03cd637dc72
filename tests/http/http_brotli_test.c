/* Bodies in brotli. Its own library is the other side. */
#define _GNU_SOURCE
#include "testing.h"

#include "../../src/http/decode.h"

#include <brotli/encode.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 100000, ROOM = 120000 };

static char text[TEXT], out[ROOM];
static unsigned char packed[ROOM];

/* Compresses a text that is neither random nor all the same. */
static size_t pack(size_t size, int quality)
{
    size_t packed_size = sizeof packed;
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + (i * i / 7 + i / 100) % 23);
    assert_true(BrotliEncoderCompress(quality, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, size,
                                      (const uint8_t *)text, &packed_size, packed));
    return packed_size;
}

/*
 * Decodes input that arrives in pieces into pieces of `out_size` bytes. Returns the number of bytes in `out`, or an
 * error: -ENODATA if the input has ended too early.
 */
static ptrdiff_t unpack(const void *data, size_t size, size_t piece, size_t out_size)
{
    http_decoder *decoder;
    size_t got = 0, at = 0;
    ptrdiff_t count;
    assert_int_equal(bide_http_decoder_create_(&decoder, HTTP_CODING_BROTLI), 0);
    do {
        size_t next = size - at < piece ? size - at : piece;
        char *copy = malloc(next + (next == 0)); /* (for AddressSanitizer) */
        memcpy(copy, (const char *)data + at, next);
        bide_slice input = {copy, next};
        while ((count = bide_http_decoder_run_(decoder, &input, out + got,
                                               ROOM - got < out_size ? ROOM - got : out_size)) > 0)
            got += (size_t)count;
        assert_true(count < 0 || input.size == 0);
        free(copy);
        at += next;
    } while (count == 0 && at != size);
    if (count == 0 && !bide_http_decoder_is_whole_(decoder))
        count = -ENODATA;
    if (count < 0 && count != -ENODATA) { /* it stays spoilt */
        bide_slice input = {data, size};
        assert_int_equal(bide_http_decoder_run_(decoder, &input, out, 1), count);
    }
    bide_http_decoder_destroy_(decoder);
    return count < 0 ? count : (ptrdiff_t)got;
}

static void bodies_are_decoded_in_pieces_of_any_size(void **state)
{
    static const size_t sizes[] = {0, 1, 300, TEXT};
    (void)state;
    assert_true(bide_http_decodes_(HTTP_CODING_BROTLI));
    for (size_t i = 0; i < 4; i++) {
        for (int quality = 0; quality <= 11; quality += 11) {
            size_t size = pack(sizes[i], quality);
            for (size_t piece = sizes[i] == TEXT ? 97 : 1; piece <= size; piece = piece * 2 + 1) {
                for (size_t out_size = 1; out_size < ROOM; out_size = out_size * 7 + 1) {
                    assert_int_equal(unpack(packed, size, piece, out_size), sizes[i]);
                    assert_memory_equal(out, text, sizes[i]);
                }
            }
        }
    }
}

static void cut_and_spoilt_bodies_are_errors(void **state)
{
    (void)state;
    size_t size = pack(300, 5);
    assert_int_equal(unpack("", 0, 1, 100), 0); /* no body */
    for (size_t cut = 1; cut < size; cut++)
        assert_int_equal(unpack(packed, cut, 5, 100), -ENODATA);
    for (size_t more = 1; more < 10; more++) /* bytes behind its end */
        assert_int_equal(unpack(packed, size + more, size + more, ROOM / 2), -EBADMSG);
    assert_int_equal(unpack("\xff no brotli", 11, 3, 100), -EBADMSG);
    size = pack(0, 5);
    assert_int_equal(unpack(packed, size + 1, size + 1, 100), -EBADMSG);
}

/* Each changed body ends: as another text, cut off, or spoilt. */
static void changed_bodies_end(void **state)
{
    (void)state;
    size_t size = pack(2000, 9);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ptrdiff_t count = 0;
        http_decoder *decoder;
        bide_slice input = {(const char *)packed, size};
        assert_int_equal(bide_http_decoder_create_(&decoder, HTTP_CODING_BROTLI), 0);
        for (int i = 0; i < 100 && (i == 0 || count > 0); i++)
            count = bide_http_decoder_run_(decoder, &input, out, sizeof out);
        assert_true(count >= 0 || count == -EBADMSG);
        bide_http_decoder_destroy_(decoder);
        packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_decoded_in_pieces_of_any_size),
        cmocka_unit_test(cut_and_spoilt_bodies_are_errors),
        cmocka_unit_test(changed_bodies_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
