/*
 * Addresses of sockets: made from text, and written as text. Floor: io.
 *
 *     bide_address address;
 *     bide_address_parse(&address, "127.0.0.1:8080");         // "[::1]:8080", "unix:/run/x", "8080"
 *     bide_address_print(&address, text, sizeof text);
 *
 * No name is looked up here.
 */
#ifndef BIDE_ADDRESS_H
#define BIDE_ADDRESS_H

#include "bide/compiler.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

BIDE_EXTERN_C_BEGIN

typedef struct bide_address {
    socklen_t length; /* of what is used */
    union {
        struct sockaddr generic;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } any;
} bide_address;

/* For the texts of all addresses, with their zero. */
enum { BIDE_ADDRESS_TEXT = 128 };

/*
 * An address from an IP address in digits, with or without brackets, and a port. NULL is any
 * address, of both versions if the system has both.
 * Threads: any. Errors: -EINVAL (it is not an address). Progress: wait-free.
 */
int bide_address_ip(bide_address *address, const char *ip, uint16_t port);

/*
 * An address from the bytes of an IP address as protocols carry them, 4 of version 4 or 16 of
 * version 6, and a port.
 * Threads: any. Errors: -EINVAL (it has another size). Progress: wait-free.
 */
int bide_address_bytes(bide_address *address, const void *ip, size_t size, uint16_t port);

/*
 * The address of a Unix socket. A path that begins with '@' is one without a file: '@' stands
 * for the zero byte that marks such an address.
 * Threads: any. Errors: -ENAMETOOLONG, -EINVAL (it is empty). Progress: wait-free.
 */
int bide_address_unix(bide_address *address, const char *path);

/*
 * One from text: "1.2.3.4:80", "[::1]:80", "unix:/path", ":80" or "80" for any address.
 * Threads: any. Errors: -EINVAL, -ENAMETOOLONG. Progress: wait-free.
 */
int bide_address_parse(bide_address *address, const char *text);

/*
 * Writes it as text that bide_address_parse takes, with a zero at the end. Returns how many bytes
 * the text has, as snprintf does.
 * Threads: any. Progress: wait-free.
 */
size_t bide_address_print(const bide_address *address, char *text, size_t size);

/*
 * Its port; 0 if it has none.
 * Threads: any. Progress: wait-free.
 */
uint16_t bide_address_port(const bide_address *address);

/* ---- Flags of a socket, and options of a listener or receiver ---- */

/* Flags of bide_listen and bide_bind. */
enum {
    BIDE_LISTEN_REUSE_PORT = 1, /* several sockets have the address, and share what comes */
    BIDE_LISTEN_V6_ONLY = 2,    /* not version 4 as well */
};

BIDE_EXTERN_C_END

#endif
