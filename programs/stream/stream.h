/*
 * stream: copies, prints, counts and measures message logs (bide/message_log.h).
 *
 * One thread has a loop. On it run the command, a coroutine that draws the progress, and one that
 * waits for signals. The first signal ends the command between two batches; the second cancels it.
 *
 *     options.c    the command line
 *     urls.c       which log a URL names, before it is opened
 *     endpoint.c   the logs to read from and to write to
 *     commands.c   the commands
 *     report.c     the progress on the terminal, and what is printed at the end
 *     stream.c     signals, and main
 */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include <bide/loop.h>
#include <bide/message_log.h>
#include <bide/scope.h>
#include <bide/version.h>

#include <stdbool.h>

enum {
    BATCH_MAX = 1000,        /* messages that are read or written at once */
    TAIL_MAX = 1000000,      /* messages that tail prints */
    MEASURED_MAX = 10000000, /* messages that measure sends */
    MEASURED_MIN_SIZE = 16,  /* their number and time */
    MEASURED_MAX_SIZE = 1 << 20,
    LINE_SIZE = 8 << 20 /* of a message of standard input */
};

enum command { COMMAND_COPY, COMMAND_TAIL, COMMAND_COUNT, COMMAND_LAG, COMMAND_MEASURE };

struct options {
    enum command command;
    const char *from;  /* a URL */
    const char *to;    /* copy: a URL */
    const char *group; /* copy, lag; or NULL */
    bool has_start;
    bide_log_position start; /* copy: after this position */
    uint32_t batch;
    uint32_t lines; /* tail */
    bool follows;   /* tail: prints what is published later too */
    uint32_t count; /* measure: messages; tail: what is printed at most, or 0 */
    uint32_t size;  /* measure: bytes of each */
    bool is_quiet;
};

/* Where messages are read. */
struct source {
    const char *url;
    char *opened; /* the URL with what the program adds; or NULL */
    bool is_stdio;
    bool is_open;
    bide_log *log;
    bide_log_consumer consumer;

    bide_log_position position; /* of the newest message that was taken */
    bool has_position;
};

/* Where messages are written. */
struct sink {
    const char *url;
    char *opened; /* likewise */
    bide_log *log;
};

/* A copy of a message. */
struct kept {
    char *bytes; /* its key, headers and data; or NULL */
    bide_log_message message;
};

struct stream {
    struct options options;
    bide_loop *loop;
    bide_scope *commands;
    struct source source;
    struct source other; /* measure: to see that there is nothing; tail: what is published later */
    struct sink sink;
    bide_log_message *messages; /* BATCH_MAX */
    struct kept *tail;          /* the newest messages: a ring */
    bool is_stopped;            /* by a signal */
    bool has_failed;            /* and the reason was printed */
    uint64_t count;             /* messages that are done */
    uint64_t bytes;
    uint64_t started_at;

    /* of measure */
    uint64_t *latencies; /* nanoseconds; `count` of them */
    uint64_t sent;
    char *payload;              /* of one batch */
    bide_log_message *outgoing; /* BATCH_MAX */
    uint64_t elapsed;
};

/* ---- options.c ---- */

void options_read(struct options *options, int argc, char **argv);

/* ---- urls.c ---- */

bool url_is_stdio(const char *url);

/* The URL without a password, to be printed: valid until the next call. */
const char *url_shown(const char *url);
/* False for the engines of one process: nobody else publishes to their logs while they are open. */
bool url_is_shared(const char *url);

/* True if both name the same log, which may be by different texts. */
bool url_is_same(const char *one, const char *other);

/*
 * *opened is the URL that opens the same log: if `must_exist`, it does not make one. Unless the URL names
 * a size, standard input has LINE_SIZE, and standard output any. The caller frees it. -ENOMEM: it is NULL.
 */
int url_opened(const char *url, bool must_exist, char **opened);

/* ---- report.c ---- */

/* Prints "stream: WHAT: WHY", or without `why`; the program fails. */
void report_failure(struct stream *stream, const char *what, const char *why);

bool progress_is_shown(const struct stream *stream);
void progress_draw(const struct stream *stream);
void progress_clear(void);

/* Reports how many messages were copied, or done before an interruption, on standard error. */
void report_done(const struct stream *stream);

/* The rate and the latencies, on standard output. */
void report_measured(struct stream *stream, uint64_t elapsed);

#endif
