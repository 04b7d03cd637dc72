/*
 * The proxy as a whole: its listeners, its log, its health checks, and the current configuration.
 * All of it belongs to one loop.
 *
 *     runs --SIGHUP--> the new configuration: listeners in both stay, connections continue
 *          --SIGUSR1-> a line of statistics on standard output
 *          --SIGTERM, SIGINT--> no new connections; open ones have a time to finish
 *          --once more--> they are cancelled
 *          --a successor is ready (handover.h)--> as after SIGTERM, but idle HTTP connections stay
 */
#ifndef PROXY_PROGRAM_H
#define PROXY_PROGRAM_H

#include "../common/confine.h"
#include "configuration.h"
#include "clients.h"
#include "descriptors.h"
#include "handover.h"
#include "log.h"
#include "../common/server_signals.h"

#include <bide/buffer_pool.h>
#include <bide/loop.h>
#include <bide/server.h>
#include <bide/sleep.h>
#include <bide/token_bucket.h>

struct scratch;
struct program;

/* A listening socket, with its section of the current configuration. */
struct listener {
    struct listener *next;
    struct program *program;
    struct configuration *configuration; /* a reference */
    struct listen *listen;
    bide_server server;
    struct share share; /* of the descriptors */
    uint64_t ended;     /* connections that have closed their descriptors */
    bide_token_bucket bucket;
    struct clients *clients; /* their rates; NULL: no limit so far; kept over reloads */
    bide_listen_path *path;  /* if its socket is a file; or NULL */
    bide_branch branch;
    bool is_shutting_down;
    bool is_passed; /* its socket was a predecessor's */
};

struct statistics {
    uint64_t connections; /* accepted */
    uint64_t rejected;    /* for their rate, or a bad or missing header */
    uint64_t failed;      /* for which no server was found */
    uint64_t limited;     /* connections, or HTTP requests, beyond the rate of their client */
    uint64_t requests;    /* HTTP requests */
    uint64_t retries;
    uint64_t bytes_in, bytes_out; /* from clients, and to them */
};

struct program {
    bide_task task;
    bide_loop *loop;
    bide_names *names;
    const char *file; /* of the configuration; NULL: no reload */
    struct confine *confine;
    const char *monitor; /* NULL: none; see monitoring.h */
    struct configuration *configuration;
    struct configuration *used; /* it, and older ones that connections use */
    struct listener *listeners;
    struct statistics statistics;
    struct descriptors descriptors;
    struct handover handover;
    struct log log;
    char *memory; /* the memory of the buffers */
    size_t memory_size;
    bide_buffer_pool buffers;
    struct scratch *free_scratch; /* of finished requests, for reuse */
    unsigned free_scratch_count;

    bide_scope serving;  /* the listeners and the log */
    bide_scope watching; /* the signals and the health checks */
    bide_branch log_branch;
    struct server_signals signals;
    bide_auto_event_waiter wait;
    bool is_stopping;
    int status;
    struct configuration *next; /* the replacement of `configuration` */
    struct listen *opening;
    struct listener *opened;
    bide_io_operation listen;
    bide_sleep pause; /* before it tries to listen again */
    int tries;
};

/*
 * Initializes the program with a configuration, whose reference it takes, and runs it until it is
 * stopped. It is confined as soon as it listens. `handover` is the path where sockets are passed on, or NULL.
 */
int program_run(struct program *program, struct configuration *configuration, const char *file,
                struct confine *confine, const char *monitor, const char *handover);

#endif
