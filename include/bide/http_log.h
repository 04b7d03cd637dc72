/*
 * A log of an HTTP server's requests, in the common or the combined format, or of its incidents. Floor: http.
 *
 *     bide_http_log_init(&log, &file, self->memory, sizeof self->memory, BIDE_HTTP_LOG_COMBINED);
 *     bide_scope_spawn(&self->scope, &self->logging, bide_http_log_run(&log));
 *     bide_http_server_init(&http, &(bide_http_options){.log = &log, ...});
 *     ...
 *     bide_http_log_close(&log);               // when the server has ended: what is left is written
 *
 * A line is put into a buffer when the exchange has ended, which costs no wait and no call of the system.
 * A coroutine of the log's own writes the buffer when it is half full, or a second after the first line.
 * If the file is so slow that the buffer is full, lines are dropped and counted, because requests do not
 * wait for a log.
 *
 * An error log is a log of its own, of which only bide_http_log_incident is used:
 *
 *     static void on_incident(bide_http_server *server, const bide_http_incident *incident)
 *     {
 *         bide_http_log_incident(&errors, server, incident);
 *     }
 *     ... bide_http_options){.incident = on_incident, ...
 *
 * Clients cause incidents, so their number is limited: see there.
 *
 * One loop has a log. Its file may be exchanged at any time: bide_http_log_reopen.
 *
 * Why it is correct: src/http/log.c.
 *
 * Source: the common log format of NCSA's httpd, and the combined one of Apache's.
 */
#ifndef BIDE_HTTP_LOG_H
#define BIDE_HTTP_LOG_H

#include "bide/auto_event.h"
#include "bide/deadline.h"
#include "bide/file.h"
#include "bide/http_server.h"

BIDE_EXTERN_C_BEGIN

typedef enum bide_http_log_format {
    BIDE_HTTP_LOG_COMMON,   /* client, time, first line, status, bytes */
    BIDE_HTTP_LOG_COMBINED, /* and referer and agent */
} bide_http_log_format;

/* The caller's memory until its coroutine has ended. */
typedef struct bide_http_log {
    bide_task task;
    uint64_t lines;   /* ever */
    uint64_t dropped; /* that found no room (incidents: see below), or could not be written */
    int error;        /* of the last write that failed; what it was to write is lost. 0: none */
    uint64_t suppressed; /* incidents that were not logged: too many, or without room */

    /* of the library */
    bide_descriptor *file;
    bide_http_log_format format;
    char *halves[2]; /* one is filled while the other is written */
    size_t size;     /* of a half */
    size_t filled;   /* of the first */
    size_t writing;  /* of the second */
    bool is_closed;
    uint32_t incidents;    /* that may be logged now */
    int64_t since;         /* the second when these were counted */
    uint64_t uncounted;    /* suppressed, and not yet mentioned in a line */
    int64_t second; /* of `time` */
    char time[32];
    bide_auto_event news;
    bide_auto_event written;
    bide_auto_event_waiter wait;
    bide_with_deadline_operation limited;
    bide_file_operation write;
    int status;
} bide_http_log;

/*
 * Makes a log that goes to `file`, which is open and the caller's, by `size` bytes of memory, some
 * thousand or more.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_http_log_init(bide_http_log *log, bide_descriptor *file, void *memory, size_t size,
                        bide_http_log_format format);

/*
 * Writes what is logged, until it is closed and all was written.
 * Threads: the loop's. Errors: -ECANCELED, -ETIMEDOUT: what is left is lost. Suspends: always.
 * Cancel-safe: no, what it was writing may have been written in part. Progress: that of the file.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_log_run(bide_http_log *log);

/*
 * No more lines come: bide_http_log_run ends when all was written.
 * Threads: the loop's. Suspends: never. Progress: lock-free.
 */
void bide_http_log_close(bide_http_log *log);

/*
 * Another file from now on, for what has not been begun to be written: after the old one was renamed. The
 * old one stays open until bide_http_log_flush has ended, or bide_http_log_is_idle says so; otherwise the
 * write that is under way ends with an error, and its lines are lost.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_http_log_reopen(bide_http_log *log, bide_descriptor *file);

/*
 * Whether nothing is being written.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE bool bide_http_log_is_idle(const bide_http_log *log)
{
    return log->writing == 0;
}

/*
 * Waits until the write that is under way, if there is one, has ended. One wait at a time.
 * Threads: the loop's. Errors: -ECANCELED, -ETIMEDOUT. Suspends: unless nothing is being written.
 * Cancel-safe: yes. Progress: that of the file.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_log_flush(bide_auto_event_waiter *waiter, bide_http_log *log);

/*
 * Logs an exchange that has ended, as the server of these options does. For servers that choose what is
 * logged: in options.ended.
 * Threads: the loop's. Suspends: never. Progress: lock-free, linear in the line.
 */
void bide_http_log_exchange(bide_http_log *log, bide_http_exchange *exchange);

/*
 * Appends a line for a request that was refused before its exchange had begun: `line` is its first line,
 * or the first bytes of something else; empty: "-". Servers do this themselves; this is for failures below
 * HTTP, such as a TLS handshake's.
 * Threads: the loop's. Progress: wait-free, linear in the texts.
 */
void bide_http_log_refused(bide_http_log *log, const bide_http_server *server, const char *peer,
                           bide_slice line, int status);

/*
 * Appends a line for an incident: time, client, status, first line, and what has happened, such as
 *
 *     [27/Nov/2026:11:15:29 +0000] 192.0.2.1 400 "GET / HTTP/9" the request is invalid
 *     [27/Nov/2026:11:15:30 +0000] 192.0.2.1 500 "GET /a HTTP/1.1" error 5: Input/output error
 *
 * At most 100 lines are logged at once, and one a second in the long run, of less than 1 KiB each: 90 MB a day. The first
 * line of the request and the reason are truncated for that. Incidents beyond that, or without room in the buffer, are
 * counted, and a line with their number precedes the next one. So a client cannot fill a disk. Halves of the memory
 * that have 100 KiB have room for as many as come at once.
 * Threads: the loop's. Progress: wait-free, linear in the texts.
 */
void bide_http_log_incident(bide_http_log *log, const bide_http_server *server,
                            const bide_http_incident *incident);

BIDE_EXTERN_C_END

#endif
