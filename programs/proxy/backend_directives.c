/* The directives of a backend. */
#include "directives.h"
#include "sticky.h"

#include <stdlib.h>
#include <string.h>

static bool read_balance(struct reading *reading)
{
    const char *word = reading->words[1];
    bool min_is = strcmp(word, "least-connections") == 0;
    reading->backend->balance = min_is ? MIN_CONNECTIONS : ROUND_ROBIN;
    return min_is || strcmp(word, "round-robin") == 0 ||
           reading_fail(reading, reading->line, "'%s' is neither round-robin nor least-connections",
                        word);
}

/* "sticky address", "sticky cookie NAME" */
static bool read_sticky(struct reading *reading)
{
    struct backend *backend = reading->backend;
    bool is_cookie = strcmp(reading->words[1], "cookie") == 0;
    backend->sticky = is_cookie ? STICKY_COOKIE : STICKY_ADDRESS;
    if (!is_cookie && strcmp(reading->words[1], "address") != 0)
        return reading_fail(reading, reading->line, "'%s' is neither address nor cookie",
                            reading->words[1]);
    if (reading->count != (is_cookie ? 3 : 2))
        return reading_fail(reading, reading->line, "usage: sticky address, or sticky cookie NAME");
    if (is_cookie && !sticky_is_name(reading->words[2]))
        return reading_fail(reading, reading->line, "'%s' is not the name of a cookie",
                            reading->words[2]);
    free(backend->cookie);
    backend->cookie = is_cookie ? reading_copy(reading->words[2]) : NULL;
    return true;
}

/* The part before the port, if there is one, without brackets. */
static char *copy_host(const char *name)
{
    char *host = reading_copy(name + (*name == '['));
    char *end = strrchr(host, *name == '[' ? ']' : ':');
    if (end != NULL)
        *end = '\0';
    return host;
}

/* Without the zone of an IPv6 address, which has a meaning on this machine only. */
static char *copy_without_zone(const char *name)
{
    char *copy = reading_copy(name);
    char *zone = *name == '[' ? strchr(copy, '%') : NULL;
    const char *end = zone != NULL ? strchr(zone, ']') : NULL;
    if (end != NULL)
        memmove(zone, end, strlen(end) + 1);
    return copy;
}

static bool parse_target(struct upstream *server)
{
    bool is_address = bide_address_parse(&server->addresses[0], server->name) == 0;
    bool is_local = is_address && server->addresses[0].any.generic.sa_family == AF_UNIX;
    server->address_count = is_address;
    server->authority = is_local ? reading_copy("localhost") : copy_without_zone(server->name);
    server->tls_name = copy_host(server->authority);
    return is_address;
}

/* Parses an address, or a name with a port. */
static bool read_target(struct reading *reading, struct upstream *server)
{
    const char *colon = strrchr(server->name, ':');
    uint64_t port;
    if (strcspn(server->name, "0123456789") != 0 && colon == server->name)
        return reading_fail(reading, reading->line, "'%s' has no host", server->name);
    if (colon != NULL && parse_target(server))
        return true;
    if (colon == NULL || colon == server->name || strpbrk(server->name, "[]/@") != NULL)
        return reading_fail(reading, reading->line, "'%s' is not an address such as 10.0.0.1:80",
                            server->name);
    if (!reading_number(reading, colon + 1, 1, UINT16_MAX, &port))
        return false;
    server->port = (uint16_t)port;
    server->host = copy_host(server->name);
    return true;
}

static bool read_server(struct reading *reading)
{
    struct backend *backend = reading->backend;
    if (backend->server_count == MAX_SERVERS)
        return reading_fail(reading, reading->line, "a backend can have %d servers at most",
                            MAX_SERVERS);
    struct upstream *server = reading_allocate(sizeof *server);
    *backend->last = server;
    backend->last = &server->next;
    server->backend = backend;
    server->index = backend->server_count++;
    server->name = reading_copy(reading->words[1]);
    server->weight = 1;
    if (!read_target(reading, server))
        return false;
    for (unsigned i = 2; i < reading->count; i += 2) {
        uint64_t number;
        bool is_weight = strcmp(reading->words[i], "weight") == 0;
        if ((!is_weight && strcmp(reading->words[i], "max") != 0) || i + 1 == reading->count)
            return reading_fail(reading, reading->line,
                                "only 'weight N' and 'max N' may follow the address");
        if (!reading_number(reading, reading->words[i + 1], 1, is_weight ? 1000 : 1 << 20, &number))
            return false;
        *(is_weight ? &server->weight : &server->max_connections) = (unsigned)number;
    }
    return true;
}

static bool read_connect_timeout(struct reading *reading)
{
    return reading_time(reading, reading->words[1], &reading->backend->connect_timeout);
}

static bool read_response_timeout(struct reading *reading)
{
    return reading_time(reading, reading->words[1], &reading->backend->response_timeout);
}

static bool read_retries(struct reading *reading)
{
    uint64_t retries;
    if (!reading_number(reading, reading->words[1], 0, MAX_SERVERS, &retries))
        return false;
    reading->backend->retries = (unsigned)retries;
    return true;
}

static bool read_send_proxy(struct reading *reading)
{
    const char *word = reading->words[1];
    reading->backend->send_proxy = strcmp(word, "v1") == 0 ? 1 : 2;
    return reading->backend->send_proxy == 1 || strcmp(word, "v2") == 0 ||
           reading_fail(reading, reading->line, "'%s' is neither v1 nor v2", word);
}

static bool read_fail(struct reading *reading)
{
    uint64_t count;
    if (!reading_number(reading, reading->words[1], 0, 1000000, &count))
        return false;
    reading->backend->fail_count = (unsigned)count;
    return reading->count < 3 ||
           reading_time(reading, reading->words[2], &reading->backend->fail_for);
}

static bool read_keep(struct reading *reading)
{
    uint64_t keep;
    if (!reading_number(reading, reading->words[1], 0, 65536, &keep))
        return false;
    reading->backend->keep = (unsigned)keep;
    return reading->count < 3 ||
           reading_time(reading, reading->words[2], &reading->backend->keep_idle);
}

static bool read_check_option(struct reading *reading, struct check *check, const char *name,
                              const char *value)
{
    uint64_t number;
    if (strcmp(name, "every") == 0)
        return reading_time(reading, value, &check->every);
    if (strcmp(name, "timeout") == 0)
        return reading_time(reading, value, &check->timeout);
    if (strcmp(name, "host") == 0) {
        free(check->host);
        check->host = reading_copy(value);
        return true;
    }
    if (strcmp(name, "rise") != 0 && strcmp(name, "fall") != 0)
        return reading_fail(reading, reading->line,
                            "'%s' is none of every, timeout, host, rise, fall", name);
    if (!reading_number(reading, value, 1, 1000, &number))
        return false;
    *(*name == 'r' ? &check->rise : &check->fall) = (unsigned)number;
    return true;
}

/* "check tcp [...]", "check http PATH [...]" */
static bool read_check(struct reading *reading)
{
    struct check *check = &reading->backend->check;
    bool is_http = strcmp(reading->words[1], "http") == 0;
    unsigned next = is_http ? 3 : 2;
    free(check->path);
    free(check->host);
    *check = (struct check){.kind = is_http ? CHECK_HTTP : CHECK_TCP,
                            .every = 2 * SECOND,
                            .timeout = SECOND,
                            .rise = 2,
                            .fall = 3};
    if (!is_http && strcmp(reading->words[1], "tcp") != 0)
        return reading_fail(reading, reading->line, "'%s' is neither tcp nor http",
                            reading->words[1]);
    if (is_http && (reading->count < 3 || reading->words[2][0] != '/'))
        return reading_fail(reading, reading->line,
                            "'check http' needs a path that begins with '/'");
    check->path = is_http ? reading_copy(reading->words[2]) : NULL;
    for (; next < reading->count; next += 2) {
        if (next + 1 == reading->count)
            return reading_fail(reading, reading->line, "'%s' has no value", reading->words[next]);
        if (!read_check_option(reading, check, reading->words[next], reading->words[next + 1]))
            return false;
    }
    return true;
}

static void set_text(char **link, const char *word)
{
    free(*link);
    *link = reading_copy(word);
}

/* "tls [authorities FILE] [name NAME] [verify off]" */
static bool read_tls(struct reading *reading)
{
    struct backend *backend = reading->backend;
    backend->has_tls = true;
    for (unsigned i = 1; i < reading->count; i += 2) {
        const char *name = reading->words[i];
        if (i + 1 == reading->count)
            return reading_fail(reading, reading->line, "'%s' has no value", name);
        if (strcmp(name, "authorities") == 0)
            set_text(&backend->authorities, reading->words[i + 1]);
        else if (strcmp(name, "name") == 0)
            set_text(&backend->tls_name, reading->words[i + 1]);
        else if (strcmp(name, "verify") != 0)
            return reading_fail(reading, reading->line, "'%s' is none of authorities, name, verify",
                                name);
        else if (!reading_switch(reading, reading->words[i + 1], &backend->verifies))
            return false;
    }
    return true;
}

static bool read_set_host(struct reading *reading)
{
    set_text(&reading->backend->set_host, reading->words[1]);
    return true;
}

/* ---- The table ---- */

const struct directive backend_directives[] = {
    {"balance", BACKEND, 1, 1, read_balance, "round-robin or least-connections"},
    {"sticky", BACKEND, 1, 2, read_sticky, "address, or cookie NAME"},
    {"server", BACKEND, 1, 5, read_server, "ADDRESS [weight N] [max N]"},
    {"connect-timeout", BACKEND, 1, 1, read_connect_timeout, "TIME"},
    {"response-timeout", BACKEND, 1, 1, read_response_timeout, "TIME"},
    {"retries", BACKEND, 1, 1, read_retries, "N"},
    {"send-proxy", BACKEND, 1, 1, read_send_proxy, "v1 or v2"},
    {"fail", BACKEND, 1, 2, read_fail, "COUNT [TIME]"},
    {"keep", BACKEND, 1, 2, read_keep, "CONNECTIONS [TIME]"},
    {"check", BACKEND, 1, MAX_WORDS, read_check,
     "tcp or http PATH, [every TIME] [timeout TIME] ..."},
    {"tls", BACKEND, 0, 6, read_tls, "[authorities FILE] [name NAME] [verify on or off]"},
    {"set-host", BACKEND, 1, 1, read_set_host, "HOST"},
    {NULL, 0, 0, 0, NULL, NULL},
};
