/* Socket addresses: made from bytes and text, parsed, and printed. These functions have no state. */
#define _GNU_SOURCE
#include "bide/address.h"

#include "../system/portable.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int bide_address_bytes(bide_address *address, const void *ip, size_t size, uint16_t port)
{
    memset(address, 0, sizeof *address);
    if (size == sizeof address->any.v4.sin_addr) {
        address->length = sizeof address->any.v4;
        address->any.v4.sin_family = AF_INET;
        address->any.v4.sin_port = htons(port);
        memcpy(&address->any.v4.sin_addr, ip, size);
        return 0;
    }
    if (size == sizeof address->any.v6.sin6_addr) {
        address->length = sizeof address->any.v6;
        address->any.v6.sin6_family = AF_INET6;
        address->any.v6.sin6_port = htons(port);
        memcpy(&address->any.v6.sin6_addr, ip, size);
        return 0;
    }
    return -EINVAL;
}

/* True if this machine supports version 6. */
static bool address_has_v6(void)
{
    int fd = portable_socket(AF_INET6, SOCK_DGRAM, 0, false);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    if (fd < 0)
        return false;
    bool bound = bind(fd, (const struct sockaddr *)&any, sizeof any) == 0;
    close(fd);
    return bound;
}

/* Parses the zone of an address such as "fe80::1%eth0" or "fe80::1%2". */
static int address_scope_of(const char *zone, uint32_t *scope)
{
    char *end;
    *scope = if_nametoindex(zone);
    if (*scope != 0)
        return 0;
    unsigned long number = strtoul(zone, &end, 10);
    if (end == zone || *end != '\0' || number > UINT32_MAX)
        return -EINVAL;
    *scope = (uint32_t)number;
    return 0;
}

int bide_address_ip(bide_address *address, const char *ip, uint16_t port)
{
    char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 3];
    struct in_addr v4;
    struct in6_addr v6;
    uint32_t scope = 0;
    if (ip == NULL) {
        v4.s_addr = INADDR_ANY;
        return address_has_v6()
                   ? bide_address_bytes(address, &in6addr_any, sizeof in6addr_any, port)
                   : bide_address_bytes(address, &v4, sizeof v4, port);
    }
    size_t length = strlen(ip);
    bool bracketed = length >= 2 && ip[0] == '[' && ip[length - 1] == ']';
    if (bracketed) {
        ip++;
        length -= 2;
    }
    if (length >= sizeof text)
        return -EINVAL;
    memcpy(text, ip, length);
    text[length] = '\0';
    if (!bracketed && inet_pton(AF_INET, text, &v4) == 1)
        return bide_address_bytes(address, &v4, sizeof v4, port);
    char *zone = strchr(text, '%');
    if (zone != NULL) {
        *zone = '\0';
        if (address_scope_of(zone + 1, &scope) != 0)
            return -EINVAL;
    }
    if (inet_pton(AF_INET6, text, &v6) != 1)
        return -EINVAL;
    (void)bide_address_bytes(address, &v6, sizeof v6, port);
    address->any.v6.sin6_scope_id = scope;
    return 0;
}

int bide_address_unix(bide_address *address, const char *path)
{
    size_t length = strlen(path);
    bool is_abstract = path[0] == '@';
    if (length == 0 || (is_abstract && length == 1))
        return -EINVAL;
    if (length >= sizeof address->any.local.sun_path)
        return -ENAMETOOLONG;
    memset(address, 0, sizeof *address);
    address->any.local.sun_family = AF_UNIX;
    memcpy(address->any.local.sun_path, path, length);
    if (is_abstract)
        address->any.local.sun_path[0] = '\0';
    address->length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (is_abstract ? 0 : 1));
    return 0;
}

static int address_parse_port(const char *text, uint16_t *port)
{
    unsigned value = 0;
    if (*text == '\0')
        return -EINVAL;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -EINVAL;
        value = value * 10 + (unsigned)(*text - '0');
        if (value > UINT16_MAX)
            return -EINVAL;
    }
    *port = (uint16_t)value;
    return 0;
}

int bide_address_parse(bide_address *address, const char *text)
{
    char ip[BIDE_ADDRESS_TEXT];
    uint16_t port;
    if (strncmp(text, "unix:", 5) == 0)
        return bide_address_unix(address, text + 5);
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    if (address_parse_port(colon != NULL ? colon + 1 : text, &port) != 0 || length >= sizeof ip)
        return -EINVAL;
    if (length == 0)
        return bide_address_ip(address, NULL, port);
    memcpy(ip, text, length);
    ip[length] = '\0';
    if (ip[0] != '[' && strchr(ip, ':') != NULL) /* version 6 needs brackets before a port */
        return -EINVAL;
    return bide_address_ip(address, ip, port);
}

static size_t address_print_v6(const bide_address *address, char *text, size_t size)
{
    char ip[INET6_ADDRSTRLEN];
    char zone[16] = "";
    inet_ntop(AF_INET6, &address->any.v6.sin6_addr, ip, sizeof ip);
    if (address->any.v6.sin6_scope_id != 0)
        snprintf(zone, sizeof zone, "%%%u", (unsigned)address->any.v6.sin6_scope_id);
    return (size_t)snprintf(text, size, "[%s%s]:%u", ip, zone,
                            (unsigned)ntohs(address->any.v6.sin6_port));
}

static size_t address_print_unix(const bide_address *address, char *text, size_t size)
{
    size_t begin = offsetof(struct sockaddr_un, sun_path);
    size_t length = address->length > begin ? address->length - begin : 0;
    const char *path = address->any.local.sun_path;
    if (length == 0) /* the peer is not bound to a name */
        return (size_t)snprintf(text, size, "unix:");
    if (path[0] == '\0')
        return (size_t)snprintf(text, size, "unix:@%.*s", (int)(length - 1), path + 1);
    return (size_t)snprintf(text, size, "unix:%.*s", (int)strnlen(path, length), path);
}

size_t bide_address_print(const bide_address *address, char *text, size_t size)
{
    char ip[INET_ADDRSTRLEN];
    switch (address->length != 0 ? address->any.generic.sa_family : AF_UNSPEC) {
    case AF_INET:
        inet_ntop(AF_INET, &address->any.v4.sin_addr, ip, sizeof ip);
        return (size_t)snprintf(text, size, "%s:%u", ip, (unsigned)ntohs(address->any.v4.sin_port));
    case AF_INET6:
        return address_print_v6(address, text, size);
    case AF_UNIX:
        return address_print_unix(address, text, size);
    default:
        return (size_t)snprintf(text, size, "(no address)");
    }
}

uint16_t bide_address_port(const bide_address *address)
{
    switch (address->any.generic.sa_family) {
    case AF_INET:
        return ntohs(address->any.v4.sin_port);
    case AF_INET6:
        return ntohs(address->any.v6.sin6_port);
    default:
        return 0;
    }
}
