/*
 * The directives of the configuration file, but for those of a backend (backend_directives.c): the first word of a line
 * selects the function that parses it.
 */
#include "directives.h"
#include "path.h"
#include "redirect.h"
#include "rules.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sections ---- */

static struct listen *create_listen(struct reading *reading)
{
    struct listen *listen = reading_allocate(sizeof *listen);
    listen->name = reading_copy(reading->words[1]);
    listen->line = reading->line;
    listen->max_connections = reading->configuration->max_connections;
    listen->has_max_connections = reading->configuration->has_max_connections;
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
    configuration->status->has_max_connections = false;
    return parse_listen_address(reading, configuration->status);
}

static bool read_max_connections(struct reading *reading)
{
    uint64_t max;
    if (!reading_number(reading, reading->words[1], 1, 1 << 20, &max))
        return false;
    *(reading->listen != NULL ? &reading->listen->max_connections
                              : &reading->configuration->max_connections) = max;
    *(reading->listen != NULL ? &reading->listen->has_max_connections
                              : &reading->configuration->has_max_connections) = true;
    return true;
}

static bool read_shutdown_timeout(struct reading *reading)
{
    return reading_time(reading, reading->words[1], &reading->configuration->shutdown_timeout);
}

static bool read_splice(struct reading *reading)
{
    return reading_switch(reading, reading->words[1], &reading->configuration->splices);
}

/* ---- Lines of a listener ---- */

static bool read_mode(struct reading *reading)
{
    const char *word = reading->words[1];
    reading->listen->mode = strcmp(word, "http") == 0 ? MODE_HTTP : MODE_TCP;
    return reading->listen->mode == MODE_HTTP || strcmp(word, "tcp") == 0 ||
           reading_fail(reading, reading->line, "'%s' is neither tcp nor http", word);
}

/* Returns NULL after an error. */
static struct route *add_route(struct reading *reading, const char *host, const char *prefix)
{
    size_t size;
    char *normal = reading_copy(prefix);
    if (path_normalize((bide_slice){prefix, strlen(prefix)}, normal, &size) != 0) {
        free(normal);
        (void)reading_fail(reading, reading->line, "servers may read '%s' in different ways",
                           prefix);
        return NULL;
    }
    normal[size] = '\0';
    struct route *route = reading_allocate(sizeof *route);
    route->host = host != NULL ? reading_copy(host) : NULL;
    if (host != NULL && (size = strlen(host)) > 1 && host[size - 1] == '.')
        route->host[size - 1] = '\0'; /* the name is the same without it */
    route->prefix = normal;
    route->line = reading->line;
    *reading->listen->last_route = route;
    reading->listen->last_route = &route->next;
    return route;
}

/* "example.org/path", "example.org", "/path" */
static struct route *add_route_of_place(struct reading *reading)
{
    char *slash = strchr(reading->words[1], '/');
    char *prefix = reading_copy(slash != NULL ? slash : "");
    if (slash != NULL)
        *slash = '\0';
    struct route *route =
        add_route(reading, reading->words[1][0] != '\0' ? reading->words[1] : NULL, prefix);
    free(prefix);
    return route;
}

static bool read_to(struct reading *reading)
{
    struct route *route = add_route(reading, NULL, "");
    route->backend_name = reading_copy(reading->words[1]); /* (there is no prefix to refuse) */
    return true;
}

static bool read_route(struct reading *reading)
{
    struct route *route = add_route_of_place(reading);
    if (route != NULL)
        route->backend_name = reading_copy(reading->words[2]);
    return route != NULL;
}

/* "redirect example.org/path 308 https://other.test$target" */
static bool read_redirect(struct reading *reading)
{
    static const unsigned allowed[] = {301, 302, 303, 307, 308};
    struct route *route = add_route_of_place(reading);
    if (route == NULL)
        return false;
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        char text[8];
        snprintf(text, sizeof text, "%u", allowed[i]);
        if (strcmp(reading->words[2], text) == 0)
            route->redirect = allowed[i];
    }
    if (route->redirect == 0)
        return reading_fail(reading, reading->line, "'%s' is none of 301, 302, 303, 307, 308",
                            reading->words[2]);
    route->location = reading_copy(reading->words[3]);
    return redirect_is_location(route->location) ||
           reading_fail(reading, reading->line, "'%s' is not a location", route->location);
}

static bool read_request_header(struct reading *reading)
{
    return rules_read(reading, reading->listen != NULL ? &reading->listen->request_rules
                                                       : &reading->backend->request_rules);
}

static bool read_response_header(struct reading *reading)
{
    return rules_read(reading, reading->listen != NULL ? &reading->listen->response_rules
                                                       : &reading->backend->response_rules);
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

static bool read_http2(struct reading *reading)
{
    bool is_on;
    if (!reading_switch(reading, reading->words[1], &is_on))
        return false;
    reading->listen->has_no_http2 = !is_on;
    return PROXY_HAS_HTTP2 || !is_on ||
           reading_fail(reading, reading->line, "this proxy was built without HTTP/2");
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
    {"redirect", LISTEN, 3, 3, read_redirect, "[HOST][/PREFIX] STATUS LOCATION"},
    {"request-header", LISTEN | BACKEND, 2, 3, read_request_header,
     "set, add or remove NAME [VALUE]"},
    {"response-header", LISTEN | BACKEND, 2, 3, read_response_header,
     "set, add or remove NAME [VALUE]"},
    {"accept-proxy", LISTEN, 0, MAX_WORDS, read_accept_proxy, "[NETWORK...]"},
    {"idle-timeout", LISTEN, 1, 1, read_idle_timeout, "TIME"},
    {"header-timeout", LISTEN, 1, 1, read_header_timeout, "TIME"},
    {"rate", LISTEN, 1, 2, read_rate, "CONNECTIONS-A-SECOND [AT-ONCE]"},
    {"client-rate", LISTEN, 1, 2, read_client_rate, "REQUESTS-A-SECOND [AT-ONCE]"},
    {"forwarded", LISTEN, 1, 1, read_forwarded, "x-forwarded, standard or off"},
    {"http2", LISTEN, 1, 1, read_http2, "on or off"},
    {"max-body", LISTEN, 1, 1, read_max_body, "BYTES"},
    {"certificate", LISTEN, 1, 2, read_certificate, "FILE [KEY-FILE]"},
    {"ocsp", LISTEN, 1, 1, read_ocsp, "FILE"},
    {"key-log", LISTEN, 1, 1, read_key_log, "FILE"},
    {NULL, 0, 0, 0, NULL, NULL},
};

static const struct directive *find_directive(const struct directive *table, const char *name)
{
    for (; table->name != NULL; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

bool directives_read(struct reading *reading)
{
    const char *name = reading->words[0];
    unsigned section = reading->listen != NULL    ? LISTEN
                       : reading->backend != NULL ? BACKEND
                                                  : GLOBAL;
    const struct directive *directive = find_directive(directives, name);
    if (directive == NULL)
        directive = find_directive(backend_directives, name);
    if (directive == NULL)
        return reading_fail(reading, reading->line, "unknown directive '%s'", name);
    if ((directive->sections & section) == 0)
        return reading_fail(reading, reading->line, "'%s' is not allowed %s", name,
                            section == LISTEN    ? "in a listen section"
                            : section == BACKEND ? "in a backend section"
                                                 : "before the first section");
    if (reading->count - 1 < directive->min_words || reading->count - 1 > directive->max_words)
        return reading_fail(reading, reading->line, "usage: %s %s", name, directive->form);
    return directive->read(reading);
}
