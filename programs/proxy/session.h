/*
 * A client's connection, from accept to close. The steps common to both modes are here: the
 * configuration's section, the PROXY protocol, TLS. Then the mode takes over (tcp.h, http.h), with
 * memory of its own.
 */
#ifndef PROXY_SESSION_H
#define PROXY_SESSION_H

#include "../common/secure.h"
#include "program.h"
#include "proxy_header.h"
#include "relay.h"

struct session {
    bide_connection connection;
    struct listener *listener;
    struct program *program;
    struct configuration *configuration; /* a reference */
    struct listen *listen;
    bide_address client; /* from the PROXY protocol, if it is used */
    bide_address local;
    uint64_t started_at;
    struct endpoint endpoint;
    struct secure *secure; /* NULL: no TLS */
    void *mode_memory;     /* of struct tcp or struct http */
    struct proxy_header *header;
    int status;
    bide_with_deadline_operation limited;
    bide_io_operation io;
    bide_stream_operation last;
    struct msghdr message;
    struct iovec vector;
    char peeked[PROXY_HEADER_MAX_V1];
};

bide_declare_body(session_body);

/* True if a reload has given the connection's address another configuration, or another listener. */
bool session_is_outdated(const struct session *session);

/* The log's text for an error. */
const char *session_reason(int error);

/* The client's address as text. */
const char *session_client(const struct session *session, char text[BIDE_ADDRESS_TEXT]);

#endif
