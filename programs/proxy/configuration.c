/*
 * Reads the configuration file and frees configurations. The file has lines of words, in sections:
 *
 *     global lines, `listen ADDRESS` and its lines, `backend NAME` and its lines
 *
 * Each line is a directive (directives.c). References by name are resolved after all lines have
 * been read.
 */
#define _GNU_SOURCE
#include "configuration.h"
#include "../common/secure.h"
#include "certificates.h"
#include "directives.h"
#include "health.h"
#include "http.h"
#include "pool.h"
#include "rules.h"

#include <bide/errors.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lines ---- */

static bool read_lines(struct reading *reading, FILE *file)
{
    char text[MAX_LINE];
    while (fgets(text, sizeof text, file) != NULL) {
        reading->line++;
        if (strchr(text, '\n') == NULL && !feof(file))
            return reading_fail(reading, reading->line, "the line is longer than %d bytes",
                                MAX_LINE - 2);
        if (!reading_split(reading, text) || (reading->count != 0 && !directives_read(reading)))
            return false;
    }
    return !ferror(file) || reading_fail(reading, reading->line, "read error");
}

/* ---- Resolving names ---- */

static bool resolve_routes(struct reading *reading, struct listen *listen)
{
    if (listen->routes == NULL)
        return reading_fail(reading, listen->line, "'listen %s' has no 'to' or 'route'",
                            listen->name);
    for (struct route *route = listen->routes; route != NULL; route = route->next) {
        if (route->redirect != 0 && listen->mode == MODE_TCP)
            return reading_fail(reading, route->line, "mode tcp has no 'redirect'");
        if (route->redirect != 0)
            continue;
        route->backend = configuration_backend(reading->configuration, route->backend_name);
        if (route->backend == NULL)
            return reading_fail(reading, route->line, "unknown backend '%s'", route->backend_name);
        if (listen->mode == MODE_TCP &&
            (route->host != NULL || route->prefix[0] != '\0' || route->next != NULL))
            return reading_fail(reading, route->line, "mode tcp takes one 'to' and no 'route'");
        if (listen->mode == MODE_TCP && route->backend->sticky == STICKY_COOKIE)
            return reading_fail(reading, route->line, "mode tcp has no 'sticky cookie'");
        if (listen->mode == MODE_HTTP &&
            !rules_verify_forwarded(reading, route->backend->request_rules, listen->forwarded))
            return false;
    }
    return listen->mode != MODE_HTTP ||
           rules_verify_forwarded(reading, listen->request_rules, listen->forwarded);
}

static bool resolve_listen(struct reading *reading, struct listen *listen)
{
    if (listen->mode != MODE_STATUS && !resolve_routes(reading, listen))
        return false;
    if (listen->idle_timeout == 0)
        listen->idle_timeout = (listen->mode == MODE_TCP ? 300 : 60) * SECOND;
    int status = http_init(listen);
    if (status < 0)
        return reading_fail(
            reading, listen->line, "%s: %s", listen->mode == MODE_STATUS ? "status" : "mode http",
            status == -ENOTSUP ? "this proxy was built without llhttp" : strerror(-status));
    return certificates_load_for_listen(reading, listen);
}

/* The certificate of a Unix socket has a name that only the administrator knows. */
static bool has_tls_names(struct reading *reading, const struct backend *backend)
{
    if (!backend->has_tls || !backend->verifies || backend->tls_name != NULL)
        return true;
    for (const struct upstream *server = backend->servers; server != NULL; server = server->next) {
        if (server->host == NULL && server->addresses[0].any.generic.sa_family == AF_UNIX)
            return reading_fail(reading, backend->line, "tls needs 'name' for the server '%s'",
                                server->name);
    }
    return true;
}

static bool resolve_names(struct reading *reading)
{
    struct configuration *configuration = reading->configuration;
    if (configuration->listens == NULL)
        return reading_fail(reading, reading->line, "no 'listen' section");
    if (configuration->status != NULL) /* it is opened last */
        *configuration->last_listen = configuration->status;
    for (struct backend *backend = configuration->backends; backend != NULL;
         backend = backend->next) {
        if (backend->servers == NULL)
            return reading_fail(reading, backend->line, "backend '%s' has no server",
                                backend->name);
        int status = health_verify(backend);
        if (status < 0)
            return reading_fail(reading, backend->line, "check http: %s",
                                status == -ENOTSUP ? "this proxy was built without llhttp"
                                                   : "the path or the host is not valid");
        if (!has_tls_names(reading, backend) || !certificates_load_for_backend(reading, backend))
            return false;
    }
    for (struct listen *listen = configuration->listens; listen != NULL; listen = listen->next) {
        if (!resolve_listen(reading, listen))
            return false;
    }
    return true;
}

struct configuration *configuration_read(FILE *file, const char *name,
                                         const struct configuration *previous, char *error_text,
                                         size_t size)
{
    struct configuration *configuration = reading_allocate(sizeof *configuration);
    struct reading reading = {.configuration = configuration,
                              .previous = previous,
                              .file = name,
                              .error_text = error_text,
                              .size = size};
    configuration->references = 1;
    configuration->log = reading_copy("stdout");
    configuration->max_connections = 10000;
    configuration->shutdown_timeout = 30 * SECOND;
    configuration->splices = true;
    configuration->last_listen = &configuration->listens;
    configuration->last_backend = &configuration->backends;
    bide_stop_source_init(&configuration->checks);
    if (read_lines(&reading, file) && resolve_names(&reading))
        return configuration;
    configuration_release(configuration);
    return NULL;
}

struct listen *configuration_listen(const struct configuration *configuration, const char *name)
{
    struct listen *listen = configuration->listens;
    while (listen != NULL && strcmp(listen->name, name) != 0)
        listen = listen->next;
    return listen;
}

struct backend *configuration_backend(const struct configuration *configuration, const char *name)
{
    struct backend *backend = configuration->backends;
    while (backend != NULL && strcmp(backend->name, name) != 0)
        backend = backend->next;
    return backend;
}

const char *upstream_tls_name(const struct upstream *server)
{
    const struct backend *backend = server->backend;
    return backend->tls_name != NULL ? backend->tls_name : server->tls_name;
}

/* ---- Freeing ---- */

static void free_backend(struct backend *backend)
{
    struct upstream *next;
    for (struct upstream *server = backend->servers; server != NULL; server = next) {
        next = server->next;
        bide_assert(server->live == 0); /* each connection holds a reference */
        free(server->name);
        pool_close(server);
        pool_free(server);
        free(server->host);
        free(server->authority);
        free(server->tls_name);
        free(server);
    }
    secure_release(backend->tls);
    free(backend->name);
    free(backend->check.path);
    free(backend->check.host);
    free(backend->authorities);
    free(backend->tls_name);
    free(backend->set_host);
    free(backend->cookie);
    rules_free(backend->request_rules);
    rules_free(backend->response_rules);
    free(backend);
}

static void free_routes(struct route *route)
{
    struct route *next;
    for (; route != NULL; route = next) {
        next = route->next;
        free(route->host);
        free(route->prefix);
        free(route->backend_name);
        free(route->location);
        free(route);
    }
}

const char *listen_file(const struct listen *listen)
{
    const char *path = listen->address.any.local.sun_path;
    bool is_local = listen->address.any.generic.sa_family == AF_UNIX;
    return is_local && path[0] != '\0' ? path : NULL;
}

static void free_listen(struct listen *listen)
{
    struct network *next_network;
    struct certificate *next_certificate;
    if (listen->path != NULL)
        bide_listen_path_destroy(listen->path);
    free(listen->path);
    for (struct network *network = listen->trusted; network != NULL; network = next_network) {
        next_network = network->next;
        free(network);
    }
    for (struct certificate *certificate = listen->certificates; certificate != NULL;
         certificate = next_certificate) {
        next_certificate = certificate->next;
        free(certificate->chain);
        free(certificate->key);
        free(certificate->status);
        free(certificate);
    }
    free_routes(listen->routes);
    secure_release(listen->tls);
    free(listen->key_log);
    rules_free(listen->request_rules);
    rules_free(listen->response_rules);
    http_free(listen);
    free(listen->name);
    free(listen);
}

void configuration_retain(struct configuration *configuration)
{
    configuration->references++;
}

void configuration_enlist(struct configuration *configuration, struct configuration **list)
{
    configuration->older = *list;
    configuration->place = list;
    if (*list != NULL)
        (*list)->place = &configuration->older;
    *list = configuration;
}

static void leave_list(struct configuration *configuration)
{
    if (configuration->place == NULL)
        return;
    *configuration->place = configuration->older;
    if (configuration->older != NULL)
        configuration->older->place = configuration->place;
}

void configuration_release(struct configuration *configuration)
{
    bide_assert(configuration->references > 0);
    if (--configuration->references != 0)
        return;
    leave_list(configuration);
    struct backend *next_backend;
    struct listen *next_listen;
    for (struct backend *backend = configuration->backends; backend != NULL;
         backend = next_backend) {
        next_backend = backend->next;
        free_backend(backend);
    }
    if (configuration->status != NULL)
        *configuration->last_listen =
            configuration->status; /* (unless an error came before that) */
    for (struct listen *listen = configuration->listens; listen != NULL; listen = next_listen) {
        next_listen = listen->next;
        free_listen(listen);
    }
    free(configuration->log);
    free(configuration);
}

/* ---- Networks ---- */

/*
 * Sets *bytes to the address in network order and returns its length. An IPv4 address that is
 * mapped to IPv6 counts as IPv4.
 */
static unsigned address_bytes(const bide_address *address, const uint8_t **bytes)
{
    static const uint8_t wrapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    *bytes = NULL;
    if (address->any.generic.sa_family == AF_INET) {
        *bytes = (const uint8_t *)&address->any.v4.sin_addr;
        return 4;
    }
    if (address->any.generic.sa_family != AF_INET6)
        return 0;
    *bytes = address->any.v6.sin6_addr.s6_addr;
    if (memcmp(*bytes, wrapped, sizeof wrapped) != 0)
        return 16;
    *bytes += 12;
    return 4;
}

bool network_contains(const struct network *networks, const bide_address *address)
{
    const uint8_t *bytes, *wanted;
    unsigned size = address_bytes(address, &bytes);
    for (const struct network *network = networks; network != NULL; network = network->next) {
        if (size == 0 || address_bytes(&network->address, &wanted) != size)
            continue;
        unsigned whole = network->bits / 8, rest = network->bits % 8;
        if (memcmp(bytes, wanted, whole) == 0 &&
            (rest == 0 || ((bytes[whole] ^ wanted[whole]) >> (8 - rest)) == 0))
            return true;
    }
    return false;
}
