/*
 * The addresses of sockets.
 *
 *     TCP, UDP            in lists by port, each with its address or any address
 *     Unix, without file  in a list too, by name
 *     Unix, by path       in the tree of files
 *
 * 1. IPv4 addresses are kept as IPv6 addresses (::ffff:1.2.3.4). So a socket of both versions is
 *    compared like any other.
 * 2. Every address exists here, so none is rejected for belonging to another machine.
 * 3. Ports that no caller has chosen are given in order, from the first on, as long as they are
 *    free. So the run determines them, and a released port is not given again soon.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <netinet/in.h>

enum { FIRST_PORT = 32768, LAST_PORT = 60999 };

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_v4(const uint8_t *ip)
{
    return memcmp(ip, mapped, sizeof mapped) == 0;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    while (size != 0 && bytes[size - 1] == 0)
        size--;
    return size == 0;
}

static void set_ip(uint8_t *ip, const bide_address *address)
{
    if (address->any.generic.sa_family == AF_INET) {
        memcpy(ip, mapped, sizeof mapped);
        memcpy(ip + sizeof mapped, &address->any.v4.sin_addr, 4);
    } else {
        memcpy(ip, &address->any.v6.sin6_addr, 16);
    }
}

static void set_port(bide_address *address, uint16_t port)
{
    if (address->any.generic.sa_family == AF_INET)
        address->any.v4.sin_port = htons(port);
    else
        address->any.v6.sin6_port = htons(port);
}

int bide_sim_check_address_(const bide_address *address)
{
    static const size_t begin = offsetof(struct sockaddr_un, sun_path);
    if (address->length < sizeof address->any.generic.sa_family)
        return -EINVAL;
    switch (address->any.generic.sa_family) {
    case AF_INET:
        return address->length >= sizeof address->any.v4 ? 0 : -EINVAL;
    case AF_INET6:
        return address->length >= sizeof address->any.v6 ? 0 : -EINVAL;
    case AF_UNIX:
        return address->length > begin && address->length <= sizeof address->any.local ? 0
                                                                                       : -EINVAL;
    default:
        return -EAFNOSUPPORT;
    }
}

void bide_sim_see_address_(bide_address *address, int family)
{
    uint8_t ip[16];
    int own = address->any.generic.sa_family;
    if (own == family || own == AF_UNIX)
        return;
    uint16_t port = bide_address_port(address);
    set_ip(ip, address);
    if (family == AF_INET)
        (void)bide_address_bytes(address, ip + sizeof mapped, 4, port);
    else
        (void)bide_address_bytes(address, ip, sizeof ip, port);
}

/* ---- The lists ---- */

static bool is_path(const bide_address *address)
{
    return address->any.generic.sa_family == AF_UNIX && address->any.local.sun_path[0] != '\0';
}

/* The path of a Unix socket, zero-terminated. */
static const char *path_of_address(const bide_address *address, char *text)
{
    size_t length = address->length - offsetof(struct sockaddr_un, sun_path);
    length = strnlen(address->any.local.sun_path, length);
    memcpy(text, address->any.local.sun_path, length);
    text[length] = '\0';
    return text;
}

static memory_name **list_of_names(sim_environment *environment, const bide_address *address)
{
    uint32_t hash = bide_address_port(address);
    if (address->any.generic.sa_family == AF_UNIX) {
        const uint8_t *bytes = (const uint8_t *)address->any.local.sun_path;
        size_t length = address->length - offsetof(struct sockaddr_un, sun_path);
        for (size_t i = 0; i < length; i++)
            hash = hash * 31 + bytes[i];
    }
    return &environment->names[hash % MEMORY_NAMES];
}

static void name_insert(memory_name *name, memory_name **list)
{
    name->next = *list;
    name->place = list;
    if (name->next != NULL)
        name->next->place = &name->next;
    *list = name;
}

void bide_sim_unbind_(memory_name *name)
{
    if (name->inode != NULL)
        bide_sim_tree_unbind_(name->node->environment, name->inode);
    name->inode = NULL;
    if (name->place == NULL)
        return;
    *name->place = name->next;
    if (name->next != NULL)
        name->next->place = name->place;
    name->place = NULL;
}

static bool is_same_local(const bide_address *a, const bide_address *b)
{
    return a->any.generic.sa_family == AF_UNIX && b->any.generic.sa_family == AF_UNIX &&
           a->length == b->length && memcmp(&a->any, &b->any, a->length) == 0;
}

/* Whether the name receives what is sent to that address, by its own address or as any address. */
static bool name_covers(const memory_name *name, const uint8_t *ip)
{
    if (!name->is_any)
        return memcmp(name->ip, ip, sizeof name->ip) == 0;
    if (is_v4(name->ip))
        return is_v4(ip);
    return !name->is_v6_only || !is_v4(ip);
}

static bool is_taken(sim_environment *environment, const memory_name *name)
{
    for (const memory_name *at = *list_of_names(environment, &name->address); at != NULL;
         at = at->next) {
        if (at->type != name->type || is_same_local(&at->address, &name->address)) {
            if (at->type == name->type)
                return true;
            continue;
        }
        if (name->address.any.generic.sa_family == AF_UNIX ||
            at->address.any.generic.sa_family == AF_UNIX || at->port != name->port)
            continue;
        /* (a port that a connection has from here is no listener's obstacle: SO_REUSEADDR) */
        if (at->is_found != name->is_found || (at->shares_port && name->shares_port))
            continue;
        if (name_covers(at, name->ip) || name_covers(name, at->ip))
            return true;
    }
    return false;
}

/* A free port: 3. */
static int give_port(sim_environment *environment, memory_name *name)
{
    uint16_t *next = &environment->next_port[name->type == SOCK_DGRAM];
    for (int i = FIRST_PORT; i <= LAST_PORT; i++) {
        bool taken = false;
        if (*next < FIRST_PORT || *next > LAST_PORT)
            *next = FIRST_PORT;
        name->port = (*next)++;
        set_port(&name->address, name->port);
        for (const memory_name *at = *list_of_names(environment, &name->address); at != NULL;
             at = at->next)
            taken |= at->type == name->type && at->port == name->port;
        if (!taken)
            return 0;
    }
    return -EADDRINUSE;
}

static int bind_internet(sim_environment *environment, memory_name *name)
{
    set_ip(name->ip, &name->address);
    name->is_any = is_zero(name->ip, 16) || (is_v4(name->ip) && is_zero(name->ip + 12, 4));
    name->port = bide_address_port(&name->address);
    int error = 0;
    if (name->port == 0)
        error = give_port(environment, name);
    else if (is_taken(environment, name))
        error = -EADDRINUSE;
    if (error == 0)
        name_insert(name, list_of_names(environment, &name->address));
    return error;
}

int bide_sim_bind_(memory_name *name, memory_node *node, const bide_address *address, int flags)
{
    char path[sizeof address->any.local.sun_path + 1];
    sim_environment *environment = node->environment;
    int error = bide_sim_check_address_(address);
    if (error != 0)
        return error;
    name->node = node;
    name->type = node->type;
    name->address = *address;
    name->shares_port = (flags & BIDE_LISTEN_REUSE_PORT) != 0;
    name->is_v6_only = (flags & BIDE_LISTEN_V6_ONLY) != 0;
    name->is_found = true;
    if (is_path(address))
        return bide_sim_tree_bind_(environment, path_of_address(address, path), node, &name->inode);
    if (address->any.generic.sa_family != AF_UNIX)
        return bind_internet(environment, name);
    if (is_taken(environment, name))
        return -EADDRINUSE;
    name_insert(name, list_of_names(environment, address));
    return 0;
}

int bide_sim_bind_to_reach_(memory_name *name, memory_node *node, const bide_address *to)
{
    name->node = node;
    name->type = node->type;
    name->address = *to; /* 2: the same machine */
    set_ip(name->ip, to);
    int error = give_port(node->environment, name);
    if (error != 0)
        return -EADDRNOTAVAIL;
    name_insert(name, list_of_names(node->environment, &name->address));
    return 0;
}

/* ---- Finding ---- */

/* How well a name fits an address: its own address better than any address. 0: it does not. */
static int name_fit(const memory_name *name, const uint8_t *ip, uint16_t port, int type)
{
    if (!name->is_found || name->type != type || name->port != port ||
        name->address.any.generic.sa_family == AF_UNIX || !name_covers(name, ip))
        return 0;
    return name->is_any ? 1 : 2;
}

static memory_node *find_internet(sim_environment *environment, const bide_address *to, int type,
                                  uint32_t choice)
{
    uint8_t ip[16];
    uint16_t port = bide_address_port(to);
    const memory_name *first = *list_of_names(environment, to);
    int best = 0;
    uint32_t count = 0;
    set_ip(ip, to);
    for (const memory_name *at = first; at != NULL; at = at->next) {
        int fits = name_fit(at, ip, port, type);
        if (fits > best) {
            best = fits;
            count = 0;
        }
        count += fits != 0 && fits == best;
    }
    if (count == 0)
        return NULL;
    choice %= count;
    for (const memory_name *at = first;; at = at->next) {
        if (name_fit(at, ip, port, type) == best && choice-- == 0)
            return at->node;
    }
}

int bide_sim_find_(sim_environment *environment, const bide_address *to, int type, uint32_t choice,
                   memory_node **found)
{
    char path[sizeof to->any.local.sun_path + 1];
    *found = NULL;
    if (is_path(to)) {
        int error = bide_sim_tree_find_(environment, path_of_address(to, path), found);
        if (error == 0 && (*found)->type != type)
            error = -EPROTOTYPE;
        return error;
    }
    if (to->any.generic.sa_family != AF_UNIX) {
        *found = find_internet(environment, to, type, choice);
        return *found != NULL ? 0 : -ECONNREFUSED;
    }
    for (const memory_name *at = *list_of_names(environment, to); at != NULL; at = at->next) {
        if (at->type == type && is_same_local(&at->address, to)) {
            *found = at->node;
            return 0;
        }
    }
    return -ECONNREFUSED;
}
