/* Forwards a request to a server and the response back to the client: the handler of mode http. */
#ifndef PROXY_FORWARD_H
#define PROXY_FORWARD_H

#include "balance.h"
#include "http.h"
#include "pool.h"
#include "relay.h"

#include <bide/http_client.h>
#include <bide/mutex.h>
#include <bide/sleep.h>
#include <bide/websocket.h>

enum { SCRATCH_MEMORY = 40960, SCRATCH_OUTPUT = 16384, SCRATCH_FIELDS = 100, SCRATCH_BODY = 32768 };

/* Memory of a request in progress. Idle connections have none. */
struct scratch {
    struct scratch *next; /* in the list of free ones */
    bide_connection_acquire_operation taking;
    bide_http_client client;
    bide_io_operation io;
    union {
        struct {
            struct relay relay;
            bide_stream_operation stream;
        };
        char body[SCRATCH_BODY];
    };
    _Alignas(16) char memory[SCRATCH_MEMORY];
};

/* A handler's frame. */
struct forward {
    bide_http_exchange exchange;
    struct session *session;
    struct backend *backend;
    const struct route *redirect; /* the route, if it redirects; or NULL */
    struct upstream *server;
    struct upstream *last;  /* the last one tried; NULL: none */
    struct upstream *named; /* by a cookie of the request (sticky.h); or NULL */
    struct scratch *scratch;
    bide_with_deadline_operation limited;
    bide_pooled_connection *connection;
    struct tried tried;
    unsigned retries;
    unsigned stale; /* idle connections that turned out to be closed */
    uint64_t started_at, tried_at;
    uint64_t in, out; /* bytes of bodies */
    int status;
    int route_status;       /* of choosing the route */
    bool has_sent;          /* some of the request may have been sent */
    bool has_read;          /* some of the body was read from the client */
    bool has_response_data; /* the server has responded */
    int response_status;    /* of the server's response, which has been started; 0: none */
    bool is_fresh;          /* the connection is new and unused */
    char target[512];       /* for the log, which is written when the request's text may be gone */
    size_t target_size;
    char method[16];
    char protocol[64];                /* of a requested upgrade */
    char key[BIDE_WEBSOCKET_KEY + 1]; /* of a WebSocket whose client, of HTTP/2, has none; or "" */
    bool has_turn;  /* it has the descriptor that its client's share includes: see turns.h */
    bool has_spare; /* it has a spare one */
    bide_mutex_waiter turn;
};

bide_declare_body(forward_body);

static inline uint64_t forward_now(const struct forward *self)
{
    return bide_now(bide_loop_context(self->session->program->loop));
}

#endif
