/*
 * fetch: downloads many URLs at once, into files.
 *
 * One thread has a loop. On it run several workers, each of which downloads one transfer after
 * another, and a coroutine that draws the progress. The library's HTTP agent has the connections,
 * and does redirects, proxies, TLS and HTTP/2.
 *
 *     options.c      the command line
 *     headers.c      fields of requests, credentials
 *     transfer.c     one transfer: requests, retries, resuming
 *     partial.c      partial files of earlier tries or runs
 *     digest.c       the SHA-256 of a file
 *     progress.c     the lines on the terminal
 *     fetch.c        the workers, and main
 */
#ifndef FETCH_H
#define FETCH_H

#include <bide/file.h>
#include <bide/http_agent.h>
#include <bide/loop.h>
#include <bide/scope.h>
#if FETCH_HAS_TLS
#include <bide/tls.h>
#endif

#include <sys/stat.h>

enum {
    MAX_URL = BIDE_HTTP_FETCH_URL,
    MAX_NAME = 512,
    MAX_SUM = 64,
    MAX_PATH = 4096,
    MAX_HEADERS = 32
};

/* A field that is added to each request. */
struct header {
    const char *name, *value;
};

struct options {
    const char *directory;   /* of the files; NULL: the current one */
    const char *output;      /* the one file's name; NULL: from its URL */
    const char *authorities; /* a PEM file that replaces the system's */
    const char *monitor;     /* NULL: none; see common/monitoring.h */
    unsigned workers;
    unsigned tries;
    uint64_t timeout;     /* nanoseconds without data */
    uint64_t retry_delay; /* nanoseconds before the second try */
    struct header headers[MAX_HEADERS];
    size_t header_count;
    bool skips;           /* leaves files alone that exist */
    bool resumes;         /* resumes files of an earlier run */
    bool verifies;        /* verifies certificates */
    bool uses_http2;      /* with servers that choose it */
    bool syncs;           /* syncs files before they get their names */
    bool prints_sums;
    bool is_quiet;
};

enum transfer_state { WAITING, CONNECTING, RECEIVING, PAUSED, DONE, FAILED };

/* One URL, and its file. */
struct transfer {
    const char *url;
    char name[MAX_NAME];   /* of the file */
    char sum[MAX_SUM + 1]; /* expected or computed; "": unknown */
    bool is_summed;        /* `sum` is the expected one */
    bool is_skipped;       /* the file was there */
    enum transfer_state state;
    unsigned tries;
    uint64_t size;                    /* of the whole file; BIDE_HTTP_UNKNOWN */
    uint64_t present;                 /* bytes in the part */
    uint64_t resumed;                 /* ... from an earlier try */
    uint64_t started_at, finished_at; /* times */
    char validator[256];              /* ETag or Last-Modified of the part; "": none */
    char problem[200];
};

struct fetch {
    struct options options;
    struct transfer *transfers;
    size_t count;
    size_t next; /* the first without a worker */
    bide_loop *loop;
    bide_http_agent *agent;
#if FETCH_HAS_TLS
    bide_tls_config *tls;
#endif
    bide_scope *workers;
    bool was_interrupted;
};

/* ---- options.c ---- */

void options_read(struct fetch *fetch, int argc, char **argv);

/* ---- headers.c ---- */

/* "Name: value", as the command line has it. An error ends the program. */
void headers_add(struct options *options, const char *text);

/* "NAME:PASSWORD", and the first line of a file, which has that. */
void headers_add_user(struct options *options, const char *credentials);
void headers_add_user_file(struct options *options, const char *path);

bool headers_have(const struct options *options, const char *name);

/* ---- partial.c ---- */

/*
 * The paths of a file: data is written to `part`, and `origin` records the URL and version of
 * `part`.
 */
struct paths {
    char target[MAX_PATH];
    char part[MAX_PATH];
    char origin[MAX_PATH];
};

/* Errors: -ENAMETOOLONG. */
int paths_init(struct paths *paths, const struct fetch *fetch, const struct transfer *transfer);

/*
 * A regular file with one name, of this user's or the superuser's. Another user could change the others, or has put them
 * there to have something else written or read.
 */
bool partial_is_own(const struct stat *about);

/* The same file. */
bool partial_is_same(const struct stat *one, const struct stat *other);

/* The same file, with the same content. A program may set the time of a change (st_mtim), but not st_ctim. */
bool partial_is_unchanged(const struct stat *one, const struct stat *other);

/* ---- digest.c ---- */

struct digest {
    void *context; /* NULL: no digest */
};

bool digest_is_available(void);
int digest_start(struct digest *digest);
void digest_add(struct digest *digest, const void *data, size_t size);
void digest_finish(struct digest *digest, char sum[MAX_SUM + 1]);
void digest_free(struct digest *digest);

/* ---- transfer.c ---- */

/* The state of a worker. */
struct worker {
    bide_http_fetch http; /* the request of this try */
    struct paths paths;
    bide_descriptor file; /* the part, while it is open */
    struct stat loaded;   /* the part that transfer->present was taken from */
    bool was_replaced;    /* `file` is another one */
    bool is_foreign;      /* another process has written its content: this one removes nothing */
    struct digest digest;
    uint64_t summed;      /* bytes of the part in the digest */
    bool is_saved;        /* the file `origin` exists */
    bool is_final;        /* retrying is useless */
    uint64_t retry_after; /* nanoseconds, from Retry-After */
    char buffer[1 << 17];
};

/* ---- progress.c ---- */

bool progress_is_shown(const struct options *options);
void progress_draw(const struct fetch *fetch);
void progress_clear(const struct fetch *fetch);
/* Prints a line for a finished transfer. */
void progress_report(const struct fetch *fetch, const struct transfer *transfer);

#endif
