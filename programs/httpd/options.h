/* The command line of httpd. */
#ifndef HTTPD_OPTIONS_H
#define HTTPD_OPTIONS_H

#include "../common/confine.h"

#include <bide/http_log.h>
#include <bide/loop.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_CERTIFICATES = 16, MAX_THREADS = 64 };

/* Times are nanoseconds. */
struct options {
    const char *directory;
    const char *address;
    unsigned port;
    const char *certificates[MAX_CERTIFICATES];
    const char *keys[MAX_CERTIFICATES];     /* NULL: in the certificate's file */
    const char *statuses[MAX_CERTIFICATES]; /* by OCSP; NULL: none */
    unsigned certificate_count;             /* 0: no TLS */
    const char *key_log;                    /* NULL: none */
    const char *log;                        /* NULL: none; "-": standard output */
    const char *error_log;                  /* NULL: standard error */
    bide_http_log_format log_format;
    unsigned connections;
    bool has_connections; /* set by an option */
    unsigned threads;
    bide_loop_kind back_end;
    uint64_t header_timeout;
    uint64_t body_timeout;
    uint64_t idle_timeout;
    uint64_t request_timeout;
    uint64_t grace;
    const char *cache_control; /* NULL: none */
    bool compresses;
    bool lists;
    bool follows_links;
    bool has_hidden;
    const char *monitor; /* NULL: none; see monitoring.h */
    struct confine confine;
};

/* Parses the options. On an error, or for --help, prints a text and exits. */
void options_read(struct options *options, int argc, char **argv);

#endif
