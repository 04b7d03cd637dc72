/*
 * The PROXY protocol: incremental reading, and writing. Stateless except for the header.
 *
 *     1: "PROXY TCP4 " source " " destination " " source port " " destination port "\r\n"
 *     2: signature (12), version and command (1), family (1), length (2), addresses, additions
 *
 *  1. Both versions have at least 15 bytes, which is less than the fixed part of version 2. So the
 *     number of bytes that certainly belong to the header is always known: `bytes_wanted`. No more
 *     bytes are read. In a line, that is one byte at a time, once the next byte may end it.
 */
#define _GNU_SOURCE
#include "proxy_header.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char signature[12] = "\r\n\r\n\0\r\nQUIT\n";

enum { FIXED_SIZE = 16, MIN_SIZE = 15 };

static bool is_version_1(const struct proxy_header *header)
{
    return header->bytes[0] == 'P';
}

/* The size of a version 2 header. */
static size_t version_2_size(const struct proxy_header *header)
{
    return FIXED_SIZE + (size_t)(header->bytes[14] << 8 | header->bytes[15]);
}

static bool is_valid_prefix(const struct proxy_header *header)
{
    size_t size = header->size;
    if (size == 0)
        return true;
    if (is_version_1(header))
        return memcmp(header->bytes, "PROXY ", size < 6 ? size : 6) == 0;
    if (memcmp(header->bytes, signature, size < 12 ? size : 12) != 0 ||
        (size > 12 && header->bytes[12] >> 4 != 2) || (size > 12 && (header->bytes[12] & 15) > 1))
        return false;
    return size < FIXED_SIZE || version_2_size(header) <= PROXY_HEADER_MAX_READ;
}

static bool has_line_end(const struct proxy_header *header)
{
    return header->size >= 2 && header->bytes[header->size - 1] == '\n';
}

/* The number of bytes that are certain to follow; 0 if the header is complete. */
static size_t bytes_wanted(const struct proxy_header *header)
{
    size_t size = header->size;
    if (size < MIN_SIZE)
        return MIN_SIZE - size;
    if (!is_version_1(header))
        return size < FIXED_SIZE ? FIXED_SIZE - size : version_2_size(header) - size;
    return has_line_end(header) ? 0 : 1;
}

/* The number of the `size` bytes that belong to the line. */
static size_t bytes_of_line(const struct proxy_header *header, const unsigned char *data,
                            size_t size)
{
    const unsigned char *end = memchr(data, '\n', size);
    if (end != NULL)
        size = (size_t)(end - data) + 1;
    size_t space = PROXY_HEADER_MAX_V1 - header->size;
    return size < space ? size : space;
}

int proxy_header_feed(struct proxy_header *header, const void *data, size_t size)
{
    size_t taken = 0;
    while (taken < size && bytes_wanted(header) != 0) {
        const unsigned char *next = (const unsigned char *)data + taken;
        bool in_line = header->size != 0 ? is_version_1(header) : *next == 'P';
        size_t piece = in_line ? bytes_of_line(header, next, size - taken) : bytes_wanted(header);
        if (piece > size - taken)
            piece = size - taken;
        if (piece == 0)
            return -EPROTO;
        bide_assert(header->size + piece <= sizeof header->bytes);
        memcpy(header->bytes + header->size, next, piece);
        header->size += piece;
        taken += piece;
        if (!is_valid_prefix(header) ||
            (in_line && has_line_end(header) && header->size < MIN_SIZE))
            return -EPROTO;
        if (in_line && has_line_end(header))
            break;
    }
    return (int)taken;
}

/* ---- Version 1 ---- */

/* Parses a decimal port without sign and leading zeros. */
static bool parse_port(const char *text, uint16_t *port)
{
    unsigned value = 0;
    size_t length = strlen(text);
    if (length == 0 || length > 5 || (length > 1 && text[0] == '0') ||
        strspn(text, "0123456789") != length)
        return false;
    for (; *text != '\0'; text++)
        value = value * 10 + (unsigned)(*text - '0');
    *port = (uint16_t)value;
    return value <= UINT16_MAX;
}

static bool parse_address(bide_address *address, const char *ip, const char *port, int family)
{
    uint16_t number;
    return strpbrk(ip, "[]%") == NULL && parse_port(port, &number) &&
           bide_address_ip(address, ip, number) == 0 && address->any.generic.sa_family == family;
}

/* Splits the text at single blanks. */
static unsigned split_at_blanks(char *text, char *words[7])
{
    unsigned count = 0;
    for (char *word = text; word != NULL && count < 7;)
        words[count++] = strsep(&word, " ");
    return count;
}

static int parse_version_1(struct proxy_header *header)
{
    char text[PROXY_HEADER_MAX_V1 + 1], *words[7];
    size_t size = header->size - 2;
    if (header->bytes[size] != '\r' || memchr(header->bytes, '\0', size) != NULL)
        return -EPROTO;
    memcpy(text, header->bytes, size);
    text[size] = '\0';
    unsigned count = split_at_blanks(text, words);
    if (count >= 2 && strcmp(words[1], "UNKNOWN") == 0)
        return 1;
    if (count != 6 || (strcmp(words[1], "TCP4") != 0 && strcmp(words[1], "TCP6") != 0))
        return -EPROTO;
    int family = words[1][3] == '4' ? AF_INET : AF_INET6;
    if (!parse_address(&header->source, words[2], words[4], family) ||
        !parse_address(&header->destination, words[3], words[5], family))
        return -EPROTO;
    header->is_known = true;
    return 1;
}

/* ---- Version 2 ---- */

static uint16_t port_at(const unsigned char *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/*
 * Other families than TCP's carry no address here; reserved ones are rejected. The command LOCAL is a
 * check by the proxy itself: its family is ignored.
 */
static int parse_version_2(struct proxy_header *header)
{
    const unsigned char *at = header->bytes + FIXED_SIZE;
    size_t size = header->size - FIXED_SIZE;
    bool is_local = (header->bytes[12] & 15) == 0;
    if (is_local)
        return 1;
    if (header->bytes[13] >> 4 > 3 || (header->bytes[13] & 15) > 2)
        return -EPROTO;
    if (header->bytes[13] != 0x11 && header->bytes[13] != 0x21)
        return 1;
    size_t of_ip = header->bytes[13] == 0x11 ? 4 : 16;
    const unsigned char *ports = at + 2 * of_ip;
    if (size < 2 * of_ip + 4)
        return -EPROTO;
    (void)bide_address_bytes(&header->source, at, of_ip, port_at(ports));
    (void)bide_address_bytes(&header->destination, at + of_ip, of_ip, port_at(ports + 2));
    header->is_known = true;
    return 1;
}

int proxy_header_parse(struct proxy_header *header)
{
    if (header->size != 0 && is_version_1(header)) {
        if (!has_line_end(header))
            return header->size == PROXY_HEADER_MAX_V1 ? -EPROTO : 0;
        return parse_version_1(header);
    }
    if (header->size < FIXED_SIZE || bytes_wanted(header) != 0)
        return 0;
    return parse_version_2(header);
}

/* ---- Writing ---- */

/* True if both addresses are of this family. */
static bool have_family(const bide_address *one, const bide_address *other, int family)
{
    return one->length != 0 && other->length != 0 && one->any.generic.sa_family == family &&
           other->any.generic.sa_family == family;
}

static size_t print_version_1(char *data, const bide_address *source,
                              const bide_address *destination)
{
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    bool is_v4 = have_family(source, destination, AF_INET);
    if (!is_v4 && !have_family(source, destination, AF_INET6))
        return (size_t)sprintf(data, "PROXY UNKNOWN\r\n");
    int family = is_v4 ? AF_INET : AF_INET6;
    const void *ip = is_v4 ? (const void *)&source->any.v4.sin_addr : &source->any.v6.sin6_addr;
    const void *other =
        is_v4 ? (const void *)&destination->any.v4.sin_addr : &destination->any.v6.sin6_addr;
    inet_ntop(family, ip, from, sizeof from);
    inet_ntop(family, other, to, sizeof to);
    return (size_t)sprintf(data, "PROXY %s %s %s %u %u\r\n", is_v4 ? "TCP4" : "TCP6", from, to,
                           (unsigned)bide_address_port(source),
                           (unsigned)bide_address_port(destination));
}

static size_t print_version_2(unsigned char *data, const bide_address *source,
                              const bide_address *destination)
{
    size_t size = 0;
    unsigned char *at = data + FIXED_SIZE;
    memcpy(data, signature, sizeof signature);
    data[12] = 0x21;
    data[13] = 0;
    if (have_family(source, destination, AF_INET)) {
        data[13] = 0x11;
        size = 12;
        memcpy(at, &source->any.v4.sin_addr, 4);
        memcpy(at + 4, &destination->any.v4.sin_addr, 4);
        memcpy(at + 8, &source->any.v4.sin_port, 2);
        memcpy(at + 10, &destination->any.v4.sin_port, 2);
    } else if (have_family(source, destination, AF_INET6)) {
        data[13] = 0x21;
        size = 36;
        memcpy(at, &source->any.v6.sin6_addr, 16);
        memcpy(at + 16, &destination->any.v6.sin6_addr, 16);
        memcpy(at + 32, &source->any.v6.sin6_port, 2);
        memcpy(at + 34, &destination->any.v6.sin6_port, 2);
    }
    data[14] = 0;
    data[15] = (unsigned char)size;
    return FIXED_SIZE + size;
}

size_t proxy_header_print(unsigned char *data, unsigned version, const bide_address *source,
                          const bide_address *destination)
{
    return version == 1 ? print_version_1((char *)data, source, destination)
                        : print_version_2(data, source, destination);
}

size_t proxy_header_print_own(unsigned char *data, unsigned version)
{
    static const bide_address nobody;
    size_t size = proxy_header_print(data, version, &nobody, &nobody);
    if (version == 2)
        data[12] = 0x20; /* LOCAL */
    return size;
}
