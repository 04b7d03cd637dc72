/*
 * fetch: downloads many URLs at once, into files.
 *
 * One thread has a loop. On it run a few workers, which take one transfer after the other, and what
 * shows how far they are. A worker has one connection, and keeps it from one transfer to the next if
 * that is of the same origin.
 *
 *     options.c      what the command line asks for
 *     connection.c   a connection to an origin: name, TCP, TLS
 *     transfer.c     one transfer: redirects, tries, what is left of an earlier one
 *     remains.c      what an earlier try, or run, has left of a file
 *     digest.c       the SHA-256 of what was written
 *     progress.c     the lines on the terminal
 *     fetch.c        the workers, and main
 */
#ifndef FETCH_H
#define FETCH_H

#include <bide/file.h>
#include <bide/http_client.h>
#include <bide/http_url.h>
#include <bide/loop.h>
#include <bide/names.h>
#include <bide/scope.h>
#if FETCH_HAS_TLS
#include <bide/tls.h>
#endif

enum { MAX_URL = 4096, MAX_NAME = 512, MAX_SUM = 64, MAX_PATH = 4096 };

struct options {
    const char *folder;      /* where the files go; NULL: here */
    const char *output;      /* the one file's name; NULL: of its URL */
    const char *authorities; /* a file in PEM, instead of the system's */
    unsigned workers;
    unsigned tries;
    uint64_t timeout; /* nanoseconds without a byte */
    uint64_t pause;   /* nanoseconds before the second try */
    bool resumes;     /* goes on with what an earlier run has left */
    bool verifies;    /* certificates */
    bool syncs;       /* files are on the disk before they get their names */
    bool prints_sums;
    bool is_quiet;
};

enum transfer_state { WAITING, CONNECTING, RECEIVING, PAUSED, DONE, FAILED };

/* One URL, and the file that it becomes. */
struct transfer {
    const char *url;
    char name[MAX_NAME];      /* of the file */
    char sum[MAX_SUM + 1];    /* what it is to have, or has; "": not known */
    bool is_summed;            /* `sum` is what it is to have */
    enum transfer_state state;
    unsigned tries;
    uint64_t size;             /* in all; BIDE_HTTP_UNKNOWN */
    uint64_t had;              /* bytes that are in the file */
    uint64_t resumed;          /* ... of those, from an earlier try */
    uint64_t begun, ended;     /* when */
    char validator[256];       /* ETag or Last-Modified of what is in the file; "": none */
    char problem[200];
};

struct fetch {
    struct options options;
    struct transfer *transfers;
    size_t count;
    size_t next; /* the first that no worker has taken */
    bide_loop *loop;
    bide_names *names;
#if FETCH_HAS_TLS
    bide_tls_config *tls;
#endif
    bide_scope *workers;
    bool was_interrupted;
};

/* ---- options.c ---- */

void options_read(struct fetch *fetch, int argc, char **argv);

/* ---- connection.c ---- */

/* To one origin, or to none. */
struct connection {
    bide_descriptor socket;
    bool is_open;
    bool is_secure;
    uint16_t port;
    char host[256];
    bide_http_client client;
#if FETCH_HAS_TLS
    bide_tls tls;
#endif
    const char *problem; /* in words, if there are any */
    _Alignas(16) char memory[32768];
};

void connection_init(struct connection *connection);
bool connection_is_to(const struct connection *connection, const bide_http_url *url);
void connection_close(struct connection *connection);

/* ---- remains.c ---- */

/* Where a file goes: it grows in `part`; `from` says of what `part` is the beginning. */
struct place {
    char target[MAX_PATH];
    char part[MAX_PATH];
    char from[MAX_PATH];
};

/* Errors: -ENAMETOOLONG. */
int place_of(struct place *place, const struct fetch *fetch, const struct transfer *transfer);

/* ---- digest.c ---- */

struct digest {
    void *context; /* NULL: nothing is summed */
};

bool digest_is_there(void);
int digest_begin(struct digest *digest);
void digest_add(struct digest *digest, const void *data, size_t size);
void digest_end(struct digest *digest, char sum[MAX_SUM + 1]);
void digest_free(struct digest *digest);

/* ---- transfer.c ---- */

/* Of a worker. */
struct working {
    struct connection connection;
    struct place place;
    bide_descriptor file;  /* the part */
    struct digest digest;
    uint64_t summed;       /* bytes of the part */
    bool is_saved;         /* `from` is there */
    char url[MAX_URL];    /* where redirects have led */
    char next[MAX_URL];
    char target[MAX_URL];
    char authority[300];
    bool is_final;         /* to try again is of no use */
    uint64_t after;        /* nanoseconds that the server wants to be left alone */
    char buffer[1 << 17];
};

/* ---- progress.c ---- */

bool progress_is_shown(const struct options *options);
void progress_draw(const struct fetch *fetch);
void progress_end(const struct fetch *fetch);
/* A line for a transfer that has ended. */
void progress_tell(const struct fetch *fetch, const struct transfer *transfer);

#endif
