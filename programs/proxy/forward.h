/*
 * A request on its way to a server, and the response on its way back.
 */
#ifndef PROXY_FORWARD_H
#define PROXY_FORWARD_H

#include "balance.h"
#include "http.h"
#include "pool.h"
#include "relay.h"

#include <bide/http_client.h>

enum { HOLD_MEMORY = 40960, HOLD_OUTPUT = 16384, HOLD_BODY = 32768 };

/* What a request needs while it is under way: connections that are idle have none. */
struct hold {
    struct hold *next; /* of the unused */
    bide_connection_acquire_operation taking;
    bide_http_client client;
    bide_with_deadline_operation limited;
    bide_io_operation io;
    union {
        struct {
            struct relay relay;
            bide_stream_operation stream;
        };
        char body[HOLD_BODY];
    };
    _Alignas(16) char memory[HOLD_MEMORY];
};

/* A handler's frame. */
struct forward {
    bide_http_exchange exchange;
    struct session *session;
    struct backend *backend;
    struct upstream *server;
    struct upstream *last; /* that was tried; NULL: none */
    struct hold *hold;
    bide_pooled_connection *connection;
    struct tried tried;
    unsigned retries;
    unsigned stale; /* connections that had been idle, and were of no use */
    uint64_t begun, tried_at;
    uint64_t in, out; /* bytes of bodies */
    int status;
    bool has_sent;     /* some of the request may have left */
    bool has_read;     /* some of its body was taken from the client */
    bool has_answer;   /* something has come back */
    bool is_fresh;     /* its connection is new, and has not begun */
    char target[512];  /* for the log, which comes when the request's texts may be gone */
    size_t target_size;
    char method[16];
    char protocol[64]; /* that it is to change to */
};

bide_declare_body(forward_body);

/* An exchange has ended: it is told to the log. */
void forward_ended(bide_http_exchange *exchange, int error);

/* Frees what requests have left to be used again. */
void forward_free(struct program *program);

#endif
