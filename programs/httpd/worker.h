/*
 * A worker: a loop with a listener, its connections, and logs of its own. Workers share a port,
 * between whose listeners the kernel distributes connections, and constant data.
 *
 *     runs --SIGHUP--> certificates reloaded, logs reopened; connections continue
 *          --SIGUSR1-> a line of statistics on standard output
 *          --SIGTERM, SIGINT--> no new connections; requests in progress have a time to finish
 *          --once more--> they are cancelled
 */
#ifndef HTTPD_WORKER_H
#define HTTPD_WORKER_H

#include "logs.h"
#include "options.h"
#include "../common/secure.h"
#include "../common/server_signals.h"

#if HTTPD_HAS_HTTP2
#include <bide/http2.h>
#endif
#include <bide/http_compression.h>
#include <bide/http_files.h>
#include <bide/server.h>

#include <pthread.h>

/*
 * The clients of HTTP/2 may have one request for each connection, and together one more for each of so
 * many connections.
 */
enum { CONNECTIONS_OF_STREAM = 4 };

/* The data that workers share. It is constant while they run. */
struct site {
    struct options options;
    unsigned connections; /* of each worker */
    bide_http_files files;
    bide_blocking *blocking; /* opens uncached files */
};

/* Each half of the latter has room for the lines of all incidents that are logged at once (http_log.h). */
enum { LOG_MEMORY = 1 << 18, ERROR_LOG_MEMORY = 1 << 18 };

struct worker {
    bide_task task;
    struct site *site;
    unsigned number;
    bide_loop *loop;
    struct bide_tls_config *secure; /* for new handshakes; NULL: no TLS */
    bide_http_server http;
#if HTTPD_HAS_HTTP2
    bide_http2 http2;
#endif
    bide_server server;

    bide_http_compression compression;
    struct worker_log log;    /* of requests */
    struct worker_log errors; /* of incidents */

    bide_scope scope;
    bide_branch serving;
    struct server_signals signals;
    bide_auto_event_waiter wait;
    bool is_stopping;
    bool has_ended; /* the server has finished */
    int status;
    pthread_t thread;
    char log_memory[LOG_MEMORY];
    char error_memory[ERROR_LOG_MEMORY];
};

/*
 * Initializes a worker: its loop, its signals, its log file. `secure`, or NULL, remains the
 * caller's. A failure is reported on stderr; worker_destroy must be called then too.
 */
bool worker_init(struct worker *worker, struct site *site, unsigned number,
                 struct bide_tls_config *secure);

/* Runs the worker on the calling thread until a signal stops it. worker->status is its result. */
void worker_run(struct worker *worker);

void worker_destroy(struct worker *worker);

#endif
