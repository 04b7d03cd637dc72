/*
 * Finds words and hashes them. Most words are short, so one step on eight bytes finds the end of
 * most of them, and the same bytes give the word's hash.
 *
 * White space is defined as by isspace in the C locale: space, \t, \n, \v, \f and \r.
 */
#ifndef PIPELINE_WORD_SCAN_H
#define PIPELINE_WORD_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Loads eight bytes, the first one lowest. (Compilers make one load of it.) */
static inline uint64_t load_eight(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    return (uint64_t)byte[0] | (uint64_t)byte[1] << 8 | (uint64_t)byte[2] << 16 |
           (uint64_t)byte[3] << 24 | (uint64_t)byte[4] << 32 | (uint64_t)byte[5] << 40 |
           (uint64_t)byte[6] << 48 | (uint64_t)byte[7] << 56;
}

/* Loads less than eight bytes, padded with spaces. */
static inline uint64_t load_rest(const char *text, size_t size)
{
    char padded[8] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};
    memcpy(padded, text, size);
    return load_eight(padded);
}

/*
 * Sets the highest bit of each of the eight bytes that is white space. No sum carries into the next
 * byte, because both operands are less than 128.
 */
static inline uint64_t white_space_bits(uint64_t eight)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t low = eight & (each * 0x7f);
    uint64_t from_tab = low + each * (0x80 - '\t');
    uint64_t past_return = low + each * (0x80 - '\r' - 1);
    uint64_t not_space = (low ^ (each * ' ')) + each * 0x7f;
    return ((from_tab & ~past_return) | ~not_space) & ~eight & (each * 0x80);
}

/* A bijection: different numbers stay different. */
static inline uint64_t mix_bits(uint64_t number)
{
    number = (number ^ number >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return number ^ number >> 32;
}

/*
 * Returns the end of the word that begins at `at`: the next white space or `end`. *hash is its
 * hash. Different words of the same length of up to eight bytes have different hashes.
 */
static inline const char *scan_word(const char *at, const char *end, uint64_t *hash)
{
    *hash = 0;
    for (;; at += 8) {
        uint64_t eight = end - at >= 8 ? load_eight(at) : load_rest(at, (size_t)(end - at));
        uint64_t bits = white_space_bits(eight);
        if (bits != 0) {
            uint64_t first = bits & (~bits + 1);
            uint64_t word = eight & ((first >> 7) - 1); /* the bytes before the white space */
            *hash = mix_bits(*hash ^ word);
            return at + __builtin_ctzll(bits) / 8;
        }
        *hash = mix_bits(*hash ^ eight);
    }
}

static inline const char *skip_white_space(const char *at, const char *end)
{
    while (at != end && (*at == ' ' || (*at >= '\t' && *at <= '\r')))
        at++;
    return at;
}

#endif
