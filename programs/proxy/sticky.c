/* Sticky sessions. Runs on the program's loop. */
#define _GNU_SOURCE
#include "sticky.h"
#include "clients.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t hash_of_name(const struct upstream *server, uint64_t hash)
{
    for (const char *at = server->name; *at != '\0'; at++)
        hash = clients_mix(hash, (unsigned char)*at);
    return hash;
}

/* The negative binary logarithm of hash / 2^64, with 32 bits behind the point. */
static uint64_t exponential_of(uint64_t hash)
{
    hash |= 1;
    unsigned zeros = (unsigned)__builtin_clzll(hash);
    uint64_t digits = hash << zeros >> 32, fraction = 0;
    for (int bit = 31; bit >= 0; bit--) { /* (squaring doubles the logarithm) */
        digits = digits * digits >> 31;
        if (digits >> 32 != 0) {
            fraction |= UINT64_C(1) << bit;
            digits >>= 1;
        }
    }
    return ((uint64_t)(zeros + 1) << 32) - fraction;
}

struct upstream *sticky_by_address(struct backend *backend, struct tried *tried,
                                   const bide_address *client, uint64_t now, bool may_be_full)
{
    struct upstream *best = NULL;
    uint64_t smallest = UINT64_MAX, hash = clients_hash(0, client);
    if (hash == 0)
        return NULL;
    for (struct upstream *server = backend->servers; server != NULL; server = server->next) {
        uint64_t number = exponential_of(hash_of_name(server, hash)) / server->weight;
        if (number < smallest && balance_may_take(server, tried, now, may_be_full)) {
            best = server;
            smallest = number;
        }
    }
    return balance_try(best, tried, now);
}

/* ---- Cookies ---- */

bool sticky_is_name(const char *text)
{
    static const char valid[] = "!#$%&'*+-.^_`|~0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t size = strlen(text);
    return size != 0 && size <= MAX_STICKY_NAME && text[strspn(text, valid)] == '\0';
}

/* A hash without a secret, which is the same everywhere: whoever guesses a server's name can confirm it. */
static void print_sticky_value(const struct upstream *server, char text[STICKY_VALUE])
{
    (void)snprintf(text, STICKY_VALUE, "%016" PRIx64, hash_of_name(server, 0));
}

static struct upstream *server_of_value(const struct backend *backend, bide_slice value)
{
    char text[STICKY_VALUE];
    for (struct upstream *server = backend->servers; server != NULL; server = server->next) {
        print_sticky_value(server, text);
        if (value.size == STICKY_VALUE - 1 && memcmp(value.data, text, value.size) == 0)
            return server;
    }
    return NULL;
}

/* In the value of a field, "a=b; c=d". */
static struct upstream *server_of_cookies(const struct backend *backend, bide_slice list)
{
    size_t name = strlen(backend->cookie);
    const char *at = list.data, *end = list.data + list.size;
    while (at < end) {
        const char *stop = memchr(at, ';', (size_t)(end - at));
        const char *last = stop != NULL ? stop : end;
        while (at < last && (*at == ' ' || *at == '\t'))
            at++;
        if ((size_t)(last - at) > name && memcmp(at, backend->cookie, name) == 0 &&
            at[name] == '=') {
            bide_slice value = {at + name + 1, (size_t)(last - at) - name - 1};
            struct upstream *server = server_of_value(backend, value);
            if (server != NULL)
                return server;
        }
        at = last + 1;
    }
    return NULL;
}

struct upstream *sticky_named(const struct backend *backend, const bide_http_request *request)
{
    struct upstream *server = NULL;
    for (size_t i = 0; i < request->field_count && server == NULL; i++)
        if (bide_http_is(request->fields[i].name, "Cookie"))
            server = server_of_cookies(backend, request->fields[i].value);
    return server;
}

void sticky_print_cookie(const struct upstream *server, bool is_secure, char *text)
{
    char value[STICKY_VALUE];
    print_sticky_value(server, value);
    (void)snprintf(text, STICKY_FIELD, "%s=%s; Path=/; HttpOnly; SameSite=Lax%s",
                   server->backend->cookie, value, is_secure ? "; Secure" : "");
}
