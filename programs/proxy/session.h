/*
 * One connection of a client, from its acceptance to its end. What both modes have in common is done
 * here: its place in the configuration, the PROXY protocol, TLS. Then its mode takes over (tcp.h,
 * http.h), with memory of its own.
 */
#ifndef PROXY_SESSION_H
#define PROXY_SESSION_H

#include "program.h"
#include "proxy_header.h"
#include "relay.h"
#include "secure.h"

struct session {
    bide_connection connection;
    struct listener *listener;
    struct program *program;
    struct configuration *configuration; /* a reference */
    struct listen *listen;
    bide_address client; /* as the PROXY protocol has it, if it is used */
    bide_address local;
    uint64_t begun;
    struct end end;
    struct secure *secure; /* NULL: it has no TLS */
    void *part; /* the memory of its mode */
    struct proxy_header *header;
    int status;
    bide_with_deadline_operation limited;
    bide_io_operation io;
    bide_stream_operation last;
    struct msghdr message;
    struct iovec vector;
    char peeked[MAX_PROXY_HEADER_V1];
};

bide_declare_body(session_body);

/* What an error is called in the log. */
const char *session_reason(int error);

/* The client's address as text. */
const char *session_client(const struct session *session, char text[BIDE_ADDRESS_TEXT]);

#endif
