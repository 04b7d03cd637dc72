/*
 * The directives of the configuration file: the first word of a line selects the function that
 * parses it.
 */
#include "directives.h"

#include <stdlib.h>
#include <string.h>

enum section { GLOBAL = 1, LISTEN = 2, BACKEND = 4 };

struct directive {
    const char *name;
    unsigned sections;
    unsigned min_words, max_words; /* words after the name */
    bool (*read)(struct reading *reading);
    const char *form;
};

/* ---- Sections ---- */

static struct listen *create_listen(struct reading *reading)
{
    struct listen *listen = reading_allocate(sizeof *listen);
    listen->name = reading_copy(reading->words[1]);
    listen->line = reading->line;
    listen->max_connections = reading->configuration->max_connections;
    listen->header_timeout = 10 * SECOND;
    listen->last_route = &listen->routes;
    listen->last_certificate = &listen->certificates;
    return listen;
}

static bool is_unused(struct reading *reading, const struct listen *other)
{
    return other == NULL || strcmp(other->name, reading->words[1]) != 0 ||
           reading_fail(reading, reading->line, "'%s' is already in use, on line %u", other->name,
                        other->line);
}

static bool parse_listen_address(struct reading *reading, struct listen *listen)
{
    if (bide_address_parse(&listen->address, listen->name) != 0)
        return reading_fail(reading, reading->line, "'%s' is not an address such as 0.0.0.0:80",
                            listen->name);
    return true;
}

static bool read_listen(struct reading *reading)
{
    struct configuration *configuration = reading->configuration;
    for (struct listen *other = configuration->listens; other != NULL; other = other->next) {
        if (!is_unused(reading, other))
            return false;
    }
    if (!is_unused(reading, configuration->status))
        return false;
    struct listen *listen = create_listen(reading);
    *configuration->last_listen = listen;
    configuration->last_listen = &listen->next;
    reading->listen = listen;
    reading->backend = NULL;
    return parse_listen_address(reading, listen);
}

static bool read_backend(struct reading *reading)
{
    struct configuration *configuration = reading->configuration;
    struct backend *other = configuration_backend(configuration, reading->words[1]);
    if (other != NULL)
        return reading_fail(reading, reading->line, "backend '%s' already exists, on line %u",
                            other->name, other->line);
    struct backend *backend = reading_allocate(sizeof *backend);
    backend->name = reading_copy(reading->words[1]);
    backend->line = reading->line;
    backend->last = &backend->servers;
    backend->connect_timeout = 5 * SECOND;
    backend->response_timeout = 60 * SECOND;
    backend->retries = 2;
    backend->fail_count = 3;
    backend->fail_for = 10 * SECOND;
    backend->keep = 64;
    backend->keep_idle = 30 * SECOND;
    backend->verifies = true;
    *configuration->last_backend = backend;
    configuration->last_backend = &backend->next;
    reading->backend = backend;
    reading->listen = NULL;
    return true;
}

/* ---- Global lines ---- */

static bool read_log(struct reading *reading)
{
    free(reading->configuration->log);
    reading->configuration->log = reading_copy(reading->words[1]);
    return true;
}

static bool read_status(struct reading *reading)
{
    enum { MAX_STATUS_CONNECTIONS = 64 };
    struct configuration *configuration = reading->configuration;
    if (configuration->status != NULL)
        return reading_fail(reading, reading->line, "'status' is already set, on line %u",
                            configuration->status->line);
    configuration->status = create_listen(reading);
    configuration->status->mode = MODE_STATUS;
    configuration->status->max_connections = MAX_STATUS_CONNECTIONS;
    return parse_listen_address(reading, configuration->status);
}

static bool read_max_connections(struct reading *reading)
{
    uint64_t max;
    if (!reading_number(reading, reading->words[1], 1, 1 << 20, &max))
        return false;
    *(reading->listen != NULL ? &reading->listen->max_connections
                              : &reading->configuration->max_connections) = max;
    return true;
}

static bool read_shutdown_timeout(struct reading *reading)
{
    return reading_time(reading, reading->words[1], &reading->configuration->shutdown_timeout);
}

static bool read_switch(struct reading *reading, const char *word, bool *is_on)
{
    *is_on = strcmp(word, "on") == 0;
    return *is_on || strcmp(word, "off") == 0 ||
           reading_fail(reading, reading->line, "'%s' is neither on nor off", word);
}

static bool read_splice(struct reading *reading)
{
    return read_switch(reading, reading->words[1], &reading->configuration->splices);
}

/* ---- Lines of a listener ---- */

static bool read_mode(struct reading *reading)
{
    const char *word = reading->words[1];
    reading->listen->mode = strcmp(word, "http") == 0 ? MODE_HTTP : MODE_TCP;
    return reading->listen->mode == MODE_HTTP || strcmp(word, "tcp") == 0 ||
           reading_fail(reading, reading->line, "'%s' is neither tcp nor http", word);
}

static void add_route(struct reading *reading, const char *host, const char *prefix,
                      const char *backend)
{
    struct route *route = reading_allocate(sizeof *route);
    route->host = host != NULL ? reading_copy(host) : NULL;
    route->prefix = reading_copy(prefix);
    route->backend_name = reading_copy(backend);
    route->line = reading->line;
    *reading->listen->last_route = route;
    reading->listen->last_route = &route->next;
}

static bool read_to(struct reading *reading)
{
    add_route(reading, NULL, "", reading->words[1]);
    return true;
}

/* "example.org/path", "example.org", "/path" */
static bool read_route(struct reading *reading)
{
    char *slash = strchr(reading->words[1], '/');
    char *prefix = reading_copy(slash != NULL ? slash : "");
    if (slash != NULL)
        *slash = '\0';
    add_route(reading, reading->words[1][0] != '\0' ? reading->words[1] : NULL, prefix,
              reading->words[2]);
    free(prefix);
    return true;
}

static bool read_accept_proxy(struct reading *reading)
{
    reading->listen->accepts_proxy = true;
    for (unsigned i = 1; i < reading->count; i++) {
        struct network *network = reading_allocate(sizeof *network);
        network->next = reading->listen->trusted;
        reading->listen->trusted = network;
        if (!reading_network(reading, reading->words[i], network))
            return false;
    }
    return true;
}

static bool read_idle_timeout(struct reading *reading)
{
    return reading_time(reading, reading->words[1], &reading->listen->idle_timeout);
}

static bool read_header_timeout(struct reading *reading)
{
    return reading_time(reading, reading->words[1], &reading->listen->header_timeout);
}

static bool read_rate(struct reading *reading)
{
    struct listen *listen = reading->listen;
    if (!reading_number(reading, reading->words[1], 1, 1000000000, &listen->rate))
        return false;
    listen->burst = listen->rate;
    return reading->count < 3 ||
           reading_number(reading, reading->words[2], 1, 1000000000, &listen->burst);
}

static bool read_client_rate(struct reading *reading)
{
    enum { MAX_CLIENT_RATE = 1000000 }; /* (times are nanoseconds) */
    struct listen *listen = reading->listen;
    if (!reading_number(reading, reading->words[1], 1, MAX_CLIENT_RATE, &listen->client_rate))
        return false;
    listen->client_burst = listen->client_rate;
    return reading->count < 3 ||
           reading_number(reading, reading->words[2], 1, MAX_CLIENT_RATE, &listen->client_burst);
}

static bool read_certificate(struct reading *reading)
{
    struct certificate *certificate = reading_allocate(sizeof *certificate);
    certificate->chain = reading_copy(reading->words[1]);
    certificate->key = reading->count > 2 ? reading_copy(reading->words[2]) : NULL;
    certificate->line = reading->line;
    *reading->listen->last_certificate = certificate;
    reading->listen->last_certificate = &certificate->next;
    return true;
}

static bool read_ocsp(struct reading *reading)
{
    struct certificate *last = reading->listen->certificates;
    while (last != NULL && last->next != NULL)
        last = last->next;
    if (last == NULL || last->status != NULL)
        return reading_fail(reading, reading->line, "ocsp must follow its certificate");
    last->status = reading_copy(reading->words[1]);
    return true;
}

static bool read_key_log(struct reading *reading)
{
    if (reading->listen->certificates == NULL)
        return reading_fail(reading, reading->line, "key-log must follow a certificate");
    free(reading->listen->key_log);
    reading->listen->key_log = reading_copy(reading->words[1]);
    return true;
}

static bool read_forwarded(struct reading *reading)
{
    const char *word = reading->words[1];
    enum forwarded *forwarded = &reading->listen->forwarded;
    *forwarded = strcmp(word, "x-forwarded") == 0 ? FORWARDED_X
                 : strcmp(word, "standard") == 0  ? FORWARDED_STANDARD
                                                  : FORWARDED_NOTHING;
    return *forwarded != FORWARDED_NOTHING || strcmp(word, "off") == 0 ||
           reading_fail(reading, reading->line, "'%s' is none of x-forwarded, standard, off", word);
}

static bool read_max_body(struct reading *reading)
{
    return reading_number(reading, reading->words[1], 1, UINT64_C(1) << 50,
                          &reading->listen->max_body);
}

/* ---- Lines of a backend ---- */

static bool read_balance(struct reading *reading)
{
    const char *word = reading->words[1];
    bool min_is = strcmp(word, "least-connections") == 0;
    reading->backend->balance = min_is ? MIN_CONNECTIONS : ROUND_ROBIN;
    return min_is || strcmp(word, "round-robin") == 0 ||
           reading_fail(reading, reading->line, "'%s' is neither round-robin nor least-connections",
                        word);
}

/* The part before the port, without brackets. */
static char *copy_host(const char *name)
{
    char *host = reading_copy(name + (*name == '['));
    char *end = strrchr(host, *name == '[' ? ']' : ':');
    if (end != NULL)
        *end = '\0';
    return host;
}

/* Parses an address, or a name with a port. */
static bool read_target(struct reading *reading, struct upstream *server)
{
    const char *colon = strrchr(server->name, ':');
    uint64_t port;
    server->tls_name = copy_host(server->name);
    if (strcspn(server->name, "0123456789") != 0 && colon == server->name)
        return reading_fail(reading, reading->line, "'%s' has no host", server->name);
    if (colon != NULL && bide_address_parse(&server->addresses[0], server->name) == 0) {
        server->address_count = 1;
        return true;
    }
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
        else if (!read_switch(reading, reading->words[i + 1], &backend->verifies))
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

static const struct directive directives[] = {
    {"listen", GLOBAL | LISTEN | BACKEND, 1, 1, read_listen, "ADDRESS"},
    {"backend", GLOBAL | LISTEN | BACKEND, 1, 1, read_backend, "NAME"},
    {"log", GLOBAL, 1, 1, read_log, "off, stdout, stderr or PATH"},
    {"max-connections", GLOBAL | LISTEN, 1, 1, read_max_connections, "N"},
    {"shutdown-timeout", GLOBAL, 1, 1, read_shutdown_timeout, "TIME"},
    {"splice", GLOBAL, 1, 1, read_splice, "on or off"},
    {"status", GLOBAL, 1, 1, read_status, "ADDRESS"},
    {"mode", LISTEN, 1, 1, read_mode, "tcp or http"},
    {"to", LISTEN, 1, 1, read_to, "BACKEND"},
    {"route", LISTEN, 2, 2, read_route, "[HOST][/PREFIX] BACKEND"},
    {"accept-proxy", LISTEN, 0, MAX_WORDS, read_accept_proxy, "[NETWORK...]"},
    {"idle-timeout", LISTEN, 1, 1, read_idle_timeout, "TIME"},
    {"header-timeout", LISTEN, 1, 1, read_header_timeout, "TIME"},
    {"rate", LISTEN, 1, 2, read_rate, "CONNECTIONS-A-SECOND [AT-ONCE]"},
    {"client-rate", LISTEN, 1, 2, read_client_rate, "REQUESTS-A-SECOND [AT-ONCE]"},
    {"forwarded", LISTEN, 1, 1, read_forwarded, "x-forwarded, standard or off"},
    {"max-body", LISTEN, 1, 1, read_max_body, "BYTES"},
    {"certificate", LISTEN, 1, 2, read_certificate, "FILE [KEY-FILE]"},
    {"ocsp", LISTEN, 1, 1, read_ocsp, "FILE"},
    {"key-log", LISTEN, 1, 1, read_key_log, "FILE"},
    {"balance", BACKEND, 1, 1, read_balance, "round-robin or least-connections"},
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
};

bool directives_read(struct reading *reading)
{
    const char *name = reading->words[0];
    unsigned section = reading->listen != NULL    ? LISTEN
                       : reading->backend != NULL ? BACKEND
                                                  : GLOBAL;
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++) {
        const struct directive *directive = &directives[i];
        if (strcmp(directive->name, name) != 0)
            continue;
        if ((directive->sections & section) == 0)
            return reading_fail(reading, reading->line, "'%s' is not allowed %s", name,
                                section == LISTEN    ? "in a listen section"
                                : section == BACKEND ? "in a backend section"
                                                     : "before the first section");
        if (reading->count - 1 < directive->min_words || reading->count - 1 > directive->max_words)
            return reading_fail(reading, reading->line, "usage: %s %s", name, directive->form);
        return directive->read(reading);
    }
    return reading_fail(reading, reading->line, "unknown directive '%s'", name);
}
