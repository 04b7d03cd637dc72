/*
 * Mode tcp: a connection to a server for each of a client's, and a relay between the two.
 */
#ifndef PROXY_TCP_H
#define PROXY_TCP_H

#include "balance.h"
#include "session.h"

struct tcp {
    bide_task task;
    struct session *session;
    struct backend *backend;
    struct upstream *server; /* that it is connected to, or tries to be; NULL: none */
    struct upstream *last;   /* ... or was */
    struct tried tried;
    unsigned retries;
    uint64_t tried_at, connected; /* when; 0: never */
    bide_descriptor socket;
    struct secure *secure; /* to the server; NULL: it has no TLS */
    int status;
    size_t header_size;
    unsigned char header[MAX_PROXY_HEADER];
    bide_with_deadline_operation limited;
    bide_io_operation io;
    bide_stream_operation none;
    struct relay relay;
};

/* To be awaited, in the memory of session->part. */
bide_awaiter *tcp_run(struct tcp *tcp, struct session *session);

#endif
