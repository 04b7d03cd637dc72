/*
 * The proxy as a whole: its listeners, its log, what watches its servers, and the configuration at
 * hand. All of it is of one loop.
 *
 *     runs --SIGHUP--> another configuration: listeners that both have stay, connections go on
 *          --SIGUSR1-> a line of figures on standard output
 *          --SIGTERM, SIGINT--> no more connections; those that there are have a time to end
 *          --once more--> they are cut short
 */
#ifndef PROXY_PROGRAM_H
#define PROXY_PROGRAM_H

#include "configuration.h"
#include "log.h"
#include "../common/wishes.h"

#include <bide/buffer_pool.h>
#include <bide/loop.h>
#include <bide/server.h>
#include <bide/token_bucket.h>

struct hold;
struct program;

/* A socket that listens, with the part of the configuration at hand that is about it. */
struct listener {
    struct listener *next;
    struct program *program;
    struct configuration *configuration; /* a reference */
    struct listen *listen;
    bide_server server;
    bide_token_bucket bucket;
    bide_branch branch;
    bool is_leaving;
};

struct counts {
    uint64_t connections; /* that were taken */
    uint64_t refused;     /* because of their rate, or what they began with */
    uint64_t failed;      /* no server was to be had for them */
    uint64_t requests;    /* of HTTP */
    uint64_t retries;
    uint64_t bytes_in, bytes_out; /* from clients, and to them */
};

struct program {
    bide_task task;
    bide_loop *loop;
    bide_names *names;
    const char *file; /* of the configuration; NULL: it cannot be read again */
    struct configuration *configuration;
    struct listener *listeners;
    struct counts counts;
    struct log log;
    char *memory; /* of the buffers */
    size_t memory_size;
    bide_buffer_pool buffers;
    struct hold *holds; /* of requests that have ended, to be used again */
    unsigned hold_count;

    bide_scope serving;  /* the listeners and the log */
    bide_scope watching; /* the signals and the health checks */
    bide_branch log_branch;
    struct wishes wishes;
    bide_auto_event_waiter wait;
    bool is_stopping;
    int status;
    struct configuration *next; /* that is to take the place of `configuration` */
    struct listen *opening;
    struct listener *opened;
    bide_io_operation listen;
};

/* Prepares it with a configuration, whose reference it takes, and runs it until it is stopped. */
int program_run(struct program *program, struct configuration *configuration, const char *file);

#endif
