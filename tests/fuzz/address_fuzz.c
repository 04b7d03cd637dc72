/* Addresses as text: the parser against a second one, and what is printed is parsed to the same address. */
#include "bide/address.h"
#include "uri.h"

#include <arpa/inet.h>
#include <errno.h>

const unsigned fuzz_executions = 20000;
const char *const fuzz_words[] = {"[::1]:80", "127.0.0.1", ":", "::", "[", "]", "unix:", "@", "65535", "65536", "0.0.0.0", ".",
                                  "ffff:", "1.2.3.4", "fe80::1", NULL};

/* The port: -1 if it is none. */
static long port_of(const char *text)
{
    long port = 0;
    if (*text == '\0')
        return -1;
    for (; *text != '\0'; text++) {
        if (!uri_is_digit(*text))
            return -1;
        port = port * 10 + (*text - '0');
        if (port > 65535)
            return -1;
    }
    return port;
}

/* The family, 0 for an address without a host, or -1. */
static int second_parse(const char *text, uint8_t bytes[16], long *port)
{
    const char *colon = strrchr(text, ':');
    size_t host = colon != NULL ? (size_t)(colon - text) : 0;
    *port = port_of(colon != NULL ? colon + 1 : text);
    if (*port < 0)
        return -1;
    if (host == 0)
        return 0;
    if (uri_v4(text, host, bytes))
        return AF_INET;
    if (host > 2 && text[0] == '[' && text[host - 1] == ']' && uri_v6(text + 1, host - 2, bytes))
        return AF_INET6;
    return -1;
}

static void check_unix(const char *path, int status, const bide_address *address)
{
    size_t length = strlen(path);
    bool is_empty = length == 0 || strcmp(path, "@") == 0;
    bool is_long = length >= sizeof address->any.local.sun_path;
    FUZZ_REQUIRE(status == (is_empty ? -EINVAL : is_long ? -ENAMETOOLONG : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    uint8_t bytes[16] = {0};
    long port;
    char printed[BIDE_ADDRESS_TEXT];
    bide_address address, again;
    if (size > 300 || memchr(input, '\0', size) != NULL || memchr(input, '%', size) != NULL) /* (no zones) */
        return 0;
    char *text = malloc(size + 1);
    FUZZ_REQUIRE(text != NULL);
    memcpy(text, input, size);
    text[size] = '\0';
    int status = bide_address_parse(&address, text);
    if (strncmp(text, "unix:", 5) == 0) {
        check_unix(text + 5, status, &address);
    } else {
        int family = second_parse(text, bytes, &port);
        FUZZ_REQUIRE(status == (family >= 0 ? 0 : -EINVAL));
        if (family == AF_INET)
            FUZZ_REQUIRE(address.any.generic.sa_family == AF_INET && memcmp(&address.any.v4.sin_addr, bytes, 4) == 0);
        if (family == AF_INET6)
            FUZZ_REQUIRE(address.any.generic.sa_family == AF_INET6 && memcmp(&address.any.v6.sin6_addr, bytes, 16) == 0);
        if (family >= 0)
            FUZZ_REQUIRE(bide_address_port(&address) == port);
    }
    if (status == 0) {
        size_t length = bide_address_print(&address, printed, sizeof printed);
        FUZZ_REQUIRE(length < sizeof printed && length == strlen(printed));
        FUZZ_REQUIRE(bide_address_parse(&again, printed) == 0);
        FUZZ_REQUIRE(again.length == address.length && memcmp(&again.any, &address.any, address.length) == 0);
    }
    free(text);
    return 0;
}
