/* Rules of RFC 3986 that several targets compare with, written from its grammar. */
#ifndef BIDE_TESTS_FUZZ_URI_H
#define BIDE_TESTS_FUZZ_URI_H

#include "fuzz.h"

static inline bool uri_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static inline int uri_hex(int c)
{
    return uri_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static inline bool uri_is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* unreserved / sub-delims */
static inline bool uri_is_plain(int c)
{
    return c != 0 && (uri_is_letter(c) || uri_is_digit(c) || strchr("-._~!$&'()*+,;=", c) != NULL);
}

/* The length of an unreserved character, a sub-delim, an escape, or one of `others`; 0 if none is at `i`. */
static inline size_t uri_unit(const char *text, size_t size, size_t i, const char *others)
{
    int c = (unsigned char)text[i];
    if (c == '%')
        return size - i >= 3 && uri_hex(text[i + 1]) >= 0 && uri_hex(text[i + 2]) >= 0 ? 3 : 0;
    return uri_is_plain(c) || (c != 0 && strchr(others, c) != NULL) ? 1 : 0;
}

static inline bool uri_is_made_of(const char *text, size_t size, const char *others)
{
    for (size_t i = 0; i < size;) {
        size_t unit = uri_unit(text, size, i, others);
        if (unit == 0)
            return false;
        i += unit;
    }
    return true;
}

/* IPv4address: the bytes, or false. */
static inline bool uri_v4(const char *text, size_t size, uint8_t bytes[4])
{
    size_t i = 0;
    for (int part = 0; part < 4; part++) {
        unsigned value = 0, digits = 0;
        if (part != 0 && (i == size || text[i++] != '.'))
            return false;
        for (; i < size && uri_is_digit(text[i]); i++, digits++) {
            if (digits == 3 || (digits == 1 && value == 0))
                return false;
            value = value * 10 + (unsigned)(text[i] - '0');
        }
        if (digits == 0 || value > 255)
            return false;
        bytes[part] = (uint8_t)value;
    }
    return i == size;
}

/* Groups of h16 between colons, the last of which may be an IPv4address. The number of bytes, or -1. */
static inline int uri_groups(const char *text, size_t size, uint8_t bytes[16], bool may_end_in_v4)
{
    int count = 0;
    size_t i = 0;
    if (size == 0)
        return 0;
    for (;;) {
        size_t end = i;
        while (end < size && text[end] != ':')
            end++;
        size_t length = end - i;
        if (end == size && may_end_in_v4 && memchr(text + i, '.', length) != NULL) {
            if (count > 12 || !uri_v4(text + i, length, bytes + count))
                return -1;
            return count + 4;
        }
        unsigned value = 0;
        if (length == 0 || length > 4 || count > 14)
            return -1;
        for (size_t j = i; j < end; j++) {
            if (uri_hex(text[j]) < 0)
                return -1;
            value = value << 4 | (unsigned)uri_hex(text[j]);
        }
        bytes[count++] = (uint8_t)(value >> 8);
        bytes[count++] = (uint8_t)value;
        if (end == size)
            return count;
        i = end + 1;
    }
}

/* IPv6address: the bytes, or false. */
static inline bool uri_v6(const char *text, size_t size, uint8_t bytes[16])
{
    uint8_t front[16] = {0}, back[16] = {0};
    size_t gap = 0;
    while (gap + 1 < size && !(text[gap] == ':' && text[gap + 1] == ':'))
        gap++;
    if (gap + 1 >= size) /* no "::" */
        return uri_groups(text, size, bytes, true) == 16;
    int before = uri_groups(text, gap, front, false);
    int after = uri_groups(text + gap + 2, size - gap - 2, back, true);
    if (before < 0 || after < 0 || before + after > 14)
        return false;
    memset(bytes, 0, 16);
    memcpy(bytes, front, (size_t)before);
    memcpy(bytes + 16 - after, back, (size_t)after);
    return true;
}

/* IPv6address / IPvFuture, between the brackets. */
static inline bool uri_is_literal(const char *text, size_t size)
{
    uint8_t bytes[16];
    size_t i = 1;
    if (size == 0 || (text[0] != 'v' && text[0] != 'V'))
        return uri_v6(text, size, bytes);
    while (i < size && uri_hex(text[i]) >= 0)
        i++;
    if (i == 1 || i + 1 >= size || text[i] != '.')
        return false;
    for (i++; i < size; i++)
        if (!uri_is_plain((unsigned char)text[i]) && text[i] != ':')
            return false;
    return true;
}

/*
 * uri-host [ ":" port ]. The size of the host, with its brackets, or 0. Behind it there is nothing, or a colon and
 * digits.
 */
static inline size_t uri_host(const char *text, size_t size)
{
    size_t host = 0, i;
    if (size != 0 && text[0] == '[') {
        while (host < size && text[host] != ']')
            host++;
        if (host == size || !uri_is_literal(text + 1, host - 1))
            return 0;
        host++;
    } else {
        while (host < size && text[host] != ':')
            host++;
        if (!uri_is_made_of(text, host, ""))
            return 0;
    }
    if (host < size && text[host] != ':')
        return 0;
    for (i = host + 1; i < size; i++)
        if (!uri_is_digit(text[i]))
            return 0;
    return host;
}

/* The port behind the host: -1 if there is none, or it is empty; more than 65535 if it is too large. */
static inline long uri_port(const char *text, size_t size, size_t host)
{
    long port = 0;
    if (size <= host + 1)
        return -1;
    for (size_t i = host + 1; i < size; i++)
        port = port > 65535 ? port : port * 10 + (text[i] - '0');
    return port;
}

#endif
