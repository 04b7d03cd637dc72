/*
 * A worker: one loop with a listener, its connections, and a log of its own. Workers share an address, by
 * which the system deals connections out, and nothing that changes.
 *
 *     runs --SIGHUP--> the certificates were read again, the log was opened anew; connections go on
 *          --SIGUSR1-> a line of figures on standard output
 *          --SIGTERM, SIGINT--> no more connections; requests that are under way have a time to end
 *          --once more--> they are cut short
 */
#ifndef HTTPD_WORKER_H
#define HTTPD_WORKER_H

#include "options.h"
#include "secure.h"
#include "../common/wishes.h"

#if HTTPD_HAS_HTTP2
#include <bide/http2.h>
#endif
#include <bide/http_files.h>
#include <bide/http_log.h>
#include <bide/server.h>

#include <pthread.h>

/* What workers have in common. It does not change while they run. */
struct site {
    struct options options;
    unsigned connections; /* of each worker */
    bide_http_files files;
    bide_blocking *blocking; /* opens files that are not in memory */
};

enum { LOG_MEMORY = 1 << 18 };

struct worker {
    bide_task task;
    struct site *site;
    unsigned number;
    bide_loop *loop;
    struct bide_tls_config *secure; /* for handshakes to come; NULL: no TLS */
    bide_http_server http;
#if HTTPD_HAS_HTTP2
    bide_http2 http2;
#endif
    bide_server server;

    bide_http_log log;
    bide_descriptor log_files[2]; /* one is the log's, and the other closed, but for a reload */
    unsigned log_at;
    bide_file_operation open;
    bide_auto_event_waiter settling;

    bide_scope scope;
    bide_branch serving, logging;
    struct wishes wishes;
    bide_auto_event_waiter wait;
    bool is_stopping;
    bool has_ended; /* the server has */
    int status;
    pthread_t thread;
    char log_memory[LOG_MEMORY];
};

/*
 * Prepares one: a loop, the signals, the log's file. `secure` or NULL is the caller's. What fails is told
 * on standard error, and then worker_end is called all the same.
 */
bool worker_init(struct worker *worker, struct site *site, unsigned number,
                 struct bide_tls_config *secure);

/* Runs it, on the calling thread, until a signal ends it; its status is worker->status. */
void worker_run(struct worker *worker);

void worker_end(struct worker *worker);

#endif
