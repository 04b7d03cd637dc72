/*
 * The header of the PROXY protocol, in both versions: read in whole, byte by byte and in pieces, and compared with a
 * second reader, written from the protocol's text; what was read is printed and read again.
 */
#include "../../programs/proxy/proxy_header.h"
#include "uri.h"

#include <arpa/inet.h>
#include <errno.h>

const unsigned fuzz_executions = 20000;
const char *const fuzz_words[] = {"PROXY ", "PROXY TCP4 ", "PROXY TCP6 ", "PROXY UNKNOWN", "\r\n", "127.0.0.1 ", "::1 ",
                                  "fe80::1%lo ", "ffff:f...f:ffff ", "65535", "65536", "00", "0",
                                  "\r\n\r\n", "QUIT\n", "\x21\x11", "\x21\x21", "\x20", " ", NULL};

/* What a reader finds: its verdict (1, 0 or -EPROTO), the bytes it takes, and the addresses. */
struct found {
    int verdict;
    size_t size;
    int family; /* 0: no addresses */
    uint8_t source[16], destination[16];
    long source_port, destination_port;
};

static const unsigned char signature[] = {13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10};

/* ---- The second reader ---- */

static long decimal_port(const char *text, size_t size)
{
    long port = 0;
    if (size == 0 || size > 5 || (size > 1 && text[0] == '0'))
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (!uri_is_digit(text[i]))
            return -1;
        port = port * 10 + (text[i] - '0');
    }
    return port <= 65535 ? port : -1;
}

static struct found second_line(const char *data, size_t size)
{
    struct found found = {.verdict = -EPROTO};
    const char *words[7], *at = data;
    size_t sizes[7], count = 0;
    const char *end = memchr(data, '\n', size < PROXY_HEADER_MAX_V1 ? size : PROXY_HEADER_MAX_V1);
    if (memcmp(data, "PROXY ", size < 6 ? size : 6) != 0)
        return found;
    if (end == NULL) {
        found.verdict = size < PROXY_HEADER_MAX_V1 ? 0 : -EPROTO;
        return found;
    }
    size_t line = (size_t)(end - data);
    if (line < 14 || end[-1] != '\r' || memchr(data, '\0', line) != NULL)
        return found;
    for (end--; count < 7; count++) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        words[count] = at;
        sizes[count] = (size_t)((space != NULL ? space : end) - at);
        at = space != NULL ? space + 1 : end;
        if (space == NULL) {
            count++;
            break;
        }
    }
    found.size = line + 1;
    if (count >= 2 && sizes[1] == 7 && memcmp(words[1], "UNKNOWN", 7) == 0) {
        found.verdict = 1;
        return found;
    }
    if (count != 6 || sizes[1] != 4 || memcmp(words[1], "TCP", 3) != 0 || (words[1][3] != '4' && words[1][3] != '6'))
        return found;
    bool is_v4 = words[1][3] == '4';
    found.source_port = decimal_port(words[4], sizes[4]);
    found.destination_port = decimal_port(words[5], sizes[5]);
    if (found.source_port < 0 || found.destination_port < 0 ||
        !(is_v4 ? uri_v4(words[2], sizes[2], found.source) : uri_v6(words[2], sizes[2], found.source)) ||
        !(is_v4 ? uri_v4(words[3], sizes[3], found.destination) : uri_v6(words[3], sizes[3], found.destination)))
        return found;
    found.family = is_v4 ? AF_INET : AF_INET6;
    found.verdict = 1;
    return found;
}

static struct found second_binary(const uint8_t *data, size_t size)
{
    struct found found = {.verdict = -EPROTO};
    if (memcmp(data, signature, size < 12 ? size : 12) != 0 || (size > 12 && data[12] != 0x20 && data[12] != 0x21))
        return found;
    if (size < 16) {
        found.verdict = 0;
        return found;
    }
    size_t length = (size_t)data[14] * 256 + data[15];
    if (length > 4096)
        return found;
    if (size < 16 + length) {
        found.verdict = 0;
        return found;
    }
    found.size = 16 + length;
    bool has_addresses = data[12] == 0x21 && (data[13] == 0x11 || data[13] == 0x21);
    size_t of_ip = data[13] == 0x11 ? 4 : 16;
    if (data[12] == 0x21 && (data[13] >> 4 > 3 || (data[13] & 15) > 2)) /* must be rejected */
        return found;
    if (has_addresses && length < 2 * of_ip + 4)
        return found;
    found.verdict = 1;
    if (!has_addresses)
        return found;
    const uint8_t *at = data + 16, *ports = at + 2 * of_ip;
    found.family = of_ip == 4 ? AF_INET : AF_INET6;
    memcpy(found.source, at, of_ip);
    memcpy(found.destination, at + of_ip, of_ip);
    found.source_port = ports[0] * 256 + ports[1];
    found.destination_port = ports[2] * 256 + ports[3];
    return found;
}

static struct found second_read(const uint8_t *data, size_t size)
{
    return data[0] == 'P' ? second_line((const char *)data, size) : second_binary(data, size);
}

/* ---- The proxy's ---- */

/* Reads in pieces: `step` bytes at once; and the first `cut` bytes as one. */
static struct found first_read(struct proxy_header *header, const uint8_t *data, size_t size, size_t cut, size_t step)
{
    struct found found = {0};
    size_t offered = 0;
    fuzz_parses++;
    memset(header, 0, sizeof *header);
    while (offered < size) {
        size_t count = offered == 0 && cut != 0 ? cut : step;
        if (count > size - offered)
            count = size - offered;
        uint8_t *copy = fuzz_copy(data + offered, count);
        int taken = proxy_header_feed(header, copy, count);
        free(copy);
        found.verdict = taken;
        if (taken < 0)
            return found;
        FUZZ_REQUIRE((size_t)taken <= count);
        offered += (size_t)taken;
        found.verdict = proxy_header_parse(header);
        if (taken == 0 || found.verdict != 0)
            break;
    }
    FUZZ_REQUIRE(header->size == offered);
    found.size = offered;
    return found;
}

static void compare(const struct found *second, const struct found *first, const struct proxy_header *header)
{
    FUZZ_REQUIRE(first->verdict == second->verdict);
    if (second->verdict != 1)
        return;
    FUZZ_REQUIRE(first->size == second->size && header->is_known == (second->family != 0));
    if (second->family == 0)
        return;
    size_t of_ip = second->family == AF_INET ? 4 : 16;
    const bide_address *source = &header->source, *destination = &header->destination;
    bool is_v4 = of_ip == 4;
    FUZZ_REQUIRE(source->any.generic.sa_family == second->family && destination->any.generic.sa_family == second->family);
    FUZZ_REQUIRE(memcmp(is_v4 ? (const void *)&source->any.v4.sin_addr : &source->any.v6.sin6_addr, second->source,
                        of_ip) == 0);
    FUZZ_REQUIRE(memcmp(is_v4 ? (const void *)&destination->any.v4.sin_addr : &destination->any.v6.sin6_addr,
                        second->destination, of_ip) == 0);
    FUZZ_REQUIRE(bide_address_port(source) == second->source_port);
    FUZZ_REQUIRE(bide_address_port(destination) == second->destination_port);
}

static void print_and_read(const struct proxy_header *header)
{
    static struct proxy_header again;
    unsigned char printed[PROXY_HEADER_MAX_WRITTEN];
    for (unsigned version = 1; version <= 2; version++) {
        size_t size = proxy_header_print(printed, version, &header->source, &header->destination);
        FUZZ_REQUIRE(size <= sizeof printed);
        struct found second = second_read(printed, size), first = first_read(&again, printed, size, 0, size);
        compare(&second, &first, &again);
        FUZZ_REQUIRE(first.verdict == 1 && first.size == size && again.is_known);
        FUZZ_REQUIRE(memcmp(&again.source, &header->source, sizeof again.source) == 0);
        FUZZ_REQUIRE(memcmp(&again.destination, &header->destination, sizeof again.destination) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct proxy_header header;
    if (size == 0)
        return 0;
    struct found second = second_read(data, size), first = first_read(&header, data, size, 0, size);
    compare(&second, &first, &header);
    if (first.verdict == 1 && header.is_known)
        print_and_read(&header);
    first = first_read(&header, data, size, 0, 1);
    compare(&second, &first, &header);
    for (size_t cut = 1; cut < size && cut < 300; cut += 1 + size / 40) {
        first = first_read(&header, data, size, cut, size);
        compare(&second, &first, &header);
    }
    return 0;
}
