/*
 * What the command line says.
 */
#ifndef HTTPD_OPTIONS_H
#define HTTPD_OPTIONS_H

#include <bide/http_log.h>
#include <bide/loop.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_CERTIFICATES = 16, MAX_THREADS = 64 };

/* Times are nanoseconds. */
struct options {
    const char *folder;
    const char *address;
    unsigned port;
    const char *certificates[MAX_CERTIFICATES];
    const char *keys[MAX_CERTIFICATES]; /* NULL: it is in the certificate's file */
    unsigned certificate_count;          /* 0: no TLS */
    const char *log;                     /* NULL: none; "-": standard output */
    bide_http_log_format log_format;
    unsigned connections;
    bool has_connections; /* they were asked for */
    unsigned threads;
    bide_loop_kind back_end;
    uint64_t header_timeout;
    uint64_t body_timeout;
    uint64_t idle_timeout;
    uint64_t request_timeout;
    uint64_t grace;
    const char *cache_control; /* NULL: none */
    bool lists;
    bool follows_links;
    bool has_hidden;
};

/* Ends the program if they are no good, or ask for help. */
void options_read(struct options *options, int argc, char **argv);

#endif
