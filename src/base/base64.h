/* The base64 of bytes (RFC 4648, section 4). These functions have no state. Floor: base. */
#ifndef BIDE_SRC_BASE_BASE64_H
#define BIDE_SRC_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* The 64 digits, by value, and a zero. */
static inline const char *bide_base64_digits_(void)
{
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

/* Writes the base64 of `size` bytes, and a zero: (size + 2) / 3 * 4 + 1 bytes. */
static inline void bide_base64_write_(char *text, const uint8_t *data, size_t size)
{
    const char *digits = bide_base64_digits_();
    for (; size != 0; data += 3, size -= size < 3 ? size : 3) {
        uint32_t group = (uint32_t)data[0] << 16 | (size > 1 ? (uint32_t)data[1] << 8 : 0) |
                         (size > 2 ? data[2] : 0);
        *text++ = digits[group >> 18];
        *text++ = digits[group >> 12 & 63];
        *text++ = size > 1 ? digits[group >> 6 & 63] : '=';
        *text++ = size > 2 ? digits[group & 63] : '=';
    }
    *text = '\0';
}

#endif
