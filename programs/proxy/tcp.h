/* Mode tcp: each client connection gets a connection to a server, and a relay between the two. */
#ifndef PROXY_TCP_H
#define PROXY_TCP_H

#include "balance.h"
#include "session.h"

struct tcp {
    bide_task task;
    struct session *session;
    struct backend *backend;
    struct upstream *server; /* connected to, or being tried; NULL: none */
    struct upstream *last;   /* the last one tried */
    struct tried tried;
    unsigned retries;
    uint64_t tried_at, connected; /* times; 0: never */
    bide_descriptor socket;
    struct secure *secure; /* to the server; NULL: no TLS */
    int status;
    size_t header_size;
    unsigned char header[PROXY_HEADER_MAX_WRITTEN];
    bide_with_deadline_operation limited;
    bide_io_operation io;
    bide_stream_operation none;
    struct relay relay;
};

/* An awaiter that serves the session. `tcp` is session->mode_memory. */
bide_awaiter *tcp_run(struct tcp *tcp, struct session *session);

#endif
