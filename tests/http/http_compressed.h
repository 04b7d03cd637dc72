/* Compressed data of tests, by Python's gzip and zlib, and by brotli: a text eight times, and what else its names say. */
#ifndef BIDE_TESTS_HTTP_COMPRESSED_H
#define BIDE_TESTS_HTTP_COMPRESSED_H

#define COMPRESSED_LINE "hello, hello, hello, and good-bye.\n"
#define COMPRESSED_TEXT                                                             \
    COMPRESSED_LINE COMPRESSED_LINE COMPRESSED_LINE COMPRESSED_LINE COMPRESSED_LINE \
        COMPRESSED_LINE COMPRESSED_LINE COMPRESSED_LINE

static const unsigned char gzipped[] = {31,  139, 8,   0,   0,   0,   0,  0,   2,   3,   203, 72,
                                        205, 201, 201, 215, 81,  200, 64, 161, 18,  243, 82,  20,
                                        210, 243, 243, 83,  116, 147, 42, 83,  245, 184, 50,  70,
                                        162, 18,  0,   183, 247, 106, 68, 24,  1,   0,   0};
static const unsigned char deflated[] = {120, 218, 203, 72, 205, 201, 201, 215, 81,  200, 64, 161,
                                         18,  243, 82,  20, 210, 243, 243, 83,  116, 147, 42, 83,
                                         245, 184, 50,  70, 162, 18,  0,   222, 193, 94,  9};
/* brotli of the text */
static const unsigned char brotlied[] = {
    27, 23, 1,  248, 141, 212, 98,  173, 179, 48,  167, 39,  75,  245, 235, 136, 157, 49,  130, 121,
    22, 10, 37, 207, 130, 149, 128, 12,  50,  181, 75,  129, 188, 252, 18,  77,  166, 198, 151, 5};
/* deflate without a header */
static const unsigned char bare[] = {203, 72,  205, 201, 201, 215, 81,  200, 64,  161,
                                     18,  243, 82,  20,  210, 243, 243, 83,  116, 147,
                                     42,  83,  245, 184, 50,  70,  162, 18,  0};
/* the same of "stored", in a stored block */
static const unsigned char stored_bare[] = {1, 6, 0, 249, 255, 115, 116, 111, 114, 101, 100};
/* gzip of 100,000 zeros */
static const unsigned char bomb[] = {
    31, 139, 8,   0, 0, 0, 0, 0, 2, 3, 237, 193, 49, 1, 0,   0,   0,  194, 160, 245, 79, 109,
    13, 15,  160, 0, 0, 0, 0, 0, 0, 0, 0,   0,   0,  0, 0,   0,   0,  0,   0,   0,   0,  0,
    0,  0,   0,   0, 0, 0, 0, 0, 0, 0, 0,   0,   0,  0, 0,   0,   0,  0,   0,   0,   0,  0,
    0,  0,   0,   0, 0, 0, 0, 0, 0, 0, 0,   0,   0,  0, 0,   0,   0,  0,   0,   0,   0,  0,
    0,  0,   0,   0, 0, 0, 0, 0, 0, 0, 0,   0,   0,  0, 0,   0,   0,  0,   0,   0,   0,  0,
    0,  0,   0,   0, 0, 0, 0, 0, 0, 0, 0,   128, 87, 3, 125, 149, 17, 212, 160, 134, 1,  0};

#endif
