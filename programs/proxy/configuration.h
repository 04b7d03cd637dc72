/*
 * The configuration as it is read from a file (configuration.c), with the state of each server
 * while the proxy runs (balance.c).
 *
 * A configuration is constant except for the state of its servers. Its users each hold a reference:
 * the program, each connection, each health check. A new configuration takes effect for new
 * connections, and the old one is freed with its last user.
 */
#ifndef PROXY_CONFIGURATION_H
#define PROXY_CONFIGURATION_H

#include <bide/address.h>
#include <bide/names.h>
#include <bide/stop.h>

#include <stdio.h>

enum { MAX_SERVERS = 256, MAX_WORDS = 32, MAX_LINE = 4096 };

struct pool;
struct rule;

enum error_kind {
    ERROR_REFUSED,
    ERROR_TIMEOUT,
    ERROR_RESET,
    ERROR_UNREACHABLE,
    ERROR_PROTOCOL,
    ERROR_OTHER,
    ERRORS
};

enum { RESPONSES = 5, LATENCIES = 15 };

/* The counts of a server, for the status page (status.c). */
struct counts {
    uint64_t responses[RESPONSES];     /* by the first digit of the status */
    uint64_t own_responses[RESPONSES]; /* of the proxy, in place of the server's */
    uint64_t errors[ERRORS];           /* of the server */
    uint64_t latencies[LATENCIES];     /* responses, by the time that they took */
    uint64_t latency_sum;              /* microseconds */
};

/* One server of a backend. */
struct upstream {
    struct upstream *next;
    struct backend *backend;
    unsigned index;  /* within the backend */
    char *name;      /* as written in the file */
    char *host;      /* to resolve; NULL: the address is known */
    char *authority; /* the Host of requests that have none */
    char *tls_name;  /* expected in its certificate */
    uint16_t port;
    unsigned weight;
    unsigned max_connections; /* 0: no limit */
    struct pool *pool;        /* of kept connections; NULL: not created yet */

    /* its state (balance.c) */
    bide_address addresses[BIDE_RESOLVE_MAX];
    unsigned address_count;
    unsigned next_address;
    long current;             /* its sum in the weighted round robin */
    unsigned live;            /* connections to it */
    unsigned failures;        /* in a row */
    uint64_t suspended_until; /* because of failures */
    bool is_down;             /* by health checks */
    unsigned checks;          /* in a row that contradict is_down */
    uint64_t total, failed;
    uint64_t bytes_in, bytes_out; /* from clients, to clients */
    struct counts counts;
};

enum balance { ROUND_ROBIN, MIN_CONNECTIONS };
enum sticky { STICKY_NOT, STICKY_ADDRESS, STICKY_COOKIE };
enum check_kind { CHECK_NOTHING, CHECK_TCP, CHECK_HTTP };

struct check {
    enum check_kind kind;
    char *path;     /* for CHECK_HTTP */
    char *host;     /* NULL: the server's name */
    uint64_t every; /* nanoseconds */
    uint64_t timeout;
    unsigned rise; /* passed checks in a row after which it is up */
    unsigned fall; /* failed checks in a row after which it is down */
};

/* A group of equivalent servers. */
struct backend {
    struct backend *next;
    char *name;
    unsigned line;
    enum balance balance;
    enum sticky sticky; /* see sticky.h */
    char *cookie;       /* its name, for STICKY_COOKIE */
    struct upstream *servers, **last;
    unsigned server_count;
    struct check check;
    uint64_t connect_timeout;
    uint64_t response_timeout; /* HTTP: until the response's head has arrived */
    unsigned retries;
    unsigned send_proxy; /* version of the PROXY protocol; 0: none */
    unsigned fail_count; /* failures in a row ... */
    uint64_t fail_for;   /* ... that suspend the server for this long */
    unsigned keep;       /* HTTP: idle connections to each server */
    uint64_t keep_idle;
    bool has_tls;
    bool verifies;
    char *authorities;
    char *tls_name; /* NULL: the server's */
    char *set_host; /* HTTP; NULL: the client's Host is kept */
    struct bide_tls_config *tls;
    struct rule *request_rules, *response_rules; /* see rules.h */
};

/* A network: the addresses that share the first `bits` bits. */
struct network {
    struct network *next;
    bide_address address;
    unsigned bits;
};

/* The backend for requests with this host and path prefix. */
struct route {
    struct route *next;
    char *host;   /* NULL: any */
    char *prefix; /* of the path, in normal form (path.h) */
    char *backend_name;
    struct backend *backend;
    unsigned redirect; /* status of a redirection; 0: to the backend */
    char *location;    /* of a redirection (redirect.h) */
    unsigned line;
};

struct certificate {
    struct certificate *next;
    char *chain, *key;
    char *status; /* by OCSP; NULL: none */
    unsigned line;
};

enum mode { MODE_TCP, MODE_HTTP, MODE_STATUS };

/* The fields that tell servers the client's address. */
enum forwarded { FORWARDED_X, FORWARDED_STANDARD, FORWARDED_NOTHING };

struct web;

/* An address to listen on, and how its connections are handled. */
struct listen {
    struct listen *next;
    char *name; /* as it was written */
    unsigned line;
    bide_address address;
    bide_listen_path *path; /* of a file, before a listener takes it over; or NULL */
    enum mode mode;
    struct route *routes, **last_route; /* TCP has one */
    size_t max_connections;
    bool has_max_connections; /* it is written, here or for all */
    bool accepts_proxy;
    struct network *trusted; /* NULL: all peers */
    uint64_t idle_timeout;
    uint64_t header_timeout;
    enum forwarded forwarded;
    bool has_no_http2;
    uint64_t max_body;                  /* of a request; 0: no limit */
    struct web *web;                    /* mode http: the HTTP server (http.c) */
    uint64_t rate, burst;               /* connections per second, and in a burst; 0: no limit */
    uint64_t client_rate, client_burst; /* the same of each client; in mode http, requests */
    struct certificate *certificates, **last_certificate;
    char *key_log; /* NULL: none */
    struct bide_tls_config *tls;
    struct rule *request_rules, *response_rules; /* see rules.h */
};

/* Where the socket is a file; otherwise NULL: it has a port, or an abstract name. */
const char *listen_file(const struct listen *listen);

struct configuration {
    unsigned references;
    struct configuration *older,
        **place; /* in the list of configurations in use; `place` NULL: in none */
    char *log;   /* "off", "stdout", "stderr" or a path */
    size_t max_connections;
    bool has_max_connections; /* it is written */
    uint64_t shutdown_timeout;
    bool splices;
    struct listen *listens, **last_listen;
    struct listen *status; /* the address of `status`, which is the last of `listens`; or NULL */
    struct backend *backends, **last_backend;
    bide_stop_source checks; /* stops its health checks and name resolution */
};

/*
 * Reads a configuration. Returns NULL on an error and describes it, with its place, in
 * `error_text`. `name` is the name of the file in such messages. The caller gets a reference.
 * `previous`, or NULL, is the configuration that this one replaces: a listener that is in both
 * resumes the TLS sessions of the old one.
 */
struct configuration *configuration_read(FILE *file, const char *name,
                                         const struct configuration *previous, char *error_text,
                                         size_t size);

void configuration_retain(struct configuration *configuration);

/* Adds a configuration to a list, which it leaves when it is freed. */
void configuration_enlist(struct configuration *configuration, struct configuration **list);

/* Releases a reference. The last release frees the configuration. */
void configuration_release(struct configuration *configuration);

/* The listener or backend of that name, or NULL. */
struct listen *configuration_listen(const struct configuration *configuration, const char *name);
struct backend *configuration_backend(const struct configuration *configuration, const char *name);

/* The name that is expected in the server's certificate. */
const char *upstream_tls_name(const struct upstream *server);

/* True if the address is in one of the networks. */
bool network_contains(const struct network *networks, const bide_address *address);

#endif
