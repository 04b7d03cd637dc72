/* The command line of kv. */
#ifndef KV_OPTIONS_H
#define KV_OPTIONS_H

#include "../common/confine.h"
#include "eviction.h"
#include "journal.h"
#include "notifications.h"

/* Whether clients need a certificate; the values of bide_tls_clients. */
enum tls_clients { TLS_CLIENTS_ANONYMOUS, TLS_CLIENTS_OPTIONAL, TLS_CLIENTS_REQUIRED };

/* How the option and CONFIG call them. */
extern const char *const tls_clients_names[3];

struct options {
    const char *address;
    bool has_port, has_tls_port; /* it listens there */
    unsigned port, tls_port;
    const char *tls_cert, *tls_key; /* files; a key of NULL is in the certificate's */
    const char *tls_ca;             /* a file; or NULL */
    enum tls_clients tls_clients;
    const char *unix_socket; /* a path; or NULL */
    mode_t unix_socket_mode;
    const char *check;       /* a file to be checked, instead of serving; or NULL */
    const char *append_only; /* a file; or NULL */
    enum fsync fsync;
    const char *snapshot; /* a file; or NULL */
    uint64_t save_every;  /* seconds; 0: only on request */
    char *password;       /* NULL: none is needed */
    bool is_protected;    /* without a password, only clients of this machine are served */
    size_t clients;       /* limit of connections */
    size_t bulk;          /* limit of bytes in an argument */
    size_t request;       /* limit of bytes in a request */
    size_t reply;         /* limit of bytes in a reply of several values */
    size_t backlog;       /* limit of bytes buffered for a subscriber */
    size_t patterns;      /* limit of those that a client subscribes to */
    size_t max_memory;    /* of keys and values; 0: no limit */
    enum eviction eviction;
    size_t lfu_log_factor, lfu_decay_time; /* of its frequencies; uses.h */
    unsigned notify;                       /* bits of enum notify */
    const char *monitor;                   /* NULL: none; see monitoring.h */
    struct confine confine;
};

/* Parses the options. On an error, or for --help, prints a text and exits. */
void options_read(struct options *options, int argc, char **argv);

#endif
