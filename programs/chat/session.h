/* A client on its websocket, from its first line to the close. */
#ifndef CHAT_SESSION_H
#define CHAT_SESSION_H

#include <bide/http.h>

/* The options of all sessions. Times are in nanoseconds. */
struct session_options {
    uint64_t ping;    /* of silence before a ping */
    uint64_t silence; /* of silence before the client is disconnected */
    unsigned rate;    /* messages per second */
    unsigned burst;   /* messages in a burst */
};

/* The handler. The exchange's argument is the options. */
extern const bide_http_handler session_handler;

#endif
