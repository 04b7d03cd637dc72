/*
 * What the proxy is to do: the configuration as it is read from a file (configuration.c), and what
 * goes with each server of it while the proxy runs (balance.c).
 *
 * A configuration does not change, but for the state of its servers. Whoever uses it has a reference
 * to it: the program, each connection, each health check. So a new one takes effect for connections
 * to come, and the old one goes with the last that uses it.
 */
#ifndef PROXY_CONFIGURATION_H
#define PROXY_CONFIGURATION_H

#include <bide/address.h>
#include <bide/names.h>
#include <bide/stop.h>

#include <stdio.h>

enum { MAX_SERVERS = 256, MAX_WORDS = 32, MAX_LINE = 4096 };

struct pool;

/* One server of a backend. */
struct upstream {
    struct upstream *next;
    struct backend *backend;
    unsigned index;        /* among those of the backend */
    char *name;            /* as it was written */
    char *host;            /* to be looked up; NULL: the address is known */
    char *tls_name;        /* that its certificate is to have */
    uint16_t port;
    unsigned weight;
    unsigned max;         /* connections at a time; 0: without a limit */
    struct pool *pool;     /* connections that are kept; NULL: none yet */

    /* what is known of it (balance.c) */
    bide_address addresses[BIDE_RESOLVE_MAX];
    unsigned address_count;
    unsigned next_address;
    long current;          /* of the weighted round */
    unsigned live;         /* connections to it */
    unsigned failures;     /* in a row */
    uint64_t down_until;   /* because of those */
    bool is_down;          /* because a health check says so */
    unsigned checks;       /* in a row, that say otherwise */
    uint64_t total, failed;
    uint64_t bytes_in, bytes_out; /* from clients, and to them */
};

enum balance { ROUND_ROBIN, MIN_CONNECTIONS };
enum check_kind { CHECK_NOTHING, CHECK_TCP, CHECK_HTTP };

struct check {
    enum check_kind kind;
    char *path;        /* of CHECK_HTTP */
    char *host;        /* NULL: the server's name */
    uint64_t every;    /* nanoseconds */
    uint64_t timeout;
    unsigned rise;     /* so many good ones in a row: it is up */
    unsigned fall;     /* so many bad ones: it is down */
};

/* Servers that do the same. */
struct backend {
    struct backend *next;
    char *name;
    unsigned line;
    enum balance balance;
    struct upstream *servers, **last;
    unsigned server_count;
    struct check check;
    uint64_t connect_timeout;
    uint64_t response_timeout; /* of HTTP: until its head has come */
    unsigned retries;
    unsigned send_proxy;       /* the version of the PROXY protocol; 0: none */
    unsigned fail_count;       /* so many failures in a row ... */
    uint64_t fail_for;         /* ... keep connections away for so long */
    unsigned keep;             /* idle connections to a server, of HTTP */
    uint64_t keep_idle;
    bool has_tls;
    bool verifies;
    char *authorities;
    char *tls_name;            /* NULL: the server's */
    char *set_host;            /* of HTTP; NULL: it stays as it came */
    struct bide_tls_config *tls;
};

/* Addresses of which the first `bits` are the same. */
struct network {
    struct network *next;
    bide_address address;
    unsigned bits;
};

/* Where requests go whose host and path begin so. */
struct route {
    struct route *next;
    char *host;   /* NULL: any */
    char *prefix; /* of the path */
    char *backend_name;
    struct backend *backend;
    unsigned line;
};

struct certificate {
    struct certificate *next;
    char *chain, *key;
    unsigned line;
};

enum mode { MODE_TCP, MODE_HTTP };

/* How servers are told who the client is. */
enum forwarded { FORWARDED_X, FORWARDED_STANDARD, FORWARDED_NOTHING };

struct web;

/* An address to listen on, and what becomes of its connections. */
struct listen {
    struct listen *next;
    char *name; /* as it was written */
    unsigned line;
    bide_address address;
    enum mode mode;
    struct route *routes, **last_route; /* of TCP: one */
    size_t max;
    bool accepts_proxy;
    struct network *trusted; /* NULL: everybody */
    uint64_t idle_timeout;
    uint64_t header_timeout;
    enum forwarded forwarded;
    uint64_t max_body; /* of a request; 0: without a limit */
    struct web *web;    /* of mode http: what takes its requests (http.c) */
    uint64_t rate, burst; /* connections a second, and at once; 0: no limit */
    struct certificate *certificates, **last_certificate;
    struct bide_tls_config *tls;
};

struct configuration {
    unsigned references;
    char *log; /* "off", "stdout", "stderr" or a path */
    size_t max;
    uint64_t shutdown_timeout;
    bool splices;
    struct listen *listens, **last_listen;
    struct backend *backends, **last_backend;
    bide_stop_source checks; /* of its health checks, and its look-ups */
};

/*
 * Reads a configuration; NULL: there is an error, and `complaint` says where and what. `name` is what
 * the file is called there. The caller has a reference. `before`, or NULL, is what it follows: a
 * listener that both have resumes the TLS sessions that began there.
 */
struct configuration *configuration_read(FILE *file, const char *name,
                                         const struct configuration *before, char *complaint,
                                         size_t size);

void configuration_keep(struct configuration *configuration);

/* Gives a reference up; the last one frees it. */
void configuration_release(struct configuration *configuration);

/* Its listener, or its backend, of that name; or NULL. */
struct listen *configuration_listen(const struct configuration *configuration, const char *name);
struct backend *configuration_backend(const struct configuration *configuration, const char *name);

/* Is it in one of the networks? */
bool network_contains(const struct network *networks, const bide_address *address);

#endif
